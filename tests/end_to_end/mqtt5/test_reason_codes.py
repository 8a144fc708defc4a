"""What a client of MQTT 5.0 is told before its connection is closed, and that no earlier one is told anything.

MQTT-4.13.1-1 and section 4.13.1: CONNACK where none was sent, DISCONNECT behind it, with the code that the standard has
for the fault.
"""

import signal
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.metrics_page import scrape_until
from tests.end_to_end.mqtt5.client import connected, read_connack, subscribe
from tests.end_to_end.mqtt5.conftest import NewGateway
from tests.end_to_end.wire import WireClient, packet

MQTT = "0004 'MQTT' 05"

REFUSED_CONNECTS = {
    "reserved flag (MQTT-3.1.2-3)": (f"10 0F {MQTT} 03 0000 00 0002 'c1'", 0x81),
    "will of QoS 3 (MQTT-3.1.2-12)": (f"10 16 {MQTT} 1E 0000 00 0002 'c1' 00 0001 'w' 0001 'h'", 0x81),
    "user name announced and missing (MQTT-3.1.2-17)": (f"10 0F {MQTT} 82 0000 00 0002 'c1'", 0x81),
    "client identifier that is no UTF-8 (MQTT-1.5.4-1)": (f"10 10 {MQTT} 02 0000 00 0003 EDA080", 0x81),
    "client identifier with a control character (section 1.5.4)": (f"10 0F {MQTT} 02 0000 00 0002 6307", 0x81),
    "property of another packet (section 2.2.2.2)": (f"10 11 {MQTT} 02 0000 02 0101 0002 'c1'", 0x81),
    "receive maximum 0": (f"10 12 {MQTT} 02 0000 03 21 0000 0002 'c1'", 0x82),
    "session expiry twice": (f"10 19 {MQTT} 02 0000 0A 11 00000001 11 00000001 0002 'c1'", 0x82),
    "authentication method (MQTT-4.12.0-1)": (f"10 13 {MQTT} 02 0000 04 15 0001 'm' 0002 'c1'", 0x8C),
    "version 6 (MQTT-3.1.2-2)": ("10 0F 0004 'MQTT' 06 02 0000 00 0002 'c1'", 0x84),
    "protocol name of another protocol (MQTT-3.1.2-1)": ("10 0D 0003 'MQT' 05 02 0000 00 0001 'c'", 0x84),
}

FAULTS = {
    "packet type 0": ("00 00", 0x82),
    "CONNECT again (MQTT-3.1.0-2)": (f"10 0F {MQTT} 02 0000 00 0002 'c1'", 0x82),
    "CONNACK (MQTT-3.2.0-1)": ("20 03 00 00 00", 0x82),
    "AUTH without a method under way (MQTT-4.12.0-7)": ("F0 02 19 00", 0x82),
    "remaining length of five bytes": ("30 80 80 80 80 01", 0x81),
    "remaining length longer than it must be (MQTT-1.5.5-1)": ("C0 80 00", 0x81),
    "PUBLISH of QoS 3 (MQTT-3.3.1-4)": ("36 06 0001 'a' 0001 00", 0x81),
    "PUBLISH with a wildcard (MQTT-3.3.2-2)": ("30 06 0003 'a/#' 00", 0x81),
    "PUBLISH with neither topic nor alias": ("30 03 0000 00", 0x82),
    "PUBLISH with packet identifier 0 (MQTT-2.2.1-3)": ("32 06 0001 'a' 0000 00", 0x82),
    "PUBLISH with a subscription identifier (MQTT-3.3.4-6)": ("30 06 0001 'a' 02 0B01", 0x82),
    "PUBLISH with alias 0 (MQTT-3.3.2-8)": ("30 07 0001 'a' 03 23 0000", 0x94),
    "PUBLISH with an alias past the maximum (MQTT-3.3.2-9)": ("30 07 0001 'a' 03 23 FFFF", 0x94),
    "PUBLISH with an alias that stands for nothing": ("30 06 0000 03 23 0001", 0x82),
    "PUBLISH with a response topic that is a filter (MQTT-3.3.2-14)": ("30 08 0001 'a' 04 08 0001 '+'", 0x82),
    "PUBREL without its flags (MQTT-3.6.1-1)": ("60 02 0001", 0x81),
    "SUBSCRIBE without its flags (MQTT-3.8.1-1)": ("80 07 0001 00 0001 'a' 00", 0x81),
    "SUBSCRIBE of nothing (MQTT-3.8.3-2)": ("82 03 0001 00", 0x82),
    "SUBSCRIBE with subscription identifier 0": ("82 09 0001 02 0B00 0001 'a' 00", 0x82),
    "SUBSCRIBE with a reserved option (MQTT-3.8.3-5)": ("82 07 0001 00 0001 'a' 40", 0x81),
    "SUBSCRIBE with no local, shared (MQTT-3.8.3-4)": ("82 10 0001 00 000A '$share/g/a' 04", 0x82),
    "SUBSCRIBE with an empty ShareName (MQTT-4.8.2-1)": ("82 0F 0001 00 0009 '$share//a' 00", 0x82),
    "SUBSCRIBE with a wildcard that stands wrong (MQTT-4.7.1-1)": ("82 08 0001 00 0002 'a#' 00", 0x81),
    "UNSUBSCRIBE of nothing (MQTT-3.10.3-2)": ("A2 03 0001 00", 0x82),
    "PINGREQ with a body": ("C0 01 00", 0x81),
    "DISCONNECT with a code of servers (MQTT-3.14.2-1)": ("E0 01 8B", 0x82),
    "DISCONNECT that lets an ended session last (MQTT-3.14.2-2)": ("E0 07 00 05 11 00000001", 0x82),
}

BEFORE_LEVEL_5 = {
    3: "10 10 0006 'MQIsdp' 03 02 0000 0002 'r{}'",
    4: "10 0E 0004 'MQTT' 04 02 0000 0002 'r{}'",
}


@pytest.mark.parametrize(("written", "reason_code"), REFUSED_CONNECTS.values(), ids=REFUSED_CONNECTS)
def test_connect_that_cannot_be_accepted_is_answered_by_connack(
    five: Gateway, connect: Connect, written: str, reason_code: int
) -> None:
    """MQTT-3.1.4-2, MQTT-4.12.0-4, MQTT-4.13.2-1. MQTT-3.15.2-2, -3, MQTT-4.12.0-2, -5."""
    client = connect(five)
    client.send("connects", written)
    answer = read_connack(client)
    assert (answer.reason_code, answer.session_present) == (reason_code, False)
    client.expect_end("is closed (MQTT-3.2.2-7)")


@pytest.mark.parametrize("written", ["C0 00", "E0 00", "10 0C 0003 'MQT' 04 02 0000 0001 'c'"])
def test_what_is_no_connect_of_mqtt_is_closed_without_a_word(five: Gateway, connect: Connect, written: str) -> None:
    """MQTT-3.1.0-1, MQTT-3.1.2-1: nobody knows what such a peer could read."""
    client = connect(five)
    client.send("begins", written)
    client.expect_end("is closed")


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_told_by_disconnect(five: Gateway, connect: Connect, name: str) -> None:
    """MQTT-4.12.1-2."""
    written, reason_code = FAULTS[name]
    client = connect(five)
    connected(client, f"fault-{list(FAULTS).index(name)}")
    client.send("pings, does wrong, and pings again", "C0 00", written, "C0 00")
    client.expect("is answered once, and told of its fault", "D0 00", f"E0 01 {reason_code:02X}")
    client.expect_end("is closed")


def test_client_that_goes_on_sending_is_told_all_the_same(five: Gateway, connect: Connect) -> None:
    """What it has sent behind its fault would reset the connection if nobody read it."""
    client = connect(five)
    connected(client, "goes-on")
    client.send("does wrong, and goes on", "36 06 0001 'a' 0001 00", packet("C0 00") * 1_000_000)
    client.expect("is told", "E0 01 81")
    client.expect_end("is closed")


def _send_for_ever(client: WireClient) -> None:
    while True:
        client.send("goes on", packet("C0 00") * 1_000)


def test_client_that_never_stops_sending_is_cut_off(five: Gateway, connect: Connect) -> None:
    client = connect(five)
    connected(client, "never-stops")
    client.send("does wrong", "36 06 0001 'a' 0001 00")
    with pytest.raises(AssertionError, match="could not send"):
        _send_for_ever(client)


@pytest.mark.parametrize("level", BEFORE_LEVEL_5)
@pytest.mark.parametrize("fault", ["00 00", "36 05 0001 'a' 0001", "C0 01 00", "20 02 0000"])
def test_earlier_levels_are_closed_without_a_word(five: Gateway, connect: Connect, level: int, fault: str) -> None:
    """MQTT-4.8.0-1 of 3.1.1: no packet of a server says goodbye there."""
    client = connect(five)
    client.send("connects", BEFORE_LEVEL_5[level].format(level))
    client.expect("is accepted", "20 02 00 00")
    client.send("does wrong", fault)
    client.expect_end("is closed")


def test_nothing_is_sent_behind_the_clients_own_disconnect(five: Gateway, connect: Connect) -> None:
    """MQTT-3.14.4-1, -2."""
    client = connect(five)
    connected(client, "leaves")
    client.send("disconnects, and goes on", "E0 00", "C0 00 00 00")
    client.expect_end("is closed")


def test_too_many_publishes_without_an_answer_are_93(new_five: NewGateway, connect: Connect) -> None:
    """MQTT-3.3.4-7, section 3.3.4: what is released counts no more."""
    client = connect(new_five("receive_maximum = 2"))
    assert connected(client, "floods").properties[0x21] == b"\x00\x02"
    client.send("publishes two at QoS 2", "34 06 0001 'a' 0001 00", "34 06 0001 'a' 0002 00")
    client.expect("gets PUBRECs", "50 02 0001 50 02 0002")
    client.send("repeats one, and releases one", "3C 06 0001 'a' 0002 00", "62 02 0001")
    client.expect("gets its answers", "50 02 0002 70 02 0001")
    client.send("publishes two more", "34 06 0001 'a' 0003 00", "34 06 0001 'a' 0004 00")
    *answers, last = iter(client.receive_packet, b"")
    assert last == packet("E0 01 93")
    assert answers in ([], [packet("50 02 0003")])


def test_packet_that_is_too_large_is_95_before_its_body_comes(new_five: NewGateway, connect: Connect) -> None:
    """Section 3.2.2.3.6."""
    client = connect(new_five("maximum_packet_bytes = 100"))
    assert connected(client, "large").properties[0x27] == b"\x00\x00\x00\x64"
    client.send("begins a packet of 101 bytes", "30 63 0001 'a'")
    client.expect("is told", "E0 01 95")
    client.expect_end("is closed")


def test_gateway_that_stops_is_8b(new_five: NewGateway, connect: Connect) -> None:
    gateway = new_five()
    newest, older = connect(gateway, "newest"), connect(gateway, "older")
    connected(newest, "newest")
    older.send("connects", BEFORE_LEVEL_5[4].format(4))
    older.expect("is accepted", "20 02 00 00")
    subscribe(newest, "any")
    gateway.signal(signal.SIGTERM)
    newest.expect("is told", "E0 01 8B")
    newest.expect_end("is closed")
    older.expect_end("is closed")
    assert gateway.wait() == 0


def test_connect_that_meets_a_stopping_gateway_is_88(
    new_gateway: StartGateway, connect: Connect, tmp_path: Path
) -> None:
    """Its password is still being checked; before level 5 the return code is 3."""
    users = tmp_path / "users"
    users.write_text("anna:$argon2id$v=19$m=65536,t=30,p=1$c29tZXNhbHQ$" + "A" * 43 + "\n", encoding="utf-8")
    users.chmod(0o600)
    config = tmp_path / "rfhbridge.toml"
    tables = f'[access]\npassword_file = "{users}"\n[http]\nenabled = true\nlisten = "127.0.0.1:0"\n'
    config.write_text(f'{tables}[mqtt]\nversions = ["3.1.1", "5"]\n', encoding="utf-8")
    gateway = new_gateway("--config", str(config)).start()
    newest, older = connect(gateway, "newest"), connect(gateway, "older")
    newest.send("connects", "10 18 0004 'MQTT' 05 C2 0000 00 0001 'n' 0004 'anna' 0002 'pw'")
    older.send("connects", "10 17 0004 'MQTT' 04 C2 0000 0001 'o' 0004 'anna' 0002 'pw'")
    scrape_until(gateway, lambda page: page.value("logins_waiting") == 2)
    gateway.signal(signal.SIGTERM)
    newest.expect("is told", "20 03 00 88 00")
    older.expect("is told", "20 02 00 03")
    newest.expect_end("is closed")
    older.expect_end("is closed")
    assert gateway.wait() == 0


def test_connection_that_another_takes_over_is_8e(five: Gateway, connect: Connect) -> None:
    """MQTT-3.1.4-3."""
    first, second = connect(five, "first"), connect(five, "second")
    connected(first, "taken")
    connected(second, "taken")
    first.expect("is told", "E0 01 8E")
    first.expect_end("is closed")


def test_silence_past_the_keep_alive_is_8d(five: Gateway, connect: Connect) -> None:
    """MQTT-3.1.2-22."""
    client = connect(five)
    connected(client, "quiet", keep_alive_s=1)
    client.expect("is told", "E0 01 8D")
    client.expect_end("is closed")


def test_identifier_longer_than_a_session_can_have_is_85(five: Gateway, connect: Connect) -> None:
    """MQTT-3.1.3-8."""
    client = connect(five)
    body = packet(f"{MQTT} 02 0000 00 0401") + b"c" * 1_025
    client.send("connects", bytes((0x10, 0x80 | len(body) & 0x7F, len(body) >> 7)) + body)
    assert read_connack(client).reason_code == 0x85
    client.expect_end("is closed")


@pytest.mark.parametrize("asked", ["", "19 00", "19 01"])
def test_connack_has_no_response_information(five: Gateway, connect: Connect, asked: str) -> None:
    """MQTT-3.1.2-28: also where it is asked for, which section 3.1.2.11.6 leaves to the server."""
    assert 0x1A not in connected(connect(five), "informed", properties=asked).properties
