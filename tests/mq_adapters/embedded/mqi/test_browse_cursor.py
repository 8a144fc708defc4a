"""Browsing: first, next, under the cursor, and messages that come and go meanwhile."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.browse_cursor import BrowseCursor
from mq_adapters.embedded.mqi.options import GetOption, MatchOption, OpenOption
from mq_adapters.message import Message
from mq_adapters.reasons import ReasonCode
from tests.mq_adapters.embedded.mqi.program import Program, refused

Connect = Callable[..., Program]
FIRST, NEXT = GetOption.BROWSE_FIRST, GetOption.BROWSE_NEXT
AGAIN, TAKE = GetOption.BROWSE_MSG_UNDER_CURSOR, GetOption.MSG_UNDER_CURSOR


@pytest.fixture
def program(connect: Connect) -> Program:
    return connect()


@pytest.fixture
def queue(program: Program) -> int:
    """A handle for everything, on a queue with the messages 1, 2 and 3."""
    handle = program.open("ORDERS", OpenOption.BROWSE | OpenOption.INPUT_SHARED | OpenOption.OUTPUT)
    for body in (b"1", b"2", b"3"):
        program.put(handle, body)
    return handle


def test_a_cursor_shows_each_message_once_and_takes_none(program: Program, queue: int) -> None:
    assert [program.get(queue, NEXT).data for _ in range(3)] == [b"1", b"2", b"3"]
    assert refused(lambda: program.get(queue, NEXT)) == ReasonCode.MQRC_NO_MSG_AVAILABLE
    assert program.get(queue, FIRST).data == b"1"
    assert [program.get(queue).data for _ in range(3)] == [b"1", b"2", b"3"]


def test_a_cursor_at_the_end_sees_what_arrives(program: Program, queue: int) -> None:
    for _ in range(3):
        program.get(queue, NEXT)
    assert refused(lambda: program.get(queue, NEXT)) == ReasonCode.MQRC_NO_MSG_AVAILABLE
    program.put(queue, b"4")
    assert program.get(queue, NEXT).data == b"4"


def test_a_message_in_front_of_the_cursor_is_not_seen(program: Program, queue: int) -> None:
    for _ in range(3):
        program.get(queue, NEXT)
    program.put(queue, b"urgent", priority=9)
    assert refused(lambda: program.get(queue, NEXT)) == ReasonCode.MQRC_NO_MSG_AVAILABLE
    assert program.get(queue, FIRST).data == b"urgent"


def test_a_message_that_another_took_is_passed_over(program: Program, queue: int, connect: Connect) -> None:
    other = connect()
    handle = other.open("ORDERS", OpenOption.INPUT_SHARED)
    assert program.get(queue, NEXT).data == b"1"
    assert [other.get(handle).data for _ in range(2)] == [b"1", b"2"]
    assert refused(lambda: program.get(queue, AGAIN)) == ReasonCode.MQRC_NO_MSG_UNDER_CURSOR
    assert refused(lambda: program.get(queue, TAKE)) == ReasonCode.MQRC_NO_MSG_UNDER_CURSOR
    assert program.get(queue, NEXT).data == b"3"


def test_the_message_under_the_cursor_is_looked_at_again_and_taken_once(program: Program, queue: int) -> None:
    assert refused(lambda: program.get(queue, TAKE)) == ReasonCode.MQRC_NO_MSG_UNDER_CURSOR
    for _ in range(2):
        shown = program.get(queue, NEXT)
    assert (shown.data, program.get(queue, AGAIN).data, program.get(queue, TAKE).data) == (b"2", b"2", b"2")
    assert refused(lambda: program.get(queue, TAKE)) == ReasonCode.MQRC_NO_MSG_UNDER_CURSOR
    assert program.get(queue, NEXT).data == b"3"


def test_a_message_longer_than_the_buffer_does_not_move_the_cursor(program: Program, queue: int) -> None:
    program.put(queue, b"x" * 50, priority=9)
    short = program.get(queue, NEXT, buffer_bytes=10)
    assert short.reason_code == ReasonCode.MQRC_TRUNCATED_MSG_FAILED
    whole = program.get(queue, NEXT, buffer_bytes=50, match_options=MatchOption.MSG_TOKEN, token=short.token)
    assert whole.data == b"x" * 50
    assert program.get(queue, NEXT).data == b"1"


def test_a_cursor_follows_the_identifiers_of_each_call(program: Program, queue: int) -> None:
    for number in range(4):
        program.put(queue, b"of %d" % (number % 2), correl_id=b"%d" % (number % 2) * 24)
    of_1 = {"match_options": MatchOption.CORREL_ID, "correl_id": b"1" * 24}
    assert [program.get(queue, NEXT, **of_1).data for _ in range(2)] == [b"of 1", b"of 1"]
    assert refused(lambda: program.get(queue, NEXT, **of_1)) == ReasonCode.MQRC_NO_MSG_AVAILABLE
    assert refused(lambda: program.get(queue, NEXT)) == ReasonCode.MQRC_NO_MSG_AVAILABLE
    of_0 = {"match_options": MatchOption.CORREL_ID, "correl_id": b"0" * 24}
    assert program.get(queue, FIRST, **of_0).data == b"of 0"


def test_a_browse_on_a_long_queue_reads_what_it_shows(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    program = connect()
    handle = program.open("ORDERS", OpenOption.BROWSE | OpenOption.OUTPUT)
    for number in range(300):
        program.put(handle, b"%d" % number)
    looked_at: list[int] = []
    browsed = BrowseCursor._browsed

    def counting(cursor: BrowseCursor, *wanted: Any) -> Iterator[Message]:
        for message in browsed(cursor, *wanted):
            looked_at.append(message.sequence)
            yield message

    monkeypatch.setattr(BrowseCursor, "_browsed", counting)
    assert [int(program.get(handle, NEXT).data) for _ in range(150)] == list(range(150))
    token = program.get(handle, NEXT).token
    looked_at.clear()
    program.put(handle, b"300")
    assert program.get(handle, NEXT).data == b"151"
    assert program.get(handle, FIRST, match_options=MatchOption.MSG_TOKEN, token=token).data == b"150"
    assert len(looked_at) < 10


LOCKED = GetOption.BROWSE_NEXT | GetOption.LOCK


def test_a_locked_message_is_hidden_from_others_until_the_cursor_leaves_it(engine: Engine, connect: Connect) -> None:
    holder, other = connect(), connect()
    options = OpenOption.INPUT_SHARED | OpenOption.BROWSE | OpenOption.OUTPUT
    handle, elsewhere = holder.open("ORDERS", options), other.open("ORDERS", options)
    for body in (b"one", b"two"):
        holder.put(handle, body)
    assert holder.get(handle, LOCKED).data == b"one"
    assert holder.get(handle, GetOption.BROWSE_MSG_UNDER_CURSOR).data == b"one"
    assert other.get(elsewhere, GetOption.BROWSE_FIRST).data == b"two"
    assert holder.get(handle, LOCKED).data == b"two"
    assert other.get(elsewhere, GetOption.BROWSE_FIRST).data == b"one"
    assert holder.get(handle, GetOption.MSG_UNDER_CURSOR).data == b"two"
    assert other.get(elsewhere).data == b"one"
    assert engine.queue("ORDERS").depth == 0


@pytest.mark.parametrize("end", ["handle", "connection"])
def test_a_lock_ends_with_its_handle(connect: Connect, end: str) -> None:
    holder, other = connect(), connect()
    handle = holder.open("ORDERS", OpenOption.INPUT_SHARED | OpenOption.BROWSE | OpenOption.OUTPUT)
    holder.put(handle, b"one")
    holder.get(handle, LOCKED)
    elsewhere = other.open("ORDERS", OpenOption.INPUT_SHARED)
    assert refused(lambda: other.get(elsewhere)) == ReasonCode.MQRC_NO_MSG_AVAILABLE
    if end == "handle":
        holder.connection.close(handle)
    else:
        holder.connection.end()
    assert other.get(elsewhere).data == b"one"


def test_only_a_browse_of_a_handle_for_input_locks(connect: Connect) -> None:
    program = connect()
    browsing = program.open("ORDERS", OpenOption.BROWSE)
    both = program.open("ORDERS", OpenOption.BROWSE | OpenOption.INPUT_SHARED)
    assert refused(lambda: program.get(browsing, LOCKED)) == ReasonCode.MQRC_NOT_OPEN_FOR_INPUT
    assert refused(lambda: program.get(both, GetOption.LOCK)) == ReasonCode.MQRC_OPTIONS_ERROR
