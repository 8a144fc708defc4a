"""`rfhbridge audit`: its exit codes, and the process that it starts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mq_adapters.embedded.direct import Direct


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

        def run(self, command, *, env, check):
            self.command, self.java_home = tuple(command), env["JAVA_HOME"]
            if self.writes_result:
                out = Path(command[command.index("--out") + 1])
                out.mkdir(parents=True, exist_ok=True)
                (out / "result.json").write_text("{}")
            return subprocess.CompletedProcess(command, self.exit_code)

    stand_in = Spark()
    monkeypatch.setattr("gateway.cli.audit.subprocess.run", stand_in.run)
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
    expected = (sys.executable, "-m", "spark_audit", "run", "--data", str(data_folder), "--out", str(out))
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


def test_audit_runs_beside_a_gateway_that_owns_the_store(rfhbridge, spark, data_folder):
    with Direct(data_folder):
        assert rfhbridge("audit", "run", "--data", data_folder).exit_code == 0


def test_missing_data_folder_is_not_evaluable_and_is_not_made(rfhbridge, spark, data_folder):
    ended = rfhbridge("audit", "run", "--data", data_folder)
    assert (ended.exit_code, ended.stdout) == (2, b"")
    assert str(data_folder) in ended.stderr
    assert not data_folder.exists()


def test_missing_pyspark_says_what_to_install(rfhbridge, monkeypatch, data_folder):
    monkeypatch.setattr("gateway.cli.audit.importlib.util.find_spec", lambda _name: None)
    ended = rfhbridge("audit", "run", "--data", data_folder)
    assert (ended.exit_code, ended.stdout) == (2, b"")
    assert "make audit" in ended.stderr
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
    monkeypatch.setattr("gateway.cli.audit.sys.prefix", str(tmp_path))
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
    "arguments", [["run", "--outt", "x"], ["verify", "--out", "x"], ["verify", "extra"], ["prove"]], ids=" ".join
)
def test_wrong_use_is_exit_code_3_in_one_line(rfhbridge, arguments):
    ended = rfhbridge("audit", *arguments)
    assert (ended.exit_code, ended.stdout) == (3, b"")
    assert ended.stderr.count("\n") == 1
