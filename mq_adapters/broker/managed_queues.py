"""The queues that the queue manager makes for durable subscriptions of MQSUB (MQSO_MANAGED), and their end.

Such a queue is permanent. It ends after its subscription, whoever ended that: the program, an operator, its expiry. The
messages that are left on it are destroyed first, some in each unit of work, each with a note. A queue that somebody has
open stays until it is closed. A crash between the definition of a queue and the commit of its subscription leaves an
empty queue, which ends in the same way.
"""

from typing import TYPE_CHECKING, Final

from mq_adapters.delivery_listener import DeliveryListener
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.queue_administration import is_in_use
from mq_adapters.embedded.unit_of_work import Departure
from mq_adapters.system_queues import is_managed_durable

if TYPE_CHECKING:
    from mq_adapters.broker.subscriptions import SubscriptionRegistry

#: Messages that are destroyed in one unit of work.
_MESSAGES_AT_ONCE: Final = 500
_ENDED: Final = "its subscription ended"


class ManagedQueues:
    """The managed queues of one queue manager."""

    def __init__(self, engine: Engine, registry: "SubscriptionRegistry", listener: DeliveryListener) -> None:
        self._engine = engine
        self._registry = registry
        self._listener = listener

    def tidy(self) -> None:
        """Takes one step to the end of each managed queue whose subscription has ended."""
        for queue in [each for each in self._engine.objects.queues.values() if is_managed_durable(each.name)]:
            self.end(queue)

    def end(self, queue: Queue) -> None:
        """Takes one step to the end of a managed queue, if its subscription has ended and nobody has it open."""
        if self._is_over(queue):
            self._end(queue)

    def _is_over(self, queue: Queue) -> bool:
        is_wanted = self._registry.durable_of_queue[queue.name] or queue.is_temporary or queue.listeners
        return not is_wanted and not is_in_use(self._engine, queue)

    def _end(self, queue: Queue) -> None:
        engine = self._engine
        unit = engine.begin()
        while len(unit.removals) < _MESSAGES_AT_ONCE and (message := engine.take(queue)) is not None:
            unit.remove(queue, message, Departure.DROPPED)
            self._listener.dropped(unit, message, queue.name, _ENDED)
        if unit.removals:
            engine.submit(unit)
        elif not queue.depth:
            engine.objects.delete_queue(queue)
