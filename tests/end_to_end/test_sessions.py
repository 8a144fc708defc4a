"""Clean and persistent sessions, and one client in two places (MQTT 3.1.1 sections 3.1.2.4 and 3.1.4)."""

import threading
import time

import pytest

from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.wire import PATIENCE_S, WireClient

ACCEPTED = "20 02 00 00"
SESSION_PRESENT = "20 02 01 00"


def _connected(
    connect: Connect, gateway: Gateway, name: str, *, flags: str = "02", answer: str = ACCEPTED
) -> WireClient:
    """A clean session (flags 02) or a persistent one (00); the client identifier has four characters."""
    client = connect(gateway, name)
    client.send("connects", f"10 10 0004 'MQTT' 04 {flags} 0000 0004 '{name}'")
    client.expect("is accepted", answer)
    return client


def _leave(client: WireClient) -> None:
    client.send("disconnects", "E0 00")
    client.expect_end("is disconnected")


def test_a_clean_session_ends_with_its_connection(shared_gateway: Gateway, connect: Connect) -> None:
    """MQTT-3.1.2-6."""
    publisher = _connected(connect, shared_gateway, "se01")
    watcher = _connected(connect, shared_gateway, "se02")
    watcher.send("subscribes", "82 0A 0001 0005 'se/cl' 01")
    watcher.expect("is granted QoS 1", "90 03 0001 01")
    _leave(watcher)
    publisher.send("publishes", "32 0B 0005 'se/cl' 0001 'hi'")
    publisher.expect("gets PUBACK", "40 02 0001")
    watcher = _connected(connect, shared_gateway, "se02", flags="00")
    publisher.send("publishes again", "32 0B 0005 'se/cl' 0002 'go'")
    publisher.expect("gets PUBACK", "40 02 0002")
    watcher.send("subscribes to another topic", "82 0A 0001 0005 'se/en' 01")
    watcher.expect("is granted QoS 1", "90 03 0001 01")
    publisher.send("publishes the end", "32 0C 0005 'se/en' 0003 'end'")
    watcher.expect("gets nothing of before", "32 0C 0005 'se/en' 0001 'end'")


def test_a_clean_session_discards_a_persistent_one_and_what_waited_in_it(
    shared_gateway: Gateway, connect: Connect
) -> None:
    """MQTT-3.1.4-3, MQTT-4.1.0-2."""
    publisher = _connected(connect, shared_gateway, "se10")
    watcher = _connected(connect, shared_gateway, "se11", flags="00")
    watcher.send("subscribes", "82 0A 0001 0005 'se/di' 01")
    watcher.expect("is granted QoS 1", "90 03 0001 01")
    publisher.send("publishes", "32 0B 0005 'se/di' 0001 'A-'")
    publisher.expect("gets PUBACK", "40 02 0001")
    watcher.expect("gets it, and does not acknowledge", "32 0B 0005 'se/di' 0001 'A-'")
    _leave(watcher)
    publisher.send("publishes", "32 0B 0005 'se/di' 0002 'B-'")
    publisher.expect("gets PUBACK", "40 02 0002")
    watcher = _connected(connect, shared_gateway, "se11", flags="02")
    watcher.send("subscribes", "82 0A 0001 0005 'se/di' 01")
    watcher.expect("is granted QoS 1", "90 03 0001 01")
    publisher.send("publishes", "32 0B 0005 'se/di' 0003 'C-'")
    watcher.expect("gets what is new", "32 0B 0005 'se/di' 0001 'C-'")


@pytest.mark.parametrize("header", ["mqrfh2", "mqrfh"])
def test_a_persistent_session_keeps_subscriptions_and_messages_over_restarts(
    new_gateway: StartGateway, connect: Connect, header: str
) -> None:
    """MQTT-3.1.2-4, -5, MQTT-4.1.0-1."""
    gateway = new_gateway("--header", header).start()
    watcher = _connected(connect, gateway, "hear", flags="00")
    watcher.send("subscribes", "82 13 0001 0003 'a/+' 01 0003 'b/#' 02 0002 'c?' 00")
    watcher.expect("is granted its QoS", "90 05 0001 01 02 00")
    _leave(watcher)
    publisher = _connected(connect, gateway, "tell")
    publisher.send(
        "publishes", "32 08 0003 'a/1' 0001 'A'", "34 08 0003 'b/2' 0002 'B'", "62 02 0002", "32 07 0002 'c?' 0003 'C'"
    )
    publisher.expect("gets its answers", "40 02 0001 50 02 0002 70 02 0002 40 02 0003")
    publisher.send("publishes what nobody asked for", "32 08 0003 'd/4' 0004 'D'", "32 0A 0005 'a/1/2' 0005 'E'")
    publisher.expect("gets its answers", "40 02 0004 40 02 0005")

    gateway.restart()
    watcher = _connected(connect, gateway, "hear", flags="00", answer=SESSION_PRESENT)
    watcher.expect("gets what waited", "32 08 0003 'a/1' 0001 'A'", "34 08 0003 'b/2' 0002 'B'", "30 05 0002 'c?' 'C'")
    watcher.send("answers", "40 02 0001 50 02 0002")
    watcher.expect("gets PUBREL", "62 02 0002")
    watcher.send("completes", "70 02 0002")
    watcher.send("unsubscribes from one", "A2 07 0006 0003 'a/+'")
    watcher.expect("gets UNSUBACK", "B0 02 0006")

    gateway.kill_and_restart()
    watcher = _connected(connect, gateway, "hear", flags="00", answer=SESSION_PRESENT)
    publisher = _connected(connect, gateway, "tell")
    publisher.send("publishes to both", "32 08 0003 'a/1' 0001 'F'", "30 06 0003 'b/2' 'G'")
    publisher.expect("gets PUBACK", "40 02 0001")
    watcher.expect("gets what it still has a subscription for", "30 06 0003 'b/2' 'G'")


def test_a_second_connection_takes_the_session_over(shared_gateway: Gateway, connect: Connect) -> None:
    """MQTT-3.1.3-2, MQTT-3.1.4-2."""
    publisher = _connected(connect, shared_gateway, "se20")
    first = _connected(connect, shared_gateway, "se21", flags="00")
    first.send("subscribes", "82 0A 0001 0005 'se/ta' 01")
    first.expect("is granted QoS 1", "90 03 0001 01")
    publisher.send("publishes", "32 0B 0005 'se/ta' 0001 'A-'")
    publisher.expect("gets PUBACK", "40 02 0001")
    first.expect("gets it", "32 0B 0005 'se/ta' 0001 'A-'")
    second = _connected(connect, shared_gateway, "se21", flags="00", answer=SESSION_PRESENT)
    first.expect_end("is disconnected")
    second.expect("gets the repeat", "3A 0B 0005 'se/ta' 0001 'A-'")
    second.send("acknowledges", "40 02 0001")
    publisher.send("publishes", "32 0B 0005 'se/ta' 0002 'B-'")
    second.expect("gets it", "32 0B 0005 'se/ta' 0002 'B-'")
    shared_gateway.wait_for_log("connection closed", client="^se21$", reason="connected again")


def test_unsubscribing_ends_deliveries_and_is_always_answered(shared_gateway: Gateway, connect: Connect) -> None:
    """MQTT-2.3.1-7, MQTT-3.8.4-1, -2, -4, MQTT-3.10.4-1, -2, -4, -5, -6."""
    client = _connected(connect, shared_gateway, "se40")
    client.send("subscribes to two", "82 12 0001 0005 'se/u1' 01 0005 'se/u2' 01")
    client.expect("is granted QoS 1", "90 04 0001 01 01")
    client.send("unsubscribes from one, and from one that it has not", "A2 10 0002 0005 'se/u1' 0005 'se/u3'")
    client.expect("gets UNSUBACK", "B0 02 0002")
    client.send("unsubscribes again", "A2 09 0003 0005 'se/u1'")
    client.expect("gets UNSUBACK", "B0 02 0003")
    client.send("publishes to both", "32 0B 0005 'se/u1' 0004 'no'", "32 0B 0005 'se/u2' 0005 'hi'")
    client.expect_in_any_order("gets PUBACKs", "40 02 0004", "40 02 0005")
    client.expect("gets one", "32 0B 0005 'se/u2' 0001 'hi'")


def test_many_connections_that_fight_for_a_session_leave_the_last(shared_gateway: Gateway, connect: Connect) -> None:
    clients = [connect(shared_gateway, f"number {number}") for number in range(20)]
    for client in clients:
        client.send("connects and publishes", "10 10 0004 'MQTT' 04 00 0000 0004 'se30'", "32 09 0005 'se/fi' 0001")
    survivor = _last_that_is_open(clients)
    assert survivor.receive_packet()[:2] == b"\x20\x02"
    survivor.expect("gets PUBACK", "40 02 0001")
    survivor.send("pings", "C0 00")
    survivor.expect("is still connected", "D0 00")


def _last_that_is_open(clients: list[WireClient]) -> WireClient:
    """Waits until the gateway has ended all but one."""
    deadline_s, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while len(still_open := [client for client in clients if not client.has_ended()]) > 1:
        assert time.monotonic() < deadline_s, f"{len(still_open)} are still open"
        pause.wait(0.01)
    (survivor,) = still_open
    return survivor


def test_a_delivery_that_has_begun_is_completed_after_unsubscribing(shared_gateway: Gateway, connect: Connect) -> None:
    """MQTT-3.10.4-3."""
    watcher = _connected(connect, shared_gateway, "se50", flags="00")
    watcher.send("subscribes", "82 0A 0001 0005 'se/un' 02")
    watcher.expect("is granted QoS 2", "90 03 0001 02")
    watcher.send("publishes to itself, at QoS 2", "34 0B 0005 'se/un' 0002 'A-'", "62 02 0002")
    watcher.expect("gets its answers and the message", "50 02 0002 70 02 0002", "34 0B 0005 'se/un' 0001 'A-'")
    watcher.send("unsubscribes", "A2 09 0003 0005 'se/un'")
    watcher.expect("gets UNSUBACK", "B0 02 0003")
    watcher.drop()
    watcher = _connected(connect, shared_gateway, "se50", flags="00", answer=SESSION_PRESENT)
    watcher.expect("gets the repeat", "3C 0B 0005 'se/un' 0001 'A-'")
    watcher.send("receives", "50 02 0001")
    watcher.expect("gets PUBREL", "62 02 0001")
    watcher.send("completes, and publishes again", "70 02 0001", "32 0B 0005 'se/un' 0004 'B-'", "C0 00")
    watcher.expect_in_any_order("gets nothing more but its answers", "40 02 0004", "D0 00")
