"""A wire between a client and the gateway that can be cut, and that can lose what one side says."""

import contextlib
import socket
import threading
from collections.abc import Iterator

from tests.end_to_end.clients.client import PATIENCE_S

_READ_BYTES = 65_536


class Relay:
    """Listens on a port of its own and passes on what comes. `cut` ends the connections that are open."""

    def __init__(self, port: int) -> None:
        self._gateway_port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        #: What clients have sent, one entry for each connection; beside it what they were sent.
        self.sent: list[bytearray] = []
        self.received: list[bytearray] = []
        #: While they are set, what the gateway (the client) says is lost from the next read on.
        self.loses_answers = threading.Event()
        self.loses_requests = threading.Event()
        self._changed = threading.Condition()
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        accepting, *_ = self._threads
        accepting.join(PATIENCE_S)  # who had been accepted before is among those that are cut
        self._listening.close()
        self.cut()
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def cut(self) -> None:
        """Ends every connection, as a network does that fails. What comes back is passed on whole again."""
        self.loses_answers.clear()
        self.loses_requests.clear()
        with self._changed:
            taken, self._open = self._open, []
        for each in taken:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def wait_for_request(self, first_byte: int) -> None:
        """Waits until a client has sent a packet that begins so, on any connection (plain TCP alone)."""
        with self._changed:
            come = self._changed.wait_for(
                lambda: any(packet[0] == first_byte for each in self.sent for packet in packets(bytes(each))),
                PATIENCE_S,
            )
        assert come, f"no packet that begins with {first_byte:02x}: {self.sent}"

    def wait_for_answer(self, first_byte: int) -> None:
        """Waits until the gateway has sent a packet that begins so, lost or not."""
        with self._changed:
            come = self._changed.wait_for(
                lambda: any(packet[0] == first_byte for each in self.received for packet in packets(bytes(each))),
                PATIENCE_S,
            )
        assert come, f"no packet that begins with {first_byte:02x}: {self.received}"

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            try:
                gateway = socket.create_connection(("127.0.0.1", self._gateway_port), PATIENCE_S)
            except OSError:
                client.close()
                continue
            gateway.settimeout(None)
            sent, received = bytearray(), bytearray()
            with self._changed:
                self._open += [client, gateway]
                self.sent.append(sent)
                self.received.append(received)
            self._start(client, gateway, sent, self.loses_requests)
            self._start(gateway, client, received, self.loses_answers)

    def _start(self, source: socket.socket, sink: socket.socket, seen: bytearray, loses: threading.Event) -> None:
        thread = threading.Thread(target=self._pass_on, args=(source, sink, seen, loses), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, seen: bytearray, loses: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_READ_BYTES):
                with self._changed:
                    is_lost = loses.is_set()  # who hears below that it was said may cut, and nothing is lost then
                    seen += data
                    self._changed.notify_all()
                if not is_lost:
                    sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
        source.close()


def packets(stream: bytes) -> Iterator[bytes]:
    """The whole MQTT packets at the beginning of a stream (fixed header: MQTT 3.1.1 section 2.2)."""
    position = 0
    while True:
        length, shift, body = 0, 0, position + 1
        while body < len(stream):
            length |= (stream[body] & 127) << shift
            shift, body = shift + 7, body + 1
            if stream[body - 1] < 128:
                break
        else:
            return
        if body + length > len(stream):
            return
        yield stream[position : body + length]
        position = body + length
