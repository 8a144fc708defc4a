"""One network connection as the server sees it: bytes in, events out (step 2 on the way of a PUBLISH).

AWAIT_CONNECT  -- CONNECT -->  AWAIT_ATTACH  -- attach() -->  OPEN  -- DISCONNECT -->  closed
     in every phase: Violated or ConnectRefused --> closed
"""

import math
from collections.abc import Container
from enum import IntEnum

from gateway.mqtt.connect import read_connect, read_level
from gateway.mqtt.disconnect import check_auth, read_disconnect
from gateway.mqtt.errors import LimitExceeded, MalformedPacket, ProtocolViolation, UsageError
from gateway.mqtt.events import ConnectReceived, ConnectRefused, DisconnectReceived, Event, PingReceived
from gateway.mqtt.framing import PartialPacket
from gateway.mqtt.incoming import PublishReader
from gateway.mqtt.levels import BEFORE_MQTT_5, LEVELS, MQTT_5_0, PacketType
from gateway.mqtt.outgoing_flows import OutgoingFlows
from gateway.mqtt.properties import (
    UNLIMITED_RECEIVE_MAXIMUM,
    ConnackProperties,
    ConnectProperties,
    DisconnectProperties,
)
from gateway.mqtt.reason_codes import (
    CONNACK_CODES,
    CONNECT_RETURN_CODES,
    DISCONNECT_CODES_OF_SERVER,
    ReasonCode,
)
from gateway.mqtt.reason_strings import reason_string
from gateway.mqtt.receiver import PacketReceiver
from gateway.mqtt.subscriptions import SubscribeReader, UnsubscribeReader
from gateway.mqtt.wire import MAXIMUM_REMAINING_LENGTH, Fields, decode_remaining_length, largest_remaining_length
from gateway.mqtt.writer import PacketWriter

LONGEST_WAITING_BYTES = (
    1_048_576  # our choice: bytes that may wait behind a CONNECT; more than a pausing listener reads
)
UNLIMITED_ALIASES = 65_535  # the largest topic alias (MQTT 5.0 section 3.3.2.3.4)
KEEP_ALIVE_FACTOR = 1.5  # MQTT-3.1.2-24

#: First bytes of other protocols, for the log; no CONNECT has flags (section 2.2.2).
_OTHER_PROTOCOLS = {0x16: ", as TLS does, and this port has none", 0x47: ", as GET of HTTP does"}
#: Protocol name and level of MQTT 5 (its section 3.1.2.1).
_BEGINNING_OF_5 = b"\x00\x04MQTT\x05"
#: Reason codes of DISCONNECT that CONNACK may not have, and the codes that replace them in CONNACK.
_CODES_BEFORE_CONNACK: dict[int, int] = {ReasonCode.SERVER_SHUTTING_DOWN: ReasonCode.SERVER_UNAVAILABLE}
_NOTHING_MORE = ConnackProperties()
_READERS: dict[int, type[SubscribeReader] | type[UnsubscribeReader]] = {
    PacketType.SUBSCRIBE: SubscribeReader,
    PacketType.UNSUBSCRIBE: UnsubscribeReader,
}
_WRITERS = {number: PacketWriter(number) for number in LEVELS}


class Phase(IntEnum):
    """The phase of an open connection."""

    AWAIT_CONNECT = 0
    AWAIT_ATTACH = 1
    OPEN = 2


class Connection(PacketReceiver):
    """The server's side of one connection; `flows` is None until `attach`.

    `maximum_packet_bytes` limits the remaining length of every packet. At level 5, if the limit is announced, it limits
    the whole packet. `levels`: the protocol levels that may connect; a CONNECT of another level is refused. CONNACK of
    level 5 announces `receive_maximum` and `topic_alias_maximum`, and the client must keep them. It announces
    `maximum_keep_alive_s` (0: no limit) if the client asks for a longer keep alive or for none.
    `outgoing_alias_maximum`: the most aliases that we give, even if the client takes more. `writer` makes the packets
    that leave.
    """

    __slots__ = (
        "_filters",
        "_is_answered",
        "_levels",
        "_maximum_keep_alive_s",
        "_maximum_packet_bytes",
        "_outgoing_alias_maximum",
        "_phase",
        "_receive_maximum",
        "_session_may_expire_later",
        "_topic_alias_maximum",
        "_waiting",
        "is_resumed",
        "keep_alive_s",
        "receive_maximum_of_client",
        "refusal_code",
        "writer",
    )

    def __init__(
        self,
        *,
        maximum_packet_bytes: int = MAXIMUM_REMAINING_LENGTH,
        levels: Container[int] = BEFORE_MQTT_5,
        receive_maximum: int = UNLIMITED_RECEIVE_MAXIMUM,
        topic_alias_maximum: int = 0,
        maximum_keep_alive_s: int = 0,
        outgoing_alias_maximum: int = UNLIMITED_ALIASES,
    ) -> None:
        super().__init__(maximum_packet_bytes)
        self._maximum_packet_bytes = maximum_packet_bytes
        self._levels = levels
        self._receive_maximum = receive_maximum
        self._topic_alias_maximum = topic_alias_maximum
        self._maximum_keep_alive_s = maximum_keep_alive_s
        self._outgoing_alias_maximum = outgoing_alias_maximum
        self._phase = Phase.AWAIT_CONNECT
        self._waiting: bytearray | None = None
        #: The reader of an incomplete SUBSCRIBE or UNSUBSCRIBE.
        self._filters: SubscribeReader | UnsubscribeReader | None = None
        self._is_answered = False
        self._session_may_expire_later = False
        #: Whether CONNACK has said that an earlier session exists.
        self.is_resumed = False
        #: Seconds, 0 is none; a server keep alive in `connack` replaces the client's.
        self.keep_alive_s = 0
        self.receive_maximum_of_client = UNLIMITED_RECEIVE_MAXIMUM
        #: The code of the CONNACK that refuses the connection; 0: there is no such CONNACK.
        self.refusal_code = 0
        self.writer = _WRITERS[4]

    @property
    def level(self) -> int:
        """The protocol level of the CONNECT, 3 to 5; 0 before it."""
        return self._level.number if self._level is not None else 0

    def attach(self, flows: OutgoingFlows) -> None:
        """Accept the CONNECT with its flows. Send CONNACK, then call `receive_data(b"")` for the bytes behind it."""
        if self._phase is not Phase.AWAIT_ATTACH or self.is_closed:
            raise UsageError(f"a session is attached once, between CONNECT and the next packet, not {self._phase.name}")
        flows.begin_connection(self.receive_maximum_of_client)
        self.flows = flows
        self._phase = Phase.OPEN

    def connack(self, session_present: bool, properties: ConnackProperties = _NOTHING_MORE) -> bytes:
        """The CONNACK that accepts; at level 5 it announces the limits of this connection too.

        The caller decides `properties`. Levels 3 and 4 never get them: give a client of these neither a server keep
        alive nor an assigned client identifier. b"": CONNACK is larger than the client takes; close (MQTT-3.1.2-24).
        """
        self.is_resumed = session_present
        if self._keep_alive_is_too_long():
            properties = properties._replace(server_keep_alive_s=self._maximum_keep_alive_s)
        if properties.server_keep_alive_s is not None:
            self.keep_alive_s = properties.server_keep_alive_s
        announced = properties._replace(
            receive_maximum=self._receive_maximum,
            maximum_packet_bytes=self._maximum_packet_bytes if self._is_packet_size_announced() else 0,
            topic_alias_maximum=self._topic_alias_maximum,
        )
        made = self.writer.connack(session_present, ReasonCode.SUCCESS, announced)
        self._is_answered = not made  # without CONNACK there is no DISCONNECT either (MQTT-3.14.0-1)
        return made

    def closing_packet(self, reason_code: int, properties: DisconnectProperties | None = None) -> bytes:
        """The packet to send before the connection is closed for this reason; b"" if none may be sent.

        At level 5 it is DISCONNECT, or CONNACK if none was sent. At earlier levels it is a CONNACK, and only if CONNACK
        has a return code for the reason. A reason that the packet may not have becomes 80 hex; in CONNACK a server that
        shuts down is unavailable (88 hex). `properties` may say more than the code (reason_strings.py). There is one
        such packet for a connection, and none behind the client's own DISCONNECT (MQTT-3.14.4-1).
        """
        level = self._level
        if self._is_answered or level is None:
            return b""
        self._is_answered = True
        more = properties or DisconnectProperties()
        told = reason_string(reason_code, more.reason_string)  # even if the packet may not have the code
        if self._phase is Phase.OPEN:
            code = _allowed(reason_code, DISCONNECT_CODES_OF_SERVER)
            return self.writer.disconnect(code, more._replace(reason_string=told))
        reason_code = _CODES_BEFORE_CONNACK.get(reason_code, reason_code)
        if not level.has_properties:
            return_code = CONNECT_RETURN_CODES.get(ReasonCode(reason_code))
            return b"" if return_code is None else self._refusing(return_code, _NOTHING_MORE)
        shown = ConnackProperties(
            reason_string=told, user_properties=more.user_properties, server_reference=more.server_reference
        )
        return self._refusing(_allowed(reason_code, CONNACK_CODES), shown)

    def _refusing(self, code: int, properties: ConnackProperties) -> bytes:
        made = self.writer.connack(False, code, properties)
        self.refusal_code = code if made else 0
        return made

    @property
    def has_said_why(self) -> bool:
        """Whether a packet has told the client that its connection is closed."""
        has_packet = self._phase is not Phase.OPEN or (self._level is not None and self._level.has_properties)
        return self._is_answered and has_packet

    def answered(self, count: int) -> None:
        """`count` PUBACKs and PUBCOMPs have been sent: their PUBLISHes leave the receive window.

        At level 5 the caller must call it for each (MQTT 5.0 section 4.9). At earlier levels it does nothing.
        """
        if self._publishes is not None:
            self._publishes.answered(count)

    def refused(self, packet_identifier: int) -> None:
        """PUBREC with 80 hex or more has been sent. It ends its PUBLISH too, because no PUBREL will follow."""
        if self._publishes is not None:
            self._publishes.refused(packet_identifier)

    def keep_alive_deadline(self, silent_since_s: float) -> float:
        """The time to close a silent connection, on the clock of `silent_since_s` (s); never without keep alive."""
        if not self.keep_alive_s:
            return math.inf
        return silent_since_s + KEEP_ALIVE_FACTOR * self.keep_alive_s

    def _keep_alive_is_too_long(self) -> bool:
        longest_s = self._maximum_keep_alive_s
        has_properties = self._level is not None and self._level.has_properties
        return has_properties and longest_s > 0 and not 0 < self.keep_alive_s <= longest_s

    def receive_data(self, data: bytes) -> list[Event]:
        """Decode bytes of the socket. Between CONNECT and `attach` they wait undecoded, up to 1 MiB (then Violated)."""
        if self._waiting is not None and self._phase is Phase.OPEN:
            data = bytes(self._waiting) + data
            self._waiting = None
        return super().receive_data(data)

    @property
    def unfinished_bytes(self) -> int:
        """Bytes buffered for an incomplete packet, plus the memory of the filters already read from it."""
        return super().unfinished_bytes + (0 if self._filters is None else self._filters.memory_bytes)

    def _close(self) -> None:
        super()._close()
        self._waiting = self._filters = None

    def _decode(self, data: bytes, position: int, events: list[Event]) -> int:
        if self.flows is not None and self._level is not None:
            return self._decode_open(data, position, events, self.flows, self._level)
        if self._phase is Phase.AWAIT_ATTACH or position == len(data):
            return position
        first_byte = data[position]
        if first_byte >> 4 != PacketType.CONNECT or first_byte in _OTHER_PROTOCOLS:
            guess = _OTHER_PROTOCOLS.get(first_byte, "")
            raise ProtocolViolation(
                f"the first packet is not CONNECT: it begins with {first_byte:02X}{guess} (MQTT-3.1.0-1)"
            )
        try:
            return self._decode_one(data, position, events)
        except LimitExceeded:
            if self._level is None:
                self._foresee_level(data, position)
            raise

    def _foresee_level(self, data: bytes, position: int) -> None:
        """A CONNECT that is too long gets an answer of level 5 (table 3-1), if its level has already arrived."""
        _, body = decode_remaining_length(data, position + 1)
        if MQTT_5_0.number in self._levels and data.startswith(_BEGINNING_OF_5, body):
            self._level = MQTT_5_0
            self.writer = _WRITERS[MQTT_5_0.number]

    def _keep(self, data: bytes, position: int) -> None:
        if self._phase is not Phase.AWAIT_ATTACH:
            super()._keep(data, position)
            return
        if self._waiting is None:
            self._waiting = bytearray()
        self._waiting += data[position:]
        if len(self._waiting) > LONGEST_WAITING_BYTES:
            raise ProtocolViolation(f"more than {LONGEST_WAITING_BYTES} bytes were sent before CONNACK")

    def _extend(self, partial: PartialPacket, data: bytes, position: int) -> int:
        position = super()._extend(partial, data, position)
        if partial.has_header and not partial.is_complete and partial.first_byte >> 4 in _READERS:
            self._read_ahead(partial)
        return position

    def _read_ahead(self, partial: PartialPacket) -> None:
        if self._filters is None:
            assert self._level is not None
            self._filters = _READERS[partial.first_byte >> 4](self._level)
        reader = self._filters
        if partial.body_bytes >= reader.read_bytes + reader.wanted_bytes:
            reader.read_ahead(partial.body_behind(reader.read_bytes))

    def _read(self, packet_type: PacketType, flags: int, fields: Fields) -> Event | None:
        if packet_type is PacketType.CONNECT:
            return self._read_connect(flags, fields)
        assert self._level is not None
        if packet_type in _READERS:
            reader, self._filters = self._filters or _READERS[packet_type](self._level), None
            return reader.read(fields)
        if packet_type is PacketType.PINGREQ:
            return PingReceived()
        if packet_type is PacketType.DISCONNECT:
            return self._read_disconnect(fields)
        if packet_type is PacketType.AUTH:
            check_auth(fields)
            raise ProtocolViolation("AUTH was sent, and no authentication is under way (MQTT-4.12.0-7)")
        return self._read_acknowledgement(packet_type, fields)

    def _read_connect(self, flags: int, fields: Fields) -> ConnectReceived | ConnectRefused:
        level = read_level(fields, self._levels)
        if not isinstance(level, ConnectRefused):
            self._level = level
            self.writer = _WRITERS[level.number]
            if flags and level.connect_flags_must_be_clear:
                raise MalformedPacket(f"CONNECT has the flags {flags:04b} (MQTT-2.2.2-2, at level 5 MQTT-2.1.3-1)")
            event = read_connect(fields, level)
        else:
            event = level
        if isinstance(event, ConnectRefused):
            self._is_answered = True
            self.refusal_code = event.return_code if event.answer else 0
            self._close()
            return event
        self.keep_alive_s = event.keep_alive_s
        self._phase = Phase.AWAIT_ATTACH
        if self._level is not None and self._level.has_properties:
            self._take_up(event.properties or ConnectProperties())
        return event

    def _take_up(self, properties: ConnectProperties) -> None:
        """From now on the properties of a CONNECT of level 5 hold, and so do the limits that we announce."""
        self.receive_maximum_of_client = properties.receive_maximum
        self._session_may_expire_later = properties.session_expiry_s > 0
        if self._is_packet_size_announced():
            self._longest_bytes = largest_remaining_length(self._maximum_packet_bytes)
        self._publishes = PublishReader(
            receive_maximum=self._receive_maximum, topic_alias_maximum=self._topic_alias_maximum
        )
        self.writer = PacketWriter(
            MQTT_5_0.number,
            maximum_packet_bytes=properties.maximum_packet_bytes,
            topic_alias_maximum=min(properties.topic_alias_maximum, self._outgoing_alias_maximum),
            request_problem_information=properties.request_problem_information,
        )

    def _is_packet_size_announced(self) -> bool:
        """Whether CONNACK has Maximum Packet Size. Without it we limit only the remaining length (3.2.2.3.6)."""
        return self._maximum_packet_bytes < MAXIMUM_REMAINING_LENGTH

    def _read_disconnect(self, fields: Fields) -> DisconnectReceived:
        event = read_disconnect(fields)
        expiry_s = event.properties.session_expiry_s if event.properties is not None else None
        if expiry_s and not self._session_may_expire_later:
            raise ProtocolViolation("DISCONNECT keeps a session that CONNECT let end with it (section 3.14.2.2.2)")
        self._is_answered = True
        self._close()
        return event


def _allowed(reason_code: int, codes: Container[int]) -> int:
    return reason_code if reason_code in codes else ReasonCode.UNSPECIFIED_ERROR
