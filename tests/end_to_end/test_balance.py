"""The balance of a real gateway: beside it while sensors publish, over kills, in its metrics and by its command."""

import json
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

from mq_adapters import connect as connect_queue_manager
from mq_adapters.message import Message, MessageDescriptor
from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.metrics_page import Page, scrape, scrape_until
from tests.end_to_end.resending_clients import Publisher
from tests.processes.forked import rfhbridge

PATIENCE_S = 120.0
SUBSCRIBER_QUEUE = "RFHBRIDGE.SUBSCRIBER"


def measured(new_gateway: StartGateway, folder: Path) -> Gateway:
    """A running gateway with metrics."""
    configuration = folder / "rfhbridge.toml"
    configuration.write_text('[http]\nenabled = true\nlisten = "127.0.0.1:0"\n', encoding="utf-8")
    return new_gateway("--config", str(configuration)).start()


def balance(gateway: Gateway) -> tuple[int, dict[str, Any]]:
    """Exit code and what `rfhbridge balance --json` says."""
    ended = rfhbridge("balance", "--json", "--data", gateway.data)
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout)


def queue_in(told: dict[str, Any], name: str) -> dict[str, Any]:
    return next(queue for queue in told["queues"] if queue["name"] == name)


def differences(page: Page) -> dict[tuple[str, ...], float]:
    return {
        tuple(value for _, value in labels): value
        for (name, labels), value in page.values.items()
        if name == "rfhbridge_balance_difference"
    }


@pytest.mark.timeout(600)
def test_it_adds_up_at_every_moment_while_sensors_publish_and_over_kills(
    new_gateway: StartGateway, connect: Connect, tmp_path: Path
) -> None:
    gateway = measured(new_gateway, tmp_path)
    subscriber = connect(gateway, "the subscriber, which stays away")
    subscriber.send("connects", "10 0E 0004 'MQTT' 04 00 0000 0002 's1'")
    subscriber.send("subscribes", "82 08 0001 0003 'b/#' 02")
    subscriber.expect("both are answered", "20 02 0000", "90 03 0001 02")
    subscriber.drop()
    publishers = [Publisher(gateway.port, b"balance-%d" % number, b"b/f", 400) for number in range(3)]
    for publisher in publishers:
        publisher.start()
    progress = threading.Event()
    for round_number in range(1, 4):
        while sum(len(each.acknowledged[qos]) for each in publishers for qos in (1, 2)) < 250 * round_number:
            assert any(each.is_alive() for each in publishers), [each.error for each in publishers]
            progress.wait(0.005)
        code, told = balance(gateway)
        assert (code, told["adds_up"]) == (0, True), told
        assert set(differences(scrape(gateway)).values()) == {0.0}
        gateway.kill()
        assert balance(gateway)[0] == 0
        gateway.start()
    for publisher in publishers:
        publisher.join(PATIENCE_S)
        assert publisher.is_done(), (publisher.error, gateway.log)
    acknowledged = sum(len(each.acknowledged[qos]) for each in publishers for qos in (1, 2))
    assert gateway.stop() == 0, gateway.log
    code, told = balance(gateway)
    assert code == 0
    waiting = queue_in(told, SUBSCRIBER_QUEUE)["persistent"]
    assert waiting["put"] == waiting["waiting"] == told["publications"]["published"] >= acknowledged
    assert told["publications"]["copies"] == told["publications"]["published"]


def test_counters_go_on_after_a_restart_and_tell_what_ended_with_a_session(
    new_gateway: StartGateway, connect: Connect, tmp_path: Path
) -> None:
    gateway = measured(new_gateway, tmp_path)
    subscriber = connect(gateway, "a subscriber that stays away")
    subscriber.send("connects", "10 0E 0004 'MQTT' 04 00 0000 0002 's1'", "82 08 0001 0003 'e/#' 01")
    subscriber.expect("is answered", "20 02 0000", "90 03 0001 01")
    subscriber.drop()
    publisher = connect(gateway, "a publisher")
    publisher.send("connects", "10 0E 0004 'MQTT' 04 02 0000 0002 'p1'")
    publisher.expect("is accepted", "20 02 0000")
    for number in range(1, 4):
        publisher.send("publishes", f"32 08 0003 'e/f' 000{number} 41")
        publisher.expect("PUBACK", f"40 02 000{number}")
    publisher.send(
        "publishes at QoS 2, twice with one identifier", "34 08 0003 'e/f' 0007 41", "3C 08 0003 'e/f' 0007 41"
    )
    publisher.expect("PUBREC for both", "50 02 0007", "50 02 0007")
    gateway.kill()
    gateway.start()
    page = scrape(gateway)
    assert page.value("publications_total", what="received") == 5
    assert page.value("publications_total", what="repeats") == 1
    assert page.value("queue_messages_total", queue=SUBSCRIBER_QUEUE, what="put") == 3
    assert page.value("publications_total", what="dropped_by_rule") == 1  # held, and its clean session has ended
    again = connect(gateway, "the same with a clean session")
    again.send("connects", "10 0E 0004 'MQTT' 04 02 0000 0002 's1'")
    again.expect("is accepted", "20 02 0000")
    page = scrape_until(
        gateway, lambda page: page.value("queue_messages_total", queue=SUBSCRIBER_QUEUE, what="session_ended") == 3
    )
    assert set(differences(page).values()) == {0.0}
    code, told = balance(gateway)
    assert (code, queue_in(told, SUBSCRIBER_QUEUE)["persistent"]["session_ended"]) == (0, 3)


def test_a_message_that_vanished_from_a_running_gateway_is_missed(new_gateway: StartGateway, tmp_path: Path) -> None:
    gateway = measured(new_gateway, tmp_path)
    with connect_queue_manager(gateway.data) as application:
        application.define("ORDERS")
        for body in (b"first", b"second"):
            application.put("ORDERS", Message(MessageDescriptor(), body))
    assert balance(gateway)[0] == 0
    connection = apsw.Connection(str(gateway.data / "queue_manager.sqlite"))
    connection.set_busy_timeout(10_000)
    connection.execute("DELETE FROM message WHERE body = ?", (b"first",))
    connection.close()
    code, told = balance(gateway)
    assert (code, told["adds_up"]) == (1, False)
    assert (queue_in(told, "ORDERS")["persistent"]["difference"], told["in_all"]["persistent"]["difference"]) == (1, 1)
    gateway.kill()
    gateway.start()
    found = differences(scrape(gateway))
    assert (found["messages", "ORDERS"], found["messages", ""]) == (1, 1)
