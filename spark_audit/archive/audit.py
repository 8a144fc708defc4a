"""An audit of an archive of captured messages, from its files to the result. It writes no files."""

import base64
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

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
from spark_audit.audit import Progress, not_evaluable, told
from spark_audit.audit_input import AuditInput
from spark_audit.controls.archive import HELD_BY_PAIRS, OF_MESSAGES
from spark_audit.controls.control import Scope as ControlScope
from spark_audit.controls.control import Severity
from spark_audit.engines.engine import Engine
from spark_audit.engines.spark import SparkEngine
from spark_audit.judgement import Judgement
from spark_audit.reperform.captured import AskedConversion
from spark_audit.report import figures
from spark_audit.report.exceptions import OF_ARCHIVE, write_exceptions
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
    spark: SparkSession,
    archive: ArchiveToAudit,
    asked: AskedConversion,
    progress: Progress,
    report_folder: Path | None = None,
) -> AuditResult:
    """The result for an archive. Raises ArchiveError if it lacks a needed column, and PySpark's errors."""
    for name, value in _BATCHES.items():
        spark.conf.set(name, value)
    frame, with_pairs = _read(spark, archive)
    with closing(SparkEngine(spark)) as engine:
        engine.take("records", examined(frame, asked), archive.size_bytes)
        scope = _scope(engine, archive)
        if reason := _why_not_evaluable(engine):
            return replace(not_evaluable(reason, scope, engine), subject=Subject.ARCHIVE, limits=LIMITS)
        engine.keep("findings", _FINDINGS)
        engine.keep("dropped_fields", _DROPPED)
        results = _judged(engine, progress, with_pairs=with_pairs)
        verdict, reason = _verdict(results, scope)
        return replace(
            not_evaluable(reason, scope, engine),
            verdict=verdict,
            subject=Subject.ARCHIVE,
            integrity=Integrity(reason="an archive has no chain and no digests"),
            controls=_with_evidence(results, engine),
            conversions=figures.conversions(engine),
            dropped_fields=figures.dropped_fields(engine),
            balances=Balances(kinds=_kinds(engine)),
            exceptions=write_exceptions(engine, results, report_folder, OF_ARCHIVE) if report_folder else "",
            limits=LIMITS,
        )


_FINDINGS: Final = """
SELECT found.control, gateway, sequence, 'message ' || coalesce(message_id, '?') AS subject, found.detail
FROM records LATERAL VIEW explode(findings) AS found
"""
_DROPPED: Final = """
SELECT pair[0] AS name, pair[1] AS reason, 1 AS times FROM records LATERAL VIEW explode(dropped_fields) AS pair
"""


def _read(spark: SparkSession, archive: ArchiveToAudit) -> tuple[DataFrame, bool]:
    """The messages with their conversions, and whether the archive has conversions."""
    if archive.converted is not None:
        made = read_conversions(spark, archive.converted, archive.messages)
        return paired(read_messages(spark, archive.messages), made), True
    if holds_conversions(spark, archive.messages):
        return pairs_in_rows(spark, archive.messages), True
    return without_conversions(read_messages(spark, archive.messages)), False


def _scope(engine: Engine, archive: ArchiveToAudit) -> Scope:
    (row,) = engine.rows("SELECT count(*) AS messages FROM records WHERE has_message")
    messages = row["messages"]
    files = archive.messages.count + (archive.converted.count if archive.converted else 0)
    return Scope(
        segment_count=files,
        bytes=archive.size_bytes,
        lines=messages + len(archive.unread),
        records=messages,
        lines_set_aside=len(archive.unread),
        torn_files=archive.unread[: figures.GROUPS_SHOWN],
    )


def _why_not_evaluable(engine: Engine) -> str:
    (row,) = engine.rows(
        "SELECT count(*) AS messages, count(CASE WHEN is_readable THEN 1 END) AS readable"
        " FROM records WHERE has_message"
    )
    if not row["messages"]:
        return "there is no message in the archive"
    if not row["readable"]:
        return "no message begins with an MQRFH, MQRFH2 or MQDLH that can be read: this is no archive of messages"
    return ""


def _judged(engine: Engine, progress: Progress, *, with_pairs: bool) -> tuple[ControlResult, ...]:
    judgement = Judgement(
        engine=engine,
        audit_input=AuditInput(pieces=(), digests=None),
        controls=(*OF_MESSAGES, *HELD_BY_PAIRS),
        without={} if with_pairs else {ControlScope.CONVERSIONS: _NO_PAIRS},
    )
    results = judgement.results()
    for each in results:
        progress(told(each))
    return results


def _verdict(results: Sequence[ControlResult], scope: Scope) -> tuple[Verdict, str]:
    failed = [result for result in results if result.violations and result.severity == Severity.ERROR]
    if failed:
        names = ", ".join(result.identifier for result in failed)
        return Verdict.VIOLATIONS, f"{counted(sum(result.violations for result in failed), 'violation')} of {names}"
    if scope.lines_set_aside:
        name = scope.torn_files[0]
        return Verdict.NOT_EVALUABLE, f"{name} and others begin with _ or a dot and are not read: give them other names"
    return Verdict.CLEAN, f"{counted(scope.records, 'message')}, no violation"


def _kinds(engine: Engine) -> tuple[Count, ...]:
    """Messages by the format of their first header and their command."""
    rows = engine.rows(
        f"""SELECT format, command, count(*) AS times FROM records WHERE has_message AND is_readable
        GROUP BY format, command ORDER BY format, command LIMIT {figures.GROUPS_SHOWN}"""
    )
    return tuple(Count(group=row["format"], what=row["command"] or "no command", count=row["times"]) for row in rows)


def _with_evidence(controls: Sequence[ControlResult], engine: Engine) -> tuple[ControlResult, ...]:
    """The results, with the bytes of the conversions in their samples."""
    wanted = sorted({found.subject.removeprefix("message ") for each in controls for found in each.sample})
    if not wanted:
        return tuple(controls)
    engine.give("wanted", pa.table({"message_id": pa.array(wanted)}))
    columns = ", ".join(("message_id", "conversion", "byte_offset", *_SIDES, *(f"{side}_bytes" for side in _SIDES)))
    rows = engine.rows(
        f"""SELECT {columns} FROM records SEMI JOIN wanted USING (message_id)
        WHERE input IS NOT NULL AND NOT is_doubled"""
    )
    facts = {row["message_id"]: row for row in rows}
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
