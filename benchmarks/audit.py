"""The whole audit of a large trail on Spark, with its memory; beside it the sums of it that DuckDB can do, in both.

The trail is made first (trail/made.py). Then, one after the other, each as a process of its own: `audit run` with
every control and report; the sums in Spark, by the audit's own controls; the same sums in DuckDB. Spark's driver has
2 GB, and so has DuckDB. DuckDB cannot perform conversions again, so the audit as a whole has nothing beside it.
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

NAME: Final = "audit"
RECORDS: Final = 10_000_000
#: Room on the disk for a record: its line, and what Spark keeps of it and sorts.
_BYTES_A_RECORD: Final = 3_500
_NEEDED: Final = ("pyspark", "duckdb")
_JAVA_HOME_NOTE: Final = Path(sys.prefix) / "java-home"
_REPERFORMANCE: Final = "conversion.reperformance"
_SPARK, _DUCKDB = "Spark", "DuckDB"


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
class _Ended:
    """A process that has ended: what it printed, how long it took, and what it used."""

    output: str
    seconds: float
    watch: ProcessWatch


def _report(folder: Path, records: int, made_s: float) -> Report:
    audit = _ended("spark_audit", "run", "--data", str(folder), "--out", str(folder / "report"), "--json")
    result = json.loads(audit.output)
    if result["verdict"] != "clean" or result["scope"]["records"] != records:
        raise BenchmarkError(f"the audit of a sound trail says {result['verdict']}: {result['reason']}")
    sums = {
        _SPARK: _ended("benchmarks.trail.sums_spark", str(folder / "trail"), str(folder / "spark")),
        _DUCKDB: _ended("benchmarks.trail.sums_duckdb", str(folder / "trail"), str(folder / "duckdb")),
    }
    outcomes = {subject: json.loads(ended.output) for subject, ended in sums.items()}
    found = {subject: {name: step["found"] for name, step in steps.items()} for subject, steps in outcomes.items()}
    if found[_SPARK] != found[_DUCKDB] or found[_SPARK]["read"] != records:
        raise BenchmarkError(f"the sums differ: {found}")
    return Report(
        name=NAME,
        title=f"{records:,} records of a trail, {_size_gb(folder / 'trail'):.1f} GB, on {os.cpu_count()} cores",
        rows=(_of_audit(audit, result), *_of_sums(sums, outcomes)),
        notes=_notes(audit, sums, result, made_s),
    )


def _of_audit(audit: _Ended, result: dict[str, Any]) -> Row:
    seconds = {control["identifier"]: control["seconds"] for control in result["controls"]}
    return Row(
        subject=_SPARK,
        case="the whole audit",
        measures=(
            *_used(audit),
            Measure(name="of the time re-performance", value=seconds[_REPERFORMANCE], unit="s"),
        ),
    )


def _of_sums(ended: dict[str, _Ended], outcomes: dict[str, dict[str, dict[str, float]]]) -> Iterator[Row]:
    """The processes as a whole, then each step in both."""
    for subject, process in ended.items():
        yield Row(subject=subject, case="the same sums", measures=_used(process))
    for step in outcomes[_SPARK]:
        for subject, steps in outcomes.items():
            time_s = Measure(name="time", value=steps[step]["seconds"], unit="s")
            yield Row(subject=subject, case=step, measures=(time_s,))


def _used(ended: _Ended) -> tuple[Measure, ...]:
    watch = ended.watch
    java = (Measure(name="of it Java", value=watch.peak_mib_of("java"), unit="MiB"),)
    return (
        Measure(name="time", value=ended.seconds, unit="s"),
        Measure(name="CPU", value=watch.cpu_s, unit="s"),
        Measure(name="memory", value=watch.peak_mib, unit="MiB"),
        *(java if watch.peak_mib_of("java") else ()),
    )


def _notes(audit: _Ended, sums: dict[str, _Ended], result: dict[str, Any], made_s: float) -> tuple[str, ...]:
    performed = sum(row["count"] for row in result["conversions"])
    ratio = sums[_SPARK].seconds / sums[_DUCKDB].seconds
    return (
        f"{len(result['controls'])} controls, {performed:,} conversions performed again, verdict {result['verdict']}; "
        f"Python had {audit.watch.peak_mib_of('python'):,.0f} MiB at its peak. The trail was made in {made_s:.0f} s.",
        f"For the same sums, start and reading included, Spark takes {ratio:.1f} times as long as DuckDB.",
        "DuckDB performs no conversion again, so that the whole audit has nothing beside it.",
    )


def _ended(module: str, *arguments: str) -> _Ended:
    """Runs a module as a process. BenchmarkError with its last line where it fails."""
    environment = dict(os.environ)
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
        return _Ended(output=output.read(), seconds=seconds, watch=watch)


def _size_gb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.glob("*.jsonl")) / 1e9
