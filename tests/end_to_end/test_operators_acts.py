"""What an operator does beside a running gateway and without one: refused, asked for, or told in the audit trail."""

import contextlib
import os
import pty
import pwd
import subprocess

import pytest

from mq_adapters import connect as to_queue_manager
from spark_audit.verify import Verdict, verify
from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.processes.forked import Forked, rfhbridge
from tests.trail_lines import trail_records

SUBSCRIBER = "RFHBRIDGE.SUBSCRIBER"
ACCEPTED = "20 02 00 00"


def operate(gateway: Gateway, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return rfhbridge(*arguments, "--data", gateway.data, input=stdin)


def leave_messages(gateway: Gateway, connect: Connect, count: int) -> None:
    """A session of pump, which is away, gets messages of QoS 1."""
    pump = connect(gateway, "pump")
    pump.send("connects", "10 10 0004 'MQTT' 04 00 0000 0004 'pump'")
    pump.expect("is accepted", ACCEPTED)
    pump.send("subscribes", "82 08 0001 0003 'a/b' 01")
    pump.expect("gets SUBACK", "90 03 0001 01")
    pump.send("leaves", "E0 00")
    pump.expect_end("is closed")
    sensor = connect(gateway, "sensor")
    sensor.send("connects", "10 12 0004 'MQTT' 04 02 0000 0006 'sensor'")
    sensor.expect("is accepted", ACCEPTED)
    for number in range(1, count + 1):
        sensor.send("publishes", f"32 08 0003 'a/b' {number:04X} 'A'")
        sensor.expect("gets PUBACK", f"40 02 {number:04X}")


def acts(gateway: Gateway) -> list[tuple[str, str, int]]:
    """Command, queue and number of each act in the trail, which must verify."""
    assert verify(gateway.data / "trail").verdict is Verdict.INTACT
    told = [record for record in trail_records(gateway.data / "trail") if record["kind"] == "operated"]
    assert {record["operator"] for record in told} <= {pwd.getpwuid(os.geteuid()).pw_name}
    return [(record["command"], record.get("queue", ""), record["messages"]) for record in told]


def test_what_waits_for_an_absent_session_is_not_deleted_and_subscribe_goes_on(gateway: Gateway, connect: Connect):
    leave_messages(gateway, connect, 2)
    with to_queue_manager(gateway.data) as operator:
        for command in (f"DELETE QLOCAL({SUBSCRIBER}) PURGE", f"CLEAR QLOCAL({SUBSCRIBER})"):
            assert operator.mqsc(command).lines[0].startswith("AMQ8148E")
        assert operator.depth(SUBSCRIBER) == 2
    other = connect(gateway, "other")
    other.send("connects", "10 11 0004 'MQTT' 04 02 0000 0005 'other'")
    other.expect("is accepted", ACCEPTED)
    other.send("subscribes", "82 08 0001 0003 'a/b' 01")
    other.expect("gets SUBACK", "90 03 0001 01")


def test_clear_and_get_of_the_gateways_own_queue_need_force_and_are_told(gateway: Gateway, connect: Connect):
    leave_messages(gateway, connect, 3)
    for arguments in (("queue", "clear", SUBSCRIBER), ("queue", "get", SUBSCRIBER)):
        refused = operate(gateway, *arguments)
        assert refused.returncode == 1
        assert "--force" in refused.stderr
    assert operate(gateway, "queue", "depth", SUBSCRIBER).stdout == "3\n"
    assert operate(gateway, "queue", "get", SUBSCRIBER, "--force", "--json").returncode == 0
    assert operate(gateway, "queue", "clear", SUBSCRIBER, "--force").stdout == "cleared 2\n"
    gateway.stop()
    assert acts(gateway) == [("queue get", SUBSCRIBER, 1), ("queue clear", SUBSCRIBER, 2)]


@pytest.mark.parametrize(("typed", "left"), [(b"n\n", 2), (b"\x04", 2), (b"y\n", 0)], ids=["no", "end", "yes"])
def test_clear_of_the_gateways_own_queue_asks_on_a_terminal(
    gateway: Gateway, connect: Connect, typed: bytes, left: int
):
    leave_messages(gateway, connect, 2)
    ours, theirs = pty.openpty()
    command = ("gateway.cli", "queue", "clear", SUBSCRIBER, "--data", str(gateway.data))
    process = Forked(*command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    shown = b""
    while not shown.endswith(b"[y/N]: "):
        shown += os.read(ours, 1000)
    os.write(ours, typed)
    with contextlib.suppress(OSError):  # the other side of the terminal is closed
        while data := os.read(ours, 1000):
            shown += data
    os.close(ours)
    assert process.wait(60) == (1 if left else 0)
    assert (b"rfhbridge: not done" in shown, b"fault" in shown) == (bool(left), False)
    assert operate(gateway, "queue", "depth", SUBSCRIBER).stdout == f"{left}\n"


def test_what_an_operator_does_without_a_gateway_is_in_the_trail_of_the_next(gateway: Gateway, connect: Connect):
    leave_messages(gateway, connect, 3)
    gateway.stop()
    assert operate(gateway, "queue", "clear", SUBSCRIBER).returncode == 1
    assert operate(gateway, "queue", "clear", SUBSCRIBER, "--force").stdout == "cleared 3\n"
    assert operate(gateway, "mqsc", stdin=f"DELETE QLOCAL({SUBSCRIBER}) PURGE\n").returncode == 1
    gateway.restart().stop()
    assert acts(gateway) == [("queue clear", SUBSCRIBER, 3)]


def test_a_gateway_without_a_trail_leaves_no_notes_of_acts(new_gateway: StartGateway, connect: Connect, tmp_path):
    config = tmp_path / "rfhbridge.toml"
    config.write_text("[audit]\nenabled = false\n")
    gateway = new_gateway("--config", str(config)).start()
    leave_messages(gateway, connect, 1)
    gateway.stop()
    assert operate(gateway, "queue", "clear", SUBSCRIBER, "--force").returncode == 0
    assert operate(gateway, "queue", "depth", "SYSTEM.RFHBRIDGE.AUDIT").stdout == "0\n"


def test_what_sessions_and_topics_lose_by_an_operator_is_told(gateway: Gateway, connect: Connect):
    leave_messages(gateway, connect, 2)
    assert operate(gateway, "sessions", "expire", "pump").returncode == 0
    with to_queue_manager(gateway.data) as operator:
        assert operator.mqsc("CLEAR TOPICSTR('a/b') CLRTYPE(RETAINED)").succeeded
    gateway.stop()
    assert acts(gateway) == [("PURGE CHANNEL", "", 2), ("CLEAR TOPICSTR", "", 0)]
