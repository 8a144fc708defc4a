"""CONNECT at both levels: what is accepted, what is refused with a return code, what is a violation."""

import pytest

from gateway.mqtt.connection import Connection
from gateway.mqtt.errors import LimitExceeded, MalformedPacket, ProtocolViolation
from gateway.mqtt.events import ConnectReceived, ConnectRefused, Event, Violated, Will
from gateway.mqtt.reason_codes import ReasonCode
from tests.reason_strings import plain

MQTT = "0004 4D515454"
MQISDP = "0006 4D5149736470"

ACCEPTED = {
    "3.1.1": (f"10 0E {MQTT} 04 02 003C 0002 6331", ConnectReceived(4, "c1", True, 60, None, None, None)),
    "3.1.1, session kept": (f"10 0E {MQTT} 04 00 0000 0002 6331", ConnectReceived(4, "c1", False, 0, None, None, None)),
    "3.1.1, identifier to be assigned": (
        f"10 0C {MQTT} 04 02 FFFF 0000",
        ConnectReceived(4, "", True, 65_535, None, None, None),
    ),
    "3.1.1, example of section 3.1.2": (
        f"10 1B {MQTT} 04 CE 000A 0002 6331 0001 77 0002 6869 0001 75 0001 70",
        ConnectReceived(4, "c1", True, 10, Will("w", b"hi", 1, False), "u", b"p"),
    ),
    "3.1.1, retained will of QoS 2, empty will payload": (
        f"10 13 {MQTT} 04 36 000A 0002 6331 0001 77 0000",
        ConnectReceived(4, "c1", True, 10, Will("w", b"", 2, True), None, None),
    ),
    "3.1.1, binary password": (
        f"10 15 {MQTT} 04 C2 000A 0002 6331 0001 75 0002 00FF",
        ConnectReceived(4, "c1", True, 10, None, "u", b"\x00\xff"),
    ),
    "3.1": (f"10 10 {MQISDP} 03 02 003C 0002 6331", ConnectReceived(3, "c1", True, 60, None, None, None)),
    "3.1, identifier of 24 characters": (
        f"10 26 {MQISDP} 03 02 003C 0018 {'61' * 24}",
        ConnectReceived(3, "a" * 24, True, 60, None, None, None),
    ),
    "3.1, announced user name and password missing": (
        f"10 10 {MQISDP} 03 C2 003C 0002 6331",
        ConnectReceived(3, "c1", True, 60, None, None, None),
    ),
    "3.1, announced password missing": (
        f"10 13 {MQISDP} 03 C2 003C 0002 6331 0001 75",
        ConnectReceived(3, "c1", True, 60, None, "u", None),
    ),
    "3.1, flags of the fixed header": (
        f"14 10 {MQISDP} 03 02 003C 0002 6331",
        ConnectReceived(3, "c1", True, 60, None, None, None),
    ),
    "3.1, control characters in client identifier and user name": (
        f"10 15 {MQISDP} 03 82 003C 0003 630131 0002 7F1F",
        ConnectReceived(3, "c\x011", True, 60, None, "\x7f\x1f", None),
    ),
    "3.1, unused flags set": (
        f"10 10 {MQISDP} 03 3B 003C 0002 6331",
        ConnectReceived(3, "c1", True, 60, None, None, None),
    ),
}

REFUSED = {
    "level 5 of MQTT, which must be asked for": (f"10 0F {MQTT} 05 02 003C 00 0002 6331", 0x84),
    "level 6 of MQTT, with properties": (f"10 0F {MQTT} 06 02 003C 00 0002 6331", 0x84),
    "level 6 of MQTT, cut off": (f"10 0D {MQTT} 06 02 003C 0002 63", 0x84),
    "level 6 of MQTT, without properties": (f"10 0E {MQTT} 06 02 003C 0002 6331", 1),
    "level 255 of MQTT, with every field and no properties": (
        f"10 1A {MQTT} FF C6 003C 0002 6331 0001 74 0001 6D 0001 75 0001 70",
        1,
    ),
    "level 255 of MQTT, with every field and properties": (
        f"10 1C {MQTT} FF C6 003C 00 0002 6331 00 0001 74 0001 6D 0001 75 0001 70",
        0x84,
    ),
    "level 2 of MQIsdp": (f"10 10 {MQISDP} 02 02 003C 0002 6331", 1),
    "level 2 of MQTT": (f"10 0E {MQTT} 02 02 003C 0002 6331", 1),
    "level 5 of MQIsdp": (f"10 11 {MQISDP} 05 02 003C 00 0002 6331", 1),
    "level 6 of MQIsdp": (f"10 10 {MQISDP} 06 02 003C 0002 6331", 1),
    "level 3 of MQTT": (f"10 0E {MQTT} 03 02 003C 0002 6331", 1),
    "level 4 of MQIsdp": (f"10 10 {MQISDP} 04 02 003C 0002 6331", 1),
    "level of a bridge": (f"10 0E {MQTT} 84 02 003C 0002 6331", 1),
    "empty identifier with a kept session": (f"10 0C {MQTT} 04 00 003C 0000", 2),
    "empty identifier in 3.1": (f"10 0E {MQISDP} 03 02 003C 0000", 2),
}

VIOLATIONS = {
    "protocol name in small letters": "10 0E 0004 6D717474 04 02 003C 0002 6331",
    "protocol name of another protocol": "10 0E 0004 48545450 04 02 003C 0002 6331",
    "PUBLISH first": "30 03 0001 61",
    "PINGREQ first": "C0 00",
    "an HTTP request": b"GET / HTTP/1.1\r\n".hex(),
}

MALFORMED = {
    "CONNECT with flags": f"12 0E {MQTT} 04 02 003C 0002 6331",
    "reserved flag": f"10 0E {MQTT} 04 03 003C 0002 6331",
    "will QoS 3": f"10 14 {MQTT} 04 1E 003C 0002 6331 0001 77 0001 68",
    "will QoS 3 in 3.1": f"10 16 {MQISDP} 03 1E 003C 0002 6331 0001 77 0001 68",
    "will QoS without will": f"10 0E {MQTT} 04 0A 003C 0002 6331",
    "will retain without will": f"10 0E {MQTT} 04 22 003C 0002 6331",
    "password without user name": f"10 11 {MQTT} 04 42 003C 0002 6331 0001 70",
    "password without user name in 3.1": f"10 13 {MQISDP} 03 42 003C 0002 6331 0001 70",
    "announced user name missing": f"10 0E {MQTT} 04 82 003C 0002 6331",
    "announced will missing in 3.1": f"10 10 {MQISDP} 03 06 003C 0002 6331",
    "bytes behind the last field": f"10 0F {MQTT} 04 02 003C 0002 6331 00",
    "bytes behind the last field in 3.1": f"10 11 {MQISDP} 03 02 003C 0002 6331 00",
    "identifier longer than the packet": f"10 0E {MQTT} 04 02 003C 0003 6331 FF",
    "identifier not UTF-8": f"10 0E {MQTT} 04 02 003C 0002 C328",
    "identifier with U+0000": f"10 0E {MQTT} 04 02 003C 0002 6100",
    "identifier with U+0001": f"10 0E {MQTT} 04 02 003C 0002 6101",
    "will topic with U+001F": f"10 13 {MQTT} 04 06 003C 0002 6331 0001 1F 0000",
    "user name with U+007F": f"10 11 {MQTT} 04 82 003C 0002 6331 0001 7F",
    "user name with a surrogate": f"10 13 {MQTT} 04 82 003C 0002 6331 0003 EDA080",
    "empty packet": "10 00",
    "only a protocol name": f"10 06 {MQTT}",
    "remaining length of five bytes": "10 80 80 80 80 01",
}


@pytest.mark.parametrize("piece_bytes", [1, 1000])
@pytest.mark.parametrize("case", ACCEPTED)
def test_connect_is_accepted(case: str, piece_bytes: int) -> None:
    """MQTT-3.1.3-1, -5."""
    encoded, expected = ACCEPTED[case]
    data, connection, events = bytes.fromhex(encoded), Connection(), list[Event]()
    for start in range(0, len(data), piece_bytes):
        assert events == []
        events += connection.receive_data(data[start : start + piece_bytes])
    assert events == [expected]
    assert connection.level == expected.level
    assert not connection.is_closed


@pytest.mark.parametrize("piece_bytes", [1, 1000])
@pytest.mark.parametrize("case", REFUSED)
def test_connect_is_refused_with_a_return_code(case: str, piece_bytes: int) -> None:
    """MQTT-3.1.2-2 of both standards: a client from before level 5 is told in its form, others in that of 5.

    Of levels that nobody knows the layout decides: without properties it is that of level 4.

    MQTT-3.1.3-8, -9.
    """
    encoded, return_code = REFUSED[case]
    data, connection, events = bytes.fromhex(encoded) + b"\xc0\x00", Connection(), list[Event]()
    for start in range(0, len(data), piece_bytes):
        events += connection.receive_data(data[start : start + piece_bytes])
    (refused,) = events
    assert isinstance(refused, ConnectRefused)
    assert refused.return_code == return_code
    answer = "20 03 00 84 00" if return_code == 0x84 else f"20 02 00 {return_code:02X}"
    assert plain(refused.answer) == bytes.fromhex(answer)
    assert connection.closing_packet(ReasonCode.UNSPECIFIED_ERROR) == b""
    assert connection.is_closed


@pytest.mark.parametrize("piece_bytes", [1, 1000])
@pytest.mark.parametrize(
    ("encoded", "error"),
    [(encoded, ProtocolViolation) for encoded in VIOLATIONS.values()]
    + [(encoded, MalformedPacket) for encoded in MALFORMED.values()],
    ids=[*VIOLATIONS, *MALFORMED],
)
def test_bad_connect_is_the_last_event(encoded: str, error: type[Exception], piece_bytes: int) -> None:
    """The cases break these statements of 3.1.1.

    MQTT-1.5.3-1, -2, MQTT-3.1.0-1, MQTT-3.1.2-1, -3, -9, -11, -13, -14, -15, -18, -19, -20, -21, -22,
    MQTT-3.1.3-3, -4, -10, -11, MQTT-3.1.4-1.
    """
    data, connection, events = bytes.fromhex(encoded), Connection(), list[Event]()
    for start in range(0, len(data), piece_bytes):
        events += connection.receive_data(data[start : start + piece_bytes])
    (violated,) = events
    assert isinstance(violated, Violated)
    assert type(violated.error) is error
    assert connection.receive_data(bytes.fromhex(ACCEPTED["3.1.1"][0])) == []


@pytest.mark.parametrize(
    ("topic", "error"), [("0001 23", MalformedPacket), ("0001 2B", MalformedPacket), ("0000", ProtocolViolation)]
)
def test_will_topic_must_be_a_topic_name(topic: str, error: type[Exception]) -> None:
    fields = bytes.fromhex(f"{MQTT} 04 06 003C 0002 6331 {topic} 0001 68")
    (violated,) = Connection().receive_data(bytes((0x10, len(fields))) + fields)
    assert isinstance(violated, Violated)
    assert type(violated.error) is error


def test_connect_longer_than_any_is_refused_by_its_length() -> None:
    (violated,) = Connection().receive_data(bytes.fromhex("10 92 80 14"))  # 327,698 bytes
    assert isinstance(violated, Violated)
    assert isinstance(violated.error, LimitExceeded)


def test_connect_cut_at_every_length_of_its_fields_is_malformed() -> None:
    whole = bytes.fromhex(ACCEPTED["3.1.1, example of section 3.1.2"][0])[2:]
    for size in range(len(whole)):
        (violated,) = Connection().receive_data(bytes((0x10, size)) + whole[:size])
        assert isinstance(violated, Violated)
        assert isinstance(violated.error, MalformedPacket)
