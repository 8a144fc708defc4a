"""Trails as a DataFrame: one row a line, in order. Lines that are no records are marked.

Columns: those of a record, and

    trail          name of the trail, if several are read
    segment        name of the file
    block, place   order of the line within the file: byte offset of the split, then the row's number in it
    is_record      the line is a JSON object with at least a version, a sequence, a batch, a gateway and a kind
    actual_hash    SHA-256 of the line's bytes without its hash, as record/line.py defines it
    line           the line itself if it is no record, cut at 200 characters
"""

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_audit.digest import DIGEST_FOLDER, digest_numbers
from spark_audit.period import EVERYTHING, Period
from spark_audit.record import FIELDS, HASH_SUFFIX_BYTES
from spark_audit.schema import CORRUPT, line_schema

_CLOSED: Final = re.compile(r"[0-9]{12}-[0-9]{8}T[0-9]{2}\.jsonl(\.gz)?")
_OPEN: Final = re.compile(r"[0-9]{12}-[0-9]{8}T[0-9]{2}\.open")
_COMPRESSED: Final = ".gz"
#: A compressed segment holds about so many times its own bytes.
_RATIO: Final = 10
_BLOCK_BYTES: Final = 1024 * 1024
_LINE_SHOWN: Final = 200
_REQUIRED: Final = ("version", "sequence", "batch", "gateway", "kind")
_GLOB_CHARACTERS: Final = re.compile(r"([\\{}\[\]*?])")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailFiles:
    """The files of a trail that an audit reads: closed segments, and a copy of the whole lines of the open one.

    `is_cut`: the trail has older segments that are not read. `last_digest` is the number of the last digest before the
    search for segments, 0 for none. So digests that a gateway signs later do not count.
    """

    folder: Path
    segments: tuple[Path, ...]
    torn: tuple[str, ...]
    is_cut: bool = False
    last_digest: int = 0

    @property
    def name(self) -> str:
        """The name of the trail among others."""
        return str(self.folder)

    @property
    def size_bytes(self) -> int:
        """The bytes of the files as they are stored."""
        return sum(path.stat().st_size for path in self.segments)

    @property
    def text_bytes(self) -> int:
        """About the number of bytes of their lines."""
        return sum(path.stat().st_size * (_RATIO if path.suffix == _COMPRESSED else 1) for path in self.segments)


def trail_files(trail_dir: Path, scratch: Path, *, period: Period = EVERYTHING, with_open: bool = True) -> TrailFiles:
    """The files of a trail. Raises OSError if the folder cannot be read. A gateway may close a segment meanwhile.

    `scratch` takes the copy of an open segment. If workers cannot see that folder, leave the open segment out.
    """
    last_digest = max(digest_numbers(trail_dir / DIGEST_FOLDER), default=0)
    names = sorted(path.name for path in trail_dir.iterdir())
    closed = {name.partition(".")[0]: name for name in reversed(names) if _CLOSED.fullmatch(name)}
    every = {**{name.partition(".")[0]: name for name in names if with_open and _OPEN.fullmatch(name)}, **closed}
    stems = sorted(every)
    to_read = stems if period.is_everything else period.to_read(stems)
    folder = Path(tempfile.mkdtemp(dir=scratch))
    segments = [_whole_lines(trail_dir / every[stem], folder) for stem in to_read]
    return TrailFiles(
        folder=trail_dir,
        segments=tuple(segments),
        torn=tuple(name for name in names if name.endswith(".torn")),
        is_cut=bool(to_read) and to_read[0] != stems[0],
        last_digest=last_digest,
    )


def closed_segments(trail_dir: Path) -> list[Path]:
    """The files of closed segments in a folder, in any order; none if it cannot be read."""
    try:
        return [path for path in trail_dir.iterdir() if _CLOSED.fullmatch(path.name)]
    except OSError:
        return []


def _whole_lines(path: Path, folder: Path) -> Path:
    """A closed segment, or a copy of an open one up to its last line feed.

    If it was closed just now, the closed one.
    """
    if not _OPEN.fullmatch(path.name):
        return path
    copy = folder / path.name
    try:
        shutil.copyfile(path, copy)
    except FileNotFoundError:
        return path.with_suffix(".jsonl")
    with copy.open("r+b") as file:
        file.truncate(_end_of_last_line(file))
    return copy


def _end_of_last_line(file: BinaryIO) -> int:
    """The offset behind the last line feed, 0 if there is none. The search begins at the end."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - _BLOCK_BYTES)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def literal_path(path: Path) -> str:
    """A path for Spark, which reads some characters as patterns."""
    return _GLOB_CHARACTERS.sub(r"\\\1", str(path))


def read_trails(spark: SparkSession, trails: Sequence[TrailFiles]) -> DataFrame:
    """Every line of several trails, with their names."""
    frames = [read_lines(spark, files).withColumn("trail", sf.lit(files.name)) for files in trails if files.segments]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole


def read_lines(spark: SparkSession, files: TrailFiles) -> DataFrame:
    """Every line of a trail. No line makes this fail; unreadable ones are marked."""
    paths = [literal_path(path) for path in files.segments]
    text = spark.read.option("lineSep", "\n").text(paths)
    placed = text.select(
        sf.col("value"),
        sf.col("_metadata.file_name").alias("segment"),
        sf.col("_metadata.file_block_start").alias("block"),
        sf.monotonically_increasing_id().alias("place"),
    )
    parsed = placed.withColumn(
        "record",
        sf.from_json("value", line_schema(), {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}),
    )
    return parsed.select(
        *(sf.col(f"record.{field.name}").alias(field.name) for field in FIELDS),
        "segment",
        "block",
        "place",
        _is_record().alias("is_record"),
        _actual_hash().alias("actual_hash"),
        sf.when(~_is_record(), sf.substring("value", 1, _LINE_SHOWN)).alias("line"),
    )


def _is_record() -> Column:
    required = sf.col(f"record.{CORRUPT}").isNull()
    for name in _REQUIRED:
        required = required & sf.col(f"record.{name}").isNotNull()
    return sf.coalesce(required, sf.lit(False))


def _actual_hash() -> Column:
    """sha2 of the stored bytes before the hash field, with the closing brace added again."""
    stored = sf.col("value").cast("binary")
    length = sf.octet_length("value") - HASH_SUFFIX_BYTES
    body = sf.substring(stored, sf.lit(1), sf.greatest(length, sf.lit(0)))
    return sf.sha2(sf.concat(body, sf.lit(b"}")), 256)
