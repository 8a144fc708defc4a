"""What others feel of an attack: QoS 1 at a fixed rate beside it, and without one; and what it costs in memory."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.figures import Measure, Report, Row
from benchmarks.idle import allow_descriptors
from benchmarks.load.hostile import ATTACKS
from benchmarks.load.task import Outcome, Task, generate
from benchmarks.load.wire import BenchmarkError
from benchmarks.servers import Gateway, resident_mib

NAME: Final = "attacks"
#: Twenty well-behaved clients, a thousand messages a second together.
_CONNECTIONS: Final = 20
_RATE: Final = 1_000
_WINDOW: Final = 200
_DESCRIPTORS: Final = 8_000
#: What the aim allows: others wait twice as long at most.
_AIM: Final = 2.0
_CONFIGURATION: Final = """
[mqtt]
versions = ["3.1", "3.1.1", "5"]

[[listener]]
name = "tls"
listen = "127.0.0.1:0"
tls = {{ certificate = "{folder}/certificate.pem", key = "{folder}/key.pem" }}
"""


def run(seconds: float) -> Report:
    """A new gateway for each attack, measured before and during it."""
    allow_descriptors(_DESCRIPTORS)
    rows = [measure(attack, seconds) for attack in ATTACKS]
    beyond = [row.case for row in rows if row.value("p50, times normal") > _AIM]
    return Report(
        name=NAME,
        title=f"QoS 1, PUBLISH to PUBACK at {_RATE:,}/s over {_CONNECTIONS} connections, beside an attack",
        rows=tuple(rows),
        notes=(
            f"The aim is {_AIM:.0f} times normal. Beyond it: {', '.join(beyond) or 'none'}.",
            "The attacker is one process at the lowest priority, but it shares cores with the gateway.",
        ),
    )


def measure(attack: str, seconds: float) -> Row:
    with Gateway(_CONFIGURATION) as gateway:
        normal = _well_behaved(gateway, seconds)
        before_mib = resident_mib(gateway.process_id)
        with attacking(gateway, attack) as attacker:
            during = _well_behaved(gateway, seconds)
            after_mib = resident_mib(gateway.process_id)
            if attacker.poll() is not None:
                raise BenchmarkError(f"the attack {attack} ended before it was measured: {_last_words(attacker)}")
    return Row(
        subject=gateway.name,
        case=attack,
        measures=(
            Measure(name="normal p50", value=normal.p50_ms, unit="ms"),
            Measure(name="PUBACK p50", value=during.p50_ms, unit="ms"),
            Measure(name="p50, times normal", value=during.p50_ms / normal.p50_ms, unit="x"),
            Measure(name="normal p99", value=normal.p99_ms, unit="ms"),
            Measure(name="PUBACK p99", value=during.p99_ms, unit="ms"),
            Measure(name="p99, times normal", value=during.p99_ms / normal.p99_ms, unit="x"),
            Measure(name="memory more", value=after_mib - before_mib, unit="MiB"),
        ),
    )


def _well_behaved(gateway: Gateway, seconds: float) -> Outcome:
    task = Task(port=gateway.port, seconds=seconds, connections=_CONNECTIONS, window=_WINDOW, rate=_RATE)
    return generate("paced", task)


@contextmanager
def attacking(gateway: Gateway, attack: str) -> Iterator[subprocess.Popen[str]]:
    """The attack is on; it ends with the block. BenchmarkError where it could not begin."""
    command = [sys.executable, "-m", "benchmarks.load.hostile", attack, str(gateway.port), str(gateway.port_of("tls"))]
    attacker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert attacker.stdout is not None
        if not attacker.stdout.readline():
            raise BenchmarkError(f"the attack {attack} did not begin: {_last_words(attacker)}")
        yield attacker
    finally:
        attacker.kill()
        attacker.communicate()


def _last_words(attacker: subprocess.Popen[str]) -> str:
    attacker.kill()
    return attacker.communicate()[1].strip().rpartition("\n")[2]
