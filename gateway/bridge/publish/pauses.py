"""PUT(DISABLED) on a queue of the gateway: an operator pauses the publishers whose messages would come to that queue.

As at a full target, publishers of QoS 1 and 2 are paused until PUT(ENABLED), and QoS 0 is dropped. Acknowledged
messages go on, and so do wills, subscriptions and the ends of sessions. If the subscribers' queue is closed, all
publications here are paused: the broker finds the subscribers only after a message is on the stream.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from gateway.channels.target import Target
from gateway.config.routes import Routes
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue

#: Prefix of a queue's name as a full place. Names of targets have no small letters, so the two differ.
_PLACE: Final = "queue "


class Pauses:
    """The queues of the gateway that are closed for puts, as `look` last found them."""

    def __init__(
        self,
        engine: Engine,
        *,
        stream: Queue,
        subscriber_queue: Queue,
        routes: Routes,
        targets: Iterable[Target],
        published: Collection[str] = (),
    ) -> None:
        """`published`: names of the queues that applications publish on. `stream`: the stream of MQTT clients."""
        self._engine = engine
        self._stream = stream
        self._subscriber_queue = subscriber_queue
        self._routes = routes
        self._targets = {target.name: target for target in targets}
        self._published = frozenset((*published, stream.name))
        self._changes = -1
        #: Names of the queues that are closed.
        self.queues: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.queues)

    @property
    def are_known(self) -> bool:
        """Whether nothing has changed since the last look."""
        return self._changes == self._engine.objects.changes

    def look(self) -> Sequence[str]:
        """Reads which queues operators have closed or opened. Returns the places that are open again."""
        self._changes = self._engine.objects.changes
        closed = frozenset(queue.name for queue in self._watched() if queue.is_put_inhibited)
        opened, self.queues = self.queues - closed, closed
        for name in self._published:
            if (queue := self._engine.objects.queues.get(name)) is not None:
                queue.is_paused = self._subscriber_queue.is_put_inhibited
        return [f"{_PLACE}{name}" for name in sorted(opened)]

    def place(self, topic: str, client: str) -> str:
        """The full place of a closed queue that a client's PUBLISH would reach; "" if none is closed."""
        target = self._routes.of(topic).target
        if target is not None:
            found = self._targets[target.name].paused_queue(client)
            return f"{_PLACE}{found.name}" if found is not None else ""
        ways = (self._stream, self._subscriber_queue)
        return next((f"{_PLACE}{queue.name}" for queue in ways if queue.is_put_inhibited), "")

    def _watched(self) -> Iterable[Queue]:
        yield self._stream
        yield self._subscriber_queue
        for target in self._targets.values():
            yield from target.transmission_queues
