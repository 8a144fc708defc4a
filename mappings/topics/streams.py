"""Streams of MQRFH as topic prefixes, for products and clients that know no streams.

A stream partitions the topics: the same topic on two streams is two topics. MQRFH2 and MQTT name no stream, so there it
is a prefix. Message Broker puts `$SYS/STREAM/<stream>/` in front. A queue manager (version 7 and later) puts the
TOPICSTR of the topic object that has the stream's name. Topics of the default stream have no prefix in either style.
Converting a header never adds or removes a prefix. Routes of the gateway and the broker's topic spaces use prefixes.

Sources: WebSphere Message Broker V6, "Streams" (aq19790_) and "Message formats" (aq19780_), note 3; IBM MQ
documentation, "Streams and topics".
"""

from dataclasses import dataclass
from enum import StrEnum

from mappings.topics.topics import Scheme, escape_topic, topic_error

DEFAULT_STREAM = "SYSTEM.BROKER.DEFAULT.STREAM"
#: A broker takes Publish and DeletePub on the queue of a stream, and every other command here.
CONTROL_QUEUE = "SYSTEM.BROKER.CONTROL.QUEUE"

_MESSAGE_BROKER_ROOT = "$SYS/STREAM/"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTopic:
    """A topic name or pattern on its stream."""

    stream_name: str
    topic: str


class StreamStyle(StrEnum):
    """Which product's prefixes.

    For QUEUE_MANAGER a stream has its own name as its prefix, as the topic objects of IBM's set-up examples do.
    """

    MESSAGE_BROKER = "message_broker"
    QUEUE_MANAGER = "queue_manager"

    def prefix(self, stream_name: str) -> str:
        """The prefix of a stream's topics, with the slash at its end; empty for the default stream."""
        if stream_name == DEFAULT_STREAM:
            return ""
        return f"{_MESSAGE_BROKER_ROOT if self is StreamStyle.MESSAGE_BROKER else ''}{stream_name}/"

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


def implicit_stream_name(stream_name: str | None, queue_name: str) -> str:
    """The stream of an MQRFH command: the one that it names, or else the name of the queue that it was put on.

    Brokers with implicit stream naming do so, and every queue manager does for Publish and DeletePub.
    """
    return stream_name or queue_name
