"""The stock counts what is on a queue by CorrelId, at a moment between two commits, and its rows have a bound."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded import stock
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import Departure
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor

START_US = 1_800_000_000_000_000
ONE, TWO = (name.ljust(24, b"\0") for name in (b"one", b"two"))


class Clock:
    now_us = START_US

    def __call__(self) -> int:
        self.now_us += 1
        return self.now_us


@pytest.fixture
def calls() -> list:
    return []


@pytest.fixture
def engine(tmp_path: Path, calls: list) -> Iterator[Engine]:
    made = Engine.open(tmp_path, call_soon=calls.append, now_us=Clock())
    made.ensure("Q", "")
    made.ensure("EMPTY", "")
    yield made
    made.close()


def run(calls: list) -> None:
    while calls:
        calls.pop(0)()


def put(engine: Engine, calls: list, correl_id: bytes, *, persistence: int = MQPER_PERSISTENT, **fields) -> Message:
    message = Message(MessageDescriptor(correl_id=correl_id, persistence=persistence, **fields), b"x")
    unit = engine.begin()
    engine.put(unit, engine.queue("Q"), message)
    engine.submit(unit)
    run(calls)
    return message


def test_a_stock_counts_by_correlation_identifier_with_what_somebody_has_taken(engine: Engine, calls: list) -> None:
    first = put(engine, calls, ONE)
    second = put(engine, calls, TWO, persistence=0)
    put(engine, calls, ONE)
    queue = engine.queue("Q")
    assert engine.take(queue, ONE) is first
    (told,) = engine.stock()
    assert (told.name, told.messages, told.subscribers, told.oldest_us) == ("Q", 3, 2, first.put_us)
    assert [(row.correl_id, row.messages, row.oldest_us) for row in told.listed] == [
        (ONE, 2, first.put_us),
        (TWO, 1, second.put_us),
    ]
    assert told.messages == queue.depth
    assert told.sha256 == hashlib.sha256(ONE + bytes(7) + b"\2" + TWO + bytes(7) + b"\1").digest()
    unit = engine.begin()
    unit.remove(queue, first, Departure.TAKEN)
    engine.submit(unit)
    run(calls)
    assert [row.messages for row in engine.stock()[0].listed] == [1, 1]


def test_the_oldest_message_is_not_the_next_one_on_a_queue_by_priority(engine: Engine, calls: list) -> None:
    engine.objects.alter(Definition(object_type=ObjectType.QLOCAL, name="Q", said={"MSGDLVSQ": "PRIORITY"}))
    oldest = put(engine, calls, ONE, priority=1)
    put(engine, calls, ONE, priority=7)
    assert engine.stock()[0].oldest_us == oldest.put_us


def test_messages_that_are_only_on_the_disk_are_counted_alike(tmp_path: Path) -> None:
    calls: list = []
    engine = Engine.open(tmp_path, call_soon=calls.append, now_us=Clock())
    engine.ensure("Q", "")
    message = put(engine, calls, ONE)
    engine.close()
    again = Engine.open(tmp_path, call_soon=calls.append)
    (told,) = again.stock()
    assert [(row.correl_id, row.messages, row.oldest_us) for row in told.listed] == [(ONE, 1, message.put_us)]
    again.close()


def test_many_subscribers_and_queues_are_cut_and_the_full_list_is_hashed(
    engine: Engine, calls: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stock, "MOST_SUBSCRIBERS", 1)
    monkeypatch.setattr(stock, "MOST_QUEUES", 1)
    for correl_id in (ONE, TWO, TWO):
        put(engine, calls, correl_id)
    unit = engine.begin()
    engine.put(unit, engine.queue("EMPTY"), Message(MessageDescriptor(persistence=1), b""))
    engine.submit(unit)
    run(calls)
    (told,) = engine.stock()
    assert (told.name, told.messages, told.subscribers) == ("Q", 3, 2)
    assert [(row.correl_id, row.messages) for row in told.listed] == [(TWO, 2)]
    assert told.sha256 == hashlib.sha256(ONE + bytes(7) + b"\1" + TWO + bytes(7) + b"\2").digest()
