"""The whole audit of a large trail on each engine, with its time, CPU and memory.

The trail is made first (trail/made.py). Then `audit run` judges it with every control and report on Spark, and again
on DuckDB, each as a process of its own with 2 GB of memory. Both must find the same.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import Measure, Report, Row
from benchmarks.load.wire import BenchmarkError
from benchmarks.process_watch import ProcessWatch
from benchmarks.trail.made import make_trail
from gateway import compiled

NAME: Final = "audit"
RECORDS: Final = 10_000_000
#: Room on the disk for a record: its line, and the rows that an engine keeps of it and sorts.
_BYTES_A_RECORD: Final = 3_500
_NEEDED: Final = ("pyspark", "duckdb")
_JAVA_HOME_NOTE: Final = Path(sys.prefix) / "java-home"
#: Engines by the names that people use.
_ENGINES: Final = {"Spark": "spark", "DuckDB": "duckdb"}
#: Parts of a result that the engines must share.
_SHARED: Final = ("verdict", "scope", "controls", "conversions", "balances")


def run(records: int) -> Report:
    """Makes a trail of about so many records and audits it."""
    for module in _NEEDED:
        if importlib.util.find_spec(module) is None:
            raise BenchmarkError(f"{module} is not installed (make bench installs it)")
    with tempfile.TemporaryDirectory(prefix="rfhbridge-bench-audit-") as name:
        folder = Path(name)
        if shutil.disk_usage(folder).free < records * _BYTES_A_RECORD:
            needed = records * _BYTES_A_RECORD / 1e9
            raise BenchmarkError(f"{folder} has no room for {needed:.0f} GB: name fewer with --records, or TMPDIR=...")
        started_s = time.perf_counter()
        made = make_trail(folder / "trail", records)
        made_s = time.perf_counter() - started_s
        return _report(folder, made, made_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A process that has ended: what it printed, how long it took, and what it used."""

    output: str
    seconds: float
    watch: ProcessWatch


def _report(folder: Path, records: int, made_s: float) -> Report:
    audits = {
        subject: ended(
            *("spark_audit", "run", "--data", str(folder), "--out", str(folder / engine)),
            *("--engine", engine, "--json"),
        )
        for subject, engine in _ENGINES.items()
    }
    results = {subject: json.loads(each.output) for subject, each in audits.items()}
    for subject, result in results.items():
        if result["verdict"] != "clean" or result["scope"]["records"] != records:
            raise BenchmarkError(
                f"on {subject} the audit of a sound trail says {result['verdict']}: {result['reason']}"
            )
    one, other = results.values()
    if differing := [name for name in _SHARED if one[name] != other[name]]:
        raise BenchmarkError(f"the engines differ in {', '.join(differing)}")
    return Report(
        name=NAME,
        title=f"{records:,} records of a trail, {size_gb(folder / 'trail'):.1f} GB, on {os.cpu_count()} cores",
        rows=tuple(_rows(audits, results)),
        notes=_notes(one, made_s),
    )


def _rows(audits: dict[str, Ended], results: dict[str, dict[str, Any]]) -> Iterator[Row]:
    """The processes as a whole, then the steps of each."""
    for subject, each in audits.items():
        yield Row(subject=subject, case="the whole audit", measures=used(each))
    for subject, result in results.items():
        for step, seconds in result["seconds"].items():
            yield Row(subject=subject, case=step, measures=(Measure(name="time", value=seconds, unit="s"),))


def used(process: Ended) -> tuple[Measure, ...]:
    """Time, CPU and memory of a process."""
    watch = process.watch
    java = (Measure(name="of it Java", value=watch.peak_mib_of("java"), unit="MiB"),)
    return (
        Measure(name="time", value=process.seconds, unit="s"),
        Measure(name="CPU", value=watch.cpu_s, unit="s"),
        Measure(name="memory", value=watch.peak_mib, unit="MiB"),
        *(java if watch.peak_mib_of("java") else ()),
    )


def _notes(result: dict[str, Any], made_s: float) -> tuple[str, ...]:
    performed = sum(row["count"] for row in result["conversions"])
    return (
        f"{len(result['controls'])} controls, {performed:,} conversions performed again, verdict {result['verdict']}. "
        f"The trail was made in {made_s:.0f} s.",
    )


def ended(module: str, *arguments: str) -> Ended:
    """Runs a module as a process. BenchmarkError with its last line where it fails."""
    environment = os.environ | compiled.for_processes()
    if "JAVA_HOME" not in environment and _JAVA_HOME_NOTE.is_file():
        environment["JAVA_HOME"] = _JAVA_HOME_NOTE.read_text().strip()
    command = [sys.executable, "-m", module, *arguments]
    started_s = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=output, stderr=said, env=environment)
        with ProcessWatch(process.pid) as watch:
            try:
                code = process.wait()
            except BaseException:
                process.terminate()
                process.wait()
                raise
        seconds = time.perf_counter() - started_s
        output.seek(0)
        said.seek(0)
        if code:
            last = (said.read().strip() or "nothing said").splitlines()[-1]
            raise BenchmarkError(f"{module} ended with {code}: {last}")
        return Ended(output=output.read(), seconds=seconds, watch=watch)


def size_gb(folder: Path) -> float:
    """The size of a trail's segments."""
    return sum(path.stat().st_size for path in folder.glob("*.jsonl")) / 1e9
