"""What is carried of the properties of MQTT 5: the gateway and the audit agree, whatever there is to read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridge.usr_folder import carried_pairs_of, carrier_folder, longest_carried_bytes, read_properties
from gateway.mqtt import property_codec
from gateway.mqtt.properties import PublishProperties
from gateway.mqtt.wire import decode_plain_text
from mappings.headers.mqrfh import encode_pairs
from spark_audit.reperform import properties as audit


def is_text(text: str) -> bool:
    try:
        decode_plain_text(text.encode())
    except Exception:  # the core's own error, whichever it is
        return False
    return True


texts = st.text(st.characters(codec="utf-8"), max_size=30).filter(is_text)
topics = texts.filter(lambda text: text != "" and "#" not in text and "+" not in text)
given_properties = st.builds(
    PublishProperties,
    payload_format_indicator=st.none() | st.integers(0, 1),
    response_topic=st.none() | topics,
    correlation_data=st.none() | st.binary(max_size=30),
    user_properties=st.lists(st.tuples(texts, texts), max_size=5).map(tuple),
    content_type=st.none() | texts,
    message_expiry_s=st.none(),
    topic_alias=st.none(),
    subscription_identifiers=st.just(()),
)
names = st.sampled_from(
    [
        "rfhbPayloadFormat",
        "rfhbContentType",
        "rfhbContentTypeHex",
        "rfhbRespTopic",
        "rfhbRespTopicHex",
        "rfhbCorrel",
        "rfhbUserProps",
        "other",
    ]
)
json_texts = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)
)
hostile = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["0", "1", "2", "", "a/b", "a/#", "+", "00ff", "00f", "0G", "c3", "[]", "[[", '[["a","b"]]', '[["a"]]']
    ),
    st.binary(max_size=10).map(bytes.hex),
    json_texts.map(json.dumps),
)


def as_audited(properties: PublishProperties) -> audit.Properties:
    return audit.Properties(
        payload_format=properties.payload_format_indicator,
        content_type=properties.content_type,
        response_topic=properties.response_topic,
        correlation_data=properties.correlation_data,
        user_properties=properties.user_properties,
    )


@given(given_properties)
def test_what_is_carried_comes_back_and_the_audit_predicts_it(properties: PublishProperties) -> None:
    pairs = carried_pairs_of(properties).pairs
    found, left_out = read_properties(dict(pairs))
    assert (found or PublishProperties(), left_out) == (properties, ())
    assert audit.carried(audit.read_properties(property_codec.PUBLISH.encode(properties))) == pairs
    assert audit.carried_back(pairs) == as_audited(properties)


@given(given_properties)
def test_no_header_needs_more_room_than_was_reckoned_with(properties: PublishProperties) -> None:
    pairs, most = carried_pairs_of(properties).pairs, longest_carried_bytes(property_codec.PUBLISH.encode(properties))
    assert len(carrier_folder(pairs).encode()) <= most
    assert len(encode_pairs(pairs, 1208)) <= most


@pytest.mark.parametrize("text", ["&" * 65_535, '"' * 65_535, "\\" * 65_535, " " * 65_535, "\U0001f600" * 16_383])
def test_nor_do_the_texts_that_grow_most(text: str) -> None:
    for properties in (PublishProperties(content_type=text), PublishProperties(user_properties=((text, text),))):
        pairs, most = (
            carried_pairs_of(properties).pairs,
            longest_carried_bytes(property_codec.PUBLISH.encode(properties)),
        )
        assert len(carrier_folder(pairs).encode()) <= most
        assert len(encode_pairs(pairs, 1208)) <= most


@given(st.dictionaries(names, hostile))
def test_what_anyone_may_have_written_gives_the_same_to_both(written: dict[str, str]) -> None:
    found, _ = read_properties(written)
    assert audit.carried_back(written.items()) == as_audited(found or PublishProperties())
    if found is not None:
        property_codec.PUBLISH.encode(found)
