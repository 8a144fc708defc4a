"""Segments grow, are closed by a rename at their size, age and hour, and are continued after a crash."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.audit_trail import segment
from gateway.audit_trail.segment import SegmentLimits, Trail, TrailGone
from spark_audit.verify import Finding, Verdict, verify
from tests.gateway.audit_trail.conftest import GATEWAY, NOON


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def test_an_open_segment_is_named_by_number_and_hour_and_closed_by_a_rename(folder, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.sync()
        assert _names(folder) == ["000000000001-20261120T12.open"]
        trail.close_segment()
    assert _names(folder) == ["000000000001-20261120T12.jsonl"]
    assert verify(folder).verdict is Verdict.INTACT


def test_lines_are_synced_in_a_file_whose_name_the_disk_has(folder, clock, batches, monkeypatch) -> None:
    """Else a power loss leaves lines in a file that nobody finds."""
    on_disk: list[str] = []  # what the disk has of the folder
    sync = os.fsync

    def recorded(descriptor: int) -> None:
        sync(descriptor)
        if os.path.samestat(os.fstat(descriptor), folder.stat()):
            on_disk[:] = _names(folder)

    with Trail.open(folder, now=clock) as trail:
        monkeypatch.setattr(segment.os, "fsync", recorded)
        for later in (timedelta(0), timedelta(hours=1)):
            clock.now = NOON + later
            trail.append(*batches())
            trail.sync()
            assert on_disk == _names(folder)
        assert on_disk == ["000000000001-20261120T12.jsonl", "000000000002-20261120T13.open"]


@pytest.mark.parametrize(
    ("later", "names"),
    [
        (timedelta(minutes=9, seconds=59), ["000000000001-20261120T12.open"]),
        (timedelta(minutes=10), ["000000000001-20261120T12.jsonl", "000000000002-20261120T13.open"]),
    ],
    ids=["within the hour", "in the next hour"],
)
def test_a_segment_ends_with_the_utc_hour(folder, clock, batches, later: timedelta, names: list[str]) -> None:
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        clock.now = NOON + later
        trail.append(*batches())
    assert _names(folder) == names
    assert verify(folder).records == 4


def test_a_segment_ends_after_its_age_without_any_traffic(folder, clock, batches) -> None:
    clock.now = NOON.replace(minute=0)
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        clock.now += timedelta(minutes=14, seconds=59)
        trail.tend()
        assert _names(folder) == ["000000000001-20261120T12.open"]
        clock.now += timedelta(seconds=1)
        trail.tend()
    assert _names(folder) == ["000000000001-20261120T12.jsonl"]


def test_a_segment_ends_before_the_batch_that_would_be_too_much_and_never_within_one(folder, clock, batches) -> None:
    first, second = batches(), batches()
    limits = SegmentLimits(size_bytes=len(first[0]) + 10)
    with Trail.open(folder, limits=limits, now=clock) as trail:
        trail.append(*first)
        trail.append(*second)
    assert (folder / "000000000001-20261120T12.jsonl").read_bytes() == first[0]
    assert (folder / "000000000002-20261120T12.open").read_bytes() == second[0]


def test_the_next_life_continues_an_open_segment(folder, clock, batches) -> None:
    first = batches()
    with Trail.open(folder, now=clock) as trail:
        trail.append(*first)
    with Trail.open(folder, now=clock) as trail:
        assert trail.head == first[1]
        trail.append(*batches())
    assert _names(folder) == ["000000000001-20261120T12.open"]
    assert verify(folder).records == 4


@pytest.mark.parametrize("torn", [b"", b'{"version":1,'], ids=["empty", "torn"])
def test_a_segment_that_a_crash_left_without_a_line_leaves_no_gap(folder, clock, batches, torn: bytes) -> None:
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
    (folder / "000000000002-20261120T12.open").write_bytes(torn)
    clock.now += timedelta(hours=1)
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
    segments = [name for name in _names(folder) if name.endswith(".jsonl")]
    assert segments == ["000000000001-20261120T12.jsonl", "000000000002-20261120T13.jsonl"]
    assert verify(folder).verdict is Verdict.INTACT


def test_a_segment_of_an_hour_ago_is_closed_by_the_next_life(folder, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
    clock.now = NOON + timedelta(hours=1)
    with Trail.open(folder, now=clock) as trail:
        assert trail.head != "0" * 64
    assert _names(folder) == ["000000000001-20261120T12.jsonl"]


@pytest.mark.parametrize("kept", range(0, 900, 37))
def test_cut_anywhere_whole_lines_are_kept_and_the_rest_is_set_aside(folder, clock, batches, kept: int) -> None:
    lines, _, _ = batches()
    with Trail.open(folder, now=clock) as trail:
        trail.append(lines, "", GATEWAY)
    path = folder / "000000000001-20261120T12.open"
    path.write_bytes(lines[:kept])
    whole = lines[: lines.rfind(b"\n", 0, kept) + 1]
    with Trail.open(folder, now=clock):
        pass
    assert (path.read_bytes() if path.exists() else b"") == whole
    torn = [file.read_bytes() for file in folder.glob("*.torn")]
    assert torn == ([lines[:kept][len(whole) :]] if len(lines[:kept]) > len(whole) else [])


def test_bytes_that_the_disk_lost_in_the_middle_end_what_is_kept(folder, clock, batches) -> None:
    lines, _, _ = batches()
    with Trail.open(folder, now=clock) as trail:
        trail.append(lines, "", GATEWAY)
    path = folder / "000000000001-20261120T12.open"
    end = lines.index(b"\n") + 1
    path.write_bytes(lines[:end] + bytes(64) + lines[end + 64 :])
    with Trail.open(folder, now=clock):
        pass
    assert path.read_bytes() == lines[:end]


def test_where_a_gateways_records_end_is_found_over_segments(folder, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        for _ in range(3):
            trail.append(*batches())
            trail.close_segment()
        end = trail.end_of("a" * 24)
        assert (end.sequence, end.batch, end.records_of_batch) == (6, 3, 2)
        nothing = trail.end_of("b" * 24)
        assert (nothing.sequence, nothing.batch, nothing.records_of_batch) == (0, 0, 0)


@pytest.mark.parametrize(
    "line",
    [b'{"gateway":"%s", damaged', b'{"gateway":"%s","batch":1}', b'{"gateway":"%s","batch":[]}'],
    ids=["no JSON", "without a sequence", "a batch that is no number"],
)
def test_a_damaged_line_in_a_closed_segment_does_not_stop_the_trail(folder, clock, line: bytes) -> None:
    whole = b'{"gateway":"%s","batch":7,"sequence":12}\n' % (b"a" * 24)
    (folder / "000000000001-20261120T12.jsonl").write_bytes(whole + line % (b"a" * 24) + b"\n")
    with Trail.open(folder, now=clock) as trail:
        end = trail.end_of("a" * 24)
    assert (end.sequence, end.batch, end.records_of_batch) == (12, 7, 1)


def test_a_foreign_file_in_the_folder_is_left_alone(folder, clock, batches) -> None:
    (folder / "notes.jsonl").write_text("not ours")
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
    assert (folder / "notes.jsonl").read_text() == "not ours"


@pytest.mark.parametrize("lost", ["segment", "folder"])
def test_lines_in_a_segment_that_nobody_finds_are_not_called_safe(folder, clock, batches, lost: str) -> None:
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.sync()
        trail.tend()
        aside = folder.with_name("aside")
        (next(folder.glob("*.open")) if lost == "segment" else folder).rename(aside)
        with pytest.raises(TrailGone, match="No such file"):
            trail.sync()
        if lost == "folder":
            folder.mkdir()
            with pytest.raises(TrailGone, match="is not the file that is open"):
                trail.tend()


def _closed_without_digest(folder: Path, clock, batches) -> Path:
    """Two segments, closed as a version before there were digests did; the path of the first."""
    with Trail.open(folder, now=clock) as trail:
        for _ in range(2):
            trail.append(*batches())
            trail.close_segment()
    for digest in (folder / "digests").iterdir():
        digest.unlink()
    return folder / "000000000001-20261120T12.jsonl"


def test_a_closed_segment_without_a_digest_is_signed_where_every_line_holds(folder, clock, batches) -> None:
    _closed_without_digest(folder, clock, batches)
    with Trail.open(folder, now=clock) as trail:
        assert trail.digests.last_number == 2
    assert verify(folder).verdict is Verdict.INTACT


def test_a_closed_segment_that_was_changed_is_never_signed(folder, clock, batches, caplog) -> None:
    path = _closed_without_digest(folder, clock, batches)
    path.write_bytes(path.read_bytes().replace(b'"kind":"', b'"kind":"x', 1))
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
    assert "segment not signed file=000000000001-20261120T12.jsonl line=1" in caplog.text
    result = verify(folder)
    assert result.verdict is Verdict.VIOLATED
    assert {each.finding for each in result.problems} >= {Finding.CHANGED_LINE, Finding.MISSING_DIGEST}
    assert "000000000001" not in "".join(path.read_text() for path in (folder / "digests").glob("*1.digest"))
