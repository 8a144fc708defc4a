"""The registry of all subscriptions, and its index by topic.

A subscription is found by its identity (queue manager, queue, CorrelId where CorrelAsId was set) and its interest
(topic pattern, subscription point, content filter) in its topic space, or there by its SubName. Memory and store agree,
because each change goes into a unit of work.
"""

import heapq
import itertools
from collections.abc import Container, Iterable
from typing import Final

from mappings.commands.options import RegistrationOption
from mappings.topics.topics import PatternIndex
from mq_adapters.broker.subscription import Identity, Interest, Subscription, unpack_subscription
from mq_adapters.broker.topic_spaces import TopicSpaces
from mq_adapters.embedded.unit_of_work import StateSpace, UnitOfWork

Owner = tuple[str, bool]
#: Subscriptions in all answers that `Interested` remembers, 16 bytes each; it finds few ones as fast as it remembers.
_KEPT: Final = 1_000_000
_FEW: Final = 8


class SpaceSubscriptions:
    """The subscriptions of one topic space."""

    def __init__(self) -> None:
        self._indexes: dict[str, PatternIndex[Subscription]] = {}
        self._by_identity: dict[Identity, dict[Interest, Subscription]] = {}
        self._owners: dict[Identity, dict[Owner, int]] = {}
        self._by_name: dict[str, Subscription] = {}

    def index(self, point: str) -> PatternIndex[Subscription]:
        """The subscriptions at a subscription point, by topic. Its generation changes when other ones may match."""
        found = self._indexes.get(point)
        if found is None:
            found = self._indexes[point] = PatternIndex()
        return found

    def find(self, identity: Identity, interest: Interest) -> Subscription | None:
        """The subscription of exactly this identity and interest."""
        return self._by_identity.get(identity, {}).get(interest)

    def named(self, name: str) -> Subscription | None:
        """The subscription of that SubName."""
        return self._by_name.get(name)

    def of(self, identity: Identity) -> tuple[Subscription, ...]:
        """All subscriptions of one identity, oldest first."""
        return tuple(sorted(self._by_identity.get(identity, {}).values(), key=_number))

    def owners(self, identity: Identity) -> Iterable[Owner]:
        """The users that registered the subscriptions of an identity, and whether with VariableUserId."""
        return self._owners.get(identity, ())

    def everyone(self) -> Iterable[Subscription]:
        """All subscriptions."""
        return (found for interests in self._by_identity.values() for found in interests.values())

    def add(self, subscription: Subscription) -> None:
        """Adds a subscription. It must not be there yet."""
        self._by_identity.setdefault(subscription.identity, {})[subscription.interest] = subscription
        owners = self._owners.setdefault(subscription.identity, {})
        owner = _owner(subscription)
        owners[owner] = owners.get(owner, 0) + 1
        if subscription.name:
            self._by_name[subscription.name] = subscription
        if subscription.is_indexed:
            interest = subscription.interest
            self.index(interest.point).add(interest.pattern, subscription.scheme, subscription)

    def remove(self, subscription: Subscription) -> None:
        """Removes a subscription. It must be there."""
        interests = self._by_identity[subscription.identity]
        del interests[subscription.interest]
        if not interests:
            del self._by_identity[subscription.identity]
        self._remove_owner(subscription)
        if subscription.name:
            del self._by_name[subscription.name]
        if subscription.is_indexed:
            interest = subscription.interest
            self.index(interest.point).remove(interest.pattern, subscription.scheme, subscription)

    def _remove_owner(self, subscription: Subscription) -> None:
        owners, owner = self._owners[subscription.identity], _owner(subscription)
        owners[owner] -= 1
        if not owners[owner]:
            del owners[owner]
        if not owners:
            del self._owners[subscription.identity]


class SubscriptionRegistry:
    """Every subscription of the broker."""

    def __init__(self) -> None:
        self._spaces: dict[str, SpaceSubscriptions] = {}
        self._expiring: list[tuple[int, int, Subscription]] = []
        self._tie_breaker = itertools.count()
        self._last_number = 0
        #: Temporary dynamic queues that subscriptions were registered with since the start.
        self.temporary_queues: set[str] = set()

    def space(self, name: str) -> SpaceSubscriptions:
        """The subscriptions of a topic space; a new empty one if there are none."""
        found = self._spaces.get(name)
        if found is None:
            found = self._spaces[name] = SpaceSubscriptions()
        return found

    def everyone(self) -> Iterable[Subscription]:
        """All subscriptions of all topic spaces."""
        return (found for space in self._spaces.values() for found in space.everyone())

    def next_number(self) -> int:
        """A number above all that are in use."""
        self._last_number += 1
        return self._last_number

    def load(
        self, states: Iterable[tuple[bytes, bytes]], spaces: TopicSpaces, *, set_aside: Container[bytes | None] = ()
    ) -> None:
        """Loads the subscriptions from the store, without those of the CorrelIds in `set_aside`."""
        for key, packed in states:
            subscription = unpack_subscription(key, packed, spaces)
            self._last_number = max(self._last_number, subscription.number)
            if subscription.identity.correl_id in set_aside:
                continue
            earlier = self.space(subscription.space).find(subscription.identity, subscription.interest)
            if earlier is None:  # two subscriptions of the other dialect may be one in this dialect: the first counts
                self._remember(subscription)

    def put(self, unit: UnitOfWork, subscription: Subscription) -> None:
        """Adds a subscription, or replaces the one with the same identity and interest."""
        space = self.space(subscription.space)
        earlier = space.find(subscription.identity, subscription.interest)
        if earlier is not None:
            space.remove(earlier)
            if earlier.key != subscription.key:
                unit.delete_state(StateSpace.BROKER_SUBSCRIPTION, earlier.key)
        self._remember(subscription)
        unit.set_state(StateSpace.BROKER_SUBSCRIPTION, subscription.key, subscription.pack())

    def remove(self, unit: UnitOfWork, subscription: Subscription) -> None:
        """Ends a subscription."""
        self.space(subscription.space).remove(subscription)
        unit.delete_state(StateSpace.BROKER_SUBSCRIPTION, subscription.key)

    def remove_expired(self, unit: UnitOfWork, now_us: int) -> None:
        """Ends expired subscriptions."""
        while self._expiring and self._expiring[0][0] <= now_us:
            _, _, subscription = heapq.heappop(self._expiring)
            space = self.space(subscription.space)
            if space.find(subscription.identity, subscription.interest) is subscription:
                self.remove(unit, subscription)

    def remove_of_queue(self, unit: UnitOfWork, queue_name: str) -> None:
        """Ends every subscription whose publications go to a queue that was deleted."""
        for subscription in [found for found in self.everyone() if found.identity.queue_name == queue_name]:
            self.remove(unit, subscription)
        self.temporary_queues.discard(queue_name)

    def _remember(self, subscription: Subscription) -> None:
        self.space(subscription.space).add(subscription)
        if subscription.is_on_temporary_queue:
            self.temporary_queues.add(subscription.identity.queue_name)
        if subscription.expires_us:
            heapq.heappush(self._expiring, (subscription.expires_us, next(self._tie_breaker), subscription))


class Interested:
    """Finds the subscriptions that publications of one topic space and subscription point match.

    Subscribers may have many filters that match one topic. So the answer for a topic is remembered by what the index
    has found: another topic that matches the same patterns costs no more for them.
    """

    def __init__(self, index: PatternIndex[Subscription], spaces: TopicSpaces) -> None:
        self._index = index
        self._spaces = spaces
        self._generation = 0
        #: What the index has found, and the answer; by the id of the former.
        self._known: dict[int, tuple[tuple[Subscription, ...], tuple[Subscription, ...]]] = {}
        self._kept = 0

    def of(self, routing_topics: tuple[str, ...], now_us: int) -> tuple[Subscription, ...]:
        """Every subscription that matches publications on these topics now, those with DupsOK first, then by age."""
        if len(routing_topics) != 1 or not self._spaces.are_apart:
            return self._ordered(routing_topics, now_us)
        if self._generation != self._index.generation or self._kept >= _KEPT:
            self._known.clear()
            self._generation, self._kept = self._index.generation, 0
        matching = self._index.match(routing_topics[0])
        known = self._known.get(id(matching))
        if known is not None:
            return known[1]
        ordered = self._ordered(routing_topics, now_us)
        if len(matching) > _FEW and not any(found.expires_us for found in matching):
            self._known[id(matching)] = matching, ordered
            self._kept += len(matching)
        return ordered

    def _ordered(self, routing_topics: tuple[str, ...], now_us: int) -> tuple[Subscription, ...]:
        matching = {
            found
            for topic in routing_topics
            for found in self._index.match(topic)
            if not self._spaces.spans_streams(found.interest.pattern, topic)
        }
        living = (found for found in matching if not found.expires_us or found.expires_us > now_us)
        return tuple(sorted(living, key=_duplicates_first))


def recipients(candidates: Iterable[Subscription]) -> tuple[Subscription, ...]:
    """The matching subscriptions that get a copy: one for each identity, and one more for each DupsOK."""
    chosen: list[Subscription] = []
    served: set[Identity] = set()
    for found in candidates:
        if found.identity in served and not found.options & RegistrationOption.DUPLICATES_OK:
            continue
        served.add(found.identity)
        chosen.append(found)
    return tuple(chosen)


def _owner(subscription: Subscription) -> Owner:
    return subscription.user_identifier, RegistrationOption.VARIABLE_USER_ID in subscription.options


def _number(subscription: Subscription) -> int:
    return subscription.number


def _duplicates_first(subscription: Subscription) -> tuple[bool, int]:
    return not subscription.options & RegistrationOption.DUPLICATES_OK, subscription.number
