"""What attackers and idle connections share: a blocking handshake, and the packets of a client."""

import socket
from collections.abc import Sequence
from typing import Final

from gateway.mqtt import packets
from gateway.mqtt.wire import encode_remaining_length, encode_text

_CONNACK_ACCEPTED: Final = b"\x20\x02\x00\x00"
_CONNACK_BYTES: Final = 4
#: A server that does not answer for this long has failed, seconds.
ANSWER_WAIT_S: Final = 30.0


class BenchmarkError(Exception):
    """A server did not behave as the benchmark needs; the figures of that run would mean nothing."""


def connect(port: int, client_identifier: str, *, clean_session: bool = True) -> socket.socket:
    """A connected MQTT 3.1.1 client on 127.0.0.1. BenchmarkError unless it is accepted as a new session."""
    client = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_WAIT_S)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.sendall(connect_packet(client_identifier, clean_session=clean_session))
    answer = receive_exactly(client, _CONNACK_BYTES)
    if answer != _CONNACK_ACCEPTED:
        raise BenchmarkError(f"CONNECT of {client_identifier!r} was answered with {answer.hex()}")
    return client


def subscribe(client: socket.socket, topic_filter: str, qos: int) -> None:
    """One subscription, granted as asked for."""
    client.sendall(subscribe_packet(1, [(topic_filter, qos)]))
    wanted = packets.suback(1, bytes((qos,)))
    answer = receive_exactly(client, len(wanted))
    if answer != wanted:
        raise BenchmarkError(f"SUBSCRIBE of {topic_filter!r} was answered with {answer.hex()}")


def leave_subscription(
    port: int, client_identifier: str = "offline-subscriber", topic_filters: Sequence[str] = ("bench/#",)
) -> None:
    """A session that stays, with subscriptions of QoS 1 and no connection; the default gets all that load publishes."""
    subscriber = connect(port, client_identifier, clean_session=False)
    for topic_filter in topic_filters:
        subscribe(subscriber, topic_filter, 1)
    disconnect(subscriber)


def disconnect(client: socket.socket) -> None:
    """DISCONNECT, and wait until the server has closed the connection too."""
    client.sendall(b"\xe0\x00")
    while client.recv(4_096):
        pass
    client.close()


def connect_packet(client_identifier: str, *, clean_session: bool = True) -> bytes:
    """CONNECT of MQTT 3.1.1, without keep-alive."""
    return _packet(0x10, b"\x00\x04MQTT\x04" + bytes((clean_session << 1, 0, 0)) + encode_text(client_identifier))


def subscribe_packet(packet_identifier: int, subscriptions: list[tuple[str, int]]) -> bytes:
    """SUBSCRIBE of MQTT 3.1.1."""
    filters = b"".join(encode_text(topic_filter) + bytes((qos,)) for topic_filter, qos in subscriptions)
    return _packet(0x82, packet_identifier.to_bytes(2, "big") + filters)


def unsubscribe_packet(packet_identifier: int, topic_filters: list[str]) -> bytes:
    """UNSUBSCRIBE of MQTT 3.1.1."""
    return _packet(0xA2, packet_identifier.to_bytes(2, "big") + b"".join(map(encode_text, topic_filters)))


def _packet(first_byte: int, body: bytes) -> bytes:
    return bytes((first_byte,)) + encode_remaining_length(len(body)) + body


def receive_exactly(client: socket.socket, size: int) -> bytes:
    """That many bytes. BenchmarkError when the server closes before."""
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            raise BenchmarkError(f"the server closed the connection after {len(data)} of {size} bytes")
        data += more
    return data
