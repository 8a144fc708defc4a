"""The end of managed queues; what programs see of it stands in tests/mq_adapters/embedded/mqi/test_subscribing.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mq_adapters.broker import managed_queues
from mq_adapters.embedded.mqi.options import CloseOption
from mq_adapters.system_queues import is_managed_durable
from tests.mq_adapters.embedded.mqi.subscriber import DURABLE, House


@pytest.fixture
def house(data_folder: Path) -> Iterator[House]:
    made = House(data_folder)
    yield made
    made.close()


def test_many_messages_are_destroyed_in_steps(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed_queues, "_MESSAGES_AT_ONCE", 10)
    program = house.connect()
    opened = program.subscribe("plant/#", DURABLE, name="kept")
    for _ in range(25):
        program.publish("plant/1", b"one")
    program.close(opened, CloseOption.REMOVE_SUB)
    depths = []
    while house.queues():
        depths.append(opened.subscription.queue.depth)
        house.broker.tend()
    assert depths == [15, 5, 0]
    assert len(house.listener.drops) == 25


def test_a_message_that_a_program_has_in_hand_is_not_destroyed(house: House) -> None:
    program = house.connect()
    opened = program.subscribe("plant/#", DURABLE, name="kept")
    program.publish("plant/1", b"one")
    program.application.begin()
    taken = house.engine.take(opened.subscription.queue)
    assert taken is not None
    program.application.remove(opened.subscription.queue, taken, lambda: None)
    program.close(opened, CloseOption.REMOVE_SUB)
    house.broker.tend()
    assert house.queues() == [opened.subscription.queue.name]
    program.connection.back_out()
    house.broker.tend()
    house.broker.tend()
    assert (house.queues(), len(house.listener.drops)) == ([], 1)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("SYSTEM.MANAGED.DURABLE.00000000000000FF", True),
        ("SYSTEM.MANAGED.DURABLE.00000000000000FG", False),
        ("SYSTEM.MANAGED.DURABLE.", False),
        ("SYSTEM.MANAGED.DURABLE.00000000000000FF0", False),
        ("00000000000000FF", False),
    ],
)
def test_only_names_that_the_queue_manager_makes_are_its_own(name: str, is_one: bool) -> None:
    assert is_managed_durable(name) is is_one
