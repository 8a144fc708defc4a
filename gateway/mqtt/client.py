"""The client's side of one connection, for what drives the gateway from outside: load, and tests by bytes.

It shares decoding and session with the server's side; the four packets that only a client receives are read here.
"""

from gateway.mqtt.errors import MalformedPacket
from gateway.mqtt.events import ConnectAnswered, Event, PingAnswered, SubscribeAnswered, UnsubscribeAnswered
from gateway.mqtt.levels import LEVELS
from gateway.mqtt.packets import PacketType
from gateway.mqtt.receiver import PacketReceiver
from gateway.mqtt.session import Session
from gateway.mqtt.wire import MAXIMUM_REMAINING_LENGTH, Fields


class ClientConnection(PacketReceiver):
    """What a server sends, as events. The client's own PUBLISHes are flows of `session`, as the server's are."""

    __slots__ = ("_received", "session")

    def __init__(
        self, session: Session, *, level: int = 4, maximum_packet_bytes: int = MAXIMUM_REMAINING_LENGTH
    ) -> None:
        super().__init__(maximum_packet_bytes)
        self.session = session
        self._received = LEVELS[level].received_by_client

    def _decode(self, data: bytes, position: int, events: list[Event]) -> int:
        return self._decode_open(data, position, events, self.session, self._received)

    def _read(self, packet_type: int, fields: Fields) -> Event:
        if packet_type == PacketType.CONNACK:
            return _read_connack(fields)
        if packet_type == PacketType.SUBACK:
            packet_identifier = fields.packet_identifier()
            return SubscribeAnswered(packet_identifier, fields.take(fields.left))
        if packet_type == PacketType.UNSUBACK:
            return UnsubscribeAnswered(fields.packet_identifier())
        return PingAnswered()


def _read_connack(fields: Fields) -> ConnectAnswered:
    flags, return_code = fields.byte(), fields.byte()
    if flags > 1:
        raise MalformedPacket(f"CONNACK has the flags {flags:02X} (section 3.2.2.1)")
    return ConnectAnswered(flags == 1, return_code)
