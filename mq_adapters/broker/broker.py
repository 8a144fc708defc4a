"""The broker: serves the control queue and the stream queues of an embedded queue manager.

Step 7a on the way of a PUBLISH, where no remote queue manager takes it. Its handlers run inside the putter's unit of
work, so that a publication, its copies, the answer, changes of subscriptions and the audit notes are committed
together. Nothing is stored on a served queue. Whatever a message contains ends in a copy, an answer, a dead letter, or
in silence where the rules of queued publish/subscribe ask for that; StoreError is the only error that leaves a handler.
"""

from typing import Final

from mq_adapters.broker.control import ControlQueue
from mq_adapters.broker.dead_letters import DeadLetters
from mq_adapters.broker.publish import Distributor, StreamPublisher
from mq_adapters.broker.responses import Responder
from mq_adapters.broker.retained import RetainedPublications
from mq_adapters.broker.subscribers import Subscribers
from mq_adapters.broker.subscriptions import SubscriptionRegistry
from mq_adapters.delivery_listener import DeliveryListener
from mq_adapters.embedded.engine import (
    AUDIT_QUEUE,
    CONTROL_QUEUE,
    DEAD_LETTER_QUEUE,
    DEFAULT_STREAM,
    Engine,
)
from mq_adapters.embedded.unit_of_work import StateSpace
from mq_adapters.message import IDENTIFIER_TAG
from mq_adapters.reasons import QueueManagerError, ReasonCode

_NOT_A_STREAM: Final = frozenset({CONTROL_QUEUE, DEAD_LETTER_QUEUE, AUDIT_QUEUE})


class Broker:
    """The queued publish/subscribe engine of one queue manager. A stream is its queue, as in WebSphere MQ V6.

    Make it, call `attach` once, and call `expire` every few seconds. The default stream is always served; the queues of
    other streams are defined where they are missing. Raises QueueManagerError 2152 for a name that cannot be a stream.
    """

    def __init__(self, engine: Engine, *, listener: DeliveryListener, streams: tuple[str, ...] = ()) -> None:
        self._engine = engine
        self._registry = SubscriptionRegistry()
        self._retained = RetainedPublications(IDENTIFIER_TAG + engine.incarnation)
        self._dead_letters = DeadLetters(engine, listener)
        self._responder = Responder(engine, listener, self._dead_letters)
        self._distributor = Distributor(engine, listener, self._dead_letters)
        self._stream_names = tuple(dict.fromkeys((DEFAULT_STREAM, *streams)))
        for name in streams:
            if name in _NOT_A_STREAM:
                raise QueueManagerError(ReasonCode.MQRC_OBJECT_NAME_ERROR, f"serve stream {name!r}")
            engine.ensure(name, f"publications of stream {name}")

    def attach(self) -> None:
        """Loads subscriptions and retained publications, then takes over the queues and what waits on them."""
        self._registry.load(self._engine.states(StateSpace.BROKER_SUBSCRIPTION))
        self._retained.load(self._engine.states(StateSpace.BROKER_RETAINED))
        self.expire()
        self._engine.serve(self._engine.queue(CONTROL_QUEUE), self._control_queue().receive)
        for name in self._stream_names:
            self._engine.serve(self._engine.queue(name), self._stream_publisher(name).receive)

    def expire(self) -> None:
        """Ends the subscriptions and forgets the retained publications whose life is over."""
        unit = self._engine.begin()
        now_us = self._engine.now_us()
        self._registry.remove_expired(unit, now_us)
        self._retained.remove_expired(unit, now_us)
        if unit.states:
            self._engine.submit(unit)

    def _control_queue(self) -> ControlQueue:
        subscribers = Subscribers(
            self._engine,
            stream_names=frozenset(self._stream_names),
            registry=self._registry,
            retained=self._retained,
            distributor=self._distributor,
        )
        return ControlQueue(subscribers=subscribers, responder=self._responder, dead_letters=self._dead_letters)

    def _stream_publisher(self, stream_name: str) -> StreamPublisher:
        return StreamPublisher(
            stream_name,
            self._engine,
            subscriptions=self._registry.stream(stream_name),
            retained=self._retained,
            distributor=self._distributor,
            responder=self._responder,
            dead_letters=self._dead_letters,
        )
