"""Messages for readers that end with the process: they stay in memory while there is room, and end with it."""

import shutil
from pathlib import Path

import pytest

from mq_adapters.embedded import message_cache
from mq_adapters.embedded.balance import Balance, read_balance, running_queues
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure
from mq_adapters.message import MQPER_NOT_PERSISTENT, MQPER_PERSISTENT, Message, MessageDescriptor

BRIEF, LASTING = b"brief".ljust(24, b"\0"), b"lasting".ljust(24, b"\0")


@pytest.fixture
def engine(data_folder: Path) -> Engine:
    return Engine.open(data_folder)


@pytest.fixture
def queue(engine: Engine) -> Queue:
    queue = engine.define("ORDERS")
    queue.memory_lanes.add(BRIEF)
    return queue


def _put(
    engine: Engine, queue: Queue, *lanes: bytes, body: bytes = b"body", persistence: int = MQPER_PERSISTENT
) -> list[Message]:
    unit = engine.begin()
    messages = [Message(MessageDescriptor(persistence=persistence, correl_id=correl_id), body) for correl_id in lanes]
    for message in messages:
        engine.put(unit, queue, message)
    engine.submit(unit)
    return messages


def _balance(folder: Path) -> Balance:
    found = read_balance(folder)
    assert found is not None
    return found


def _killed(folder: Path) -> Engine:
    """The queue manager as it begins again after a kill at this moment."""
    killed = folder.parent / "killed"
    shutil.copytree(folder, killed)
    return Engine.open(killed)


def test_a_message_of_a_memory_lane_ends_with_the_process_and_the_others_do_not(engine, queue, data_folder):
    brief, lasting = _put(engine, queue, BRIEF, LASTING)
    assert (brief.is_persistent, brief.is_stored, lasting.is_stored) == (True, False, True)
    assert queue.depth == 2
    again = _killed(data_folder)
    kept = again.queue("ORDERS")
    assert (kept.depth, again.take(kept, BRIEF)) == (1, None)
    assert [each.sequence for each in again.browse(kept)] == [lasting.sequence]
    again.tick()
    (line,) = (each for each in _balance(data_folder.parent / "killed").queues if each.name == "ORDERS")
    assert (line.persistent.waiting, line.not_persistent.put, line.not_persistent.gone_at_a_stop) == (1, 1, 1)
    assert line.adds_up
    assert again.counters.lost == {"ORDERS": 1}
    again.close()


def test_what_was_taken_is_in_the_balance_whichever_way_it_waited(engine, queue, data_folder):
    _put(engine, queue, BRIEF, LASTING, BRIEF)
    unit = engine.begin()
    for correl_id in (BRIEF, LASTING, BRIEF):
        message = engine.take(queue, correl_id)
        assert message is not None
        unit.remove(queue, message, Departure.TAKEN)
    engine.submit(unit)
    assert running_queues(engine)["ORDERS"].difference == 0
    engine.tick()
    assert _balance(data_folder).adds_up
    again = _killed(data_folder)
    assert (again.queue("ORDERS").depth, again.counters.lost) == (0, {})
    again.close()


def test_where_memory_has_no_room_a_message_goes_to_the_disk_and_keeps_its_place(
    engine, queue, data_folder, monkeypatch
):
    monkeypatch.setattr(message_cache, "PERSISTENT_IN_MEMORY_BYTES", 2_000)
    bodies = [bytes([number]) * 1_000 for number in range(4)]
    stored = [message.is_stored for body in bodies for message in _put(engine, queue, BRIEF, body=body)]
    assert stored == [False, True, True, True], "each takes some hundred bytes beside its body"
    assert [each.body for each in engine.browse(queue, BRIEF)] == bodies
    again = _killed(data_folder)
    assert [each.body for each in again.browse(again.queue("ORDERS"), BRIEF)] == bodies[1:]
    again.close()


def test_a_message_that_is_not_persistent_finds_room_when_memory_lanes_have_theirs(engine, queue, monkeypatch):
    monkeypatch.setattr(message_cache, "PERSISTENT_IN_MEMORY_BYTES", 1_000)
    monkeypatch.setattr(message_cache, "MAXIMUM_IN_MEMORY_BYTES", 4_000)
    for _ in range(5):
        _put(engine, queue, BRIEF, body=bytes(1_000))
    _put(engine, queue, LASTING, persistence=MQPER_NOT_PERSISTENT)
    assert queue.depth == 6


def test_a_lane_is_on_the_disk_again_when_its_reader_no_longer_ends_with_the_process(engine, queue):
    (before,) = _put(engine, queue, BRIEF)
    queue.memory_lanes.discard(BRIEF)
    (after,) = _put(engine, queue, BRIEF)
    assert (before.is_stored, after.is_stored) == (False, True)
    unit = engine.begin()
    for _ in range(2):
        message = engine.take(queue, BRIEF)
        assert message is not None
        unit.remove(queue, message, Departure.TAKEN)
    engine.submit(unit)
    assert queue.depth == 0
