"""Closed segments and digests are copied whole, in order, and to no other trail's folder."""

from pathlib import Path

import pytest

from gateway.audit_trail.compression import Compression
from gateway.audit_trail.second_place import SecondPlace
from gateway.audit_trail.segment import Trail
from gateway.audit_trail.segment_digests import SegmentDigests
from mq_adapters.reasons import StoreError
from spark_audit.verify import Verdict, verify
from tests.trail_lines import closed_segments


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A second place, as an operator made it."""
    place = tmp_path / "second"
    place.mkdir()
    return place


def _closed(trail: Trail, batches, count: int) -> None:
    for _ in range(count):
        trail.append(*batches())
        trail.close_segment()


def _copy_all(second: SecondPlace) -> int:
    steps = 0
    while second.step():
        steps += 1
    return steps


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_copy_is_the_trail(folder, place, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        second = SecondPlace(folder, place, trail.digests)
        _closed(trail, batches, 2)
        assert _copy_all(second) == 2
        _closed(trail, batches, 1)
        trail.append(*batches())
        assert _copy_all(second) == 1
        assert second.has(3)
        assert not second.has(4)
    assert _files(place) == {name: data for name, data in _files(folder).items() if not name.endswith(".open")}
    assert verify(place).verdict is Verdict.INTACT


def test_the_next_life_copies_what_is_missing_alone(folder, place, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        _closed(trail, batches, 3)
        _copy_all(SecondPlace(folder, place, trail.digests))
        (place / "digests" / "000000000002.digest").unlink()
        assert _copy_all(SecondPlace(folder, place, trail.digests)) == 1
    assert _files(place) == _files(folder)


def test_a_folder_that_is_missing_is_not_made(folder, tmp_path, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        _closed(trail, batches, 1)
        second = SecondPlace(folder, tmp_path / "mount", trail.digests)
        with pytest.raises(StoreError, match="there is no such folder"):
            second.step()
        (tmp_path / "mount").mkdir()
        assert _copy_all(second) == 1


def test_the_folder_of_another_trail_is_left_alone(folder, place, tmp_path, clock, batches) -> None:
    other = tmp_path / "other" / "trail"
    with Trail.open(other, now=clock) as trail:
        _closed(trail, batches, 1)
        _copy_all(SecondPlace(other, place, trail.digests))
    before = _files(place)
    with Trail.open(folder, now=clock) as trail:
        _closed(trail, batches, 1)
        with pytest.raises(StoreError, match="the folder holds another trail"):
            SecondPlace(folder, place, trail.digests).step()
    assert _files(place) == before


def test_a_copy_that_is_ahead_is_told_because_the_trail_was_set_back(folder, place, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        _closed(trail, batches, 2)
        _copy_all(SecondPlace(folder, place, trail.digests))
    (folder / "digests" / "000000000002.digest").unlink()
    (folder / "000000000002-20261120T12.jsonl").unlink()
    with Trail.open(folder, now=clock) as trail, pytest.raises(StoreError, match="the folder holds another trail"):
        SecondPlace(folder, place, trail.digests).step()


def test_a_segment_that_was_changed_is_not_copied(folder, place, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        _closed(trail, batches, 1)
        (segment,) = folder.glob("*.jsonl")
        segment.write_bytes(segment.read_bytes().replace(b'"kind":"session"', b'"kind":"sessiom"'))
        second = SecondPlace(folder, place, trail.digests)
        with pytest.raises(StoreError, match="not those of its digest"):
            second.step()
        assert not second.has(1)
    assert _files(place) == {}


def test_a_segment_whose_digest_a_crash_held_up_is_not_copied_again_in_another_form(
    folder, place, clock, batches
) -> None:
    with Trail.open(folder, now=clock) as trail:
        _closed(trail, batches, 1)
        _copy_all(SecondPlace(folder, place, trail.digests))
        (place / "digests" / "000000000001.digest").unlink()
        assert Compression(folder, SegmentDigests(trail.digests), after_hours=0).step()
        _copy_all(SecondPlace(folder, place, trail.digests))
    (copied,) = closed_segments(place)
    assert [path.name for path in place.glob("0*")] == [f"{copied}.jsonl"]
    assert [path.name for path in folder.glob("0*")] == [f"{copied}.jsonl.zst"]
    assert verify(place).verdict is Verdict.INTACT


def test_a_damaged_copy_is_no_copy(folder, place, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        _closed(trail, batches, 1)
        (segment,) = folder.glob("*.jsonl")
        (place / segment.name).write_bytes(segment.read_bytes()[:-1])
        _copy_all(SecondPlace(folder, place, trail.digests))
    assert _files(place) == _files(folder)


def test_a_segment_that_has_not_its_name_yet_waits(folder, place, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        _closed(trail, batches, 1)
        (segment,) = folder.glob("*.jsonl")
        segment.rename(segment.with_suffix(".open"))
        second = SecondPlace(folder, place, trail.digests)
        assert not second.step()
        segment.with_suffix(".open").rename(segment)
        assert second.step()


def test_a_segment_that_gets_its_name_while_it_is_looked_for_is_copied(
    folder, place, clock, batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its digest went alone, and the segment was held to be safe there."""
    exists = Path.exists

    def closing(path: Path) -> bool:
        found = exists(path)
        if path.suffix == ".jsonl" and exists(path.with_suffix(".open")):
            path.with_suffix(".open").rename(path)
        return found

    with Trail.open(folder, now=clock) as trail:
        _closed(trail, batches, 1)
        (segment,) = folder.glob("*.jsonl")
        segment.rename(segment.with_suffix(".open"))
        monkeypatch.setattr(Path, "exists", closing)
        _copy_all(SecondPlace(folder, place, trail.digests))
    assert _files(place) == _files(folder)
