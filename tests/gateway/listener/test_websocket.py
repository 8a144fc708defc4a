"""WebSockets on a real socket of the loopback, with aiohttp's client and with frames written by hand (RFC 6455)."""

import asyncio
import gc
import ssl
import struct
import time
from pathlib import Path

import aiohttp
import pytest

from gateway.listener.upgrade import RequestReader
from gateway.mqtt.outgoing_flows import OutgoingFlows
from gateway.mqtt.reason_codes import ReasonCode
from tests.certificate_authority import Authority
from tests.gateway.listener.running import Running, run
from tests.gateway.listener.websocket_client import (
    BINARY,
    CLOSE,
    OFFER,
    PATIENCE_S,
    PING,
    PONG,
    TEXT,
    UPGRADE,
    WEBSOCKET,
    client_frame,
    opened,
    raw_websocket,
    read_frame,
)
from tests.reason_strings import plain

# -- messages ----------------------------------------------------------------------------------------------------------


def test_a_packet_may_span_frames_and_a_frame_hold_several_packets() -> None:
    """MQTT-6.0.0-2."""

    async def scenario(running: Running) -> None:
        _reader, writer = await raw_websocket(running)
        writer.write(client_frame(BINARY, b"\xc0", final=False) + client_frame(0x0, b"\x00\xc0\x00"))
        writer.write(client_frame(BINARY, b"\xc0") + client_frame(BINARY, b"\x00"))
        await running.bridge.until(lambda: running.bridge.received == bytes.fromhex("C000 C000 C000"))
        writer.close()

    run(scenario, WEBSOCKET, answers=False)


def test_half_a_message_is_handed_on_and_half_a_packet_in_it_counts_as_on_tcp() -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await raw_websocket(running)
        writer.write(client_frame(BINARY, b"whole"))
        assert await read_frame(reader) == (BINARY, b"whole")
        link = await running.only_link()
        writer.write(client_frame(BINARY, b"a" * 1_000, final=False) + client_frame(PING, b"read so far?"))
        assert await read_frame(reader) == (PONG, b"read so far?")
        assert await read_frame(reader) == (BINARY, b"a" * 1_000)
        assert link.unfinished_bytes == 0
        link.connection.receive_data(bytes.fromhex("10 0E 0004 4D515454 04 02"))
        assert link.unfinished_bytes == 10
        writer.write(client_frame(0, b"b"))
        assert await read_frame(reader) == (BINARY, b"b")
        writer.close()

    run(scenario, WEBSOCKET)


def test_frames_that_come_with_the_request_are_read() -> None:
    async def scenario(running: Running) -> None:
        _reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(UPGRADE.format(path="/mqtt", more=OFFER).encode() + client_frame(BINARY, b"first") + b"\x82")
        await running.bridge.until(lambda: running.bridge.received == b"first")
        writer.write(client_frame(BINARY, b" second")[1:])
        await running.bridge.until(lambda: running.bridge.received == b"first second")
        writer.close()

    run(scenario, WEBSOCKET, answers=False)


def test_a_peer_that_goes_with_its_request_is_forgotten() -> None:
    async def scenario(running: Running) -> None:
        _reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(UPGRADE.format(path="/mqtt", more=OFFER).encode() + client_frame(BINARY, b"x"))
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
            reader, writer = await raw_websocket(running)
            writer.write(client_frame(BINARY, b"x"))
            assert await read_frame(reader) == (BINARY, b"x")
            assert readers() == 0
            assert len(asyncio.all_tasks()) <= before
        finally:
            gc.enable()
        writer.close()

    run(scenario, WEBSOCKET)


def test_a_ping_is_answered_and_is_nothing_to_mqtt() -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await raw_websocket(running)
        writer.write(client_frame(PING, b"are you there"))
        assert await read_frame(reader) == (PONG, b"are you there")
        assert running.bridge.calls == 0
        writer.close()

    run(scenario, WEBSOCKET)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (client_frame(TEXT, b"text"), 1003),
        (client_frame(BINARY, bytes(300)), 1009),
        (client_frame(0x3, b""), 1002),
        (bytes([0xC2, 0x80]) + bytes(4), 1002),
        (client_frame(PING, bytes(126)), 1002),
        (bytes.fromhex("82 01 C0"), 1002),
    ],
    ids=["text", "too large", "opcode", "reserved bit", "long ping", "not masked"],
)
def test_a_frame_that_may_not_be_ends_the_connection_with_its_code(frame: bytes, code: int) -> None:
    """MQTT-6.0.0-1."""

    async def scenario(running: Running) -> None:
        reader, writer = await raw_websocket(running)
        writer.write(frame)
        opcode, payload = await read_frame(reader)
        assert (opcode, struct.unpack(">H", payload[:2])) == (CLOSE, (code,))
        writer.write(client_frame(CLOSE, payload[:2]))
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        await running.bridge.until(lambda: len(running.bridge.lost_links) == 1)
        assert running.bridge.received == b""
        writer.close()

    run(scenario, {**WEBSOCKET, "maximum_message_bytes": 256})


@pytest.mark.parametrize("body", [b"1000", b"1", struct.pack(">H", 999), struct.pack(">H", 1005)])
def test_a_close_frame_with_a_wrong_code_is_a_close_and_no_warning(
    body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Some clients write the code 1000 as text."""

    async def scenario(running: Running) -> None:
        reader, writer = await raw_websocket(running)
        writer.write(client_frame(BINARY, b"x") + client_frame(CLOSE, body))
        assert await read_frame(reader) == (BINARY, b"x")
        assert await read_frame(reader) == (CLOSE, struct.pack(">H", 1002))
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        await running.bridge.until(lambda: len(running.bridge.lost_links) == 1)
        writer.close()

    run(scenario, WEBSOCKET)
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []


def test_the_longest_message_is_counted_over_its_frames_and_anew_for_the_next() -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await raw_websocket(running)
        whole = client_frame(BINARY, bytes(200), final=False) + client_frame(0x0, bytes(56))
        writer.write(whole + whole)
        await running.bridge.until(lambda: running.bridge.received == bytes(512))
        writer.write(client_frame(BINARY, bytes(200), final=False) + client_frame(0x0, bytes(57)))
        assert await read_frame(reader) == (CLOSE, struct.pack(">H", 1009))
        assert 712 <= len(running.bridge.received) <= 768  # on a busy machine, slices of the last frame come too
        writer.close()

    run(scenario, {**WEBSOCKET, "maximum_message_bytes": 256}, answers=False)


def test_a_frame_that_comes_in_slices_is_handed_on_up_to_the_longest_message() -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await raw_websocket(running)
        frame = client_frame(BINARY, bytes(257))
        writer.write(frame[:-1])
        await running.bridge.until(lambda: running.bridge.received == bytes(256))
        writer.write(frame[-1:])
        assert await read_frame(reader) == (CLOSE, struct.pack(">H", 1009))
        assert running.bridge.received == bytes(256)
        writer.close()

    run(scenario, {**WEBSOCKET, "maximum_message_bytes": 256}, answers=False)


def test_a_close_frame_behind_what_is_refused_is_found_in_the_same_read() -> None:
    """Then both have said that it ends, and the gateway closes at once."""

    async def scenario(running: Running) -> None:
        reader, writer = await raw_websocket(running)
        writer.write(client_frame(BINARY, b"x"))
        assert await read_frame(reader) == (BINARY, b"x")
        link = await running.only_link()
        running.bridge.receive = lambda link, _data: link.close("no more", ReasonCode.PROTOCOL_ERROR)  # type: ignore[method-assign]  # what a refused packet does
        writer.write(client_frame(BINARY, bytes(5_000)) + client_frame(CLOSE, struct.pack(">H", 1000)))
        assert await read_frame(reader) == (CLOSE, struct.pack(">H", 1002))
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        assert not link.is_open
        writer.close()

    run(scenario, WEBSOCKET)


@pytest.mark.parametrize(
    ("frame", "farewell", "code"),
    [(client_frame(BINARY, bytes(300)), "E0 01 95", 1009), (client_frame(0x3, b""), "E0 01 80", 1002)],
    ids=["too large", "opcode"],
)
def test_mqtt_5_is_told_what_is_wrong_with_a_frame_before_its_connection_ends(
    frame: bytes, farewell: str, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Section 3.14.2.1: packet too large, unspecified error."""

    async def scenario(running: Running) -> None:
        reader, writer = await raw_websocket(running)
        writer.write(client_frame(BINARY, b"x"))
        connection = (await running.only_link()).connection
        connection.receive_data(bytes.fromhex("10 0F 0004 4D515454 05 02 003C 00 0002 6331"))
        connection.attach(OutgoingFlows("c1", clean_session=True))
        connection.connack(False)
        writer.write(frame)
        opcode, payload = await read_frame(reader)
        assert (opcode, plain(payload)) == (BINARY, bytes.fromhex(farewell))
        opcode, payload = await read_frame(reader)
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
        async with opened(running) as websocket:
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
        async with opened(running) as websocket:
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
        reader, writer = await raw_websocket(running)
        writer.write(client_frame(BINARY, b"x"))
        link = await running.only_link()
        link.pause_reading()
        writer.write(client_frame(BINARY, b"y") * 1_000 + client_frame(CLOSE, b"\x03\xe8"))
        await asyncio.sleep(0.05)
        assert running.bridge.received == b"x"
        assert link.is_open
        link.resume_reading()
        await running.bridge.until(lambda: running.bridge.lost_links == [link])
        assert running.bridge.received == b"x" + b"y" * 1_000
        assert await read_frame(reader) == (CLOSE, b"\x03\xe8")
        writer.close()

    run(scenario, WEBSOCKET, answers=False)


def test_a_close_that_comes_in_the_moment_of_the_resuming_loses_nothing() -> None:
    """What waits is handed on after whatever lets the link read; the close frame may be read before that."""

    async def scenario(running: Running) -> None:
        _, writer = await raw_websocket(running)
        writer.write(client_frame(BINARY, b"x"))
        link = await running.only_link()
        link.pause_reading()
        link.resume_reading()
        link.pause_reading()
        writer.write(client_frame(BINARY, b"y") + client_frame(BINARY, b"z") + client_frame(CLOSE, b"\x03\xe8"))
        link.resume_reading()
        await running.bridge.until(lambda: running.bridge.lost_links == [link])
        assert running.bridge.received == b"xyz"
        writer.close()

    run(scenario, WEBSOCKET, answers=False)


# -- back-pressure -----------------------------------------------------------------------------------------------------


def test_a_paused_link_is_not_read_and_its_client_has_to_wait() -> None:
    async def scenario(running: Running) -> None:
        async with opened(running) as websocket:
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
        async with opened(running) as websocket:
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
        _, writer = await raw_websocket(running)
        writer.write(client_frame(BINARY, b"x"))
        link = await running.only_link()
        while link.can_send:
            link.send(bytes(65_536))
            await asyncio.sleep(0)
        link.close("because")
        await running.listeners.tick()
        assert running.bridge.lost_links == []
        closed_s = link.closed_s
        monkeypatch.setattr(time, "monotonic", lambda: closed_s + 2.1)
        await running.listeners.tick()
        monkeypatch.undo()
        await running.bridge.until(lambda: running.bridge.lost_links == [link])
        writer.transport.abort()

    run(scenario, WEBSOCKET, answers=False)


def test_silence_is_measured_as_on_tcp_and_pings_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await raw_websocket(running)
        writer.write(client_frame(BINARY, b"x") + client_frame(PING, b""))
        link = await running.only_link()
        assert await read_frame(reader) == (PONG, b"")
        link.connection.receive_data(bytes.fromhex("10 0E 0004 4D515454 04 02 003C 0002 6331"))
        link.accepted_s = 1e9
        began_s = link.silence.since_s
        monkeypatch.setattr(time, "monotonic", lambda: began_s + 90.1)
        await running.listeners.tick()
        monkeypatch.undo()
        opcode, payload = await read_frame(reader)
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
        async with opened(running, tls=context) as websocket:
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
        writer.write(UPGRADE.format(path="/mqtt", more=OFFER).encode() + client_frame(BINARY, b"x"))
        assert (await running.only_link()).peer == "192.0.2.1:56324"
        writer.close()

    run(scenario, {**WEBSOCKET, "proxy_protocol": True})
