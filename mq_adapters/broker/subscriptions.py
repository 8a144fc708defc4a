"""Who subscribes to what: the registry, its index by topic, and its durable form.

A subscription is found by its identity (queue manager, queue, CorrelId where CorrelAsId was set), its stream, its
subscription point and its topic pattern. Each stream is a topic space of its own.

Stored form (space BROKER_SUBSCRIPTION): the key is stream, identity, subscription point and topic, joined by NUL; the
value is a msgpack list that begins with its version. To change it: raise `_VERSION` and keep reading the one before.
"""

import heapq
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import ormsgpack

from mappings.options import RegistrationOption
from mappings.table import Dialect
from mappings.topics import PatternIndex, Scheme
from mq_adapters.embedded.unit_of_work import StateSpace, UnitOfWork
from mq_adapters.reasons import StoreError

_VERSION: Final = 1

#: Patterns of MQRFH use `*` and `?`, those of MQRFH2 `+` and `#` (IBM MQ, "Wildcard schemes").
SCHEME_OF: Final = {Dialect.MQRFH: Scheme.CHARACTER, Dialect.MQRFH2: Scheme.TOPIC}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A subscriber or publisher: `QMgr:Queue[:CorrelId]`; `correl_id` is None unless CorrelAsId was set."""

    queue_manager_name: str
    queue_name: str
    correl_id: bytes | None

    def __str__(self) -> str:
        name = f"{self.queue_manager_name}:{self.queue_name}"
        return name if self.correl_id is None else f"{name}:{self.correl_id.hex()}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subscription:
    """One registered topic of one subscriber.

    `number` counts registrations and gives the order of copies; `dialect` is that of the RegSub, in which publications
    are delivered; the user fields are those of the RegSub's MQMD; `expires_us` is microseconds since 1970, 0 for never.
    """

    number: int
    identity: Identity
    stream_name: str
    topic: str
    dialect: Dialect
    options: RegistrationOption
    subscription_point: str = ""
    subscription_name: str = ""
    subscription_user_data: str = ""
    user_identifier: str = ""
    accounting_token: bytes = b""
    appl_identity_data: str = ""
    expires_us: int = 0

    @property
    def scheme(self) -> Scheme:
        """The wildcard scheme of `topic`."""
        return SCHEME_OF[self.dialect]

    @property
    def is_indexed(self) -> bool:
        """Whether publications reach it as they are made: not with PubOnReqOnly, and not at another point.

        The broker publishes at the default subscription point only.
        """
        return not self.subscription_point and not self.options & RegistrationOption.PUBLISH_ON_REQUEST_ONLY

    @property
    def key(self) -> bytes:
        """The durable key."""
        return "\0".join((self.stream_name, str(self.identity), self.subscription_point, self.topic)).encode()

    def pack(self) -> bytes:
        """The durable value."""
        identity = self.identity
        return ormsgpack.packb(
            [
                _VERSION,
                self.number,
                identity.queue_manager_name,
                identity.queue_name,
                identity.correl_id,
                self.stream_name,
                self.topic,
                self.dialect.value,
                int(self.options),
                self.subscription_point,
                self.subscription_name,
                self.subscription_user_data,
                self.user_identifier,
                self.accounting_token,
                self.appl_identity_data,
                self.expires_us,
            ]
        )


def unpack_subscription(packed: bytes) -> Subscription:
    """A subscription from its durable value; StoreError for another version or for damage."""
    try:
        version, number, queue_manager_name, queue_name, correl_id, *fields = ormsgpack.unpackb(packed)
        stream_name, topic, dialect, options, point, name, user_data, user, token, identity_data, expires_us = fields
        if version != _VERSION:
            raise ValueError(f"stored version {version}, this program reads {_VERSION}")
        return Subscription(
            number=number,
            identity=Identity(queue_manager_name=queue_manager_name, queue_name=queue_name, correl_id=correl_id),
            stream_name=stream_name,
            topic=topic,
            dialect=Dialect(dialect),
            options=RegistrationOption(options),
            subscription_point=point,
            subscription_name=name,
            subscription_user_data=user_data,
            user_identifier=user,
            accounting_token=token,
            appl_identity_data=identity_data,
            expires_us=expires_us,
        )
    except (ValueError, TypeError) as error:
        raise StoreError("read a subscription", str(error), "use the program that wrote it, or a backup") from error


class StreamSubscriptions:
    """The subscriptions of one stream."""

    def __init__(self) -> None:
        self._index: PatternIndex[Subscription] = PatternIndex()
        self._by_identity: dict[Identity, dict[tuple[str, str], Subscription]] = {}
        self._by_name: dict[str, Subscription] = {}

    @property
    def generation(self) -> int:
        """Changes whenever a publication may have other recipients than before."""
        return self._index.generation

    def find(self, identity: Identity, subscription_point: str, topic: str) -> Subscription | None:
        """The subscription of exactly this identity, point and pattern."""
        return self._by_identity.get(identity, {}).get((subscription_point, topic))

    def named(self, subscription_name: str) -> Subscription | None:
        """The subscription of that SubName."""
        return self._by_name.get(subscription_name)

    def of(self, identity: Identity) -> tuple[Subscription, ...]:
        """All subscriptions of one identity, oldest first."""
        return tuple(sorted(self._by_identity.get(identity, {}).values(), key=_number))

    def everyone(self) -> Iterable[Subscription]:
        """All subscriptions."""
        return (found for topics in self._by_identity.values() for found in topics.values())

    def recipients(self, topics: Iterable[str], now_us: int) -> tuple[Subscription, ...]:
        """Who gets a copy of a publication on these topics now: one for each identity, and one more for each DupsOK."""
        matching = {found for topic in topics for found in self._index.match(topic)}
        chosen: list[Subscription] = []
        served: set[Identity] = set()
        for found in sorted(matching, key=_duplicates_first):
            if found.expires_us and found.expires_us <= now_us:
                continue
            if found.identity in served and not found.options & RegistrationOption.DUPLICATES_OK:
                continue
            served.add(found.identity)
            chosen.append(found)
        return tuple(chosen)

    def add(self, subscription: Subscription) -> None:
        """Adds one that is not there yet."""
        topics = self._by_identity.setdefault(subscription.identity, {})
        topics[subscription.subscription_point, subscription.topic] = subscription
        if subscription.subscription_name:
            self._by_name[subscription.subscription_name] = subscription
        if subscription.is_indexed:
            self._index.add(subscription.topic, subscription.scheme, subscription)

    def remove(self, subscription: Subscription) -> None:
        """Removes one that is there."""
        topics = self._by_identity[subscription.identity]
        del topics[subscription.subscription_point, subscription.topic]
        if not topics:
            del self._by_identity[subscription.identity]
        if subscription.subscription_name:
            del self._by_name[subscription.subscription_name]
        if subscription.is_indexed:
            self._index.remove(subscription.topic, subscription.scheme, subscription)


class SubscriptionRegistry:
    """Every subscription of the broker, in memory as in the store: each change goes into a unit of work."""

    def __init__(self) -> None:
        self._streams: dict[str, StreamSubscriptions] = {}
        self._expiring: list[tuple[int, int, Subscription]] = []
        self._tie_breaker = itertools.count()
        self._last_number = 0

    def stream(self, stream_name: str) -> StreamSubscriptions:
        """The subscriptions of a stream, made empty where there were none."""
        found = self._streams.get(stream_name)
        if found is None:
            found = self._streams[stream_name] = StreamSubscriptions()
        return found

    def next_number(self) -> int:
        """A number above all that are in use."""
        self._last_number += 1
        return self._last_number

    def load(self, states: Iterable[tuple[bytes, bytes]]) -> None:
        """Takes over what the store has."""
        for _, packed in states:
            subscription = unpack_subscription(packed)
            self._last_number = max(self._last_number, subscription.number)
            self._remember(subscription)

    def put(self, unit: UnitOfWork, subscription: Subscription) -> None:
        """Adds a subscription, in the place of the one with the same identity, point and topic."""
        stream = self.stream(subscription.stream_name)
        earlier = stream.find(subscription.identity, subscription.subscription_point, subscription.topic)
        if earlier is not None:
            stream.remove(earlier)
        self._remember(subscription)
        unit.set_state(StateSpace.BROKER_SUBSCRIPTION, subscription.key, subscription.pack())

    def remove(self, unit: UnitOfWork, subscription: Subscription) -> None:
        """Ends a subscription."""
        self.stream(subscription.stream_name).remove(subscription)
        unit.delete_state(StateSpace.BROKER_SUBSCRIPTION, subscription.key)

    def remove_expired(self, unit: UnitOfWork, now_us: int) -> None:
        """Ends the subscriptions whose life is over."""
        while self._expiring and self._expiring[0][0] <= now_us:
            _, _, subscription = heapq.heappop(self._expiring)
            stream = self.stream(subscription.stream_name)
            if stream.find(subscription.identity, subscription.subscription_point, subscription.topic) is subscription:
                self.remove(unit, subscription)

    def _remember(self, subscription: Subscription) -> None:
        self.stream(subscription.stream_name).add(subscription)
        if subscription.expires_us:
            heapq.heappush(self._expiring, (subscription.expires_us, next(self._tie_breaker), subscription))


def _number(subscription: Subscription) -> int:
    return subscription.number


def _duplicates_first(subscription: Subscription) -> tuple[bool, int]:
    return not subscription.options & RegistrationOption.DUPLICATES_OK, subscription.number
