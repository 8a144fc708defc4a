"""How long and how deep topics may be."""

import pytest

from gateway.config.limits import Limit
from gateway.config.mqtt_limits import MqttLimits
from gateway.limits.topics import TopicLimits
from gateway.mqtt.reason_codes import ReasonCode


@pytest.mark.parametrize(
    ("topic", "limit"),
    [
        ("a" * 20, None),
        ("a" * 21, Limit.TOPIC_BYTES),
        ("é" * 10, None),
        ("é" * 10 + "a", Limit.TOPIC_BYTES),
        ("\U0001f600" * 5, None),
        ("\U0001f600" * 5 + "a", Limit.TOPIC_BYTES),
        ("a/b/c/d", None),
        ("///", None),
        ("a/b/c/d/", Limit.TOPIC_LEVELS),
        ("////", Limit.TOPIC_LEVELS),
    ],
)
def test_a_topic_is_measured_in_bytes_and_levels(topic: str, limit: Limit | None) -> None:
    limits = TopicLimits(MqttLimits(maximum_topic_bytes=20, maximum_topic_levels=4))
    name, topic_filter = limits.of_name(topic), limits.of_filter(topic, topic)
    if limit is None:
        assert name is topic_filter is None
        return
    assert name is not None
    assert topic_filter is not None
    assert (name.limit, name.reason_code) == (limit, ReasonCode.TOPIC_NAME_INVALID)
    assert (topic_filter.limit, topic_filter.reason_code) == (limit, ReasonCode.TOPIC_FILTER_INVALID)
    assert len(topic) > limits.fine_characters


def test_what_needs_no_look_is_always_fine() -> None:
    limits = TopicLimits(MqttLimits(maximum_topic_bytes=20, maximum_topic_levels=4))
    assert limits.fine_characters == 3
    assert limits.of_name("/" * 3) is limits.of_name("\U0001f600" * 3) is None


def test_the_name_of_a_group_counts_by_its_bytes_and_not_among_the_levels() -> None:
    limits = TopicLimits(MqttLimits(maximum_topic_bytes=20, maximum_topic_levels=4))
    assert limits.of_filter("$share/gg/a/b/c/d", "a/b/c/d") is None
    too_deep = limits.of_filter("$share/gg/a/b/c/d/e", "a/b/c/d/e")
    assert too_deep is not None
    assert too_deep.limit is Limit.TOPIC_LEVELS
    too_long = limits.of_filter("$share/12345678901/ab", "ab")
    assert too_long is not None
    assert (too_long.limit, too_long.reason_code) == (Limit.TOPIC_BYTES, ReasonCode.TOPIC_FILTER_INVALID)
