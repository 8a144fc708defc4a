"""An audit of an archive of captured messages, from its files to the result. It writes no files."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_audit.archive.examination import examined
from spark_audit.archive.files import (
    ArchiveError,
    ArchiveFiles,
    archive_files,
    holds_conversions,
    paired,
    pairs_in_rows,
    read_conversions,
    read_messages,
    without_conversions,
)
from spark_audit.audit import not_evaluable
from spark_audit.audit_input import AuditInput
from spark_audit.controls.archive import HELD_BY_PAIRS, OF_MESSAGES
from spark_audit.controls.control import Scope as ControlScope
from spark_audit.controls.control import Severity
from spark_audit.judgement import Judgement, Progress
from spark_audit.kept_frame import kept
from spark_audit.policy_scope import PolicyScope
from spark_audit.reperform.captured import Wish
from spark_audit.report import figures
from spark_audit.report.exceptions import write_exceptions
from spark_audit.result import (
    AuditResult,
    Balances,
    ControlResult,
    Count,
    Evidence,
    Integrity,
    Scope,
    Subject,
    Verdict,
    Violation,
    counted,
)

LIMITS: Final = (
    "An archive has no chain and no digests: what is in it was judged, not whether something is missing or was changed "
    "before it came here. What the archive does not say of a message's MQMD was found in its first bytes."
)
#: Rows and bytes handed to a Python worker at once, and rows read from Parquet at once. A message may have 100 MiB.
_BATCHES: Final = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(32 * 1024 * 1024),
    "spark.sql.parquet.columnarReaderBatchSize": "256",
}
_NO_PAIRS: Final = "the archive holds no conversions (name them with --converted)"
_SIDES: Final = ("input", "output", "expected")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveToAudit:
    """A folder of messages, and the folder of their conversions if it is another one."""

    messages: ArchiveFiles
    converted: ArchiveFiles | None = None

    @classmethod
    def of(cls, source: Path, converted: Path | None) -> "ArchiveToAudit":
        """Looks through the folders. Raises ArchiveError, and OSError if one cannot be read."""
        if converted is None:
            return cls(messages=archive_files(source))
        if converted.resolve() == source.resolve():
            raise ArchiveError(f"{source} is named twice; conversions beside their messages need no --converted")
        return cls(messages=archive_files(source), converted=archive_files(converted))

    @property
    def size_bytes(self) -> int:
        return self.messages.size_bytes + (self.converted.size_bytes if self.converted else 0)

    @property
    def unread(self) -> tuple[str, ...]:
        return self.messages.unread + (self.converted.unread if self.converted else ())


def audit_archive(
    spark: SparkSession, archive: ArchiveToAudit, wish: Wish, progress: Progress, report_folder: Path | None = None
) -> AuditResult:
    """The result for an archive. Raises ArchiveError if it lacks a needed column, and PySpark's errors."""
    for name, value in _BATCHES.items():
        spark.conf.set(name, value)
    frame, with_pairs = _read(spark, archive)
    with kept(examined(frame, wish)) as outcomes:
        scope = _scope(outcomes, archive)
        if reason := _why_not_evaluable(outcomes):
            return replace(not_evaluable(reason, scope), subject=Subject.ARCHIVE, limits=LIMITS)
        found = _judged(spark, outcomes, progress, with_pairs=with_pairs)
        results = tuple(result for result, _frame in found)
        verdict, reason = _verdict(results, scope)
        return replace(
            not_evaluable(reason, scope),
            verdict=verdict,
            subject=Subject.ARCHIVE,
            integrity=Integrity(reason="an archive has no chain and no digests"),
            controls=_with_evidence(results, outcomes),
            conversions=figures.conversions(outcomes.where(sf.col("status").isNotNull())),
            dropped_fields=figures.dropped_fields(outcomes),
            balances=Balances(kinds=_kinds(outcomes)),
            exceptions=write_exceptions(spark, found, report_folder) if report_folder else "",
            limits=LIMITS,
        )


def _read(spark: SparkSession, archive: ArchiveToAudit) -> tuple[DataFrame, bool]:
    """The messages with their conversions, and whether the archive has conversions."""
    if archive.converted is not None:
        made = read_conversions(spark, archive.converted, archive.messages)
        return paired(read_messages(spark, archive.messages), made), True
    if holds_conversions(spark, archive.messages):
        return pairs_in_rows(spark, archive.messages), True
    return without_conversions(read_messages(spark, archive.messages)), False


def _scope(outcomes: DataFrame, archive: ArchiveToAudit) -> Scope:
    messages = outcomes.where("has_message").count()
    files = archive.messages.count + (archive.converted.count if archive.converted else 0)
    return Scope(
        segment_count=files,
        bytes=archive.size_bytes,
        lines=messages + len(archive.unread),
        records=messages,
        lines_set_aside=len(archive.unread),
        torn_files=archive.unread[: figures.GROUPS_SHOWN],
    )


def _why_not_evaluable(outcomes: DataFrame) -> str:
    known = outcomes.where("has_message")
    if known.isEmpty():
        return "there is no message in the archive"
    if known.where(sf.col("fault").isNull() & sf.col("unjudged").isNull()).isEmpty():
        return "no message begins with an MQRFH, MQRFH2 or MQDLH that can be read: this is no archive of messages"
    return ""


def _judged(
    spark: SparkSession, outcomes: DataFrame, progress: Progress, *, with_pairs: bool
) -> list[tuple[ControlResult, DataFrame]]:
    frames = {ControlScope.CONVERSIONS: outcomes, ControlScope.RECORDS: outcomes}
    found: list[tuple[ControlResult, DataFrame]] = []
    for controls, without in ((OF_MESSAGES, ""), (HELD_BY_PAIRS, "" if with_pairs else _NO_PAIRS)):
        judgement = Judgement(
            spark=spark,
            audit_input=AuditInput(lines=outcomes, digests=None),
            frames=frames,
            scope=PolicyScope(),
            progress=progress,
            without={ControlScope.CONVERSIONS: without} if without else {},
        )
        for control in controls:
            judgement.judge(control)
        found += judgement.found
    return found


def _verdict(results: Sequence[ControlResult], scope: Scope) -> tuple[Verdict, str]:
    failed = [result for result in results if result.violations and result.severity == Severity.ERROR]
    if failed:
        names = ", ".join(result.identifier for result in failed)
        return Verdict.VIOLATIONS, f"{counted(sum(result.violations for result in failed), 'violation')} of {names}"
    if scope.lines_set_aside:
        name = scope.torn_files[0]
        return Verdict.NOT_EVALUABLE, f"{name} and others begin with _ or a dot and are not read: give them other names"
    return Verdict.CLEAN, f"{counted(scope.records, 'message')}, no violation"


def _kinds(outcomes: DataFrame) -> tuple[Count, ...]:
    """Messages by the format of their first header and their command."""
    readable = outcomes.where("has_message and fault is null and unjudged is null")
    rows = readable.groupBy("format", "command").count().orderBy("format", "command").limit(figures.GROUPS_SHOWN)
    return tuple(
        Count(group=row["format"], what=row["command"] or "no command", count=row["count"]) for row in rows.collect()
    )


def _with_evidence(controls: Sequence[ControlResult], outcomes: DataFrame) -> tuple[ControlResult, ...]:
    """The results, with the bytes of the conversions in their samples."""
    wanted = sorted({found.subject.removeprefix("message ") for each in controls for found in each.sample})
    if not wanted:
        return tuple(controls)
    kept = ["message_id", "conversion", "byte_offset", *_SIDES, *(f"{side}_bytes" for side in _SIDES)]
    keys = outcomes.sparkSession.createDataFrame([(name,) for name in wanted], "message_id string")
    shown = outcomes.where(sf.col("input").isNotNull() & ~sf.col("is_doubled")).join(
        sf.broadcast(keys), "message_id", "left_semi"
    )
    facts = {row["message_id"]: row.asDict() for row in shown.select(*kept).collect()}
    return tuple(replace(each, sample=tuple(_shown(found, facts) for found in each.sample)) for each in controls)


def _shown(found: Violation, facts: dict[str, dict[str, Any]]) -> Violation:
    name = found.subject.removeprefix("message ")
    fact = facts.get(name)
    return replace(found, segment=name, evidence=None if fact is None else _evidence(fact))


def _evidence(fact: dict[str, Any]) -> Evidence:
    sides = {side: bytes(fact[side] or b"") for side in _SIDES}
    offset = fact["byte_offset"] if sides["expected"] else -1
    encoded = {side: base64.b64encode(data).decode() for side, data in sides.items()}
    return Evidence(
        conversion=fact["conversion"],
        message_id=fact["message_id"],
        input=encoded["input"],
        input_bytes=fact["input_bytes"],
        output=encoded["output"],
        output_bytes=fact["output_bytes"],
        expected=encoded["expected"],
        expected_bytes=fact["expected_bytes"],
        byte_offset=offset,
        written_byte=sides["output"][offset : offset + 1].hex() if offset >= 0 else "",
        expected_byte=sides["expected"][offset : offset + 1].hex() if offset >= 0 else "",
    )
