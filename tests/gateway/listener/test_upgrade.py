"""The HTTP request that becomes a WebSocket, on a real socket of the loopback."""

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp.web import RequestHandler

from gateway.config.limits import Limit
from tests.certificate_authority import Authority
from tests.gateway.listener.running import Running, run
from tests.gateway.listener.websocket_client import (
    OFFER,
    PATIENCE_S,
    UPGRADE,
    WEBSOCKET,
    answer_to,
    opened,
    raw_websocket,
)


def _under_way(running: Running) -> list[RequestHandler]:
    (listener,) = running.listeners
    assert listener._upgrades is not None
    return list(listener._upgrades._under_way)


async def _until(is_true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_true():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("offered", "chosen"), [(["mqtt"], "mqtt"), (["mqttv3.1"], "mqttv3.1"), (["chat", "mqttv3.1", "mqtt"], "mqttv3.1")]
)
def test_the_first_subprotocol_of_ours_that_is_offered_is_chosen(offered: list[str], chosen: str) -> None:
    """MQTT-6.0.0-3, -4."""

    async def scenario(running: Running) -> None:
        async with opened(running, *offered) as websocket:
            assert websocket.protocol == chosen
            assert not websocket.compress

    run(scenario, WEBSOCKET)


def test_subprotocols_may_be_offered_in_several_headers(caplog: pytest.LogCaptureFixture) -> None:
    """RFC 6455 section 11.3.4: they are one list."""

    async def scenario(running: Running) -> None:
        _, writer = await raw_websocket(running, offer="Sec-WebSocket-Protocol: chat, talk\r\n" + OFFER)
        writer.close()

    run(scenario, WEBSOCKET)
    assert not [record for record in caplog.records if record.name.startswith("aiohttp")]


def test_another_version_of_websocket_is_told_which_one_is_spoken() -> None:
    """RFC 6455 section 4.2.2, 4."""

    async def scenario(running: Running) -> None:
        wanted = UPGRADE.format(path="/mqtt", more=OFFER)
        answer = await answer_to(running, wanted.replace("Version: 13", "Version: 8"))
        assert answer.startswith("HTTP/1.1 426 ")
        assert "\r\nSec-WebSocket-Version: 13\r\n" in answer

    run(scenario, WEBSOCKET)


@pytest.mark.parametrize("path", ["/", "/mqtt", "/plant/mqtt"])
def test_the_path_is_the_one_that_is_configured(path: str) -> None:
    async def scenario(running: Running) -> None:
        async with opened(running, path=path) as websocket:
            await websocket.send_bytes(b"there")
            assert await websocket.receive_bytes() == b"there"
        assert (await answer_to(running, UPGRADE.format(path="/other", more=OFFER))).startswith("HTTP/1.1 404 ")

    run(scenario, {**WEBSOCKET, "path": path})


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (UPGRADE.format(path="/mqtt", more=""), 400),
        (UPGRADE.format(path="/mqtt", more="Sec-WebSocket-Protocol: chat\r\n"), 400),
        (UPGRADE.format(path="/mqtt", more=OFFER).replace("GET", "POST"), 405),
        (UPGRADE.format(path="/mqtt", more=OFFER).replace("Version: 13", "Version: 8"), 426),
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
        answer = await answer_to(running, request_text)
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
        await _until(lambda: [each.transport is not None for each in _under_way(running)] == [True])
        began_s = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: began_s + 9.0)
        await running.listeners.tick()
        monkeypatch.setattr(time, "monotonic", lambda: began_s + 10.1)
        await running.listeners.tick()
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


def test_a_handshake_that_ends_when_nobody_waits_for_its_request_any_more_ends_the_connection(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("gateway")
    context = ssl.create_default_context(cafile=str(authority.certificate))

    async def scenario(running: Running) -> None:
        address = ("127.0.0.1", running.port)
        slow, slow_writer = await asyncio.open_connection(*address)
        _, silent = await asyncio.open_connection(*address, ssl=context, server_hostname="localhost")
        await _until(lambda: [each.transport is not None for each in _under_way(running)] == [False, True])
        _, latest = await asyncio.open_connection(*address)  # what has waited longest is dropped: `slow`
        await _until(lambda: [each.transport is not None for each in _under_way(running)] == [True, False])
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(slow_writer.start_tls(context, server_hostname="localhost"), PATIENCE_S)
            assert await asyncio.wait_for(slow.read(), PATIENCE_S) == b""
        assert running.refused(Limit.WAITING_CONNECTIONS) == 1
        for writer in (slow_writer, silent, latest):
            writer.close()

    tls = {"certificate": str(certificate), "key": str(key)}
    run(scenario, {**WEBSOCKET, "tls": tls}, maximum_waiting_connections=2)
