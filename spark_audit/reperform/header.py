"""MQRFH and MQRFH2 structures and chains of them, as the audit reads and writes them.

    offset  length  field                                 offset  length  field
    0       4       StrucId "RFH "                        20      8       Format of the data behind
    4       4       Version 1 or 2                        28      4       Flags
    8       4       StrucLength                           32      -       version 1: NameValueString
    12      4       Encoding of what follows              32      4       version 2: NameValueCCSID, then pairs of
    16      4       CodedCharSetId of what follows        36      -       length (4) and folder

An MQDLH (172 bytes) has Encoding at 108, CodedCharSetId at 112 and Format at 116. They describe the data behind it, and
it has no command.

The structure itself is in the CodedCharSetId and Encoding of the structure in front, which is the MQMD for the first.
Source: IBM MQ, "MQRFH - Rules and formatting header", "MQRFH2 - Rules and formatting header 2".
"""

import re
from dataclasses import dataclass, replace
from typing import Literal

from spark_audit.reperform.code_page import byte_order, decode, encode
from spark_audit.reperform.comparison import Reason, UnreadableBytes
from spark_audit.reperform.folder import Folder, read_folder, written_folder

# The NameValueString of MQRFH: names and values in turn, separated by blanks, quoted if they need it. NUL ends the
# string, and in quotes a quote is doubled. Source: IBM MQ, "NameValueString (MQCHARn)".

_ITEM = re.compile(r'"((?:[^"]|"")*)"(?= |$)|([^ "]+)(?= |$)')


def read_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """The pairs in order."""
    text = text.partition("\0")[0]
    items: list[str] = []
    offset = 0
    while offset < len(text):
        if text[offset] == " ":
            offset += 1
            continue
        item = _ITEM.match(text, offset)
        if item is None:
            raise UnreadableBytes("the NameValueString is broken", offset, Reason.MQRC_RFH_STRING_ERROR)
        items.append(item[2] if item[1] is None else item[1].replace('""', '"'))
        offset = item.end()
    if len(items) % 2:
        raise UnreadableBytes("the last name has no value", len(text), Reason.MQRC_RFH_STRING_ERROR)
    return tuple(zip(items[::2], items[1::2], strict=True))


def written_pairs(pairs: tuple[tuple[str, str], ...]) -> str:
    """The string: single blanks between items, and quotes only if an item has a blank or a quote, or is empty."""
    return " ".join(_written(item) for pair in pairs for item in pair)


def _written(item: str) -> str:
    if item and " " not in item and '"' not in item:
        return item
    doubled = item.replace('"', '""')
    return f'"{doubled}"'


MQRFH = "MQHRF"
MQRFH2 = "MQHRF2"
MQDLH = "MQDEAD"
_FIXED = 32
_FIXED_2 = 36
_DEAD_LETTER = 172
_UTF_8 = 1208
#: CodedCharSetId values that mean "as in front": MQCCSI_UNDEFINED and MQCCSI_INHERIT.
_AS_IN_FRONT = frozenset({0, -2})


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The description of the following bytes by a Format field and its neighbours."""

    format: str
    coded_char_set_id: int
    encoding: int

    @property
    def order(self) -> Literal["big", "little"]:
        return byte_order(self.encoding)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """One structure: `pairs` of version 1, `folders` of version 2, neither in an MQDLH (0); and the data behind it."""

    version: int
    following: Surroundings
    flags: int = 0
    pairs: tuple[tuple[str, str], ...] = ()
    folders: tuple[Folder, ...] = ()


def read_chain(data: bytes, described: Surroundings) -> tuple[tuple[Header, ...], Surroundings]:
    """The headers that fill `data`, and the last header's description of the body."""
    headers, body, offset = read_headers(data, described)
    if offset != len(data):
        raise UnreadableBytes(f"{len(data) - offset} bytes behind the last header", offset)
    return headers, body


def read_headers(data: bytes, described: Surroundings) -> tuple[tuple[Header, ...], Surroundings, int]:
    """The headers in front of a message's data, the last one's description of the body, and the body's offset."""
    headers: list[Header] = []
    offset = 0
    while described.format in (MQRFH, MQRFH2, MQDLH):
        reader = _read_dead_letter_header if described.format == MQDLH else _read_header
        header, offset = reader(data, offset, described)
        headers.append(header)
        described = header.following
    if not headers:
        raise UnreadableBytes(f"Format {described.format!r} is neither MQHRF nor MQHRF2")
    return tuple(headers), described, offset


def write_mqrfh(pairs: tuple[tuple[str, str], ...], described: Surroundings, following: Surroundings) -> bytes:
    """A version 1 structure, padded with blanks to a multiple of 4."""
    string = encode(written_pairs(pairs), described.coded_char_set_id, described.order)
    blank = encode(" ", described.coded_char_set_id, described.order)
    string += blank * (-len(string) % 4)
    return _fixed_part(1, _FIXED + len(string), described, following) + string


def write_mqrfh2(
    folders: tuple[tuple[str, tuple[tuple[str, str], ...]], ...],
    described: Surroundings,
    following: Surroundings,
    *,
    kept: tuple[Folder, ...] = (),
) -> bytes:
    """A version 2 structure in UTF-8, each folder padded with blanks to a multiple of 4.

    `kept` folders stay as they are.
    """
    data = _UTF_8.to_bytes(4, described.order)
    written = [written_folder(name, elements) for name, elements in folders]
    for folder in (*written, *(each.text for each in kept)):
        text = folder.encode(errors="replace")
        text += b" " * (-len(text) % 4)
        data += len(text).to_bytes(4, described.order) + text
    return _fixed_part(2, _FIXED + len(data), described, following) + data


def _fixed_part(version: int, length: int, described: Surroundings, following: Surroundings) -> bytes:
    def number(value: int) -> bytes:
        return value.to_bytes(4, described.order, signed=True)

    def text(value: str) -> bytes:
        return encode(value, described.coded_char_set_id, described.order)

    return b"".join(
        (
            text("RFH "),
            number(version),
            number(length),
            number(following.encoding),
            number(following.coded_char_set_id),
            text(following.format.ljust(8)),
            number(0),
        )
    )


def _read_header(data: bytes, offset: int, described: Surroundings) -> tuple[Header, int]:
    order = described.order

    def number(at: int) -> int:
        return int.from_bytes(data[offset + at : offset + at + 4], order, signed=True)

    def text(at: int, length: int) -> str:
        return decode(data[offset + at : offset + at + length], described.coded_char_set_id, order, offset + at)

    if len(data) - offset < _FIXED:
        raise UnreadableBytes("a header needs 32 bytes", offset)
    version, end = number(4), offset + number(8)
    if text(0, 4) != "RFH " or version != (1 if described.format == MQRFH else 2):
        raise UnreadableBytes(f"not the structure that Format {described.format} announces", offset)
    if not offset + (_FIXED if version == 1 else _FIXED_2) <= end <= len(data):
        raise UnreadableBytes("StrucLength does not fit", offset + 8)
    ccsid = number(16)
    following = Surroundings(
        format=text(20, 8).rstrip(" \0"),
        coded_char_set_id=described.coded_char_set_id if ccsid in _AS_IN_FRONT else ccsid,
        encoding=number(12),
    )
    header = Header(version=version, following=following, flags=number(28))
    if version == 1:
        return replace(header, pairs=read_pairs(text(_FIXED, end - offset - _FIXED))), end
    return replace(header, folders=_read_folders(data, offset + _FIXED, end, order)), end


def _read_dead_letter_header(data: bytes, offset: int, described: Surroundings) -> tuple[Header, int]:
    end = offset + _DEAD_LETTER
    if len(data) < end:
        raise UnreadableBytes("an MQDLH needs 172 bytes", offset, Reason.MQRC_DLH_ERROR)

    def number(at: int) -> int:
        return int.from_bytes(data[offset + at : offset + at + 4], described.order, signed=True)

    def text(at: int, length: int) -> str:
        part = data[offset + at : offset + at + length]
        return decode(part, described.coded_char_set_id, described.order, offset + at)

    if text(0, 4) != "DLH " or number(4) != 1:
        raise UnreadableBytes("not the structure that Format MQDEAD announces", offset, Reason.MQRC_DLH_ERROR)
    ccsid = number(112)
    following = Surroundings(
        format=text(116, 8).rstrip(" \0"),
        coded_char_set_id=described.coded_char_set_id if ccsid in _AS_IN_FRONT else ccsid,
        encoding=number(108),
    )
    return Header(version=0, following=following), end


def _read_folders(data: bytes, offset: int, end: int, order: Literal["big", "little"]) -> tuple[Folder, ...]:
    name_value_ccsid = int.from_bytes(data[offset : offset + 4], order)
    offset += 4
    folders: list[Folder] = []
    while offset < end:
        length = int.from_bytes(data[offset : offset + 4], order)
        if offset + 4 + length > end:
            raise UnreadableBytes("NameValueLength does not fit", offset)
        text = decode(data[offset + 4 : offset + 4 + length], name_value_ccsid, order, offset + 4)
        if text.strip(" \0"):
            folders.append(read_folder(text))
        offset += 4 + length
    return tuple(folders)
