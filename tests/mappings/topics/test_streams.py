"""Streams as prefixes: Message Broker's, a queue manager's, patterns with wildcards, and names taken from queues."""

import pytest

from mappings.topics.streams import DEFAULT_STREAM, StreamStyle, StreamTopic, implicit_stream_name
from mappings.topics.topics import Scheme, TopicError, matches

MESSAGE_BROKER, QUEUE_MANAGER = StreamStyle.MESSAGE_BROKER, StreamStyle.QUEUE_MANAGER


@pytest.mark.parametrize(
    ("style", "stream_name", "topic", "prefixed"),
    [
        # "Streams" (aq19790_): RegSub Topic1 on StreamX is $SYS/STREAM/StreamX/Topic1.
        (MESSAGE_BROKER, "StreamX", "Topic1", "$SYS/STREAM/StreamX/Topic1"),
        (MESSAGE_BROKER, DEFAULT_STREAM, "Topic1", "Topic1"),
        (MESSAGE_BROKER, "S", "/a", "$SYS/STREAM/S//a"),
        # "Streams and topics": stream Sport and topic Soccer/Results.
        (QUEUE_MANAGER, "Sport", "Soccer/Results", "Sport/Soccer/Results"),
        (QUEUE_MANAGER, DEFAULT_STREAM, "a", "a"),
    ],
)
def test_a_topic_gets_the_prefix_of_its_stream(style: StreamStyle, stream_name: str, topic: str, prefixed: str) -> None:
    assert style.topic_name(StreamTopic(stream_name=stream_name, topic=topic)) == prefixed


@pytest.mark.parametrize(
    ("scheme", "pattern", "prefixed", "topic"),
    [
        (Scheme.CHARACTER, "a*", "$SYS/STREAM/S%%1/a*", "$SYS/STREAM/S%1/abc"),
        (Scheme.TOPIC, "a/#", "$SYS/STREAM/S%1/a/#", "$SYS/STREAM/S%1/a/b"),
        (Scheme.MQTT, "+", "$SYS/STREAM/S%1/+", "$SYS/STREAM/S%1/a"),
    ],
)
def test_a_pattern_gets_the_prefix_in_its_own_scheme(scheme: Scheme, pattern: str, prefixed: str, topic: str) -> None:
    on = StreamTopic(stream_name="S%1", topic=pattern)
    assert MESSAGE_BROKER.pattern(on, scheme) == prefixed
    assert matches(prefixed, topic, scheme)


def test_a_prefix_that_would_hold_wildcards_cannot_be_expressed() -> None:
    on = StreamTopic(stream_name="a/+", topic="b")
    assert QUEUE_MANAGER.pattern(on, Scheme.CHARACTER) == "a/+/b"
    with pytest.raises(TopicError, match="cannot be expressed"):
        QUEUE_MANAGER.pattern(on, Scheme.TOPIC)


@pytest.mark.parametrize(("named", "queue", "stream"), [("S", "Q", "S"), (None, "Q", "Q"), ("", "Q", "Q")])
def test_a_command_without_a_stream_name_takes_that_of_its_queue(named: str | None, queue: str, stream: str) -> None:
    assert implicit_stream_name(named, queue) == stream


def test_a_command_on_the_default_stream_queue_has_no_prefix() -> None:
    assert MESSAGE_BROKER.prefix(implicit_stream_name(None, DEFAULT_STREAM)) == ""
