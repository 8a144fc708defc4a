"""A server that does nothing but answer: what the load generator can do when the server costs almost nothing.

    python -m benchmarks.load.sink PACKET_BYTES WINDOW       prints its port, serves until it is killed

It takes CONNECT, and then counts PUBLISHes by their bytes and answers with as many PUBACKs from a ring.
"""

import select
import socket
import sys
from typing import Final

from benchmarks.load.wire import Ring, puback_ring
from gateway.mqtt import packets

_READ_BYTES: Final = 65_536


class _Peer:
    """One connection: its CONNECT first, then PUBLISHes of one length."""

    __slots__ = ("_client", "_is_connected", "_packet_bytes", "_ring", "_waiting_bytes")

    def __init__(self, client: socket.socket, packet_bytes: int, ring: Ring) -> None:
        self._client = client
        self._packet_bytes = packet_bytes
        self._ring = ring
        self._is_connected = False
        self._waiting_bytes = 0

    def serve(self) -> bool:
        """Answers what came; False when the client is gone."""
        size = len(self._client.recv(_READ_BYTES))
        if not size:
            return False
        if not self._is_connected:
            self._is_connected = True
            self._client.sendall(packets.connack(False, 0))
            return True
        count, self._waiting_bytes = divmod(self._waiting_bytes + size, self._packet_bytes)
        self._client.sendall(self._ring.take(count))
        return True


def main(packet_bytes: int, window: int) -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(listener.getsockname()[1], flush=True)
    poller = select.epoll()
    poller.register(listener, select.EPOLLIN)
    peers: dict[int, tuple[socket.socket, _Peer]] = {}
    while True:
        for descriptor, _ in poller.poll():
            if descriptor == listener.fileno():
                client, _ = listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                peers[client.fileno()] = (client, _Peer(client, packet_bytes, puback_ring(window)))
                poller.register(client, select.EPOLLIN)
            elif not peers[descriptor][1].serve():
                poller.unregister(descriptor)
                peers.pop(descriptor)[0].close()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
