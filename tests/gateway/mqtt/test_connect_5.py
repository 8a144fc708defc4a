"""CONNECT of MQTT 5.0: what is accepted, what is refused, and what is told before the connection is closed."""

from collections.abc import Callable

import pytest

from gateway.mqtt.connection import Connection
from gateway.mqtt.errors import LimitExceeded, MalformedPacket, ProtocolViolation
from gateway.mqtt.events import ConnectReceived, ConnectRefused, Event, PingReceived, Violated, Will
from gateway.mqtt.outgoing_flows import OutgoingFlows
from gateway.mqtt.properties import ConnackProperties, ConnectProperties, DisconnectProperties, WillProperties
from gateway.mqtt.reason_codes import ReasonCode
from tests.reason_strings import plain

MQTT = "0004 4D515454 05"

ACCEPTED = {
    "plain": (f"10 0F {MQTT} 02 003C 00 0002 6331", ConnectReceived(5, "c1", True, 60, None, None, None)),
    "MQTT-3.1.3-5: 23 characters": (
        f"10 24 {MQTT} 02 003C 00 0017 {'41' * 23}",
        ConnectReceived(5, "A" * 23, True, 60, None, None, None),
    ),
    "MQTT-3.1.3-6: identifier to be assigned, clean start": (
        f"10 0D {MQTT} 02 0000 00 0000",
        ConnectReceived(5, "", True, 0, None, None, None),
    ),
    "MQTT-3.1.3-6: identifier to be assigned, no clean start": (
        f"10 0D {MQTT} 00 0000 00 0000",
        ConnectReceived(5, "", False, 0, None, None, None),
    ),
    "MQTT-3.1.2-19: password without user name": (
        f"10 12 {MQTT} 42 003C 00 0002 6331 0001 70",
        ConnectReceived(5, "c1", True, 60, None, None, b"p"),
    ),
    "MQTT-3.1.2-17: user name, and MQTT-3.1.2-19: password": (
        f"10 15 {MQTT} C2 003C 00 0002 6331 0001 75 0001 70",
        ConnectReceived(5, "c1", True, 60, None, "u", b"p"),
    ),
    # section 3.1.2.12, the example: user name, password, will of QoS 1, clean start, 10 s, session expiry 10 s
    "example of the standard": (
        f"10 22 {MQTT} CE 000A 05 11 0000000A 0002 6331 00 0001 77 0002 6869 0001 75 0001 70",
        ConnectReceived(
            5, "c1", True, 10, Will("w", b"hi", 1, False), "u", b"p", ConnectProperties(session_expiry_s=10)
        ),
    ),
    "every property": (
        f"10 2A {MQTT} 00 003C 1B 11 FFFFFFFF 21 0014 27 00000100 22 000A 19 01 17 00 26 0001 6E 0001 76 0002 6331",
        ConnectReceived(
            5,
            "c1",
            False,
            60,
            None,
            None,
            None,
            ConnectProperties(
                session_expiry_s=0xFFFF_FFFF,
                receive_maximum=20,
                maximum_packet_bytes=256,
                topic_alias_maximum=10,
                request_response_information=True,
                request_problem_information=False,
                user_properties=(("n", "v"),),
            ),
        ),
    ),
    "MQTT-3.1.3-1: will with every property, in its order": (
        f"10 3D {MQTT} 36 003C 00 0002 6331"
        " 28 18 00000005 01 01 02 0000003C 03 0004 74657874 08 0001 72 09 0001 FF 26 0001 6E 0001 76 26 0001 6E 0000"
        " 0001 77 0000",
        ConnectReceived(
            5,
            "c1",
            True,
            60,
            Will(
                "w",
                b"",
                2,
                True,
                WillProperties(
                    will_delay_s=5,
                    payload_format_indicator=1,
                    message_expiry_s=60,
                    content_type="text",
                    response_topic="r",
                    correlation_data=b"\xff",
                    user_properties=(("n", "v"), ("n", "")),
                ),
            ),
            None,
            None,
        ),
    ),
}

REFUSED = {
    "MQTT-3.1.3-8: identifier of 1,025 characters": (f"10 8E 08 {MQTT} 02 003C 00 0401 {'61' * 1025}", 0x85),
    "MQTT-4.12.0-1: authentication method": (f"10 13 {MQTT} 02 003C 04 15 0001 6D 0002 6331", 0x8C),
    "MQTT-4.12.0-1: method and data": (f"10 17 {MQTT} 02 003C 08 15 0001 6D 16 0001 64 0002 6331", 0x8C),
}

MALFORMED = {
    "MQTT-2.1.3-1: flags of the fixed header": f"12 0F {MQTT} 02 003C 00 0002 6331",
    "MQTT-3.1.2-3: reserved flag": f"10 0F {MQTT} 03 003C 00 0002 6331",
    "MQTT-3.1.2-11: will QoS without will": f"10 0F {MQTT} 0A 003C 00 0002 6331",
    "MQTT-3.1.2-12: will QoS 3": f"10 16 {MQTT} 1E 003C 00 0002 6331 00 0001 77 0001 68",
    "MQTT-3.1.2-13: will retain without will": f"10 0F {MQTT} 22 003C 00 0002 6331",
    "MQTT-3.1.2-9: no will topic": f"10 0F {MQTT} 06 003C 00 0002 6331",
    "MQTT-3.1.2-9: no will payload": f"10 13 {MQTT} 06 003C 00 0002 6331 00 0001 77",
    "MQTT-3.1.2-16: user name that was not announced": f"10 12 {MQTT} 02 003C 00 0002 6331 0001 75",
    "MQTT-3.1.2-17: announced user name missing": f"10 0F {MQTT} 82 003C 00 0002 6331",
    "MQTT-3.1.2-18: password that was not announced": f"10 15 {MQTT} 82 003C 00 0002 6331 0001 75 0001 70",
    "MQTT-3.1.2-19: announced password missing": f"10 12 {MQTT} C2 003C 00 0002 6331 0001 75",
    "MQTT-3.1.3-3: no client identifier": f"10 0B {MQTT} 02 003C 00",
    "MQTT-3.1.3-4: client identifier not UTF-8": f"10 0F {MQTT} 02 003C 00 0002 C328",
    "MQTT-1.5.4-1: client identifier with a surrogate": f"10 10 {MQTT} 02 003C 00 0003 EDA080",
    "MQTT-1.5.4-2: client identifier with U+0000": f"10 0F {MQTT} 02 003C 00 0002 6100",
    "MQTT-3.1.3-11: will topic not UTF-8": f"10 16 {MQTT} 06 003C 00 0002 6331 00 0001 FF 0001 68",
    "MQTT-3.1.3-12: user name not UTF-8": f"10 12 {MQTT} 82 003C 00 0002 6331 0001 FF",
    "MQTT-4.7.0-1: will topic with a wildcard": f"10 16 {MQTT} 06 003C 00 0002 6331 00 0001 23 0001 68",
    "MQTT-1.5.5-1: remaining length in two bytes": f"10 8F 00 {MQTT} 02 003C 00 0002 6331",
    "MQTT-1.5.5-1: property length in two bytes": f"10 10 {MQTT} 02 003C 8000 0002 6331",
    "MQTT-2.2.2-1: no property length": f"10 0E {MQTT} 02 003C 0002 6331",
    "a property that is not of CONNECT": f"10 11 {MQTT} 02 003C 02 01 01 0002 6331",
    "a property of CONNECT in the will": f"10 1B {MQTT} 06 003C 00 0002 6331 05 11 00000001 0001 77 0001 68",
}

VIOLATIONS = {
    "receive maximum 0": f"10 12 {MQTT} 02 003C 03 21 0000 0002 6331",
    "maximum packet size 0": f"10 14 {MQTT} 02 003C 05 27 00000000 0002 6331",
    "request problem information 2": f"10 11 {MQTT} 02 003C 02 17 02 0002 6331",
    "session expiry twice": f"10 19 {MQTT} 02 003C 0A 11 00000001 11 00000001 0002 6331",
    "authentication data without a method": f"10 13 {MQTT} 02 003C 04 16 0001 64 0002 6331",
    "MQTT-4.7.3-1: empty will topic": f"10 15 {MQTT} 06 003C 00 0002 6331 00 0000 0001 68",
    "MQTT-3.3.2-14: response topic of the will with a wildcard": (
        f"10 1A {MQTT} 06 003C 00 0002 6331 04 08 0001 2B 0001 77 0001 68"
    ),
}


def _connection() -> Connection:
    return Connection(levels={3, 4, 5})


def _receive(connection: Connection, encoded: str, piece_bytes: int) -> list[Event]:
    data, events = bytes.fromhex(encoded), list[Event]()
    for start in range(0, len(data), piece_bytes):
        events += connection.receive_data(data[start : start + piece_bytes])
    return events


@pytest.mark.parametrize("piece_bytes", [1, 1000])
@pytest.mark.parametrize("case", ACCEPTED)
def test_connect_is_accepted(case: str, piece_bytes: int) -> None:
    encoded, expected = ACCEPTED[case]
    connection = _connection()
    assert _receive(connection, encoded, piece_bytes) == [expected]
    assert connection.level == 5
    assert not connection.is_closed


@pytest.mark.parametrize("piece_bytes", [1, 1000])
@pytest.mark.parametrize("case", REFUSED)
def test_connect_is_refused_by_a_connack_with_a_reason_code(case: str, piece_bytes: int) -> None:
    """MQTT-3.2.2-6, MQTT-3.2.2-7: without a session, and then closed; MQTT-3.1.4-6: nothing behind it is decoded."""
    encoded, reason_code = REFUSED[case]
    connection = _connection()
    (refused,) = _receive(connection, encoded + "C0 00", piece_bytes)
    assert isinstance(refused, ConnectRefused)
    assert refused.return_code == reason_code
    assert plain(refused.answer) == bytes((0x20, 3, 0, reason_code, 0))
    assert connection.is_closed
    assert connection.closing_packet(ReasonCode.UNSPECIFIED_ERROR) == b""


@pytest.mark.parametrize("piece_bytes", [1, 1000])
@pytest.mark.parametrize(
    ("encoded", "error"),
    [(encoded, MalformedPacket) for encoded in MALFORMED.values()]
    + [(encoded, ProtocolViolation) for encoded in VIOLATIONS.values()],
    ids=[*MALFORMED, *VIOLATIONS],
)
def test_bad_connect_is_told_by_connack_and_closed(encoded: str, error: type[Exception], piece_bytes: int) -> None:
    """MQTT-3.1.4-1, MQTT-4.13.1-1: the reason code is 81 or 82; MQTT-3.14.0-1: in a CONNACK, not a DISCONNECT.

    MQTT-3.2.0-2: in one CONNACK.
    """
    connection = _connection()
    (violated,) = _receive(connection, encoded, piece_bytes)
    assert isinstance(violated, Violated)
    assert type(violated.error) is error
    expected = "20 03 00 81 00" if error is MalformedPacket else "20 03 00 82 00"
    assert plain(connection.closing_packet(violated.error.reason_code)) == bytes.fromhex(expected)
    assert connection.closing_packet(violated.error.reason_code) == b""
    assert connection.receive_data(bytes.fromhex(ACCEPTED["plain"][0])) == []


def test_connect_cut_at_every_length_of_its_fields_is_malformed() -> None:
    for case in ("example of the standard", "MQTT-3.1.3-1: will with every property, in its order"):
        whole = bytes.fromhex(ACCEPTED[case][0])[2:]
        for size in range(len(whole)):
            (violated,) = _connection().receive_data(bytes((0x10, size)) + whole[:size])
            assert isinstance(violated, Violated)
            assert isinstance(violated.error, MalformedPacket)


@pytest.mark.parametrize("first", ["30 03 0001 61", "C0 00", "E0 00", "F0 00", "00 00"])
def test_first_packet_other_than_connect_is_closed_without_an_answer(first: str) -> None:
    """MQTT-3.1.0-1; what level it speaks is not known."""
    connection = _connection()
    (violated,) = connection.receive_data(bytes.fromhex(first))
    assert isinstance(violated, Violated)
    assert connection.closing_packet(violated.error.reason_code) == b""


def test_unknown_protocol_name_is_answered_in_the_form_of_level_5_where_its_level_is_that_or_above() -> None:
    """MQTT-3.1.2-1."""
    connection = _connection()
    (refused,) = connection.receive_data(bytes.fromhex("10 0F 0004 4D515455 05 02 003C 00 0002 6331"))
    assert isinstance(refused, ConnectRefused)
    assert plain(refused.answer) == bytes.fromhex("20 03 00 84 00")
    assert connection.closing_packet(ReasonCode.PROTOCOL_ERROR) == b""


@pytest.mark.parametrize("written", ["10 0E 0004 4D515455 04 02 003C 0002 6331", "10 06 0004 4D515455"])
def test_unknown_protocol_name_of_an_older_level_or_none_is_closed_without_an_answer(written: str) -> None:
    connection = _connection()
    (violated,) = connection.receive_data(bytes.fromhex(written))
    assert isinstance(violated, Violated)
    assert connection.closing_packet(violated.error.reason_code) == b""


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        (f"10 FF FF FF 7F {MQTT}", "20 03 00 95 00"),
        (f"10 D2 80 14 {MQTT} 02 003C 00 0002 6331", "20 03 00 95 00"),  # 327,762 bytes, cut behind the identifier
        ("10 FF FF FF 7F 0004 4D515454 04", ""),  # has no code for it
        ("10 FF FF FF 7F 0004 4D5154", ""),
        ("10 FF FF FF 7F", ""),
    ],
)
def test_connect_that_is_too_large_is_told_so_where_it_begins_as_one_of_level_5(written: str, answer: str) -> None:
    """MQTT-3.1.4-1, table 3-1."""
    connection = _connection()
    (violated,) = connection.receive_data(bytes.fromhex(written))
    assert isinstance(violated, Violated)
    assert isinstance(violated.error, LimitExceeded)
    assert plain(connection.closing_packet(violated.error.reason_code)) == bytes.fromhex(answer)


def test_connect_that_is_too_large_is_not_answered_where_level_5_may_not_connect() -> None:
    connection = Connection(levels={4})
    (violated,) = connection.receive_data(bytes.fromhex(f"10 FF FF FF 7F {MQTT}"))
    assert isinstance(violated, Violated)
    assert connection.closing_packet(ReasonCode.PACKET_TOO_LARGE) == b""


def test_connack_says_what_the_connection_was_made_with() -> None:
    """MQTT-3.2.2-1: no other flag than session present; MQTT-4.12.0-6: no authentication method."""
    connection = Connection(levels={5}, maximum_packet_bytes=2_000_000, receive_maximum=20, topic_alias_maximum=10)
    connection.receive_data(bytes.fromhex(ACCEPTED["plain"][0]))
    connection.attach(OutgoingFlows("c1", clean_session=True))
    expected = "20 0E 00 00 0B 22 000A 27 001E8480 21 0014"
    assert connection.connack(False) == bytes.fromhex(expected)


def test_connack_before_mqtt_5_has_its_two_bytes() -> None:
    connection = _connection()
    connection.receive_data(bytes.fromhex("10 0E 0004 4D515454 04 02 003C 0002 6331"))
    connection.attach(OutgoingFlows("c1", clean_session=False))
    assert connection.connack(True, ConnackProperties(reason_string="for level 5")) == bytes.fromhex("20 02 01 00")


@pytest.mark.parametrize(
    ("level", "asked", "told", "deadline_s"),
    [(5, "0000", "13 000A", 15.0), (5, "000B", "13 000A", 15.0), (5, "000A", "", 15.0), (4, "000B", "", 16.5)],
)
def test_a_keep_alive_that_is_too_long_is_replaced_where_the_client_can_be_told(
    level: int, asked: str, told: str, deadline_s: float
) -> None:
    connection = Connection(levels=(4, 5), maximum_keep_alive_s=10)
    properties = "00" if level == 5 else ""
    packet = bytes.fromhex(f"0004 4D515454 0{level} 02 {asked} {properties} 0002 6331")
    connection.receive_data(bytes((0x10, len(packet))) + packet)
    connection.attach(OutgoingFlows("c1", clean_session=True))
    answer = connection.connack(False)
    assert answer[5:] == bytes.fromhex(told)
    assert connection.keep_alive_deadline(0.0) == deadline_s


def test_a_client_that_cannot_take_connack_is_sent_nothing_at_all() -> None:
    """MQTT-3.1.2-24 and MQTT-3.14.0-1."""
    connection = _connection()
    connection.receive_data(bytes.fromhex("10 14 0004 4D515454 05 02 003C 05 27 00000004 0002 6331"))
    connection.attach(OutgoingFlows("c1", clean_session=True))
    assert connection.connack(False) == b""
    assert connection.closing_packet(ReasonCode.PACKET_TOO_LARGE) == b""


@pytest.mark.parametrize(("maximum", "answer"), [(4, ""), (5, "20 03 00 8C 00")])
def test_a_client_that_is_refused_is_sent_no_more_than_it_takes(maximum: int, answer: str) -> None:
    """MQTT-3.1.2-24."""
    connection = _connection()
    packet = f"10 18 0004 4D515454 05 02 003C 09 27 0000000{maximum} 15 0001 6D 0002 6331"
    (refused,) = connection.receive_data(bytes.fromhex(packet))
    assert isinstance(refused, ConnectRefused)
    assert plain(refused.answer) == bytes.fromhex(answer)
    assert connection.closing_packet(ReasonCode.UNSPECIFIED_ERROR) == b""


def test_server_keep_alive_replaces_that_of_the_client() -> None:
    """MQTT-3.1.2-21, MQTT-3.2.2-21; without it the client's holds (MQTT-3.2.2-22, MQTT-3.1.2-22)."""
    connection = _connection()
    connection.receive_data(bytes.fromhex(ACCEPTED["plain"][0]))
    connection.attach(OutgoingFlows("c1", clean_session=True))
    assert connection.keep_alive_deadline(100.0) == 190.0
    answer = connection.connack(False, ConnackProperties(server_keep_alive_s=10))
    assert answer == bytes.fromhex("20 06 00 00 03 13 000A")
    assert connection.keep_alive_deadline(100.0) == 115.0


def test_assigned_client_identifier_is_told() -> None:
    """MQTT-3.1.3-7, MQTT-3.2.2-16."""
    connection = _connection()
    connection.receive_data(bytes.fromhex(f"10 0D {MQTT} 02 0000 00 0000"))
    connection.attach(OutgoingFlows("a1", clean_session=True))
    answer = connection.connack(False, ConnackProperties(assigned_client_identifier="a1"))
    assert answer == bytes.fromhex("20 08 00 00 05 12 0002 6131")


def test_connack_leaves_out_what_does_not_fit() -> None:
    """MQTT-3.2.2-19, MQTT-3.2.2-20: first the user properties, then the reason string."""
    more = ConnackProperties(server_keep_alive_s=10, reason_string="why", user_properties=(("n", "v"),))
    whole = "20 13 00 00 10 1F 0003 776879 26 0001 6E 0001 76 13 000A"
    without_user_properties = "20 0C 00 00 09 1F 0003 776879 13 000A"
    without_both = "20 06 00 00 03 13 000A"
    for maximum, expected in ((21, whole), (20, without_user_properties), (13, without_both), (7, "")):
        connection = _connection()
        connection.receive_data(bytes.fromhex(f"10 14 {MQTT} 02 003C 05 27 {maximum:08X} 0002 6331"))
        connection.attach(OutgoingFlows("c1", clean_session=True))
        assert connection.connack(False, more) == bytes.fromhex(expected)


def test_refusal_after_connect_is_a_connack_of_the_clients_level() -> None:
    """MQTT-3.2.0-1, MQTT-3.14.0-1: no DISCONNECT before CONNACK; MQTT-3.2.2-8: a code that CONNACK may have."""
    levels = {4: "10 0E 0004 4D515454 04 02 003C 0002 6331", 5: ACCEPTED["plain"][0]}
    expected = {
        (5, ReasonCode.NOT_AUTHORIZED): "20 03 00 87 00",
        (5, ReasonCode.SERVER_BUSY): "20 03 00 89 00",
        (5, ReasonCode.SESSION_TAKEN_OVER): "20 03 00 80 00",
        (4, ReasonCode.NOT_AUTHORIZED): "20 02 00 05",
        (4, ReasonCode.BAD_USER_NAME_OR_PASSWORD): "20 02 00 04",
        (4, ReasonCode.SERVER_BUSY): "20 02 00 03",
        (4, ReasonCode.CLIENT_IDENTIFIER_NOT_VALID): "20 02 00 02",
        (4, ReasonCode.SESSION_TAKEN_OVER): "",
    }
    for (level, reason_code), answer in expected.items():
        connection = _connection()
        connection.receive_data(bytes.fromhex(levels[level]))
        assert plain(connection.closing_packet(reason_code)) == bytes.fromhex(answer)


def test_refusal_may_name_another_server() -> None:
    connection = _connection()
    connection.receive_data(bytes.fromhex(ACCEPTED["plain"][0]))
    answer = plain(connection.closing_packet(ReasonCode.SERVER_MOVED, DisconnectProperties(server_reference="s")))
    assert answer == bytes.fromhex("20 07 00 9D 04 1C 0001 73")


@pytest.mark.parametrize(
    ("asked", "told", "kept_s"),
    [("0000", "13 0078", 120), ("0079", "13 0078", 120), ("FFFF", "13 0078", 120), ("0078", "", 120), ("003C", "", 60)],
)
def test_keep_alive_that_is_too_long_is_replaced_and_told(asked: str, told: str, kept_s: int) -> None:
    """Section 3.2.2.3.14."""
    connection = Connection(levels=(5,), maximum_keep_alive_s=120)
    connection.receive_data(bytes.fromhex(f"10 0F {MQTT} 02 {asked} 00 0002 6331"))
    connection.attach(OutgoingFlows("c1", clean_session=True))
    properties = bytes.fromhex(told)
    assert connection.connack(False) == bytes((0x20, 3 + len(properties), 0, 0, len(properties))) + properties
    assert connection.keep_alive_s == kept_s


@pytest.mark.parametrize(
    "connect", ["10 0E 0004 4D515454 04 02 FFFF 0002 6331", "10 10 0006 4D5149736470 03 02 FFFF 0002 6331"]
)
def test_keep_alive_before_level_5_is_the_clients_own(connect: str) -> None:
    connection = Connection(levels=(3, 4), maximum_keep_alive_s=120)
    connection.receive_data(bytes.fromhex(connect))
    connection.attach(OutgoingFlows("c1", clean_session=True))
    assert connection.connack(False) == bytes.fromhex("20 02 00 00")
    assert connection.keep_alive_s == 65_535


@pytest.mark.parametrize(
    ("connect", "answer"),
    [
        ("10 10 0006 4D5149736470 03 02 003C 0002 6331", "20 02 00 03"),
        ("10 0E 0004 4D515454 04 02 003C 0002 6331", "20 02 00 03"),
        (f"10 0F {MQTT} 02 003C 00 0002 6331", "20 03 00 88 00"),
    ],
)
def test_connect_that_meets_a_stopping_server_is_told_that_it_is_unavailable(connect: str, answer: str) -> None:
    """Table 3-1 has no 8B for CONNACK; 88 is "the server is not available"."""
    connection = Connection(levels=(3, 4, 5))
    connection.receive_data(bytes.fromhex(connect))
    assert plain(connection.closing_packet(ReasonCode.SERVER_SHUTTING_DOWN)) == bytes.fromhex(answer)


def test_connection_knows_whether_its_client_was_told_of_its_end() -> None:
    newest, older = Connection(levels=(4, 5)), Connection(levels=(4, 5))
    newest.receive_data(bytes.fromhex(f"10 0F {MQTT} 02 003C 00 0002 6331"))
    older.receive_data(bytes.fromhex("10 0E 0004 4D515454 04 02 003C 0002 6331"))
    for connection in (newest, older):
        connection.attach(OutgoingFlows("c1", clean_session=True))
        connection.connack(False)
        assert not connection.has_said_why
        connection.closing_packet(ReasonCode.SERVER_SHUTTING_DOWN)
    assert newest.has_said_why
    assert not older.has_said_why


@pytest.mark.parametrize(
    ("connect", "expiry_s"),
    [
        ("10 10 0006 4D5149736470 03 02 003C 0002 6331", 0),
        ("10 10 0006 4D5149736470 03 00 003C 0002 6331", 0xFFFF_FFFF),
        ("10 0E 0004 4D515454 04 02 003C 0002 6331", 0),
        ("10 0E 0004 4D515454 04 00 003C 0002 6331", 0xFFFF_FFFF),
        (f"10 0F {MQTT} 00 003C 00 0002 6331", 0),
        (f"10 14 {MQTT} 02 003C 05 11 0000000A 0002 6331", 10),
        (f"10 12 {MQTT} 00 003C 03 21 0001 0002 6331", 0),
    ],
)
def test_session_outlives_its_connection_as_its_level_says(connect: str, expiry_s: int) -> None:
    (event,) = Connection(levels=(3, 4, 5)).receive_data(bytes.fromhex(connect))
    assert isinstance(event, ConnectReceived)
    assert event.session_expiry_s == expiry_s


def test_answered_means_nothing_before_level_5(open_connection: Callable[..., Connection]) -> None:
    connection = open_connection(4)
    connection.answered(1)
    assert isinstance(connection.receive_data(b"\xc0\x00")[0], PingReceived)
