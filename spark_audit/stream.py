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
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import orjson
import pyarrow as pa
from pyspark.sql import SparkSession

from spark_audit.audit import Progress, audit
from spark_audit.audit_input import AuditInput
from spark_audit.engines.engine import Engine
from spark_audit.engines.spark import SparkEngine
from spark_audit.ingest.audit_input import STREAM_FILE, input_of_parquet, selected_segments
from spark_audit.ingest.ingestion import compacted, small_files
from spark_audit.ingest.manifest import IngestedSegment, Manifest, UnusableManifest, sync_folder
from spark_audit.ingest.warehouse import replace_file
from spark_audit.period import EVERYTHING, hour_of
from spark_audit.policy import Policy
from spark_audit.report.files import RESULT_FILE
from spark_audit.result import AuditResult

STREAM_VERSION: Final = 1
FINDINGS_FILE: Final = "findings.jsonl"
_REPORTED: Final = "reported"
_HOUR_US: Final = 3_600_000_000
#: Time kept beyond the history, because files hold whole days, and some records are outside their segment's hour.
_MARGIN_DAYS: Final = 2
_IDENTITY: Final = pa.schema(
    [("control", pa.string()), ("gateway", pa.string()), ("sequence", pa.int64()), ("subject", pa.string())]
)
_TOLD: Final = ("gateway", "sequence", "subject", "detail")


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
    personal_key: bytes | None
    progress: Progress

    def report(self, spark: SparkSession, manifest: Manifest, reported: Reported) -> tuple[Reported, AuditResult]:
        """Audits what is ingested and not reported, and reports it as the next batch."""
        fresh = manifest.segments[reported.segments :]
        batch = reported.batches + 1
        with closing(SparkEngine(spark)) as engine:
            result = self._judged(engine, manifest, fresh, reported.batches)
            self._write(batch, result, engine)
        now = Reported(batches=batch, segments=len(manifest.segments))
        now.save(self.checkpoint)
        return now, result

    def _judged(
        self, engine: Engine, manifest: Manifest, fresh: Sequence[IngestedSegment], batches: int
    ) -> AuditResult:
        policy = self.policy
        result = audit(
            engine,
            self._audit_input(manifest, fresh),
            self.progress,
            policy=policy,
            personal_key=self.personal_key,
            before=_told_before(self.checkpoint / _REPORTED, batches),
        )
        return replace(result, policy=policy.name, policy_sha256=policy.sha256, policy_text=policy.text)

    def _audit_input(self, manifest: Manifest, fresh: Sequence[IngestedSegment]) -> AuditInput:
        """The history of the batch's trail, with the batch at its end."""
        trail = fresh[0].trail
        one = replace(manifest, segments=tuple(each for each in manifest.segments if each.trail == trail), _known={})
        earliest_us = min(hour_of(fresh[0].stem), hour_of(fresh[-1].stem) - self.history_hours * _HOUR_US)
        selection = selected_segments(one, lambda names: _since(names, earliest_us), EVERYTHING)
        return replace(
            input_of_parquet(self.checkpoint, selection),
            fresh=(fresh[0].stem, fresh[-1].stem),
            size_bytes=sum(segment.size_bytes for segment in fresh),
            more_is_to_come=True,
            unverified="it is for whole trails, and this is a batch",
        )

    def _write(self, batch: int, result: AuditResult, engine: Engine) -> None:
        """Writes the batch's folder, then its findings in the checkpoint. Raises OSError."""
        folder = self.out / f"{batch:08d}"
        unfinished = self.out / f".{batch:08d}.part"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        count = 0
        with (unfinished / FINDINGS_FILE).open("wb") as file:
            for line in _findings(batch, result, engine):
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


def _told_before(folder: Path, batches: int) -> pa.Table | None:
    """The findings of so many batches; None if they have none.

    Findings of a later batch were written before a kill. That batch is reported again.
    """
    kept = [path for path in sorted(folder.glob("*.jsonl")) if int(path.stem) <= batches]
    if not kept:
        return None
    found = (orjson.loads(line) for path in kept for line in path.read_bytes().splitlines())
    told = {tuple(finding[name] for name in _IDENTITY.names) for finding in found}
    return pa.table(list(zip(*told, strict=True)), schema=_IDENTITY)


def _findings(batch: int, result: AuditResult, engine: Engine) -> Iterator[bytes]:
    """Every finding as a line of JSON, in ASCII."""
    severities = {control.identifier: control.severity for control in result.controls if control.violations}
    if not severities:
        return
    for row in engine.each("SELECT control, gateway, sequence, subject, detail FROM told ORDER BY control"):
        told = {"batch": batch, "control": row["control"], "severity": severities[row["control"]]}
        yield json.dumps(told | {name: row[name] for name in _TOLD}).encode() + b"\n"
