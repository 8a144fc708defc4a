"""What leaves: in the form of the level, within what the client takes, with topic aliases."""

import pytest

from gateway.mqtt.errors import UsageError
from gateway.mqtt.properties import ConnackProperties, DisconnectProperties, PublishProperties, ReasonProperties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topic_aliases import LONGEST_NAMES_BYTES, MAXIMUM_OUTGOING
from gateway.mqtt.writer import PacketWriter
from tests.reason_strings import plain

WHY = ReasonProperties("why", (("n", "v"),))
ANSWERS = {
    "PUBACK": lambda writer: writer.puback(10, ReasonCode.QUOTA_EXCEEDED, WHY),
    "PUBREC": lambda writer: writer.pubrec(10, ReasonCode.QUOTA_EXCEEDED, WHY),
    "SUBACK": lambda writer: writer.suback(10, b"\x01\x87", WHY),
    "UNSUBACK": lambda writer: writer.unsuback(10, b"\x00\x11", WHY),
}

# Each answer whole, without the user property, and without both; typed from MQTT 5.0 sections 3.4 to 3.11.
SIZES = {
    "PUBACK": (
        "40 11 000A 97 0D 1F 0003 776879 26 0001 6E 0001 76",
        "40 0A 000A 97 06 1F 0003 776879",
        "40 03 000A 97",
    ),
    "PUBREC": (
        "50 11 000A 97 0D 1F 0003 776879 26 0001 6E 0001 76",
        "50 0A 000A 97 06 1F 0003 776879",
        "50 03 000A 97",
    ),
    "SUBACK": (
        "90 12 000A 0D 1F 0003 776879 26 0001 6E 0001 76 0187",
        "90 0B 000A 06 1F 0003 776879 0187",
        "90 05 000A 00 0187",
    ),
    "UNSUBACK": (
        "B0 12 000A 0D 1F 0003 776879 26 0001 6E 0001 76 0011",
        "B0 0B 000A 06 1F 0003 776879 0011",
        "B0 05 000A 00 0011",
    ),
}


@pytest.mark.parametrize("packet", ANSWERS)
def test_answer_explains_itself_as_far_as_the_client_takes_it(packet: str) -> None:
    """The reason string: MQTT-3.4.2-2, MQTT-3.5.2-2, MQTT-3.9.2-1, MQTT-3.11.2-1.

    The user property: MQTT-3.4.2-3, MQTT-3.5.2-3, MQTT-3.9.2-2, MQTT-3.11.2-2. The identifier of what is answered, and
    the codes in its order: MQTT-2.2.1-6, MQTT-3.8.4-2, MQTT-3.9.3-1, MQTT-3.10.4-5, MQTT-3.11.3-1.
    """
    for expected in SIZES[packet]:
        data = bytes.fromhex(expected)
        assert ANSWERS[packet](PacketWriter(5, maximum_packet_bytes=len(data))) == data
    assert ANSWERS[packet](PacketWriter(5, maximum_packet_bytes=len(bytes.fromhex(SIZES[packet][2])) - 1)) == b""
    assert ANSWERS[packet](PacketWriter(5)) == bytes.fromhex(SIZES[packet][0])


@pytest.mark.parametrize("packet", ANSWERS)
def test_answer_explains_nothing_to_a_client_that_asked_for_none(packet: str) -> None:
    """MQTT-3.1.2-29."""
    writer = PacketWriter(5, request_problem_information=False)
    assert ANSWERS[packet](writer) == bytes.fromhex(SIZES[packet][2])


def test_connack_and_disconnect_explain_themselves_to_every_client() -> None:
    """MQTT-3.1.2-29 leaves these two out."""
    writer = PacketWriter(5, request_problem_information=False)
    assert writer.disconnect(0x98, DisconnectProperties(reason_string="why")) == bytes.fromhex(
        "E0 08 98 06 1F 0003 776879"
    )
    connack = writer.connack(False, 0x87, ConnackProperties(reason_string="why"))
    assert connack == bytes.fromhex("20 09 00 87 06 1F 0003 776879")


def test_success_is_said_in_the_short_form_at_every_level() -> None:
    """MQTT-2.2.1-5: with the identifier of the packet that is answered."""
    for level in (3, 4, 5):
        writer = PacketWriter(level)
        assert writer.puback(10) == bytes.fromhex("40 02 000A")
        assert writer.pubrec(10) == bytes.fromhex("50 02 000A")
        assert writer.pubrel(10) == bytes.fromhex("62 02 000A")
        assert writer.pubcomp(10) == bytes.fromhex("70 02 000A")


def test_identifier_that_is_not_found_is_said_so() -> None:
    """MQTT-3.6.2-1, MQTT-3.7.2-1. PUBCOMP explains it as far as the client takes it, and PUBREL not at all.

    MQTT-3.6.2-2 and -3, MQTT-3.7.2-2 and -3.
    """
    writer = PacketWriter(5, maximum_packet_bytes=20)
    assert writer.pubrel(10, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND) == bytes.fromhex("62 03 000A 92")
    assert writer.pubcomp(10, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND) == bytes.fromhex("70 03 000A 92")
    explained = PacketWriter(5).pubcomp(10, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND)
    assert explained[7:9] == len(explained[9:]).to_bytes(2, "big")
    assert (explained[4], explained[6]) == (0x92, 0x1F)


def test_answers_before_mqtt_5_have_no_reason_codes_of_their_own() -> None:
    for level in (3, 4):
        writer = PacketWriter(level)
        assert writer.suback(10, b"\x01\x80", WHY) == bytes.fromhex("90 04 000A 01 80")
        assert writer.unsuback(10, b"\x00\x11", WHY) == bytes.fromhex("B0 02 000A")
        assert writer.disconnect(ReasonCode.SERVER_SHUTTING_DOWN) == b""
    assert PacketWriter(3).pubrel(10, duplicate=True) == bytes.fromhex("6A 02 000A")
    assert PacketWriter(5).pubrel(10, duplicate=True) == bytes.fromhex("62 02 000A")


def test_server_sends_no_session_expiry_on_disconnect() -> None:
    """MQTT-3.14.2-2."""
    properties = DisconnectProperties(session_expiry_s=60, server_reference="s")
    assert plain(PacketWriter(5).disconnect(0x9D, properties)) == bytes.fromhex("E0 06 9D 04 1C 0001 73")


def test_disconnect_leaves_out_what_does_not_fit() -> None:
    """MQTT-3.14.2-3, MQTT-3.14.2-4."""
    properties = DisconnectProperties(reason_string="why", user_properties=(("n", "v"),))
    for expected in ("E0 0F 98 0D 1F 0003 776879 26 0001 6E 0001 76", "E0 08 98 06 1F 0003 776879", "E0 01 98"):
        data = bytes.fromhex(expected)
        assert PacketWriter(5, maximum_packet_bytes=len(data)).disconnect(0x98, properties) == data
    assert PacketWriter(5, maximum_packet_bytes=2).disconnect(0x98) == b""


# -- PUBLISH -----------------------------------------------------------------------------------------------------------


def test_publish_has_the_properties_of_its_level() -> None:
    """MQTT-2.2.1-2: and no packet identifier at QoS 0."""
    properties = PublishProperties(payload_format_indicator=0, subscription_identifiers=(1, 128), content_type="text")
    with_properties = "32 18 0001 61 000A 0E 01 00 0B 01 0B 8001 03 0004 74657874"
    header = PacketWriter(5).publish_header("a", 4, qos=1, packet_identifier=10, properties=properties)
    assert header == bytes.fromhex(with_properties)
    assert PacketWriter(5).publish_header("a", 4) == bytes.fromhex("30 08 0001 61 00")
    assert PacketWriter(4).publish_header("a", 4, properties=properties) == bytes.fromhex("30 07 0001 61")


def test_publish_larger_than_the_client_takes_is_not_made() -> None:
    """MQTT-3.1.2-24, MQTT-3.1.2-25: the caller drops the message; a packet of exactly the maximum is sent."""
    writer = PacketWriter(5, maximum_packet_bytes=20)
    assert writer.publish_header("a", 14) == bytes.fromhex("30 12 0001 61 00")
    assert writer.publish_header("a", 15) is None
    assert writer.publish_header("a", 12, qos=2, packet_identifier=1) == bytes.fromhex("34 12 0001 61 0001 00")
    assert writer.publish_header("a", 13, qos=2, packet_identifier=1) is None
    assert (writer.takes(20), writer.takes(21)) == (True, False)


def test_topic_gets_an_alias_and_then_goes_by_it_alone() -> None:
    writer = PacketWriter(5, topic_alias_maximum=2)
    assert writer.publish_header("site", 0) == bytes.fromhex("30 0A 0004 73697465 03 23 0001")
    assert writer.publish_header("site", 0) == bytes.fromhex("30 06 0000 03 23 0001")
    with_content_type = bytes.fromhex("30 0D 0000 0A 23 0001 03 0004 74657874")
    assert writer.publish_header("site", 0, properties=PublishProperties(content_type="text")) == with_content_type


def test_aliases_do_not_go_beyond_the_clients_maximum() -> None:
    """MQTT-3.1.2-26, MQTT-3.3.2-11: later topics go without; MQTT-3.3.2-8: the first alias is 1."""
    writer = PacketWriter(5, topic_alias_maximum=1)
    writer.publish_header("site", 0)
    assert writer.publish_header("room", 0) == bytes.fromhex("30 07 0004 726F6F6D 00")
    assert writer.publish_header("site", 0) == bytes.fromhex("30 06 0000 03 23 0001")


def test_client_that_takes_no_aliases_gets_none() -> None:
    """MQTT-3.1.2-27."""
    writer = PacketWriter(5)
    for _ in range(2):
        assert writer.publish_header("site", 0) == bytes.fromhex("30 07 0004 73697465 00")


def test_short_topic_is_not_worth_an_alias() -> None:
    assert PacketWriter(5, topic_alias_maximum=9).publish_header("abc", 0) == bytes.fromhex("30 06 0003 616263 00")


def test_alias_is_not_kept_when_its_packet_is_not_made() -> None:
    writer = PacketWriter(5, topic_alias_maximum=9, maximum_packet_bytes=20)
    assert writer.publish_header("site", 100) is None
    assert writer.publish_header("site", 11) == bytes.fromhex("30 12 0004 73697465 00")  # no room for the alias
    assert writer.publish_header("site", 0) == bytes.fromhex("30 0A 0004 73697465 03 23 0001")


def test_table_of_aliases_is_bounded_in_number_and_bytes() -> None:
    writer = PacketWriter(5, topic_alias_maximum=65_535)
    for number in range(MAXIMUM_OUTGOING):
        writer.publish_header(f"topic {number}", 0)
    late = writer.publish_header("a late topic", 0)
    assert late == bytes.fromhex("30 0F 000C") + b"a late topic\x00"
    long = "n" * (LONGEST_NAMES_BYTES // 4)
    writer = PacketWriter(5, topic_alias_maximum=2)
    assert writer.publish_header(long, 0) is not None
    last = writer.publish_header("site", 0)
    assert last == bytes.fromhex("30 07 0004 73697465 00")


def test_caller_gives_no_aliases() -> None:
    with pytest.raises(UsageError, match="aliases itself"):
        PacketWriter(5).publish_header("a", 0, properties=PublishProperties(topic_alias=1))
