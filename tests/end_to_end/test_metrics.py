"""GET /metrics of a real gateway: what it counts, in the format of Prometheus, without names of clients and topics."""

import urllib.request
from pathlib import Path

import pytest

from gateway.limits.refusals import REASONS
from mq_adapters import connect as to_queue_manager
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError
from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.metrics_page import scrape, scrape_until

HTTP = '[http]\nenabled = true\nlisten = "127.0.0.1:0"\n'


@pytest.fixture
def measured(new_gateway: StartGateway, tmp_path: Path) -> Gateway:
    """A gateway with metrics, for all versions of MQTT."""
    configuration = tmp_path / "rfhbridge.toml"
    configuration.write_text(HTTP + '[mqtt]\nversions = ["3.1", "3.1.1", "5"]\n')
    return new_gateway("--config", str(configuration)).start()


def test_what_passes_is_counted(measured: Gateway, connect: Connect) -> None:
    away = connect(measured, "the one that goes away")
    away.send("connects to stay", "10 12 0004 'MQTT' 04 00 0000 0006 'secret'")
    away.expect("is accepted", "20 02 00 00")
    away.send("subscribes", "82 0E 0001 0009 'private/#' 01")
    away.expect("is granted QoS 1", "90 03 0001 01")
    away.send("leaves", "E0 00")
    away.expect_end("has left")
    teller = connect(measured, "the publisher")
    teller.send("connects with MQTT 5", "10 11 0004 'MQTT' 05 02 0000 00 0004 'tell'")
    connack = teller.receive_packet()
    assert (connack[0], connack[3]) == (0x20, 0)
    teller.send("publishes at QoS 0", "30 0D 0009 'private/x' 00 'A'")
    for number in (1, 2, 3):
        teller.send("publishes at QoS 1", f"32 0F 0009 'private/x' {number:04X} 00 'B'")
        teller.expect("is answered", f"40 02 {number:04X}")
    teller.send("publishes at QoS 2, retained", "35 0F 0009 'private/x' 0009 00 'C'", "62 02 0009")
    teller.expect("is answered", "50 02 0009 70 02 0009")

    page = scrape_until(measured, lambda page: page.value("sessions", state="offline") == 1)
    assert page.value("sessions", state="connected") == 1
    assert page.value("connections", listener="default", version="5") == 1
    assert page.value("connections", listener="default", version="3.1.1") == 0
    assert page.value("connections_made_total", listener="default") == 2
    assert [page.value("publishes_received_total", qos=qos) for qos in "012"] == [1, 3, 1]
    assert page.value("packets_received_total") == 10
    assert page.value("packets_sent_total") == 8
    assert page.value("messages_waiting") == 5
    assert page.value("queue_depth", queue="RFHBRIDGE.SUBSCRIBER") == 5
    assert page.value("queue_bytes", queue="RFHBRIDGE.SUBSCRIBER") > 5 * 36
    assert page.value("retained_messages") == 1
    assert page.value("subscriptions") == 1
    assert (page.value("held_bytes"), page.value("unsent_bytes"), page.value("unfinished_bytes")) == (0, 0, 0)
    assert page.value("commit_seconds_count") >= 6
    assert page.value("commit_seconds_bucket", le="+Inf") == page.value("commit_seconds_count")
    assert 0 < page.value("commit_seconds_sum") < 60
    received = 20 + 16 + 2 + 19 + 15 + 3 * 17 + 17 + 4
    assert page.value("received_bytes_total", listener="default") == received
    assert page.value("sent_bytes_total", listener="default") > 8
    assert ("process_resident_memory_bytes", ()) in page.values


def test_what_is_delivered_is_counted_until_it_is_acknowledged(measured: Gateway, connect: Connect) -> None:
    client = connect(measured)
    client.send("connects", "10 10 0004 'MQTT' 04 02 0000 0004 'self'", "82 06 0001 0001 'a' 01")
    client.expect("is accepted and granted QoS 1", "20 02 00 00 90 03 0001 01")
    client.send("publishes to itself", "32 06 0001 'a' 0001 'x'")
    client.expect_in_any_order("gets both", "40 02 0001", "32 06 0001 'a' 0001 'x'")
    page = scrape(measured)
    assert [page.value("publishes_sent_total", qos=qos) for qos in "012"] == [0, 1, 0]
    assert (page.value("messages_in_flight"), page.value("messages_waiting")) == (1, 1)
    client.send("acknowledges", "40 02 0001", "C0 00")
    client.expect("is pinged", "D0 00")
    page = scrape_until(measured, lambda page: page.value("messages_waiting") == 0)
    assert page.value("messages_in_flight") == 0


def test_what_waits_in_memory_is_weighed(measured: Gateway, connect: Connect) -> None:
    """What limits of bytes are about: half a packet, and a message between PUBLISH and PUBREL."""
    client = connect(measured)
    client.send("connects", "10 10 0004 'MQTT' 04 02 0000 0004 'self'", "82 0A 0001 0001 'a' 01 0001 'b' 00")
    client.expect("is accepted and granted both", "20 02 00 00 90 04 0001 01 00")
    client.send("publishes at QoS 2, and the half of a packet", "34 07 0001 'a' 0001 'xy'", "32 10 0001 'a' 0002")
    client.expect("is answered", "50 02 0001")
    page = scrape_until(measured, lambda page: page.value("unfinished_bytes") > 0)
    assert page.value("unfinished_bytes") == 7
    assert page.value("subscriptions") == 2
    assert page.value("held_bytes") == 9


def test_every_limit_stands_there_before_it_was_reached(measured: Gateway) -> None:
    page = scrape(measured)
    for limit, reason_codes in REASONS.items():
        for reason_code in reason_codes:
            line = ("rfhbridge_refusals_total", (("limit", limit.label), ("reason", reason_code.name.lower())))
            assert page.values[line] == 0
    assert all(page.documented.values())


def test_no_client_and_no_topic_is_named(measured: Gateway, connect: Connect) -> None:
    client = connect(measured)
    client.send("connects", "10 12 0004 'MQTT' 04 00 0000 0006 'secret'", "82 0E 0001 0009 'private/x' 01")
    client.expect("is accepted and granted", "20 02 00 00 90 03 0001 01")
    client.send("publishes", "33 0E 0009 'private/x' 0002 'x'")
    client.receive_packet()
    text = str(scrape(measured).values)
    assert "secret" not in text
    assert "private" not in text


def test_openmetrics_is_given_to_whom_asks_for_it(measured: Gateway) -> None:
    port = measured.logged("http started")[-1]["port"]
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
    )
    with urllib.request.urlopen(asked, timeout=40) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        assert answer.read().endswith(b"# EOF\n")


def test_a_stream_that_an_operator_closes_holds_publishers_back_until_it_is_open(
    measured: Gateway, connect: Connect
) -> None:
    stream = "SYSTEM.BROKER.DEFAULT.STREAM"
    sensor = connect(measured, "the sensor")
    sensor.send("connects", "10 11 0004 'MQTT' 04 02 0000 0005 'pause'")
    sensor.expect("is accepted", "20 02 00 00")
    with to_queue_manager(measured.data) as operator:
        assert operator.mqsc(f"ALTER QLOCAL({stream}) PUT(DISABLED)").succeeded
        sensor.send("publishes at QoS 0 and 1", "30 06 0003 'a/b' 'A'", "32 08 0003 'a/b' 0001 'B'")
        page = scrape_until(measured, lambda page: page.value("publishers_held_back") == 1)
        assert page.value("queue_paused", queue=stream) == 1
        assert page.value("not_carried_on_total", reason="QoS 0, the queue is closed by PUT(DISABLED)") == 1
        with pytest.raises(QueueManagerError, match="2051"):
            operator.put(stream, Message(MessageDescriptor(), b"x"))
        assert not sensor.has_something
        assert operator.mqsc(f"ALTER QLOCAL({stream}) PUT(ENABLED)").succeeded
    sensor.expect("is answered", "40 02 0001")
    page = scrape(measured)
    assert (page.value("queue_paused", queue=stream), page.value("publishers_held_back")) == (0, 0)
