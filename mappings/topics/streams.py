"""Streams of MQRFH as topic prefixes, for products and clients that know no streams.

A stream partitions the topics: the same topic on two streams is two topics. MQRFH2 and MQTT name no stream, so there it
is a prefix. Message Broker puts `$SYS/STREAM/<stream>/` in front; a queue manager (version 7 and later) puts the
TOPICSTR of the topic object that has the stream's name. Topics of the default stream have no prefix in either style.
Converting a header never adds or removes a prefix. Routes of the gateway and the broker's topic spaces use prefixes.

Wildcards do not span streams. A pattern of the default stream that begins with a wildcard matches prefixed topics too,
so a receiver takes topics apart with `split` before it compares them.
Sources: WebSphere Message Broker V6, "Streams" (aq19790_) and "Message formats" (aq19780_), note 3; IBM MQ
documentation, "Streams and topics".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mappings.topics.topics import Scheme, escape_topic, topic_error

DEFAULT_STREAM = "SYSTEM.BROKER.DEFAULT.STREAM"
#: A broker takes Publish and DeletePub on the queue of a stream, and every other command here.
CONTROL_QUEUE = "SYSTEM.BROKER.CONTROL.QUEUE"

_MESSAGE_BROKER_ROOT = "$SYS/STREAM/"


class StreamStyle(StrEnum):
    """Which product's prefixes."""

    MESSAGE_BROKER = "message_broker"
    QUEUE_MANAGER = "queue_manager"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTopic:
    """A topic name or pattern on its stream."""

    stream_name: str
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPrefixes:
    """The prefixes of one style.

    `topic_strings` are the TOPICSTR of topic objects by stream, for QUEUE_MANAGER; a stream that is not among them has
    its own name as its prefix, as IBM's set-up examples do.
    """

    style: StreamStyle
    topic_strings: Mapping[str, str] = field(default_factory=dict)

    def prefix(self, stream_name: str) -> str:
        """The prefix of a stream's topics, with the slash at its end; empty for the default stream."""
        if stream_name == DEFAULT_STREAM:
            return ""
        if self.style is StreamStyle.MESSAGE_BROKER:
            return f"{_MESSAGE_BROKER_ROOT}{stream_name}/"
        return f"{self.topic_strings.get(stream_name, stream_name)}/"

    def topic_name(self, on: StreamTopic) -> str:
        """A topic name with its prefix."""
        return self.prefix(on.stream_name) + on.topic

    def pattern(self, on: StreamTopic, scheme: Scheme) -> str:
        """A pattern with its prefix, in the scheme of the pattern.

        Raises TopicError where the scheme cannot say the prefix literally.
        """
        prefix = self.prefix(on.stream_name)
        if scheme is Scheme.CHARACTER:
            return escape_topic(prefix) + on.topic
        if "+" in prefix or "#" in prefix:
            raise topic_error(prefix, "is a prefix that cannot be expressed: + and # would be wildcards in it")
        return prefix + on.topic

    def split(self, topic: str) -> StreamTopic:
        """The stream and the topic on it of a topic name, or of a pattern whose prefix is literal.

        Without a known prefix it is a topic of the default stream. The longest prefix decides where several fit.
        """
        if self.style is StreamStyle.MESSAGE_BROKER:
            stream_name, slash, rest = topic.removeprefix(_MESSAGE_BROKER_ROOT).partition("/")
            named = topic.startswith(_MESSAGE_BROKER_ROOT) and slash and stream_name and rest
            return StreamTopic(stream_name=stream_name, topic=rest) if named else _on_default_stream(topic)
        prefixes = {self.prefix(stream_name): stream_name for stream_name in self.topic_strings}
        fitting = [prefix for prefix in prefixes if topic.startswith(prefix) and len(topic) > len(prefix) > 0]
        if not fitting:
            return _on_default_stream(topic)
        longest = max(fitting, key=len)
        return StreamTopic(stream_name=prefixes[longest], topic=topic.removeprefix(longest))


def implicit_stream_name(stream_name: str | None, queue_name: str) -> str:
    """The stream of an MQRFH command: the one that it names, or else the name of the queue that it was put on.

    Brokers with implicit stream naming do so, and every queue manager does for Publish and DeletePub.
    """
    return stream_name or queue_name


def _on_default_stream(topic: str) -> StreamTopic:
    return StreamTopic(stream_name=DEFAULT_STREAM, topic=topic)
