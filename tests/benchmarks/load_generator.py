"""What tests of the load generator share: whether it is built, and a server that does what a test says."""

import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from benchmarks.load import task

needs_generator = pytest.mark.skipif(bool(task.missing()), reason=task.missing())

_CONNECT, _SUBSCRIBE, _PINGREQ, _DISCONNECT = 0x10, 0x80, 0xC0, 0xE0
_TYPE = 0xF0
_READ_BYTES = 65_536

Answer = Callable[[bytes], tuple[bytes, bytes]]
"""For a packet of the client: what its sender gets, and what the subscriber gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a server answers of its own accord. Without `code` SUBACK grants what was asked for; `retained` follows."""

    connack: bytes = bytes.fromhex("20 02 00 00")
    code: bytes = b""
    retained: bytes = b""
    pingresp: bytes = bytes.fromhex("d0 00")


@contextmanager
def answering(answer: Answer, session: Session = Session()) -> Iterator[int]:
    """A server of one thread with at most one subscriber, on the port that it gives."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = _Server(listener, answer, session)
        thread = threading.Thread(target=server.serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.is_over = True
            socket.create_connection(listener.getsockname()).close()  # wakes it
            thread.join()


class _Server:
    def __init__(self, listener: socket.socket, answer: Answer, session: Session) -> None:
        self._listener = listener
        self._answer = answer
        self._session = session
        self._subscriber: socket.socket | None = None
        self._waiting: dict[socket.socket, bytes] = {}
        self.is_over = False

    def serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self.is_over:
                for key, _ in selector.select():
                    if key.fileobj is self._listener:
                        client, _ = self._listener.accept()
                        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        self._waiting[client] = b""
                        selector.register(client, selectors.EVENT_READ)
                    else:
                        client = key.fileobj
                        assert isinstance(client, socket.socket)
                        if not self._receive(client):
                            selector.unregister(client)
                            self._waiting.pop(client)
                            client.close()
            for client in self._waiting:
                client.close()

    def _receive(self, client: socket.socket) -> bool:
        """False when the client is gone. All packets have a body of less than 128 bytes."""
        try:
            more = client.recv(_READ_BYTES)
            waiting = self._waiting[client] + more
            while len(waiting) >= 2 and len(waiting) >= 2 + waiting[1]:
                end = 2 + waiting[1]
                self._take(client, waiting[:end])
                waiting = waiting[end:]
        except ConnectionError:
            return False
        self._waiting[client] = waiting
        return bool(more)

    def _take(self, client: socket.socket, packet: bytes) -> None:
        kind = packet[0] & _TYPE
        if kind == _SUBSCRIBE:
            self._subscriber = client
            client.sendall(b"\x90\x03" + packet[2:4] + (self._session.code or packet[-1:]) + self._session.retained)
        elif kind in {_CONNECT, _PINGREQ}:
            client.sendall(self._session.connack if kind == _CONNECT else self._session.pingresp)
        elif kind != _DISCONNECT:
            to_sender, to_subscriber = self._answer(packet)
            client.sendall(to_sender)
            if to_subscriber:
                assert self._subscriber is not None
                self._subscriber.sendall(to_subscriber)
