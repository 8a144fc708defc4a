"""Each message of an archive, examined by the audit's own reading, and its conversion performed again.

One row for each name, with the findings of the controls of archives and of conversions.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final

import orjson
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from spark_audit.archive.files import LONGEST_MESSAGE_BYTES
from spark_audit.facts.reader import CONTROLS_OF_RULES, CONTROLS_OF_STATUS
from spark_audit.reperform.captured import (
    AskedConversion,
    Captured,
    Examination,
    Fault,
    UnknownHeader,
    examine,
    facts_of,
)
from spark_audit.reperform.code_page import UnknownCodePage
from spark_audit.reperform.comparison import Comparison, Finding, Reason, Rule, Status, UnreadableBytes
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.performance import reperform
from spark_audit.reperform.rules import broken_rules

#: The longest header, in bytes, that is kept to be shown.
_BYTES_SHOWN: Final = 96 * 1024
#: The most characters of a detail, and of a name. Both repeat texts of messages.
_DETAIL_SHOWN: Final = 2_000
_NAME_SHOWN: Final = 200
_REMEMBERED: Final = 20_000
_FORMATS: Final = {"MQHRF": "mqrfh", "MQHRF2": "mqrfh2"}
#: Errors that a hostile message may cause in a reader. They are no fault of the audit.
_CONFUSION: Final = (
    ValueError,
    TypeError,
    ArithmeticError,
    LookupError,
    RecursionError,
    UnknownCodePage,
    UnknownHeader,
)
_TEXT, _NUMBER, _TRUTH, _BINARY = pa.string(), pa.int64(), pa.bool_(), pa.binary()
_FINDING: Final = pa.struct([("control", _TEXT), ("detail", _TEXT)])
_SCHEMA: Final = pa.schema(
    {
        "gateway": _TEXT,
        "sequence": _NUMBER,
        "message_id": _TEXT,
        "has_message": _TRUTH,
        "has_made": _TRUTH,
        "is_refused": _TRUTH,
        "is_doubled": _TRUTH,
        "size_bytes": _NUMBER,
        "format": _TEXT,
        "command": _TEXT,
        "target": _TEXT,
        "is_readable": _TRUTH,
        "dropped_fields": pa.list_(pa.list_(_TEXT)),
        "conversion": _TEXT,
        "status": _TEXT,
        "same_bytes": _TRUTH,
        "byte_offset": _NUMBER,
        "findings": pa.list_(_FINDING),
        "input": _BINARY,
        "input_bytes": _NUMBER,
        "output": _BINARY,
        "output_bytes": _NUMBER,
        "expected": _BINARY,
        "expected_bytes": _NUMBER,
    }
)


#: A control, and what it finds.
_Found = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Performed:
    """Columns of a conversion that was performed again, and what controls find in it."""

    columns: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[_Found, ...] = ()


def examined(archive: DataFrame, asked: AskedConversion) -> DataFrame:
    """The comparisons of an archive in the form of `archive.paired`."""
    return archive.mapInArrow(partial(_examine_batches, asked=asked), from_arrow_schema(_SCHEMA))


def _examine_batches(batches: Iterable[pa.RecordBatch], *, asked: AskedConversion) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pylist([_row(row, asked) for row in batch.to_pylist()], schema=_SCHEMA)


def _row(row: dict[str, Any], asked: AskedConversion) -> dict[str, Any]:
    told = {
        "gateway": "",
        "sequence": 0,
        "message_id": row["name"],
        **{name: row[name] for name in ("has_message", "has_made", "is_refused", "is_doubled", "size_bytes")},
    }
    examination = _examination(row, asked) if row["has_message"] else None
    performed = _Performed()
    if examination is not None:
        told |= {
            "format": examination.format,
            "command": _cut(examination.command, _NAME_SHOWN),
            "target": examination.target,
            "is_readable": examination.fault is None and not examination.unjudged,
            "dropped_fields": [[_cut(name, _NAME_SHOWN), why] for name, why in examination.losses],
        }
        if row["has_made"] and row["data"] is not None:
            performed = _performed(row, asked)
    found = [*_found_alone(row, examination), *_found_in_pair(row, examination), *performed.findings]
    findings = [{"control": control, "detail": _cut(detail, _DETAIL_SHOWN)} for control, detail in found]
    return told | dict(performed.columns) | {"findings": findings}


def _found_alone(row: dict[str, Any], examination: Examination | None) -> Iterator[_Found]:
    """What is wrong with a message, whatever was made of it."""
    if examination is None:
        return
    if examination.fault is not None:
        yield "archive.readable", str(examination.fault)
    if examination.unjudged:
        yield "archive.judged", examination.unjudged
    if examination.refusal is not None and not row["is_refused"]:
        yield "archive.convertible", str(examination.refusal)
    for name, why in examination.losses:
        yield "archive.losses", f"{_cut(name, _NAME_SHOWN)}: {why}"


def _found_in_pair(row: dict[str, Any], examination: Examination | None) -> Iterator[_Found]:
    """A message without a conversion, and a conversion without a message."""
    if row["is_doubled"]:
        yield "archive.paired", "its name stands twice: nothing says which was made of which"
    elif examination is None:
        if row["has_made"]:
            yield "archive.paired", "it was converted from no message here"
    elif not (row["has_made"] or examination.fault or examination.refusal or examination.unjudged):
        is_refused = row["is_refused"]
        yield (
            "archive.paired",
            "it was refused, though it can be converted" if is_refused else "there is no conversion of it",
        )


def _examination(row: dict[str, Any], asked: AskedConversion) -> Examination:
    if row["data"] is None:
        too_long = (row["size_bytes"] or 0) > LONGEST_MESSAGE_BYTES
        what = f"longer than IBM MQ's longest message, {LONGEST_MESSAGE_BYTES} bytes" if too_long else "no data"
        return Examination(fault=Fault(reason=Reason.MQRC_RFH_ERROR, what=what))
    target = asked.target or _FORMATS.get(row["made_format"] or "", "")
    try:
        return examine(_captured(row, "data", ""), AskedConversion(target=target, mode=asked.mode))
    except _CONFUSION as error:
        return Examination(unjudged=f"the message cannot be read: {error}")


def _performed(row: dict[str, Any], asked: AskedConversion) -> _Performed:
    """The conversion of the message, performed again."""
    reported, mode = _reported(row["report"])
    try:
        asked = AskedConversion(target=asked.target, mode=mode or asked.mode)
        facts, body_is_same = facts_of(_captured(row, "data", ""), _captured(row, "made", "made_"), asked, reported)
        comparison, findings = _again(facts)
    except UnreadableBytes as error:
        return _not_performed(f"the input cannot be read: {error}")
    except _CONFUSION as error:
        return _not_performed(str(error))
    if reported is None:
        findings = tuple(each for each in findings if each.rule is not Rule.REPORT)
    columns = {
        "conversion": facts.conversion,
        "status": comparison.status.value,
        "same_bytes": comparison.same_bytes,
        "byte_offset": comparison.offset,
    }
    found = [(CONTROLS_OF_RULES[each.rule], f"{facts.conversion}: {each.detail}") for each in findings]
    if (control := CONTROLS_OF_STATUS.get(comparison.status)) is not None:
        found.append((control, f"{facts.conversion}: {comparison.detail}"))
    elif not comparison.same_bytes and comparison.expected:
        detail = f"the meaning is the same, and byte {comparison.offset} is another than the audit writes"
        found.append(("archive.bytes", detail))
    if not body_is_same:
        found.append(("archive.body", "the bytes behind the headers are others"))
    is_shown = bool(found) or not comparison.same_bytes
    return _Performed(columns | _sides(facts, comparison) if is_shown else columns, tuple(found))


@lru_cache(maxsize=_REMEMBERED)
def _again(facts: Facts) -> tuple[Comparison, tuple[Finding, ...]]:
    return reperform(facts), broken_rules(facts)


def _not_performed(detail: str) -> _Performed:
    status = Status.NOT_REPERFORMABLE
    columns = {"conversion": "service", "status": status.value, "same_bytes": False}
    return _Performed(columns, ((CONTROLS_OF_STATUS[status], f"service: {detail}"),))


def _sides(facts: Facts, comparison: Comparison) -> dict[str, Any]:
    sides = {"input": facts.input, "output": facts.output, "expected": comparison.expected}
    cut = {name: data[:_BYTES_SHOWN] for name, data in sides.items()}
    return cut | {f"{name}_bytes": len(data) for name, data in sides.items()}


def _captured(row: dict[str, Any], data: str, prefix: str) -> Captured:
    format = row[f"{prefix}format"]
    return Captured(
        data=bytes(row[data]),
        format=None if format is None else format.rstrip(" \0"),
        coded_char_set_id=row[f"{prefix}ccsid"],
        encoding=row[f"{prefix}encoding"],
    )


def _reported(report: str | None) -> tuple[tuple[tuple[str, str], ...] | None, str]:
    """The dropped names in a conversion's report, and its mode. An unreadable report names none."""
    if report is None:
        return None, ""
    try:
        told = orjson.loads(report)
        dropped = [field for field in told["fields"] if field["outcome"] == "dropped"]
        return tuple((str(field["name"]), str(field["reason"])) for field in dropped), str(told["mode"])
    except (ValueError, TypeError, LookupError):
        return (), ""


def _cut(text: str, limit: int) -> str:
    """Words that can be stored: cut, and without characters that UTF-8 cannot encode."""
    return text[:limit].encode(errors="replace").decode()
