"""Frames that lie, swell or never end (RFC 6455 section 5), and requests that never become a WebSocket."""

import base64
import os
import struct
import zlib

import pytest

from tests.end_to_end.attacks.attacker import ACCEPTED, Attacker, Crowd, connect, publish
from tests.end_to_end.attacks.bystander import watched
from tests.end_to_end.attacks.conftest import Scale
from tests.end_to_end.gateway_process import Gateway

pytestmark = pytest.mark.proof

CONTINUATION, TEXT, BINARY, CLOSE, PING = 0x0, 0x1, 0x2, 0x8, 0x9
FINAL, COMPRESSED = 0x80, 0x40
PROTOCOL_ERROR, UNSUPPORTED_DATA, TOO_BIG = 1002, 1003, 1009
LONGEST_MESSAGE = 4_194_304  # maximum_message_bytes


def request(*headers: str) -> bytes:
    lines = (
        "GET /mqtt HTTP/1.1",
        "Host: 127.0.0.1",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        "Sec-WebSocket-Protocol: mqtt",
        *headers,
    )
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode()


def frame(first: int, payload: bytes, *, length: int | None = None, is_masked: bool = True) -> bytes:
    """A frame of a client; `length` is what it says of its payload, whatever is there. The mask is 0: all as it is."""
    size = len(payload) if length is None else length
    mask = 0x80 if is_masked else 0
    if size < 126:
        head = bytes((first, mask | size))
    elif size < 65_536:
        head = bytes((first, mask | 126)) + struct.pack("!H", size)
    else:
        head = bytes((first, mask | 127)) + struct.pack("!Q", size)
    return head + (bytes(4) if is_masked else b"") + payload


def _upgrade(attacker: Attacker, *headers: str) -> str:
    """Opens the WebSocket; returns the answer's headers."""
    attacker.send(request(*headers))
    return _answer(attacker)


def _answer(attacker: Attacker) -> str:
    """The headers of the answer to a request, which opens the WebSocket."""
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        more = attacker.receive(1)
        assert more, answer
        answer += more
    assert answer.startswith(b"HTTP/1.1 101 "), answer
    return answer.decode()


def _login(attacker: Attacker, client: str) -> None:
    attacker.send(frame(FINAL | BINARY, connect(client)))
    attacker.expect(bytes((FINAL | BINARY, len(ACCEPTED))) + ACCEPTED)


def _close_code(attacker: Attacker) -> int:
    """The reason in the close frame that ends what the attacker got; 0 without one."""
    received = attacker.read_to_end()
    place = received.rfind(bytes((FINAL | CLOSE,)))
    return int.from_bytes(received[place + 2 : place + 4], "big") if place >= 0 else 0


def _assert_ended_as_too_big(attacked: Gateway, attacker: Attacker, client: str) -> None:
    """The log says why. The close frame is lost where the system resets the connection, because more was sent."""
    assert _close_code(attacker) in (TOO_BIG, 0)
    closed = attacked.wait_for_log("connection closed", client=f"^{client}$")
    assert closed["reason"] == "the client sent a message longer than maximum_message_bytes"


def test_compression_is_not_agreed_to_and_what_is_compressed_is_refused(attacked: Gateway, websocket_port: int) -> None:
    """So no small frame becomes a large message."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = deflate.compress(publish("bomb", bytes(200_000_000))) + deflate.flush(zlib.Z_SYNC_FLUSH)
    with watched(attacked, memory_mib=40), Attacker(websocket_port) as attacker:
        headers = _upgrade(attacker, "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits")
        assert "Extensions" not in headers
        _login(attacker, "zip-bomb")
        attacker.send(frame(FINAL | COMPRESSED | BINARY, bomb))
        assert _close_code(attacker) == PROTOCOL_ERROR


@pytest.mark.parametrize("length", [LONGEST_MESSAGE + 1, 2**31, 2**63 - 1])
def test_a_frame_that_says_it_is_very_long_costs_nothing_while_it_comes(
    attacked: Gateway, websocket_port: int, scale: Scale, length: int
) -> None:
    count = scale(20, 500)
    with (
        watched(attacked, memory_mib=60 + count / 10),
        Crowd(websocket_port, count, lambda _: request()) as crowd,
    ):
        for number, member in enumerate(crowd.members):
            _answer(member)
            member.send(frame(FINAL | BINARY, connect(f"long-{length}-{number}"), length=length))
        crowd.read_until(lambda member: ACCEPTED in member.received)
        assert all(ACCEPTED in member.received for member in crowd.members)


def test_a_frame_is_taken_up_to_the_longest_message(attacked: Gateway, websocket_port: int) -> None:
    with watched(attacked, memory_mib=60), Attacker(websocket_port) as attacker:
        _upgrade(attacker)
        _login(attacker, "endless-frame")
        packet = publish("frame", bytes(60_000))
        attacker.send(frame(FINAL | BINARY, packet, length=2**63 - 1))
        for _ in range(2 * LONGEST_MESSAGE // len(packet)):
            if not attacker.send(packet):
                break
        _assert_ended_as_too_big(attacked, attacker, "endless-frame")


def test_fragments_without_an_end_are_taken_up_to_the_longest_message(attacked: Gateway, websocket_port: int) -> None:
    with watched(attacked, memory_mib=60), Attacker(websocket_port) as attacker:
        _upgrade(attacker)
        _login(attacker, "endless-fragments")
        packet = publish("fragments", bytes(60_000))
        attacker.send(frame(BINARY, packet))
        for _ in range(2 * LONGEST_MESSAGE // len(packet)):
            if not attacker.send(frame(CONTINUATION, packet)):
                break
        _assert_ended_as_too_big(attacked, attacker, "endless-fragments")


def test_fragments_of_nothing_cost_nothing(attacked: Gateway, websocket_port: int, scale: Scale) -> None:
    with watched(attacked, memory_mib=60) as watch, Attacker(websocket_port) as attacker:
        _upgrade(attacker)
        _login(attacker, "empty-fragments")
        attacker.send(frame(BINARY, b""))
        for _ in range(scale(200, 20_000)):
            if not attacker.send(frame(CONTINUATION, b"") * 500):
                break
        watch.others_are_served()


def test_packets_in_pieces_of_a_byte_each_are_packets(attacked: Gateway, websocket_port: int) -> None:
    """Frames mean nothing to MQTT (MQTT 5.0 section 6); empty ones change nothing."""
    with watched(attacked, memory_mib=40), Attacker(websocket_port) as attacker:
        _upgrade(attacker)
        attacker.send(
            b"".join(frame(FINAL | BINARY, bytes((byte,))) + frame(FINAL | BINARY, b"") for byte in connect("b"))
        )
        attacker.expect(bytes((FINAL | BINARY, len(ACCEPTED))) + ACCEPTED)


@pytest.mark.parametrize(
    ("sent", "codes"),
    [
        (frame(FINAL | TEXT, connect("text")), {UNSUPPORTED_DATA}),
        (frame(FINAL | CONTINUATION, b"x"), {PROTOCOL_ERROR}),
        (frame(FINAL | 0x3, b"x"), {PROTOCOL_ERROR}),
        (frame(FINAL | 0x20 | BINARY, b"x"), {PROTOCOL_ERROR}),
        (frame(PING, b"x"), {PROTOCOL_ERROR}),
        (frame(FINAL | PING, bytes(126)), {PROTOCOL_ERROR}),
        (frame(FINAL | CLOSE, b"x"), {PROTOCOL_ERROR}),
    ],
    ids=["text", "continuation", "unknown opcode", "reserved bit", "ping in parts", "long ping", "close of a byte"],
)
def test_a_frame_that_may_not_be_ends_the_connection_with_its_reason(
    attacked: Gateway, websocket_port: int, sent: bytes, codes: set[int]
) -> None:
    with watched(attacked, memory_mib=40), Attacker(websocket_port) as attacker:
        _upgrade(attacker)
        attacker.send(sent)
        assert _close_code(attacker) in codes


def test_pings_without_number_whose_answers_nobody_reads_are_held_up(
    attacked: Gateway, websocket_port: int, scale: Scale
) -> None:
    storm = frame(FINAL | PING, bytes(125)) * 400_000
    with watched(attacked, memory_mib=100) as watch, Attacker(websocket_port) as attacker:
        _upgrade(attacker)
        _login(attacker, "ping-storm")
        attacker.send_without_reading(storm, seconds=scale(3, 20))
        watch.others_are_served()


def test_requests_that_come_byte_by_byte_end_in_time(attacked: Gateway, websocket_port: int, scale: Scale) -> None:
    count, whole = scale(100, 1_500), request()
    with watched(attacked, memory_mib=60 + count / 10) as watch, Crowd(websocket_port, count) as crowd:
        for place in range(60):
            crowd.send(lambda _, place=place: whole[place : place + 1])
            watch.bystander.wait_for_more(1)
        crowd.read_until(lambda _: False)
        assert crowd.ended == count


@pytest.mark.parametrize("flood", ["a long line", "many headers", "a long body"])
def test_requests_are_as_long_as_they_may_be(attacked: Gateway, websocket_port: int, flood: str) -> None:
    parts = {
        "a long line": [b"GET /mqtt?", *([b"x" * 10_000] * 3_000)],
        "many headers": [request()[:-2], *([b"X-Header: x\r\n" * 1_000] * 2_000)],
        "a long body": [request("Content-Length: 100000000"), *([bytes(10_000)] * 3_000)],
    }[flood]
    with watched(attacked, memory_mib=60), Attacker(websocket_port) as attacker:
        for part in parts:
            if not attacker.send(part):
                break
        else:
            attacker.read_to_end()


def test_open_websockets_that_never_connect_end_in_time(attacked: Gateway, websocket_port: int, scale: Scale) -> None:
    count = scale(100, 2_000)
    with (
        watched(attacked, memory_mib=60 + count / 10) as watch,
        Crowd(websocket_port, count, lambda _: request()) as crowd,
    ):
        for member in crowd.members:
            _answer(member)
        watch.others_are_served()
        crowd.read_until(lambda _: False)
        assert crowd.ended == count
