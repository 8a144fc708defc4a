"""The listener on a real socket of the loopback, with a bridge that only writes down what it is told."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
import uvloop

from gateway.bridge.bridge import Bridge
from gateway.config.limits import Limit
from gateway.listener import Listener, ListenerRules, TcpLink
from gateway.listener.link import NetworkLink
from gateway.listener.long_reads import LongReads
from tests.gateway.listener.recording_bridge import RecordingBridge
from tests.reason_strings import plain

Scenario = Callable[[Listener, RecordingBridge, int], Awaitable[None]]


def _new_listener(bridge: RecordingBridge, *, maximum_connections: int, maximum_unsent_bytes: int) -> Listener:
    rules = ListenerRules(
        maximum_connections=maximum_connections,
        maximum_packet_bytes=1_000,
        maximum_unsent_bytes=maximum_unsent_bytes,
        connect_timeout_s=10.0,
        levels=frozenset({3, 4, 5}),
    )
    return Listener(cast(Bridge, bridge), rules, long_reads=LongReads(bridge.commit_now))


async def _stop(listener: Listener) -> None:
    listener.close_port()
    listener.close_links()
    await asyncio.sleep(0)
    await listener.abort_links()


def _run(scenario: Scenario, *, maximum_connections: int = 10, maximum_unsent_bytes: int = 65_536) -> None:
    """Plays a scenario against a listener on a free port, on the event loop that the gateway uses."""

    async def main() -> None:
        bridge = RecordingBridge()
        listener = _new_listener(
            bridge, maximum_connections=maximum_connections, maximum_unsent_bytes=maximum_unsent_bytes
        )
        port = await listener.start("127.0.0.1", 0)
        assert port > 0
        try:
            await scenario(listener, bridge, port)
        finally:
            await _stop(listener)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


async def _link(bridge: RecordingBridge, port: int) -> tuple[NetworkLink, asyncio.StreamReader, asyncio.StreamWriter]:
    """A connected client, and the link that the listener made for it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    known = len(bridge.links)
    writer.write(b"x")
    await bridge.until(lambda: len(bridge.links) > known)
    return bridge.links[-1], reader, writer


def test_the_system_looks_for_peers_that_have_gone_without_a_word() -> None:
    """A client with keep alive 0 sends no PINGREQ."""

    async def scenario(_listener: Listener, bridge: RecordingBridge, port: int) -> None:
        link, _, writer = await _link(bridge, port)
        assert isinstance(link, TcpLink)
        assert link._transport is not None
        connected = link._transport.get_extra_info("socket")
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        writer.close()

    _run(scenario)


def test_bytes_go_to_the_bridge_and_answers_to_the_client() -> None:
    async def scenario(_listener: Listener, bridge: RecordingBridge, port: int) -> None:
        link, reader, writer = await _link(bridge, port)
        writer.write(b"yz")
        await bridge.until(lambda: bridge.received == b"xyz")
        assert bridge.calls <= 2
        assert link.peer.startswith("127.0.0.1:")
        link.send(b"answer")
        assert await reader.readexactly(6) == b"answer"
        writer.close()
        await bridge.until(lambda: bridge.lost_links == [link])
        assert not link.is_open
        link.send(b"too late, and no error")

    _run(scenario)


def test_what_was_sent_before_a_close_arrives() -> None:
    async def scenario(_listener: Listener, bridge: RecordingBridge, port: int) -> None:
        link, reader, writer = await _link(bridge, port)
        link.send(b"last words")
        link.close("because")
        link.close("because again")
        assert await reader.read() == b"last words"
        writer.close()
        await bridge.until(lambda: bridge.lost_links == [link])

    _run(scenario)


def test_a_connection_too_many_is_read_until_its_connect_can_be_refused() -> None:
    async def scenario(_listener: Listener, bridge: RecordingBridge, port: int) -> None:
        link, _, writer = await _link(bridge, port)
        assert link.is_admitted
        second, reader, second_writer = await _link(bridge, port)
        refusal = bridge.admission.connect_received(second)
        assert refusal is not None
        assert refusal.limit is Limit.CONNECTIONS_OF_LISTENER
        second.close("")
        assert await reader.read() == b""
        second_writer.close()
        writer.close()
        await bridge.until(lambda: link in bridge.lost_links)
        third, _, writer = await _link(bridge, port)
        assert third.is_admitted
        writer.close()

    _run(scenario, maximum_connections=1)


def test_a_paused_link_is_not_read() -> None:
    async def scenario(_listener: Listener, bridge: RecordingBridge, port: int) -> None:
        link, reader, writer = await _link(bridge, port)
        link.pause_reading()
        link.pause_reading()
        writer.write(b"later")
        await writer.drain()
        link.send(b"still here")
        await reader.readexactly(10)
        assert bridge.received == b"x"
        link.resume_reading()
        link.resume_reading()
        await bridge.until(lambda: bridge.received == b"xlater")
        writer.close()

    _run(scenario)


def test_a_peer_that_does_not_read_cannot_be_sent_more_until_it_does() -> None:
    async def scenario(_listener: Listener, bridge: RecordingBridge, port: int) -> None:
        link, reader, writer = await _link(bridge, port)
        sent = 0
        while link.can_send:
            link.send(bytes(65_536))
            sent += 65_536
            await asyncio.sleep(0)
        assert bridge.resumed_links == []
        assert len(await reader.readexactly(sent)) == sent
        await bridge.until(lambda: bridge.resumed_links == [link])
        assert bridge.resumed_links[0].can_send
        writer.close()

    _run(scenario)


class FakeTransport(asyncio.Transport):
    """Knows whether it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True


@pytest.mark.parametrize("bridge_is_first", [True, False])
def test_a_peer_that_takes_no_answers_is_not_read_and_neither_reason_undoes_the_other(bridge_is_first: bool) -> None:
    """Its questions would be answered into memory; and the bridge may have paused it for its own reason."""
    bridge = RecordingBridge()
    listener = _new_listener(bridge, maximum_connections=1, maximum_unsent_bytes=1)
    link, transport = TcpLink(listener), FakeTransport()
    link.connection_made(transport)
    link.pause_writing()
    assert (transport.is_read, link.can_send) == (False, False)
    link.resume_writing()
    assert (transport.is_read, link.can_send) == (True, True)
    link.pause_reading()
    link.pause_writing()
    first, second = (link.resume_reading, link.resume_writing)[:: 1 if bridge_is_first else -1]
    first()
    assert not transport.is_read
    second()
    assert transport.is_read


@pytest.mark.parametrize("room_is_first", [True, False])
def test_a_publisher_that_is_held_back_is_read_when_both_reasons_are_gone(room_is_first: bool) -> None:
    """There may be no room at its target, and commits may be under way."""
    bridge = RecordingBridge()
    listener = _new_listener(bridge, maximum_connections=1, maximum_unsent_bytes=1)
    link, transport = TcpLink(listener), FakeTransport()
    link.connection_made(transport)
    link.pause_publisher()
    link.pause_reading()
    assert not transport.is_read
    first, second = (link.resume_publisher, link.resume_reading)[:: 1 if room_is_first else -1]
    first()
    assert not transport.is_read
    second()
    assert transport.is_read


def test_a_publisher_that_is_held_back_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway does not read it, so it has its whole keep-alive time again when it is read."""

    async def scenario(listener: Listener, bridge: RecordingBridge, port: int) -> None:
        link, reader, writer = await _link(bridge, port)
        link.connection.receive_data(bytes.fromhex("10 0E 0004 4D515454 04 02 003C 0002 6331"))
        link.accepted_s = 1e9
        began_s = link.silence.since_s
        link.pause_publisher()
        monkeypatch.setattr(time, "monotonic", lambda: began_s + 3_600.0)
        list(listener.tick())
        assert link.is_open
        link.resume_publisher()
        monkeypatch.setattr(time, "monotonic", lambda: began_s + 3_690.0)
        list(listener.tick())
        assert link.is_open
        monkeypatch.setattr(time, "monotonic", lambda: began_s + 3_690.1)
        list(listener.tick())
        monkeypatch.undo()
        assert await reader.read() == b""
        writer.close()

    _run(scenario)


def test_client_that_is_not_read_while_commits_are_under_way_is_not_taken_for_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(listener: Listener, bridge: RecordingBridge, port: int) -> None:
        link, _, writer = await _link(bridge, port)
        link.connection.receive_data(bytes.fromhex("10 0E 0004 4D515454 04 02 003C 0002 6331"))
        link.accepted_s = 1e9
        began_s = link.silence.since_s
        link.pause_reading()
        for at_s, act in ((91.0, link.resume_reading), (180.0, lambda: None)):
            monkeypatch.setattr(time, "monotonic", lambda at_s=at_s: began_s + at_s)
            list(listener.tick())
            assert link.is_open
            act()
        monkeypatch.setattr(time, "monotonic", lambda: began_s + 181.1)
        list(listener.tick())
        assert not link.is_open
        monkeypatch.undo()
        writer.close()

    _run(scenario)


def test_silence_is_measured_by_the_keep_alive_of_the_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    """CONNECT with a keep-alive of 60 s: 90 s later the link is still open, a moment after that it is closed."""

    async def scenario(listener: Listener, bridge: RecordingBridge, port: int) -> None:
        link, reader, writer = await _link(bridge, port)
        link.connection.receive_data(bytes.fromhex("10 0E 0004 4D515454 04 02 003C 0002 6331"))
        link.accepted_s = 1e9
        began_s = link.silence.since_s
        monkeypatch.setattr(time, "monotonic", lambda: began_s + 90.0)
        list(listener.tick())
        assert link.is_open
        monkeypatch.setattr(time, "monotonic", lambda: began_s + 90.1)
        list(listener.tick())
        monkeypatch.undo()
        assert await reader.read() == b""
        writer.close()

    _run(scenario)


def test_a_link_without_connect_is_closed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(listener: Listener, bridge: RecordingBridge, port: int) -> None:
        link, reader, writer = await _link(bridge, port)
        began_s = link.accepted_s
        monkeypatch.setattr(time, "monotonic", lambda: began_s + 9.9)
        list(listener.tick())
        assert link.is_open
        monkeypatch.setattr(time, "monotonic", lambda: began_s + 10.1)
        list(listener.tick())
        monkeypatch.undo()
        assert await reader.read() == b""
        writer.close()

    _run(scenario)


def test_a_closed_link_whose_peer_takes_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(listener: Listener, bridge: RecordingBridge, port: int) -> None:
        link, _, writer = await _link(bridge, port)
        while link.can_send:
            link.send(bytes(65_536))
            await asyncio.sleep(0)
        link.close("because")
        list(listener.tick())
        assert bridge.lost_links == []
        closed_s = link.closed_s
        monkeypatch.setattr(time, "monotonic", lambda: closed_s + 2.1)
        list(listener.tick())
        monkeypatch.undo()
        await bridge.until(lambda: bridge.lost_links == [link])
        writer.transport.abort()

    _run(scenario)


def test_stopping_closes_the_port_and_every_link() -> None:
    async def scenario(listener: Listener, bridge: RecordingBridge, port: int) -> None:
        links = [await _link(bridge, port) for _ in range(3)]
        await _stop(listener)
        for _, reader, writer in links:
            assert await reader.read() == b""
            writer.close()
        with pytest.raises(OSError, match=r"[Rr]efused|[Cc]onnect"):
            await asyncio.open_connection("127.0.0.1", port)

    _run(scenario)


def test_an_address_in_use_is_an_oserror() -> None:
    async def scenario(_listener: Listener, bridge: RecordingBridge, port: int) -> None:
        second = _new_listener(bridge, maximum_connections=1, maximum_unsent_bytes=1)
        with pytest.raises(OSError, match="in use"):
            await second.start("127.0.0.1", port)

    _run(scenario)


@pytest.mark.parametrize(
    ("connect", "answer"),
    [
        ("10 0E 0004 4D515454 04 02 003C 0002 6331", "20 02 00 03"),
        ("10 0F 0004 4D515454 05 02 003C 00 0002 6331", "20 03 00 89 00"),
        ("10 0E 0004 4D51", ""),
    ],
    ids=["3.1.1", "5", "no CONNECT"],
)
def test_a_client_whose_login_takes_too_long_is_told_that_the_gateway_is_busy(
    monkeypatch: pytest.MonkeyPatch, connect: str, answer: str
) -> None:
    """MQTT 3.1.1 section 3.2.2.3, MQTT 5.0 section 3.2.2.2; nothing is sent in front of a CONNECT."""

    async def scenario(listener: Listener, bridge: RecordingBridge, port: int) -> None:
        link, reader, writer = await _link(bridge, port)
        link.connection.receive_data(bytes.fromhex(connect))
        monkeypatch.setattr(time, "monotonic", lambda: link.accepted_s + 10.1)
        list(listener.tick())
        monkeypatch.undo()
        assert plain(await asyncio.wait_for(reader.read(), 20)) == bytes.fromhex(answer)
        writer.close()

    _run(scenario)
