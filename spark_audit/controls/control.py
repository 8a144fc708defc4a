"""A control: a rule in SQL over the tables of facts, and the number of items that it looks at.

A rule is a query that gives violations: `gateway`, `sequence`, `subject`, `detail`. It is written once, in the SQL that
Spark and DuckDB both run, and stands on facts/tables.py and facts/derived.py. A parameter stands in it by its name, in
braces. If a rule needs more than SQL can say, its Step makes a table in Python first.

Most rules look in two steps. A doubt is a condition on a row of `exchanges`, `messages` or `copies`, and a clean trail
has hardly a row for which it holds. The rule then looks at the records of doubtful rows alone, and tells each record
that is wrong. So a second fault of the same exchange is told too, at its own time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from spark_audit.audit_input import AuditInput
    from spark_audit.engines.engine import Engine

#: Makes one table of an engine, from what the audit reads and what the engine has already.
Step = Callable[["Engine", "AuditInput"], None]


class Severity(StrEnum):
    """ERROR makes the verdict `violations`; WARNING is told and leaves the verdict alone; OFF is not run, and said."""

    ERROR = "error"
    WARNING = "warning"
    OFF = "off"


class Scope(StrEnum):
    """What a control looks at, and what must be there for it to judge.

    TRAIL: the lines. CONVERSIONS: what conversions, performed again, gave. DIGESTS: the signed digests beside their
    segments. VERDICTS: what two programs say of the same trail.
    """

    TRAIL = "trail"
    CONVERSIONS = "conversions"
    DIGESTS = "digests"
    VERDICTS = "verdicts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A threshold of a control: its value in force (the default, where no policy says otherwise) and its unit."""

    name: str
    value: int | bool
    unit: str
    meaning: str
    minimum: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """The items that a control looks at: rows of a table where a condition holds. `what` names them for people.

    `number` is summed up where a row stands for several items.
    """

    what: str
    table: str
    where: str = "true"
    number: str = "1"


RECORDS: Final = Tested(what="records", table="runs", where="is_record", number="records")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A query for violations, and its doubts: conditions on rows of a table, by the table's name."""

    query: str
    doubts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A control: what it asks, why (source), the rule, and the items that it tests.

    `is_of_neighbours`: it compares items with each other that no exchange and no message holds together.
    """

    identifier: str
    title: str
    severity: Severity
    source: str
    rule: Rule
    tested: Tested = RECORDS
    scope: Scope = Scope.TRAIL
    parameters: tuple[Parameter, ...] = ()
    step: Step | None = None
    is_of_neighbours: bool = False

    def with_parameters(self, query: str) -> str:
        """A query of its rule with the parameters in force."""
        for parameter in self.parameters:
            query = query.replace(f"{{{parameter.name}}}", str(parameter.value).lower())
        return query

    def query(self) -> str:
        """The rule with the parameters in force."""
        return self.with_parameters(self.rule.query)

    def with_values(self, values: Mapping[str, int | bool]) -> Self:
        """The same control with other values for the parameters that are named."""
        parameters = tuple(replace(each, value=values.get(each.name, each.value)) for each in self.parameters)
        return replace(self, parameters=parameters)


def told_by_reader(identifier: str) -> Rule:
    """The rule of a control whose violations are of one record by itself: the reader has found them."""
    return Rule(query=f"SELECT gateway, sequence, subject, detail FROM findings WHERE control = '{identifier}'")


def violations(table: str, where: str, *, subject: str, detail: str, sequence: str = "sequence") -> Rule:
    """The violations among the rows of a table (or of a query in parentheses, with a name)."""
    return Rule(
        query=f"SELECT gateway, {sequence} AS sequence, {subject} AS subject, {detail} AS detail"
        f" FROM {table} WHERE {where}"
    )


def doubting(rule: Rule, *doubts: tuple[str, str]) -> Rule:
    """The same rule, which looks at doubtful rows and their records alone."""
    return Rule(query=rule.query, doubts=(*rule.doubts, *doubts))


def of_exchanges(side: str, doubt: str, told: str, detail: str, *, and_whole: str = "true") -> Rule:
    """Violations by those records of doubtful exchanges for which `told` holds.

    `and_whole` is a further condition on the exchange, with the columns of derived.doubtful_exchanges.
    """
    condition = f"side = '{side}' AND {doubt}"
    return Rule(
        query=f"""SELECT told.gateway, told.sequence, {exchange(side, "told.")} AS subject, {detail} AS detail
FROM (SELECT * FROM doubtful_exchanges WHERE {condition} AND {and_whole}) AS whole
JOIN records_of_exchanges AS told ON {same("whole", "told", *EXCHANGE, "side")}
WHERE {told}""",
        doubts=(("exchanges", condition),),
    )


def of_messages(doubt: str, told: str, detail: str, *, table: str = "messages", and_whole: str = "true") -> Rule:
    """The same for records of doubtful messages, or copies."""
    return Rule(
        query=f"""SELECT told.gateway, told.sequence, 'message ' || told.message_id AS subject, {detail} AS detail
FROM (SELECT * FROM doubtful_{table} WHERE {doubt} AND {and_whole}) AS whole
JOIN records_of_messages AS told ON {same("whole", "told", *OF_MESSAGE)}
WHERE {told}""",
        doubts=((table, doubt),),
    )


def differ(one: str, other: str) -> str:
    """The condition that of two columns, each with a lowest and a highest value, some values are not the same."""
    return f"({one}_low <> {other}_high OR {one}_high <> {other}_low)"


def is_another(told: str, column: str) -> str:
    """The condition that a record's value is not every value of a column with a lowest and a highest value."""
    return f"(told.{told} <> whole.{column}_low OR told.{told} <> whole.{column}_high)"


def same(one: str, two: str, *names: str) -> str:
    """The condition that two rows have the same values, or none."""
    return " AND ".join(f"{one}.{name} IS NOT DISTINCT FROM {two}.{name}" for name in names)


def all_of(*rules: Rule) -> Rule:
    """The violations of several rules together."""
    return Rule(
        query="\nUNION ALL\n".join(rule.query for rule in rules),
        doubts=tuple(doubt for rule in rules for doubt in rule.doubts),
    )


def exchange(direction: str, of: str = "") -> str:
    """An exchange in words, from the columns of a table (`of`, with its dot)."""
    return (
        f"'{direction}: client ' || coalesce({of}client, '?')"
        f" || ', session ' || coalesce(CAST({of}session_epoch AS STRING), '?')"
        f" || ', exchange ' || coalesce(CAST({of}exchange AS STRING), '?')"
    )


#: Columns that identify an exchange, and a message.
EXCHANGE: Final = ("gateway", "client", "session_epoch", "exchange")
OF_MESSAGE: Final = ("gateway", "message_id")
MESSAGE: Final = "'message ' || coalesce(message_id, '?')"
GATEWAY: Final = "'gateway ' || gateway"


def in_trail(name: str) -> str:
    """The name of a file, with its trail in front where several are read."""
    return f"CASE WHEN trail = '' THEN {name} ELSE trail || '/' || {name} END"
