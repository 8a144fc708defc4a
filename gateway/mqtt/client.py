"""The client's side of one connection, for what drives the gateway from outside: load, and tests by bytes.

It shares decoding and session with the server's side; the packets that only a client receives are read here.
"""

from gateway.mqtt import property_codec
from gateway.mqtt.disconnect import read_auth, read_disconnect
from gateway.mqtt.errors import MalformedPacket, ProtocolViolation
from gateway.mqtt.events import ConnectAnswered, Event, PingAnswered, SubscribeAnswered, UnsubscribeAnswered
from gateway.mqtt.incoming import PublishReader
from gateway.mqtt.levels import LEVELS, Level, PacketType
from gateway.mqtt.properties import UNLIMITED_RECEIVE_MAXIMUM, ConnackProperties
from gateway.mqtt.reason_codes import CONNACK_CODES, DISCONNECT_CODES_OF_SERVER, SUBACK_CODES, UNSUBACK_CODES
from gateway.mqtt.receiver import PacketReceiver
from gateway.mqtt.session import Session
from gateway.mqtt.wire import MAXIMUM_REMAINING_LENGTH, Fields
from gateway.mqtt.writer import PacketWriter


class ClientConnection(PacketReceiver):
    """What a server sends, as events. The client's own PUBLISHes are flows of `session`, as the server's are.

    `receive_maximum` and `topic_alias_maximum`: what the CONNECT says. `writer` keeps to what the CONNACK says.
    """

    __slots__ = ("_rules", "writer")

    def __init__(
        self,
        session: Session,
        *,
        level: int = 4,
        maximum_packet_bytes: int = MAXIMUM_REMAINING_LENGTH,
        receive_maximum: int = UNLIMITED_RECEIVE_MAXIMUM,
        topic_alias_maximum: int = 0,
    ) -> None:
        super().__init__(maximum_packet_bytes)
        self.session = session
        self._level = self._rules = LEVELS[level]
        self.writer = PacketWriter(level)
        if self._rules.has_properties:
            self._publishes = PublishReader(
                receive_maximum=receive_maximum, topic_alias_maximum=topic_alias_maximum, is_of_server=True
            )

    def answered(self, count: int) -> None:
        """So many PUBACKs and PUBCOMPs were sent."""
        if self._publishes is not None:
            self._publishes.answered(count)

    def _decode(self, data: bytes, position: int, events: list[Event]) -> int:
        assert self.session is not None
        received = self._rules.received_by_client
        return self._decode_open(data, position, events, self.session, self._rules, received)

    def _read(self, packet_type: PacketType, flags: int, fields: Fields) -> Event | None:
        if packet_type is PacketType.CONNACK:
            return self._take_up(_read_connack(fields, self._rules))
        if packet_type is PacketType.SUBACK:
            return _read_suback(fields, self._rules)
        if packet_type is PacketType.UNSUBACK:
            return _read_unsuback(fields, self._rules)
        if packet_type is PacketType.PINGRESP:
            return PingAnswered()
        if packet_type is PacketType.AUTH:
            return read_auth(fields)
        if packet_type is PacketType.DISCONNECT:
            self._close()
            return read_disconnect(fields, DISCONNECT_CODES_OF_SERVER)
        return self._read_answer(packet_type, fields)

    def _take_up(self, event: ConnectAnswered) -> ConnectAnswered:
        """What the server says of itself holds from now on."""
        if self._rules.has_properties and self.session is not None:
            properties = event.properties or ConnackProperties()
            self.session.begin_connection(properties.receive_maximum)
            self.writer = PacketWriter(
                self._rules.number,
                maximum_packet_bytes=properties.maximum_packet_bytes,
                topic_alias_maximum=properties.topic_alias_maximum,
            )
        return event


def _read_connack(fields: Fields, level: Level) -> ConnectAnswered:
    flags, return_code = fields.byte(), fields.byte()
    if flags > 1:
        raise MalformedPacket(f"CONNACK has the flags {flags:02X} (section 3.2.2.1)")
    if not level.has_properties:
        fields.finish()
        return ConnectAnswered(flags == 1, return_code)
    properties = property_codec.CONNACK.read(fields)
    fields.finish()
    _check_codes(PacketType.CONNACK, bytes((return_code,)), CONNACK_CODES)
    return ConnectAnswered(flags == 1, return_code, properties)


def _read_suback(fields: Fields, level: Level) -> SubscribeAnswered:
    packet_identifier = fields.packet_identifier()
    properties = property_codec.ANSWER.read(fields) if level.has_properties else None
    return_codes = fields.take(fields.left)
    if level.has_properties:
        _check_codes(PacketType.SUBACK, return_codes, SUBACK_CODES)
    return SubscribeAnswered(packet_identifier, return_codes, properties)


def _read_unsuback(fields: Fields, level: Level) -> UnsubscribeAnswered:
    packet_identifier = fields.packet_identifier()
    if not level.has_properties:
        fields.finish()
        return UnsubscribeAnswered(packet_identifier)
    properties = property_codec.ANSWER.read(fields)
    reason_codes = fields.take(fields.left)
    _check_codes(PacketType.UNSUBACK, reason_codes, UNSUBACK_CODES)
    return UnsubscribeAnswered(packet_identifier, reason_codes, properties)


def _check_codes(packet_type: PacketType, codes: bytes, allowed: frozenset[int]) -> None:
    for code in codes:
        if code not in allowed:
            raise ProtocolViolation(f"{packet_type.name} has the reason code {code:02X}")
