"""Subscriptions and retained publications, changed by an administrator's command instead of a message.

The rules of RegSub (`subscribers`) check a subscription, so a command and a message make the same one. Without a
gateway nobody keeps audit records. So a new subscription then gets no retained publications.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from mappings.commands.command import RegisterSubscriber
from mappings.commands.options import RegistrationOption
from mappings.reasons import Reason
from mappings.table import Dialect
from mappings.topics.topics import Scheme
from mq_adapters.broker.managed_queues import ManagedQueues
from mq_adapters.broker.responses import CommandRefusal
from mq_adapters.broker.retained import RetainedPublications
from mq_adapters.broker.subscribers import Done, SubscriberCommands
from mq_adapters.broker.subscription import Identity, Subscription
from mq_adapters.broker.subscriptions import SpaceSubscriptions, SubscriptionRegistry
from mq_adapters.broker.topic_spaces import TopicSpaces
from mq_adapters.broker.updates import Updates
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqsc.publish_subscribe import SubscriptionRefused
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import Message
from mq_adapters.system_queues import DEFAULT_STREAM


class Administration:
    """Implements PublishSubscribe of the command server; `points` are the subscription points of the broker."""

    def __init__(
        self,
        engine: Engine,
        *,
        spaces: TopicSpaces,
        registry: SubscriptionRegistry,
        retained: RetainedPublications,
        subscribers: SubscriberCommands,
        updates: Updates,
        points: Iterable[str],
        is_audited: bool,
        managed_queues: ManagedQueues,
    ) -> None:
        self._engine = engine
        self._managed_queues = managed_queues
        self._spaces = spaces
        self._registry = registry
        self._retained = retained
        self._subscribers = subscribers
        self._updates = updates
        self._points = ("", *dict.fromkeys(points))
        self._is_audited = is_audited

    def subscriptions(self) -> Iterator[Subscription]:
        """Every subscription that has not expired. Those that are set aside are read one after another."""
        return (found for found in self._registry.everyone() if not self._has_expired(found))

    def named(self, stream_name: str, name: str) -> Subscription | None:
        """The subscription with that SubName on a stream, if it has not expired."""
        space = self._known_space(stream_name)
        found = space.named(name) if space is not None else None
        return found if found is not None and not self._has_expired(found) else None

    def of(self, stream_name: str, queue_name: str, correl_id: bytes | None) -> tuple[Subscription, ...]:
        """The subscriptions on a stream whose publications come to a queue with that CorrelId, or with the broker's."""
        space = self._known_space(stream_name)
        if space is None:
            return ()
        identity = Identity(queue_manager_name=self._engine.name, queue_name=queue_name, correl_id=correl_id)
        return tuple(found for found in space.of(identity) if not self._has_expired(found))

    def durable_of_user(self, user: str) -> int:
        """How many durable subscriptions of MQSUB a user owns."""
        return self._registry.durable_of_user[user]

    def end_queue(self, queue: Queue) -> None:
        """Ends the managed queue of a durable subscription that has ended; see ManagedQueues."""
        self._managed_queues.end(queue)

    def retained_copies(self, stream_name: str, topic: str) -> int:
        """How many retained publications on a stream match a topic string of the topic scheme."""
        space, pattern = (
            self._spaces.space(stream_name),
            self._spaces.routing_pattern(stream_name, topic, Dialect.MQRFH2),
        )
        return len(self._retained.matching(space, "", pattern, Scheme.TOPIC, self._engine.now_us()))

    def define(self, unit: UnitOfWork, message: Message, command: RegisterSubscriber, dialect: Dialect) -> None:
        """Adds a subscription and sends it the retained publications."""
        if self._is_audited:
            self._updates.begin(unit, self._register(unit, message, command, dialect), None, None)
        else:
            self._register_without_retained(unit, message, command, dialect)

    def alter(
        self,
        unit: UnitOfWork,
        number: int,
        message: Message,
        command: RegisterSubscriber,
        dialect: Dialect,
    ) -> None:
        """Replaces a subscription. If the new one is refused, the old one stays."""
        existing = self._numbered(number)
        self._registry.remove(unit, existing)
        try:
            made = self._register_without_retained(unit, message, command, dialect)
        except SubscriptionRefused:
            self._registry.put(UnitOfWork(), existing)  # it had ended in memory only, and is still in the store
            raise
        kept = replace(
            made,
            number=existing.number,
            joined=existing.joined,
            is_exclusive=existing.is_exclusive,
            is_of_mqsub=existing.is_of_mqsub,
            priority=existing.priority,
            is_durable=existing.is_durable,
        )
        self._registry.put(unit, kept)

    def delete(self, unit: UnitOfWork, number: int) -> None:
        """Ends a subscription."""
        self._registry.remove(unit, self._numbered(number))

    def clear_retained(self, unit: UnitOfWork, topic_string: str) -> None:
        """Deletes retained publications on topics. If the first level is a stream's name, it names the topic space."""
        first, _, rest = topic_string.partition("/")
        own_space = first if first != DEFAULT_STREAM and rest and self._spaces.space(first) == first else ""
        places = [(DEFAULT_STREAM, topic_string), *([(own_space, rest)] if own_space else [])]
        now_us = self._engine.now_us()
        for space, pattern in places:
            for point in self._points:
                for topic in self._retained.matching(space, point, pattern, Scheme.TOPIC, now_us):
                    if not self._spaces.spans_streams(pattern, topic):
                        self._retained.delete(unit, space, point, topic)

    def _known_space(self, stream_name: str) -> SpaceSubscriptions | None:
        """The subscriptions on a stream; None for an unknown one, which gets no topic space because of a question."""
        return self._registry.space(self._spaces.space(stream_name)) if self._spaces.knows(stream_name) else None

    def _has_expired(self, subscription: Subscription) -> bool:
        return 0 < subscription.expires_us <= self._engine.now_us()

    def _numbered(self, number: int) -> Subscription:
        return next(found for found in self._registry.everyone() if found.number == number)

    def _register(self, unit: UnitOfWork, message: Message, command: RegisterSubscriber, dialect: Dialect) -> Done:
        try:
            return self._subscribers.register(unit, message, command, dialect)
        except CommandRefusal as refusal:
            raise SubscriptionRefused(_sentence(refusal)) from refusal

    def _register_without_retained(
        self, unit: UnitOfWork, message: Message, command: RegisterSubscriber, dialect: Dialect
    ) -> Subscription:
        """Registers with NewPubsOnly, so no retained publications are sent. Then removes it if nobody asked for it."""
        options = command.registration_options
        before = set(self._registry.loaded())
        quiet = replace(command, registration_options=options | RegistrationOption.NEW_PUBLICATIONS_ONLY)
        self._register(unit, message, quiet, dialect)
        made = next(found for found in self._registry.loaded() if found not in before)
        kept = replace(made, options=made.options & (options | ~RegistrationOption.NEW_PUBLICATIONS_ONLY))
        self._registry.put(unit, kept)
        return kept


def _sentence(refusal: CommandRefusal) -> str:
    reason = refusal.reason
    try:
        name = f" {Reason(reason.reason_code).name}"
    except ValueError:
        name = ""
    fields = ", ".join(f"{name} {value}" for name, value in reason.fields if value)
    return f"{reason.reason_code}{name}" + (f" ({fields})" if fields else "")
