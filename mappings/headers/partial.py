"""One header as far as it can be read: its fields, pairs and folders with their byte offsets, and every error.

`chain` refuses a message with a wrong header; `rfhbridge inspect` shows such a header with the help of this module. It
uses the layouts and the parsers of the strict readers, and where one of them raises an error, it keeps the error beside
what stands there. Nothing here is raised to the caller, whatever the bytes are.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mappings.errors import HeaderError, MappingError, NameValueError
from mappings.headers.chain import FORMAT_DEAD_LETTER, FORMAT_MQRFH, FORMAT_MQRFH2, FORMAT_TRANSMISSION, HeaderPlace
from mappings.headers.charset import UTF_8, byte_offsets, decode_text
from mappings.headers.layout import BINARY, COMMON, MQDLH, MQRFH2, MQXQH, NAME_VALUE_LENGTH, Layout
from mappings.headers.mqrfh2 import Element, name_value_data, read_folder
from mappings.headers.name_value import name_positions, parse_name_value_string
from mappings.headers.opaque import opaque_header_name

_LAYOUTS: Final = {
    FORMAT_MQRFH: ("MQRFH", COMMON),
    FORMAT_MQRFH2: ("MQRFH2", MQRFH2),
    FORMAT_DEAD_LETTER: ("MQDLH", MQDLH),
    FORMAT_TRANSMISSION: ("MQXQH", MQXQH),
}
_START_TAG: Final = re.compile(r"<(?!/)")
_ROOT: Final = re.compile(r"\s*<([^\s<>/]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedField:
    """A fixed field, or a pair of a NameValueString, and the byte offset at which it begins."""

    offset: int
    name: str
    value: str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedElement:
    """A property or group of a folder, and the byte offset of its tag."""

    offset: int
    name: str
    text: str
    attributes: tuple[tuple[str, str], ...]
    children: tuple["PlacedElement", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedFolder:
    """One NameValueData. A malformed folder has no elements; one that is all padding has no name either."""

    offset: int
    name: str
    text: str
    elements: tuple[PlacedElement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialHeader:
    """A header as far as its bytes go. Each error has the offset of the part that it is about.

    `pairs` are those of an MQRFH; a NameValueString that breaks its grammar is one pair with that name.
    """

    name: str
    place: HeaderPlace
    fields: tuple[PlacedField, ...]
    pairs: tuple[PlacedField, ...] = ()
    folders: tuple[PlacedFolder, ...] = ()
    errors: tuple[MappingError, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its pairs and of its folders."""
        return (*(pair.name for pair in self.pairs), *(folder.name for folder in self.folders))


def read_partially(data: bytes, place: HeaderPlace) -> PartialHeader:
    """The header at a place, as far as it can be read."""
    name, layout = _LAYOUTS.get(place.format) or (opaque_header_name(place.format), COMMON)
    fields = tuple(_fields(data, place, layout))
    numbers = {field.name: int(field.value) for field in fields if field.name in ("StrucLength", "NameValueCCSID")}
    end = min(place.offset + numbers.get("StrucLength", len(data)), len(data))
    pairs: tuple[PlacedField, ...] = ()
    folders: tuple[PlacedFolder, ...] = ()
    errors: list[MappingError] = []
    if place.format == FORMAT_MQRFH:
        pairs = _pairs(data, place, end, errors)
    elif place.format == FORMAT_MQRFH2:
        folders = _folders(data, place, end, numbers.get("NameValueCCSID", UTF_8), errors)
    return PartialHeader(name=name, place=place, fields=fields, pairs=pairs, folders=folders, errors=tuple(errors))


def _fields(data: bytes, place: HeaderPlace, layout: Layout) -> Iterator[PlacedField]:
    """The fixed fields whose bytes are all there."""
    there = data[place.offset : place.offset + layout.length_bytes]
    values = _in_encoding(layout, place.encoding).unpack(there.ljust(layout.length_bytes, b"\0"))
    ends = (*layout.offsets.values(), layout.length_bytes)[1:]
    for (name, offset), end, value in zip(layout.offsets.items(), ends, values, strict=True):
        if end > len(there):
            return
        shown: str | int = value
        if isinstance(value, bytes):
            shown = value.hex() if name in BINARY else _text(value, place.coded_char_set_id)
        yield PlacedField(offset=place.offset + offset, name=name, value=shown)


def _pairs(data: bytes, place: HeaderPlace, end: int, errors: list[MappingError]) -> tuple[PlacedField, ...]:
    """The pairs of an MQRFH, or its whole string where that breaks the grammar."""
    start, page = place.offset + COMMON.length_bytes, place.coded_char_set_id
    try:
        text = decode_text(data[start : max(start, end)].partition(b"\0")[0], page)
    except HeaderError as error:
        errors.append(_placed(error, start))
        return ()
    try:
        pairs = parse_name_value_string(text)
    except NameValueError as error:
        (offset,) = byte_offsets(text, [error.error_position or 0], start, page)
        errors.append(_placed(error, offset))
        return (PlacedField(offset=start, name="NameValueString", value=text),)
    offsets = byte_offsets(text, name_positions(text), start, page)
    return tuple(
        PlacedField(offset=offset, name=name, value=value) for offset, (name, value) in zip(offsets, pairs, strict=True)
    )


def _folders(
    data: bytes, place: HeaderPlace, end: int, name_value_ccsid: int, errors: list[MappingError]
) -> tuple[PlacedFolder, ...]:
    """The folders of an MQRFH2, the last one possibly cut; a malformed one is shown as its text."""
    folders: list[PlacedFolder] = []
    lengths = _in_encoding(NAME_VALUE_LENGTH, place.encoding)
    for start, length in name_value_data(data, place.offset + MQRFH2.length_bytes, end, lengths):
        if length < 0:
            break
        folders.append(_folder(data[start : min(start + length, end)], start, name_value_ccsid, place.encoding, errors))
    return tuple(folders)


def _folder(
    padded: bytes, offset: int, name_value_ccsid: int, encoding: int, errors: list[MappingError]
) -> PlacedFolder:
    """A folder with its elements; without them where it is malformed."""
    try:
        folder = read_folder(padded, offset, name_value_ccsid, encoding)
        if folder is None:
            return PlacedFolder(offset=offset, name="", text="")
        text = folder.text
    except HeaderError as error:
        errors.append(_placed(error, offset))
        text = padded.decode("latin-1").rstrip(" \0")
        root = _ROOT.match(text)
        return PlacedFolder(offset=offset, name=root[1] if root else "", text=text)
    elements: tuple[PlacedElement, ...] = ()
    try:
        tags = [found.start() for found in _START_TAG.finditer(text)][1:]
        elements = _elements(folder.elements, folder.byte_offsets(tags))
    except HeaderError as error:
        errors.append(_placed(error, offset))
    return PlacedFolder(offset=offset, name=folder.name, text=text, elements=elements)


def _elements(elements: tuple[Element, ...], offsets: Iterator[int]) -> tuple[PlacedElement, ...]:
    """Elements in the order of the document, each with the offset of the next start tag."""
    return tuple(
        PlacedElement(
            offset=next(offsets),
            name=element.name,
            text=element.text,
            attributes=element.attributes,
            children=_elements(element.children, offsets),
        )
        for element in elements
    )


def _placed(error: MappingError, offset: int) -> MappingError:
    """The error with an offset, where it has none of its own."""
    error.offset = offset if error.offset is None else error.offset
    return error


def _in_encoding(layout: Layout, encoding: int) -> struct.Struct:
    """Integers are shown as little-endian where Encoding names no byte order."""
    try:
        return layout.in_encoding(encoding)
    except HeaderError:
        return layout.little_endian


def _text(raw: bytes, coded_char_set_id: int) -> str:
    try:
        return decode_text(raw, coded_char_set_id).rstrip(" \0")
    except HeaderError:
        return raw.decode("latin-1").rstrip(" \0")
