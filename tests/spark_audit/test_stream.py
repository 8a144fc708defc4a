"""The stream: every closed segment once, each finding once, whatever a kill or a restart does between."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_audit.ingest.audit_input import selected
from spark_audit.ingest.ingestion import ingested, new_segments
from spark_audit.ingest.manifest import Manifest, UnusableManifest
from spark_audit.ingest.segments import Measuring
from spark_audit.ingest.warehouse import Damaged, writing_to
from spark_audit.period import EVERYTHING
from spark_audit.policy import Policy
from spark_audit.report import figures
from spark_audit.result import AuditResult, Verdict
from spark_audit.stream import Reported, Stream
from tests.spark_audit.conftest import GATEWAY, TrailBuilder, policy_of

HOUR_US = 3_600_000_000
CONTROLS_RUN = ("integrity.hash", "integrity.chain", "integrity.sequence", "qos.1", "conversion.reperformance")
OF_SOME_CONTROLS = policy_of(*CONTROLS_RUN)
#: Where a test is about batches, and not about what controls find in them.
OF_ONE_CONTROL = policy_of("qos.1")
IN = {"direction": "in", "client": "boiler", "session_epoch": 1, "packet_type": 3, "qos": 1}


def _segment(trail: TrailBuilder, number: int, hour: int = 0) -> Path:
    """Writes what was added as segment `number`, of the hour after 07:00 on 2026-11-20 that is named."""
    day, clock = divmod(7 + hour, 24)
    trail.write(f"{number:012d}-202611{20 + day:02d}T{clock:02d}.jsonl")
    trail.lines.clear()
    return trail.folder


def _accepted(trail: TrailBuilder, exchange: int, **fields: object) -> None:
    trail.add("accepted", exchange=exchange, **(IN | fields))


def _confirmed(trail: TrailBuilder, exchange: int) -> None:
    trail.add("confirmed", exchanges=[[exchange, exchange]], **(IN | {"packet_type": 4}))


class Streaming:
    """A stream as the command runs it, in the session of the tests."""

    def __init__(
        self, spark: SparkSession, folder: Path, *, history_hours: int = 6, policy: Policy = OF_SOME_CONTROLS
    ) -> None:
        self.spark, self.folder = spark, folder
        self.stream = Stream(
            checkpoint=folder / "checkpoint",
            out=folder / "out",
            history_hours=history_hours,
            policy=policy,
            personal_key=None,
            progress=lambda _line: None,
        )

    def run(self, trail: Path) -> list[AuditResult]:
        """Everything that is there now, a batch for each segment; the results."""
        self.stream.out.mkdir(exist_ok=True)
        with writing_to(self.stream.checkpoint) as manifest:
            return list(self._results(trail, manifest, Reported.load(self.stream.checkpoint)))

    def _results(self, trail: Path, manifest: Manifest, reported: Reported) -> Iterator[AuditResult]:
        if reported.segments < len(manifest.segments):
            reported, result = self.stream.report(self.spark, manifest, reported)
            yield result
        while (new := new_segments(trail, manifest, Measuring())).segments:
            manifest = next(ingested(self.spark, self.stream.checkpoint, manifest, [new], 1))
            reported, result = self.stream.report(self.spark, manifest, reported)
            manifest = self.stream.tidied(self.spark, manifest)
            yield result

    def findings(self) -> list[tuple[int, str, int]]:
        """Batch, control and sequence of everything that was told."""
        return [(told["batch"], told["control"], told["sequence"]) for told in _told(self.stream.out)]


def _told(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(out.glob("*/findings.jsonl")) for line in path.read_text().splitlines()]


@pytest.fixture(autouse=True)
def without_figures(monkeypatch) -> None:
    """The sums of a report have tests of their own, and take longer than the controls."""
    monkeypatch.setattr(figures, "with_figures", lambda result, _engine: result)


@pytest.fixture
def streaming(spark: SparkSession, tmp_path: Path) -> Streaming:
    return Streaming(spark, tmp_path)


@pytest.fixture
def of_one_control(spark: SparkSession, tmp_path: Path) -> Streaming:
    return Streaming(spark, tmp_path, policy=OF_ONE_CONTROL)


def test_findings_are_told_once_and_history_is_known(streaming: Streaming, trail) -> None:
    _accepted(trail, 1)
    trail.add("put", exchange=1, **IN)
    _segment(trail, 1)
    _confirmed(trail, 1)
    _confirmed(trail, 2)
    trail.lines[0] = trail.lines[0].replace(b"boiler", b"cooler")
    folder = _segment(trail, 2)
    results = streaming.run(folder)
    assert [result.verdict for result in results] == [Verdict.CLEAN, Verdict.VIOLATIONS]
    told = [(2, "integrity.hash", 3), (2, "qos.1", 3), (2, "qos.1", 4)]
    assert streaming.findings() == told, "the client of record 3 was changed, and 2 was put in no batch"
    _accepted(trail, 3)
    _segment(trail, 3)
    assert [result.verdict for result in streaming.run(folder)] == [Verdict.CLEAN]
    assert streaming.run(folder) == []
    assert streaming.findings() == told
    batch = json.loads((streaming.stream.out / "00000002" / "result.json").read_text())
    assert (batch["verdict"], batch["scope"]["records"]) == ("violations", 2)


def test_what_is_older_than_the_history_is_pending_and_forgotten(spark: SparkSession, trail, tmp_path: Path) -> None:
    streaming = Streaming(spark, tmp_path, history_hours=2)
    _accepted(trail, 1)
    trail.add("put", exchange=1, **IN)
    _segment(trail, 1)
    _accepted(trail, 2, at_us=1_795_158_000_000_000 + 100 * HOUR_US)
    _confirmed(trail, 1)
    results = streaming.run(_segment(trail, 2, hour=100))
    assert [result.verdict for result in results] == [Verdict.CLEAN, Verdict.CLEAN]
    manifest = Manifest.load(streaming.stream.checkpoint)
    assert ({file.date for file in manifest.files}, len(manifest.segments)) == ({"2026-11-24"}, 2)
    there = {str(path.relative_to(streaming.stream.checkpoint)) for path in tmp_path.rglob("*.parquet")}
    assert there == {file.path for file in manifest.files}


class Killed(BaseException):
    """The end of the process, right after a step."""


def test_a_kill_after_any_step_tells_nothing_twice_and_forgets_nothing(
    of_one_control: Streaming, trail, monkeypatch
) -> None:
    _accepted(trail, 1)
    _confirmed(trail, 9)
    folder = _segment(trail, 1)
    told, nothing, first = [(1, "qos.1", 2)], Reported(), Reported(batches=1, segments=1)
    for owner, step, findings, reported in (
        (Stream, "_judged", [], nothing),
        (Stream, "_write", told, nothing),
        (Reported, "save", told, first),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(owner, step, _killed_after(getattr(owner, step)))
            with pytest.raises(Killed):
                of_one_control.run(folder)
        assert of_one_control.findings() == findings
        assert Reported.load(of_one_control.stream.checkpoint) == reported
    _accepted(trail, 2)
    _segment(trail, 2)
    of_one_control.run(folder)
    assert of_one_control.findings() == told
    assert Reported.load(of_one_control.stream.checkpoint) == Reported(batches=2, segments=2)


def _killed_after(step: Callable[..., object]) -> Callable[..., None]:
    def killed(*values: object) -> None:
        step(*values)
        raise Killed

    return killed


def test_a_batch_without_a_record_is_not_evaluable(of_one_control: Streaming, trail) -> None:
    _accepted(trail, 1)
    _segment(trail, 1)
    trail.lines.append(b"temperature;21\n")
    results = of_one_control.run(_segment(trail, 2))
    assert [result.verdict for result in results] == [Verdict.CLEAN, Verdict.NOT_EVALUABLE]


@pytest.mark.parametrize("text", ["", "[]", '{"batches":"x","segment":1}', '{"version":2}'])
def test_a_checkpoint_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "reported.json").write_text(text)
    with pytest.raises(UnusableManifest):
        Reported.load(tmp_path)


def test_a_checkpoint_is_not_audited_as_if_it_were_whole(of_one_control: Streaming, trail) -> None:
    _accepted(trail, 1)
    of_one_control.run(_segment(trail, 1))
    with pytest.raises(Damaged, match="checkpoint of a stream"):
        selected(of_one_control.stream.checkpoint, EVERYTHING)


@pytest.mark.proof
@pytest.mark.timeout(1_800)
@pytest.mark.usefixtures("spark")
def test_a_killed_process_goes_on_where_it_was(trail, tmp_path: Path) -> None:
    """kill -9 in the middle of the first batch; then the same command again, twice."""
    _accepted(trail, 1)
    _confirmed(trail, 9)
    _segment(trail, 1)
    (tmp_path / "policy.toml").write_text(OF_SOME_CONTROLS.text)
    command = [sys.executable, "-m", "spark_audit", "stream", "--trail", str(trail.folder), "--once", "--json"]
    command += ["--out", str(tmp_path / "out"), "--checkpoint", str(tmp_path / "checkpoint")]
    command += ["--policy", str(tmp_path / "policy.toml"), "--memory", "512m"]
    manifest = tmp_path / "checkpoint" / "manifest.json"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as killed:
        while not manifest.exists() and killed.poll() is None:
            time.sleep(0.02)
        killed.send_signal(signal.SIGKILL)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "out" / "00000001").exists()
    first = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (first.returncode, json.loads(first.stdout)["batch"]) == (1, 1), first.stderr
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (second.returncode, second.stdout) == (0, "")
    (found,) = _told(tmp_path / "out")
    assert (found["control"], found["gateway"], found["sequence"]) == ("qos.1", GATEWAY, 2)
