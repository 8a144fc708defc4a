"""What the gateway publishes to a client: packet identifiers, QoS, DUP and the repeats after a lost connection."""

import pytest

from tests.end_to_end.conftest import Connect, StartGateway, connected
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.wire import WireClient, packet

ACCEPTED = "20 02 00 00"
SESSION_PRESENT = "20 02 01 00"


def _resumed(connect: Connect, gateway: Gateway, name: str, answer: str = SESSION_PRESENT) -> WireClient:
    client = connect(gateway, name)
    client.send("connects", f"10 10 0004 'MQTT' 04 00 0000 0004 '{name}'")
    client.expect("is accepted", answer)
    return client


@pytest.mark.parametrize(
    ("published", "granted", "delivered"),
    [
        (0, 0, "30 09 0005 'de/{0}{1}' 'hi'"),
        (0, 2, "30 09 0005 'de/{0}{1}' 'hi'"),
        (1, 0, "30 09 0005 'de/{0}{1}' 'hi'"),
        (1, 1, "32 0B 0005 'de/{0}{1}' 0001 'hi'"),
        (1, 2, "32 0B 0005 'de/{0}{1}' 0001 'hi'"),
        (2, 0, "30 09 0005 'de/{0}{1}' 'hi'"),
        (2, 1, "32 0B 0005 'de/{0}{1}' 0001 'hi'"),
        (2, 2, "34 0B 0005 'de/{0}{1}' 0001 'hi'"),
    ],
)
def test_a_publication_is_delivered_at_the_lower_qos(
    shared_gateway: Gateway, connect: Connect, published: int, granted: int, delivered: str
) -> None:
    """MQTT-3.8.4-6."""
    watcher = connected(connect, shared_gateway, f"d{published}{granted}w")
    watcher.send("subscribes", f"82 0A 0001 0005 'de/{published}{granted}' 0{granted}")
    watcher.expect("is granted what it asked for", f"90 03 0001 0{granted}")
    client = connected(connect, shared_gateway, f"d{published}{granted}p")
    topic = f"0005 'de/{published}{granted}'"
    client.send("publishes", (f"30 09 {topic} 'hi'", f"32 0B {topic} 0009 'hi'", f"34 0B {topic} 0009 'hi'")[published])
    if published == 2:
        client.expect("gets PUBREC", "50 02 0009")
        client.send("releases", "62 02 0009")
    watcher.expect("gets it", delivered.format(published, granted))


def test_a_qos_2_delivery_is_released_and_completed(shared_gateway: Gateway, connect: Connect) -> None:
    """MQTT-3.12.4-1, MQTT-4.3.3-1."""
    client = connected(connect, shared_gateway, "de01")
    client.send("subscribes", "82 0A 0001 0005 'de/re' 02")
    client.expect("is granted QoS 2", "90 03 0001 02")
    client.send("publishes", "34 0B 0005 'de/re' 0003 'hi'", "62 02 0003")
    client.expect("gets PUBREC and PUBCOMP", "50 02 0003 70 02 0003")
    client.expect("gets it", "34 0B 0005 'de/re' 0001 'hi'")
    client.send("receives", "50 02 0001")
    client.expect("gets PUBREL", "62 02 0001")
    client.send("receives again", "50 02 0001")
    client.expect("gets PUBREL again", "62 02 0001")
    client.send("completes, twice", "70 02 0001 70 02 0001")
    client.send("acknowledges what was never sent, and pings", "40 02 00FF 50 02 00FE 70 02 00FD C0 00")
    answers = packet("62 02 00FE"), packet("D0 00")
    assert client.receive(6) in (answers[0] + answers[1], answers[1] + answers[0]), "PUBREL may wait for a commit"


def test_packet_identifiers_of_both_directions_are_apart(shared_gateway: Gateway, connect: Connect) -> None:
    client = connected(connect, shared_gateway, "de02")
    client.send("subscribes", "82 0A 0001 0005 'de/bo' 02")
    client.expect("is granted QoS 2", "90 03 0001 02")
    client.send("publishes with the identifier that the gateway will use", "34 0B 0005 'de/bo' 0001 'hi'")
    client.expect("gets PUBREC", "50 02 0001")
    client.send("releases", "62 02 0001")
    client.expect("gets PUBCOMP, then the delivery", "70 02 0001", "34 0B 0005 'de/bo' 0001 'hi'")


def test_the_window_limits_what_is_unacknowledged(shared_gateway: Gateway, connect: Connect) -> None:
    """mqtt.maximum_in_flight is 100 by default; what is beyond waits for acknowledgements, in order.

    MQTT-4.3.2-1, MQTT-4.6.0-5, -6.
    """
    watcher, client = connected(connect, shared_gateway, "de03"), connected(connect, shared_gateway, "de04")
    watcher.send("subscribes", "82 0A 0001 0005 'de/wi' 01")
    watcher.expect("is granted QoS 1", "90 03 0001 01")
    for number in range(1, 151):
        client.send("publishes", f"32 0B 0005 'de/wi' {number:04X} {number:04X}")
    client.expect("gets every PUBACK", *(f"40 02 {number:04X}" for number in range(1, 151)))
    watcher.expect("gets 100", *(f"32 0B 0005 'de/wi' {number:04X} {number:04X}" for number in range(1, 101)))
    watcher.send("pings", "C0 00")
    watcher.expect("gets no more than that", "D0 00")
    watcher.send("acknowledges them", *(f"40 02 {number:04X}" for number in range(1, 101)))
    watcher.expect("gets the rest", *(f"32 0B 0005 'de/wi' {number:04X} {number:04X}" for number in range(101, 151)))


@pytest.mark.parametrize("how", ["connection lost", "restart", "kill"])
def test_unacknowledged_deliveries_are_repeated_with_dup_and_their_identifiers(
    new_gateway: StartGateway, connect: Connect, how: str
) -> None:
    """QoS 1 and 2 that were sent, a QoS 2 that was received, and one that waits: PUBLISH, PUBLISH, PUBREL, PUBLISH.

    MQTT-3.3.1-1, MQTT-4.4.0-1, MQTT-4.6.0-1.
    """
    gateway = new_gateway("--log-level", "debug").start()
    watcher = _resumed(connect, gateway, "hear", ACCEPTED)
    watcher.send("subscribes", "82 08 0001 0003 'a/b' 02")
    watcher.expect("is granted QoS 2", "90 03 0001 02")
    client = connected(connect, gateway, "tell")
    client.send("publishes at QoS 2, 1 and 2", "34 08 0003 'a/b' 0001 'A'", "62 02 0001", "32 08 0003 'a/b' 0002 'B'")
    client.send("publishes the last of them", "34 08 0003 'a/b' 0003 'C'", "62 02 0003")
    client.expect("gets its answers", "50 02 0001 70 02 0001 40 02 0002 50 02 0003 70 02 0003")
    watcher.expect(
        "gets all three", "34 08 0003 'a/b' 0001 'A'", "32 08 0003 'a/b' 0002 'B'", "34 08 0003 'a/b' 0003 'C'"
    )
    watcher.send("receives the first", "50 02 0001")
    watcher.expect("gets PUBREL", "62 02 0001")

    if how == "connection lost":
        _drop_and_be_missed(watcher, gateway, "hear")
    elif how == "restart":
        gateway.restart()
    else:
        gateway.kill_and_restart()
    if how != "connection lost":
        client = connected(connect, gateway, "tell")
    client.send("publishes meanwhile", "32 08 0003 'a/b' 0004 'D'")
    client.expect("gets PUBACK", "40 02 0004")

    watcher = _resumed(connect, gateway, "hear")
    watcher.expect(
        "gets the repeats with DUP, PUBREL behind the PUBLISHes that stand before its PUBREC, then what is new",
        "3A 08 0003 'a/b' 0002 'B'",
        "3C 08 0003 'a/b' 0003 'C'",
        "62 02 0001",
        "32 08 0003 'a/b' 0004 'D'",
    )
    watcher.send("answers them all", "70 02 0001 40 02 0002 50 02 0003 40 02 0004")
    watcher.expect("gets the last PUBREL", "62 02 0003")
    watcher.send("completes it", "70 02 0003")
    watcher.send("pings, so that all of it has been read", "C0 00")
    watcher.expect("is answered", "D0 00")
    _drop_and_be_missed(watcher, gateway, "hear")
    client.send("publishes once more", "32 08 0003 'a/b' 0005 'E'")
    client.expect("gets PUBACK", "40 02 0005")
    watcher = _resumed(connect, gateway, "hear")
    watcher.expect("gets nothing twice", "32 08 0003 'a/b' 0005 'E'")


def _drop_and_be_missed(client: WireClient, gateway: Gateway, name: str) -> None:
    """The gateway, whose log is at level debug, has noticed: nothing is sent to this connection any more."""
    changes = [(line["client"], line["change"]) for line in gateway.logged("session changed")]
    client.drop()
    gateway.wait_for_log(
        "session changed", client=f"^{name}$", change="^lost$", count=changes.count((name, "lost")) + 1
    )


def test_mqtt_3_1_repeats_pubrel_with_dup(shared_gateway: Gateway, connect: Connect) -> None:
    """MQTT 3.1 sets DUP on a repeated PUBREL (6A); 3.1.1 fixes the bits (62)."""
    watcher = connect(shared_gateway, "the watcher")
    watcher.send("connects at level 3", "10 12 0006 'MQIsdp' 03 00 0000 0004 'de05'")
    watcher.expect("is accepted", ACCEPTED)
    watcher.send("subscribes", "82 0A 0001 0005 'de/31' 02")
    watcher.expect("is granted QoS 2", "90 03 0001 02")
    client = connected(connect, shared_gateway, "de06")
    client.send("publishes", "34 09 0005 'de/31' 0001", "62 02 0001")
    client.expect("gets its answers", "50 02 0001 70 02 0001")
    watcher.expect("gets it", "34 09 0005 'de/31' 0001")
    watcher.send("receives it", "50 02 0001")
    watcher.expect("gets PUBREL", "62 02 0001")
    watcher.drop()
    watcher = connect(shared_gateway, "the watcher")
    watcher.send("connects again", "10 12 0006 'MQIsdp' 03 00 0000 0004 'de05'")
    watcher.expect("is accepted, and gets PUBREL with DUP", ACCEPTED, "6A 02 0001")
    watcher.send("completes", "70 02 0001")


def test_a_message_that_was_never_sent_waits_for_the_client(shared_gateway: Gateway, connect: Connect) -> None:
    watcher = _resumed(connect, shared_gateway, "de07", ACCEPTED)
    watcher.send("subscribes", "82 0A 0001 0005 'de/of' 01")
    watcher.expect("is granted QoS 1", "90 03 0001 01")
    watcher.send("leaves", "E0 00")
    watcher.expect_end("is disconnected")
    client = connected(connect, shared_gateway, "de08")
    client.send("publishes", "32 0B 0005 'de/of' 0001 'hi'")
    client.expect("gets PUBACK", "40 02 0001")
    watcher = _resumed(connect, shared_gateway, "de07")
    watcher.expect("gets it without DUP, for it is sent the first time", "32 0B 0005 'de/of' 0001 'hi'")
    watcher.send("acknowledges", "40 02 0001")


def test_pubrels_leave_in_the_order_of_pubrecs(shared_gateway: Gateway, connect: Connect) -> None:
    """MQTT-4.6.0-4: whatever the order of the PUBLISHes."""
    client = connected(connect, shared_gateway, "de06")
    client.send("subscribes", "82 0A 0001 0005 'de/or' 02")
    client.expect("is granted QoS 2", "90 03 0001 02")
    for number in range(1, 4):
        client.send("publishes", f"34 0B 0005 'de/or' 000{number} 'hi'", f"62 02 000{number}")
        client.expect("gets its answers", f"50 02 000{number} 70 02 000{number}")
        client.expect("gets the message", f"34 0B 0005 'de/or' 000{number} 'hi'")
    client.send("receives them in another order", "50 02 0003 50 02 0001", "50 02 0002")
    client.expect("gets PUBRELs in that order", "62 02 0003 62 02 0001 62 02 0002")
