"""Retained messages (MQTT 3.1.1 section 3.3.1.3): RETAIN on delivery, QoS, deletion, and what a restart keeps."""

from pathlib import Path

import pytest

from mq_adapters.embedded.balance import read_balance
from tests.end_to_end.conftest import Connect, StartGateway, connected
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.wire import WireClient, packet
from tests.processes.forked import rfhbridge

ACCEPTED = "20 02 00 00"


def _subscribed(connect: Connect, gateway: Gateway, name: str, topic_filter: str, qos: int = 0) -> WireClient:
    """A client that has a subscription to a filter of five characters."""
    client = connected(connect, gateway, name)
    client.send("subscribes", f"82 0A 0001 0005 '{topic_filter}' 0{qos}")
    client.expect(f"is granted QoS {qos}", f"90 03 0001 0{qos}")
    return client


def test_retain_is_set_for_a_new_subscription_and_clear_for_a_live_one(
    shared_gateway: Gateway, connect: Connect
) -> None:
    """MQTT-3.3.1-6, -8, -9, -12."""
    live = _subscribed(connect, shared_gateway, "re01", "re/on", 1)
    client = connected(connect, shared_gateway, "re02")
    client.send("publishes with RETAIN", "33 0B 0005 're/on' 0001 'hi'")
    client.expect("gets PUBACK", "40 02 0001")
    live.expect("gets it without RETAIN", "32 0B 0005 're/on' 0001 'hi'")
    late = _subscribed(connect, shared_gateway, "re03", "re/on", 1)
    late.expect("gets it with RETAIN, behind the SUBACK", "33 0B 0005 're/on' 0001 'hi'")
    client.send("publishes without RETAIN", "32 0B 0005 're/on' 0002 'go'")
    client.expect("gets PUBACK", "40 02 0002")
    late.expect("gets it without RETAIN", "32 0B 0005 're/on' 0002 'go'")
    later = _subscribed(connect, shared_gateway, "re04", "re/on", 1)
    later.expect("still gets the one that was retained", "33 0B 0005 're/on' 0001 'hi'")


@pytest.mark.parametrize(
    ("published", "granted", "delivered"),
    [
        (0, 0, "31 09 0005 'rq/{0}{1}' 'hi'"),
        (0, 2, "31 09 0005 'rq/{0}{1}' 'hi'"),
        (1, 0, "31 09 0005 'rq/{0}{1}' 'hi'"),
        (1, 2, "33 0B 0005 'rq/{0}{1}' 0001 'hi'"),
        (2, 1, "33 0B 0005 'rq/{0}{1}' 0001 'hi'"),
        (2, 2, "35 0B 0005 'rq/{0}{1}' 0001 'hi'"),
    ],
)
def test_a_retained_message_comes_at_the_lower_qos(
    shared_gateway: Gateway, connect: Connect, published: int, granted: int, delivered: str
) -> None:
    """MQTT-3.3.1-5, -7."""
    topic = f"rq/{published}{granted}"
    client = connected(connect, shared_gateway, f"r{published}{granted}p")
    written = (f"31 09 0005 '{topic}' 'hi'", f"33 0B 0005 '{topic}' 0001 'hi'", f"35 0B 0005 '{topic}' 0001 'hi'")
    client.send("publishes with RETAIN", written[published])
    if published == 2:
        client.send("releases", "62 02 0001")
    client.expect("gets its answers", ("", "40 02 0001", "50 02 0001 70 02 0001")[published])
    client.send("makes sure of it", "32 0A 0005 'rq/ok' 0002 00")
    client.expect("gets PUBACK", "40 02 0002")
    late = _subscribed(connect, shared_gateway, f"r{published}{granted}w", topic, granted)
    late.expect("gets it", delivered.format(published, granted))


def test_the_newest_retained_message_of_a_topic_replaces_the_one_before(
    shared_gateway: Gateway, connect: Connect
) -> None:
    client = connected(connect, shared_gateway, "re10")
    client.send("publishes twice", "33 0B 0005 're/nw' 0001 'ol'", "33 0B 0005 're/nw' 0002 'nw'")
    client.expect("gets PUBACKs", "40 02 0001 40 02 0002")
    late = _subscribed(connect, shared_gateway, "re11", "re/nw")
    late.expect("gets the newer one", "31 09 0005 're/nw' 'nw'")
    client.send("publishes something else", "32 0C 0005 're/nw' 0003 'end'")
    late.expect("gets nothing between the two", "30 0A 0005 're/nw' 'end'")


def test_an_empty_payload_deletes_what_was_retained_and_is_delivered_itself(
    shared_gateway: Gateway, connect: Connect
) -> None:
    """MQTT-3.3.1-10, -11."""
    client = connected(connect, shared_gateway, "re20")
    client.send("publishes with RETAIN", "33 0B 0005 're/de' 0001 'hi'")
    client.expect("gets PUBACK", "40 02 0001")
    live = _subscribed(connect, shared_gateway, "re21", "re/de", 1)
    live.expect("gets it", "33 0B 0005 're/de' 0001 'hi'")
    client.send("publishes nothing with RETAIN", "33 09 0005 're/de' 0002")
    client.expect("gets PUBACK", "40 02 0002")
    live.expect("gets the empty message, without RETAIN", "32 09 0005 're/de' 0002")
    late = _subscribed(connect, shared_gateway, "re22", "re/de", 1)
    client.send("publishes the end", "30 0A 0005 're/de' 'end'")
    late.expect("gets nothing before that", "30 0A 0005 're/de' 'end'")


def test_a_retained_delete_works_at_qos_0_and_2_and_where_nothing_is_retained(
    shared_gateway: Gateway, connect: Connect
) -> None:
    client = connected(connect, shared_gateway, "re23")
    client.send(
        "deletes nothing, then something, at QoS 0 and 2",
        "31 07 0005 're/d0'",
        "31 09 0005 're/d0' 'hi'",
        "31 07 0005 're/d0'",
        "31 09 0005 're/d2' 'hi'",
        "35 09 0005 're/d2' 0001",
        "62 02 0001",
    )
    client.expect("gets PUBREC and PUBCOMP", "50 02 0001 70 02 0001")
    late = connected(connect, shared_gateway, "re24")
    late.send("subscribes to both", "82 12 0001 0005 're/d0' 01 0005 're/d2' 01")
    late.expect("is granted QoS 1 twice", "90 04 0001 01 01")
    client.send("publishes the end", "30 0A 0005 're/d2' 'end'")
    late.expect("gets nothing before that", "30 0A 0005 're/d2' 'end'")


def test_subscribing_again_brings_the_retained_message_again(shared_gateway: Gateway, connect: Connect) -> None:
    client = connected(connect, shared_gateway, "re30")
    client.send("publishes with RETAIN", "33 0B 0005 're/ag' 0001 'hi'", "33 0B 0005 're/ot' 0002 'no'")
    client.expect("gets PUBACKs", "40 02 0001 40 02 0002")
    watcher = _subscribed(connect, shared_gateway, "re31", "re/ag")
    watcher.expect("gets it", "31 09 0005 're/ag' 'hi'")
    watcher.send("subscribes again, at QoS 1", "82 0A 0002 0005 're/ag' 01")
    watcher.expect("is granted QoS 1 and gets it again", "90 03 0002 01", "33 0B 0005 're/ag' 0001 'hi'")
    watcher.send("subscribes to the other", "82 0A 0003 0005 're/ot' 00")
    watcher.expect("gets that one alone", "90 03 0003 00", "31 09 0005 're/ot' 'no'")
    client.send("publishes the end", "30 0A 0005 're/ag' 'end'")
    watcher.expect("gets nothing else", "30 0A 0005 're/ag' 'end'")


@pytest.mark.parametrize("header", ["mqrfh2", "mqrfh"])
def test_a_wildcard_brings_every_retained_message_and_a_restart_keeps_them(
    new_gateway: StartGateway, connect: Connect, header: str
) -> None:
    gateway = new_gateway("--header", header).start()
    client = connected(connect, gateway, "tell")
    client.send(
        "publishes with RETAIN at all three QoS",
        "31 07 0003 'r/0' 00 00",
        "33 08 0003 'r/1' 0001 01",
        "35 08 0003 'r/2' 0002 02",
        "62 02 0002",
        "33 08 0003 'r/x' 0003 03",
        "33 07 0003 'r/x' 0004",
    )
    client.expect("gets its answers", "40 02 0001 50 02 0002 70 02 0002 40 02 0003 40 02 0004")

    for _ in ("before", "after"):
        late = connected(connect, gateway, "late")
        late.send("subscribes", "82 08 0001 0003 'r/+' 02")
        late.expect("is granted QoS 2", "90 03 0001 02")
        received = sorted(late.receive_packet() for _ in range(3))
        assert received == [
            bytes.fromhex("31 07 0003 722F30 0000"),
            bytes.fromhex("33 08 0003 722F31") + received[1][7:9] + b"\x01",
            bytes.fromhex("35 08 0003 722F32") + received[2][7:9] + b"\x02",
        ]
        late.send("pings", "C0 00")
        late.expect("got no fourth", "D0 00")
        late.drop()
        gateway.kill_and_restart()


@pytest.mark.parametrize("header", ["mqrfh2", "mqrfh"])
def test_an_empty_retained_publish_to_a_topic_that_looks_like_a_pattern_deletes_that_one_alone(
    new_gateway: StartGateway, connect: Connect, header: str
) -> None:
    """DeletePub takes patterns, and in MQRFH `*` and `?` are some."""
    gateway = new_gateway("--header", header).start()
    client = connected(connect, gateway, "tell")
    client.send("retains three", "31 05 0001 'a' 'hi'", "31 05 0001 '*' 'hi'", "33 07 0001 '?' 0001 'hi'")
    client.expect("gets PUBACK", "40 02 0001")
    client.send("deletes two", "31 03 0001 '*'", "33 05 0001 '?' 0002")
    client.expect("gets PUBACK", "40 02 0002")
    client.send("subscribes to all", "82 06 0003 0001 '#' 00")
    client.expect("gets the third", "90 03 0003 00 31 05 0001 'a' 'hi'")
    client.send("pings", "C0 00")
    client.expect("got no other", "D0 00")


def test_what_is_retained_outlives_the_session_that_published_it(shared_gateway: Gateway, connect: Connect) -> None:
    """MQTT-3.1.2-7."""
    client = connected(connect, shared_gateway, "re50")
    client.send("publishes with RETAIN, and leaves", "33 0B 0005 're/ol' 0001 'hi'", "E0 00")
    client.expect("gets PUBACK", "40 02 0001")
    client.expect_end("has ended its session")
    late = _subscribed(connect, shared_gateway, "re51", "re/ol")
    late.expect("gets it", "31 09 0005 're/ol' 'hi'")


def test_a_gateway_that_stops_or_dies_while_it_sends_much_that_is_retained_starts_again(
    gateway: Gateway, connect: Connect
) -> None:
    topics = [f"mr/{number:04}" for number in range(1_000)]
    publisher = connected(connect, gateway, "mr01")
    publisher.send("publishes", *(f"31 0A 0007 '{topic}' 'R'" for topic in topics), "C0 00")
    publisher.expect("has been heard", "D0 00")
    for end in (gateway.stop, gateway.kill):
        client = connect(gateway, "mr02")
        client.send("connects", "10 10 0004 'MQTT' 04 00 0000 0004 'mr02'")
        client.receive(4)
        client.send("subscribes", "82 06 0001 0001 '#' 00")
        client.expect("is granted before the first message", "90 03 0001 00")
        end()
        assert gateway.logged("store failed") == []
        assert gateway.logged("Exception in callback") == []
        gateway.start()
    client = connected(connect, gateway, "mr03")
    client.send("subscribes", "82 06 0001 0001 '#' 00")
    client.expect("is granted", "90 03 0001 00")
    received = sorted(client.receive_packet() for _ in topics)
    assert received == [packet(f"31 0A 0007 '{topic}' 'R'") for topic in topics]


MANY = [f"mr/{number:04}" for number in range(1_000)]
SESSION_OF_THE_ABSENT = "10 10 0004 'MQTT' 04 00 0000 0004 'mr11'"


def _taken(client: WireClient, wanted: int) -> list[str]:
    """Topic and payload of so many messages of QoS 1 of seven characters and one, each acknowledged."""
    taken = []
    for _ in range(wanted):
        received = client.receive_packet()
        assert received[0] & 0xF6 == 0x32, received
        client.send("acknowledges", b"\x40\x02" + received[11:13])
        taken.append((received[4:11] + received[13:]).decode())
    return taken


def test_a_kill_behind_suback_loses_nothing_retained_and_nothing_old_comes_behind_newer(
    gateway: Gateway, connect: Connect, tmp_path: Path
) -> None:
    """The audit finds nothing wrong in the trail, and the balance is right."""
    publisher = connected(connect, gateway, "mr10")
    for start in range(0, 1_000, 50):
        publisher.send("retains", *(f"33 0C 0007 '{topic}' 0001 'R'" for topic in MANY[start : start + 50]))
        publisher.expect("gets PUBACKs", *("40 02 0001" for _ in range(50)))
    client = connect(gateway, "the subscriber")
    client.send("connects", SESSION_OF_THE_ABSENT)
    client.expect("is accepted", ACCEPTED)
    client.send("subscribes", "82 06 0001 0001 '#' 01")
    client.expect("is granted before the first message", "90 03 0001 01")
    publisher.send("publishes a newer value", f"32 0C 0007 '{MANY[-1]}' 0001 'L'")
    before = _taken(client, 30)
    publisher.expect("gets PUBACK", "40 02 0001")
    gateway.kill_and_restart()
    client = connect(gateway, "the subscriber")
    client.send("connects", SESSION_OF_THE_ABSENT)
    client.expect("finds its session", "20 02 01 00")
    behind, received = connected(connect, gateway, "mr12"), list(before)
    while len(set(received)) < len(MANY) + 1:
        received += _taken(client, 1)
    behind.send("publishes the end", "32 0C 0007 'mr/last' 0001 'E'")
    while received[-1] != "mr/lastE":
        received += _taken(client, 1)
    assert set(received) == {*(topic + "R" for topic in MANY), MANY[-1] + "L", "mr/lastE"}
    for part in (before, received[len(before) :]):
        of_topic = [each[-1] for each in part if each.startswith(MANY[-1])]
        assert of_topic in ([], ["R"], ["L"], ["R", "L"]), "an old value comes behind a newer one"
    assert len(received) - len(set(received)) <= 30, "what was acknowledged comes again"
    client.send("leaves", "E0 00")
    client.expect_end("has left")
    assert gateway.stop() == 0
    balance = read_balance(gateway.data)
    assert balance is not None
    assert balance.adds_up
    report = ("--out", tmp_path / "report")
    ended = rfhbridge("audit", "run", "--engine", "duckdb", "--data", gateway.data, *report, timeout=None)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_suback_comes_before_ten_thousand_retained_messages_and_others_go_on(
    gateway: Gateway, connect: Connect
) -> None:
    publisher, other = connected(connect, gateway, "mr20"), connected(connect, gateway, "mr21")
    for start in range(0, 10_000, 1_000):
        topics = (f"mt/{number:04}" for number in range(start, start + 1_000))
        publisher.send("retains", *(f"31 0A 0007 '{topic}' 'R'" for topic in topics))
    publisher.send("pings", "C0 00")
    publisher.expect("has been heard", "D0 00")
    client = connected(connect, gateway, "mr22")
    client.send("subscribes to all", "82 06 0001 0001 '#' 00")
    client.expect("is granted before the first message", "90 03 0001 00")
    other.send("subscribes to one, and pings", "82 0C 0001 0007 'mt/0007' 00", "C0 00")
    other.expect_in_any_order("is served meanwhile", "90 03 0001 00", "31 0A 0007 'mt/0007' 'R'", "D0 00")
    assert not client.has_ended()
    received = [client.receive_packet() for _ in range(10_000)]
    assert received == [packet(f"31 0A 0007 'mt/{number:04}' 'R'") for number in range(10_000)]
