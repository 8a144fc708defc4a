"""Requests of MQSUB that are wrong in themselves, and topic strings of the character scheme."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappings.topics.topics import Scheme
from mappings.topics.wildcards import matches
from mq_adapters.embedded.mqi.options import SubOption
from mq_adapters.embedded.mqi.subscription_request import SubscriptionRequest, check_request, topic_string
from mq_adapters.reasons import QueueManagerError, ReasonCode
from tests.mq_adapters.embedded.mqi.program import refused
from tests.mq_adapters.embedded.mqi.subscriber import DURABLE, MANAGED

CHARACTERS = SubOption.WILDCARD_CHAR


@pytest.mark.parametrize(
    ("said", "reason_code"),
    [
        ({"name": "a\0b"}, ReasonCode.MQRC_SUB_NAME_ERROR),
        ({"name": "ä" * 5_121}, ReasonCode.MQRC_SUB_NAME_ERROR),
        ({"user_data": "a\0b"}, ReasonCode.MQRC_SUB_USER_DATA_ERROR),
        ({"user_data": "a" * 10_241}, ReasonCode.MQRC_SUB_USER_DATA_ERROR),
        ({"expiry": 0}, ReasonCode.MQRC_EXPIRY_ERROR),
        ({"expiry": -2}, ReasonCode.MQRC_EXPIRY_ERROR),
        ({"priority": 10}, ReasonCode.MQRC_PRIORITY_ERROR),
        ({"priority": -2}, ReasonCode.MQRC_PRIORITY_ERROR),
        ({"level": 0}, ReasonCode.MQRC_SUBLEVEL_NOT_ALTERABLE),
        ({"options": DURABLE | SubOption.ANY_USERID | SubOption.FIXED_USERID}, ReasonCode.MQRC_OPTIONS_ERROR),
        ({"options": DURABLE | 0x4000_0000}, ReasonCode.MQRC_OPTIONS_ERROR),
        ({"options": MANAGED | SubOption.SET_CORREL_ID | SubOption.GROUP_SUB}, ReasonCode.MQRC_GROUPING_NOT_ALLOWED),
    ],
)
def test_a_wrong_request_is_refused(said: dict[str, object], reason_code: ReasonCode) -> None:
    asked = {"options": DURABLE, "object_name": "", "topic": "plant/#", "name": "kept", **said}
    assert refused(lambda: check_request(SubscriptionRequest(**asked))) == reason_code  # type: ignore[arg-type]


def test_a_right_request_is_none() -> None:
    asked = SubscriptionRequest(
        options=DURABLE, object_name="", topic="plant/#", name="ä" * 5_120, user_data="", expiry=1, priority=-1
    )
    check_request(asked)
    assert asked.has(SubOption.DURABLE)


@pytest.mark.parametrize(
    ("topic", "same"),
    [("*", "#"), ("plant/*", "plant/+/#"), ("/*", "/+/#"), ("plant/1", "plant/1"), ("100%% a%*b", "100% a*b")],
)
def test_a_pattern_of_characters_that_levels_can_say_is_taken(topic: str, same: str) -> None:
    assert topic_string(topic, CHARACTERS, "") == same
    assert topic_string(topic, 0, "") == topic


@pytest.mark.parametrize("topic", ["plant*", "*/bar", "plant/?", "plant/*/bar", "plant/#", "+/1", "%", "a/**", "*?"])
def test_another_one_is_refused(topic: str) -> None:
    assert refused(lambda: topic_string(topic, CHARACTERS, "")) == ReasonCode.MQRC_TOPIC_STRING_ERROR


@given(st.text("a/*?%+#", max_size=6), st.text("a/%+#", max_size=6))
def test_what_is_taken_matches_the_same_topics(pattern: str, topic: str) -> None:
    try:
        same = topic_string(pattern, CHARACTERS, "") if pattern else ""
    except QueueManagerError as error:
        same = ""
        assert error.reason_code == ReasonCode.MQRC_TOPIC_STRING_ERROR  # noqa: PT017  # most patterns are refused
    if same:
        assert matches(same, topic, Scheme.TOPIC) == matches(pattern, topic, Scheme.CHARACTER)
