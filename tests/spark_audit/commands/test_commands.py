"""The commands: what is not evaluable or wrong use is said before Spark starts, and is never clean."""

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_audit import spark_session
from spark_audit.__main__ import main
from spark_audit.commands import run as run_command
from spark_audit.engines.spark import SparkEngine
from spark_audit.report import figures
from spark_audit.verify import Verification
from tests.spark_audit.conftest import TrailBuilder, policy_text_of

SEGMENT = "000000000001-20261120T07.jsonl"
HALF = b'{"version":1,"gateway":"0102'


@pytest.fixture
def without_spark(monkeypatch) -> None:
    """Spark must not be started."""

    def refuse(*_values: object, **_named: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(spark_session, "start_session", refuse)


@pytest.fixture
def in_this_spark(spark: SparkSession, monkeypatch) -> None:
    """Commands use the session of the tests, which goes on afterwards."""

    @contextlib.contextmanager
    def of_tests(*_values: object) -> Iterator[SparkSession]:
        yield spark

    for name in ("ingest", "stream", "engines"):
        monkeypatch.setattr(f"spark_audit.commands.{name}.spark_session", of_tests)
    monkeypatch.setattr(figures, "with_figures", lambda result, _records: result)


def _command(name: str, tmp_path: Path) -> list[str]:
    """A command with everything that it needs, but for its trails."""
    to = str(tmp_path / "to")
    return {
        "run": ["run", "--out", to],
        "ingest": ["ingest", "--to", to],
        "stream": [
            *("stream", "--once", "--engine", "duckdb", "--out", to, "--checkpoint", str(tmp_path / "checkpoint"))
        ],
    }[name]


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("name", ["run", "ingest", "stream"])
@pytest.mark.parametrize(
    ("file", "content"),
    [
        (None, b""),
        (SEGMENT, b""),
        (SEGMENT.replace("jsonl", "open"), HALF),
        ("notes.txt", b"nothing\n"),
        (f"{SEGMENT}.part", b"{}\n"),
    ],
    ids=["no trail", "empty", "half a line", "foreign", "half copied"],
)
def test_what_holds_nothing_is_not_evaluable(
    tmp_path: Path, capsys, name: str, file: str | None, content: bytes
) -> None:
    (tmp_path / "data").mkdir()
    if file is not None:
        (tmp_path / "data" / "trail").mkdir()
        (tmp_path / "data" / "trail" / file).write_bytes(content)
    assert main([*_command(name, tmp_path), "--data", str(tmp_path / "data")]) == 2
    told = capsys.readouterr()
    assert "clean" not in told.out
    assert "Traceback" not in told.err


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("name", ["ingest", "stream"])
@pytest.mark.parametrize(
    ("file", "content"),
    [
        (SEGMENT, b"temperature;21\n"),
        (SEGMENT, HALF),
        (f"{SEGMENT}.gz", b"no gzip"),
        (f"{SEGMENT}.gz", gzip.compress(b'{"gateway":"0102"}\n', mtime=0)[:-7]),
    ],
    ids=["foreign", "half a line", "no gzip", "half a gzip"],
)
def test_segments_that_hold_no_record_are_not_evaluable(tmp_path: Path, name: str, file: str, content: bytes) -> None:
    (tmp_path / "trail").mkdir()
    (tmp_path / "trail" / file).write_bytes(content)
    assert main([*_command(name, tmp_path), "--trail", str(tmp_path / "trail")]) == 2
    assert not (tmp_path / "to" / "manifest.json").exists()


@pytest.mark.usefixtures("without_spark")
def test_parquet_that_was_not_ingested_is_not_evaluable(tmp_path: Path, capsys) -> None:
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "part-0.parquet").write_bytes(b"PAR1")
    for folder in (tmp_path / "lines", tmp_path / "nowhere"):
        assert main(["run", "--parquet", str(folder), "--out", str(tmp_path / "to"), "--json"]) == 2
        assert json.loads(capsys.readouterr().out)["verdict"] == "not evaluable"


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("name", ["ingest", "stream"])
def test_a_folder_that_cannot_be_written_is_told_in_one_line(tmp_path: Path, trail, capsys, name: str) -> None:
    trail.add("accepted")
    trail.write()
    (tmp_path / "to").write_bytes(b"")
    assert main([*_command(name, tmp_path), "--trail", str(trail.folder)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("name", ["run", "ingest", "stream"])
def test_trails_that_are_not_there_or_named_twice_are_wrong_use(tmp_path: Path, capsys, name: str) -> None:
    (tmp_path / "trail").mkdir()
    for trails in (["nowhere"], ["trail", "trail"], ["trail", "trail/../trail"]):
        told = [word for each in trails for word in ("--trail", str(tmp_path / each))]
        assert main([*_command(name, tmp_path), *told]) == 3
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "told",
    [
        ["--from", "yesterday"],
        ["--from", "2026-11-20T07:00:00"],
        ["--from", "2026-11-21", "--until", "2026-11-20"],
        ["--master", "local", "--remote", "sc://x"],
        ["--parquet", "lines"],
        ["--trail", "other", "--public-key", "key.pub"],
        ["--with-state"],
        ["--since-state", "state.zst"],
        ["--since-state", "state.zst", "--sign", "key.pem", "--until", "2026-11-20"],
    ],
    ids=" ".join,
)
def test_options_that_contradict_each_other_are_wrong_use(tmp_path: Path, capsys, told: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*_command("run", tmp_path), "--trail", str(tmp_path), *told])
    assert ended.value.code == 3
    assert capsys.readouterr().err.startswith("rfhbridge audit run: ")


@pytest.mark.parametrize("name", ["ingest", "stream"])
def test_a_command_without_a_trail_is_wrong_use(tmp_path: Path, capsys, name: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(_command(name, tmp_path))
    assert ended.value.code == 3
    assert "--data or --trail" in capsys.readouterr().err


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("name", ["run", "stream"])
def test_a_policy_or_key_that_cannot_be_used_is_wrong_use(tmp_path: Path, trail, name: str) -> None:
    trail.add("accepted")
    command = [*_command(name, tmp_path), "--trail", str(trail.write())]
    (tmp_path / "policy.toml").write_text("[contrl]")
    (tmp_path / "key").write_bytes(b"short")
    files = [("--policy", "policy.toml"), ("--policy", "nowhere"), ("--personal-key", "key")]
    for told in [*files, ("--sign", "key"), ("--sign", "nowhere")]:
        assert main([*command, told[0], str(tmp_path / told[1])]) == 3


def _modes(*folders: Path) -> set[tuple[str, int]]:
    """Kind and permissions of the folders and of all that lies in them."""
    found = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    return {("folder" if path.is_dir() else "file", path.stat().st_mode & 0o777) for path in found}


OWNERS_ALONE = {("folder", 0o700), ("file", 0o600)}


def test_who_may_read_the_output_is_said_in_the_table_and_the_mask_of_the_process_stays(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    before = os.umask(0o022)
    try:
        told = ["--data", str(tmp_path / "data")]
        assert main([*_command("run", tmp_path), *told]) == 2
        assert _modes(tmp_path / "to") == OWNERS_ALONE
        for reader, folder, file in (("group", 0o750, 0o640), ("everybody", 0o755, 0o644)):
            shutil.rmtree(tmp_path / "to")
            assert main([*_command("run", tmp_path), *told, "--readable-by", reader]) == 2
            assert _modes(tmp_path / "to") == {("folder", folder), ("file", file)}
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)


def test_the_processes_of_a_spark_here_listen_on_loopback_and_know_each_other(spark: SparkSession) -> None:
    said = dict(spark.sparkContext.getConf().getAll())
    assert said["spark.authenticate"] == "true"
    assert (said["spark.driver.host"], said["spark.driver.bindAddress"]) == ("127.0.0.1", "127.0.0.1")
    assert said["spark.hadoop.fs.permissions.umask-mode"] == "077"
    assert said["spark.ui.enabled"] == "false"


@pytest.mark.usefixtures("in_this_spark")
def test_ingest_says_what_it_did_and_finds_a_changed_segment(tmp_path: Path, trail, capsys) -> None:
    trail.add("accepted", client="boiler")
    command = [*_command("ingest", tmp_path), "--trail", str(trail.write()), "--json"]
    for segments, known in ((1, 0), (0, 1)):
        assert main(command) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["segments"], told["lines"], told["known"], told["files"]) == (segments, segments, known, 1)
    assert _modes(tmp_path / "to") == OWNERS_ALONE
    segment = trail.folder / SEGMENT
    segment.write_bytes(segment.read_bytes().replace(b"boiler", b"cooler"))
    assert main(command) == 1
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert "was changed after it was ingested" in told.err


@pytest.mark.usefixtures("in_this_spark")
def test_stream_says_each_batch_and_goes_past_a_trail_that_cannot_be_read(tmp_path: Path, trail, capsys) -> None:
    trail.add("accepted", client="boiler")
    trail.lines[0] = trail.lines[0].replace(b"boiler", b"cooler")
    (tmp_path / "policy.toml").write_text(policy_text_of("integrity.hash"))
    other = TrailBuilder(tmp_path / "other")
    other.lines.append(b"temperature;21\n")
    command = [*_command("stream", tmp_path), "--engine", "spark", "--policy", str(tmp_path / "policy.toml"), "--json"]
    command += ["--trail", str(other.write()), "--trail", str(trail.write())]
    assert main(command) == 1
    told = capsys.readouterr()
    assert json.loads(told.out) == {
        "batch": 1,
        "verdict": "violations",
        "reason": "1 violation of integrity.hash",
        "records": 1,
    }
    assert f"{other.folder} cannot be judged from 000000000001-20261120T07 on: no line" in told.err
    assert _modes(tmp_path / "to", tmp_path / "checkpoint") == OWNERS_ALONE
    assert main(command) == 2, "one of the trails is still none"
    assert capsys.readouterr().out == ""
    segment = trail.folder / SEGMENT
    segment.write_bytes(segment.read_bytes().replace(b"cooler", b"boiler"))
    assert main(command) == 1
    assert "ends with another record: the trail was rewritten (audit verify says more;" in capsys.readouterr().err


#: Runs a command where neither PySpark nor its bridge to Java can be imported.
WITHOUT_PYSPARK = (
    "import sys; sys.modules |= {'pyspark': None, 'py4j': None}; import spark_audit.ingest.audit_input\n"
    "from spark_audit.__main__ import main; sys.exit(main(sys.argv[1:]))"
)


def test_duckdb_needs_no_pyspark(tmp_path: Path, trail) -> None:
    trail.add("session", client="boiler", session_epoch=1, event="opened")
    command = [*_command("run", tmp_path), "--engine", "duckdb", "--json", "--trail", str(trail.write())]
    ended = subprocess.run([sys.executable, "-c", WITHOUT_PYSPARK, *command], capture_output=True, check=False)
    result = json.loads(ended.stdout)
    assert (ended.returncode, result["verdict"], result["engine"]) == (0, "clean", "duckdb"), ended.stderr
    assert "--engine" in result["command"]
    assert _modes(tmp_path / "to") == OWNERS_ALONE


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_reader_who_stops_early_leaves_verdict_and_exit_code_alone(tmp_path: Path, trail, monkeypatch, form) -> None:
    trail.add("session", client="boiler", session_epoch=1, event="opened")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as nobody:
        monkeypatch.setattr(sys, "stdout", nobody)
        assert main([*_command("run", tmp_path), "--engine", "duckdb", "--trail", str(trail.write()), *form]) == 0
    assert json.loads((tmp_path / "to" / "result.json").read_text())["verdict"] == "clean"


@pytest.mark.usefixtures("without_spark")
def test_missing_duckdb_is_told_in_one_line(tmp_path: Path, trail, monkeypatch, capsys) -> None:
    trail.add("session", client="boiler", session_epoch=1, event="opened")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.delitem(sys.modules, "spark_audit.engines.duck", raising=False)
    command = [*_command("run", tmp_path), "--engine", "duckdb", "--json", "--trail", str(trail.write())]
    assert main(command) == 2
    reason = json.loads(capsys.readouterr().out)["reason"]
    assert reason.startswith("DuckDB is not installed: ")
    assert reason.endswith("(pip install '.[audit]' in a clone of the repository)")


def test_a_segment_that_cannot_be_decompressed_is_not_evaluable(tmp_path: Path, trail, capsys) -> None:
    trail.add("accepted")
    trail.write()
    data = gzip.compress((trail.folder / SEGMENT).read_bytes(), mtime=0)
    (trail.folder / SEGMENT).unlink()
    (trail.folder / f"{SEGMENT}.gz").write_bytes(data[:-9])
    command = [*_command("run", tmp_path), "--engine", "duckdb", "--trail", str(trail.folder), "--json"]
    assert main(command) == 2
    told = capsys.readouterr()
    result = json.loads(told.out)
    assert (result["verdict"], result["reason"]) == ("not evaluable", "no line of the trail is an audit record")
    assert "Traceback" not in told.err


def test_an_error_of_spark_is_not_evaluable(tmp_path: Path, spark, trail, monkeypatch, capsys) -> None:
    trail.add("accepted")
    monkeypatch.setattr(spark_session, "start_session", lambda *_values, **_named: spark)
    monkeypatch.setattr(SparkSession, "stop", lambda _session: None)
    monkeypatch.setattr(SparkEngine, "read", lambda *_values: spark.sql("no query"))
    assert main([*_command("run", tmp_path), "--trail", str(trail.write()), "--json"]) == 2
    told = capsys.readouterr()
    result = json.loads(told.out)
    assert result["verdict"] == "not evaluable"
    assert result["reason"].startswith("Spark gave up: ")
    assert "\n" not in result["reason"]
    assert "Traceback" not in told.err


def test_a_segment_that_is_compressed_while_spark_starts_is_audited_all_the_same(
    tmp_path: Path, spark, trail, monkeypatch, capsys
) -> None:
    trail.add("session", client="boiler", session_epoch=1, event="opened")
    (tmp_path / "policy.toml").write_text(policy_text_of("integrity.hash"))
    segment = trail.write() / SEGMENT

    def compressed_meanwhile(*_values: object, **_named: object) -> SparkSession:
        if segment.exists():
            (trail.folder / f"{SEGMENT}.gz").write_bytes(gzip.compress(segment.read_bytes(), mtime=0))
            segment.unlink()
        return spark

    monkeypatch.setattr(spark_session, "start_session", compressed_meanwhile)
    monkeypatch.setattr(SparkSession, "stop", lambda _session: None)
    monkeypatch.setattr(figures, "with_figures", lambda result, _records: result)
    command = [*_command("run", tmp_path), "--policy", str(tmp_path / "policy.toml"), "--json"]
    assert main([*command, "--trail", str(trail.folder)]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["verdict"] == "clean"
    assert "once more" not in told.err, "the segment is found in its other form, and the rest need not be read again"


def test_parquet_that_is_compacted_while_spark_starts_is_audited_all_the_same(
    tmp_path: Path, spark, trail, monkeypatch, capsys
) -> None:
    (tmp_path / "policy.toml").write_text(policy_text_of("integrity.hash"))
    ingest = ["ingest", "--to", str(tmp_path / "lines"), "--trail", str(trail.folder)]
    monkeypatch.setattr(spark_session, "start_session", lambda *_values, **_named: spark)
    monkeypatch.setattr(SparkSession, "stop", lambda _session: None)
    monkeypatch.setattr(figures, "with_figures", lambda result, _records: result)
    for number in (1, 2):
        trail.add("session", client="boiler", session_epoch=number, event="opened")
        trail.write(f"{number:012d}-20261120T07.jsonl")
        trail.lines.clear()
        assert main(ingest) == 0

    def compacted_meanwhile(*_values: object, **_named: object) -> SparkSession:
        monkeypatch.setattr(spark_session, "start_session", lambda *_values, **_named: spark)
        assert main([*ingest, "--compact"]) == 0
        return spark

    monkeypatch.setattr(spark_session, "start_session", compacted_meanwhile)
    command = [*_command("run", tmp_path), "--policy", str(tmp_path / "policy.toml")]
    assert main([*command, "--parquet", str(tmp_path / "lines")]) == 0
    assert "merged or removed meanwhile: the audit begins again" in capsys.readouterr().err


@pytest.mark.usefixtures("in_this_spark")
def test_segments_that_are_removed_after_they_were_verified_are_not_missed(
    tmp_path: Path, signed, monkeypatch, capsys
) -> None:
    for _segment in range(2):
        signed.records(2)
        signed.close()
    verify = run_command.verify

    def removed_behind_it(*values: Any, **named: Any) -> Verification:
        verification = verify(*values, **named)
        if not verification.segments_removed:
            signed.remove(1)
        return verification

    monkeypatch.setattr(run_command, "verify", removed_behind_it)
    (tmp_path / "policy.toml").write_text(policy_text_of("integrity.chain", "integrity.sequence"))
    command = [*_command("run", tmp_path), "--policy", str(tmp_path / "policy.toml"), "--json"]
    assert main([*command, "--trail", str(signed.folder)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["verdict"], result["integrity"]["verdict"]) == ("clean", "consistent, not anchored")


@pytest.mark.usefixtures("in_this_spark")
def test_run_of_a_period_names_the_command_that_repeats_it_and_a_fault_elsewhere(tmp_path: Path, trail, capsys) -> None:
    trail.add("session", client="boiler", session_epoch=1, event="opened")
    trail.write("000000000001-20261110T07.jsonl")
    (trail.folder / "000000000001-20261110T07.jsonl").write_bytes(trail.lines.pop().replace(b"boiler", b"cooler"))
    trail.add("session", at_us=1_795_158_000_000_000, client="boiler", session_epoch=2, event="opened")
    trail.write("000000000002-20261120T07.jsonl")
    (tmp_path / "policy.toml").write_text(policy_text_of("integrity.hash", "integrity.agreement"))
    told = ["--policy", str(tmp_path / "policy.toml"), "--from", "2026-11-20T07:00:00Z", "--until", "2026-11-21"]
    assert main([*_command("run", tmp_path), "--trail", str(trail.folder), *told, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["command"] == [
        *("rfhbridge", "audit", "run", "--trail", str(trail.folder), "--out", str(tmp_path / "to")),
        *("--policy", str(tmp_path / "policy.toml"), "--from", "2026-11-20T07:00:00Z"),
        *("--until", "2026-11-21T00:00:00Z"),
    ]
    assert hashlib.sha256(result["policy_text"].encode()).hexdigest() == result["policy_sha256"]
    status = {control["identifier"]: control["status"] for control in result["controls"]}
    assert (status["integrity.hash"], status["integrity.agreement"]) == ("held", "not evaluable")
    assert status["qos.1"] == "off"
    assert (result["verdict"], result["integrity"]["verdict"]) == ("clean", "violated")
    assert "the trail as a whole does not hold: 000000000001-20261110T07.jsonl, line 1" in result["reason"]
