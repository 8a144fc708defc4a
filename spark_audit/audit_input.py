"""Audit input: the lines of one or several trails, their digests, and the findings of `verify` without Spark."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_audit.controls import digests
from spark_audit.digest import DIGEST_FOLDER
from spark_audit.period import EVERYTHING, Period
from spark_audit.read import TrailFiles, literal_path, read_lines, read_trails
from spark_audit.verify import Anchor, Verification

_NO_ANCHOR = Anchor()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditInput:
    """Lines and digests as DataFrames. For several trails both have a column `trail` (with the names in `cut`).

    `digests` is None if they cannot be judged here. `is_whole`: every segment of every trail is among the lines.
    `more_is_to_come`: there may be digests of segments that are read later. `cut` names trails whose older segments are
    not among the lines. `verifications` has a result of `verify` for each trail; if it is empty, `unverified` says why.
    """

    lines: DataFrame
    digests: DataFrame | None
    copies: DataFrame | None = None
    public_key: str = ""
    period: Period = EVERYTHING
    is_whole: bool = True
    more_is_to_come: bool = False
    cut: frozenset[str] = frozenset()
    size_bytes: int = 0
    torn: tuple[str, ...] = ()
    verifications: tuple[Verification, ...] = ()
    unverified: str = "it was not asked"

    @property
    def has_trails(self) -> bool:
        """Whether there are several trails, with a column for their names."""
        return "trail" in self.lines.columns


def input_of_trails(
    spark: SparkSession,
    trails: Sequence[TrailFiles],
    *,
    period: Period = EVERYTHING,
    anchor: Anchor = _NO_ANCHOR,
    verifications: tuple[Verification, ...] = (),
) -> AuditInput:
    """The audit input of trails, each with a segment or more. An anchor is for one trail."""
    is_removed = {check.segments_removed > 0 for check in verifications}
    several = len(trails) > 1
    cut = {files.name for files in trails if files.is_cut}
    if is_removed == {True} or (True in is_removed and several):
        cut |= {files.name for files, check in zip(trails, verifications, strict=True) if check.segments_removed}
    frames = [digests_in(spark, files.folder / DIGEST_FOLDER, files.last_digest) for files in trails]
    named = [
        frame.withColumn("trail", sf.lit(files.name)) if several else frame
        for frame, files in zip(frames, trails, strict=True)
    ]
    return AuditInput(
        lines=read_trails(spark, trails) if several else read_lines(spark, trails[0]),
        digests=_together(named),
        copies=digests_in(spark, anchor.folder, max(anchor.numbers)) if anchor.folder else None,
        public_key=anchor.public_key,
        period=period,
        is_whole=period.is_everything,
        cut=frozenset(cut),
        size_bytes=sum(files.size_bytes for files in trails),
        torn=tuple(name for files in trails for name in files.torn),
        verifications=verifications,
    )


def digests_in(spark: SparkSession, folder: Path, last_number: int = sys.maxsize) -> DataFrame:
    """The digests in a folder up to a number. The folder may be missing."""
    if folder.is_dir() and any(folder.glob("*.digest")):
        return digests.read_digests(spark, literal_path(folder), last_number)
    return digests.no_digests(spark)


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole
