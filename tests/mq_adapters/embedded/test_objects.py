"""The contract of the port for queues of every kind, on every implementation: attributes, aliases, reports, cursors."""

import pytest

from mq_adapters.attributes import ObjectType
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.store.verification import verify_store
from mq_adapters.message import (
    MQMT_REPORT,
    MQMT_REQUEST,
    MQPER_NOT_PERSISTENT,
    MQPER_PERSISTENT,
    MQRO_PASS_CORREL_ID,
    MQRO_PASS_MSG_ID,
    Message,
    MessageDescriptor,
)
from mq_adapters.reasons import QueueManagerError

PUMP = b"pump".ljust(24, b"\0")
COA, COA_WITH_DATA, COA_WITH_FULL_DATA = 0x100, 0x300, 0x700
COD, COD_WITH_DATA, COD_WITH_FULL_DATA = 0x800, 0x1800, 0x3800
EXPIRATION, EXPIRATION_WITH_DATA, EXPIRATION_WITH_FULL_DATA = 0x20_0000, 0x60_0000, 0xE0_0000

#: IBM MQ, "Message context".
IDENTITY_CONTEXT = ("user_identifier", "accounting_token", "appl_identity_data")
ORIGIN_CONTEXT = ("put_appl_type", "put_appl_name", "appl_origin_data")


def refusal(reason_code: int):
    return pytest.raises(QueueManagerError, match=str(reason_code))


def put(queue_manager, body, queue="ORDERS", **fields):
    return queue_manager.put(queue, Message(MessageDescriptor(**fields), body))


def drain(queue_manager, queue="ORDERS"):
    return [queue_manager.get(queue).body for _ in range(queue_manager.depth(queue))]


def mqsc(queue_manager, command):
    answer = queue_manager.mqsc(command)
    assert answer.succeeded, answer.lines
    return answer.lines


# -- order -------------------------------------------------------------------------------------------------------------


def test_a_higher_priority_comes_first_and_equals_in_the_order_they_were_put(queue_manager):
    for body, priority in ((b"low", 1), (b"high", 9), (b"low too", 1), (b"high too", 9), (b"middle", 5)):
        put(queue_manager, body, priority=priority)
    expected = [b"high", b"high too", b"middle", b"low", b"low too"]
    assert [message.body for message in queue_manager.browse("ORDERS")] == expected
    assert drain(queue_manager) == expected


def test_priority_orders_the_messages_of_one_correl_id_too(queue_manager):
    put(queue_manager, b"other", priority=9)
    put(queue_manager, b"low", priority=0, correl_id=PUMP)
    put(queue_manager, b"high", priority=3, correl_id=PUMP)
    assert queue_manager.get("ORDERS", correl_id=PUMP).body == b"high"
    assert drain(queue_manager) == [b"other", b"low"]


def test_messages_that_are_backed_out_return_to_their_places_among_the_priorities(queue_manager):
    for body, priority in ((b"low", 1), (b"high", 9)):
        put(queue_manager, body, priority=priority)
    queue_manager.begin()
    assert drain(queue_manager) == [b"high", b"low"]
    queue_manager.back_out()
    put(queue_manager, b"middle", priority=5)
    assert drain(queue_manager) == [b"high", b"middle", b"low"]


def test_a_first_in_first_out_queue_disregards_priority(queue_manager):
    mqsc(queue_manager, "DEFINE QLOCAL(FIFO) MSGDLVSQ(FIFO)")
    for body, priority in ((b"low", 1), (b"high", 9)):
        put(queue_manager, body, "FIFO", priority=priority)
    assert drain(queue_manager, "FIFO") == [b"low", b"high"]


def test_what_waits_is_put_into_the_new_order_when_the_delivery_sequence_is_altered(adapter, queue_manager):
    for body, priority in ((b"low", 1), (b"high", 9)):
        put(queue_manager, body, priority=priority)
    put(queue_manager, b"fleeting", priority=4, persistence=MQPER_NOT_PERSISTENT)
    mqsc(queue_manager, "ALTER QLOCAL(ORDERS) MSGDLVSQ(FIFO)")
    assert [message.body for message in queue_manager.browse("ORDERS")] == [b"low", b"high", b"fleeting"]
    mqsc(queue_manager, "ALTER QLOCAL(ORDERS) MSGDLVSQ(PRIORITY)")
    assert [message.body for message in queue_manager.browse("ORDERS")] == [b"high", b"fleeting", b"low"]
    again = adapter.restart()
    assert [message.body for message in again.browse("ORDERS")] == [b"high", b"low"]


# -- attributes --------------------------------------------------------------------------------------------------------


def test_what_the_putter_leaves_open_is_as_the_queue_says(queue_manager):
    mqsc(queue_manager, "ALTER QLOCAL(ORDERS) DEFPRTY(7) DEFPSIST(NO)")
    put(queue_manager, b"one", priority=-1)
    descriptor = queue_manager.get("ORDERS").descriptor
    assert (descriptor.priority, descriptor.persistence) == (7, MQPER_NOT_PERSISTENT)


def test_attributes_survive_a_restart(adapter, queue_manager):
    mqsc(queue_manager, "ALTER QLOCAL(ORDERS) MAXDEPTH(1) BOTHRESH(3) BOQNAME(BAD.ORDERS) DESCR('it''s ours')")
    found = adapter.restart().inquire("ORDERS")
    assert (found.number("MAXDEPTH"), found.number("BOTHRESH"), found.text("BOQNAME")) == (1, 3, "BAD.ORDERS")
    assert found.text("DESCR") == "it's ours"


@pytest.mark.parametrize(
    ("alteration", "reason_code"), [("MAXDEPTH(1)", 2053), ("MAXMSGL(2)", 2030), ("PUT(DISABLED)", 2051)]
)
def test_a_put_that_the_queue_does_not_allow_is_refused(queue_manager, alteration, reason_code):
    put(queue_manager, b"one")
    mqsc(queue_manager, f"ALTER QLOCAL(ORDERS) {alteration}")
    with refusal(reason_code):
        put(queue_manager, b"two")
    assert drain(queue_manager) == [b"one"]


def test_gets_and_browses_are_refused_while_they_are_inhibited(queue_manager):
    put(queue_manager, b"one")
    mqsc(queue_manager, "ALTER QLOCAL(ORDERS) GET(DISABLED)")
    with refusal(2016):
        queue_manager.get("ORDERS")
    with refusal(2016):
        next(queue_manager.browse("ORDERS"))
    mqsc(queue_manager, "ALTER QLOCAL(ORDERS) GET(ENABLED)")
    assert drain(queue_manager) == [b"one"]


def test_the_queue_manager_has_a_longest_message(queue_manager):
    mqsc(queue_manager, "ALTER QMGR MAXMSGL(3)")
    with refusal(2031):
        put(queue_manager, b"four")


# -- aliases and remote queues -----------------------------------------------------------------------------------------


def test_an_alias_leads_to_its_target_for_puts_gets_and_browses(queue_manager):
    mqsc(queue_manager, "DEFINE QALIAS(DOOR) TARGET(ORDERS) DEFPRTY(8)")
    put(queue_manager, b"one", "DOOR", priority=-1)
    assert [message.descriptor.priority for message in queue_manager.browse("DOOR")] == [8]
    assert queue_manager.depth("ORDERS") == 1
    assert queue_manager.get("DOOR").body == b"one"
    assert queue_manager.inquire("DOOR").name == "ORDERS"


def test_an_alias_may_be_inhibited_alone(queue_manager):
    mqsc(queue_manager, "DEFINE QALIAS(DOOR) TARGET(ORDERS) PUT(DISABLED) GET(DISABLED)")
    with refusal(2051):
        put(queue_manager, b"one", "DOOR")
    put(queue_manager, b"one")
    with refusal(2016):
        queue_manager.get("DOOR")
    assert drain(queue_manager) == [b"one"]


def test_an_alias_to_nothing_and_an_alias_to_an_alias_are_refused(queue_manager):
    mqsc(queue_manager, "DEFINE QALIAS(DOOR) TARGET(NOWHERE)")
    mqsc(queue_manager, "DEFINE QALIAS(PORCH) TARGET(DOOR)")
    for queue, reason_code in (("DOOR", 2082), ("PORCH", 2001)):
        with refusal(reason_code):
            put(queue_manager, b"one", queue)
        with refusal(reason_code):
            queue_manager.get(queue)


def test_a_put_on_a_remote_queue_waits_on_its_transmission_queue_behind_an_mqxqh(queue_manager):
    mqsc(queue_manager, "DEFINE QLOCAL(TO.QM2) USAGE(XMITQ)")
    mqsc(queue_manager, "DEFINE QREMOTE(FAR) RNAME(THEIR.ORDERS) RQMNAME(QM2) XMITQ(TO.QM2)")
    msg_id = put(queue_manager, b"one", "FAR", correl_id=PUMP, format=b"MQSTR   ", priority=6)
    waiting = queue_manager.get("TO.QM2")
    assert len(msg_id) == 24
    assert waiting.descriptor.format == b"MQXMIT  "
    assert waiting.descriptor.correl_id == msg_id != waiting.msg_id
    assert waiting.descriptor.priority == 6
    assert len(waiting.body) == 428 + 3
    assert waiting.body[:8] == b"XQH \x01\0\0\0"
    assert waiting.body[8:56] == b"THEIR.ORDERS".ljust(48)
    assert waiting.body[56:104] == b"QM2".ljust(48)
    assert waiting.body[104:112] == b"MD  \x01\0\0\0"
    embedded = waiting.body[104:428]
    assert embedded[32:40] == b"MQSTR   "
    assert (embedded[48:72], embedded[72:96]) == (msg_id, PUMP)
    assert waiting.body[428:] == b"one"


def test_a_remote_queue_without_a_way_is_refused(queue_manager):
    mqsc(queue_manager, "DEFINE QREMOTE(FAR) RNAME(THEIR.ORDERS) RQMNAME(QM2)")
    with refusal(2087):
        put(queue_manager, b"one", "FAR")
    mqsc(queue_manager, "ALTER QREMOTE(FAR) XMITQ(TO.QM2)")
    with refusal(2196):
        put(queue_manager, b"one", "FAR")
    mqsc(queue_manager, "DEFINE QLOCAL(TO.QM2)")
    with refusal(2092):
        put(queue_manager, b"one", "FAR")
    mqsc(queue_manager, "ALTER QLOCAL(TO.QM2) USAGE(XMITQ)")
    put(queue_manager, b"one", "FAR")
    assert queue_manager.depth("TO.QM2") == 1
    with refusal(2045):
        queue_manager.get("FAR")


def test_a_remote_queue_may_lead_back_to_this_queue_manager(queue_manager):
    mqsc(queue_manager, f"DEFINE QREMOTE(NEAR) RNAME(ORDERS) RQMNAME({queue_manager.name})")
    put(queue_manager, b"one", "NEAR")
    assert drain(queue_manager) == [b"one"]


# -- dynamic queues ----------------------------------------------------------------------------------------------------


def test_a_temporary_dynamic_queue_is_its_model_with_a_name_of_its_own(queue_manager):
    mqsc(queue_manager, "DEFINE QMODEL(ANSWERS) DEFPRTY(4) MAXDEPTH(1)")
    one, two = (queue_manager.create_dynamic("ANSWERS", "MINE.*") for _ in range(2))
    assert one != two
    assert one.startswith("MINE.")
    put(queue_manager, b"one", one, priority=-1)
    got = queue_manager.get(one)
    assert (got.descriptor.priority, got.descriptor.persistence) == (4, MQPER_NOT_PERSISTENT)
    with refusal(2048):
        put(queue_manager, b"one", one, persistence=MQPER_PERSISTENT)
    put(queue_manager, b"one", one)
    with refusal(2053):
        put(queue_manager, b"two", one)


def test_a_temporary_dynamic_queue_ends_with_its_connection(adapter, queue_manager):
    mqsc(queue_manager, "DEFINE QMODEL(ANSWERS)")
    name = queue_manager.create_dynamic("ANSWERS")
    put(queue_manager, b"one", name)
    again = adapter.restart()
    with refusal(2085):
        again.get(name)


@pytest.mark.parametrize(
    ("model", "name", "reason_code"),
    [("NONE", "A.*", 2085), ("ORDERS", "A.*", 2057), ("ANSWERS", "ORDERS", 2100), ("ANSWERS", "A B*", 2011)],
)
def test_a_dynamic_queue_that_cannot_be_is_refused(queue_manager, model, name, reason_code):
    mqsc(queue_manager, "DEFINE QMODEL(ANSWERS)")
    with refusal(reason_code):
        queue_manager.create_dynamic(model, name)


def test_nothing_is_put_on_a_model(queue_manager):
    mqsc(queue_manager, "DEFINE QMODEL(ANSWERS)")
    with refusal(2045):
        put(queue_manager, b"one", "ANSWERS")


# -- reports -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def answers(queue_manager):
    """The queue manager, with queue ANSWERS for reports."""
    queue_manager.define("ANSWERS")
    return queue_manager


@pytest.mark.parametrize(
    ("report", "data"), [(COA, b""), (COA_WITH_DATA, b"x" * 100), (COA_WITH_FULL_DATA, b"x" * 150)]
)
def test_arrival_is_confirmed_with_as_much_data_as_was_asked_for(answers, report, data):
    msg_id = put(answers, b"x" * 150, report=report, reply_to_q="ANSWERS", format=b"MQSTR   ", priority=3)
    told = answers.get("ANSWERS")
    descriptor = told.descriptor
    assert (descriptor.msg_type, descriptor.feedback, descriptor.report) == (MQMT_REPORT, 259, 0)
    assert (descriptor.correl_id, told.body) == (msg_id, data)
    assert told.msg_id != msg_id
    assert (descriptor.format, descriptor.priority, descriptor.persistence) == (b"MQSTR   ", 3, MQPER_PERSISTENT)
    assert (descriptor.put_appl_type, descriptor.put_appl_name) == (7, answers.name)
    assert descriptor.reply_to_q_mgr == answers.name


@pytest.mark.parametrize(("report", "data"), [(COD, b""), (COD_WITH_DATA, b"x"), (COD_WITH_FULL_DATA, b"x")])
def test_delivery_is_confirmed_when_the_message_is_got(answers, report, data):
    msg_id = put(answers, b"x", report=report, reply_to_q="ANSWERS")
    assert answers.depth("ANSWERS") == 0
    answers.get("ORDERS")
    told = answers.get("ANSWERS")
    assert (told.descriptor.feedback, told.descriptor.correl_id, told.body) == (260, msg_id, data)


def test_a_report_passes_identifiers_where_it_is_asked_to(answers):
    msg_id = put(
        answers,
        b"x",
        report=COA | MQRO_PASS_MSG_ID | MQRO_PASS_CORREL_ID,
        reply_to_q="ANSWERS",
        correl_id=PUMP,
    )
    told = answers.get("ANSWERS")
    assert (told.msg_id, told.descriptor.correl_id) == (msg_id, PUMP)


def test_reports_are_in_the_unit_of_work_of_what_they_report(answers):
    answers.begin()
    put(answers, b"x", report=COA | COD, reply_to_q="ANSWERS")
    answers.back_out()
    assert answers.depth("ANSWERS") == 0
    put(answers, b"x", report=COD, reply_to_q="ANSWERS")
    answers.begin()
    answers.get("ORDERS")
    answers.back_out()
    assert answers.depth("ANSWERS") == 0
    answers.get("ORDERS")
    assert answers.depth("ANSWERS") == 1


@pytest.mark.parametrize(
    ("report", "data"), [(EXPIRATION, b""), (EXPIRATION_WITH_DATA, b"x"), (EXPIRATION_WITH_FULL_DATA, b"x")]
)
def test_expiration_is_reported(adapter, answers, report, data):
    put(answers, b"x", report=report, reply_to_q="ANSWERS", expiry=1)
    adapter.pass_time(1)
    with refusal(2033):
        answers.get("ORDERS")
    told = answers.get("ANSWERS")
    assert (told.descriptor.feedback, told.descriptor.expiry, told.body) == (258, -1, data)


def test_a_report_that_has_no_queue_is_a_dead_letter(queue_manager):
    put(queue_manager, b"x", report=COA, reply_to_q="NOWHERE")
    letter = queue_manager.get("SYSTEM.DEAD.LETTER.QUEUE")
    assert letter.descriptor.format == b"MQDEAD  "
    assert int.from_bytes(letter.body[8:12], "little") == 2085
    mqsc(queue_manager, "DEFINE QLOCAL(LOST)")
    mqsc(queue_manager, "ALTER QMGR DEADQ(LOST)")
    put(queue_manager, b"x", report=COA, reply_to_q="NOWHERE")
    assert queue_manager.depth("LOST") == 1


@pytest.mark.parametrize("fields", [{"report": COA}, {"report": EXPIRATION}, {"msg_type": MQMT_REQUEST}])
def test_who_asks_for_an_answer_must_say_where(queue_manager, fields):
    with refusal(2027):
        put(queue_manager, b"x", **fields)


@pytest.mark.parametrize("report", [0x1000_0000, 0x10_0000, 0x8_0000, 0x4_0000, 0x2_0000, 0x1_0000, 0x8000])
def test_a_report_option_that_nobody_knows_is_2061(queue_manager, report):
    with refusal(2061):
        put(queue_manager, b"x", report=report)
    assert queue_manager.depth("ORDERS") == 0


@pytest.mark.parametrize("report", [0, 4, 0x20, 0x4000, 0x20 | MQRO_PASS_MSG_ID, -(2**31), 0x4000_0000])
def test_a_report_option_that_may_be_unknown_is_let_through_as_it_is(queue_manager, report):
    put(queue_manager, b"x", report=report)
    assert queue_manager.get("ORDERS").descriptor.report == report


def test_a_report_option_for_the_next_queue_manager_passes_on_a_transmission_queue(queue_manager):
    mqsc(queue_manager, "DEFINE QLOCAL(QM2) USAGE(XMITQ)")
    mqsc(queue_manager, "DEFINE QREMOTE(FAR) RNAME(Q) RQMNAME(QM2)")
    put(queue_manager, b"x", queue="FAR", report=0x8000)
    assert queue_manager.depth("QM2") == 1
    with refusal(2061):
        put(queue_manager, b"x", queue="FAR", report=0x4_0000)


def test_a_format_is_padded_to_eight_bytes_and_a_longer_one_is_named(queue_manager):
    put(queue_manager, b"x", format=b"MQSTR")
    assert queue_manager.get("ORDERS").descriptor.format == b"MQSTR   "
    with pytest.raises(QueueManagerError, match=r"field Format has 9 bytes.*2026"):
        put(queue_manager, b"x", format=b"MQSTRING ")


def test_a_report_that_is_to_be_discarded_where_it_cannot_go_is_no_dead_letter(queue_manager):
    put(queue_manager, b"x", report=COA | 0x4000 | 0x0800_0000, reply_to_q="NOWHERE")
    assert queue_manager.depth("SYSTEM.DEAD.LETTER.QUEUE") == 0


def test_a_reply_queue_without_a_queue_manager_is_here(queue_manager):
    put(queue_manager, b"x", reply_to_q="ANSWERS")
    assert queue_manager.get("ORDERS").descriptor.reply_to_q_mgr == queue_manager.name


# -- context -----------------------------------------------------------------------------------------------------------


def test_context_that_is_passed_arrives_and_what_is_blank_is_filled_in(queue_manager):
    put(
        queue_manager,
        b"question",
        user_identifier="anna",
        accounting_token=b"\x16" + bytes(31),
        appl_identity_data="till 4",
        put_appl_type=28,
        put_appl_name="a till",
        appl_origin_data="shop",
    )
    question = queue_manager.get("ORDERS").descriptor
    for passed_fields in (IDENTITY_CONTEXT, IDENTITY_CONTEXT + ORIGIN_CONTEXT):
        passed_context = {name: getattr(question, name) for name in passed_fields}
        queue_manager.put("ORDERS", Message(MessageDescriptor(**passed_context), b"answer"))
    identity, everything = (queue_manager.get("ORDERS").descriptor for _ in range(2))
    for passed in (identity, everything):
        assert (passed.user_identifier, passed.appl_identity_data) == ("anna", "till 4")
        assert passed.accounting_token == b"\x16" + bytes(31)
    assert (identity.put_appl_type, identity.put_appl_name, identity.appl_origin_data) == (6, "a test", "")
    assert (everything.put_appl_type, everything.put_appl_name, everything.appl_origin_data) == (28, "a till", "shop")


# -- back-out ----------------------------------------------------------------------------------------------------------


def test_a_back_out_count_survives_a_restart(adapter, queue_manager):
    put(queue_manager, b"poison")
    for _ in range(2):
        queue_manager.begin()
        queue_manager.get("ORDERS")
        queue_manager.back_out()
    assert adapter.restart().get("ORDERS").backout_count == 2


def test_a_back_out_count_that_is_not_hardened_ends_with_the_queue_manager(adapter, queue_manager):
    mqsc(queue_manager, "ALTER QLOCAL(ORDERS) NOHARDENBO")
    put(queue_manager, b"poison")
    queue_manager.begin()
    queue_manager.get("ORDERS")
    queue_manager.back_out()
    assert next(queue_manager.browse("ORDERS")).backout_count == 1
    assert adapter.restart().get("ORDERS").backout_count == 0


# -- cursors -----------------------------------------------------------------------------------------------------------


def test_a_cursor_goes_to_the_next_and_back_to_the_first(queue_manager):
    for body in (b"one", b"two", b"three"):
        put(queue_manager, body)
    cursor = queue_manager.browse("ORDERS")
    with refusal(2034):
        cursor.take()
    assert [next(cursor).body, next(cursor).body] == [b"one", b"two"]
    assert cursor.first().body == b"one"
    assert [message.body for message in cursor] == [b"two", b"three"]


def test_the_message_under_the_cursor_can_be_taken_once(queue_manager):
    for body in (b"one", b"two", b"three"):
        put(queue_manager, body)
    cursor, other = queue_manager.browse("ORDERS"), queue_manager.browse("ORDERS")
    for each in (cursor, other):
        next(each)
        next(each)
    queue_manager.begin()
    assert cursor.take().body == b"two"
    with refusal(2034):
        cursor.take()
    with refusal(2034):
        other.take()
    queue_manager.back_out()
    assert drain(queue_manager) == [b"one", b"two", b"three"]


def test_the_first_of_an_empty_queue_is_2033(queue_manager):
    with refusal(2033):
        queue_manager.browse("ORDERS").first()


# -- objects -----------------------------------------------------------------------------------------------------------


def test_an_inquiry_finds_every_kind_of_queue_and_the_queue_manager(queue_manager):
    mqsc(queue_manager, "DEFINE QMODEL(ANSWERS)")
    assert queue_manager.inquire("ANSWERS").object_type == ObjectType.QMODEL
    assert queue_manager.inquire("").text("DEADQ") == "SYSTEM.DEAD.LETTER.QUEUE"
    with refusal(2085):
        queue_manager.inquire("NOWHERE")


def test_a_queue_that_is_deleted_is_gone_with_its_messages_also_after_a_restart(adapter, queue_manager):
    put(queue_manager, b"one")
    assert not queue_manager.mqsc("DELETE QLOCAL(ORDERS)").succeeded
    mqsc(queue_manager, "DELETE QLOCAL(ORDERS) PURGE")
    with refusal(2085):
        put(queue_manager, b"two")
    again = adapter.restart()
    with refusal(2085):
        again.depth("ORDERS")
    again.define("ORDERS")
    assert again.depth("ORDERS") == 0


def test_a_queue_that_is_deleted_takes_its_back_out_counts_along(tmp_path):
    with Direct(tmp_path) as queue_manager:
        queue_manager.define("ORDERS")
        queue_manager.define("OTHERS")
        for name in ("ORDERS", "OTHERS"):
            queue_manager.put(name, Message(MessageDescriptor(persistence=MQPER_PERSISTENT), b"one"))
            queue_manager.begin()
            queue_manager.get(name)
            queue_manager.back_out()
        mqsc(queue_manager, "DELETE QLOCAL(ORDERS) PURGE")
    assert verify_store(tmp_path).is_sound
    with Direct(tmp_path) as queue_manager:
        assert queue_manager.get("OTHERS").backout_count == 1


def test_a_queue_with_uncommitted_messages_is_not_deleted(queue_manager):
    queue_manager.begin()
    put(queue_manager, b"one")
    assert not queue_manager.mqsc("DELETE QLOCAL(ORDERS) PURGE").succeeded
    queue_manager.commit()
    assert drain(queue_manager) == [b"one"]
