"""The trail of a running gateway: signed, copied, keyed, whole after kill -9 of its exporter, and the disk's mark."""

import os
import signal
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import orjson
import pytest

from mq_adapters import connect as connect_queue_manager
from mq_adapters.message import Message, MessageDescriptor
from spark_audit.personal import PersonalKey, opened_record
from spark_audit.trail.digest import DigestKind, parse_digest
from spark_audit.verify import Anchor, Verdict, verify
from tests.end_to_end.conftest import Connect, StartGateway, connected
from tests.end_to_end.gateway_process import PATIENCE_S, Gateway
from tests.end_to_end.wire import WireClient
from tests.processes.nursery import children_of
from tests.trail_lines import closed_segments, trail_lines, trail_records

ACCEPTED = "20 02 00 00"
#: More than any disk of a test machine has free.
EVERY_BYTE = 2**62


@pytest.fixture
def configured(new_gateway: StartGateway, tmp_path: Path):
    """Makes gateways with a configuration file."""

    def make(text: str) -> Gateway:
        path = tmp_path / "rfhbridge.toml"
        path.write_text(text)
        return new_gateway("--config", str(path))

    return make


def _publish(client: WireClient, numbers: range) -> None:
    for number in numbers:
        client.send("publishes", f"32 08 0003 'a/b' {number:04X} 'A'")
        client.expect("gets PUBACK", f"40 02 {number:04X}")


def _exporter(gateway: Gateway) -> int:
    deadline_s = time.monotonic() + PATIENCE_S
    while not (exporters := children_of(gateway.process_identifier)):  # one that was killed is started again later
        assert time.monotonic() < deadline_s, gateway.log
        time.sleep(0.02)
    (exporter,) = exporters
    return exporter


def _accepted(trail: Path) -> list[int]:
    """The exchanges of the records of accepted PUBLISHes."""
    return [record["exchange"] for record in trail_records(trail) if record["kind"] == "accepted"]


def _until_it_exports(gateway: Gateway) -> None:
    waiting = threading.Event()
    for _ in range(int(PATIENCE_S / 0.02)):
        if list((gateway.data / "trail").glob("*.open")):
            return
        waiting.wait(0.02)
    pytest.fail(f"no segment was begun:\n{gateway.log}")


def test_after_a_stop_the_second_place_holds_the_whole_trail_and_anchors_it(
    configured, connect: Connect, tmp_path: Path
) -> None:
    second, key = tmp_path / "second", tmp_path / "keys" / "sign.pem"
    second.mkdir()
    gateway = configured(f'[audit]\ncopy_folder = "{second}"\nsigning_key = "{key}"\n').start()
    _publish(connected(connect, gateway, "work"), range(1, 21))
    assert gateway.stop() == 0
    trail = gateway.data / "trail"
    files = {path.relative_to(trail): path.read_bytes() for path in trail.rglob("*") if path.is_file()}
    assert {path.relative_to(second): path.read_bytes() for path in second.rglob("*") if path.is_file()} == files
    assert {path.suffix for path in files} == {".digest", ".jsonl"}
    anchored = verify(trail, Anchor.read(public_key_file=key.with_suffix(".pub"), digests=second))
    assert anchored.verdict is Verdict.ANCHORED, anchored
    assert not (gateway.data / "trail-key.pem").exists()


def test_a_second_place_that_is_missing_is_told_and_holds_up_nobody(
    configured, connect: Connect, tmp_path: Path
) -> None:
    gateway = configured(f'[audit]\ncopy_folder = "{tmp_path}/mount"\nsegment_bytes = 1\n').start()
    _publish(connected(connect, gateway, "work"), range(1, 4))
    gateway.wait_for_log("trail task failed", task="copying the trail", reason="there is no such folder")
    assert gateway.stop() == 0
    assert len(gateway.logged("trail task failed")) == 1
    assert verify(gateway.data / "trail").verdict is Verdict.INTACT
    (tmp_path / "mount").mkdir()
    assert gateway.start().stop() == 0
    assert verify(tmp_path / "mount").records == verify(gateway.data / "trail").records


def test_with_keyed_personal_data_the_trail_names_nobody(configured, connect: Connect) -> None:
    gateway = configured('[audit]\npersonal_data = "keyed"\n').start()
    client = connected(connect, gateway, "Anna")
    client.send("publishes", "32 0D 0008 'ward/bed' 0001 '7'")
    client.expect("gets PUBACK", "40 02 0001")
    assert gateway.stop() == 0
    trail = gateway.data / "trail"
    lines = trail_lines(trail)
    assert not [line for line in lines if b"Anna" in line or b"ward" in line]
    key = PersonalKey.read(gateway.data / "trail-personal.key")
    (put,) = (record for record in map(orjson.loads, lines) if record["kind"] == "put")
    assert (put["client"], put["topic"]) == (key.name("Anna"), key.name("ward/bed"))
    assert opened_record(put, key)["input"] == "Mg0ACHdhcmQvYmVkAAE="
    (gateway.data / "trail-personal.key").unlink()
    assert verify(trail).verdict is Verdict.INTACT
    assert gateway.launch().wait() != 0
    assert "trail-personal.key is missing" in gateway.log


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_an_exporter_that_is_killed_while_it_rolls_writes_each_record_once(
    configured, connect: Connect, proof_scale: str
) -> None:
    gateway = configured("[audit]\nsegment_bytes = 3000\n").start()
    kills, count = (6, 2_000) if proof_scale == "full" else (1, 300)
    client = connected(connect, gateway, "work")
    for kill in range(kills):
        _until_it_exports(gateway)
        exporter = _exporter(gateway)
        thread = threading.Timer(0.05 + 0.03 * kill, os.kill, (exporter, signal.SIGKILL))
        thread.start()
        _publish(client, range(1, count + 1))
        thread.join()
        gateway.wait_for_log("exporter ended", count=kill + 1)
    assert gateway.stop() == 0
    trail = gateway.data / "trail"
    while len(accepted := _accepted(trail)) < kills * count:  # a stop waits some seconds, and the next exporter goes on
        assert gateway.start().stop() == 0
    verification = verify(trail)
    assert verification.verdict is Verdict.INTACT, verification
    assert accepted == list(range(accepted[0], accepted[0] + kills * count))
    digests = [parse_digest(path.read_bytes()) for path in (trail / "digests").iterdir()]
    sworn = sorted(digest.segment for digest in digests if digest.kind == DigestKind.SEGMENT)
    assert sworn == closed_segments(trail)
    assert len(sworn) > 10


def test_below_the_mark_publishers_wait_qos_0_is_dropped_and_the_gateway_is_not_ready(
    configured, connect: Connect
) -> None:
    gateway = configured(
        f'[audit]\nlow_space_bytes = {EVERY_BYTE}\n[http]\nenabled = true\nlisten = "127.0.0.1:0"\n'
    ).start()
    gateway.wait_for_log("disk space ran short")
    held, dropped = connected(connect, gateway, "held"), connected(connect, gateway, "drop")
    dropped.send("subscribes", "82 08 0001 0003 'a/b' 00")
    dropped.expect("is granted", "90 03 0001 00")
    held.send("publishes", "32 08 0003 'a/b' 0001 'A'", "C0 00")
    dropped.send("publishes and pings", "30 06 0003 'a/b' 'B'", "C0 00")
    dropped.expect("gets nothing but PINGRESP", "D0 00")
    port = gateway.logged("http started")[0]["port"]
    with pytest.raises(urllib.error.HTTPError) as answer:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=PATIENCE_S)
    assert answer.value.code == 503
    answer.value.close()
    assert gateway.stop() == 0
    held.expect_end("is closed without PUBACK")
    assert len(gateway.logged("disk space ran short")) == 1


def _records(gateway: Gateway, kind: str) -> list[dict[str, object]]:
    return [record for record in trail_records(gateway.data / "trail") if record["kind"] == kind]


def test_stock_is_taken_at_start_and_stop_and_what_ended_with_a_run_is_told(configured, connect: Connect) -> None:
    gateway = configured("").start()
    client = connected(connect, gateway, "work")
    with connect_queue_manager(gateway.data) as application:
        application.define("APP")
        for persistence in (0, 1, 0):
            application.put("APP", Message(MessageDescriptor(persistence=persistence), b"x"))
        _publish(client, range(1, 2))
    assert gateway.stop() == 0
    gateway.start()
    assert gateway.stop() == 0
    stocks = [(record["event"], record.get("queue"), record["messages"]) for record in _records(gateway, "stock")]
    on_app = [messages for event, queue, messages in stocks if (event, queue) == ("queue", "APP")]
    assert on_app == [3, 1, 1]
    assert [event for event, _, _ in stocks].count("queues") == 4
    dropped = [record for record in _records(gateway, "dropped") if record["queue"] == "APP"]
    assert [record["messages"] for record in dropped] == [2]
    assert verify(gateway.data / "trail").verdict is Verdict.INTACT
