"""An audit from its input to the result: runs every control and sums up. It knows nothing of files."""

import platform
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_audit.audit_input import AuditInput
from spark_audit.controls import reperformance
from spark_audit.controls.control import Scope as ControlScope
from spark_audit.controls.control import Severity
from spark_audit.judgement import Judgement, Progress
from spark_audit.kept_frame import kept
from spark_audit.period import Period
from spark_audit.personal import SEALED_PREFIX
from spark_audit.policy import Policy
from spark_audit.policy_scope import PolicyScope
from spark_audit.record import RECORD_VERSION
from spark_audit.reperform.outcome import Status
from spark_audit.report import figures
from spark_audit.report.evidence import with_evidence
from spark_audit.report.exceptions import write_exceptions
from spark_audit.result import AuditResult, ControlResult, ConversionCount, Scope, Verdict, counted
from spark_audit.verify import LIMITS

STANDARD_POLICY: Final = Policy()
#: What only re-performance looks at; without it the lines are a third of their size.
BYTES: Final = ("input", "output")
SEALED: Final = "the headers are encrypted: name the key with --personal-key"
Decryption = Callable[[DataFrame], DataFrame]


def audit(
    spark: SparkSession,
    audit_input: AuditInput,
    progress: Progress,
    *,
    policy: Policy = STANDARD_POLICY,
    report_folder: Path | None = None,
    decryption: Decryption | None = None,
) -> AuditResult:
    """The result for an audit input. `progress` is told a line for people after each step.

    With a folder for the report, every violation is written there as Parquet. `decryption` makes records with encrypted
    bytes into records in clear.
    """
    conversions = audit_input.lines.where("is_record").where(audit_input.period.holds())
    without = {ControlScope.CONVERSIONS: SEALED} if decryption is None and is_sealed(conversions) else {}
    with ExitStack() as frames:
        lines = frames.enter_context(kept(audit_input.lines.drop(*BYTES)))
        scope = replace(
            figures.scope(lines, size_bytes=audit_input.size_bytes, torn_files=audit_input.torn),
            from_us=audit_input.period.from_us,
            until_us=audit_input.period.until_us,
        )
        if reason := why_not_evaluable(lines, scope, audit_input.period):
            return not_evaluable(reason, scope)
        clear = decryption(conversions) if decryption else conversions
        outcomes = frames.enter_context(kept(reperformance.reperformed(clear)))
        judgement = Judgement(
            spark=spark,
            audit_input=audit_input,
            frames={
                ControlScope.LINES: lines,
                ControlScope.RECORDS: lines.where("is_record"),
                ControlScope.CONVERSIONS: outcomes,
            },
            scope=_scope_of(policy, audit_input.period),
            progress=progress,
            without=without,
        )
        with closing(judgement):
            for control in policy.controls():
                judgement.judge(control)
            progress("adding up")
            records = judgement.frames[ControlScope.RECORDS].where(audit_input.period.holds())
            result = summed_up(judgement.found, audit_input.lines, outcomes, records, scope)
            if report_folder is None:
                return result
            return replace(result, exceptions=write_exceptions(spark, judgement.found, report_folder))


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


def is_sealed(records: DataFrame) -> bool:
    """Whether bytes of conversions are encrypted."""
    return not records.where(sf.col("input").startswith(SEALED_PREFIX)).isEmpty()


def _scope_of(policy: Policy, period: Period) -> PolicyScope:
    """What is told: the policy's scope, with the period that was asked for in the place of its own."""
    if period.is_everything:
        return policy.scope
    return replace(policy.scope, from_us=period.from_us, until_us=period.until_us)


def why_not_evaluable(lines: DataFrame, scope: Scope, period: Period) -> str:
    """Why nothing of these lines can be judged; "" where something can."""
    if not scope.records:
        return "no line of the trail is an audit record"
    records = lines.where("is_record")
    unknown = records.where(sf.col("version") != RECORD_VERSION).count()
    if unknown:
        return f"{unknown} records have another version than {RECORD_VERSION}; use the program that wrote them"
    if not period.is_everything and records.where(period.holds()).isEmpty():
        return "no record lies within the period"
    return ""


def summed_up(
    found: Sequence[tuple[ControlResult, DataFrame]],
    lines: DataFrame,
    outcomes: DataFrame,
    records: DataFrame,
    scope: Scope,
) -> AuditResult:
    """The result of what controls found: its sums are those of `records`, its bytes those of `lines`."""
    results = tuple(result for result, _frame in found)
    conversions = figures.conversions(outcomes)
    verdict, reason = _verdict(results, conversions, scope)
    result = AuditResult(
        verdict=verdict,
        reason=reason,
        audited_at=_now(),
        scope=scope,
        controls=with_evidence(results, lines, outcomes),
        conversions=conversions,
        versions=_versions(),
        limits=LIMITS,
    )
    return figures.with_figures(result, records)


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
        unable = [result.not_evaluable for result in results if result.not_evaluable == SEALED]
        return Verdict.NOT_EVALUABLE, unable[0] if unable else "no conversion could be performed again"
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
