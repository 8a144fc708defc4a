"""Properties of MQTT 5.0: from a PUBLISH or a will to the header that carries them, and from there to a PUBLISH.

Packets: MQTT 5.0 section 3.3.2.3, by hand. Of a/b with QoS 1: payload format 1 (01), expiry 60 s (02), content type
`text/plain` (03), response topic `r/1` (08), correlation data 00 FF (09), user properties (26) a=1, a=2.
"""

from typing import Any

import pytest

from spark_audit.reperform.comparison import Status, UnreadableBytes
from spark_audit.reperform.performance import reperform
from spark_audit.reperform.properties import Properties, carried, carried_back, read_properties
from tests.spark_audit.reperform.test_target import PSC, mqrfh, mqrfh2

EXPIRY = "02 0000003C"
OF_MESSAGE = "01 01 03 000A 746578742F706C61696E 08 0003 722F31 09 0002 00FF 26 0001 61 0001 31 26 0001 61 0001 32"
USR = (
    "<usr><rfhbPayloadFormat dt='i4'>1</rfhbPayloadFormat><rfhbContentType>text/plain</rfhbContentType>"
    "<rfhbRespTopic>r/1</rfhbRespTopic><rfhbCorrel dt='bin.hex'>00ff</rfhbCorrel>"
    '<rfhbUserProps>[["a","1"],["a","2"]]</rfhbUserProps></usr>'
)
PAIRS = (
    "rfhbPayloadFormat 1 rfhbContentType text/plain rfhbRespTopic r/1 rfhbCorrel 00ff"
    ' rfhbUserProps "[[""a"",""1""],[""a"",""2""]]"'
)
PSC_1 = "MQPSCommand Publish MQPSPubOpts NoReg MQPSTopic a/b "
NOTHING = "<usr></usr>"


def section(*properties: str) -> bytes:
    """Properties behind their length; all of these are shorter than 128 bytes."""
    data = bytes.fromhex("".join(properties))
    return bytes((len(data),)) + data


def packet(*properties: str, topic: str = "0003 612f62", first: str = "32") -> bytes:
    """The header of a PUBLISH with a payload of two bytes."""
    variable = bytes.fromhex(topic) + (b"\0\x0a" if first != "30" else b"") + section(*properties)
    return bytes.fromhex(first) + bytes((len(variable) + 2,)) + variable


def made(facts: Any, header: bytes, **more: object) -> Any:
    format = "MQHRF" if header[4] == 1 else "MQHRF2"
    return reperform(facts(output=header, output_format=format, **{"protocol_level": 5, **more}))


@pytest.mark.parametrize("header", [mqrfh2(PSC, USR), mqrfh(PSC_1 + PAIRS)], ids=["MQRFH2", "MQRFH"])
def test_a_publish_of_level_5_carries_the_properties_of_its_message(facts: Any, header: bytes) -> None:
    outcome = made(facts, header, input=packet(EXPIRY, OF_MESSAGE))
    assert (outcome.status, outcome.same_bytes) == (Status.MATCH, True), outcome.detail


@pytest.mark.parametrize("header", [mqrfh2(PSC), mqrfh(PSC_1.rstrip())], ids=["MQRFH2", "MQRFH"])
def test_expiry_and_an_alias_are_not_carried(facts: Any, header: bytes) -> None:
    for properties in ((), (EXPIRY,), ("23 0007",)):
        assert made(facts, header, input=packet(*properties)).same_bytes
        assert made(facts, header, input=packet(OF_MESSAGE, *properties)).status is Status.DIFFERENCE


@pytest.mark.parametrize(
    "usr",
    [
        NOTHING,
        USR.replace("1</rfhbPayloadFormat>", "0</rfhbPayloadFormat>"),
        USR.replace("00ff", "00fe"),
        USR.replace('["a","1"],["a","2"]', '["a","2"],["a","1"]'),
        USR.replace("</usr>", "<rfhbQos dt='i4'>1</rfhbQos></usr>"),
    ],
)
def test_properties_that_are_carried_otherwise_are_a_difference(facts: Any, usr: str) -> None:
    assert made(facts, mqrfh2(PSC, usr), input=packet(OF_MESSAGE)).status is Status.DIFFERENCE


def test_before_level_5_nothing_behind_the_variable_header_is_a_property(facts: Any) -> None:
    for level in (-1, 4):
        outcome = made(facts, mqrfh2(PSC, USR), input=packet(OF_MESSAGE), protocol_level=level)
        assert outcome.status is Status.NOT_REPERFORMABLE


def test_the_topic_behind_an_alias_is_the_record_s(facts: Any) -> None:
    by_alias = packet("23 0007", topic="0000")
    assert made(facts, mqrfh2(PSC), input=by_alias, topic="a/b").same_bytes
    assert made(facts, mqrfh2(PSC), input=by_alias, topic="a/c").status is Status.DIFFERENCE
    assert made(facts, mqrfh2(PSC), input=packet(topic="0000"), topic="a/b").status is Status.DIFFERENCE


def test_a_will_of_level_5_carries_its_properties(facts: Any) -> None:
    will = bytes.fromhex("0003 612f62 02") + section("18 0000000A", EXPIRY, OF_MESSAGE)
    assert made(facts, mqrfh2(PSC, USR), input=will, packet_type=1).same_bytes
    assert made(facts, mqrfh2(PSC), input=will, packet_type=1).status is Status.DIFFERENCE
    assert made(facts, mqrfh2(PSC), input=will[:6], packet_type=1).status is Status.NOT_REPERFORMABLE


def test_to_a_target_the_properties_stand_behind_what_is_always_carried(facts: Any) -> None:
    always = "<rfhbQos dt='i4'>1</rfhbQos><rfhbClient>boiler</rfhbClient><rfhbSeq dt='i8'>7</rfhbSeq>"
    target = {
        "destination": "CENTRAL",
        "stream": "SYSTEM.BROKER.DEFAULT.STREAM",
        "stream_style": "queue",
        "client": "boiler",
        "exchange": 7,
        "input": packet(OF_MESSAGE),
    }
    assert made(facts, mqrfh2(PSC, USR.replace("<usr>", f"<usr>{always}")), **target).same_bytes
    assert made(facts, mqrfh2(PSC, f"<usr>{always}</usr>"), **target).status is Status.DIFFERENCE
    in_1 = mqrfh(f"{PSC_1}rfhbQos 1 rfhbClient boiler rfhbSeq 7 {PAIRS}")
    assert made(facts, in_1, **target).same_bytes


def delivered(facts: Any, usr: str, output: bytes, **more: object) -> Any:
    described = {"input_format": "MQHRF2", "input_ccsid": 1208, "input_encoding": 546, "output_format": "MQTT"}
    said = {"conversion": "header_to_packet", "granted_qos": 1, "published_qos": 1, "protocol_level": 5, **described}
    return reperform(facts(input=mqrfh2(PSC, usr), output=output, **{**said, **more}))


def test_a_delivery_of_level_5_has_the_properties_that_its_publication_carries(facts: Any) -> None:
    for more in ((), (EXPIRY,), ("0B 07", "0B 8001")):
        assert delivered(facts, USR, packet(OF_MESSAGE, *more)).same_bytes
    assert delivered(facts, USR, packet()).status is Status.DIFFERENCE
    assert delivered(facts, NOTHING, packet(OF_MESSAGE)).status is Status.DIFFERENCE
    by_alias = packet("23 0001", OF_MESSAGE, topic="0000")
    assert delivered(facts, USR, by_alias, topic="a/b").same_bytes
    assert delivered(facts, USR, by_alias, topic="a/c").status is Status.DIFFERENCE


def test_a_delivery_before_level_5_has_none(facts: Any) -> None:
    plain = bytes.fromhex("32 09 0003 612f62 000a")
    assert delivered(facts, USR, plain, protocol_level=-1).same_bytes
    assert delivered(facts, USR, plain, protocol_level=5).status is Status.DIFFERENCE
    assert delivered(facts, USR, packet(OF_MESSAGE), protocol_level=4).status is Status.DIFFERENCE


def test_retain_as_published_is_for_level_5_alone(facts: Any) -> None:
    assert delivered(facts, NOTHING, packet(first="33")).same_bytes
    plain = bytes.fromhex("33 09 0003 612f62 000a")
    assert delivered(facts, NOTHING, plain, protocol_level=4).status is Status.DIFFERENCE


@pytest.mark.parametrize(
    "usr",
    [
        "<usr><rfhbPayloadFormat>2</rfhbPayloadFormat></usr>",
        "<usr><rfhbRespTopic>a/#</rfhbRespTopic></usr>",
        "<usr><rfhbRespTopic></rfhbRespTopic></usr>",
        "<usr><rfhbCorrel>0</rfhbCorrel></usr>",
        "<usr><rfhbCorrel>00 ff</rfhbCorrel></usr>",
        "<usr><rfhbContentTypeHex>ff</rfhbContentTypeHex></usr>",
        "<usr><rfhbContentTypeHex>00</rfhbContentTypeHex></usr>",
        "<usr><rfhbContentTypeHex>7f</rfhbContentTypeHex></usr>",
        "<usr><rfhbContentType>a\r</rfhbContentType></usr>",
        "<usr><rfhbRespTopicHex>efb790</rfhbRespTopicHex></usr>",
        "<usr><rfhbUserProps>[[&quot;a&quot;]]</rfhbUserProps></usr>",
        '<usr><rfhbUserProps>[["a","\\u0000"]]</rfhbUserProps></usr>',
        '<usr><rfhbUserProps>[["a","\\ud800"]]</rfhbUserProps></usr>',
        f"<usr><rfhbUserProps>{'[' * 5_000}</rfhbUserProps></usr>",
        "<usr><group><rfhbPayloadFormat>1</rfhbPayloadFormat></group></usr>",
        "<usr><rfhbPayloadFormat>1</usr>",
        "<usr><rfhbPayloadFormat>1</rfhbPayloadFormat>text</usr>",
        "<usr><!-- --><rfhbPayloadFormat>1</rfhbPayloadFormat></usr>",
        "<usr><other>&#1;</other><rfhbPayloadFormat>1</rfhbPayloadFormat></usr>",
        f"<usr>{'<x></x>' * 1_250}<rfhbPayloadFormat>1</rfhbPayloadFormat></usr>",
    ],
)
def test_what_is_no_such_property_is_delivered_without(facts: Any, usr: str) -> None:
    assert delivered(facts, usr, packet()).status is Status.MATCH


def test_a_property_beside_groups_and_other_properties_counts(facts: Any) -> None:
    usr = "<usr> <g><x>1</x></g> <empty/><rfhbPayloadFormat  dt='i4' >1</rfhbPayloadFormat></usr>"
    assert delivered(facts, usr, packet("01 01")).status is Status.MATCH


@pytest.mark.parametrize(
    ("properties", "pairs"),
    [
        ({"content_type": "\U0001f600"}, ("rfhbContentTypeHex", "f09f9880")),
        ({"content_type": ""}, ("rfhbContentType", "")),
        ({"response_topic": "a\U00010000"}, ("rfhbRespTopicHex", "61f0908080")),
        ({"correlation_data": b""}, ("rfhbCorrel", "")),
        (
            {"user_properties": (('"\\<&>', "\U0001f600\u20ac"), ("", ""))},
            ("rfhbUserProps", '[["\\"\\\\<&>","\\ud83d\\ude00\u20ac"],["",""]]'),
        ),
    ],
)
def test_text_that_is_not_safe_in_a_header_is_written_in_digits_and_read_again(
    properties: dict[str, Any], pairs: tuple[str, str]
) -> None:
    assert carried(Properties(**properties)) == (pairs,)
    assert carried_back((pairs,)) == Properties(**properties)


@pytest.mark.parametrize(
    "data", ["", "01", "02 01", "03 0300 02", "05 0000000001", "02 0907", "04 0300 02ff", "FFFFFFFF"]
)
def test_broken_properties_are_unreadable(data: str) -> None:
    with pytest.raises(UnreadableBytes):
        read_properties(bytes.fromhex(data))
