"""The real gateway beside a wall clock that the test sets: nothing ends or goes because of an implausible time.

The clock is that of Python's own `time`, in every process of the gateway: a module that Python imports by itself at the
start adds what stands in a file. CLOCK_BOOTTIME stays as it is, as when somebody sets the date.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Connect
from tests.end_to_end.gateway_process import PATIENCE_S, Gateway
from tests.end_to_end.metrics_page import scrape_until
from tests.end_to_end.wire import WireClient
from tests.processes.forked import fresh, rfhbridge
from tests.trail_lines import closed_segments, trail_records

_SET_CLOCK = """
import os, time
_real_ns = time.time_ns
_file = os.environ["SET_CLOCK"]
def _offset_s():
    try:
        with open(_file) as file:
            return int(file.read() or 0)
    except OSError:
        return 0
time.time_ns = lambda: _real_ns() + _offset_s() * 1_000_000_000
time.time = lambda: time.time_ns() / 1_000_000_000
"""
_DAY_S = 86_400
CONFIGURATION = """
[http]
enabled = true
listen = "127.0.0.1:0"
[audit]
segment_bytes = 3000
keep_days = 30
compress_after_hours = 1
"""
#: CONNECT of level 5 as client c, Clean Start 0, session expiry one hour.
CONNECT = "10 13 0004 'MQTT' 05 00 0000 05 11 00000E10 0001 'c'"


class SetClock:
    """Moves the wall clock of a gateway's processes."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(_SET_CLOCK)
        self._file = folder / "offset"
        self.environment = {"SET_CLOCK": str(self._file), "PYTHONPATH": str(folder)}

    def set(self, days: int) -> None:
        part = self._file.with_suffix(".part")
        part.write_text(str(days * _DAY_S))
        part.replace(self._file)


@pytest.fixture
def clock(tmp_path: Path) -> SetClock:
    return SetClock(tmp_path / "clock")


@pytest.fixture
def gateway(tmp_path: Path, clock: SetClock) -> Iterator[Gateway]:
    """A gateway that keeps its trail for thirty days, in small files."""
    configuration = tmp_path / "rfhbridge.toml"
    configuration.write_text(CONFIGURATION)
    gateway = Gateway(tmp_path / "data", "--config", str(configuration), environment=clock.environment, begin=fresh)
    yield gateway
    gateway.clean_up()


def segments(gateway: Gateway) -> list[str]:
    """Names of the trail's closed segments."""
    return closed_segments(gateway.data / "trail")


def publish_until(gateway: Gateway, connect: Connect, closed: int) -> None:
    """Publishes to the session of client c until the trail has so many closed segments.

    It publishes no faster than the exporter may follow on a busy machine: each few messages are a segment to be signed,
    and what waits for an exporter when the gateway stops may stay on the audit queue.
    """
    publisher = connect(gateway, "the publisher")
    publisher.send("connects", "10 0D 0004 'MQTT' 04 02 0000 0001 'p'")
    publisher.expect("is accepted", "20 02 00 00")
    deadline = time.monotonic() + PATIENCE_S
    while len(segments(gateway)) < closed:
        assert time.monotonic() < deadline, f"the trail closes no segment: {segments(gateway)}"
        publisher.send("publishes", "32 06 0001 'a' 0001 'X'")
        publisher.expect("is answered", "40 02 0001")
        time.sleep(0.02)
    publisher.send("leaves", "E0 00")
    publisher.expect_end("has left")


def leave_a_session(gateway: Gateway, connect: Connect) -> None:
    client = connect(gateway, "client c")
    client.send("connects", CONNECT)
    assert client.receive_packet()[2:4] == b"\0\0"
    client.send("subscribes", "82 07 0001 00 0001 'a' 01")
    client.expect("is granted QoS 1", "90 04 0001 00 01")
    client.send("leaves", "E0 00")
    client.expect_end("has left")


def comes_back(gateway: Gateway, connect: Connect) -> tuple[bool, WireClient]:
    """Whether the session was there."""
    client = connect(gateway, "client c again")
    client.send("connects", CONNECT)
    return client.receive_packet()[2] == 1, client


def mqsc(gateway: Gateway, clock: SetClock, command: str) -> str:
    done = rfhbridge("mqsc", "--data", gateway.data, input=command)
    return done.stdout + done.stderr


def told_of_the_clock(gateway: Gateway) -> list[str]:
    """What the records of the trail say of the clock, in their order; the gateway has stopped."""
    return [record["event"] for record in trail_records(gateway.data / "trail") if record["kind"] == "clock_jumped"]


@pytest.mark.parametrize("days", [100, -100])
def test_a_short_wrong_clock_ends_no_session_and_removes_no_segment(
    gateway: Gateway, clock: SetClock, connect: Connect, days: int
) -> None:
    gateway.start()
    leave_a_session(gateway, connect)
    publish_until(gateway, connect, closed=2)
    before = segments(gateway)
    clock.set(days)
    page = scrape_until(gateway, lambda page: page.value("clock_off_seconds") != 0)
    assert page.value("clock_jumps_total") == 1
    publish_until(gateway, connect, closed=len(before) + 2)  # each closed segment wakes who removes old ones
    clock.set(0)
    scrape_until(gateway, lambda page: page.value("clock_off_seconds") == 0)
    was_there, _ = comes_back(gateway, connect)
    assert was_there, gateway.log
    assert segments(gateway)[:2] == before[:2]
    assert gateway.stop() == 0
    assert told_of_the_clock(gateway) == ["ahead" if days > 0 else "behind", "settled"]
    (doubt,) = gateway.logged("clock in doubt")
    assert round(float(doubt["off_s"]) / _DAY_S) == days


@pytest.mark.parametrize("days", [100, -20_000])
def test_a_start_beside_a_wrong_clock_waits_for_who_knows_better(
    gateway: Gateway, clock: SetClock, connect: Connect, days: int
) -> None:
    gateway.start()
    leave_a_session(gateway, connect)
    publish_until(gateway, connect, closed=1)
    assert gateway.stop() == 0
    clock.set(days)
    gateway.start()
    gateway.wait_for_log("clock in doubt")
    publish_until(gateway, connect, closed=3)
    was_there, client = comes_back(gateway, connect)
    assert was_there, gateway.log
    client.drop()
    shown = mqsc(gateway, clock, "DISPLAY QMGR CLOCK CLOCKOFF")
    assert "CLOCK(AHEAD)" in shown or "CLOCK(BEHIND)" in shown
    clock.set(0)
    scrape_until(gateway, lambda page: page.value("clock_off_seconds") == 0)
    assert comes_back(gateway, connect)[0]


def test_an_operator_is_believed_and_what_is_due_then_ends(gateway: Gateway, clock: SetClock, connect: Connect) -> None:
    gateway.start()
    leave_a_session(gateway, connect)
    assert "AMQ8149E" in mqsc(gateway, clock, "RESET QMGR TYPE(CLOCK)")
    clock.set(2)
    scrape_until(gateway, lambda page: page.value("clock_off_seconds") > 0)
    assert "AMQ8005I" in mqsc(gateway, clock, "RESET QMGR TYPE(CLOCK)")
    settled = gateway.wait_for_log("clock settled")
    assert "says that the wall clock is right" in settled["reason"]
    scrape_until(gateway, lambda page: page.value("sessions", state="offline") == 0)
    assert not comes_back(gateway, connect)[0]
    gateway.restart()
    assert not gateway.logged("clock in doubt")[1:], "the new time was kept"
