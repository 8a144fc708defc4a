"""Start, stop and accidents of the daemon: SIGTERM, kill -9, a second gateway, a full disk."""

import os
import resource
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from mq_adapters import connect as connect_queue_manager
from mq_adapters.queue_manager import QueueManager
from spark_audit.verify import Verdict, verify
from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.wire import WireClient
from tests.processes.forked import fresh
from tests.processes.nursery import children_of
from tests.trail_lines import trail_records

ACCEPTED = "20 02 00 00"
SESSION_PRESENT = "20 02 01 00"
#: The promise is one second on a machine with nothing else to do; tests may share theirs, and the exporter comes behind
#: everything else on it. Less than what the gateway waits for an exporter that hangs.
STOP_S = 1.0
BUSY_MACHINE_FACTOR = 25


@pytest.fixture
def gateway(new_gateway: StartGateway) -> Gateway:
    """A gateway that starts as an operator's does, and not as a fork of what is loaded already."""
    return new_gateway(begin=fresh).start()


def _connected(connect: Connect, gateway: Gateway, name: str, flags: str = "02", answer: str = ACCEPTED) -> WireClient:
    client = connect(gateway, name)
    client.send("connects", f"10 10 0004 'MQTT' 04 {flags} 0000 0004 '{name}'")
    client.expect("is accepted", answer)
    return client


def _endings_of_the_trail(gateway: Gateway) -> set[str]:
    """Of the segments; there are two where an hour begins meanwhile."""
    return {path.suffix for path in (gateway.data / "trail").iterdir() if path.is_file()}


def _records(gateway: Gateway) -> list[dict[str, object]]:
    return trail_records(gateway.data / "trail")


def test_sigterm_stops_an_idle_gateway_at_once_and_closes_the_trail(gateway: Gateway, connect: Connect) -> None:
    client = _connected(connect, gateway, "stop")
    client.send("publishes", "32 08 0003 'a/b' 0001 'A'")
    client.expect("gets PUBACK", "40 02 0001")
    _until_trail_exists(gateway)
    began = time.monotonic()
    gateway.signal(signal.SIGTERM)
    assert gateway.wait() == 0
    assert time.monotonic() - began < STOP_S * BUSY_MACHINE_FACTOR
    client.expect_end("is disconnected")
    assert _endings_of_the_trail(gateway) == {".jsonl"}
    assert verify(gateway.data / "trail").verdict is Verdict.INTACT
    kinds = [record["kind"] for record in _records(gateway)]
    assert kinds[0] == "started"
    assert {"accepted", "put", "confirmed", "session"} <= set(kinds)
    assert not (gateway.data / "queue_manager.socket").exists()


def _until_trail_exists(gateway: Gateway) -> None:
    """Waits until the exporter is up: from then on it takes part in the stop."""
    deadline = time.monotonic() + 30
    with connect_queue_manager(gateway.data) as queue_manager:
        while not list((gateway.data / "trail").glob("*.open")):
            assert time.monotonic() < deadline, gateway.log
            queue_manager.depth("SYSTEM.RFHBRIDGE.AUDIT")


def test_further_sigterms_change_nothing(gateway: Gateway) -> None:
    """Until the process has ended, one after another."""
    pause = threading.Event()
    while gateway.is_running:
        gateway.signal(signal.SIGTERM)
        pause.wait(0.001)
    assert gateway.wait() == 0
    assert _endings_of_the_trail(gateway) == {".jsonl"}
    assert len(gateway.logged("gateway stopped")) == 1
    assert "Traceback" not in gateway.log


def test_a_gateway_that_is_stopped_as_soon_as_it_stands_closes_its_trail(gateway: Gateway) -> None:
    """The exporter may not have come up yet; its work is done all the same."""
    assert gateway.stop() == 0
    assert _endings_of_the_trail(gateway) == {".jsonl"}
    assert [record["kind"] for record in _records(gateway) if record["kind"] != "stock"] == [
        "started",
        *("file_read",) * 3,
    ]


def test_sigint_stops_like_sigterm(gateway: Gateway) -> None:
    gateway.signal(signal.SIGINT)
    assert gateway.stop() == 0
    assert _endings_of_the_trail(gateway) == {".jsonl"}


def test_sigterm_drains_what_was_sent_before_it(gateway: Gateway, connect: Connect) -> None:
    """What had been acknowledged when the gateway stopped is there when it is back."""
    watcher = _connected(connect, gateway, "hear", "00")
    watcher.send("subscribes", "82 08 0001 0003 'a/b' 01")
    watcher.expect("is granted QoS 1", "90 03 0001 01")
    watcher.drop()
    client = _connected(connect, gateway, "tell")
    client.send("publishes a thousand", *(f"32 08 0003 'a/b' {number:04X} 'A'" for number in range(1, 1_001)))
    client.expect("gets the first PUBACK", "40 02 0001")
    gateway.signal(signal.SIGTERM)
    acknowledged = 1
    while client.receive_packet():
        acknowledged += 1
    assert gateway.wait() == 0
    gateway.start()
    with connect_queue_manager(gateway.data) as queue_manager:
        assert queue_manager.depth("RFHBRIDGE.SUBSCRIBER") >= acknowledged


def test_nothing_stale_prevents_a_start_after_kill_9(gateway: Gateway, connect: Connect) -> None:
    for _ in range(3):
        client = _connected(connect, gateway, "work")
        client.send("publishes", "32 08 0003 'a/b' 0001 'A'")
        client.expect("gets PUBACK", "40 02 0001")
        with connect_queue_manager(gateway.data) as application:
            application.depth("SYSTEM.DEAD.LETTER.QUEUE")
            gateway.kill()
            assert (gateway.data / "queue_manager.socket").exists()
        gateway.start()
    client = _connected(connect, gateway, "back")
    client.send("pings", "C0 00")
    client.expect("is answered", "D0 00")
    assert gateway.stop() == 0
    assert _endings_of_the_trail(gateway) == {".jsonl"}
    assert verify(gateway.data / "trail").verdict is Verdict.INTACT
    assert [record["kind"] for record in _records(gateway)].count("started") == 4


def test_an_exporter_that_was_killed_leaves_no_gap_in_the_trail(gateway: Gateway, connect: Connect) -> None:
    _until_trail_exists(gateway)
    (exporter,) = children_of(gateway.process_identifier)
    os.kill(exporter, signal.SIGKILL)
    gateway.wait_for_log("exporter ended")
    client = _connected(connect, gateway, "work")
    client.send("publishes", "32 08 0003 'a/b' 0001 'A'")
    client.expect("gets PUBACK", "40 02 0001")
    assert gateway.stop() == 0
    assert _endings_of_the_trail(gateway) == {".jsonl"}
    assert verify(gateway.data / "trail").verdict is Verdict.INTACT
    assert [record["kind"] for record in _records(gateway)].count("accepted") == 1


def test_what_was_acknowledged_without_a_subscriber_is_in_the_trail_after_a_kill(
    gateway: Gateway, connect: Connect
) -> None:
    """Nobody gets the message, so its record is all that there is of it."""
    client = _connected(connect, gateway, "work")
    for number in range(1, 51):
        client.send("publishes", f"32 08 0003 'a/b' {number:04X} 'A'")
        client.expect("gets PUBACK", f"40 02 {number:04X}")
    gateway.kill_and_restart()
    assert gateway.stop() == 0
    assert verify(gateway.data / "trail").verdict is Verdict.INTACT
    assert [record["kind"] for record in _records(gateway)].count("accepted") == 50


def test_a_second_gateway_on_the_same_data_folder_is_refused(
    gateway: Gateway, new_gateway: StartGateway, connect: Connect
) -> None:
    second = new_gateway(data=gateway.data).launch()
    client = _connected(connect, gateway, "main")
    assert second.wait() == 1
    assert "2042 MQRC_OBJECT_IN_USE" in second.log
    assert "another process owns this data folder" in second.log
    assert "Traceback" not in second.log
    client.send("pings", "C0 00")
    client.expect("is still served", "D0 00")


def test_a_gateway_that_waits_for_the_data_folder_stops_when_told_to(
    gateway: Gateway, new_gateway: StartGateway
) -> None:
    second = new_gateway(data=gateway.data).launch()
    second.wait_for_log("store found in use")
    started_s = time.monotonic()
    second.signal(signal.SIGTERM)
    assert second.wait() == 0
    assert time.monotonic() - started_s < STOP_S * BUSY_MACHINE_FACTOR
    assert gateway.is_running


def test_an_address_in_use_is_refused_with_one_clear_line(
    gateway: Gateway, new_gateway: StartGateway, tmp_path: Path
) -> None:
    second = new_gateway(data=tmp_path / "other")
    second.port = gateway.port
    assert second.launch().wait() == 1
    assert "address already in use" in second.log.lower()
    assert "Traceback" not in second.log


def test_a_long_data_path_works(new_gateway: StartGateway, tmp_path: Path) -> None:
    """A Unix socket's own address has room for 107 bytes."""
    gateway = new_gateway(data=tmp_path / ("long" * 30) / "data").start()
    with connect_queue_manager(gateway.data) as queue_manager:
        assert queue_manager.name == "RFHBRIDGE"
    assert gateway.stop() == 0


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="prlimit(2) is Linux's")
def test_a_full_disk_stops_the_gateway_and_loses_nothing_acknowledged(gateway: Gateway, connect: Connect) -> None:
    """RLIMIT_FSIZE makes every write beyond a file size fail, as a full disk does."""
    watcher = _connected(connect, gateway, "hear", "00")
    watcher.send("subscribes", "82 08 0001 0003 'a/b' 01")
    watcher.expect("is granted QoS 1", "90 03 0001 01")
    watcher.drop()
    client = _connected(connect, gateway, "tell", "00")
    wal = gateway.data / "queue_manager.sqlite-wal"
    limit = wal.stat().st_size + 1_000_000
    resource.prlimit(gateway.process_identifier, resource.RLIMIT_FSIZE, (limit, limit))
    acknowledged = 0
    payload = bytes(10_000)
    for number in range(1, 2_001):
        try:
            client.send("publishes", f"32 97 4E 0003 'a/b' {number:04X}", payload)
        except AssertionError:
            break
        if client.receive_packet() != b"\x40\x02" + number.to_bytes(2, "big"):
            break
        acknowledged += 1
    began = time.monotonic()
    assert gateway.wait() == 1
    assert time.monotonic() - began < STOP_S * BUSY_MACHINE_FACTOR
    assert 0 < acknowledged < 2_000
    assert "disk" in gateway.wait_for_log("store failed")["error"]
    assert "Traceback" not in gateway.log

    gateway.start()
    with connect_queue_manager(gateway.data) as queue_manager:
        waiting = _messages(queue_manager)
    assert acknowledged <= waiting <= acknowledged + 1
    client = _connected(connect, gateway, "tell", "00", SESSION_PRESENT)
    client.send("publishes again", "32 08 0003 'a/b' 0001 'A'")
    client.expect("gets PUBACK", "40 02 0001")
    assert gateway.stop() == 0
    verified = verify(gateway.data / "trail")
    assert verified.verdict is Verdict.INTACT, verified


def _messages(queue_manager: QueueManager) -> int:
    return sum(1 for _ in queue_manager.browse("RFHBRIDGE.SUBSCRIBER"))


def test_a_connection_that_came_before_the_stop_is_not_left_hanging(gateway: Gateway) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port), 30) as silent:
        assert gateway.stop() == 0
        silent.settimeout(30)
        assert silent.recv(1) == b""
