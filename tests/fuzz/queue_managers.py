"""The subject of `two_builds.py` that is a queue manager alone: puts and gets in units of work, expiry, restarts."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from gateway.audit_trail.notes.notes import NoteKind
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure
from mq_adapters.message import Message, MessageDescriptor
from tests.fuzz.canonical import attempted, canonical
from tests.fuzz.choices import Choices
from tests.fuzz.worlds import Reader, folder, same_circumstances, stored
from tests.gateway.bridge.conftest import NOW_US

_IDENTIFIERS: Final = (None, None, None, bytes(24), b"m" * 24, b"n" * 24, b"RFHB" + bytes(20))
_DEPARTURES: Final = tuple(Departure)


class _QueueManager:
    """A queue manager without broker and gateway, with one unit of work that is open."""

    def __init__(self, data: Path, *, has_loop: bool) -> None:
        self._data, self._now_us = data, NOW_US
        self._calls: list[Callable[[], None]] | None = [] if has_loop else None
        self.engine = self._opened()
        self.engine.ensure("ORDERS", "first in, first out")
        self.engine.define("STOCK")
        self._unit = self.engine.begin()
        self._taken: list[tuple[Queue, Message]] = []

    def _opened(self) -> Engine:
        call_soon = None if self._calls is None else self._calls.append
        engine = Engine.open(self._data, call_soon=call_soon, now_us=lambda: self._now_us)
        engine.seal_notes = lambda _batch, notes: canonical(notes).encode()
        return engine

    def act(self, choices: Choices) -> object:
        """One step, and what it gave."""
        step, queue = choices.of(_QUEUE_STEPS), self.engine.queue(choices.of(("ORDERS", "STOCK")))
        return step(self, queue, choices)

    def put(self, queue: Queue, choices: Choices) -> object:
        descriptor = MessageDescriptor(
            priority=choices.byte() % 12 - 1,
            persistence=choices.byte() % 3,
            expiry=choices.of((-1, -1, -1, 1, 50, 2**31 - 1)),
            msg_id=choices.of(_IDENTIFIERS) or bytes(24),
            correl_id=choices.of(_IDENTIFIERS) or bytes(24),
            format=choices.of((b"        ", b"MQSTR   ", b"MQSTR")),
        )
        return self.engine.put(
            self._unit, queue, Message(descriptor, bytes(choices.byte() % 40), bytes(choices.byte() % 3))
        )

    def take(self, queue: Queue, choices: Choices) -> object:
        found = self.engine.take(queue, choices.of(_IDENTIFIERS), choices.of(_IDENTIFIERS))
        self._taken += [] if found is None else [(queue, found)]
        return found

    def take_number(self, queue: Queue, choices: Choices) -> object:
        found = self.engine.take_number(queue, choices.number())
        self._taken += [] if found is None else [(queue, found)]
        return found

    def remove(self, _queue: Queue, choices: Choices) -> object:
        for queue, message in self._taken:
            self._unit.remove(queue, message, choices.of(_DEPARTURES))
        self._taken.clear()
        return self._unit.removals

    def give_back(self, _queue: Queue, _choices: Choices) -> object:
        self.engine.give_back(self._taken)
        return self._taken.clear()

    def submit(self, _queue: Queue, _choices: Choices) -> object:
        unit, self._unit = self._unit, self.engine.begin()
        unit.notes.append((NoteKind.DROPPED, self._now_us, "c", 1, 1, "ORDERS", 0, "why"))
        told: list[object] = []
        self.engine.submit(unit, lambda done: told.append(len(done.puts)))
        self.run()
        return told

    def back_out(self, _queue: Queue, _choices: Choices) -> object:
        unit, self._unit = self._unit, self.engine.begin()
        self.engine.back_out(unit)
        return self.run()

    def pass_time(self, _queue: Queue, choices: Choices) -> object:
        self._now_us += choices.byte() * 100_000
        self.engine.tick()
        return self.run()

    def look(self, queue: Queue, choices: Choices) -> object:
        browsed = list(self.engine.browse(queue, choices.of(_IDENTIFIERS), choices.of(_IDENTIFIERS)))
        return browsed, self.engine.waiting(), self.engine.origins([1, choices.number()]), self.engine.stock()

    def restart(self, _queue: Queue, _choices: Choices) -> object:
        self.engine.close()
        self._taken.clear()
        self.engine = self._opened()
        self._unit = self.engine.begin()
        return self.engine.counters.lost

    def run(self) -> None:
        while self._calls:
            self._calls.pop(0)()


_QUEUE_STEPS: Final[tuple[Callable[[_QueueManager, Queue, Choices], object], ...]] = (
    *(_QueueManager.put,) * 5,
    *(_QueueManager.submit,) * 4,
    *(_QueueManager.take,) * 3,
    *(_QueueManager.remove,) * 2,
    *(_QueueManager.take_number, _QueueManager.give_back, _QueueManager.back_out),
    *(_QueueManager.pass_time, _QueueManager.look, _QueueManager.restart),
)


@contextmanager
def queues() -> Iterator[Reader]:
    """Puts and gets in units of work that are committed or backed out; expiry, and restarts."""
    with same_circumstances(), folder() as root:

        def read(given: bytes) -> object:
            data, choices = root / "data", Choices(given)
            manager = _QueueManager(data, has_loop=bool(choices.byte() & 1))
            told: list[object] = []
            try:
                while not choices.is_over:
                    told.append(attempted(lambda: manager.act(choices)))
                return told, stored(data), attempted(manager.engine.close), stored(data)
            finally:
                with suppress(Exception):
                    manager.engine.close()
                shutil.rmtree(data)

        yield read
