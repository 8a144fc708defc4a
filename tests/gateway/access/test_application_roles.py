"""The topics of an application: what it may publish and subscribe to."""

import pytest

from gateway.access.application_roles import ApplicationTopics

TOPICS = ApplicationTopics(publish=("plant/+/bar", "panel/#"), subscribe=("plant/#",))


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("plant/7/bar", True),
        ("panel", True),
        ("panel/a/b", True),
        ("plant/7", False),
        ("plant/7/bar/x", False),
        ("plant/+/bar", False),
        ("panel/#", False),
        ("", False),
    ],
)
def test_a_topic_to_publish_to_is_matched_by_a_filter(topic: str, expected: bool) -> None:
    assert TOPICS.may_publish(topic) is expected


@pytest.mark.parametrize(
    ("topic_filter", "expected"),
    [("plant/#", True), ("plant/+/bar", True), ("plant", True), ("#", False), ("+/7", False), ("panel/#", False)],
)
def test_a_filter_is_covered_by_a_filter(topic_filter: str, expected: bool) -> None:
    assert TOPICS.may_subscribe(topic_filter) is expected


def test_topics_of_the_gateway_need_a_filter_that_names_them() -> None:
    assert not ApplicationTopics(publish=("#",), subscribe=("#",)).may_subscribe("$SYS/#")
    assert ApplicationTopics(publish=("#",), subscribe=("$SYS/#",)).may_subscribe("$SYS/broker/uptime")


def test_nothing_is_allowed_without_filters() -> None:
    nothing = ApplicationTopics(publish=(), subscribe=())
    assert not nothing.may_publish("plant/7")
    assert not nothing.may_subscribe("plant/7")
