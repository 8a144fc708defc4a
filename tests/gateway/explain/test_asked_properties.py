"""Properties of a PUBLISH as an operator asks for them (MQTT 5.0 section 3.3.2.3), and the places README gives them."""

import pytest

from gateway.config import Settings
from gateway.explain.asked_properties import PropertyProblem, asked_properties, places
from gateway.explain.command import Question
from gateway.explain.explanation import explain, with_assumed_target
from mappings.commands.command import Dialect

ALL = [
    "message-expiry-interval=60",
    "payload-format-indicator=1",
    "content-type=text/plain",
    "response-topic=answers/1",
    "correlation-data=abc",
    "user-property=unit=K",
    "user-property=unit=C=D",
]


def test_every_property_has_its_place_in_the_header_of_either_format():
    properties = asked_properties(ALL)
    assert [place[1:] for place in places(properties, Dialect.MQRFH2, "one_json")] == [
        ("MQMD.Expiry", "600 tenths of a second"),
        ("usr.rfhbPayloadFormat", "1"),
        ("usr.rfhbContentType", "text/plain"),
        ("usr.rfhbRespTopic", "answers/1"),
        ("usr.rfhbCorrel", "616263"),
        ("usr.rfhbUserProps", '[["unit","K"],["unit","C=D"]]'),
    ]
    assert [place.name for place in places(properties, Dialect.MQRFH, "one_json")] == [
        text.split("=")[0] for text in ALL[:6]
    ]
    assert list(places(properties, Dialect.MQRFH, "one_json"))[2].place == "pair rfhbContentType"
    assert list(places(asked_properties([]), Dialect.MQRFH2, "one_json")) == []


def test_a_user_property_may_have_a_place_of_its_own_too():
    properties = asked_properties([*ALL, "user-property=plant=7", "user-property=a.b=1"])
    *_, single, alone, twice = places(properties, Dialect.MQRFH2, "each")
    assert single == ("user-property", "usr.plant", "7")
    assert {alone.name, twice.name} == {"user-property unit", "user-property a.b"}
    assert alone.place == "no property of its own"


def test_an_expiry_that_an_mqlong_cannot_hold_is_none():
    (place,) = places(asked_properties(["message-expiry-interval=214748365"]), Dialect.MQRFH2, "one_json")
    assert place.value.startswith("-1")


def test_a_target_gets_them_behind_what_every_publication_carries():
    question = Question(topic="a/b", properties=asked_properties(ALL[1:3] + ALL[:1]))
    publish = explain(with_assumed_target(Settings()), question).commands[0]
    assert publish.packet == "PUBLISH, QoS 1, MQTT 5"
    assert publish.descriptor.expiry == 600
    assert publish.header_text[1] == (
        "<usr><rfhbQos dt='i4'>1</rfhbQos><rfhbClient>sensor</rfhbClient><rfhbSeq dt='i8'>1</rfhbSeq>"
        "<rfhbPayloadFormat dt='i4'>1</rfhbPayloadFormat><rfhbContentType>text/plain</rfhbContentType></usr>"
    )
    assert len(publish.properties) == 3


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("mqrfh2", ("<usr><rfhbCorrel dt='bin.hex'>616263</rfhbCorrel></usr>",)),
        ("mqrfh", ("MQPSCommand Publish MQPSPubOpts NoReg MQPSTopic a/b rfhbCorrel 616263",)),
    ],
)
def test_the_embedded_broker_gets_them_alone(header, text):
    question = Question(topic="a/b", properties=asked_properties(["correlation-data=abc", "message-expiry-interval=0"]))
    publish = explain(Settings(header=header), question).commands[0]
    assert publish.header_text[-1:] == text
    assert publish.descriptor.expiry == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("content-type", "has no value"),
        ("colour=red", "they are message-expiry-interval, payload-format-indicator"),
        ("topic-alias=3", "belongs to one connection"),
        ("user-property=unit", "user-property=NAME=VALUE"),
        ("payload-format-indicator=2", "which it must not be"),
        ("payload-format-indicator=yes", "must be a number"),
        ("message-expiry-interval=4294967296", "4294967296"),
        ("message-expiry-interval=-1", "-1"),
        ("response-topic=a/#", "MQTT-3.3.2-14"),
        ("content-type=\x01", "U\\+0001"),
    ],
)
def test_what_a_publish_may_not_have_is_named(text, problem):
    with pytest.raises(PropertyProblem, match=problem):
        asked_properties([text])


def test_one_that_stands_twice_is_named():
    with pytest.raises(PropertyProblem, match="content-type is given twice"):
        asked_properties(["content-type=a", "content-type=b"])
