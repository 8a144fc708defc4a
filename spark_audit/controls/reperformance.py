"""Every conversion is performed again from its raw bytes, by a reading of its own (spark_audit/reperform)."""

import base64
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, message_subject, violations
from spark_audit.personal import is_sealed
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.outcome import Finding, Outcome, Rule, Status
from spark_audit.reperform.own_bytes import COMPARED, differences_from_bytes
from spark_audit.reperform.performance import reperform
from spark_audit.reperform.rules import broken_rules

#: Conversions remembered by a worker: copies to many subscribers, or of many publications, are alike.
_REMEMBERED: Final = 20_000
_TEXTS: Final = (
    "conversion",
    "command",
    "topic",
    "queue",
    "input_format",
    "output_format",
    "target",
    "mode",
    "destination",
    "stream",
    "stream_style",
    "user",
)
_NUMBERS: Final = (
    "packet_type",
    "protocol_level",
    "granted_qos",
    "published_qos",
    "payload_bytes",
    "input_ccsid",
    "input_encoding",
    "output_ccsid",
    "output_encoding",
)
#: Looked at where a header for a target carries them; else alike conversions would not be.
_CARRIED: Final = ("client", "exchange", "correlation_id")
_COLUMNS: Final = (
    *_TEXTS,
    *_NUMBERS,
    *_CARRIED,
    "topic_filters",
    "is_retained",
    "dropped_fields",
    *COMPARED,
    "input",
    "output",
)
_IDENTITY: Final = ("gateway", "sequence", "message_id")
_OUTCOME: Final = (
    "status string, detail string, same_bytes boolean, byte_offset long, expected string, "
    "findings array<struct<rule:string,detail:string>>"
)
_SCHEMA: Final = (
    f"gateway string, sequence long, message_id string, conversion string, input string, output string, {_OUTCOME}"
)

#: Commands that may make the CorrelId a part of a client's identity.
_WITH_IDENTITY: Final = ("RegSub", "ReqUpdate", "DeregSub")
_CLOSED: Final = (
    "the headers are encrypted: with another key, or with this one and changed, or they do not hold a name of which the"
    " record has a hash"
)
#: Characters of a detail that are kept: it repeats what stands in headers, which may be long.
_DETAIL_SHOWN: Final = 2_000


@lru_cache(maxsize=_REMEMBERED)
def _again(facts: Facts) -> tuple[Outcome, tuple[Finding, ...]]:
    return reperform(facts), broken_rules(facts)


def reperformed(records: DataFrame) -> DataFrame:
    """One row for each conversion: its outcome, and where it is not a match the bytes before, after and expected."""
    conversions = records.where(sf.col("conversion").isNotNull()).select(*_IDENTITY, *_COLUMNS)
    return conversions.mapInArrow(_judge_batches, _SCHEMA)


def _judge_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in (*_IDENTITY, *_COLUMNS)]
        rows = [
            judged(dict(zip((*_IDENTITY, *_COLUMNS), values, strict=True))) for values in zip(*columns, strict=True)
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=_arrow_schema())


def judged(row: dict[str, Any]) -> dict[str, Any]:
    """The row of outcomes for one conversion: a record with every column that is looked at, its bytes in base64."""
    outcome, found = _outcome(row)
    shown = outcome.status is not Status.MATCH or bool(found)
    return {
        "gateway": row["gateway"],
        "sequence": row["sequence"],
        "message_id": row["message_id"],
        "conversion": row["conversion"],
        "input": row["input"] if shown else None,
        "output": row["output"] if shown else None,
        "status": outcome.status.value,
        "detail": _printable(outcome.detail),
        "same_bytes": outcome.same_bytes,
        "byte_offset": outcome.offset,
        "expected": base64.b64encode(outcome.expected).decode() if shown else None,
        "findings": [{"rule": each.rule.value, "detail": _printable(each.detail)} for each in found] or None,
    }


def _printable(detail: str) -> str:
    """Words that can be stored: cut, and without what UTF-8 cannot say."""
    return detail[:_DETAIL_SHOWN].encode(errors="replace").decode()


def _outcome(row: dict[str, Any]) -> tuple[Outcome, tuple[Finding, ...]]:
    """The judgement of a row. What a hostile record does to a reader is no error of the audit's."""
    if is_sealed(row["input"]) or is_sealed(row["output"]):
        return Outcome(status=Status.NOT_REPERFORMABLE, detail=_CLOSED, same_bytes=False), ()
    try:
        facts = _facts(row)
        outcome, found = _again(facts)
        return outcome, (*found, *differences_from_bytes(row, facts))
    except (ValueError, TypeError, ArithmeticError, LookupError) as error:
        detail = f"the record cannot be read: {error}"
        return Outcome(status=Status.NOT_REPERFORMABLE, detail=detail, same_bytes=False), ()


def _facts(row: dict[str, Any]) -> Facts:
    texts: dict[str, Any] = {name: row[name] or "" for name in _TEXTS}
    numbers: dict[str, Any] = {name: -1 if row[name] is None else row[name] for name in _NUMBERS}
    carried: dict[str, Any] = {}
    if row["destination"]:
        carried = {"client": row["client"] or "", "exchange": -1 if row["exchange"] is None else row["exchange"]}
    if row["command"] in _WITH_IDENTITY:
        carried["correlation_id"] = row["correlation_id"] or ""
    return Facts(
        **texts,
        **numbers,
        **carried,
        topic_filters=tuple(map(str, row["topic_filters"] or ())),
        is_retained=bool(row["is_retained"]),
        dropped_fields=tuple((str(name), str(reason)) for name, reason in row["dropped_fields"] or ()),
        input=base64.b64decode(row["input"] or "", validate=True),
        output=base64.b64decode(row["output"] or "", validate=True),
    )


def _arrow_schema() -> pa.Schema:
    text, number = pa.string(), pa.int64()
    findings = pa.list_(pa.struct([("rule", text), ("detail", text)]))
    types = {"sequence": number, "byte_offset": number, "same_bytes": pa.bool_(), "findings": findings}
    return pa.schema([(name, types.get(name, text)) for name in _output_names()])


def _output_names() -> list[str]:
    return [column.split()[0] for column in _SCHEMA.split(", ")]


def find(outcomes: DataFrame) -> DataFrame:
    """Outcomes that differ in meaning."""
    different = outcomes.where(sf.col("status") == Status.DIFFERENCE.value)
    detail = sf.concat(sf.col("conversion"), sf.lit(": "), sf.col("detail"))
    return violations(different, subject=message_subject(), detail=detail)


def find_unreadable(outcomes: DataFrame) -> DataFrame:
    """Outcomes that could not be judged."""
    unread = outcomes.where(sf.col("status") == Status.NOT_REPERFORMABLE.value)
    detail = sf.concat(sf.col("conversion"), sf.lit(": "), sf.col("detail"))
    return violations(unread, subject=message_subject(), detail=detail)


CONTROL = Control(
    identifier="conversion.reperformance",
    title="Each conversion, performed again, has the same result",
    severity=Severity.ERROR,
    source="Message formats (aq19780_): field table; MQTT 3.1.1 section 3.3",
    scope=Scope.CONVERSIONS,
    rule=find,
)
UNREADABLE = Control(
    identifier="conversion.reperformable",
    title="Each conversion can be performed again",
    severity=Severity.WARNING,
    source="Message formats (aq19780_): field table",
    scope=Scope.CONVERSIONS,
    rule=find_unreadable,
)


# A conversion that breaks a single rule mostly differs from its re-performance too. The control of the whole says that
# it is wrong; these say which rule of the specification it breaks (see reperform/rules.py).


def _control(rule: Rule, *, identifier: str, title: str, source: str) -> Control:
    return Control(
        identifier=identifier,
        title=title,
        severity=Severity.ERROR,
        source=source,
        scope=Scope.CONVERSIONS,
        rule=_broken(rule),
    )


def _broken(rule: Rule) -> Callable[[DataFrame], DataFrame]:
    """A function from outcomes to the violations of one rule."""

    def find(outcomes: DataFrame) -> DataFrame:
        told = outcomes.select("gateway", "sequence", "message_id", "conversion", sf.explode("findings").alias("found"))
        broken = told.where(sf.col("found.rule") == rule.value)
        detail = sf.concat(sf.col("conversion"), sf.lit(": "), sf.col("found.detail"))
        return violations(broken, subject=message_subject(), detail=detail)

    return find


FIELDS = _control(
    Rule.FIELDS,
    identifier="conversion.fields",
    title="The nine fields pass under their other names, and nothing else",
    source="Message formats (aq19780_): table of functionally equivalent fields",
)
SUPPORT = _control(
    Rule.SUPPORT,
    identifier="conversion.support",
    title="Options stand only where notes 1 to 7 support them",
    source="Message formats (aq19780_): option support table, notes 1 to 7",
)
REPORT = _control(
    Rule.REPORT,
    identifier="conversion.report",
    title="Every field that is left out is reported",
    source="Message formats (aq19780_): fields that are not copied",
)
BYTES = _control(
    Rule.BYTES,
    identifier="records.bytes",
    title="Each record says what its own bytes say",
    source="MQTT 3.1.1 sections 3.3, 3.8 and 3.10; spark_audit/record/notes.py",
)
RETAIN = _control(
    Rule.RETAIN,
    identifier="retained.option",
    title="RETAIN, RetainPub and IsRetainedPub stand for each other",
    source="Message formats (aq19780_): RetainPub, IsRetainedPub; MQTT 3.1.1 section 3.3.1.3",
)
