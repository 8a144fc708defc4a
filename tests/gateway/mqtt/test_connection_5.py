"""What a server receives behind a CONNECT of MQTT 5.0: vectors of chapter 3, cut anywhere."""

from collections.abc import Callable

import pytest

from gateway.mqtt.connection import Connection
from gateway.mqtt.errors import LimitExceeded, MalformedPacket, ProtocolViolation
from gateway.mqtt.events import (
    DeliveryAcknowledged,
    DeliveryCompleted,
    DeliveryReceived,
    DeliveryRefused,
    DisconnectReceived,
    Event,
    PingReceived,
    PublishReceived,
    ReleaseReceived,
    SubscribeReceived,
    SubscriptionOptions,
    UnsubscribeReceived,
    Violated,
)
from gateway.mqtt.levels import PacketType
from gateway.mqtt.outgoing_flows import OutgoingFlows
from gateway.mqtt.properties import (
    DisconnectProperties,
    PublishProperties,
    ReasonProperties,
    SubscribeProperties,
    UnsubscribeProperties,
)
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topic_aliases import LONGEST_NAMES_BYTES
from tests.reason_strings import plain

OpenConnection = Callable[..., Connection]
Feed = Callable[[Connection, bytes, int], list[Event]]
PIECES = (1, 2, 3, 7, 1_000_000)
SESSION_EXPIRES_LATER = bytes.fromhex("10 14 0004 4D515454 05 02 003C 05 11 00000001 0002 6331")


def _published(header: str, payload: str, topic: str, properties: PublishProperties | None) -> tuple[str, Event]:
    data = bytes.fromhex(header)
    qos = data[0] >> 1 & 3
    event = PublishReceived(
        topic, bytes.fromhex(payload), qos, data[0] & 1 != 0, data[0] & 8 != 0, 10 if qos else 0, data, properties
    )
    return header + payload, event


VECTORS: list[tuple[str, Event]] = [
    _published("32 08 0003 612F62 000A 00", "", "a/b", None),  # section 3.3.2.4, the example
    _published("30 08 0003 612F62 00", "6869", "a/b", None),
    _published("31 08 0003 612F62 00", "0000", "a/b", None),
    _published("3D 0A 0003 612F62 000A 00", "3030", "a/b", None),
    _published("30 C2 02 0001 61 00", "5A" * 318, "a", None),
    _published("30 04 0001 61 00", "", "a", None),
    _published("30 09 0006 C3A4EFBBBF2F 00", "", "ä\ufeff/", None),  # MQTT-1.5.4-3
    _published(
        "32 2E 0001 61 000A 26 01 01 02 0000003C 08 0001 72 09 0002 00FF 26 0001 6E 0001 76 26 0001 6E 0002 7632"
        " 03 0004 74657874",
        "6869",
        "a",
        PublishProperties(
            payload_format_indicator=1,
            message_expiry_s=60,
            response_topic="r",
            correlation_data=b"\x00\xff",
            user_properties=(("n", "v"), ("n", "v2")),
            content_type="text",
        ),
    ),
    (
        "82 0F 000A 00 0003 612F62 01 0003 632F64 02",
        SubscribeReceived(
            10,
            (("a/b", 1), ("c/d", 2)),
            (bytes.fromhex("0003 612F62 01"), bytes.fromhex("0003 632F64 02")),
            (SubscriptionOptions(), SubscriptionOptions()),
        ),
    ),
    (
        "82 14 000A 09 0B 01 26 0001 6E 0001 76 0001 61 2E 0001 62 10",
        SubscribeReceived(
            10,
            (("a", 2), ("b", 0)),
            (bytes.fromhex("0001 61 2E"), bytes.fromhex("0001 62 10")),
            (SubscriptionOptions(True, True, 2), SubscriptionOptions(False, False, 1)),
            SubscribeProperties(1, (("n", "v"),)),
        ),
    ),
    (
        "82 12 000A 00 000C 2473686172652F672F612F23 01",
        SubscribeReceived(
            10,
            (("$share/g/a/#", 1),),
            (bytes.fromhex("000C 2473686172652F672F612F23 01"),),
            (SubscriptionOptions(),),
        ),
    ),
    (
        "A2 0D 000A 00 0003 612F62 0003 632F64",
        UnsubscribeReceived(10, ("a/b", "c/d"), (bytes.fromhex("0003 612F62"), bytes.fromhex("0003 632F64"))),
    ),
    (
        "A2 0D 000A 07 26 0001 6E 0001 76 0001 61",
        UnsubscribeReceived(10, ("a",), (bytes.fromhex("0001 61"),), UnsubscribeProperties((("n", "v"),))),
    ),
    ("62 02 000A", ReleaseReceived(10)),
    ("62 03 000A 00", ReleaseReceived(10)),
    ("62 04 000A 92 00", ReleaseReceived(10)),
    ("62 08 000A 00 04 1F 0001 77", ReleaseReceived(10)),
    ("C0 00", PingReceived()),
    ("E0 00", DisconnectReceived()),
    ("E0 01 04", DisconnectReceived(4)),
    ("E0 02 80 00", DisconnectReceived(0x80)),
    ("E0 07 00 05 11 00000000", DisconnectReceived(0, DisconnectProperties(session_expiry_s=0))),
    ("E0 06 98 04 1F 0001 77", DisconnectReceived(0x98, DisconnectProperties(reason_string="w"))),
]

MALFORMED = {
    "SUBACK of a client, with flags": "91 04 000A 00 00",
    "UNSUBACK of a client, with flags": "B8 04 000A 00 00",
    "section 1.5.4: topic name with U+0001": "30 05 0002 6101 00",
    "section 1.5.4: topic filter with U+009F": "82 09 000A 00 0003 61C29F 00",
    "section 1.5.4: user property with U+FFFF": "30 0E 0001 61 0A 26 0001 6E 0004 61EFBFBF",
    "MQTT-2.1.3-1: PUBACK with flags": "42 02 0001",
    "MQTT-2.1.3-1: PINGREQ with flags": "C1 00",
    "MQTT-3.3.1-2: DUP with QoS 0": "38 04 0001 61 00",
    "MQTT-3.3.1-4: QoS 3": "36 06 0001 61 0001 00",
    "MQTT-3.3.2-1: topic name not UTF-8": "30 05 0002 C328 00",
    "MQTT-4.7.3-2: topic name with U+0000": "30 05 0002 6100 00",
    "MQTT-3.3.2-2: topic name with '#'": "30 06 0003 612F23 00",
    "MQTT-3.3.2-2: topic name with '+'": "30 06 0003 2B2F61 00",
    "MQTT-2.2.2-1: PUBLISH without the length of its properties": "30 03 0001 61",
    "PUBLISH of QoS 1 without a packet identifier": "32 03 0001 61",
    "PUBLISH whose properties reach past it": "30 05 0001 61 02 01",
    "PUBLISH with a property of CONNECT": "30 07 0001 61 03 21 0001",
    "MQTT-1.5.5-1: remaining length of PUBLISH in two bytes": "30 84 00 0001 61 00",
    "MQTT-1.5.5-1: remaining length of PUBACK in two bytes": "40 82 00 0001",
    "MQTT-1.5.5-1: remaining length of PINGREQ in three bytes": "C0 80 80 00",
    "MQTT-3.6.1-1: PUBREL with flags": "6A 02 000A",
    "PUBACK of one byte": "40 01 00",
    "PUBACK with bytes behind its properties": "40 05 0001 00 00 00",
    "PUBACK whose properties reach past it": "40 04 0001 00 01",
    "MQTT-3.8.1-1: SUBSCRIBE with flags": "80 07 000A 00 0001 61 00",
    "MQTT-3.8.1-1: SUBSCRIBE with DUP": "8A 07 000A 00 0001 61 00",
    "MQTT-3.8.3-1: topic filter not UTF-8": "82 07 000A 00 0001 FF 00",
    "MQTT-3.8.3-5: reserved bit 40": "82 07 000A 00 0001 61 40",
    "MQTT-3.8.3-5: reserved bit 80": "82 07 000A 00 0001 61 80",
    "SUBSCRIBE without the last options": "82 06 000A 00 0001 61",
    "SUBSCRIBE without the length of its properties": "82 06 000A 0001 61 00",
    "MQTT-4.7.3-1: empty topic filter": "82 06 000A 00 0000 00",
    "MQTT-4.7.1-1: '#' not last": "82 09 000A 00 0003 232F61 00",
    "MQTT-4.7.1-2: 'a+'": "82 08 000A 00 0002 612B 00",
    "MQTT-3.10.1-1: UNSUBSCRIBE with flags": "A0 06 000A 00 0001 61",
    "MQTT-3.10.3-1: topic filter of UNSUBSCRIBE not UTF-8": "A2 06 000A 00 0001 FF",
    "MQTT-3.14.1-1: DISCONNECT with flags": "E1 00",
    "DISCONNECT with a property of another packet": "E0 04 00 02 01 00",
    "AUTH whose properties reach past it": "F0 02 18 05",
}

VIOLATIONS = {
    "MQTT-4.8.2-1: empty ShareName": "82 0F 000A 00 0009 2473686172652F2F61 00",
    "MQTT-4.8.2-2: ShareName with '+'": "82 10 000A 00 000A 2473686172652F2B2F61 00",
    "MQTT-4.8.2-2: ShareName without a filter": "82 0E 000A 00 0008 2473686172652F67 00",
    "MQTT-4.8.2-2: ShareName with an empty filter": "82 0F 000A 00 0009 2473686172652F672F 00",
    "MQTT-4.8.2-1: empty ShareName in UNSUBSCRIBE": "A2 0E 000A 00 0009 2473686172652F2F61",
    "CONNACK of a client, with flags": "21 03 00 00 00",
    "SUBACK of a client, without flags": "90 04 000A 00 00",
    "PINGRESP of a client, with flags": "D1 00",
    "type 0": "00 00",
    "MQTT-3.1.0-2: second CONNECT": "10 0F 0004 4D515454 05 02 003C 00 0002 6331",
    "CONNACK": "20 03 00 00 00",
    "SUBACK": "90 04 0001 00 00",
    "UNSUBACK": "B0 04 0001 00 00",
    "PINGRESP": "D0 00",
    "MQTT-2.2.1-3: PUBLISH with the packet identifier 0": "32 06 0001 61 0000 00",
    "MQTT-2.2.1-3: PUBACK with the packet identifier 0": "40 03 0000 00",
    "MQTT-4.7.3-1: empty topic name without alias": "30 03 0000 00",
    "MQTT-3.3.4-6: subscription identifier": "30 06 0001 61 02 0B 01",
    "payload format indicator 2": "30 06 0001 61 02 01 02",
    "MQTT-3.3.2-14: response topic with a wildcard": "30 08 0001 61 04 08 0001 23",
    "empty response topic": "30 07 0001 61 03 08 0000",
    "MQTT-3.4.2-1: PUBACK with an unknown reason code": "40 03 0001 FF",
    "MQTT-3.5.2-1: PUBREC with a reason code of PUBREL": "50 03 0001 92",
    "MQTT-3.6.2-1: PUBREL with a reason code of PUBACK": "62 03 0001 80",
    "MQTT-3.7.2-1: PUBCOMP with a reason code of PUBACK": "70 03 0001 10",
    "MQTT-3.8.3-2: SUBSCRIBE without a topic filter": "82 03 000A 00",
    "SUBSCRIBE with QoS 3": "82 07 000A 00 0001 61 03",
    "SUBSCRIBE with retain handling 3": "82 07 000A 00 0001 61 30",
    "MQTT-3.8.3-4: no local on a shared subscription": "82 10 000A 00 000A 2473686172652F672F61 04",
    "subscription identifier 0": "82 09 000A 02 0B 00 0001 61 00",
    "MQTT-3.10.3-2: UNSUBSCRIBE without a topic filter": "A2 03 000A 00",
    "MQTT-3.14.2-1: DISCONNECT with a reason code of a server": "E0 01 8E",
    "MQTT-3.14.2-1: DISCONNECT with an unknown reason code": "E0 01 05",
    "session that was to end kept by DISCONNECT": "E0 07 00 05 11 00000001",
    "MQTT-4.12.0-7: AUTH": "F0 00",
    "MQTT-3.15.1-1: AUTH with flags": "F1 00",
    "MQTT-4.12.1-1: AUTH that authenticates again": "F0 06 19 04 15 0001 6D",
    "MQTT-3.15.2-1: AUTH with an unknown reason code": "F0 01 17",
}


@pytest.mark.parametrize(("encoded", "expected"), VECTORS)
def test_packet_gives_its_event_in_pieces_of_every_size(
    encoded: str, expected: Event, open_connection: OpenConnection, feed: Feed
) -> None:
    data = bytes.fromhex(encoded)
    for piece_bytes in PIECES:
        assert feed(open_connection(5), data, piece_bytes) == [expected]


@pytest.mark.parametrize(("encoded", "expected"), [each for each in VECTORS if each[0][0] != "E"])
def test_packet_gives_its_event_between_others(encoded: str, expected: Event, open_connection: OpenConnection) -> None:
    data = bytes.fromhex(encoded)
    connection = open_connection(5)
    assert connection.receive_data(b"\xc0\x00" + data + b"\xc0\x00" + data[:1]) == [
        PingReceived(),
        expected,
        PingReceived(),
    ]


@pytest.mark.parametrize("piece_bytes", [1, 1000])
@pytest.mark.parametrize(
    ("encoded", "error"),
    [(encoded, MalformedPacket) for encoded in MALFORMED.values()]
    + [(encoded, ProtocolViolation) for encoded in VIOLATIONS.values()],
    ids=[*MALFORMED, *VIOLATIONS],
)
def test_fault_of_the_peer_is_the_last_event_and_told_by_disconnect(
    encoded: str, error: type[Exception], piece_bytes: int, open_connection: OpenConnection, feed: Feed
) -> None:
    """MQTT-4.13.1-1, MQTT-3.14.4-1: DISCONNECT with 81 or 82, once."""
    connection = open_connection(5)
    ping, violated = feed(connection, b"\xc0\x00" + bytes.fromhex(encoded) + b"\xc0\x00", piece_bytes)
    assert ping == PingReceived()
    assert isinstance(violated, Violated)
    assert type(violated.error) is error
    expected = "E0 01 81" if error is MalformedPacket else "E0 01 82"
    assert plain(connection.closing_packet(violated.error.reason_code)) == bytes.fromhex(expected)
    assert connection.closing_packet(violated.error.reason_code) == b""
    assert connection.receive_data(b"\xc0\x00") == []


@pytest.mark.parametrize(
    ("encoded", "expected"), [each for each in VECTORS if each[0][0] in "8A" or " 26 01 01 " in each[0]]
)
def test_packet_whose_length_is_too_short_is_read_no_further(
    encoded: str, expected: Event, open_connection: OpenConnection
) -> None:
    """The right bytes stand behind the packet: a reader that looked past its end would find them."""
    data = bytes.fromhex(encoded)
    for size in range(data[1]):
        assert expected not in open_connection(5).receive_data(bytes((data[0], size)) + data[2:])


@pytest.mark.parametrize("piece_bytes", [1, 1000])
def test_packet_larger_than_announced_is_told_so(piece_bytes: int, open_connection: OpenConnection, feed: Feed) -> None:
    """MQTT-3.2.2-15: the maximum counts the fixed header too."""
    connection = open_connection(5, maximum_packet_bytes=20)
    longest, longer = bytes.fromhex("30 12 0001 61 00") + bytes(14), bytes.fromhex("30 13 0001 61 00") + bytes(15)
    assert (len(longest), len(longer)) == (20, 21)
    published, violated = feed(connection, longest + longer, piece_bytes)
    assert isinstance(published, PublishReceived)
    assert isinstance(violated, Violated)
    assert isinstance(violated.error, LimitExceeded)
    assert plain(connection.closing_packet(violated.error.reason_code)) == bytes.fromhex("E0 01 95")


def test_where_no_maximum_is_announced_the_longest_remaining_length_may_come(open_connection: OpenConnection) -> None:
    """MQTT 5.0 section 3.2.2.3.6: no limit but the remaining length."""
    connection = open_connection(5)
    assert connection.receive_data(bytes.fromhex("30 FFFFFF7F 0001 61 00")) == []


def test_disconnect_may_change_the_expiry_of_a_session_that_outlives_its_connection(
    open_connection: OpenConnection,
) -> None:
    connection = open_connection(5, connect=SESSION_EXPIRES_LATER)
    (event,) = connection.receive_data(bytes.fromhex("E0 07 00 05 11 0000003C"))
    assert event == DisconnectReceived(0, DisconnectProperties(session_expiry_s=60))


def test_nothing_is_sent_behind_the_clients_disconnect(open_connection: OpenConnection) -> None:
    connection = open_connection(5)
    assert connection.receive_data(bytes.fromhex("E0 00 C0 00")) == [DisconnectReceived()]
    assert connection.closing_packet(ReasonCode.SERVER_SHUTTING_DOWN) == b""


@pytest.mark.parametrize(
    ("reason_code", "expected"),
    [
        (ReasonCode.SESSION_TAKEN_OVER, "E0 01 8E"),  # MQTT-3.1.4-3
        (ReasonCode.KEEP_ALIVE_TIMEOUT, "E0 01 8D"),
        (ReasonCode.SERVER_SHUTTING_DOWN, "E0 01 8B"),
        (ReasonCode.BAD_USER_NAME_OR_PASSWORD, "E0 01 80"),  # MQTT-3.14.2-1: not one of DISCONNECT
    ],
)
def test_server_disconnects_with_a_reason_code_of_disconnect(
    reason_code: ReasonCode, expected: str, open_connection: OpenConnection
) -> None:
    assert plain(open_connection(5).closing_packet(reason_code)) == bytes.fromhex(expected)
    assert open_connection(4).closing_packet(reason_code) == b""


# -- topic aliases -----------------------------------------------------------------------------------------------------


def test_alias_stands_for_the_topic_that_came_with_it(open_connection: OpenConnection) -> None:
    """MQTT-3.3.2-12: every alias from 1 to the maximum; a later topic takes the alias over."""
    connection = open_connection(5, topic_alias_maximum=10)
    packets = ["30 07 0001 61 03 23 0001", "30 07 0001 62 03 23 000A", "30 06 0000 03 23 0001", "30 06 0000 03 23 000A"]
    packets += ["30 07 0001 63 03 23 0001", "30 06 0000 03 23 0001"]
    events = connection.receive_data(bytes.fromhex("".join(packets)))
    assert [event.topic for event in events if isinstance(event, PublishReceived)] == ["a", "b", "a", "b", "c", "c"]
    last = events[-1]
    assert isinstance(last, PublishReceived)
    assert last.header == bytes.fromhex(packets[-1])
    assert last.properties == PublishProperties(topic_alias=1)


@pytest.mark.parametrize(
    ("encoded", "maximum"),
    [("30 07 0001 61 03 23 0000", 10), ("30 07 0001 61 03 23 000B", 10), ("30 06 0000 03 23 0001", 0)],
)
def test_alias_beyond_the_maximum_is_told_so(encoded: str, maximum: int, open_connection: OpenConnection) -> None:
    """MQTT-3.3.2-8, MQTT-3.3.2-9, MQTT-3.2.2-17, MQTT-3.2.2-18."""
    connection = open_connection(5, topic_alias_maximum=maximum)
    (violated,) = connection.receive_data(bytes.fromhex(encoded))
    assert isinstance(violated, Violated)
    assert plain(connection.closing_packet(violated.error.reason_code)) == bytes.fromhex("E0 01 94")


def test_alias_that_stands_for_nothing_is_a_violation(open_connection: OpenConnection) -> None:
    (violated,) = open_connection(5, topic_alias_maximum=10).receive_data(bytes.fromhex("30 06 0000 03 23 0001"))
    assert isinstance(violated, Violated)
    assert isinstance(violated.error, ProtocolViolation)


def test_alias_ends_with_its_connection(open_connection: OpenConnection) -> None:
    """MQTT-3.3.2-7."""
    session = OutgoingFlows("c1", clean_session=False)
    open_connection(5, session=session, topic_alias_maximum=10).receive_data(bytes.fromhex("30 07 0001 61 03 23 0001"))
    again = open_connection(5, session=session, topic_alias_maximum=10)
    (violated,) = again.receive_data(bytes.fromhex("30 06 0000 03 23 0001"))
    assert isinstance(violated, Violated)


def test_flood_of_long_names_behind_aliases_is_refused(open_connection: OpenConnection) -> None:
    connection = open_connection(5, topic_alias_maximum=65_535)
    name = b"n" * 1_000
    held = 0
    for alias in range(1, 100):
        header = b"\x30\xee\x07\x03\xe8" + name + b"\x03\x23" + alias.to_bytes(2, "big")
        (event,) = connection.receive_data(header)
        if isinstance(event, Violated):
            break
        held += len(name)
    assert held <= LONGEST_NAMES_BYTES
    assert plain(connection.closing_packet(ReasonCode.QUOTA_EXCEEDED)) == bytes.fromhex("E0 01 97")


# -- receive maximum ---------------------------------------------------------------------------------------------------


def test_publish_beyond_the_receive_maximum_is_told_so(open_connection: OpenConnection) -> None:
    """MQTT-3.3.4-7: QoS 1 and 2 together; QoS 0 does not count."""
    connection = open_connection(5, receive_maximum=2)
    taken = connection.receive_data(bytes.fromhex("32 06 0001 61 0001 00 34 06 0001 61 0002 00 30 04 0001 61 00"))
    assert len(taken) == 3
    (violated,) = connection.receive_data(bytes.fromhex("32 06 0001 61 0003 00"))
    assert isinstance(violated, Violated)
    assert plain(connection.closing_packet(violated.error.reason_code)) == bytes.fromhex("E0 01 93")


def test_answer_makes_room_in_the_receive_window(open_connection: OpenConnection) -> None:
    connection = open_connection(5, receive_maximum=1)
    for packet_identifier in range(1, 50):
        packet = b"\x32\x06\x00\x01a" + packet_identifier.to_bytes(2, "big") + b"\x00"
        (event,) = connection.receive_data(packet)
        assert isinstance(event, PublishReceived)
        connection.answered(1)


def test_other_packets_are_taken_with_a_full_window(open_connection: OpenConnection) -> None:
    """MQTT-4.9.0-3, MQTT-3.3.4-8."""
    connection = open_connection(5, receive_maximum=1)
    connection.receive_data(bytes.fromhex("34 06 0001 61 0001 00"))
    expected = [PingReceived(), ReleaseReceived(1)]
    assert connection.receive_data(bytes.fromhex("C0 00 62 02 0001")) == expected


def test_window_is_new_with_each_connection(open_connection: OpenConnection) -> None:
    """Section 4.9: what an earlier connection left open does not count, a PUBLISH repeated on this one does once."""
    session = OutgoingFlows("c1", clean_session=False)
    full, again = bytes.fromhex("34 06 0001 61 0001 00"), bytes.fromhex("3C 06 0001 61 0001 00" * 2)
    open_connection(5, session=session, receive_maximum=1).receive_data(full)
    connection = open_connection(5, session=session, receive_maximum=1)
    assert [type(event) for event in connection.receive_data(again)] == [PublishReceived] * 2


@pytest.mark.parametrize("release", ["62 02 0001", "62 03 0001 00"])
def test_identifier_used_again_behind_its_pubrel_takes_a_place_of_its_own(
    release: str, open_connection: OpenConnection
) -> None:
    """Section 4.9: the client's quota falls with each PUBLISH, and rises with PUBCOMP."""
    publish = bytes.fromhex("34 06 0001 61 0001 00")
    used_again = bytes.fromhex(release) + publish
    connection = open_connection(5, receive_maximum=2)
    connection.receive_data(publish)
    assert isinstance(connection.receive_data(used_again)[-1], PublishReceived)
    connection.answered(1)
    assert isinstance(connection.receive_data(used_again)[-1], PublishReceived)
    (_, violated) = connection.receive_data(used_again)
    assert isinstance(violated, Violated)
    assert violated.error.reason_code == ReasonCode.RECEIVE_MAXIMUM_EXCEEDED


def test_identifier_of_a_refused_publish_takes_its_place_anew(open_connection: OpenConnection) -> None:
    """MQTT-4.3.3-9: behind a PUBREC of 80 hex or more the same identifier is a new publication."""
    publish = bytes.fromhex("34 06 0001 61 0001 00")
    connection = open_connection(5, receive_maximum=1)
    for _ in range(3):
        assert isinstance(connection.receive_data(publish)[-1], PublishReceived)
        connection.refused(1)
    connection.receive_data(publish)
    assert isinstance(connection.receive_data(publish.replace(b"\0\1\0", b"\0\2\0"))[-1], Violated)


# -- deliveries --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["40 02 0001", "40 03 0001 00", "40 04 0001 10 00", "40 08 0001 00 04 1F 0001 77"])
def test_qos_1_delivery_ends_with_puback_of_every_form(answer: str, open_connection: OpenConnection) -> None:
    session = OutgoingFlows("c1", clean_session=False)
    session.start("message 1", 1)
    assert open_connection(5, session=session).receive_data(bytes.fromhex(answer)) == [
        DeliveryAcknowledged(1, "message 1")
    ]


@pytest.mark.parametrize(("qos", "packet_type"), [(1, PacketType.PUBACK), (2, PacketType.PUBREC)])
def test_refused_delivery_ends_and_is_not_repeated(
    qos: int, packet_type: PacketType, open_connection: OpenConnection
) -> None:
    """MQTT-4.3.3-4, MQTT-4.4.0-2: no PUBREL; MQTT-3.3.4-9: its place in the window is free."""
    session = OutgoingFlows("c1", clean_session=False, maximum_in_flight=1)
    session.start("message 1", qos)
    refusal = bytes((packet_type << 4,)) + bytes.fromhex("08 0001 97 04 1F 0001 77")
    connection = open_connection(5, session=session)
    refused = DeliveryRefused(1, "message 1", packet_type, 0x97, ReasonProperties("w"))
    assert connection.receive_data(refusal + refusal) == [refused]
    assert session.unfinished() == ()
    assert session.finish(1) == "message 1"
    assert session.window() == 1
    assert connection.receive_data(refusal) == []


def test_qos_2_delivery_ends_with_a_pubcomp_that_does_not_find_it(open_connection: OpenConnection) -> None:
    session = OutgoingFlows("c1", clean_session=False)
    session.start("message 1", 2)
    connection = open_connection(5, session=session)
    assert connection.receive_data(bytes.fromhex("50 03 0001 10")) == [DeliveryReceived(1, "message 1", False)]
    session.release(1)
    assert connection.receive_data(bytes.fromhex("70 03 0001 92")) == [DeliveryCompleted(1, "message 1")]


@pytest.mark.parametrize(
    ("qos", "answer"), [(1, "50 02 0001"), (1, "70 02 0001"), (2, "40 02 0001"), (2, "70 02 0001")]
)
@pytest.mark.parametrize("long_form", [False, True])
def test_answer_that_is_not_due_is_a_violation(
    qos: int, answer: str, long_form: bool, open_connection: OpenConnection
) -> None:
    session = OutgoingFlows("c1", clean_session=False)
    session.start("message 1", qos)
    encoded = answer.replace(" 02 ", " 03 ") + "00" if long_form else answer
    connection = open_connection(5, session=session)
    (violated,) = connection.receive_data(bytes.fromhex(encoded))
    assert isinstance(violated, Violated)
    assert plain(connection.closing_packet(violated.error.reason_code)) == bytes.fromhex("E0 01 82")


def test_pubrec_for_an_unknown_identifier_is_answered_so_that_it_ends(open_connection: OpenConnection) -> None:
    connection = open_connection(5)
    assert connection.receive_data(bytes.fromhex("50 02 0009")) == [DeliveryReceived(9, None, True)]
    assert connection.writer.pubrel(9, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND) == bytes.fromhex("62 03 0009 92")


@pytest.mark.parametrize("answer", ["40 02 0009", "40 03 0009 80", "50 03 0009 80", "70 02 0009"])
def test_answer_for_an_unknown_identifier_is_ignored(answer: str, open_connection: OpenConnection) -> None:
    assert open_connection(5).receive_data(bytes.fromhex(answer) + b"\xc0\x00") == [PingReceived()]
