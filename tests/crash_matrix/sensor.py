"""A client of MQTT 3.1, 3.1.1 or 5 that acts step by step, keeps to section 4.4, and writes a ledger.

Its packets are built here from the specifications, not with the gateway's own encoder.
"""

import contextlib
import select
import socket
from dataclasses import dataclass, field
from typing import Final, Self

from tests.crash_matrix.gateway_with_points import GatewayGone
from tests.crash_matrix.ledger import ACKNOWLEDGED, DELIVERED, RECEIVED, RELEASED, SENT, Ledger

PATIENCE_S: Final = 30.0
_CONNECT, _CONNACK, _PUBLISH, _PUBACK, _PUBREC, _PUBREL, _PUBCOMP = 0x10, 0x20, 0x30, 0x40, 0x50, 0x62, 0x70
_SUBSCRIBE, _SUBACK, _UNSUBSCRIBE, _UNSUBACK, _DISCONNECT = 0x82, 0x90, 0xA2, 0xB0, 0xE0
_DUPLICATE: Final = 0x08
_NAMES: Final = {3: (b"MQIsdp", 3), 4: (b"MQTT", 4), 5: (b"MQTT", 5)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Will:
    """`delay_s` needs level 5."""

    topic: str
    payload: bytes
    qos: int = 1
    delay_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A PUBLISH from the gateway."""

    topic: str
    payload: bytes
    qos: int
    retain: bool


def text(value: str | bytes) -> bytes:
    """A string with its length, two bytes, in front."""
    encoded = value.encode() if isinstance(value, str) else value
    return len(encoded).to_bytes(2, "big") + encoded


def packet(first_byte: int, body: bytes) -> bytes:
    """A packet with its remaining length."""
    length, encoded = len(body), b""
    while length > 127:
        encoded += bytes((length & 127 | 128,))
        length >>= 7
    return bytes((first_byte,)) + encoded + bytes((length,)) + body


@dataclass(kw_only=True)
class Sensor:
    """One client on one connection; what it had begun on an earlier one it knows from the ledger.

    Each step waits for the gateway's answer. GatewayGone: the connection broke.
    """

    ledger: Ledger
    port: int
    name: str
    level: int = 4
    clean: bool = False
    session_expiry_s: int = 3_600
    will: Will | None = None
    inbox: list[Delivery] = field(default_factory=list)
    _data: bytes = b""
    _socket: socket.socket | None = None

    # -- the connection ------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.drop()

    def connect(self) -> bool:
        """CONNECT; whether the gateway has a session. What was in flight is sent again and answered."""
        try:
            self._socket = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
        except ConnectionError as error:
            raise GatewayGone(self.name) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._send(packet(_CONNECT, self._connect_body()))
        first, body = self._receive()
        assert first == _CONNACK, (self.name, first, body)
        assert body[1] == 0, f"{self.name} is refused: {body!r}"
        self.ledger.note(self.name, "connected")
        for identifier, each in self.ledger.in_flight(self.name).items():
            if each.is_received:
                self._release(identifier)
            else:
                entry = each.entry
                self._exchange(entry.topic, entry.payload, entry.qos, identifier, retain=entry.retain, again=True)
        return bool(body[0] & 1)

    def disconnect(self) -> None:
        self.ledger.note(self.name, "disconnecting")
        self._send(packet(_DISCONNECT, b""))
        assert self._socket is not None
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            while self._socket.recv(65_536):
                continue
        self.drop()

    def drop(self) -> None:
        """Ends the connection without a word."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # -- steps ---------------------------------------------------------------------------------------------------------

    def subscribe(self, *filters: str, qos: int = 2) -> None:
        body = self._properties_after((1).to_bytes(2, "big"))
        body += b"".join(text(each) + bytes((qos,)) for each in filters)
        self.ledger.note(self.name, "subscribing", topic=" ".join(filters))
        self._send(packet(_SUBSCRIBE, body))
        answer = self._await(_SUBACK)
        assert answer[-len(filters) :] == bytes((qos,)) * len(filters), (self.name, answer)
        for each in filters:
            self.ledger.note(self.name, "subscribed", topic=each)

    def unsubscribe(self, topic_filter: str) -> None:
        self.ledger.note(self.name, "unsubscribing", topic=topic_filter)
        self._send(packet(_UNSUBSCRIBE, self._properties_after((2).to_bytes(2, "big")) + text(topic_filter)))
        self._await(_UNSUBACK)
        self.ledger.note(self.name, "unsubscribed", topic=topic_filter)

    def publish(
        self, topic: str, payload: bytes, qos: int, *, retain: bool = False, expiry_s: int | None = None
    ) -> None:
        """All of its exchange. `expiry_s` needs level 5."""
        used = self.ledger.in_flight(self.name)
        identifier = next(number for number in range(1, 65_536) if number not in used) if qos else 0
        self.ledger.note(self.name, SENT, topic=topic, payload=payload, qos=qos, identifier=identifier, retain=retain)
        self._exchange(topic, payload, qos, identifier, retain=retain, expiry_s=expiry_s)

    def receive(self, count: int) -> list[Delivery]:
        """The next messages, acknowledged to the end."""
        while len(self.inbox) < count or self.ledger.held(self.name):
            self._take(*self._receive())
        taken, self.inbox = self.inbox[:count], self.inbox[count:]
        return taken

    def receive_until(self, payload: bytes) -> list[Delivery]:
        """Everything up to the message with that payload."""
        taken: list[Delivery] = []
        while not taken or taken[-1].payload != payload:
            taken += self.receive(1)
        return taken

    def receive_one(self) -> None:
        """The next packet; a message among them is noted, and acknowledged as far as it can be."""
        self._take(*self._receive())

    def fileno(self) -> int:
        assert self._socket is not None
        return self._socket.fileno()

    @property
    def has_data(self) -> bool:
        """Whether a further packet may have come together with the last."""
        return bool(self._data)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _connect_body(self) -> bytes:
        protocol, number = _NAMES[self.level]
        flags = (0x02 if self.clean else 0) | (0 if self.will is None else 0x04 | self.will.qos << 3)
        body = text(protocol) + bytes((number, flags)) + bytes(2)
        if self.level == 5:
            body += b"\x05\x11" + self.session_expiry_s.to_bytes(4, "big")
        body += text(self.name)
        if self.will is not None:
            if self.level == 5:
                body += b"\x05\x18" + self.will.delay_s.to_bytes(4, "big")
            body += text(self.will.topic) + text(self.will.payload)
        return body

    def _properties_after(self, head: bytes) -> bytes:
        return head + b"\x00" if self.level == 5 else head

    def _exchange(
        self,
        topic: str,
        payload: bytes,
        qos: int,
        identifier: int,
        *,
        retain: bool,
        again: bool = False,
        expiry_s: int | None = None,
    ) -> None:
        head = text(topic) + (identifier.to_bytes(2, "big") if qos else b"")
        if self.level == 5:
            head += b"\x00" if expiry_s is None else b"\x05\x02" + expiry_s.to_bytes(4, "big")
        self._send(packet(_PUBLISH | (_DUPLICATE if again else 0) | qos << 1 | retain, head + payload))
        if qos == 1:
            self._await(_PUBACK, identifier)
            self.ledger.note(self.name, ACKNOWLEDGED, identifier=identifier, payload=payload)
        elif qos == 2:
            self._await(_PUBREC, identifier)
            self.ledger.note(self.name, RECEIVED, identifier=identifier, payload=payload)
            self._release(identifier)

    def _release(self, identifier: int) -> None:
        self._send(packet(_PUBREL, identifier.to_bytes(2, "big")))
        self._await(_PUBCOMP, identifier)
        self.ledger.note(self.name, ACKNOWLEDGED, identifier=identifier)

    def _await(self, wanted: int, identifier: int | None = None) -> bytes:
        """The body of that answer; what is delivered before it is taken and acknowledged."""
        while True:
            first, body = self._receive()
            if first == wanted and (identifier is None or int.from_bytes(body[:2], "big") == identifier):
                assert wanted in (_SUBACK, _UNSUBACK) or not body[2:] or body[2] < 0x80, (self.name, body)
                return body
            self._take(first, body)

    def _take(self, first: int, body: bytes) -> None:
        """A packet that was not asked for: a delivery or its release."""
        if first == _PUBREL:
            identifier = int.from_bytes(body[:2], "big")
            self.ledger.note(self.name, RELEASED, identifier=identifier)
            self._send(packet(_PUBCOMP, body[:2]))
            return
        assert first & 0xF0 == _PUBLISH, (self.name, first, body)
        end = 2 + int.from_bytes(body[:2], "big")
        qos, topic, rest = first >> 1 & 3, body[2:end].decode(), body[end:]
        identifier = int.from_bytes(rest[:2], "big") if qos else 0
        rest = rest[2:] if qos else rest
        payload = rest[1 + rest[0] :] if self.level == 5 else rest
        self._take_publish(topic, payload, qos, identifier, retain=bool(first & 1))

    def _take_publish(self, topic: str, payload: bytes, qos: int, identifier: int, *, retain: bool) -> None:
        if not (qos == 2 and identifier in self.ledger.held(self.name)):
            self.inbox.append(Delivery(topic=topic, payload=payload, qos=qos, retain=retain))
            self.ledger.note(
                self.name, DELIVERED, topic=topic, payload=payload, qos=qos, identifier=identifier, retain=retain
            )
        if qos:
            self._send(packet(_PUBACK if qos == 1 else _PUBREC, identifier.to_bytes(2, "big")))

    def _send(self, data: bytes) -> None:
        assert self._socket is not None
        try:
            self._socket.sendall(data)
        except ConnectionError as error:
            raise GatewayGone(self.name) from error

    def _receive(self) -> tuple[int, bytes]:
        """First byte and body of the next packet."""
        head = self._bytes(2)
        while head[-1] & 0x80:
            head += self._bytes(1)
        length = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(head[1:]))
        return head[0], self._bytes(length)

    def _bytes(self, count: int) -> bytes:
        assert self._socket is not None
        while len(self._data) < count:
            try:
                data = self._socket.recv(65_536)
            except ConnectionError as error:
                raise GatewayGone(self.name) from error
            if not data:
                raise GatewayGone(self.name)
            self._data += data
        taken, self._data = self._data[:count], self._data[count:]
        return taken


def receive_by_any(sensors: list[Sensor]) -> None:
    """The next packet of whoever gets one first."""
    ready = [sensor for sensor in sensors if sensor.has_data] or select.select(sensors, [], [], PATIENCE_S)[0]
    assert ready, "nothing came for any of them"
    for sensor in ready:
        sensor.receive_one()
