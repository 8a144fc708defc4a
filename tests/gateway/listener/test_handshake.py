"""The PROXY header on a real socket, before MQTT and before TLS; and ports of IPv6."""

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
import struct
import warnings
from pathlib import Path
from typing import Any

import pytest

from gateway.config.limits import Limit
from gateway.listener import handshake
from gateway.listener.handshake import HandshakePort
from gateway.listener.link import NetworkLink
from tests.certificate_authority import Authority
from tests.gateway.listener.running import Running, Table, run

PATIENCE_S = 60.0
SIGNATURE = bytes.fromhex("0D0A0D0A000D0A515549540A")
#: 192.0.2.1:56324 to 198.51.100.2:1883.
IPV4 = SIGNATURE + bytes.fromhex("21 11 000C" + "C0000201 C6336402 DC04 075B")
IPV6 = SIGNATURE + bytes.fromhex(
    "21 21 0024" + "20010DB8000000000000000000000001" + "20010DB8000000000000000000000002" + "DC04 22B3"
)
LOCAL = SIGNATURE + bytes.fromhex("20 00 0000")
BEHIND_A_BALANCER: Table = {"proxy_protocol": True}


async def _is_echoed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    assert await asyncio.wait_for(reader.readexactly(len(data)), PATIENCE_S) == data


@pytest.mark.parametrize(("header", "peer"), [(IPV4, "192.0.2.1:56324"), (IPV6, "[2001:db8::1]:56324")])
def test_a_link_has_the_address_that_the_balancer_says(header: bytes, peer: str) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(header)
        await _is_echoed(reader, writer, b"there")
        link = await running.only_link()
        assert (link.peer, link.address) == (peer, peer.rpartition(":")[0].strip("[]"))
        assert running.bridge.received == b"there"
        writer.close()

    run(scenario, BEHIND_A_BALANCER)


def test_a_header_may_come_byte_by_byte_and_with_what_follows_it() -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        for byte in IPV4[:-1]:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(IPV4[-1:] + b"and more")
        assert await asyncio.wait_for(reader.readexactly(8), PATIENCE_S) == b"and more"
        assert running.bridge.received == b"and more"
        writer.close()

    run(scenario, BEHIND_A_BALANCER)


def test_the_balancers_own_connections_have_its_address() -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(LOCAL)
        await _is_echoed(reader, writer, b"there")
        assert (await running.only_link()).address == "127.0.0.1"
        writer.close()

    run(scenario, BEHIND_A_BALANCER)


@pytest.mark.parametrize(
    ("addresses", "is_taken"),
    [(["127.0.0.0/8"], True), (["10.0.0.1", "127.0.0.1"], True), (["10.0.0.0/8", "::1"], False)],
)
def test_a_header_is_believed_from_the_addresses_of_balancers_alone(
    caplog: pytest.LogCaptureFixture, addresses: list[str], is_taken: bool
) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        if is_taken:
            writer.write(IPV4)
            await _is_echoed(reader, writer, b"there")
        else:
            assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
            assert "in=PROXY header reason=its address is not among proxy_addresses" in caplog.text
        writer.close()

    run(scenario, {**BEHIND_A_BALANCER, "proxy_addresses": addresses})


def test_the_header_stands_before_the_handshake_of_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("gateway")

    def visit(port: int) -> None:
        context = ssl.create_default_context(cafile=str(authority.certificate))
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain:
            plain.sendall(IPV4)
            with context.wrap_socket(plain, server_hostname="localhost") as tls:
                tls.sendall(b"there")
                assert tls.recv(5) == b"there"

    async def scenario(running: Running) -> None:
        await asyncio.to_thread(visit, running.port)
        link = await running.only_link()
        assert link.peer == "192.0.2.1:56324"

    run(scenario, {**BEHIND_A_BALANCER, "tls": {"certificate": str(certificate), "key": str(key)}})


@pytest.mark.parametrize(
    ("beginning", "reason"),
    [
        (bytes.fromhex("10 0E 0004 4D515454 04 02 003C 0002 6331"), "did not begin with a header"),
        (b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 1883\r\n", "version 1 of the PROXY protocol; only version 2"),
        (SIGNATURE + bytes.fromhex("21 11 FFFF"), "has 65535 bytes of addresses, 4096 are taken"),
        (SIGNATURE + bytes.fromhex("21 11 0004 C0000201"), "has 4 bytes of addresses, and needs 12"),
    ],
    ids=["mqtt", "version 1", "a huge length", "cut off"],
)
def test_a_connection_without_a_right_header_is_closed_and_logged_in_one_line(
    caplog: pytest.LogCaptureFixture, beginning: bytes, reason: str
) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(beginning)
        with contextlib.suppress(ConnectionError):  # bytes that nobody read are answered with a reset
            assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        writer.close()
        assert running.bridge.links == []

    run(scenario, BEHIND_A_BALANCER)
    (refusal,) = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert "in=PROXY header" in refusal
    assert reason in refusal


@pytest.mark.parametrize("beginning", [b"", IPV4[:20]], ids=["nothing", "half a header"])
def test_a_header_that_takes_too_long_ends_the_connection(caplog: pytest.LogCaptureFixture, beginning: bytes) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(beginning)
        with contextlib.suppress(ConnectionError):  # on a busy machine the time may be over before they are read
            assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        writer.close()

    run(scenario, BEHIND_A_BALANCER, connect_timeout_s=0.2)
    assert "in=PROXY header reason=it took too long" in caplog.text


@pytest.mark.parametrize("linger", [b"", struct.pack("ii", 1, 0)], ids=["closed", "reset"])
def test_a_connection_that_goes_before_its_header_is_no_warning(
    caplog: pytest.LogCaptureFixture, linger: bytes
) -> None:
    """As from a load balancer that looks whether the port is open."""
    caplog.set_level(logging.INFO)

    async def scenario(running: Running) -> None:
        with socket.create_connection(("127.0.0.1", running.port), PATIENCE_S) as client:
            if linger:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        async with asyncio.timeout(PATIENCE_S):
            while "connection refused listener=tested" not in caplog.text:
                await asyncio.sleep(0.01)

    run(scenario, BEHIND_A_BALANCER)
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


def test_a_system_without_files_left_is_given_a_rest(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(handshake, "_REST_S", 0.05)
    accept = socket.socket.accept
    failures = [OSError(errno.EMFILE, "Too many open files")]

    def failing(listening: socket.socket) -> tuple[socket.socket, object]:
        if failures:
            raise failures.pop()
        return accept(listening)

    monkeypatch.setattr(socket.socket, "accept", failing)

    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(IPV4)
        await _is_echoed(reader, writer, b"there")
        writer.close()

    run(scenario, BEHIND_A_BALANCER)
    assert "connections not accepted listener=tested reason=Too many open files" in caplog.text


def test_stopping_ends_connections_that_are_on_their_way() -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(IPV4[:20])
        (listener,) = running.listeners
        assert isinstance(listener._port, HandshakePort)
        on_their_way = listener._port._under_way
        await running.bridge.until(lambda: len(on_their_way) == 1)
        await running.listeners.stop()
        with contextlib.suppress(ConnectionError):  # where it had not read what came, it resets the connection
            assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        writer.close()

    run(scenario, BEHIND_A_BALANCER)


def test_a_link_that_is_made_in_the_turn_in_which_it_is_dropped_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    ports: list[HandshakePort] = []
    create, open_link = HandshakePort.__init__, NetworkLink._opened

    def created(port: HandshakePort, *arguments: Any, **named: Any) -> None:
        create(port, *arguments, **named)
        ports.append(port)

    def opened(link: NetworkLink) -> None:
        open_link(link)
        ports[0]._drop_oldest()

    monkeypatch.setattr(HandshakePort, "__init__", created)
    monkeypatch.setattr(NetworkLink, "_opened", opened)

    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(LOCAL)
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        await running.bridge.until(lambda: bool(running.bridge.lost_links))
        assert len(running.listeners) == 0
        writer.close()

    run(scenario, BEHIND_A_BALANCER)


def test_connections_that_come_at_once_past_their_number_are_closed() -> None:
    """They are told to end before their turn has come to begin."""

    async def scenario(running: Running) -> None:
        address = ("127.0.0.1", running.port)
        oldest, older, latest = (socket.create_connection(address, PATIENCE_S) for _ in range(3))
        with oldest, older, latest:
            for each in (oldest, older):
                assert await asyncio.to_thread(each.recv, 1) == b""
            latest.sendall(LOCAL + b"there")
            assert await asyncio.to_thread(latest.recv, 5, socket.MSG_WAITALL) == b"there"
        assert running.refused(Limit.WAITING_CONNECTIONS) == 2

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        run(scenario, BEHIND_A_BALANCER, maximum_waiting_connections=1)
    assert [str(each.message) for each in told] == []


# -- IPv6 --------------------------------------------------------------------------------------------------------------


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6 on its loopback")
@pytest.mark.parametrize("rules", [{}, BEHIND_A_BALANCER], ids=["plain", "with a header"])
def test_a_listener_of_ipv6_takes_connections_and_says_their_address_in_brackets(rules: Table) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection("::1", running.port)
        if rules:
            writer.write(LOCAL)
        await _is_echoed(reader, writer, b"there")
        link = await running.only_link()
        assert link.address == "::1"
        assert link.peer.startswith("[::1]:")
        writer.close()

    run(scenario, {"listen": "[::1]:0", **rules})
