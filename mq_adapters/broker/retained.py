"""Retained publications: the newest with RetainPub on each topic of each topic space and subscription point, durable.

All topics are in memory, and as many publications as fit into a bound. The others are read from the store when they are
needed. A publication that is not committed yet cannot be read there, so it stays in memory.

Stored form (space BROKER_RETAINED): the key is topic space, topic and subscription point, joined by NUL. The default
subscription point is left out. The value is a msgpack list that begins with its version: version, sequence, put time,
expiry time (microseconds since 1970, 0 for never), whether it was published Local, packed descriptor, private origin,
body. A publication on several topics is stored under each.
"""

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import ormsgpack

from mappings.topics.topics import Scheme
from mq_adapters.broker.recognized_header import recognized_header
from mq_adapters.broker.retained_topics import TopicIndex
from mq_adapters.embedded.unit_of_work import StateKind, UnitOfWork
from mq_adapters.message import KNOWN_HEADER_BYTES, Message, unpack_descriptor
from mq_adapters.reasons import StoreError

_VERSION: Final = 1
#: Publications kept in memory, bytes.
CACHED_BYTES: Final = 64 * 1024 * 1024
#: Memory of a publication beside its body, bytes.
_OVERHEAD_BYTES: Final = 600
#: A row of the store beside the body, bytes: numbers, descriptor, origin, its place in an index.
_ROW_BYTES: Final = 300
#: The most publications that a new one may remove from memory, so that each carries its own cost.
_EVICTIONS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RetainedPublication:
    """The message as it was put on the input queue. `is_local`: its publisher set Local."""

    message: Message
    is_local: bool

    def pack(self) -> bytes:
        """The durable value."""
        message = self.message
        return ormsgpack.packb(
            [
                _VERSION,
                message.sequence,
                message.put_us,
                message.expires_us,
                self.is_local,
                message.descriptor.pack(),
                message.origin,
                message.body,
            ]
        )


def unpack_retained(packed: bytes, identifier_prefix: bytes) -> RetainedPublication:
    """A retained publication from its durable value; StoreError for another version or for damage."""
    try:
        version, sequence, put_us, expires_us, is_local, descriptor, origin, body = ormsgpack.unpackb(packed)
        if version != _VERSION:
            raise ValueError(f"stored version {version}, this program reads {_VERSION}")
        message = Message(unpack_descriptor(descriptor), body, origin)
    except (ValueError, TypeError) as error:
        raise StoreError(
            "read a retained publication", str(error), "use the program that wrote it, or a backup"
        ) from error
    message.sequence, message.put_us, message.expires_us = sequence, put_us, expires_us
    message.identifier_prefix = identifier_prefix
    return RetainedPublication(message=message, is_local=is_local)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Retained:
    """An entry for the publication on a topic: its number, its end, and its place in the store.

    `order`: the number of publications kept in this run, up to and with this one. `size_bytes`: of its row.
    """

    key: bytes
    sequence: int
    expires_us: int
    is_local: bool
    order: int
    size_bytes: int

    def has_expired(self, now_us: int) -> bool:
        return 0 < self.expires_us <= now_us


class RetainedPublications:
    """All retained publications. `state` reads one durable value, as last committed, by its key."""

    def __init__(
        self, identifier_prefix: bytes, state: Callable[[bytes], bytes | None], *, cached_bytes: int = CACHED_BYTES
    ) -> None:
        self._identifier_prefix = identifier_prefix
        self._state = state
        self._maximum_bytes = cached_bytes
        self._topics: dict[tuple[str, str], TopicIndex[Retained]] = {}
        self._expiring: list[tuple[int, int, tuple[str, str], str]] = []
        self._cache: OrderedDict[bytes, RetainedPublication] = OrderedDict()
        self._cached_bytes = 0
        #: How many publications have been kept in this run.
        self.kept = 0
        #: Grows with each change of what is retained.
        self.changes = 0
        #: The rows of all publications together.
        self.size_bytes = 0

    def __len__(self) -> int:
        """The number of retained publications. Expired ones count until they are deleted."""
        return sum(map(len, self._topics.values()))

    def get(self, space: str, point: str, topic: str) -> Retained | None:
        """The retained publication of a routing topic. It may have expired."""
        topics = self._topics.get((space, point))
        return None if topics is None else topics.get(topic)

    def holds(self, space: str, point: str, topic: str) -> bool:
        """Whether a publication is retained on a routing topic."""
        return self.get(space, point, topic) is not None

    @property
    def cached_bytes(self) -> int:
        """Bytes of the publications that are in memory."""
        return self._cached_bytes

    def load(self, states: Iterable[tuple[bytes, bytes]]) -> None:
        """Loads the entries from the store, without keeping the publications in memory."""
        for key, packed in states:
            publication = unpack_retained(packed, self._identifier_prefix)
            space, _, rest = key.decode().partition("\0")
            topic, _, point = rest.partition("\0")
            self._remember((space, point), topic, self._retained(key, publication))

    def keep(
        self, unit: UnitOfWork, space: str, point: str, topics: Iterable[str], publication: RetainedPublication
    ) -> None:
        """Retains a publication on each of its routing topics, in place of the one before."""
        packed = publication.pack()
        self.kept += 1
        self.changes += 1
        for topic in topics:
            key = _key(space, point, topic)
            self._remember((space, point), topic, self._retained(key, publication))
            self._hold(key, publication)
            unit.set_state(StateKind.BROKER_RETAINED, key, packed)
        self._make_room()

    def matching(self, space: str, point: str, pattern: str, scheme: Scheme, now_us: int) -> dict[str, Retained]:
        """The retained publications on the topics that a routing pattern matches now."""
        topics = self._topics.get((space, point))
        if topics is None:
            return {}
        return {topic: kept for topic, kept in topics.matching(pattern, scheme) if not kept.has_expired(now_us)}

    def steps(self, space: str, point: str, pattern: str, scheme: Scheme) -> Iterator[tuple[str, Retained] | None]:
        """Like `matching`, in small steps (TopicIndex.steps)."""
        topics = self._topics.get((space, point))
        return iter(()) if topics is None else topics.steps(pattern, scheme)

    def publication(self, kept: Retained) -> RetainedPublication:
        """The publication itself, from memory or from the store."""
        found = self._cache.get(kept.key)
        if found is None:
            found = self._stored(kept.key)
            if found is None or found.message.sequence != kept.sequence:
                raise StoreError(
                    "read a retained publication",
                    "it is in the index but not in the store",
                    "the file was changed by another program",
                )
            found.message.written = recognized_header(found.message)
            self._hold(kept.key, found)
            self._make_room()
        else:
            self._cache.move_to_end(kept.key)
        return found

    def delete(self, unit: UnitOfWork, space: str, point: str, topic: str) -> None:
        """Deletes the publication on a routing topic. There must be one."""
        self.changes += 1
        kept = self._topics[space, point].get(topic)
        self.size_bytes -= 0 if kept is None else kept.size_bytes
        self._topics[space, point].remove(topic)
        key = _key(space, point, topic)
        self._let_go(key)
        unit.delete_state(StateKind.BROKER_RETAINED, key)

    def remove_expired(self, unit: UnitOfWork, now_us: int) -> None:
        """Deletes expired publications."""
        while self._expiring and self._expiring[0][0] <= now_us:
            _, sequence, place, topic = heapq.heappop(self._expiring)
            kept = self._topics[place].get(topic)
            if kept is not None and kept.sequence == sequence:
                self.delete(unit, *place, topic)

    def _remember(self, place: tuple[str, str], topic: str, kept: Retained) -> None:
        topics = self._topics.get(place)
        if topics is None:
            topics = self._topics[place] = TopicIndex()
        before = topics.get(topic)
        self.size_bytes += kept.size_bytes - (0 if before is None else before.size_bytes)
        topics.put(topic, kept)
        if kept.expires_us:
            heapq.heappush(self._expiring, (kept.expires_us, kept.sequence, place, topic))

    def _retained(self, key: bytes, publication: RetainedPublication) -> Retained:
        message, is_local = publication.message, publication.is_local
        return Retained(
            key=key,
            sequence=message.sequence,
            expires_us=message.expires_us,
            is_local=is_local,
            order=self.kept,
            size_bytes=len(message.body) + _ROW_BYTES,
        )

    def _stored(self, key: bytes) -> RetainedPublication | None:
        packed = self._state(key)
        return None if packed is None else unpack_retained(packed, self._identifier_prefix)

    def _hold(self, key: bytes, publication: RetainedPublication) -> None:
        self._let_go(key)
        self._cache[key] = publication
        self._cached_bytes += _cost(publication)

    def _let_go(self, key: bytes) -> None:
        publication = self._cache.pop(key, None)
        if publication is not None:
            self._cached_bytes -= _cost(publication)

    def _make_room(self) -> None:
        """Removes the least recently used publications from memory, if the store has them already."""
        for _ in range(_EVICTIONS):
            if self._cached_bytes <= self._maximum_bytes:
                return
            key, publication = next(iter(self._cache.items()))
            stored = self._stored(key)
            if stored is not None and stored.message.sequence == publication.message.sequence:
                self._let_go(key)
            else:
                self._cache.move_to_end(key)


def _cost(publication: RetainedPublication) -> int:
    message = publication.message
    command_bytes = 0 if message.written is None else KNOWN_HEADER_BYTES + len(message.written.data)
    return _OVERHEAD_BYTES + len(message.body) + command_bytes


def _key(space: str, point: str, topic: str) -> bytes:
    return "\0".join((space, topic, point) if point else (space, topic)).encode()
