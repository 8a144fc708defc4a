"""The machine that the figures were measured on; a figure without it says nothing."""

import os
import platform
import subprocess
import sysconfig
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from gateway import compiled

_ROOT = Path(__file__).resolve().parents[1]
_CPU_INFO = Path("/proc/cpuinfo")
_MEMORY_INFO = Path("/proc/meminfo")
_SYNCS = 50
#: One page of SQLite's write-ahead log, about what a lone commit writes.
_SYNC_BYTES = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where, when, of which commit, and with which interpreter.

    `python_built` names the compiler, and whether profile-guided (PGO) and link-time optimisation (LTO) were on; both
    make CPython faster. `compiled`: whether a build of `make compile` is what is measured. `sync_ms` is the median of
    fdatasync after a write of 4,096 bytes in the folder of the data.
    `load` is how many processes were running or ready on average in the minute before: where it is not near 0,
    throughput and latencies are those of a busy machine.
    """

    date: str
    commit: str
    processor: str
    cores: int
    memory_gib: float
    system: str
    python: str
    python_built: str
    compiled: bool
    sync_ms: float
    load: float

    def as_dict(self) -> dict[str, object]:
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.date}, commit {self.commit}, {self.processor}, {self.cores} cores, {self.memory_gib:.0f} GiB, "
            f"{self.system}, "
            f"{self.python} ({self.python_built}), gateway {'compiled' if self.compiled else 'not compiled'}, "
            f"fdatasync {self.sync_ms:.2f} ms, load {self.load:.1f} before"
        )


def this_machine() -> Machine:
    """Looks at the machine; takes well under a second."""
    return Machine(
        date=datetime.now(UTC).date().isoformat(),
        commit=_commit(),
        processor=_field(_CPU_INFO, "model name") or platform.processor() or platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=float((_field(_MEMORY_INFO, "MemTotal") or "0 kB").split()[0]) / 1024**2,
        system=f"{platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        python_built=built_with(platform.python_compiler(), str(sysconfig.get_config_var("CONFIG_ARGS") or "")),
        compiled=compiled.is_used(),
        sync_ms=_sync_ms(),
        load=os.getloadavg()[0],
    )


def built_with(compiler: str, configure_arguments: str) -> str:
    """How an interpreter was built, for a reader; the arguments of `configure` also name folders, and stay out."""
    pgo = "PGO" if "--enable-optimizations" in configure_arguments else "no PGO"
    lto = "LTO" if "--with-lto" in configure_arguments and "--with-lto=no" not in configure_arguments else "no LTO"
    return f"{compiler}, {pgo}, {lto}"


def _commit() -> str:
    """The commit here, and whether the working tree has changes; "unknown" without a history."""
    named = [_git("rev-parse", "--short=8", "HEAD"), "with changes" if _git("status", "--porcelain") else ""]
    return " ".join(filter(None, named)) or "unknown"


def _git(*arguments: str) -> str:
    try:
        run = subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return run.stdout.strip()


def _field(path: Path, name: str) -> str:
    if not path.exists():
        return ""
    lines = (line.partition(":") for line in path.read_text().splitlines())
    return next((value.strip() for key, _, value in lines if key.strip() == name), "")


def _sync_ms() -> float:
    took_s: list[float] = []
    with tempfile.TemporaryFile(buffering=0) as file:
        for _ in range(_SYNCS):
            file.write(bytes(_SYNC_BYTES))
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            took_s.append(time.perf_counter() - started)
    return median(took_s) * 1_000
