"""The contract of the port, on every implementation: the store's owner, and a client of the gateway's socket."""

import time
from collections.abc import Iterable

import pytest

from mq_adapters.attributes import DEFAULT_MAXIMUM_UNIT_MESSAGES
from mq_adapters.message import MQPER_NOT_PERSISTENT, MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.queue_manager import QueueManager
from mq_adapters.reasons import QueueManagerError

PUMP = b"pump".ljust(24, b"\0")
VALVE = b"valve".ljust(24, b"\0")
ANY = MessageDescriptor()


def put(queue_manager: QueueManager, body: bytes, descriptor: MessageDescriptor = ANY) -> bytes:
    return queue_manager.put("ORDERS", Message(descriptor, body))


def bodies(messages: Iterable[Message]) -> list[bytes]:
    return [message.body for message in messages]


def drain(queue_manager: QueueManager) -> list[bytes]:
    return [queue_manager.get("ORDERS").body for _ in range(queue_manager.depth("ORDERS"))]


def refusal(reason_code: int):
    return pytest.raises(QueueManagerError, match=str(reason_code))


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
        user_identifier="wärter",
        accounting_token=b"\x01" + bytes(31),
        appl_identity_data="identity",
        put_appl_type=28,
        put_appl_name="a program",
        appl_origin_data="orig",
    )
    put(queue_manager, b"\x00\xff", given)
    got = queue_manager.get("ORDERS")
    assert got.descriptor == given
    assert got.body == b"\x00\xff"


def test_the_queue_manager_names_the_application_and_the_time(queue_manager):
    put(queue_manager, b"")
    got = queue_manager.get("ORDERS")
    assert got.descriptor.put_appl_name == "a test"
    assert abs(got.put_us / 1e6 - time.time()) < 60


def test_one_message_object_may_be_put_twice(queue_manager):
    message = Message(ANY, b"again")
    first, second = queue_manager.put("ORDERS", message), queue_manager.put("ORDERS", message)
    assert first != second
    assert drain(queue_manager) == [b"again", b"again"]


def test_browse_shows_messages_without_taking_them(queue_manager):
    for body in (b"one", b"two"):
        put(queue_manager, body)
    assert bodies(queue_manager.browse("ORDERS")) == [b"one", b"two"]
    assert queue_manager.depth("ORDERS") == 2


def test_browse_reads_more_than_one_page(queue_manager):
    queue_manager.begin()
    expected = [b"%d" % number for number in range(250)]
    for body in expected:
        put(queue_manager, body)
    queue_manager.commit()
    assert bodies(queue_manager.browse("ORDERS")) == expected


def test_a_browse_that_is_left_early_is_forgotten(queue_manager):
    put(queue_manager, b"one")
    for _ in range(200):
        assert next(iter(queue_manager.browse("ORDERS"))).body == b"one"


def test_two_browses_may_be_read_in_turns(queue_manager):
    for body in (b"one", b"two"):
        put(queue_manager, body)
    first, second = iter(queue_manager.browse("ORDERS")), iter(queue_manager.browse("ORDERS"))
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
    assert bodies(queue_manager.browse("ORDERS", msg_id=wanted)) == [b"two"]
    assert queue_manager.get("ORDERS", msg_id=wanted).msg_id == wanted
    with refusal(2033):
        queue_manager.get("ORDERS", msg_id=wanted)


def test_a_message_is_found_by_correl_id(queue_manager):
    put(queue_manager, b"valve", MessageDescriptor(correl_id=VALVE))
    put(queue_manager, b"pump", MessageDescriptor(correl_id=PUMP))
    assert bodies(queue_manager.browse("ORDERS", correl_id=PUMP)) == [b"pump"]
    assert queue_manager.get("ORDERS", correl_id=PUMP).body == b"pump"
    with refusal(2033):
        queue_manager.get("ORDERS", correl_id=PUMP)


def test_both_identifiers_must_match(queue_manager):
    msg_id = put(queue_manager, b"pump", MessageDescriptor(correl_id=PUMP))
    assert bodies(queue_manager.browse("ORDERS", msg_id=msg_id, correl_id=VALVE)) == []
    with refusal(2033):
        queue_manager.get("ORDERS", msg_id=msg_id, correl_id=VALVE)
    assert queue_manager.get("ORDERS", msg_id=msg_id, correl_id=PUMP).body == b"pump"


def test_messages_with_one_chosen_msg_id_are_got_oldest_first(queue_manager):
    chosen = MessageDescriptor(msg_id=b"x" * 24)
    for body in (b"one", b"two", b"three"):
        put(queue_manager, body, chosen)
    assert bodies(queue_manager.browse("ORDERS", msg_id=b"x" * 24)) == [b"one", b"two", b"three"]
    got = [queue_manager.get("ORDERS", msg_id=b"x" * 24).body for _ in range(3)]
    assert got == [b"one", b"two", b"three"]


def test_a_message_that_is_passed_on_keeps_its_msg_id_and_is_found_by_it(queue_manager):
    queue_manager.define("NEXT")
    msg_id = put(queue_manager, b"one")
    queue_manager.put("NEXT", queue_manager.get("ORDERS"))
    assert queue_manager.get("NEXT", msg_id=msg_id).body == b"one"


def test_a_chosen_msg_id_replaces_the_one_that_would_have_been_made(queue_manager):
    made = put(queue_manager, b"one")
    put(queue_manager, b"two", MessageDescriptor(msg_id=b"x" * 24))
    would_be = made[:16] + (int.from_bytes(made[16:], "big") + 1).to_bytes(8, "big")
    with refusal(2033):
        queue_manager.get("ORDERS", msg_id=would_be)


@pytest.mark.parametrize("number", [0, 2**63, 2**64 - 1])
def test_a_made_up_msg_id_finds_nothing(queue_manager, number):
    made = put(queue_manager, b"one")
    with refusal(2033):
        queue_manager.get("ORDERS", msg_id=made[:16] + number.to_bytes(8, "big"))


def test_identifiers_of_the_wrong_length_are_refused(queue_manager):
    with refusal(2026):
        queue_manager.get("ORDERS", msg_id=b"short")
    with refusal(2026):
        put(queue_manager, b"", MessageDescriptor(correl_id=b"short"))


def test_an_empty_queue_gives_2033(queue_manager):
    with refusal(2033):
        queue_manager.get("ORDERS")


@pytest.mark.parametrize("name", ["NOWHERE", "", "a b", "é", "X" * 49])
def test_a_queue_that_is_not_defined_gives_2085(queue_manager, name):
    for call in (
        lambda: queue_manager.put(name, Message(ANY, b"")),
        lambda: queue_manager.get(name),
        lambda: list(queue_manager.browse(name)),
        lambda: queue_manager.depth(name),
        lambda: queue_manager.clear(name),
    ):
        with refusal(2085):
            call()


@pytest.mark.parametrize("name", ["", "a b", "é", "X" * 49, "A-B", "A\0B"])
def test_a_name_against_the_rules_gives_2152(queue_manager, name):
    with refusal(2152):
        queue_manager.define(name)


def test_a_second_definition_gives_2100(queue_manager):
    with refusal(2100):
        queue_manager.define("ORDERS")


@pytest.mark.parametrize(
    ("fields", "reason_code"),
    [
        ({"persistence": 3}, 2047),
        ({"expiry": 0}, 2013),
        ({"expiry": -2}, 2013),
        ({"msg_type": 3}, 2029),
        ({"priority": 10}, 2050),
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
    assert queue_manager.depth("ORDERS") == 0
    assert list(queue_manager.browse("ORDERS")) == []
    with refusal(2033):
        queue_manager.get("ORDERS", msg_id=msg_id)
    queue_manager.commit()
    assert queue_manager.get("ORDERS", msg_id=msg_id).body == b"one"


def test_backed_out_puts_are_never_seen(queue_manager):
    queue_manager.begin()
    put(queue_manager, b"one")
    queue_manager.back_out()
    assert queue_manager.depth("ORDERS") == 0


def test_backed_out_gets_are_back_at_their_places_with_a_higher_back_out_count(queue_manager):
    for body in (b"one", b"two", b"three", b"four"):
        put(queue_manager, body)
    queue_manager.begin()
    assert queue_manager.get("ORDERS").body == b"one"
    second = queue_manager.get("ORDERS")
    assert queue_manager.depth("ORDERS") == 4
    assert bodies(queue_manager.browse("ORDERS")) == [b"three", b"four"]
    queue_manager.back_out()
    counts = [(message.body, message.backout_count) for message in queue_manager.browse("ORDERS")]
    assert counts == [(b"one", 1), (b"two", 1), (b"three", 0), (b"four", 0)]
    assert queue_manager.get("ORDERS", msg_id=second.msg_id).backout_count == 1
    assert drain(queue_manager) == [b"one", b"three", b"four"]


def test_committed_gets_are_gone(queue_manager):
    for body in (b"one", b"two"):
        put(queue_manager, body)
    queue_manager.begin()
    assert queue_manager.get("ORDERS").body == b"one"
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
    assert DEFAULT_MAXIMUM_UNIT_MESSAGES == 10_000
    adapter.engine.objects.alter_queue_manager({"MAXUMSGS": 3})
    queue_manager.begin()
    for _ in range(3):
        put(queue_manager, b"one")
    with refusal(2024):
        put(queue_manager, b"four")
    queue_manager.commit()
    assert queue_manager.depth("ORDERS") == 3


def test_a_unit_of_work_has_a_largest_number_of_bytes(queue_manager, monkeypatch):
    monkeypatch.setattr("mq_adapters.embedded.application.MAXIMUM_UNIT_BYTES", 10)
    queue_manager.begin()
    put(queue_manager, b"12345678")
    with refusal(2024):
        put(queue_manager, b"123")


def test_a_batch_is_taken_in_the_open_unit_of_work(queue_manager):
    for body in (b"one", b"two", b"three", b"four"):
        put(queue_manager, body)
    with refusal(2255):
        queue_manager.take_batch("ORDERS", most_messages=2, most_bytes=1000)
    queue_manager.begin()
    assert bodies(queue_manager.take_batch("ORDERS", most_messages=2, most_bytes=1000)) == [b"one", b"two"]
    assert bodies(queue_manager.take_batch("ORDERS", most_messages=9, most_bytes=5)) == [b"three"]
    assert bodies(queue_manager.take_batch("ORDERS", most_messages=9, most_bytes=0)) == [b"four"]
    assert queue_manager.take_batch("ORDERS", most_messages=9, most_bytes=9) == ()
    queue_manager.back_out()
    assert drain(queue_manager) == [b"one", b"two", b"three", b"four"]


def test_a_batch_that_fills_the_unit_of_work_ends_early(adapter, queue_manager):
    adapter.engine.objects.alter_queue_manager({"MAXUMSGS": 3})
    for body in (b"one", b"two", b"three", b"four"):
        put(queue_manager, body)
    queue_manager.begin()
    assert len(queue_manager.take_batch("ORDERS", most_messages=9, most_bytes=1000)) == 3
    queue_manager.commit()
    assert drain(queue_manager) == [b"four"]


def test_clear_removes_every_message_and_says_how_many(queue_manager, adapter):
    queue_manager.begin()
    for number in range(2_500):
        put(queue_manager, b"%d" % number)
    queue_manager.commit()
    assert queue_manager.clear("ORDERS") == 2_500
    assert queue_manager.clear("ORDERS") == 0
    assert adapter.restart().depth("ORDERS") == 0


def test_queues_are_listed_with_depth_and_age(queue_manager):
    put(queue_manager, b"one", MessageDescriptor(correl_id=PUMP))
    put(queue_manager, b"two")
    status = {status.name: status for status in queue_manager.queues()}
    assert "SYSTEM.BROKER.CONTROL.QUEUE" in status
    assert status["ORDERS"].depth == 2
    assert status["ORDERS"].description == "for tests"
    assert abs(status["ORDERS"].oldest_put_us / 1e6 - time.time()) < 60
    assert status["SYSTEM.DEAD.LETTER.QUEUE"].oldest_put_us == 0


@pytest.mark.parametrize("matched", [True, False])
def test_an_expired_message_is_not_got_or_browsed(queue_manager, adapter, matched):
    adapter.pass_time(0)
    msg_id = put(queue_manager, b"short-lived", MessageDescriptor(expiry=10))
    put(queue_manager, b"lasting")
    adapter.pass_time(0.9)
    assert bodies(queue_manager.browse("ORDERS")) == [b"short-lived", b"lasting"]
    adapter.pass_time(0.2)
    assert bodies(queue_manager.browse("ORDERS")) == [b"lasting"]
    if matched:
        with refusal(2033):
            queue_manager.get("ORDERS", msg_id=msg_id)
    assert queue_manager.get("ORDERS").body == b"lasting"
    assert queue_manager.depth("ORDERS") == 0


def test_an_expiring_message_says_what_is_left(queue_manager, adapter):
    adapter.pass_time(0)
    put(queue_manager, b"one", MessageDescriptor(expiry=600))
    adapter.pass_time(20.05)
    assert next(iter(queue_manager.browse("ORDERS"))).descriptor.expiry == 400
    assert queue_manager.get("ORDERS").descriptor.expiry == 400


def test_persistent_messages_survive_a_restart_in_their_order_and_others_do_not(queue_manager, adapter):
    for body in (b"one", b"two"):
        put(queue_manager, body)
    put(queue_manager, b"fleeting", MessageDescriptor(persistence=MQPER_NOT_PERSISTENT))
    kept = put(queue_manager, b"three", MessageDescriptor(persistence=MQPER_PERSISTENT, correl_id=PUMP))
    again = adapter.restart()
    messages = list(again.browse("ORDERS"))
    assert bodies(messages) == [b"one", b"two", b"three"]
    assert [message.descriptor.persistence for message in messages] == [MQPER_PERSISTENT] * 3
    assert again.get("ORDERS", msg_id=kept, correl_id=PUMP).body == b"three"


def test_the_order_after_a_restart_is_the_order_before_it(queue_manager, adapter):
    queue_manager.begin()
    put(queue_manager, b"one")
    if adapter.gateway is not None:
        from mq_adapters.embedded.client import Client

        with Client(adapter.data_dir) as other:
            put(other, b"two")
    queue_manager.commit()
    before = bodies(queue_manager.browse("ORDERS"))
    assert bodies(adapter.restart().browse("ORDERS")) == before


def test_an_open_unit_of_work_is_backed_out_by_closing(queue_manager, adapter):
    put(queue_manager, b"one")
    queue_manager.begin()
    queue_manager.get("ORDERS")
    put(queue_manager, b"never")
    assert bodies(adapter.restart().browse("ORDERS")) == [b"one"]


def test_a_closed_connection_refuses_calls_with_2018(queue_manager):
    queue_manager.close()
    queue_manager.close()
    with refusal(2018):
        queue_manager.depth("ORDERS")


def test_what_is_put_on_the_control_queue_waits_without_a_broker(queue_manager):
    queue_manager.put("SYSTEM.BROKER.CONTROL.QUEUE", Message(ANY, b"command"))
    assert queue_manager.depth("SYSTEM.BROKER.CONTROL.QUEUE") == 1


def test_a_large_message_passes_unchanged(queue_manager):
    body = bytes(range(256)) * 20_000
    put(queue_manager, body)
    assert queue_manager.get("ORDERS").body == body


def test_a_message_larger_than_the_queue_takes_gives_2030(queue_manager, adapter):
    adapter.engine.queue("ORDERS").maximum_message_bytes = 4
    with refusal(2030):
        put(queue_manager, b"12345")
    put(queue_manager, b"1234")
    assert drain(queue_manager) == [b"1234"]


def test_a_full_queue_gives_2053(queue_manager, adapter):
    adapter.engine.queue("ORDERS").maximum_depth = 1
    put(queue_manager, b"one")
    with refusal(2053):
        put(queue_manager, b"two")


# -- exclusive input ---------------------------------------------------------------------------------------------------


def test_a_queue_that_is_held_serves_its_holder_as_ever(queue_manager):
    for body in (b"one", b"two", b"three"):
        put(queue_manager, body)
    with queue_manager.open_exclusively("ORDERS") as held:
        assert bodies(held.messages()) == [b"one", b"two", b"three"]
        assert queue_manager.get("ORDERS").body == b"one"
        queue_manager.begin()
        assert bodies(queue_manager.take_batch("ORDERS", most_messages=9, most_bytes=9)) == [b"two", b"three"]
        queue_manager.commit()


def test_a_queue_is_held_once(queue_manager):
    with queue_manager.open_exclusively("ORDERS"), refusal(2042):
        queue_manager.open_exclusively("ORDERS")
    queue_manager.open_exclusively("ORDERS").close()


def test_the_one_message_of_a_held_queue_is_replaced_in_a_unit_of_work(queue_manager):
    with queue_manager.open_exclusively("ORDERS") as state:
        for body in (b"first", b"second"):
            queue_manager.begin()
            state.replace(Message(ANY, body))
            queue_manager.commit()
            assert bodies(state.messages()) == [body]
        queue_manager.begin()
        state.replace(Message(ANY, b"never"))
        queue_manager.back_out()
        assert bodies(state.messages()) == [b"second"]
        with refusal(2255):
            state.replace(Message(ANY, b"outside"))
        assert bodies(state.messages()) == [b"second"]


def test_a_held_queue_that_was_closed_is_2019(queue_manager):
    state = queue_manager.open_exclusively("ORDERS")
    state.close()
    state.close()
    with refusal(2019):
        state.messages()
    with refusal(2019):
        state.replace(Message(ANY, b""))


def test_only_a_queue_that_is_there_can_be_held(queue_manager):
    with refusal(2085):
        queue_manager.open_exclusively("NOWHERE")


def test_others_may_put_on_a_held_queue_and_look_at_it_and_not_get_from_it(queue_manager, other):
    put(queue_manager, b"one")
    with queue_manager.open_exclusively("ORDERS"):
        put(other, b"two")
        cursor = other.browse("ORDERS")
        assert next(cursor).body == b"one"
        with refusal(2042):
            cursor.take()
        with refusal(2042):
            other.get("ORDERS", wait_s=10)
        with refusal(2042):
            other.open_exclusively("ORDERS")
        other.begin()
        with refusal(2042):
            other.take_batch("ORDERS", most_messages=1, most_bytes=1)
        other.commit()
    assert drain(other) == [b"one", b"two"]


def test_a_held_queue_is_free_when_its_holder_goes(queue_manager, other):
    put(queue_manager, b"state")
    queue_manager.begin()
    queue_manager.open_exclusively("ORDERS").replace(Message(ANY, b"never"))
    queue_manager.close()
    with other.open_exclusively("ORDERS", wait_s=10) as state:
        assert bodies(state.messages()) == [b"state"]


def test_whoever_waits_for_a_held_queue_gets_it_when_it_is_free(queue_manager, other, monkeypatch):
    held = queue_manager.open_exclusively("ORDERS")
    waits_s = []

    def wait(seconds: float) -> None:
        waits_s.append(seconds)
        if len(waits_s) == 2:
            held.close()

    monkeypatch.setattr("mq_adapters.exclusive_queue.sleep", wait)
    other.open_exclusively("ORDERS", wait_s=10).close()
    assert len(waits_s) == 2


def test_a_queue_that_others_get_from_cannot_be_held(queue_manager, other):
    put(queue_manager, b"one")
    other.begin()
    other.get("ORDERS")
    with refusal(2042):
        queue_manager.open_exclusively("ORDERS")
    other.back_out()
