"""The contract of the port, unchanged on every implementation of it (adapters.py)."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from mq_adapters.message import (
    MQPER_NOT_PERSISTENT,
    MQPER_PERSISTENT,
    MQRO_PASS_MSG_ID,
    Message,
    MessageDescriptor,
)
from mq_adapters.queue_manager import QueueManager
from mq_adapters.reports import MQFB_COA, MQFB_COD, ReportOption
from tests.mq_adapters.adapters import EVERY_KIND, NEXT, ORDERS
from tests.mq_adapters.contract import ANY, bodies, drain, put, refusal
from tests.mq_adapters.gateway_thread import STEP_S

pytestmark = pytest.mark.parametrize("adapter", EVERY_KIND, indirect=True)

PUMP = b"pump".ljust(24, b"\0")
VALVE = b"valve".ljust(24, b"\0")


@pytest.fixture
def queue_manager(prepared: QueueManager) -> QueueManager:
    """A connection to the queue manager under test, with two empty queues."""
    return prepared


def test_messages_are_got_in_the_order_in_which_they_were_put(queue_manager):
    for body in (b"one", b"two", b"three"):
        put(queue_manager, body)
    assert drain(queue_manager) == [b"one", b"two", b"three"]


def test_a_message_arrives_with_its_descriptor(queue_manager):
    given = MessageDescriptor(
        report=2,
        msg_type=1,
        feedback=276,
        encoding=273,
        coded_char_set_id=37,
        format=b"MQHRF2  ",
        priority=4,
        persistence=MQPER_PERSISTENT,
        msg_id=b"m" * 24,
        correl_id=PUMP,
        reply_to_q="REPLIES",
        reply_to_q_mgr="QM1",
        user_identifier="keeper",
        accounting_token=b"\x01" + bytes(31),
        appl_identity_data="identity",
        put_appl_type=28,
        put_appl_name="a program",
        appl_origin_data="orig",
    )
    put(queue_manager, b"\x00\xff", given)
    got = queue_manager.get(ORDERS)
    assert got.descriptor == given
    assert got.body == b"\x00\xff"


def test_the_queue_manager_names_the_application_and_the_time(queue_manager, adapter):
    put(queue_manager, b"")
    got = queue_manager.get(ORDERS)
    assert got.descriptor.put_appl_name == (adapter.application_name or got.descriptor.put_appl_name) != ""
    assert abs(got.put_us / 1e6 - time.time()) < 60


def test_one_message_object_may_be_put_twice(queue_manager):
    message = Message(ANY, b"again")
    first, second = queue_manager.put(ORDERS, message), queue_manager.put(ORDERS, message)
    assert first != second
    assert drain(queue_manager) == [b"again", b"again"]


def test_browse_shows_messages_without_taking_them(queue_manager):
    for body in (b"one", b"two"):
        put(queue_manager, body)
    assert bodies(queue_manager.browse(ORDERS)) == [b"one", b"two"]
    assert queue_manager.depth(ORDERS) == 2


def test_browse_reads_more_than_one_page(queue_manager):
    queue_manager.begin()
    expected = [b"%d" % number for number in range(250)]
    for body in expected:
        put(queue_manager, body)
    queue_manager.commit()
    assert bodies(queue_manager.browse(ORDERS)) == expected


def test_a_browse_that_is_left_early_is_forgotten(queue_manager):
    put(queue_manager, b"one")
    for _ in range(200):
        assert next(iter(queue_manager.browse(ORDERS))).body == b"one"


def test_two_browses_may_be_read_in_turns(queue_manager):
    for body in (b"one", b"two"):
        put(queue_manager, body)
    first, second = iter(queue_manager.browse(ORDERS)), iter(queue_manager.browse(ORDERS))
    assert [next(first).body, next(second).body, next(first).body, next(second).body] == [
        b"one",
        b"one",
        b"two",
        b"two",
    ]


def test_a_message_is_found_by_the_msg_id_that_put_returned(queue_manager):
    put(queue_manager, b"one")
    wanted = put(queue_manager, b"two")
    assert len(wanted) == 24
    assert bodies(queue_manager.browse(ORDERS, msg_id=wanted)) == [b"two"]
    assert queue_manager.get(ORDERS, msg_id=wanted).msg_id == wanted
    with refusal(2033):
        queue_manager.get(ORDERS, msg_id=wanted)


def test_a_message_is_found_by_correl_id(queue_manager):
    put(queue_manager, b"valve", MessageDescriptor(correl_id=VALVE))
    put(queue_manager, b"pump", MessageDescriptor(correl_id=PUMP))
    assert bodies(queue_manager.browse(ORDERS, correl_id=PUMP)) == [b"pump"]
    assert queue_manager.get(ORDERS, correl_id=PUMP).body == b"pump"
    with refusal(2033):
        queue_manager.get(ORDERS, correl_id=PUMP)


def test_both_identifiers_must_match(queue_manager):
    msg_id = put(queue_manager, b"pump", MessageDescriptor(correl_id=PUMP))
    assert bodies(queue_manager.browse(ORDERS, msg_id=msg_id, correl_id=VALVE)) == []
    with refusal(2033):
        queue_manager.get(ORDERS, msg_id=msg_id, correl_id=VALVE)
    assert queue_manager.get(ORDERS, msg_id=msg_id, correl_id=PUMP).body == b"pump"


def test_messages_with_one_chosen_msg_id_are_got_oldest_first(queue_manager):
    chosen = MessageDescriptor(msg_id=b"x" * 24)
    for body in (b"one", b"two", b"three"):
        put(queue_manager, body, chosen)
    assert bodies(queue_manager.browse(ORDERS, msg_id=b"x" * 24)) == [b"one", b"two", b"three"]
    got = [queue_manager.get(ORDERS, msg_id=b"x" * 24).body for _ in range(3)]
    assert got == [b"one", b"two", b"three"]


def test_a_message_that_is_passed_on_keeps_its_msg_id_and_is_found_by_it(queue_manager):
    msg_id = put(queue_manager, b"one")
    queue_manager.put(NEXT, queue_manager.get(ORDERS))
    assert queue_manager.get(NEXT, msg_id=msg_id).body == b"one"


def test_identifiers_of_the_wrong_length_are_refused(queue_manager):
    with refusal(2026):
        queue_manager.get(ORDERS, msg_id=b"short")
    with refusal(2026):
        put(queue_manager, b"", MessageDescriptor(correl_id=b"short"))


def test_an_empty_queue_gives_2033(queue_manager):
    with refusal(2033):
        queue_manager.get(ORDERS)


@pytest.mark.parametrize("name", ["NOWHERE", "", "a b", "é", "X" * 49])
def test_a_queue_that_is_not_defined_gives_2085(queue_manager, name):
    for call in (
        lambda: queue_manager.put(name, Message(ANY, b"")),
        lambda: queue_manager.get(name),
        lambda: list(queue_manager.browse(name)),
        lambda: queue_manager.depth(name),
        lambda: queue_manager.open_exclusively(name),
    ):
        with refusal(2085):
            call()


@pytest.mark.parametrize(
    ("fields", "reason_code"),
    [
        ({"persistence": 3}, 2047),
        ({"expiry": 0}, 2013),
        ({"expiry": -2}, 2013),
        ({"msg_type": 3}, 2029),
        ({"priority": -2}, 2050),
        ({"encoding": 2**31}, 2026),
        ({"reply_to_q": "X" * 49}, 2026),
        ({"put_appl_name": "\ud800"}, 2026),
        ({"format": b"NINEBYTES"}, 2026),
    ],
)
def test_a_descriptor_outside_its_ranges_is_refused_and_nothing_else_is(queue_manager, fields, reason_code):
    put(queue_manager, b"before")
    with refusal(reason_code):
        put(queue_manager, b"refused", MessageDescriptor(**fields))
    put(queue_manager, b"after")
    assert drain(queue_manager) == [b"before", b"after"]


def test_a_put_that_is_refused_does_not_end_the_unit_of_work(queue_manager):
    queue_manager.begin()
    put(queue_manager, b"one")
    with refusal(2085):
        queue_manager.put("NOWHERE", Message(ANY, b""))
    put(queue_manager, b"two")
    queue_manager.commit()
    assert drain(queue_manager) == [b"one", b"two"]


def test_puts_of_a_unit_of_work_are_seen_after_its_commit(queue_manager):
    queue_manager.begin()
    msg_id = put(queue_manager, b"one")
    assert list(queue_manager.browse(ORDERS)) == []
    with refusal(2033):
        queue_manager.get(ORDERS, msg_id=msg_id)
    queue_manager.commit()
    assert queue_manager.get(ORDERS, msg_id=msg_id).body == b"one"


def test_backed_out_puts_are_never_seen(queue_manager):
    queue_manager.begin()
    put(queue_manager, b"one")
    queue_manager.back_out()
    assert queue_manager.depth(ORDERS) == 0


def test_backed_out_gets_are_back_at_their_places_with_a_higher_back_out_count(queue_manager):
    for body in (b"one", b"two", b"three", b"four"):
        put(queue_manager, body)
    queue_manager.begin()
    assert queue_manager.get(ORDERS).body == b"one"
    second = queue_manager.get(ORDERS)
    assert bodies(queue_manager.browse(ORDERS)) == [b"three", b"four"]
    queue_manager.back_out()
    counts = [(message.body, message.backout_count) for message in queue_manager.browse(ORDERS)]
    assert counts == [(b"one", 1), (b"two", 1), (b"three", 0), (b"four", 0)]
    assert queue_manager.get(ORDERS, msg_id=second.msg_id).backout_count == 1
    assert drain(queue_manager) == [b"one", b"three", b"four"]


def test_committed_gets_are_gone(queue_manager):
    for body in (b"one", b"two"):
        put(queue_manager, body)
    queue_manager.begin()
    assert queue_manager.get(ORDERS).body == b"one"
    queue_manager.commit()
    assert drain(queue_manager) == [b"two"]


def test_a_unit_of_work_is_opened_once(queue_manager):
    queue_manager.begin()
    with refusal(2128):
        queue_manager.begin()


def test_commit_and_back_out_without_a_unit_of_work_do_nothing(queue_manager):
    queue_manager.commit()
    queue_manager.back_out()
    put(queue_manager, b"one")
    assert drain(queue_manager) == [b"one"]


def test_a_unit_of_work_has_a_largest_size(adapter, queue_manager):
    adapter.mqsc("ALTER QMGR MAXUMSGS(3)")
    queue_manager.begin()
    for _ in range(3):
        put(queue_manager, b"one")
    with refusal(2024):
        put(queue_manager, b"four")
    queue_manager.commit()
    assert queue_manager.depth(ORDERS) == 3


def test_a_batch_is_taken_in_the_open_unit_of_work(queue_manager):
    for body in (b"one", b"two", b"three", b"four"):
        put(queue_manager, body)
    with refusal(2255):
        queue_manager.take_batch(ORDERS, most_messages=2, most_bytes=1000)
    queue_manager.begin()
    assert bodies(queue_manager.take_batch(ORDERS, most_messages=2, most_bytes=1000)) == [b"one", b"two"]
    assert bodies(queue_manager.take_batch(ORDERS, most_messages=9, most_bytes=5)) == [b"three"]
    assert bodies(queue_manager.take_batch(ORDERS, most_messages=9, most_bytes=0)) == [b"four"]
    assert queue_manager.take_batch(ORDERS, most_messages=9, most_bytes=9) == ()
    queue_manager.back_out()
    assert drain(queue_manager) == [b"one", b"two", b"three", b"four"]


def test_a_batch_that_fills_the_unit_of_work_ends_early(adapter, queue_manager):
    adapter.mqsc("ALTER QMGR MAXUMSGS(3)")
    for body in (b"one", b"two", b"three", b"four"):
        put(queue_manager, body)
    queue_manager.begin()
    assert len(queue_manager.take_batch(ORDERS, most_messages=9, most_bytes=1000)) == 3
    queue_manager.commit()
    assert drain(queue_manager) == [b"four"]


def test_an_open_unit_of_work_is_backed_out_by_closing(queue_manager, adapter):
    put(queue_manager, b"one")
    queue_manager.begin()
    queue_manager.get(ORDERS)
    put(queue_manager, b"never")
    assert bodies(adapter.reconnect().browse(ORDERS)) == [b"one"]


def test_a_closed_connection_refuses_calls_with_2018(queue_manager):
    queue_manager.close()
    queue_manager.close()
    with refusal(2018):
        queue_manager.depth(ORDERS)


def test_a_large_message_passes_unchanged(queue_manager):
    body = bytes(range(256)) * 20_000
    put(queue_manager, body)
    assert queue_manager.get(ORDERS).body == body


def test_a_message_larger_than_the_queue_takes_gives_2030(queue_manager, adapter):
    adapter.mqsc(f"ALTER QLOCAL({ORDERS}) MAXMSGL(4)")
    assert queue_manager.maximum_message_bytes(ORDERS) == 4
    with refusal(2030):
        put(queue_manager, b"12345")
    put(queue_manager, b"1234")
    assert drain(queue_manager) == [b"1234"]


def test_a_full_queue_gives_2053(queue_manager, adapter):
    adapter.mqsc(f"ALTER QLOCAL({ORDERS}) MAXDEPTH(1)")
    put(queue_manager, b"one")
    with refusal(2053):
        put(queue_manager, b"two")


def test_what_a_unit_of_work_has_put_counts_against_the_depth(queue_manager, adapter):
    adapter.mqsc(f"ALTER QLOCAL({ORDERS}) MAXDEPTH(2)")
    queue_manager.begin()
    put(queue_manager, b"one")
    put(queue_manager, b"two")
    with refusal(2053):
        put(queue_manager, b"three")
    queue_manager.commit()
    assert drain(queue_manager) == [b"one", b"two"]


# -- waits, order, expiry and reports ----------------------------------------------------------------------------------


def test_a_get_that_waits_in_vain_gives_2033(queue_manager, adapter):
    if adapter.kind == "direct":
        pytest.skip("nothing can arrive at a store that its owner has for itself")
    started = time.monotonic()
    with refusal(2033):
        queue_manager.get(ORDERS, wait_s=0.1)
    assert time.monotonic() - started >= 0.05  # an event loop counts whole milliseconds, and some of them early


def test_a_get_that_waits_has_the_message_that_comes(queue_manager, adapter, other):
    is_there = Event()

    def wait_for_one() -> bytes:
        with adapter.another() as waiting:
            is_there.set()
            return waiting.get(ORDERS, wait_s=60, correl_id=PUMP).body

    with ThreadPoolExecutor() as pool:
        got = pool.submit(wait_for_one)
        assert is_there.wait(STEP_S)
        put(queue_manager, b"valve", MessageDescriptor(correl_id=VALVE))
        put(queue_manager, b"pump", MessageDescriptor(correl_id=PUMP))
        assert got.result(STEP_S) == b"pump"


def test_a_higher_priority_comes_first_and_the_older_of_the_same(queue_manager):
    for body, priority in ((b"low", 0), (b"high", 9), (b"middle", 4), (b"high too", 9)):
        put(queue_manager, body, MessageDescriptor(priority=priority))
    assert bodies(queue_manager.browse(ORDERS)) == [b"high", b"high too", b"middle", b"low"]
    assert drain(queue_manager) == [b"high", b"high too", b"middle", b"low"]


def test_a_higher_priority_comes_first_among_those_with_the_same_msg_id(queue_manager):
    for body, priority in ((b"low", 0), (b"high", 9), (b"middle", 4), (b"high too", 9)):
        put(queue_manager, body, MessageDescriptor(priority=priority, msg_id=b"x" * 24))
    assert bodies(queue_manager.browse(ORDERS, msg_id=b"x" * 24)) == [b"high", b"high too", b"middle", b"low"]
    got = [queue_manager.get(ORDERS, msg_id=b"x" * 24).body for _ in range(4)]
    assert got == [b"high", b"high too", b"middle", b"low"]


def test_persistence_is_as_given(queue_manager):
    for persistence in (MQPER_PERSISTENT, MQPER_NOT_PERSISTENT):
        put(queue_manager, b"", MessageDescriptor(persistence=persistence))
        assert queue_manager.get(ORDERS).descriptor.persistence == persistence


def test_an_expired_message_is_got_by_nobody(queue_manager):
    put(queue_manager, b"short-lived", MessageDescriptor(expiry=1))
    put(queue_manager, b"lasting", MessageDescriptor(expiry=36_000))
    deadline = time.monotonic() + STEP_S
    while len(bodies(queue_manager.browse(ORDERS))) == 2:
        assert time.monotonic() < deadline, "a tenth of a second does not pass"
    got = queue_manager.get(ORDERS)
    assert got.body == b"lasting"
    assert 30_000 < got.descriptor.expiry <= 36_000


@pytest.mark.parametrize("keeps_msg_id", [False, True])
def test_arrival_and_delivery_are_reported(queue_manager, keeps_msg_id):
    asked = ReportOption.CONFIRM_ON_ARRIVAL | ReportOption.CONFIRM_ON_DELIVERY
    report = int(asked) | (MQRO_PASS_MSG_ID if keeps_msg_id else 0)
    msg_id = put(queue_manager, b"one", MessageDescriptor(report=report, reply_to_q=NEXT))
    queue_manager.begin()
    assert queue_manager.get(ORDERS).body == b"one"
    queue_manager.commit()
    for feedback in (MQFB_COA, MQFB_COD):
        got = queue_manager.get(NEXT, wait_s=STEP_S)
        assert (got.descriptor.msg_type, got.descriptor.feedback) == (4, feedback)
        assert got.descriptor.correl_id == msg_id
        assert (got.msg_id == msg_id) is keeps_msg_id


def test_a_request_without_an_address_for_its_answer_is_2027(queue_manager):
    with refusal(2027):
        put(queue_manager, b"", MessageDescriptor(msg_type=1))


def test_a_blank_address_of_the_answer_becomes_this_queue_manager(queue_manager):
    put(queue_manager, b"", MessageDescriptor(reply_to_q=NEXT))
    assert queue_manager.get(ORDERS).descriptor.reply_to_q_mgr == queue_manager.name


# -- cursors, objects and identity -------------------------------------------------------------------------------------


def test_a_cursor_takes_what_it_stands_on(queue_manager):
    for body in (b"one", b"two", b"three"):
        put(queue_manager, body)
    cursor = queue_manager.browse(ORDERS)
    with refusal(2034):
        cursor.take()
    next(cursor)
    assert next(cursor).body == b"two"
    assert cursor.take().body == b"two"
    assert next(cursor).body == b"three"
    assert cursor.first().body == b"one"
    assert drain(queue_manager) == [b"one", b"three"]


def test_a_message_that_another_took_from_under_the_cursor_is_2034(queue_manager):
    put(queue_manager, b"one")
    cursor = queue_manager.browse(ORDERS)
    next(cursor)
    queue_manager.get(ORDERS)
    with refusal(2034):
        cursor.take()


def test_attributes_are_inquired_also_behind_an_alias(queue_manager, adapter):
    assert queue_manager.inquire(ORDERS)["MSGDLVSQ"] == "PRIORITY"
    adapter.mqsc(
        f"ALTER QLOCAL({ORDERS}) BOTHRESH(3) BOQNAME({NEXT}) MAXMSGL(1000) DEFPSIST(YES)",
        f"DEFINE QALIAS(RFHBRIDGE.TEST.ALIAS) TARGET({ORDERS})",
    )
    found = queue_manager.inquire("RFHBRIDGE.TEST.ALIAS")
    adapter.mqsc("DELETE QALIAS(RFHBRIDGE.TEST.ALIAS)")
    assert (found["BOTHRESH"], found["BOQNAME"], found["DEFPSIST"], found["PUT"]) == (3, NEXT, "YES", "ENABLED")
    assert queue_manager.maximum_message_bytes(ORDERS) == 1000


def test_attributes_of_the_queue_manager_are_inquired(queue_manager):
    found = queue_manager.inquire("")
    assert found.number("MAXUMSGS") >= 1
    assert found.number("MAXMSGL") >= queue_manager.maximum_message_bytes(ORDERS) > 0


def test_an_inhibited_queue_says_so(queue_manager, adapter):
    adapter.mqsc(f"ALTER QLOCAL({ORDERS}) PUT(DISABLED) GET(DISABLED)")
    with refusal(2051):
        put(queue_manager, b"")
    with refusal(2016):
        queue_manager.get(ORDERS)


def test_a_dynamic_queue_lives_as_long_as_the_connection_that_made_it(queue_manager, adapter):
    adapter.mqsc("DEFINE QMODEL(RFHBRIDGE.TEST.MODEL)")
    made = queue_manager.create_dynamic("RFHBRIDGE.TEST.MODEL", "RFHBRIDGE.TEST.*")
    assert made.startswith("RFHBRIDGE.TEST.")
    queue_manager.put(made, Message(MessageDescriptor(persistence=MQPER_NOT_PERSISTENT), b"one"))
    assert queue_manager.get(made).body == b"one"
    again = adapter.reconnect()
    adapter.mqsc("DELETE QMODEL(RFHBRIDGE.TEST.MODEL)")
    with refusal(2085):
        again.get(made)


@pytest.mark.parametrize("name", ["A-B", "", "X" * 33 + "*", "X" * 49])
def test_a_bad_name_of_a_dynamic_queue_is_2011(queue_manager, adapter, name):
    adapter.mqsc("DEFINE QMODEL(RFHBRIDGE.TEST.MODEL)")
    with refusal(2011):
        queue_manager.create_dynamic("RFHBRIDGE.TEST.MODEL", name)
    adapter.mqsc("DELETE QMODEL(RFHBRIDGE.TEST.MODEL)")


def test_a_queue_manager_has_an_identifier_that_stays(queue_manager, adapter):
    identifier = queue_manager.identifier
    assert 0 < len(identifier) <= 48
    assert adapter.reconnect().identifier == identifier
