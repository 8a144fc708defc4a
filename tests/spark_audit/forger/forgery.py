"""A wrong trail: a true one with a change, made anew so that only its meaning is wrong.

A change is a list of operations on records. Each names the records with `at`: fields and their values, and

    for        the client for whom it is a copy: its registrations have the CorrelId of the record
    nth        which of the records that match, from 1; from the end where it is negative; 1 where nothing is said
    all        every record that matches

What an operation does is said by one key of OPERATIONS. Records are numbered anew, batches too, and the rest is what
the gateway does with its key: hashes, links, Merkle root, digest and signature.
"""

import base64
import tomllib
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.spark_audit.conftest import SignedTrail, TrailBuilder, signing_key

FORGERIES: Final = Path(__file__).with_name("forgeries.toml")
KEY: Final = 7

Record = dict[str, Any]
Operation = Mapping[str, Any]
_SEALED: Final = ("sequence", "batch", "gateway", "kind", "prev", "hash")


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgery:
    """A row of the table: what is wrong, in which class, how it is done, and who must find it."""

    identifier: str
    kind: str
    trail: str
    change: tuple[Operation, ...]
    control: str = ""
    not_found: str = ""


def forgeries() -> list[Forgery]:
    """Every row; a row has a control that must find it, or the reason why none does."""
    tables = tomllib.loads(FORGERIES.read_text())["wrong"]
    rows = [
        Forgery(
            identifier=table["id"],
            kind=table["class"],
            trail=table["trail"],
            change=tuple(table["change"]),
            control=table.get("control", ""),
            not_found=table.get("not_found", ""),
        )
        for table in tables
    ]
    assert len({row.identifier for row in rows}) == len(rows), "two rows have the same id"
    assert [row.identifier for row in rows if bool(row.control) == bool(row.not_found)] == []
    return rows


def forged(records: list[Record], change: tuple[Operation, ...]) -> list[Record]:
    """The records of the wrong trail; those that are given stay as they are. A change that changes nothing fails."""
    owners = _owners(records)
    wrong = list(map(dict, records))  # operations give fields other values, and change none of these
    for operation in change:
        (name,) = OPERATIONS.keys() & operation.keys()
        OPERATIONS[name](wrong, _found(wrong, operation["at"], owners), operation, owners)
    assert wrong != records, "nothing has changed"
    return wrong


def sealed(records: list[Record], folder: Path, gateway: str) -> SignedTrail:
    """Writes records as the trail of a gateway: with numbers, hashes and a signed digest of their own."""
    signed = SignedTrail(TrailBuilder(folder), signing_key(KEY), gateway)
    batch, before = 0, None
    for record in records:
        batch, before = batch + (record["batch"] != before), record["batch"]
        said = {name: value for name, value in record.items() if name not in _SEALED and value is not None}
        signed.trail.add(record["kind"], batch=batch, gateway=gateway, **said)
    signed.close()
    return signed


def _owners(records: list[Record]) -> dict[str, str]:
    """Clients by the CorrelIds of their registrations; an application is known by its queue."""
    commands = [
        each for each in records if each.get("command") == "RegSub" and {"client", "correlation_id"} <= each.keys()
    ]
    return {each["correlation_id"]: each["client"] for each in commands}


def _found(records: list[Record], at: Mapping[str, Any], owners: Mapping[str, str]) -> list[int]:
    """Places of the records that are meant."""
    fields = {name: value for name, value in at.items() if name not in ("for", "nth", "all")}
    places = [
        place
        for place, record in enumerate(records)
        if all(record.get(name) == value for name, value in fields.items())
        and ("for" not in at or _owner_of_copy(record, owners) == at["for"])
    ]
    if at.get("all"):
        assert places, f"no record is {at}"
        return places
    nth = at.get("nth", 1)
    assert len(places) >= abs(nth), f"{len(places)} records are {at}"
    return [places[nth if nth < 0 else nth - 1]]


def _owner_of_copy(record: Record, owners: Mapping[str, str]) -> str | None:
    return owners.get(record.get("correlation_id", "")) if record.get("conversion") == "header_to_header" else None


def _one(records: list[Record], at: Mapping[str, Any], owners: Mapping[str, str]) -> int:
    (place,) = _found(records, at, owners)
    return place


def _set(records: list[Record], places: list[int], operation: Operation, _owners: Mapping[str, str]) -> None:
    """set: fields get these values."""
    for place in places:
        records[place] |= operation["set"]


def _add(records: list[Record], places: list[int], operation: Operation, _owners: Mapping[str, str]) -> None:
    """add: numbers are raised by so much; in `depths` that of the first subscriber."""
    for place in places:
        for name, more in operation["add"].items():
            if name == "depths":
                (lane, number, oldest), *rest = records[place][name]
                records[place][name] = [[lane, str(int(number) + more), oldest], *rest]
            else:
                records[place][name] += more


def _without(records: list[Record], places: list[int], operation: Operation, _owners: Mapping[str, str]) -> None:
    """without: fields are left out."""
    for place in places:
        for name in operation["without"]:
            del records[place][name]


def _take(records: list[Record], places: list[int], operation: Operation, owners: Mapping[str, str]) -> None:
    """take: fields get the values that the record `from` has, or lacks; a mapping gives them other names."""
    source = records[_one(records, operation["from"], owners)]
    names = operation["take"]
    pairs = names.items() if isinstance(names, Mapping) else ((name, name) for name in names)
    for place in places:
        records[place] |= {name: source.get(there) for name, there in pairs}


def _replace(records: list[Record], places: list[int], operation: Operation, _owners: Mapping[str, str]) -> None:
    """replace: in the bytes of a field the first text becomes another of the same length, `times` of them."""
    old, new = (text.encode() for text in operation["with"])
    assert len(old) == len(new), "lengths stand in the header too"
    for place in places:
        data = base64.b64decode(records[place][operation["replace"]])
        assert old in data, f"{old!r} is not in {data!r}"
        records[place][operation["replace"]] = base64.b64encode(data.replace(old, new)).decode()


def _overwrite(records: list[Record], places: list[int], operation: Operation, _owners: Mapping[str, str]) -> None:
    """overwrite: the bytes of a field from `offset` on become others, given in hex."""
    new, offset = bytes.fromhex(operation["bytes"]), operation["offset"]
    for place in places:
        data = bytearray(base64.b64decode(records[place][operation["overwrite"]]))
        assert data[offset : offset + len(new)] != new
        data[offset : offset + len(new)] = new
        records[place][operation["overwrite"]] = base64.b64encode(data).decode()


def _drop(records: list[Record], places: list[int], _operation: Operation, _owners: Mapping[str, str]) -> None:
    """drop: the records are gone."""
    for place in reversed(places):
        del records[place]


def _double(records: list[Record], places: list[int], operation: Operation, _owners: Mapping[str, str]) -> None:
    """double: each record stands a second time behind itself, there with the fields of `double`."""
    for place in reversed(places):
        records.insert(place + 1, deepcopy(records[place]) | operation["double"])


def _move(records: list[Record], places: list[int], operation: Operation, owners: Mapping[str, str]) -> None:
    """move: the record goes in front of the one that `move` names, into its batch and its time."""
    (place,) = places
    record = records.pop(place)
    there = _one(records, operation["move"], owners)
    records.insert(there, record | {"batch": records[there]["batch"], "at_us": records[there]["at_us"]})


def _swap(records: list[Record], places: list[int], operation: Operation, owners: Mapping[str, str]) -> None:
    """swap: the record and the one that `swap` names change their values of the fields `of`; all but their places."""
    (place,) = places
    one, other = records[place], records[_one(records, operation["swap"], owners)]
    names = operation.get("of") or sorted((one.keys() | other.keys()) - {"batch", "at_us"})
    values = [(name, one.get(name), other.get(name)) for name in names]
    for name, here, there in values:
        one[name], other[name] = there, here


Change = Callable[[list[Record], list[int], Operation, Mapping[str, str]], None]

OPERATIONS: Final[Mapping[str, Change]] = {
    "set": _set,
    "add": _add,
    "without": _without,
    "take": _take,
    "replace": _replace,
    "overwrite": _overwrite,
    "drop": _drop,
    "double": _double,
    "move": _move,
    "swap": _swap,
}
