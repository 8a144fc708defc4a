"""`rfhbridge audit`: its exit codes, and the process that it starts."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from gateway.cli.audit.spark_process import ended, let_end
from gateway.cli.commands import application
from mq_adapters.embedded.direct import Direct
from mq_adapters.reasons import StoreError
from spark_audit.options import COMMANDS, RECEIPT


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A JAVA_HOME with something that can be executed as java."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\n")
    (home / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    return home


@pytest.fixture
def spark(monkeypatch, java):
    """Stands in for the Spark process: set `exit_code` and `writes_result`; `command` is what was started."""

    class Spark:
        exit_code = 0
        writes_result = True
        command: tuple[str, ...] = ()
        java_home = ""

        def ended(self, command, environment):
            self.command, self.java_home = tuple(command), environment["JAVA_HOME"]
            if self.writes_result and RECEIPT in environment:
                Path(environment[RECEIPT]).touch()
            return self.exit_code

    stand_in = Spark()
    monkeypatch.setattr("gateway.cli.audit.spark_process.ended", stand_in.ended)
    return stand_in


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_exit_code_of_the_audit_passes_through(rfhbridge, spark, data_folder, code):
    data_folder.mkdir()
    spark.exit_code = code
    assert rfhbridge("audit", "run", "--data", data_folder).exit_code == code


@pytest.mark.parametrize("code", [-9, 4, 134])
def test_process_that_died_could_not_evaluate(rfhbridge, spark, data_folder, code):
    data_folder.mkdir()
    spark.exit_code = code
    assert rfhbridge("audit", "run", "--data", data_folder).exit_code == 2


@pytest.mark.parametrize("code", [0, 1])
def test_verdict_without_a_new_result_does_not_count(rfhbridge, spark, data_folder, code):
    data_folder.mkdir()
    spark.exit_code, spark.writes_result = code, False
    ended = rfhbridge("audit", "run", "--data", data_folder)
    assert ended.exit_code == 2
    assert "no new" in ended.stderr


def test_audit_runs_in_a_process_of_its_own(rfhbridge, spark, data_folder, tmp_path, java):
    data_folder.mkdir()
    out = tmp_path / "out"
    assert rfhbridge("audit", "run", "--data", data_folder, "--out", out).exit_code == 0
    expected = (sys.executable, "-P", "-m", "spark_audit", "run", "--data", str(data_folder), "--out", str(out))
    assert spark.command == expected
    assert spark.java_home == str(java)


def test_json_is_asked_of_the_process(rfhbridge, spark, data_folder):
    data_folder.mkdir()
    rfhbridge("audit", "run", "--data", data_folder, "--json")
    assert spark.command[-1] == "--json"


def test_report_goes_into_the_data_folder_by_default(rfhbridge, spark, data_folder):
    data_folder.mkdir()
    rfhbridge("audit", "run", "--data", data_folder)
    assert spark.command[-1] == str(data_folder / "report")


def test_everything_that_a_run_takes_is_passed_on(rfhbridge, spark, tmp_path):
    for name in ("east", "west", "copy"):
        (tmp_path / name).mkdir()
    east, west, copy = (str(tmp_path / name) for name in ("east", "west", "copy"))
    told = ["--out", str(tmp_path / "out"), "--policy", "policy.toml", "--from", "2026-11-01", "--until", "2026-12-01"]
    told += ["--public-key", "gateway.pub", "--digests", "copies", "--personal-key", "key", "--master", "local[1]"]
    told += ["--remote", "sc://host", "--memory", "4g"]
    ended = rfhbridge("audit", "run", "--data", east, "--data", west, "--trail", copy, *told, "--json")
    assert ended.exit_code == 0
    trails = ["--data", east, "--data", west, "--trail", copy]
    assert list(spark.command[4:]) == ["run", *trails, *told, "--json"]


def test_parquet_takes_the_place_of_trails(rfhbridge, spark, tmp_path):
    out = tmp_path / "out"
    assert rfhbridge("audit", "run", "--parquet", tmp_path, "--out", out).exit_code == 0
    assert list(spark.command[4:]) == ["run", "--parquet", str(tmp_path), "--out", str(out)]
    assert rfhbridge("audit", "run", "--parquet", tmp_path, "--data", tmp_path, "--out", out).exit_code == 3
    assert rfhbridge("audit", "run", "--parquet", tmp_path).exit_code == 3


def test_places_of_other_machines_are_passed_on_as_they_are(rfhbridge, spark, tmp_path):
    told = ["--trail", "s3a://trails/north?region=eu-west-1", "--out", "abfss://reports@account/north"]
    assert rfhbridge("audit", "run", *told).exit_code == 0
    assert list(spark.command[4:]) == ["run", *told]
    (tmp_path / "trail").mkdir()
    assert rfhbridge("audit", "run", "--trail", f"file://{tmp_path}/trail", "--out", "gs://reports/x").exit_code == 0
    assert list(spark.command[4:]) == ["run", "--trail", f"{tmp_path}/trail", "--out", "gs://reports/x"]
    ingest = ["--trail", "s3://trails/north", "--to", "s3://lake"]
    assert rfhbridge("audit", "ingest", *ingest).exit_code == 0
    assert list(spark.command[4:]) == ["ingest", *ingest]


@pytest.mark.parametrize(
    "told",
    [
        ["run", "--trail", "file://key:secret@other/trail", "--out", "s3://reports"],
        ["run", "--trail", "", "--out", "s3://reports"],
        ["run", "--data", "s3://key:secret@trails/north", "--out", "s3://reports"],
        ["stream", "--trail", "s3://trails/north", "--out", "", "--checkpoint", "checkpoint"],
        ["stream", "--trail", "s3://trails/north", "--out", "s3://key:secret@reports/north", "--checkpoint", "state"],
        ["bulk", "--in", "", "--out", "s3://reports"],
        ["show", "--trail", "s3://key:secret@trails/north"],
        ["show", "--data", "s3://key:secret@trails/north"],
        ["show", "--index", "s3://key:secret@trails/index"],
        ["verify", "--digests", "s3://key:secret@trails/digests"],
        ["pack", "--out", "evidence.zip", "--results", "s3://key:secret@reports/north"],
        ["fetch", "s3://digests/north", "s3://key:secret@copies/north"],
    ],
    ids=lambda told: " ".join(told[:3]),
)
def test_a_place_that_nobody_could_find_is_wrong_use_and_is_not_repeated(rfhbridge, spark, told):
    ended = rfhbridge("audit", *told)
    assert (ended.exit_code, spark.command) == (3, ())
    assert "secret" not in ended.text + ended.stderr


def test_report_of_several_gateways_needs_a_place(rfhbridge, spark, tmp_path):
    for name in ("east", "west"):
        (tmp_path / name).mkdir()
    assert rfhbridge("audit", "run", "--data", tmp_path / "east", "--data", tmp_path / "west").exit_code == 3
    assert rfhbridge("audit", "run", "--trail", tmp_path / "east").exit_code == 3


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_ingest_is_a_process_of_its_own(rfhbridge, spark, data_folder, tmp_path, code):
    (data_folder / "trail").mkdir(parents=True)
    spark.exit_code = code
    to = tmp_path / "lines"
    assert rfhbridge("audit", "ingest", "--data", data_folder, "--to", to, "--compact", "--json").exit_code == code
    assert list(spark.command[4:]) == ["ingest", "--data", str(data_folder), "--to", str(to), "--compact", "--json"]


def test_nothing_is_started_for_a_folder_without_a_trail(rfhbridge, spark, data_folder, tmp_path):
    data_folder.mkdir()
    for command in (["ingest", "--to"], ["stream", "--checkpoint", tmp_path / "checkpoint", "--out"]):
        ended = rfhbridge("audit", *command, tmp_path / "out", "--data", data_folder)
        assert (ended.exit_code, spark.command) == (2, ())
        assert "there is no trail" in ended.stderr
        assert "(name the gateway's data folder with --data)" in ended.stderr


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_stream_is_a_process_of_its_own(rfhbridge, spark, data_folder, tmp_path, code):
    (data_folder / "trail").mkdir(parents=True)
    spark.exit_code, spark.writes_result = code, False
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    told = ["--data", str(data_folder), "--out", str(out), "--checkpoint", str(checkpoint)]
    assert rfhbridge("audit", "stream", *told, "--once", "--every-s", "2").exit_code == code
    assert list(spark.command[4:]) == ["stream", *told, "--every-s", "2", "--once"]


def test_audit_runs_beside_somebody_who_owns_the_store_and_does_not_listen(rfhbridge, spark, data_folder, monkeypatch):
    monkeypatch.setattr("gateway.cli.audit.pending_notes.EXPORT_WAIT_S", 0.1)
    with Direct(data_folder):
        ended = rfhbridge("audit", "run", "--data", data_folder)
    assert ended.exit_code == 0
    assert "notes that wait are not included" in ended.stderr
    assert "2059 MQRC_Q_MGR_NOT_AVAILABLE" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_audit_waits_for_a_gateway_that_is_about_to_end(rfhbridge, spark, data_folder, monkeypatch):
    """It has the store still, and listens no more: what it left was not included."""
    ending, looks = Direct(data_folder), []

    def ended_meanwhile(_seconds):
        looks.append(1)
        ending.close()

    clock = SimpleNamespace(monotonic=time.monotonic, sleep=ended_meanwhile)
    monkeypatch.setattr("gateway.cli.audit.pending_notes.time", clock)
    ended = rfhbridge("audit", "run", "--data", data_folder)
    assert (ended.exit_code, ended.stderr, len(looks)) == (0, "", 1)


def test_copied_trail_without_a_store_is_audited_and_gets_none(rfhbridge, spark, data_folder, tmp_path):
    (data_folder / "trail").mkdir(parents=True)
    ended = rfhbridge("audit", "run", "--data", data_folder, "--out", tmp_path / "out")
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert [path.name for path in data_folder.iterdir()] == ["trail"]


def test_store_that_cannot_be_written_is_a_warning(rfhbridge, spark, data_folder, tmp_path, monkeypatch):
    def refuse(_folder, **_options):
        raise StoreError("open the data folder", "Read-only file system", "mount it for writing")

    Direct(data_folder).close()
    monkeypatch.setattr("mq_adapters.embedded.direct.Direct", refuse)
    ended = rfhbridge("audit", "run", "--data", data_folder, "--out", tmp_path / "out")
    assert ended.exit_code == 0
    assert spark.command
    assert "notes that wait are not included" in ended.stderr
    assert "Read-only file system" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.fixture
def gateway_that_exports(monkeypatch):
    """Stands in for the connection to a gateway: set `depths`, how many batches wait, look by look."""

    class Gateway:
        depths: tuple[int, ...] = ()
        looks = 0

        def __call__(self, _folder, *, application_name):
            return contextlib.nullcontext(self)

        def depth(self, _name):
            self.looks += 1
            return self.depths[min(self.looks, len(self.depths)) - 1]

    stand_in = Gateway()
    monkeypatch.setattr("mq_adapters.embedded.socket.client.SocketClient", stand_in)
    return stand_in


def test_audit_waits_until_the_gateway_has_written_its_notes(rfhbridge, spark, data_folder, gateway_that_exports):
    gateway_that_exports.depths = (2, 1, 0)
    with Direct(data_folder):
        ended = rfhbridge("audit", "run", "--data", data_folder)
    assert (ended.exit_code, gateway_that_exports.looks) == (0, 3)
    assert "waiting until the gateway has written its notes batches=2" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_audit_does_not_wait_for_ever(rfhbridge, spark, data_folder, gateway_that_exports, monkeypatch):
    gateway_that_exports.depths = (5,)
    monkeypatch.setattr("gateway.cli.audit.pending_notes.EXPORT_WAIT_S", 0.1)
    with Direct(data_folder):
        ended = rfhbridge("audit", "run", "--data", data_folder)
    assert ended.exit_code == 0
    assert "notes that wait are not included batches=5" in ended.stderr


def test_log_format_is_asked_of_the_process(rfhbridge, spark, data_folder):
    data_folder.mkdir()
    rfhbridge("audit", "run", "--data", data_folder, "--log-format", "json")
    assert spark.command[-2:] == ("--log-format", "json")


def test_interrupted_audit_is_exit_code_130_without_a_word(rfhbridge, spark, data_folder):
    data_folder.mkdir()
    spark.exit_code = 130
    ended = rfhbridge("audit", "run", "--data", data_folder)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (130, b"", "")


def test_interruption_is_passed_on_and_waited_for():
    program = (
        "import signal, sys\n"
        "def end(*_):\n"
        "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"  # as the real one: it may be told twice
        "    sys.exit(130)\n"
        "signal.signal(signal.SIGINT, end)\nprint(flush=True)\nsignal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"\n"
        process.send_signal(signal.SIGINT)
        let_end(process)
        assert process.returncode == 130


def test_termination_is_passed_on_as_an_interruption():
    """It ended the command alone, and Spark wrote its report some time later."""
    audit = (
        "import signal, sys\n"
        "def end(*_):\n"
        "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "    print('told', flush=True)\n"
        "    sys.exit(130)\n"
        "signal.signal(signal.SIGINT, end)\n"
        "signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})\n"
        "print('listens', flush=True)\nsignal.pause()"
    )
    program = (
        "import os, sys\nfrom gateway.cli.audit import spark_process\nspark_process._TERMINAL_WAIT_S = 0.1\n"
        f"try:\n    spark_process.ended([sys.executable, '-c', {audit!r}], dict(os.environ))\n"
        "except KeyboardInterrupt:\n    print('interrupted')"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout.readline() == "listens\n"
        command.terminate()
        assert command.communicate(timeout=60)[0] == "told\ninterrupted\n"
    assert command.returncode == 0


def test_process_is_interrupted_only_when_it_listens():
    before, handler = signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.getsignal(signal.SIGTERM)
    program = "import signal, sys; sys.exit(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
    assert ended([sys.executable, "-c", program], dict(os.environ)) == 1
    with pytest.raises(FileNotFoundError):
        ended(["/nowhere/python"], dict(os.environ))
    assert (signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.getsignal(signal.SIGTERM)) == (before, handler)


@pytest.mark.parametrize("command", [(), ("run",), ("verify",), ("ingest",), ("stream",), ("explain",)], ids=str)
def test_help_names_every_exit_code(rfhbridge, command):
    text = " ".join(rfhbridge("audit", *command, "--help").text.split())
    for code in ("Exit code 0: ", "1: ", "2: not evaluable", "3: wrong use"):
        assert code in text


def test_first_problem_of_a_trail_is_told_once(rfhbridge, data_folder):
    trail = data_folder / "trail"
    trail.mkdir(parents=True)
    lines = [_line(1, "0" * 64), b"nonsense\n", b"rubbish\n"]
    (trail / "000000000001-20261120T06.jsonl").write_bytes(b"".join(lines))
    ended = rfhbridge("audit", "verify", "--data", data_folder)
    assert ended.exit_code == 1
    assert [ended.text.count(f"line {number} (byte ") for number in (2, 3)] == [1, 1]
    assert "1 segment, 1 record, 0 digests, head" in ended.text


def _line(sequence, previous):
    record = {"version": 1, "sequence": sequence, "batch": sequence, "gateway": "01" * 12, "kind": "started"}
    text = json.dumps({**record, "at_us": 1, "prev": previous}, separators=(",", ":")).encode()
    return text[:-1] + b',"hash":"' + hashlib.sha256(text).hexdigest().encode() + b'"}\n'


def test_missing_data_folder_is_not_evaluable_and_is_not_made(rfhbridge, spark, data_folder):
    ended = rfhbridge("audit", "run", "--data", data_folder)
    assert (ended.exit_code, ended.stdout) == (2, b"")
    assert str(data_folder) in ended.stderr
    assert not data_folder.exists()


def test_missing_pyspark_says_what_to_install(rfhbridge, monkeypatch, data_folder):
    monkeypatch.setattr("gateway.cli.audit.spark_process.importlib.util.find_spec", lambda _name: None)
    ended = rfhbridge("audit", "run", "--data", data_folder)
    assert (ended.exit_code, ended.stdout) == (2, b"")
    assert "make audit" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_the_audit_on_duckdb_asks_for_no_java_and_no_pyspark(rfhbridge, monkeypatch, spark, data_folder, tmp_path):
    data_folder.mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    monkeypatch.setattr(
        "gateway.cli.audit.spark_process.importlib.util.find_spec", lambda name: name == "duckdb" or None
    )
    assert rfhbridge("audit", "run", "--data", data_folder, "--engine", "duckdb").exit_code == 0
    assert spark.command[-2:] == ("--engine", "duckdb")


def test_missing_duckdb_says_what_to_install(rfhbridge, monkeypatch, data_folder):
    monkeypatch.setattr("gateway.cli.audit.spark_process.importlib.util.find_spec", lambda _name: None)
    ended = rfhbridge("audit", "run", "--data", data_folder, "--engine", "duckdb")
    assert (ended.exit_code, ended.stdout) == (2, b"")
    assert "DuckDB is not installed" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_missing_java_says_what_to_install(rfhbridge, monkeypatch, data_folder, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    ended = rfhbridge("audit", "run", "--data", data_folder)
    assert (ended.exit_code, ended.stdout) == (2, b"")
    assert "make audit" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_java_that_the_set_up_installed_is_found(rfhbridge, monkeypatch, spark, java, data_folder, tmp_path):
    data_folder.mkdir()
    (tmp_path / "java-home").write_text(f"{java}\n")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setattr("gateway.cli.audit.spark_process.sys.prefix", str(tmp_path))
    assert rfhbridge("audit", "run", "--data", data_folder).exit_code == 0
    assert spark.java_home == str(java)


def test_trail_that_is_not_there_is_not_evaluable(rfhbridge, data_folder):
    ended = rfhbridge("audit", "verify", "--data", data_folder)
    assert (ended.exit_code, ended.stderr) == (2, "")
    assert ended.text.startswith("not evaluable: ")
    told = json.loads(rfhbridge("audit", "verify", "--data", data_folder, "--json").stdout)
    assert told["verdict"] == "not evaluable"


def test_trail_of_damaged_lines_is_a_violation_or_not_evaluable_and_no_traceback(rfhbridge, data_folder):
    trail = data_folder / "trail"
    trail.mkdir(parents=True)
    (trail / "000000000001-20261120T06.jsonl").write_bytes(b'{"version":1}\n\xff\n')
    ended = rfhbridge("audit", "verify", "--data", data_folder)
    assert ended.exit_code in (1, 2)
    assert ended.stderr == ""


@pytest.mark.parametrize(
    "arguments", [["run", "--outt", "x"], ["verify", "--out", "x"], ["verify", "one", "two"], ["prove"]], ids=" ".join
)
def test_wrong_use_is_exit_code_3_in_one_line(rfhbridge, arguments):
    ended = rfhbridge("audit", *arguments)
    assert (ended.exit_code, ended.stdout) == (3, b"")
    assert ended.stderr.count("\n") == 1


def test_everything_that_an_archive_takes_is_passed_on(rfhbridge, spark, tmp_path):
    told = ["--in", "captured", "--out", str(tmp_path / "out"), "--converted", "made", "--to", "mqrfh2"]
    told += ["--mode", "extended", "--master", "local[1]", "--remote", "sc://host", "--memory", "4g", "--json"]
    spark.exit_code = 1
    assert rfhbridge("audit", "bulk", *told).exit_code == 1
    assert list(spark.command[4:]) == ["bulk", *told]


def test_archive_whose_audit_left_no_result_is_not_judged(rfhbridge, spark, tmp_path):
    spark.writes_result = False
    ended = rfhbridge("audit", "bulk", "--in", tmp_path, "--out", tmp_path / "out")
    assert ended.exit_code == 2
    assert "no new" in ended.stderr


@pytest.mark.parametrize("name", ["run", "ingest", "stream", "bulk"])
def test_a_spark_command_has_the_options_of_the_table_and_no_other(name):
    command = application.commands["audit"].commands[name]
    shown = {option for parameter in command.params for option in parameter.opts}
    rows = {option.flag for option in COMMANDS[name].options}
    assert shown - {"--help"} == (rows | {"--config"} if "--data" in rows else rows)
