"""Encoders against bytes written by hand from the examples of MQTT 3.1.1 chapter 3."""

import pytest

from gateway.mqtt import packets
from gateway.mqtt.errors import UsageError
from gateway.mqtt.levels import PacketType
from gateway.mqtt.properties import (
    ConnackProperties,
    DisconnectProperties,
    PublishProperties,
    ReasonProperties,
)

ENCODED = {
    "20 02 00 00": packets.connack(False, 0),
    "20 02 01 00": packets.connack(True, 0),
    "20 02 00 05": packets.connack(False, 5),
    "30 03 0001 61": packets.publish("a", b""),
    "32 07 0003 612F62 000A": packets.publish("a/b", b"", qos=1, packet_identifier=10),
    "3D 0B 0003 612F62 FFFF 74657374": packets.publish(
        "a/b", b"test", qos=2, retain=True, duplicate=True, packet_identifier=65_535
    ),
    "40 02 000A": packets.puback(10),
    "50 02 000A": packets.pubrec(10),
    "62 02 000A": packets.pubrel(10),
    "6A 02 000A": packets.pubrel(10, duplicate=True, level=3),
    "70 02 000A": packets.pubcomp(10),
    "90 05 000A 00 02 80": packets.suback(10, bytes((0, 2, 0x80))),
    "B0 02 000A": packets.unsuback(10),
    "D0 00": packets.PINGRESP,
}


@pytest.mark.parametrize("expected", ENCODED)
def test_packet_is_encoded_as_in_the_specification(expected: str) -> None:
    """MQTT-2.2.2-1, MQTT-2.3.1-5, MQTT-3.9.3-2, MQTT-4.3.1-1."""
    assert ENCODED[expected] == bytes.fromhex(expected)


def test_every_packet_type_of_a_server_has_a_vector() -> None:
    """AUTH is none of ours: the gateway has no authentication methods."""
    of_client = {PacketType.CONNECT, PacketType.SUBSCRIBE, PacketType.UNSUBSCRIBE, PacketType.PINGREQ, PacketType.AUTH}
    encoded = {PacketType(bytes.fromhex(expected)[0] >> 4) for expected in (*ENCODED, *ENCODED_AT_LEVEL_5)}
    assert encoded == set(PacketType) - of_client


def test_repeated_pubrel_has_no_duplicate_flag_in_3_1_1() -> None:
    assert packets.pubrel(10, duplicate=True) == bytes.fromhex("62 02 000A")
    assert packets.pubrel(10, duplicate=False, level=3) == bytes.fromhex("62 02 000A")


def test_header_of_a_publish_counts_the_payload_that_follows() -> None:
    assert packets.publish_header("a/b", 314, qos=1, packet_identifier=10) == bytes.fromhex("32 C1 02 0003 612F62 000A")


@pytest.mark.parametrize("packet_identifier", [0, -1, 65_536])
def test_packet_identifier_out_of_range_is_our_callers_fault(packet_identifier: int) -> None:
    for encode in (packets.puback, packets.pubrec, packets.pubrel, packets.pubcomp, packets.unsuback):
        with pytest.raises(UsageError, match="is not a packet identifier"):
            encode(packet_identifier)
    with pytest.raises(UsageError, match="is not a packet identifier"):
        packets.publish("a", b"", qos=1, packet_identifier=packet_identifier)


def test_what_mqtt_cannot_express_is_our_callers_fault() -> None:
    with pytest.raises(UsageError, match="QoS"):
        packets.publish("a", b"", qos=3, packet_identifier=1)
    with pytest.raises(UsageError, match="duplicate"):
        packets.publish("a", b"", duplicate=True)
    with pytest.raises(UsageError, match="no session"):
        packets.connack(True, 5)


ENCODED_AT_LEVEL_5 = {
    "20 03 01 00 00": packets.connack(True, 0, level=5),
    "20 06 00 84 03 21 0001": packets.connack(False, 0x84, level=5, properties=ConnackProperties(receive_maximum=1)),
    "30 06 0001 61 00 6869": packets.publish("a", b"hi", level=5),
    "32 0A 0000 000A 03 23 0001 6869": packets.publish(
        "", b"hi", qos=1, packet_identifier=10, level=5, properties=PublishProperties(topic_alias=1)
    ),
    "40 03 000A 10": packets.puback(10, 0x10),
    "50 04 000A 00 00": packets.pubrec(10, 0, ReasonProperties()),
    "62 03 000A 92": packets.pubrel(10, reason_code=0x92),
    "70 08 000A 00 04 1F 0001 77": packets.pubcomp(10, 0, ReasonProperties("w")),
    "90 05 000A 00 02 87": packets.suback(10, b"\x02\x87", level=5),
    "B0 05 000A 00 00 11": packets.unsuback(10, b"\x00\x11", level=5),
    "E0 00": packets.disconnect(0),
    "E0 01 04": packets.disconnect(4),
    "E0 07 00 05 11 0000003C": packets.disconnect(0, DisconnectProperties(session_expiry_s=60)),
}


@pytest.mark.parametrize("expected", ENCODED_AT_LEVEL_5)
def test_packet_of_mqtt_5_is_encoded_as_in_the_specification(expected: str) -> None:
    assert ENCODED_AT_LEVEL_5[expected] == bytes.fromhex(expected)
