"""Sessions of MQTT 5.0 on a running gateway, byte by byte: their time, their will, and what client and server agree on.

Where something falls due later, a will says that it has: nothing waits by the clock.
"""

import subprocess

import pytest

from tests.conftest import MosquittoClients
from tests.end_to_end.conftest import Connect
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.mqtt5.client import (
    connect_packet,
    connected,
    is_quiet,
    payloads,
    publish,
    publisher,
    read_connack,
    subscribe,
    subscribed,
)
from tests.end_to_end.mqtt5.conftest import NewGateway

FOR_EVER = "11 FFFFFFFF"
A_SECOND = "11 00000001"
#: For what must come back before its time is over, on machines that are busy with something else.
FIVE_SECONDS = "11 00000005"
AN_HOUR = "11 00000E10"
#: Will properties with a delay of an hour, then a topic of three characters and the payload W.
WILL_IN_AN_HOUR = "05 18 00000E10 0003 '{}' 0001 'W'"
WILL_IN_A_SECOND = "05 18 00000001 0003 '{}' 0001 'W'"
WILL_IN_FIVE_SECONDS = "05 18 00000005 0003 '{}' 0001 'W'"
WILL_NOW = "00 0003 '{}' 0001 'W'"


def is_present(connect: Connect, gateway: Gateway, name: str, properties: str = FOR_EVER) -> bool:
    """Whether the client finds its session; it asks with clean start 0 and stays."""
    return connected(connect(gateway), name, clean_start=False, properties=properties).session_present


def test_connack_tells_what_the_server_can_do_by_leaving_it_out(five: Gateway, connect: Connect) -> None:
    """MQTT-3.1.4-5, MQTT-3.2.2-9, -10, -12, -13."""
    answer = connected(connect(five), "truth", properties=FOR_EVER)
    restrictions = {0x11, 0x13, 0x24, 0x25, 0x28, 0x29, 0x2A}
    assert not restrictions & set(answer.properties), "retain, QoS 2, wildcards, identifiers and shares are there"


@pytest.mark.parametrize(
    ("properties", "stays"), [("", False), ("11 00000000", False), (AN_HOUR, True), (FOR_EVER, True)]
)
def test_a_session_outlives_its_connection_as_long_as_its_expiry_says(
    five: Gateway, connect: Connect, properties: str, stays: bool
) -> None:
    """MQTT-3.1.2-5, -6, -23, MQTT-3.1.3-2, MQTT-3.2.2-3."""
    name = f"life-{properties.replace(' ', '')}"
    client = connect(five)
    assert not connected(client, name, properties=properties).session_present
    client.send("takes its leave", "E0 00")
    client.expect_end("is let go")
    assert is_present(connect, five, name) is stays


def test_clean_start_ends_the_session_from_before(five: Gateway, connect: Connect) -> None:
    """MQTT-3.1.2-4, MQTT-3.1.4-4, MQTT-3.2.2-2."""
    subscribed(connect(five), five, "clean", "clean/a").send("takes its leave", "E0 00")
    again = connect(five)
    assert not connected(again, "clean", properties=FOR_EVER).session_present
    publish(publisher(connect(five), "clean-pub"), "clean/a", "X")
    assert is_quiet(again)


def test_a_session_ends_when_its_time_is_over_and_its_will_is_due_then(five: Gateway, connect: Connect) -> None:
    """MQTT-4.1.0-2."""
    watcher = subscribed(connect(five), five, "expired-w", "ex1")
    client = connect(five)
    connected(client, "expired", properties=A_SECOND, will=WILL_IN_AN_HOUR.format("ex1"))
    client.drop()
    assert payloads(watcher, 1) == [b"W"]
    assert not is_present(connect, five, "expired")


def test_the_time_of_a_session_does_not_run_while_it_is_connected(five: Gateway, connect: Connect) -> None:
    """MQTT-4.1.0-1."""
    watcher = subscribed(connect(five), five, "running-w", "ex2")
    subscribed_client = connect(five)
    connected(subscribed_client, "running", properties=FIVE_SECONDS)
    other = connect(five)
    connected(other, "running-o", properties=FIVE_SECONDS, will=WILL_IN_AN_HOUR.format("ex2"))
    other.drop()
    assert payloads(watcher, 1) == [b"W"], "more than five seconds have passed"
    assert is_quiet(subscribed_client)
    subscribed_client.drop()
    assert is_present(connect, five, "running")


def test_disconnect_ends_a_session_that_was_to_last(five: Gateway, connect: Connect) -> None:
    client = connect(five)
    connected(client, "shorter", properties=FOR_EVER)
    client.send("ends its session too", "E0 07 00 05 11 00000000")
    client.expect_end("is let go")
    assert not is_present(connect, five, "shorter")


def test_disconnect_lets_a_session_last_longer(five: Gateway, connect: Connect) -> None:
    watcher = subscribed(connect(five), five, "longer-w", "ex3")
    client, other = connect(five), connect(five)
    connected(client, "longer", properties=A_SECOND)
    connected(other, "longer-o", properties=A_SECOND, will=WILL_IN_AN_HOUR.format("ex3"))
    client.send("asks for an hour", "E0 07 00 05 11 00000E10")
    client.expect_end("is let go")
    other.drop()
    assert payloads(watcher, 1) == [b"W"], "more than a second has passed"
    assert is_present(connect, five, "longer")


def test_disconnect_may_not_keep_a_session_that_was_to_end(five: Gateway, connect: Connect) -> None:
    client = connect(five)
    connected(client, "never")
    client.send("asks for an hour", "E0 07 00 05 11 00000E10")
    client.expect("is told of its error", "E0 01 82")
    client.expect_end("is cut off")


@pytest.mark.parametrize("death", ["restart", "kill_and_restart"])
def test_sessions_and_their_subscriptions_survive_the_gateway(
    new_five: NewGateway, connect: Connect, death: str
) -> None:
    gateway = new_five()
    client = connect(gateway)
    connected(client, "stays", properties=AN_HOUR)
    subscribe(client, "s/a", 0x0D, properties="0B 07")
    connected(connect(gateway), "goes")
    getattr(gateway, death)()
    assert not is_present(connect, gateway, "goes")
    again = connect(gateway)
    assert connected(again, "stays", clean_start=False, properties=AN_HOUR).session_present
    publish(publisher(connect(gateway), "else"), "s/a", "X")
    again.expect("is sent it with its identifier", "32 0B 0003 's/a' 0001 02 0B 07 'X'")


def test_the_time_of_a_session_runs_on_while_the_gateway_is_down(new_five: NewGateway, connect: Connect) -> None:
    gateway = new_five()
    watcher = subscribed(connect(gateway), gateway, "watch", "w/1")
    client = connect(gateway)
    connected(client, "passing", properties=A_SECOND, will=WILL_IN_AN_HOUR.format("w/1"))
    client.send("leaves its will", "E0 01 04")
    client.expect_end("is let go")
    gateway.kill_and_restart()
    watcher = connect(gateway)
    assert connected(watcher, "watch", clean_start=False, properties=FOR_EVER).session_present
    assert payloads(watcher, 1) == [b"W"]
    assert not is_present(connect, gateway, "passing")


def test_a_connection_that_died_with_the_gateway_leaves_its_will(new_five: NewGateway, connect: Connect) -> None:
    gateway = new_five()
    subscribed(connect(gateway), gateway, "watch", "w/+")
    connected(connect(gateway), "now", properties=AN_HOUR, will=WILL_NOW.format("w/1"))
    connected(connect(gateway), "soon", properties=AN_HOUR, will=WILL_IN_A_SECOND.format("w/2"))
    connected(connect(gateway), "late", properties=AN_HOUR, will=WILL_IN_AN_HOUR.format("w/3"))
    gateway.kill_and_restart()
    watcher = connect(gateway)
    connected(watcher, "watch", clean_start=False, properties=FOR_EVER)
    watcher.expect("is sent the will that is due", "30 07 0003 'w/1' 00 'W'")
    watcher.expect("is sent the one that is due in a second", "30 07 0003 'w/2' 00 'W'")
    assert is_quiet(watcher)


def test_a_delayed_will_waits_and_a_client_that_comes_back_takes_it_back(five: Gateway, connect: Connect) -> None:
    """MQTT-3.1.2-8, MQTT-3.1.3-9."""
    watcher = subscribed(connect(five), five, "delayed-w", "dw/+")
    for name, topic in (("delayed-1", "dw1"), ("delayed-2", "dw2")):
        client = connect(five)
        will = WILL_IN_FIVE_SECONDS.format(topic).replace("0003 'dw", "0004 'dw/")
        connected(client, name, properties=AN_HOUR, will=will)
        client.drop()
        if name == "delayed-1":
            assert is_present(connect, five, name)
    watcher.expect("is sent the will of who stayed away", "30 08 0004 'dw/2' 00 'W'")


def test_disconnect_with_code_4_leaves_the_will(five: Gateway, connect: Connect) -> None:
    """MQTT-3.1.2-10, MQTT-3.14.4-3."""
    watcher = subscribed(connect(five), five, "parting-w", "pw1")
    for disconnect, text in (("E0 00", "A"), ("E0 01 04", "B")):
        client = connect(five)
        connected(client, "parting", will=WILL_NOW.format("pw1").replace("'W'", f"'{text}'"))
        client.send("takes its leave", disconnect)
        client.expect_end("is let go")
    assert payloads(watcher, 1) == [b"B"]


def test_a_session_that_is_taken_over_leaves_its_will_without_delay(five: Gateway, connect: Connect) -> None:
    watcher = subscribed(connect(five), five, "taken-w", "to1")
    old = connect(five)
    connected(old, "taken", properties=AN_HOUR, will=WILL_NOW.format("to1"))
    assert is_present(connect, five, "taken")
    old.expect("is told who has its session", "E0 01 8E")
    old.expect_end("is cut off")
    assert payloads(watcher, 1) == [b"W"]


def test_a_client_is_assigned_an_identifier_and_can_use_it(five: Gateway, connect: Connect) -> None:
    client = connect(five)
    name = connected(client, "", properties=FOR_EVER).properties[0x12].decode()
    client.send("takes its leave", "E0 00")
    client.expect_end("is let go")
    assert is_present(connect, five, name)
    assert 0x12 not in connected(connect(five), "own-name").properties


@pytest.mark.parametrize(("asked_s", "told"), [(0, b"\x00\x3c"), (61, b"\x00\x3c"), (60, None), (1, None)])
def test_the_server_shortens_a_keep_alive_that_is_too_long_for_it(
    new_five: NewGateway, connect: Connect, asked_s: int, told: bytes | None
) -> None:
    gateway = new_five("maximum_keep_alive_s = 60")
    assert connected(connect(gateway), "alive", keep_alive_s=asked_s).properties.get(0x13) == told


def test_who_keeps_silent_past_the_servers_keep_alive_is_told_so(new_five: NewGateway, connect: Connect) -> None:
    client = connect(new_five("maximum_keep_alive_s = 1"))
    connected(client, "silent")
    client.expect("is told why", "E0 01 8D")
    client.expect_end("is cut off")


def test_no_more_is_on_its_way_at_qos_1_than_the_client_takes(five: Gateway, connect: Connect) -> None:
    client = connect(five)
    connected(client, "receive-1", properties="21 0002")
    subscribe(client, "rm1", 1)
    sender = publisher(connect(five), "receive-1p")
    publish(sender, "rm1", *"ABCD")
    client.expect("is sent two", "32 09 0003 'rm1' 0001 00 'A' 32 09 0003 'rm1' 0002 00 'B'")
    assert is_quiet(client)
    client.send("has the second", "40 02 0002")
    client.expect("is sent the third", "32 09 0003 'rm1' 0003 00 'C'")
    client.send("refuses the first", "40 03 0001 83")
    client.expect("is sent the fourth", "32 09 0003 'rm1' 0004 00 'D'")


def test_a_place_at_qos_2_is_free_with_pubcomp_or_a_pubrec_that_refuses(five: Gateway, connect: Connect) -> None:
    client = connect(five)
    connected(client, "receive-2", properties="21 0001")
    subscribe(client, "rm2", 2)
    publish(publisher(connect(five), "receive-2p"), "rm2", *"ABC", qos=2)
    client.expect("is sent one", "34 09 0003 'rm2' 0001 00 'A'")
    client.send("has received it", "50 02 0001")
    client.expect("is asked to release it", "62 02 0001")
    assert is_quiet(client)
    client.send("has released it", "70 02 0001")
    client.expect("is sent the second", "34 09 0003 'rm2' 0002 00 'B'")
    client.send("refuses it", "50 03 0002 97")
    client.expect("is sent the third", "34 09 0003 'rm2' 0003 00 'C'")


def test_qos_0_is_not_counted_against_the_receive_maximum(five: Gateway, connect: Connect) -> None:
    client = connect(five)
    connected(client, "receive-0", properties="21 0001")
    subscribe(client, "rm0", 1)
    sender = publisher(connect(five), "receive-0p")
    publish(sender, "rm0", "A")
    publish(sender, "rm0", "B", qos=0)
    client.expect("is sent the first", "32 09 0003 'rm0' 0001 00 'A'")
    client.send("has it", "40 02 0001")
    client.expect("is sent the other", "30 07 0003 'rm0' 00 'B'")


def test_a_packet_larger_than_the_client_takes_is_not_sent_and_does_not_stop_the_next(
    five: Gateway, connect: Connect
) -> None:
    client = connect(five)
    connected(client, "small", properties="27 00000014")
    subscribe(client, "mp1", 1)
    sender = publisher(connect(five), "small-p")
    publish(sender, "mp1", "0123456789A", "0123456789")
    client.expect("is sent what fits into 20 bytes", "32 12 0003 'mp1' 0002 00 '0123456789'")
    assert is_quiet(client)


def test_a_client_that_cannot_take_the_connack_is_closed_without_it(five: Gateway, connect: Connect) -> None:
    client = connect(five)
    client.send("takes packets of four bytes", connect_packet("tiny", properties="27 00000004"))
    client.expect_end("is cut off")


def test_a_client_that_wants_no_problem_information_gets_codes_alone(five: Gateway, connect: Connect) -> None:
    client = connect(five)
    connected(client, "terse", properties="17 00")
    client.send("releases what is not there", "62 02 0007")
    client.expect("is told the code", "70 03 0007 92")
    client.send("sends what no server may be sent", "20 03 00 00 00")
    assert client.receive_packet()[:1] == b"\xe0"


def test_a_client_that_breaks_the_protocol_is_told_and_leaves_its_will(five: Gateway, connect: Connect) -> None:
    """MQTT-3.1.2-7."""
    watcher = subscribed(connect(five), five, "broken-w", "br1")
    client = connect(five)
    connected(client, "broken", will=WILL_NOW.format("br1"))
    client.send("connects twice", connect_packet("broken"))
    client.expect("is told of its error", "E0 01 82")
    client.expect_end("is cut off")
    assert payloads(watcher, 1) == [b"W"]


def test_a_clients_own_receive_maximum_of_0_is_an_error(five: Gateway, connect: Connect) -> None:
    client = connect(five)
    client.send("takes nothing", connect_packet("zero", properties="21 0000"))
    assert read_connack(client).reason_code == 0x82
    client.expect_end("is cut off")


def test_mosquittos_clients_keep_a_session_for_as_long_as_they_say(
    five: Gateway, mosquitto_clients: MosquittoClients
) -> None:
    where = ["-V", "5", "-h", "127.0.0.1", "-p", str(five.port)]
    listening = [str(mosquitto_clients.subscribe), *where, "-i", "mosq", "-c", "-x", "3600", "-t", "mosq/+", "-q", "1"]
    sending = [str(mosquitto_clients.publish), *where, "-t", "mosq/a", "-q", "2", "-m", "kept"]
    subprocess.run([*listening, "-E"], check=True, timeout=60)
    subprocess.run(sending, check=True, timeout=60)
    heard = subprocess.run([*listening, "-C", "1"], check=True, timeout=60, capture_output=True, text=True)
    assert heard.stdout == "kept\n"
