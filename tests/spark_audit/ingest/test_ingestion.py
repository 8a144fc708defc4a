"""Trails to Parquet: every line once, whatever a kill leaves behind, and nothing changed is read in silence."""

import gzip
import hashlib
import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_audit.audit_input import ALONE, input_of_trails
from spark_audit.controls import digests
from spark_audit.controls.catalogue import CONTROLS
from spark_audit.engines.duck import DuckEngine
from spark_audit.ingest import ingestion, parquet_files
from spark_audit.ingest.audit_input import input_of_parquet, selected
from spark_audit.ingest.ingestion import ChangedSegment, NotATrail, compacted, copy_digests, new_segments, small_files
from spark_audit.ingest.manifest import DataFile, Manifest, UnusableManifest
from spark_audit.ingest.segments import Measuring
from spark_audit.ingest.warehouse import Damaged, InUse, writing_to
from spark_audit.period import EVERYTHING, Period
from spark_audit.read import trail_files
from spark_audit.trail.segment_forms import DamagedSegment
from tests.spark_audit.conftest import GATEWAY, Facts, SignedTrail, TrailBuilder, audited, policy_of

OTHER_GATEWAY = "ff" * 12
DAY_US = 86_400_000_000
FIRST = "000000000001-20261120T07.jsonl"
SECOND = "000000000002-20261120T08.jsonl"
OF_SOME_CONTROLS = policy_of(
    *(each.identifier for each in CONTROLS if each.identifier.startswith(("integrity.", "conversion.reperform")))
)


def _ingest(spark: SparkSession, to: Path, *trails: Path) -> Manifest:
    with writing_to(to) as before:
        news = [new_segments(trail, before, Measuring()) for trail in trails]
        for new in news:
            copy_digests(to, new)
        return [before, *ingestion.ingested(spark, to, before, news)][-1]


def _lines(to: Path) -> list[tuple[str, int]]:
    """Gateway and sequence of every line that the manifest names, in the order of files."""
    rows: list[tuple[str, int]] = []
    for file in Manifest.load(to).files:
        rows += [(row["gateway"], row["sequence"]) for row in pq.read_table(to / file.path).to_pylist()]
    return rows


def _segments(trail: TrailBuilder, *counts: int, gateway: str = GATEWAY) -> Path:
    """Segments 1, 2 ... with so many records each."""
    for number, count in enumerate(counts, start=1):
        for _ in range(count):
            trail.add("accepted", gateway=gateway, client="boiler", exchange=trail.sequence + 1)
        trail.write(f"{number:012d}-20261120T{6 + number:02d}.jsonl")
        trail.lines.clear()
    return trail.folder


def test_lines_lie_by_date_and_gateway_sorted_by_sequence(spark, trail, tmp_path: Path) -> None:
    trail.add("accepted")
    trail.add("accepted", gateway=OTHER_GATEWAY, at_us=1_795_158_000_000_000 + DAY_US)
    trail.add("accepted", at_us=-1)
    trail.lines = [trail.lines[2], b"nonsense\n", *trail.lines[:2]]
    manifest = _ingest(spark, tmp_path / "to", trail.write())
    assert {file.partition for file in manifest.files} == {
        f"records/date=2026-11-20/gateway_id={GATEWAY}",
        f"records/date=2026-11-21/gateway_id={OTHER_GATEWAY}",
        "records/date=2026-11-20/gateway_id=unknown",
    }
    assert sorted(row for row in _lines(tmp_path / "to") if row[0] == GATEWAY) == [(GATEWAY, 1), (GATEWAY, 3)]
    assert _lines(tmp_path / "to").index((GATEWAY, 1)) + 1 == _lines(tmp_path / "to").index((GATEWAY, 3))
    assert sum(file.rows for file in manifest.files) == 4


def test_the_same_again_does_nothing_and_more_is_added(spark, trail, tmp_path: Path) -> None:
    folder = _segments(trail, 2)
    first = _ingest(spark, tmp_path / "to", folder)
    assert _ingest(spark, tmp_path / "to", folder) == first
    (folder / FIRST).rename(folder / "kept")
    (folder / f"{FIRST}.gz").write_bytes(gzip.compress((folder / "kept").read_bytes(), mtime=0))
    trail.add("accepted")
    trail.write(SECOND)
    (folder / "000000000003-20261120T09.open").write_bytes(trail.lines[0])
    second = _ingest(spark, tmp_path / "to", folder)
    assert [segment.stem for segment in second.segments] == [name.partition(".")[0] for name in (FIRST, SECOND)]
    assert sorted(_lines(tmp_path / "to")) == [(GATEWAY, 1), (GATEWAY, 2), (GATEWAY, 3)]
    assert second.files[: len(first.files)] == first.files


def test_a_changed_segment_or_digest_is_not_read_again(spark, signed: SignedTrail, tmp_path: Path) -> None:
    signed.records(2)
    path = signed.close()
    before = _ingest(spark, tmp_path / "to", signed.folder)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"boiler", b"cooler"))
    with pytest.raises(ChangedSegment, match="was changed after it was ingested"):
        _ingest(spark, tmp_path / "to", signed.folder)
    path.write_bytes(data)
    digest = signed.digests / "000000000001.digest"
    digest.write_bytes(digest.read_bytes().replace(b"0.1.0", b"0.1.1"))
    with pytest.raises(ChangedSegment):
        _ingest(spark, tmp_path / "to", signed.folder)
    assert Manifest.load(tmp_path / "to") == before


@pytest.mark.parametrize(
    ("owner", "step"),
    [(ingestion, "_write"), (parquet_files, "bring_into_place"), (ingestion, "_check_rows"), (Manifest, "save")],
)
def test_a_kill_at_any_step_leaves_every_line_once(
    spark, trail, tmp_path: Path, monkeypatch, owner: Any, step: str
) -> None:
    """The step is carried out, and the process ends right after it."""
    folder, to = _segments(trail, 2), tmp_path / "to"

    class Killed(BaseException):
        pass

    original = getattr(owner, step)

    def killed(*values: object, **named: object) -> None:
        original(*values, **named)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(owner, step, killed)
        with pytest.raises(Killed):
            _ingest(spark, to, folder)
    manifest = _ingest(spark, to, folder)
    assert _lines(to) == [(GATEWAY, 1), (GATEWAY, 2)]
    there = {str(path.relative_to(to)) for path in to.rglob("*.parquet")}
    assert there == {file.path for file in manifest.files}


def test_small_files_become_one_and_a_kill_before_the_old_are_gone_does_no_harm(
    spark, trail, tmp_path: Path, monkeypatch
) -> None:
    to = tmp_path / "to"
    for count in ((2,), (0, 1), (0, 0, 1)):
        for number, records in enumerate(count, start=1):
            if records:
                for _ in range(records):
                    trail.add("accepted")
                trail.write(f"{number:012d}-20261120T{6 + number:02d}.jsonl")
                trail.lines.clear()
        manifest = _ingest(spark, to, trail.folder)
    assert small_files(manifest) == []
    (group,) = small_files(manifest, most=1)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", _raise_killed)
        with pytest.raises(OSError, match="killed"):
            compacted(spark, to, manifest, group)
    with writing_to(to) as after:
        assert len(after.files) == 1
        assert small_files(after, most=1) == []
    assert _lines(to) == [(GATEWAY, number) for number in range(1, 5)]
    assert len(list(to.rglob("*.parquet"))) == 1


def _raise_killed(_path: Path) -> None:
    raise OSError("killed")


def test_large_files_are_left_alone_and_groups_are_not_too_large(monkeypatch) -> None:
    sizes = [100, 300, 120, 90, 60]
    files = tuple(
        ingestion.DataFile(path=f"records/date=2026-11-20/gateway_id=a/{place}", rows=1, size_bytes=size, sha256="")
        for place, size in enumerate(sizes)
    )
    monkeypatch.setattr(ingestion, "SMALL_BYTES", 128)
    monkeypatch.setattr(ingestion, "LARGEST_BYTES", 250)
    groups = small_files(Manifest(files=files), most=1)
    assert [[file.size_bytes for file in group] for group in groups] == [[100, 120], [90, 60]]


def test_an_audit_of_parquet_finds_what_an_audit_of_the_trails_finds(spark, trail, tmp_path: Path) -> None:
    folder = _segments(trail, 3, 2)
    (folder / SECOND).write_bytes((folder / SECOND).read_bytes().replace(b"boiler", b"cooler", 1) + b"nonsense\n")
    other = TrailBuilder(tmp_path / "other" / "trail")
    other.add("put", gateway=OTHER_GATEWAY, message_id="ab" * 24, queue="Q", conversion="packet_to_header")
    other.write()
    _ingest(spark, tmp_path / "to", folder, other.folder)
    trails = [trail_files(each, tmp_path / "data") for each in (folder, other.folder)]
    parquet = input_of_parquet(tmp_path / "to", selected(tmp_path / "to", EVERYTHING))
    of_trails = audited(input_of_trails(trails), tmp_path, policy=OF_SOME_CONTROLS)
    of_parquet = audited(parquet, tmp_path, policy=OF_SOME_CONTROLS)
    found = {
        control.identifier: (control.status, [(each.gateway, each.sequence) for each in control.sample])
        for control in of_trails.controls
    }
    assert found["integrity.hash"] == ("violated", [(GATEWAY, 4)])
    assert found["integrity.lines"][0] == "violated"
    assert found == {
        control.identifier: (control.status, [(each.gateway, each.sequence) for each in control.sample])
        for control in of_parquet.controls
    }
    assert (of_parquet.scope.lines, of_parquet.scope.records) == (of_trails.scope.lines, of_trails.scope.records)


def _of_digests(folder: Path, scratch: Path) -> list[str]:
    """What the control of digests finds in what was ingested."""
    with closing(DuckEngine(Path(mkdtemp(dir=scratch)), "1g")) as engine:
        found = Facts(engine, input_of_parquet(folder, selected(folder, EVERYTHING))).found(digests.CONTROL)
    return [f"{row['subject']}: {row['detail']}" for row in found]


def test_parquet_of_an_earlier_version_is_read_beside_that_of_this_one(spark, trail, tmp_path) -> None:
    folder, to = _segments(trail, 2), tmp_path / "to"
    (file,) = _ingest(spark, to, folder).files
    pq.write_table(pq.read_table(to / file.path).drop_columns(["operator", "messages"]), to / file.path)
    with writing_to(to) as manifest:
        data = (to / file.path).read_bytes()
        described = replace(file, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        replace(manifest, files=(described,)).save(to)
    trail.add("operated", command="CLEAR QLOCAL", operator="anna", messages=3)
    trail.write(SECOND)
    manifest = _ingest(spark, to, folder)
    rows = [(1, None, None), (2, None, None), (3, "anna", 3)]
    assert _operators(to) == rows
    compacted(spark, to, manifest, manifest.files)
    assert _operators(to) == rows


def _operators(folder: Path) -> list[tuple[object, ...]]:
    pieces = input_of_parquet(folder, selected(folder, EVERYTHING)).pieces
    records = sorted((line.record for piece in pieces for line in piece.lines()), key=lambda each: each["sequence"])
    return [tuple(map(record.get, ("sequence", "operator", "messages"))) for record in records]


def test_a_last_segment_that_was_taken_away_before_is_missed_by_its_digest(spark, signed, tmp_path: Path) -> None:
    for _ in range(2):
        signed.records(2), signed.close()
    _ingest(spark, tmp_path / "whole", signed.folder)
    assert _of_digests(tmp_path / "whole", tmp_path) == []
    (signed.folder / f"{signed.segments[1]}.jsonl").unlink()
    _ingest(spark, tmp_path / "cut", signed.folder)
    assert _of_digests(tmp_path / "cut", tmp_path) == [f"{signed.segments[1]}: it is missing: its digest is there"]


@pytest.mark.parametrize("ending", [".open", ".jsonl", ".jsonl.gz"])
def test_a_segment_that_is_closed_while_others_are_measured_is_not_missing(
    spark, signed, tmp_path: Path, monkeypatch, ending: str
) -> None:
    signed.records(2), signed.close()
    measured = list(Measuring().closed_segments(signed.folder))
    signed.records(2), signed.close(ending), signed.digest("interval")
    monkeypatch.setattr(Measuring, "closed_segments", lambda _self, _folder: iter(measured))
    _ingest(spark, tmp_path / "to", signed.folder)
    assert [path.name for path in (tmp_path / "to" / "digests" / GATEWAY).iterdir()] == ["000000000001.digest"]
    assert _of_digests(tmp_path / "to", tmp_path) == []


def test_a_period_reads_only_what_lies_around_it(spark, trail, tmp_path: Path) -> None:
    for day in (20, 21, 22, 23, 24):
        trail.add("accepted", at_us=1_795_158_000_000_000 + (day - 20) * DAY_US)
        trail.write(f"{day - 19:012d}-202611{day}T07.jsonl")
        trail.lines.clear()
    _ingest(spark, tmp_path / "to", trail.folder)
    noon_us = 1_795_158_000_000_000 + 3 * DAY_US
    selection = selected(tmp_path / "to", Period(from_us=noon_us))
    audit_input = input_of_parquet(tmp_path / "to", selection)
    lines = (line for piece in audit_input.pieces for line in piece.lines())
    assert sorted(line.record["sequence"] for line in lines) == [3, 4, 5]
    assert (audit_input.is_whole, audit_input.cut) == (False, {ALONE})
    with pytest.raises(Damaged, match="nothing of the period"):
        selected(tmp_path / "to", Period(until_us=noon_us - 30 * DAY_US))


def test_parquet_that_was_changed_or_is_not_ours_is_refused(spark, trail, tmp_path: Path) -> None:
    to = tmp_path / "to"
    manifest = _ingest(spark, to, _segments(trail, 1))
    with pytest.raises(Damaged, match="no manifest"):
        selected(tmp_path, EVERYTHING)
    path = to / manifest.files[0].path
    data = path.read_bytes()
    for changed in (data[:-4], bytes([data[0] ^ 1]) + data[1:], None):
        path.unlink() if changed is None else path.write_bytes(changed)
        with pytest.raises(Damaged):
            selected(to, EVERYTHING)
    for text in ("", "{", "[]", '{"version":2}', '{"version":1,"next_number":1,"segments":[{}],"files":[]}'):
        (to / "manifest.json").write_text(text)
        with pytest.raises(UnusableManifest):
            selected(to, EVERYTHING)


def test_the_checkpoint_of_an_earlier_stream_is_no_trail(tmp_path: Path) -> None:
    """Its manifest names segments whose lines it forgot."""
    (tmp_path / "reported.json").write_text('{"version":1,"batches":2,"segments":2}')
    (tmp_path / "manifest.json").write_text('{"version":1,"next_number":1,"segments":[],"files":[]}')
    with pytest.raises(Damaged, match="checkpoint of an earlier stream, which forgot what is old: ingest"):
        selected(tmp_path, EVERYTHING)


def test_only_one_writes_and_only_into_a_folder_of_its_own(tmp_path: Path) -> None:
    with writing_to(tmp_path / "to"), pytest.raises(InUse), writing_to(tmp_path / "to"):
        pass
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(Damaged, match=r"letter\.txt"), writing_to(tmp_path / "other"):
        pass


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("notes.txt", b"", NotATrail),
        (FIRST, b"", NotATrail),
        (FIRST, b"temperature;21\n", NotATrail),
        (FIRST, b'{"gateway":"../../etc"}\n', NotATrail),
        (f"{FIRST}.gz", gzip.compress(b"{}\n", mtime=0)[:-6], DamagedSegment),
        (FIRST.replace("jsonl", "open"), json.dumps({"gateway": GATEWAY}).encode(), NotATrail),
    ],
    ids=["no segment", "empty", "foreign", "no gateway", "cut", "open"],
)
def test_what_is_no_trail_is_not_ingested(tmp_path: Path, name: str, content: bytes, error: type[Exception]) -> None:
    (tmp_path / "trail").mkdir()
    (tmp_path / "trail" / name).write_bytes(content)
    with pytest.raises(error):
        new_segments(tmp_path / "trail", Manifest(), Measuring())


def test_segments_that_are_compressed_while_spark_works_are_found(spark, trail, tmp_path: Path, monkeypatch) -> None:
    folder, to, write = _segments(trail, 2, 1), tmp_path / "to", ingestion._write
    to_compress = [SECOND, FIRST]

    def compressed_meanwhile(*values: Any, **named: Any) -> tuple[DataFile, ...]:
        if to_compress:
            path = folder / to_compress.pop()
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
            path.unlink()
        return write(*values, **named)

    new = new_segments(folder, Manifest(), Measuring())
    monkeypatch.setattr(ingestion, "_write", compressed_meanwhile)
    with writing_to(to) as manifest:
        list(ingestion.ingested(spark, to, manifest, [new], 1))
    assert sorted(_lines(to)) == [(GATEWAY, 1), (GATEWAY, 2), (GATEWAY, 3)]


def test_a_segment_that_changes_while_spark_reads_it_is_not_taken(spark, trail, tmp_path: Path, monkeypatch) -> None:
    folder = _segments(trail, 2)
    new = new_segments(folder, Manifest(), Measuring())
    (folder / FIRST).write_bytes((folder / FIRST).read_bytes() * 2)
    with writing_to(tmp_path / "to") as manifest, pytest.raises(Damaged, match="wrote 4 rows of 2"):
        list(ingestion.ingested(spark, tmp_path / "to", manifest, [new]))
    assert not (tmp_path / "to" / "manifest.json").exists()


def _late(folder: Path) -> Path:
    """The trail that the same gateway begins behind a lost one."""
    late = TrailBuilder(folder)
    late.add("restored", batch=3, event="trail_begun_late", first_missing_batch=1, last_missing_batch=3)
    late.add("accepted", batch=4, client="boiler", exchange=4)
    late.write(FIRST)
    late.lines.clear()
    late.add("accepted", batch=5, client="boiler", exchange=5)
    late.write(SECOND)
    return folder


def test_a_trail_that_begins_late_is_another_than_the_one_before(spark, trail, tmp_path: Path) -> None:
    """They lie in the same folder, one after the other: names of segments and numbers of records come again."""
    before, late, to = _segments(trail, 1, 1), _late(tmp_path / "late"), tmp_path / "to"
    _ingest(spark, to, before)
    manifest = _ingest(spark, to, late)
    assert sorted(_lines(to)) == [(GATEWAY, 1), (GATEWAY, 1), (GATEWAY, 2), (GATEWAY, 2), (GATEWAY, 3)]
    assert [new_segments(folder, manifest, Measuring()).segments for folder in (before, late)] == [(), ()]
    (late / FIRST).unlink()
    assert new_segments(late, manifest, Measuring()).segments == (), "its first segment may be removed by retention"
    audit_input = input_of_parquet(to, selected(to, EVERYTHING))
    names = ("integrity.chain", "integrity.sequence", "integrity.batch", "integrity.restored")
    found = audited(audit_input, tmp_path, policy=policy_of(*names))
    told = {control.identifier: control.violations for control in found.controls if control.violations}
    assert told == {"integrity.restored": 1}


def test_a_trail_that_is_ingested_behind_the_one_that_begins_late_keeps_its_name(spark, trail, tmp_path: Path) -> None:
    to = tmp_path / "to"
    manifest = _ingest(spark, to, _late(tmp_path / "late"))
    new = new_segments(_segments(trail, 1, 1), manifest, Measuring())
    assert (new.trail, len(new.segments)) == (GATEWAY, 2)
