"""What others feel of an attack: QoS 1 at a fixed rate beside it, and without one; and what it costs in memory.

The aim: of five runs none has a p99 of more than twice that of the same gateway before the attack, plus 2 ms.

Each attack is measured with the data on the disk, and on a file system in memory. There no sync takes time, so that
only the gateway's own work shows. Two figures beside each run tell what else made clients wait: the longest pause of
the disk in that time, and how long the gateway's event loop was ready to run while other threads had the cores.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.disk_pauses import DiskPauses
from benchmarks.figures import Measure, Report, Row
from benchmarks.idle import allow_descriptors
from benchmarks.load.hostile import ATTACKS, USER
from benchmarks.load.task import Outcome, Task, generate
from benchmarks.load.wire import BenchmarkError
from benchmarks.servers import Gateway, resident_mib, waited_for_core_s
from gateway.access.password_hash import PasswordHash

NAME: Final = "attacks"
#: Twenty well-behaved clients, a thousand messages a second together.
_CONNECTIONS: Final = 20
_RATE: Final = 1_000
_WINDOW: Final = 200
_DESCRIPTORS: Final = 8_000
_RUNS: Final = 5
#: What the aim allows: so many times the normal p99, and so much more.
_TIMES, _MORE_MS = 2.0, 2.0
_CONFIGURATION: Final = """
[mqtt]
versions = ["3.1", "3.1.1", "5"]

[access]
password_file = "{folder}/users"
anonymous = true

[[listener]]
name = "tls"
listen = "127.0.0.1:0"
tls = {{ certificate = "{folder}/certificate.pem", key = "{folder}/key.pem" }}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the gateway has its data; without `folder` where temporary files are, which should be a disk."""

    name: str
    folder: Path | None = None


DISK: Final = Place(name="disk")
MEMORY: Final = Place(name="memory", folder=Path("/dev/shm"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Felt:
    """What the well-behaved clients felt, the longest pause of the disk meanwhile, and what the loop waited for."""

    outcome: Outcome
    disk_pause_ms: float
    waited_for_core_ms: float


def run(seconds: float) -> Report:
    """A new gateway for each run of each attack, measured before and during it."""
    allow_descriptors(_DESCRIPTORS)
    runs = range(1, _RUNS + 1)
    rows = [measure(attack, seconds, run, place) for attack in ATTACKS for place in (DISK, MEMORY) for run in runs]
    beyond = [f"{row.subject}: {row.case}" for row in rows if row.value("p99 beyond the aim") > 0]
    return Report(
        name=NAME,
        title=f"QoS 1, PUBLISH to PUBACK at {_RATE:,}/s over {_CONNECTIONS} connections, beside an attack",
        rows=tuple(rows),
        notes=(
            f"The aim for the p99 is {_TIMES:.0f} times normal plus {_MORE_MS:.0f} ms, in each of {_RUNS} runs."
            f" Beyond it: {', '.join(beyond) or 'none'}.",
            "The attacker is one process at the lowest priority, but it shares cores with the gateway.",
        ),
    )


def measure(attack: str, seconds: float, number: int = 1, place: Place = DISK) -> Row:
    """One run; `number` counts them."""
    users = {"users": f"{USER}:{PasswordHash.of(os.urandom(16)).text}\n"}
    with Gateway(_CONFIGURATION, users, parent=place.folder) as gateway:
        normal = _well_behaved(gateway, seconds)
        before_mib = resident_mib(gateway.process_id)
        with attacking(gateway, attack) as attacker:
            during = _well_behaved(gateway, seconds)
            after_mib = resident_mib(gateway.process_id)
            if attacker.poll() is not None:
                raise BenchmarkError(f"the attack {attack} ended before it was measured: {_last_words(attacker)}")
    before, beside = normal.outcome.acknowledgement, during.outcome.acknowledgement
    aim_ms = _TIMES * before.p99_ms + _MORE_MS
    return Row(
        subject=f"{gateway.name}, data in {place.name}" if place.folder else gateway.name,
        case=f"{attack}, run {number}",
        measures=(
            Measure(name="normal p50", value=before.p50_ms, unit="ms"),
            Measure(name="PUBACK p50", value=beside.p50_ms, unit="ms"),
            Measure(name="p50, times normal", value=beside.p50_ms / before.p50_ms, unit="x"),
            Measure(name="normal p99", value=before.p99_ms, unit="ms"),
            Measure(name="PUBACK p99", value=beside.p99_ms, unit="ms"),
            Measure(name="p99 beyond the aim", value=max(0.0, beside.p99_ms - aim_ms), unit="ms"),
            Measure(name="longest disk pause before", value=normal.disk_pause_ms, unit="ms"),
            Measure(name="longest disk pause", value=during.disk_pause_ms, unit="ms"),
            Measure(name="waited for a core before", value=normal.waited_for_core_ms, unit="ms"),
            Measure(name="waited for a core", value=during.waited_for_core_ms, unit="ms"),
            Measure(name="memory more", value=after_mib - before_mib, unit="MiB"),
        ),
    )


def _well_behaved(gateway: Gateway, seconds: float) -> _Felt:
    task = Task(port=gateway.port, seconds=seconds, connections=_CONNECTIONS, window=_WINDOW, rate=_RATE)
    waited_s = waited_for_core_s(gateway.process_id)
    with DiskPauses(gateway.folder) as disk:
        outcome = generate(task)
    waited_s = waited_for_core_s(gateway.process_id) - waited_s
    return _Felt(outcome=outcome, disk_pause_ms=disk.longest_ms, waited_for_core_ms=1_000 * waited_s)


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
