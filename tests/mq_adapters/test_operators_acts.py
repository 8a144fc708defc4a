"""What an operator may not destroy, queues of the gateway and queues in use; and what is told of what he does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mq_adapters.embedded.application import Application
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.gateway_queues import GatewayQueues
from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.embedded.operators_act import OperatorsAct
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.embedded.unit_of_work import Departure, UnitOfWork
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError

SUBSCRIBER = "RFHBRIDGE.SUBSCRIBER"
IN_USE = "AMQ8148E: The object is in use."

Told = list[tuple[str, str, str, str, int]]


@pytest.fixture
def engine(data_folder: Path) -> Iterator[Engine]:
    engine = Engine.open(data_folder)
    engine.define("ORDERS")
    engine.define(SUBSCRIBER)
    engine.settle(GatewayQueues(owned=frozenset((SUBSCRIBER,)), needed=frozenset(("CONVERTED",))))
    yield engine
    engine.close()


@pytest.fixture
def told(engine: Engine) -> Told:
    acts: Told = []

    def note(unit: UnitOfWork, act: OperatorsAct, messages: int) -> None:
        cleared = sum(departure is Departure.CLEARED for _, _, departure in unit.removals)
        assert messages in (0, cleared, len(unit.removals))
        acts.append((act.operator, act.command, act.queue, act.subject, messages))

    engine.on_operated = note
    return acts


def fill(engine: Engine, queue_name: str, count: int) -> None:
    for number in range(count):
        unit = engine.begin()
        engine.put(unit, engine.queue(queue_name), Message(MessageDescriptor(persistence=1), b"%d" % number))
        engine.submit(unit)


def mqsc(engine: Engine, command: str) -> str:
    return " ".join(CommandServer(engine, "ann", "annabelle-the-operator").execute(command).lines)


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_what_the_gateway_needs_is_not_deleted_nor_what_is_the_gateways_cleared(engine: Engine) -> None:
    fill(engine, SUBSCRIBER, 2)
    assert mqsc(engine, f"DELETE QLOCAL({SUBSCRIBER}) PURGE").startswith(f"{IN_USE} The gateway needs it")
    assert "queue clear --force" in mqsc(engine, f"CLEAR QLOCAL({SUBSCRIBER})")
    assert engine.queue(SUBSCRIBER).depth == 2


def test_a_queue_that_a_conversion_puts_on_is_needed_and_may_be_cleared(engine: Engine) -> None:
    engine.define("CONVERTED")
    fill(engine, "CONVERTED", 2)
    assert "The gateway needs it" in mqsc(engine, "DELETE QLOCAL(CONVERTED) PURGE")
    assert mqsc(engine, "CLEAR QLOCAL(CONVERTED)") == "AMQ8022I: Queue cleared."


def test_where_dead_letters_go_is_needed_also_behind_an_alias(engine: Engine) -> None:
    mqsc(engine, "DEFINE QALIAS(LETTERS) TARGET(ORDERS)")
    mqsc(engine, "ALTER QMGR DEADQ(LETTERS)")
    assert "The gateway needs it" in mqsc(engine, "DELETE QLOCAL(ORDERS)")
    assert "The gateway needs it" in mqsc(engine, "DELETE QALIAS(LETTERS)")
    mqsc(engine, "ALTER QMGR DEADQ(SYSTEM.DEAD.LETTER.QUEUE)")
    assert mqsc(engine, "DELETE QALIAS(LETTERS)") == "AMQ8007I: Queue deleted."
    assert mqsc(engine, "DELETE QLOCAL(ORDERS)") == "AMQ8007I: Queue deleted."


def test_without_a_gateway_the_store_knows_what_the_last_one_needs(data_folder: Path) -> None:
    gateway = Engine.open(data_folder)
    gateway.define("ORDERS")
    gateway.define(SUBSCRIBER)
    gateway.settle(GatewayQueues(owned=frozenset((SUBSCRIBER,))))
    gateway.close()
    with Direct(data_folder) as queue_manager:
        answer = queue_manager.mqsc(f"DELETE QLOCAL({SUBSCRIBER}) PURGE")
        assert not answer.succeeded
        assert answer.lines[0].startswith(IN_USE)
        assert "OWNER(GATEWAY)" in " ".join(queue_manager.mqsc(f"DISPLAY QLOCAL({SUBSCRIBER}) OWNER").lines)
        assert queue_manager.mqsc("DELETE QLOCAL(ORDERS) PURGE").succeeded


def test_a_queue_that_an_application_reads_is_neither_cleared_nor_deleted(gateway) -> None:
    with SocketClient(gateway.data_dir) as reader, SocketClient(gateway.data_dir) as operator:
        for body in (b"one", b"two"):
            reader.put("ORDERS", Message(MessageDescriptor(), body))
        cursor = reader.browse("ORDERS")
        assert next(iter(cursor)).body == b"one"
        for command in ("CLEAR QLOCAL(ORDERS)", "DELETE QLOCAL(ORDERS) PURGE"):
            assert operator.mqsc(command).lines == (IN_USE,)
        assert operator.depth("ORDERS") == 2
        reader.close()
        while not (answer := operator.mqsc("DELETE QLOCAL(ORDERS) PURGE")).succeeded:
            assert answer.lines == (IN_USE,)  # until the gateway has seen that the reader has gone
        with pytest.raises(QueueManagerError, match="2085"):
            operator.depth("ORDERS")


def test_a_queue_that_somebody_waits_on_or_has_uncommitted_gets_of_is_not_cleared(engine: Engine) -> None:
    fill(engine, "ORDERS", 1)
    application = Application(engine)
    application.begin()
    assert application.take_batch("ORDERS", most_messages=1, most_bytes=100)
    assert mqsc(engine, "CLEAR QLOCAL(ORDERS)") == IN_USE
    application.back_out()
    engine.queue("ORDERS").listen(None, print)
    assert mqsc(engine, "CLEAR QLOCAL(ORDERS)") == IN_USE
    engine.queue("ORDERS").unlisten(None, print)
    assert mqsc(engine, "CLEAR QLOCAL(ORDERS)") == "AMQ8022I: Queue cleared."


def test_a_queue_that_somebody_holds_is_not_cleared_by_the_call_either(engine: Engine) -> None:
    fill(engine, "ORDERS", 1)
    holder, other = Application(engine), Application(engine)
    holder.hold("ORDERS", lambda _name: None)
    with pytest.raises(QueueManagerError, match="2042"):
        other.clear_some("ORDERS", lambda _count: None)
    holder.release("ORDERS")
    counts: list[int] = []
    other.clear_some("ORDERS", counts.append)
    assert counts == [1]


def test_a_deleted_queue_takes_nothing_more_and_leaves_nothing(data_folder: Path) -> None:
    engine = Engine.open(data_folder)
    engine.define("ORDERS")
    fill(engine, "ORDERS", 2_500)
    queue = engine.queue("ORDERS")
    assert mqsc(engine, "DELETE QLOCAL(ORDERS) PURGE") == "AMQ8007I: Queue deleted."
    with pytest.raises(QueueManagerError, match="2052"):
        engine.put(engine.begin(), queue, Message(MessageDescriptor(), b"late"))
    engine.close()
    again = Engine.open(data_folder)
    assert "ORDERS" not in again.objects.queues
    again.close()


# -- what is told ------------------------------------------------------------------------------------------------------


def test_what_mqsc_destroys_is_told_with_the_operator_and_the_number(engine: Engine, told: Told) -> None:
    fill(engine, "ORDERS", 3)
    mqsc(engine, "CLEAR QLOCAL(ORDERS)")
    fill(engine, "ORDERS", 2)
    mqsc(engine, "DELETE QLOCAL(ORDERS) PURGE")
    ann = "annabelle-the-operator"
    assert told == [(ann, "CLEAR QLOCAL", "ORDERS", "", 3), (ann, "DELETE QLOCAL PURGE", "ORDERS", "", 2)]


def test_a_large_queue_is_destroyed_in_units_of_which_each_tells_its_own(engine: Engine, told: Told) -> None:
    fill(engine, "ORDERS", 2_001)
    mqsc(engine, "CLEAR QLOCAL(ORDERS)")
    assert [messages for *_, messages in told] == [1_000, 1_000, 1]


def test_each_change_of_an_object_is_told_with_what_changed(engine: Engine) -> None:
    acts: list[OperatorsAct] = []
    engine.on_operated = lambda _unit, act, _messages: acts.append(act)
    mqsc(engine, "ALTER QLOCAL(ORDERS) DESCR('orders')")
    mqsc(engine, "ALTER QLOCAL(ORDERS) PUT(DISABLED) MAXDEPTH(5)")
    mqsc(engine, "DEFINE QLOCAL(ORDERS) GET(DISABLED) REPLACE")
    mqsc(engine, "ALTER QMGR MAXMSGL(100000)")
    mqsc(engine, "DEFINE NAMELIST(N) NAMES(A,B)")
    mqsc(engine, "DELETE NAMELIST(N)")
    mqsc(engine, "DEFINE QALIAS(O) TARGET(ORDERS)")
    mqsc(engine, "DEFINE QALIAS(O) TARGET(ELSEWHERE)")
    Application(engine, operator="annabelle-the-operator").define("NEW", "for tests")
    assert {act.operator for act in acts} == {"annabelle-the-operator"}
    assert [(act.command, act.queue, act.subject, act.reason) for act in acts] == [
        ("ALTER QLOCAL", "ORDERS", "", "DESCR(orders)"),
        ("ALTER QLOCAL", "ORDERS", "", "MAXDEPTH(5) PUT(DISABLED)"),
        ("DEFINE QLOCAL REPLACE", "ORDERS", "", "DESCR() GET(DISABLED) MAXDEPTH(999999999) PUT(ENABLED)"),
        ("ALTER QMGR", "", "", "MAXMSGL(100000)"),
        ("DEFINE NAMELIST", "", "N", "NAMES(A,B)"),
        ("DELETE NAMELIST", "", "N", ""),
        ("DEFINE QALIAS", "O", "", "TARGET(ORDERS)"),
        ("queue define", "NEW", "", "DESCR(for tests)"),
    ]


def test_a_compaction_is_told_once(engine: Engine, told: Told) -> None:
    application = Application(engine, operator="ann")
    while not application.compact_some().is_done:
        pass
    assert told == [("ann", "queue compact", "", "", 0)]


def test_a_unit_of_work_that_an_operator_orders_tells_what_it_takes(engine: Engine, told: Told) -> None:
    fill(engine, "ORDERS", 3)
    application = Application(engine, operator="ann")
    with pytest.raises(QueueManagerError, match="2255"):
        application.operate("queue get")
    application.begin()
    application.operate("queue get")
    application.take_batch("ORDERS", most_messages=2, most_bytes=100)
    assert told == []
    application.commit(lambda: None)
    assert told == [("ann", "queue get", "ORDERS", "", 2)]
    application.begin()
    application.take_batch("ORDERS", most_messages=1, most_bytes=100)
    application.commit(lambda: None)
    assert len(told) == 1  # an application takes what is its own


def test_what_is_backed_out_is_no_act(engine: Engine, told: Told) -> None:
    fill(engine, "ORDERS", 1)
    application = Application(engine, operator="ann")
    application.begin()
    application.operate("queue get")
    application.take_batch("ORDERS", most_messages=2, most_bytes=100)
    application.back_out()
    application.begin()
    application.commit(lambda: None)
    assert told == []
