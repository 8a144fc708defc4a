"""What is wrong with one record by itself: values that do not exist, fields that are missing, and reasons.

A line whose fields are of the wrong type is no record at all (lines.py). Here are the right types with values that do
not exist: an unknown kind, QoS 3, number 0, a hash that is none; and fields that are missing. Without what its kind
must hold a record would slip past every other control.
"""

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from spark_audit.facts.lines import Record
from spark_audit.record import EVENTS, FIELDS, KINDS, Kind

#: Fields that other controls compare with the bytes of the line (integrity.hash, integrity.chain).
_HASHES: Final = ("prev", "hash")
#: Characters of a value, and of all that is wrong, that are told.
_VALUE_SHOWN: Final = 64
_DETAIL_SHOWN: Final = 400
_UNEXPLAINED: Final = "a field was not copied, without a name or a reason"
_NAMELESS: Final = "refused or dead-lettered without a reason code"
_WORDLESS: Final = "dropped without a reason"
_UNKNOWN_CODE: Final = "refused or dead-lettered with a reason code that MQ does not have: "
#: First and last of MQRC_, MQRCCF_ and the MQRC_ of object interfaces (header files cmqc.h, cmqcfc.h and imqi.hpp).
_CODES: Final = ((2000, 2999), (3000, 4999), (6100, 6199))
_NEED_A_CODE: Final = frozenset((Kind.REFUSED, Kind.DEAD_LETTERED))

_BOUNDS: Final = {row.name: row.bounds for row in FIELDS if row.bounds}
_WORDS: Final[dict[str, frozenset[str]]] = {
    **{row.name: frozenset(row.values) for row in FIELDS if row.values},
    "kind": frozenset(Kind),
    "event": frozenset(event for events in EVENTS.values() for event in events),
}
_HEX: Final = {
    row.name: re.compile(f"[0-9a-f]{{{row.digits}}}").fullmatch
    for row in FIELDS
    if row.digits and row.name not in _HASHES
}
_DIGITS: Final = {row.name: row.digits for row in FIELDS}
_HEX_DIGITS: Final = b"0123456789abcdef"
_NEEDED: Final = {row.kind.value: row.required for row in KINDS}


class _Plan(NamedTuple):
    """What is to be checked of records of a kind with these fields, and what they lack."""

    bounded: tuple[tuple[str, int, int], ...]
    worded: tuple[tuple[str, frozenset[str]], ...]
    hex_digits: tuple[tuple[str, Callable[[str], object]], ...]
    missing: tuple[str, ...]
    #: Names that it must have, and of which no value is wrong.
    needed: tuple[str, ...]


@lru_cache(maxsize=5_000)
def _plan_of(kind: str, names: tuple[str, ...]) -> _Plan:
    checked = {*_BOUNDS, *_WORDS, *_HEX}
    return _Plan(
        bounded=tuple((name, *_BOUNDS[name]) for name in names if name in _BOUNDS),
        worded=tuple((name, _WORDS[name]) for name in names if name in _WORDS),
        hex_digits=tuple((name, _HEX[name]) for name in names if name in _HEX),
        missing=tuple(name for name in _NEEDED.get(kind, ()) if name not in names),
        needed=tuple(name for name in _NEEDED.get(kind, ()) if name in names and name not in checked),
    )


def may_be_wrong(kind: str, columns: Mapping[str, Sequence[Any]]) -> bool:
    """Whether something may be wrong with records of one kind that have the same fields.

    `columns` are the values of each field. If so, `wrong_values` finds it in the records.
    """
    plan = _plan_of(kind, tuple(columns))
    if plan.missing:
        return True
    try:
        for name, lowest, highest in plan.bounded:
            values = columns[name]
            if min(values) < lowest or max(values) > highest:
                return True
        for name, words in plan.worded:
            if not words.issuperset(columns[name]):
                return True
        for name, _ in plan.hex_digits:
            values = columns[name]
            if set(map(len, values)) != {_DIGITS[name]} or not _is_hex("".join(values)):
                return True
    except TypeError:  # a null, which is the same as if it were left out
        return True
    return any(None in columns[name] for name in plan.needed)


def _is_hex(text: str) -> bool:
    return not text.encode(errors="replace").translate(None, _HEX_DIGITS)


def wrong_values(record: Record) -> str:
    """What is wrong with a record's values, and which of its fields are missing; "" where nothing is."""
    if None in record.values():  # the same as if it were left out
        record = {name: value for name, value in record.items() if value is not None}
    kind = record["kind"]
    plan = _plan_of(kind, tuple(record))
    wrong = [name for name, lowest, highest in plan.bounded if not lowest <= record[name] <= highest]
    wrong += [name for name, words in plan.worded if record[name] not in words]
    wrong += [name for name, is_right in plan.hex_digits if not is_right(record[name])]
    if not wrong and not plan.missing:
        return ""
    told = [f"{name} is {_shown(record[name])}" for name in wrong] + [f"{name} is missing" for name in plan.missing]
    return f"{kind}: {', '.join(told)}"[:_DETAIL_SHOWN]


def _shown(value: object) -> str:
    return str(value)[:_VALUE_SHOWN]


def may_be_unexplained(kind: str, names: Container[str]) -> bool:
    """Whether `unexplained` may find something in records of a kind with these fields."""
    return kind in _NEED_A_CODE or kind == Kind.DROPPED or "dropped_fields" in names


def unexplained(record: Record) -> Iterator[str]:
    """Why a record that leaves out a field, refuses, dead-letters or drops does not say why."""
    kind = record["kind"]
    if (dropped := record.get("dropped_fields")) and any(map(_is_unexplained, dropped)):
        yield _UNEXPLAINED
    if kind in _NEED_A_CODE:
        code = record.get("reason_code")
        if not code:
            yield _NAMELESS
        elif not any(first <= code <= last for first, last in _CODES):
            yield f"{_UNKNOWN_CODE}{code}"
    if kind == Kind.DROPPED and not (record.get("reason") or "").strip(" "):
        yield _WORDLESS


def _is_unexplained(pair: list[str | None] | None) -> bool:
    return pair is None or len(pair) != 2 or not all(word and word.strip(" ") for word in pair)
