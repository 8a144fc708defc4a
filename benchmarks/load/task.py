"""Load in a process of its own: a generator is a module that is given its task, and gives its outcome back, as JSON.

    python -m benchmarks.load.window '{"port": 1883, ...}'      prints one line of JSON

A process of its own, so that neither the measuring process nor its garbage collector shares time with the generator.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final

from benchmarks.load.wire import BenchmarkError

#: A generator that has not ended this long after its time has failed, seconds.
_LATE_S: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a generator is to do. `rate` is messages a second over all connections; 0: as fast as the window lets."""

    port: int
    seconds: float
    connections: int = 1
    window: int = 1
    payload_bytes: int = 64
    qos: int = 1
    rate: int = 0
    topic: str = "bench/sensor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it. `messages` were acknowledged, or at the subscriber of a pair received, within `elapsed_s`.

    `late_p50_ms`: how late a generator with a rate sent, by its own fault; it is part of `p50_ms`.
    """

    messages: int
    elapsed_s: float
    p50_ms: float
    p99_ms: float
    cpu_s: float
    late_p50_ms: float = 0.0

    @property
    def rate(self) -> float:
        return self.messages / self.elapsed_s


def generate(generator: str, task: Task) -> Outcome:
    """Runs a generator ("window", "paced" or "pair") in a process of its own. BenchmarkError when it fails."""
    command = [sys.executable, "-m", f"benchmarks.load.{generator}", json.dumps(asdict(task))]
    run = subprocess.run(command, capture_output=True, text=True, timeout=task.seconds + _LATE_S, check=False)
    if run.returncode:
        raise BenchmarkError(f"the generator {generator} failed: {run.stderr.strip().rpartition(chr(10))[2]}")
    return Outcome(**json.loads(run.stdout))


def serve_task(work: Callable[[Task], Outcome]) -> None:
    """The `main` of a generator's process."""
    print(json.dumps(asdict(work(Task(**json.loads(sys.argv[1]))))))
