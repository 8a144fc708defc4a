"""An audit from trail to result: reads, runs every control, sums up. Knows nothing of files that it writes."""

import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
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
from spark_audit.result import (
    AuditResult,
    ControlResult,
    ConversionCount,
    Count,
    Difference,
    ProgramStart,
    Scope,
    Verdict,
    Violation,
    Volumes,
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
#: Violations of a control, and differences with their bytes, that the result shows.
SAMPLE: Final = 50
_GROUPS_SHOWN: Final = 200

Progress = Callable[[str], None]


def audit(spark: SparkSession, files: TrailFiles, progress: Progress) -> AuditResult:
    """The result for a trail. `progress` is told a line for people before and after each step."""
    if not files.segments or not files.size_bytes:
        return not_evaluable("there is no closed segment and no whole line: the trail is empty, or this is not a trail")
    progress(f"reading {counted(len(files.segments), 'segment')}, {files.size_bytes / 1e6:.1f} MB")
    trail = read_lines(spark, files).persist()
    outcomes = reperformance.reperformed(trail.where("is_record")).persist()
    try:
        return _audited(trail, outcomes, files, progress)
    finally:
        outcomes.unpersist()
        trail.unpersist()


def not_evaluable(reason: str, scope: Scope | None = None) -> AuditResult:
    """The result where nothing could be judged."""
    empty = Scope(
        segments=(),
        bytes=0,
        lines=0,
        records=0,
        lines_set_aside=0,
        torn_files=(),
        gateways=(),
        first_at_us=0,
        last_at_us=0,
    )
    return AuditResult(
        verdict=Verdict.NOT_EVALUABLE,
        reason=reason,
        audited_at=_now(),
        scope=scope or empty,
        versions=_versions(),
        limits=LIMITS,
    )


def _audited(trail: DataFrame, outcomes: DataFrame, files: TrailFiles, progress: Progress) -> AuditResult:
    records = trail.where("is_record")
    scope = _scope(trail, files)
    reason = _why_not_evaluable(records, scope)
    if reason:
        return not_evaluable(reason, scope)
    frames = {ControlScope.LINES: trail, ControlScope.RECORDS: records, ControlScope.CONVERSIONS: outcomes}
    results = tuple(_run(control, frames[control.scope], progress) for control in CONTROLS)
    progress("adding up")
    conversions = _conversions(outcomes)
    verdict, reason = _verdict(results, conversions, scope)
    return AuditResult(
        verdict=verdict,
        reason=reason,
        audited_at=_now(),
        scope=scope,
        controls=results,
        conversions=conversions,
        differences=_differences(outcomes),
        volumes=_volumes(records),
        starts=_starts(records),
        versions=_versions(),
        limits=LIMITS,
    )


def _scope(trail: DataFrame, files: TrailFiles) -> Scope:
    sums = trail.agg(
        sf.count("*").alias("lines"),
        sf.count_if("is_record").alias("records"),
        sf.min("at_us").alias("first"),
        sf.max("at_us").alias("last"),
        sf.sort_array(sf.collect_set(sf.when(sf.col("is_record"), sf.col("gateway")))).alias("gateways"),
    ).collect()[0]
    return Scope(
        segments=tuple(path.name for path in files.segments),
        bytes=files.size_bytes,
        lines=sums["lines"],
        records=sums["records"],
        lines_set_aside=sums["lines"] - sums["records"],
        torn_files=files.torn,
        gateways=tuple(sums["gateways"]),
        first_at_us=sums["first"] or 0,
        last_at_us=sums["last"] or 0,
    )


def _why_not_evaluable(records: DataFrame, scope: Scope) -> str:
    if not scope.records:
        return "no line of the trail is an audit record"
    unknown = records.where(sf.col("version") != RECORD_VERSION).count()
    if unknown:
        return f"{unknown} records have another version than {RECORD_VERSION}; use the program that wrote them"
    return ""


def _run(control: Control, frame: DataFrame, progress: Progress) -> ControlResult:
    started = time.monotonic()
    found = control.find(frame).select("gateway", "sequence", "subject", "detail")
    rows = found.limit(SAMPLE + 1).collect()
    count = len(rows) if len(rows) <= SAMPLE else found.count()
    seconds = time.monotonic() - started
    sample = sorted(rows[:SAMPLE], key=lambda row: (row["gateway"] or "", row["sequence"] or 0))
    progress(f"{control.identifier}: {counted(count, 'violation')} ({seconds:.1f} s)")
    return ControlResult(
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
    )


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


def _conversions(outcomes: DataFrame) -> tuple[ConversionCount, ...]:
    counted = (
        outcomes.groupBy("conversion", "status", "same_bytes").count().orderBy("conversion", "status", "same_bytes")
    )
    return tuple(
        ConversionCount(
            conversion=row["conversion"], status=row["status"], same_bytes=row["same_bytes"], count=row["count"]
        )
        for row in counted.collect()
    )


def _differences(outcomes: DataFrame) -> tuple[Difference, ...]:
    different = outcomes.where(sf.col("status") == Status.DIFFERENCE.value).orderBy("gateway", "sequence")
    return tuple(
        Difference(
            gateway=row["gateway"],
            sequence=row["sequence"],
            message_id=row["message_id"] or "",
            conversion=row["conversion"],
            detail=row["detail"],
            byte_offset=row["byte_offset"],
            input=row["input"] or "",
            output=row["output"] or "",
            expected=row["expected"] or "",
        )
        for row in different.limit(SAMPLE).collect()
    )


def _volumes(records: DataFrame) -> Volumes:
    dropped = records.select(sf.explode("dropped_fields").alias("pair"))
    return Volumes(
        kinds=_counts(records.groupBy(sf.lit("records").alias("group"), sf.col("kind").alias("what")).count()),
        exchanges=_counts(conservation.exchange_balance(records)),
        copies=_counts(conservation.copy_balance(records)),
        passages=_counts(passages.passage_balance(records)),
        dropped_fields=_counts(
            dropped.groupBy(sf.get("pair", 0).alias("group"), sf.get("pair", 1).alias("what")).count()
        ),
    )


def _counts(frame: DataFrame) -> tuple[Count, ...]:
    """Rows of a group, a thing and a count, the first _GROUPS_SHOWN of them in order."""
    group, what, count = frame.columns
    rows = frame.orderBy(group, what).limit(_GROUPS_SHOWN).collect()
    return tuple(Count(group=_words(row[group]), what=_words(row[what]), count=row[count]) for row in rows)


def _words(value: object) -> str:
    return "" if value is None else str(value)


def _starts(records: DataFrame) -> tuple[ProgramStart, ...]:
    started = records.where(sf.col("kind") == "started").orderBy("gateway", "sequence").limit(_GROUPS_SHOWN)
    return tuple(
        ProgramStart(
            gateway=row["gateway"],
            at_us=row["at_us"] or 0,
            code_version=_words(row["code_version"]),
            table_version=_words(row["table_version"]),
            configuration_sha256=_words(row["configuration_sha256"]),
        )
        for row in started.collect()
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
