"""Stock-takes: from time to time the trail counts the messages on queues, so that custody can begin in the middle.

The gateway takes stock when it starts, as often as the age of a segment closes it, and when it stops. The notes are
made between two commits, so the counts hold all records before them, and none after them.
"""

from collections.abc import Callable, Iterator
from typing import Final

from gateway.audit_trail.notes.notes import NoteKind
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.stock import QueueStock
from mq_adapters.embedded.unit_of_work import Note

#: Subscribers in one record, which then has about 16 KB.
_SUBSCRIBERS_OF_A_RECORD: Final = 200
_LOST: Final = (
    "not persistent, and still in memory when the gateway stopped; after a kill, messages delivered in the last second"
    " may be among them"
)
#: The name of temporary and deleted queues together.
_FORMER: Final = "(deleted and temporary queues)"


class StockTakes:
    """Takes stock of a gateway's engine. `interval_s`: how long a segment of the trail may be open."""

    def __init__(self, engine: Engine, interval_s: float, now_s: Callable[[], float]) -> None:
        self._engine = engine
        self._interval_s = interval_s
        self._now_s = now_s
        self._due_s = now_s() + interval_s
        #: The number of the next message after the last stock-take: if it is the same, nothing has happened since.
        self._next_sequence = 0

    def tick(self) -> None:
        """Takes stock if that is due and something has happened since the last time."""
        if self._now_s() >= self._due_s and self._engine.next_sequence != self._next_sequence:
            self.take()

    def take(self) -> None:
        """Takes stock in the next commit."""
        self._due_s = self._now_s() + self._interval_s
        self._engine.note_first(lambda: stock_notes(self._engine))
        self._engine.submit(self._engine.begin(), lambda _unit: self._committed())

    def _committed(self) -> None:
        self._next_sequence = self._engine.next_sequence


def stock_notes(engine: Engine) -> list[Note]:
    """The notes of the stock as it is now, between two commits."""
    now_us, stock = engine.now_us(), engine.stock()
    depths = [queue.depth for queue in engine.queues() if queue.depth]
    notes: list[Note] = [(int(NoteKind.STOCK), now_us, "queues", "", sum(depths), len(depths), 0, 0, b"", ())]
    for queue in stock:
        notes += _notes_of(queue, now_us)
    return notes


def _notes_of(queue: QueueStock, now_us: int) -> Iterator[Note]:
    facts = (queue.oldest_us, queue.subscribers, queue.sha256, ())
    yield (int(NoteKind.STOCK), now_us, "queue", queue.name, queue.messages, 0, *facts)
    for start in range(0, len(queue.listed), _SUBSCRIBERS_OF_A_RECORD):
        rows = queue.listed[start : start + _SUBSCRIBERS_OF_A_RECORD]
        depths = tuple((row.correl_id, row.messages, row.oldest_us) for row in rows)
        messages = sum(row.messages for row in rows)
        yield (int(NoteKind.STOCK), now_us, "subscribers", queue.name, messages, 0, 0, 0, b"", depths)


def lost_notes(engine: Engine) -> list[Note]:
    """A note for each queue on which messages that were not persistent ended with the last run."""
    now_us = engine.now_us()
    return [
        (int(NoteKind.LOST), now_us, name or _FORMER, messages, _LOST)
        for name, messages in sorted(engine.counters.lost.items())
    ]
