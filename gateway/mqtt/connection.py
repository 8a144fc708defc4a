"""One network connection as the server sees it: bytes in, events out (step 2 on the way of a PUBLISH).

AWAIT_CONNECT  -- CONNECT -->  AWAIT_ATTACH  -- attach() -->  OPEN  -- DISCONNECT -->  closed
     in every phase: Violated or ConnectRefused --> closed
"""

from enum import IntEnum

from gateway.mqtt.connect import read_connect
from gateway.mqtt.errors import ProtocolViolation, UsageError
from gateway.mqtt.events import (
    ConnectReceived,
    ConnectRefused,
    DisconnectReceived,
    Event,
    PingReceived,
)
from gateway.mqtt.levels import LEVELS, Level
from gateway.mqtt.packets import PacketType
from gateway.mqtt.receiver import PacketReceiver
from gateway.mqtt.session import Session
from gateway.mqtt.subscriptions import read_subscribe, read_unsubscribe
from gateway.mqtt.wire import MAXIMUM_REMAINING_LENGTH, Fields

LONGEST_WAITING_BYTES = 1_048_576  # our choice: what may wait behind a CONNECT; a listener that pauses never gets there
KEEP_ALIVE_FACTOR = 1.5  # MQTT-3.1.2-24

_CONNECT = 0x10  # the type with the only flags that it may have (section 3.1.1)


class Phase(IntEnum):
    """Where an open connection stands."""

    AWAIT_CONNECT = 0
    AWAIT_ATTACH = 1
    OPEN = 2


class Connection(PacketReceiver):
    """The server's side of one connection; `session` is None until `attach`.

    `maximum_packet_bytes` limits the remaining length of every packet.
    """

    __slots__ = ("_keep_alive_s", "_level", "_phase", "_waiting", "session")

    def __init__(self, *, maximum_packet_bytes: int = MAXIMUM_REMAINING_LENGTH) -> None:
        super().__init__(maximum_packet_bytes)
        self.session: Session | None = None
        self._phase = Phase.AWAIT_CONNECT
        self._level: Level | None = None
        self._keep_alive_s = 0
        self._waiting: bytearray | None = None

    @property
    def level(self) -> int:
        """The protocol level of the CONNECT, 3 or 4; 0 before it."""
        return self._level.number if self._level is not None else 0

    def attach(self, session: Session) -> None:
        """Accept the CONNECT: join its session. Then call `receive_data(b"")` for what the client sent behind it."""
        if self._phase is not Phase.AWAIT_ATTACH or self.is_closed:
            raise UsageError(f"a session is attached once, between CONNECT and the next packet, not {self._phase.name}")
        self.session = session
        self._phase = Phase.OPEN

    def keep_alive_deadline(self, last_received_s: float) -> float | None:
        """When to close a silent connection, on the clock of `last_received_s` (s); None without keep alive."""
        if not self._keep_alive_s:
            return None
        return last_received_s + KEEP_ALIVE_FACTOR * self._keep_alive_s

    def receive_data(self, data: bytes) -> list[Event]:
        """Decode what the socket gave; between CONNECT and `attach` it is only kept, up to 1 MiB (then Violated)."""
        if self._waiting is not None and self._phase is Phase.OPEN:
            data = bytes(self._waiting) + data
            self._waiting = None
        return super().receive_data(data)

    def _close(self) -> None:
        super()._close()
        self._waiting = None

    def _decode(self, data: bytes, position: int, events: list[Event]) -> int:
        if self.session is not None and self._level is not None:
            return self._decode_open(data, position, events, self.session, self._level.received)
        if self._phase is Phase.AWAIT_ATTACH or position == len(data):
            return position
        first_byte = data[position]
        if first_byte != _CONNECT:
            raise ProtocolViolation(f"the first packet is not CONNECT: it begins with {first_byte:02X} (MQTT-3.1.0-1)")
        return self._decode_one(data, position, events)

    def _keep(self, data: bytes, position: int) -> None:
        if self._phase is not Phase.AWAIT_ATTACH:
            super()._keep(data, position)
            return
        if self._waiting is None:
            self._waiting = bytearray()
        self._waiting += data[position:]
        if len(self._waiting) > LONGEST_WAITING_BYTES:
            raise ProtocolViolation(f"more than {LONGEST_WAITING_BYTES} bytes were sent before CONNACK")

    def _read(self, packet_type: int, fields: Fields) -> Event:
        if packet_type == PacketType.CONNECT:
            return self._read_connect(fields)
        if packet_type == PacketType.SUBSCRIBE:
            return read_subscribe(fields)
        if packet_type == PacketType.UNSUBSCRIBE:
            return read_unsubscribe(fields)
        if packet_type == PacketType.PINGREQ:
            return PingReceived()
        self._close()
        return DisconnectReceived()

    def _read_connect(self, fields: Fields) -> ConnectReceived | ConnectRefused:
        event = read_connect(fields)
        if isinstance(event, ConnectRefused):
            self._close()
        else:
            self._level, self._keep_alive_s = LEVELS[event.level], event.keep_alive_s
            self._phase = Phase.AWAIT_ATTACH
        return event
