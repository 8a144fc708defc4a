"""Changes of a true trail by chance: a forger who knows the key, and tries whatever a trail allows.

A change is of one record. It says what was done, to which kind of record and to which field, so that changes that no
control finds can be gathered by what they have in common. Left alone are times (`at_us`: nobody but the gateway says
them) and the last two commits, behind which a trail may go on.
"""

import base64
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

Record = dict[str, Any]
#: What `sealed` gives each record anew, and what says only when it was written.
_SEALED: Final = frozenset({"version", "sequence", "batch", "gateway", "kind", "prev", "hash", "at_us"})
#: Commits at the end that stay as they are.
_LAST: Final = 2
#: How far a record is moved, in commits.
_FAR: Final = 12
_HEX: Final = "0123456789abcdef"


class Sort(NamedTuple):
    """What changes have in common; `field` is "" where a whole record is concerned."""

    act: str
    kind: str
    field: str = ""


class Wrong(NamedTuple):
    """A trail with one change, and where in the true trail that is."""

    sort: Sort
    place: int
    records: list[Record]


def changed(records: list[Record], chance: random.Random) -> Wrong:
    """The trail with one change by chance."""
    end = sum(each["batch"] <= records[-1]["batch"] - _LAST for each in records)
    while True:
        place = chance.randrange(end)
        act = chance.choice(tuple(ACTS))
        for sort, wrong in ACTS[act](records, place, chance):
            if wrong != records:
                return Wrong(sort, place, wrong)


_Made = Iterator[tuple[Sort, list[Record]]]


def _dropped(records: list[Record], place: int, _chance: random.Random) -> _Made:
    yield Sort("drop", records[place]["kind"]), records[:place] + records[place + 1 :]


def _doubled(records: list[Record], place: int, _chance: random.Random) -> _Made:
    yield Sort("double", records[place]["kind"]), records[: place + 1] + records[place:]


def _moved(records: list[Record], place: int, chance: random.Random) -> _Made:
    """The record goes into an earlier or later commit, with its time."""
    record = records[place]
    others = [
        at
        for at, each in enumerate(records)
        if 0 < abs(each["batch"] - record["batch"]) <= _FAR
        and each["kind"] != record["kind"]
        and each["batch"] <= records[-1]["batch"] - _LAST
    ]
    if others:
        there = chance.choice(others)
        moved = record | {name: records[there][name] for name in ("batch", "at_us") if name in records[there]}
        left = records[:place] + records[place + 1 :]
        there -= there > place
        yield Sort("move", record["kind"]), [*left[:there], moved, *left[there:]]


def _without(records: list[Record], place: int, chance: random.Random) -> _Made:
    name = _field(records[place], chance)
    if name:
        record = {each: value for each, value in records[place].items() if each != name}
        yield Sort("leave out", record["kind"], name), _with(records, place, record)


def _exchanged(records: list[Record], place: int, chance: random.Random) -> _Made:
    """A field has the value that another record of this kind has there."""
    record = records[place]
    if name := _field(record, chance):
        others = [
            each[name]
            for each in records
            if each["kind"] == record["kind"] and name in each and each[name] != record[name]
        ]
        if others:
            yield Sort("exchange", record["kind"], name), _with(records, place, record | {name: chance.choice(others)})


def _bent(records: list[Record], place: int, chance: random.Random) -> _Made:
    """A field is another by a little: a number by one, a digit, a letter, a byte."""
    record = records[place]
    if name := _field(record, chance):
        value = _other(record[name], name, chance)
        if value != record[name]:
            yield Sort("bend", record["kind"], name), _with(records, place, record | {name: value})


ACTS: Final[Mapping[str, Callable[[list[Record], int, random.Random], _Made]]] = {
    "drop": _dropped,
    "double": _doubled,
    "move": _moved,
    "leave out": _without,
    "exchange": _exchanged,
    "bend": _bent,
}


def _with(records: list[Record], place: int, record: Record) -> list[Record]:
    return [*records[:place], record, *records[place + 1 :]]


def _field(record: Record, chance: random.Random) -> str:
    names = [name for name, value in record.items() if name not in _SEALED and value is not None]
    return chance.choice(names) if names else ""


def _other(value: Any, name: str, chance: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return max(0, value + chance.choice((-1, 1)))
    if isinstance(value, str) and name in ("input", "output"):
        data = bytearray(base64.b64decode(value))
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        return base64.b64encode(data).decode()
    if isinstance(value, str) and value:
        at = chance.randrange(len(value))
        letters = _HEX if set(value) <= set(_HEX) else "abcxyz"
        return value[:at] + chance.choice(letters) + value[at + 1 :]
    if isinstance(value, list) and value:
        at = chance.randrange(len(value))
        return [*value[:at], _other(value[at], name, chance), *value[at + 1 :]]
    return value
