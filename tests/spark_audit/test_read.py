"""The trail as a DataFrame: every line once; what is no record is set aside, and nothing makes it fail."""

import shutil
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from spark_audit.audit_input import input_of_trails
from spark_audit.controls import digests
from spark_audit.read import read_lines, trail_files
from spark_audit.record import FIELDS

NEXT_OPEN = "000000000002-20261120T08.open"


def test_every_field_of_the_definition_is_a_column_with_its_value(trail, read) -> None:
    values = {"long": 7, "string": 'ä " \\ \u2028', "boolean": True, "array<array<long>>": [[1, 2]]}
    values |= {"array<array<string>>": [["usr", "no place"]], "array<string>": ["a/#", "b"]}
    own = {"version", "sequence", "batch", "gateway", "kind", "at_us", "prev", "hash"}
    trail.add("put", **{field.name: values[field.type] for field in FIELDS if field.name not in own})
    (row,) = read(trail.write()).collect()
    assert row["is_record"]
    assert row["hash"] == row["actual_hash"] == trail.head
    assert {field.name: row[field.name] for field in FIELDS if field.name not in own} == {
        field.name: values[field.type] for field in FIELDS if field.name not in own
    }


def test_lines_that_are_no_records_are_set_aside(trail, read) -> None:
    trail.add("started")
    for foreign in (
        b"",
        b"text",
        b"[1]",
        b'{"temperature":21}',
        b'{"version":"one","sequence":[]}',
        b"\xff\xfe\x00",
        b"{" * 300,
    ):
        trail.lines.append(foreign + b"\n")
    rows = read(trail.write()).collect()
    assert [row["is_record"] for row in rows] == [True] + [False] * 7
    assert max(len(row["line"]) for row in rows[1:]) == 200


def test_the_whole_lines_of_an_open_segment_are_read(trail, read) -> None:
    trail.add("started")
    trail.write()
    trail.lines.clear()
    trail.add("session")
    trail.lines.append(b'{"version":1,"sequ')
    folder = trail.write(NEXT_OPEN)
    assert [row["kind"] for row in read(folder).orderBy("sequence").collect()] == ["started", "session"]


def test_small_segments_are_read_by_one_task(spark: SparkSession, trail, tmp_path: Path) -> None:
    for number in range(1, 7):
        trail.add("started")
        trail.write(f"{number:012d}-20261120T{6 + number:02d}.jsonl")
        trail.lines.clear()
    lines = read_lines(spark, trail_files(trail.folder, tmp_path))
    assert lines.select(sf.spark_partition_id()).distinct().count() == 1


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


def test_what_is_signed_while_a_trail_is_read_is_not_held_against_it(spark, signed, tmp_path: Path) -> None:
    signed.records(1), signed.close()
    files = trail_files(signed.folder, tmp_path)
    signed.records(1), signed.close()
    audit_input = input_of_trails(spark, [files])
    assert audit_input.digests is not None
    assert digests.CONTROL.find(digests.beside_segments(audit_input.digests, audit_input.lines)).isEmpty()


def test_other_files_are_not_read_and_torn_ones_are_named(trail, tmp_path: Path) -> None:
    trail.add("started")
    folder = trail.write()
    (folder / "notes.jsonl").write_text("{}\n")
    (folder / "000000000001-20261120T07-9.torn").write_text("{")
    files = trail_files(folder, tmp_path)
    assert [path.name for path in files.segments] == ["000000000001-20261120T07.jsonl"]
    assert files.torn == ("000000000001-20261120T07-9.torn",)


def test_a_folder_whose_name_is_a_pattern_is_read(spark: SparkSession, trail, tmp_path: Path) -> None:
    trail.add("started")
    trail.folder = tmp_path / "[a]{b,c}*?" / "trail"
    assert read_lines(spark, trail_files(trail.write(), tmp_path)).count() == 1
