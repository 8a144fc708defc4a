"""Handles, puts and units of work of one connection."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.open_object import ObjectName, Opened
from mq_adapters.embedded.mqi.options import CloseOption, GetOption, ObjectKind, OpenOption, PutOption
from mq_adapters.embedded.rights import EVERYTHING, Rights
from mq_adapters.message import MQCI_NONE, MQMI_NONE, Message, MessageDescriptor
from mq_adapters.reasons import ReasonCode
from mq_adapters.reports import ReportOption
from tests.mq_adapters.embedded.mqi.program import Program, refused

Connect = Callable[..., Program]
BOTH_WAYS = OpenOption.OUTPUT | OpenOption.INPUT_SHARED
MODEL = "SYSTEM.DEFAULT.MODEL.QUEUE"


@pytest.fixture
def model(engine: Engine) -> str:
    engine.objects.define(Definition(object_type=ObjectType.QMODEL, name=MODEL))
    return MODEL


def test_a_put_in_syncpoint_is_there_for_others_after_the_commit(connect: Connect) -> None:
    writer, reader = connect(), connect()
    queue = writer.open("ORDERS", OpenOption.OUTPUT)
    taken = reader.open("ORDERS", OpenOption.INPUT_SHARED)
    writer.put(queue, b"one", PutOption.SYNCPOINT)
    assert refused(lambda: reader.get(taken)) == ReasonCode.MQRC_NO_MSG_AVAILABLE
    writer.commit()
    assert reader.get(taken).data == b"one"


def test_a_put_without_syncpoint_does_not_wait_for_the_commit_of_the_open_unit(connect: Connect) -> None:
    program = connect()
    queue = program.open("ORDERS", BOTH_WAYS)
    program.put(queue, b"inside", PutOption.SYNCPOINT)
    program.put(queue, b"outside", PutOption.NO_SYNCPOINT)
    assert program.get(queue).data == b"outside"
    program.connection.back_out()
    assert refused(lambda: program.get(queue)) == ReasonCode.MQRC_NO_MSG_AVAILABLE


def test_a_get_without_syncpoint_is_not_backed_out(connect: Connect) -> None:
    program = connect()
    queue = program.open("ORDERS", BOTH_WAYS)
    for body in (b"1", b"2"):
        program.put(queue, body)
    assert program.get(queue, GetOption.SYNCPOINT).data == b"1"
    assert program.get(queue, GetOption.NO_SYNCPOINT).data == b"2"
    program.connection.back_out()
    again = program.get(queue)
    assert (again.data, again.message.backout_count) == (b"1", 1)
    assert refused(lambda: program.get(queue)) == ReasonCode.MQRC_NO_MSG_AVAILABLE


def test_a_connection_that_ends_backs_out_and_a_disconnect_commits(connect: Connect) -> None:
    lost, left, reader = connect(), connect(), connect()
    for program in (lost, left):
        program.put(program.open("ORDERS", OpenOption.OUTPUT), b"of a unit", PutOption.SYNCPOINT)
    lost.connection.end()
    ends: list[str] = []
    left.connection.disconnect(lambda: ends.append("left"))
    queue = reader.open("ORDERS", OpenOption.INPUT_SHARED)
    assert ends == ["left"]
    assert reader.get(queue).data == b"of a unit"
    assert refused(lambda: reader.get(queue)) == ReasonCode.MQRC_NO_MSG_AVAILABLE


def test_a_model_queue_gives_a_queue_that_ends_with_its_handle(connect: Connect, engine: Engine, model: str) -> None:
    program = connect(get=(model, "REPLIES.*"), put=("REPLIES.*",))
    queue = program.open(model, BOTH_WAYS, dynamic_name="REPLIES.*")
    (name,) = [each.name for each in engine.queues() if each.name.startswith("REPLIES.")]
    program.put(queue, b"reply", persistence=0)
    program.connection.close(queue, CloseOption.DELETE_PURGE)
    assert name not in engine.objects.queues
    assert refused(lambda: program.open(name, OpenOption.OUTPUT)) == ReasonCode.MQRC_UNKNOWN_OBJECT_NAME
    for name in ("SYSTEM.MINE.*", "OTHERS.*"):
        asked = partial(program.open, model, OpenOption.INPUT_SHARED, dynamic_name=name)
        assert refused(asked) == ReasonCode.MQRC_NOT_AUTHORIZED


def test_a_temporary_queue_is_open_to_all_programs_of_its_user(connect: Connect, engine: Engine, model: str) -> None:
    rights = {"get": (model, "REPLIES.*")}
    maker, colleague = connect(**rights), connect(**rights)
    maker.open(model, OpenOption.INPUT_SHARED, dynamic_name="REPLIES.*")
    (name,) = [each.name for each in engine.queues() if each.name.startswith("REPLIES.")]
    for program in (maker, colleague):
        program.open(name, OpenOption.BROWSE | OpenOption.OUTPUT | OpenOption.INQUIRE)
    stranger = Program(engine, Rights(get=(model, "REPLIES.*")), user="shipping")
    assert refused(lambda: stranger.open(name, OpenOption.BROWSE)) == ReasonCode.MQRC_NOT_AUTHORIZED
    stranger.connection.end()


def test_an_exclusive_open_keeps_others_from_opening_for_input(connect: Connect) -> None:
    holder, other = connect(), connect()
    held = holder.open("ORDERS", OpenOption.INPUT_EXCLUSIVE)
    assert refused(lambda: other.open("ORDERS", OpenOption.INPUT_SHARED)) == ReasonCode.MQRC_OBJECT_IN_USE
    other.put(other.open("ORDERS", OpenOption.OUTPUT), b"may be put")
    holder.connection.close(held)
    shared = other.open("ORDERS", OpenOption.INPUT_SHARED)
    assert refused(lambda: holder.open("ORDERS", OpenOption.INPUT_EXCLUSIVE)) == ReasonCode.MQRC_OBJECT_IN_USE
    other.connection.close(shared)
    holder.open("ORDERS", OpenOption.INPUT_EXCLUSIVE)


@pytest.mark.parametrize(
    ("options", "reason_code"),
    [
        (0, ReasonCode.MQRC_OPTIONS_ERROR),
        (OpenOption.INPUT_SHARED | OpenOption.INPUT_EXCLUSIVE, ReasonCode.MQRC_OPTIONS_ERROR),
        (OpenOption.SET_ALL_CONTEXT | OpenOption.OUTPUT, ReasonCode.MQRC_NOT_AUTHORIZED),
        (OpenOption.ALTERNATE_USER_AUTHORITY | OpenOption.OUTPUT, ReasonCode.MQRC_NOT_AUTHORIZED),
        (0x8000_0000 | OpenOption.OUTPUT, ReasonCode.MQRC_OPTIONS_ERROR),
    ],
)
def test_options_that_are_wrong_are_refused(connect: Connect, options: int, reason_code: ReasonCode) -> None:
    assert refused(lambda: connect().open("ORDERS", options)) == reason_code


@pytest.mark.parametrize(
    ("name", "kind", "reason_code"),
    [
        ("NOWHERE", ObjectKind.Q, ReasonCode.MQRC_UNKNOWN_OBJECT_NAME),
        ("SYSTEM.PROTECTION.POLICY.QUEUE", ObjectKind.Q, ReasonCode.MQRC_UNKNOWN_OBJECT_NAME),
        ("PLANT", ObjectKind.TOPIC, ReasonCode.MQRC_UNKNOWN_OBJECT_NAME),
        ("", ObjectKind.TOPIC, ReasonCode.MQRC_TOPIC_STRING_ERROR),
        ("ORDERS", ObjectKind.NAMELIST, ReasonCode.MQRC_OBJECT_TYPE_ERROR),
        ("", 99, ReasonCode.MQRC_OBJECT_TYPE_ERROR),
    ],
)
def test_what_is_not_there_is_refused(connect: Connect, name: str, kind: int, reason_code: ReasonCode) -> None:
    assert refused(lambda: connect().open(name, OpenOption.BROWSE, kind=kind)) == reason_code


def test_rights_are_asked_for_each_way_of_opening(connect: Connect) -> None:
    program = connect(put=("ORDERS",), browse=("*",))
    program.open("ORDERS", OpenOption.OUTPUT | OpenOption.BROWSE | OpenOption.INQUIRE)
    assert refused(lambda: program.open("ORDERS", OpenOption.INPUT_SHARED)) == ReasonCode.MQRC_NOT_AUTHORIZED


@pytest.mark.parametrize("pattern", ["*", "S*", "SYSTEM*"])
def test_a_general_pattern_opens_no_queue_of_the_queue_manager(connect: Connect, pattern: str) -> None:
    name = "SYSTEM.DEAD.LETTER.QUEUE"
    assert (
        refused(lambda: connect(get=(pattern,)).open(name, OpenOption.INPUT_SHARED)) == ReasonCode.MQRC_NOT_AUTHORIZED
    )
    connect(get=("SYSTEM.DEAD*",)).open(name, OpenOption.INPUT_SHARED)


def test_a_pattern_for_one_queue_of_the_queue_manager_opens_no_other(connect: Connect, model: str) -> None:
    program = connect(get=("*", model), browse=("*",), put=("*",))
    call = partial(program.open, "SYSTEM.DEAD.LETTER.QUEUE", OpenOption.INPUT_SHARED)
    assert refused(call) == ReasonCode.MQRC_NOT_AUTHORIZED


def test_the_user_and_the_context_are_the_queue_managers_to_say(connect: Connect) -> None:
    program = connect(put=("ORDERS",), get=("ORDERS",))
    queue = program.open("ORDERS", BOTH_WAYS)
    program.put(queue, b"claimed", user_identifier="admin", put_appl_name="payroll", appl_identity_data="boss")
    descriptor = program.get(queue).message.descriptor
    said = (descriptor.user_identifier, descriptor.put_appl_name, descriptor.appl_identity_data)
    assert said == ("billing", "program", "")


def test_new_identifiers_are_made_where_they_are_asked_for(connect: Connect) -> None:
    program = connect()
    queue = program.open("ORDERS", OpenOption.OUTPUT)
    kept = program.put(queue, b"kept", msg_id=b"M" * 24, correl_id=b"C" * 24)
    assert (kept.msg_id, kept.descriptor.correl_id) == (b"M" * 24, b"C" * 24)
    options = PutOption.NEW_MSG_ID | PutOption.NEW_CORREL_ID
    made = program.put(queue, b"made", options, msg_id=b"M" * 24, correl_id=b"C" * 24)
    assert made.msg_id not in (MQMI_NONE, b"M" * 24)
    assert made.descriptor.correl_id not in (MQCI_NONE, b"C" * 24)


def test_put_one_leaves_no_handle(connect: Connect) -> None:
    program = connect()
    wanted = ObjectName(kind=ObjectKind.Q, name="ORDERS")
    for _ in range(300):  # more than a connection may have handles
        program.connection.put_one(wanted, Message(MessageDescriptor(), b"one"), PutOption.NO_SYNCPOINT, lambda: None)
    queue = program.open("ORDERS", OpenOption.INPUT_SHARED)
    assert program.get(queue).data == b"one"


def test_handles_are_bounded(connect: Connect) -> None:
    program = connect()
    handles = [program.open("ORDERS", OpenOption.OUTPUT) for _ in range(256)]
    assert len(set(handles)) == 256
    assert refused(lambda: program.open("ORDERS", OpenOption.OUTPUT)) == ReasonCode.MQRC_HANDLE_NOT_AVAILABLE


def test_a_handle_that_is_closed_is_unknown(connect: Connect) -> None:
    program = connect()
    queue = program.open("ORDERS", OpenOption.OUTPUT)
    program.connection.close(queue, CloseOption.QUIESCE)
    assert refused(lambda: program.put(queue, b"late")) == ReasonCode.MQRC_HOBJ_ERROR
    assert refused(lambda: program.connection.close(queue)) == ReasonCode.MQRC_HOBJ_ERROR


def test_a_handle_is_for_what_it_was_opened_for(connect: Connect) -> None:
    program = connect()
    out, into = program.open("ORDERS", OpenOption.OUTPUT), program.open("ORDERS", OpenOption.INPUT_SHARED)
    assert refused(lambda: program.get(out)) == ReasonCode.MQRC_NOT_OPEN_FOR_INPUT
    assert refused(lambda: program.put(into, b"")) == ReasonCode.MQRC_NOT_OPEN_FOR_OUTPUT
    assert refused(lambda: program.get(into, GetOption.BROWSE_NEXT)) == ReasonCode.MQRC_NOT_OPEN_FOR_BROWSE
    assert refused(lambda: program.connection.inquire(into, [3])) == ReasonCode.MQRC_NOT_OPEN_FOR_INQUIRE


def test_a_general_pattern_makes_no_queue_with_a_name_of_the_queue_managers(connect: Connect, model: str) -> None:
    program = connect(get=("*", model))
    for name in ("SYSTEM.BROKER.NEXT", "RFHBRIDGE.*"):
        call = partial(program.open, model, OpenOption.INQUIRE, dynamic_name=name)
        assert refused(call) == ReasonCode.MQRC_NOT_AUTHORIZED
    assert program.open(model, OpenOption.INQUIRE, dynamic_name="NEXT.*")


def test_a_general_pattern_sends_no_reports_to_a_queue_of_the_queue_manager(connect: Connect, engine: Engine) -> None:
    engine.define("SYSTEM.OWN")
    asked = {"report": int(ReportOption.CONFIRM_ON_ARRIVAL), "reply_to_q": "SYSTEM.OWN"}
    program = connect(put=("*",))
    handle = program.open("ORDERS", OpenOption.OUTPUT)
    assert refused(lambda: program.put(handle, b"command", **asked)) == ReasonCode.MQRC_NOT_AUTHORIZED
    assert engine.queue("SYSTEM.OWN").depth == 0
    other = connect(put=("ORDERS", "SYSTEM.OWN"))
    other.put(other.open("ORDERS", OpenOption.OUTPUT), b"command", **asked)
    assert engine.queue("SYSTEM.OWN").depth == 1


def test_temporary_queues_of_all_programs_of_a_user_are_bounded(
    connect: Connect, engine: Engine, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mq_adapters.embedded.application.MAXIMUM_DYNAMIC_QUEUES", 3)
    first, second = connect(get=("AMQ.*", model)), connect(get=("AMQ.*", model))
    handles = [first.open(model, OpenOption.INPUT_SHARED) for _ in range(2)]
    second.open(model, OpenOption.INPUT_SHARED)
    for program in (first, second):
        call = partial(program.open, model, OpenOption.INPUT_SHARED)
        assert refused(call) == ReasonCode.MQRC_HANDLE_NOT_AVAILABLE
    first.connection.close(handles[0])
    assert second.open(model, OpenOption.INPUT_SHARED)


def test_a_model_queue_that_cannot_be_held_leaves_no_queue(connect: Connect, engine: Engine, model: str) -> None:
    definition = engine.objects.find_queue(model)
    assert definition is not None
    engine.objects.alter(definition.altered({"GET": "DISABLED"}))
    program = connect()
    for _ in range(2):
        call = partial(program.open, model, OpenOption.INPUT_EXCLUSIVE)
        assert refused(call) == ReasonCode.MQRC_GET_INHIBITED
    assert [each.name for each in engine.queues() if each.is_temporary] == []


def test_a_program_that_goes_while_it_waits_for_a_queue_leaves_nothing(data_folder: Path) -> None:
    """The queue is held when all earlier units of work are committed, which is after the program has gone."""
    opened: list[Opened] = []

    async def story() -> None:
        engine = Engine.open(data_folder, name="RFHB", call_soon=asyncio.get_running_loop().call_soon)
        engine.define("ORDERS")
        program = Program(engine, EVERYTHING)
        wanted = ObjectName(kind=ObjectKind.Q, name="ORDERS")
        program.connection.open(wanted, OpenOption.INPUT_EXCLUSIVE | OpenOption.BROWSE, opened.append)
        program.connection.end()
        await asyncio.sleep(0.05)
        queue = engine.queue("ORDERS")
        assert (opened, queue.listeners, queue.exclusive_holder) == ([], {}, None)
        engine.close()

    asyncio.run(story())


@pytest.mark.parametrize("said", [-7, 2**31 - 1])
def test_a_back_out_count_that_a_putter_says_counts_nothing(connect: Connect, said: int) -> None:
    program = connect()
    handle = program.open("ORDERS", BOTH_WAYS)
    message = Message(MessageDescriptor(), b"1")
    message.backout_count = said
    program.connection.put(handle, message, PutOption.NO_SYNCPOINT, lambda: None)
    program.get(handle, GetOption.SYNCPOINT)
    program.connection.back_out()
    assert program.get(handle).message.backout_count == 1
