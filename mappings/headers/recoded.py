"""Message data in another code page and byte order: headers that are known here, and the text behind them.

MQRFH, MQRFH2, MQDLH, MQXQH with its MQMD, MQIIH and MQCIH are converted, each with what it says of its follower, and so
is a body of Format MQSTR. Folders of an MQRFH2 stay in NameValueCCSID. A body without a Format (MQFMT_NONE) stays as it
is, because nobody says what it is; so does its description. Data of any other Format cannot be converted.
Source: IBM MQ, "Processing of data conversion", "MQRFH2", "MQXQH", "MQIIH", "MQCIH".
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from mappings.errors import ConversionError, HeaderError
from mappings.headers.chain import (
    FORMAT_DEAD_LETTER,
    FORMAT_MQRFH,
    FORMAT_MQRFH2,
    FORMAT_NONE,
    FORMAT_STRING,
    FORMAT_TRANSMISSION,
)
from mappings.headers.charset import (
    CODED_CHAR_SET_IDS,
    INHERIT,
    TWO_BYTE_CODED_CHAR_SET_IDS,
    UNDEFINED,
    decode_text,
    encode_text,
    is_big_endian,
)
from mappings.headers.fixed_part import format_from, format_in
from mappings.headers.layout import BINARY, MQCIH_1, MQCIH_2, MQDLH, MQIIH, MQXQH, Layout
from mappings.headers.mqrfh import read_mqrfh, write_mqrfh_string
from mappings.headers.mqrfh2 import read_mqrfh2, write_mqrfh2
from mappings.reasons import Reason

FORMAT_IMS: Final = b"MQIMS   "
FORMAT_CICS: Final = b"MQCICS  "
#: Headers in front of a body; no message has so many.
MAXIMUM_HEADERS: Final = 100

#: The fields of a structure by their names.
_Values = dict[str, int | bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFormat:
    """What a structure says of the data behind it."""

    format: bytes
    coded_char_set_id: int
    encoding: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """A header that was read: its length, what it says of its follower, and how it is written in another form."""

    length: int
    follower: DataFormat
    write: Callable[[DataFormat, DataFormat], bytes]


def recoded(data: bytes, source: DataFormat, *, coded_char_set_id: int, encoding: int) -> bytes:
    """The data in another code page and byte order.

    Raises HeaderError or ConversionError: MQRC_SOURCE_CCSID_ERROR, MQRC_TARGET_CCSID_ERROR, MQRC_NOT_CONVERTED and
    others. MQRC_FORMAT_ERROR stands for a Format that cannot be converted.
    """
    if source.format not in _READERS and source.format != FORMAT_STRING:
        raise _no_format(source.format)
    for page, reason in (
        (source.coded_char_set_id, Reason.MQRC_SOURCE_CCSID_ERROR),
        (coded_char_set_id, Reason.MQRC_TARGET_CCSID_ERROR),
    ):
        if page not in CODED_CHAR_SET_IDS:
            raise HeaderError(reason, f"code page {page} is not known", parameter=str(page))
    headers, offset, place = _read(data, source)
    if headers and coded_char_set_id in TWO_BYTE_CODED_CHAR_SET_IDS:
        raise HeaderError(Reason.MQRC_TARGET_CCSID_ERROR, f"no header can be in page {coded_char_set_id}")
    is_whole = place.format == FORMAT_NONE and bool(headers)
    if not is_whole and place.format != FORMAT_STRING:
        raise _no_format(place.format)
    body = data[offset:]
    written: list[bytes] = []
    if is_whole:
        follower = place
    else:
        follower = DataFormat(format=FORMAT_STRING, coded_char_set_id=coded_char_set_id, encoding=encoding)
        text = decode_text(body, place.coded_char_set_id, encoding=place.encoding)
        body = encode_text(text, coded_char_set_id, encoding=encoding)
    for kind, header in reversed(headers):
        here = DataFormat(format=kind, coded_char_set_id=coded_char_set_id, encoding=encoding)
        written.append(header.write(here, follower))
        follower = here
    return b"".join((*reversed(written), body))


def _no_format(format: bytes) -> ConversionError:
    return ConversionError(Reason.MQRC_FORMAT_ERROR, f"data of Format {format!r} cannot be converted")


def _read(data: bytes, source: DataFormat) -> tuple[list[tuple[bytes, _Header]], int, DataFormat]:
    """The headers in front of the body with their Formats, where the body begins, and what is said of it."""
    headers: list[tuple[bytes, _Header]] = []
    offset, place = 0, source
    while (read := _READERS.get(place.format)) is not None:
        if len(headers) >= MAXIMUM_HEADERS:
            raise ConversionError(Reason.MQRC_FORMAT_ERROR, f"there are more than {MAXIMUM_HEADERS} headers")
        header = read(data, offset, place)
        headers.append((place.format, header))
        offset, place = offset + header.length, _said(header.follower, place)
    return headers, offset, place


def _said(follower: DataFormat, place: DataFormat) -> DataFormat:
    """What a structure at a place says of its follower, with the code page that it inherits."""
    if follower.coded_char_set_id not in (INHERIT, UNDEFINED):
        return follower
    return DataFormat(format=follower.format, coded_char_set_id=place.coded_char_set_id, encoding=follower.encoding)


def _rfh(data: bytes, offset: int, place: DataFormat) -> _Header:
    read = read_mqrfh(data, offset, coded_char_set_id=place.coded_char_set_id, encoding=place.encoding)

    def write(here: DataFormat, follower: DataFormat) -> bytes:
        string = encode_text(read.name_value_string.rstrip(" "), here.coded_char_set_id)
        blank = encode_text(" ", here.coded_char_set_id)
        return write_mqrfh_string(
            string + blank * (-len(string) % 4),
            format=follower.format,
            next_coded_char_set_id=follower.coded_char_set_id,
            next_encoding=follower.encoding,
            coded_char_set_id=here.coded_char_set_id,
            encoding=here.encoding,
            flags=read.flags,
        )

    follower = DataFormat(format=read.format, coded_char_set_id=read.coded_char_set_id, encoding=read.encoding)
    return _Header(length=read.struc_length, follower=follower, write=write)


def _rfh2(data: bytes, offset: int, place: DataFormat) -> _Header:
    read = read_mqrfh2(data, offset, coded_char_set_id=place.coded_char_set_id, encoding=place.encoding)

    def write(here: DataFormat, follower: DataFormat) -> bytes:
        return write_mqrfh2(
            read.folders,
            format=follower.format,
            next_coded_char_set_id=follower.coded_char_set_id,
            next_encoding=follower.encoding,
            coded_char_set_id=here.coded_char_set_id,
            encoding=here.encoding,
            flags=read.flags,
            name_value_ccsid=read.name_value_ccsid,
        )

    follower = DataFormat(format=read.format, coded_char_set_id=read.coded_char_set_id, encoding=read.encoding)
    return _Header(length=read.struc_length, follower=follower, write=write)


def _fixed(layouts: tuple[Layout, ...]) -> Callable[[bytes, int, DataFormat], _Header]:
    """A reader of a structure of fixed fields, in one of these layouts: the last one that its length allows."""

    def read(data: bytes, offset: int, place: DataFormat) -> _Header:
        layout = _layout_of(data, offset, place, layouts)
        read = layout.in_encoding(place.encoding).unpack_from(data, offset)
        values: _Values = dict(zip(layout.offsets, read, strict=True))
        length = _number(values.get("StrucLength", layout.length_bytes))
        rest = data[offset + layout.length_bytes : offset + length]
        if not layout.length_bytes <= length <= len(data) - offset:
            raise HeaderError(Reason.MQRC_NOT_CONVERTED, "StrucLength is not that of the structure", offset=offset)
        name = format_from(_characters(values["Format"]), place.coded_char_set_id)
        if name is None:
            raise HeaderError(Reason.MQRC_NOT_CONVERTED, "a Format is no name", offset=offset)
        said = DataFormat(
            format=name,
            coded_char_set_id=_number(values["CodedCharSetId"]),
            encoding=_number(values["Encoding"]),
        )
        return _Header(
            length=length,
            follower=said,
            write=lambda here, follower: b"".join(_written(layout, values, place, here, follower)) + rest,
        )

    return read


def _layout_of(data: bytes, offset: int, place: DataFormat, layouts: tuple[Layout, ...]) -> Layout:
    if place.coded_char_set_id in TWO_BYTE_CODED_CHAR_SET_IDS:
        raise HeaderError(Reason.MQRC_NOT_CONVERTED, "a header cannot be in a two-byte page", offset=offset)
    version = int.from_bytes(data[offset + 4 : offset + 8], _order(place.encoding))
    if not 1 <= version <= len(layouts) or len(data) - offset < layouts[version - 1].length_bytes:
        raise HeaderError(Reason.MQRC_NOT_CONVERTED, f"there is no whole header of version {version}", offset=offset)
    return layouts[version - 1]


def _order(encoding: int) -> Literal["big", "little"]:
    return "big" if is_big_endian(encoding) else "little"


def _number(value: int | bytes) -> int:
    assert isinstance(value, int)
    return value


def _characters(value: int | bytes) -> bytes:
    assert isinstance(value, bytes)
    return value


def _written(
    layout: Layout, values: _Values, place: DataFormat, here: DataFormat, follower: DataFormat
) -> Iterator[bytes]:
    """The fields of a structure in another form."""
    said: _Values = {
        "Encoding": follower.encoding,
        "CodedCharSetId": follower.coded_char_set_id,
        "Format": format_in(follower.format, here.coded_char_set_id),
    }
    for name, code in layout.fields:
        value = said[name] if name in said else values[name]
        if isinstance(value, int):
            yield value.to_bytes(4, _order(here.encoding), signed=code == "i")
        else:
            yield value if name in BINARY or name == "Format" else _text(value, place, here)


def _text(value: bytes, place: DataFormat, here: DataFormat) -> bytes:
    """Characters in another page, cut or filled with blanks to their length; NULs stay NULs."""
    text = encode_text(decode_text(value, place.coded_char_set_id), here.coded_char_set_id)
    if len(text) > len(value) and text[len(value) :].strip(encode_text(" ", here.coded_char_set_id)):
        raise HeaderError(Reason.MQRC_NOT_CONVERTED, "a field of a header is too long in the other code page")
    return text[: len(value)].ljust(len(value), encode_text(" ", here.coded_char_set_id))


_READERS: Final[dict[bytes, Callable[[bytes, int, DataFormat], _Header]]] = {
    FORMAT_MQRFH: _rfh,
    FORMAT_MQRFH2: _rfh2,
    FORMAT_DEAD_LETTER: _fixed((MQDLH,)),
    FORMAT_TRANSMISSION: _fixed((MQXQH,)),
    FORMAT_IMS: _fixed((MQIIH,)),
    FORMAT_CICS: _fixed((MQCIH_1, MQCIH_2)),
}
