"""Where Spark runs: the same audit under spark-submit, on a cluster of two workers, and behind Spark Connect."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

import spark_audit
from spark_audit.java_classes import ARCHIVE, EMPTY_FOLDER, archive_is_there
from spark_audit.spark_session import SparkPlace, resize
from tests.conftest import PROOF_VARIABLE
from tests.spark_audit.conftest import policy_text_of

SPARK_HOME = Path(pyspark.__file__).parent
MAIN = Path(spark_audit.__file__).parent / "__main__.py"
#: In the short form the controls that need Python workers, joins and digests; in full all of them.
IN_SHORT = ("integrity.chain", "integrity.digests", "conversion.reperformance", "qos.1")
IS_FULL = os.environ.get(PROOF_VARIABLE) == "full"
POLICY = "" if IS_FULL else policy_text_of(*IN_SHORT)
#: In the short form spark-submit hands the audit to the cluster: both are tried, with half of the Javas.
ALONE = pytest.mark.skipif(not IS_FULL, reason="in the short form spark-submit runs the audit on the cluster alone")
IN = {"direction": "in", "client": "boiler", "session_epoch": 1, "packet_type": 3, "qos": 1}
#: For every Java of a test: none lives long enough for its second compiler, and each may take classes from the archive.
#: One with another class path, as that which only finds out the command of a Spark, does without and is silent.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SHARED = f"-Xlog:disable -Xlog:all=error:stderr -XX:SharedArchiveFile={ARCHIVE}" if archive_is_there() else ""
_START_S = 300.0


@pytest.fixture
def arguments(signed, tmp_path: Path) -> list[str]:
    """What `run` is told: a signed trail of two segments with one violation, by a policy."""
    for _segment in range(2):
        signed.trail.add("accepted", exchange=1 + signed.trail.sequence, **IN)
        signed.trail.add("confirmed", exchanges=[[99, 99]], **(IN | {"packet_type": 4}))
        signed.close()
    (tmp_path / "policy.toml").write_text(POLICY)
    told = ["run", "--trail", str(signed.folder), "--out", str(tmp_path / "out")]
    return [*told, "--policy", str(tmp_path / "policy.toml")]


def _environment(**changes: str) -> dict[str, str]:
    fixed = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    fixed["JAVA_TOOL_OPTIONS"] = f"{SHORT_LIVED} {SHARED}"
    return {name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"} | fixed | changes


def _conf_dir(otherwise: Path) -> dict[str, str]:
    """What Spark's own programs take for their folder of settings, which is on their class path: an empty one."""
    return {"SPARK_CONF_DIR": str(EMPTY_FOLDER if SHARED else otherwise)}


def _found(tmp_path: Path) -> tuple[str, dict[str, int]]:
    """The verdict, and how many violations each control that ran has found."""
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    ran = {each["identifier"]: each["violations"] for each in result["controls"] if each["identifier"] in IN_SHORT}
    return result["verdict"], ran


EXPECTED = ("violations", {name: 2 if name == "qos.1" else 0 for name in IN_SHORT})


def _submitted(tmp_path: Path, arguments: list[str], *options: str) -> "subprocess.CompletedProcess[str]":
    """An audit that spark-submit starts."""
    (tmp_path / "conf").mkdir()
    return subprocess.run(
        [str(SPARK_HOME / "bin" / "spark-submit"), *options, "--driver-memory", "512m", str(MAIN), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=_environment(**_conf_dir(tmp_path / "conf")),
    )


@ALONE
@pytest.mark.proof
@pytest.mark.timeout(1_800)
@pytest.mark.usefixtures("spark")
def test_spark_submit_runs_the_audit(arguments: list[str], tmp_path: Path) -> None:
    run = _submitted(tmp_path, arguments, "--master", "local[2]")
    assert (run.returncode, _found(tmp_path)) == (1, EXPECTED), run.stderr


@contextmanager
def _daemon(folder: Path, *arguments: str) -> Iterator[Path]:
    """A process of a cluster; its log."""
    log = folder / f"{len(list(folder.glob('*.log')))}.log"
    configuration = folder / "conf"
    configuration.mkdir(exist_ok=True)
    environment = _environment(**_conf_dir(configuration), SPARK_DAEMON_MEMORY="256m")
    with log.open("wb") as output:
        command = [str(SPARK_HOME / "bin" / "spark-class"), *arguments]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=folder)
    try:
        yield log
    finally:
        process.kill()
        process.wait()


def _awaited(log: Path, words: str) -> str:
    """What a log says after some words."""
    deadline_s = time.monotonic() + _START_S
    while time.monotonic() < deadline_s:
        if found := re.search(words, log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"no {words!r} in {log.read_text()}")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A master and two workers of one core each, on loopback; where the master is."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    at = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with ExitStack() as processes:
        log = processes.enter_context(_daemon(folder, "org.apache.spark.deploy.master.Master", *at))
        master = _awaited(log, r"Starting Spark master at (spark://127\.0\.0\.1:[0-9]+)")
        for name in ("one", "two"):
            worker = ("org.apache.spark.deploy.worker.Worker", *at, "--cores", "1", "--memory", "640m")
            log = processes.enter_context(_daemon(folder, *worker, "--work-dir", str(folder / name), master))
            _awaited(log, r"(Successfully registered) with master")
        yield master


#: The settings of an executor of the cluster.
EXECUTOR = ("--conf", "spark.executor.memory=512m", "--conf", "spark.executor.cores=1")


def _both_worked(tmp_path: Path) -> bool:
    """Whether both workers of the cluster had an executor."""
    return all(list((tmp_path / "cluster" / name).glob("app-*/*/stderr")) for name in ("one", "two"))


@pytest.mark.proof
@pytest.mark.timeout(1_800)
@pytest.mark.usefixtures("spark")
def test_spark_submit_runs_the_audit_on_two_workers_of_a_cluster(
    arguments: list[str], cluster: str, tmp_path: Path
) -> None:
    run = _submitted(tmp_path, arguments, "--master", cluster, *EXECUTOR)
    assert (run.returncode, _found(tmp_path)) == (1, EXPECTED), run.stderr
    assert _both_worked(tmp_path)


@ALONE
@pytest.mark.proof
@pytest.mark.timeout(1_800)
@pytest.mark.usefixtures("spark")
def test_two_workers_of_a_cluster_run_the_audit(arguments: list[str], cluster: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "spark_audit", *arguments, "--master", cluster, "--memory", "512m"]
    environment = _environment(PYSPARK_SUBMIT_ARGS=" ".join((*EXECUTOR, "pyspark-shell")))
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (run.returncode, _found(tmp_path)) == (1, EXPECTED), run.stderr
    assert _both_worked(tmp_path)


@pytest.mark.proof
@pytest.mark.timeout(1_800)
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("grpc", "grpc_status", "google.protobuf")),
    reason="Spark Connect needs pyspark's extra `connect` (grpcio), which is not among the requirements",
)
def test_spark_connect_runs_the_audit(arguments: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "spark_audit", *arguments, "--remote", "local[2]"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
    assert (run.returncode, _found(tmp_path)) == (1, EXPECTED), run.stderr


@pytest.mark.parametrize(
    ("place", "is_here", "is_on_loopback"),
    [
        (SparkPlace(), True, True),
        (SparkPlace(master="local[4]"), True, True),
        (SparkPlace(master="spark://127.0.0.1:7077"), False, True),
        (SparkPlace(master="spark://hub:7077"), False, False),
        (SparkPlace(remote="sc://hub:15002"), False, False),
    ],
)
def test_open_segments_and_loopback_are_for_a_spark_of_this_machine(
    place: SparkPlace, is_here: bool, is_on_loopback: bool
) -> None:
    assert (place.is_here, place.is_on_loopback) == (is_here, is_on_loopback)


def test_under_spark_submit_nobody_knows_where_spark_runs(monkeypatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert not SparkPlace().is_here


def test_a_session_takes_the_options_of_each_batch(spark: SparkSession) -> None:
    """Many tasks and compiled plans for a large one, and back."""

    def options() -> tuple[str | None, ...]:
        names = ("shuffle.partitions", "codegen.wholeStage", "codegen.factoryMode", "limit.initialNumPartitions")
        return tuple(spark.conf.get(f"spark.sql.{name}") for name in names)

    before = options()
    resize(spark, 256 * 1024**2)
    try:
        assert options() == ("9", "true", "FALLBACK", "1")
    finally:
        resize(spark, 0)
    assert options() == before == ("1", "false", "NO_CODEGEN", "100")
