"""A full dead-letter queue on the real gateway: what was acknowledged is kept, goes on by itself, and goes back."""

import json
from pathlib import Path

from mq_adapters import connect as connect_queue_manager
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from spark_audit.verify import Verdict, verify
from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.metrics_page import scrape_until
from tests.processes.forked import rfhbridge
from tests.trail_lines import trail_records

DEAD, HELD = "SYSTEM.DEAD.LETTER.QUEUE", "SYSTEM.RFHBRIDGE.HELD"
CONNECT, ACCEPTED = "10 10 0004 'MQTT' 04 02 0000 0004 '{}'", "20 02 00 00"
COUNT = 10


def _mqsc(gateway: Gateway, *commands: str) -> None:
    with connect_queue_manager(gateway.data) as queue_manager:
        for command in commands:
            assert queue_manager.mqsc(command).succeeded, command


def _bodies(gateway: Gateway, *queue_names: str) -> list[bytes]:
    with connect_queue_manager(gateway.data) as queue_manager:
        return [message.body[-2:] for name in queue_names for message in queue_manager.browse(name)]


def _redriven(gateway: Gateway) -> tuple[int, dict[str, object]]:
    ended = rfhbridge("queue", "redrive", "--data", gateway.data, "--json")
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.returncode, json.loads(ended.stdout)


def test_ten_acknowledged_messages_outlive_a_dead_letter_queue_for_five(
    new_gateway: StartGateway, connect: Connect, tmp_path: Path
) -> None:
    """An application's queue is full. The audit finds every balance right."""
    config = tmp_path / "rfhbridge.toml"
    config.write_text('[http]\nenabled = true\nlisten = "127.0.0.1:0"\n')
    gateway = new_gateway("--config", str(config)).start()
    full = "DEFINE QLOCAL(APP) MAXDEPTH(0)"
    _mqsc(gateway, full, "DEFINE SUB(S) TOPICSTR('a') DEST(APP)", f"ALTER QLOCAL({DEAD}) MAXDEPTH(5)")
    cause, other = connect(gateway, "the cause"), connect(gateway, "another publisher")
    for client, name in ((cause, "caus"), (other, "othe")):
        client.send("connects", CONNECT.format(name))
        client.expect("is accepted", ACCEPTED)
    cause.send("publishes ten at once", *(f"32 07 0001 'a' {number:04X} '{number:02d}'" for number in range(1, 11)))
    cause.expect("has ten PUBACKs", *(f"40 02 {number:04X}" for number in range(1, 11)))
    expected = [b"%02d" % number for number in range(1, COUNT + 1)]
    assert _bodies(gateway, DEAD, HELD) == expected
    page = scrape_until(gateway, lambda page: page.value("dead_letters_held") == 8)
    assert page.value("dead_letters") == 2, "one subscription has no more than half of a small queue"
    assert "2053" in gateway.wait_for_log("dead-letter queue took nothing")["error"]

    cause.send("publishes one more, and waits", "32 07 0001 'b' 000B '11'")
    other.send("publishes", "32 07 0001 'b' 0001 '12'")
    other.expect("feels nothing", "40 02 0001")
    gateway.kill_and_restart()
    assert _bodies(gateway, DEAD, HELD) == expected
    _mqsc(gateway, f"ALTER QLOCAL({DEAD}) MAXDEPTH(100)")
    scrape_until(gateway, lambda page: (page.value("dead_letters_held"), page.value("dead_letters")) == (0, COUNT))
    assert _bodies(gateway, DEAD) == expected

    exit_code, outcome = _redriven(gateway)
    assert (exit_code, outcome["put_back"], outcome["refused"]) == (1, 0, COUNT)
    assert "2053" in str(outcome["reasons"])
    assert _bodies(gateway, DEAD) == expected
    _mqsc(gateway, "ALTER QLOCAL(APP) MAXDEPTH(100)")
    exit_code, outcome = _redriven(gateway)
    assert (exit_code, outcome["put_back"], outcome["refused"]) == (0, COUNT, 0)
    assert (_bodies(gateway, "APP"), _bodies(gateway, DEAD, HELD)) == (expected, [])
    assert gateway.stop() == 0
    balance = rfhbridge("balance", "--data", gateway.data)
    assert balance.returncode == 0, balance.stdout + balance.stderr
    assert verify(gateway.data / "trail").verdict is Verdict.INTACT
    kinds = [record["kind"] for record in trail_records(gateway.data / "trail")]
    assert (kinds.count("dead_lettered"), kinds.count("redriven")) == (COUNT + 8, COUNT)
    ended = rfhbridge(
        "audit", "run", "--engine", "duckdb", "--data", gateway.data, "--out", tmp_path / "report", timeout=None
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_letters_that_the_broker_refuses_again_are_not_destroyed(new_gateway: StartGateway, connect: Connect) -> None:
    """The dead-letter queue is full of them; a redrive that said "put back: 5" had destroyed all five."""
    gateway = new_gateway().start()
    with connect_queue_manager(gateway.data) as queue_manager:
        for number in range(5):
            descriptor = MessageDescriptor(persistence=MQPER_PERSISTENT, put_appl_name="rfhbridge")
            queue_manager.put("SYSTEM.BROKER.DEFAULT.STREAM", Message(descriptor, b"%02d" % number))
    _mqsc(gateway, f"ALTER QLOCAL({DEAD}) MAXDEPTH(5)")
    exit_code, outcome = _redriven(gateway)
    assert (exit_code, outcome["put_back"], outcome["refused"]) == (1, 0, 5)
    assert "payload alone" in str(outcome["reasons"])
    assert _bodies(gateway, DEAD) == [b"%02d" % number for number in range(5)]
