"""A socket to a queue manager that answers, falls silent, goes away or lies."""

import gc
import socket
from collections.abc import Callable, Iterator

import pytest

from mq_adapters.client_channel.client import ClientConnection
from mq_adapters.client_channel.client_events import InitialDataAnswered, Replied
from mq_adapters.client_channel.segments import SegmentType
from mq_adapters.native.line import Line
from mq_adapters.native.refusal import Refusal
from tests.mq_adapters.client_channel.test_client import OFFER, answered, reply
from tests.mq_adapters.client_channel.test_server import tshc

HEARTBEAT_ASKED, HEARTBEAT_ANSWER = tshc(0x09, 0x31), tshc(0x09, 0x30)
#: Long enough for a busy machine, where a test does not wait for it to pass.
PATIENCE_S = 60.0


class Peer:
    """The queue manager's end of the socket."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self.end.settimeout(PATIENCE_S)

    def send(self, data: bytes) -> None:
        self.end.sendall(data)

    def took(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            more = self.end.recv(length - len(data))
            assert more, "the client has closed the socket"
            data += more
        return data


@pytest.fixture
def peer_and_line() -> Iterator[tuple[Peer, Line]]:
    """A line whose set-up is over, and whose heartbeats are far apart."""
    ours, theirs = socket.socketpair()
    peer, line = Peer(theirs), Line(ours, ClientConnection(OFFER))
    peer.send(answered())
    assert isinstance(line.ask(line.protocol.begin()), InitialDataAnswered)
    peer.took(28 + 240)
    yield peer, line
    line.close()
    theirs.close()


def lost(call: Callable[[], object], why: str) -> None:
    with pytest.raises(Refusal, match=why) as refused:
        call()
    assert refused.value.reason_code == 2009


def test_a_heartbeat_is_answered_while_a_call_waits(peer_and_line: tuple[Peer, Line]) -> None:
    peer, line = peer_and_line
    data = line.protocol.call(SegmentType.MQCMIT)
    peer.send(HEARTBEAT_ASKED + reply(line.protocol, SegmentType.MQCMIT))
    assert isinstance(line.ask(data), Replied)
    assert peer.took(len(data) + 28) == data + HEARTBEAT_ANSWER


def test_a_silent_queue_manager_is_asked_and_then_given_up(peer_and_line: tuple[Peer, Line]) -> None:
    peer, line = peer_and_line
    line.begin_heartbeats(0.05)
    data = line.protocol.call(SegmentType.MQCMIT)
    lost(lambda: line.ask(data), "does not answer")
    assert HEARTBEAT_ASKED in peer.took(len(data) + 28)
    lost(lambda: line.tell(b""), "does not answer")


def test_heartbeats_without_an_answer_do_not_wait_for_ever(peer_and_line: tuple[Peer, Line]) -> None:
    peer, line = peer_and_line
    data = line.protocol.call(SegmentType.MQCMIT)
    peer.send(HEARTBEAT_ASKED * 10)
    lost(lambda: line.ask(data, limit_s=0.1), "does not answer")


@pytest.mark.parametrize("is_in_call", [False, True])
def test_a_queue_manager_that_goes_away_is_2009(peer_and_line: tuple[Peer, Line], is_in_call: bool) -> None:
    peer, line = peer_and_line
    if not is_in_call:
        peer.end.close()
    else:
        peer.end.shutdown(socket.SHUT_WR)
    lost(lambda: line.ask(line.protocol.call(SegmentType.MQCMIT)), "closed|Broken pipe|reset")


def test_a_queue_manager_that_lies_is_told_so_and_given_up(peer_and_line: tuple[Peer, Line]) -> None:
    peer, line = peer_and_line
    data = line.protocol.call(SegmentType.MQCMIT)
    peer.send(reply(line.protocol, SegmentType.MQBACK))
    lost(lambda: line.ask(data), "broke the protocol")
    assert peer.took(len(data) + 36)[len(data) :].startswith(b"TSHC")


def test_between_calls_heartbeats_go_out_and_come_back(peer_and_line: tuple[Peer, Line]) -> None:
    peer, line = peer_and_line
    peer.send(HEARTBEAT_ANSWER)
    assert line.beat()
    assert peer.took(28) == HEARTBEAT_ASKED


def test_a_storm_of_heartbeats_between_calls_is_answered_as_it_comes(peer_and_line: tuple[Peer, Line]) -> None:
    peer, line = peer_and_line
    peer.send(HEARTBEAT_ASKED * 50 + HEARTBEAT_ANSWER)
    assert line.beat()
    assert peer.took(28 * 51) == HEARTBEAT_ASKED + HEARTBEAT_ANSWER * 50
    assert not line._events


def test_a_heartbeat_between_calls_notices_that_the_queue_manager_has_gone(peer_and_line: tuple[Peer, Line]) -> None:
    peer, line = peer_and_line
    peer.end.close()
    assert not line.beat()
    assert line.protocol.is_closed
    lost(lambda: line.tell(b""), "closed|Broken pipe|reset")


def test_a_line_that_is_forgotten_closes_its_socket() -> None:
    ours, theirs = socket.socketpair()
    peer, line = Peer(theirs), Line(ours, ClientConnection(OFFER))
    peer.send(answered())
    line.ask(line.protocol.begin())
    peer.took(28 + 240)
    line.begin_heartbeats(3_600)
    del line
    gc.collect()
    assert peer.end.recv(1) == b""
    theirs.close()


def test_heartbeats_begin_by_themselves(peer_and_line: tuple[Peer, Line]) -> None:
    peer, line = peer_and_line
    peer.send(HEARTBEAT_ANSWER * 100)
    line.begin_heartbeats(0.2)
    assert peer.took(28) == HEARTBEAT_ASKED
    line.close(line.protocol.goodbye())
    lost(lambda: line.tell(b""), "closed|does not answer")
