"""`ingest`: trails to Parquet. Exit 0: ingested now or before; 1: a segment was changed; 2: nothing to ingest."""

import argparse
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from spark_audit.commands.engines import EngineFailed, place_of, scratch_folder, spark_session
from spark_audit.commands.run import WrongUse, trail_folders
from spark_audit.commands.terminal import (
    DONE,
    NOT_EVALUABLE,
    USAGE,
    VIOLATIONS,
    Tell,
    not_written,
    tell_of,
)
from spark_audit.interruption import Interruption
from spark_audit.location import Location, LocationFailed
from spark_audit.result import counted
from spark_audit.trail.segment_forms import DamagedSegment
from spark_audit.verify.source import LineTooLong

if TYPE_CHECKING:
    from spark_audit.ingest.ingestion import NewSegments
    from spark_audit.ingest.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class _IngestResult:
    """The result, for people and for JSON."""

    segments: int
    lines: int
    known: int
    compacted: int
    files: int
    parquet_bytes: int

    def __str__(self) -> str:
        ingested = f"ingested {counted(self.segments, 'segment')}, {counted(self.lines, 'line')}"
        there = f"{counted(self.known, 'segment')} had been ingested before"
        files = f"{counted(self.files, 'file')} of Parquet, {self.parquet_bytes / 1e6:.1f} MB"
        made = f"; {counted(self.compacted, 'file')} merged into larger ones" if self.compacted else ""
        return f"{ingested}; {there}; {files}{made}"


def ingest(options: argparse.Namespace, interruption: Interruption) -> int:
    """Runs the command; returns the exit code."""
    from spark_audit.ingest.ingestion import ChangedSegment, NotATrail
    from spark_audit.ingest.manifest import UnusableManifest
    from spark_audit.ingest.warehouse import Damaged, InUse

    tell = tell_of("ingest", options.log_format)
    try:
        outcome = _ingested(options, tell, interruption)
    except WrongUse as error:
        return _ended(tell, str(error), USAGE)
    except ChangedSegment as error:
        return _ended(tell, str(error), VIOLATIONS)
    except (DamagedSegment, LineTooLong) as error:
        return _ended(tell, f"a segment cannot be read to its end: {error} (audit verify names it)", NOT_EVALUABLE)
    except (NotATrail, Damaged, InUse, UnusableManifest, EngineFailed) as error:
        return _ended(tell, str(error), NOT_EVALUABLE)
    except LocationFailed as error:
        return _ended(tell, str(error), NOT_EVALUABLE)
    except OSError as error:
        return not_written(options.to, error, tell, "--to")
    if options.as_json:
        fields = {name: getattr(outcome, name) for name in _IngestResult.__slots__}
        sys.stdout.write(orjson.dumps(fields).decode() + "\n")
    else:
        print(outcome)
    return DONE


def _ended(tell: Tell, reason: str, exit_code: int) -> int:
    tell(reason, "error")
    return exit_code


def _ingested(options: argparse.Namespace, tell: Tell, interruption: Interruption) -> _IngestResult:
    from spark_audit.ingest.delta_log import begin
    from spark_audit.ingest.ingestion import MOST_SMALL_FILES, copy_digests, new_segments, small_files
    from spark_audit.ingest.segments import Measuring
    from spark_audit.ingest.warehouse import writing_to

    folder: Location = options.to
    folders = trail_folders(options)
    with writing_to(folder) as before:
        if options.table_format == "delta":
            begin(folder, before)
        measuring = Measuring()
        news = [new_segments(trail, before, measuring) for trail in folders]
        for new in news:
            copy_digests(folder, new)
        most = 1 if options.compact else MOST_SMALL_FILES
        manifest, replaced = before, 0
        if any(new.segments for new in news) or small_files(before, most):
            manifest, replaced = _with_spark(options, before, news, most, tell, interruption)
    return _IngestResult(
        segments=sum(len(new.segments) for new in news),
        lines=sum(segment.lines for new in news for segment in new.segments),
        known=sum(new.known for new in news),
        compacted=replaced,
        files=len(manifest.files),
        parquet_bytes=sum(file.size_bytes for file in manifest.files),
    )


def _with_spark(
    options: argparse.Namespace,
    manifest: "Manifest",
    news: "list[NewSegments]",
    most: int,
    tell: Tell,
    interruption: Interruption,
) -> "tuple[Manifest, int]":
    """The manifest after all new segments, and the number of files that were merged."""
    from spark_audit.ingest.ingestion import compacted, ingested, small_files

    text_bytes = sum(segment.size_bytes for new in news for segment in new.segments)
    replaced = 0
    tell("starting Spark")
    with (
        scratch_folder() as scratch,
        spark_session(scratch, text_bytes, place_of(options), interruption) as spark,
    ):
        for after in ingested(spark, options.to, manifest, news):
            manifest = after
            tell(f"the folder now holds {counted(len(after.segments), 'segment')}")
        for group in small_files(manifest, most):
            tell(f"merging {counted(len(group), 'file')} in {group[0].partition}")
            manifest = compacted(spark, options.to, manifest, group)
            replaced += len(group)
    return manifest, replaced
