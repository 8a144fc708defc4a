"""What a server receives behind CONNECT: vectors of MQTT 3.1.1 chapter 3 and of IBM's pages of 2006, cut anywhere."""

import math
import tracemalloc
from collections.abc import Callable

import pytest

from gateway.mqtt.connection import LONGEST_WAITING_BYTES, Connection
from gateway.mqtt.errors import LimitExceeded, MalformedPacket, ProtocolViolation, UsageError
from gateway.mqtt.events import (
    ConnectReceived,
    DeliveryAcknowledged,
    DeliveryCompleted,
    DeliveryReceived,
    DisconnectReceived,
    Event,
    PingReceived,
    PublishReceived,
    ReleaseReceived,
    SubscribeReceived,
    UnsubscribeReceived,
    Violated,
)
from gateway.mqtt.outgoing_flows import OutgoingFlows, OutgoingState

OpenConnection = Callable[..., Connection]
Feed = Callable[[Connection, bytes, int], list[Event]]
LEVELS = (3, 4)
PIECES = (1, 2, 3, 7, 1_000_000)


def _published(header: str, payload: str, topic: str, qos: int, flags: str, packet_identifier: int) -> PublishReceived:
    return PublishReceived(
        topic, bytes.fromhex(payload), qos, "r" in flags, "d" in flags, packet_identifier, bytes.fromhex(header)
    )


# Each packet by the bytes of its header and payload; flags: r RETAIN, d DUP.
PUBLISHES = [
    ("32 07 0003 612F62 000A", "", "a/b", 1, "", 10),  # IBM, PUBLISH: the example of the variable header
    ("30 07 0003 612F62", "6869", "a/b", 0, "", 0),
    ("31 07 0003 612F62", "0000", "a/b", 0, "r", 0),
    ("33 08 0003 612F62 FFFF", "FF", "a/b", 1, "r", 65_535),
    ("3A 08 0003 612F62 0001", "FF", "a/b", 1, "d", 1),
    ("3B 08 0003 612F62 0001", "FF", "a/b", 1, "rd", 1),
    ("34 08 0003 612F62 0001", "30", "a/b", 2, "", 1),
    ("3D 08 0003 612F62 0001", "30", "a/b", 2, "rd", 1),
    ("30 03 0001 61", "", "a", 0, "", 0),
    ("30 C1 02 0001 61", "5A" * 318, "a", 0, "", 0),  # 321 bytes remain: C1 02
    ("32 80 80 01 0001 61 0010", "5A" * 16_379, "a", 1, "", 16),  # 16,384 bytes remain
    ("30 09 0007 C3A42FEFBBBF2F", "", "ä/\ufeff/", 0, "", 0),
]

OTHERS: list[tuple[str, Event]] = [
    # section 3.8.3, the example: "a/b" with QoS 1 and "c/d" with QoS 2
    (
        "82 0E 000A 0003 612F62 01 0003 632F64 02",
        SubscribeReceived(
            10, (("a/b", 1), ("c/d", 2)), (bytes.fromhex("0003 612F62 01"), bytes.fromhex("0003 632F64 02"))
        ),
    ),
    ("82 06 FFFF 0001 23 00", SubscribeReceived(65_535, (("#", 0),), (bytes.fromhex("0001 23 00"),))),
    # section 3.10.3, the example: "a/b" and "c/d"
    (
        "A2 0C 000A 0003 612F62 0003 632F64",
        UnsubscribeReceived(10, ("a/b", "c/d"), (bytes.fromhex("0003 612F62"), bytes.fromhex("0003 632F64"))),
    ),
    ("62 02 000A", ReleaseReceived(10)),
    ("62 82 00 000A", ReleaseReceived(10)),  # a longer form of the same length is not forbidden before MQTT 5
    ("C0 00", PingReceived()),
    ("E0 00", DisconnectReceived()),
]

VECTORS: list[tuple[bytes, Event]] = [
    (bytes.fromhex(header + payload), _published(header, payload, topic, qos, flags, packet_identifier))
    for header, payload, topic, qos, flags, packet_identifier in PUBLISHES
] + [(bytes.fromhex(encoded), event) for encoded, event in OTHERS]

ONLY_3_1: list[tuple[bytes, Event]] = [
    (bytes.fromhex("38 05 0001 61 6869"), _published("38 05 0001 61", "6869", "a", 0, "d", 0)),
    (bytes.fromhex("39 05 0001 61 6869"), _published("39 05 0001 61", "6869", "a", 0, "rd", 0)),
    (bytes.fromhex("6A 02 000A"), ReleaseReceived(10)),
    (bytes.fromhex("8A 06 000A 0001 61 01"), SubscribeReceived(10, (("a", 1),), (bytes.fromhex("0001 61 01"),))),
    (bytes.fromhex("AA 05 000A 0001 61"), UnsubscribeReceived(10, ("a",), (bytes.fromhex("0001 61"),))),
    (bytes.fromhex("30 04 0002 6101"), _published("30 04 0002 6101", "", "a\x01", 0, "", 0)),
    (bytes.fromhex("82 06 000A 0001 1F 01"), SubscribeReceived(10, (("\x1f", 1),), (bytes.fromhex("0001 1F 01"),))),
]

MALFORMED = {
    "PUBLISH with QoS 3": "36 05 0001 61 0001",
    "PUBLISH with QoS 3 and DUP": "3E 05 0001 61 0001",
    "PUBLISH of no bytes": "30 00",
    "PUBLISH of one byte": "30 01 00",
    "PUBLISH whose topic name is longer than the packet": "30 04 0003 6162 63",
    "PUBLISH without the packet identifier": "32 03 0001 61",
    "PUBLISH with half a packet identifier": "32 04 0001 61 00",
    "topic name not UTF-8": "30 04 0002 C328",
    "topic name with U+0000": "30 05 0003 610062",
    "topic name with a surrogate": "30 05 0003 EDA080",
    "PUBREL without flags": "60 02 0001",
    "PUBACK of no bytes": "40 00",
    "PUBREC of one byte": "50 01 00",
    "PUBREL of three bytes": "62 03 0001 00",
    "PUBCOMP longer than any packet": "70 FF FF FF 7F",
    "SUBSCRIBE without flags": "80 06 000A 0001 61 01",
    "SUBSCRIBE with packet identifier 0": "82 06 0000 0001 61 01",
    "SUBSCRIBE with requested QoS 3": "82 06 000A 0001 61 03",
    "SUBSCRIBE with a reserved bit": "82 06 000A 0001 61 81",
    "SUBSCRIBE without the last QoS": "82 05 000A 0001 61",
    "SUBSCRIBE with half an entry": "82 07 000A 0001 61 01 00",
    "SUBSCRIBE with half a packet identifier": "82 01 00",
    "topic filter not UTF-8": "82 07 000A 0002 C328 01",
    "topic filter with U+0000": "82 06 000A 0001 00 01",
    "topic name with '#'": "30 05 0003 612F23",
    "topic name with '+'": "30 05 0003 2B2F61",
    "empty topic filter": "82 05 000A 0000 01",
    "'#' not last": "82 08 000A 0003 232F61 01",
    "'a#'": "82 07 000A 0002 6123 01",
    "'a+'": "82 07 000A 0002 612B 01",
    "'a#' in UNSUBSCRIBE": "A2 06 000A 0002 6123",
    "UNSUBSCRIBE without flags": "A0 05 000A 0001 61",
    "UNSUBSCRIBE with packet identifier 0": "A2 05 0000 0001 61",
    "UNSUBSCRIBE with a topic filter longer than the packet": "A2 06 000A 0003 6162",
    "PINGREQ with a body": "C0 01 00",
    "DISCONNECT with a body": "E0 01 00",
    "remaining length of five bytes": "30 80 80 80 80 01",
    "remaining length of five bytes in an answer": "40 82 80 80 80 00",
    "remaining length of five bytes in a SUBSCRIBE": "82 FF FF FF FF 7F",
}

#: Flags that MQTT 3.1 does not use, as it says of each packet, and 3.1.1 reserves; and the packet without them.
UNUSED_FLAGS = {
    "PUBACK": ("42 02 0001", "40 02 0001"),
    "PUBREC": ("5F 02 0001", "50 02 0001"),
    "PUBREL": ("63 02 0001", "62 02 0001"),
    "PUBCOMP": ("71 02 0001", "70 02 0001"),
    "SUBSCRIBE": ("83 06 000A 0001 61 01", "82 06 000A 0001 61 01"),
    "UNSUBSCRIBE": ("AB 05 000A 0001 61", "A2 05 000A 0001 61"),
    "PINGREQ": ("C1 00", "C0 00"),
    "DISCONNECT": ("EE 00", "E0 00"),
}

ONLY_3_1_1_MALFORMED = {
    "PUBLISH of QoS 0 with DUP": "38 03 0001 61",
    "PUBREL with DUP": "6A 02 000A",
    "SUBSCRIBE with DUP": "8A 06 000A 0001 61 01",
    "UNSUBSCRIBE with DUP": "AA 05 000A 0001 61",
    "PUBLISH with U+0001 in its topic name": "30 04 0002 6101",
    "SUBSCRIBE with U+001F in its topic filter": "82 06 000A 0001 1F 01",
    "UNSUBSCRIBE with U+009F in its topic filter": "A2 06 000A 0002 C29F",
}

VIOLATIONS = {
    "type 0": "00 00",
    "type 15": "F0 00",
    "PUBLISH of QoS 1 with packet identifier 0": "32 05 0001 61 0000",
    "PUBLISH of QoS 2 with packet identifier 0": "34 05 0001 61 0000",
    "PUBACK with packet identifier 0": "40 02 0000",
    "PUBREL with packet identifier 0": "62 02 0000",
    "second CONNECT": "10 0E 0004 4D515454 04 02 003C 0002 6331",
    "CONNACK": "20 02 0000",
    "SUBACK": "90 03 0001 00",
    "UNSUBACK": "B0 02 0001",
    "PINGRESP": "D0 00",
    "empty topic name": "30 02 0000",
    "SUBSCRIBE without a topic filter": "82 02 000A",
    "UNSUBSCRIBE without a topic filter": "A2 02 000A",
}

TOO_LARGE = {
    "SUBSCRIBE longer than we accept": "82 81 80 40",  # 1,048,577 bytes
    "UNSUBSCRIBE longer than we accept": "A2 81 80 40",
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("data", "expected"), VECTORS)
def test_packet_gives_its_event_in_pieces_of_every_size(
    data: bytes, expected: Event, level: int, open_connection: OpenConnection, feed: Feed
) -> None:
    for piece_bytes in PIECES if len(data) < 1000 else (1000, 1_000_000):
        assert feed(open_connection(level), data, piece_bytes) == [expected]


@pytest.mark.parametrize(("data", "expected"), ONLY_3_1)
def test_what_3_1_tolerates_is_tolerated(
    data: bytes, expected: Event, open_connection: OpenConnection, feed: Feed
) -> None:
    assert feed(open_connection(3), data, 1) == [expected]
    assert feed(open_connection(3), data, 1000) == [expected]


@pytest.mark.parametrize(("flagged", "plain"), UNUSED_FLAGS.values(), ids=UNUSED_FLAGS)
def test_flags_that_3_1_does_not_use_may_be_set(flagged: str, plain: str, open_connection: OpenConnection) -> None:
    first, second = open_connection(3), open_connection(3)
    assert first.receive_data(bytes.fromhex(flagged)) == second.receive_data(bytes.fromhex(plain))
    assert first.receive_data(b"\xc0\x00") == second.receive_data(b"\xc0\x00")


@pytest.mark.parametrize("flagged", [flagged for flagged, _ in UNUSED_FLAGS.values()], ids=UNUSED_FLAGS)
def test_flags_that_3_1_1_reserves_are_malformed(flagged: str, open_connection: OpenConnection) -> None:
    """MQTT-2.2.2-2, MQTT-3.14.1-1."""
    (violated,) = open_connection(4).receive_data(bytes.fromhex(flagged))
    assert isinstance(violated, Violated)
    assert isinstance(violated.error, MalformedPacket)


@pytest.mark.parametrize(("data", "expected"), VECTORS[:-1])
def test_packet_gives_its_event_before_trailing_bytes(
    data: bytes, expected: Event, open_connection: OpenConnection
) -> None:
    connection = open_connection()
    assert connection.receive_data(data + b"\xc0\x00" + data[:1]) == [expected, PingReceived()]
    assert connection.receive_data(b"") == []


@pytest.mark.parametrize(("data", "expected"), [vector for vector in VECTORS if len(vector[0]) < 1000])
def test_packet_cut_at_every_length_gives_its_event_at_the_end(
    data: bytes, expected: Event, open_connection: OpenConnection
) -> None:
    for size in range(len(data)):
        connection = open_connection()
        assert connection.receive_data(data[:size]) == []
        assert connection.receive_data(data[size:] + b"\xc0\x00")[:1] == [expected]


def test_packets_of_all_kinds_in_one_piece_keep_their_order(open_connection: OpenConnection, feed: Feed) -> None:
    vectors = [vector for vector in VECTORS if not isinstance(vector[1], PublishReceived) or vector[1].qos < 2]
    data = b"".join(encoded for encoded, _ in vectors)
    for piece_bytes in (5, 64, 1_000_000):
        assert feed(open_connection(), data, piece_bytes) == [event for _, event in vectors]


@pytest.mark.parametrize("piece_bytes", [1, 1000])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("encoded", "error"),
    [(encoded, MalformedPacket) for encoded in MALFORMED.values()]
    + [(encoded, ProtocolViolation) for encoded in VIOLATIONS.values()]
    + [(encoded, LimitExceeded) for encoded in TOO_LARGE.values()],
    ids=[*MALFORMED, *VIOLATIONS, *TOO_LARGE],
)
def test_fault_of_the_peer_is_the_last_event(
    encoded: str, error: type[Exception], level: int, piece_bytes: int, open_connection: OpenConnection, feed: Feed
) -> None:
    """The cases break these statements of 3.1.1.

    MQTT-2.3.1-1, MQTT-3.3.1-4, MQTT-3.3.2-1, -2, MQTT-3.8.3-1, -3, -4, MQTT-3.10.3-1, -2,
    MQTT-4.7.1-1, -2, -3, MQTT-4.7.3-1, -2, MQTT-4.8.0-1.
    """
    connection = open_connection(level)
    ping, violated = feed(connection, b"\xc0\x00" + bytes.fromhex(encoded) + b"\xc0\x00", piece_bytes)
    assert ping == PingReceived()
    assert isinstance(violated, Violated)
    assert type(violated.error) is error
    assert violated.error.reason
    assert connection.is_closed
    assert connection.receive_data(b"\xc0\x00") == []


@pytest.mark.parametrize("case", ONLY_3_1_1_MALFORMED)
def test_duplicate_flag_where_3_1_1_forbids_it_is_malformed(case: str, open_connection: OpenConnection) -> None:
    """MQTT-3.3.1-2, MQTT-3.6.1-1, MQTT-3.8.1-1, MQTT-3.10.1-1."""
    (violated,) = open_connection(4).receive_data(bytes.fromhex(ONLY_3_1_1_MALFORMED[case]))
    assert isinstance(violated, Violated)
    assert isinstance(violated.error, MalformedPacket)


@pytest.mark.parametrize("piece_bytes", [1, 1000])
def test_packet_beyond_the_listeners_maximum_is_refused(
    piece_bytes: int, open_connection: OpenConnection, feed: Feed
) -> None:
    """MQTT-4.8.0-2."""
    connection = open_connection(maximum_packet_bytes=20)
    longest, longer = bytes.fromhex("30 14 0001 61") + bytes(17), bytes.fromhex("30 15 0001 61") + bytes(18)
    published, violated = feed(connection, longest + longer, piece_bytes)
    assert isinstance(published, PublishReceived)
    assert isinstance(violated, Violated)
    assert isinstance(violated.error, LimitExceeded)


def test_nothing_behind_disconnect_is_decoded(open_connection: OpenConnection) -> None:
    connection = open_connection()
    assert connection.receive_data(bytes.fromhex("E0 00 30 03 0001 61")) == [DisconnectReceived()]
    assert connection.receive_data(b"\xc0\x00") == []


def test_packets_pipelined_behind_connect_wait_for_the_session(connect_bytes: dict[int, bytes]) -> None:
    connection = Connection()
    publish = bytes.fromhex("32 07 0003 612F62 000A")
    (connected,) = connection.receive_data(connect_bytes[4] + publish[:4])
    assert isinstance(connected, ConnectReceived)
    assert connection.receive_data(publish[4:]) == []
    connection.attach(OutgoingFlows("c1", clean_session=True))
    assert connection.receive_data(b"") == [PublishReceived("a/b", b"", 1, False, False, 10, publish)]
    assert connection.receive_data(b"\xc0\x00") == [PingReceived()]


def test_waiting_bytes_are_decoded_before_those_that_come_with_the_call(connect_bytes: dict[int, bytes]) -> None:
    connection = Connection()
    connection.receive_data(connect_bytes[3] + b"\xc0")
    connection.attach(OutgoingFlows("c1", clean_session=True))
    assert connection.receive_data(b"\x00\xe0\x00") == [PingReceived(), DisconnectReceived()]


def test_fault_behind_connect_shows_only_after_the_session(connect_bytes: dict[int, bytes]) -> None:
    connection = Connection()
    assert len(connection.receive_data(connect_bytes[4] + b"\x00\x00")) == 1
    connection.attach(OutgoingFlows("c1", clean_session=True))
    (violated,) = connection.receive_data(b"")
    assert isinstance(violated, Violated)


def test_flood_before_connack_is_a_violation(connect_bytes: dict[int, bytes]) -> None:
    connection = Connection()
    connection.receive_data(connect_bytes[4])
    assert connection.receive_data(bytes(LONGEST_WAITING_BYTES)) == []
    (violated,) = connection.receive_data(b"\x00")
    assert isinstance(violated, Violated)
    with pytest.raises(UsageError):
        connection.attach(OutgoingFlows("c1", clean_session=True))


def test_session_is_attached_once_and_only_behind_connect(open_connection: OpenConnection) -> None:
    session = OutgoingFlows("c1", clean_session=True)
    with pytest.raises(UsageError, match="between CONNECT and the next packet"):
        Connection().attach(session)
    with pytest.raises(UsageError, match="between CONNECT and the next packet"):
        open_connection().attach(session)


def test_level_is_unknown_before_connect() -> None:
    assert Connection().level == 0
    assert Connection().flows is None


@pytest.mark.parametrize(("keep_alive", "deadline"), [("003C", 190.0), ("0001", 101.5), ("0000", math.inf)])
def test_silent_connection_ends_after_one_and_a_half_keep_alives(keep_alive: str, deadline: float) -> None:
    connection = Connection()
    connection.receive_data(bytes.fromhex(f"10 0E 0004 4D515454 04 02 {keep_alive} 0002 6331"))
    assert connection.keep_alive_deadline(100.0) == deadline


def test_every_publish_and_pubrel_of_qos_2_is_told_with_what_it_says(open_connection: OpenConnection) -> None:
    """Which of them is a repeat is for whoever carries them out in order."""
    written = "34 06 0001 61 0007 41", "3C 06 0001 61 0007 42", "62 02 0007", "62 02 0007", "34 06 0001 61 0007 43"
    first, again, *released, behind = open_connection().receive_data(bytes.fromhex("".join(written)))
    assert released == [ReleaseReceived(7)] * 2
    told = [event for event in (first, again, behind) if isinstance(event, PublishReceived)]
    assert [(each.packet_identifier, each.payload, each.duplicate) for each in told] == [
        (7, b"A", False),
        (7, b"B", True),
        (7, b"C", False),
    ]


def test_qos_1_delivery_ends_with_puback(open_connection: OpenConnection) -> None:
    session = OutgoingFlows("c1", clean_session=False)
    packet_identifier = session.start("message 1", 1)
    puback = b"\x40\x02" + packet_identifier.to_bytes(2, "big")
    expected = DeliveryAcknowledged(packet_identifier, "message 1")
    assert open_connection(session=session).receive_data(puback + puback) == [expected]
    assert session.finish(packet_identifier) == "message 1"
    assert open_connection(session=session).receive_data(puback) == []


def test_qos_2_delivery_goes_through_pubrec_and_pubcomp(open_connection: OpenConnection) -> None:
    session = OutgoingFlows("c1", clean_session=False)
    packet_identifier = session.start("message 1", 2)
    connection = open_connection(session=session)
    pubrec, pubcomp = bytes.fromhex("50 02 0001"), bytes.fromhex("70 02 0001")
    assert packet_identifier == 1
    assert connection.receive_data(pubrec + pubrec) == [DeliveryReceived(1, "message 1", False)]
    assert connection.receive_data(pubcomp) == []
    session.release(1)
    assert connection.receive_data(pubrec) == [DeliveryReceived(1, "message 1", True)]
    assert connection.receive_data(pubcomp + pubcomp) == [DeliveryCompleted(1, "message 1")]
    assert session.finish(1) == "message 1"


def test_pubrec_for_an_unknown_identifier_is_answered_so_that_it_ends(open_connection: OpenConnection) -> None:
    assert open_connection().receive_data(bytes.fromhex("50 02 0009")) == [DeliveryReceived(9, None, True)]


@pytest.mark.parametrize("answer", ["40 02 0009", "70 02 0009"])
def test_answer_for_an_unknown_identifier_is_ignored(answer: str, open_connection: OpenConnection) -> None:
    assert open_connection().receive_data(bytes.fromhex(answer) + b"\xc0\x00") == [PingReceived()]


@pytest.mark.parametrize(("qos", "answer"), [(1, "50 02 0001"), (1, "70 02 0001"), (2, "40 02 0001")])
def test_answer_of_the_other_qos_changes_nothing_and_is_a_violation_from_3_1_1_on(
    qos: int, answer: str, open_connection: OpenConnection
) -> None:
    session = OutgoingFlows("c1", clean_session=False)
    session.start("message 1", qos)
    assert open_connection(3, session=session).receive_data(bytes.fromhex(answer)) == []
    (violated,) = open_connection(4, session=session).receive_data(bytes.fromhex(answer))
    assert isinstance(violated, Violated)
    assert isinstance(violated.error, ProtocolViolation)
    assert session.outgoing[1].state in (OutgoingState.AWAIT_PUBACK, OutgoingState.AWAIT_PUBREC)


def test_claimed_length_takes_no_memory(open_connection: OpenConnection) -> None:
    connection = open_connection()
    tracemalloc.start()
    try:
        assert connection.receive_data(bytes.fromhex("30 FF FF FF 7F 0001 61")) == []
        assert connection.receive_data(bytes(1000)) == []
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 20_000


def test_large_packet_in_pieces_takes_memory_twice_and_gives_its_payload(
    open_connection: OpenConnection, feed: Feed
) -> None:
    payload = bytes(range(256)) * 16_384  # 4 MiB
    data = bytes.fromhex("30 83 80 80 02 0001 61") + payload
    connection = open_connection()
    tracemalloc.start()
    try:
        (published,) = feed(connection, data, 65_536)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(published, PublishReceived)
    assert published.payload == payload
    assert peak_bytes < 3 * len(payload)


def test_idle_connection_with_its_session_is_smaller_than_2_kb(connect_bytes: dict[int, bytes]) -> None:
    connections = []
    tracemalloc.start()
    try:
        before_bytes, _ = tracemalloc.get_traced_memory()
        for number in range(100):
            connection = Connection()
            connection.receive_data(connect_bytes[4])
            connection.attach(OutgoingFlows(f"client-{number}", clean_session=True))
            connection.receive_data(b"\xc0\x00")
            connections.append(connection)
        after_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after_bytes - before_bytes) / len(connections) < 2000
