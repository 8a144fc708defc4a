"""Streams as topic spaces, in the two dialects of brokers.

`mq6` (WebSphere MQ V6): a stream is a queue, and a topic space of its own. The broker refuses a publication that names
another stream than its queue (3075), and a subscription to a stream that it does not serve (3082).
`wmb` (Message Broker V6): there is one topic space. Publications are taken from any input queue. On a stream other than
the default, topics have the prefix `$SYS/STREAM/<stream>/`, but only in the routing key: headers are never changed.
MQRFH2 clients cannot name a stream, so they use the prefixed topic. With implicit stream naming an MQRFH publication
without a stream name is on the stream of its queue's name. Patterns of MQRFH must not have `+` or `#`. Patterns of
MQRFH2 have `#` only at their beginning or end (3072). InclStreamName has no effect.
Sources: WebSphere MQ V6 Publish/Subscribe User's Guide, "Streams"; Message Broker V6, "Streams" (aq19790_), "Wildcard
characters", "Message formats" (aq19780_), note 3.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mappings.reasons import Reason
from mappings.table import Dialect
from mappings.topics.streams import DEFAULT_STREAM, StreamStyle, StreamTopic, implicit_stream_name
from mappings.topics.topics import Scheme
from mq_adapters.broker.responses import CommandRefusal

#: Patterns of MQRFH use `*` and `?`, those of MQRFH2 `+` and `#` (IBM MQ, "Wildcard schemes").
SCHEME_OF: Final = {Dialect.MQRFH: Scheme.CHARACTER, Dialect.MQRFH2: Scheme.TOPIC}

_PREFIXES: Final = StreamStyle.MESSAGE_BROKER
_PREFIX_ROOT: Final = "$SYS/STREAM/"


class BrokerDialect(StrEnum):
    """The product whose rules for streams apply."""

    MQ6 = "mq6"
    WMB = "wmb"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpaces:
    """The rules of one dialect. A topic space has the name of its stream; `wmb` has only that of the default stream.

    `stream_names` are the streams that are served now; only `mq6` needs them.
    """

    dialect: BrokerDialect = BrokerDialect.MQ6
    has_implicit_stream_naming: bool = False
    stream_names: Collection[str] = (DEFAULT_STREAM,)

    def stream_of_publication(self, named: str | None, queue_name: str, header: Dialect) -> str:
        """The stream of a Publish or DeletePub that came on a queue; 3075."""
        if self.dialect is BrokerDialect.MQ6:
            if named not in (None, queue_name):
                raise CommandRefusal(Reason.MQRCCF_INCORRECT_STREAM, ("StreamName", named))
            return queue_name
        if self.has_implicit_stream_naming and header is Dialect.MQRFH:
            return implicit_stream_name(named, queue_name)
        return named or DEFAULT_STREAM

    def stream_of_command(self, named: str | None) -> str:
        """The stream of a command on the control queue; 3082."""
        name = named or DEFAULT_STREAM
        if not self.knows(name):
            raise CommandRefusal(Reason.MQRCCF_UNKNOWN_STREAM, ("StreamName", name))
        return name

    def knows(self, stream_name: str) -> bool:
        """Whether commands may name that stream."""
        return self.dialect is not BrokerDialect.MQ6 or stream_name in self.stream_names

    def space(self, stream_name: str) -> str:
        """The topic space of a stream."""
        return stream_name if self.dialect is BrokerDialect.MQ6 else DEFAULT_STREAM

    def routing_topics(self, stream_name: str, topics: tuple[str, ...]) -> tuple[str, ...]:
        """The topic names of a publication in the form in which they are matched."""
        if self.dialect is BrokerDialect.MQ6 or stream_name == DEFAULT_STREAM:
            return topics
        return tuple(_PREFIXES.topic_name(StreamTopic(stream_name=stream_name, topic=topic)) for topic in topics)

    def routing_pattern(self, stream_name: str, pattern: str, header: Dialect) -> str:
        """The pattern of a subscription or DeletePub in the form in which it is matched."""
        if self.dialect is BrokerDialect.MQ6 or stream_name == DEFAULT_STREAM:
            return pattern
        return _PREFIXES.pattern(StreamTopic(stream_name=stream_name, topic=pattern), SCHEME_OF[header])

    def check_patterns(self, patterns: Iterable[str], header: Dialect) -> None:
        """Raises 3072 for a pattern that Message Broker does not take."""
        if self.dialect is BrokerDialect.MQ6:
            return
        for pattern in patterns:
            inner = pattern.split("/")[1:-1] if header is Dialect.MQRFH2 else [pattern.replace("+", "#")]
            if any("#" in level for level in inner):
                raise CommandRefusal(Reason.MQRCCF_TOPIC_ERROR, ("Topic", pattern))

    @property
    def are_apart(self) -> bool:
        """Whether each stream is a topic space of its own, so that no pattern can span streams."""
        return self.dialect is BrokerDialect.MQ6

    def spans_streams(self, routing_pattern: str, routing_topic: str) -> bool:
        """Whether a wildcard of a pattern would reach topics of another stream, which is not allowed."""
        if self.are_apart or not routing_topic.startswith(_PREFIX_ROOT):
            return False
        return not routing_pattern.startswith(_PREFIX_ROOT)
