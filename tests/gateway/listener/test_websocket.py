"""WebSockets on a real socket of the loopback, with aiohttp's client and with frames written by hand (RFC 6455)."""

import asyncio
import gc
import logging
import ssl
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from gateway.listener.upgrade import RequestReader
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.session import Session
from tests.certificate_authority import Authority
from tests.gateway.listener.running import Running, Table, run

PATIENCE_S = 20.0
WEBSOCKET: Table = {"transport": "websocket"}
UPGRADE = (
    "GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{more}\r\n"
)
OFFER = "Sec-WebSocket-Protocol: mqtt\r\n"
BINARY, TEXT, CLOSE, PING, PONG = 0x2, 0x1, 0x8, 0x9, 0xA


@asynccontextmanager
async def _opened(
    running: Running, *protocols: str, path: str = "/mqtt", tls: ssl.SSLContext | None = None
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    scheme = "wss" if tls is not None else "ws"
    url = f"{scheme}://localhost:{running.port}{path}"
    async with aiohttp.ClientSession() as session:
        offered = protocols or ("mqtt",)
        async with session.ws_connect(url, protocols=offered, ssl=tls or True, max_msg_size=0) as websocket:
            yield websocket


async def _answer(running: Running, request: str) -> str:
    """What a raw HTTP request is answered, to the end of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(request.encode())
    answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
    writer.close()
    return answer.decode()


async def _raw(running: Running) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that has become a websocket, for frames written by hand."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(UPGRADE.format(path="/mqtt", more=OFFER).encode())
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
    assert head.startswith(b"HTTP/1.1 101 ")
    assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head  # the example of RFC 6455 section 1.3
    return reader, writer


def _frame(opcode: int, payload: bytes, *, final: bool = True) -> bytes:
    """A frame of a client, masked with zeros (RFC 6455 section 5.2)."""
    first = (0x80 if final else 0) | opcode
    if len(payload) < 126:
        return bytes([first, 0x80 | len(payload)]) + bytes(4) + payload
    return bytes([first, 0x80 | 126]) + struct.pack(">H", len(payload)) + bytes(4) + payload


async def _read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Opcode and payload of a frame of the server."""
    first, length = await asyncio.wait_for(reader.readexactly(2), PATIENCE_S)
    if length == 126:
        (length,) = struct.unpack(">H", await reader.readexactly(2))
    return first & 0x0F, await reader.readexactly(length)


# -- the request -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offered", "chosen"), [(["mqtt"], "mqtt"), (["mqttv3.1"], "mqttv3.1"), (["chat", "mqttv3.1", "mqtt"], "mqttv3.1")]
)
def test_the_first_subprotocol_of_ours_that_is_offered_is_chosen(offered: list[str], chosen: str) -> None:
    """MQTT-6.0.0-3, -4."""

    async def scenario(running: Running) -> None:
        async with _opened(running, *offered) as websocket:
            assert websocket.protocol == chosen
            assert not websocket.compress

    run(scenario, WEBSOCKET)


@pytest.mark.parametrize("path", ["/", "/mqtt", "/plant/mqtt"])
def test_the_path_is_the_one_that_is_configured(path: str) -> None:
    async def scenario(running: Running) -> None:
        async with _opened(running, path=path) as websocket:
            await websocket.send_bytes(b"there")
            assert await websocket.receive_bytes() == b"there"
        assert (await _answer(running, UPGRADE.format(path="/other", more=OFFER))).startswith("HTTP/1.1 404 ")

    run(scenario, {**WEBSOCKET, "path": path})


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (UPGRADE.format(path="/mqtt", more=""), 400),
        (UPGRADE.format(path="/mqtt", more="Sec-WebSocket-Protocol: chat\r\n"), 400),
        (UPGRADE.format(path="/mqtt", more=OFFER).replace("GET", "POST"), 405),
        (UPGRADE.format(path="/mqtt", more=OFFER).replace("Version: 13", "Version: 12"), 400),
        (UPGRADE.format(path="/mqtt", more=OFFER).replace("dGhlIHNhbXBsZSBub25jZQ==", "short"), 400),
        (UPGRADE.format(path="/mqtt", more=OFFER).replace("Upgrade: websocket\r\n", ""), 400),
        ("GET /mqtt HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("GET /mqtt HTTP/9\r\n\r\n", 400),
        ("GET /" + "a" * 9_000 + " HTTP/1.1\r\n\r\n", 400),
        ("\x10\x0e\x00\x04MQTT\x04\x02\x00<\x00\x02c1\r\n\r\n", 400),
    ],
    ids=["none", "other", "post", "version", "key", "no upgrade", "plain", "no http", "too long", "mqtt"],
)
def test_a_request_that_is_no_websocket_of_mqtt_is_refused_without_a_stack(
    request_text: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(running: Running) -> None:
        answer = await _answer(running, request_text)
        assert answer.startswith((f"HTTP/1.1 {status} ", f"HTTP/1.0 {status} "))
        assert running.bridge.links == []

    run(scenario, WEBSOCKET)
    (line,) = (record.getMessage() for record in caplog.records if "request refused" in record.getMessage())
    assert line.startswith("request refused listener=tested peer=127.0.0.1 ")
    assert all(record.exc_info is None for record in caplog.records if record.levelno > logging.DEBUG)
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://plant.example.com", 101),
        ("HTTPS://Plant.Example.com", 101),
        ("https://evil.example.com", 403),
        ("", 101),
    ],
)
def test_pages_of_other_origins_may_not_connect(origin: str, status: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        more = OFFER + (f"Origin: {origin}\r\n" if origin else "")
        writer.write(UPGRADE.format(path="/mqtt", more=more).encode())
        line = await asyncio.wait_for(reader.readline(), PATIENCE_S)
        assert line.startswith(f"HTTP/1.1 {status} ".encode())
        writer.close()

    run(scenario, {**WEBSOCKET, "origins": ["https://plant.example.com/"]})
    told = "request refused listener=tested peer=127.0.0.1 status=403 reason=pages of this origin may not connect"
    assert (f"{told} found={origin}" in caplog.text) is (status == 403)


@pytest.mark.parametrize("beginning", ["", "GET /mqtt HTTP/1.1\r\nHost: loc"], ids=["nothing", "half a request"])
def test_a_request_that_takes_too_long_is_ended(beginning: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(beginning.encode())
        await asyncio.sleep(0.05)
        began_s = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: began_s + 9.0)
        running.listeners.tick()
        monkeypatch.setattr(time, "monotonic", lambda: began_s + 10.1)
        running.listeners.tick()
        monkeypatch.undo()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(reader.readexactly(1), PATIENCE_S)
        writer.close()

    run(scenario, WEBSOCKET)


def test_where_too_many_requests_wait_the_oldest_is_ended() -> None:
    async def scenario(running: Running) -> None:
        silent = [await asyncio.open_connection("127.0.0.1", running.port) for _ in range(3)]
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(silent[0][0].readexactly(1), PATIENCE_S)
        for _, writer in silent:
            writer.close()

    run(scenario, WEBSOCKET, maximum_waiting_connections=2)


# -- messages ----------------------------------------------------------------------------------------------------------


def test_a_packet_may_span_frames_and_a_frame_hold_several_packets() -> None:
    """MQTT-6.0.0-2."""

    async def scenario(running: Running) -> None:
        _reader, writer = await _raw(running)
        writer.write(_frame(BINARY, b"\xc0", final=False) + _frame(0x0, b"\x00\xc0\x00"))
        writer.write(_frame(BINARY, b"\xc0") + _frame(BINARY, b"\x00"))
        await running.bridge.until(lambda: running.bridge.received == bytes.fromhex("C000 C000 C000"))
        writer.close()

    run(scenario, WEBSOCKET, answers=False)


def test_half_a_message_is_handed_on_and_half_a_packet_in_it_counts_as_on_tcp() -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await _raw(running)
        writer.write(_frame(BINARY, b"whole"))
        assert await _read_frame(reader) == (BINARY, b"whole")
        link = await running.only_link()
        writer.write(_frame(BINARY, b"a" * 1_000, final=False) + _frame(PING, b"read so far?"))
        assert await _read_frame(reader) == (PONG, b"read so far?")
        assert await _read_frame(reader) == (BINARY, b"a" * 1_000)
        assert link.unfinished_bytes == 0
        link.connection.receive_data(bytes.fromhex("10 0E 0004 4D515454 04 02"))
        assert link.unfinished_bytes == 10
        writer.write(_frame(0, b"b"))
        assert await _read_frame(reader) == (BINARY, b"b")
        writer.close()

    run(scenario, WEBSOCKET)


def test_frames_that_come_with_the_request_are_read() -> None:
    async def scenario(running: Running) -> None:
        _reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(UPGRADE.format(path="/mqtt", more=OFFER).encode() + _frame(BINARY, b"first") + b"\x82")
        await running.bridge.until(lambda: running.bridge.received == b"first")
        writer.write(_frame(BINARY, b" second")[1:])
        await running.bridge.until(lambda: running.bridge.received == b"first second")
        writer.close()

    run(scenario, WEBSOCKET, answers=False)


def test_a_peer_that_goes_with_its_request_is_forgotten() -> None:
    async def scenario(running: Running) -> None:
        _reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(UPGRADE.format(path="/mqtt", more=OFFER).encode() + _frame(BINARY, b"x"))
        writer.write_eof()
        await running.bridge.until(lambda: len(running.bridge.lost_links) == 1)
        assert running.bridge.received == b"x"
        assert len(running.listeners) == 0
        writer.close()

    run(scenario, WEBSOCKET, answers=False)


def test_nothing_of_http_is_left_when_the_websocket_is_open() -> None:
    """Without the collector of cycles, so what it costs is free again at once."""

    def readers() -> int:
        return sum(isinstance(each, RequestReader) for each in gc.get_objects())

    async def scenario(running: Running) -> None:
        gc.collect()
        gc.disable()
        try:
            before = len(asyncio.all_tasks())
            reader, writer = await _raw(running)
            writer.write(_frame(BINARY, b"x"))
            assert await _read_frame(reader) == (BINARY, b"x")
            assert readers() == 0
            assert len(asyncio.all_tasks()) <= before
        finally:
            gc.enable()
        writer.close()

    run(scenario, WEBSOCKET)


def test_a_ping_is_answered_and_is_nothing_to_mqtt() -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await _raw(running)
        writer.write(_frame(PING, b"are you there"))
        assert await _read_frame(reader) == (PONG, b"are you there")
        assert running.bridge.calls == 0
        writer.close()

    run(scenario, WEBSOCKET)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (_frame(TEXT, b"text"), 1003),
        (_frame(BINARY, bytes(300)), 1009),
        (_frame(0x3, b""), 1002),
        (bytes([0xC2, 0x80]) + bytes(4), 1002),
        (_frame(PING, bytes(126)), 1002),
        (bytes.fromhex("82 01 C0"), 1002),
    ],
    ids=["text", "too large", "opcode", "reserved bit", "long ping", "not masked"],
)
def test_a_frame_that_may_not_be_ends_the_connection_with_its_code(frame: bytes, code: int) -> None:
    """MQTT-6.0.0-1."""

    async def scenario(running: Running) -> None:
        reader, writer = await _raw(running)
        writer.write(frame)
        opcode, payload = await _read_frame(reader)
        assert (opcode, struct.unpack(">H", payload[:2])) == (CLOSE, (code,))
        writer.write(_frame(CLOSE, payload[:2]))
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        await running.bridge.until(lambda: len(running.bridge.lost_links) == 1)
        assert running.bridge.received == b""
        writer.close()

    run(scenario, {**WEBSOCKET, "maximum_message_bytes": 256})


def test_the_longest_message_is_counted_over_its_frames_and_anew_for_the_next() -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await _raw(running)
        whole = _frame(BINARY, bytes(200), final=False) + _frame(0x0, bytes(56))
        writer.write(whole + whole)
        await running.bridge.until(lambda: running.bridge.received == bytes(512))
        writer.write(_frame(BINARY, bytes(200), final=False) + _frame(0x0, bytes(57)))
        assert await _read_frame(reader) == (CLOSE, struct.pack(">H", 1009))
        assert running.bridge.received == bytes(712)
        writer.close()

    run(scenario, {**WEBSOCKET, "maximum_message_bytes": 256}, answers=False)


def test_a_close_frame_behind_what_is_refused_is_found_in_the_same_read() -> None:
    """Then both have said that it ends, and the gateway closes at once."""

    async def scenario(running: Running) -> None:
        reader, writer = await _raw(running)
        writer.write(_frame(BINARY, b"x"))
        assert await _read_frame(reader) == (BINARY, b"x")
        link = await running.only_link()
        running.bridge.receive = lambda link, _data: link.close("no more", ReasonCode.PROTOCOL_ERROR)  # type: ignore[method-assign]  # what a refused packet does
        writer.write(_frame(BINARY, bytes(5_000)) + _frame(CLOSE, struct.pack(">H", 1000)))
        assert await _read_frame(reader) == (CLOSE, struct.pack(">H", 1002))
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        assert not link.is_open
        writer.close()

    run(scenario, WEBSOCKET)


@pytest.mark.parametrize(
    ("frame", "farewell", "code"),
    [(_frame(BINARY, bytes(300)), "E0 01 95", 1009), (_frame(0x3, b""), "E0 01 80", 1002)],
    ids=["too large", "opcode"],
)
def test_mqtt_5_is_told_what_is_wrong_with_a_frame_before_its_connection_ends(
    frame: bytes, farewell: str, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Section 3.14.2.1: packet too large, unspecified error."""

    async def scenario(running: Running) -> None:
        reader, writer = await _raw(running)
        writer.write(_frame(BINARY, b"x"))
        connection = (await running.only_link()).connection
        connection.receive_data(bytes.fromhex("10 0F 0004 4D515454 05 02 003C 00 0002 6331"))
        connection.attach(Session("c1", clean_session=True))
        connection.connack(False)
        writer.write(frame)
        assert await _read_frame(reader) == (BINARY, bytes.fromhex(farewell))
        opcode, payload = await _read_frame(reader)
        assert (opcode, struct.unpack(">H", payload[:2])) == (CLOSE, (code,))
        await running.bridge.until(lambda: len(running.bridge.lost_links) == 1)
        writer.close()

    run(scenario, {**WEBSOCKET, "maximum_message_bytes": 256}, answers=False)
    assert "connection closed" in caplog.text


@pytest.mark.parametrize(
    ("reason", "reason_code", "code"),
    [
        ("", ReasonCode.SUCCESS, 1000),
        ("the gateway stops", ReasonCode.SERVER_SHUTTING_DOWN, 1001),
        ("malformed", ReasonCode.MALFORMED_PACKET, 1002),
        ("not here", ReasonCode.NOT_AUTHORIZED, 1008),
        ("too large", ReasonCode.PACKET_TOO_LARGE, 1009),
    ],
)
def test_what_was_sent_before_a_close_arrives_and_then_the_code(
    reason: str, reason_code: ReasonCode, code: int
) -> None:
    async def scenario(running: Running) -> None:
        async with _opened(running) as websocket:
            await websocket.send_bytes(b"x")
            link = await running.only_link()
            link.send(b"last ")
            link.send(b"words")
            link.close(reason, reason_code)
            link.close("because again")
            link.send(b"too late, and no error")
            assert await websocket.receive_bytes() == b"last "
            assert await websocket.receive_bytes() == b"words"
            message = await websocket.receive()
            assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, code)
        await running.bridge.until(lambda: running.bridge.lost_links == [link])

    run(scenario, WEBSOCKET, answers=False)


def test_the_gateways_end_is_said_to_a_client() -> None:
    async def scenario(running: Running) -> None:
        async with _opened(running) as websocket:
            await websocket.send_bytes(b"x")
            await running.only_link()
            stopping = asyncio.create_task(running.listeners.stop())
            message = await websocket.receive()
            assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, 1001)
            await stopping

    run(scenario, WEBSOCKET, answers=False)


def test_all_that_came_before_a_close_is_handed_on_before_the_loss_is_told() -> None:
    """A DISCONNECT behind many PUBLISHes, and the connection closed at once: the will must not be published."""

    async def scenario(running: Running) -> None:
        reader, writer = await _raw(running)
        writer.write(_frame(BINARY, b"x"))
        link = await running.only_link()
        link.pause_reading()
        writer.write(_frame(BINARY, b"y") * 1_000 + _frame(CLOSE, b"\x03\xe8"))
        await asyncio.sleep(0.05)
        assert running.bridge.received == b"x"
        assert link.is_open
        link.resume_reading()
        await running.bridge.until(lambda: running.bridge.lost_links == [link])
        assert running.bridge.received == b"x" + b"y" * 1_000
        assert await _read_frame(reader) == (CLOSE, b"\x03\xe8")
        writer.close()

    run(scenario, WEBSOCKET, answers=False)


def test_a_close_that_comes_in_the_moment_of_the_resuming_loses_nothing() -> None:
    """What waits is handed on after whatever lets the link read; the close frame may be read before that."""

    async def scenario(running: Running) -> None:
        _, writer = await _raw(running)
        writer.write(_frame(BINARY, b"x"))
        link = await running.only_link()
        link.pause_reading()
        link.resume_reading()
        link.pause_reading()
        writer.write(_frame(BINARY, b"y") + _frame(BINARY, b"z") + _frame(CLOSE, b"\x03\xe8"))
        link.resume_reading()
        await running.bridge.until(lambda: running.bridge.lost_links == [link])
        assert running.bridge.received == b"xyz"
        writer.close()

    run(scenario, WEBSOCKET, answers=False)


# -- back-pressure -----------------------------------------------------------------------------------------------------


def test_a_paused_link_is_not_read_and_its_client_has_to_wait() -> None:
    async def scenario(running: Running) -> None:
        async with _opened(running) as websocket:
            await websocket.send_bytes(b"x")
            link = await running.only_link()
            link.pause_reading()
            sent = 0

            async def flood() -> None:
                nonlocal sent
                while sent < 64_000_000:
                    await websocket.send_bytes(bytes(100_000))
                    sent += 100_000

            flooding = asyncio.create_task(flood())
            stood_still_at = -1
            while stood_still_at != sent or not sent:
                stood_still_at = sent
                await asyncio.sleep(0.3)
            assert sent < 64_000_000
            assert running.bridge.received == b"x"
            link.send(b"still here")
            assert await websocket.receive_bytes() == b"still here"
            link.resume_reading()
            await running.bridge.until(lambda: len(running.bridge.received) > stood_still_at)
            flooding.cancel()

    run(scenario, WEBSOCKET, answers=False)


def test_a_peer_that_does_not_read_cannot_be_sent_more_until_it_does_and_the_order_holds() -> None:
    async def scenario(running: Running) -> None:
        async with _opened(running) as websocket:
            await websocket.send_bytes(b"x")
            link = await running.only_link()
            numbers = 0
            while link.can_send:
                link.send(numbers.to_bytes(4, "big") * 1_000)
                numbers += 1
                await asyncio.sleep(0)
            assert running.bridge.resumed_links == []
            received = b""
            while len(received) < numbers * 4_000:
                received += await asyncio.wait_for(websocket.receive_bytes(), PATIENCE_S)
            assert [received[at : at + 4] for at in range(0, len(received), 4_000)] == [
                number.to_bytes(4, "big") for number in range(numbers)
            ]
            await running.bridge.until(lambda: running.bridge.resumed_links == [link])
            assert link.can_send

    run(scenario, WEBSOCKET, answers=False, maximum_unsent_bytes=200_000)


def test_a_closed_link_whose_peer_takes_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(running: Running) -> None:
        _, writer = await _raw(running)
        writer.write(_frame(BINARY, b"x"))
        link = await running.only_link()
        while link.can_send:
            link.send(bytes(65_536))
            await asyncio.sleep(0)
        link.close("because")
        running.listeners.tick()
        assert running.bridge.lost_links == []
        closed_s = link.closed_s
        monkeypatch.setattr(time, "monotonic", lambda: closed_s + 2.1)
        running.listeners.tick()
        monkeypatch.undo()
        await running.bridge.until(lambda: running.bridge.lost_links == [link])
        writer.transport.abort()

    run(scenario, WEBSOCKET, answers=False)


def test_silence_is_measured_as_on_tcp_and_pings_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await _raw(running)
        writer.write(_frame(BINARY, b"x") + _frame(PING, b""))
        link = await running.only_link()
        assert await _read_frame(reader) == (PONG, b"")
        link.connection.receive_data(bytes.fromhex("10 0E 0004 4D515454 04 02 003C 0002 6331"))
        link.accepted_s = 1e9
        began_s = link.last_received_s
        monkeypatch.setattr(time, "monotonic", lambda: began_s + 90.1)
        running.listeners.tick()
        monkeypatch.undo()
        opcode, payload = await _read_frame(reader)
        assert (opcode, payload) == (CLOSE, (1008).to_bytes(2, "big"))
        writer.close()

    run(scenario, WEBSOCKET, answers=False)


# -- over TLS, behind a balancer ---------------------------------------------------------------------------------------


def test_a_secure_websocket_behind_a_balancer_knows_both_its_address_and_its_user(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("gateway")
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.load_cert_chain(*authority.issue("pump-7"))
    tls = {
        "certificate": str(certificate),
        "key": str(key),
        "client_authority": str(authority.certificate),
        "client_certificate": "required",
        "user_from_certificate": "common_name",
    }

    async def scenario(running: Running) -> None:
        async with _opened(running, tls=context) as websocket:
            await websocket.send_bytes(b"there")
            assert await websocket.receive_bytes() == b"there"
            link = await running.only_link()
            assert link.certificate_user == "pump-7"
            assert link.address == "127.0.0.1"

    run(scenario, {**WEBSOCKET, "tls": tls})


def test_a_websocket_behind_a_balancer_has_the_address_that_it_says() -> None:
    async def scenario(running: Running) -> None:
        _reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(bytes.fromhex("0D0A0D0A000D0A515549540A 21 11 000C C0000201 C6336402 DC04 075B"))
        writer.write(UPGRADE.format(path="/mqtt", more=OFFER).encode() + _frame(BINARY, b"x"))
        assert (await running.only_link()).peer == "192.0.2.1:56324"
        writer.close()

    run(scenario, {**WEBSOCKET, "proxy_protocol": True})
