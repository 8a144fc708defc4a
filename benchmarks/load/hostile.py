"""Attackers: processes of their own that do to a server what no client should, until they are ended.

    python -m benchmarks.load.hostile ATTACK PORT TLS_PORT        prints a line when the attack is on

Each is one process at the lowest priority: on a network the attacker's work is done by another machine.
"""

import contextlib
import itertools
import os
import socket
import ssl
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from benchmarks.load.wire import (
    ANSWER_WAIT_S,
    connect_packet,
    receive_exactly,
    subscribe_packet,
    unsubscribe_packet,
)
from gateway.mqtt import packets

_LOWEST_PRIORITY: Final = 19
_HALF_PACKETS: Final = 5_000
_SLOW_CONNECTS: Final = 1_000
_READ_BYTES: Final = 65_536
_LONGEST_LENGTH: Final = b"\xff\xff\xff\x7f"  # 268,435,455 bytes (MQTT 3.1.1 section 2.2.3)
_SWARM: Final = 50
#: As many as a connection may have without being closed.
_ALIASES: Final = 16
#: Seconds until a connection of noise gives up.
_NOISE_WAIT_S: Final = 0.05
#: Levels with a choice of a or + in the filters of `exploding_matcher`.
_CHOICES: Final = 11
_DEEP_FILTERS: Final = 150
#: PUBLISHes of one write.
_BATCH: Final = 50
_BESIEGERS, _LOGINS_A_SECOND = 600, 150
USER: Final = "besieged"
"""A user of the password file."""
_USER_PROPERTY: Final = b"\x26\x00\x04name\x00\x05value"


def _connected(port: int, client: str) -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_WAIT_S)
    opened.sendall(connect_packet(client))
    opened.recv(4)
    return opened


def _connected_at_level_5(port: int, client: str) -> socket.socket:
    """The client identifier has less than 100 bytes."""
    opened = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_WAIT_S)
    name = client.encode()
    opened.sendall(bytes((0x10, 13 + len(name))) + b"\x00\x04MQTT\x05\x02\x00\x00\x00\x00" + bytes((len(name),)) + name)
    opened.recv(_READ_BYTES)
    return opened


def _of_user_properties() -> bytes:
    """A PUBLISH of QoS 0 with 500 of them."""
    body = b"\x00\x01p" + _long_number(500 * len(_USER_PROPERTY)) + 500 * _USER_PROPERTY
    return b"\x30" + _long_number(len(body)) + body


def half_packets(port: int, _tls_port: int) -> Iterator[None]:
    """Five thousand connections, each with the beginning of a PUBLISH of 268 MB."""
    held = []
    for number in range(_HALF_PACKETS):
        half = _connected(port, f"half-{number}")
        half.sendall(b"\x32" + _LONGEST_LENGTH + bytes(1_000))
        held.append(half)
    yield
    while held:
        time.sleep(1)  # it does nothing: that is the attack
        yield


def slow_connect(port: int, _tls_port: int) -> Iterator[None]:
    """A thousand connections that send their CONNECT byte by byte, and come again when they are closed."""
    connect = connect_packet("slow" * 10)
    slow: list[tuple[socket.socket, Iterator[int]]] = []
    while True:
        while len(slow) < _SLOW_CONNECTS:
            opened = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_WAIT_S)
            slow.append((opened, iter(connect)))
        for place, (opened, rest) in enumerate(slow):
            try:
                opened.sendall(bytes((next(rest),)))
            except (OSError, StopIteration):
                opened.close()
                slow[place] = (socket.create_connection(("127.0.0.1", port), timeout=ANSWER_WAIT_S), iter(connect))
        yield
        time.sleep(0.2)


def subscription_storm(port: int, _tls_port: int) -> Iterator[None]:
    """Two hundred filters, subscribed and given up again and again."""
    filters = [(f"storm/{number}/+", 0) for number in range(200)]
    answers_bytes = len(packets.suback(1, bytes(len(filters)))) + len(packets.unsuback(2))
    attacker = _connected(port, "storm")
    subscribe = subscribe_packet(1, filters)
    unsubscribe = unsubscribe_packet(2, [topic_filter for topic_filter, _ in filters])
    while True:
        attacker.sendall(subscribe + unsubscribe)
        receive_exactly(attacker, answers_bytes)
        yield


def wildcard_bomb(port: int, _tls_port: int) -> Iterator[None]:
    """256 filters of wildcards that match the same topic, and a hundred messages a second there."""
    bomb = _connected(port, "bomb")
    filters = [("/".join(levels), 0) for levels in itertools.product("a+", repeat=8)]
    bomb.sendall(subscribe_packet(1, filters))
    writer = _connected(port, "lights-it")
    while True:
        writer.sendall(packets.publish("/".join("a" * 8), b"x", qos=0, packet_identifier=0))
        yield
        time.sleep(0.01)
        bomb.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while bomb.recv(_READ_BYTES):
                pass


def unknown_answers(port: int, _tls_port: int) -> Iterator[None]:
    """PUBRELs for messages that never were, each of which is answered."""
    storm = b"".join(b"\x62\x02" + number.to_bytes(2, "big") for number in range(1, 2_001))
    attacker = _connected(port, "unknown")
    while True:
        attacker.sendall(storm)
        receive_exactly(attacker, len(storm))
        yield


def properties(port: int, _tls_port: int) -> Iterator[None]:
    """MQTT 5: messages that are nothing but 500 user properties."""
    attacker, message = _connected_at_level_5(port, "p"), _of_user_properties()
    while True:
        attacker.sendall(message)
        yield


def swarm(port: int, _tls_port: int) -> Iterator[None]:
    """The same on fifty connections."""
    attackers, message = [_connected_at_level_5(port, f"p{number}") for number in range(_SWARM)], _of_user_properties()
    while True:
        for attacker in attackers:
            attacker.sendall(message)
        yield


def aliases(port: int, _tls_port: int) -> Iterator[None]:
    """MQTT 5: every message gives an alias another topic of a thousand characters."""
    attacker = _connected_at_level_5(port, "a")
    for number in itertools.count():
        topic = f"{number:01000}".encode()
        body = len(topic).to_bytes(2, "big") + topic + b"\x03\x23\x00" + bytes((number % _ALIASES + 1,))
        attacker.sendall(b"\x30" + _long_number(len(body)) + body)
        yield


def identifiers(port: int, _tls_port: int) -> Iterator[None]:
    """QoS 2 without an end: every packet identifier is used, and none is released."""
    attacker = _connected(port, "identifiers")
    for identifier in itertools.cycle(range(1, 65_536)):
        attacker.sendall(packets.publish("exhausted", b"x", qos=2, packet_identifier=identifier))
        if identifier % 100 == 0:
            receive_exactly(attacker, 400)  # a PUBREC has 4 bytes
            yield


def takeover(port: int, _tls_port: int) -> Iterator[None]:
    """One client identifier that connects anew, and anew."""
    last: list[socket.socket] = []
    while True:
        last.append(_connected(port, "fought-for"))
        if len(last) > 2:
            last.pop(0).close()
        yield


def connections(port: int, _tls_port: int) -> Iterator[None]:
    """Connections that come and go without a word."""
    while True:
        socket.create_connection(("127.0.0.1", port), timeout=ANSWER_WAIT_S).close()
        yield


def noise(port: int, _tls_port: int) -> Iterator[None]:
    """Connections that send what is no MQTT."""
    while True:
        with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_WAIT_S) as attacker:
            attacker.sendall(connect_packet("noise") + os.urandom(200))
            attacker.settimeout(_NOISE_WAIT_S)  # noise may be the beginning of a long packet, which nobody answers
            with contextlib.suppress(ConnectionError, TimeoutError):
                while attacker.recv(_READ_BYTES):
                    pass
        yield


def handshakes(_port: int, tls_port: int) -> Iterator[None]:
    """TLS handshakes that end when they are done."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    while True:
        with (
            socket.create_connection(("127.0.0.1", tls_port), timeout=ANSWER_WAIT_S) as plain,
            context.wrap_socket(plain),
        ):
            pass
        yield


def exploding_matcher(port: int, _tls_port: int) -> Iterator[None]:
    """All filters {a,+}^11/z, as many as are taken, and a hundred new topics a second that a tree would search long."""
    filters = ["/".join((*levels, "z")) for levels in itertools.product("a+", repeat=_CHOICES)]
    half = len(filters) // 2
    bombs = []
    for number, some in enumerate((filters[:half], filters[half:])):
        bombs.append(_connected(port, f"matcher-{number}"))
        bombs[-1].sendall(subscribe_packet(1, [(each, 0) for each in some]))
        receive_exactly(bombs[-1], len(packets.suback(1, bytes(half))))
    writer = _connected(port, "lights-it")
    for number in itertools.count():
        writer.sendall(packets.publish(f"{'a/' * _CHOICES}new{number}", b"", qos=0, packet_identifier=0))
        yield
        time.sleep(0.01)


def levels(port: int, _tls_port: int) -> Iterator[None]:
    """Filters of 200 levels, each of which takes memory: asked for, given up, and asked for again."""
    filters = [f"deep/{number}/" + "/".join(["l"] * 198) for number in range(_DEEP_FILTERS)]
    attacker = _connected(port, "levels")
    answers_bytes = len(packets.suback(1, bytes(len(filters)))) + len(packets.unsuback(2))
    asked = subscribe_packet(1, [(each, 0) for each in filters]) + unsubscribe_packet(2, filters)
    while True:
        attacker.sendall(asked)
        receive_exactly(attacker, answers_bytes)
        yield


def retained_copies(port: int, _tls_port: int) -> Iterator[None]:
    """One retained message of 100 KB, and the same SUBSCRIBE again and again: 12 bytes that make a copy each."""
    _connected(port, "retains").sendall(
        packets.publish("large", bytes(100_000), qos=0, packet_identifier=0, retain=True)
    )
    attacker = _connected(port, "copies")
    attacker.setblocking(False)
    while True:
        with contextlib.suppress(BlockingIOError):
            attacker.sendall(subscribe_packet(1, [("large", 0)]))
        time.sleep(0.002)
        with contextlib.suppress(BlockingIOError):
            while attacker.recv(_READ_BYTES):
                pass
        yield


def new_topics(port: int, _tls_port: int) -> Iterator[None]:
    """Each PUBLISH has a topic that nobody has named before."""
    attacker = _connected(port, "topics")
    for first in itertools.count(step=_BATCH):
        attacker.sendall(
            b"".join(
                packets.publish(f"new/{number}", b"", qos=0, packet_identifier=0)
                for number in range(first, first + _BATCH)
            )
        )
        yield


def login_siege(port: int, _tls_port: int) -> Iterator[None]:
    """CONNECTs with wrong passwords from 600 addresses, 150 a second: each check of a password takes some 25 ms."""
    waiting: deque[socket.socket] = deque()
    for number in itertools.count():
        address = f"127.{number % _BESIEGERS // 200 + 1}.{number % 200 + 1}.1"
        waiting.append(socket.create_connection(("127.0.0.1", port), ANSWER_WAIT_S, (address, 0)))
        waiting[-1].sendall(_login(f"siege-{number}"))
        if len(waiting) > _BESIEGERS:
            waiting.popleft().close()
        yield
        time.sleep(1 / _LOGINS_A_SECOND)


def _login(client: str) -> bytes:
    """A CONNECT of level 4 with a wrong password for a user that exists."""
    body = b"\x00\x04MQTT\x04\xc2\x00\x00" + b"".join(
        len(text).to_bytes(2, "big") + text.encode() for text in (client, USER, "wrong")
    )
    return bytes((0x10, len(body))) + body


ATTACKS: Final[dict[str, Callable[[int, int], Iterator[None]]]] = {
    attack.__name__: attack
    for attack in (
        half_packets,
        slow_connect,
        subscription_storm,
        wildcard_bomb,
        unknown_answers,
        properties,
        swarm,
        aliases,
        identifiers,
        takeover,
        connections,
        noise,
        handshakes,
        exploding_matcher,
        levels,
        retained_copies,
        new_topics,
        login_siege,
    )
}


def _long_number(value: int) -> bytes:
    """A variable byte integer of two bytes, 128 to 16,383."""
    return bytes((value & 127 | 128, value >> 7))


def main(attack: str, port: int, tls_port: int) -> None:
    os.nice(_LOWEST_PRIORITY)
    steps = ATTACKS[attack](port, tls_port)
    next(steps)
    print("on", flush=True)
    for _ in steps:
        pass


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
