"""Load in a process of its own: the generator in C (generator.c) is given a task, and gives its outcome back as JSON.

    .venv/load-generator/generator publish port=1883 qos=1 window=100 seconds=5

A latency counts from the moment at which the message was due: at a fixed rate by the rate, else when it was sent.
"""

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self

from benchmarks.load.wire import BenchmarkError

#: Where deploy/setup/load-generator.sh builds.
GENERATOR: Final = Path(sys.prefix) / "load-generator" / "generator"
#: A generator that has not ended this long after its time has failed, seconds.
_LATE_S: Final = 120.0


class Verb(StrEnum):
    """What the generator can do with a server."""

    PUBLISH = "publish"
    RETAIN = "retain"
    SUBSCRIBE = "subscribe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What the generator is to do. `rate` is messages a second over all connections; 0: as fast as the window lets.

    `subscribers` is 0, or `connections`: then each publisher has one, on its own topic below `topic`. With one
    publisher it may be any number: all of them get every message, and the window waits for the slowest of them.
    `level` is that of the protocol, 4 (MQTT 3.1.1) or 5. A server that does not answer for `wait_ms` has failed.
    `count` is the number of topics that get one message each, `first` the number of the first of them, and `retained`
    says whether these are retained. `clean`: whether the session of their subscriber ends with its connection.
    """

    port: int
    seconds: float = 1.0
    connections: int = 1
    subscribers: int = 0
    window: int = 1
    payload_bytes: int = 64
    qos: int = 1
    rate: int = 0
    topic: str = "bench/sensor"
    level: int = 4
    wait_ms: int = 30_000
    count: int = 1
    first: int = 0
    retained: bool = True
    clean: bool = True

    def arguments(self) -> list[str]:
        values = asdict(self) | {"clean": int(self.clean), "retained": int(self.retained)}
        return [f"{name}={value}" for name, value in values.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """Of latencies, in ms; each is at most 0.8 % too high, never too low. All are 0 where there are none."""

    p50_ms: float
    p90_ms: float
    p99_ms: float
    p99_9_ms: float
    max_ms: float

    @classmethod
    def of(cls, told: dict[str, float]) -> Self:
        """From the generator's JSON."""
        return cls(
            p50_ms=told["p50"], p90_ms=told["p90"], p99_ms=told["p99"], p99_9_ms=told["p99.9"], max_ms=told["max"]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a load. Every message was acknowledged (QoS 1, 2), and delivered once where there are subscribers.

    `acknowledgement` ends with PUBACK or PUBCOMP, `way` with the subscriber's PUBLISH. `late`: how late the generator
    sent by its own fault, at a fixed rate; it is part of both.
    """

    acknowledged: int
    delivered: int
    elapsed_s: float
    cpu_s: float
    acknowledgement: Percentiles
    way: Percentiles
    late: Percentiles

    @property
    def messages(self) -> int:
        """All of them."""
        return self.delivered or self.acknowledged

    @property
    def rate(self) -> float:
        return self.messages / self.elapsed_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """How retained messages came: SUBACK after `suback_ms`, each message after `way`, and all within `elapsed_s`.

    All three count from SUBSCRIBE.
    """

    delivered: int
    suback_ms: float
    elapsed_s: float
    way: Percentiles


def generate(task: Task) -> Outcome:
    """Publishes. BenchmarkError when the server does not do exactly what it must."""
    told = _run(Verb.PUBLISH, task)
    return Outcome(
        acknowledged=told["acknowledged"],
        delivered=told["delivered"],
        elapsed_s=told["elapsed_s"],
        cpu_s=told["cpu_s"],
        acknowledgement=Percentiles.of(told["acknowledgement_ms"]),
        way=Percentiles.of(told["way_ms"]),
        late=Percentiles.of(told["late_ms"]),
    )


def retain(task: Task) -> float:
    """Publishes `count` messages of QoS 1, one on each topic. Seconds until all were acknowledged."""
    elapsed_s: float = _run(Verb.RETAIN, task)["elapsed_s"]
    return elapsed_s


def receive_retained(task: Task) -> Arrival:
    """Subscribes to all that `retain` has published. BenchmarkError unless each comes exactly once."""
    told = _run(Verb.SUBSCRIBE, task)
    return Arrival(
        delivered=told["delivered"],
        suback_ms=told["suback_ms"],
        elapsed_s=told["elapsed_s"],
        way=Percentiles.of(told["way_ms"]),
    )


def missing() -> str:
    """Why there is no generator here; empty where there is one."""
    if GENERATOR.exists():
        return ""
    reason = GENERATOR.with_name("unavailable")
    why = reason.read_text().strip() if reason.exists() else "call deploy/setup/load-generator.sh"
    return f"the load generator is not built: {why}"


def generator(*arguments: str) -> list[str]:
    """The command. BenchmarkError where the generator is not built."""
    if why := missing():
        raise BenchmarkError(why)
    return [str(GENERATOR), *arguments]


def _run(verb: Verb, task: Task) -> dict[str, Any]:
    command = generator(verb, *task.arguments())
    run = subprocess.run(command, capture_output=True, text=True, timeout=task.seconds + _LATE_S, check=False)
    if run.returncode:
        raise BenchmarkError(f"{verb}: {run.stderr.strip()}")
    told: dict[str, Any] = json.loads(run.stdout)
    return told
