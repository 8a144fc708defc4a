"""The client's side: what a server sends, by vectors of MQTT 3.1.1 chapter 3."""

import pytest

from gateway.mqtt.client import ClientConnection
from gateway.mqtt.errors import MalformedPacket, ProtocolViolation
from gateway.mqtt.events import (
    ConnectAnswered,
    DeliveryAcknowledged,
    Event,
    PingAnswered,
    PublishReceived,
    ReleaseReceived,
    SubscribeAnswered,
    UnsubscribeAnswered,
    Violated,
)
from gateway.mqtt.session import Session

VECTORS: list[tuple[str, Event]] = [
    ("20 02 00 00", ConnectAnswered(False, 0)),
    ("20 02 01 00", ConnectAnswered(True, 0)),
    ("20 02 00 05", ConnectAnswered(False, 5)),
    ("90 05 000A 00 02 80", SubscribeAnswered(10, b"\x00\x02\x80")),  # section 3.9.3, the example
    ("B0 02 000A", UnsubscribeAnswered(10)),
    ("D0 00", PingAnswered()),
    ("40 02 0001", DeliveryAcknowledged(1, "message")),
    ("62 02 0007", ReleaseReceived(7)),
    ("32 05 0001 61 0001", PublishReceived("a", b"", 1, False, False, 1, bytes.fromhex("32 05 0001 61 0001"))),
]


def _client() -> ClientConnection:
    session = Session("c1", clean_session=True)
    session.start("message", 1)
    return ClientConnection(session)


@pytest.mark.parametrize(("encoded", "expected"), VECTORS)
def test_packet_of_a_server_gives_its_event(encoded: str, expected: Event) -> None:
    data = bytes.fromhex(encoded)
    assert _client().receive_data(data + b"\xd0\x00") == [expected, PingAnswered()]
    client, events = _client(), list[Event]()
    for byte in data:
        assert events == []
        events += client.receive_data(bytes((byte,)))
    assert events == [expected]


@pytest.mark.parametrize(
    ("encoded", "error"),
    [
        ("20 02 02 00", MalformedPacket),
        ("20 01 00", MalformedPacket),
        ("20 03 000000", MalformedPacket),
        ("90 02 0000", MalformedPacket),
        ("D0 01 00", MalformedPacket),
        ("6A 02 0007", MalformedPacket),
        ("10 00", ProtocolViolation),
        ("C0 00", ProtocolViolation),
        ("E0 00", ProtocolViolation),
    ],
)
def test_fault_of_a_server_is_the_last_event(encoded: str, error: type[Exception]) -> None:
    client = _client()
    (violated,) = client.receive_data(bytes.fromhex(encoded))
    assert isinstance(violated, Violated)
    assert type(violated.error) is error
    assert client.receive_data(b"\xd0\x00") == []


def test_server_of_3_1_may_set_the_duplicate_flag_on_pubrel() -> None:
    client = ClientConnection(Session("c1", clean_session=True), level=3)
    assert client.receive_data(bytes.fromhex("6A 02 0007")) == [ReleaseReceived(7)]


def test_answered_means_nothing_before_level_5() -> None:
    client = _client()
    client.answered(1)
    assert client.receive_data(b"\xd0\x00") == [PingAnswered()]
