"""Exclusive input: the part of the port's contract that channels use as a fence, on every implementation of it."""

import pytest

from mq_adapters.message import Message
from mq_adapters.queue_manager import QueueManager
from tests.mq_adapters.adapters import EVERY_KIND, ORDERS
from tests.mq_adapters.contract import ANY, bodies, drain, put, refusal
from tests.mq_adapters.gateway_thread import STEP_S

pytestmark = pytest.mark.parametrize("adapter", EVERY_KIND, indirect=True)


@pytest.fixture
def queue_manager(prepared: QueueManager) -> QueueManager:
    """A connection to the queue manager under test, with two empty queues."""
    return prepared


def test_a_queue_that_is_held_serves_its_holder_as_ever(queue_manager):
    for body in (b"one", b"two", b"three"):
        put(queue_manager, body)
    with queue_manager.open_exclusively(ORDERS) as held:
        assert bodies(held.messages()) == [b"one", b"two", b"three"]
        assert queue_manager.get(ORDERS).body == b"one"
        queue_manager.begin()
        assert bodies(queue_manager.take_batch(ORDERS, most_messages=9, most_bytes=9)) == [b"two", b"three"]
        queue_manager.commit()


def test_a_queue_is_held_once(queue_manager):
    with queue_manager.open_exclusively(ORDERS), refusal(2042):
        queue_manager.open_exclusively(ORDERS)
    queue_manager.open_exclusively(ORDERS).close()


def test_the_one_message_of_a_held_queue_is_replaced_in_a_unit_of_work(queue_manager):
    with queue_manager.open_exclusively(ORDERS) as state:
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
    state = queue_manager.open_exclusively(ORDERS)
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
    with queue_manager.open_exclusively(ORDERS):
        put(other, b"two")
        cursor = other.browse(ORDERS)
        assert next(cursor).body == b"one"
        with refusal(2042):
            cursor.take()
        with refusal(2042):
            other.get(ORDERS, wait_s=10)
        with refusal(2042):
            other.open_exclusively(ORDERS)
        other.begin()
        with refusal(2042):
            other.take_batch(ORDERS, most_messages=1, most_bytes=1)
        other.commit()
    assert drain(other) == [b"one", b"two"]


def test_a_held_queue_is_free_when_its_holder_goes(queue_manager, other):
    put(queue_manager, b"state")
    queue_manager.begin()
    queue_manager.open_exclusively(ORDERS).replace(Message(ANY, b"never"))
    queue_manager.close()
    with other.open_exclusively(ORDERS, wait_s=STEP_S) as state:
        assert bodies(state.messages()) == [b"state"]


def test_whoever_waits_for_a_held_queue_gets_it_when_it_is_free(queue_manager, other, monkeypatch):
    held = queue_manager.open_exclusively(ORDERS)
    waits_s = []

    def wait(seconds: float) -> None:
        waits_s.append(seconds)
        if len(waits_s) == 2:
            held.close()

    monkeypatch.setattr("mq_adapters.exclusive_queue.sleep", wait)
    other.open_exclusively(ORDERS, wait_s=10).close()
    assert len(waits_s) == 2


def test_a_queue_that_others_get_from_cannot_be_held(queue_manager, other):
    put(queue_manager, b"one")
    other.begin()
    other.get(ORDERS)
    with refusal(2042):
        queue_manager.open_exclusively(ORDERS)
    other.back_out()
