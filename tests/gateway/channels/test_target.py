"""What the daemon knows of a target: where its messages wait, when it is full, and what survives a restart."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.channels.target import Target
from gateway.config import TargetSettings
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor

IDENTIFIER, OTHER_IDENTIFIER = "QM1_2026-11-20_08.00.00", "QM1_2026-11-20_09.00.00"


@pytest.fixture
def open_engine(tmp_path: Path) -> Iterator[Callable[[], Engine]]:
    """Opens the store again, closing it first; the last one is closed at the end."""
    engines: list[Engine] = []

    def opened() -> Engine:
        if engines:
            engines.pop().close()
        engines.append(Engine.open(tmp_path))
        return engines[-1]

    yield opened
    engines.pop().close()


def settings(**said: object) -> TargetSettings:
    return TargetSettings.model_validate({"name": "CENTRAL", **said})


def put(engine: Engine, queue: Queue, length: int) -> None:
    unit = engine.begin()
    engine.put(unit, queue, Message(MessageDescriptor(persistence=MQPER_PERSISTENT), bytes(length)))
    engine.submit(unit)


def remove_all(engine: Engine, queue: Queue) -> None:
    unit = engine.begin()
    while (message := engine.take(queue)) is not None:
        unit.remove(queue, message, Departure.TAKEN)
    engine.submit(unit)


def test_a_client_is_always_on_the_same_transmission_queue(open_engine):
    clients = [f"pump-{number}" for number in range(100)]
    target = Target(open_engine(), settings(shards=4))
    before = [target.transmission_queue(client).name for client in clients]
    assert set(before) == {f"RFHBRIDGE.XMIT.CENTRAL.{shard}" for shard in range(4)}
    again = Target(open_engine(), settings(shards=4))
    assert [again.transmission_queue(client).name for client in clients] == before


def test_its_queues_are_transmission_queues_first_in_first_out(open_engine):
    queue = Target(open_engine(), settings()).transmission_queue("pump")
    assert (queue.definition["USAGE"], queue.definition["MSGDLVSQ"]) == ("XMITQ", "FIFO")


def test_more_shards_count_only_when_nothing_waits_any_more(open_engine):
    engine = open_engine()
    put(engine, Target(engine, settings()).transmission_queue("pump"), 10)
    engine = open_engine()
    target = Target(engine, settings(shards=3))
    assert target.shards == 1
    remove_all(engine, target.transmission_queue("pump"))
    target.tick()
    assert target.shards == 3
    assert Target(open_engine(), settings(shards=3)).shards == 3


def test_fewer_shards_count_at_once_where_nothing_waits(open_engine):
    Target(open_engine(), settings(shards=3))
    fewer = Target(open_engine(), settings(shards=2))
    assert [queue.name for queue in fewer.transmission_queues] == [
        "RFHBRIDGE.XMIT.CENTRAL.0",
        "RFHBRIDGE.XMIT.CENTRAL.1",
    ]
    assert {fewer.transmission_queue(f"pump-{number}") for number in range(50)} == set(fewer.transmission_queues)


def test_waiting_bytes_are_known_after_a_restart(open_engine):
    engine = open_engine()
    target = Target(engine, settings(shards=2))
    for queue, length in zip(target.transmission_queues, (70, 30), strict=True):
        put(engine, queue, length)
    assert target.waiting_bytes == 100
    again = Target(open_engine(), settings(shards=2))
    assert again.waiting_bytes == 100


def test_a_full_target_has_room_again_below_nine_tenths(open_engine):
    engine = open_engine()
    target = Target(engine, settings(hold_bytes=100))
    told: list[str] = []
    target.on_room.append(lambda: told.append("room"))
    queue = target.transmission_queue("pump")
    put(engine, queue, 60)
    put(engine, queue, 35)
    assert not target.is_full
    put(engine, queue, 5)
    assert target.is_full
    unit = engine.begin()
    message = engine.take(queue)
    assert message is not None
    unit.remove(queue, message, Departure.TAKEN)
    put(engine, queue, 55)
    engine.submit(unit)
    target.tick()
    assert (target.waiting_bytes, target.is_full, told) == (95, True, [])
    remove_all(engine, queue)
    target.tick()
    assert (target.is_full, told) == (False, ["room"])


def test_what_the_queue_manager_said_is_known_in_an_outage(open_engine):
    target = Target(open_engine(), settings())
    assert (target.queue_manager_name, target.queue_manager_identifier) == ("", "")
    assert target.maximum_message_bytes("STOCK") == 4_194_304
    target.heard_from("QM1", IDENTIFIER, {"STOCK": 1_000})
    again = Target(open_engine(), settings())
    assert (again.queue_manager_name, again.queue_manager_identifier) == ("QM1", IDENTIFIER)
    assert (again.maximum_message_bytes("STOCK"), again.maximum_message_bytes("OTHER")) == (1_000, 4_194_304)


def test_subscriptions_are_due_anew_in_the_unit_that_knows_the_new_queue_manager(open_engine):
    engine = open_engine()
    target = Target(engine, settings())
    seen: list[str] = []

    def register(unit: object) -> None:
        seen.append(target.queue_manager_identifier)
        engine.put(unit, target.transmission_queue("pump"), Message(MessageDescriptor(), b"RegSub"))

    target.on_new_queue_manager.append(register)
    target.heard_from("QM1", IDENTIFIER, {})
    target.heard_from("QM1", IDENTIFIER, {"STOCK": 1_000})
    target.heard_from("QM1", OTHER_IDENTIFIER, {})
    assert seen == [IDENTIFIER, OTHER_IDENTIFIER]
    assert sum(queue.depth for queue in target.transmission_queues) == 2


def test_a_stopped_channel_stays_stopped_over_a_restart(open_engine):
    target = Target(open_engine(), settings())
    target.set_stopped("CENTRAL.OUT.0", stopped=True)
    again = Target(open_engine(), settings())
    assert again.is_stopped("CENTRAL.OUT.0")
    assert not again.is_stopped("CENTRAL.OUT.1")
    again.set_stopped("CENTRAL.OUT.0", stopped=False)
    assert not Target(open_engine(), settings()).is_stopped("CENTRAL.OUT.0")
