"""Back-out threshold and requeue queue: what an application does with a message that it cannot work on."""

import pytest

from mappings.headers.chain import read_header_chain
from mq_adapters.back_out import requeued
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError

PUMP = b"pump".ljust(24, b"\0")


@pytest.fixture
def orders(queue_manager):
    """The queue manager; ORDERS has a threshold of two and a requeue queue."""
    for command in ("DEFINE QLOCAL(ORDERS.BAD)", "ALTER QLOCAL(ORDERS) BOTHRESH(2) BOQNAME(ORDERS.BAD)"):
        assert queue_manager.mqsc(command).succeeded
    return queue_manager


def worked_on(queue_manager, times):
    """Gets the first message and fails to work on it, as often as that; whether each time it was put aside."""
    put_aside = []
    for _ in range(times):
        queue_manager.begin()
        message = queue_manager.get("ORDERS")
        put_aside.append(requeued(queue_manager, "ORDERS", message))
        queue_manager.commit() if put_aside[-1] else queue_manager.back_out()
    return put_aside


def test_a_message_is_requeued_as_it_is_when_it_was_backed_out_as_often_as_the_queue_says(orders):
    msg_id = orders.put("ORDERS", Message(MessageDescriptor(correl_id=PUMP, priority=4, format=b"MQSTR   "), b"bad"))
    orders.put("ORDERS", Message(MessageDescriptor(), b"good"))
    assert worked_on(orders, 3) == [False, False, True]
    moved = orders.get("ORDERS.BAD")
    assert (moved.msg_id, moved.descriptor.correl_id, moved.body) == (msg_id, PUMP, b"bad")
    assert (moved.descriptor.priority, moved.descriptor.format) == (4, b"MQSTR   ")
    assert orders.get("ORDERS").body == b"good"


def test_requeueing_is_in_the_unit_of_work_of_the_get(orders):
    orders.put("ORDERS", Message(MessageDescriptor(), b"bad"))
    worked_on(orders, 2)
    orders.begin()
    assert requeued(orders, "ORDERS", orders.get("ORDERS"))
    orders.back_out()
    assert (orders.depth("ORDERS"), orders.depth("ORDERS.BAD")) == (1, 0)


@pytest.mark.parametrize(
    "command",
    ["ALTER QLOCAL(ORDERS) BOQNAME(' ')", "ALTER QLOCAL(ORDERS.BAD) PUT(DISABLED)", "DELETE QLOCAL(ORDERS.BAD)"],
)
def test_without_a_requeue_queue_that_takes_it_it_becomes_a_dead_letter_with_reason_2362(orders, command):
    assert orders.mqsc(command).succeeded
    msg_id = orders.put("ORDERS", Message(MessageDescriptor(format=b"MQSTR   "), b"bad"))
    assert worked_on(orders, 3) == [False, False, True]
    letter = orders.get("SYSTEM.DEAD.LETTER.QUEUE")
    chain = read_header_chain(letter.body, format=letter.descriptor.format, coded_char_set_id=1208, encoding=546)
    [header] = chain.headers
    assert (header.reason, header.dest_q_name, header.dest_q_mgr_name) == (2362, "ORDERS", orders.name)
    assert (letter.msg_id, letter.body[chain.body_offset :]) == (msg_id, b"bad")


def test_where_not_even_the_dead_letter_queue_takes_it_the_message_stays(orders):
    assert orders.mqsc("ALTER QLOCAL(ORDERS) BOQNAME(' ')").succeeded
    assert orders.mqsc("ALTER QMGR DEADQ(' ')").succeeded
    orders.put("ORDERS", Message(MessageDescriptor(), b"bad"))
    worked_on(orders, 2)
    orders.begin()
    message = orders.get("ORDERS")
    with pytest.raises(QueueManagerError, match="2085"):
        requeued(orders, "ORDERS", message)
    orders.back_out()
    assert orders.depth("ORDERS") == 1


def test_without_a_threshold_nothing_is_put_aside(orders):
    assert orders.mqsc("ALTER QLOCAL(ORDERS) BOTHRESH(0)").succeeded
    orders.put("ORDERS", Message(MessageDescriptor(), b"bad"))
    assert worked_on(orders, 4) == [False] * 4


def test_an_alias_has_the_threshold_of_its_target(orders):
    assert orders.mqsc("DEFINE QALIAS(WANTED) TARGET(ORDERS)").succeeded
    orders.put("WANTED", Message(MessageDescriptor(), b"bad"))
    worked_on(orders, 2)
    orders.begin()
    assert requeued(orders, "WANTED", orders.get("WANTED"))
    orders.commit()
    assert orders.get("ORDERS.BAD").body == b"bad"
