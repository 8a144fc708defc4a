"""MQCHARV: a string of any length, which stands behind the structure that has it.

    0  4  pointer: 0            8  4  buffer size: room for a string that is returned
    4  4  offset from the       12  4  length of the string, 0 is none
          structure's start    16  4  CCSID

Each string is filled up to a multiple of four bytes.
Source: IBM MQ, "MQCHARV - Variable Length String"; padding: IBM MQ's client as it was observed
(com.ibm.mq.allclient 9.4.5.0).
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode
from mq_adapters.client_channel.fields import BodyReader, invalid, string_field
from mq_adapters.client_channel.segments import ISO_8859_1, ByteOrder, padded, padded_length

UTF_8: Final = 1208
_CHARV_BYTES: Final = 20
_ENCODINGS: Final = {UTF_8: "utf-8", ISO_8859_1: "iso-8859-1"}
_LAYOUTS: Final = {order: struct.Struct(order.code + "5i") for order in ByteOrder}


@dataclass(frozen=True, slots=True, kw_only=True)
class Charv:
    """A string, and the room that the other side has for one that is returned in it."""

    value: bytes = b""
    ccsid: int = UTF_8
    buffer_size: int = 0
    #: Where it stood when it was read.
    offset: int = field(default=0, repr=False, compare=False)

    @property
    def text(self) -> str:
        """The string as text. Raises ChannelProtocolError for a CCSID but 1208 and 819, and for bytes that are none."""
        encoding = _ENCODINGS.get(self.ccsid)
        if encoding is None:
            raise ChannelProtocolError(StatusCode.CCSID_NOT_SUPPORTED, f"a string has the CCSID {self.ccsid}")
        try:
            return self.value.decode(encoding)
        except UnicodeDecodeError:
            invalid(f"a string of CCSID {self.ccsid} has the bytes {self.value[:64].hex()}")


def charv(*, since: int = 1) -> Charv:
    """A field that is a string of any length."""
    made: Charv = string_field(Charv(), _CHARV_BYTES, since=since)
    return made


class Strings(NamedTuple):
    """The strings of one structure, and the bytes behind it that hold them."""

    charvs: Mapping[str, Charv]
    area: bytes


def read_strings(raw: Mapping[str, bytes], body: BodyReader, start: int) -> Strings:
    """Reads the strings of a structure that began at `start`, and whose fixed part the reader has just read.

    Raises ChannelProtocolError for a string that does not stand behind the fixed part and inside the body.
    """
    fixed = body.position - start
    charvs, end = {}, fixed
    for name, value in raw.items():
        _, offset, buffer_size, length, ccsid = _LAYOUTS[body.byte_order].unpack(value)
        if length:
            if offset < fixed or not 0 < length <= body.end - start - offset:
                invalid(f"{name} says that {length} bytes stand at {offset}")
            end = max(end, offset + length)
        string = body.data[start + offset : start + offset + length] if length else b""
        charvs[name] = Charv(value=string, ccsid=ccsid, buffer_size=buffer_size, offset=offset)
    return Strings(charvs, body.take(min(padded_length(end - fixed), body.left), "strings"))


def place_strings(charvs: Sequence[Charv], area: bytes, fixed: int, byte_order: ByteOrder) -> tuple[list[bytes], bytes]:
    """The bytes of each MQCHARV, and of the area behind the `fixed` bytes of their structure.

    The area stays as it came while all strings still stand in it. Otherwise they stand in their order.
    """
    if all(_stands(charv, area, fixed) for charv in charvs):
        return [_write(charv, charv.offset, byte_order) for charv in charvs], area
    written, position = [], fixed
    for charv in charvs:
        written.append(_write(charv, position, byte_order))
        position += padded_length(len(charv.value))
    return written, b"".join(padded(charv.value) for charv in charvs)


def _stands(charv: Charv, area: bytes, fixed: int) -> bool:
    start = charv.offset - fixed
    return not charv.value or (start >= 0 and area[start : start + len(charv.value)] == charv.value)


def _write(charv: Charv, offset: int, byte_order: ByteOrder) -> bytes:
    return _LAYOUTS[byte_order].pack(0, offset, charv.buffer_size, len(charv.value), charv.ccsid)
