"""Subscriptions that are set aside: their rows stay in the store, and memory has only an index of them.

Where all subscriptions together need more memory than there is, those of the largest subscribers are set aside at the
start. Nothing is lost by that: a publication that matches reads one row, and its copy goes to the subscriber's queue
as always. Only a new topic is slower.

The theory. For one topic and one shape (mappings/topics/level_index.py) there is exactly one pattern that can match.
Topic and shape together say its text, so memory needs no text: it has the hash of each pattern, with the number of its
group. A *group* has the subscriptions of one subscriber that differ in their topic alone. The names of the group and
the pattern make the key of the row. A subscriber gets one copy, however many of its subscriptions match, so one row of
each group is enough. Two patterns may have the same hash: the row that is not there tells them apart.

A subscription is loaded whole where this does not hold: it has a name, a content filter, an end, several identities,
DupsOK or PubOnReqOnly, is on a temporary queue, or has a wildcard that levels alone do not explain.
"""

from array import array
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol
from weakref import WeakValueDictionary

from mappings.commands.options import RegistrationOption
from mappings.table import Dialect
from mappings.topics.pattern_index import PatternIndex
from mappings.topics.wildcards import Scheme
from mq_adapters.broker.subscription import Identity, Interest, Subscription, durable_key, unpack_subscription
from mq_adapters.broker.topic_spaces import TopicSpaces
from mq_adapters.embedded.unit_of_work import StateKind

_NOT_ALONE: Final = RegistrationOption.DUPLICATES_OK | RegistrationOption.PUBLISH_ON_REQUEST_ONLY
#: Wildcards and escape of the character scheme.
_OF_CHARACTERS: Final = frozenset("*?%")
#: A subscription that was read takes as much memory as so many values of a remembered answer.
_VALUES_OF_A_READ_ONE: Final = 150


class StoredRows(Protocol):
    """The rows of the store, as last committed; the engine has them."""

    def state(self, kind: StateKind, key: bytes) -> bytes | None: ...
    def each_state(self, kind: StateKind, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]: ...


class _Group(NamedTuple):
    """All that the subscriptions of a group have in common. `prefix` makes the routing pattern of a topic."""

    identity: Identity
    stream_name: str
    point: str
    prefix: str
    dialect: Dialect
    options: RegistrationOption
    user_data: str


class _Shape(NamedTuple):
    """The places of the levels that are named, of so many; `is_open`: `#` stands behind them."""

    places: tuple[int, ...]
    levels: int
    is_open: bool

    def key(self, levels: list[str]) -> int:
        """The hash of the pattern of this shape that matches these levels."""
        return hash((self, *map(levels.__getitem__, self.places)))

    def pattern(self, levels: list[str]) -> str:
        """That pattern."""
        named = ["+"] * self.levels + ["#"] * self.is_open
        for place in self.places:
            named[place] = levels[place]
        return "/".join(named)


def _shape(levels: list[str]) -> _Shape:
    is_open = levels[-1] == "#"
    count = len(levels) - is_open
    return _Shape(tuple(place for place in range(count) if levels[place] != "+"), count, is_open)


class _Hashes:
    """The patterns of one subscription point as hashes, each with the numbers of its groups."""

    def __init__(self) -> None:
        self._numbers: dict[int, int | array[int]] = {}
        #: How many subscriptions each shape has: those without `#` by their number of levels.
        self._closed: dict[int, dict[_Shape, int]] = {}
        self._open: dict[_Shape, int] = {}

    def add(self, pattern: str, number: int) -> None:
        levels = pattern.split("/")
        shape = _shape(levels)
        key = shape.key(levels)
        found = self._numbers.get(key)
        if found is None:
            self._numbers[key] = number
        elif isinstance(found, int):
            self._numbers[key] = array("I", (found, number))
        else:
            found.append(number)
        counts = self._counts(shape)
        counts[shape] = counts.get(shape, 0) + 1

    def remove(self, pattern: str, number: int) -> None:
        """Removes what `add` added. It must be there."""
        levels = pattern.split("/")
        shape = _shape(levels)
        key = shape.key(levels)
        found = self._numbers[key]
        if isinstance(found, int):
            del self._numbers[key]
        else:
            found.remove(number)
            if not found:
                del self._numbers[key]
        counts = self._counts(shape)
        counts[shape] -= 1
        if not counts[shape]:
            del counts[shape]

    def has(self, pattern: str, number: int) -> bool:
        levels = pattern.split("/")
        return number in self._of(_shape(levels).key(levels))

    def matching(self, topic: str) -> Iterator[tuple[str, int]]:
        """Pattern and number of each group that may match a topic; a number may come more than once."""
        levels = topic.split("/")
        closed = self._closed.get(len(levels), {})
        for shape in (*closed, *[each for each in self._open if each.levels <= len(levels)]):
            numbers = self._of(shape.key(levels))
            if numbers:
                pattern = shape.pattern(levels)
                for number in numbers:
                    yield pattern, number

    def _counts(self, shape: _Shape) -> dict[_Shape, int]:
        return self._open if shape.is_open else self._closed.setdefault(shape.levels, {})

    def _of(self, key: int) -> "tuple[int, ...] | array[int]":
        found = self._numbers.get(key, ())
        return (found,) if isinstance(found, int) else found


class SubscriptionIndex(PatternIndex[Subscription]):
    """The subscriptions at a subscription point, loaded or set aside. A match reads those that are set aside."""

    #: Reads those that are set aside and match a topic; None: there have been none.
    read_matching: Callable[[str], list[Subscription]] | None = None

    def _find(self, topic: str) -> tuple[Subscription, ...]:
        found = super()._find(topic)
        read = self.read_matching(topic) if self.read_matching is not None else None
        if not read:
            return found
        self._kept_values += len(read) * _VALUES_OF_A_READ_ONE
        return *found, *read


class SubscriptionsSetAside:
    """The subscriptions of one topic space that are set aside."""

    def __init__(self, rows: StoredRows, spaces: TopicSpaces) -> None:
        self._rows = rows
        self._spaces = spaces
        self._hashes: dict[str, _Hashes] = {}
        self._groups: dict[int, _Group] = {}
        self._numbers: dict[_Group, int] = {}
        self._sizes: dict[int, int] = {}
        self._of_identity: dict[Identity, set[int]] = {}
        self._last_number = 0
        #: What was read and is still in use, so that a subscription is one object.
        self._read: WeakValueDictionary[bytes, Subscription] = WeakValueDictionary()

    def __bool__(self) -> bool:
        return bool(self._groups)

    @property
    def subscribers(self) -> int:
        """How many subscribers have any."""
        return len(self._of_identity)

    def add(self, subscription: Subscription) -> None:
        """Adds a subscription of which `may_be_set_aside` is true."""
        group = _group(subscription)
        number = self._numbers.get(group)
        if number is None:
            self._last_number = number = self._last_number + 1
            self._groups[number], self._numbers[group], self._sizes[number] = group, number, 0
            self._of_identity.setdefault(group.identity, set()).add(number)
        self._sizes[number] += 1
        self._hashes.setdefault(group.point, _Hashes()).add(subscription.interest.pattern, number)

    def remove(self, subscription: Subscription) -> None:
        """Removes a subscription. It must be there."""
        group = _group(subscription)
        number = self._numbers[group]
        self._hashes[group.point].remove(subscription.interest.pattern, number)
        self._sizes[number] -= 1
        if not self._sizes[number]:
            del self._groups[number], self._numbers[group], self._sizes[number]
            self._of_identity[group.identity].remove(number)
            if not self._of_identity[group.identity]:
                del self._of_identity[group.identity]

    def has(self, subscription: Subscription) -> bool:
        """Whether a subscription of the store is set aside now."""
        number = self._numbers.get(_group(subscription)) if may_be_set_aside(subscription) else None
        return number is not None and self._hashes[subscription.interest.point].has(
            subscription.interest.pattern, number
        )

    def find(self, identity: Identity, interest: Interest) -> Subscription | None:
        """The subscription of exactly this identity and interest, read from the store."""
        for number in () if interest.filter else self._of_identity.get(identity, ()):
            group = self._groups[number]
            if group.point != interest.point or not self._hashes[group.point].has(interest.pattern, number):
                continue
            if (found := self._row(group, interest.pattern)) is not None:
                return found
        return None

    def of(self, identity: Identity) -> list[Subscription]:
        """All of one identity, read from the store."""
        groups = [self._groups[number] for number in self._of_identity.get(identity, ())]
        places = {durable_key(group.stream_name, identity, group.point, "") for group in groups}
        return [found for place in sorted(places) for found in self._below(place)]

    def everyone(self) -> Iterator[Subscription]:
        """All of them, one after another from the store."""
        return self._below(b"") if self else iter(())

    def matching(self, point: str, topic: str) -> list[Subscription]:
        """One subscription of each group that matches a topic, read from the store."""
        hashes = self._hashes.get(point)
        found: dict[int, Subscription] = {}
        for pattern, number in () if hashes is None else hashes.matching(topic):
            if number not in found and (read := self._row(self._groups[number], pattern)) is not None:
                found[number] = read
        return list(found.values())

    def _row(self, group: _Group, pattern: str) -> Subscription | None:
        """The subscription of a group with that pattern; None if only a hash was the same."""
        if not pattern.startswith(group.prefix):
            return None
        key = durable_key(group.stream_name, group.identity, group.point, pattern[len(group.prefix) :])
        found = self._read.get(key)
        if found is None:
            packed = self._rows.state(StateKind.BROKER_SUBSCRIPTION, key)
            found = None if packed is None else self._unpacked(key, packed)
        return found if found is not None and _group(found) == group else None

    def _below(self, prefix: bytes) -> Iterator[Subscription]:
        for key, packed in self._rows.each_state(StateKind.BROKER_SUBSCRIPTION, prefix):
            found = self._read.get(key) or self._unpacked(key, packed)
            if self.has(found):
                yield found

    def _unpacked(self, key: bytes, packed: bytes) -> Subscription:
        found = self._read[key] = unpack_subscription(key, packed, self._spaces)
        return found


def may_be_set_aside(subscription: Subscription) -> bool:
    """Whether group and pattern tell all that a match needs."""
    is_special = subscription.name or subscription.interest.filter or subscription.expires_us or subscription.joined
    if is_special or subscription.is_on_temporary_queue or subscription.options & _NOT_ALONE:
        return False
    pattern = subscription.interest.pattern
    if not pattern.endswith(subscription.topic):
        return False
    if subscription.scheme is Scheme.CHARACTER:
        # A level that is + or # is no wildcard here, and would be one in an index of levels.
        return _OF_CHARACTERS.isdisjoint(pattern) and not {"+", "#"}.intersection(pattern.split("/"))
    return "#" not in pattern.split("/")[:-1]


def _group(subscription: Subscription) -> _Group:
    pattern, topic = subscription.interest.pattern, subscription.topic
    return _Group(
        identity=subscription.identity,
        stream_name=subscription.stream_name,
        point=subscription.interest.point,
        prefix=pattern[: len(pattern) - len(topic)],
        dialect=subscription.dialect,
        options=subscription.options,
        user_data=subscription.user_data,
    )
