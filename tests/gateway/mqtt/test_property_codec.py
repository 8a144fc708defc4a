"""Properties by MQTT 5.0 section 2.2.2 and table 2-4: each one in each place where it may stand, and nowhere else."""

import pytest

from gateway.mqtt import property_codec
from gateway.mqtt.errors import LimitExceeded, MalformedPacket, PeerError, ProtocolViolation, UsageError
from gateway.mqtt.properties import (
    ConnackProperties,
    ConnectProperties,
    DisconnectProperties,
    PublishProperties,
    ReasonProperties,
    WillProperties,
)
from gateway.mqtt.property_codec import LONGEST_PROPERTIES_BYTES, MAXIMUM_REPEATED, PropertySection
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.wire import Fields, encode_variable_number

SECTIONS: dict[str, PropertySection] = {
    "CONNECT": property_codec.CONNECT,
    "will": property_codec.WILL,
    "CONNACK": property_codec.CONNACK,
    "PUBLISH": property_codec.PUBLISH,
    "answer": property_codec.ANSWER,
    "SUBSCRIBE": property_codec.SUBSCRIBE,
    "UNSUBSCRIBE": property_codec.UNSUBSCRIBE,
    "DISCONNECT": property_codec.DISCONNECT,
    "AUTH": property_codec.AUTH,
}

# Table 2-4, typed from the standard: bytes of one example, its field, its value, the places where it may stand.
TABLE = [
    ("01 01", "payload_format_indicator", 1, "PUBLISH will"),
    ("02 0000003C", "message_expiry_s", 60, "PUBLISH will"),
    ("03 0004 74657874", "content_type", "text", "PUBLISH will"),
    ("08 0001 72", "response_topic", "r", "PUBLISH will"),
    ("09 0002 00FF", "correlation_data", b"\x00\xff", "PUBLISH will"),
    ("0B 8001", "subscription_identifier", 128, "SUBSCRIBE"),
    ("0B FFFFFF7F", "subscription_identifiers", (268_435_455,), "PUBLISH"),
    ("11 FFFFFFFF", "session_expiry_s", 4_294_967_295, "CONNECT CONNACK DISCONNECT"),
    ("12 0002 6331", "assigned_client_identifier", "c1", "CONNACK"),
    ("13 003C", "server_keep_alive_s", 60, "CONNACK"),
    ("15 0001 6D", "authentication_method", "m", "CONNECT CONNACK AUTH"),
    ("16 0001 FF", "authentication_data", b"\xff", "CONNECT CONNACK AUTH"),
    ("17 00", "request_problem_information", False, "CONNECT"),
    ("18 00000001", "will_delay_s", 1, "will"),
    ("19 01", "request_response_information", True, "CONNECT"),
    ("1A 0001 69", "response_information", "i", "CONNACK"),
    ("1C 0001 73", "server_reference", "s", "CONNACK DISCONNECT"),
    ("1F 0001 77", "reason_string", "w", "CONNACK answer DISCONNECT AUTH"),
    ("21 0001", "receive_maximum", 1, "CONNECT CONNACK"),
    ("22 FFFF", "topic_alias_maximum", 65_535, "CONNECT CONNACK"),
    ("23 000A", "topic_alias", 10, "PUBLISH"),
    ("24 01", "maximum_qos", 1, "CONNACK"),
    ("25 00", "retain_available", False, "CONNACK"),
    ("26 0001 6E 0001 76", "user_properties", (("n", "v"),), " ".join(SECTIONS)),
    ("27 00000014", "maximum_packet_bytes", 20, "CONNECT CONNACK"),
    ("28 00", "wildcard_subscription_available", False, "CONNACK"),
    ("29 00", "subscription_identifiers_available", False, "CONNACK"),
    ("2A 00", "shared_subscription_available", False, "CONNACK"),
]
OF_BOTH = "0B"  # one identifier for two fields, in PUBLISH and in SUBSCRIBE
PLACES = [
    (place, *row)
    for row in TABLE
    for place in SECTIONS
    if place in row[3].split() or row[0][:2] != OF_BOTH or place not in ("PUBLISH", "SUBSCRIBE")
]


def _read(place: str, encoded: str) -> object:
    """The properties of a section, whose length is put in front, between bytes that are not its own."""
    data = bytes.fromhex(encoded)
    packet = b"\xff" + encode_variable_number(len(data)) + data + b"payload"
    fields = Fields(packet, 1, len(packet) - len(b"payload"))
    values = SECTIONS[place].read(fields)
    assert fields.left == 0
    return values


def _fault(place: str, encoded: str) -> PeerError:
    with pytest.raises(PeerError) as caught:
        _read(place, encoded)
    return caught.value


@pytest.mark.parametrize(("place", "encoded", "field", "value", "allowed"), PLACES)
def test_property_is_read_and_written_where_it_may_stand_and_malformed_elsewhere(
    place: str, encoded: str, field: str, value: object, allowed: str
) -> None:
    if place not in allowed.split():
        assert isinstance(_fault(place, encoded), MalformedPacket)
        return
    values = _read(place, encoded)
    assert getattr(values, field) == value
    data = bytes.fromhex(encoded)
    assert SECTIONS[place].encode(values) == bytes((len(data),)) + data  # type: ignore[arg-type]  # of its own place


@pytest.mark.parametrize(("encoded", "field", "value", "allowed"), TABLE)
def test_property_cut_short_is_malformed(encoded: str, field: str, value: object, allowed: str) -> None:
    data = bytes.fromhex(encoded)
    for size in range(1, len(data)):
        assert isinstance(_fault(allowed.split(maxsplit=1)[0], data[:size].hex()), MalformedPacket), (field, value)


@pytest.mark.parametrize(("encoded", "field", "value", "allowed"), TABLE)
def test_property_that_stands_twice_is_a_violation_unless_it_may_repeat(
    encoded: str, field: str, value: object, allowed: str
) -> None:
    for place in allowed.split():
        if field in ("user_properties", "subscription_identifiers"):
            assert isinstance(value, tuple)
            assert getattr(_read(place, encoded + encoded), field) == value + value
        else:
            assert isinstance(_fault(place, encoded + encoded), ProtocolViolation)


def test_user_properties_keep_their_order_and_repeated_names() -> None:
    """MQTT-3.1.3-10, MQTT-3.3.2-18: the order is the sender's."""
    values = _read("PUBLISH", "26 0001 62 0001 31 26 0001 61 0001 32 26 0001 62 0001 33 26 0000 0000")
    assert isinstance(values, PublishProperties)
    assert values.user_properties == (("b", "1"), ("a", "2"), ("b", "3"), ("", ""))


@pytest.mark.parametrize("place", SECTIONS)
def test_no_properties_are_a_length_of_zero(place: str) -> None:
    """MQTT-2.2.2-1."""
    assert _read(place, "") is None
    assert SECTIONS[place].encode(None) == b"\x00"


@pytest.mark.parametrize(
    "identifier", ["00", "04", "05", "0A", "10", "14", "1B", "1D", "20", "2B", "7F", "8001", "FF7F"]
)
@pytest.mark.parametrize("place", SECTIONS)
def test_unknown_property_is_malformed(place: str, identifier: str) -> None:
    assert isinstance(_fault(place, identifier + "01"), MalformedPacket)


@pytest.mark.parametrize(
    ("place", "encoded"),
    [
        ("PUBLISH", "01 02"),
        ("CONNECT", "17 02"),
        ("CONNECT", "19 FF"),
        ("CONNACK", "24 02"),
        ("CONNACK", "25 02"),
        ("CONNECT", "21 0000"),
        ("CONNECT", "27 00000000"),
        ("SUBSCRIBE", "0B 00"),
        ("PUBLISH", "0B 00"),
    ],
)
def test_value_that_the_standard_excludes_is_a_violation(place: str, encoded: str) -> None:
    assert isinstance(_fault(place, encoded), ProtocolViolation)


@pytest.mark.parametrize(
    ("place", "encoded"),
    [
        ("SUBSCRIBE", "0B 8000"),  # 0 in two bytes (MQTT-1.5.5-1)
        ("SUBSCRIBE", "0B 8080808001"),
        ("PUBLISH", "8100 01"),  # the identifier 1 in two bytes
        ("PUBLISH", "03 0001 FF"),  # MQTT-3.3.2-19
        ("PUBLISH", "08 0003 EDA080"),  # MQTT-3.3.2-13, MQTT-1.5.4-1
        ("PUBLISH", "26 0001 00 0001 76"),  # MQTT-1.5.7-1, MQTT-1.5.4-2
        ("PUBLISH", "26 0001 6E 0001 FF"),  # MQTT-1.5.7-1
        ("answer", "1F 0001 80"),
    ],
)
def test_value_that_is_not_of_its_type_is_malformed(place: str, encoded: str) -> None:
    assert isinstance(_fault(place, encoded), MalformedPacket)


@pytest.mark.parametrize("encoded", ["05 26 0001 6E 00", "80", "8000", "FF FF FF FF 7F", "02 26"])
def test_length_that_reaches_past_the_packet_or_is_none_is_malformed(encoded: str) -> None:
    data = bytes.fromhex(encoded)
    with pytest.raises(MalformedPacket):
        property_codec.ANSWER.read(Fields(data + b"\x00" * 9, 0, len(data)))


def test_flood_of_user_properties_is_refused() -> None:
    one = "26 0000 0000"
    values = _read("PUBLISH", one * MAXIMUM_REPEATED)
    assert isinstance(values, PublishProperties)
    assert len(values.user_properties) == MAXIMUM_REPEATED
    fault = _fault("PUBLISH", one * (MAXIMUM_REPEATED + 1))
    assert isinstance(fault, LimitExceeded)
    assert fault.reason_code is ReasonCode.QUOTA_EXCEEDED


def test_properties_longer_than_we_take_are_refused_before_they_are_read() -> None:
    data = encode_variable_number(LONGEST_PROPERTIES_BYTES + 1)
    with pytest.raises(LimitExceeded) as caught:
        property_codec.PUBLISH.read(Fields(data, 0, len(data)))
    assert caught.value.reason_code is ReasonCode.PACKET_TOO_LARGE


@pytest.mark.parametrize(
    ("section", "values"),
    [
        (property_codec.CONNECT, ConnectProperties(receive_maximum=65_536)),
        (property_codec.WILL, WillProperties(will_delay_s=1 << 32)),
        (property_codec.DISCONNECT, DisconnectProperties(session_expiry_s=-1)),
        (property_codec.PUBLISH, PublishProperties(subscription_identifiers=(268_435_456,))),
        (property_codec.ANSWER, ReasonProperties(reason_string="a\0")),
        (property_codec.PUBLISH, PublishProperties(correlation_data=bytes(65_536))),
    ],
)
def test_value_that_cannot_be_encoded_is_our_callers_fault(section: PropertySection, values: object) -> None:
    with pytest.raises(UsageError):
        section.encode(values)  # type: ignore[arg-type]  # of its own section


def test_what_is_as_if_absent_is_not_written() -> None:
    assert property_codec.CONNECT.encode(ConnectProperties()) == b"\x00"
    assert property_codec.CONNACK.encode(ConnackProperties(receive_maximum=65_535, maximum_qos=2)) == b"\x00"
    assert property_codec.PUBLISH.encode(PublishProperties(payload_format_indicator=0)) == bytes.fromhex("02 01 00")


def test_more_subscription_identifiers_than_anybody_has_are_refused() -> None:
    many = bytes.fromhex("0B01") * (MAXIMUM_REPEATED + 1)
    data = encode_variable_number(len(many)) + many
    with pytest.raises(LimitExceeded, match="too many subscription_identifiers"):
        property_codec.PUBLISH.read(Fields(data, 0, len(data)))
