"""Records of a segment's lines, their types checked. A line without any is told as such; nothing makes this fail.

A record is a JSON object with at least a version, a sequence, a batch, a gateway and a kind, in which every field that
the format knows (record/fields.py) has its own type or is null. Fields that it does not know are passed over.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, Final, NamedTuple

import orjson

from spark_audit.record import FIELDS, HASH_SUFFIX_BYTES, hash_of_body
from spark_audit.record.batch_line import records_in

Record = dict[str, Any]
_REQUIRED: Final = ("version", "sequence", "batch", "gateway", "kind")
#: Those of them that are numbers.
_NUMBERS: Final = ("sequence", "batch")
_LARGEST: Final = 2**63 - 1
_SMALLEST: Final = -(2**63)
_SCALARS: Final[dict[str, type]] = {"long": int, "string": str, "boolean": bool}
_TYPES: Final[dict[str, type]] = {field.name: _SCALARS.get(field.type, list) for field in FIELDS}
#: Types within lists, from the outside.
_WITHIN: Final[dict[str, tuple[type, ...]]] = {
    "array<string>": (str,),
    "array<array<long>>": (list, int),
    "array<array<string>>": (list, str),
}
_LISTS: Final = {field.name: _WITHIN[field.type] for field in FIELDS if field.type in _WITHIN}
#: What a record takes of memory, at least.
_LEAST_BYTES: Final = 800
#: Characters of a line that are shown where it is no record.
_LINE_SHOWN: Final = 200


class Line:
    """A record and where it stands, or a line without one, of which `text` is the beginning.

    From the beginning of the block, `place` counts records and such lines, and `line_number` lines. `actual_hash` is
    that of the line's bytes, `size_bytes` what the record takes of memory, about. `names` are the fields of the record:
    records of a batch with the same tuple may be looked at together.
    """

    def __init__(
        self,
        trail: str,
        segment: str,
        block: int,
        place: int,
        line_number: int,
        record: Record | None,
        actual_hash: str,
        text: str | None,
        size_bytes: int = 0,
        names: tuple[str, ...] | None = None,
    ) -> None:
        self.trail = trail
        self.segment = segment
        self.block = block
        self.place = place
        self.line_number = line_number
        self.record = record
        self.actual_hash = actual_hash
        self.text = text
        self.size_bytes = size_bytes
        self.names: tuple[str, ...] = tuple(record or ()) if names is None else names


class _Shape(NamedTuple):
    """What is known of records with these fields and types: whether they may be records, and what is left to check."""

    names: tuple[str, ...]
    is_right: bool
    #: Takes all numbers out of a record.
    numbers: Callable[[Record], tuple[int, ...]]
    lists: tuple[str, ...]


#: Shapes of the records so far: a trail has some dozens.
_SHAPES: Final[dict[tuple[tuple[str, ...], tuple[type, ...]], _Shape]] = {}
_MOST_SHAPES: Final = 5_000


def lines_of(texts: Iterable[bytes], trail: str, segment: str, block: int) -> Iterator[Line]:
    """The records of a piece of a segment, and the lines without one, from the bytes of its lines."""
    place = 0
    for number, data in enumerate(texts):
        records, actual_hash = _parsed(data), hash_of(data)
        if records is None:
            yield Line(trail, segment, block, place, number, None, actual_hash, shown(data), len(data))
            place += 1
            continue
        least = max(len(data) // len(records), _LEAST_BYTES)
        for record, names in records:
            size_bytes = least + len(record.get("input") or "") + len(record.get("output") or "")
            yield Line(trail, segment, block, place, number, record, actual_hash, None, size_bytes, names)
            place += 1


def parsed(data: bytes) -> list[Record] | None:
    """The records in the bytes of a line; None where they are none."""
    found = _parsed(data)
    return None if found is None else [record for record, _ in found]


def _parsed(data: bytes) -> list[tuple[Record, tuple[str, ...]]] | None:
    """The records with their fields; those with fields of the same types share one tuple."""
    try:
        line = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if type(line) is not dict:
        return None
    records = records_in(data, line)
    if records is None:
        return None
    found: list[tuple[Record, tuple[str, ...]]] = []
    for record in records:
        names = _names_of(record)
        if names is None:
            return None
        found.append((record, names))
    return found


def _names_of(record: Record) -> tuple[str, ...] | None:
    """The fields of a record; None where it is none."""
    key = tuple(record), tuple(map(type, record.values()))
    shape = _SHAPES.get(key)
    if shape is None:
        if len(_SHAPES) >= _MOST_SHAPES:
            _SHAPES.clear()
        shape = _SHAPES[key] = _shape_of(record)
    if not shape.is_right:
        return None
    for name in shape.lists:
        if not _holds(record[name], _LISTS[name]):
            return None
    numbers = shape.numbers(record)
    return shape.names if min(numbers) >= _SMALLEST and max(numbers) <= _LARGEST else None


def _shape_of(record: Record) -> _Shape:
    told = {name: type(value) for name, value in record.items() if name in _TYPES and value is not None}
    return _Shape(
        names=tuple(record),
        is_right=all(_TYPES[name] is kind for name, kind in told.items()) and told.keys() >= set(_REQUIRED),
        numbers=itemgetter(*[name for name, kind in told.items() if kind is int], *_NUMBERS),
        lists=tuple(name for name, kind in told.items() if kind is list),
    )


def _holds(values: list[Any], types: tuple[type, ...]) -> bool:
    """Whether everything within lists is null or of these types, one for each depth."""
    for value in values:
        if value is None:
            continue
        if type(value) is not types[0]:
            return False
        if isinstance(value, list) and not _holds(value, types[1:]):
            return False
        if isinstance(value, int) and not _SMALLEST <= value <= _LARGEST:
            return False
    return True


def hash_of(data: bytes) -> str:
    """SHA-256 of a line's stored bytes up to and without the hash field, with the closing brace put back."""
    return hash_of_body(data[:-HASH_SUFFIX_BYTES])


def shown(data: bytes) -> str:
    """The beginning of a line that is no record, as text."""
    return data[: 4 * _LINE_SHOWN].decode(errors="replace")[:_LINE_SHOWN]
