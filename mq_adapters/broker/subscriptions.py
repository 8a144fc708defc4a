"""The registry of all subscriptions, with an index by topic.

In its topic space a subscription is found by its SubName, or by identity and interest. The identity is queue manager,
queue and, with CorrelAsId, CorrelId. The interest is topic pattern, subscription point and content filter. Memory and
store agree, because each change goes into a unit of work.

Subscriptions of MQTT sessions in MQRFH are looked up by levels (`level_pattern`), because a session checks each topic
again with its filter. So the bound of mappings/topics/level_index.py holds for them too. For character patterns of MQ
applications `*` may stand for any levels, so a look-up compares some of them with each level of a topic.
"""

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Final

from mappings.commands.options import RegistrationOption
from mappings.topics.pattern_index import PatternIndex
from mappings.topics.shapes import Shape, Shapes
from mappings.topics.topics import Scheme, level_pattern
from mq_adapters.broker.set_aside import StoredRows, SubscriptionIndex, SubscriptionsSetAside, may_be_set_aside
from mq_adapters.broker.subscription import Identity, Interest, Subscription, unpack_subscription
from mq_adapters.broker.topic_spaces import TopicSpaces
from mq_adapters.embedded.unit_of_work import StateKind, UnitOfWork

Owner = tuple[str, bool]
MayAdd = Callable[[str, Shapes, Iterable[Shape]], bool]
"""Whether the subscriptions of a user identifier may bring these new shapes to an index, which has those shapes now."""
#: The most subscriptions in all answers that `Interested` remembers, 16 bytes each. Short answers are found as fast.
_KEPT: Final = 1_000_000
_FEW: Final = 8
#: An int is compared faster than a member of RegistrationOption.
_DUPLICATES_OK: Final = int(RegistrationOption.DUPLICATES_OK)


class SpaceSubscriptions:
    """The subscriptions of one topic space; `mqtt_queue`: that of the MQTT sessions."""

    def __init__(self, set_aside: SubscriptionsSetAside, mqtt_queue: str = "") -> None:
        self._mqtt_queue = mqtt_queue
        #: Those that are not loaded.
        self._set_aside = set_aside
        self._indexes: dict[str, SubscriptionIndex] = {}
        self._by_identity: dict[Identity, dict[Interest, Subscription]] = {}
        self._owners: dict[Identity, dict[Owner, int]] = {}
        self._by_name: dict[str, Subscription] = {}

    def index(self, point: str) -> SubscriptionIndex:
        """The subscriptions at a subscription point, by topic. Its generation changes when the matches may change."""
        found = self._indexes.get(point)
        if found is None:
            found = self._indexes[point] = SubscriptionIndex()
        return found

    def find(self, identity: Identity, interest: Interest) -> Subscription | None:
        """The subscription of exactly this identity and interest."""
        found = self._by_identity.get(identity, {}).get(interest)
        return self._set_aside.find(identity, interest) if found is None and self._set_aside else found

    def named(self, name: str) -> Subscription | None:
        """The subscription of that SubName."""
        return self._by_name.get(name)

    def of(self, identity: Identity) -> tuple[Subscription, ...]:
        """All subscriptions of one identity, oldest first."""
        loaded = self._by_identity.get(identity, {}).values()
        return tuple(sorted((*loaded, *self._set_aside.of(identity)), key=_number))

    def owners(self, identity: Identity) -> Iterable[Owner]:
        """The users that registered the subscriptions of an identity, each with whether it set VariableUserId."""
        return self._owners.get(identity, ())

    @property
    def subscribers_set_aside(self) -> int:
        """How many subscribers have subscriptions that are set aside."""
        return self._set_aside.subscribers

    def loaded(self) -> list[Subscription]:
        """Those that are not set aside."""
        return [found for interests in self._by_identity.values() for found in interests.values()]

    def everyone(self) -> Iterable[Subscription]:
        """All subscriptions. Those that are set aside are read one after another."""
        return chain(self.loaded(), self._set_aside.everyone())

    def set_aside(self, subscription: Subscription) -> None:
        """Adds a subscription of the store that stays there. It must not be there yet."""
        self._set_aside.add(subscription)
        self._add_owner(subscription)
        index = self.index(subscription.interest.point)
        index.read_matching = partial(self._set_aside.matching, subscription.interest.point)
        shape = index.shape(*self.routing(subscription))
        if shape is not None:
            index.shapes.add(shape)
        index.generation += 1

    def routing(self, subscription: Subscription) -> tuple[str, Scheme]:
        """The pattern by which a subscription is looked up, and its scheme."""
        pattern, scheme = subscription.interest.pattern, subscription.scheme
        if subscription.identity.queue_name == self._mqtt_queue:
            return self.routing_of_session(pattern, scheme)
        return pattern, scheme

    def routing_of_session(self, pattern: str, scheme: Scheme) -> tuple[str, Scheme]:
        """The same for a pattern of an MQTT session."""
        levels = level_pattern(pattern) if scheme is Scheme.CHARACTER and self._mqtt_queue else None
        return (pattern, scheme) if levels is None else (levels, Scheme.TOPIC)

    def new_shapes(self, point: str, wanted: Iterable[Subscription]) -> list[Shape]:
        """The shapes that the index of a point would have in addition. None of these subscriptions may be there."""
        return self.index(point).new_shapes([(*self.routing(each), each) for each in wanted if each.is_indexed])

    def add(self, subscription: Subscription) -> None:
        """Adds a subscription. It must not be there yet."""
        self._by_identity.setdefault(subscription.identity, {})[subscription.interest] = subscription
        self._add_owner(subscription)
        if subscription.name:
            self._by_name[subscription.name] = subscription
        if subscription.is_indexed:
            self.index(subscription.interest.point).add(*self.routing(subscription), subscription)

    def remove(self, subscription: Subscription) -> None:
        """Removes a subscription. It must be there."""
        self._remove_owner(subscription)
        interests = self._by_identity.get(subscription.identity, {})
        if subscription.interest not in interests:
            self._remove_set_aside(subscription)
            return
        del interests[subscription.interest]
        if not interests:
            del self._by_identity[subscription.identity]
        if subscription.name:
            del self._by_name[subscription.name]
        if subscription.is_indexed:
            self.index(subscription.interest.point).remove(*self.routing(subscription), subscription)

    def _remove_set_aside(self, subscription: Subscription) -> None:
        self._set_aside.remove(subscription)
        index = self.index(subscription.interest.point)
        shape = index.shape(*self.routing(subscription))
        if shape is not None:
            index.shapes.remove(shape)
        index.generation += 1

    def _add_owner(self, subscription: Subscription) -> None:
        owners = self._owners.setdefault(subscription.identity, {})
        owner = subscription.owner
        owners[owner] = owners.get(owner, 0) + 1

    def _remove_owner(self, subscription: Subscription) -> None:
        owners, owner = self._owners[subscription.identity], subscription.owner
        owners[owner] -= 1
        if not owners[owner]:
            del owners[owner]
        if not owners:
            del self._owners[subscription.identity]


class SubscriptionRegistry:
    """Every subscription of the broker; `mqtt_queue`: that of the MQTT sessions."""

    def __init__(self, rows: StoredRows, spaces: TopicSpaces, mqtt_queue: str = "") -> None:
        """`rows` of the store; `spaces`: the rules by which they are read."""
        self._rows = rows
        self._rules = spaces
        self._mqtt_queue = mqtt_queue
        #: Asked before subscriptions bring new shapes.
        self.may_add: MayAdd = lambda _user, _shapes, _new: True
        self._spaces: dict[str, SpaceSubscriptions] = {}
        self._expiring: list[tuple[int, int, Subscription]] = []
        self._tie_breaker = itertools.count()
        self._last_number = 0
        #: Temporary dynamic queues on which subscriptions were registered since the start.
        self.temporary_queues: set[str] = set()
        #: Durable subscriptions of MQSUB, by the user that owns them and by their queue.
        self.durable_of_user: Counter[str] = Counter()
        self.durable_of_queue: Counter[str] = Counter()

    def space(self, name: str) -> SpaceSubscriptions:
        """The subscriptions of a topic space; a new empty one if there are none."""
        found = self._spaces.get(name)
        if found is None:
            set_aside = SubscriptionsSetAside(self._rows, self._rules)
            found = self._spaces[name] = SpaceSubscriptions(set_aside, self._mqtt_queue)
        return found

    def loaded(self) -> Iterable[Subscription]:
        """Those of all topic spaces that are not set aside."""
        for space in self._spaces.values():
            yield from space.loaded()

    def everyone(self) -> Iterable[Subscription]:
        """All subscriptions of all topic spaces. Those that are set aside are read one after another."""
        for space in tuple(self._spaces.values()):
            yield from space.everyone()

    @property
    def subscribers_set_aside(self) -> int:
        """How many subscribers have subscriptions that are set aside."""
        return sum(space.subscribers_set_aside for space in self._spaces.values())

    def shapes_of_applications(self) -> Iterator[tuple[str, Shapes, Shape]]:
        """The shape of each subscription of an MQ application, with its user identifier and the shapes of its index."""
        for found in self.loaded():
            if found.is_indexed and found.identity.queue_name != self._mqtt_queue:
                space = self.space(found.space)
                index = space.index(found.interest.point)
                shape = index.shape(*space.routing(found))
                if shape is not None:
                    yield found.user_identifier, index.shapes, shape

    def next_number(self) -> int:
        """A number above all numbers in use."""
        self._last_number += 1
        return self._last_number

    def load(self, *, set_aside: Container[bytes | None] = (), but: Container[int] = ()) -> None:
        """Loads the subscriptions from the store. Those of the CorrelIds in `set_aside` stay there, if they can.

        `but`: the numbers of subscriptions that are loaded all the same.
        """
        for key, packed in self._rows.each_state(StateKind.BROKER_SUBSCRIPTION):
            subscription = unpack_subscription(key, packed, self._rules)
            self._last_number = max(self._last_number, subscription.number)
            space = self.space(subscription.space)
            stays = subscription.identity.correl_id in set_aside and key == subscription.key
            if stays and subscription.number not in but and may_be_set_aside(subscription):
                space.set_aside(subscription)
            # Two subscriptions of the other dialect may be one in this dialect: the first counts.
            elif space.find(subscription.identity, subscription.interest) is None:
                self._remember(subscription)

    def put(self, unit: UnitOfWork, subscription: Subscription) -> None:
        """Adds a subscription, or replaces the one with the same identity and interest.

        If both have the same row, nothing changes: a client that subscribes again loads nothing that is set aside.
        """
        space = self.space(subscription.space)
        earlier = space.find(subscription.identity, subscription.interest)
        if earlier is not None:
            if (earlier.key, earlier.pack()) == (subscription.key, subscription.pack()):
                return
            space.remove(earlier)
            self._count(earlier, -1)
            if earlier.key != subscription.key:
                unit.delete_state(StateKind.BROKER_SUBSCRIPTION, earlier.key)
        self._remember(subscription)
        unit.set_state(StateKind.BROKER_SUBSCRIPTION, subscription.key, subscription.pack())

    def remove(self, unit: UnitOfWork, subscription: Subscription) -> None:
        """Ends a subscription."""
        self.space(subscription.space).remove(subscription)
        self._count(subscription, -1)
        unit.delete_state(StateKind.BROKER_SUBSCRIPTION, subscription.key)

    def remove_expired(self, unit: UnitOfWork, now_us: int) -> None:
        """Ends expired subscriptions."""
        while self._expiring and self._expiring[0][0] <= now_us:
            _, _, subscription = heapq.heappop(self._expiring)
            space = self.space(subscription.space)
            if space.find(subscription.identity, subscription.interest) is subscription:
                self.remove(unit, subscription)

    def remove_what_ends_with_its_program(self, unit: UnitOfWork) -> None:
        """Ends the subscriptions of MQSUB that are not durable, because their programs ended with the last process."""
        for subscription in [found for found in self.loaded() if not found.is_durable]:
            self.remove(unit, subscription)

    def remove_of_queue(self, unit: UnitOfWork, queue_name: str) -> None:
        """Ends every subscription whose publications go to a queue that was deleted."""
        for subscription in [found for found in self.everyone() if found.identity.queue_name == queue_name]:
            self.remove(unit, subscription)
        self.temporary_queues.discard(queue_name)

    def _count(self, subscription: Subscription, number: int) -> None:
        if subscription.is_of_mqsub and subscription.is_durable:
            _add(self.durable_of_user, subscription.user_identifier, number)
            _add(self.durable_of_queue, subscription.identity.queue_name, number)

    def _remember(self, subscription: Subscription) -> None:
        self.space(subscription.space).add(subscription)
        self._count(subscription, 1)
        if subscription.is_on_temporary_queue:
            self.temporary_queues.add(subscription.identity.queue_name)
        if subscription.expires_us:
            heapq.heappush(self._expiring, (subscription.expires_us, next(self._tie_breaker), subscription))


class Interested:
    """Finds the subscriptions that publications of one topic space and subscription point match.

    Subscribers may have many filters that match one topic. So `Interested` remembers an answer under the set of
    patterns that the index has found. Another topic that matches the same patterns gets the remembered answer.
    """

    def __init__(self, index: PatternIndex[Subscription], spaces: TopicSpaces) -> None:
        self._index = index
        self._spaces = spaces
        self._forgets = 0
        #: The patterns that the index has found, with their answer, by the id of the patterns.
        self._known: dict[int, tuple[tuple[Subscription, ...], tuple[Subscription, ...]]] = {}
        self._kept = 0

    def of(self, routing_topics: tuple[str, ...], now_us: int) -> tuple[Subscription, ...]:
        """Every subscription that matches publications on these topics now: first those with DupsOK, then by age."""
        if len(routing_topics) != 1 or not self._spaces.are_apart:
            return self._ordered(routing_topics, now_us)
        matching = self._index.match(routing_topics[0])
        if not matching or (len(matching) == 1 and not matching[0].expires_us):
            return matching
        if self._forgets != self._index.forgets or self._kept >= _KEPT:
            self._known.clear()
            self._forgets, self._kept = self._index.forgets, 0
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
        living = [found for found in matching if not found.expires_us or found.expires_us > now_us]
        return tuple(sorted(living, key=_duplicates_first))


def recipients(candidates: Iterable[Subscription]) -> tuple[Subscription, ...]:
    """The matching subscriptions that get a copy: one for each identity, and one more for each DupsOK."""
    chosen: list[Subscription] = []
    served: set[Identity] = set()
    for found in candidates:
        if found.identity in served and not int(found.options) & _DUPLICATES_OK:
            continue
        served.add(found.identity)
        chosen.append(found)
    return tuple(chosen)


def _add(counts: Counter[str], name: str, number: int) -> None:
    counts[name] += number
    if not counts[name]:
        del counts[name]


def _number(subscription: Subscription) -> int:
    return subscription.number


def _duplicates_first(subscription: Subscription) -> tuple[bool, int]:
    return not int(subscription.options) & _DUPLICATES_OK, subscription.number
