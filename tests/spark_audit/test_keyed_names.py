"""Conversions towards a target in a keyed trail: with the key they are judged as those of a trail in clear."""

import base64
from typing import Any

import pytest

from spark_audit.decrypted_headers import in_clear
from spark_audit.facts.conversions import Conversions
from spark_audit.personal import PersonalKey
from spark_audit.reperform.comparison import Comparison, Status
from tests.spark_audit.reperform.test_target import (
    FROM_TARGET,
    MATCHES,
    PLANTED,
    PUBLISH,
    REGSUB,
    SUBSCRIBE,
    TO_TARGET,
    mqrfh,
    mqrfh2,
)

KEY = PersonalKey(bytes(range(32)))
#: What a record says where a case says nothing.
STANDARD = {
    "gateway": "01" * 12,
    "sequence": 1,
    "message_id": "",
    "conversion": "packet_to_header",
    "command": "Publish",
    "packet_type": 3,
    "payload_bytes": 2,
    "input_format": "MQTT",
    "output_format": "MQHRF2",
    "output_ccsid": 1208,
    "output_encoding": 546,
}
EVERY_COLUMN = (
    *("topic", "queue", "target", "mode", "destination", "stream", "stream_style", "user", "granted_qos", "client"),
    *("published_qos", "input_ccsid", "input_encoding", "exchange", "correlation_id", "topic_filters", "is_retained"),
    *("dropped_fields", "protocol_level"),
)
#: The header holds no name in these, so that nobody can say whether it should.
CLOSED = {"a client that XML cannot say", "nothing carried", "a filter that was left out"}


def _keyed(case: dict[str, Any]) -> dict[str, Any]:
    """The record of a conversion as a keyed trail has it."""
    record = dict.fromkeys(EVERY_COLUMN) | STANDARD | case
    for name in ("client", "user", "topic"):
        record[name] = KEY.name(record[name]) if record[name] else None
    record["topic_filters"] = [KEY.name(each) for each in record["topic_filters"] or ()]
    return record | {side: KEY.sealed(record[side]) for side in ("input", "output")}


def _judged(case: dict[str, Any]) -> Comparison:
    record = _keyed(case)
    return Conversions(has_key=True).again(record | in_clear(record, KEY)).comparison


@pytest.mark.parametrize("case", MATCHES)
def test_what_matches_in_clear_matches_with_the_key(case: str) -> None:
    expected = Status.NOT_REPERFORMABLE if case in CLOSED else Status.MATCH
    told = _judged(MATCHES[case])
    assert told.status == expected, told


@pytest.mark.parametrize("case", PLANTED)
def test_what_differs_in_clear_differs_with_the_key(case: str) -> None:
    base, changes, _ = PLANTED[case]
    expected = Status.NOT_REPERFORMABLE if case in CLOSED else Status.DIFFERENCE
    told = _judged(MATCHES[base] | changes)
    assert told.status == expected, told
    if case in CLOSED:
        assert "do not hold a name" in told.detail


@pytest.mark.parametrize(
    ("topic_filter", "patterns"),
    [
        ("#", ("*",)),
        ("plant/#", ("plant", "plant/*")),
        ("plant/+/boiler", ("plant/*/boiler",)),
        ("plant/+/#", ("plant/*",)),
        ("100%/+/a*b", ("100%%/*/a%*b",)),
        ("+", ("*",)),
    ],
)
def test_a_narrower_filter_is_recognised_in_the_patterns_that_it_became(topic_filter: str, patterns) -> None:
    topics = " ".join(f"MQPSTopic {pattern}" for pattern in patterns)
    header = mqrfh(f"MQPSCommand RegSub MQPSRegOpts CorrelAsId MQPSRegOpts InformIfRet MQPSQName Q {topics}")
    case = TO_TARGET | SUBSCRIBE | {"topic_filters": (topic_filter,), "output": header, "output_format": "MQHRF"}
    assert _judged(case).status == Status.MATCH
    assert _judged(case | {"topic_filters": ("elsewhere",)}).status == Status.NOT_REPERFORMABLE


def test_a_topic_that_an_alias_stands_for_is_recognised_in_both_directions() -> None:
    by_alias = {"protocol_level": 5, "topic": "a/b"}
    packet = bytes.fromhex("32 0a 0000 000a 03 230001")
    header = mqrfh2("<psc><Command>Publish</Command><Topic>a/b</Topic></psc>")
    assert _judged(by_alias | {"input": packet, "output": header}).status == Status.MATCH
    wrong = mqrfh2("<psc><Command>Publish</Command><Topic>a/c</Topic></psc>")
    assert _judged(by_alias | {"input": packet, "output": wrong}).status == Status.DIFFERENCE
    delivery = FROM_TARGET | by_alias | {"input": header, "output": packet}
    assert _judged(delivery).status == Status.MATCH
    assert _judged(delivery | {"topic": "a/c"}).status == Status.DIFFERENCE


def test_bytes_that_are_no_header_are_opened_and_told() -> None:
    told = _judged(TO_TARGET | {"output": b"no header"})
    assert (told.status, told.detail[:25]) == (Status.DIFFERENCE, "the output cannot be read")
    for side in ("input", "output"):
        record = _keyed(TO_TARGET | {"output": mqrfh2(f"<psc>{REGSUB}</psc>")}) | {side: "e:damaged"}
        assert in_clear(record, KEY) == {}


def test_what_is_in_clear_already_is_left_alone() -> None:
    record = dict.fromkeys(EVERY_COLUMN) | STANDARD | TO_TARGET
    record |= {side: base64.b64encode(PUBLISH).decode() for side in ("input", "output")}
    assert in_clear(record, KEY) == {}
