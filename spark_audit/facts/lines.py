"""A line of a segment: parsed once, its types checked. What is no record is told as such, and nothing makes this fail.

A record is a JSON object with at least a version, a sequence, a batch, a gateway and a kind, in which every field that
the format knows (record/fields.py) has its own type or is null. Fields that it does not know are passed over.
"""

import hashlib
from typing import Any, Final, NamedTuple

import orjson

from spark_audit.record import FIELDS, HASH_SUFFIX_BYTES

Record = dict[str, Any]
_REQUIRED: Final = ("version", "sequence", "batch", "gateway", "kind")
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
#: Characters of a line that are shown where it is no record.
_LINE_SHOWN: Final = 200


class Line(NamedTuple):
    """A line and where it stands; `text` is its beginning where it is no record. `actual_hash` is that of its bytes.

    `size_bytes` is what it takes, about.
    """

    trail: str
    segment: str
    block: int
    place: int
    record: Record | None
    actual_hash: str
    text: str | None
    size_bytes: int = 0


class _Shape(NamedTuple):
    """What is known of records with these fields and types: whether they may be records, and what is left to check."""

    is_right: bool
    numbers: tuple[str, ...]
    lists: tuple[str, ...]


#: Shapes of the records so far: a trail has some dozens.
_SHAPES: Final[dict[tuple[tuple[str, ...], tuple[type, ...]], _Shape]] = {}
_MOST_SHAPES: Final = 5_000


def parsed(data: bytes) -> Record | None:
    """The record in the bytes of a line; None where they are none."""
    try:
        record = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if type(record) is not dict:
        return None
    key = tuple(record), tuple(map(type, record.values()))
    shape = _SHAPES.get(key)
    if shape is None:
        if len(_SHAPES) >= _MOST_SHAPES:
            _SHAPES.clear()
        shape = _SHAPES[key] = _shape_of(record)
    if not shape.is_right or any(not _holds(record[name], _LISTS[name]) for name in shape.lists):
        return None
    for name in shape.numbers:
        if record[name] > _LARGEST:  # smaller than the smallest is no number to orjson
            return None
    return record


def _shape_of(record: Record) -> _Shape:
    told = {name: type(value) for name, value in record.items() if name in _TYPES and value is not None}
    return _Shape(
        is_right=all(_TYPES[name] is kind for name, kind in told.items()) and told.keys() >= set(_REQUIRED),
        numbers=tuple(name for name, kind in told.items() if kind is int),
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
    return hashlib.sha256(data[:-HASH_SUFFIX_BYTES] + b"}").hexdigest()


def shown(data: bytes) -> str:
    """The beginning of a line that is no record, as text."""
    return data[: 4 * _LINE_SHOWN].decode(errors="replace")[:_LINE_SHOWN]
