"""MQMD as a client sends it: version 1 (324 bytes) or 2 (364), in either byte order, texts in ISO 8859-1.

The table of its fields, and what they mean for a message, are those of mq_adapters/mqmd.py.
Source: IBM MQ, "MQMD - Message descriptor".
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self

from mq_adapters.client_channel.errors import UsageError
from mq_adapters.client_channel.fields import BodyReader, invalid, write_integers
from mq_adapters.client_channel.segments import ByteOrder
from mq_adapters.message import Message
from mq_adapters.mqmd import FIELDS, MQMD_VERSION_2, STRUC_ID, read_mqmd, write_mqmd

MQMD_VERSION_1: Final = 1
#: The fields behind StrucId and Version, and those that version 2 has behind version 1.
_FIELDS: Final = FIELDS[2:]
_ONLY_VERSION_2: Final = ("GroupId", "MsgSeqNumber", "Offset", "MsgFlags", "OriginalLength")
_PLACES: Final = {each.name: place for place, each in enumerate(_FIELDS)}
_COUNTS: Final = {MQMD_VERSION_1: len(_FIELDS) - len(_ONLY_VERSION_2), MQMD_VERSION_2: len(_FIELDS)}
_LAYOUTS: Final = {
    (version, order): struct.Struct(order.code + "".join(each.code for each in _FIELDS[:count]))
    for version, count in _COUNTS.items()
    for order in ByteOrder
}
_TEXTS: Final = tuple(place for place, each in enumerate(_FIELDS) if each.is_text)
#: As mq_adapters/mqmd.py reads and writes it.
_OF_A_MESSAGE: Final = ByteOrder.LITTLE_ENDIAN
_BEGINNING_BYTES: Final = 8

_Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Mqmd:
    """An MQMD of either version. `values` are the fields from Report on, in their order, as bytes and integers.

    One of version 1 has the last five fields of a message that is neither in a group nor a segment.
    """

    version: int
    values: _Values

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads as many bytes as its version has. ChannelProtocolError for another version."""
        body.eye_catcher(STRUC_ID)
        version = body.integer("MQMD")
        if version not in _COUNTS:
            invalid(f"MQMD has the version {version}; {MQMD_VERSION_2} is the highest")
        layout = _LAYOUTS[version, body.byte_order]
        values = layout.unpack(body.take(layout.size, f"MQMD of version {version}"))
        return cls(version, values + _PLAIN[len(values) :])

    def write(self, byte_order: ByteOrder) -> bytes:
        """As many bytes as its version has."""
        values = self.values[: _COUNTS[self.version]]
        try:
            written = _LAYOUTS[self.version, byte_order].pack(*values)
        except struct.error as error:
            raise UsageError(f"MQMD: {error}") from error
        return STRUC_ID + write_integers(byte_order, self.version) + written

    def value(self, name: str) -> Any:
        """A field by IBM's name, such as MsgId: bytes or an integer."""
        return self.values[_PLACES[name]]

    def changed(self, **changes: Any) -> Self:
        """The same with other values, such as `changed(MsgId=..., BackoutCount=1)`."""
        values = list(self.values)
        for name, value in changes.items():
            values[_PLACES[name]] = value
        return type(self)(self.version, tuple(values))

    def in_utf_8(self) -> Self:
        """The same with texts in UTF-8, as programs of this project have them."""
        return type(self)(self.version, _with_texts(self.values, _to_utf_8))

    def in_iso_8859_1(self) -> Self:
        """The same with texts as they travel."""
        return type(self)(self.version, _with_texts(self.values, _to_iso_8859_1))

    def message(self, data: bytes) -> Message:
        """The message of this descriptor. QueueManagerError names the wrong field and the reason code to answer."""
        return read_mqmd(Mqmd(MQMD_VERSION_2, self.in_utf_8().values).write(_OF_A_MESSAGE), data)

    @classmethod
    def of(cls, message: Message, version: int, *, now_us: int = 0) -> Self:
        """The descriptor of a message in the version of a request. `now_us` (since 1970, UTC) shortens its expiry."""
        written = write_mqmd(message, now_us=now_us)
        values = _LAYOUTS[MQMD_VERSION_2, _OF_A_MESSAGE].unpack_from(written, _BEGINNING_BYTES)
        return cls(version, _with_texts(values, _to_iso_8859_1))


def _with_texts(values: _Values, converted: Callable[[bytes], bytes]) -> _Values:
    if all(values[place].isascii() for place in _TEXTS):
        return values
    return tuple(converted(value) if place in _TEXTS else value for place, value in enumerate(values))


def _to_utf_8(value: bytes) -> bytes:
    """A text has no more bytes in UTF-8 than fit, because its last characters are left out."""
    length = len(value)
    written = value.decode("iso-8859-1").rstrip(" \0").encode()[:length]
    return written.decode(errors="ignore").encode().ljust(length)


def _to_iso_8859_1(value: bytes) -> bytes:
    return value.decode(errors="replace").encode("iso-8859-1", errors="replace").ljust(len(value))


#: The values of a descriptor whose message is neither in a group nor a segment, with zeros for all others.
_PLAIN: Final[_Values] = (
    *_LAYOUTS[MQMD_VERSION_1, _OF_A_MESSAGE].unpack(bytes(_LAYOUTS[MQMD_VERSION_1, _OF_A_MESSAGE].size)),
    bytes(24),
    1,
    0,
    0,
    -1,
)
#: A descriptor of version 2 with these values.
PLAIN_MQMD: Final = Mqmd(MQMD_VERSION_2, _PLAIN)
