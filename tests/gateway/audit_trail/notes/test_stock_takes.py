"""A stock-take agrees with the notes before it, whatever is under way, and is made only where something happened."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.audit_trail.notes.notes import NoteKind
from gateway.audit_trail.notes.stock_takes import StockTakes, lost_notes
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import Note
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor

CORREL_ID = b"panel".ljust(24, b"\0")
INTERVAL_S = 900.0


class Gateway:
    """An engine whose event loop is a list, with slow commits that end when they are told to."""

    def __init__(self, folder: Path) -> None:
        self.calls: list[Callable[[], None]] = []
        self.notes: list[Note] = []
        self.now_s = 0.0
        self.engine = Engine.open(folder, call_soon=self.calls.append)
        self.engine.seal_notes = self._seal
        self.engine.ensure("Q", "")
        self.stock_takes = StockTakes(self.engine, INTERVAL_S, lambda: self.now_s)

    def _seal(self, _batch: int, notes: list[Note]) -> bytes:
        self.notes += notes
        return b"batch"

    def run(self) -> None:
        while self.calls:
            self.calls.pop(0)()

    def put(self, name: str, persistence: int = MQPER_PERSISTENT) -> None:
        """Puts without a turn of the event loop: the message is not committed when this returns."""
        unit = self.engine.begin()
        message = Message(MessageDescriptor(persistence=persistence, correl_id=CORREL_ID), b"x")
        self.engine.put(unit, self.engine.queue("Q"), message)
        unit.notes.append(("put", name))
        self.engine.submit(unit)

    def told(self) -> list[object]:
        """The names of puts, and the messages of each stock on queue Q, in the order of the notes."""
        found: list[object] = []
        for note in self.notes:
            if note[0] == "put":
                found.append(note[1])
            elif note[2:4] == ("queue", "Q"):
                found.append(note[4])
        return found


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    made = Gateway(tmp_path)
    yield made
    made.engine.close()


def test_a_stock_counts_what_is_told_before_it_and_nothing_behind(gateway: Gateway) -> None:
    gateway.put("durable")
    gateway.run()
    gateway.put("in memory", persistence=0)
    gateway.run()
    gateway.put("uncommitted")
    gateway.stock_takes.take()
    gateway.put("in memory and uncommitted", persistence=0)
    gateway.run()
    gateway.stock_takes.take()
    gateway.run()
    assert gateway.told() == ["durable", "in memory", 2, "uncommitted", "in memory and uncommitted", 4]


def test_an_empty_queue_manager_says_that_it_is_empty(gateway: Gateway) -> None:
    gateway.stock_takes.take()
    gateway.run()
    (note,) = gateway.notes
    assert (note[0], *note[2:6]) == (NoteKind.STOCK, "queues", "", 0, 0)


def test_stock_is_taken_when_it_is_due_and_something_has_happened(gateway: Gateway) -> None:
    gateway.put("one")
    gateway.run()
    counted = []
    for now_s, puts in ((INTERVAL_S - 1, False), (INTERVAL_S, False), (3 * INTERVAL_S, False), (4 * INTERVAL_S, True)):
        gateway.now_s = now_s
        if puts:
            gateway.put("two")
            gateway.run()
        gateway.stock_takes.tick()
        gateway.run()
        counted.append(sum(isinstance(each, int) for each in gateway.told()))
    assert counted == [0, 1, 1, 2]


def test_what_was_only_in_memory_is_told_at_the_next_start_and_once(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path)
    assert lost_notes(gateway.engine) == []
    for name in ("a", "b", "c"):
        gateway.put(name, persistence=0)
    gateway.put("d")
    gateway.run()
    gateway.engine.close()
    again = Engine.open(tmp_path)
    ((kind, _, queue, messages, reason),) = lost_notes(again)
    assert (kind, queue, messages) == (NoteKind.LOST, "Q", 3)
    assert "not persistent" in str(reason)
    again.tick()
    again.close()
    third = Engine.open(tmp_path)
    assert lost_notes(third) == []
    third.close()
