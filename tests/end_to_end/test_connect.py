"""CONNECT and CONNACK, byte by byte (MQTT 3.1.1 sections 3.1 and 3.2; MQTT 3.1 where level 3 differs)."""

from pathlib import Path

import pytest

from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.wire import WireClient

ACCEPTED = "20 02 00 00"
ACCEPTED_SESSION_PRESENT = "20 02 01 00"
WRONG_LEVEL = "20 02 00 01"
UNKNOWN_LEVEL = "20 03 00 84 00"
IDENTIFIER_REJECTED = "20 02 00 02"
DISCONNECT = "E0 00"
PINGREQ, PINGRESP = "C0 00", "D0 00"


@pytest.mark.parametrize(
    "written",
    [
        "10 10 0004 'MQTT' 04 02 003C 0004 'co01'",
        "10 12 0006 'MQIsdp' 03 02 003C 0004 'co02'",
        "10 10 0004 'MQTT' 04 00 0000 0004 'co03'",
        "10 1E 0004 'MQTT' 04 C2 003C 0004 'co04' 0005 'boile' 0005 'stoke'",
        "10 1F 0004 'MQTT' 04 2E 003C 0004 'co05' 0007 'co/will' 0004 'gone'",
    ],
    ids=["3.1.1", "3.1", "persistent, no keep-alive", "user name and password", "will of QoS 1 with RETAIN"],
)
def test_a_connect_of_either_level_is_accepted(shared_gateway: Gateway, connect: Connect, written: str) -> None:
    """MQTT-3.1.4-4, MQTT-3.2.0-1, MQTT-7.0.0-1, -2, MQTT-7.1.1-1."""
    client = connect(shared_gateway)
    client.send("connects", written)
    client.expect("is accepted", ACCEPTED)
    client.send("pings", PINGREQ)
    client.expect("is answered", PINGRESP)
    client.send("disconnects", DISCONNECT)
    client.expect_end("is disconnected")


def test_session_present_tells_whether_a_session_was_kept(shared_gateway: Gateway, connect: Connect) -> None:
    """MQTT-3.2.2-1, -2, -3."""
    for step, written, answer in (
        ("connects for the first time", "10 10 0004 'MQTT' 04 00 003C 0004 'co10'", ACCEPTED),
        ("connects again", "10 10 0004 'MQTT' 04 00 003C 0004 'co10'", ACCEPTED_SESSION_PRESENT),
        ("connects with 3.1, which has no such flag", "10 12 0006 'MQIsdp' 03 00 003C 0004 'co10'", ACCEPTED),
        ("connects with a clean session", "10 10 0004 'MQTT' 04 02 003C 0004 'co10'", ACCEPTED),
        ("connects after the clean session", "10 10 0004 'MQTT' 04 00 003C 0004 'co10'", ACCEPTED),
    ):
        client = connect(shared_gateway)
        client.send(step, written)
        client.expect(step, answer)
        client.send("disconnects", DISCONNECT)
        client.expect_end("is disconnected")


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("10 11 0004 'MQTT' 06 02 003C 00 0004 'co20'", UNKNOWN_LEVEL),
        ("10 10 0004 'MQTT' 06 02 003C 0004 'co20'", WRONG_LEVEL),
        ("10 10 0004 'MQTT' 03 02 003C 0004 'co21'", WRONG_LEVEL),
        ("10 12 0006 'MQIsdp' 04 02 003C 0004 'co22'", WRONG_LEVEL),
        ("10 0C 0004 'MQTT' 04 00 003C 0000", IDENTIFIER_REJECTED),
        ("10 0E 0006 'MQIsdp' 03 02 003C 0000", IDENTIFIER_REJECTED),
    ],
    ids=["level 6", "level 6 without properties", "MQTT at 3", "MQIsdp at 4", "empty and persistent", "empty at 3.1"],
)
def test_a_connect_that_cannot_be_accepted_is_answered_and_closed(
    shared_gateway: Gateway, connect: Connect, written: str, answer: str
) -> None:
    """MQTT-3.1.4-5, MQTT-3.2.2-4, -5."""
    client = connect(shared_gateway)
    client.send("connects", written)
    client.expect("is refused with a return code", answer)
    client.expect_end("is disconnected")


def test_an_empty_client_identifier_gets_one_of_its_own(shared_gateway: Gateway, connect: Connect) -> None:
    """MQTT-3.1.3-6."""
    first, second = connect(shared_gateway, "the first"), connect(shared_gateway, "the second")
    for client in (first, second):
        client.send("connects without an identifier", "10 0C 0004 'MQTT' 04 02 003C 0000")
        client.expect("is accepted", ACCEPTED)
    first.send("pings, for the second did not take its place", PINGREQ)
    first.expect("is answered", PINGRESP)


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("10 10 0004 'MQTT' 04 03 003C 0004 'co30'", "reserved flag"),
        ("10 17 0004 'MQTT' 04 42 003C 0004 'co31' 0005 'stoke'", "password without a user name"),
        ("10 1B 0004 'MQTT' 04 1E 003C 0004 'co32' 0005 'co/wi' 0002 'hi'", "will of QoS 3"),
        ("10 10 0004 'MQTX' 04 02 003C 0004 'co33'", "protocol name"),
        ("10 10 0004 'MQTT' 04 02 003C 0004 'co' C3 28", "not UTF-8"),
        ("10 0F 0004 'MQTT' 04 02 003C 0004 'co3'", "ends inside a field"),
        ("10 11 0004 'MQTT' 04 02 003C 0004 'co34' 00", "behind the last field"),
        ("30 07 0003 'a/b' 'hi'", "first packet is not CONNECT"),
        ("00 00", "first packet is not CONNECT"),
        ("16 0301 0005 0102030405", "it begins with 16, as TLS does"),
        ("'GET /mqtt HTTP/1.1' 0D 0A 0D 0A", "it begins with 47, as GET of HTTP does"),
    ],
)
def test_a_malformed_connect_is_closed_with_a_reason_in_the_log(
    shared_gateway: Gateway, written: str, reason: str
) -> None:
    """MQTT-3.1.4-1, MQTT-3.2.2-6. From an address of its own: one has few lines a minute in the log."""
    with WireClient(shared_gateway.port, source="127.0.0.2") as client:
        client.send("sends what is no CONNECT", written)
        client.expect_end("is disconnected without an answer")
        shared_gateway.wait_for_log("connection closed", peer=client.peer, reason=reason)


def test_a_second_connect_closes_the_connection(shared_gateway: Gateway, connect: Connect) -> None:
    """MQTT-3.1.0-2."""
    client = connect(shared_gateway)
    client.send("connects", "10 10 0004 'MQTT' 04 02 003C 0004 'co40'")
    client.expect("is accepted", ACCEPTED)
    client.send("connects again", "10 10 0004 'MQTT' 04 02 003C 0004 'co40'")
    client.expect_end("is disconnected")
    shared_gateway.wait_for_log("connection closed", client="^co40$", reason="CONNECT was sent on a connection")


def test_a_password_never_reaches_the_log(shared_gateway: Gateway, connect: Connect) -> None:
    client = connect(shared_gateway)
    client.send(
        "connects, and breaks off",
        "10 1F 0004 'MQTT' 04 C2 003C 0004 'co41' 0005 'boile' 0006 'secret'",
        "00 00",
    )
    client.expect("is accepted", ACCEPTED)
    client.expect_end("is disconnected")
    shared_gateway.wait_for_log("connection closed", client="^co41$")
    assert "secret" not in shared_gateway.log


def test_a_packet_behind_the_connect_may_come_with_it(shared_gateway: Gateway, connect: Connect) -> None:
    client = connect(shared_gateway)
    client.send(
        "connects, subscribes and publishes in one write",
        "10 10 0004 'MQTT' 04 02 003C 0004 'co50'",
        "82 0A 0001 0005 'co/on' 01",
        "32 0B 0005 'co/on' 0002 'hi'",
    )
    client.expect("is accepted first", ACCEPTED)
    received = [client.receive_packet() for _ in range(3)]
    assert sorted(received) == sorted(
        [
            bytes.fromhex("90 03 0001 01"),
            bytes.fromhex("40 02 0002"),
            bytes.fromhex("32 0B 0005 636F2F6F6E 0001 6869"),
        ]
    )
    assert received.index(bytes.fromhex("90 03 0001 01")) < received.index(
        bytes.fromhex("32 0B 0005 636F2F6F6E 0001 6869")
    ), "the publication came before the SUBACK"


def test_a_client_identifier_of_more_than_1024_characters_is_rejected(
    shared_gateway: Gateway, connect: Connect
) -> None:
    """Every record of the session would carry it. Return code 2, identifier rejected (MQTT-3.1.3-9)."""
    client = connect(shared_gateway)
    client.send("connects", "10 8D08 0004 'MQTT' 04 02 003C 0401", b"c" * 1_025)
    client.expect("is refused", "20 02 00 02")
    client.expect_end("is disconnected")


def test_packets_may_come_byte_by_byte(shared_gateway: Gateway, connect: Connect) -> None:
    client = connect(shared_gateway)
    client.send_byte_by_byte("connects slowly", "10 10 0004 'MQTT' 04 02 003C 0004 'co60'")
    client.expect("is accepted", ACCEPTED)
    client.send_byte_by_byte("subscribes slowly", "82 0A 0001 0005 'co/sl' 02")
    client.expect("is granted QoS 2", "90 03 0001 02")
    client.send_byte_by_byte("publishes slowly", "34 0B 0005 'co/sl' 0009 'hi'")
    client.expect("gets PUBREC", "50 02 0009")
    client.send_byte_by_byte("releases slowly", "62 02 0009")
    client.expect("gets PUBCOMP", "70 02 0009")
    client.expect("gets its own publication", "34 0B 0005 'co/sl' 0001 'hi'")


def test_a_connection_without_a_connect_is_closed_in_time(
    new_gateway: StartGateway, connect: Connect, tmp_path: Path
) -> None:
    configuration = tmp_path / "rfhbridge.toml"
    configuration.write_text("[mqtt]\nconnect_timeout_s = 5\nmaximum_connections = 2\n")
    gateway = new_gateway("--config", str(configuration)).start()
    silent, talking = connect(gateway, "the silent one"), connect(gateway, "the other")
    talking.send("connects", "10 10 0004 'MQTT' 04 02 0000 0004 'co70'")
    talking.expect("is accepted", ACCEPTED)
    third = connect(gateway, "the third")
    third.send("connects", "10 10 0004 'MQTT' 04 02 0000 0004 'co71'")
    third.expect("is told that the server is unavailable", "20 02 00 03")
    third.expect_end("is one connection too many")
    gateway.wait_for_log("limit reached", limit="connections", answer="QUOTA_EXCEEDED")
    silent.expect_end("is disconnected")
    gateway.wait_for_log("connection closed", reason="no CONNECT")
    talking.send("pings", PINGREQ)
    talking.expect("is answered", PINGRESP)
