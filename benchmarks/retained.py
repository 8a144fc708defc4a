"""SUBSCRIBE to many retained messages: when SUBACK comes, and how soon all of them are there.

The messages are read in this process, whose share of a message is a few microseconds.
"""

import socket
import time
from collections.abc import Iterator
from typing import Final

from benchmarks.figures import Measure, Report, Row, ratio_notes
from benchmarks.load.wire import BenchmarkError, connect, receive_exactly, subscribe_packet
from benchmarks.servers import IN_MEMORY, Gateway, Mosquitto, Server, cpu_s, peers
from gateway.mqtt.wire import encode_remaining_length, encode_text

NAME: Final = "retained"
MOST_TOPICS: Final = 10_000
#: So many topics for each second of the measurement, up to the most.
_TOPICS_A_SECOND: Final = 2_000
_PAYLOAD: Final = bytes(64)
#: PUBLISHes of one write.
_AT_ONCE: Final = 100
_PUBACK_BYTES: Final = 4
_SUBACK, _PUBLISH = 0x90, 0x30
_KIND: Final = 0xF0
_QOS: Final = 0x06

#: QoS of the subscription, and whether the session ends with its connection.
_CASES: Final = {
    "QoS 0": (0, True),
    "QoS 1": (1, True),
    "QoS 1, a session that stays": (1, False),
}


def run(seconds: float) -> Report:
    """Measures each case on the gateway and on mosquitto, with fewer topics in less than five seconds."""
    topics = min(MOST_TOPICS, max(_AT_ONCE, int(seconds * _TOPICS_A_SECOND)))
    rows: list[Row] = []
    with Gateway() as gateway:
        rows += measure(gateway, topics)
    for persistence in peers(IN_MEMORY):
        with Mosquitto(persistence) as mosquitto:
            rows += measure(mosquitto, topics)
    return Report(
        name=NAME,
        title=f"SUBSCRIBE to {topics:,} retained messages of {len(_PAYLOAD)} B, one on each topic",
        rows=tuple(rows),
        notes=tuple(ratio_notes(tuple(rows), "rate")),
    )


def measure(server: Server, topics: int) -> Iterator[Row]:
    """Retains the messages, then subscribes to all of them in each case. BenchmarkError where one is missing."""
    _retain(server.port, topics)
    for place, (case, (qos, ends)) in enumerate(_CASES.items()):
        with connect(server.port, f"subscriber-{place}", clean_session=ends) as client:
            before_s, began_s = cpu_s(server.process_id), time.perf_counter()
            suback_s = _receive_all(client, qos, topics)
            took_s = time.perf_counter() - began_s
        yield Row(
            subject=server.name,
            case=case,
            measures=(
                Measure(name="SUBACK", value=suback_s * 1e3, unit="ms"),
                Measure(name="rate", value=topics / took_s, unit="messages/s"),
                Measure(name="CPU", value=(cpu_s(server.process_id) - before_s) / topics * 1e6, unit="us/message"),
            ),
        )


def _retain(port: int, topics: int) -> None:
    with connect(port, "publisher") as client:
        for first in range(0, topics, _AT_ONCE):
            numbers = range(first, min(first + _AT_ONCE, topics))
            client.sendall(b"".join(map(_publish, numbers)))
            receive_exactly(client, len(numbers) * _PUBACK_BYTES)


def _publish(number: int) -> bytes:
    """A PUBLISH of QoS 1 with RETAIN."""
    body = encode_text(f"kept/{number}") + (number % _AT_ONCE + 1).to_bytes(2, "big") + _PAYLOAD
    return b"\x33" + encode_remaining_length(len(body)) + body


def _receive_all(client: socket.socket, qos: int, topics: int) -> float:
    """Subscribes, and acknowledges what comes until every topic has come. Returns the seconds until SUBACK."""
    began_s = time.perf_counter()
    client.sendall(subscribe_packet(1, [("kept/#", qos)]))
    suback_s, came = 0.0, set[bytes]()
    waiting = b""
    while len(came) < topics or not suback_s:
        more = client.recv(65_536)
        if not more:
            raise BenchmarkError(f"the server closed the connection after {len(came)} of {topics} messages")
        waiting += more
        place, answers = 0, b""
        for first_byte, body, end in _packets(waiting):
            place = end
            if first_byte == _SUBACK:
                suback_s = time.perf_counter() - began_s
            elif first_byte & _KIND == _PUBLISH:
                behind = 2 + int.from_bytes(body[:2], "big")
                came.add(body[2:behind])
                if first_byte & _QOS:
                    answers += b"\x40\x02" + body[behind : behind + 2]
        waiting = waiting[place:]
        if answers:
            client.sendall(answers)
    return suback_s


def _packets(data: bytes) -> Iterator[tuple[int, bytes, int]]:
    """First byte and body of each whole packet, and where it ends. All are shorter than 16,384 bytes."""
    place = 0
    while len(data) - place >= 3:
        length, start = data[place + 1], place + 2
        if length & 0x80:
            length, start = (length & 0x7F) | data[place + 2] << 7, place + 3
        if len(data) < start + length:
            return
        yield data[place], data[start : start + length], start + length
        place = start + length
