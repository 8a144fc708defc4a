"""The place of a publication or subscription: the topic space and the subscription point at which it is published.

    mq6             a stream is its queue, and a topic space of its own
    wmb             one topic space; topics on a stream other than the default one begin with $SYS/STREAM/<stream>/, and
                    no wildcard reaches them unless the pattern begins with that text
    wmb, implicit   the same; an MQRFH publication that names no stream is on that of its queue's name

The record `started` says which of these holds, and the subscription points of queues. A trail of an earlier version
does not say it. There the default stream without subscription points is a place, and everything else may be anywhere.

Sources: WebSphere MQ V6 Publish/Subscribe User's Guide, "Streams"; Message Broker V6, "Streams" (aq19790_), "Message
formats" (aq19780_), note 3; IBM MQ, "Register Subscriber message" (SubPoint).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

from spark_audit.custody.commands import DEFAULT_STREAM, Command
from spark_audit.custody.topic_match import Scheme
from spark_audit.record import StreamRules
from spark_audit.reperform.topics import escaped

_PREFIX: Final = "$SYS/STREAM/"


class Place(NamedTuple):
    """A topic space and a subscription point of it."""

    space: str
    point: str = ""


DEFAULT_PLACE: Final = Place(DEFAULT_STREAM)
#: Anywhere but at the default place, because the trail does not say the rules.
UNKNOWN_PLACE: Final = Place("")


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a gateway's run. `streams` is a value of StreamRules, or "" where the trail does not say it."""

    streams: str = ""
    points: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, started: Mapping[str, Any]) -> Self:
        """Those that the record of a start tells."""
        if not started["listed"]:
            return cls()
        streams, points = json.loads(started["listed"])
        pairs = [each for each in points or () if isinstance(each, list) and len(each) == 2]
        told = tuple((str(queue), str(point)) for queue, point in pairs)
        return cls(streams, told) if streams in set(StreamRules) else cls()

    @property
    def are_known(self) -> bool:
        return bool(self.streams)

    @property
    def are_apart(self) -> bool:
        """Whether each stream is a topic space of its own."""
        return self.streams == StreamRules.QUEUES

    def of_publication(
        self, queue: str, named: str | None, topics: tuple[str, ...], *, is_mqrfh: bool
    ) -> tuple[Place, tuple[str, ...]]:
        """The place of a Publish that came on a queue and names a stream, and its topics as they are matched there."""
        if not self.are_known:
            is_default = queue == DEFAULT_STREAM and named in (None, DEFAULT_STREAM)
            is_default = is_default and not any(topic.startswith(_PREFIX) for topic in topics)
            return (DEFAULT_PLACE if is_default else UNKNOWN_PLACE), topics
        point = dict(self.points).get(queue, "")
        if self.are_apart:
            return Place(queue, point), topics
        stream = self._stream(queue, named, is_mqrfh=is_mqrfh)
        return Place(DEFAULT_STREAM, point), tuple(_prefix(stream) + topic for topic in topics)

    def of_deletion(self, queue: str, command: Command) -> tuple[Place, tuple[tuple[str, Scheme], ...]]:
        """The place of a DeletePub that came on a queue, and its patterns as they are matched there."""
        place, _ = self.of_publication(queue, command.other("StreamName"), command.topics, is_mqrfh=command.is_mqrfh)
        if not self.are_known or self.are_apart:
            return place, tuple((topic, command.scheme) for topic in command.topics)
        stream = self._stream(queue, command.other("StreamName"), is_mqrfh=command.is_mqrfh)
        prefix = _escaped(_prefix(stream), command.scheme)
        return place, tuple((prefix + topic, command.scheme) for topic in command.topics)

    def _stream(self, queue: str, named: str | None, *, is_mqrfh: bool) -> str:
        """The stream of a publication where streams are prefixes."""
        is_implicit = self.streams == StreamRules.IMPLICIT_PREFIXES and is_mqrfh
        return named or (queue if is_implicit else DEFAULT_STREAM)

    def space(self, stream: str) -> str:
        """The topic space of a stream, as far as it is known."""
        return DEFAULT_STREAM if self.are_known and not self.are_apart else stream

    def of_subscription(self, stream: str, topic: str, scheme: Scheme, point: str) -> tuple[Place, str]:
        """The place of a subscription, and its topic as it is matched there."""
        if not self.are_known:
            is_default = stream == DEFAULT_STREAM and not point
            return (DEFAULT_PLACE if is_default else UNKNOWN_PLACE), topic
        prefix = "" if self.are_apart else _escaped(_prefix(stream), scheme)
        return Place(self.space(stream), point), prefix + topic

    def reaches(self, pattern: str, topic: str) -> bool:
        """Whether a pattern that matches a topic may do so: no wildcard reaches the topics of another stream."""
        if not self.are_known or self.are_apart or not topic.startswith(_PREFIX):
            return True
        return pattern.startswith(_PREFIX)


def _prefix(stream: str) -> str:
    return "" if stream == DEFAULT_STREAM else f"{_PREFIX}{stream}/"


def _escaped(prefix: str, scheme: Scheme) -> str:
    return escaped(prefix) if scheme is Scheme.CHARACTERS else prefix
