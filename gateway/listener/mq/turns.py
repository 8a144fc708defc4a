"""Turns: the work of all connections of MQ clients, for a limited time in each turn of the event loop.

A read of 256 KiB may have thousands of segments, and a call may look through a long queue. So each connection does one
piece of its work at a time, and the others come before its next piece. However many there are, MQTT clients wait for
little more than one piece.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final, Protocol

#: Seconds for the work of all connections in one turn of the event loop. A PUBLISH and its commit take some five turns.
TURN_S: Final = 0.001


class Worker(Protocol):
    """A connection with work to do."""

    def work(self) -> bool:
        """Does one piece. Returns whether there is more. Never raises."""
        ...


class Turns:
    """The connections with work, in line."""

    def __init__(self, *, now_s: Callable[[], float] = time.perf_counter) -> None:
        self._now_s = now_s
        self._line: dict[Worker, None] = {}
        self._used_s = 0.0
        self._is_planned = False
        self._begun_s: float | None = None

    @property
    def has_time(self) -> bool:
        """Whether the piece of work under way may go on."""
        return self._begun_s is not None and self._used_s + self._now_s() - self._begun_s < TURN_S

    def has(self, worker: Worker) -> bool:
        """Whether the worker is in line."""
        return worker in self._line

    def join(self, worker: Worker) -> None:
        """The worker works in the next turn of the event loop, if the line lets it."""
        self._line.setdefault(worker)
        self._plan()

    def serve(self) -> None:
        """Works at once, as long as this turn has time."""
        if self._begun_s is not None:  # work asks for more work
            return
        while self._line and self._used_s < TURN_S:
            worker = next(iter(self._line))
            del self._line[worker]
            self._begun_s = self._now_s()
            if worker.work():
                self._line.setdefault(worker)
            self._used_s += self._now_s() - self._begun_s
            self._begun_s = None
        self._plan()

    def leave(self, worker: Worker) -> None:
        """The worker has gone."""
        self._line.pop(worker, None)

    def _plan(self) -> None:
        if not self._is_planned:
            self._is_planned = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        """A turn of the event loop begins."""
        self._is_planned, self._used_s = False, 0.0
        if self._line:
            self.serve()
