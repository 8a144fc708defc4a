"""MQTT connections over TCP, TLS and WebSocket, each opened and accepted."""

import base64
import os
import socket
import ssl
from typing import Final

from benchmarks.load.wire import ANSWER_WAIT_S, BenchmarkError, connect, connect_packet, receive_exactly

_ACCEPTED: Final = b"\x20\x02\x00\x00"
#: RFC 6455 section 5.2: a final binary frame, the gateway's with 4 bytes; ours is masked, with zeros.
_ACCEPTED_FRAME: Final = b"\x82\x04" + _ACCEPTED
_MASKED: Final = 0x80
_END_OF_HEADERS: Final = b"\r\n\r\n"


def over_tcp(port: int, client: str) -> socket.socket:
    """BenchmarkError unless it is accepted, here and below."""
    return connect(port, client)


def over_tls(port: int, client: str) -> socket.socket:
    connected = _TLS.wrap_socket(_opened(port))
    connected.sendall(connect_packet(client))
    _expect(connected, _ACCEPTED)
    return connected


def over_websocket(port: int, client: str) -> socket.socket:
    return _upgraded(_opened(port), client)


def over_secure_websocket(port: int, client: str) -> socket.socket:
    return _upgraded(_TLS.wrap_socket(_opened(port)), client)


def _upgraded(connected: socket.socket, client: str) -> socket.socket:
    key = base64.b64encode(os.urandom(16)).decode()
    connected.sendall(
        f"GET /mqtt HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n".encode()
    )
    answer = b""
    while not answer.endswith(_END_OF_HEADERS):
        answer += receive_exactly(connected, 1)
    packet = connect_packet(client)
    connected.sendall(bytes((_ACCEPTED_FRAME[0], _MASKED | len(packet))) + bytes(4) + packet)
    _expect(connected, _ACCEPTED_FRAME)
    return connected


def _opened(port: int) -> socket.socket:
    connected = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_WAIT_S)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


def _expect(connected: socket.socket, wanted: bytes) -> None:
    answer = receive_exactly(connected, len(wanted))
    if answer != wanted:
        raise BenchmarkError(f"CONNECT was answered with {answer.hex()}")


def _trusting() -> ssl.SSLContext:
    """The certificate is the benchmark's own and signs itself."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


_TLS: Final = _trusting()
