"""Subscriptions of MQTT 5.0 on a running gateway, byte by byte: options, identifiers, reason codes, topic aliases."""

import subprocess
from pathlib import Path

from tests.conftest import MosquittoClients
from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.mqtt5.client import connected, is_quiet, publish, publisher, subscribe, subscribed
from tests.end_to_end.mqtt5.conftest import NewGateway

NO_LOCAL, AS_PUBLISHED, IF_NEW, NEVER = 0x04, 0x08, 0x10, 0x20


def test_no_local_keeps_a_clients_own_publications_from_it_alone(five: Gateway, connect: Connect) -> None:
    one = subscribed(connect(five), five, "nl-1", "nl1", 1 | NO_LOCAL)
    two = subscribed(connect(five), five, "nl-2", "nl1", 1)
    one.send("publishes", "30 07 0003 'nl1' 00 'A'")
    two.expect("is sent it", "30 07 0003 'nl1' 00 'A'")
    assert is_quiet(one)
    two.send("publishes", "30 07 0003 'nl1' 00 'B'")
    one.expect("is sent the other's", "30 07 0003 'nl1' 00 'B'")


def test_retain_is_as_published_where_the_subscription_asks_for_it(five: Gateway, connect: Connect) -> None:
    asks = subscribed(connect(five), five, "rap-1", "ra1", 0 | AS_PUBLISHED)
    asks_not = subscribed(connect(five), five, "rap-2", "ra1", 0)
    connected(connect(five), "rap-3", will="00 0003 'ra1' 0001 'W'", flags=0x20)
    sender = publisher(connect(five), "rap-4")
    sender.send("publishes what is retained", "31 06 0003 'ra1' 'A'")
    asks.expect("is sent it with RETAIN", "31 07 0003 'ra1' 00 'A'")
    asks_not.expect("is sent it without", "30 07 0003 'ra1' 00 'A'")


def test_retained_messages_come_always_or_with_a_new_subscription_or_never(five: Gateway, connect: Connect) -> None:
    publisher(connect(five), "rh-0").send("publishes what is retained", "31 06 0003 'rh1' 'R'")
    retained = "31 07 0003 'rh1' 00 'R'"
    client = subscribed(connect(five), five, "rh-1", "rh1", 0 | NEVER)
    assert is_quiet(client)
    subscribe(client, "rh1", 0 | IF_NEW)
    assert is_quiet(client)
    subscribe(client, "rh1", 0)
    client.expect("is sent it with every SUBSCRIBE", retained)
    client.send("unsubscribes", "A2 08 0002 00 0003 'rh1'")
    client.expect("is told that there was one", "B0 04 0002 00 00")
    subscribe(client, "rh1", 0 | IF_NEW)
    client.expect("is sent it with a new subscription", retained)


def test_a_delivery_names_every_subscription_that_brought_it(five: Gateway, connect: Connect) -> None:
    client = connect(five)
    connected(client, "si-1")
    subscribe(client, "si/a", 0, properties="0B 01")
    subscribe(client, "si/+", 1, properties="0B FFFFFF7F")
    subscribe(client, "si/#", 0)
    sender = publisher(connect(five), "si-2")
    publish(sender, "si/a", "X")
    client.expect("is sent it once", "32 11 0004 'si/a' 0001 07 0B 01 0B FFFFFF7F 'X'")
    publish(sender, "si/b", "Y", qos=0)
    client.expect("is sent it for one", "30 0D 0004 'si/b' 05 0B FFFFFF7F 'Y'")
    publish(sender, "si/b/c", "Z", qos=0)
    client.expect("is sent it for the one without", "30 0A 0006 'si/b/c' 00 'Z'")


def test_every_filter_has_a_reason_code_in_its_order(
    new_gateway: StartGateway, connect: Connect, tmp_path: Path
) -> None:
    config = tmp_path / "rfhbridge.toml"
    lines = ['[mqtt]\nversions = ["5"]\nmaximum_subscriptions = 3', '[access]\nsubscribe = ["a/#", "d"]']
    config.write_text("\n".join(lines), encoding="utf-8")
    client = connect(new_gateway("--config", str(config)).start())
    connected(client, "codes")
    filters = "0003 'a/b' 02 0001 'c' 01 0003 'a/c' 01 0001 'd' 00 0003 'a/d' 00"
    client.send("subscribes to five", f"82 1D 0001 00 {filters}")
    client.expect("has room for three, and may not have one", "90 08 0001 00 02 87 01 00 97")
    client.send("unsubscribes from three", "A2 10 0002 00 0003 'a/b' 0001 'c' 0003 'a/b'")
    client.expect("is told which there were", "B0 06 0002 00 00 11 11")


def test_suback_comes_before_what_is_retained_however_many_filters_there_are(five: Gateway, connect: Connect) -> None:
    """The standard allows both (section 3.8.4); clients have come to expect it so."""
    client = connect(five)
    connected(client, "before")
    client.send("retains", "33 09 0003 'sb1' 0001 00 'R'")
    client.expect("gets PUBACK", "40 03 0001 10")
    client.send(
        "subscribes to five", "82 21 0002 00 0003 'sb1' 00 0003 'sb2' 00 0003 'sb3' 00 0003 'sb4' 00 0003 'sb5' 00"
    )
    client.expect("gets SUBACK first", "90 08 0002 00 00 00 00 00 00")
    client.expect("gets what is retained", "31 07 0003 'sb1' 00 'R'")


def test_a_filter_that_is_none_ends_the_connection(five: Gateway, connect: Connect) -> None:
    client = connect(five)
    connected(client, "bad-filter")
    client.send("subscribes", "82 09 0001 00 0003 'a#b' 00")
    client.expect("is told of its fault", "E0 01 81")
    client.expect_end("is cut off")


def test_an_alias_stands_for_its_topic_from_then_on(five: Gateway, connect: Connect) -> None:
    watcher = subscribed(connect(five), five, "ta-1", "ta/+", 0)
    client = connect(five)
    assert connected(client, "ta-2").properties[0x22] >= b"\x00\x02"
    client.send("gives two aliases", "30 0B 0004 'ta/a' 03 23 0001 'A' 30 0B 0004 'ta/b' 03 23 0002 'B'")
    client.send("uses them", "30 07 0000 03 23 0001 'C' 30 07 0000 03 23 0002 'D'")
    client.send("gives one anew", "32 0D 0004 'ta/c' 0001 03 23 0001 'E' 32 09 0000 0002 03 23 0001 'F'")
    client.expect("hears that both are safe", "40 02 0001 40 02 0002")
    for topic, text in (("a", "A"), ("b", "B"), ("a", "C"), ("b", "D"), ("c", "E"), ("c", "F")):
        watcher.expect("is sent the topic itself", f"30 08 0004 'ta/{topic}' 00 '{text}'")
    client.send("uses one that it never gave", "30 07 0000 03 23 0003 'X'")
    client.expect("is told of its error", "E0 01 82")


def test_an_alias_is_good_for_its_connection_alone(five: Gateway, connect: Connect) -> None:
    client = connect(five)
    connected(client, "ta-3", properties="11 FFFFFFFF")
    client.send("gives an alias", "30 0B 0004 'ta/z' 03 23 0001 'A'")
    again = connect(five)
    connected(again, "ta-3", clean_start=False, properties="11 FFFFFFFF")
    again.send("uses it", "30 07 0000 03 23 0001 'B'")
    again.expect("is told of its error", "E0 01 82")


def test_an_alias_past_what_the_server_takes_is_an_error(new_five: NewGateway, connect: Connect) -> None:
    client = connect(new_five("topic_alias_maximum = 1"))
    assert connected(client, "ta-4").properties[0x22] == b"\x00\x01"
    client.send("gives alias 2", "30 0B 0004 'ta/a' 03 23 0002 'A'")
    client.expect("is told why", "E0 01 94")


def test_the_server_gives_no_more_aliases_than_the_client_takes(five: Gateway, connect: Connect) -> None:
    client = connect(five)
    connected(client, "ta-5", properties="22 0001")
    subscribe(client, "tb/+", 0)
    sender = publisher(connect(five), "ta-6")
    for topic, text in (("tb/a", "A"), ("tb/a", "B"), ("tb/b", "C"), ("tb/a", "D")):
        publish(sender, topic, text, qos=0)
    client.expect("is given one", "30 0B 0004 'tb/a' 03 23 0001 'A'")
    client.expect("is sent the alias alone", "30 07 0000 03 23 0001 'B'")
    client.expect("is sent another topic whole", "30 08 0004 'tb/b' 00 'C'")
    client.expect("is sent the alias again", "30 07 0000 03 23 0001 'D'")


def test_what_is_repeated_on_another_connection_has_its_topic_again(five: Gateway, connect: Connect) -> None:
    client = connect(five)
    connected(client, "ta-7", properties="11 FFFFFFFF 22 0005")
    subscribe(client, "tc/a", 1)
    publish(publisher(connect(five), "ta-8"), "tc/a", "A", "B")
    client.expect("is given an alias", "32 0D 0004 'tc/a' 0001 03 23 0001 'A' 32 09 0000 0002 03 23 0001 'B'")
    again = connect(five)
    connected(again, "ta-7", clean_start=False, properties="11 FFFFFFFF")
    again.expect("knows none now", "3A 0A 0004 'tc/a' 0001 00 'A' 3A 0A 0004 'tc/a' 0002 00 'B'")


def test_mosquittos_clients_use_options_identifiers_and_aliases(
    five: Gateway, connect: Connect, mosquitto_clients: MosquittoClients
) -> None:
    where = ["-V", "5", "-h", "127.0.0.1", "-p", str(five.port)]
    publisher(connect(five), "mo-1").send("publishes what is retained", "31 07 0004 'mo/a' 'R'")
    listening = [str(mosquitto_clients.subscribe), *where, "-t", "mo/+", "-C", "1", "-F", "%t %p %r"]
    options = ["--retain-as-published", "-D", "subscribe", "subscription-identifier", "77"]
    heard = subprocess.run([*listening, *options], check=True, timeout=60, capture_output=True, text=True)
    assert heard.stdout == "mo/a R 1\n"
    watcher = subscribed(connect(five), five, "mo-2", "mp/+", 0)
    sending = [str(mosquitto_clients.publish), *where, "-t", "mp/a", "-D", "publish", "topic-alias", "3", "-l"]
    subprocess.run(sending, check=True, timeout=60, input="A\nB\n", text=True)
    watcher.expect("is sent both lines", "30 08 0004 'mp/a' 00 'A' 30 08 0004 'mp/a' 00 'B'")
