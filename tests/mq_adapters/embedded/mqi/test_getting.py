"""MQGET: matching, waiting, truncation, conversion."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.data_conversion import wanted_format
from mq_adapters.embedded.mqi.getting import Got
from mq_adapters.embedded.mqi.options import GetOption, MatchOption, OpenOption, PutOption
from mq_adapters.embedded.rights import EVERYTHING
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode
from tests.mq_adapters.embedded.mqi.program import Program, refused, request

Connect = Callable[..., Program]
BOTH_WAYS = OpenOption.OUTPUT | OpenOption.INPUT_SHARED


def test_identifiers_match_and_zeros_match_everything(connect: Connect) -> None:
    program = connect()
    queue = program.open("ORDERS", BOTH_WAYS)
    for letter in (b"A", b"B", b"C"):
        program.put(queue, letter, correl_id=letter * 24, msg_id=letter * 24)
    by_correl_id = program.get(queue, match_options=MatchOption.CORREL_ID, correl_id=b"B" * 24)
    by_msg_id = program.get(queue, match_options=MatchOption.MSG_ID | MatchOption.CORREL_ID, msg_id=b"C" * 24)
    assert (by_correl_id.data, by_msg_id.data, program.get(queue).data) == (b"B", b"C", b"A")


def test_a_message_that_is_too_long_stays_and_can_be_asked_for_by_its_token(connect: Connect) -> None:
    program = connect()
    queue = program.open("ORDERS", BOTH_WAYS)
    for body in (b"x" * 50, b"other"):
        program.put(queue, body)
    short = program.get(queue, buffer_bytes=10)
    assert (short.reason_code, short.data) == (ReasonCode.MQRC_TRUNCATED_MSG_FAILED, b"x" * 10)
    whole = program.get(queue, buffer_bytes=50, match_options=MatchOption.MSG_TOKEN, token=short.token)
    assert (whole.reason_code, whole.data) == (ReasonCode.MQRC_NONE, b"x" * 50)
    again = {"match_options": MatchOption.MSG_TOKEN, "token": short.token}
    assert refused(lambda: program.get(queue, **again)) == ReasonCode.MQRC_NO_MSG_AVAILABLE
    assert program.get(queue).data == b"other"


@pytest.mark.parametrize("token", [bytes(16), b"\xff" * 16, b"RFHBRIDG" + b"\xff" * 8])
def test_a_token_that_nobody_got_finds_nothing(connect: Connect, token: bytes) -> None:
    program = connect()
    queue = program.open("ORDERS", BOTH_WAYS)
    program.put(queue, b"there")
    wanted = {"match_options": MatchOption.MSG_TOKEN, "token": token}
    assert refused(lambda: program.get(queue, **wanted)) == ReasonCode.MQRC_NO_MSG_AVAILABLE


def test_a_program_that_accepts_truncation_takes_the_message(connect: Connect) -> None:
    program = connect()
    queue = program.open("ORDERS", BOTH_WAYS)
    program.put(queue, b"x" * 50)
    got = program.get(queue, GetOption.ACCEPT_TRUNCATED_MSG, buffer_bytes=10)
    assert (got.reason_code, len(got.data), len(got.message.body)) == (ReasonCode.MQRC_TRUNCATED_MSG_ACCEPTED, 10, 50)
    assert refused(lambda: program.get(queue)) == ReasonCode.MQRC_NO_MSG_AVAILABLE


def test_a_message_that_no_descriptor_can_say_stays(connect: Connect, engine: Engine) -> None:
    program = connect()
    handle = program.open("ORDERS", OpenOption.INPUT_SHARED)
    unit, queue = engine.begin(), engine.queue("ORDERS")
    engine.put(unit, queue, Message(MessageDescriptor(user_identifier="longer than twelve"), b"kept"))
    engine.submit(unit)
    for options in (GetOption.NO_SYNCPOINT, GetOption.SYNCPOINT):
        assert refused(lambda each=options: program.get(handle, each)) == ReasonCode.MQRC_MD_ERROR  # type: ignore[misc]
    program.connection.back_out()
    assert (queue.depth, [each.body for each in engine.browse(queue)]) == (1, [b"kept"])


def test_syncpoint_if_persistent_leaves_other_messages_outside_the_unit(connect: Connect) -> None:
    program = connect()
    queue = program.open("ORDERS", BOTH_WAYS)
    program.put(queue, b"kept", persistence=1)
    program.put(queue, b"gone", persistence=0)
    for _ in range(2):
        program.get(queue, GetOption.SYNCPOINT_IF_PERSISTENT)
    program.connection.back_out()
    assert program.get(queue).data == b"kept"
    assert refused(lambda: program.get(queue)) == ReasonCode.MQRC_NO_MSG_AVAILABLE


@pytest.mark.parametrize(
    "options",
    [
        GetOption.SYNCPOINT | GetOption.NO_SYNCPOINT,
        GetOption.LOCK,
        GetOption.MARK_SKIP_BACKOUT,
        GetOption.SET_SIGNAL,
        GetOption.ALL_MSGS_AVAILABLE,
        0x4000_0000,
    ],
)
def test_options_that_nobody_carries_out_are_refused(connect: Connect, options: int) -> None:
    program = connect()
    queue = program.open("ORDERS", BOTH_WAYS)
    program.put(queue, b"there")
    assert refused(lambda: program.get(queue, options)) == ReasonCode.MQRC_OPTIONS_ERROR
    match = {"match_options": MatchOption.GROUP_ID}
    assert refused(lambda: program.get(queue, **match)) == ReasonCode.MQRC_MATCH_OPTIONS_ERROR
    assert refused(lambda: program.get(queue, wait_ms=-2)) == ReasonCode.MQRC_WAIT_INTERVAL_ERROR


def test_text_is_converted_and_what_cannot_be_comes_with_a_warning(connect: Connect) -> None:
    program = connect()
    queue = program.open("ORDERS", BOTH_WAYS)
    said = {"data_format": wanted_format(819, 273)}
    program.put(queue, "Zürich".encode(), format=b"MQSTR   ", coded_char_set_id=1208)
    got = program.get(queue, GetOption.CONVERT, **said)
    assert (got.data, got.reason_code, got.data_format) == ("Zürich".encode("latin-1"), 0, wanted_format(819, 273))
    program.put(queue, "日本".encode(), format=b"MQSTR   ", coded_char_set_id=1208)
    lost = program.get(queue, GetOption.CONVERT, **said)
    assert (lost.data, lost.reason_code, lost.data_format) == ("日本".encode(), ReasonCode.MQRC_NOT_CONVERTED, None)
    program.put(queue, b"\x01\x02", format=b"MYFORMAT", coded_char_set_id=1208)
    assert program.get(queue, GetOption.CONVERT, **said).reason_code == ReasonCode.MQRC_FORMAT_ERROR


def _with_loop(data_folder: Path, run: Callable[[Engine, Program, Program], "asyncio.Future[None] | None"]) -> None:
    """Runs a story of two programs in an event loop."""

    async def story() -> None:
        engine = Engine.open(data_folder, call_soon=asyncio.get_running_loop().call_soon)
        engine.define("ORDERS")
        programs = Program(engine, EVERYTHING), Program(engine, EVERYTHING)
        told = run(engine, *programs)
        if told is not None:
            await asyncio.wait_for(told, 10)
        for program in programs:
            program.connection.end()
        await asyncio.sleep(0)
        engine.close()

    asyncio.run(story())


def test_a_get_waits_for_a_message_and_is_answered_once(data_folder: Path) -> None:
    answers: list[Got | QueueManagerError] = []

    def story(_engine: Engine, reader: Program, writer: Program) -> "asyncio.Future[None]":
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def answered(result: Got | QueueManagerError) -> None:
            answers.append(result)
            told.set_result(None)

        queue = reader.open("ORDERS", OpenOption.INPUT_SHARED)
        reader.connection.get(queue, request(GetOption.WAIT, wait_ms=60_000), answered)
        out = writer.open("ORDERS", OpenOption.OUTPUT)
        for body in (b"first", b"second"):
            message = writer_message(body)
            writer.connection.put(out, message, PutOption.NO_SYNCPOINT, lambda: None)
        return told

    _with_loop(data_folder, story)
    assert [each.data for each in answers if isinstance(each, Got)] == [b"first"]


def writer_message(body: bytes):  # type: ignore[no-untyped-def]
    from mq_adapters.message import Message, MessageDescriptor

    return Message(MessageDescriptor(), body)


@pytest.mark.parametrize(
    ("wait_ms", "stops", "reason_code"),
    [(20, False, ReasonCode.MQRC_NO_MSG_AVAILABLE), (-1, True, ReasonCode.MQRC_Q_MGR_STOPPING)],
)
def test_a_wait_ends_with_its_time_or_with_the_queue_manager(
    data_folder: Path, wait_ms: int, stops: bool, reason_code: ReasonCode
) -> None:
    answers: list[Got | QueueManagerError] = []

    def story(_engine: Engine, reader: Program, _writer: Program) -> "asyncio.Future[None]":
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def answered(result: Got | QueueManagerError) -> None:
            answers.append(result)
            told.set_result(None)

        queue = reader.open("ORDERS", OpenOption.INPUT_SHARED)
        reader.connection.get(queue, request(GetOption.WAIT, wait_ms=wait_ms), answered)
        second = request(GetOption.WAIT, wait_ms=-1)
        assert refused(lambda: reader.connection.get(queue, second, answered)) == ReasonCode.MQRC_CALL_IN_PROGRESS
        if stops:
            reader.connection.end_wait(ReasonCode.MQRC_Q_MGR_STOPPING)
        return told

    _with_loop(data_folder, story)
    assert [each.reason_code for each in answers if isinstance(each, QueueManagerError)] == [reason_code]


def test_very_many_gets_that_wait_without_room_are_answered_each(data_folder: Path) -> None:
    """Each gives the message back, and none may wake the others from inside its own call."""
    answers: list[Got | QueueManagerError] = []

    def story(engine: Engine, _reader: Program, writer: Program) -> "asyncio.Future[None]":
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def answered(result: Got | QueueManagerError) -> None:
            answers.append(result)
            if len(answers) == 500:
                told.set_result(None)

        for _ in range(500):
            reader = Program(engine, EVERYTHING)
            handle = reader.open("ORDERS", OpenOption.INPUT_SHARED)
            reader.connection.get(handle, request(GetOption.WAIT, wait_ms=60_000, buffer_bytes=0), answered)
        out = writer.open("ORDERS", OpenOption.OUTPUT)
        writer.connection.put(out, writer_message(b"long"), PutOption.NO_SYNCPOINT, lambda: None)
        return told

    _with_loop(data_folder, story)
    assert {each.reason_code for each in answers} == {ReasonCode.MQRC_TRUNCATED_MSG_FAILED}


def test_a_queue_stays_in_use_for_one_get_while_the_wait_of_another_ends(connect: Connect) -> None:
    async def scenario() -> tuple[tuple[int, ...], tuple[int, ...]]:
        first, second = connect(), connect()
        waiting = first.open("ORDERS", OpenOption.INPUT_SHARED | OpenOption.INQUIRE)
        first.connection.get(waiting, request(GetOption.WAIT, wait_ms=-1), lambda _result: None)
        listening = first.connection.listen(
            waiting,
            request(GetOption.WAIT, wait_ms=1),
            may_get=lambda: True,
            wake=lambda: None,
            deliver=lambda _got: None,
            failed=lambda _error: None,
        )
        listening.start()
        await asyncio.sleep(0.05)
        listening.close()
        in_use = first.connection.inquire(waiting, [17]).integers
        assert refused(lambda: second.open("ORDERS", OpenOption.INPUT_EXCLUSIVE)) == ReasonCode.MQRC_OBJECT_IN_USE
        first.connection.end_wait(ReasonCode.MQRC_CONNECTION_QUIESCING)
        return in_use, first.connection.inquire(waiting, [17]).integers

    assert asyncio.run(scenario()) == ((1,), (1,))
