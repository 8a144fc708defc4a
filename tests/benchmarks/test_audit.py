"""The trail of the audit's benchmark is like a gateway's, and the watch counts every process."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks import increment
from benchmarks.load.wire import BenchmarkError
from benchmarks.process_watch import ProcessWatch
from benchmarks.trail.made import make_trail
from spark_audit.audit import audit
from spark_audit.audit_input import input_of_trails
from spark_audit.engines.duck import DuckEngine
from spark_audit.read import trail_files
from spark_audit.record import Kind
from spark_audit.result import Verdict as ResultVerdict
from spark_audit.verify import Verdict, verify
from tests.trail_lines import trail_records

RECORDS = 3_000
pytestmark = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="reads memory from /proc")


def test_made_trail_is_signed_linked_and_as_long_as_asked(tmp_path: Path) -> None:
    made = make_trail(tmp_path / "trail", RECORDS)
    checked = verify(tmp_path / "trail")
    assert (checked.verdict, checked.records, checked.records_without_digest) == (Verdict.INTACT, made, 0)
    assert RECORDS <= made < RECORDS + 1_000
    records = trail_records(tmp_path / "trail")
    told = {Kind.STARTED, Kind.SESSION, Kind.ACCEPTED, Kind.PUT, Kind.DELIVERED, Kind.ACKNOWLEDGED, Kind.CONFIRMED}
    assert {record["kind"] for record in records} == told
    put = {record["exchange"] for record in records if record["kind"] == Kind.PUT and "exchange" in record}
    assert put == {record["exchange"] for record in records if record["kind"] == Kind.ACCEPTED}
    assert {record.get("qos") for record in records if record["kind"] == Kind.ACCEPTED} == {0, 1, 2}


def test_the_audit_finds_nothing_wrong_in_the_made_trail(tmp_path: Path) -> None:
    made = make_trail(tmp_path / "trail", RECORDS)
    with closing(DuckEngine(tmp_path, "1g")) as engine:
        result = audit(engine, input_of_trails([trail_files(tmp_path / "trail", tmp_path)]), lambda _line: None)
    assert (result.verdict, result.scope.records) == (ResultVerdict.CLEAN, made)


def test_a_night_is_the_end_of_a_trail_and_a_trail_of_one_segment_has_none(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="the trail has 1 segments: name more with --records"):
        increment.run(1_000)
    made = make_trail(tmp_path / "trail", RECORDS, with_application=False)
    audited = input_of_trails([trail_files(tmp_path / "trail", tmp_path)])
    with closing(DuckEngine(tmp_path, "1g")) as engine:
        result = audit(engine, audited, lambda _line: None)
    assert (result.verdict, result.scope.records) == (ResultVerdict.CLEAN, made)


def test_watch_counts_what_a_process_started() -> None:
    held = "import time; data = bytearray(b'x') * 60_000_000; print('held', flush=True); time.sleep(60)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {held!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            with ProcessWatch(process.pid) as watch:
                pass
        finally:
            os.killpg(process.pid, 9)
    assert watch.peak_mib > 57
    assert watch.peak_mib_of("python") > 57
    assert watch.peak_mib_of("java") == 0
    assert watch.cpu_s > 0
