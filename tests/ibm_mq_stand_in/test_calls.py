"""The MQI over the stand-in, through both bindings: what a program sees of objects, messages and units of work."""

import threading
from types import ModuleType
from typing import Any

import pytest

from tests.ibm_mq_stand_in.process import StandInQueueManager, wait_until
from tests.ibm_mq_stand_in.program import (
    BROWSE,
    INPUT_EXCLUSIVE,
    INPUT_SHARED,
    INQUIRE,
    NO_SYNCPOINT,
    OUTPUT,
    SYNCPOINT,
    Program,
)

SET_IDENTITY_CONTEXT, SET_ALL_CONTEXT, PASS_ALL_CONTEXT, SAVE_ALL_CONTEXT = 0x400, 0x800, 0x200, 0x80
BROWSE_FIRST, BROWSE_NEXT, UNDER_CURSOR, ACCEPT_TRUNCATED = 16, 32, 256, 64
MISSING = 2033


@pytest.fixture
def program(mq: ModuleType, queue_manager: StandInQueueManager) -> Program:
    return Program(mq)


def test_what_was_put_is_got(program: Program) -> None:
    orders = program.open("ORDERS", OUTPUT | INPUT_SHARED)
    put = program.put(orders, b"one\x00\xff", NO_SYNCPOINT, CorrelId=b"C" * 24)
    body, got = program.get(orders, NO_SYNCPOINT)
    assert (body, got.MsgId, got.CorrelId) == (b"one\x00\xff", put.MsgId, b"C" * 24)
    assert put.MsgId != bytes(24)
    assert program.reason_of(program.get, orders, NO_SYNCPOINT) == MISSING


@pytest.mark.parametrize("identifier", ["MsgId", "CorrelId"])
def test_get_by_identifier_takes_the_message_that_has_it(program: Program, identifier: str) -> None:
    orders = program.open("ORDERS", OUTPUT | INPUT_SHARED)
    for letter in (b"a", b"b", b"c"):
        program.put(orders, letter, NO_SYNCPOINT, **{identifier: letter * 24})
    wanted: dict[str, Any] = {identifier: b"b" * 24}
    assert program.get(orders, NO_SYNCPOINT, **wanted)[0] == b"b"
    assert program.reason_of(program.get, orders, NO_SYNCPOINT, **wanted) == MISSING


def test_a_message_of_version_1_structures_is_put_and_got(program: Program) -> None:
    orders = program.open("ORDERS", OUTPUT | INPUT_SHARED)
    md = program.mq.MD(Version=1)
    orders.put(b"body", md, program.mq.PMO(Version=1, Options=NO_SYNCPOINT))
    got = program.mq.MD(Version=1)
    assert orders.get(100, got, program.mq.GMO(Version=1, Options=NO_SYNCPOINT)) == b"body"
    assert got.MsgId == md.MsgId


def test_put1_needs_no_open_queue(program: Program) -> None:
    od = program.mq.OD(ObjectName=program.text("ORDERS"), Version=4)
    program.manager.put1(od, b"body", program.mq.MD(Version=2), program.mq.PMO(Version=3, Options=NO_SYNCPOINT))
    assert program.get(program.open("ORDERS", INPUT_SHARED), NO_SYNCPOINT)[0] == b"body"


def test_a_unit_of_work_is_seen_by_others_when_it_is_committed(program: Program) -> None:
    orders = program.open("ORDERS", OUTPUT | INPUT_SHARED)
    other = Program(program.mq)
    theirs = other.open("ORDERS", INPUT_SHARED)
    program.put(orders, b"one")
    assert other.reason_of(other.get, theirs) == MISSING
    program.manager.commit()
    assert other.get(theirs)[0] == b"one"


def test_back_out_takes_puts_back_and_counts_gets(program: Program) -> None:
    orders = program.open("ORDERS", OUTPUT | INPUT_SHARED)
    program.put(orders, b"kept", NO_SYNCPOINT)
    program.put(orders, b"gone")
    assert program.get(orders)[1].BackoutCount == 0
    program.manager.backout()
    body, md = program.get(orders)
    assert (body, md.BackoutCount) == (b"kept", 1)
    assert program.reason_of(program.get, orders) == MISSING


def test_puts_outside_of_syncpoint_are_no_part_of_the_unit_of_work(program: Program) -> None:
    orders = program.open("ORDERS", OUTPUT | INPUT_SHARED)
    program.put(orders, b"inside", SYNCPOINT)
    program.put(orders, b"outside", NO_SYNCPOINT)
    program.manager.backout()
    assert program.get(orders)[0] == b"outside"


def test_disconnecting_commits(program: Program) -> None:
    program.put(program.open("ORDERS", OUTPUT), b"one")
    program.manager.disconnect()
    other = Program(program.mq)
    assert other.get(other.open("ORDERS", INPUT_SHARED))[0] == b"one"


def test_more_than_maxumsgs_in_a_unit_of_work_is_2024(program: Program, queue_manager: StandInQueueManager) -> None:
    queue_manager.control.mqsc("ALTER QMGR MAXUMSGS(2)")
    orders = program.open("ORDERS", OUTPUT)
    program.put(orders, b"1")
    program.put(orders, b"2")
    assert program.reason_of(program.put, orders, b"3") == 2024


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (INPUT_SHARED, INPUT_SHARED, 0),
        (INPUT_SHARED, INPUT_EXCLUSIVE, 2042),
        (INPUT_EXCLUSIVE, INPUT_SHARED, 2042),
        (INPUT_EXCLUSIVE, INPUT_EXCLUSIVE, 2042),
        (INPUT_EXCLUSIVE, BROWSE, 0),
        (INPUT_EXCLUSIVE, OUTPUT, 0),
    ],
)
def test_an_exclusive_open_keeps_others_from_getting(program: Program, first: int, second: int, reason: int) -> None:
    held = program.open("ORDERS", first)
    other = Program(program.mq)
    assert other.reason_of(other.open, "ORDERS", second) == reason
    held.close()
    assert other.reason_of(other.open, "ORDERS", second) == 0


def test_a_queue_that_is_not_shared_or_exclusive_by_default_has_one_getter(
    program: Program, queue_manager: StandInQueueManager
) -> None:
    queue_manager.control.mqsc("DEFINE QLOCAL(ALONE) NOSHARE", "DEFINE QLOCAL(DEFAULTED) DEFSOPT(EXCL)")
    alone, _defaulted = program.open("ALONE", INPUT_SHARED), program.open("DEFAULTED", 1)
    assert program.reason_of(program.open, "ALONE", INPUT_SHARED) == 2042
    assert program.reason_of(program.open, "DEFAULTED", INPUT_SHARED) == 2042
    alone.close()
    assert program.reason_of(program.open, "ALONE", INPUT_SHARED) == 0


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("NOWHERE", OUTPUT, 2085),
        ("ORDERS", 0, 2046),
        ("ORDERS", INPUT_SHARED | INPUT_EXCLUSIVE, 2046),
        ("ORDERS", SET_IDENTITY_CONTEXT, 2046),
    ],
)
def test_an_open_that_cannot_be_is_refused(program: Program, name: str, options: int, reason: int) -> None:
    assert program.reason_of(program.open, name, options) == reason


def test_a_handle_does_what_it_was_opened_for(program: Program) -> None:
    put, got = program.open("ORDERS", OUTPUT), program.open("ORDERS", INPUT_SHARED)
    assert program.reason_of(program.get, put) == 2037
    assert program.reason_of(program.put, got, b"") == 2039
    assert program.reason_of(program.get, got, BROWSE_FIRST) == 2036


def test_a_message_longer_than_the_buffer_stays_unless_truncation_is_accepted(program: Program) -> None:
    orders = program.open("ORDERS", OUTPUT | INPUT_SHARED)
    program.put(orders, b"0123456789", NO_SYNCPOINT)
    with pytest.raises(program.mq.MQMIError) as refused:
        program.get(orders, NO_SYNCPOINT, longest=4)
    assert (refused.value.comp, refused.value.reason) == (1, 2080)
    with pytest.raises(program.mq.MQMIError) as cut:
        program.get(orders, NO_SYNCPOINT | ACCEPT_TRUNCATED, longest=4)
    assert (cut.value.reason, cut.value.message) == (2079, b"0123")
    assert program.reason_of(program.get, orders) == MISSING


def test_a_browse_into_too_small_a_buffer_leaves_the_cursor_where_it_was(program: Program) -> None:
    orders = program.open("ORDERS", OUTPUT | INPUT_SHARED | BROWSE)
    for body in (b"1", b"0123456789", b"3"):
        program.put(orders, body, NO_SYNCPOINT)
    assert program.get(orders, BROWSE_FIRST)[0] == b"1"
    assert program.reason_of(program.get, orders, BROWSE_NEXT, longest=4) == 2080
    assert program.get(orders, BROWSE_NEXT)[0] == b"0123456789"
    assert program.get(orders, BROWSE_NEXT)[0] == b"3"


def test_browsing_goes_through_the_queue_and_takes_nothing(program: Program) -> None:
    orders = program.open("ORDERS", OUTPUT | INPUT_SHARED | BROWSE)
    for body in (b"1", b"2", b"3"):
        program.put(orders, body, NO_SYNCPOINT)
    seen = [program.get(orders, BROWSE_FIRST)[0], program.get(orders, BROWSE_NEXT)[0]]
    assert seen == [b"1", b"2"]
    assert program.get(orders, UNDER_CURSOR)[0] == b"2"
    assert program.get(orders, BROWSE_NEXT)[0] == b"3"
    assert program.reason_of(program.get, orders, BROWSE_NEXT) == MISSING
    program.put(orders, b"4", NO_SYNCPOINT)
    assert program.get(orders, BROWSE_NEXT)[0] == b"4"
    assert [program.get(orders)[0] for _ in range(3)] == [b"1", b"3", b"4"]


def test_a_get_that_waits_ends_with_the_message_or_the_interval(
    program: Program, queue_manager: StandInQueueManager
) -> None:
    orders = program.open("ORDERS", INPUT_SHARED)
    assert program.reason_of(program.get, orders, wait_ms=30) == MISSING
    got: list[bytes] = []
    waiting = threading.Thread(target=lambda: got.append(program.get(orders, wait_ms=60_000)[0]))
    waiting.start()
    wait_until(lambda: queue_manager.control.calls_under_way() == 1)
    other = Program(program.mq)
    other.put(other.open("ORDERS", OUTPUT), b"late", NO_SYNCPOINT)
    waiting.join(60)
    assert got == [b"late"]


@pytest.mark.parametrize(
    ("attributes", "descriptor", "reason"),
    [
        ("MAXMSGL(3)", {}, 2030),
        ("PUT(DISABLED)", {}, 2051),
        ("MAXDEPTH(0)", {}, 2053),
        ("", {"Expiry": 0}, 2013),
        ("", {"MsgType": 7}, 2029),
        ("", {"Persistence": 3}, 2047),
    ],
)
def test_a_message_that_the_queue_does_not_take_is_refused(
    program: Program, queue_manager: StandInQueueManager, attributes: str, descriptor: dict[str, int], reason: int
) -> None:
    queue_manager.control.mqsc(f"DEFINE QLOCAL(NARROW) {attributes}")
    narrow = program.open("NARROW", OUTPUT)
    assert program.reason_of(program.put, narrow, b"body", **descriptor) == reason


def test_a_queue_manager_that_takes_shorter_messages_refuses_with_2031(
    program: Program, queue_manager: StandInQueueManager
) -> None:
    queue_manager.control.mqsc("ALTER QMGR MAXMSGL(3)")
    assert program.reason_of(program.put, program.open("ORDERS", OUTPUT), b"body") == 2031


def test_a_persistent_message_cannot_be_put_on_a_temporary_queue(
    program: Program, queue_manager: StandInQueueManager
) -> None:
    queue_manager.control.mqsc("DEFINE QMODEL(MODEL)")
    od = program.mq.OD(ObjectName=program.text("MODEL"), DynamicQName=program.text("REPLY.*"), Version=4)
    reply = program.mq.Queue(program.manager)
    reply.open(od, OUTPUT | INPUT_EXCLUSIVE)
    assert program.reason_of(program.put, reply, b"", Persistence=1) == 2048
    program.put(reply, b"", Persistence=0)
    with queue_manager.client() as client:
        assert [each.name for each in client.queues() if each.name.startswith("REPLY.")]
    reply.close()
    with queue_manager.client() as client:
        assert not [each.name for each in client.queues() if each.name.startswith("REPLY.")]


def test_context_is_the_queue_managers_unless_the_program_may_set_it(program: Program) -> None:
    orders = program.open("ORDERS", OUTPUT | INPUT_SHARED | SET_IDENTITY_CONTEXT)
    given = {"UserIdentifier": program.text("sensor7"), "ApplOriginData": program.text("ABCD")}
    program.put(orders, b"", NO_SYNCPOINT, **given)
    _, default = program.get(orders)
    program.put(orders, b"", NO_SYNCPOINT | SET_IDENTITY_CONTEXT, **given)
    _, identity = program.get(orders)
    users = [bytes(each.UserIdentifier).rstrip(b" \0") for each in (default, identity)]
    assert users == [b"standin", b"sensor7"]
    assert bytes(identity.ApplOriginData).strip() == b""
    assert default.PutApplType == 6
    assert bytes(default.PutDate).isdigit()
    assert program.reason_of(program.put, orders, b"", SET_ALL_CONTEXT) == 2095


def test_identity_is_set_only_where_the_open_asked_and_the_operator_grants_it(
    program: Program, queue_manager: StandInQueueManager
) -> None:
    orders = program.open("ORDERS", OUTPUT)
    assert program.reason_of(program.put, orders, b"", SET_IDENTITY_CONTEXT) == 2096
    queue_manager.control.deny(("ORDERS", "setid"))
    assert program.reason_of(program.open, "ORDERS", OUTPUT | SET_IDENTITY_CONTEXT) == 2035
    assert program.reason_of(program.open, "ORDERS", OUTPUT) == 0


def test_all_context_is_passed_from_the_message_that_was_got(
    program: Program, queue_manager: StandInQueueManager
) -> None:
    queue_manager.control.mqsc("DEFINE QLOCAL(NEXT)")
    orders = program.open("ORDERS", OUTPUT | SET_ALL_CONTEXT)
    program.put(orders, b"", NO_SYNCPOINT | SET_ALL_CONTEXT, PutApplName=program.text("first"), PutApplType=26)
    source = program.open("ORDERS", INPUT_SHARED | SAVE_ALL_CONTEXT)
    target = program.open("NEXT", OUTPUT | INPUT_SHARED | PASS_ALL_CONTEXT)
    program.get(source)
    pmo = program.mq.PMO(Version=3, Options=SYNCPOINT | PASS_ALL_CONTEXT, Context=source.get_handle())
    target.put(b"", program.mq.MD(Version=2), pmo)
    program.manager.commit()
    _, passed = program.get(target)
    assert (bytes(passed.PutApplName).rstrip(b" \0"), passed.PutApplType) == (b"first", 26)


def test_the_queue_manager_tells_its_name_identifier_and_limits(
    program: Program, queue_manager: StandInQueueManager
) -> None:
    inquired = {selector: program.manager.inquire(selector) for selector in (2032, 2015, 2006, 13, 33, 31, 2)}
    texts = {selector: bytes(value).decode().rstrip() for selector, value in inquired.items() if selector > 2000}
    assert texts == {2032: queue_manager.control.identifier, 2015: "STANDIN", 2006: "SYSTEM.DEAD.LETTER.QUEUE"}
    assert texts[2032].startswith("STANDIN_")
    assert [inquired[selector] for selector in (13, 33, 2)] == [104_857_600, 10_000, 1208]
    assert inquired[31] >= 900
    assert bytes(program.manager.inquire(2120)) == b"09040000"  # MQCA_VERSION: eight characters, not 48


def test_a_queue_tells_its_attributes(program: Program, queue_manager: StandInQueueManager) -> None:
    queue_manager.control.mqsc(
        "DEFINE QLOCAL(TOLD) MAXMSGL(500) BOTHRESH(3) BOQNAME(ORDERS) DEFPSIST(NO) GET(DISABLED)"
    )
    told = program.open("TOLD", INQUIRE | OUTPUT)
    program.put(told, b"1", NO_SYNCPOINT)
    assert [told.inquire(selector) for selector in (3, 13, 22, 5, 20, 9, 10)] == [1, 500, 3, 0, 1, 1, 0]
    assert bytes(told.inquire(2019)).rstrip() == b"ORDERS"
    assert program.reason_of(told.inquire, 2017) == 2068


def test_get_is_inhibited_by_mqset_and_by_mqsc(program: Program, queue_manager: StandInQueueManager) -> None:
    orders = program.open("ORDERS", 64 | INPUT_SHARED)
    orders.set(9, 1)
    assert program.reason_of(program.get, orders) == 2016
    queue_manager.control.mqsc("ALTER QLOCAL(ORDERS) GET(ENABLED)")
    assert program.reason_of(program.get, orders) == MISSING


def test_a_handle_that_was_closed_is_2019(program: Program) -> None:
    module = program.mq.pymqe if program.mq.__name__ == "pymqi" else program.mq.ibmmqc
    orders = program.open("ORDERS", OUTPUT)
    hconn, hobj = program.manager.get_handle(), orders.get_handle()
    assert module.MQCLOSE(hconn, hobj, 0)[-2:] == (0, 0)
    assert module.MQCLOSE(hconn, hobj, 0)[-2:] == (2, 2019)


def test_what_the_gateway_never_calls_is_2298(program: Program) -> None:
    handle = program.mq.MessageHandle
    assert program.reason_of(handle, program.manager) == 2298


def test_the_broker_answers_and_publishes(program: Program, queue_manager: StandInQueueManager) -> None:
    queue_manager.control.mqsc("DEFINE QLOCAL(MINE)")
    header = b"RFH \x00\x00\x00\x01"
    text = b"MQPSCommand RegSub MQPSQName MINE MQPSTopic a/b MQPSStreamName SYSTEM.BROKER.DEFAULT.STREAM"
    padded = text + b" " * (-len(text) % 4)
    header += (32 + len(padded)).to_bytes(4, "big") + (273).to_bytes(4, "big") + (1208).to_bytes(4, "big")
    header += b" " * 8 + bytes(4) + padded
    control = program.open("SYSTEM.BROKER.CONTROL.QUEUE", OUTPUT)
    mine = program.open("MINE", INPUT_SHARED)
    described = {
        "Format": program.text("MQHRF   "),
        "ReplyToQ": program.text("MINE"),
        "MsgType": 1,
        "Encoding": 273,
        "CodedCharSetId": 1208,
    }
    program.put(control, header, NO_SYNCPOINT, **described)
    body, md = program.get(mine, wait_ms=5_000)
    assert md.MsgType == 2
    assert b"MQPSCompCode 0" in body
