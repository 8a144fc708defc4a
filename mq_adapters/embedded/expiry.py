"""Expired messages: they are destroyed and reported when a get has met them, and at each tick, a few in each turn.

A get passes by all that it meets, however many there are. The first are destroyed at once, the others in later turns.
"""

import time
from typing import TYPE_CHECKING, Final

from mq_adapters.embedded.available_messages import AvailableMessages
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure
from mq_adapters.message import Message
from mq_adapters.reports import MQFB_EXPIRATION, ReportOption

if TYPE_CHECKING:
    from mq_adapters.embedded.engine import Engine

#: Messages that have expired and are destroyed in one turn of the event loop, at some 12 microseconds each; persistent
#: ones take three times as long, so the turn has a time too, in seconds.
_AT_ONCE: Final = 200
_MOST_S: Final = 0.002


class Expiry:
    """Destroys expired messages, in units of work of an engine."""

    def __init__(self, engine: "Engine", available: AvailableMessages) -> None:
        self._engine = engine
        self._available = available
        #: Whether this turn of the event loop has had its share. The next share follows a commit.
        self._goes_on = False

    def tick(self) -> None:
        """Destroys the messages that are due."""
        if not self._goes_on:
            self._destroy_some()

    def found(self, queue: Queue) -> None:
        """Destroys the messages that a get from a queue has met, behind those whose destruction goes on already.

        Without an event loop each is a commit of its own, so a command destroys no others.
        """
        self._available.has_met_expired = False
        if self._engine.has_loop:
            self.tick()
        else:
            self.destroy_found(queue)

    def destroy_found(self, queue: Queue) -> None:
        """Destroys all those of one queue that gets have met, because the queue is to be empty now."""
        for each in self._available.take_found(queue):
            self.destroy(*each)

    def destroy(self, queue: Queue, message: Message) -> None:
        """Destroys a taken message that has expired."""
        engine = self._engine
        unit = engine.begin()
        unit.remove(queue, message, Departure.EXPIRED)
        if message.descriptor.report & ReportOption.EXPIRATION:
            engine.reporter.send_unasked(unit, message, ReportOption.EXPIRATION, MQFB_EXPIRATION)
        if engine.on_expired is not None:
            engine.on_expired(unit, queue, message)
        engine.submit(unit)

    def _destroy_some(self) -> None:
        """Destroys some with an event loop; the next follow their commit. Without a loop it destroys all."""
        engine = self._engine
        self._goes_on = False
        if engine.failed is not None:
            return
        destroyed, ends_s = 0, time.monotonic() + _MOST_S
        for found in self._available.take_expired(engine.now_us()):
            if engine.has_loop and not self._goes_on:
                self._goes_on = True
                engine.submit(engine.begin(), lambda _unit: self._destroy_some())
            if found is not None:
                self.destroy(*found)
                destroyed += 1
            if engine.has_loop and (destroyed == _AT_ONCE or time.monotonic() > ends_s):
                return
