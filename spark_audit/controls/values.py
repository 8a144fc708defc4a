"""Records hold what their kind must hold: without it they would slip past every other control.

A line whose fields are of the wrong type is no record at all (integrity.lines). Here are the right types with values
that do not exist: an unknown kind, QoS 3, number 0, a hash that is none; and fields that are missing.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, gateway_subject, message_subject, violations
from spark_audit.record import EVENTS, FIELDS, KINDS, Kind

#: Allowed words of each field that has a few.
_WORDS: Final = {
    "kind": tuple(Kind),
    **{row.name: row.values for row in FIELDS if row.values},
    "event": tuple(event for events in EVENTS.values() for event in events),
}
#: Fields that other controls compare with the bytes of the line (integrity.hashes, integrity.chain).
_HASHES: Final = ("prev", "hash")


def find(records: DataFrame) -> DataFrame:
    wrong = sf.concat_ws(", ", *_wrong_values(), *_missing_fields())
    told = records.select("gateway", "sequence", "kind", wrong.alias("wrong")).where(sf.col("wrong") != "")
    detail = sf.concat(sf.col("kind"), sf.lit(": "), sf.col("wrong"))
    return violations(told, subject=gateway_subject(), detail=sf.substring(detail, 1, 400))


def _wrong_values() -> list[Column]:
    bounded = [_told(~sf.col(row.name).between(*row.bounds), row.name) for row in FIELDS if row.bounds]
    worded = [_told(~sf.col(name).isin(*words), name) for name, words in _WORDS.items()]
    hex_digits = [
        _told(~sf.col(row.name).rlike(f"^[0-9a-f]{{{row.digits}}}$"), row.name)
        for row in FIELDS
        if row.digits and row.name not in _HASHES
    ]
    return [*bounded, *worded, *hex_digits]


def _told(is_wrong: Column, name: str) -> Column:
    """The field with its value where that is wrong; null where it is right or left out."""
    value = sf.substring(sf.col(name).cast("string"), 1, 64)
    return sf.when(is_wrong, sf.concat(sf.lit(f"{name} is "), value))


def _missing_fields() -> list[Column]:
    """For each field the kinds that need it."""
    kinds: dict[str, list[Kind]] = {}
    for row in KINDS:
        for name in row.required:
            kinds.setdefault(name, []).append(row.kind)
    return [
        sf.when(sf.col(name).isNull() & sf.col("kind").isin(*needing), sf.lit(f"{name} is missing"))
        for name, needing in kinds.items()
    ]


CONTROL = Control(
    identifier="integrity.values",
    title="Each record holds what its kind must hold",
    severity=Severity.ERROR,
    source="spark_audit/record/fields.py: FIELDS",
    scope=Scope.RECORDS,
    rule=find,
)


def find_unexplained(records: DataFrame) -> DataFrame:
    """Records that leave out a field, refuse, dead-letter or drop, and do not say why."""
    unexplained = records.where(sf.exists("dropped_fields", _is_unexplained))
    nameless = records.where(
        sf.col("kind").isin(Kind.REFUSED, Kind.DEAD_LETTERED) & (sf.coalesce("reason_code", sf.lit(0)) == 0)
    )
    wordless = records.where((sf.col("kind") == Kind.DROPPED) & (sf.trim(sf.coalesce("reason", sf.lit(""))) == ""))
    found = (
        (unexplained, "a field was not copied, without a name or a reason"),
        (nameless, "refused or dead-lettered without a reason code"),
        (wordless, "dropped without a reason"),
    )
    frames = [violations(frame, subject=message_subject(), detail=sf.lit(detail)) for frame, detail in found]
    return frames[0].unionByName(frames[1]).unionByName(frames[2])


def _is_unexplained(pair: Column) -> Column:
    empty = (sf.trim(sf.get(pair, 0)) == "") | (sf.trim(sf.get(pair, 1)) == "")
    return sf.coalesce(empty, sf.lit(True)) | (sf.size(pair) != 2)


REASONS = Control(
    identifier="reasons",
    title="Everything that was not copied or not delivered has a reason",
    severity=Severity.ERROR,
    source="Message formats (aq19780_): fields that are not copied",
    scope=Scope.RECORDS,
    rule=find_unexplained,
)
