"""All controls at once: their rules are one query, whose violations are kept, counted and sampled once.

facts        read once (engines/)
tables       a row an exchange, a row a message, and the doubtful ones (facts/derived.py); those of controls' steps
violations   the violations of all rules, in one table
told         those that the scope of the policy asks for, and that were not told before
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from spark_audit.audit_input import AuditInput
from spark_audit.controls import custody, integrity
from spark_audit.controls.control import Control, Scope, Severity, Tested
from spark_audit.engines.engine import VIOLATION, Engine, Row
from spark_audit.facts import derived
from spark_audit.increments.given import BEHIND_HEADS
from spark_audit.policy_scope import PolicyScope
from spark_audit.result import ControlResult, ParameterInForce, Violation, counted
from spark_audit.verify import Verdict

#: Violations of a control that the result shows, with their bytes.
SAMPLE: Final = 50
_NOTHING: Final = (
    "SELECT '' AS control, '' AS gateway, CAST(0 AS BIGINT) AS sequence, '' AS subject, '' AS detail WHERE false"
)
_SAMPLED: Final = f"""
SELECT * FROM (
  SELECT control, gateway, sequence, subject, detail, count(*) OVER (PARTITION BY control) AS violations,
    row_number() OVER (PARTITION BY control ORDER BY gateway, sequence, subject, detail) AS turn
  FROM told
) AS numbered WHERE turn <= {SAMPLE} ORDER BY control, turn
"""
#: Findings without the ones that the table `before` names.
_NOT_BEFORE: Final = """ANTI JOIN before ON before.control = found.control AND before.gateway = found.gateway
  AND before.sequence = found.sequence AND before.subject = found.subject"""


def make_tables(engine: Engine, *, goes_on: bool = False) -> None:
    """Makes the tables that the rules ask, from the facts that the engine has read.

    `goes_on`: it was given the state of an audit from which this one goes on.
    """
    engine.keep("exchanges", derived.EXCHANGES)
    engine.keep("messages", derived.MESSAGES)
    engine.keep("copies", derived.COPIES)
    engine.keep("gateways", derived.GATEWAYS_SINCE if goes_on else derived.GATEWAYS)
    engine.keep("segments", derived.SEGMENTS)
    is_late = bool(engine.rows("SELECT gateway FROM gateways WHERE is_late LIMIT 1"))
    sessions = derived.SESSIONS_SINCE if goes_on else derived.SESSIONS
    for name, query in (("sessions", sessions), ("firsts", derived.FIRSTS_SINCE if goes_on else derived.FIRSTS)):
        if is_late:
            engine.keep(name, query)
        else:
            engine.give(name, _EMPTY[name])


def keep_doubtful(engine: Engine, controls: Sequence[Control]) -> None:
    """Makes the tables of doubtful rows and of their records, for the rules of these controls."""
    doubts = [(table, each.with_parameters(doubt)) for each in controls for table, doubt in each.rule.doubts]
    if doubts:
        for name, query in derived.doubtful(doubts).items():
            engine.keep_few(name, query)


_TEXTS_OF_SESSIONS: Final = ("gateway", "client", "side")
_EMPTY: Final = {
    "sessions": pa.schema(
        [(name, pa.string()) for name in _TEXTS_OF_SESSIONS]
        + [("session_epoch", pa.int64()), ("first_exchange", pa.int64())]
    ).empty_table(),
    "firsts": pa.schema([("gateway", pa.string()), ("first_message", pa.string())]).empty_table(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Judges by controls, on an engine that has the tables of `make_tables`.

    `scope` narrows what is told, not what is looked at; so does the table `before` where `is_told_before`. `without`
    says why a scope of controls is not there to be judged.
    """

    engine: Engine
    audit_input: AuditInput
    controls: Sequence[Control]
    scope: PolicyScope = field(default_factory=PolicyScope)
    without: Mapping[Scope, str] = field(default_factory=dict)
    is_told_before: bool = False

    def results(self) -> tuple[ControlResult, ...]:
        """What each control found, in their order. The engine keeps every finding in the table `told`."""
        run = [control for control in self.controls if not self._why_not_run(control) and control.rule.query]
        keep_doubtful(self.engine, run)
        replay = None if self.audit_input.since is None else custody.replay  # its memory is due in any case
        for step in dict.fromkeys((replay, *(control.step for control in run))):
            if step is not None:
                step(self.engine, self.audit_input)
        self.engine.keep_few("violations", _union(run))
        self._keep_told()
        sampled: dict[str, list[Row]] = {}
        for row in self.engine.rows(_SAMPLED):
            sampled.setdefault(row["control"], []).append(row)
        tested = self._tested(run)
        return tuple(self._result(control, sampled, tested) for control in self.controls)

    def _keep_told(self) -> None:
        joins = [_NOT_BEFORE] if self.is_told_before else []
        if self.audit_input.since is not None:
            joins.append(BEHIND_HEADS)
        if not self.scope.is_everything:
            self.engine.keep("outside", self.scope.outside())
            joins.append("ANTI JOIN outside ON outside.gateway = found.gateway AND outside.sequence = found.sequence")
        faults = self._faults_of_integrity()
        disagreements = pa.Table.from_pylist(self._disagreements(faults), schema=VIOLATION)
        self.engine.give("disagreements", disagreements)
        told = f"SELECT found.* FROM violations AS found {' '.join(joins)}"
        self.engine.keep_few("told", f"{told}\nUNION ALL\nSELECT * FROM disagreements")

    def _faults_of_integrity(self) -> int:
        names = ", ".join(f"'{name}'" for name in integrity.OF_INTEGRITY)
        (row,) = self.engine.rows(f"SELECT count(*) AS faults FROM violations WHERE control IN ({names})")
        return int(row["faults"])

    def _disagreements(self, faults: int) -> list[Row]:
        """What the control integrity.agreement finds."""
        asked = [each for each in self.controls if each.identifier == integrity.AGREEMENT.identifier]
        if not asked or self._why_not_run(asked[0]):
            return []
        checks = self.audit_input.verifications
        of_verify = sum(check.faults for check in checks)
        if (faults > 0) == (of_verify > 0):
            return []
        worst = max(checks, key=lambda check: check.faults)
        name = "trail" if len(checks) == 1 else counted(len(checks), "trail")
        detail = f"this audit found {faults} faults of integrity, verify {of_verify}: {worst.reason}"
        identity = {"control": asked[0].identifier, "gateway": "", "sequence": 0}
        return [identity | {"subject": f"trail {name}", "detail": detail}]

    def _why_not_run(self, control: Control) -> str:
        return "off" if control.severity == Severity.OFF else self._why_not_evaluable(control)

    def _why_not_evaluable(self, control: Control) -> str:
        if control.scope in self.without:
            return self.without[control.scope]
        if control.scope == Scope.DIGESTS and self.audit_input.digests is None:
            return "there are no digests beside what was read"
        return self._why_no_agreement() if control.scope == Scope.VERDICTS else ""

    def _why_no_agreement(self) -> str:
        """Why the verdicts of this audit and `verify` cannot be compared; "" where they can."""
        if not self.audit_input.verifications:
            return f"verify did not check this: {self.audit_input.unverified}"
        if not self.audit_input.is_whole:
            return "this audit read a part of the trail: that of a period"
        off = {each.identifier for each in self.controls if each.severity == Severity.OFF}
        if left_out := sorted(off & set(integrity.OF_INTEGRITY)):
            return f"the policy has switched off {', '.join(left_out)}"
        unread = [check.reason for check in self.audit_input.verifications if check.verdict is Verdict.NOT_EVALUABLE]
        return f"verify could not judge: {unread[0]}" if unread else ""

    def _tested(self, run: Sequence[Control]) -> dict[Tested, int]:
        """How many items there are of each kind that controls test, in one query over each table."""
        wanted = list(dict.fromkeys(control.tested for control in run if control.tested.table))
        tables = dict.fromkeys(each.table for each in wanted)
        sums = [_sums(table, wanted) for table in tables]
        if not sums:
            return {}
        (row,) = self.engine.rows("SELECT * FROM " + " CROSS JOIN ".join(sums))
        return {each: int(row[f"n{place}"] or 0) for place, each in enumerate(wanted)}

    def _result(
        self, control: Control, sampled: Mapping[str, Sequence[Row]], tested: Mapping[Tested, int]
    ) -> ControlResult:
        rows = sampled.get(control.identifier, ())
        is_run = not self._why_not_run(control)
        is_agreement = control.scope == Scope.VERDICTS
        items = len(self.audit_input.verifications) if is_agreement else tested.get(control.tested, 0)
        return ControlResult(
            identifier=control.identifier,
            title=control.title,
            severity=control.severity.value,
            source=control.source,
            tested=items if is_run else 0,
            items=control.tested.what,
            violations=rows[0]["violations"] if rows else 0,
            sample=tuple(
                Violation(
                    gateway=row["gateway"], sequence=row["sequence"], subject=row["subject"], detail=row["detail"]
                )
                for row in rows
            ),
            parameters=tuple(
                ParameterInForce(name=each.name, value=each.value, unit=each.unit, meaning=each.meaning)
                for each in control.parameters
            ),
            not_evaluable="" if control.severity == Severity.OFF else self._why_not_evaluable(control),
        )


def _union(controls: Sequence[Control]) -> str:
    """The violations of all rules, each with its control."""
    columns = (
        "coalesce(gateway, '') AS gateway, CAST(coalesce(sequence, 0) AS BIGINT) AS sequence,"
        " coalesce(subject, '') AS subject, coalesce(detail, '') AS detail"
    )
    queries = [f"SELECT '{each.identifier}' AS control, {columns} FROM ({each.query()}) AS found" for each in controls]
    return "\nUNION ALL\n".join(queries) if queries else _NOTHING


def _sums(table: str, wanted: Sequence[Tested]) -> str:
    columns = ", ".join(
        f"sum(CASE WHEN {each.where} THEN {each.number} ELSE 0 END) AS n{place}"
        for place, each in enumerate(wanted)
        if each.table == table
    )
    return f"(SELECT {columns} FROM {table}) AS of_{table}"
