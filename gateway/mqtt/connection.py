"""One network connection as the server sees it: bytes in, events out (step 2 on the way of a PUBLISH).

    AWAIT_CONNECT  -- CONNECT -->  AWAIT_ATTACH  -- attach() -->  OPEN  -- DISCONNECT -->  CLOSED
         every phase: Violated or ConnectRefused --> CLOSED; in CLOSED nothing is decoded

The speed of the gateway hangs on two loops, `_decode_publishes` and `_decode_answers`: each takes a run of its packets
with int indices over `bytes`, slices and no views, and without a call for each packet.
"""

from enum import IntEnum

from gateway.mqtt.connect import read_connect
from gateway.mqtt.errors import MalformedPacket, PeerError, ProtocolViolation, UsageError
from gateway.mqtt.events import (
    ConnectRefused,
    DisconnectReceived,
    Event,
    PingReceived,
    PublishReceived,
    PublishRepeated,
    Violated,
)
from gateway.mqtt.framing import PartialPacket
from gateway.mqtt.levels import LEVELS, LONGEST_CONNECT_BYTES, Level, explain_first_byte
from gateway.mqtt.packets import PacketType
from gateway.mqtt.session import Session
from gateway.mqtt.subscriptions import read_subscribe, read_unsubscribe
from gateway.mqtt.topics import TOPIC_NAMES
from gateway.mqtt.wire import MAXIMUM_REMAINING_LENGTH, Fields, decode_remaining_length

LONGEST_WAITING_BYTES = 1_048_576  # our choice: what may wait behind a CONNECT; a listener that pauses never gets there
KEEP_ALIVE_FACTOR = 1.5  # MQTT-3.1.2-24

_new = tuple.__new__  # half the cost of a named tuple's own constructor
_CONNECT = 0x10
_PUBLISH, _PUBREL, _LAST_ANSWER = int(PacketType.PUBLISH), int(PacketType.PUBREL), int(PacketType.PUBCOMP)
_PUBLISH_FLAGS = tuple((flags >> 1 & 3, flags & 1 != 0, flags & 8 != 0) for flags in range(16))
"""QoS, RETAIN and DUP of each value of the flags of a PUBLISH."""


class Phase(IntEnum):
    """Where a connection stands between its first byte and its last."""

    AWAIT_CONNECT = 0
    AWAIT_ATTACH = 1
    OPEN = 2
    CLOSED = 3


class Connection:
    """The server's side of one connection. `session` and `level` are set by `attach` and by CONNECT.

    `maximum_packet_bytes` limits the remaining length of every packet.
    """

    __slots__ = (
        "_keep_alive_s",
        "_level",
        "_maximum_packet_bytes",
        "_partial",
        "_phase",
        "_waiting",
        "session",
    )

    def __init__(self, *, maximum_packet_bytes: int = MAXIMUM_REMAINING_LENGTH) -> None:
        self.session: Session | None = None
        self._phase = Phase.AWAIT_CONNECT
        self._level: Level | None = None
        self._keep_alive_s = 0
        self._maximum_packet_bytes = maximum_packet_bytes
        self._partial: PartialPacket | None = None
        self._waiting: bytearray | None = None

    @property
    def level(self) -> int:
        """The protocol level of the CONNECT, 3 or 4; 0 before it."""
        return self._level.number if self._level is not None else 0

    @property
    def is_closed(self) -> bool:
        """Whether the last event was given: `receive_data` then returns nothing any more."""
        return self._phase is Phase.CLOSED

    def attach(self, session: Session) -> None:
        """Accept the CONNECT: join its session. Then call `receive_data(b"")` for what the client sent behind it."""
        if self._phase is not Phase.AWAIT_ATTACH:
            raise UsageError(f"a session can be attached right after CONNECT, not in phase {self._phase.name}")
        self.session = session
        self._phase = Phase.OPEN

    def keep_alive_deadline(self, last_received_s: float) -> float | None:
        """When to close a silent connection, on the clock of `last_received_s` (s); None without keep alive."""
        if not self._keep_alive_s:
            return None
        return last_received_s + KEEP_ALIVE_FACTOR * self._keep_alive_s

    def receive_data(self, data: bytes) -> list[Event]:
        """Decode what the socket gave, cut anywhere; the events in the order of their packets.

        Never raises for a fault of the peer: that is the last event, Violated, and every later call returns [].
        """
        events: list[Event] = []
        try:
            self._receive(data, events)
        except PeerError as error:
            self._close()
            events.append(Violated(error))
        return events

    def _close(self) -> None:
        self._phase = Phase.CLOSED
        self._partial = None
        self._waiting = None

    def _receive(self, data: bytes, events: list[Event]) -> None:
        if self._waiting is not None and self._phase is Phase.OPEN:
            data = bytes(self._waiting) + data
            self._waiting = None
        position = 0
        if self._partial is not None:
            position = self._complete_partial(self._partial, data, events)
        position = self._decode_whole(data, position, events)
        if position < len(data):
            self._keep(data, position)

    def _complete_partial(self, partial: PartialPacket, data: bytes, events: list[Event]) -> int:
        """Go on with the packet that an earlier call left unfinished; returns where the next one begins."""
        position = self._extend(partial, data, 0)
        if partial.is_complete:
            self._partial = None
            self._decode_whole(partial.packet(), 0, events)
        return position

    def _keep(self, data: bytes, position: int) -> None:
        """Keep what cannot be decoded yet: the beginning of a packet, or what stands behind a CONNECT."""
        if self._phase is Phase.AWAIT_ATTACH:
            self._keep_waiting(data[position:])
        elif self._phase is not Phase.CLOSED:
            self._partial = PartialPacket()
            self._extend(self._partial, data, position)

    def _keep_waiting(self, data: bytes) -> None:
        if self._waiting is None:
            self._waiting = bytearray()
        self._waiting += data
        if len(self._waiting) > LONGEST_WAITING_BYTES:
            raise ProtocolViolation(f"more than {LONGEST_WAITING_BYTES} bytes were sent before CONNACK")

    def _extend(self, partial: PartialPacket, data: bytes, position: int) -> int:
        if not partial.has_header:
            remaining_length, position = partial.take_header(data, position)
            if remaining_length >= 0:
                self._check_header(partial.first_byte, remaining_length)
        return partial.take_body(data, position)

    def _check_header(self, first_byte: int, remaining_length: int) -> None:
        """Refuse a packet by its fixed header, before its body is gathered."""
        if self._level is None:
            packet_type, longest = PacketType.CONNECT, LONGEST_CONNECT_BYTES
        else:
            packet_type, longest = PacketType(first_byte >> 4), self._level.longest[first_byte >> 4]
        longest = min(longest, self._maximum_packet_bytes)
        if remaining_length > longest:
            raise MalformedPacket(
                f"{packet_type.name} has a remaining length of {remaining_length} bytes, the limit is {longest}"
            )

    def _decode_whole(self, data: bytes, position: int, events: list[Event]) -> int:
        """Decode the packets that are there to their end; returns where the first one that is not begins."""
        if self._phase is Phase.AWAIT_CONNECT and position < len(data):
            position = self._decode_connect(data, position, events)
        session, level = self.session, self._level
        if session is None or level is None:
            return position
        received, end = level.received, len(data)
        while position < end and self._phase is Phase.OPEN:
            start = position
            packet_type = received[data[start]]
            if packet_type == _PUBLISH:
                position = self._decode_publishes(data, start, events, session, received)
            elif _PUBLISH < packet_type <= _LAST_ANSWER:
                position = _decode_answers(data, start, events, session, received)
            elif packet_type:
                position = self._decode_other(data, start, events)
            else:
                raise explain_first_byte(data[start])
            if position == start:
                break
        return position

    def _decode_connect(self, data: bytes, position: int, events: list[Event]) -> int:
        if data[position] != _CONNECT:
            raise ProtocolViolation(
                f"the first packet is not CONNECT: it begins with {data[position]:02X} (MQTT-3.1.0-1)"
            )
        remaining_length, body = decode_remaining_length(data, position + 1)
        if remaining_length >= 0:
            self._check_header(_CONNECT, remaining_length)
        end = body + remaining_length
        if remaining_length < 0 or end > len(data):
            return position
        event = read_connect(Fields(data, body, end))
        events.append(event)
        if isinstance(event, ConnectRefused):
            self._close()
        else:
            self._level, self._keep_alive_s = LEVELS[event.level], event.keep_alive_s
            self._phase = Phase.AWAIT_ATTACH
        return end

    def _decode_publishes(
        self, data: bytes, position: int, events: list[Event], session: Session, received: bytes
    ) -> int:
        """Decode a run of PUBLISH packets; returns where the first other or unfinished packet begins."""
        size, longest, append, topic_names = len(data), self._maximum_packet_bytes, events.append, TOPIC_NAMES
        while size - position > 1 and received[first_byte := data[position]] == _PUBLISH:
            length = data[position + 1]
            body = position + 2
            if length > 127:
                length, body = decode_remaining_length(data, position + 1)
            end = body + length
            if end > size or length < 0:
                break
            if length < 2 or length > longest:
                raise MalformedPacket(f"PUBLISH has a remaining length of {length} bytes, it must be 2..{longest}")
            header_end = body + 2 + (data[body] << 8 | data[body + 1])
            topic_data = data[body + 2 : header_end]
            qos, retain, duplicate = _PUBLISH_FLAGS[first_byte & 15]
            packet_identifier = 0
            if qos:
                header_end += 2
                if header_end <= end:
                    packet_identifier = data[header_end - 2] << 8 | data[header_end - 1]
            if header_end > end or (qos and not packet_identifier):
                raise MalformedPacket("PUBLISH ends inside its header, or has the packet identifier 0")
            topic = topic_names[topic_data]
            if qos == 2 and not session.note_publish(packet_identifier):
                append(PublishRepeated(packet_identifier))
            else:
                fields = (
                    topic,
                    data[header_end:end],
                    qos,
                    retain,
                    duplicate,
                    packet_identifier,
                    data[position:header_end],
                )
                append(_new(PublishReceived, fields))
            position = end
        return position

    def _decode_other(self, data: bytes, position: int, events: list[Event]) -> int:
        """Decode one packet of the rarer types; returns where the next one begins."""
        first_byte = data[position]
        remaining_length, body = decode_remaining_length(data, position + 1)
        if remaining_length >= 0:
            self._check_header(first_byte, remaining_length)
        end = body + remaining_length
        if remaining_length < 0 or end > len(data):
            return position
        packet_type = first_byte >> 4
        if packet_type == PacketType.SUBSCRIBE:
            events.append(read_subscribe(Fields(data, body, end)))
        elif packet_type == PacketType.UNSUBSCRIBE:
            events.append(read_unsubscribe(Fields(data, body, end)))
        elif packet_type == PacketType.PINGREQ:
            events.append(PingReceived())
        else:
            events.append(DisconnectReceived())
            self._close()
        return end


def _decode_answers(data: bytes, position: int, events: list[Event], session: Session, received: bytes) -> int:
    """Decode a run of PUBACK, PUBREC, PUBREL and PUBCOMP; returns where the first other or unfinished packet begins."""
    size, append, note_answer, note_release = len(data), events.append, session.note_answer, session.note_release
    while size - position > 1 and _PUBLISH < (packet_type := received[data[position]]) <= _LAST_ANSWER:
        if data[position + 1] != 2:
            raise MalformedPacket(f"{PacketType(packet_type).name} has not a remaining length of 2")
        if size - position < 4:
            break
        packet_identifier = data[position + 2] << 8 | data[position + 3]
        if not packet_identifier:
            raise MalformedPacket(f"{PacketType(packet_type).name} has the packet identifier 0")
        if packet_type == _PUBREL:
            event: Event | None = note_release(packet_identifier)
        else:
            event = note_answer(packet_type, packet_identifier)
        if event is not None:
            append(event)
        position += 4
    return position
