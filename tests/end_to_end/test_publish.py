"""What a client publishes: PUBLISH, PUBACK, PUBREC, PUBREL and PUBCOMP towards the gateway, byte by byte."""

from tests.end_to_end.conftest import Connect, connected
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.wire import packet

ACCEPTED = "20 02 00 00"
SESSION_PRESENT = "20 02 01 00"


def test_qos_0_is_not_acknowledged_and_arrives(shared_gateway: Gateway, connect: Connect) -> None:
    client = connected(connect, shared_gateway, "pu00")
    client.send("subscribes", "82 0A 0001 0005 'pu/q0' 00")
    client.expect("is granted QoS 0", "90 03 0001 00")
    client.send("publishes", "30 09 0005 'pu/q0' 'hi'")
    client.expect("gets it, and nothing else", "30 09 0005 'pu/q0' 'hi'")


def test_qos_1_is_answered_by_puback_with_its_identifier(shared_gateway: Gateway, connect: Connect) -> None:
    """MQTT-2.3.1-6, MQTT-3.3.4-1, MQTT-4.3.2-2."""
    client = connected(connect, shared_gateway, "pu01")
    client.send("publishes", "32 0B 0005 'pu/q1' FFFF 'hi'")
    client.expect("gets PUBACK", "40 02 FFFF")
    client.send("publishes once more, as a repeat", "3A 0B 0005 'pu/q1' FFFF 'hi'")
    client.expect("gets PUBACK again", "40 02 FFFF")


def test_qos_1_that_is_repeated_is_published_again(shared_gateway: Gateway, connect: Connect) -> None:
    """Seed 004 and MQTT 3.1.1 section 4.3.2: at least once. The copy has no DUP, for to this receiver it is new.

    MQTT-3.3.1-3.
    """
    client, watcher = connected(connect, shared_gateway, "pu02"), connected(connect, shared_gateway, "pu03")
    watcher.send("subscribes", "82 0A 0001 0005 'pu/ag' 01")
    watcher.expect("is granted QoS 1", "90 03 0001 01")
    client.send("publishes and repeats", "32 0B 0005 'pu/ag' 0007 'hi'", "3A 0B 0005 'pu/ag' 0007 'hi'")
    client.expect("gets two PUBACKs", "40 02 0007 40 02 0007")
    watcher.expect("gets two messages", "32 0B 0005 'pu/ag' 0001 'hi'", "32 0B 0005 'pu/ag' 0002 'hi'")


def test_qos_2_arrives_after_pubrel_and_not_before(shared_gateway: Gateway, connect: Connect) -> None:
    """Seed 004: stored at PUBLISH, published at PUBREL. MQTT-4.3.3-2."""
    client, watcher = connected(connect, shared_gateway, "pu04"), connected(connect, shared_gateway, "pu05")
    watcher.send("subscribes", "82 0A 0001 0005 'pu/q2' 00")
    watcher.expect("is granted QoS 0", "90 03 0001 00")
    client.send("publishes the first", "34 0B 0005 'pu/q2' 0010 'no'")
    client.expect("gets PUBREC", "50 02 0010")
    client.send("publishes the second", "34 0B 0005 'pu/q2' 0011 'go'")
    client.expect("gets PUBREC", "50 02 0011")
    client.send("releases the second", "62 02 0011")
    client.expect("gets PUBCOMP", "70 02 0011")
    watcher.expect("gets the second, for the first is held", "30 09 0005 'pu/q2' 'go'")
    client.send("releases the first", "62 02 0010")
    client.expect("gets PUBCOMP", "70 02 0010")
    watcher.expect("gets the first", "30 09 0005 'pu/q2' 'no'")


def test_each_pubrel_is_answered_however_fast_they_come(shared_gateway: Gateway, connect: Connect) -> None:
    """MQTT-4.3.3-2: whoever repeats QoS 2 counts the answers."""
    client = connected(connect, shared_gateway, "pu17")
    published = ["34 0B 0005 'pu/th' 0444 'hi'", "3C 0B 0005 'pu/th' 0444 'hi'"]
    client.send("publishes, repeats and releases twice", *published, "62 02 0444", "62 02 0444")
    client.expect("gets each answer twice", "50 02 0444 50 02 0444 70 02 0444 70 02 0444")
    client.send("asks whether there is more", "C0 00")
    client.expect("hears that there is not", "D0 00")


def test_qos_2_that_is_repeated_is_published_once(shared_gateway: Gateway, connect: Connect) -> None:
    client, watcher = connected(connect, shared_gateway, "pu06"), connected(connect, shared_gateway, "pu07")
    watcher.send("subscribes", "82 0A 0001 0005 'pu/on' 00")
    watcher.expect("is granted QoS 0", "90 03 0001 00")
    client.send("publishes and repeats", "34 0B 0005 'pu/on' 0020 'hi'", "3C 0B 0005 'pu/on' 0020 'hi'", "62 02 0020")
    client.expect("gets PUBREC twice and PUBCOMP", "50 02 0020 50 02 0020 70 02 0020")
    client.send("releases again", "62 02 0020")
    client.expect("gets PUBCOMP again", "70 02 0020")
    client.send("publishes the end", "30 0A 0005 'pu/on' 'end'")
    watcher.expect("gets it once, then the end", "30 09 0005 'pu/on' 'hi'", "30 0A 0005 'pu/on' 'end'")


def test_a_pubrel_of_an_unknown_identifier_is_completed(shared_gateway: Gateway, connect: Connect) -> None:
    client = connected(connect, shared_gateway, "pu08")
    client.send("releases what it never sent", "62 02 4711")
    client.expect("gets PUBCOMP", "70 02 4711")


def test_an_identifier_may_be_used_again_after_pubcomp(shared_gateway: Gateway, connect: Connect) -> None:
    client, watcher = connected(connect, shared_gateway, "pu09"), connected(connect, shared_gateway, "pu10")
    watcher.send("subscribes", "82 0A 0001 0005 'pu/us' 00")
    watcher.expect("is granted QoS 0", "90 03 0001 00")
    for payload in ("one", "two"):
        client.send("publishes", f"34 0C 0005 'pu/us' 0001 '{payload}'")
        client.expect("gets PUBREC", "50 02 0001")
        client.send("releases", "62 02 0001")
        client.expect("gets PUBCOMP", "70 02 0001")
        watcher.expect("gets it", f"30 0A 0005 'pu/us' '{payload}'")


def test_acknowledgements_leave_in_packet_order(shared_gateway: Gateway, connect: Connect) -> None:
    """MQTT-4.6.0-2, -3."""
    client = connected(connect, shared_gateway, "pu11")
    client.send(
        "publishes at both levels in one write",
        "32 0B 0005 'pu/or' 0001 'hi'",
        "34 0B 0005 'pu/or' 0002 'hi'",
        "32 0B 0005 'pu/or' 0003 'hi'",
        "34 0B 0005 'pu/or' 0004 'hi'",
        "62 02 0002",
        "32 0B 0005 'pu/or' 0005 'hi'",
    )
    client.expect("is answered in that order", "40 02 0001 50 02 0002 40 02 0003 50 02 0004 70 02 0002 40 02 0005")


def test_acknowledgements_of_many_reads_leave_in_packet_order(shared_gateway: Gateway, connect: Connect) -> None:
    client = connected(connect, shared_gateway, "pu12")
    count = 1_000
    for number in range(1, count + 1):
        first_byte = "34" if number % 3 == 0 else "32"
        client.send("publishes", f"{first_byte} 0B 0005 'pu/ma' {number:04X} 'hi'")
    expected = [f"{'50' if number % 3 == 0 else '40'} 02 {number:04X}" for number in range(1, count + 1)]
    client.expect("is answered in packet order", *expected)


def test_what_was_sent_before_a_disconnect_is_acknowledged(shared_gateway: Gateway, connect: Connect) -> None:
    client = connected(connect, shared_gateway, "pu16")
    client.send(
        "publishes and leaves in one write", "32 0B 0005 'pu/le' 0001 'hi'", "34 0B 0005 'pu/le' 0002 'hi'", "E0 00"
    )
    client.expect("gets PUBACK and PUBREC", "40 02 0001 50 02 0002")
    client.expect_end("is disconnected")


def test_a_payload_of_a_mebibyte_arrives_whole(shared_gateway: Gateway, connect: Connect) -> None:
    """1,048,585 bytes remain: 9 + 0 * 128 + 64 * 16,384, so 89 80 40; two bytes more at QoS 1."""
    client, watcher = connected(connect, shared_gateway, "pu13"), connected(connect, shared_gateway, "pu14")
    payload = bytes(range(256)) * 4_096
    watcher.send("subscribes", "82 0A 0001 0005 'pu/mb' 01")
    watcher.expect("is granted QoS 1", "90 03 0001 01")
    client.send("publishes", "32 89 80 40 0005 'pu/mb' 0001", payload)
    client.expect("gets PUBACK", "40 02 0001")
    watcher.expect("gets every byte", packet("32 89 80 40 0005 'pu/mb' 0001") + payload)
    client.send("publishes at QoS 0", "30 87 80 40 0005 'pu/mb'", payload)
    watcher.expect("gets every byte", packet("30 87 80 40 0005 'pu/mb'") + payload)


def test_an_empty_payload_and_any_byte_arrive_unchanged(shared_gateway: Gateway, connect: Connect) -> None:
    client = connected(connect, shared_gateway, "pu15")
    client.send("subscribes to a topic of many scripts", "82 0F 0001 000A 'pu/' C3A4 EFBBBF '/ ' 01")
    client.expect("is granted QoS 1", "90 03 0001 01")
    client.send("publishes nothing", "30 0C 000A 'pu/' C3A4 EFBBBF '/ '")
    client.expect("gets it", "30 0C 000A 'pu/' C3A4 EFBBBF '/ '")
    client.send("publishes bytes that are no text", "30 10 000A 'pu/' C3A4 EFBBBF '/ ' 00 FF FE 22")
    client.expect("gets them", "30 10 000A 'pu/' C3A4 EFBBBF '/ ' 00 FF FE 22")


def test_what_was_held_survives_a_kill_and_is_published_once(gateway: Gateway, connect: Connect) -> None:
    watcher, client = connect(gateway, "the watcher"), connect(gateway)
    watcher.send("connects", "10 10 0004 'MQTT' 04 00 0000 0004 'hear'")
    watcher.expect("is accepted", ACCEPTED)
    watcher.send("subscribes", "82 08 0001 0003 'a/b' 02")
    watcher.expect("is granted QoS 2", "90 03 0001 02")
    client.send("connects", "10 10 0004 'MQTT' 04 00 0000 0004 'tell'")
    client.expect("is accepted", ACCEPTED)
    client.send("publishes", "34 0A 0003 'a/b' 0005 'one'", "34 0A 0003 'a/b' 0006 'two'")
    client.expect("gets PUBREC", "50 02 0005 50 02 0006")

    gateway.kill_and_restart()
    client = connect(gateway)
    client.send("connects again", "10 10 0004 'MQTT' 04 00 0000 0004 'tell'")
    client.expect("finds its session", SESSION_PRESENT)
    client.send("repeats a PUBLISH that it is not sure of", "3C 0A 0003 'a/b' 0005 'one'")
    client.expect("gets PUBREC again", "50 02 0005")
    client.send("releases", "62 02 0005")
    client.expect("gets PUBCOMP", "70 02 0005")

    gateway.restart()
    client = connect(gateway)
    client.send("connects a third time", "10 10 0004 'MQTT' 04 00 0000 0004 'tell'")
    client.expect("finds its session", SESSION_PRESENT)
    client.send("repeats both PUBRELs", "62 02 0005 62 02 0006")
    client.expect("gets both PUBCOMPs", "70 02 0005 70 02 0006")
    client.send("publishes the end", "32 0A 0003 'a/b' 0007 'end'")
    client.expect("gets PUBACK", "40 02 0007")
    watcher = connect(gateway, "the watcher")
    watcher.send("connects", "10 10 0004 'MQTT' 04 00 0000 0004 'hear'")
    watcher.expect("finds its session", SESSION_PRESENT)
    watcher.expect(
        "gets each once",
        "34 0A 0003 'a/b' 0001 'one'",
        "34 0A 0003 'a/b' 0002 'two'",
        "32 0A 0003 'a/b' 0003 'end'",
    )
