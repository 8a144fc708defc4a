"""The stream: every closed segment once, each finding once, whatever a kill or a restart does between."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from spark_audit import stream as stream_module
from spark_audit.increments import checkpoint as checkpoint_module
from spark_audit.increments.checkpoint import KEY_FILE, Checkpoint
from spark_audit.increments.trails import OtherTrail
from spark_audit.pack import PackContents, write_pack
from spark_audit.report import figures
from spark_audit.report.files import RESULT_FILE
from spark_audit.result import Verdict
from spark_audit.seal import read_seal, why_not_of
from spark_audit.stream import FINDINGS_FILE, Stream
from spark_audit.trail.signature import signer_of_pem
from tests.spark_audit.conftest import GATEWAY, SignedTrail, TrailBuilder, policy_of
from tests.spark_audit.controls.conftest import Story, message
from tests.spark_audit.streaming import Streaming, told_by_stream, told_in

OF_SOME_CONTROLS = policy_of("integrity.hash", "integrity.chain", "integrity.sequence", "qos.1")
#: Where a test is about batches, and not about what controls find in them.
OF_ONE_CONTROL = policy_of("qos.1")
HOUR_US = 3_600_000_000
IN = {"direction": "in", "client": "boiler", "session_epoch": 1, "packet_type": 3, "qos": 1}


def _segment(trail: TrailBuilder, number: int, hour: int = 0) -> Path:
    """Writes what was added as segment `number`, of the hour after 07:00 on 2026-11-20 that is named."""
    day, clock = divmod(7 + hour, 24)
    trail.write(f"{number:012d}-202611{20 + day:02d}T{clock:02d}.jsonl")
    trail.lines.clear()
    return trail.folder


def _accepted(trail: TrailBuilder, exchange: int, **fields: object) -> None:
    trail.add("accepted", exchange=exchange, **(IN | fields))


def _confirmed(trail: TrailBuilder, exchange: int, **fields: object) -> int:
    return trail.add("confirmed", exchanges=[[exchange, exchange]], **(IN | {"packet_type": 4} | fields))


@pytest.fixture(autouse=True)
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of a report have tests of their own, and take longer than the controls."""
    monkeypatch.setattr(figures, "with_figures", lambda result, _engine: result)


@pytest.fixture
def each_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every segment is larger than a batch."""
    monkeypatch.setattr(stream_module, "BATCH_BYTES", 1)


@pytest.fixture
def streaming(tmp_path: Path) -> Streaming:
    return Streaming(tmp_path, OF_SOME_CONTROLS)


@pytest.fixture
def of_one_control(tmp_path: Path) -> Streaming:
    return Streaming(tmp_path, OF_ONE_CONTROL)


# -- batches -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("each_segment")
def test_findings_are_told_once_and_what_came_before_is_known(streaming: Streaming, trail: TrailBuilder) -> None:
    _accepted(trail, 1)
    trail.add("put", exchange=1, **IN)
    _segment(trail, 1)
    _confirmed(trail, 1)
    _confirmed(trail, 2)
    trail.lines[0] = trail.lines[0].replace(b'"at_us":1', b'"at_us":2')
    folder = _segment(trail, 2)
    results = streaming.run(folder)
    assert [result.verdict for result in results] == [Verdict.CLEAN, Verdict.VIOLATIONS]
    told = [(2, "integrity.hash", 3), (2, "qos.1", 4)]
    assert streaming.findings() == told, "record 3 was changed, and exchange 2 was put in no batch"
    _accepted(trail, 3)
    _segment(trail, 3)
    assert [result.verdict for result in streaming.run(folder)] == [Verdict.CLEAN]
    assert streaming.run(folder) == []
    assert streaming.findings() == told
    assert {each["trail"] for each in told_in(streaming.out)} == {str(folder)}
    batch = json.loads((streaming.out / "00000002" / "result.json").read_text())
    assert (batch["verdict"], batch["scope"]["records"]) == ("violations", 2)


@pytest.mark.usefixtures("each_segment")
def test_an_exchange_that_takes_days_is_judged(of_one_control: Streaming, trail: TrailBuilder) -> None:
    _accepted(trail, 1)
    trail.add("put", exchange=1, **IN)
    _accepted(trail, 2)  # and is put nowhere
    _segment(trail, 1)
    for number in range(2, 5):
        _accepted(trail, 10 + number)
        _segment(trail, number, hour=24 * (number - 1))
    later = {"at_us": 1_795_158_000_000_000 + 100 * HOUR_US}
    _confirmed(trail, 1, **later)
    wrong = _confirmed(trail, 2, **later)
    of_one_control.run(_segment(trail, 5, hour=100))
    assert of_one_control.findings() == [(5, "qos.1", wrong)]


def test_what_is_there_at_the_first_start_is_cut_in_batches(
    of_one_control: Streaming, trail: TrailBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 6):
        _accepted(trail, number)
        _segment(trail, number)
    size_bytes = max(path.stat().st_size for path in trail.folder.iterdir())
    monkeypatch.setattr(stream_module, "BATCH_BYTES", 2 * size_bytes)
    assert [result.scope.segment_count for result in of_one_control.run(trail.folder)] == [2, 2, 1]


def test_nothing_new_starts_no_engine(of_one_control: Streaming, trail: TrailBuilder) -> None:
    _accepted(trail, 1)
    folder = _segment(trail, 1)
    of_one_control.run(folder)
    trail.add("put", exchange=1, **IN)
    trail.write("000000000002-20261120T08.open")
    (folder / "000000000002-20261120T08.jsonl").write_bytes(b"")
    assert of_one_control.run(folder) == []
    assert of_one_control.engines == 1


@pytest.mark.usefixtures("each_segment")
def test_what_has_no_record_is_judged_with_what_comes_next(tmp_path: Path, trail: TrailBuilder) -> None:
    streaming = Streaming(tmp_path, policy_of("integrity.lines"))
    _accepted(trail, 1)
    _segment(trail, 1)
    trail.lines.append(b"temperature;21\n")
    results = streaming.run(_segment(trail, 2))
    assert [result.verdict for result in results] == [Verdict.CLEAN, Verdict.NOT_EVALUABLE]
    assert streaming.batches().keys() == {"00000001"}
    for number in (3, 4):
        _accepted(trail, number)
        _segment(trail, number)
    assert [result.scope.segment_count for result in streaming.run(trail.folder)] == [2, 1]
    assert streaming.findings() == [(2, "integrity.lines", 0)]


@pytest.mark.usefixtures("each_segment")
def test_a_last_line_that_was_changed_or_is_none_stops_nobody(tmp_path: Path, trail: TrailBuilder) -> None:
    streaming = Streaming(tmp_path, policy_of("integrity.lines", "integrity.hash"))
    _accepted(trail, 1)
    trail.lines[-1] = trail.lines[-1].replace(b"boiler", b"cooler")
    _segment(trail, 1)
    _accepted(trail, 2)
    trail.lines.append(b"temperature;21\n")
    _segment(trail, 2)
    _accepted(trail, 3)
    streaming.run(_segment(trail, 3))
    assert streaming.findings() == [(1, "integrity.hash", 1), (2, "integrity.lines", 0)]


@pytest.mark.usefixtures("each_segment")
def test_digests_of_segments_that_are_read_later_raise_no_alarm(tmp_path: Path, signed: SignedTrail) -> None:
    streaming = Streaming(tmp_path, policy_of("integrity.digests", "integrity.chain"))
    for _ in range(4):
        signed.records(1)
        signed.close()
    (signed.folder / f"{signed.segments[2]}.jsonl").unlink()
    streaming.run(signed.folder)
    told = [each for each in told_in(streaming.out) if each["control"] == "integrity.digests"]
    assert [(each["batch"], each["subject"]) for each in told] == [(1, signed.segments[2])]


def test_each_batch_is_sealed_and_its_seal_holds_while_the_trail_grows(
    tmp_path: Path, signed: SignedTrail, each_segment: None
) -> None:
    streaming, other = Streaming(tmp_path, OF_SOME_CONTROLS), TrailBuilder(tmp_path / "other")
    for _ in range(2):
        signed.records(3)
        signed.close()
        streaming.run(signed.folder)
    first, second = (streaming.out / f"{number:08d}" for number in (1, 2))
    key = signer_of_pem((streaming.folder / "checkpoint" / KEY_FILE).read_bytes()).public_key
    for number, batch in enumerate((first, second), start=1):
        seal = read_seal(batch)
        assert (seal.is_signed(), seal.public_key, set(seal.files)) == (True, key, {FINDINGS_FILE, RESULT_FILE})
        assert [trail.digests for trail in seal.trails] == [number]
        assert why_not_of(batch, signed.folder) == ""
    _accepted(other, 1)
    assert "of another trail" in why_not_of(first, _segment(other, 1))
    write_pack(PackContents(trail=signed.folder, results=second, code_version="0"), tmp_path / "pack.zip")
    for batch, name in ((first, FINDINGS_FILE), (second, RESULT_FILE)):
        (batch / name).write_bytes(b"{}")
        assert why_not_of(batch, signed.folder) == f"{name} was changed"


def test_a_trail_whose_beginning_retention_removed_begins_late(tmp_path: Path, signed: SignedTrail) -> None:
    streaming = Streaming(tmp_path, policy_of("integrity.chain", "integrity.sequence", "integrity.digests"))
    for _ in range(3):
        signed.records(1)
        signed.close()
    signed.remove(2)
    assert [result.verdict for result in streaming.run(signed.folder)] == [Verdict.CLEAN]


# -- the same as one audit ---------------------------------------------------------------------------------------------


def test_batches_find_what_one_audit_finds_and_read_everything_where_they_must(tmp_path: Path) -> None:
    builder = TrailBuilder(tmp_path)
    story = Story(builder)
    story.started()
    cuts = [0]
    for exchange in (1, 2, 3):
        story.published(exchange, 1)
        if exchange > 1:
            story.confirmed(4, [exchange - 1, exchange - 1])
            story.confirmed(4, [1, 1], client="valve", session_epoch=exchange)  # of nothing
        cuts.append(len(builder.lines))
    parts = [builder.lines[begin:end] for begin, end in pairwise(cuts)]
    assert told_by_stream(parts, tmp_path) == (0, True)
    story.put(1, 1, message_id=message(1))  # its exchange had ended
    story.started()
    assert told_by_stream([*parts, builder.lines[cuts[-1] :]], tmp_path) == (1, True)


@pytest.mark.usefixtures("each_segment")
def test_what_is_behind_a_batch_waits_where_everything_before_is_read(
    of_one_control: Streaming, trail: TrailBuilder
) -> None:
    _confirmed(trail, 5)
    of_one_control.run(_segment(trail, 1))
    _confirmed(trail, 4)  # a number from before the state
    _segment(trail, 2)
    _confirmed(trail, 9)
    assert [result.scope.segment_count for result in of_one_control.run(_segment(trail, 3))] == [2, 1]
    assert of_one_control.findings() == [(1, "qos.1", 1), (2, "qos.1", 2), (3, "qos.1", 3)]


def test_another_policy_has_everything_judged_again_and_nothing_told_twice(tmp_path: Path, trail: TrailBuilder) -> None:
    streaming = Streaming(tmp_path, OF_ONE_CONTROL)
    wrong = _confirmed(trail, 9)
    trail.lines[0] = trail.lines[0].replace(b"boiler", b"cooler")
    folder = _segment(trail, 1)
    streaming.run(folder)
    assert streaming.findings() == [(1, "qos.1", wrong)]
    streaming.policy = OF_SOME_CONTROLS
    streaming.run(folder)
    assert streaming.said == [
        f"the state of {folder} does not fit: it was made with another policy: the whole trail is judged again"
    ]
    assert streaming.findings() == [(1, "qos.1", wrong), (2, "integrity.hash", 1)]
    assert streaming.run(folder) == []


def test_a_trail_that_was_rewritten_is_noticed_under_another_policy_too(
    of_one_control: Streaming, trail: TrailBuilder
) -> None:
    _accepted(trail, 1)
    folder = _segment(trail, 1)
    of_one_control.run(folder)
    of_one_control.policy = OF_SOME_CONTROLS
    trail.sequence, trail.head = 0, "0" * 64
    _accepted(trail, 2)
    _segment(trail, 1)
    with pytest.raises(OtherTrail, match="the trail was rewritten"):
        of_one_control.run(folder)


# -- trails ------------------------------------------------------------------------------------------------------------


def test_each_trail_has_a_state_of_its_own_wherever_it_is_moved(of_one_control: Streaming, tmp_path: Path) -> None:
    north, south = TrailBuilder(tmp_path / "north"), TrailBuilder(tmp_path / "south")
    for builder in (north, south):
        _accepted(builder, 1)
        _segment(builder, 1)
    of_one_control.run(north.folder)
    of_one_control.run(north.folder, south.folder)
    moved = tmp_path / "moved"
    south.folder.rename(moved)
    south.folder = moved
    wrong = _confirmed(south, 1)  # it was never put
    _segment(south, 2)
    results = of_one_control.run(north.folder, moved)
    assert [result.scope.records for result in results] == [1], "of the new segment alone"
    assert of_one_control.findings() == [(3, "qos.1", wrong)]


# -- kills -------------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The end of the process."""


def _killed(step: Callable[..., object], *, is_done: bool) -> Callable[..., None]:
    def killed(*values: object) -> None:
        if is_done:
            step(*values)
        raise Killed

    return killed


#: The steps of a batch: its folder is written, the next state, the folder comes to its place, the state to its own.
STEPS: dict[str, tuple[object, str, bool]] = {
    "before the folder was written": (Stream, "_write", False),
    "before the next state was written": (Checkpoint, "finish", False),
    "before the folder came to its place": (checkpoint_module, "replace_file", True),
    "before the state came to its place": (Checkpoint, "_bring_into_place", False),
    "after everything": (Checkpoint, "_bring_into_place", True),
}


@pytest.mark.parametrize("place", STEPS)
def test_a_kill_tells_nothing_twice_and_forgets_nothing_and_changes_no_batch(
    of_one_control: Streaming, trail: TrailBuilder, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    folder = _segment(trail, 1) if _accepted(trail, 1) else trail.folder
    wrong = _confirmed(trail, 9)
    _segment(trail, 1)
    owner, step, is_done = STEPS[place]
    of_one_control.run()  # makes the checkpoint
    with monkeypatch.context() as patched:
        killed = _killed(getattr(owner, step), is_done=is_done)
        patched.setattr(owner, step, staticmethod(killed) if step == "_bring_into_place" else killed)
        with pytest.raises(Killed):
            of_one_control.run(folder)
    after_the_kill = of_one_control.batches()
    assert bool(after_the_kill) == (place in ("before the state came to its place", "after everything"))
    _accepted(trail, 2)
    _segment(trail, 2)
    of_one_control.run(folder)
    assert of_one_control.findings() == [(1, "qos.1", wrong)]
    assert len(of_one_control.batches()) == (2 if after_the_kill else 1)
    assert after_the_kill.items() <= of_one_control.batches().items()
    assert of_one_control.run(folder) == []
    assert not list(of_one_control.folder.rglob("*.next"))


def test_a_new_checkpoint_overwrites_no_batch_of_an_older_one(of_one_control: Streaming, trail: TrailBuilder) -> None:
    _confirmed(trail, 9)
    folder = _segment(trail, 1)
    of_one_control.run(folder)
    before = of_one_control.batches()
    (of_one_control.folder / "checkpoint").rename(of_one_control.folder / "old")
    of_one_control.run(folder)
    assert of_one_control.findings() == [(1, "qos.1", 1), (2, "qos.1", 1)]
    assert before.items() <= of_one_control.batches().items()


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_a_killed_process_goes_on_where_it_was(trail: TrailBuilder, tmp_path: Path) -> None:
    """kill -9 in the middle of the first batch; then the same command again, twice."""
    _accepted(trail, 1)
    _confirmed(trail, 9)
    _segment(trail, 1)
    (tmp_path / "policy.toml").write_text(OF_SOME_CONTROLS.text)
    command = [sys.executable, "-m", "spark_audit", "stream", "--trail", str(trail.folder), "--once", "--json"]
    command += ["--out", str(tmp_path / "out"), "--checkpoint", str(tmp_path / "checkpoint"), "--engine", "duckdb"]
    command += ["--policy", str(tmp_path / "policy.toml"), "--memory", "512m"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as killed:
        while not list((tmp_path).glob("out/.*.part")) and killed.poll() is None:
            time.sleep(0.001)
        killed.send_signal(signal.SIGKILL)
    assert killed.returncode == -signal.SIGKILL
    subprocess.run(command, capture_output=True, text=True, check=False)
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stdout) == (0, ""), again.stderr
    (found,) = told_in(tmp_path / "out")
    assert (found["control"], found["gateway"], found["sequence"]) == ("qos.1", GATEWAY, 2)
