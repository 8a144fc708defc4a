"""A gateway on a small disk: a backlog fills it to its mark and is drained, the disk is never full, all go on."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mq_adapters.embedded.store.store import FILE_NAME
from spark_audit.verify import Verdict, verify
from tests.end_to_end.conftest import StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.resending_clients import Connection
from tests.mounts import Mounts

MIB = 1024 * 1024
DISK_BYTES, MARK_BYTES = 96 * MIB, 24 * MIB
#: A message has some 3 KB of records: with short bodies the trail, which takes the disk for good, fills most of it.
SHORT, LONG = bytes(400), bytes(4_000)
#: Sent in one write; the client's identifiers are used again behind their PUBACKs.
AT_ONCE = 200
#: What is acknowledged may wait for so long where nothing is held back.
HELD_S = 5.0


class FreeBytes(threading.Thread):
    """Watches the disk: the least that was free."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self._folder = folder
        self._end = threading.Event()
        self._least = DISK_BYTES

    def run(self) -> None:
        while not self._end.wait(0.005):
            status = os.statvfs(self._folder)
            self._least = min(self._least, status.f_bavail * status.f_frsize)

    def stop(self) -> int:
        self._end.set()
        self.join()
        return self._least


@pytest.fixture
def gateway(new_gateway: StartGateway, mounts: Mounts, tmp_path: Path) -> Gateway:
    mounts.mount(tmp_path / "disk", size_bytes=DISK_BYTES)
    path = tmp_path / "rfhbridge.toml"
    path.write_text(f"[audit]\nlow_space_bytes = {MARK_BYTES}\n", encoding="utf-8")
    return new_gateway("--config", str(path), data=tmp_path / "disk" / "data").start()


@pytest.fixture
def free(gateway: Gateway) -> Iterator[FreeBytes]:
    watching = FreeBytes(gateway.data)
    watching.start()
    yield watching
    watching.stop()


def _publish(identifier: int, payload: bytes) -> bytes:
    body = b"\x00\x03a/b" + identifier.to_bytes(2, "big") + payload
    return bytes((0x32, len(body) & 127 | 128, len(body) >> 7)) + body


def _fill(publisher: Connection, payload: bytes) -> tuple[int, int]:
    """Publishes until nothing is acknowledged for a while: how many were, and how many of the last write were not."""
    acknowledged, waiting = 0, 0
    publisher.socket.settimeout(HELD_S)
    try:
        while True:
            publisher.send(b"".join(_publish(identifier, payload) for identifier in range(1, AT_ONCE + 1)))
            waiting = AT_ONCE
            while waiting:
                answers = len(publisher.receive())
                waiting -= answers
                acknowledged += answers
    except TimeoutError:
        return acknowledged, waiting


def _drain(subscriber: Connection, count: int) -> None:
    """Takes and acknowledges as many PUBLISHes of QoS 1."""
    packets, taken = subscriber.behind_connack, 0
    while True:
        identifiers = [packet[8:10] for packet in packets if packet[0] & 0xF0 == 0x30]  # behind 2 bytes of length, a/b
        subscriber.send(b"".join(b"\x40\x02" + identifier for identifier in identifiers))
        taken += len(identifiers)
        if taken >= count:
            return
        packets = subscriber.receive()


def _absent(gateway: Gateway) -> None:
    """Leaves a session behind, for which everything is kept."""
    with Connection(gateway.port) as client:
        client.connect(b"absent")
        client.send(b"\x82\x08\x00\x01\x00\x03a/b\x01")
        assert client.receive() == [b"\x90\x03\x00\x01\x01"]


def _stops_well(gateway: Gateway, free: FreeBytes) -> None:
    assert free.stop() > MARK_BYTES // 8
    assert not gateway.logged("exporter gave up")
    assert gateway.stop() == 0
    assert verify(gateway.data / "trail").verdict is Verdict.INTACT


@pytest.mark.timeout(180)
def test_a_backlog_whose_trail_needs_most_of_the_disk_is_drained_and_never_fills_it(
    gateway: Gateway, free: FreeBytes
) -> None:
    _absent(gateway)
    with Connection(gateway.port) as publisher:
        publisher.connect(b"work")
        acknowledged, _ = _fill(publisher, SHORT)
        with Connection(gateway.port) as subscriber:
            subscriber.connect(b"absent")
            _drain(subscriber, acknowledged)
    assert gateway.is_running, gateway.log
    _stops_well(gateway, free)


@pytest.mark.timeout(180)
def test_the_room_of_a_drained_backlog_comes_back_and_publishers_go_on(gateway: Gateway, free: FreeBytes) -> None:
    _absent(gateway)
    with Connection(gateway.port) as publisher:
        publisher.connect(b"work")
        acknowledged, waiting = _fill(publisher, LONG)
        assert waiting, "it is held back"
        assert len(gateway.logged("disk space ran short")) == 1
        filled_bytes = (gateway.data / FILE_NAME).stat().st_size
        with Connection(gateway.port) as subscriber:  # not before: a connection without CONNECT is closed after a while
            subscriber.connect(b"absent")
            _drain(subscriber, acknowledged)
        publisher.socket.settimeout(60)
        while waiting > 0:  # room inside the store is room
            waiting -= len(publisher.receive())
    assert filled_bytes > 16 * MIB
    while (gateway.data / FILE_NAME).stat().st_size > filled_bytes // 2:
        assert gateway.is_running, gateway.log
        time.sleep(0.05)
    _stops_well(gateway, free)
