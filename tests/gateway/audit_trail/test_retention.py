"""What is old is removed when nothing is lost by it and a digest says so."""

import gzip
from datetime import timedelta
from pathlib import Path

import pytest

from spark_audit.verify import Verdict, verify


def test_what_an_earlier_version_compressed_stays_and_is_removed_in_its_time(keeper, folder, clock) -> None:
    (first, *_) = sorted(folder.glob("*.jsonl"))
    first.with_name(first.name + ".gz").write_bytes(gzip.compress(first.read_bytes()))
    first.unlink()
    keeper.compress(3)
    assert keeper.endings() == ["1.jsonl.gz", "2.jsonl.zst", "3.jsonl", "4.jsonl"]
    assert verify(folder).verdict is Verdict.INTACT
    clock.now += timedelta(days=60)
    keeper.remove(40)
    assert keeper.endings() == ["4.jsonl"]


def test_segments_are_removed_after_their_time_and_a_digest_says_so(keeper, folder) -> None:
    keeper.remove(2.5 / 24)
    assert keeper.endings() == ["3.jsonl", "4.jsonl"]
    assert keeper.kinds() == ["segment"] * 4 + ["retention"]
    verification = verify(folder)
    assert (verification.verdict, verification.segments_removed) == (Verdict.INTACT, 2)


def test_what_is_not_safe_elsewhere_stays_with_all_behind_it(keeper, clock) -> None:
    clock.now += timedelta(days=30)
    keeper.safe = {1, 3, 4}
    keeper.remove(1)
    assert keeper.endings() == ["2.jsonl", "3.jsonl", "4.jsonl"]


def test_the_newest_segment_always_stays(keeper, folder, clock) -> None:
    clock.now += timedelta(days=30)
    keeper.remove(1)
    assert keeper.endings() == ["4.jsonl"]
    assert verify(folder).verdict is Verdict.INTACT


def test_compressed_segments_are_removed_too(keeper, clock) -> None:
    clock.now += timedelta(days=1)
    keeper.compress(1)
    keeper.remove(40)
    clock.now += timedelta(days=60)
    keeper.compress(1)
    keeper.remove(40)
    assert keeper.endings() == ["4.jsonl.zst"]


def test_a_removal_that_a_crash_interrupted_is_ended_without_another_digest(keeper, folder, monkeypatch) -> None:
    with monkeypatch.context() as crash:
        crash.setattr(Path, "unlink", _lost)
        with pytest.raises(OSError, match="went down"):
            keeper.retention(2.5 / 24).step()
    assert len(list(folder.glob("*.jsonl"))) == 4
    keeper.remove(30)
    assert keeper.endings() == ["3.jsonl", "4.jsonl"]
    assert keeper.kinds().count("retention") == 1


def _lost(_path: Path, *, missing_ok: bool = False) -> None:
    raise OSError(5, "the machine went down")


def test_nothing_is_removed_unless_it_is_asked_for(keeper, clock) -> None:
    clock.now += timedelta(days=10_000)
    keeper.remove(0)
    assert keeper.endings() == ["1.jsonl", "2.jsonl", "3.jsonl", "4.jsonl"]
