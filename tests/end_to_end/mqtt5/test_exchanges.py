"""Exchanges of MQTT 5.0 on a running gateway, byte by byte: the flows of each QoS, what is retained, what matches."""

import pytest

from tests.end_to_end.conftest import Connect
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.mqtt5.client import connected, is_quiet, payloads, publish, publisher, subscribe, subscribed
from tests.end_to_end.wire import WireClient

FOR_EVER = "11 FFFFFFFF"


def _client(connect: Connect, gateway: Gateway, name: str) -> WireClient:
    client = connect(gateway)
    connected(client, name)
    return client


# -- from the client ---------------------------------------------------------------------------------------------------


def test_publish_is_answered_as_its_qos_asks(five: Gateway, connect: Connect) -> None:
    """MQTT-3.3.4-1, MQTT-2.2.1-5, MQTT-4.3.1-1, MQTT-4.3.2-4, MQTT-4.3.3-8, -11."""
    client = _client(connect, five, "answers")
    client.send("publishes at each QoS", "30 05 0002 'ex' 00", "32 07 0002 'ex' FFFF 00", "34 07 0002 'ex' 0002 00")
    client.expect("gets PUBACK, for nobody subscribes, and PUBREC", "40 03 FFFF 10 50 02 0002")
    client.send("releases", "62 02 0002")
    client.expect("gets PUBCOMP", "70 02 0002")


def test_qos_1_with_the_same_identifier_is_a_new_message(five: Gateway, connect: Connect) -> None:
    """MQTT-4.3.2-5, MQTT-3.3.1-3: DUP of the copy says nothing of the DUP that came."""
    client, watcher = _client(connect, five, "again"), subscribed(connect(five), five, "again-w", "ex1")
    client.send("publishes and repeats", "32 09 0003 'ex1' 0007 00 'A'", "3A 09 0003 'ex1' 0007 00 'A'")
    client.expect("gets two PUBACKs", "40 02 0007 40 02 0007")
    watcher.expect("gets two messages", "32 09 0003 'ex1' 0001 00 'A' 32 09 0003 'ex1' 0002 00 'A'")


def test_qos_2_with_the_same_identifier_is_the_same_message_until_pubrel(five: Gateway, connect: Connect) -> None:
    """MQTT-4.3.3-10, -12."""
    client, watcher = _client(connect, five, "once"), subscribed(connect(five), five, "once-w", "ex2")
    first = "34 09 0003 'ex2' 0009 00 'A'"
    client.send("publishes and repeats, twice", first, "3C 09 0003 'ex2' 0009 00 'A'", first)
    client.expect("gets PUBRECs", "50 02 0009 50 02 0009 50 02 0009")
    client.send("releases", "62 02 0009")
    client.expect("gets PUBCOMP", "70 02 0009")
    client.send("uses the identifier anew", "34 09 0003 'ex2' 0009 00 'B'", "62 02 0009")
    client.expect("gets its answers", "50 02 0009 70 02 0009")
    watcher.expect("gets each once", "32 09 0003 'ex2' 0001 00 'A' 32 09 0003 'ex2' 0002 00 'B'")


def test_answers_leave_in_the_order_of_their_publishes(five: Gateway, connect: Connect) -> None:
    """MQTT-4.6.0-2, -3."""
    client = _client(connect, five, "order")
    numbers = (5, 3, 9, 1, 7)
    client.send("publishes at QoS 1", *(f"32 06 0001 'o' 000{number} 00" for number in numbers))
    client.send("publishes at QoS 2", *(f"34 06 0001 'o' 001{number} 00" for number in numbers))
    client.expect("gets PUBACKs in that order", *(f"40 03 000{number} 10" for number in numbers))
    client.expect("gets PUBRECs in that order", *(f"50 02 001{number}" for number in numbers))


def test_will_is_retained_or_not_as_its_flag_says(five: Gateway, connect: Connect) -> None:
    """MQTT-3.1.2-14, -15."""
    watcher = subscribed(connect(five), five, "ret-w", "wl/+")
    for number, flags in ((0, 0), (1, 0x20)):
        client = connect(five)
        connected(client, f"ret{number}", will=f"00 0004 'wl/{number}' 0001 'W'", flags=flags)
        client.drop()
        assert payloads(watcher, 1) == [b"W"]
    late = subscribed(connect(five), five, "ret-l", "wl/+", 0)
    late.expect("gets the retained one", "31 08 0004 'wl/1' 00 'W'")
    assert is_quiet(late)


# -- to the client -----------------------------------------------------------------------------------------------------


def test_delivery_goes_through_its_flow(five: Gateway, connect: Connect) -> None:
    """MQTT-4.3.2-2, MQTT-4.3.3-2, -4, MQTT-3.6.1-1."""
    watcher = subscribed(connect(five), five, "flow-w", "fl1", 2)
    publish(publisher(connect(five), "flow-p"), "fl1", "A", qos=2)
    watcher.expect("gets it without DUP", "34 09 0003 'fl1' 0001 00 'A'")
    watcher.send("receives", "50 02 0001")
    watcher.expect("gets PUBREL", "62 02 0001")
    watcher.send("completes with its reason", "70 04 0001 00 00")
    assert is_quiet(watcher)


def test_unanswered_deliveries_are_repeated_on_the_next_connection_alone(five: Gateway, connect: Connect) -> None:
    """MQTT-4.4.0-1, MQTT-3.3.1-1, MQTT-4.6.0-1, MQTT-4.1.0-1: with DUP, their identifiers, and in their order."""
    watcher = subscribed(connect(five), five, "rep-w", "rp1", 2)
    sender = publisher(connect(five), "rep-p")
    for text, qos in (("A", 1), ("B", 2), ("C", 2)):
        publish(sender, "rp1", text, qos=qos)
    sent = "32 09 0003 'rp1' 0001 00 'A'", "34 09 0003 'rp1' 0002 00 'B'", "34 09 0003 'rp1' 0003 00 'C'"
    watcher.expect("gets three", *sent)
    watcher.send("receives the last", "50 02 0003")
    watcher.expect("gets PUBREL", "62 02 0003")
    assert is_quiet(watcher)
    watcher.drop()
    watcher = connect(five)
    assert connected(watcher, "rep-w", clean_start=False, properties=FOR_EVER).session_present
    watcher.expect("gets two again", "3A 09 0003 'rp1' 0001 00 'A' 3C 09 0003 'rp1' 0002 00 'B'")
    watcher.expect("gets PUBREL again", "62 02 0003")
    watcher.send("answers", "40 02 0001 50 02 0002 70 02 0003")
    watcher.expect("gets the other PUBREL", "62 02 0002")
    watcher.send("completes", "70 02 0002")
    assert is_quiet(watcher)


def test_pubrels_leave_in_the_order_of_pubrecs(five: Gateway, connect: Connect) -> None:
    """MQTT-4.6.0-4."""
    watcher = subscribed(connect(five), five, "rel-w", "rl1", 2)
    publish(publisher(connect(five), "rel-p"), "rl1", *"ABC", qos=2)
    assert payloads(watcher, 3) == [b"A", b"B", b"C"]
    watcher.send("receives in another order", "50 02 0002 50 02 0003 50 02 0001")
    watcher.expect("gets PUBRELs in that order", "62 02 0002 62 02 0003 62 02 0001")


def test_messages_of_a_topic_keep_their_order(five: Gateway, connect: Connect) -> None:
    """MQTT-4.6.0-5, -6, MQTT-4.5.0-1: for each QoS, and in the session of a client that is away."""
    watcher = subscribed(connect(five), five, "ord-w", "or1", 1)
    sender = publisher(connect(five), "ord-p")
    publish(sender, "or1", *"ABC")
    assert payloads(watcher, 3) == [b"A", b"B", b"C"]
    watcher.send("answers and leaves", "40 02 0001 40 02 0002 40 02 0003", "E0 00")
    watcher.expect_end("is let go")
    publish(sender, "or1", *"DEFG")
    watcher = connect(five)
    connected(watcher, "ord-w", clean_start=False, properties=FOR_EVER)
    assert payloads(watcher, 4) == [b"D", b"E", b"F", b"G"]


def _wait_for_the_will_of_another(connect: Connect, gateway: Gateway, name: str) -> None:
    """Six seconds by the gateway's clock: how long a delayed will of another client takes."""
    watcher = subscribed(connect(gateway), gateway, f"{name}-clock", f"clock/{name}", 0)
    client = connect(gateway)
    topic = f"{len(f'clock/{name}'):04X} 'clock/{name}'"
    connected(client, f"{name}-tick", properties="11 00000010", will=f"05 18 00000006 {topic} 0001 'W'")
    client.drop()
    assert payloads(watcher, 1) == [b"W"]


def test_what_has_been_sent_expires_no_more(five: Gateway, connect: Connect) -> None:
    """MQTT-4.3.3-7: only a message whose PUBLISH has not been sent is discarded (MQTT-3.3.2-5)."""
    watcher = subscribed(connect(five), five, "exp-w", "ep1", 2)
    sender = _client(connect, five, "exp-p")
    sender.send("publishes with an expiry of five seconds", "34 0E 0003 'ep1' 0001 05 02 00000005 'A'", "62 02 0001")
    sender.expect("gets its answers", "50 02 0001 70 02 0001")
    data = watcher.receive_packet()
    assert (data[0], data[-1:]) == (0x34, b"A")
    watcher.drop()
    _wait_for_the_will_of_another(connect, five, "exp")
    watcher = connect(five)
    assert connected(watcher, "exp-w", clean_start=False, properties=FOR_EVER).session_present
    data = watcher.receive_packet()
    assert (data[0], data[-1:]) == (0x3C, b"A")
    watcher.send("receives", "50 02 0001")
    watcher.expect("gets PUBREL", "62 02 0001")


def test_what_has_expired_is_acknowledged_to_its_end(five: Gateway, connect: Connect) -> None:
    """MQTT-4.3.3-13."""
    watcher = subscribed(connect(five), five, "due-w", "du1", 2)
    sender = _client(connect, five, "due-p")
    sender.send("publishes with an expiry of a second", "34 0E 0003 'du1' 0001 05 02 00000001 'A'")
    sender.expect("gets PUBREC", "50 02 0001")
    _wait_for_the_will_of_another(connect, five, "due")
    sender.send("releases", "62 02 0001")
    sender.expect("gets PUBCOMP", "70 02 0001")
    assert is_quiet(watcher)


# -- subscriptions -----------------------------------------------------------------------------------------------------


def test_subscribe_is_answered_for_each_filter_in_order(five: Gateway, connect: Connect) -> None:
    """MQTT-3.8.4-1, -2, -5, -6, -7, MQTT-3.9.3-1, -2."""
    client = _client(connect, five, "sub-a")
    client.send("subscribes to four", "82 1D 1234 00 0003 's/a' 02 0003 's/b' 00 0005 '/SY/x' 01 0003 's/a' 01")
    client.expect("is granted each", "90 07 1234 00 02 00 01 01")


def test_matching_is_literal_but_for_wildcards(five: Gateway, connect: Connect) -> None:
    """MQTT-4.7.2-1, MQTT-4.7.3-4, MQTT-3.3.2-3: case, empty levels, '$', and nothing normalized."""
    all_of_it, first_level = _client(connect, five, "mat-a"), _client(connect, five, "mat-b")
    subscribe(all_of_it, "#", 0)
    subscribe(first_level, "+/Mon", 0)
    sender = publisher(connect(five), "mat-p")
    for topic in ("$Own/Mon", "/Mon", "x/mon", "x/Mon", "\u00e9/Mon", "e\u0301/Mon"):
        data = topic.encode()
        sender.send("publishes", bytes((0x30, len(data) + 3)) + len(data).to_bytes(2, "big") + data + b"m")
    sender.send("pings", "C0 00")
    sender.expect("is answered", "D0 00")
    got = [first_level.receive_packet()[4:-2].decode() for _ in range(4)]
    assert got == ["/Mon", "x/Mon", "\u00e9/Mon", "e\u0301/Mon"]
    seen = set()
    while "e\u0301/Mon" not in seen:
        seen.add(all_of_it.receive_packet()[4:-2].decode())
    assert "$Own/Mon" not in seen
    assert {"/Mon", "x/mon", "x/Mon", "\u00e9/Mon"} <= seen


def test_lower_qos_of_publish_and_subscription_holds(five: Gateway, connect: Connect) -> None:
    """MQTT-3.8.4-8."""
    watcher = subscribed(connect(five), five, "low-w", "lw1", 1)
    sender = publisher(connect(five), "low-p")
    publish(sender, "lw1", "A", qos=0)
    watcher.expect("gets QoS 0", "30 07 0003 'lw1' 00 'A'")
    publish(sender, "lw1", "B", qos=2)
    watcher.expect("gets QoS 1", "32 09 0003 'lw1' 0001 00 'B'")


def test_overlapping_subscriptions_bring_one_copy_at_the_highest_qos(five: Gateway, connect: Connect) -> None:
    """MQTT-3.3.4-2, -3, -4, -5: with the identifiers of all that match."""
    watcher = _client(connect, five, "ovl-w")
    subscribe(watcher, "ov/1", 0, properties="0B 05")
    subscribe(watcher, "ov/+", 1, properties="0B 8001")
    subscribe(watcher, "ov/1/#", 0)
    publish(publisher(connect(five), "ovl-p"), "ov/1", "A", qos=2)
    data = watcher.receive_packet()
    assert data.hex(" ") in (
        "32 0f 00 04 6f 76 2f 31 00 01 05 0b 05 0b 80 01 41",
        "32 0f 00 04 6f 76 2f 31 00 01 05 0b 80 01 0b 05 41",
    )
    watcher.send("answers", "40 02 0001")
    assert is_quiet(watcher)


def test_subscribing_again_replaces_options_and_loses_no_message(five: Gateway, connect: Connect) -> None:
    """MQTT-3.8.4-3, -4."""
    watcher = subscribed(connect(five), five, "rpl-w", "rs1", 0)
    sender = publisher(connect(five), "rpl-p")
    publish(sender, "rs1", "A", qos=1)
    watcher.expect("gets QoS 0", "30 07 0003 'rs1' 00 'A'")
    subscribe(watcher, "rs1", 1)
    publish(sender, "rs1", "B", qos=1)
    watcher.expect("gets QoS 1, once", "32 09 0003 'rs1' 0001 00 'B'")
    watcher.send("answers", "40 02 0001")
    assert is_quiet(watcher)


def test_unsubscribe_is_answered_for_each_filter_and_ends_what_matches_exactly(five: Gateway, connect: Connect) -> None:
    """MQTT-3.10.4-1, -2, -4, -5, -6, MQTT-3.11.3-1, -2."""
    watcher = _client(connect, five, "uns-w")
    subscribe(watcher, "us1", 0)
    subscribe(watcher, "us2", 0)
    watcher.send("unsubscribes from one of them, and from what it has not", "A2 0D 000A 00 0003 'us1' 0003 'us3'")
    watcher.expect("gets a code for each", "B0 05 000A 00 00 11")
    sender = publisher(connect(five), "uns-p")
    publish(sender, "us1", "A")
    publish(sender, "us2", "B")
    watcher.expect("gets what it still has", "30 07 0003 'us2' 00 'B'")


def test_delivery_that_has_begun_is_completed_after_unsubscribe(five: Gateway, connect: Connect) -> None:
    """MQTT-3.10.4-3."""
    watcher = subscribed(connect(five), five, "beg-w", "bg1", 2)
    publish(publisher(connect(five), "beg-p"), "bg1", "A", qos=2)
    watcher.expect("gets it", "34 09 0003 'bg1' 0001 00 'A'")
    watcher.send("unsubscribes", "A2 08 000B 00 0003 'bg1'")
    watcher.expect("gets UNSUBACK", "B0 04 000B 00 00")
    watcher.send("receives", "50 02 0001")
    watcher.expect("gets PUBREL", "62 02 0001")
    watcher.send("completes", "70 02 0001")
    assert is_quiet(watcher)


# -- retained messages -------------------------------------------------------------------------------------------------


def test_retained_message_is_kept_replaced_and_removed(five: Gateway, connect: Connect) -> None:
    """MQTT-3.3.1-5, -6, -7, -8, -9: RETAIN is set for a new subscription and cleared for an established one."""
    live = subscribed(connect(five), five, "ret-live", "rt1", 0)
    sender = _client(connect, five, "ret-p")
    sender.send(
        "retains, then replaces, then publishes beside it", "31 07 0003 'rt1' 00 'A'", "31 07 0003 'rt1' 00 'B'"
    )
    sender.send("publishes beside it", "30 07 0003 'rt1' 00 'C'", "C0 00")
    sender.expect("is answered", "D0 00")
    live.expect("gets all without RETAIN", *(f"30 07 0003 'rt1' 00 '{text}'" for text in "ABC"))
    late = subscribed(connect(five), five, "ret-late", "rt1", 0)
    late.expect("gets the second with RETAIN", "31 07 0003 'rt1' 00 'B'")
    sender.send("removes it", "31 06 0003 'rt1' 00", "C0 00")
    sender.expect("is answered", "D0 00")
    live.expect("gets the empty message", "30 06 0003 'rt1' 00")
    assert is_quiet(subscribed(connect(five), five, "ret-later", "rt1", 0))


@pytest.mark.parametrize(
    ("options", "first", "again"), [(0x00, True, True), (0x10, True, False), (0x20, False, False)], ids=("0", "1", "2")
)
def test_retained_messages_come_as_retain_handling_says(
    five: Gateway, connect: Connect, options: int, first: bool, again: bool
) -> None:
    """MQTT-3.3.1-9, -10, -11."""
    topic = f"rh{options >> 4}"
    sender = _client(connect, five, f"rh-p{options}")
    sender.send("retains", f"31 07 0003 '{topic}' 00 'A'", "C0 00")
    sender.expect("is answered", "D0 00")
    watcher = subscribed(connect(five), five, f"rh-w{options}", topic, options)
    for comes in (first, again):
        if comes:
            watcher.expect("gets it", f"31 07 0003 '{topic}' 00 'A'")
        assert is_quiet(watcher)
        subscribe(watcher, topic, options)


@pytest.mark.parametrize(("options", "first_byte"), [(0x00, "30"), (0x08, "31")])
def test_retain_is_as_published_where_it_is_asked_for(
    five: Gateway, connect: Connect, options: int, first_byte: str
) -> None:
    """MQTT-3.3.1-12, -13."""
    watcher = subscribed(connect(five), five, f"ra-w{options}", f"ra{options}", options)
    sender = _client(connect, five, f"ra-p{options}")
    sender.send("retains", f"31 07 0003 'ra{options}' 00 'A'")
    watcher.expect("gets it", f"{first_byte} 07 0003 'ra{options}' 00 'A'")


def test_client_with_no_local_does_not_hear_itself(five: Gateway, connect: Connect) -> None:
    """MQTT-3.8.3-3."""
    client = subscribed(connect(five), five, "nol", "nl1", 0x04)
    client.send("publishes", "30 07 0003 'nl1' 00 'A'")
    publish(publisher(connect(five), "nol-p"), "nl1", "B", qos=0)
    client.expect("gets the other's alone", "30 07 0003 'nl1' 00 'B'")


def test_ping_is_answered(five: Gateway, connect: Connect) -> None:
    """MQTT-3.12.4-1."""
    assert is_quiet(_client(connect, five, "pings"))
