"""SUBSCRIBE: what is granted, what matches, and how many copies come (MQTT 3.1.1 sections 3.8, 3.9 and 4.7)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Connect, connected
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.wire import WireClient, packet

ACCEPTED = "20 02 00 00"


@pytest.fixture(scope="module", params=["mqrfh2", "mqrfh"])
def either_gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway for each header: filters are written as they are in MQRFH2, and as character patterns in MQRFH."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    config = folder / "rfhbridge.toml"
    config.write_text('[mqtt]\ndollar_topics = ["$SYS/#"]\n')
    gateway = Gateway(folder / "data", "--header", request.param, "--config", str(config)).start()
    yield gateway
    gateway.clean_up()


def _text(text: str) -> bytes:
    """A text field: two bytes of length, then UTF-8."""
    return len(text.encode()).to_bytes(2, "big") + text.encode()


def _subscribe(client: WireClient, topic_filter: str, qos: int) -> None:
    body = b"\x00\x01" + _text(topic_filter) + bytes((qos,))
    client.send("subscribes", b"\x82" + bytes((len(body),)) + body)
    client.expect("is granted what it asked for", f"90 03 0001 0{qos}")


# Topic filter; topics that match; topics that do not. MQTT 3.1.1 section 4.7, its examples among them.
MATCHES = [
    ("sport/tennis/player1/#", ["sport/tennis/player1", "sport/tennis/player1/ranking"], ["sport/tennis/player10"]),
    ("sport/#", ["sport", "sport/a/b"], ["sports", "a/sport"]),
    ("#", ["a", "/", "a/b/c"], ["$SYS/a"]),
    ("sport/tennis/+", ["sport/tennis/player1", "sport/tennis/"], ["sport/tennis/player1/ranking", "sport/tennis"]),
    ("sport/+", ["sport/"], ["sport"]),
    ("+/+", ["/finance", "a/b"], ["finance", "a/b/c", "$SYS/a"]),
    ("/+", ["/finance"], ["a/finance"]),
    ("+", ["finance"], ["/finance"]),
    ("+/tennis/#", ["sport/tennis", "x/tennis/y/z"], ["tennis", "x/y/tennis"]),
    ("$SYS/+", ["$SYS/a"], ["$SYS/a/b", "SYS/a"]),
    ("a*b/c?d%", ["a*b/c?d%"], ["axb/cyd%", "a*b/c?d"]),
    ('with blank/"quoted"/<&>', ['with blank/"quoted"/<&>'], ["with blank"]),
    ("ACCOUNTS", ["ACCOUNTS"], ["Accounts"]),
]


@pytest.mark.parametrize(("topic_filter", "matching", "others"), MATCHES, ids=[row[0] for row in MATCHES])
def test_a_topic_filter_matches_as_the_specification_says(
    either_gateway: Gateway, connect: Connect, topic_filter: str, matching: list[str], others: list[str]
) -> None:
    """MQTT-3.3.2-3, MQTT-4.5.0-1, MQTT-4.7.2-1, MQTT-4.7.3-4. MQTT-3.8.3-2."""
    watcher, client = connected(connect, either_gateway, "hear"), connected(connect, either_gateway, "tell")
    _subscribe(watcher, topic_filter, 1)
    topics = [*others, *matching]
    for number, topic in enumerate(topics, start=1):
        body = _text(topic) + number.to_bytes(2, "big") + b"hi"
        client.send("publishes", b"\x32" + bytes((len(body),)) + body)
        client.expect("gets PUBACK", f"40 02 {number:04X}")
    for number, topic in enumerate(matching, start=1):
        body = _text(topic) + number.to_bytes(2, "big") + b"hi"
        watcher.expect(f"gets {topic!r}", b"\x32" + bytes((len(body),)) + body)
    watcher.send("pings", "C0 00")
    watcher.expect("got nothing else", "D0 00")


def test_overlapping_subscriptions_bring_one_copy_at_the_highest_granted_qos(
    either_gateway: Gateway, connect: Connect
) -> None:
    """MQTT-3.3.5-1."""
    watcher, client = connected(connect, either_gateway, "hear"), connected(connect, either_gateway, "tell")
    watcher.send("subscribes three times", "82 14 0001 0003 'o/a' 00 0003 'o/+' 02 0003 'o/#' 01")
    watcher.expect("is granted all", "90 05 0001 00 02 01")
    client.send("publishes", "34 08 0003 'o/a' 0001 'A'", "62 02 0001")
    client.expect("gets its answers", "50 02 0001 70 02 0001")
    watcher.expect("gets one copy at QoS 2", "34 08 0003 'o/a' 0001 'A'")
    client.send("publishes the end", "30 06 0003 'o/a' 'E'")
    watcher.expect("gets no second copy", "30 06 0003 'o/a' 'E'")
    watcher.send("unsubscribes from one of them", "A2 07 0002 0003 'o/+'")
    watcher.expect("gets UNSUBACK", "B0 02 0002")
    client.send("publishes", "34 08 0003 'o/a' 0003 'B'", "62 02 0003")
    client.expect("gets its answers", "50 02 0003 70 02 0003")
    watcher.expect("gets one copy at QoS 1", "32 08 0003 'o/a' 0002 'B'")


def test_subscribing_again_changes_the_granted_qos(either_gateway: Gateway, connect: Connect) -> None:
    """MQTT-3.8.4-3."""
    watcher, client = connected(connect, either_gateway, "hear"), connected(connect, either_gateway, "tell")
    for qos, expected in ((1, "32 08 0003 'a/b' 0001 'A'"), (0, "30 06 0003 'a/b' 'A'")):
        watcher.send("subscribes", f"82 08 0001 0003 'a/b' 0{qos}")
        watcher.expect("is granted what it asked for", f"90 03 0001 0{qos}")
        client.send("publishes", "32 08 0003 'a/b' 0001 'A'")
        client.expect("gets PUBACK", "40 02 0001")
        watcher.expect("gets it", expected)


def test_filters_that_share_a_pattern_at_the_broker_are_counted(either_gateway: Gateway, connect: Connect) -> None:
    """In MQRFH `p/+`, `p/+/#` and half of `p/#` are all registered as `p/*`: the last one to go deregisters it."""
    watcher, client = connected(connect, either_gateway, "hear"), connected(connect, either_gateway, "tell")
    watcher.send("subscribes", "82 16 0001 0003 'p/+' 01 0005 'p/+/#' 01 0003 'p/#' 01")
    watcher.expect("is granted all", "90 05 0001 01 01 01")
    for number, (step, written) in enumerate(
        (
            ("unsubscribes from p/+", "A2 07 0002 0003 'p/+'"),
            ("unsubscribes from p/#", "A2 07 0003 0003 'p/#'"),
        ),
        start=2,
    ):
        watcher.send(step, written)
        watcher.expect("gets UNSUBACK", f"B0 02 {number:04X}")
        client.send("publishes", f"32 08 0003 'p/1' {number:04X} 'A'")
        client.expect("gets PUBACK", f"40 02 {number:04X}")
        watcher.expect("still gets it", f"32 08 0003 'p/1' {number - 1:04X} 'A'")
    watcher.send("unsubscribes from p/+/#", "A2 09 0004 0005 'p/+/#'")
    watcher.expect("gets UNSUBACK", "B0 02 0004")
    watcher.send("subscribes to the end", "82 08 0005 0003 'p/9' 00")
    watcher.expect("is granted QoS 0", "90 03 0005 00")
    client.send("publishes to both", "30 06 0003 'p/1' 'A'", "30 06 0003 'p/9' 'E'")
    watcher.expect("gets the end alone", "30 06 0003 'p/9' 'E'")


def test_a_client_gets_its_own_publications(either_gateway: Gateway, connect: Connect) -> None:
    client = connected(connect, either_gateway, "both")
    client.send("subscribes", "82 08 0001 0003 'm/y' 00")
    client.expect("is granted QoS 0", "90 03 0001 00")
    client.send("publishes", "30 06 0003 'm/y' 'A'")
    client.expect("gets it", packet("30 06 0003 'm/y' 'A'"))


def test_a_refused_subscription_is_0x80_in_3_1_1_and_closes_a_connection_of_3_1(
    either_gateway: Gateway, connect: Connect
) -> None:
    """A topic of MQ has at most 10,240 characters (MQ_TOPIC_STR_LENGTH); MQTT's 65,535 bytes may be more.

    MQTT-3.8.4-5, MQTT-3.9.3-1.
    """
    long = _text("x" * 10_241)
    entry = b"\x00\x01" + long + b"\x01"
    subscribe = b"\x82" + bytes((len(entry) & 0x7F | 0x80, len(entry) >> 7)) + entry
    client = connected(connect, either_gateway, "long")
    client.send("subscribes", subscribe)
    client.expect("is refused", "90 03 0001 80")
    old = connect(either_gateway, "the client of 3.1")
    old.send("connects", "10 12 0006 'MQIsdp' 03 02 0000 0004 'lon3'")
    old.expect("is accepted", ACCEPTED)
    old.send("subscribes", subscribe)
    old.expect_end("is disconnected, for 3.1 has no code for it")
    either_gateway.wait_for_log("connection closed", client="^lon3$", reason="refused")


def test_a_filter_that_is_unsubscribed_in_the_write_that_subscribed_it_brings_nothing(
    either_gateway: Gateway, connect: Connect
) -> None:
    client = connected(connect, either_gateway, "pipe")
    client.send(
        "subscribes to two and unsubscribes from one", "82 0E 0001 0003 'p/1' 01 0003 'p/2' 01", "A2 07 0002 0003 'p/1'"
    )
    client.expect_in_any_order("gets both answers", "90 04 0001 01 01", "B0 02 0002")
    client.send("publishes to both", "30 07 0003 'p/1' 'no'", "30 07 0003 'p/2' 'hi'")
    client.expect("gets one", "30 07 0003 'p/2' 'hi'")
