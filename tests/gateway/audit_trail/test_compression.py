"""What has its digest is compressed without loss, at once or later."""

from datetime import timedelta

import pytest
import zstandard

from gateway.audit_trail.segment_files import SegmentFile
from mq_adapters.reasons import StoreError
from spark_audit.verify import Verdict, verify


def test_what_is_older_than_its_age_is_compressed_without_loss(keeper, folder) -> None:
    plain = {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}
    keeper.compress(3)
    assert keeper.endings() == ["1.jsonl.zst", "2.jsonl.zst", "3.jsonl", "4.jsonl"]
    for path in folder.glob("*.zst"):
        assert zstandard.decompress(path.read_bytes()) == plain[path.stem]
    assert verify(folder).verdict is Verdict.INTACT
    assert verify(folder).records == 8


def test_what_has_its_digest_is_compressed_at_once_whatever_the_clock_says(keeper, clock) -> None:
    clock.now -= timedelta(days=3_000)
    compression = keeper.compression(0, is_time_sure=lambda: False)
    assert compression.step()
    assert keeper.endings() == ["1.jsonl.zst", "2.jsonl", "3.jsonl", "4.jsonl"]
    while compression.step():
        continue
    assert keeper.endings() == [f"{number}.jsonl.zst" for number in range(1, 5)]


def test_because_of_its_age_nothing_is_compressed_while_the_clock_is_in_doubt(keeper) -> None:
    keeper.compress(1, is_time_sure=lambda: False)
    assert keeper.endings() == ["1.jsonl", "2.jsonl", "3.jsonl", "4.jsonl"]


def test_a_segment_without_a_digest_is_not_compressed(keeper, folder) -> None:
    (folder / "digests" / "000000000004.digest").unlink()
    keeper.compress(0)
    assert keeper.endings() == ["1.jsonl.zst", "2.jsonl.zst", "3.jsonl.zst", "4.jsonl"]


def test_the_same_lines_give_the_same_compressed_bytes(keeper, folder) -> None:
    (first, *_) = sorted(folder.glob("*.jsonl"))
    data = first.read_bytes()
    keeper.compress(1)
    compressed = first.with_name(first.name + ".zst").read_bytes()
    parameters = zstandard.get_frame_parameters(compressed)
    assert (parameters.content_size, parameters.has_checksum) == (len(data), True)
    first.write_bytes(data)
    first.with_name(first.name + ".zst").unlink()
    keeper.compress(1)
    assert first.with_name(first.name + ".zst").read_bytes() == compressed


def test_where_a_crash_left_both_files_the_compressed_one_is_checked(keeper, folder) -> None:
    (first, second, *_) = sorted(folder.glob("*.jsonl"))
    first.with_name(first.name + ".zst").write_bytes(zstandard.compress(first.read_bytes()))
    second.with_name(second.name + ".zst").write_bytes(zstandard.compress(second.read_bytes()[:-40]))
    plain = second.read_bytes()
    keeper.compress(3)
    assert keeper.endings() == ["1.jsonl.zst", "2.jsonl.zst", "3.jsonl", "4.jsonl"]
    assert zstandard.decompress(second.with_name(second.name + ".zst").read_bytes()) == plain


def test_a_segment_that_grows_while_it_is_compressed_stays(keeper, folder, monkeypatch) -> None:
    chunks = SegmentFile.chunks
    monkeypatch.setattr(SegmentFile, "chunks", lambda file: (*chunks(file), b"more"))
    with pytest.raises(StoreError, match="compress 000000000001-"):
        keeper.compression(3).step()
    monkeypatch.undo()
    assert keeper.endings() == ["1.jsonl", "1.jsonl.zst.part", "2.jsonl", "3.jsonl", "4.jsonl"]
    keeper.compress(3)
    assert keeper.endings() == ["1.jsonl.zst", "2.jsonl.zst", "3.jsonl", "4.jsonl"]


def test_a_changed_segment_is_not_compressed(keeper, folder) -> None:
    (first, *_) = sorted(folder.glob("*.jsonl"))
    changed = first.read_bytes().replace(b"session", b"sessiom")
    first.write_bytes(changed)
    with pytest.raises(StoreError, match="not those of its digest"):
        keeper.compression(3).step()
    assert first.read_bytes() == changed
    assert not list(folder.glob("*.part"))


def test_what_is_left_of_a_compression_is_swept_away(keeper, folder) -> None:
    (folder / "000000000001-20261120T12.jsonl.gz.part").write_bytes(b"half of an earlier version")
    (folder / "000000000001-20261120T12.jsonl.zst.part").write_bytes(b"half")
    keeper.compression(0)
    assert not list(folder.glob("*.part"))
