"""An audit from its input to the result: facts are read, controls judge, figures sum up. It knows nothing of files."""

import os
import platform
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from pyarrow import Table

from spark_audit.audit_input import AuditInput
from spark_audit.controls.control import Scope as ControlScope
from spark_audit.controls.control import Severity
from spark_audit.controls.reperformance import PERFORMED
from spark_audit.engines.engine import Engine
from spark_audit.facts.conversions import WITHOUT_KEY
from spark_audit.facts.reading import Reading
from spark_audit.increments.given import check_names, give
from spark_audit.judgement import Judgement, make_tables
from spark_audit.period import Period
from spark_audit.policy import Policy
from spark_audit.policy_scope import PolicyScope
from spark_audit.record import RECORD_VERSION
from spark_audit.reperform.comparison import Status
from spark_audit.report import figures
from spark_audit.report.evidence import with_evidence
from spark_audit.report.exceptions import write_exceptions
from spark_audit.result import AuditResult, ControlResult, ControlStatus, ConversionCount, Scope, Verdict, counted
from spark_audit.verify import LIMITS

#: Is told a line for people after each step.
Progress = Callable[[str], None]
_SALT_BYTES: Final = 16
STANDARD_POLICY: Final = Policy()
_CLOCK: Final = "timeliness.clock"
_MICROSECONDS: Final = 1_000_000


def audit(
    engine: Engine,
    audit_input: AuditInput,
    progress: Progress,
    *,
    policy: Policy = STANDARD_POLICY,
    report_folder: Path | None = None,
    personal_key: bytes | None = None,
    before: Table | None = None,
) -> AuditResult:
    """The result for an audit input. `progress` is told a line for people after each step.

    With a folder for the report, every violation is written there as Parquet. `personal_key` opens encrypted headers.
    Findings that the table `before` names are not told again. The engine keeps its tables until it is closed. Raises
    NamedBefore.
    """
    timer = _Timer()
    engine.read(audit_input.pieces, _reading(audit_input, policy, personal_key), audit_input.text_bytes)
    if audit_input.since is not None:
        give(engine, audit_input.since)
        check_names(engine)
    scope = replace(
        figures.scope(engine, size_bytes=audit_input.size_bytes, torn_files=audit_input.torn),
        from_us=audit_input.period.from_us,
        until_us=audit_input.period.until_us,
    )
    timer.step("reading")
    if reason := _why_not_evaluable(engine, scope):
        return not_evaluable(reason, scope, engine)
    make_tables(engine, goes_on=audit_input.since is not None)
    if before is not None:
        engine.give("before", before)
    judgement = Judgement(
        engine=engine,
        audit_input=audit_input,
        controls=policy.controls(),
        scope=_scope_of(policy, audit_input.period),
        without={ControlScope.CONVERSIONS: WITHOUT_KEY} if personal_key is None and _are_all_sealed(engine) else {},
        is_told_before=before is not None,
    )
    results = judgement.results()
    timer.step("judging")
    for each in results:
        progress(told(each))
    progress("adding up")
    result = _summed_up(results, engine, scope)
    if report_folder is not None:
        result = replace(result, exceptions=write_exceptions(engine, results, report_folder))
    timer.step("adding up")
    return replace(result, seconds=tuple(timer.seconds.items()))


class _Timer:
    """How long each step took, seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.monotonic()

    def step(self, name: str) -> None:
        """Ends a step."""
        now = time.monotonic()
        self.seconds[name], self._since = round(now - self._since, 3), now


def told(result: ControlResult) -> str:
    """A control's result in a line for people."""
    said = {
        ControlStatus.OFF: "off",
        ControlStatus.NOT_EVALUABLE: result.not_evaluable,
        ControlStatus.NOTHING_TO_TEST: f"no {result.items} to test",
    }.get(result.status, f"{counted(result.violations, 'violation')}, {result.items} tested: {result.tested}")
    return f"{result.identifier}: {said}"


def _reading(audit_input: AuditInput, policy: Policy, personal_key: bytes | None) -> Reading:
    """How the facts are read for a policy."""
    backwards_s = next(
        each.value for control in policy.controls() if control.identifier == _CLOCK for each in control.parameters
    )
    return Reading(
        period=audit_input.period,
        scope=policy.scope,
        backwards_us=backwards_s * _MICROSECONDS,
        personal_key=personal_key,
        cut=audit_input.cut,
        salt=audit_input.salt or os.urandom(_SALT_BYTES),
    )


def not_evaluable(reason: str, scope: Scope | None = None, engine: Engine | None = None) -> AuditResult:
    """The result where nothing could be judged."""
    return AuditResult(
        verdict=Verdict.NOT_EVALUABLE,
        reason=reason,
        audited_at=_now(),
        scope=scope or Scope(),
        engine=engine.name if engine else "",
        versions=_versions(engine),
        limits=LIMITS,
    )


def _are_all_sealed(engine: Engine) -> bool:
    """Whether headers are encrypted, and no conversion has others.

    Beside others the control `conversion.reperformable` tells which conversions were not performed again.
    """
    has_sealed = engine.rows("SELECT gateway FROM runs WHERE sealed > 0 LIMIT 1")
    return bool(has_sealed) and not engine.rows(f"SELECT kind FROM records WHERE {PERFORMED} LIMIT 1")


def _scope_of(policy: Policy, period: Period) -> PolicyScope:
    """What is told: the policy's scope, with the period that was asked for in the place of its own."""
    if period.is_everything:
        return policy.scope
    return replace(policy.scope, from_us=period.from_us, until_us=period.until_us)


def _why_not_evaluable(engine: Engine, scope: Scope) -> str:
    """Why nothing of what was read can be judged; "" where something can."""
    if not scope.records:
        return "no line of the trail is an audit record"
    (row,) = engine.rows("SELECT sum(other_versions) AS unknown, sum(counted) AS counted FROM runs WHERE is_fresh")
    if row["unknown"]:
        return f"{row['unknown']} records have another version than {RECORD_VERSION}; use the program that wrote them"
    return "" if row["counted"] else "no record lies within the period"


def _summed_up(results: tuple[ControlResult, ...], engine: Engine, scope: Scope) -> AuditResult:
    """The result of what controls found."""
    conversions = figures.conversions(engine)
    verdict, reason = _verdict(results, conversions, scope)
    result = AuditResult(
        verdict=verdict,
        reason=reason,
        audited_at=_now(),
        scope=scope,
        controls=with_evidence(results, engine),
        conversions=conversions,
        engine=engine.name,
        versions=_versions(engine),
        limits=LIMITS,
    )
    return figures.with_figures(result, engine)


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
        unable = [result.not_evaluable for result in results if result.not_evaluable == WITHOUT_KEY]
        return Verdict.NOT_EVALUABLE, unable[0] if unable else "no conversion could be performed again"
    others = sum(count.count for count in conversions) - judged
    performed = f"{counted(judged, 'conversion')} performed again" + (f" and {others} not" if others else "")
    return Verdict.CLEAN, f"{counted(scope.records, 'record')}, {performed}, no violation"


def _versions(engine: Engine | None) -> tuple[tuple[str, str], ...]:
    return (
        ("rfhbridge", _distribution("rfhbridge")),
        *(engine.versions if engine else ()),
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
