"""Streams as prefixes: Message Broker's, a queue manager's, patterns with wildcards, and names taken from queues."""

import pytest

from mappings.topics.streams import DEFAULT_STREAM, StreamPrefixes, StreamStyle, StreamTopic, implicit_stream_name
from mappings.topics.topics import Scheme, TopicError, matches

MESSAGE_BROKER = StreamPrefixes(style=StreamStyle.MESSAGE_BROKER)
QUEUE_MANAGER = StreamPrefixes(
    style=StreamStyle.QUEUE_MANAGER, topic_strings={"Sport": "Sport", "NEWS.STREAM": "press/news", "P": "press"}
)


@pytest.mark.parametrize(
    ("prefixes", "stream_name", "topic", "prefixed"),
    [
        # "Streams" (aq19790_): RegSub Topic1 on StreamX is $SYS/STREAM/StreamX/Topic1.
        (MESSAGE_BROKER, "StreamX", "Topic1", "$SYS/STREAM/StreamX/Topic1"),
        (MESSAGE_BROKER, DEFAULT_STREAM, "Topic1", "Topic1"),
        (MESSAGE_BROKER, "S", "/a", "$SYS/STREAM/S//a"),
        # "Streams and topics": stream Sport and topic Soccer/Results.
        (QUEUE_MANAGER, "Sport", "Soccer/Results", "Sport/Soccer/Results"),
        (QUEUE_MANAGER, "NEWS.STREAM", "a", "press/news/a"),
        (QUEUE_MANAGER, DEFAULT_STREAM, "a", "a"),
    ],
)
def test_a_topic_gets_the_prefix_of_its_stream_and_loses_it_again(
    prefixes: StreamPrefixes, stream_name: str, topic: str, prefixed: str
) -> None:
    on = StreamTopic(stream_name=stream_name, topic=topic)
    assert prefixes.topic_name(on) == prefixed
    assert prefixes.split(prefixed) == on


def test_a_stream_without_a_topic_object_has_its_name_as_prefix() -> None:
    assert QUEUE_MANAGER.prefix("OTHER") == "OTHER/"


@pytest.mark.parametrize("topic", ["$SYS/STREAM/", "$SYS/STREAM/S", "$SYS/STREAM//a", "$SYS/STREAM/S/", "$SYS", "a/b"])
def test_a_topic_without_a_whole_prefix_is_one_of_the_default_stream(topic: str) -> None:
    assert MESSAGE_BROKER.split(topic) == StreamTopic(stream_name=DEFAULT_STREAM, topic=topic)


@pytest.mark.parametrize("topic", ["press", "press/", "Sports/a", "x"])
def test_a_topic_beside_the_topic_strings_is_one_of_the_default_stream(topic: str) -> None:
    assert QUEUE_MANAGER.split(topic).stream_name == DEFAULT_STREAM


def test_the_longest_topic_string_decides() -> None:
    assert QUEUE_MANAGER.split("press/news/a") == StreamTopic(stream_name="NEWS.STREAM", topic="a")
    assert QUEUE_MANAGER.split("press/other/a") == StreamTopic(stream_name="P", topic="other/a")


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
    prefixes = StreamPrefixes(style=StreamStyle.QUEUE_MANAGER, topic_strings={"S": "a/+"})
    on = StreamTopic(stream_name="S", topic="b")
    assert prefixes.pattern(on, Scheme.CHARACTER) == "a/+/b"
    with pytest.raises(TopicError, match="cannot be expressed"):
        prefixes.pattern(on, Scheme.TOPIC)


@pytest.mark.parametrize(("named", "queue", "stream"), [("S", "Q", "S"), (None, "Q", "Q"), ("", "Q", "Q")])
def test_a_command_without_a_stream_name_takes_that_of_its_queue(named: str | None, queue: str, stream: str) -> None:
    assert implicit_stream_name(named, queue) == stream


def test_a_command_on_the_default_stream_queue_has_no_prefix() -> None:
    assert MESSAGE_BROKER.prefix(implicit_stream_name(None, DEFAULT_STREAM)) == ""
