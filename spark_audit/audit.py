"""An audit from trail to result: reads, runs every control, sums up. Knows nothing of files that it writes."""

import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_audit.controls import (
    batches,
    chain,
    conservation,
    delivery,
    hashes,
    lines,
    passages,
    payload,
    qos1,
    qos2,
    reasons,
    reperformance,
    sequence,
)
from spark_audit.controls.control import Control, Severity
from spark_audit.controls.control import Scope as ControlScope
from spark_audit.read import TrailFiles, read_lines
from spark_audit.record import RECORD_VERSION
from spark_audit.reperform.outcome import Status
from spark_audit.report import figures
from spark_audit.report.evidence import with_evidence
from spark_audit.report.exceptions import write_exceptions
from spark_audit.result import (
    AuditResult,
    ControlResult,
    ConversionCount,
    ParameterInForce,
    Scope,
    Verdict,
    Violation,
    counted,
)
from spark_audit.verify import LIMITS

CONTROLS: Final = (
    lines.CONTROL,
    hashes.CONTROL,
    chain.CONTROL,
    sequence.CONTROL,
    batches.CONTROL,
    reperformance.CONTROL,
    reperformance.UNREADABLE,
    qos1.CONTROL,
    qos2.CONTROL,
    delivery.CONTROL,
    payload.CONTROL,
    conservation.CONTROL,
    passages.CONTROL,
    reasons.CONTROL,
)
#: Violations of a control that the result shows, with their bytes.
SAMPLE: Final = 50

Progress = Callable[[str], None]


def audit(spark: SparkSession, files: TrailFiles, progress: Progress, report_folder: Path | None = None) -> AuditResult:
    """The result for a trail. `progress` is told a line for people before and after each step.

    With a folder for the report, every violation is written there as Parquet.
    """
    if not files.segments or not files.size_bytes:
        return not_evaluable("there is no closed segment and no whole line: the trail is empty, or this is not a trail")
    progress(f"reading {counted(len(files.segments), 'segment')}, {files.size_bytes / 1e6:.1f} MB")
    trail = read_lines(spark, files).persist()
    outcomes = reperformance.reperformed(trail.where("is_record")).persist()
    try:
        return _audited(trail, outcomes, files, progress, report_folder)
    finally:
        outcomes.unpersist()
        trail.unpersist()


def not_evaluable(reason: str, scope: Scope | None = None) -> AuditResult:
    """The result where nothing could be judged."""
    return AuditResult(
        verdict=Verdict.NOT_EVALUABLE,
        reason=reason,
        audited_at=_now(),
        scope=scope or Scope(),
        versions=_versions(),
        limits=LIMITS,
    )


def _audited(
    trail: DataFrame, outcomes: DataFrame, files: TrailFiles, progress: Progress, report_folder: Path | None
) -> AuditResult:
    records = trail.where("is_record")
    scope = figures.scope(trail, size_bytes=files.size_bytes, torn_files=files.torn)
    reason = _why_not_evaluable(records, scope)
    if reason:
        return not_evaluable(reason, scope)
    frames = {ControlScope.LINES: trail, ControlScope.RECORDS: records, ControlScope.CONVERSIONS: outcomes}
    found = [_run(control, frames[control.scope], progress) for control in CONTROLS]
    results = tuple(result for result, _frame in found)
    progress("adding up")
    conversions = figures.conversions(outcomes)
    verdict, reason = _verdict(results, conversions, scope)
    result = AuditResult(
        verdict=verdict,
        reason=reason,
        audited_at=_now(),
        scope=scope,
        controls=with_evidence(results, trail, outcomes),
        conversions=conversions,
        exceptions=write_exceptions(trail.sparkSession, found, report_folder) if report_folder else "",
        versions=_versions(),
        limits=LIMITS,
    )
    return figures.with_figures(result, records)


def _why_not_evaluable(records: DataFrame, scope: Scope) -> str:
    if not scope.records:
        return "no line of the trail is an audit record"
    unknown = records.where(sf.col("version") != RECORD_VERSION).count()
    if unknown:
        return f"{unknown} records have another version than {RECORD_VERSION}; use the program that wrote them"
    return ""


def _run(control: Control, frame: DataFrame, progress: Progress) -> tuple[ControlResult, DataFrame]:
    """What the control found, and the frame of all of it."""
    started = time.monotonic()
    found = control.find(frame).select("gateway", "sequence", "subject", "detail")
    rows = found.limit(SAMPLE + 1).collect()
    count = len(rows) if len(rows) <= SAMPLE else found.count()
    seconds = time.monotonic() - started
    sample = sorted(rows[:SAMPLE], key=lambda row: (row["gateway"] or "", row["sequence"] or 0))
    progress(f"{control.identifier}: {counted(count, 'violation')} ({seconds:.1f} s)")
    result = ControlResult(
        identifier=control.identifier,
        title=control.title,
        severity=control.severity.value,
        source=control.source,
        violations=count,
        sample=tuple(
            Violation(
                gateway=row["gateway"] or "",
                sequence=row["sequence"] or 0,
                subject=row["subject"] or "",
                detail=row["detail"] or "",
            )
            for row in sample
        ),
        seconds=round(seconds, 3),
        parameters=tuple(
            ParameterInForce(name=each.name, value=each.value, unit=each.unit, meaning=each.meaning)
            for each in control.parameters
        ),
    )
    return result, found


def _verdict(
    results: tuple[ControlResult, ...], conversions: tuple[ConversionCount, ...], scope: Scope
) -> tuple[Verdict, str]:
    failed = [result for result in results if result.violations and result.severity == Severity.ERROR]
    if failed:
        total = sum(result.violations for result in failed)
        names = ", ".join(result.identifier for result in failed)
        return Verdict.VIOLATIONS, f"{counted(total, 'violation')} of {names}"
    judged = sum(count.count for count in conversions if count.status != Status.NOT_REPERFORMABLE)
    if conversions and not judged:
        return Verdict.NOT_EVALUABLE, "no conversion could be performed again"
    return (
        Verdict.CLEAN,
        f"{counted(scope.records, 'record')}, {counted(judged, 'conversion')} performed again, no violation",
    )


def _versions() -> tuple[tuple[str, str], ...]:
    return (
        ("rfhbridge", _distribution("rfhbridge")),
        ("pyspark", _distribution("pyspark")),
        ("python", platform.python_version()),
        ("record", str(RECORD_VERSION)),
    )


def _distribution(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
