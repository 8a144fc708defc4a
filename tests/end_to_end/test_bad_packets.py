"""Bad input over MQTT: it closes that connection, with a reason in the log, and harms nobody else."""

import pytest

from tests.end_to_end.conftest import Connect
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.wire import WireClient, packet

ACCEPTED = "20 02 00 00"
CONNECT_4 = "10 10 0004 'MQTT' 04 02 0000 0004 '{0}'"
CONNECT_3 = "10 12 0006 'MQIsdp' 03 02 0000 0004 '{0}'"


@pytest.fixture
def neighbour(shared_gateway: Gateway, connect: Connect) -> WireClient:
    """A client with a subscription, on its own connection."""
    client = connect(shared_gateway, "the neighbour")
    client.send("connects", CONNECT_4.format("next"))
    client.expect("is accepted", ACCEPTED)
    client.send("subscribes", "82 0A 0001 0005 'ba/ok' 01")
    client.expect("is granted QoS 1", "90 03 0001 01")
    return client


def _is_unharmed(client: WireClient) -> None:
    client.send("publishes to itself", "32 0B 0005 'ba/ok' 0007 'hi'")
    client.expect_in_any_order("is served as ever", "40 02 0007", "32 0B 0005 'ba/ok' 0001 'hi'")


MALFORMED = [
    ("packet type 0", "00 00", "reserved"),
    ("packet type 15", "F0 00", "reserved"),
    ("a remaining length of five bytes", "30 80 80 80 80 01", "longer than four bytes"),
    ("PUBLISH of QoS 3", "36 07 0003 'a/b' 0001", "QoS 3"),
    ("PUBLISH of QoS 0 with DUP", "38 05 0003 'a/b'", "DUP"),
    ("PUBLISH with the identifier 0", "32 07 0003 'a/b' 0000", "identifier 0"),
    ("PUBLISH of QoS 2 with the identifier 0", "34 07 0003 'a/b' 0000", "identifier 0"),
    ("PUBLISH with + in its topic", "30 05 0003 'a/+'", "wildcard"),
    ("PUBLISH with # in its topic", "30 03 0001 '#'", "wildcard"),
    ("PUBLISH without a topic", "30 02 0000", "topic name is empty"),
    ("PUBLISH with a topic that is not UTF-8", "30 05 0003 'a' C328", "not UTF-8"),
    ("PUBLISH with a surrogate in its topic", "30 05 0003 EDA080", "not UTF-8"),
    ("PUBLISH with U+0000 in its topic", "30 05 0003 'a' 00 'b'", "U+0000"),
    ("PUBLISH whose topic is longer than the packet", "30 05 0009 'a/b'", "ends in its header"),
    ("PUBLISH that ends before its identifier", "32 05 0003 'a/b'", "ends in its header"),
    ("PUBACK with the identifier 0", "40 02 0000", "identifier 0"),
    ("PUBREC with the identifier 0", "50 02 0000", "identifier 0"),
    ("PUBREL with the identifier 0", "62 02 0000", "identifier 0"),
    ("PUBCOMP with the identifier 0", "70 02 0000", "identifier 0"),
    ("PUBACK of three bytes", "40 03 0001 00", "remaining length"),
    ("PUBREL without its flags", "60 02 0001", "flags"),
    ("PUBACK with flags", "41 02 0001", "flags"),
    ("SUBSCRIBE without its flags", "80 08 0001 0003 'a/b' 00", "flags"),
    ("SUBSCRIBE with the identifier 0", "82 08 0000 0003 'a/b' 00", "identifier"),
    ("SUBSCRIBE without a filter", "82 02 0001", "no topic filter"),
    ("SUBSCRIBE with QoS 3", "82 08 0001 0003 'a/b' 03", "QoS"),
    ("SUBSCRIBE without a QoS", "82 07 0001 0003 'a/b'", "ends inside a field"),
    ("SUBSCRIBE with # in the middle", "82 0A 0001 0005 'a/#/b' 00", "last level"),
    ("SUBSCRIBE with + in a level", "82 09 0001 0004 'a/b+' 00", "whole of a level"),
    ("SUBSCRIBE with an empty filter", "82 05 0001 0000 00", "topic filter is empty"),
    ("SUBSCRIBE with a filter that is not UTF-8", "82 08 0001 0003 'a' C328 00", "not UTF-8"),
    ("UNSUBSCRIBE without a filter", "A2 02 0001", "no topic filter"),
    ("UNSUBSCRIBE with the identifier 0", "A2 07 0000 0003 'a/b'", "identifier"),
    ("PINGREQ with a body", "C0 01 00", "remaining length"),
    ("DISCONNECT with flags", "E1 00", "flags"),
    ("CONNACK from a client", "20 02 0000", "wrong direction"),
    ("SUBACK from a client", "90 03 0001 00", "wrong direction"),
    ("PINGRESP from a client", "D0 00", "wrong direction"),
]


@pytest.mark.parametrize(
    ("identifier", "written", "reason"),
    [(f"b{place:03}", *row[1:]) for place, row in enumerate(MALFORMED)],  # one client has few lines a minute in the log
    ids=[row[0] for row in MALFORMED],
)
def test_a_bad_packet_closes_its_connection_with_a_reason_in_the_log(
    shared_gateway: Gateway, connect: Connect, neighbour: WireClient, identifier: str, written: str, reason: str
) -> None:
    client = connect(shared_gateway)
    client.send("connects, and goes wrong", CONNECT_4.format(identifier), written)
    client.expect("is accepted", ACCEPTED)
    client.expect_end("is disconnected")
    closed = shared_gateway.wait_for_log("connection closed", peer=client.peer, client=f"^{identifier}$")
    assert reason in closed["reason"]
    _is_unharmed(neighbour)


@pytest.mark.parametrize(
    "written",
    ["38 05 0003 'a/b'", "6A 02 0001", "8A 08 0001 0003 'a/b' 00", "AA 07 0001 0003 'a/b'"],
    ids=["PUBLISH of QoS 0 with DUP", "PUBREL with DUP", "SUBSCRIBE with DUP", "UNSUBSCRIBE with DUP"],
)
def test_what_3_1_allows_closes_a_connection_of_3_1_1_alone(
    shared_gateway: Gateway, connect: Connect, written: str
) -> None:
    old, new = connect(shared_gateway, "the client of 3.1"), connect(shared_gateway, "the client of 3.1.1")
    old.send("connects", CONNECT_3.format("bad3"), written, "C0 00")
    old.expect("is accepted", ACCEPTED)
    answers = {"6A": ["70 02 0001"], "8A": ["90 03 0001 00"], "AA": ["B0 02 0001"]}.get(written[:2], [])
    old.expect_in_any_order("is served", "D0 00", *answers)
    new.send("connects", CONNECT_4.format("bad4"), written)
    new.expect("is accepted", ACCEPTED)
    new.expect_end("is disconnected")


GOOD = [
    ("CONNECT", "10 1D 0004 'MQTT' 04 0E 0000 0004 'cutw' 0005 'ba/wi' 0004 'gone'"),
    ("PUBLISH", "34 0B 0005 'ba/cu' 0001 'hi'"),
    ("SUBSCRIBE", "82 12 0001 0005 'ba/c1' 01 0005 'ba/c2' 01"),
    ("UNSUBSCRIBE", "A2 10 0002 0005 'ba/c1' 0005 'ba/c2'"),
    ("PUBREL", "62 02 0001"),
    ("PINGREQ", "C0 00"),
]


@pytest.mark.parametrize(("name", "written"), GOOD, ids=[row[0] for row in GOOD])
def test_a_packet_cut_at_every_length_harms_nobody(
    shared_gateway: Gateway, connect: Connect, neighbour: WireClient, name: str, written: str
) -> None:
    whole = packet(written)
    for length in range(1, len(whole)):
        client = connect(shared_gateway)
        if name != "CONNECT":
            client.send("connects", CONNECT_4.format("cut1"))
            client.expect("is accepted", ACCEPTED)
        client.send(f"sends {length} bytes of {name} and goes away", whole[:length])
        client.end() if length % 2 else client.drop()
    _is_unharmed(neighbour)
    assert "Traceback" not in shared_gateway.log


def test_what_was_published_before_a_bad_packet_is_kept(shared_gateway: Gateway, connect: Connect) -> None:
    watcher = connect(shared_gateway, "the watcher")
    watcher.send("connects", CONNECT_4.format("bad5"))
    watcher.expect("is accepted", ACCEPTED)
    watcher.send("subscribes", "82 0A 0001 0005 'ba/kp' 01")
    watcher.expect("is granted QoS 1", "90 03 0001 01")
    client = connect(shared_gateway)
    client.send("connects", CONNECT_4.format("bad6"))
    client.expect("is accepted", ACCEPTED)
    client.send("publishes, then goes wrong, then publishes", "32 0B 0005 'ba/kp' 0001 'hi'", "00 00")
    watcher.expect("gets what came before", "32 0B 0005 'ba/kp' 0001 'hi'")


def test_a_packet_above_the_limit_is_refused_before_its_body_comes(shared_gateway: Gateway, connect: Connect) -> None:
    client = connect(shared_gateway)
    client.send("connects and announces a SUBSCRIBE of 268,435,455 bytes", CONNECT_4.format("bad7"), "82 FF FF FF 7F")
    client.expect("is accepted", ACCEPTED)
    client.expect_end("is disconnected")
    shared_gateway.wait_for_log("connection closed", client="^bad7$", reason="the limit is")


def test_many_packets_behind_the_connect_wait_for_its_commit(shared_gateway: Gateway, connect: Connect) -> None:
    client = connect(shared_gateway)
    client.send("connects", CONNECT_4.format("bad8"), b"\xc0\x00" * 1_000)
    client.expect("is accepted, and every ping is answered", ACCEPTED, b"\xd0\x00" * 1_000)


def test_no_bad_input_left_a_traceback_in_the_log(shared_gateway: Gateway) -> None:
    assert "Traceback" not in shared_gateway.log
    assert "exception" not in shared_gateway.log.lower()
