"""What the embedded queue manager can beside the port's contract: queues, their administration, restarts, its clock."""

import time
from collections.abc import Iterable

import pytest

from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.message import MQPER_NOT_PERSISTENT, MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.queue_manager import QueueAdministration
from mq_adapters.reasons import QueueManagerError

PUMP = b"pump".ljust(24, b"\0")
ANY = MessageDescriptor()


def put(queue_manager: QueueAdministration, body: bytes, descriptor: MessageDescriptor = ANY) -> bytes:
    return queue_manager.put("ORDERS", Message(descriptor, body))


def bodies(messages: Iterable[Message]) -> list[bytes]:
    return [message.body for message in messages]


def drain(queue_manager: QueueAdministration) -> list[bytes]:
    return [queue_manager.get("ORDERS").body for _ in range(queue_manager.depth("ORDERS"))]


def refusal(reason_code: int):
    return pytest.raises(QueueManagerError, match=str(reason_code))


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


@pytest.mark.parametrize("name", ["", "a b", "é", "X" * 49, "A-B", "A\0B"])
def test_a_name_against_the_rules_gives_2152(queue_manager, name):
    with refusal(2152):
        queue_manager.define(name)


def test_a_second_definition_gives_2100(queue_manager):
    with refusal(2100):
        queue_manager.define("ORDERS")


def test_a_unit_of_work_has_a_largest_number_of_bytes(queue_manager, monkeypatch):
    monkeypatch.setattr("mq_adapters.embedded.application.MAXIMUM_UNIT_BYTES", 10)
    queue_manager.begin()
    put(queue_manager, b"12345678")
    with refusal(2024):
        put(queue_manager, b"123")


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
        with SocketClient(adapter.data_dir) as other:
            put(other, b"two")
    queue_manager.commit()
    before = bodies(queue_manager.browse("ORDERS"))
    assert bodies(adapter.restart().browse("ORDERS")) == before


def test_what_is_put_on_the_control_queue_waits_without_a_broker(queue_manager):
    queue_manager.put("SYSTEM.BROKER.CONTROL.QUEUE", Message(ANY, b"command"))
    assert queue_manager.depth("SYSTEM.BROKER.CONTROL.QUEUE") == 1


def test_a_priority_outside_its_range_is_refused(queue_manager):
    with refusal(2050):
        put(queue_manager, b"refused", MessageDescriptor(priority=10))


def test_a_queue_that_is_not_defined_cannot_be_cleared(queue_manager):
    with refusal(2085):
        queue_manager.clear("NOWHERE")


def test_text_that_is_not_ascii_arrives(queue_manager):
    put(queue_manager, b"", MessageDescriptor(user_identifier="wärter"))
    assert queue_manager.get("ORDERS").descriptor.user_identifier == "wärter"
