"""Headers that are walked over unread: those of CICS and IMS, distribution headers and others of IBM MQ.

Byte layout; these structures begin alike, in the character set and Encoding of the structure in front:

    offset  length  field                      offset  length  field
    0       4       StrucId                    16      4       CodedCharSetId   of what follows this structure
    4       4       Version                    20      8       Format           of what follows this structure
    8       4       StrucLength                28      4       Flags
    12      4       Encoding   of what follows 32      n       whatever the header holds, up to StrucLength

Their Formats begin with `MQH`, apart from MQCICS and MQIMS. Where the first 32 bytes do not fit this layout, the length
of the header is unknown, and it counts as part of the body.
Source: IBM MQ documentation, the fields of MQCIH, MQDH, MQIIH, MQMDE, MQRMH and MQWIH.
"""

from dataclasses import dataclass
from typing import Final

from mappings.errors import HeaderError
from mappings.headers.charset import is_big_endian
from mappings.headers.fixed_part import format_from
from mappings.headers.layout import COMMON

_PREFIX: Final = b"MQH"
_FORMATS: Final = frozenset({b"MQCICS  ", b"MQIMS   "})  # MQFMT_CICS, MQFMT_IMS
#: StrucId, name and Format (MQFMT_...) of those that IBM MQ defines.
KNOWN_HEADERS: Final = (
    ("CIH ", "MQCIH", b"MQCICS  "),
    ("IIH ", "MQIIH", b"MQIMS   "),
    ("DH  ", "MQDH", b"MQHDIST "),
    ("MDE ", "MQMDE", b"MQHMDE  "),
    ("RMH ", "MQRMH", b"MQHREF  "),
    ("WIH ", "MQWIH", b"MQHWIH  "),
)
_NAMES: Final = {format: name for _, name, format in KNOWN_HEADERS}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueHeader:
    """A header of another kind; `format`, `coded_char_set_id` and `encoding` describe what follows it."""

    format: bytes
    coded_char_set_id: int
    encoding: int
    struc_length: int


def announces_opaque_header(format: bytes) -> bool:
    """Whether a Format in its ASCII form announces a header of this layout."""
    return format[:3] == _PREFIX or format in _FORMATS


def opaque_header_name(format: bytes) -> str:
    """IBM's name of the structure that a Format announces, where it is known; else the Format itself."""
    return _NAMES.get(format) or format.decode("ascii", "replace").rstrip(" \0")


def read_opaque_header(data: bytes, offset: int = 0, *, coded_char_set_id: int, encoding: int) -> OpaqueHeader | None:
    """The header at `offset`; None where its first bytes do not fit the layout."""
    try:
        layout = COMMON.in_encoding(encoding)
        if len(data) - offset < COMMON.length_bytes:
            return None
        _, _, struc_length, next_encoding, next_ccsid, format, _ = layout.unpack_from(data, offset)
        is_big_endian(next_encoding)
        readable = format_from(format, coded_char_set_id)
    except HeaderError:
        return None
    if readable is None or not COMMON.length_bytes <= struc_length <= len(data) - offset:
        return None
    return OpaqueHeader(
        format=readable, coded_char_set_id=next_ccsid, encoding=next_encoding, struc_length=struc_length
    )
