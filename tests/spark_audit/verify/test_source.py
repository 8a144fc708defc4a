"""What a segment's file may hold: long lines, damaged and hostile compression, lines by the million that are none."""

import gzip
from pathlib import Path
from typing import BinaryIO

import pytest

from spark_audit.verify import Verdict, source, verify
from spark_audit.verify.source import TrailFolder, each_segment

FIRST = "000000000001-20261120T07"


@pytest.fixture
def compressed(signed):
    """Two closed segments; the first is compressed."""
    for _ in range(2):
        signed.records(3)
        signed.close()
    return signed.compress(1, ending=".jsonl.gz")


DAMAGES = {
    "cut": lambda data: data[:-20],
    "cut in its header": lambda data: data[:5],
    "empty": lambda _data: b"",
    "a bit in the middle": lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:],
    "another checksum": lambda data: data[:-8] + bytes(4) + data[-4:],
    "no gzip": lambda data: gzip.decompress(data),
    "something behind it": lambda data: data + b"more",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_compressed_segment_is_a_violation(signed, compressed, damage: str) -> None:
    compressed.write_bytes(DAMAGES[damage](compressed.read_bytes()))
    result = verify(signed.folder)
    assert result.verdict is Verdict.VIOLATED
    assert {problem.segment for problem in result.problems} == {compressed.name}


def test_a_compressed_segment_in_several_members_is_read(signed, compressed) -> None:
    data = gzip.decompress(compressed.read_bytes())
    compressed.write_bytes(gzip.compress(data[:100]) + gzip.compress(data[100:]))
    assert verify(signed.folder).verdict is Verdict.INTACT


def test_lines_longer_than_a_block_are_read(signed, monkeypatch) -> None:
    monkeypatch.setattr(source, "BLOCK_BYTES", 64)
    signed.records(3, topic="t" * 1000)
    signed.close()
    assert verify(signed.folder).verdict is Verdict.INTACT


def test_a_line_without_an_end_takes_bounded_memory_and_is_not_evaluable(signed, compressed, monkeypatch) -> None:
    monkeypatch.setattr(source, "LONGEST_LINE_BYTES", 100_000)
    monkeypatch.setattr(source, "BLOCK_BYTES", 10_000)
    compressed.write_bytes(gzip.compress(b"a" * 10_000_000))
    assert verify(signed.folder).verdict is Verdict.NOT_EVALUABLE


def test_a_bomb_of_lines_is_not_read_to_its_end(signed, compressed) -> None:
    compressed.write_bytes(gzip.compress(b"\n" * 50_000_000))
    result = verify(signed.folder)
    assert (result.verdict, result.problem_count) == (Verdict.VIOLATED, 1_001)


def test_a_segment_closed_or_compressed_while_the_trail_is_read_is_found_under_its_new_name(signed) -> None:
    signed.records(2)
    first = signed.close()
    signed.records(2)
    second = signed.write(".open")
    folder = TrailFolder(signed.folder)
    signed.compress(1)
    second.rename(second.with_suffix(".jsonl"))
    names = [entry.name for entry in folder.entries() if isinstance(entry, source.SegmentFile)]
    assert names == [f"{FIRST}.jsonl.zst", second.with_suffix(".jsonl").name]
    assert not first.exists()


def test_a_segment_that_is_compressed_when_it_is_about_to_be_opened_is_looked_for_again(signed, monkeypatch) -> None:
    signed.records(2)
    first = signed.close()
    opened = source.open_segment

    def compressed_meanwhile(path: Path) -> tuple[BinaryIO, str]:
        if first.exists():
            signed.compress(1)
        return opened(path)

    monkeypatch.setattr(source, "open_segment", compressed_meanwhile)
    result = verify(signed.folder)
    assert (result.verdict, result.records) == (Verdict.INTACT, 2)


def test_a_segment_whose_plain_file_goes_while_both_are_there_is_read_once(signed) -> None:
    signed.records(2)
    plain = signed.close()
    data = plain.read_bytes()
    compressed = signed.compress(1)
    plain.write_bytes(data)
    folder = TrailFolder(signed.folder)
    plain.unlink()
    found = [entry.name for entry in folder.entries() if isinstance(entry, source.SegmentFile)]
    assert (found, folder.gone) == ([compressed.name], [])


def test_a_segment_that_is_there_in_two_forms_is_searched_once(signed) -> None:
    signed.records(2)
    plain = signed.close()
    data = plain.read_bytes()
    signed.compress(1)
    plain.write_bytes(data)
    assert [segment.name for segment in each_segment(TrailFolder(signed.folder))] == [plain.name]
