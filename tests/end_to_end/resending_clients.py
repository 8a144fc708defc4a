"""Clients that lose their connection and go on by the rules of MQTT 3.1.1 section 4.4, over raw sockets.

Their packets are built here from the specification, not with the gateway's own encoder.
"""

import contextlib
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from typing import Self

PATIENCE_S = 60.0
#: How long nothing may come: a channel that fails three times in a row waits for a minute before it tries again.
_SILENCE_S = 3 * PATIENCE_S
_PUBACK, _PUBREC, _PUBREL, _PUBCOMP, _PUBLISH = 0x40, 0x50, 0x62, 0x70, 0x30


def _field(text: bytes) -> bytes:
    return len(text).to_bytes(2, "big") + text


def _packet(first_byte: int, body: bytes) -> bytes:
    length, encoded = len(body), b""
    while length > 127:
        encoded += bytes((length & 127 | 128,))
        length >>= 7
    return bytes((first_byte,)) + encoded + bytes((length,)) + body


class Connection:
    """A persistent session's connection, cut into packets."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.socket.settimeout(_SILENCE_S)
        self._data = b""
        self.behind_connack: list[bytes] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.socket.close()

    def connect(self, client: bytes) -> None:
        """CONNECT for a session that stays, and its CONNACK."""
        connect = _field(b"MQTT") + b"\x04\x00\x00\x00" + _field(client)
        self.send(_packet(0x10, connect))
        connack = self.receive()
        assert connack[0][0] == 0x20, connack
        assert connack[0][3] == 0, connack
        self.behind_connack = connack[1:]

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> list[bytes]:
        """The next packets, at least one; ConnectionError at the end of the connection."""
        while not (packets := self._cut()):
            data = self.socket.recv(65_536)
            if not data:
                raise ConnectionResetError("the gateway closed the connection")
            self._data += data
        return packets

    def _cut(self) -> list[bytes]:
        packets, position, data = [], 0, self._data
        while True:
            body, length, shift = position + 1, 0, 0
            while body < len(data):
                length |= (data[body] & 127) << shift
                shift += 7
                body += 1
                if data[body - 1] < 128:
                    break
            else:
                break
            if body + length > len(data):
                break
            packets.append(data[position : body + length])
            position = body + length
        self._data = data[position:]
        return packets


class ResendingClient(threading.Thread, ABC):
    """Connects again, and again, until it has what it wants. `error` is what ended it, if it was not that."""

    def __init__(self, port: int, client: bytes) -> None:
        super().__init__(name=client.decode(), daemon=True)
        self.client = client
        self.port = port
        self.connections = 0
        self.error: BaseException | None = None
        self._pause = threading.Event()
        self._is_stopped = False
        self._socket: socket.socket | None = None

    def stop(self) -> None:
        """It loses its connection, and does not come back."""
        self._is_stopped = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def run(self) -> None:
        deadline = time.monotonic() + 10 * PATIENCE_S
        try:
            while not (self.is_done() or self._is_stopped):
                assert time.monotonic() < deadline, "the time is over"
                self._one_connection()
        except BaseException as error:
            self.error = error
            raise

    def _one_connection(self) -> None:
        try:
            connection = Connection(self.port)
        except ConnectionError:
            self._pause.wait(0.02)  # the gateway is down; nobody tells when it is back
            return
        with connection, contextlib.suppress(ConnectionError):
            self._socket = connection.socket
            connection.connect(self.client)
            self.connections += 1
            self.connected(connection)
            self.received(connection, connection.behind_connack)
            while not self.is_done():
                self.received(connection, connection.receive())
            connection.send(b"\xe0\x00")

    @abstractmethod
    def is_done(self) -> bool: ...

    @abstractmethod
    def connected(self, connection: Connection) -> None: ...

    @abstractmethod
    def received(self, connection: Connection, packets: list[bytes]) -> None: ...


class Publisher(ResendingClient):
    """Publishes payloads at QoS 1 and 2 by turns, so many at a time, each until it is acknowledged."""

    WINDOW = 20

    def __init__(self, port: int, client: bytes, topic: bytes, count: int) -> None:
        super().__init__(port, client)
        self.topic = topic
        self.waiting = [(number % 2 + 1, b"%s %d" % (client, number)) for number in reversed(range(count))]
        #: QoS, payload and whether PUBREC has come, by packet identifier, in the order of sending.
        self.in_flight: dict[int, tuple[int, bytes, bool]] = {}
        self.acknowledged: dict[int, set[bytes]] = {1: set(), 2: set()}
        #: How many payloads it may begin for now; None: all. More are begun with the next answer or connection.
        self.most: int | None = None
        self._begun = 0
        self._identifier = 0

    def is_done(self) -> bool:
        return not self.waiting and not self.in_flight

    def connected(self, connection: Connection) -> None:
        repeats = [
            _packet(_PUBREL, identifier.to_bytes(2, "big")) if is_received else self._publish(identifier, 0x08)
            for identifier, (_, _, is_received) in self.in_flight.items()
        ]
        connection.send(b"".join(repeats))
        self._fill(connection)

    def received(self, connection: Connection, packets: list[bytes]) -> None:
        answers = []
        for packet in packets:
            identifier = int.from_bytes(packet[2:4], "big")
            if packet[0] == _PUBREC:
                qos, payload, _ = self.in_flight[identifier]
                self.in_flight[identifier] = (qos, payload, True)
                answers.append(_packet(_PUBREL, packet[2:4]))
            else:
                assert packet[0] in (_PUBACK, _PUBCOMP), packet
                qos, payload, _ = self.in_flight.pop(identifier)
                assert qos == (1 if packet[0] == _PUBACK else 2)
                self.acknowledged[qos].add(payload)
        connection.send(b"".join(answers))
        self._fill(connection)

    def _fill(self, connection: Connection) -> None:
        new = []
        while self.waiting and len(self.in_flight) < self.WINDOW and (self.most is None or self._begun < self.most):
            self._begun += 1
            self._identifier = self._identifier % 65_535 + 1
            self.in_flight[self._identifier] = (*self.waiting.pop(), False)
            new.append(self._publish(self._identifier, 0))
        connection.send(b"".join(new))

    def _publish(self, identifier: int, duplicate: int) -> bytes:
        qos, payload, _ = self.in_flight[identifier]
        body = _field(self.topic) + identifier.to_bytes(2, "big") + payload
        return _packet(_PUBLISH | qos << 1 | duplicate, body)


class Subscriber(ResendingClient):
    """Receives until `wanted` different payloads have come and it has been told that there will be no more."""

    def __init__(self, port: int, client: bytes, topic_filter: bytes) -> None:
        super().__init__(port, client)
        self.subscribed = threading.Event()
        self.payloads: dict[int, Counter[bytes]] = {1: Counter(), 2: Counter()}
        self.repeated = 0
        self._topic_filter = topic_filter
        self._held: set[bytes] = set()
        self._last = b""
        self._saw_last = False

    def end_with(self, payload: bytes) -> None:
        """The QoS 1 payload behind which nothing comes."""
        self._last = payload

    def is_done(self) -> bool:
        return self._saw_last and not self._held

    def connected(self, connection: Connection) -> None:
        if not self.subscribed.is_set():
            connection.send(_packet(0x82, b"\x00\x01" + _field(self._topic_filter) + b"\x02"))

    def received(self, connection: Connection, packets: list[bytes]) -> None:
        answers = []
        for packet in packets:
            if packet[0] == 0x90:
                assert packet[4] == 2, packet
                self.subscribed.set()
            elif packet[0] >> 4 == _PUBREL >> 4:
                self._held.discard(packet[2:4])
                answers.append(_packet(_PUBCOMP, packet[2:4]))
            else:
                answers.append(self._published(packet))
        connection.send(b"".join(answers))

    def _published(self, packet: bytes) -> bytes:
        body = packet[2 if packet[1] < 128 else 3 :]
        end = 2 + int.from_bytes(body[:2], "big")
        identifier, payload, qos = body[end : end + 2], body[end + 2 :], packet[0] >> 1 & 3
        self.repeated += packet[0] >> 3 & 1
        if qos == 1:
            self.payloads[1][payload] += 1
            self._saw_last = self._saw_last or payload == self._last
            return _packet(_PUBACK, identifier)
        assert qos == 2, packet
        if identifier not in self._held:
            self._held.add(identifier)
            self.payloads[2][payload] += 1
        return _packet(_PUBREC, identifier)
