"""Retained publications: the newest publication with RetainPub on each topic of each stream, always durable.

Stored form (space BROKER_RETAINED): the key is stream and topic, joined by NUL; the value is a msgpack list that begins
with its version: version, sequence, put time, expiry time (microseconds since 1970, 0 for never), whether it was
published Local, packed descriptor, private origin, body. A publication on several topics is stored under each.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import ormsgpack

from mappings.topics import Scheme, literal_prefix, matches
from mq_adapters.embedded.unit_of_work import StateSpace, UnitOfWork
from mq_adapters.message import Message, unpack_descriptor
from mq_adapters.reasons import StoreError

_VERSION: Final = 1
_TOPIC_WILDCARDS: Final = frozenset({"+", "#"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RetainedPublication:
    """The message as it was put on the stream queue; `is_local` says whether its publisher set Local."""

    message: Message
    is_local: bool

    def has_expired(self, now_us: int) -> bool:
        return 0 < self.message.expires_us <= now_us

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


class RetainedPublications:
    """All retained publications, in memory as in the store: each change goes into a unit of work."""

    def __init__(self, identifier_prefix: bytes) -> None:
        self._identifier_prefix = identifier_prefix
        self._streams: dict[str, dict[str, RetainedPublication]] = {}
        self._expiring: list[tuple[int, int, str, str]] = []

    def load(self, states: Iterable[tuple[bytes, bytes]]) -> None:
        """Takes over what the store has."""
        for key, packed in states:
            stream_name, _, topic = key.decode().partition("\0")
            self._remember(stream_name, topic, unpack_retained(packed, self._identifier_prefix))

    def keep(self, unit: UnitOfWork, stream_name: str, topics: Iterable[str], publication: RetainedPublication) -> None:
        """Keeps a publication on each of its topics, in the place of the one before."""
        packed = publication.pack()
        for topic in topics:
            self._remember(stream_name, topic, publication)
            unit.set_state(StateSpace.BROKER_RETAINED, _key(stream_name, topic), packed)

    def matching(self, stream_name: str, pattern: str, scheme: Scheme, now_us: int) -> dict[str, RetainedPublication]:
        """Topic and publication of what is retained now and matches a pattern."""
        found = self._streams.get(stream_name, {})
        prefix, is_exact = _literal_part(pattern, scheme)
        if is_exact:
            candidates = {prefix: found[prefix]} if prefix in found else {}
        else:
            candidates = {
                topic: publication
                for topic, publication in found.items()
                if topic.startswith(prefix) and matches(pattern, topic, scheme)
            }
        return {topic: kept for topic, kept in candidates.items() if not kept.has_expired(now_us)}

    def delete(self, unit: UnitOfWork, stream_name: str, topic: str) -> None:
        """Forgets the publication on a topic, which is there."""
        del self._streams[stream_name][topic]
        unit.delete_state(StateSpace.BROKER_RETAINED, _key(stream_name, topic))

    def remove_expired(self, unit: UnitOfWork, now_us: int) -> None:
        """Forgets the publications whose life is over."""
        while self._expiring and self._expiring[0][0] <= now_us:
            _, sequence, stream_name, topic = heapq.heappop(self._expiring)
            kept = self._streams[stream_name].get(topic)
            if kept is not None and kept.message.sequence == sequence:
                self.delete(unit, stream_name, topic)

    def _remember(self, stream_name: str, topic: str, publication: RetainedPublication) -> None:
        self._streams.setdefault(stream_name, {})[topic] = publication
        message = publication.message
        if message.expires_us:
            heapq.heappush(self._expiring, (message.expires_us, message.sequence, stream_name, topic))


def _key(stream_name: str, topic: str) -> bytes:
    return f"{stream_name}\0{topic}".encode()


def _literal_part(pattern: str, scheme: Scheme) -> tuple[str, bool]:
    """Text with which every matching topic begins, and whether the pattern is nothing but that text."""
    if scheme is Scheme.CHARACTER:
        return literal_prefix(pattern)
    levels = pattern.split("/")
    wildcard = next((place for place, level in enumerate(levels) if level in _TOPIC_WILDCARDS), len(levels))
    return "/".join(levels[:wildcard]), wildcard == len(levels)
