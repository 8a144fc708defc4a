"""The files of a trail: which are read, and how far."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from spark_audit.audit_input import input_of_trails
from spark_audit.controls import digests
from spark_audit.engines.duck import DuckEngine
from spark_audit.facts.pieces import SegmentPiece, pieces_of
from spark_audit.read import trail_files
from tests.spark_audit.conftest import Facts

NEXT_OPEN = "000000000002-20261120T08.open"


def test_the_whole_lines_of_an_open_segment_are_read(trail, read) -> None:
    trail.add("started")
    trail.write()
    trail.lines.clear()
    trail.add("session")
    trail.lines.append(b'{"version":1,"sequ')
    rows = read(trail.write(NEXT_OPEN)).engine.rows("SELECT kind FROM records ORDER BY sequence")
    assert [row["kind"] for row in rows] == ["started", "session"]


def test_a_line_that_is_longer_than_a_block_is_cut_off_whole(trail, tmp_path: Path) -> None:
    trail.add("started")
    trail.lines.append(b"x" * 2_500_000)
    (copy,) = trail_files(trail.write(NEXT_OPEN), tmp_path).segments
    assert copy.read_bytes() == trail.lines[0]
    trail.lines.pop(0)
    (copy,) = trail_files(trail.write(NEXT_OPEN), tmp_path).segments
    assert copy.read_bytes() == b""


def test_a_segment_that_is_closed_while_it_is_read_is_read_closed(trail, tmp_path: Path, monkeypatch) -> None:
    trail.add("started")
    folder = trail.write("000000000001-20261120T07.open")

    def closed_meanwhile(source: Path, _copy: Path) -> None:
        source.rename(source.with_suffix(".jsonl"))
        raise FileNotFoundError(source)

    monkeypatch.setattr(shutil, "copyfile", closed_meanwhile)
    files = trail_files(folder, tmp_path)
    assert [path.name for path in files.segments] == ["000000000001-20261120T07.jsonl"]
    assert files.size_bytes == len(trail.lines[0])


def told(piece: SegmentPiece) -> list[tuple[object, ...]]:
    """What is known of each line of a piece."""
    return [
        (line.trail, line.segment, line.block, line.place, line.record, line.actual_hash, line.text, line.size_bytes)
        for line in piece.lines()
    ]


@pytest.mark.parametrize("ending", [".jsonl.zst", ".jsonl.gz"])
def test_a_segment_that_is_compressed_while_an_audit_reads_is_read_in_that_form(
    signed, tmp_path: Path, ending: str
) -> None:
    signed.records(50), signed.close()
    files = trail_files(signed.folder, tmp_path)
    plain = pieces_of("", files.segments, piece_bytes=1_000)
    lines = [told(piece) for piece in plain]
    assert len(plain) > 10
    assert sum(map(len, lines)) == 50
    signed.compress(1, ending=ending)
    assert [told(piece) for piece in plain] == lines
    (whole,) = pieces_of("", files.segments, piece_bytes=1_000)
    records = [line.record for piece in plain for line in piece.lines()]
    assert [line.record for line in whole.lines()] == records
    assert 0 < files.size_bytes < files.text_bytes


def test_an_open_segment_that_is_closed_and_compressed_meanwhile_is_read(signed, tmp_path: Path, monkeypatch) -> None:
    signed.records(2)
    opened = signed.write(".open")

    def compressed_meanwhile(source: Path, _copy: Path) -> None:
        source.rename(source.with_suffix(".jsonl"))
        signed.compress(1)
        raise FileNotFoundError(source)

    monkeypatch.setattr(shutil, "copyfile", compressed_meanwhile)
    (piece,) = pieces_of("", trail_files(opened.parent, tmp_path).segments)
    assert len(list(piece.lines())) == 2


def test_what_is_signed_while_a_trail_is_read_is_not_held_against_it(signed, tmp_path: Path) -> None:
    signed.records(1), signed.close()
    files = trail_files(signed.folder, tmp_path)
    signed.records(1), signed.close()
    with closing(DuckEngine(tmp_path, "1g")) as engine:
        assert Facts(engine, input_of_trails([files])).found(digests.CONTROL) == []


def test_other_files_are_not_read_and_torn_ones_are_named(trail, tmp_path: Path) -> None:
    trail.add("started")
    folder = trail.write()
    (folder / "notes.jsonl").write_text("{}\n")
    (folder / "000000000001-20261120T07-9.torn").write_text("{")
    files = trail_files(folder, tmp_path)
    assert [path.name for path in files.segments] == ["000000000001-20261120T07.jsonl"]
    assert files.torn == ("000000000001-20261120T07-9.torn",)


def test_a_folder_whose_name_is_a_pattern_is_read(trail, tmp_path: Path, read) -> None:
    trail.add("started")
    trail.folder = tmp_path / "[a]{b,c}*?" / "trail"
    assert len(read(trail.write()).engine.rows("SELECT sequence FROM records")) == 1


def test_the_first_segments_are_as_many_as_a_bound_allows_and_at_least_one(signed) -> None:
    for _ in range(4):
        signed.records(2), signed.close()
    signed.compress(2)
    files = trail_files(signed.folder, None)
    sizes = [path.stat().st_size for path in files.segments]
    of_text = [sizes[0], 10 * sizes[1], sizes[2], sizes[3]]  # about what a compressed one holds
    assert files.text_bytes == sum(of_text)
    for bound, count in ((0, 1), (sum(of_text[:2]) - 1, 1), (sum(of_text[:2]), 2), (sum(of_text), 4)):
        first = files.first(bound)
        assert first.segments == files.segments[:count]
        assert first.passed_over == frozenset(signed.segments[count:])


def test_segments_behind_one_and_up_to_another_are_read_and_no_open_one_without_a_place_for_it(signed) -> None:
    for _ in range(4):
        signed.records(1), signed.close()
    signed.records(1), signed.write(".open")
    behind, up_to = signed.segments[0], signed.segments[2]
    files = trail_files(signed.folder, None, behind=behind, up_to=up_to)
    assert [path.name for path in files.segments] == [f"{stem}.jsonl" for stem in signed.segments[1:3]]
    assert files.passed_over == {signed.segments[0], signed.segments[3]}
