"""The fast path of `conversion`: reads one MQRFH, or one MQRFH2 with a flat psc folder alone, in one step.

Nearly every message of publish/subscribe is plain: one header in a page that extends ASCII, in front of a body. With
these readers a conversion takes a fifth to a seventh of the time. A reader here accounts for every byte of the header
or gives None. Then `chain.py` reads the header, and says what is wrong if something is. Both give the same values;
tests compare them on any bytes.

A byte is accounted for where it is part of a fixed field that has its plain value or is returned, of a length that
adds up, of an element or item, or of blanks between items.
"""

import re
from typing import Final, NamedTuple

from mappings.headers.charset import UTF_8, ascii_based_codec
from mappings.headers.fixed_part import STRUC_ID
from mappings.headers.layout import COMMON, MQRFH2, NAME_VALUE_LENGTH, Layout
from mappings.headers.name_value import NameValues, unambiguous_items

_NORMAL: Final = 1  # low nibble of an Encoding: most significant byte first
_REVERSED: Final = 2
_INTEGER_MASK: Final = 0xF
_MQRFH: Final = {_NORMAL: COMMON.big_endian, _REVERSED: COMMON.little_endian}
_MQRFH_BYTES: Final = COMMON.length_bytes
#: The fixed part, NameValueCCSID, and the length of the only folder.
_WITH_ONE_FOLDER: Final = Layout(*MQRFH2.fields, *NAME_VALUE_LENGTH.fields)
_MQRFH2: Final = {_NORMAL: _WITH_ONE_FOLDER.big_endian, _REVERSED: _WITH_ONE_FOLDER.little_endian}
_MQRFH2_BYTES: Final = _WITH_ONE_FOLDER.length_bytes
_START: Final = "<psc>"
_END: Final = "</psc>"
#: An element with a name of letters, as all of psc have, without attributes, groups, escapes or control characters.
_ELEMENT: Final = re.compile(r"<([A-Za-z]++)>([^<>&\x00-\x1f\ufffe\uffff]*+)</\1>")


class PlainHeader(NamedTuple):
    """The values of a plain header: its names and values, and its description of the body, which begins behind it.

    The CodedCharSetId is as the header has it: -2 and 0 are not resolved.
    """

    pairs: NameValues
    format: bytes
    coded_char_set_id: int
    encoding: int
    struc_length: int


def read_plain_mqrfh(data: bytes, coded_char_set_id: int, encoding: int) -> PlainHeader | None:
    """The values of the MQRFH that `data` begins with; None unless it is plain."""
    layout = _MQRFH.get(encoding & _INTEGER_MASK)
    codec = ascii_based_codec(coded_char_set_id)
    if layout is None or codec is None or len(data) < _MQRFH_BYTES:
        return None
    struc_id, version, struc_length, next_encoding, next_ccsid, format, flags = layout.unpack_from(data)
    if struc_id != STRUC_ID or version != 1 or flags or not _MQRFH_BYTES <= struc_length <= len(data):
        return None
    try:
        string = data[_MQRFH_BYTES:struc_length].decode(codec)
    except UnicodeDecodeError:
        return None
    items = unambiguous_items(string)
    if items is None or len(items) % 2:
        return None
    alternating = iter(items)
    return PlainHeader(
        tuple(zip(alternating, alternating, strict=True)), format, next_ccsid, next_encoding, struc_length
    )


def read_plain_mqrfh2(data: bytes, coded_char_set_id: int, encoding: int) -> PlainHeader | None:
    """The values of the MQRFH2 that `data` begins with, those of its psc folder; None unless it is plain."""
    layout = _MQRFH2.get(encoding & _INTEGER_MASK)
    if layout is None or ascii_based_codec(coded_char_set_id) is None or len(data) < _MQRFH2_BYTES:
        return None
    fields = layout.unpack_from(data)
    struc_id, version, struc_length, next_encoding, next_ccsid, format, flags, name_value_ccsid, length = fields
    if struc_id != STRUC_ID or version != 2 or flags or name_value_ccsid != UTF_8:
        return None
    if length % 4 or length < 0 or struc_length != _MQRFH2_BYTES + length or struc_length > len(data):
        return None
    try:
        folder = data[_MQRFH2_BYTES:struc_length].rstrip(b" \0").decode()
    except UnicodeDecodeError:
        return None
    if not (folder.startswith(_START) and folder.endswith(_END)):
        return None
    pairs = _ELEMENT.findall(folder, len(_START), len(folder) - len(_END))
    accounted = sum([2 * len(name) + len(text) for name, text in pairs]) + len("<></>") * len(pairs)
    if accounted != len(folder) - len(_START) - len(_END):
        return None
    return PlainHeader(tuple(pairs), format, next_ccsid, next_encoding, struc_length)


def write_plain_mqrfh(string: bytes, followed_by: PlainHeader, encoding: int) -> bytes:
    """An MQRFH in a page that extends ASCII, around an encoded string; what follows is described as it was."""
    string += b" " * (-len(string) % 4)
    fixed = _MQRFH[encoding & _INTEGER_MASK].pack(
        STRUC_ID,
        1,
        _MQRFH_BYTES + len(string),
        followed_by.encoding,
        followed_by.coded_char_set_id,
        followed_by.format,
        0,
    )
    return fixed + string


def write_plain_mqrfh2(folder: bytes, followed_by: PlainHeader, encoding: int) -> bytes:
    """An MQRFH2 in a page that extends ASCII, around one folder in UTF-8; what follows is described as it was."""
    folder += b" " * (-len(folder) % 4)
    fixed = _MQRFH2[encoding & _INTEGER_MASK].pack(
        STRUC_ID,
        2,
        _MQRFH2_BYTES + len(folder),
        followed_by.encoding,
        followed_by.coded_char_set_id,
        followed_by.format,
        0,
        UTF_8,
        len(folder),
    )
    return fixed + folder
