"""The broker: serves the control queue and the input queues of an embedded queue manager.

Step 7a on the way of a PUBLISH that no remote queue manager takes. The broker's handlers run inside the putter's unit
of work, so a publication, its copies, the answer, changes of subscriptions and the audit notes are committed together.
A served queue stores no messages. Each message, whatever it contains, ends in copies, an answer, or a dead letter. The
broker ignores a message only if the rules of queued publish/subscribe say so. The only error that leaves a handler is
StoreError.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from mappings.table import Dialect
from mappings.topics.shapes import Shape, Shapes
from mappings.topics.topics import Scheme
from mq_adapters.attributes import ObjectType
from mq_adapters.broker.administration import Administration
from mq_adapters.broker.audience import SubscriptionAudience
from mq_adapters.broker.control_queue import ControlQueue
from mq_adapters.broker.dead_letters import BrokerDeadLetters
from mq_adapters.broker.distributor import Distributor
from mq_adapters.broker.managed_queues import ManagedQueues
from mq_adapters.broker.publish import InputQueue
from mq_adapters.broker.responses import Responder
from mq_adapters.broker.retained import RetainedPublications
from mq_adapters.broker.subscribers import SubscriberCommands
from mq_adapters.broker.subscription import Subscription, unpack_subscription
from mq_adapters.broker.subscriptions import MayAdd, SubscriptionRegistry
from mq_adapters.broker.topic_permissions import TopicPermissions
from mq_adapters.broker.topic_spaces import SCHEME_OF, BrokerDialect, TopicSpaces
from mq_adapters.broker.update import subscriptions_under_way
from mq_adapters.broker.updates import CallSoon, CopyLimit, Updates
from mq_adapters.delivery_listener import DeliveryListener, Unheard
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.message import IDENTIFIER_TAG
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import CONTROL_QUEUE, DEFAULT_STREAM, MADE_AT_START

_NOT_AN_INPUT_QUEUE: Final = frozenset(row.name for row in MADE_AT_START if not row.is_stream)

#: The namelist of stream queues of a queue manager (IBM MQ, "Streams and topics").
STREAM_NAMELIST: Final = "SYSTEM.QPUBSUB.QUEUE.NAMELIST"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRules:
    """The settings of a broker. `input_queues` take publications, as the default stream always does; in dialect `mq6`
    each is a stream. `subscription_points`: by input queue, the point at which its publications are published."""

    dialect: BrokerDialect = BrokerDialect.MQ6
    input_queues: tuple[str, ...] = ()
    has_implicit_stream_naming: bool = False
    subscription_points: Mapping[str, str] = field(default_factory=dict)
    #: The queue of the MQTT sessions, which check each topic again with their filters.
    mqtt_queue: str = ""

    @property
    def all_input_queues(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((DEFAULT_STREAM, *self.input_queues, *self.subscription_points)))


class Broker:
    """The queued publish/subscribe engine of one queue manager.

    Make it, call `attach` once, and call `tend` every few seconds. It always serves the default stream. It defines
    missing input queues of its rules, and raises QueueManagerError 2152 for a queue that cannot be one. It also serves
    the queues of namelist SYSTEM.QPUBSUB.QUEUE.NAMELIST as soon as they exist.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        listener: DeliveryListener,
        streams: tuple[str, ...] = (),
        rules: BrokerRules | None = None,
        call_soon: CallSoon | None = None,
        set_aside: Collection[bytes] = (),
    ) -> None:
        """`call_soon`: of an event loop. It lets other work go on while many retained publications are sent.

        `set_aside`: CorrelIds of subscribers whose subscriptions stay in the store, with an index in memory.
        """
        self._set_aside = frozenset(set_aside)
        self._engine = engine
        self._rules = rules or BrokerRules(input_queues=streams)
        self._input_queues: set[str] = set(self._rules.all_input_queues)
        self._spaces = TopicSpaces(
            dialect=self._rules.dialect,
            has_implicit_stream_naming=self._rules.has_implicit_stream_naming,
            stream_names=self._input_queues,
        )
        self._registry = SubscriptionRegistry(engine, self._spaces, self._rules.mqtt_queue)
        self._managed_queues = ManagedQueues(engine, self._registry, listener)
        self._retained = RetainedPublications(
            IDENTIFIER_TAG + engine.incarnation, lambda key: engine.state(StateKind.BROKER_RETAINED, key)
        )
        self._permissions = TopicPermissions(engine.objects)
        self._dead_letters = BrokerDeadLetters(engine, listener)
        self._responder = Responder(engine, listener, self._dead_letters)
        self._distributor = Distributor(engine, listener, self._dead_letters, self._spaces)
        self._updates = Updates(
            engine,
            spaces=self._spaces,
            registry=self._registry,
            retained=self._retained,
            distributor=self._distributor,
            responder=self._responder,
            call_soon=call_soon,
        )
        for name in self._rules.all_input_queues:
            if name in _NOT_AN_INPUT_QUEUE:
                raise QueueManagerError(ReasonCode.MQRC_OBJECT_NAME_ERROR, f"take publications from {name!r}")
            engine.ensure(name, f"publications of stream {name}")

    def load(self) -> None:
        """Loads subscriptions and retained publications."""
        under_way = subscriptions_under_way(self._engine.states(StateKind.BROKER_UPDATE))
        self._registry.load(set_aside=self._set_aside, but=under_way)
        self._retained.load(self._engine.each_state(StateKind.BROKER_RETAINED))

    def attach(self) -> None:
        """Loads the store, then takes over the queues with their waiting messages, and the commands about them."""
        self.load()
        self._end_what_was_temporary()
        self._updates.load()
        objects = self._engine.objects
        administration = self.administration(is_audited=True)
        objects.publish_subscribe, objects.on_change = lambda: administration, self._serve_new_streams
        self._engine.serve(self._engine.queue(CONTROL_QUEUE), self._control_queue().receive)
        for name in self._rules.all_input_queues:
            self._engine.serve(self._engine.queue(name), self._input_queue(name).receive)
        self.tend()

    def tend(self) -> None:
        """Ends expired subscriptions and their queues, deletes expired retained publications, serves new streams."""
        unit = self._engine.begin()
        now_us = self._engine.now_us()
        self._registry.remove_expired(unit, now_us)
        self._retained.remove_expired(unit, now_us)
        for name in [name for name in self._registry.temporary_queues if not self._has_queue(name)]:
            self._registry.remove_of_queue(unit, name)
        if unit.states:
            self._engine.submit(unit)
        self._managed_queues.tidy()
        self._serve_new_streams()

    @property
    def subscribers_set_aside(self) -> int:
        """How many subscribers have subscriptions that stay in the store, with an index in memory."""
        return self._registry.subscribers_set_aside

    @property
    def retained_publications(self) -> int:
        """How many publications are retained."""
        return len(self._retained)

    @property
    def retained_bytes(self) -> int:
        """The rows of all retained publications together."""
        return self._retained.size_bytes

    def read_subscription(self, key: bytes, row: bytes) -> Subscription:
        """A subscription from its row in the store."""
        return unpack_subscription(key, row, self._spaces)

    def limit_retained_copies(self, limit: CopyLimit) -> None:
        """From now on `limit` decides about each copy that a RegSub or ReqUpdate brings."""
        self._updates.limit = limit

    def on_retained_sent(self, told: Callable[[bytes | None, bytes], None]) -> None:
        """From now on `told` gets CorrelId and name of each command that was under way, with its last copy.

        The name is the MsgId of the command, or one of those that `commands_under_way` has told.
        """
        self._updates.on_end = told

    def is_under_way(self, msg_id: bytes) -> bool:
        """Whether the command with that MsgId has retained publications to send, answered or not."""
        return self._updates.is_under_way(msg_id)

    def commands_under_way(self) -> list[tuple[bytes | None, bytes]]:
        """CorrelId and name of each command that has retained publications to send."""
        return self._updates.under_way()

    def retained_topics(self, queue_name: str, pattern: str) -> Iterator[str]:
        """The topics with a retained publication from an input queue that a character pattern matches."""
        space, point = self._spaces.space(queue_name), self._rules.subscription_points.get(queue_name, "")
        yield from self._retained.matching(space, point, pattern, Scheme.CHARACTER, self._engine.now_us())

    def retains(self, queue_name: str, topic: str, header: Dialect) -> bool:
        """Whether a Publish on an input queue would replace a retained publication, if it names no stream."""
        stream_name = self._spaces.stream_of_publication(None, queue_name, header)
        (routing_topic,) = self._spaces.routing_topics(stream_name, (topic,))
        point = self._rules.subscription_points.get(queue_name, "")
        return self._retained.holds(self._spaces.space(queue_name), point, routing_topic)

    @property
    def closing_topic_objects(self) -> int:
        """How many topic objects close topics to publishers."""
        return self._permissions.closing_objects

    def is_closed(self, queue_name: str, topic: str, header: Dialect) -> bool:
        """Whether topic objects would refuse a Publish on an input queue (3081), if it names no stream."""
        stream_name = self._spaces.stream_of_publication(None, queue_name, header)
        routing_topics = self._spaces.routing_topics(stream_name, (topic,))
        return bool(self._permissions.refused_topics(self._spaces.space(queue_name), routing_topics))

    def audience(self, queue_name: str, header: Dialect) -> SubscriptionAudience:
        """The subscriptions that match a Publish on an input queue, if it names no stream."""
        return SubscriptionAudience(
            self._engine,
            spaces=self._spaces,
            registry=self._registry,
            queue_name=queue_name,
            point=self._rules.subscription_points.get(queue_name, ""),
            header=header,
        )

    @property
    def shapes(self) -> Shapes:
        """The shapes of the subscriptions on the default stream. Their weight bounds the time to match a new topic."""
        return self._registry.space(self._spaces.space(DEFAULT_STREAM)).index("").shapes

    def shape(self, pattern: str, header: Dialect) -> Shape | None:
        """The shape that a pattern of an MQTT session has or would have among them; None if it costs nothing."""
        space = self._registry.space(self._spaces.space(DEFAULT_STREAM))
        return space.index("").shape(*space.routing_of_session(pattern, SCHEME_OF[header]))

    def limit_shapes(self, may_add: MayAdd) -> None:
        """From now on `may_add` decides about each RegSub whose topics have a new shape; else it is refused (2102)."""
        self._registry.may_add = may_add

    def shapes_of_applications(self) -> Iterator[tuple[str, Shapes, Shape]]:
        """The shapes of the subscriptions of MQ applications: user identifier, the shapes of their index, shape."""
        return self._registry.shapes_of_applications()

    def administration(self, *, is_audited: bool) -> Administration:
        """The broker's side of administrators' commands. Without an audit a new subscription gets nothing retained."""
        return Administration(
            self._engine,
            spaces=self._spaces,
            registry=self._registry,
            retained=self._retained,
            subscribers=self._subscribers(),
            updates=self._updates,
            points=self._rules.subscription_points.values(),
            is_audited=is_audited,
            managed_queues=self._managed_queues,
        )

    def is_unanswered(self, msg_id: bytes) -> bool:
        """Whether the broker is still sending retained publications for the command with that MsgId."""
        return self._updates.is_unanswered(msg_id)

    def stop(self) -> None:
        """Call this before the engine is closed. Retained publications not sent yet wait for the next start."""
        self._updates.stop()

    def _end_what_was_temporary(self) -> None:
        """Ends subscriptions on temporary queues and of programs, because neither survive a restart."""
        unit = self._engine.begin()
        self._registry.remove_what_ends_with_its_program(unit)
        for name in tuple(self._registry.temporary_queues):
            self._registry.remove_of_queue(unit, name)
        if unit.states:
            self._engine.submit(unit)

    def _serve_new_streams(self) -> None:
        """Takes over queues that are new in the namelist. A queue removed from it is served until the restart."""
        for name in _named_streams(self._engine):
            if name not in self._input_queues and name not in _NOT_AN_INPUT_QUEUE and self._has_queue(name):
                self._input_queues.add(name)
                self._engine.serve(self._engine.queue(name), self._input_queue(name).receive)

    def _has_queue(self, name: str) -> bool:
        try:
            self._engine.queue(name)
        except QueueManagerError:
            return False
        return True

    def _subscribers(self) -> SubscriberCommands:
        return SubscriberCommands(self._engine, spaces=self._spaces, registry=self._registry)

    def _control_queue(self) -> ControlQueue:
        return ControlQueue(
            subscribers=self._subscribers(),
            updates=self._updates,
            responder=self._responder,
            dead_letters=self._dead_letters,
        )

    def _input_queue(self, name: str) -> InputQueue:
        return InputQueue(
            name,
            self._rules.subscription_points.get(name, ""),
            self._engine,
            spaces=self._spaces,
            registry=self._registry,
            retained=self._retained,
            distributor=self._distributor,
            responder=self._responder,
            dead_letters=self._dead_letters,
        )


def unattended_administration(engine: Engine) -> Administration:
    """Administration for a command that owns the store itself. It serves no queue; the next broker loads its changes.

    The gateway's configuration is not known here, so the streams are those of the namelist.
    """
    known = engine.objects.queues.keys() - _NOT_AN_INPUT_QUEUE
    streams = tuple(name for name in _named_streams(engine) if name in known)
    broker = Broker(engine, listener=Unheard(), streams=streams)
    broker.load()
    return broker.administration(is_audited=False)


def _named_streams(engine: Engine) -> tuple[str, ...]:
    definition = engine.objects.find(ObjectType.NAMELIST, STREAM_NAMELIST)
    return () if definition is None else definition.names("NAMES")
