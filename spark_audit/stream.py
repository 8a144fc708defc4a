"""Closed segments, audited by the same controls when they come.

Each finding is reported once, through kills and restarts.

The checkpoint is a folder as `ingest` makes it. So a segment is taken exactly once, and a changed segment is noticed.
Spark's own file stream knows only names, and cannot do this. Segments that were taken but not reported yet are the next
batch.

    controls of one record, and of conversions    look at the records of the batch
    all others                                    look at the batch and at the history before it, some hours
    integrity.agreement                           compares whole trails, and is not for a batch

An exchange that is open at the beginning of the history is pending, as at the edge of a period. Only `run` judges
exchanges that take longer than the history. Control, gateway, sequence and subject identify a finding. It stands in the
report of the batch that showed it first. Findings are written in three steps: the batch's folder, the same findings in
the checkpoint, the number of the batch. A kill before the last repeats the batch and replaces its folder.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import orjson
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_audit.audit import BYTES, SEALED, Decryption, is_sealed, not_evaluable, summed_up, why_not_evaluable
from spark_audit.audit_input import AuditInput
from spark_audit.controls import reperformance
from spark_audit.controls.control import Scope as ControlScope
from spark_audit.ingest.audit_input import STREAM_FILE, input_of_parquet, selected_segments
from spark_audit.ingest.ingestion import compacted, small_files
from spark_audit.ingest.manifest import IngestedSegment, Manifest, UnusableManifest, sync_folder
from spark_audit.ingest.warehouse import replace_file
from spark_audit.judgement import Judgement, Progress
from spark_audit.kept_frame import kept
from spark_audit.period import EVERYTHING, hour_of
from spark_audit.policy import Policy
from spark_audit.read import literal_path
from spark_audit.report import figures
from spark_audit.report.files import RESULT_FILE
from spark_audit.result import AuditResult, ControlResult

STREAM_VERSION: Final = 1
FINDINGS_FILE: Final = "findings.jsonl"
_REPORTED: Final = "reported"
#: Controls whose violations concern one record alone.
OF_ONE_RECORD: Final = frozenset({"integrity.values", "integrity.hash", "reasons"})
_HOUR_US: Final = 3_600_000_000
#: Time kept beyond the history, because files hold whole days, and some records are outside their segment's hour.
_MARGIN_DAYS: Final = 2
_IDENTITY: Final = "control string, gateway string, sequence long, subject string"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """The progress of a stream: the reported batches, and the segments in them."""

    version: int = STREAM_VERSION
    batches: int = 0
    segments: int = 0

    @classmethod
    def load(cls, checkpoint: Path) -> Self:
        """The progress in a checkpoint; the beginning if it is new. Raises UnusableManifest, OSError."""
        path = checkpoint / STREAM_FILE
        if not path.exists():
            return cls()
        try:
            values: dict[str, Any] = orjson.loads(path.read_bytes())
            reported = cls(**values)
        except (orjson.JSONDecodeError, TypeError) as error:
            raise UnusableManifest(f"{path} is no checkpoint of a stream: {error}") from None
        if reported.version != STREAM_VERSION:
            raise UnusableManifest(f"{path} has another version: begin a new checkpoint")
        return reported

    def save(self, checkpoint: Path) -> None:
        """Replaces the progress in a checkpoint. Raises OSError."""
        values = {"version": self.version, "batches": self.batches, "segments": self.segments}
        replace_file(checkpoint / STREAM_FILE, orjson.dumps(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The part that stays the same from batch to batch."""

    checkpoint: Path
    out: Path
    history_hours: int
    policy: Policy
    decryption: Decryption | None
    progress: Progress

    def report(self, spark: SparkSession, manifest: Manifest, reported: Reported) -> tuple[Reported, AuditResult]:
        """Audits what is ingested and not reported, and reports it as the next batch."""
        fresh = manifest.segments[reported.segments :]
        batch = reported.batches + 1
        result, found = self._judged(spark, manifest, fresh, reported.batches)
        self._write(batch, result, found)
        now = Reported(batches=batch, segments=len(manifest.segments))
        now.save(self.checkpoint)
        return now, result

    def _judged(
        self, spark: SparkSession, manifest: Manifest, fresh: Sequence[IngestedSegment], batches: int
    ) -> tuple[AuditResult, list[tuple[ControlResult, DataFrame]]]:
        audit_input = self._audit_input(spark, manifest, fresh)
        of_batch = sf.substring_index("segment", ".", 1).between(fresh[0].stem, fresh[-1].stem)
        conversions = audit_input.lines.where(of_batch).where("is_record")
        without = {ControlScope.CONVERSIONS: SEALED} if self.decryption is None and is_sealed(conversions) else {}
        clear = self.decryption(conversions) if self.decryption else conversions
        with ExitStack() as kept_frames:
            lines = kept_frames.enter_context(kept(audit_input.lines.drop(*BYTES)))
            batch = lines.where(of_batch)
            size_bytes = sum(segment.size_bytes for segment in fresh)
            scope = figures.scope(batch, size_bytes=size_bytes, torn_files=())
            if reason := why_not_evaluable(batch, scope, EVERYTHING):
                return not_evaluable(reason, scope), []
            outcomes = kept_frames.enter_context(kept(reperformance.reperformed(clear)))
            frames = {ControlScope.LINES: batch, ControlScope.CONVERSIONS: outcomes}
            of_records = self._judgement(spark, replace(audit_input, lines=batch), frames, batches)
            of_history = self._judgement(spark, replace(audit_input, lines=lines), frames, batches)
            of_records.without.update(without)
            with closing(of_history):
                for control in self.policy.controls():
                    is_of_batch = control.identifier in OF_ONE_RECORD or control.scope == ControlScope.CONVERSIONS
                    judgement = of_records if is_of_batch else of_history
                    judgement.judge(control)
                    of_records.found, of_history.found = judgement.found, judgement.found
                result = summed_up(of_history.found, audit_input.lines, outcomes, batch.where("is_record"), scope)
            policy = self.policy
            named = replace(result, policy=policy.name, policy_sha256=policy.sha256, policy_text=policy.text)
            return named, of_history.found

    def _judgement(
        self, spark: SparkSession, audit_input: AuditInput, frames: dict[ControlScope, DataFrame], batches: int
    ) -> Judgement:
        """Judges the records among the lines of an audit input; leaves out findings of the batches before."""
        return Judgement(
            spark=spark,
            audit_input=audit_input,
            frames={**frames, ControlScope.RECORDS: audit_input.lines.where("is_record")},
            scope=self.policy.scope,
            progress=self.progress,
            not_told_before=_not_in(self.checkpoint / _REPORTED, batches, spark),
        )

    def _audit_input(self, spark: SparkSession, manifest: Manifest, fresh: Sequence[IngestedSegment]) -> AuditInput:
        """The history of the batch's trail, with the batch at its end."""
        trail = fresh[0].trail
        one = replace(manifest, segments=tuple(each for each in manifest.segments if each.trail == trail), _known={})
        earliest_us = min(hour_of(fresh[0].stem), hour_of(fresh[-1].stem) - self.history_hours * _HOUR_US)
        selection = selected_segments(one, lambda names: _since(names, earliest_us), EVERYTHING)
        audit_input = input_of_parquet(spark, self.checkpoint, selection)
        return replace(audit_input, more_is_to_come=True, unverified="it is for whole trails, and this is a batch")

    def _write(self, batch: int, result: AuditResult, found: Sequence[tuple[ControlResult, DataFrame]]) -> None:
        """Writes the batch's folder, then its findings in the checkpoint. Raises OSError."""
        folder = self.out / f"{batch:08d}"
        unfinished = self.out / f".{batch:08d}.part"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        count = 0
        with (unfinished / FINDINGS_FILE).open("wb") as file:
            for line in _findings(batch, found):
                file.write(line)
                count += 1
        (unfinished / RESULT_FILE).write_text(result.as_json(), encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        unfinished.replace(folder)
        sync_folder(self.out)
        if count:
            (self.checkpoint / _REPORTED).mkdir(exist_ok=True)
            kept = self.checkpoint / _REPORTED / f"{batch:08d}.jsonl"
            shutil.copyfile(folder / FINDINGS_FILE, kept.with_suffix(".part"))
            kept.with_suffix(".part").replace(kept)

    def tidied(self, spark: SparkSession, manifest: Manifest) -> Manifest:
        """The history without old lines, and in fewer files."""
        newest: dict[str, int] = {}
        for segment in manifest.segments:
            newest[segment.trail] = max(newest.get(segment.trail, 0), hour_of(segment.stem))
        day_us = 24 * _HOUR_US
        oldest_us = min(newest.values()) - self.history_hours * _HOUR_US - _MARGIN_DAYS * day_us
        old = tuple(file for file in manifest.files if hour_of(_as_stem(file.date)) < oldest_us)
        if old:
            manifest = manifest.with_others(old, ())
            manifest.save(self.checkpoint)
            for file in old:
                (self.checkpoint / file.path).unlink()
        for group in small_files(manifest):
            manifest = compacted(spark, self.checkpoint, manifest, group)
        return manifest


def _since(names: list[str], earliest_us: int) -> list[str]:
    """The names from the first one on that is not older."""
    first = next((place for place, name in enumerate(names) if hour_of(name) >= earliest_us), len(names) - 1)
    return names[first:]


def _as_stem(date: str) -> str:
    """A segment's name with the first hour of a date."""
    return f"{0:012d}-{date.replace('-', '')}T00"


def _not_in(folder: Path, batches: int, spark: SparkSession) -> Callable[[str, DataFrame], DataFrame] | None:
    """A function that leaves out the findings of so many batches; None if they have none.

    Findings of a later batch were written before a kill. That batch is reported again.
    """
    kept = [path for path in folder.glob("*.jsonl") if int(path.stem) <= batches]
    if not kept:
        return None
    told = spark.read.schema(_IDENTITY).json([literal_path(path) for path in kept]).distinct()

    def not_told_before(identifier: str, found: DataFrame) -> DataFrame:
        before = told.where(sf.col("control") == identifier).alias("before")
        is_same = (
            (sf.coalesce(sf.col("now.gateway"), sf.lit("")) == sf.col("before.gateway"))
            & (sf.coalesce(sf.col("now.sequence"), sf.lit(0)) == sf.col("before.sequence"))
            & (sf.coalesce(sf.col("now.subject"), sf.lit("")) == sf.col("before.subject"))
        )
        return found.alias("now").join(before, is_same, "left_anti")

    return not_told_before


def _findings(batch: int, found: Sequence[tuple[ControlResult, DataFrame]]) -> Iterator[bytes]:
    """Every finding as a line of JSON, in ASCII. A complete sample is not computed again."""
    for result, frame in found:
        if not result.violations:
            continue
        is_whole = len(result.sample) == result.violations
        for each in result.sample if is_whole else frame.toLocalIterator():
            values = {name: getattr(each, name) for name in ("gateway", "sequence", "subject", "detail")}
            told = {
                "batch": batch,
                "control": result.identifier,
                "severity": result.severity,
                "gateway": values["gateway"] or "",
                "sequence": values["sequence"] or 0,
                "subject": values["subject"] or "",
                "detail": values["detail"] or "",
            }
            yield json.dumps(told).encode() + b"\n"
