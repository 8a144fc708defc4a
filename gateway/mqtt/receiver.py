"""Cuts the bytes of a connection into packets, and decodes the packets of an open session.

Two loops decide the speed of the gateway: `_decode_publishes` and `_decode_acknowledgements`. Each takes a run of its
packets with int indices over `bytes`, with slices and no views, and without a call for each packet. All rarer packets
go through `PacketReceiver._decode_one`, and the additional parts of a PUBLISH of level 5 through
`incoming.PublishReader`.
"""

from abc import ABC, abstractmethod

from gateway.mqtt.acknowledgements import read_acknowledgement
from gateway.mqtt.errors import LimitExceeded, MalformedPacket, PeerError, ProtocolViolation
from gateway.mqtt.events import Event, PublishReceived, ReleaseReceived, Violated
from gateway.mqtt.framing import PartialPacket
from gateway.mqtt.incoming import PublishReader
from gateway.mqtt.levels import LONGEST, Level, PacketType, explain_first_byte
from gateway.mqtt.outgoing_flows import OutgoingFlows
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.wire import Fields, decode_remaining_length, is_minimal

_PUBLISH, _PUBREL, _LAST_ANSWER = int(PacketType.PUBLISH), int(PacketType.PUBREL), int(PacketType.PUBCOMP)
_PUBLISH_FLAGS = tuple((first >> 1 & 3, first & 1 != 0, first & 8 != 0) for first in range(0x40))
"""QoS, RETAIN and DUP of each first byte of a PUBLISH."""
_TYPES = (PacketType.CONNECT, *PacketType)  # by number; the table of the level refuses 0
_FIXED_BYTES = 2  # a packet of at most these has no length to choose
_new = tuple.__new__  # half the cost of a named tuple's own constructor


class PacketReceiver(ABC):
    """Bytes in, events out. `is_closed`: the last event was given, and later bytes are not decoded."""

    __slots__ = ("_level", "_longest_bytes", "_partial", "_publishes", "flows", "has_finished_packet", "is_closed")

    def __init__(self, longest_bytes: int) -> None:
        self.is_closed = False
        #: Whether the last call of `receive_data` came to the end of a packet.
        self.has_finished_packet = False
        self.flows: OutgoingFlows | None = None
        self._level: Level | None = None
        self._longest_bytes = longest_bytes
        self._partial: PartialPacket | None = None
        #: At level 5 alone.
        self._publishes: PublishReader | None = None

    @property
    def unfinished_bytes(self) -> int:
        """Bytes that have arrived of an incomplete packet."""
        return 0 if self._partial is None else len(self._partial)

    @property
    def bytes_to_come(self) -> int:
        """Bytes that are missing of an incomplete packet; 0 while the number is unknown."""
        return 0 if self._partial is None else self._partial.bytes_to_come

    def receive_data(self, data: bytes) -> list[Event]:
        """Decode the bytes of the socket, cut anywhere. Returns the events in the order of their packets.

        A fault of the peer raises no error: Violated is then the last event, and every later call returns [].
        """
        events: list[Event] = []
        try:
            self._receive(data, events)
        except PeerError as error:
            self._close()
            events.append(Violated(error))
        return events

    @abstractmethod
    def _decode(self, data: bytes, position: int, events: list[Event]) -> int:
        """Decode the complete packets. Returns the beginning of the first incomplete one."""

    @abstractmethod
    def _read(self, packet_type: PacketType, flags: int, fields: Fields) -> Event | None:
        """Read the body of a packet that is not read in a run; None if it changes nothing."""

    def _close(self) -> None:
        self.is_closed = True
        self._partial = None

    def _receive(self, data: bytes, events: list[Event]) -> None:
        position = 0
        self.has_finished_packet = False
        if (partial := self._partial) is not None:
            position = self._complete(partial, data, events)
            self.has_finished_packet = self._partial is not partial
        if not self.is_closed:
            start, position = position, self._decode(data, position, events)
            self.has_finished_packet |= position > start
        if position < len(data) and not self.is_closed:
            self._keep(data, position)

    def _complete(self, partial: PartialPacket, data: bytes, events: list[Event]) -> int:
        """Go on with the packet that an earlier call left unfinished; returns where the next one begins."""
        position = self._extend(partial, data, 0)
        if partial.is_complete:
            self._partial = None
            self._decode(partial.packet(), 0, events)
        return position

    def _keep(self, data: bytes, position: int) -> None:
        """Keep the beginning of a packet, which cannot be decoded yet."""
        self._partial = PartialPacket()
        self._extend(self._partial, data, position)

    def _extend(self, partial: PartialPacket, data: bytes, position: int) -> int:
        if not partial.has_header:
            remaining_length, position = partial.take_header(data, position)
            if remaining_length >= 0:
                self._check_length(partial.first_byte, remaining_length)
        return partial.take_body(data, position)

    def _check_length(self, first_byte: int, remaining_length: int) -> None:
        """Refuse a packet by its fixed header, before its body is gathered."""
        longest_of_type = (LONGEST if self._level is None else self._level.longest)[first_byte >> 4]
        longest = min(longest_of_type, self._longest_bytes)
        if remaining_length <= longest:
            return
        name = PacketType(first_byte >> 4).name
        reason = f"{name} has a remaining length of {remaining_length} bytes, the limit is {longest}"
        if longest <= _FIXED_BYTES:
            raise MalformedPacket(reason)
        raise LimitExceeded(reason, ReasonCode.PACKET_TOO_LARGE)

    def _decode_open(self, data: bytes, position: int, events: list[Event], flows: OutgoingFlows, level: Level) -> int:
        """`_decode` on a connection with a session."""
        size, received = len(data), level.received
        while position < size and not self.is_closed:
            start = position
            packet_type = received[data[start]]
            if packet_type == _PUBLISH:
                position = _decode_publishes(data, start, events, level, self._longest_bytes, self._publishes)
            elif _PUBLISH < packet_type <= _LAST_ANSWER:
                position = _decode_acknowledgements(data, start, events, flows, level, self._publishes)
                if position == start:
                    position = self._decode_one(data, start, events)
            elif packet_type:
                position = self._decode_one(data, start, events)
            else:
                raise explain_first_byte(data[start], level)
            if position == start:
                break
        return position

    def _decode_one(self, data: bytes, position: int, events: list[Event]) -> int:
        """Decode one packet with `_read`. Returns the beginning of the next one, or `position` if it is incomplete."""
        first_byte = data[position]
        remaining_length, body = decode_remaining_length(data, position + 1)
        if remaining_length < 0:
            return position
        self._check_length(first_byte, remaining_length)
        end = body + remaining_length
        if end > len(data):
            return position
        event = self._read(_TYPES[first_byte >> 4], first_byte & 15, Fields(data, body, end))
        if self._level is not None and self._level.has_properties:
            _check_minimal(data, position + 1, body)
        if event is not None:
            events.append(event)
        return end

    def _read_acknowledgement(self, packet_type: PacketType, fields: Fields) -> Event | None:
        assert self.flows is not None
        assert self._level is not None
        event = read_acknowledgement(packet_type, fields, self.flows, self._level)
        if self._publishes is not None and isinstance(event, ReleaseReceived):
            self._publishes.released(event.packet_identifier)
        return event


def _check_minimal(data: bytes, position: int, behind: int) -> None:
    if not is_minimal(data, position, behind):
        raise MalformedPacket("the remaining length is longer than it must be (MQTT-1.5.5-1)")


def _decode_publishes(
    data: bytes,
    position: int,
    events: list[Event],
    level: Level,
    longest: int,
    reader: PublishReader | None,
) -> int:
    """Decode a run of PUBLISH packets. Returns the beginning of the first other or incomplete packet."""
    size, append, topic_names, received = len(data), events.append, level.topic_names, level.received
    while size - position > 1 and received[first_byte := data[position]] == _PUBLISH:
        length = data[position + 1]
        body = position + 2
        if length > 127:
            length, body = decode_remaining_length(data, position + 1)
        end = body + length
        if end > size or length < 0:
            break
        if length < 2 or length > longest:
            raise _bad_length(length, longest)
        header_end = body + 2 + (data[body] << 8 | data[body + 1])
        topic_data = data[body + 2 : header_end]
        qos, retain, duplicate = _PUBLISH_FLAGS[first_byte]
        packet_identifier = 0
        if qos:
            header_end += 2
            if header_end <= end:
                packet_identifier = data[header_end - 2] << 8 | data[header_end - 1]
        if header_end > end or (qos and not packet_identifier):
            raise _bad_header(ends_too_early=header_end > end)
        properties = None
        if reader is None:
            topic = topic_names[topic_data]
        else:
            _check_minimal(data, position + 1, body)
            topic, properties, header_end = reader.read(data, topic_data, header_end, end, packet_identifier, qos)
        payload, header = data[header_end:end], data[position:header_end]
        append(_new(PublishReceived, (topic, payload, qos, retain, duplicate, packet_identifier, header, properties)))
        position = end
    return position


def _bad_length(length: int, longest: int) -> PeerError:
    if length < 2:
        return MalformedPacket(f"PUBLISH has a remaining length of {length} bytes, it must be at least 2")
    reason = f"PUBLISH has a remaining length of {length} bytes, the limit is {longest}"
    return LimitExceeded(reason, ReasonCode.PACKET_TOO_LARGE)


def _bad_header(*, ends_too_early: bool) -> PeerError:
    if ends_too_early:
        return MalformedPacket("PUBLISH ends in its header")
    return ProtocolViolation("PUBLISH has the packet identifier 0 (MQTT-2.3.1-1, at level 5 MQTT-2.2.1-3)")


def _decode_acknowledgements(
    data: bytes,
    position: int,
    events: list[Event],
    flows: OutgoingFlows,
    level: Level,
    reader: PublishReader | None,
) -> int:
    """Decode a run of PUBACK, PUBREC, PUBREL and PUBCOMP of four bytes. Returns where the first other packet begins."""
    size, append, note_acknowledgement, received = len(data), events.append, flows.note_acknowledgement, level.received
    while size - position > 3 and _PUBLISH < (packet_type := received[data[position]]) <= _LAST_ANSWER:
        packet_identifier = data[position + 2] << 8 | data[position + 3]
        if data[position + 1] != 2 or not packet_identifier:
            break
        if packet_type == _PUBREL:
            append(ReleaseReceived(packet_identifier))
            if reader is not None:
                reader.released(packet_identifier)
        elif (event := note_acknowledgement(packet_type, packet_identifier)) is not None:
            append(event)
        elif level.acknowledgements_must_fit:
            flows.check_order(packet_type, packet_identifier)
        position += 4
    return position
