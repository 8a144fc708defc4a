"""Reads SUBSCRIBE and UNSUBSCRIBE (MQTT 3.1.1 and 5.0, sections 3.8 and 3.10).

Packet identifier (2 bytes), at level 5 properties, then at least one entry: topic filter (text) and, in SUBSCRIBE, the
requested QoS (1 byte, 0..2; at level 5 also no local 04, retain as published 08, retain handling 30).

A packet may have a quarter of a million entries, so they are read as they arrive. Otherwise the last bytes of the
packet would bring the work of all.
"""

from abc import ABC, abstractmethod

from gateway.mqtt import property_codec
from gateway.mqtt.errors import MalformedPacket, ProtocolViolation
from gateway.mqtt.events import SubscribeReceived, SubscriptionOptions, UnsubscribeReceived, entries_memory_bytes
from gateway.mqtt.levels import Level
from gateway.mqtt.properties import SubscribeProperties, UnsubscribeProperties
from gateway.mqtt.topics import check_shared_filter, check_topic_filter, share_of
from gateway.mqtt.wire import Fields, decode_remaining_length

_WORTH_READING_BYTES = 1_024  # our choice: bytes of a client that sends byte by byte wait until there are so many
_IDENTIFIER_BYTES, _LENGTH_BYTES = 2, 2
_QOS, _NO_LOCAL, _RETAIN_AS_PUBLISHED, _RETAIN_HANDLING, _RESERVED = 0x03, 0x04, 0x08, 0x30, 0xC0


class FilterReader(ABC):
    """Reads one packet behind its fixed header. Raises MalformedPacket or ProtocolViolation: the client's faults."""

    __slots__ = ("_entries", "_has_begun", "_level", "_packet_identifier", "read_bytes", "wanted_bytes")

    #: Bytes behind the topic filter in an entry.
    _BEHIND_FILTER = 0

    def __init__(self, level: Level) -> None:
        self._level = level
        self._has_begun = False
        self._packet_identifier = 0
        self._entries: list[bytes] = []
        #: Bytes of the packet that have been read, and bytes that must come before more can be read.
        self.read_bytes = 0
        self.wanted_bytes = _WORTH_READING_BYTES

    @property
    def memory_bytes(self) -> int:
        """The memory of the entries that have been read."""
        return entries_memory_bytes(len(self._entries), self.read_bytes)

    def read_ahead(self, data: bytes) -> None:
        """Read the complete entries among the unread bytes, at least `wanted_bytes`. More bytes will come."""
        fields = Fields(data, 0, len(data))
        while (wanted := self._next_bytes(fields)) <= fields.left:
            if self._has_begun:
                self._read_entry(fields)
            else:
                self._begin(fields)
        self.read_bytes += fields.position
        self.wanted_bytes = max(wanted, _WORTH_READING_BYTES)

    def _read_to_end(self, fields: Fields) -> None:
        """`fields`: the complete packet."""
        fields.position += self.read_bytes
        if not self._has_begun:
            self._begin(fields)
        while fields.left:
            self._read_entry(fields)

    def _next_bytes(self, fields: Fields) -> int:
        """The length of the next part, as far as it is known. A part is the beginning of the packet, or an entry."""
        data, position = fields.data, fields.position
        if not self._has_begun:
            if not self._level.has_properties:
                return _IDENTIFIER_BYTES
            length, behind = decode_remaining_length(data, _IDENTIFIER_BYTES)
            return behind + length
        if fields.left < _LENGTH_BYTES:
            return _LENGTH_BYTES
        return _LENGTH_BYTES + (data[position] << 8 | data[position + 1]) + self._BEHIND_FILTER

    def _begin(self, fields: Fields) -> None:
        self._has_begun = True
        self._packet_identifier = fields.packet_identifier()
        if self._level.has_properties:
            self._read_properties(fields)

    def _read_entry(self, fields: Fields) -> None:
        start = fields.position
        self._read_filter(fields)
        self._entries.append(fields.data[start : fields.position])

    @abstractmethod
    def _read_properties(self, fields: Fields) -> None: ...

    @abstractmethod
    def _read_filter(self, fields: Fields) -> None:
        """Read an entry."""


class SubscribeReader(FilterReader):
    """Reads a SUBSCRIBE."""

    __slots__ = ("_options", "_properties", "_subscriptions")

    _BEHIND_FILTER = 1

    def __init__(self, level: Level) -> None:
        super().__init__(level)
        self._properties: SubscribeProperties | None = None
        self._subscriptions: list[tuple[str, int]] = []
        self._options: list[SubscriptionOptions] = []

    def read(self, fields: Fields) -> SubscribeReceived:
        """Read the unread rest of the packet; `fields`: the complete packet."""
        self._read_to_end(fields)
        if not self._entries:
            raise ProtocolViolation("SUBSCRIBE has no topic filter (MQTT-3.8.3-3, at level 5 MQTT-3.8.3-2)")
        return SubscribeReceived(
            self._packet_identifier,
            tuple(self._subscriptions),
            tuple(self._entries),
            tuple(self._options),
            self._properties,
        )

    def _read_properties(self, fields: Fields) -> None:
        self._properties = property_codec.SUBSCRIBE.read(fields)

    def _read_filter(self, fields: Fields) -> None:
        topic_filter = _read_topic_filter(fields, self._level)
        if self._level.has_properties:
            qos, asked = _read_options(fields, topic_filter)
            self._options.append(asked)
        else:
            qos = _read_qos(fields)
        self._subscriptions.append((topic_filter, qos))


class UnsubscribeReader(FilterReader):
    """Reads an UNSUBSCRIBE."""

    __slots__ = ("_properties", "_topic_filters")

    def __init__(self, level: Level) -> None:
        super().__init__(level)
        self._properties: UnsubscribeProperties | None = None
        self._topic_filters: list[str] = []

    def read(self, fields: Fields) -> UnsubscribeReceived:
        """Read the unread rest of the packet; `fields`: the complete packet."""
        self._read_to_end(fields)
        if not self._entries:
            raise ProtocolViolation("UNSUBSCRIBE has no topic filter (MQTT-3.10.3-2)")
        return UnsubscribeReceived(
            self._packet_identifier, tuple(self._topic_filters), tuple(self._entries), self._properties
        )

    def _read_properties(self, fields: Fields) -> None:
        self._properties = property_codec.UNSUBSCRIBE.read(fields)

    def _read_filter(self, fields: Fields) -> None:
        self._topic_filters.append(_read_topic_filter(fields, self._level))


def _read_topic_filter(fields: Fields, level: Level) -> str:
    topic_filter = level.text(fields)
    check_topic_filter(topic_filter)
    if level.has_properties:
        check_shared_filter(topic_filter)
    return topic_filter


def _read_options(fields: Fields, topic_filter: str) -> tuple[int, SubscriptionOptions]:
    """QoS and options of an entry of level 5."""
    flags = fields.byte()
    if flags & _RESERVED:
        raise MalformedPacket(f"the subscription options {flags:02X} have a reserved bit (MQTT-3.8.3-5)")
    qos, retain_handling = flags & _QOS, (flags & _RETAIN_HANDLING) >> 4
    if qos == 3 or retain_handling == 3:
        raise ProtocolViolation(f"the subscription options {flags:02X} have QoS or retain handling 3 (section 3.8.3.1)")
    no_local = flags & _NO_LOCAL != 0
    if no_local and share_of(topic_filter) is not None:
        raise ProtocolViolation("a shared subscription has no local set (MQTT-3.8.3-4)")
    return qos, SubscriptionOptions(no_local, flags & _RETAIN_AS_PUBLISHED != 0, retain_handling)


def _read_qos(fields: Fields) -> int:
    qos = fields.byte()
    if qos > 2:
        raise MalformedPacket(f"SUBSCRIBE requests the QoS byte {qos:02X}, it must be 0, 1 or 2 (MQTT-3.8.3-4)")
    return qos
