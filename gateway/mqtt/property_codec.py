"""Reads and writes the properties of a packet (MQTT 5.0 section 2.2.2).

Their length in bytes (variable byte integer), then each property: identifier (variable byte integer, in fact one byte)
and value. Each place of properties has a `PropertySection`, which knows the properties that may stand there.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from gateway.mqtt.errors import LimitExceeded, MalformedPacket, ProtocolViolation, UsageError
from gateway.mqtt.properties import (
    MAY_REPEAT,
    PROPERTIES,
    AuthProperties,
    ConnackProperties,
    ConnectProperties,
    DisconnectProperties,
    Property,
    PropertyKind,
    PublishProperties,
    ReasonProperties,
    SubscribeProperties,
    UnsubscribeProperties,
    WillProperties,
)
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.wire import Fields, decode_plain_texts, encode_binary, encode_text, encode_variable_number

LONGEST_PROPERTIES_BYTES: Final = 262_144  # our choice: four fields of the largest size, in each packet
MAXIMUM_REPEATED: Final = 1_000  # our choice: a user property of 5 bytes takes some 150 in memory

_NUMBER_BYTES: Final = {
    PropertyKind.BIT: 1,
    PropertyKind.FLAG: 1,
    PropertyKind.TWO_BYTES: 2,
    PropertyKind.FOUR_BYTES: 4,
}
_NO_PROPERTIES: Final = b"\x00"

Values = TypeVar("Values", bound=tuple[object, ...])


class _Slot:
    """One property in one place: the position of its value in the tuple of that place."""

    __slots__ = ("identifier", "index", "kind", "may_repeat", "minimum", "name", "number_bytes")

    def __init__(self, index: int, name: str, row: Property) -> None:
        self.index = index
        self.name = name
        self.identifier = row.identifier
        self.kind = row.kind
        self.minimum = row.minimum
        self.number_bytes = _NUMBER_BYTES.get(row.kind, 0)
        self.may_repeat = name in MAY_REPEAT


class PropertySection(Generic[Values]):
    """The properties of one place, such as CONNECT or the will in it."""

    __slots__ = ("_by_identifier", "_defaults", "_make", "_slots", "name")

    def __init__(self, name: str, make: Callable[..., Values], fields: tuple[str, ...]) -> None:
        self.name = name
        self._make = make
        self._defaults: tuple[object, ...] = make()
        self._slots = [_Slot(index, field, PROPERTIES[field]) for index, field in enumerate(fields)]
        self._by_identifier = {slot.identifier: slot for slot in self._slots}

    def read(self, fields: Fields) -> Values | None:
        """Read length and properties; None when there are none.

        MalformedPacket: the section is cut short, or a property is unknown or has no place in this packet (section
        2.2.2.2). ProtocolViolation: a property stands there twice, or its value is not allowed. LimitExceeded: there
        are too many.
        """
        length = fields.variable_number()
        if not length:
            return None
        if length > LONGEST_PROPERTIES_BYTES:
            raise LimitExceeded(f"{self.name} has {length} bytes of properties", ReasonCode.PACKET_TOO_LARGE)
        section = Fields(fields.data, fields.position, fields.position + length)
        if section.end > fields.end:
            raise MalformedPacket(f"the properties of {self.name} reach past the packet")
        values = self._read_all(section)
        fields.position = section.end
        return self._make(*values)

    def _read_all(self, section: Fields) -> list[object]:
        """The values to the end of the section. No identifier is above 7F, so each has one byte."""
        values = list(self._defaults)
        repeated: dict[int, list[object]] = {}
        seen = 0
        while section.position < section.end:
            identifier = section.data[section.position]
            slot = self._by_identifier.get(identifier)
            if slot is None:
                raise MalformedPacket(f"{self.name} has the property {identifier:02X}, which has no place there")
            if slot.kind is PropertyKind.TEXT_PAIR:
                self._read_pairs(section, slot, repeated.setdefault(slot.index, []))
                continue
            section.position += 1
            value = _read_value(section, slot)
            if slot.may_repeat:
                self._gather(repeated.setdefault(slot.index, []), value, slot.name)
                continue
            if seen >> slot.index & 1:
                raise ProtocolViolation(f"{self.name} has the property {slot.name} twice")
            seen |= 1 << slot.index
            values[slot.index] = value
        for index, many in repeated.items():
            values[index] = tuple(many)
        return values

    def _read_pairs(self, section: Fields, slot: _Slot, many: list[object]) -> None:
        """A run of user properties. There may be hundreds, and one by one they would take three times as long."""
        data, position, end = section.data, section.position, section.end
        parts: list[bytes] = []
        most = 2 * (MAXIMUM_REPEATED - len(many))
        try:
            while position < end and data[position] == slot.identifier and len(parts) <= most:
                name = position + 3
                value = name + 2 + (data[name - 2] << 8 | data[name - 1])
                position = value + (data[value - 2] << 8 | data[value - 1])
                parts += data[name : value - 2], data[value:position]
        except IndexError:
            position = end + 1
        if position > end:
            raise MalformedPacket("the packet ends inside a field")
        if len(parts) > most:
            raise LimitExceeded(f"{self.name} has too many {slot.name}", ReasonCode.QUOTA_EXCEEDED)
        section.position = position
        texts = decode_plain_texts(parts)
        many += zip(texts[::2], texts[1::2], strict=True)

    def _gather(self, many: list[object], value: object, name: str) -> None:
        if len(many) >= MAXIMUM_REPEATED:
            raise LimitExceeded(f"{self.name} has too many {name}", ReasonCode.QUOTA_EXCEEDED)
        many.append(value)

    def encode(self, values: Values | None, also: bytes = b"") -> bytes:
        """Length and properties, without those that have their default. Raises UsageError if a value cannot be encoded.

        `also`: a property that is encoded already.
        """
        if values is None:
            return encode_variable_number(len(also)) + also if also else _NO_PROPERTIES
        out = also + b"".join(
            _encode_slot(slot, value)
            for slot, value, default in zip(self._slots, values, self._defaults, strict=True)
            if value != default
        )
        return encode_variable_number(len(out)) + out


def _read_value(section: Fields, slot: _Slot) -> object:
    kind = slot.kind
    if kind is PropertyKind.TEXT:
        return section.text()
    if kind is PropertyKind.BINARY:
        return section.binary()
    size = slot.number_bytes
    number = int.from_bytes(section.take(size), "big") if size else section.variable_number()
    if number < slot.minimum or (size == 1 and number > 1):
        raise ProtocolViolation(f"the property {slot.name} is {number}, which it must not be (section 2.2.2.2)")
    return number == 1 if kind is PropertyKind.FLAG else number


def _encode_slot(slot: _Slot, value: object) -> bytes:
    identifier = bytes((slot.identifier,))
    if slot.may_repeat:
        assert isinstance(value, tuple)
        return b"".join(identifier + _encode_value(slot, each) for each in value)
    return identifier + _encode_value(slot, value)


def _encode_value(slot: _Slot, value: object) -> bytes:
    if isinstance(value, str):
        return encode_text(value)
    if isinstance(value, bytes):
        return encode_binary(value)
    if isinstance(value, tuple):
        name, text = value
        return encode_text(name) + encode_text(text)
    assert isinstance(value, int)
    if slot.kind is PropertyKind.VARIABLE:
        return encode_variable_number(value)
    try:
        return value.to_bytes(slot.number_bytes, "big")
    except OverflowError:
        raise UsageError(f"{value} is too large for the property {slot.name}") from None


CONNECT: Final = PropertySection("CONNECT", ConnectProperties, ConnectProperties._fields)
WILL: Final = PropertySection("the will", WillProperties, WillProperties._fields)
CONNACK: Final = PropertySection("CONNACK", ConnackProperties, ConnackProperties._fields)
PUBLISH: Final = PropertySection("PUBLISH", PublishProperties, PublishProperties._fields)
ANSWER: Final = PropertySection("the answer", ReasonProperties, ReasonProperties._fields)
SUBSCRIBE: Final = PropertySection("SUBSCRIBE", SubscribeProperties, SubscribeProperties._fields)
UNSUBSCRIBE: Final = PropertySection("UNSUBSCRIBE", UnsubscribeProperties, UnsubscribeProperties._fields)
DISCONNECT: Final = PropertySection("DISCONNECT", DisconnectProperties, DisconnectProperties._fields)
AUTH: Final = PropertySection("AUTH", AuthProperties, AuthProperties._fields)
