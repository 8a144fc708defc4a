"""New segments to Parquet, in batches, each whole or not at all; then small files to large ones.

The files of a batch are brought to their place, and the manifest that names them comes last. A kill at any point leaves
the earlier manifest, and files that it does not name. The next ingest removes those files.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_audit.facts.pieces import Piece, pieces_of
from spark_audit.ingest import delta_log
from spark_audit.ingest.manifest import DataFile, IngestedSegment, Manifest
from spark_audit.ingest.parquet_files import read_files, write_files
from spark_audit.ingest.segments import MeasuredSegment, Measuring
from spark_audit.ingest.warehouse import Damaged
from spark_audit.location import Location
from spark_audit.schema import batches_of, ingested_schema
from spark_audit.trail.digest import (
    DIGEST_FOLDER,
    DigestKind,
    MalformedDigest,
    digest_name,
    digest_numbers,
    parse_digest,
)

#: Bytes of text of one batch. A kill loses at most one batch, and Spark sorts one at a time.
BATCH_BYTES: Final = 4 * 1024**3
#: The least size of a file if there are enough lines, and the largest.
SMALL_BYTES: Final = 128 * 1024**2
LARGEST_BYTES: Final = 512 * 1024**2
#: The most small files of one date and gateway that are left as they are.
MOST_SMALL_FILES: Final = 8
#: Bytes of text for one byte of Parquet: measured were 1,157 and 108 for a record in zstd.
_RATIO: Final = 10
_TEXT_BYTES_A_FILE: Final = 256 * 1024**2 * _RATIO
#: The last microsecond of the year 9999.
_LATEST_US: Final = 253_402_300_799_999_999
_NAME_CHARACTERS: Final = 24
_ORDER: Final = ("date", "gateway_id", "sequence", "segment", "block", "place")


class ChangedSegment(Exception):
    """A segment or digest has changed since it was ingested."""


class NotATrail(Exception):
    """A folder has no segment that could be ingested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSegments:
    """The new segments of one trail, and the number of those that were ingested before.

    `stems` names both, and ingested segments that are no longer in the trail.
    """

    trail: str
    folder: Location
    segments: tuple[MeasuredSegment, ...]
    known: int
    stems: frozenset[str]


def new_segments(folder: Location, manifest: Manifest, measuring: Measuring) -> NewSegments:
    """The new segments of a trail. Raises ChangedSegment, NotATrail, OSError, DamagedSegment, LineTooLong."""
    measured = list(measuring.closed_segments(folder))
    gateways = [segment.gateway for segment in measured if segment.gateway]
    if not gateways:
        what = "no line of its closed segments is an audit record" if measured else "there is no closed segment"
        raise NotATrail(f"{folder} cannot be judged: {what}")
    trail = _name_of(measured, manifest)
    if not is_plain_name(trail):
        raise NotATrail(f"{folder} cannot be judged: its first record names no gateway")
    fresh: list[MeasuredSegment] = []
    for segment in measured:
        known = manifest.segment(trail, segment.stem)
        if known is None:
            fresh.append(segment)
        elif known.sha256 != segment.sha256:
            raise ChangedSegment(
                f"{segment.path} was changed after it was ingested: its SHA-256 is {segment.sha256}, it was "
                f"{known.sha256} (audit verify names the place)"
            )
    return NewSegments(
        trail=trail,
        folder=folder,
        segments=tuple(fresh),
        known=len(measured) - len(fresh),
        stems=frozenset(each.stem for each in measured) | manifest.stems_of(trail),
    )


def _name_of(measured: Sequence[MeasuredSegment], manifest: Manifest) -> str:
    """The name of the trail: that of its first gateway, or the hash of its first record if it begins late.

    So the trail of a gateway and the later trail behind it are two, in any order of ingestion.
    """
    if begins_late := measured[0].begins_late:
        return begins_late[:_NAME_CHARACTERS]
    gateways = [segment.gateway for segment in measured if segment.gateway]
    known = {each.trail for each in manifest.segments if each.gateway in gateways}
    there = ((trail, segment, manifest.segment(trail, segment.stem)) for trail in sorted(known) for segment in measured)
    same = (trail for trail, segment, held in there if held is not None and held.sha256 == segment.sha256)
    return next(same, "") or next(filter(None, map(manifest.trail_of, gateways)), gateways[0])


def is_plain_name(gateway: str) -> bool:
    """Whether a gateway has a proper name, which a folder can have too."""
    return len(gateway) == _NAME_CHARACTERS and not gateway.strip("0123456789abcdef")


def copy_digests(folder: Location, new: NewSegments) -> None:
    """Copies the digests of a trail beside its lines. Raises ChangedSegment, OSError.

    It ends at the first digest of a segment that was not closed when segments were measured. So a digest without lines
    is that of a missing segment.
    """
    target = folder / DIGEST_FOLDER / new.trail
    if isinstance(target, Path):
        target.mkdir(parents=True, exist_ok=True)
    copied = set(digest_numbers(target))
    numbers = digest_numbers(new.folder / DIGEST_FOLDER)
    to_come = {path.name.partition(".")[0] for path in new.folder.iterdir()} - new.stems
    for number in numbers:
        copy, original = target / digest_name(number), new.folder / DIGEST_FOLDER / digest_name(number)
        data = original.read_bytes()
        if _segment_of(data) in to_come:
            return
        if number not in copied:
            _add(copy, data)
        elif copy.read_bytes() != data:
            raise ChangedSegment(f"{original} was changed after it was ingested")


def _add(copy: Location, data: bytes) -> None:
    if not isinstance(copy, Path):
        copy.write_bytes(data)
        return
    unfinished = copy.with_suffix(".part")
    unfinished.write_bytes(data)
    unfinished.replace(copy)


def _segment_of(data: bytes) -> str:
    """The segment of a digest; "" if it has none or cannot be read."""
    try:
        digest = parse_digest(data)
    except MalformedDigest:
        return ""
    return digest.segment if digest.kind == DigestKind.SEGMENT else ""


def ingested(
    spark: SparkSession,
    folder: Location,
    manifest: Manifest,
    news: Iterable[NewSegments],
    batch_bytes: int = BATCH_BYTES,
) -> Iterator[Manifest]:
    """Ingests new segments, batch after batch; yields the manifest after each.

    Raises Damaged, OSError, PySparkException.

    A batch belongs to one trail. It has at most `batch_bytes` of text, or a single segment.
    """
    for new in news:
        for batch in _batches(new.segments, batch_bytes):
            lines = _partitioned(_lines_of(spark, new, batch))
            files = _write(lines, folder, manifest.next_number, files=_files_for(batch))
            _check_rows(files, sum(segment.rows for segment in batch))
            manifest = manifest.with_more(tuple(_named(new.trail, segment) for segment in batch), files)
            manifest.save(folder)
            delta_log.follow(folder, manifest)
            yield manifest


def _batches(segments: Sequence[MeasuredSegment], batch_bytes: int) -> Iterator[tuple[MeasuredSegment, ...]]:
    batch: list[MeasuredSegment] = []
    size_bytes = 0
    for segment in segments:
        if batch and size_bytes + segment.size_bytes > batch_bytes:
            yield tuple(batch)
            batch, size_bytes = [], 0
        batch.append(segment)
        size_bytes += segment.size_bytes
    if batch:
        yield tuple(batch)


def _files_for(batch: Sequence[MeasuredSegment]) -> int:
    return 1 + sum(segment.size_bytes for segment in batch) // _TEXT_BYTES_A_FILE


def _lines_of(spark: SparkSession, new: NewSegments, batch: Sequence[MeasuredSegment]) -> DataFrame:
    """Every line of segments, read by Spark's workers."""
    pieces = tuple(pieces_of(new.trail, (segment.path for segment in batch)))
    return spark.range(0, len(pieces), 1, len(pieces)).mapInArrow(partial(_read, pieces=pieces), ingested_schema())


def _read(batches: Iterable[pa.RecordBatch], *, pieces: tuple[Piece, ...]) -> Iterator[pa.RecordBatch]:
    for numbers in batches:
        for number in numbers.column(0).to_pylist():
            yield from batches_of(pieces[number].lines())


def _partitioned(lines: DataFrame) -> DataFrame:
    """Lines with the two columns that name their folder. No text of a hostile line becomes a name."""
    is_gateway = sf.col("gateway").rlike("^[0-9a-f]{24}$")
    return lines.withColumn("date", _date()).withColumn(
        "gateway_id", sf.when(is_gateway, sf.col("gateway")).otherwise(sf.lit("unknown"))
    )


def _date() -> Column:
    """The day (UTC) on which a record was noted. For a line without a time it is that of its segment's name."""
    at_us = sf.when(sf.col("at_us").between(0, _LATEST_US), sf.col("at_us"))
    noted = sf.date_format(sf.timestamp_micros(at_us), "yyyy-MM-dd")
    named = sf.regexp_replace(sf.substring("segment", 14, 8), "^(....)(..)(..)$", "$1-$2-$3")
    return sf.coalesce(noted, named)


def _write(lines: DataFrame, folder: Location, number: int, *, files: int) -> tuple[DataFile, ...]:
    """Writes lines sorted by sequence within each date and gateway, in about so many files."""
    spread = lines.repartitionByRange(files, *_ORDER) if files > 1 else lines.coalesce(1)
    return write_files(spread.sortWithinPartitions(*_ORDER), folder, number)


def _check_rows(files: Sequence[DataFile], due: int) -> None:
    rows = sum(file.rows for file in files)
    if rows != due:
        raise Damaged(f"Spark wrote {rows} rows of {due}: a segment was changed meanwhile (ingest again)")


def _named(trail: str, segment: MeasuredSegment) -> IngestedSegment:
    return IngestedSegment(
        trail=trail,
        stem=segment.stem,
        gateway=segment.gateway,
        sha256=segment.sha256,
        size_bytes=segment.size_bytes,
        lines=segment.lines,
    )


# -- compaction --------------------------------------------------------------------------------------------------------


def small_files(manifest: Manifest, most: int = MOST_SMALL_FILES) -> list[tuple[DataFile, ...]]:
    """Files to merge: those of a date and gateway with more than `most` small ones."""
    groups: list[tuple[DataFile, ...]] = []
    ordered = sorted(manifest.files, key=lambda file: file.path)
    for _partition, files in groupby(ordered, key=lambda file: file.partition):
        small = [file for file in files if file.size_bytes < SMALL_BYTES]
        if len(small) > most:
            groups += [group for group in _filled(small) if len(group) > 1]
    return groups


def _filled(files: Sequence[DataFile]) -> Iterator[tuple[DataFile, ...]]:
    group: list[DataFile] = []
    for file in files:
        if group and sum(each.size_bytes for each in group) + file.size_bytes > LARGEST_BYTES:
            yield tuple(group)
            group = []
        group.append(file)
    yield tuple(group)


def compacted(spark: SparkSession, folder: Location, manifest: Manifest, group: tuple[DataFile, ...]) -> Manifest:
    """Merges files into one. The old ones are removed when the manifest, and a Delta log, name the new one."""
    files = _write(_partitioned(read_files(spark, folder, group)), folder, manifest.next_number, files=1)
    _check_rows(files, sum(file.rows for file in group))
    manifest = manifest.with_others(group, files)
    manifest.save(folder)
    delta_log.follow(folder, manifest)
    for file in group:
        (folder / file.path).unlink()
    return manifest
