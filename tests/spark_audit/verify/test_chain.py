"""Integrity without Spark: whole trails are intact, and each way to touch one is found at the first bad line."""

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from gateway.audit_trail.notes.notes import NoteKind, pack_batch
from gateway.audit_trail.records import Chain
from spark_audit.record.batch_line import summary_of
from spark_audit.record.expansion import Expander
from spark_audit.verify import Verdict, verify
from tests.trail_lines import in_batch

SEGMENT = "000000000001-20261120T07.jsonl"
NEXT_SEGMENT = "000000000002-20261120T08.jsonl"
OPEN_SEGMENT = "000000000002-20261120T08.open"


@pytest.fixture
def lines(trail) -> list[bytes]:
    for exchange in range(1, 7):
        trail.add("accepted", client="boiler", session_epoch=1, exchange=exchange)
    return trail.lines


def _verify(folder: Path, lines: list[bytes], name: str = SEGMENT):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"".join(lines))
    return verify(folder)


def test_a_whole_trail_is_intact(trail, lines) -> None:
    result = _verify(trail.folder, lines)
    assert (result.verdict, result.records, result.head) == (Verdict.INTACT, 6, trail.head)
    assert result.verdict.exit_code == 0


def test_a_trail_over_two_segments_is_intact(trail, lines) -> None:
    _verify(trail.folder, lines[:4])
    result = _verify(trail.folder, lines[4:], NEXT_SEGMENT)
    assert (result.verdict, result.segments, result.records) == (Verdict.INTACT, 2, 6)


def test_a_line_that_is_being_written_does_not_spoil_an_open_segment(trail, lines) -> None:
    _verify(trail.folder, lines[:4])
    result = _verify(trail.folder, [*lines[4:5], lines[5][:100]], OPEN_SEGMENT)
    assert (result.verdict, result.records) == (Verdict.INTACT, 5)


def test_torn_bytes_are_named_and_are_no_violation(trail, lines) -> None:
    trail.folder.mkdir(parents=True)
    (trail.folder / "000000000001-20261120T07-4711.torn").write_bytes(b'{"version":1,"seq')
    result = _verify(trail.folder, lines)
    assert (result.verdict, result.torn_files) == (Verdict.INTACT, ("000000000001-20261120T07-4711.torn",))


TOUCHES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], int, str]] = {
    "edit": (lambda lines: [*lines[:2], lines[2].replace(b"boiler", b"cooler"), *lines[3:]], 3, "was changed"),
    "delete": (lambda lines: lines[:2] + lines[3:], 3, "prev is not the hash"),
    "delete the first": (lambda lines: lines[1:], 1, "prev is not the hash"),
    "double": (lambda lines: [*lines[:3], lines[2], *lines[3:]], 4, "prev is not the hash"),
    "swap": (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], 2, "prev is not the hash"),
    "cut inside a line": (lambda lines: [*lines[:5], lines[5][:-7]], 6, "the segment was cut"),
    "insert another's line": (
        lambda lines: [*lines[:2], b'{"temperature":21}\n', *lines[2:]],
        3,
        "not an audit record",
    ),
}


@pytest.mark.parametrize("touch", TOUCHES)
def test_whoever_touches_the_trail_is_found_at_the_first_bad_line(trail, lines, touch: str) -> None:
    change, line, words = TOUCHES[touch]
    result = _verify(trail.folder, change(lines))
    assert result.verdict is Verdict.VIOLATED
    assert result.verdict.exit_code == 1
    assert (result.problems[0].segment, result.problems[0].line) == (SEGMENT, line)
    assert words in result.reason


def test_an_edit_with_a_new_hash_breaks_the_next_link(trail, lines) -> None:
    trail.lines, trail.sequence, trail.head = lines[:2], 2, lines[1].split(b'"')[-2].decode()
    trail.add("accepted", client="cooler", session_epoch=1, exchange=3)
    result = _verify(trail.folder, trail.lines + lines[3:])
    assert (result.verdict, result.problems[0].line, result.problem_count) == (Verdict.VIOLATED, 4, 1)


def test_a_missing_segment_is_found_by_its_number(trail, lines) -> None:
    result = _verify(trail.folder, lines, NEXT_SEGMENT)
    assert result.verdict is Verdict.VIOLATED
    assert "segment 1 was expected" in result.reason


def test_a_missing_group_commit_is_found(trail) -> None:
    trail.add("accepted", batch=1)
    trail.add("accepted", batch=3)
    result = _verify(trail.folder, trail.lines)
    assert (result.verdict, result.problems[0].what) == (Verdict.VIOLATED, "batch 3 follows batch 1")


def test_records_of_one_group_commit_share_its_number(trail) -> None:
    for _ in range(3):
        trail.add("accepted", batch=1)
    assert _verify(trail.folder, trail.lines).verdict is Verdict.INTACT


@pytest.mark.parametrize("field", ["sequence", "batch"])
def test_a_truth_value_is_no_number(trail, field: str) -> None:
    """Python takes JSON's true for 1."""
    trail.add("accepted", **{field: True})
    result = _verify(trail.folder, trail.lines)
    assert result.verdict is not Verdict.INTACT
    assert "gateway, sequence or batch is missing" in result.reason


def test_another_store_begins_its_own_numbers_in_the_same_chain(trail, lines) -> None:
    trail.sequence = 0
    trail.add("started", gateway="f" * 24)
    result = _verify(trail.folder, trail.lines)
    assert (result.verdict, len(result.gateways)) == (Verdict.INTACT, 2)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"no trail\n", b'{"temperature":21}\n'], ids=["empty", "blank", "text", "foreign"]
)
def test_what_holds_no_record_is_not_evaluable(trail, content: bytes) -> None:
    result = _verify(trail.folder, [content])
    assert result.verdict is Verdict.NOT_EVALUABLE
    assert result.verdict.exit_code == 2


def test_a_folder_that_is_not_there_is_not_evaluable(tmp_path: Path) -> None:
    result = verify(tmp_path / "nowhere")
    assert result.verdict is Verdict.NOT_EVALUABLE
    assert "nowhere cannot be read" in result.reason


def test_records_of_an_unknown_version_are_not_evaluable(trail) -> None:
    trail.add("accepted", version=2)
    result = _verify(trail.folder, trail.lines)
    assert result.verdict is Verdict.NOT_EVALUABLE


def test_problems_are_told_up_to_a_limit_and_all_counted(trail) -> None:
    result = _verify(trail.folder, [b"broken\n"] * 250 + [b""])
    assert (len(result.problems), result.problem_count) == (100, 250)


def test_verify_loads_no_spark() -> None:
    code = "import sys, spark_audit.verify; print([m for m in ('pyspark', 'pyarrow', 'mappings') if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"


# -- lines of batches --------------------------------------------------------------------------------------------------

GATEWAY = "0a" * 12
AT = 1_795_158_000_000_000


def _session(client: str) -> tuple[object, ...]:
    return (NoteKind.SESSION, AT, client, 1, "opened", 4, True)


def _sealed(*commits: list[tuple[object, ...]]) -> list[bytes]:
    """The lines of commits."""
    chain = Chain(sequence=0, head="0" * 64)
    packed = (pack_batch(number, notes) for number, notes in enumerate(commits, start=1))
    return [chain.seal_batch(each, summary_of(each), GATEWAY) for each in packed]


@pytest.fixture
def of_batches() -> list[bytes]:
    """Three commits, with six records."""
    return _sealed([_session("a")], [_session("b"), _session("c"), _session("d")], [_session("e"), _session("f")])


def test_lines_of_batches_are_intact_and_their_records_are_counted(tmp_path: Path, of_batches: list[bytes]) -> None:
    result = _verify(tmp_path, of_batches)
    assert (result.verdict, result.records) == (Verdict.INTACT, 6)


def test_lines_of_records_and_of_batches_stand_in_one_trail(tmp_path: Path) -> None:
    """An earlier version wrote the first batch; names were under a key, and are not any more."""
    chain = Chain(sequence=0, head="0" * 64)
    first, second = pack_batch(1, [_session("a"), _session("b")]), pack_batch(2, [_session("c"), _session("d")])
    lines = chain.seal(Expander(GATEWAY).expand(first)[1]).splitlines(keepends=True)
    lines.append(chain.seal_batch(second, summary_of(second), GATEWAY))
    lines += chain.seal(Expander(GATEWAY).expand(pack_batch(3, [_session("e")]))[1]).splitlines(keepends=True)
    result = _verify(tmp_path, lines)
    assert (result.verdict, result.records) == (Verdict.INTACT, 5)


BATCH_TOUCHES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], int, str]] = {
    "edit": (lambda lines: [lines[0], in_batch(lines[1], b"\xa1c", b"\xa1x"), lines[2]], 2, "was changed"),
    "delete": (lambda lines: [lines[0], lines[2]], 2, "prev is not the hash"),
    "swap": (lambda lines: [lines[1], lines[0], lines[2]], 1, "prev is not the hash"),
    "count": (
        lambda lines: [lines[0], _rehashed(lines[1], records=2), lines[2]],
        2,
        "not an audit record",
    ),
    "number": (
        lambda lines: [lines[0], _rehashed(lines[1], sequence=3), lines[2]],
        2,
        "sequence 3 stands where 2 was due",
    ),
}


def _rehashed(line: bytes, **fields: int) -> bytes:
    told = orjson.loads(line) | fields
    del told["hash"]
    body = orjson.dumps(told)
    return body[:-1] + b',"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'


@pytest.mark.parametrize("touch", BATCH_TOUCHES)
def test_whoever_touches_lines_of_batches_is_found(tmp_path: Path, of_batches: list[bytes], touch: str) -> None:
    change, line, words = BATCH_TOUCHES[touch]
    result = _verify(tmp_path, change(of_batches))
    assert result.verdict is Verdict.VIOLATED
    assert result.problems[0].line == line
    assert words in result.problems[0].what


def test_the_record_of_a_gap_is_seen_within_a_batch(tmp_path: Path) -> None:
    told = (NoteKind.RESTORED, AT, "rolled_back", "0b" * 12, 5, 9, 2, 3, "anna", "a disk was lost")
    result = _verify(tmp_path, _sealed([_session("a"), told, _session("b")]))
    assert [each.event for each in result.restorations] == ["rolled_back"]
