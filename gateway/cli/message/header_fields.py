"""The fields of a header by their offsets, read as far as the bytes go: for showing what a damaged header holds.

The rooms of `mappings` read a header as a whole or refuse it; here nothing is refused and nothing is judged. Pure.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mappings.errors import HeaderError
from mappings.headers.chain import FORMAT_DEAD_LETTER, FORMAT_MQRFH, FORMAT_MQRFH2
from mappings.headers.charset import decode_text, is_big_endian
from mappings.headers.opaque import announces_opaque_header, opaque_header_name

Value = str | int

#: Name, offset and length of each field; a length of 0 stands for a 4-byte integer. Sources: mappings.headers.mqrfh,
#: mappings.headers.mqrfh2, mappings.headers.chain, which give IBM's pages.
_INTEGER: Final = 0
_COMMON: Final = (
    ("StrucId", 0, 4),
    ("Version", 4, _INTEGER),
    ("StrucLength", 8, _INTEGER),
    ("Encoding", 12, _INTEGER),
    ("CodedCharSetId", 16, _INTEGER),
    ("Format", 20, 8),
    ("Flags", 28, _INTEGER),
)
_LAYOUTS: Final = {
    FORMAT_MQRFH: ("MQRFH", _COMMON),
    FORMAT_MQRFH2: ("MQRFH2", (*_COMMON, ("NameValueCCSID", 32, _INTEGER))),
    FORMAT_DEAD_LETTER: (
        "MQDLH",
        (
            ("StrucId", 0, 4),
            ("Version", 4, _INTEGER),
            ("Reason", 8, _INTEGER),
            ("DestQName", 12, 48),
            ("DestQMgrName", 60, 48),
            ("Encoding", 108, _INTEGER),
            ("CodedCharSetId", 112, _INTEGER),
            ("Format", 116, 8),
            ("PutApplType", 124, _INTEGER),
            ("PutApplName", 128, 28),
            ("PutDate", 156, 8),
            ("PutTime", 164, 8),
        ),
    ),
}
_NAME_VALUE_OFFSET: Final = {FORMAT_MQRFH: 32, FORMAT_MQRFH2: 36}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of fixed length; `offset` counts from the beginning of the data."""

    offset: int
    name: str
    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """Some bytes of the data, as far as they are there."""

    offset: int
    data: bytes


def structure_name(format: bytes) -> str | None:
    """The structure that a Format announces, where it is one that is read, or walked over."""
    if format in _LAYOUTS:
        return _LAYOUTS[format][0]
    return opaque_header_name(format) if announces_opaque_header(format) else None


def read_fields(data: bytes, offset: int, format: bytes, *, coded_char_set_id: int, encoding: int) -> tuple[Field, ...]:
    """The fixed fields of the structure at `offset` whose bytes are all there."""
    order = _byte_order(encoding)
    fields = []
    layout = _LAYOUTS[format][1] if format in _LAYOUTS else _COMMON  # headers that are walked over begin alike
    for name, position, length in layout:
        start = offset + position
        raw = data[start : start + (length or 4)]
        if len(raw) < (length or 4):
            break
        value: Value = _text(raw, coded_char_set_id) if length else struct.unpack(f"{order}i", raw)[0]
        fields.append(Field(offset=start, name=name, value=value))
    return tuple(fields)


def name_value_extent(data: bytes, offset: int, format: bytes, fields: tuple[Field, ...]) -> Extent:
    """What stands behind the fixed fields, up to StrucLength or the end of the data."""
    start = offset + _NAME_VALUE_OFFSET.get(format, len(data))
    lengths = [field.value for field in fields if field.name == "StrucLength"]
    end = offset + int(lengths[0]) if lengths else len(data)
    return Extent(offset=start, data=data[start : max(start, end)])


def name_value_data(extent: Extent, *, encoding: int) -> Iterator[Extent]:
    """Each NameValueData of an MQRFH2, the last one possibly cut."""
    order = _byte_order(encoding)
    position = 0
    while position + 4 <= len(extent.data):
        length = struct.unpack_from(f"{order}i", extent.data, position)[0]
        start = position + 4
        if length < 0:
            return
        yield Extent(offset=extent.offset + start, data=extent.data[start : start + length])
        position = start + length


def _byte_order(encoding: int) -> str:
    try:
        return ">" if is_big_endian(encoding) else "<"
    except HeaderError:
        return "<"


def _text(raw: bytes, coded_char_set_id: int) -> str:
    try:
        return decode_text(raw, coded_char_set_id).rstrip(" \0")
    except HeaderError:
        return raw.decode("latin-1").rstrip(" \0")
