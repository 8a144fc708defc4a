"""One control after another: what each found, and why one could not judge."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_audit.audit_input import AuditInput
from spark_audit.controls import digests, integrity
from spark_audit.controls.control import Control, Scope, Severity
from spark_audit.controls.window_edge import FROM_START
from spark_audit.kept_frame import kept
from spark_audit.policy_scope import PolicyScope
from spark_audit.result import ControlResult, ParameterInForce, Violation, counted
from spark_audit.verify import Verdict

#: Violations of a control that the result shows, with their bytes.
SAMPLE: Final = 50
_COLUMNS: Final = ("gateway", "sequence", "subject", "detail")
_SCHEMA: Final = "gateway string, sequence long, subject string, detail string"
#: Is told a line for people after each step.
Progress = Callable[[str], None]


@dataclass(slots=True, kw_only=True)
class Judgement:
    """Runs controls over the frames of an audit input.

    `frames` holds those of lines, records and conversions; `without` says why a kind of frame is not there to be
    judged. `scope` narrows what is told, not what is read; so does `not_told_before`, by the control's identifier.
    """

    spark: SparkSession
    audit_input: AuditInput
    frames: dict[Scope, DataFrame]
    scope: PolicyScope
    progress: Progress
    without: dict[Scope, str] = field(default_factory=dict)
    not_told_before: Callable[[str, DataFrame], DataFrame] | None = None
    found: list[tuple[ControlResult, DataFrame]] = field(default_factory=list)
    _faults_of_integrity: int = 0
    _empty: DataFrame | None = None
    _kept: ExitStack = field(default_factory=ExitStack)
    _switched_off: list[str] = field(default_factory=list)

    def judge(self, control: Control) -> None:
        """Runs one; the ones of OF_INTEGRITY go before the one that compares them with `verify`."""
        started = time.monotonic()
        if control.severity == Severity.OFF:
            self._switched_off.append(control.identifier)
            self._tell(control, started, self._nothing(), reason="")
        elif reason := self._why_not_evaluable(control):
            self._tell(control, started, self._nothing(), reason=reason)
        else:
            every = self._violations(control)
            told = every if control.scope == Scope.VERDICTS else self.scope.within(every, self.frames[Scope.RECORDS])
            told = self.not_told_before(control.identifier, told) if self.not_told_before else told
            self._tell(control, started, told, reason="")
            if control.identifier in integrity.OF_INTEGRITY:
                is_told_whole = self.scope.is_everything
                self._faults_of_integrity += self.found[-1][0].violations if is_told_whole else every.count()

    def close(self) -> None:
        """Lets go of what was kept for the controls."""
        self._kept.close()

    def _why_not_evaluable(self, control: Control) -> str:
        if control.scope in self.without:
            return self.without[control.scope]
        if control.scope == Scope.DIGESTS and self.audit_input.digests is None:
            return "there are no digests beside what was read"
        return self._why_no_agreement() if control.scope == Scope.VERDICTS else ""

    def _why_no_agreement(self) -> str:
        """Why the verdicts of Spark and `verify` cannot be compared; "" where they can."""
        if not self.audit_input.verifications:
            return f"verify did not check this: {self.audit_input.unverified}"
        if not self.audit_input.is_whole:
            return "Spark read a part of the trail: that of a period"
        left_out = sorted(set(self._switched_off) & set(integrity.OF_INTEGRITY))
        if left_out:
            return f"the policy has switched off {', '.join(left_out)}"
        unread = [check.reason for check in self.audit_input.verifications if check.verdict is Verdict.NOT_EVALUABLE]
        return f"verify could not judge: {unread[0]}" if unread else ""

    def _violations(self, control: Control) -> DataFrame:
        frame = self._frame(control.scope)
        if not self.audit_input.cut or all(each.name != FROM_START.name for each in control.parameters):
            return control.find(frame).select(*_COLUMNS)
        later = control.with_values({FROM_START.name: False})
        if not self.audit_input.has_trails:
            return later.find(frame).select(*_COLUMNS)
        is_cut = sf.col("trail").isin(*self.audit_input.cut)
        whole = control.find(frame.where(~is_cut)).select(*_COLUMNS)
        return whole.unionByName(later.find(frame.where(is_cut)).select(*_COLUMNS))

    def _frame(self, scope: Scope) -> DataFrame:
        audit_input = self.audit_input
        if scope == Scope.DIGESTS and audit_input.digests is not None and scope not in self.frames:
            frame = digests.beside_segments(
                audit_input.digests,
                self.frames[Scope.LINES],
                due=None if audit_input.more_is_to_come else audit_input.period,
                copies=audit_input.copies,
                public_key=audit_input.public_key,
            )
            self.frames[scope] = self._kept.enter_context(kept(frame))
        if scope == Scope.VERDICTS:
            return integrity.verdicts(self.spark, [self._verdicts()])
        return self.frames[scope]

    def _verdicts(self) -> tuple[str, int, int, str]:
        checks = self.audit_input.verifications
        faults = sum(check.problem_count for check in checks)
        worst = max(checks, key=lambda check: check.problem_count)
        name = "trail" if len(checks) == 1 else counted(len(checks), "trail")
        return name, self._faults_of_integrity, faults, worst.reason

    def _nothing(self) -> DataFrame:
        if self._empty is None:
            self._empty = self.spark.createDataFrame([], _SCHEMA)
        return self._empty

    def _tell(self, control: Control, started: float, told: DataFrame, *, reason: str) -> None:
        is_run = control.severity != Severity.OFF and not reason
        rows = told.limit(SAMPLE + 1).collect() if is_run else []
        count = len(rows) if len(rows) <= SAMPLE else told.count()
        seconds = round(time.monotonic() - started, 3)
        sample = sorted(rows[:SAMPLE], key=lambda row: (row["gateway"] or "", row["sequence"] or 0))
        said = counted(count, "violation") if is_run else reason or "off"
        self.progress(f"{control.identifier}: {said} ({seconds:.1f} s)")
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
            seconds=seconds,
            parameters=tuple(
                ParameterInForce(name=each.name, value=each.value, unit=each.unit, meaning=each.meaning)
                for each in control.parameters
            ),
            not_evaluable=reason,
        )
        self.found.append((result, told))
