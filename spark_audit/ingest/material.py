"""What an audit judges, from Parquet: the files that the manifest names, each as it was written."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_audit.digest import DIGEST_FOLDER
from spark_audit.ingest.manifest import DataFile, Manifest
from spark_audit.ingest.warehouse import Damaged, check_files
from spark_audit.material import Material, digests_in
from spark_audit.period import AROUND_US, Period, hour_of

_SEGMENT_NUMBER: Final = 12
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is read for a period: files, and of each trail the first and the last segment; `cut`: not its very first."""

    manifest: Manifest
    period: Period
    files: tuple[DataFile, ...]
    segments: Mapping[str, tuple[str, str]]
    cut: frozenset[str]


def selected(folder: Path, period: Period) -> Selection:
    """What a folder holds of a period, each file as it was written. Raises Damaged, UnusableManifest, OSError."""
    try:
        manifest = Manifest.load(folder)
    except FileNotFoundError:
        raise Damaged(f"{folder} holds no manifest: it was not made by `audit ingest`") from None
    stems: dict[str, list[str]] = {}
    for segment in sorted(manifest.segments, key=lambda each: each.stem):
        stems.setdefault(segment.trail, []).append(segment.stem)
    to_read = {trail: period.to_read(names) for trail, names in stems.items()}
    ends = {trail: (names[0], names[-1]) for trail, names in to_read.items() if names}
    files = tuple(file for file in manifest.files if _may_hold(file, ends))
    if not files:
        raise Damaged(f"{folder} holds nothing" + ("" if period.is_everything else " of the period"))
    check_files(folder, files)
    cut = frozenset(trail for trail, (first, _) in ends.items() if _is_later(first, stems[trail][0]))
    return Selection(manifest=manifest, period=period, files=files, segments=ends, cut=cut)


def _may_hold(file: DataFile, ends: Mapping[str, tuple[str, str]]) -> bool:
    """Whether lines of those segments may be in a file; some are noted a little before or after their hour."""
    return any(
        _date(hour_of(first) - AROUND_US) <= file.date <= _date(hour_of(last) + AROUND_US)
        for first, last in ends.values()
    )


def _is_later(first_read: str, first_there: str) -> bool:
    return first_read != first_there or int(first_there[:_SEGMENT_NUMBER]) > 1


def parquet_material(spark: SparkSession, folder: Path, selection: Selection) -> Material:
    """The material of a selection. Raises PySparkException."""
    trails = sorted(selection.segments)
    lines = spark.read.parquet(*(str(folder / file.path) for file in selection.files))
    stem = sf.substring_index("segment", ".", 1)
    is_read = sf.lit(False)
    for trail, (first, last) in selection.segments.items():
        is_read |= (sf.col("trail") == trail) & stem.between(first, last)
    read = lines if selection.period.is_everything else lines.where(is_read)
    return Material(
        lines=read if len(trails) > 1 else read.drop("trail"),
        digests=_digests(spark, folder, trails),
        period=selection.period,
        is_whole=selection.period.is_everything,
        cut=selection.cut,
        size_bytes=sum(file.size_bytes for file in selection.files),
        unverified="it reads segments, and this is Parquet",
    )


def _digests(spark: SparkSession, folder: Path, trails: list[str]) -> DataFrame:
    frames = [digests_in(spark, folder / DIGEST_FOLDER / trail) for trail in trails]
    if len(frames) == 1:
        return frames[0]
    whole = frames[0].withColumn("trail", sf.lit(trails[0]))
    for frame, trail in zip(frames[1:], trails[1:], strict=True):
        whole = whole.unionByName(frame.withColumn("trail", sf.lit(trail)))
    return whole


def _date(at_us: int) -> str:
    return f"{_EPOCH + timedelta(microseconds=max(at_us, 0)):%Y-%m-%d}"
