"""Folder usr: what is carried of a PUBLISH, what anyone may have written there, and message expiry.

Headers are typed by hand. The gateway and the audit agree, whatever there is to read.
"""

import json

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.audit_trail.notes.notes import NoteKind
from gateway.bridge.messages.usr_folder import (
    Carried,
    carried_pairs_of,
    carrier_folder,
    longest_carried_bytes,
    read_carried,
    read_properties,
    with_application_properties,
)
from gateway.bridge.sessions.session_store import HeldPublish
from gateway.mqtt import property_codec
from gateway.mqtt.properties import PublishProperties
from gateway.mqtt.wire import decode_plain_text
from mappings.commands.command import Dialect
from mappings.headers.chain import read_header_chain
from mappings.headers.mqrfh import encode_pairs
from mappings.headers.mqrfh2 import Element
from mq_adapters.message import MQEI_UNLIMITED
from spark_audit.reperform import properties as audit
from tests.gateway.bridge.audited import assert_every_conversion_is_as_the_audit_predicts, records
from tests.gateway.bridge.commands.test_target_messages import mqrfh, mqrfh2
from tests.gateway.bridge.conftest import DEFAULT_STREAM, NewWorld, World, written
from tests.gateway.bridge.connect.test_level_5_sessions import connect, pass_seconds
from tests.gateway.bridge.deliver.test_deliveries_from_targets import configured
from tests.gateway.bridge.messages.test_properties import PSC, application_put, header_at_broker
from tests.gateway.bridge.remote import Remote, headers
from tests.gateway.bridge.subscribe.test_level_5_subscriptions import connected, publish, subscribe, subscribed

# -- properties of MQTT 5 ----------------------------------------------------------------------------------------------


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


# -- what a publication from a target carries --------------------------------------------------------------------------


def carried(header: bytes) -> Carried:
    format = b"MQHRF   " if header[4] == 1 else b"MQHRF2  "
    return read_carried(read_header_chain(header, format=format, coded_char_set_id=1208, encoding=546))


def test_a_folder_usr_is_read_with_and_without_types() -> None:
    """A queue manager that makes the folder anew from message properties may quote otherwise."""
    usr = '<usr><other>1</other><rfhbQos dt="i4">2</rfhbQos><rfhbClient>a&amp;b</rfhbClient><rfhbSeq>9</rfhbSeq></usr>'
    found = carried(mqrfh2(PSC, usr))
    assert (found.qos, found.client, found.sequence) == (2, "a&b", 9)
    assert found.properties == PublishProperties(user_properties=(("other", "1"),))


def test_what_deletes_is_read_from_folder_and_pairs() -> None:
    usr = "<usr><rfhbQos>1</rfhbQos><rfhbSeq>9</rfhbSeq><rfhbRetain dt='i4'>1</rfhbRetain></usr>"
    assert carried(mqrfh2(PSC, usr)) == Carried(qos=1, sequence=9, deletes=True)
    assert carried(mqrfh("MQPSCommand Publish MQPSTopic a rfhbQos 1 rfhbRetain 1")) == Carried(qos=1, deletes=True)
    assert not carried(mqrfh2(PSC, usr.replace(">1</rfhbRetain", ">yes</rfhbRetain"))).deletes


def test_pairs_of_an_mqrfh_are_read() -> None:
    header = mqrfh('MQPSCommand Publish MQPSTopic a rfhbQos 0 rfhbClient "a b" rfhbSeq 12')
    assert carried(header) == Carried(qos=0, client="a b", sequence=12)


def test_a_publication_without_a_carrier_says_nothing() -> None:
    assert carried(mqrfh2(PSC)) == carried(mqrfh("MQPSCommand Publish MQPSTopic a")) == Carried()


@pytest.mark.parametrize("qos", ["3", "-1", "1.0", "", "00", "one", "٢"])
def test_what_is_no_qos_is_none(qos: str) -> None:
    assert carried(mqrfh2(PSC, f"<usr><rfhbQos>{qos}</rfhbQos></usr>")).qos is None


@pytest.mark.parametrize("sequence", ["0", "-5", "9" * 20, "9223372036854775808", "x", "9" * 100_000])
def test_what_is_no_sequence_is_none(sequence: str) -> None:
    assert carried(mqrfh2(PSC, f"<usr><rfhbSeq>{sequence}</rfhbSeq></usr>")).sequence == 0


@pytest.mark.parametrize(
    "usr", ["<usr><rfhbQos>1</usr>", "<usr><!DOCTYPE x></usr>", "<usr><g><rfhbQos>1</rfhbQos></g></usr>"]
)
def test_a_folder_that_nobody_can_read_carries_nothing_and_is_told(usr: str) -> None:
    found = carried(mqrfh2(PSC, usr))
    assert found.qos is None
    assert found.properties in (None, PublishProperties())
    assert [name for name, _ in found.left_out] == ["g" if "<g>" in usr else "usr"]
    assert found.has_unfit_properties


@pytest.mark.parametrize("padding", ["x" * 3 * 2**20, "</padding><padding>" * 1_250])
def test_a_folder_that_is_longer_than_any_of_ours_is_not_read(padding: str) -> None:
    usr = f"<usr><padding>{padding}</padding><rfhbQos>1</rfhbQos></usr>"
    told = (("usr", "it is too long to be read"),)
    assert carried(mqrfh2(PSC, usr)) == Carried(left_out=told, left_out_before_5=told)


def test_what_has_no_place_in_a_packet_is_told() -> None:
    more = "<psc><Command>Publish</Command><Topic>a</Topic><PubTime>2026112215000000</PubTime></psc>"
    folders = "<mcd><Msd>jms_text</Msd></mcd>", "<jms><Dst>topic://a</Dst></jms>"
    found = carried(mqrfh2(more, *folders))
    assert [name for name, _ in found.left_out] == ["PubTime", "mcd", "jms"]
    assert found.left_out == found.left_out_before_5
    assert not found.has_unfit_properties
    assert [name for name, _ in carried(mqrfh("MQPSCommand Publish MQPSTopic a MQPSSeqNum 4")).left_out] == [
        "MQPSSeqNum"
    ]


def test_a_null_property_is_told_and_no_fault() -> None:
    found = carried(mqrfh2(PSC, "<usr><XMSC_CLIENT_ID xsi:nil='true'></XMSC_CLIENT_ID><unit>bar</unit></usr>"))
    assert found.left_out == (("XMSC_CLIENT_ID", "it is null"),)
    assert not found.has_unfit_properties


def test_properties_are_told_as_left_out_to_clients_that_have_none() -> None:
    found = carried(mqrfh2(PSC, "<usr><unit>bar</unit><rfhbQos>1</rfhbQos><rfhbContentType>t</rfhbContentType></usr>"))
    assert found.left_out == ()
    assert [name for name, _ in found.left_out_before_5] == ["unit", "rfhbContentType"]


# -- properties of applications ----------------------------------------------------------------------------------------

#: As JMS writes them: text, number, boolean, bytes; and one that the gateway carries too.
JMS = (
    "<usr><colour>red</colour><weight dt='i4'>7</weight><ready dt='boolean'>1</ready><key dt='bin.hex'>0AFF</key>"
    "<empty></empty></usr>"
)
AS_USER_PROPERTIES = (
    "26 0006 'colour' 0003 'red' 26 0006 'weight' 0001 '7' 26 0005 'ready' 0004 'true'"
    " 26 0003 'key' 0004 '0AFF' 26 0005 'empty' 0000"
)


def dropped(world: World, kind: str) -> list[str]:
    """Names that the last record of a kind with a conversion tells as left out."""
    told = [each for each in records(world) if each["kind"] == kind and each.get("conversion")]
    return [name for name, _ in told[-1].get("dropped_fields", ())]


def test_an_applications_properties_become_user_properties(world: World) -> None:
    link = subscribed(world, "01")
    application_put(world, mqrfh2(PSC, JMS) + b"X")
    assert link.taken() == written(f"32 47 0003 'a/b' 0001 3E {AS_USER_PROPERTIES} 'X'")
    assert dropped(world, "delivered") == []
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_the_gateways_json_comes_first_and_its_names_count_once(world: World) -> None:
    link = subscribed(world, "01")
    usr = '<usr><b>2</b><a>1</a><a>other</a><rfhbUserProps>[["a","1"],["a","0"]]</rfhbUserProps></usr>'
    application_put(world, mqrfh2(PSC, usr) + b"X")
    user_properties = "26 0001 'a' 0001 '1' 26 0001 'a' 0001 '0' 26 0001 'b' 0001 '2'"
    assert link.taken() == written(f"32 1E 0003 'a/b' 0001 15 {user_properties} 'X'")
    assert dropped(world, "delivered") == ["a"], "its second value in the folder is not in the JSON"
    assert_every_conversion_is_as_the_audit_predicts(world)


@pytest.mark.parametrize(
    "element",
    [
        "<x xsi:nil='true'></x>",
        "<x><y>1</y></x>",
        "<rfhbNew>1</rfhbNew>",
        "<x>a\nb</x>",
        f"<x>{'v' * 65_536}</x>",
        f"<x>{'&amp;' * 65_536}</x>",
        f"<{'x' * 65_536}>1</{'x' * 65_536}>",
    ],
    ids=lambda element: element[:24],
)
def test_what_mqtt_has_no_place_for_is_told_and_the_rest_delivered(world: World, element: str) -> None:
    link = subscribed(world, "01")
    application_put(world, mqrfh2(PSC, f"<usr>{element}<k>v</k></usr>") + b"X")
    assert link.taken() == written("32 10 0003 'a/b' 0001 07 26 0001 'k' 0001 'v' 'X'")
    assert dropped(world, "delivered") == [element[1:].partition(">")[0].partition(" ")[0]]
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_there_are_no_more_user_properties_than_a_client_may_send(world: World) -> None:
    link = subscribed(world, "01")
    application_put(world, mqrfh2(PSC, f"<usr>{'<n>1</n>' * 1_002}</usr>") + b"X")
    assert link.taken().count(b"&\0\x01n\0\x011") == 1_000
    assert dropped(world, "delivered") == ["n", "n"]
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_pairs_of_an_mqrfh_become_user_properties(new_world: NewWorld) -> None:
    world = new_world(dialect=Dialect.MQRFH)
    link = subscribed(world, "01")
    header = mqrfh("MQPSCommand Publish MQPSTopic a/b unit bar MQPSSeqNum 7")
    application_put(world, header + b"X", format=b"MQHRF   ")
    assert link.taken() == written("32 15 0003 'a/b' 0001 0C 26 0004 'unit' 0003 'bar' 'X'")
    assert dropped(world, "delivered") == ["MQPSSeqNum"]
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_a_client_before_mqtt_5_is_sent_none_and_the_audit_hears_of_it(world: World) -> None:
    link = world.connect("old ")
    world.receive(link, "82 08 0001 0003 'a/#' 01")
    link.taken()
    application_put(world, mqrfh2(PSC, "<mcd><Msd>jms_text</Msd></mcd>", JMS) + b"X")
    assert link.taken() == written("32 08 0003 'a/b' 0001 'X'")
    assert dropped(world, "delivered") == ["mcd", "colour", "weight", "ready", "key", "empty"]
    assert_every_conversion_is_as_the_audit_predicts(world)


#: PUBLISH of level 5 to a/b with payload X and user properties unit=bar, a=1, a=2, x.y=3, JMSType=4, not=5.
PUBLISH = (
    "32 42 0003 'a/b' 0001 39 26 0004 'unit' 0003 'bar' 26 0001 'a' 0001 '1' 26 0001 'a' 0001 '2'"
    " 26 0003 'x.y' 0001 '3' 26 0007 'JMSType' 0001 '4' 26 0003 'not' 0001 '5' 'X'"
)
JSON = '[["unit","bar"],["a","1"],["a","2"],["x.y","3"],["JMSType","4"],["not","5"]]'
NAMELESS = ["a", "x.y", "JMSType", "not"]


def test_each_user_property_has_a_name_of_its_own_where_the_configuration_says_so(new_world: NewWorld) -> None:
    world = new_world(has_broker=False, user_properties="each")
    world.receive(connect(world, "self"), PUBLISH)
    usr = f"<usr><rfhbUserProps>{JSON}</rfhbUserProps><unit>bar</unit></usr>"
    assert header_at_broker(world) == mqrfh2(PSC, usr) + b"X"
    assert dropped(world, "put") == NAMELESS
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_by_default_the_json_stands_alone_and_nothing_is_told(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    world.receive(connect(world, "self"), PUBLISH)
    assert header_at_broker(world) == mqrfh2(PSC, f"<usr><rfhbUserProps>{JSON}</rfhbUserProps></usr>") + b"X"
    assert dropped(world, "put") == []


def test_names_of_their_own_reach_a_target_and_come_back_once(new_world: NewWorld, remotes: type[Remote]) -> None:
    world, remote = new_world(**configured(), user_properties="each"), remotes()
    remote.connect(world)
    link = connect(world, "self")
    link.taken()
    world.receive(link, "82 09 0001 00 0003 'a/#' 01")
    remote.carry(world)
    link.taken()
    world.receive(connect(world, "else"), PUBLISH)
    (header,) = headers(world)
    assert "<unit>bar</unit></usr>" in header or header.endswith(" unit bar")
    remote.carry(world)
    assert link.taken() == written(PUBLISH)
    assert dropped(world, "delivered") == []
    assert_every_conversion_is_as_the_audit_predicts(world)


class CountedText(str):
    """A text that counts how often it is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedText.comparisons += 1
        return str(self) == other

    __hash__ = str.__hash__


def test_repeated_properties_are_compared_a_few_times_each() -> None:
    """An application that publishes again what it was sent has every property of the JSON in the folder too."""
    carried_ones = tuple((CountedText(f"name{number}"), f"value{number}") for number in range(1_000))
    elements = [Element(name=str(name), text=value) for name, value in carried_ones]
    CountedText.comparisons = 0
    assert with_application_properties(carried_ones, elements) == (carried_ones, ())
    assert CountedText.comparisons <= 3 * 1_000


# -- message expiry ----------------------------------------------------------------------------------------------------

#: PUBLISH of QoS 1 to a/b with payload X, that expires after 60 s.
IN_A_MINUTE = "32 0E 0003 'a/b' 0001 05 02 0000003C 'X'"


def test_expiry_in_seconds_becomes_tenths_of_a_second(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    link = connect(world, "self")
    world.receive(link, IN_A_MINUTE, "32 0E 0003 'a/b' 0002 05 02 FFFFFFFF 'X'", "32 09 0003 'a/b' 0003 00 'X'")
    expiries = [message.descriptor.expiry for message in world.messages(DEFAULT_STREAM)]
    assert expiries == [600, MQEI_UNLIMITED, MQEI_UNLIMITED]


def test_what_is_left_of_the_expiry_is_delivered(world: World) -> None:
    """MQTT-3.3.2-6."""
    world.lose(subscribed(world, "01"))
    world.receive(connect(world, "else"), IN_A_MINUTE)
    world.now_us += 20_500_000
    link = connect(world, "self", flags="00", properties="11 FFFFFFFF")
    assert link.taken()[5:] == written("32 0E 0003 'a/b' 0001 05 02 00000028 'X'")


def test_what_has_expired_is_not_delivered(world: World) -> None:
    """MQTT-3.3.2-5."""
    world.lose(subscribed(world, "01"))
    world.receive(connect(world, "else"), IN_A_MINUTE)
    pass_seconds(world, 60)
    link = connect(world, "self", flags="00", properties="11 FFFFFFFF")
    assert link.taken()[5:] == b""


def test_the_time_between_publish_and_release_counts(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    link = connect(world, "self")
    world.receive(link, "34 0E 0003 'a/b' 0001 05 02 0000003C 'X'")
    world.now_us += 15_000_000
    world.receive(link, "62 02 0001")
    assert [message.descriptor.expiry for message in world.messages(DEFAULT_STREAM)] == [450]


def test_what_expired_before_its_release_is_put_nowhere_and_acknowledged(new_world: NewWorld) -> None:
    """MQTT-3.3.2-5, MQTT-4.3.3-13; the audit hears of a refusal."""
    world = new_world(has_broker=False)
    link = connect(world, "self")
    world.receive(link, "34 0E 0003 'a/b' 0001 05 02 00000001 'X'")
    link.taken()
    world.now_us += 1_000_000
    world.receive(link, "62 02 0001")
    assert link.taken() == written("70 02 0001")
    assert world.messages(DEFAULT_STREAM) == []
    refused = [note[5:] for note in world.notes if note[0] == NoteKind.REFUSED]
    assert refused == [("Publish", 0, 2013, "it expired before its PUBREL")]


def test_what_expired_before_its_release_replaces_what_is_retained(world: World) -> None:
    """MQTT-3.3.1-5: an older message would be the newest again."""
    publish(world, "31 06 0003 'a/b' 'R'")
    link = connect(world, "else")
    world.receive(link, "35 0E 0003 'a/b' 0001 05 02 00000001 'X'")
    pass_seconds(world, 1)
    link.taken()
    world.receive(link, "62 02 0001")
    assert link.taken() == written("70 02 0001")
    subscriber = connected(world)
    subscribe(world, subscriber, "01")
    assert subscriber.taken() == written("90 04 0001 00 01")
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_a_will_expires_as_it_says(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    world.lose(connect(world, "self", flags="06", payload="05 02 0000003C 0003 'w/t' 0001 'W'"))
    assert [message.descriptor.expiry for message in world.messages(DEFAULT_STREAM)] == [600]


def test_a_held_publish_of_version_1_does_not_expire() -> None:
    packed = ormsgpack.packb([1, 7, "a/b", False, b"header", b"payload"])
    assert HeldPublish.unpack(packed) == HeldPublish(7, "a/b", False, b"header", b"payload", 0)
