"""The client's side at level 5: what a server sends, by vectors of MQTT 5.0 chapter 3."""

import pytest

from gateway.mqtt.client import ClientConnection
from gateway.mqtt.errors import MalformedPacket, ProtocolViolation
from gateway.mqtt.events import (
    AuthReceived,
    ConnectAnswered,
    DeliveryAcknowledged,
    DisconnectReceived,
    Event,
    PingAnswered,
    PublishReceived,
    SubscribeAnswered,
    UnsubscribeAnswered,
    Violated,
)
from gateway.mqtt.properties import (
    AuthProperties,
    ConnackProperties,
    DisconnectProperties,
    Explanation,
    PublishProperties,
)
from gateway.mqtt.session import Session

VECTORS: list[tuple[str, Event]] = [
    ("20 03 00 00 00", ConnectAnswered(False, 0)),
    ("20 03 00 84 00", ConnectAnswered(False, 0x84)),
    (
        "20 0E 01 00 0B 21 0014 27 001E8480 22 000A",
        ConnectAnswered(
            True, 0, ConnackProperties(receive_maximum=20, maximum_packet_bytes=2_000_000, topic_alias_maximum=10)
        ),
    ),
    ("90 05 000A 00 02 87", SubscribeAnswered(10, b"\x02\x87")),
    ("90 08 000A 04 1F 0001 77 00", SubscribeAnswered(10, b"\x00", Explanation("w"))),
    ("B0 05 000A 00 00 11", UnsubscribeAnswered(10, b"\x00\x11")),
    ("D0 00", PingAnswered()),
    ("40 03 0001 10", DeliveryAcknowledged(1, "message")),
    (
        "30 09 0001 61 05 0B 01 0B 8001",
        PublishReceived(
            "a",
            b"",
            0,
            False,
            False,
            0,
            bytes.fromhex("30 09 0001 61 05 0B 01 0B 8001"),
            PublishProperties(subscription_identifiers=(1, 128)),
        ),
    ),
    ("F0 06 18 04 15 0001 6D", AuthReceived(0x18, AuthProperties("m"))),
    ("E0 06 9D 04 1C 0001 73", DisconnectReceived(0x9D, DisconnectProperties(server_reference="s"))),
]


def _client(**limits: int) -> ClientConnection:
    session = Session("c1", clean_session=True)
    session.start("message", 1)
    return ClientConnection(session, level=5, **limits)


@pytest.mark.parametrize(("encoded", "expected"), VECTORS)
def test_packet_of_a_server_gives_its_event(encoded: str, expected: Event) -> None:
    data = bytes.fromhex(encoded)
    assert _client().receive_data(data) == [expected]
    client, events = _client(), list[Event]()
    for byte in data:
        assert events == []
        events += client.receive_data(bytes((byte,)))
    assert events == [expected]


@pytest.mark.parametrize(
    ("encoded", "error"),
    [
        ("20 03 02 00 00", MalformedPacket),  # MQTT-3.2.2-1
        ("20 03 00 01 00", ProtocolViolation),  # MQTT-3.2.2-8
        ("20 02 00 00", MalformedPacket),
        ("90 04 000A 00 03", ProtocolViolation),  # MQTT-3.9.3-2
        ("B0 04 000A 00 01", ProtocolViolation),  # MQTT-3.11.3-2
        ("E0 01 04", ProtocolViolation),  # MQTT-3.14.2-1: of a client
        ("82 07 000A 00 0001 61 00", MalformedPacket),
        ("10 00", ProtocolViolation),
    ],
)
def test_fault_of_a_server_is_the_last_event(encoded: str, error: type[Exception]) -> None:
    client = _client()
    (violated,) = client.receive_data(bytes.fromhex(encoded))
    assert isinstance(violated, Violated)
    assert type(violated.error) is error
    assert client.receive_data(b"\xd0\x00") == []


def test_client_keeps_to_what_connack_says() -> None:
    """MQTT-3.2.2-15, MQTT-3.2.2-17, MQTT-3.3.4-7."""
    client = _client()
    client.receive_data(bytes.fromhex("20 0E 00 00 0B 21 0001 27 00000014 22 0001"))
    assert client.session is not None
    assert client.session.window() == 0
    assert client.writer.publish_header("site", 0) == bytes.fromhex("30 0A 0004 73697465 03 23 0001")
    assert client.writer.publish_header("site", 20) is None


def test_servers_publish_beyond_the_clients_receive_maximum_is_a_fault() -> None:
    """MQTT-3.3.4-9."""
    client = _client(receive_maximum=1)
    client.receive_data(bytes.fromhex("32 06 0001 61 0001 00"))
    client.answered(1)
    assert len(client.receive_data(bytes.fromhex("32 06 0001 61 0002 00"))) == 1
    (violated,) = client.receive_data(bytes.fromhex("32 06 0001 61 0003 00"))
    assert isinstance(violated, Violated)


def test_alias_of_a_server_is_read_within_the_clients_maximum() -> None:
    """MQTT-3.3.2-10."""
    client = _client(topic_alias_maximum=1)
    published, again = client.receive_data(bytes.fromhex("30 07 0001 61 03 23 0001 30 06 0000 03 23 0001"))
    assert isinstance(published, PublishReceived)
    assert isinstance(again, PublishReceived)
    assert again.topic == "a"
