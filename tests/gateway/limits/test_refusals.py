"""What a client past a limit is told: each answer is one that its packet may carry, at each protocol level."""

import pytest

from docs.generator.limits import answers_of_3_1_1
from gateway.config.limits import Limit
from gateway.limits.refusals import REASONS, reached
from gateway.mqtt.reason_codes import (
    ACKNOWLEDGEMENT_CODES,
    CONNACK_CODES,
    DISCONNECT_CODES_OF_SERVER,
    SUBACK_CODES,
    ReasonCode,
)

#: The reason codes that each packet of a server may have (MQTT 5.0 section 2.4).
CODES = {
    "CONNACK": CONNACK_CODES,
    "PUBACK": ACKNOWLEDGEMENT_CODES,
    "PUBREC": ACKNOWLEDGEMENT_CODES,
    "SUBACK": SUBACK_CODES,
    "DISCONNECT": DISCONNECT_CODES_OF_SERVER,
}


@pytest.mark.parametrize("limit", Limit)
def test_each_answer_is_one_that_its_packet_may_carry(limit: Limit) -> None:
    for answer in limit.value.answers:
        for packet in answer.packets:
            assert ReasonCode[answer.reason_code] in CODES[packet]


@pytest.mark.parametrize("limit", Limit)
def test_only_a_client_that_is_answered_is_told_in_words(limit: Limit) -> None:
    assert not limit.value.told or any(answer.packets for answer in limit.value.answers)


@pytest.mark.parametrize(
    ("limit", "answers"),
    [
        (Limit.CONNECTIONS, ("CONNACK 03",)),
        (Limit.TOPIC_BYTES, ("closed", "SUBACK 80")),
        (Limit.QUEUED_AGE, ()),
        (Limit.KEEP_ALIVE, ()),
    ],
)
def test_the_page_of_limits_tells_a_client_of_3_1_1_what_its_packets_can_say(
    limit: Limit, answers: tuple[str, ...]
) -> None:
    assert answers_of_3_1_1(limit) == answers


def test_a_limit_that_refuses_nothing_has_no_reason_code() -> None:
    assert {limit for limit in Limit if limit not in REASONS} == {
        Limit.UNSENT_BYTES,
        Limit.IN_FLIGHT,
        Limit.KEEP_ALIVE,
        Limit.SESSION_EXPIRY,
        Limit.SESSION_MEMORY,
        Limit.DEAD_LETTER_EXPIRY,
        Limit.RECENT_LOGINS,
        Limit.REFUSED_LOGINS,
        Limit.REFUSED_TOPICS,
        Limit.REFUSED_CONNECTS,
        Limit.REFUSED_PROGRAMS,
    }


def test_the_log_names_the_key_and_the_client_is_told_what_to_do() -> None:
    found = reached(Limit.CONNECTIONS)
    assert found.reason_code is ReasonCode.QUOTA_EXCEEDED
    assert found.text == "maximum_connections is reached"
    assert found.told == "there are too many connections: try again later"
