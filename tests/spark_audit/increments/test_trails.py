"""An increment reads what is behind the state, of a trail that still goes on there."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spark_audit.increments.state import TrailHead
from spark_audit.increments.trails import OtherTrail, files_since, heads_of
from tests.spark_audit.conftest import SignedTrail
from tests.spark_audit.increments.conftest import Increments


def _closed(signed: SignedTrail, count: int) -> None:
    for _ in range(count):
        signed.records(2)
        signed.close()


@pytest.fixture
def judged(signed: SignedTrail) -> tuple[SignedTrail, TrailHead]:
    """A trail of three segments with digests, and where it ended at the second one."""
    _closed(signed, 2)
    head = _head_of(signed)
    _closed(signed, 1)
    return signed, head


def _head_of(signed: SignedTrail) -> TrailHead:
    number = signed.number
    return TrailHead(
        name="",
        segment=signed.segments[-1],
        head=signed.trail.head,
        line=signed.trail.head,
        digests=number,
        digest_head=signed.hashes[number],
        is_cut=False,
    )


def test_segments_behind_the_state_are_read(judged: tuple[SignedTrail, TrailHead]) -> None:
    signed, head = judged
    signed.compress(2)
    files = files_since(signed.folder, head)
    assert [path.name for path in files.segments] == [f"{signed.segments[2]}.jsonl"]
    assert files.passed_over == frozenset(signed.segments[:2])


def test_an_open_segment_is_left_to_the_next_audit(signed: SignedTrail) -> None:
    _closed(signed, 1)
    signed.records(1)
    signed.write(".open")
    assert [path.name for path in files_since(signed.folder, None).segments] == [f"{signed.segments[0]}.jsonl"]


def _lines_of(signed: SignedTrail) -> tuple[Path, list[bytes]]:
    path = signed.folder / f"{signed.segments[1]}.jsonl"
    return path, path.read_bytes().splitlines(keepends=True)


def _cut_a_line(signed: SignedTrail) -> None:
    path, lines = _lines_of(signed)
    path.write_bytes(lines[0])


def _change_a_line(signed: SignedTrail) -> None:
    path, lines = _lines_of(signed)
    path.write_bytes(lines[0] + lines[1].replace(b"boiler", b"cooler"))


def _change_a_digest(signed: SignedTrail) -> None:
    path = signed.digests / f"{2:012d}.digest"
    path.write_bytes(path.read_bytes().replace(b"0.1.0", b"0.1.1"))


_REWRITTEN: dict[str, tuple[str, Callable[[SignedTrail], object]]] = {
    "a line was cut off": ("ends with another record", _cut_a_line),
    "a line was changed": ("ends with another record", _change_a_line),
    "the segment is gone": ("is not there any more", lambda signed: _lines_of(signed)[0].unlink()),
    "a digest was changed": ("digest 2 is another one", _change_a_digest),
    "a digest is gone": ("the trail was cut", lambda signed: (signed.digests / f"{2:012d}.digest").unlink()),
}


@pytest.mark.parametrize("case", _REWRITTEN.values(), ids=_REWRITTEN)
def test_a_trail_that_was_rewritten_or_cut_is_refused(
    case: tuple[str, Callable[[SignedTrail], object]], judged: tuple[SignedTrail, TrailHead]
) -> None:
    said, change = case
    signed, head = judged
    change(signed)
    with pytest.raises(OtherTrail, match=said):
        files_since(signed.folder, head)


def test_a_trail_goes_on_where_retention_removed_what_was_judged(judged: tuple[SignedTrail, TrailHead]) -> None:
    signed, head = judged
    signed.remove(2)
    files = files_since(signed.folder, head)
    assert [path.name for path in files.segments] == [f"{signed.segments[2]}.jsonl"]
    assert files.passed_over == frozenset()


def test_a_retention_of_older_segments_explains_nothing(judged: tuple[SignedTrail, TrailHead]) -> None:
    signed, head = judged
    signed.remove(1)
    _lines_of(signed)[0].unlink()
    with pytest.raises(OtherTrail, match="is not there any more"):
        files_since(signed.folder, head)


def test_a_segment_that_is_removed_after_it_was_judged_is_missing(signed: SignedTrail, tmp_path: Path) -> None:
    _closed(signed, 3)
    audits = Increments([signed.folder], tmp_path)
    assert not {each for each in audits.audit() if each[0] == "integrity.digests"}
    assert audits.state().trails == (_head_of(signed),)
    _closed(signed, 1)
    (signed.folder / f"{signed.segments[0]}.jsonl").unlink()
    told = {(control, subject) for control, _, _, subject in audits.audit()}
    assert ("integrity.digests", signed.segments[0]) in told


def test_a_trail_that_goes_on_elsewhere_is_a_violation(signed: SignedTrail, tmp_path: Path) -> None:
    _closed(signed, 1)
    audits = Increments([signed.folder], tmp_path)
    audits.audit()
    signed.records(1)
    signed.trail.lines.clear()  # a record is lost between the two audits
    _closed(signed, 1)
    found = {control for control, *_ in audits.audit()}
    assert {"integrity.chain", "integrity.sequence", "integrity.batch"} <= found


def test_heads_are_by_the_names_of_trails() -> None:
    head = TrailHead(name="", segment="s", head="h", line="h", digests=0, digest_head="", is_cut=False)
    folders = [Path("north"), Path("south")]
    several = tuple(replace(head, name=str(folder)) for folder in folders)
    state = Increments([], Path()).state()
    assert heads_of(state, folders) == (None, None)
    assert heads_of(replace(state, trails=(head,)), [Path("moved")]) == (head,)
    assert heads_of(replace(state, trails=several[::-1]), folders) == several
    for trails, named in ((several, folders[:1]), ((head,), folders), (several, [Path("north"), Path("west")])):
        with pytest.raises(OtherTrail, match="of other trails"):
            heads_of(replace(state, trails=trails), named)
