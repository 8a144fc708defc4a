"""Wills (MQTT 3.1.1 section 3.1.2.5): published when a connection ends without DISCONNECT, for whatever reason."""

from pathlib import Path

import pytest

from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.wire import WireClient

ACCEPTED = "20 02 00 00"
SESSION_PRESENT = "20 02 01 00"


def _watching(connect: Connect, gateway: Gateway, name: str, topic_filter: str, qos: int = 1) -> WireClient:
    client = connect(gateway, "the watcher")
    client.send("connects", f"10 10 0004 'MQTT' 04 02 0000 0004 '{name}'")
    client.expect("is accepted", ACCEPTED)
    client.send("subscribes", f"82 0A 0001 0005 '{topic_filter}' 0{qos}")
    client.expect(f"is granted QoS {qos}", f"90 03 0001 0{qos}")
    return client


def _with_will(
    connect: Connect, gateway: Gateway, flags: str, name: str, topic: str, keep_alive: str = "0000"
) -> WireClient:
    client = connect(gateway)
    client.send(
        "connects with a will", f"10 1D 0004 'MQTT' 04 {flags} {keep_alive} 0004 '{name}' 0005 '{topic}' 0004 'gone'"
    )
    client.expect("is accepted", ACCEPTED)
    return client


@pytest.mark.parametrize(
    ("flags", "published"),
    [
        ("06", "30 0B 0005 'w/{0}' 'gone'"),
        ("0E", "32 0D 0005 'w/{0}' 0001 'gone'"),
        ("16", "34 0D 0005 'w/{0}' 0001 'gone'"),
    ],
)
def test_a_will_is_published_at_its_qos_when_the_connection_is_lost(
    shared_gateway: Gateway, connect: Connect, flags: str, published: str
) -> None:
    """MQTT-3.1.2-8, -16."""
    watcher = _watching(connect, shared_gateway, f"wl{flags}", f"w/l{flags}", 2)
    _with_will(connect, shared_gateway, flags, f"wi{flags}", f"w/l{flags}").drop()
    watcher.expect("gets the will", published.format(f"l{flags}"))


def test_a_will_is_published_when_the_client_closes_without_disconnect(
    shared_gateway: Gateway, connect: Connect
) -> None:
    watcher = _watching(connect, shared_gateway, "wi01", "w/fin")
    _with_will(connect, shared_gateway, "0E", "wi02", "w/fin").end()
    watcher.expect("gets the will", "32 0D 0005 'w/fin' 0001 'gone'")


def test_a_will_is_published_when_the_client_breaks_the_protocol(shared_gateway: Gateway, connect: Connect) -> None:
    watcher = _watching(connect, shared_gateway, "wi03", "w/bad")
    client = _with_will(connect, shared_gateway, "0E", "wi04", "w/bad")
    client.send("sends a reserved packet type", "F0 00")
    client.expect_end("is disconnected")
    watcher.expect("gets the will", "32 0D 0005 'w/bad' 0001 'gone'")


def test_a_will_is_published_when_another_takes_the_session_over(shared_gateway: Gateway, connect: Connect) -> None:
    watcher = _watching(connect, shared_gateway, "wi05", "w/tak")
    client = _with_will(connect, shared_gateway, "0E", "wi06", "w/tak")
    second = connect(shared_gateway, "the second")
    second.send("connects with the same identifier", "10 10 0004 'MQTT' 04 02 0000 0004 'wi06'")
    second.expect("is accepted", ACCEPTED)
    client.expect_end("is disconnected")
    watcher.expect("gets the will", "32 0D 0005 'w/tak' 0001 'gone'")


def test_a_will_is_not_published_after_disconnect(shared_gateway: Gateway, connect: Connect) -> None:
    """MQTT-3.1.2-10, MQTT-3.14.4-3."""
    watcher = _watching(connect, shared_gateway, "wi07", "w/dis")
    client = _with_will(connect, shared_gateway, "0E", "wi08", "w/dis")
    client.send("disconnects", "E0 00")
    client.expect_end("is disconnected")
    _with_will(connect, shared_gateway, "06", "wi09", "w/dis").drop()
    watcher.expect("gets the will of the other alone", "30 0B 0005 'w/dis' 'gone'")


def test_a_retained_will_waits_for_later_subscribers(shared_gateway: Gateway, connect: Connect) -> None:
    """MQTT-3.1.2-17."""
    watcher = _watching(connect, shared_gateway, "wi10", "w/ret")
    _with_will(connect, shared_gateway, "2E", "wi11", "w/ret").drop()
    watcher.expect("gets the will without RETAIN", "32 0D 0005 'w/ret' 0001 'gone'")
    late = _watching(connect, shared_gateway, "wi12", "w/ret")
    late.expect("gets the will with RETAIN", "33 0D 0005 'w/ret' 0001 'gone'")


def test_an_empty_retained_will_deletes_what_was_retained(shared_gateway: Gateway, connect: Connect) -> None:
    client = connect(shared_gateway)
    client.send("connects", "10 19 0004 'MQTT' 04 2E 0000 0004 'wi13' 0005 'w/emp' 0000")
    client.expect("is accepted", ACCEPTED)
    client.send("publishes with RETAIN", "33 0B 0005 'w/emp' 0001 'hi'")
    client.expect("gets PUBACK", "40 02 0001")
    watcher = _watching(connect, shared_gateway, "wi14", "w/emp")
    watcher.expect("gets it", "33 0B 0005 'w/emp' 0001 'hi'")
    client.drop()
    watcher.expect("gets the empty will", "32 09 0005 'w/emp' 0002")
    late = _watching(connect, shared_gateway, "wi15", "w/emp", 0)
    _with_will(connect, shared_gateway, "06", "wi16", "w/emp").drop()
    late.expect("gets nothing that was retained", "30 0B 0005 'w/emp' 'gone'")


def test_keep_alive_ends_a_silent_connection_and_leaves_its_will(shared_gateway: Gateway, connect: Connect) -> None:
    """One and a half times the keep-alive of four seconds; a client that pings in time stays (MQTT-3.1.2-24)."""
    watcher = _watching(connect, shared_gateway, "wi17", "w/kee")
    pinging = _with_will(connect, shared_gateway, "0E", "wi18", "w/oth", "0004")
    silent = _with_will(connect, shared_gateway, "0E", "wi19", "w/kee", "0004")
    while not silent.ended_within(0.2):
        pinging.send("pings in time", "C0 00")
        pinging.expect("is answered", "D0 00")
    watcher.expect("gets the will of the silent one", "32 0D 0005 'w/kee' 0001 'gone'")
    shared_gateway.wait_for_log("connection closed", client="^wi19$", reason="keep-alive")
    pinging.send("pings once more", "C0 00")
    pinging.expect("is still connected", "D0 00")


def test_keep_alive_counts_whole_packets_and_large_ones_while_they_make_progress(
    shared_gateway: Gateway, connect: Connect
) -> None:
    """Keep-alives of two seconds. A byte each tenth of a second kept a connection open; a large PUBLISH still does."""
    watcher = _watching(connect, shared_gateway, "wi23", "w/byt")
    large = _with_will(connect, shared_gateway, "0E", "wi24", "w/oth", "0002")
    trickling = _with_will(connect, shared_gateway, "0E", "wi25", "w/byt", "0002")
    trickling.send("begins a PUBLISH of a million bytes", "32 C0843D 0005 'w/byt' 0001")
    large.send("begins a PUBLISH of 1,000,009 bytes", "32 C9843D 0005 'w/lar' 0001")
    left = 1_000_000
    while not trickling.ended_within(0.1):
        trickling.send("goes on", b"x")
        large.send("goes on", bytes(1_000))
        left -= 1_000
    watcher.expect("gets the will of the one that makes no progress", "32 0D 0005 'w/byt' 0001 'gone'")
    shared_gateway.wait_for_log("connection closed", client="^wi25$", reason="keep-alive")
    large.send("comes to the end", bytes(left))
    large.expect("is answered", "40 02 0001")


def test_keep_alive_ends_a_connection_that_reads_nothing(shared_gateway: Gateway, connect: Connect) -> None:
    """What waits to be sent to a dead client does not keep its connection, or its will, waiting."""
    watcher = _watching(connect, shared_gateway, "wi20", "w/dea")
    deaf = connect(shared_gateway, "the deaf one")
    deaf.send("connects", "10 1D 0004 'MQTT' 04 0E 0002 0004 'wi21' 0005 'w/dea' 0004 'gone'")
    deaf.expect("is accepted", ACCEPTED)
    deaf.send("subscribes and reads no more", "82 0A 0001 0005 'w/big' 00")
    deaf.expect("is granted QoS 0", "90 03 0001 00")
    client = connect(shared_gateway)
    client.send("connects", "10 10 0004 'MQTT' 04 02 0000 0004 'wi22'")
    client.expect("is accepted", ACCEPTED)
    for number in range(1, 13):
        client.send("publishes a mebibyte", f"32 89 80 40 0005 'w/big' {number:04X}", bytes(1_048_576))
        client.expect("gets PUBACK", f"40 02 {number:04X}")
    watcher.expect("gets the will of the deaf one", "32 0D 0005 'w/dea' 0001 'gone'")


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_will_is_published_after_a_restart_of_the_gateway(gateway: Gateway, connect: Connect, how: str) -> None:
    """Its connection died with the gateway; the watcher is persistent and gets it when both are back."""
    watcher = connect(gateway, "the watcher")
    watcher.send("connects", "10 10 0004 'MQTT' 04 00 0000 0004 'hear'")
    watcher.expect("is accepted", ACCEPTED)
    watcher.send("subscribes", "82 08 0001 0003 'w/#' 01")
    watcher.expect("is granted QoS 1", "90 03 0001 01")
    clean = _with_will(connect, gateway, "0E", "cln1", "w/one")
    kept = _with_will(connect, gateway, "0C", "kep1", "w/two")
    gone = _with_will(connect, gateway, "0C", "kep2", "w/not")
    gone.send("disconnects", "E0 00")
    gone.expect_end("is disconnected")
    if how == "stop":
        gateway.stop()
    else:
        gateway.kill()
    clean.expect_end("is disconnected")
    kept.expect_end("is disconnected")

    gateway.start()
    watcher = connect(gateway, "the watcher")
    watcher.send("connects again", "10 10 0004 'MQTT' 04 00 0000 0004 'hear'")
    watcher.expect("finds its session", SESSION_PRESENT)
    received = sorted(watcher.receive_packet() for _ in range(2))
    assert [packet[4:9] + packet[11:] for packet in received] == [b"w/onegone", b"w/twogone"]
    watcher.send("acknowledges", "40 02 0001 40 02 0002")

    gateway.restart()
    watcher = connect(gateway, "the watcher")
    watcher.send("connects a third time", "10 10 0004 'MQTT' 04 00 0000 0004 'hear'")
    watcher.expect("finds its session", SESSION_PRESENT)
    fresh = _with_will(connect, gateway, "0E", "new1", "w/new")
    fresh.drop()
    watcher.expect("gets no will twice", "32 0D 0005 'w/new' 0001 'gone'")


def test_a_client_whose_will_is_not_allowed_may_not_connect(
    new_gateway: StartGateway, connect: Connect, tmp_path: Path
) -> None:
    configuration = tmp_path / "rfhbridge.toml"
    configuration.write_text('[access]\npublish = ["open/#"]\nsubscribe = ["open/#", "shut/+"]\n')
    gateway = new_gateway("--config", str(configuration)).start()
    watcher = connect(gateway, "the watcher")
    watcher.send("connects", "10 10 0004 'MQTT' 04 02 0000 0004 'hear'")
    watcher.expect("is accepted", ACCEPTED)
    watcher.send(
        "subscribes to what is allowed and what is not",
        "82 1D 0001 0006 'open/#' 01 0006 'shut/#' 01 0006 'shut/+' 01",
    )
    watcher.expect("is granted what is allowed", "90 05 0001 01 80 01")
    refused = connect(gateway, "the refused one")
    refused.send("connects", "10 1E 0004 'MQTT' 04 0E 0000 0004 'shut' 0006 'shut/a' 0004 'gone'")
    refused.expect("is told that this is not authorized", "20 02 00 05")
    refused.expect_end("is disconnected")
    gateway.wait_for_log("connection closed", reason="a will on 'shut/a' is not allowed")
    refused = connect(gateway, "the one that publishes where it may not")
    refused.send("connects", "10 1E 0004 'MQTT' 04 0E 0000 0004 'opn2' 0006 'open/b' 0004 'gone'")
    refused.expect("is accepted", ACCEPTED)
    refused.send("publishes where it may not", "32 0C 0006 'shut/b' 0001 'hi'")
    refused.expect_end("is disconnected without PUBACK")
    gateway.wait_for_log("connection closed", client="^opn2$", reason="not allowed")
    watcher.expect("gets its will, which is allowed", "32 0E 0006 'open/b' 0001 'gone'")
    allowed = connect(gateway, "the other")
    allowed.send("connects", "10 1E 0004 'MQTT' 04 0E 0000 0004 'open' 0006 'open/a' 0004 'gone'")
    allowed.expect("is accepted", ACCEPTED)
    allowed.drop()
    watcher.expect("gets the allowed will", "32 0E 0006 'open/a' 0002 'gone'")


def test_a_disconnect_behind_a_refused_publish_does_not_take_the_will_back(
    new_gateway: StartGateway, connect: Connect, tmp_path: Path
) -> None:
    configuration = tmp_path / "rfhbridge.toml"
    configuration.write_text('[access]\npublish = ["w/+"]\n')
    gateway = new_gateway("--config", str(configuration)).start()
    watcher = _watching(connect, gateway, "wi20", "w/end")
    refused = _with_will(connect, gateway, "0E", "wi21", "w/end")
    refused.send("publishes where it may not, and disconnects", "30 08 0004 'shut' 'hi'", "E0 00")
    refused.expect_end("is disconnected")
    watcher.expect("gets the will", "32 0D 0005 'w/end' 0001 'gone'")


def test_a_connection_without_a_will_leaves_none(shared_gateway: Gateway, connect: Connect) -> None:
    """MQTT-3.1.2-12: whatever will an earlier connection of the same session had."""
    watcher = _watching(connect, shared_gateway, "wi60", "w/non")
    first = connect(shared_gateway)
    first.send("connects with a will", "10 1D 0004 'MQTT' 04 04 0000 0004 'wi61' 0005 'w/non' 0004 'gone'")
    first.expect("is accepted", ACCEPTED)
    first.send("disconnects", "E0 00")
    first.expect_end("is disconnected")
    second = connect(shared_gateway)
    second.send("connects again without a will", "10 10 0004 'MQTT' 04 00 0000 0004 'wi61'")
    second.expect("has its session", SESSION_PRESENT)
    second.drop()
    third = connect(shared_gateway)
    third.send("connects once more, so that the drop has been seen", "10 10 0004 'MQTT' 04 00 0000 0004 'wi61'")
    third.expect("has its session", SESSION_PRESENT)
    watcher.send("publishes the end", "30 0A 0005 'w/non' 'end'")
    watcher.expect("gets no will before it", "30 0A 0005 'w/non' 'end'")
