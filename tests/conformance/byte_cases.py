"""Plays byte-level cases in the form of mosquitto's test/broker/data/*.json (2.0 and 2.1) against a running gateway.

A file is a list of groups, a group has cases, a case has steps: bytes that are sent, bytes that must come, and messages
that another client publishes. Each case has a connection of its own, begun with a CONNECT unless it sends its own, and
says whether the connection must be closed at its end; in 2.1 a group may say both for its cases. They are others' work
and stand in their own folder.
"""

import json
import re
import socket
import string
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.reason_strings import plain

PATIENCE_S: Final = 2.0

_PINGREQ, _PINGRESP = bytes.fromhex("C000"), bytes.fromhex("D000")
#: Numbers of release 2.1 by their letter: a byte, two bytes (a keep-alive time, an identifier, a length), four.
_NUMBER_BYTES: Final = {"i": 1, "H": 2, "k": 2, "m": 2, "s": 2, "L": 4}
_HEXADECIMAL: Final = frozenset(string.hexdigits + " ")
_PUBLISHES: Final = ("publish", "external_publish")
_PROTOCOL_NAMES: Final = {3: b"MQIsdp", 4: b"MQTT", 5: b"MQTT"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case; `is_closed`: whether the connection must be closed at its end."""

    group: str
    name: str
    level: int
    begins_with_connect: bool
    is_closed: bool
    steps: list[dict[str, Any]]

    def __str__(self) -> str:
        return f"{self.group}: {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a case wanted and what came, in hexadecimal digits; "" is the end of the connection, "open" none."""

    wanted: str
    came: str


def read_cases(folder: Path) -> Iterator[Case]:
    """The cases of every file, in order, but those that are switched off."""
    for path in sorted(folder.glob("*.json")):
        for group in json.loads(path.read_text(encoding="utf-8")):
            for case in () if group.get("disable") else group["tests"]:
                described = {**group, **case}
                yield Case(
                    group=" ".join(group["group"].split()),
                    name=case["name"].strip(),
                    level=described.get("ver", 4),
                    begins_with_connect=described.get("connect", True),
                    is_closed=described.get("expect_disconnect", True),
                    steps=case["msgs"],
                )


def play(case: Case, port: int) -> Difference | None:
    """Plays one case; None where everything came as it should."""
    with _connection(port) as connection:
        if case.begins_with_connect:
            connection.sendall(_connect(str(case), case.level))
            connack = _packet(connection)
            if connack[:1] != b"\x20" or connack[3:4] != b"\x00":
                return Difference(wanted="CONNACK", came=connack.hex())
        for step in case.steps:
            if step["type"] == "send":
                connection.sendall(written(step["payload"]))
            elif step["type"] in _PUBLISHES:
                _publish(port, step["topic"], step["payload"].encode(), step["qos"])
            else:
                wanted = written(step["payload"])
                came = _packets(connection, len(wanted))
                if came != wanted:
                    return Difference(wanted=wanted.hex(), came=came.hex())
        return _end(case, connection)


def written(text: str) -> bytes:
    """The bytes of a step: hexadecimal digits and, in release 2.1, decimal numbers behind a letter, and quoted text."""
    if set(text) <= _HEXADECIMAL:
        return bytes.fromhex(text.replace(" ", ""))
    return b"".join(_part(part) for part in re.findall(r"'[^']*'|\S+", text))


def _part(part: str) -> bytes:
    if part.startswith("'"):
        return part.strip("'").encode()
    if part[0] in "vr":
        return _variable_number(int(part[1:]))
    size = _NUMBER_BYTES.get(part[0])
    return bytes.fromhex(part) if size is None else int(part[1:]).to_bytes(size, "big")


def _variable_number(number: int) -> bytes:
    """Seven bits a byte, the lowest first; of five bytes too, which is no number of MQTT."""
    data = b""
    while number > 127:
        data, number = data + bytes((number & 127 | 128,)), number >> 7
    return data + bytes((number,))


def _end(case: Case, connection: socket.socket) -> Difference | None:
    if case.is_closed:
        try:
            came = connection.recv(1)
            came += _rest(connection) if came else b""
        except TimeoutError:
            return Difference(wanted="", came="open")
        except ConnectionError:
            return None
        return Difference(wanted="", came=plain(came).hex()) if came else None
    connection.sendall(_PINGREQ)
    came = _receive(connection, 2)
    return None if came == _PINGRESP else Difference(wanted=_PINGRESP.hex(), came=came.hex())


def _connection(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _receive(connection: socket.socket, length: int) -> bytes:
    """That many bytes, or those that came before the connection ended or the patience."""
    received = b""
    try:
        while len(received) < length and (data := connection.recv(length - len(received))):
            received += data
    except (TimeoutError, ConnectionError):
        pass
    return received


def _packet(connection: socket.socket) -> bytes:
    """The next packet without its Reason String: a server may add one to each refusal, and the cases know of none."""
    first = _receive(connection, 1)
    return plain(first + _rest(connection)) if first else b""


def _packets(connection: socket.socket, length: int) -> bytes:
    """Packets of so many bytes together, or those that came."""
    came = b""
    while len(came) < length and (packet := _packet(connection)):
        came += packet
    return came


def _rest(connection: socket.socket) -> bytes:
    """What follows the first byte of a packet."""
    size = _receive(connection, 1)
    while size and size[-1] & 128:
        size += _receive(connection, 1)
    return size + _receive(connection, sum((byte & 127) << 7 * place for place, byte in enumerate(size)))


def _text(text: bytes) -> bytes:
    return len(text).to_bytes(2, "big") + text


def _with_length(first_byte: int, body: bytes) -> bytes:
    return bytes((first_byte,)) + _variable_number(len(body)) + body


def _connect(client: str, level: int) -> bytes:
    """CONNECT with clean session and a keep-alive time of a minute."""
    properties = b"\x00" if level >= 5 else b""
    body = _text(_PROTOCOL_NAMES[level]) + bytes((level, 2, 0, 60)) + properties + _text(client.encode())
    return _with_length(0x10, body)


def _publish(port: int, topic: str, payload: bytes, qos: int) -> None:
    """Another client publishes one message, and waits until the gateway has it."""
    with _connection(port) as helper:
        helper.sendall(_connect("helper", 4))
        assert _packet(helper) == bytes.fromhex("20020000")
        helper.sendall(_with_length(0x30 | qos << 1, _text(topic.encode()) + (b"\x00\x01" if qos else b"") + payload))
        if qos == 1:
            assert _packet(helper) == bytes.fromhex("40020001")
        elif qos == 2:
            assert _packet(helper) == bytes.fromhex("50020001")
            helper.sendall(bytes.fromhex("62020001"))
            assert _packet(helper) == bytes.fromhex("70020001")
