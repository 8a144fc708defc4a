"""Topic names and filters by the examples of MQTT 3.1.1 section 4.7."""

import pytest

from gateway.mqtt import topics
from gateway.mqtt.errors import MalformedPacket, ProtocolViolation
from gateway.mqtt.topics import TopicNames, check_topic_filter, check_topic_name


@pytest.mark.parametrize(
    "topic", ["a/b", "/", "/finance", "a//b", "ACCOUNTS", "Accounts payable", "$SYS/x", "Ä/\ufeff"]
)
def test_topic_name_is_accepted(topic: str) -> None:
    check_topic_name(topic)


@pytest.mark.parametrize("topic", ["#", "+", "a/#", "a/+/b", "a#", "a+b"])
def test_topic_name_with_a_wildcard_is_malformed(topic: str) -> None:
    with pytest.raises(MalformedPacket, match="the topic name"):
        check_topic_name(topic)


def test_empty_topic_name_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation, match="the topic name"):
        check_topic_name("")


@pytest.mark.parametrize(
    "topic_filter",
    [
        "sport/tennis/player1/#",
        "sport/#",
        "#",
        "+",
        "+/tennis/#",
        "sport/+/player1",
        "/+",
        "+/+",
        "a//+",
        "$SYS/#",
        "/",
    ],
)
def test_topic_filter_of_the_specification_is_accepted(topic_filter: str) -> None:
    check_topic_filter(topic_filter)


@pytest.mark.parametrize(
    "topic_filter", ["", "sport/tennis#", "sport/tennis/#/ranking", "sport+", "a+/b", "+a", "#/", "##", "a/#b", "+#"]
)
def test_topic_filter_that_is_empty_or_has_a_misplaced_wildcard_is_malformed(topic_filter: str) -> None:
    with pytest.raises(MalformedPacket, match="topic filter"):
        check_topic_filter(topic_filter)


def test_topic_name_is_decoded_once() -> None:
    names = TopicNames()
    first = names[b"site/\xc3\xa4"]
    assert first == "site/ä"
    assert names[b"site/\xc3\xa4"] is first


@pytest.mark.parametrize(
    ("data", "error"), [(b"a/#", MalformedPacket), (b"", ProtocolViolation), (b"\xff", MalformedPacket)]
)
def test_bad_topic_name_is_refused_every_time_and_not_kept(data: bytes, error: type[Exception]) -> None:
    names = TopicNames()
    for _ in range(2):
        with pytest.raises(error):
            names[data]
    assert len(names) == 0


def test_kept_names_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "MAXIMUM_CACHED_NAMES", 3)
    names = TopicNames()
    for number in range(10):
        assert names[b"%d" % number] == str(number)
        assert len(names) <= 3


def test_kept_names_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "MAXIMUM_CACHED_BYTES", 100)
    names = TopicNames()
    for number in range(50):
        names[b"name-%05d" % number]
        assert sum(map(len, names)) <= 100
    assert len(names) > 0
