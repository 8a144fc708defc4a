"""Digests are found by their segments; one that cannot be read hides its own alone."""

from datetime import timedelta
from pathlib import Path

from gateway.audit_trail.segment_digests import SegmentDigests
from gateway.audit_trail.segment_files import segment_files
from tests.gateway.audit_trail.keeper import Keeper


def _numbers(keeper: Keeper, segments: SegmentDigests) -> list[int | None]:
    found = [segments.of(file) for file in segment_files(keeper.folder)]
    return [None if digest is None else digest.number for digest in found]


def test_each_segment_has_its_digest_once_it_was_read(keeper: Keeper) -> None:
    segments = SegmentDigests(keeper.trail.digests)
    assert _numbers(keeper, segments) == [None] * 4
    segments.read()
    assert _numbers(keeper, segments) == [1, 2, 3, 4]


def test_a_damaged_digest_hides_its_own_segment_alone(keeper: Keeper, folder: Path) -> None:
    (folder / "digests" / "000000000002.digest").write_bytes(b"{}")
    segments = SegmentDigests(keeper.trail.digests)
    segments.read()
    assert _numbers(keeper, segments) == [1, None, 3, 4]


def test_what_was_removed_is_known_to_who_reads_later(keeper: Keeper) -> None:
    segments = SegmentDigests(keeper.trail.digests)
    segments.read()
    keeper.remove(timedelta(hours=2, minutes=30) / timedelta(days=1))
    assert segments.removed_through == 0
    segments.read()
    assert segments.removed_through == 2
