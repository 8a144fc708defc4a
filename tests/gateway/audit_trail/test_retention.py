"""What is old is compressed without loss, and removed when nothing is lost by it and a digest says so."""

import gzip
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import zstandard

from gateway.audit_trail.retention import Retention
from gateway.audit_trail.segment import Trail
from gateway.audit_trail.segment_files import SegmentFile
from mq_adapters.reasons import StoreError
from spark_audit.digest import parse_digest
from spark_audit.verify import Verdict, verify

HOUR = timedelta(hours=1)


class Keeper:
    """A trail of four closed segments, an hour apart, and what tends it."""

    def __init__(self, folder: Path, clock, batches) -> None:
        self.folder = folder
        self.safe = {1, 2, 3, 4}
        self._clock = clock
        self.trail = Trail.open(folder, now=clock)
        for _ in range(4):
            self.trail.append(*batches())
            self.trail.close_segment()
            clock.now += HOUR

    def retention(self, *, compress_after_hours: float = -1, keep_days: float = 0, **options: Any) -> Retention:
        return Retention(
            self.folder,
            self.trail.digests,
            compress_after_hours=compress_after_hours,
            keep_days=keep_days,
            may_remove=self.safe.__contains__,
            now_us=lambda: int(self._clock.now.timestamp() * 1_000_000),
            **options,
        )

    def endings(self) -> list[str]:
        """What each segment's file ends with, by number."""
        return [
            f"{int(path.name[:12])}{''.join(path.suffixes)}" for path in sorted(self.folder.iterdir()) if path.is_file()
        ]

    def kinds(self) -> list[str]:
        return [parse_digest(path.read_bytes()).kind for path in sorted((self.folder / "digests").iterdir())]


@pytest.fixture
def keeper(folder, clock, batches):
    keeper = Keeper(folder, clock, batches)
    yield keeper
    keeper.trail.close()


def _run(retention: Retention) -> None:
    while retention.step():
        continue


def test_what_is_older_than_its_age_is_compressed_without_loss(keeper, folder) -> None:
    plain = {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}
    _run(keeper.retention(compress_after_hours=3))
    assert keeper.endings() == ["1.jsonl.zst", "2.jsonl.zst", "3.jsonl", "4.jsonl"]
    for path in folder.glob("*.zst"):
        assert zstandard.decompress(path.read_bytes()) == plain[path.stem]
    assert verify(folder).verdict is Verdict.INTACT
    assert verify(folder).records == 8


def test_what_has_its_digest_is_compressed_at_once_whatever_the_clock_says(keeper, clock) -> None:
    clock.now -= timedelta(days=3_000)
    retention = keeper.retention(compress_after_hours=0, is_time_sure=lambda: False)
    assert retention.step()
    assert keeper.endings() == ["1.jsonl.zst", "2.jsonl", "3.jsonl", "4.jsonl"]
    _run(retention)
    assert keeper.endings() == [f"{number}.jsonl.zst" for number in range(1, 5)]


def test_because_of_its_age_nothing_is_compressed_while_the_clock_is_in_doubt(keeper) -> None:
    _run(keeper.retention(compress_after_hours=1, is_time_sure=lambda: False))
    assert keeper.endings() == ["1.jsonl", "2.jsonl", "3.jsonl", "4.jsonl"]


def test_a_segment_without_a_digest_is_not_compressed(keeper, folder) -> None:
    (folder / "digests" / "000000000004.digest").unlink()
    _run(keeper.retention(compress_after_hours=0))
    assert keeper.endings() == ["1.jsonl.zst", "2.jsonl.zst", "3.jsonl.zst", "4.jsonl"]


def test_the_same_lines_give_the_same_compressed_bytes(keeper, folder) -> None:
    (first, *_) = sorted(folder.glob("*.jsonl"))
    data = first.read_bytes()
    _run(keeper.retention(compress_after_hours=1))
    compressed = first.with_name(first.name + ".zst").read_bytes()
    parameters = zstandard.get_frame_parameters(compressed)
    assert (parameters.content_size, parameters.has_checksum) == (len(data), True)
    first.write_bytes(data)
    first.with_name(first.name + ".zst").unlink()
    _run(keeper.retention(compress_after_hours=1))
    assert first.with_name(first.name + ".zst").read_bytes() == compressed


def test_where_a_crash_left_both_files_the_compressed_one_is_checked(keeper, folder) -> None:
    (first, second, *_) = sorted(folder.glob("*.jsonl"))
    first.with_name(first.name + ".zst").write_bytes(zstandard.compress(first.read_bytes()))
    second.with_name(second.name + ".zst").write_bytes(zstandard.compress(second.read_bytes()[:-40]))
    plain = second.read_bytes()
    _run(keeper.retention(compress_after_hours=3))
    assert keeper.endings() == ["1.jsonl.zst", "2.jsonl.zst", "3.jsonl", "4.jsonl"]
    assert zstandard.decompress(second.with_name(second.name + ".zst").read_bytes()) == plain


def test_a_segment_that_grows_while_it_is_compressed_stays(keeper, folder, monkeypatch) -> None:
    chunks = SegmentFile.chunks
    monkeypatch.setattr(SegmentFile, "chunks", lambda file: (*chunks(file), b"more"))
    with pytest.raises(StoreError, match="compress 000000000001-"):
        keeper.retention(compress_after_hours=3).step()
    monkeypatch.undo()
    assert keeper.endings() == ["1.jsonl", "1.jsonl.zst.part", "2.jsonl", "3.jsonl", "4.jsonl"]
    _run(keeper.retention(compress_after_hours=3))
    assert keeper.endings() == ["1.jsonl.zst", "2.jsonl.zst", "3.jsonl", "4.jsonl"]


def test_what_an_earlier_version_compressed_stays_and_is_removed_in_its_time(keeper, folder, clock) -> None:
    (first, *_) = sorted(folder.glob("*.jsonl"))
    first.with_name(first.name + ".gz").write_bytes(gzip.compress(first.read_bytes()))
    first.unlink()
    _run(keeper.retention(compress_after_hours=3))
    assert keeper.endings() == ["1.jsonl.gz", "2.jsonl.zst", "3.jsonl", "4.jsonl"]
    assert verify(folder).verdict is Verdict.INTACT
    clock.now += timedelta(days=60)
    _run(keeper.retention(keep_days=40))
    assert keeper.endings() == ["4.jsonl"]


def test_a_changed_segment_is_neither_compressed_nor_removed(keeper, folder) -> None:
    (first, *_) = sorted(folder.glob("*.jsonl"))
    changed = first.read_bytes().replace(b"session", b"sessiom")
    first.write_bytes(changed)
    with pytest.raises(StoreError, match="not those of its digest"):
        keeper.retention(compress_after_hours=3).step()
    assert first.read_bytes() == changed
    assert not list(folder.glob("*.part"))


def test_what_is_left_of_a_compression_is_swept_away(keeper, folder) -> None:
    (folder / "000000000001-20261120T12.jsonl.gz.part").write_bytes(b"half of an earlier version")
    (folder / "000000000001-20261120T12.jsonl.zst.part").write_bytes(b"half")
    keeper.retention()
    assert not list(folder.glob("*.part"))


def test_segments_are_removed_after_their_time_and_a_digest_says_so(keeper, folder) -> None:
    _run(keeper.retention(keep_days=2.5 / 24))
    assert keeper.endings() == ["3.jsonl", "4.jsonl"]
    assert keeper.kinds() == ["segment"] * 4 + ["retention"]
    verification = verify(folder)
    assert (verification.verdict, verification.segments_removed) == (Verdict.INTACT, 2)


def test_what_is_not_safe_elsewhere_stays_with_all_behind_it(keeper, clock) -> None:
    clock.now += timedelta(days=30)
    keeper.safe = {1, 3, 4}
    _run(keeper.retention(keep_days=1))
    assert keeper.endings() == ["2.jsonl", "3.jsonl", "4.jsonl"]


def test_the_newest_segment_always_stays(keeper, folder, clock) -> None:
    clock.now += timedelta(days=30)
    _run(keeper.retention(keep_days=1))
    assert keeper.endings() == ["4.jsonl"]
    assert verify(folder).verdict is Verdict.INTACT


def test_compressed_segments_are_removed_too(keeper, clock) -> None:
    clock.now += timedelta(days=1)
    _run(keeper.retention(compress_after_hours=1, keep_days=40))
    clock.now += timedelta(days=60)
    _run(keeper.retention(compress_after_hours=1, keep_days=40))
    assert keeper.endings() == ["4.jsonl.zst"]


def test_a_removal_that_a_crash_interrupted_is_ended_without_another_digest(keeper, folder, monkeypatch) -> None:
    with monkeypatch.context() as crash:
        crash.setattr(Path, "unlink", _lost)
        with pytest.raises(OSError, match="went down"):
            keeper.retention(keep_days=2.5 / 24).step()
    assert len(list(folder.glob("*.jsonl"))) == 4
    _run(keeper.retention(keep_days=30))
    assert keeper.endings() == ["3.jsonl", "4.jsonl"]
    assert keeper.kinds().count("retention") == 1


def _lost(_path: Path, *, missing_ok: bool = False) -> None:
    raise OSError(5, "the machine went down")


def test_nothing_is_removed_unless_it_is_asked_for(keeper, clock) -> None:
    clock.now += timedelta(days=10_000)
    _run(keeper.retention())
    assert keeper.endings() == ["1.jsonl", "2.jsonl", "3.jsonl", "4.jsonl"]
