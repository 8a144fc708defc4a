"""MQRFH (rules and formatting header, version 1) to values and back.

Byte layout; integers in the Encoding, characters in the CodedCharSetId of the structure in front:

    offset  length  field
    0       4       StrucId          "RFH "
    4       4       Version          1
    8       4       StrucLength      32 + length of NameValueString
    12      4       Encoding         of what follows this structure
    16      4       CodedCharSetId   of what follows this structure
    20      8       Format           of what follows this structure, blank padded
    28      4       Flags            0
    32      n       NameValueString

Source: IBM MQ documentation, "MQRFH - Rules and formatting header".
"""

from dataclasses import dataclass

from mappings.headers.charset import decode_text, encode_text
from mappings.headers.fixed_part import FixedFields, read_fixed_part, write_fixed_part
from mappings.headers.name_value import NameValues, format_name_value_string, parse_name_value_string

VERSION = 1
FIXED_LENGTH_BYTES = 32  # MQRFH_STRUC_LENGTH_FIXED


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqrfh:
    """One MQRFH as read; `format`, `coded_char_set_id` and `encoding` describe what follows it."""

    format: bytes
    coded_char_set_id: int
    encoding: int
    flags: int = 0
    name_value_string: str
    struc_length: int

    @property
    def pairs(self) -> NameValues:
        """The name-value pairs in order; NameValueError if the string breaks its grammar."""
        return parse_name_value_string(self.name_value_string)


def read_mqrfh(data: bytes, offset: int = 0, *, coded_char_set_id: int, encoding: int) -> Mqrfh:
    """Read the MQRFH at `offset`; the character set and encoding are those of the structure in front.

    Raises HeaderError (MQRC_RFH_ERROR) when the bytes are not a complete MQRFH. The string is decoded, not parsed.
    """
    fixed = read_fixed_part(data, offset, version=VERSION, coded_char_set_id=coded_char_set_id, encoding=encoding)
    string = data[offset + FIXED_LENGTH_BYTES : offset + fixed.struc_length]
    return Mqrfh(
        format=fixed.format,
        coded_char_set_id=fixed.coded_char_set_id,
        encoding=fixed.encoding,
        flags=fixed.flags,
        name_value_string=decode_text(string.partition(b"\0")[0], coded_char_set_id),
        struc_length=fixed.struc_length,
    )


def write_mqrfh(
    pairs: NameValues,
    *,
    format: bytes,
    next_coded_char_set_id: int,
    next_encoding: int,
    coded_char_set_id: int,
    encoding: int,
    flags: int = 0,
) -> bytes:
    """Write an MQRFH of name-value pairs.

    `format` (8 bytes, blank padded) and the two `next_...` describe what follows the header, the other two the
    structure in front of it. The string is padded with blanks to a multiple of 4 bytes, as IBM advises.
    Raises NameValueError for a NUL in a pair and HeaderError for a character that the code page lacks.
    Source: IBM MQ documentation, "MQRFH - Rules and formatting header".
    """
    return write_mqrfh_string(
        encode_pairs(pairs, coded_char_set_id),
        format=format,
        next_coded_char_set_id=next_coded_char_set_id,
        next_encoding=next_encoding,
        coded_char_set_id=coded_char_set_id,
        encoding=encoding,
        flags=flags,
    )


def encode_pairs(pairs: NameValues, coded_char_set_id: int) -> bytes:
    """The NameValueString of some pairs, encoded and padded with blanks to a multiple of 4 bytes."""
    string = encode_text(format_name_value_string(pairs), coded_char_set_id)
    return string + encode_text(" ", coded_char_set_id) * (-len(string) % 4)


def write_mqrfh_string(
    string: bytes,
    *,
    format: bytes,
    next_coded_char_set_id: int,
    next_encoding: int,
    coded_char_set_id: int,
    encoding: int,
    flags: int = 0,
) -> bytes:
    """The bytes of an MQRFH around a NameValueString that is already encoded and padded."""
    fixed = FixedFields(
        struc_length=FIXED_LENGTH_BYTES + len(string),
        encoding=next_encoding,
        coded_char_set_id=next_coded_char_set_id,
        format=format,
        flags=flags,
    )
    return write_fixed_part(fixed, version=VERSION, coded_char_set_id=coded_char_set_id, encoding=encoding) + string
