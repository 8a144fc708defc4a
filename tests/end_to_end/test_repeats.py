"""Repeats by time (MQTT 3.1 section 4.2): on a listener that asks for them, and for clients of 3.1 alone."""

from pathlib import Path

from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.wire import WireClient, packet

CONFIGURATION = """
[mqtt]
versions = ["3.1", "3.1.1", "5"]

[[listener]]
name = "old"
listen = "127.0.0.1:0"
repeat_after_s = 0.5
"""
CONNECTS = {
    3: "10 12 0006 'MQIsdp' 03 02 0000 0004 'rep3'",
    4: "10 10 0004 'MQTT' 04 02 0000 0004 'rep4'",
    5: "10 11 0004 'MQTT' 05 02 0000 00 0004 'rep5'",
}


def _old_listener(new_gateway: StartGateway, folder: Path) -> tuple[Gateway, int]:
    configuration = folder / "rfhbridge.toml"
    configuration.write_text(CONFIGURATION)
    gateway = new_gateway("--config", str(configuration)).start()
    return gateway, gateway.wait_for_log("listener opened", name="^old$")["port"]


def _connected(port: int, level: int) -> WireClient:
    client = WireClient(port, f"the client of level {level}")
    client.send("connects", CONNECTS[level])
    assert client.receive_packet()[:4].hex()[-4:] == "0000"
    return client


def _expect_repeats(client: WireClient, *repeats: str) -> None:
    """Each of them, until all have come at least once."""
    due = {packet(repeat) for repeat in repeats}
    seen: set[bytes] = set()
    while seen != due:
        seen.add(client.receive_packet())
        assert seen <= due, seen - due


def _expect_behind_repeats(client: WireClient, written: str, *repeats: str) -> None:
    """A packet, and in front of it nothing but repeats that were sent before the client had answered."""
    while (received := client.receive_packet()) in {packet(repeat) for repeat in repeats}:
        continue
    assert received == packet(written), received.hex(" ")


def test_client_of_3_1_is_sent_again_what_it_leaves_unanswered(new_gateway: StartGateway, tmp_path: Path) -> None:
    _, port = _old_listener(new_gateway, tmp_path)
    with _connected(port, 3) as client:
        client.send("subscribes", "82 0A 0001 0005 'rp/by' 02")
        client.expect("is granted QoS 2", "90 03 0001 02")
        client.send("publishes to itself", "32 0B 0005 'rp/by' 0001 'hi'", "34 0B 0005 'rp/by' 0002 'ho'", "62 02 0002")
        client.expect("gets its answers", "40 02 0001 50 02 0002 70 02 0002")
        client.expect("gets both", "32 0B 0005 'rp/by' 0001 'hi'", "34 0B 0005 'rp/by' 0002 'ho'")
        again = "3A 0B 0005 'rp/by' 0001 'hi'", "3C 0B 0005 'rp/by' 0002 'ho'"
        _expect_repeats(client, *again)
        client.send("answers them", "40 02 0001 50 02 0002")
        _expect_behind_repeats(client, "62 02 0002", *again)
        client.expect("gets PUBREL again, with DUP, and again", "6A 02 0002 6A 02 0002")
        client.send("completes", "70 02 0002 C0 00")
        _expect_behind_repeats(client, "D0 00", "6A 02 0002")


def test_clients_of_later_versions_are_not(new_gateway: StartGateway, connect: Connect, tmp_path: Path) -> None:
    """MQTT-4.4.0-1: on a new connection, and at no other time."""
    gateway, port = _old_listener(new_gateway, tmp_path)
    with _connected(port, 3) as old, _connected(port, 4) as client, _connected(port, 5) as newest:
        other = connect(gateway, "a client of 3.1 at a listener that does not ask for repeats")
        other.send("connects", "10 12 0006 'MQIsdp' 03 02 0000 0004 'repo'")
        other.expect("is accepted", "20 02 00 00")
        for subscriber in (old, client, other):
            subscriber.send("subscribes", "82 0A 0001 0005 'rp/by' 01")
            subscriber.expect("is granted QoS 1", "90 03 0001 01")
        newest.send("subscribes", "82 0B 0001 00 0005 'rp/by' 01")
        newest.expect("is granted QoS 1", "90 04 0001 00 01")
        client.send("publishes", "32 0B 0005 'rp/by' 0002 'hi'")
        client.expect("gets PUBACK and the message", "40 02 0002 32 0B 0005 'rp/by' 0001 'hi'")
        other.expect("gets it", "32 0B 0005 'rp/by' 0001 'hi'")
        newest.expect("gets it", "32 0C 0005 'rp/by' 0001 00 'hi'")
        old.expect("gets it three times", "32 0B 0005 'rp/by' 0001 'hi'", *["3A 0B 0005 'rp/by' 0001 'hi'"] * 2)
        for subscriber in (client, other, newest):
            subscriber.send("pings", "C0 00")
            subscriber.expect("has got it once", "D0 00")
