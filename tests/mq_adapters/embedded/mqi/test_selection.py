"""Selection strings of MQOPEN: what is refused, and gets, browses and listeners that select."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.getting import Got
from mq_adapters.embedded.mqi.options import GetOption, MatchOption, ObjectKind, OpenOption, PutOption
from mq_adapters.embedded.rights import EVERYTHING
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode
from tests.mq_adapters.embedded.mqi.program import Program, refused, request

Connect = Callable[..., Program]
ALL = OpenOption.BROWSE | OpenOption.INPUT_SHARED
HIGH = "JMS_IBM_Feedback >= 5"


@pytest.mark.parametrize(
    ("selector", "options", "reason_code"),
    [
        ("a =", ALL, ReasonCode.MQRC_SELECTOR_SYNTAX_ERROR),
        ("upper(a) = 'A'", ALL, ReasonCode.MQRC_SELECTION_NOT_AVAILABLE),
        ("a = '" + "é" * 5_200 + "'", ALL, ReasonCode.MQRC_SELECTION_STRING_ERROR),
        ("a = 1", OpenOption.OUTPUT, ReasonCode.MQRC_SELECTOR_INVALID_FOR_TYPE),
        ("a = 1", OpenOption.INQUIRE, ReasonCode.MQRC_SELECTOR_INVALID_FOR_TYPE),
    ],
)
def test_a_selector_that_cannot_be_evaluated_is_refused_at_the_open(
    connect: Connect, selector: str, options: int, reason_code: ReasonCode
) -> None:
    program = connect()
    assert refused(lambda: program.open("ORDERS", options, selector=selector)) == reason_code


def test_a_topic_is_opened_without_a_selector(connect: Connect) -> None:
    program = connect()
    reason_code = refused(lambda: program.open("", OpenOption.OUTPUT, kind=ObjectKind.TOPIC, selector="a = 1"))
    assert reason_code == ReasonCode.MQRC_SELECTOR_INVALID_FOR_TYPE


@pytest.mark.parametrize("selector", ["", " \t"])
def test_an_empty_selector_selects_everything(connect: Connect, selector: str) -> None:
    program = connect()
    queue = program.open("ORDERS", ALL | OpenOption.OUTPUT, selector=selector)
    program.put(queue, b"1")
    assert program.get(queue).data == b"1"


@pytest.fixture
def program(connect: Connect) -> Program:
    """A program, and a queue with messages with feedbacks from 0 to 9 in turns."""
    made = connect()
    handle = made.open("ORDERS", OpenOption.OUTPUT)
    for number in range(300):
        made.put(handle, b"%d" % number, feedback=number % 10)
    return made


def test_gets_take_what_is_selected_and_leave_the_rest(program: Program) -> None:
    queue = program.open("ORDERS", ALL, selector="JMS_IBM_Feedback = 9")
    assert [program.get(queue).data for _ in range(30)] == [b"%d" % number for number in range(9, 300, 10)]
    assert refused(lambda: program.get(queue)) == ReasonCode.MQRC_NO_MSG_AVAILABLE
    every = program.open("ORDERS", ALL)
    assert [program.get(every).data for _ in range(11)] == [b"%d" % number for number in range(12) if number != 9]


def test_a_long_scan_takes_many_turns_and_holds_nobody_up(program: Program) -> None:
    queue = program.open("ORDERS", ALL, selector="JMS_IBM_Feedback > 9")
    assert refused(lambda: program.get(queue)) == ReasonCode.MQRC_NO_MSG_AVAILABLE
    assert program.turns >= 300 // 64
    assert refused(lambda: program.get(queue)) == ReasonCode.MQRC_NO_MSG_AVAILABLE
    assert program.turns == 1


def test_browsing_shows_what_is_selected_in_order(program: Program) -> None:
    queue = program.open("ORDERS", ALL, selector="JMS_IBM_Feedback = 9")
    shown = [program.get(queue, GetOption.BROWSE_NEXT).data for _ in range(30)]
    assert shown == [b"%d" % number for number in range(9, 300, 10)]
    assert refused(lambda: program.get(queue, GetOption.BROWSE_NEXT)) == ReasonCode.MQRC_NO_MSG_AVAILABLE
    assert program.get(queue, GetOption.BROWSE_FIRST).data == b"9"
    assert program.get(queue, GetOption.MSG_UNDER_CURSOR).data == b"9"
    assert program.get(queue, GetOption.BROWSE_NEXT).data == b"19"
    assert program.get(queue, GetOption.BROWSE_MSG_UNDER_CURSOR).data == b"19"
    writer = program.open("ORDERS", OpenOption.OUTPUT)
    program.put(writer, b"new", feedback=9)
    for _ in range(28):
        program.get(queue, GetOption.BROWSE_NEXT)
    assert program.get(queue, GetOption.BROWSE_NEXT).data == b"new"


def test_a_message_that_does_not_fit_stays_selected(program: Program) -> None:
    queue = program.open("ORDERS", ALL, selector=HIGH)
    for options in (GetOption.NO_SYNCPOINT, GetOption.BROWSE_FIRST):
        short = program.get(queue, options, buffer_bytes=0)
        assert (short.reason_code, short.message.body) == (ReasonCode.MQRC_TRUNCATED_MSG_FAILED, b"5")
    by_token: dict[str, Any] = {"match_options": MatchOption.MSG_TOKEN, "token": short.token}
    assert program.get(queue, **by_token).data == b"5"
    assert program.get(queue).data == b"6"


def test_a_token_does_not_open_what_is_not_selected(program: Program) -> None:
    every, high = program.open("ORDERS", ALL), program.open("ORDERS", ALL, selector=HIGH)
    seen = program.get(every, GetOption.BROWSE_FIRST)
    by_token: dict[str, Any] = {"match_options": MatchOption.MSG_TOKEN, "token": seen.token}
    assert refused(lambda: program.get(high, **by_token)) == ReasonCode.MQRC_NO_MSG_AVAILABLE
    assert program.get(every, **by_token).data == b"0"


def test_what_is_backed_out_is_selected_again(program: Program) -> None:
    queue = program.open("ORDERS", ALL, selector=HIGH)
    first = program.get(queue, GetOption.SYNCPOINT)
    second = program.get(queue, GetOption.SYNCPOINT)
    program.connection.back_out()
    again = [program.get(queue) for _ in range(3)]
    assert [got.data for got in again] == [first.data, second.data, b"7"]
    assert again[0].message.backout_count == 1


def test_one_get_is_under_way_at_a_time(program: Program) -> None:
    queue = program.open("ORDERS", ALL, selector="JMS_IBM_Feedback > 9")
    program.connection.get(queue, request(GetOption.NO_SYNCPOINT), lambda _result: None)
    again = refused(lambda: program.connection.get(queue, request(GetOption.NO_SYNCPOINT), lambda _result: None))
    assert again == ReasonCode.MQRC_CALL_IN_PROGRESS


@pytest.mark.parametrize("ending", ["end_wait", "end"])
def test_a_scan_ends_with_its_call_or_its_program(program: Program, ending: str) -> None:
    results: list[Got | QueueManagerError] = []
    queue = program.open("ORDERS", ALL, selector="JMS_IBM_Feedback > 9")
    program.connection.get(queue, request(GetOption.NO_SYNCPOINT), results.append)
    if ending == "end":
        program.connection.end()
    else:
        program.connection.end_wait(ReasonCode.MQRC_Q_MGR_QUIESCING)
    while program.begun:
        program.begun.popleft()()
    reasons = [each.reason_code for each in results if isinstance(each, QueueManagerError)]
    assert reasons == ([] if ending == "end" else [ReasonCode.MQRC_Q_MGR_QUIESCING])


def message(feedback: int) -> Message:
    return Message(MessageDescriptor(feedback=feedback), b"")


def on_a_loop(data_folder: Path, use: Callable[[Engine, Program], Awaitable[None]]) -> None:
    async def run() -> None:
        engine = Engine.open(data_folder, name="RFHB")
        engine.define("ORDERS")
        program = Program(engine, EVERYTHING)
        await use(engine, program)
        program.connection.end()
        engine.close()

    asyncio.run(run())


def test_a_waiting_get_is_woken_by_what_it_selects_alone(data_folder: Path) -> None:
    async def use(engine: Engine, program: Program) -> None:
        results: list[Got | QueueManagerError] = []
        reader, writer = program.open("ORDERS", ALL, selector=HIGH), program.open("ORDERS", OpenOption.OUTPUT)
        program.connection.get(reader, request(GetOption.WAIT, wait_ms=60_000), results.append)
        for feedback in (1, 4, 0):
            program.connection.put(writer, message(feedback), PutOption.NO_SYNCPOINT, lambda: None)
            engine.commit_now()
        assert results == []
        program.connection.put(writer, message(7), PutOption.NO_SYNCPOINT, lambda: None)
        engine.commit_now()
        (got,) = results
        assert isinstance(got, Got)
        assert got.message.descriptor.feedback == 7

    on_a_loop(data_folder, use)


def test_a_wait_that_is_over_while_it_scans_ends_behind_the_scan(data_folder: Path) -> None:
    async def use(engine: Engine, program: Program) -> None:
        results: list[Got | QueueManagerError] = []
        reader, writer = program.open("ORDERS", ALL, selector=HIGH), program.open("ORDERS", OpenOption.OUTPUT)
        program.connection.get(reader, request(GetOption.WAIT, wait_ms=1), results.append)
        for number in range(100):
            program.connection.put(writer, message(number // 99 * 9), PutOption.SYNCPOINT, lambda: None)
        program.connection.commit(lambda: None)
        engine.commit_now()
        assert len(program.begun) == 1
        await asyncio.sleep(0.05)
        assert results == []
        program.begun.popleft()()
        (got,) = results
        assert isinstance(got, Got)
        assert got.message.descriptor.feedback == 9

    on_a_loop(data_folder, use)


def test_a_wait_without_a_message_ends_in_2033(data_folder: Path) -> None:
    async def use(engine: Engine, program: Program) -> None:
        results: list[Got | QueueManagerError] = []
        reader = program.open("ORDERS", ALL, selector=HIGH)
        program.connection.get(reader, request(GetOption.WAIT, wait_ms=1), results.append)
        await asyncio.sleep(0.05)
        assert [each.reason_code for each in results if isinstance(each, QueueManagerError)] == [2033]
        engine.commit_now()

    on_a_loop(data_folder, use)


def test_a_listener_gets_what_it_selects(program: Program) -> None:
    bodies: list[bytes] = []
    failures: list[int] = []
    handle = program.open("ORDERS", ALL, selector="JMS_IBM_Feedback = 9")
    listening = program.connection.listen(
        handle,
        request(GetOption.NO_SYNCPOINT),
        may_get=lambda: True,
        wake=lambda: program.begun.append(listening.go_on),
        deliver=lambda got: bodies.append(got.data),
        failed=lambda error: failures.append(error.reason_code),
    )
    listening.start()
    while program.begun:
        program.begun.popleft()()
    assert bodies == [b"%d" % number for number in range(9, 300, 10)]
    writer = program.open("ORDERS", OpenOption.OUTPUT)
    program.put(writer, b"low", feedback=1)
    program.put(writer, b"high", feedback=9)
    while program.begun:
        program.begun.popleft()()
    assert bodies[30:] == [b"high"]
    assert failures == []
    listening.close()
