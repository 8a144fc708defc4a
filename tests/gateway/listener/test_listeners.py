"""All listeners of a configuration together."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest
import uvloop

from gateway.bridge.bridge import Bridge
from gateway.config import Address, ConfigurationError, Settings
from gateway.listener import Listeners, OpenListener
from gateway.listener.link import NetworkLink
from gateway.mqtt.outgoing_flows import OutgoingFlows
from tests.certificate_authority import Authority
from tests.gateway.listener.recording_bridge import RecordingBridge

PATIENCE_S = 60.0
PLAIN = {"name": "plain", "listen": "127.0.0.1:0"}
WEB = {"name": "web", "listen": "127.0.0.1:0", "transport": "websocket"}

Scenario = Callable[[Listeners, RecordingBridge, tuple[OpenListener, ...]], Awaitable[None]]


def _run(scenario: Scenario, *listeners: dict[str, object], **mqtt: object) -> None:
    async def main() -> None:
        settings = Settings.model_validate({"listen": "127.0.0.1:0", "listener": list(listeners), "mqtt": mqtt})
        bridge = RecordingBridge(limits=settings.mqtt)
        opened = Listeners(cast(Bridge, bridge), settings)
        try:
            await scenario(opened, bridge, await opened.start())
        finally:
            await opened.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def test_every_listener_has_its_rules_and_its_links_know_them() -> None:
    async def scenario(_listeners: Listeners, bridge: RecordingBridge, opened: tuple[OpenListener, ...]) -> None:
        assert [(each.name, each.transport) for each in opened] == [
            ("default", "tcp"),
            ("plain", "tcp"),
            ("web", "websocket"),
        ]
        for count, each in enumerate(opened[:2], start=1):
            _, writer = await asyncio.open_connection("127.0.0.1", each.address.port)
            writer.write(b"x")
            await bridge.until(lambda expected=count: len(bridge.links) == expected)
            writer.close()
        default, plain = bridge.links
        assert (default.rules.name, default.rules.levels) == ("default", {3, 4, 5})
        assert (plain.rules.name, plain.rules.levels, plain.rules.allows_anonymous) == ("plain", {4}, False)
        assert default.rules.allows_anonymous is None

    _run(scenario, {**PLAIN, "versions": ["3.1.1"], "anonymous": False}, WEB)


@pytest.mark.parametrize(("at_once", "turns"), [(1, 16), (4, 4), (16, 1)])
def test_the_look_at_connections_takes_some_of_them_in_each_turn_of_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, at_once: int, turns: int
) -> None:
    """Five connections, each of which is looked at for its silence, what it does not take and what it has begun.

    One turn more comes first, in which everybody is read.
    """
    monkeypatch.setattr("gateway.listener.listeners._LOOKED_AT_ONCE", at_once)

    async def scenario(listeners: Listeners, bridge: RecordingBridge, opened: tuple[OpenListener, ...]) -> None:
        writers = []
        for _ in range(5):
            _, writer = await asyncio.open_connection("127.0.0.1", opened[len(writers) % 2].address.port)
            writer.write(b"x")
            writers.append(writer)
        await bridge.until(lambda: len(bridge.links) == 5)
        loop, passed = asyncio.get_running_loop(), -1

        def passes() -> None:
            nonlocal passed
            passed += 1
            loop.call_soon(passes)

        passes()
        await listeners.tick()
        assert passed == turns
        for writer in writers:
            writer.close()

    _run(scenario, PLAIN)


def test_who_sent_something_while_the_gateway_was_held_up_is_not_taken_for_silent() -> None:
    """As after the machine has been suspended: the time is over, and a PINGREQ has come and was not read."""

    async def scenario(listeners: Listeners, bridge: RecordingBridge, opened: tuple[OpenListener, ...]) -> None:
        with socket.create_connection(("127.0.0.1", opened[0].address.port)) as client:
            client.send(b"x")
            await bridge.until(lambda: bool(bridge.links))
            (link,) = bridge.links
            _open(link)
            link.silence.since_s -= 91.0  # its keep-alive is 60 s
            client.send(bytes.fromhex("C0 00"))
            await listeners.tick()
            assert link.is_open
            link.silence.since_s -= 91.0
            await listeners.tick()
            assert not link.is_open

    _run(scenario, PLAIN)


def test_silence_ends_on_time_and_not_with_the_next_look_at_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at everybody once a second would be up to a second late. Who sends a packet meanwhile stays."""

    async def scenario(listeners: Listeners, bridge: RecordingBridge, opened: tuple[OpenListener, ...]) -> None:
        port = opened[0].address.port
        with socket.create_connection(("127.0.0.1", port)) as one, socket.create_connection(("127.0.0.1", port)) as two:
            one.send(b"x")
            await bridge.until(lambda: len(bridge.links) == 1)
            two.send(b"x")
            await bridge.until(lambda: len(bridge.links) == 2)
            silent, pinging = bridge.links
            now_s = time.monotonic()
            for link in bridge.links:
                _open(link)
                link.silence.since_s = now_s
            monkeypatch.setattr(time, "monotonic", lambda: now_s + 89.5)
            await listeners.tick()
            pinging.silence.end(now_s + 89.7)
            for at_s, are_open in ((89.9, [True, True]), (90.01, [False, True]), (179.6, [False, True])):
                monkeypatch.setattr(time, "monotonic", lambda at_s=at_s: now_s + at_s)
                await listeners.end_silence()
                assert [link.is_open for link in (silent, pinging)] == are_open
            monkeypatch.setattr(time, "monotonic", lambda: now_s + 179.65)
            await listeners.tick()
            assert pinging.is_open
            monkeypatch.setattr(time, "monotonic", lambda: now_s + 179.71)
            await listeners.end_silence()
            assert not pinging.is_open
            monkeypatch.undo()

    _run(scenario, PLAIN)


def test_bytes_of_a_packet_that_makes_no_progress_do_not_end_the_silence() -> None:
    async def scenario(listeners: Listeners, bridge: RecordingBridge, opened: tuple[OpenListener, ...]) -> None:
        with socket.create_connection(("127.0.0.1", opened[0].address.port)) as client:
            client.send(b"x")
            await bridge.until(lambda: bool(bridge.links))
            (link,) = bridge.links
            _open(link)
            for part, is_open in (
                (bytes.fromhex("30 C0843D 0001 61"), True),  # a PUBLISH of a million bytes begins
                (bytes(900), False),
            ):
                link.silence.since_s -= 91.0 * (not is_open)
                received = len(bridge.received)
                client.send(part)
                await bridge.until(lambda received=received: len(bridge.received) > received)
                await listeners.tick()
                assert link.is_open is is_open

    _run(scenario, PLAIN)


def test_large_packet_that_makes_progress_ends_the_silence() -> None:
    """Its client cannot send PINGREQ inside it."""

    async def scenario(listeners: Listeners, bridge: RecordingBridge, opened: tuple[OpenListener, ...]) -> None:
        with socket.create_connection(("127.0.0.1", opened[0].address.port)) as client:
            client.send(b"x")
            await bridge.until(lambda: bool(bridge.links))
            (link,) = bridge.links
            _open(link)
            for part in (bytes.fromhex("30 C0843D 0001 61"), bytes(1_000), bytes(10_000)):
                link.silence.since_s -= 91.0 * (len(part) > 999)
                due = len(bridge.received) + len(part)
                client.send(part)
                await bridge.until(lambda due=due: len(bridge.received) >= due)
                await listeners.tick()
                assert link.is_open

    _run(scenario, PLAIN)


def _open(link: NetworkLink) -> None:
    """As a CONNECT with a keep-alive of 60 s does it that was accepted."""
    link.connection.receive_data(bytes.fromhex("10 0E 0004 4D515454 04 02 003C 0002 6331"))
    link.connection.attach(OutgoingFlows("c1", clean_session=True))
    link.accepted_s += 3_600.0


def test_a_listener_that_is_full_leaves_room_at_the_others() -> None:
    async def scenario(_listeners: Listeners, bridge: RecordingBridge, opened: tuple[OpenListener, ...]) -> None:
        writers = []
        for each in (opened[1], opened[1], opened[0]):
            _, writer = await asyncio.open_connection("127.0.0.1", each.address.port)
            writer.write(b"x")
            writers.append(writer)
            await bridge.until(lambda: len(bridge.links) == len(writers))
        assert [link.is_admitted for link in bridge.links] == [True, False, True]
        for writer in writers:
            writer.close()

    _run(scenario, {**PLAIN, "maximum_connections": 1})


def test_an_address_that_is_taken_is_named_with_its_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        async def scenario(*_arguments: object) -> None:
            pytest.fail("it was opened")

        with pytest.raises(ConfigurationError, match=f"listener plain: {address} cannot be opened: address already in"):
            _run(scenario, {**PLAIN, "listen": address})
        with pytest.raises(ConfigurationError, match=f"listener web: {address} cannot be opened: address already in"):
            _run(scenario, {**WEB, "listen": address, "proxy_protocol": True})


@pytest.mark.parametrize("host", ["192.0.2.1", "nobody.invalid"])
def test_an_address_of_another_machine_is_told_with_what_to_write(host: str) -> None:
    async def scenario(*_arguments: object) -> None:
        pytest.fail("it was opened")

    with pytest.raises(ConfigurationError, match=rf"{host}:1883 cannot be opened: .*\(HOST must be an address of this"):
        _run(scenario, {**PLAIN, "listen": f"{host}:1883"})


def test_a_certificate_that_is_wrong_stops_the_start_and_one_that_has_expired_does_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("late", days=-1)
    _, other = authority.issue("other")

    async def scenario(*_arguments: object) -> None:
        pass

    _run(scenario, {**PLAIN, "tls": {"certificate": str(certificate), "key": str(key)}})
    assert "problem=expired on 20" in caplog.text
    with pytest.raises(ConfigurationError, match=r"other\.key: is not the key"):
        _run(scenario, {**PLAIN, "tls": {"certificate": str(certificate), "key": str(other)}})


def test_stopping_closes_every_port_and_every_link() -> None:
    async def scenario(listeners: Listeners, bridge: RecordingBridge, opened: tuple[OpenListener, ...]) -> None:
        readers = []
        for each in opened:
            reader, writer = await asyncio.open_connection("127.0.0.1", each.address.port)
            writer.write(b"G")  # of GET
            readers.append((reader, writer))
        await bridge.until(lambda: len(bridge.links) == 2)
        await listeners.stop()
        assert len(listeners) == 0
        for reader, writer in readers:
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
            writer.close()
        for each in opened:
            with pytest.raises(OSError, match=r"[Rr]efused|[Cc]onnect"):
                await asyncio.open_connection("127.0.0.1", each.address.port)

    _run(scenario, PLAIN, WEB)


@pytest.mark.parametrize(
    ("name", "transport", "announcement"),
    [
        ("default", "tcp", "rfhbridge listens on [::1]:1883"),
        ("field", "tls", "rfhbridge listens on [::1]:1883 (tls, listener field)"),
        ("panel", "secure websocket", "rfhbridge listens on [::1]:1883 (secure websocket, listener panel)"),
    ],
)
def test_the_listener_of_listen_is_announced_without_a_name(name: str, transport: str, announcement: str) -> None:
    opened = OpenListener(name=name, address=Address(host="::1", port=1883), transport=transport)
    assert opened.announcement == announcement
