"""Queues that change while they are in use: inhibited and served, deleted and awaited; and subscriptions by MQSC."""

import threading

import pytest

from mq_adapters.attributes import ObjectType
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError

STEP_S = 10.0
PUMP = b"pump".ljust(24, b"\0")


def put(engine: Engine, name: str, body: bytes, **fields: object) -> None:
    unit = engine.begin()
    engine.put(unit, engine.queue(name), Message(MessageDescriptor(**fields), body))
    engine.submit(unit)


def mqsc(engine: Engine, command: str) -> list[str]:
    answer = CommandServer(engine).execute(command)
    assert answer.succeeded, answer.lines
    return list(answer.lines)


def test_puts_wait_on_a_served_queue_whose_gets_are_inhibited(engine):
    served: list[bytes] = []
    engine.serve(engine.queue("ORDERS"), lambda _unit, _queue, message: served.append(message.body))
    put(engine, "ORDERS", b"one")
    mqsc(engine, "ALTER QLOCAL(ORDERS) GET(DISABLED)")
    put(engine, "ORDERS", b"two")
    assert (served, engine.queue("ORDERS").depth) == ([b"one"], 1)
    mqsc(engine, "ALTER QLOCAL(ORDERS) GET(ENABLED)")
    put(engine, "ORDERS", b"three")
    assert (served, engine.queue("ORDERS").depth) == ([b"one", b"two", b"three"], 0)


def test_a_queue_that_is_inhibited_when_it_comes_to_be_served_waits_too(engine):
    mqsc(engine, "ALTER QLOCAL(ORDERS) GET(DISABLED)")
    served: list[bytes] = []
    engine.serve(engine.queue("ORDERS"), lambda _unit, _queue, message: served.append(message.body))
    put(engine, "ORDERS", b"one")
    assert served == []
    mqsc(engine, "ALTER QLOCAL(ORDERS) GET(ENABLED)")
    assert served == [b"one"]


def test_who_holds_a_deleted_queue_is_refused_until_it_is_defined_again(engine):
    held = engine.queue("ORDERS")
    mqsc(engine, "DELETE QLOCAL(ORDERS)")
    unit = engine.begin()
    with pytest.raises(QueueManagerError, match="2052"):
        engine.put(unit, held, Message(MessageDescriptor(), b"one"))
    mqsc(engine, "DEFINE QLOCAL(ORDERS)")
    assert engine.queue("ORDERS") is held
    put(engine, "ORDERS", b"one")
    assert held.depth == 1


def test_a_put_in_a_unit_of_work_that_outlives_its_queue_is_refused_and_the_store_stays_sound(engine):
    held = engine.queue("ORDERS")
    unit = engine.begin()
    engine.put(unit, held, Message(MessageDescriptor(), b"one"))
    mqsc(engine, "DELETE QLOCAL(ORDERS)")
    with pytest.raises(QueueManagerError, match="2052"):
        engine.submit(unit)


def test_a_get_that_waits_on_a_temporary_dynamic_queue_hears_that_it_is_gone(gateway):
    gateway.call(lambda: mqsc(gateway.engine, "DEFINE QMODEL(ANSWERS)"))
    owner, waiter = SocketClient(gateway.data_dir), SocketClient(gateway.data_dir)
    name = owner.create_dynamic("ANSWERS")
    heard: list[int] = []
    listens = threading.Event()

    def wait() -> None:
        listens.set()
        try:
            waiter.get(name, wait_s=STEP_S)
        except QueueManagerError as error:
            heard.append(error.reason_code)

    thread = threading.Thread(target=wait)
    thread.start()
    assert listens.wait(STEP_S)
    owner.close()
    thread.join(STEP_S)
    waiter.close()
    assert heard in ([2052], [2085])  # 2085 where the queue went before the get came


def test_a_get_that_waits_ends_with_2016_when_gets_are_inhibited(gateway):
    with SocketClient(gateway.data_dir) as waiter, SocketClient(gateway.data_dir) as operator:
        heard: list[int] = []

        def wait() -> None:
            try:
                waiter.get("ORDERS", wait_s=STEP_S)
            except QueueManagerError as error:
                heard.append(error.reason_code)

        thread = threading.Thread(target=wait)
        thread.start()
        assert operator.mqsc("ALTER QLOCAL(ORDERS) GET(DISABLED)").succeeded
        thread.join(STEP_S)
        assert heard == [2016]


def test_a_queue_that_somebody_waits_on_is_not_deleted(gateway):
    gateway.call(lambda: gateway.engine.queue("ORDERS").listen(None, lambda: None))
    with SocketClient(gateway.data_dir) as connection:
        answer = connection.mqsc("DELETE QLOCAL(ORDERS)")
    assert answer.lines == ("AMQ8148E: The object is in use.",)


def test_objects_of_every_type_are_found_by_name_and_kept(data_folder):
    engine = Engine.open(data_folder)
    mqsc(engine, "DEFINE NAMELIST(STREAMS) NAMES(A,B)")
    mqsc(engine, "DEFINE TOPIC(PRICES) TOPICSTR('shop/prices')")
    engine.close()
    again = Engine.open(data_folder)
    assert again.objects.definition(ObjectType.NAMELIST, "STREAMS").names("NAMES") == ("A", "B")
    assert again.objects.definition(ObjectType.TOPIC, "PRICES").text("TOPICSTR") == "shop/prices"
    again.close()
