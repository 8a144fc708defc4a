"""The first 32 bytes of an MQRFH and of an MQRFH2, read strictly and written.

The fields are `layout.COMMON`. A Format is kept in its ASCII form whatever the code page of the header, because names
such as `MQSTR   ` are compared, chained and shown.
"""

from struct import Struct
from typing import NamedTuple

from mappings.errors import HeaderError
from mappings.headers.charset import TWO_BYTE_CODED_CHAR_SET_IDS, decode_text, encode_text, is_ebcdic
from mappings.headers.layout import COMMON
from mappings.reasons import Reason

FIXED_PART_BYTES = COMMON.length_bytes
FORMAT_OFFSET_BYTES = COMMON.offsets["Format"]
FORMAT_LENGTH_BYTES = 8
MINIMUM_STRUC_LENGTH = {1: 32, 2: 36}  # MQRFH_STRUC_LENGTH_FIXED, MQRFH_STRUC_LENGTH_FIXED_2

STRUC_ID = b"RFH "
_STRUC_ID_EBCDIC = b"\xd9\xc6\xc8\x40"


class FixedFields(NamedTuple):
    """The common fields; `struc_length` in bytes, the rest describes what follows the structure."""

    struc_length: int
    encoding: int
    coded_char_set_id: int
    format: bytes
    flags: int


def read_fixed_part(data: bytes, offset: int, *, version: int, coded_char_set_id: int, encoding: int) -> FixedFields:
    """Read and check the fixed part; HeaderError (MQRC_RFH_ERROR) when bytes, version or length are wrong."""
    layout = _layout(coded_char_set_id, encoding)
    if len(data) - offset < FIXED_PART_BYTES:
        raise structure_error(
            f"the fixed part of a header needs 32 bytes and {max(len(data) - offset, 0)} are left", offset
        )
    struc_id, found_version, struc_length, next_encoding, next_ccsid, format, flags = layout.unpack_from(data, offset)
    if struc_id != (_STRUC_ID_EBCDIC if is_ebcdic(coded_char_set_id) else STRUC_ID):
        raise structure_error(f"StrucId is {struc_id!r}, not 'RFH ' in code page {coded_char_set_id}", offset)
    if found_version != version:
        raise structure_error(f"Version is {found_version}, and the Format in front announces {version}", offset + 4)
    if not MINIMUM_STRUC_LENGTH[version] <= struc_length <= len(data) - offset:
        raise structure_error(f"StrucLength {struc_length} is not between the fixed part and the data", offset + 8)
    return FixedFields(
        struc_length=struc_length,
        encoding=next_encoding,
        coded_char_set_id=next_ccsid,
        format=_ascii_format(format, coded_char_set_id, offset),
        flags=flags,
    )


def write_fixed_part(fixed: FixedFields, *, version: int, coded_char_set_id: int, encoding: int) -> bytes:
    """The 32 bytes of the fixed part, in the character set and encoding of the structure in front."""
    layout = _layout(coded_char_set_id, encoding)
    return layout.pack(
        _STRUC_ID_EBCDIC if is_ebcdic(coded_char_set_id) else STRUC_ID,
        version,
        fixed.struc_length,
        fixed.encoding,
        fixed.coded_char_set_id,
        format_in(fixed.format, coded_char_set_id),
        fixed.flags,
    )


def format_in(format: bytes, coded_char_set_id: int) -> bytes:
    """A Format name (ASCII form, 8 bytes) as it stands in a structure of that code page."""
    padded = format.ljust(FORMAT_LENGTH_BYTES)
    if not is_ebcdic(coded_char_set_id):
        return padded
    return encode_text(padded.decode("ascii"), coded_char_set_id)


def structure_error(problem: str, offset: int) -> HeaderError:
    """The error for bytes that are not the structure they claim to be."""
    return HeaderError(
        Reason.MQRC_RFH_ERROR,
        f"{problem}; the program that put the message, or its Format, CodedCharSetId or Encoding, is wrong",
        offset=offset,
    )


def _layout(coded_char_set_id: int, encoding: int) -> Struct:
    if coded_char_set_id in TWO_BYTE_CODED_CHAR_SET_IDS:
        raise HeaderError(
            Reason.MQRC_SOURCE_CCSID_ERROR,
            f"a header cannot be in the two-byte page {coded_char_set_id}; use a page with single-byte names",
            parameter=str(coded_char_set_id),
        )
    return COMMON.in_encoding(encoding)


def format_from(format: bytes, coded_char_set_id: int) -> bytes | None:
    """A Format name of a structure of that code page in its ASCII form; None where it is none in any page."""
    if not is_ebcdic(coded_char_set_id):
        return format
    try:
        return decode_text(format, coded_char_set_id).encode("ascii")
    except UnicodeEncodeError:
        return None


def _ascii_format(format: bytes, coded_char_set_id: int, offset: int) -> bytes:
    name = format_from(format, coded_char_set_id)
    if name is None:
        raise structure_error(f"Format {format!r} is not a format name", offset + FORMAT_OFFSET_BYTES)
    return name
