"""A long read goes to the bridge in pieces, and others get their turn between them."""

import asyncio
import socket
import statistics
import time
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from gateway.bridge.sessions.sessions import ClientSession
from gateway.listener import TcpLink
from gateway.listener.link import NetworkLink
from gateway.listener.long_reads import LongReads
from tests.gateway.listener.recording_bridge import PATIENCE_S, RecordingBridge
from tests.gateway.listener.running import Running, run
from tests.gateway.listener.test_handshake import BEHIND_A_BALANCER, IPV4
from tests.gateway.listener.websocket_client import BINARY, CLOSE, client_frame, raw_websocket

PIECE_BYTES = 16_384
LONGEST_READ_BYTES = 262_144  # of uvloop
LONG = bytes(range(256)) * 4_000  # a megabyte


@pytest.fixture(autouse=True)
def _every_piece_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.listener.long_reads._TIME_AMONG_THEMSELVES_S", -1.0)
    monkeypatch.setattr("gateway.listener.long_reads._TIME_S", -1.0)


def _watch(bridge: RecordingBridge, watcher: "Watcher") -> None:
    taken = bridge.receive

    def receive(link: NetworkLink, data: bytes) -> None:
        taken(link, data)
        watcher(link, data)

    bridge.receive = receive  # type: ignore[method-assign]  # what is under test calls it


class Watcher:
    """What came, piece by piece, and from whom."""

    def __init__(self) -> None:
        self.pieces: list[tuple[NetworkLink, int]] = []
        self.waiting: list[int] = []

    def __call__(self, link: NetworkLink, data: bytes) -> None:
        self.pieces.append((link, len(data)))
        link.pause_reading()
        link.resume_reading()  # as commits do that end meanwhile
        assert isinstance(link, TcpLink)
        self.waiting.append(len(link._rest))


def test_all_of_it_comes_in_order_and_little_waits() -> None:
    watcher = Watcher()

    async def scenario(running: Running) -> None:
        _watch(running.bridge, watcher)
        await asyncio.to_thread(_send, running.port, LONG)
        await running.bridge.until(lambda: len(running.bridge.received) == len(LONG))
        assert running.bridge.received == LONG

    run(scenario, {}, answers=False)
    assert max(length for _, length in watcher.pieces) <= PIECE_BYTES
    assert max(watcher.waiting) <= LONGEST_READ_BYTES


def test_the_first_piece_of_a_connection_is_a_short_one() -> None:
    """Nobody knows yet how dear it is to read; PINGREQs are, which have two bytes each."""
    watcher = Watcher()

    async def scenario(running: Running) -> None:
        _watch(running.bridge, watcher)
        await asyncio.to_thread(_send, running.port, LONG)
        await running.bridge.until(lambda: len(running.bridge.received) == len(LONG))

    run(scenario, {}, answers=False)
    assert watcher.pieces[0][1] == 2_048


def test_another_client_is_served_between_the_pieces() -> None:
    watcher = Watcher()

    async def scenario(running: Running) -> None:
        other = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", running.port), PATIENCE_S)
        with other:
            other.sendall(b"1")
            other_link = await running.only_link()
            _watch(running.bridge, watcher)
            sender = asyncio.create_task(asyncio.to_thread(_send, running.port, LONG))
            await running.bridge.until(lambda: len(watcher.pieces) > 0)
            other.sendall(b"2")
            await sender
            await running.bridge.until(lambda: len(running.bridge.received) == len(LONG) + 2)
            links = [link for link, _ in watcher.pieces]
            assert links.index(other_link) < len(links) - 2

    run(scenario, {}, answers=False)


@pytest.mark.parametrize("is_closed", [False, True], ids=["all is taken", "closed in the middle"])
def test_what_was_read_before_a_connection_went_is_handed_on_in_pieces_and_the_loss_is_told_once_behind_it(
    is_closed: bool,
) -> None:
    watcher = Watcher()

    async def scenario(running: Running) -> None:
        _watch(running.bridge, watcher)
        client = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", running.port), PATIENCE_S)
        with client:
            client.sendall(b"1")
            link = await running.only_link()
            assert isinstance(link, TcpLink)
            link.data_received(bytes(100_000))
            link.abort()
            await running.bridge.until(lambda: link._transport is None or bool(running.bridge.lost_links))
            if is_closed:
                link.close("no more")
            await running.bridge.until(lambda: running.bridge.lost_links == [link])
            for _ in range(20):
                await asyncio.sleep(0)
        assert running.bridge.lost_links == [link]
        received = len(running.bridge.received) - 1
        assert received < 100_000 if is_closed else received == 100_000

    run(scenario, {}, answers=False)
    assert max(length for _, length in watcher.pieces) <= PIECE_BYTES


def _end_of(link: TcpLink, ending: str) -> None:
    if ending == "closed":
        link.close("no more")
    else:
        link.resume_reading()


@pytest.mark.parametrize("is_lost", [False, True], ids=["there", "gone"])
@pytest.mark.parametrize("ending", ["read again", "closed"])
def test_a_link_that_waits_for_a_commit_hands_nothing_on_until_it_is_read_again(ending: str, is_lost: bool) -> None:
    """What stands behind a CONNECT would otherwise gather, and be carried out in one turn."""
    watcher = Watcher()

    async def scenario(running: Running) -> None:
        client = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", running.port), PATIENCE_S)
        with client:
            client.sendall(b"1")
            link = await running.only_link()
            assert isinstance(link, TcpLink)
            link.pause_reading()
            link.data_received(bytes(100_000))
            if is_lost:
                link.abort()
                await running.bridge.until(lambda: link._transport is None)
            for _ in range(20):
                await asyncio.sleep(0)
            assert (len(running.bridge.received), running.bridge.lost_links) == (1, [])
            _watch(running.bridge, watcher)
            _end_of(link, ending)
            if ending == "read again":
                await running.bridge.until(lambda: len(running.bridge.received) == 100_001)
            if is_lost or ending == "closed":
                await running.bridge.until(lambda: running.bridge.lost_links == [link])
            else:
                client.sendall(b"2")
                await running.bridge.until(lambda: len(running.bridge.received) == 100_002)
        await running.bridge.until(lambda: running.bridge.lost_links == [link])
        for _ in range(20):
            await asyncio.sleep(0)
        assert running.bridge.lost_links == [link]

    run(scenario, {}, answers=False)
    assert all(length <= PIECE_BYTES for _, length in watcher.pieces)


@pytest.mark.parametrize("is_lost", [False, True], ids=["there", "gone"])
def test_a_link_that_is_held_back_hands_on_what_it_has_when_its_peer_has_gone(is_lost: bool) -> None:
    """Its room may come in hours, and its end must be told before."""

    async def scenario(running: Running) -> None:
        client = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", running.port), PATIENCE_S)
        with client:
            client.sendall(b"1")
            link = await running.only_link()
            assert isinstance(link, TcpLink)
            link.pause_publisher()
            link.data_received(bytes(100_000))
            for _ in range(20):
                await asyncio.sleep(0)
            assert len(running.bridge.received) == 1
            if is_lost:
                link.abort()
            else:
                link.resume_publisher()
            await running.bridge.until(lambda: len(running.bridge.received) == 100_001)
        await running.bridge.until(lambda: running.bridge.lost_links == [link])

    run(scenario, {}, answers=False)


def _send(port: int, data: bytes) -> None:
    """Sends all, and waits until the listener has closed the connection too."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""


def _wait_for_turns(
    bridge: RecordingBridge, turns: int, then: Callable[[TcpLink], None] = lambda _link: None
) -> list[str]:
    """The packets of each read take some more turns; `then` happens to the link meanwhile. Returns what happened."""
    happened: list[str] = []
    left = 0
    taken = bridge.receive

    def receive(link: NetworkLink, data: bytes) -> None:
        nonlocal left
        taken(link, data)
        happened.append(data.decode())
        left = turns
        link.wait_for_turn()
        assert isinstance(link, TcpLink)
        then(link)

    def go_on(link: NetworkLink) -> None:
        nonlocal left
        left -= 1
        happened.append("turn" if link.is_open else "turn of a closed link")
        if left:
            link.wait_for_turn()
        bridge.happened.set()

    bridge.receive, bridge.go_on = receive, go_on  # type: ignore[method-assign]
    return happened


def test_a_link_whose_packets_need_more_turns_is_not_read_until_they_are_carried_out() -> None:
    async def scenario(running: Running) -> None:
        happened = _wait_for_turns(running.bridge, 3)
        with await asyncio.to_thread(socket.create_connection, ("127.0.0.1", running.port), PATIENCE_S) as client:
            client.sendall(b"first")
            link = await running.only_link()
            client.sendall(b"second")
            await running.bridge.until(lambda: len(happened) == 8)
            assert happened == ["first", "turn", "turn", "turn", "second", "turn", "turn", "turn"]
        await running.bridge.until(lambda: running.bridge.lost_links == [link])

    run(scenario, {}, answers=False)


@pytest.mark.parametrize(
    ("then", "turns"),
    [
        (lambda _link: None, 20),
        (lambda link: link.abort(), 20),
        (lambda link: link.close("the operator has disconnected the client"), 0),
    ],
    ids=["ended by its client", "broken", "closed by the gateway"],
)
@pytest.mark.parametrize("transport", ["tcp", "websocket"])
def test_a_client_that_goes_while_its_packets_wait_for_a_turn_is_lost_behind_them(
    transport: str, then: Callable[[TcpLink], None], turns: int
) -> None:
    """What it had published at QoS 0 would be lost otherwise, and its DISCONNECT too."""

    async def scenario(running: Running) -> None:
        happened = _wait_for_turns(running.bridge, 20, then)
        lost = running.bridge.lost
        running.bridge.lost = lambda link: (happened.append("lost"), lost(link))  # type: ignore[method-assign]
        if transport == "websocket":
            _, writer = await raw_websocket(running)
            writer.write(client_frame(BINARY, b"last") + client_frame(CLOSE, b"\x03\xe8"))
        else:
            _, writer = await asyncio.open_connection("127.0.0.1", running.port)
            writer.write(b"last")
        writer.close()
        link = await running.only_link()
        await running.bridge.until(lambda: running.bridge.lost_links == [link])
        assert happened == ["last", *turns * ["turn"], "lost"]

    run(scenario, {"transport": transport}, answers=False)


class _Pieces:
    """A long read of some pieces, which writes down when they are taken."""

    def __init__(self, name: str, pieces: int, taken: list[str]) -> None:
        self._name = name
        self._left = pieces
        self._taken = taken

    def hand_on_piece(self) -> bool:
        self._taken.append(self._name)
        self._left -= 1
        return self._left > 0


def test_those_in_line_take_turns_and_one_share_is_for_all_of_them() -> None:
    taken: list[str] = []

    async def scenario() -> None:
        reads = LongReads(lambda: commits.append(len(taken)))
        for name, pieces in (("long", 3), ("short", 1), ("middle", 2)):
            reads.join(_Pieces(name, pieces, taken), b"\xc0\x00\x02")
        for turn in range(1, 7):
            await asyncio.sleep(0)
            assert len(taken) <= turn

    commits: list[int] = []
    asyncio.run(scenario())
    assert taken == ["long", "short", "middle", "long", "middle", "long"]
    assert commits == list(range(len(taken)))  # what others asked for meanwhile is answered before each share


def test_prefixes_take_turns_however_many_connections_each_has() -> None:
    """Else whoever opens fifty connections would have fifty slices for one of a neighbour."""
    taken: list[str] = []

    async def scenario() -> None:
        reads = LongReads(lambda: None)
        for _ in range(50):
            reads.join(_Pieces("swarm", 3, taken), b"\xcb\x00\x71")
        reads.join(_Pieces("alone", 5, taken), b"\xc0\x00\x02")
        while len(taken) < 155:
            await asyncio.sleep(0)
        assert not reads._lines

    asyncio.run(scenario())
    assert taken == [*5 * ["swarm", "alone"], *145 * ["swarm"]]


def test_a_prefix_that_comes_when_its_last_connection_is_served_waits_behind_the_others() -> None:
    """A connection may join while another one is served, also of the prefix whose turn it is."""
    taken: list[str] = []

    class Inviting(_Pieces):
        def hand_on_piece(self) -> bool:
            reads.join(_Pieces("invited", 1, taken), b"\xcb\x00\x71")
            return super().hand_on_piece()

    async def scenario() -> None:
        nonlocal reads
        reads = LongReads(lambda: None)
        reads.join(Inviting("inviting", 2, taken), b"\xcb\x00\x71")
        reads.join(_Pieces("other", 2, taken), b"\xc0\x00\x02")
        while len(taken) < 6:
            await asyncio.sleep(0)

    reads: LongReads
    asyncio.run(scenario())
    assert taken == ["inviting", "other", "invited", "other", "inviting", "invited"]


@pytest.mark.parametrize(
    ("listener", "header", "prefix"),
    [
        ({}, b"", b"\x7f\x00\x00"),
        (BEHIND_A_BALANCER, IPV4, b"\xc0\x00\x02"),
    ],
    ids=["its own", "in the PROXY header"],
)
def test_a_connection_waits_in_the_line_of_its_clients_address(
    listener: dict[str, object], header: bytes, prefix: bytes
) -> None:
    joined: list[bytes] = []

    async def scenario(running: Running) -> None:
        with await asyncio.to_thread(socket.create_connection, ("127.0.0.1", running.port), PATIENCE_S) as client:
            client.sendall(header + b"1")
            link = await running.only_link()
            reads = link._listener.long_reads
            join = reads.join
            reads.join = lambda read, prefix: (joined.append(prefix), join(read, prefix))  # type: ignore[method-assign]
            client.sendall(bytes(5_000))
            await running.bridge.until(lambda: len(running.bridge.received) == 5_001)

    run(scenario, listener, answers=False)
    assert set(joined) == {prefix}


def test_behind_a_pause_of_the_loop_others_are_still_thought_to_send(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that stood still for a second was no silence: what others sent meanwhile has not been read yet."""
    hurried_s, usual_s = -1.0, -2.0
    monkeypatch.setattr("gateway.listener.long_reads._TIME_AMONG_THEMSELVES_S", usual_s)
    times_s: list[float] = []

    class Timed(_Pieces):
        def hand_on_piece(self) -> bool:
            times_s.append(reads.piece_s)
            return super().hand_on_piece()

    reads = LongReads(lambda: None)

    async def scenario() -> None:
        for _ in range(2):
            reads.short_read_s = time.monotonic() - 1
            reads.join(Timed("long", 25, []), b"")
            for _ in range(30):
                await asyncio.sleep(0)

    asyncio.run(scenario())
    assert times_s == 2 * ([hurried_s] * 20 + [usual_s] * 5)


def test_connections_without_a_session_have_a_millisecond_of_a_turn_together() -> None:
    """A thousand of them may send a byte each."""

    async def scenario() -> None:
        reads = LongReads(lambda: None)
        assert [reads.newcomer_waits(now_s) for now_s in (7.0, 7.0009, 7.0011)] == [False, False, True]
        await asyncio.sleep(0)
        assert not reads.newcomer_waits(7.002), "the next turn has its own time"

    asyncio.run(scenario())


def test_only_a_connection_without_a_session_waits_behind_the_time_of_those(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.listener.long_reads._NEWCOMERS_S", -1.0)

    async def scenario(running: Running) -> None:
        bridge = running.bridge
        with await asyncio.to_thread(socket.create_connection, ("127.0.0.1", running.port), PATIENCE_S) as client:
            client.sendall(b"1")
            link = await running.only_link()
            assert isinstance(link, TcpLink)
            link.data_received(b"2")
            assert bridge.received == b"1"
            await bridge.until(lambda: bridge.received == b"12")
            link.session = cast(ClientSession, object())
            link.data_received(b"3")
            link.session = None
            assert bridge.received == b"123"

    run(scenario, {}, answers=False)


class _Broken:
    """A long read with a defect."""

    def hand_on_piece(self) -> bool:
        raise ZeroDivisionError


def test_an_error_in_one_of_those_in_line_is_told_and_the_others_go_on() -> None:
    taken: list[str] = []
    told: list[object] = []

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context["exception"]))
        reads = LongReads(lambda: None)
        reads.join(_Broken(), b"")
        reads.join(_Pieces("other", 2, taken), b"")
        for _ in range(10):
            await asyncio.sleep(0)

    asyncio.run(scenario())
    assert taken == ["other", "other"]
    assert [type(each) for each in told] == [ZeroDivisionError]


def test_a_short_read_waits_in_line_too_where_the_packets_of_its_client_take_long() -> None:
    """It is the read of another client all the same, for which those in line hurry, and a long one is not."""
    watcher = Watcher()
    noticed: list[float] = []

    async def scenario(running: Running) -> None:
        _watch(running.bridge, watcher)
        with await asyncio.to_thread(socket.create_connection, ("127.0.0.1", running.port), PATIENCE_S) as client:
            come = 0
            for length in (600, 600, 2_000):
                client.sendall(bytes(length))
                come += length
                await running.bridge.until(lambda come=come: len(running.bridge.received) == come)
                link = await running.only_link()
                noticed.append(link._listener.long_reads.short_read_s)

    run(scenario, {}, answers=False)
    assert [length for _, length in watcher.pieces][:5] == [600, 300, 150, 128, 22]
    assert noticed[0] < noticed[1] == noticed[2]


@pytest.mark.parametrize(
    ("aim_s", "takes_s", "shortest"), [(0.01, 0.02, 1_024), (0.01, 0.035, 128)], ids=["usual packets", "slow ones"]
)
def test_a_kilobyte_is_cut_shorter_only_where_it_takes_three_times_as_long(
    monkeypatch: pytest.MonkeyPatch, aim_s: float, takes_s: float, shortest: int
) -> None:
    """Each slice is a unit of work: cut shorter than need be, usual messages would cost more."""
    for time_of_slices in ("_TIME_S", "_TIME_AMONG_THEMSELVES_S"):
        monkeypatch.setattr(f"gateway.listener.long_reads.{time_of_slices}", aim_s)
    now_s = 0.0
    monkeypatch.setattr("gateway.listener.tcp.time", SimpleNamespace(monotonic=lambda: now_s))
    watcher = Watcher()

    async def scenario(running: Running) -> None:
        _watch(running.bridge, watcher)
        taken = running.bridge.receive

        def receive(link: NetworkLink, data: bytes) -> None:
            nonlocal now_s
            now_s += takes_s
            taken(link, data)

        running.bridge.receive = receive  # type: ignore[method-assign]
        await asyncio.to_thread(_send, running.port, LONG[:50_000])
        await running.bridge.until(lambda: len(running.bridge.received) == 50_000)

    run(scenario, {}, answers=False)
    # The socket may give the bytes in several reads, each of which ends with a shorter slice.
    ((usual, _),) = Counter(length for _, length in watcher.pieces).most_common(1)
    assert usual == shortest


@pytest.mark.parametrize(("aim_s", "length"), [(-1.0, 128), (3_600.0, 16_384)])
def test_pieces_are_short_where_they_take_long_and_long_where_they_are_quick(
    monkeypatch: pytest.MonkeyPatch, aim_s: float, length: int
) -> None:
    monkeypatch.setattr("gateway.listener.long_reads._TIME_AMONG_THEMSELVES_S", aim_s)
    watcher = Watcher()

    async def scenario(running: Running) -> None:
        _watch(running.bridge, watcher)
        await asyncio.to_thread(_send, running.port, LONG)
        await running.bridge.until(lambda: len(running.bridge.received) == len(LONG))

    run(scenario, {}, answers=False)
    assert statistics.mode(length for _, length in watcher.pieces) == length
