"""What systemd hears, over a real datagram socket: that ports are open, that the event loop turns, that it stops."""

import asyncio
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway import daemon
from gateway.config import Settings
from gateway.system_notices import SystemNotices

WAIT_S = 60.0


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    """The service manager's end."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(WAIT_S)
        yield listening


def environment(systemd: socket.socket, **more: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": systemd.getsockname(), **more}


def test_the_variables_are_taken_so_that_no_child_speaks_for_the_gateway(systemd: socket.socket) -> None:
    found = environment(systemd, WATCHDOG_USEC="4000000", WATCHDOG_PID=str(os.getpid()), HOME="/")
    notices = SystemNotices(found)
    assert (notices.watchdog_s, found) == (4.0, {"HOME": "/"})


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"WATCHDOG_USEC": "", "WATCHDOG_PID": ""},
        {"WATCHDOG_USEC": "a while"},
        {"WATCHDOG_USEC": "4000000", "WATCHDOG_PID": "1"},
    ],
)
def test_without_a_watchdog_for_this_process_none_is_fed(systemd: socket.socket, more: dict[str, str]) -> None:
    assert SystemNotices(environment(systemd, **more)).watchdog_s == 0


def test_an_event_loop_that_turns_feeds_the_watchdog_and_one_that_stands_still_does_not(systemd: socket.socket) -> None:
    period_s = 0.4

    async def run() -> None:
        notices = SystemNotices(environment(systemd, WATCHDOG_USEC=str(round(period_s * 1_000_000))))
        loop, began_s = asyncio.get_running_loop(), time.monotonic()
        notices.ready()
        heard = [await loop.run_in_executor(None, systemd.recv, 99) for _ in range(4)]
        assert heard == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1", b"WATCHDOG=1"]
        assert time.monotonic() - began_s >= 0.9 * period_s, "two in a period are enough"
        systemd.settimeout(period_s)
        with pytest.raises(TimeoutError):
            _hear_for_ever(systemd)  # in the event loop, which stands still meanwhile
        notices.stopping()
        notices.close()
        assert systemd.recv(99) == b"STOPPING=1"

    asyncio.run(run())


def _hear_for_ever(systemd: socket.socket) -> None:
    while True:
        systemd.recv(99)


def test_a_notice_that_nobody_takes_stops_nothing(tmp_path: Path) -> None:
    SystemNotices({"NOTIFY_SOCKET": str(tmp_path / "nowhere")}).stopping()
    SystemNotices({}).stopping()


def test_a_name_with_an_at_sign_is_in_the_abstract_space() -> None:
    name = f"rfhbridge-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name}")
        SystemNotices({"NOTIFY_SOCKET": f"@{name}"}).stopping()
        assert listening.recv(99) == b"STOPPING=1"


@pytest.mark.usefixtures("interpreter_as_it_was")
def test_a_gateway_is_ready_when_its_ports_are_open_and_says_that_it_stops(
    systemd: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", systemd.getsockname())
    monkeypatch.setenv("WATCHDOG_USEC", "60000000")
    told: list[bytes] = []

    def opened(listeners) -> None:  # type: ignore[no-untyped-def]
        systemd.setblocking(False)
        with pytest.raises(BlockingIOError):
            systemd.recv(99)
        with socket.create_connection((listeners[0].address.host, listeners[0].address.port), WAIT_S):
            told.append(b"a port is open")
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), 15)

    settings = {"listen": "127.0.0.1:0", "data": str(tmp_path / "data"), "audit": {"enabled": False}}
    assert daemon.run(Settings.model_validate(settings), ready=opened) == 0
    systemd.settimeout(WAIT_S)
    assert told == [b"a port is open"]
    assert [systemd.recv(99) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"STOPPING=1"]
    assert "NOTIFY_SOCKET" not in os.environ


UNIT = Path(__file__).parents[2] / "deploy/systemd/rfhbridge.service"
#: What the unit must say, whatever else it says.
HARDENED = ("Type=notify", "ProtectSystem=strict", "NoNewPrivileges=true", "MemoryMax=4G", "WatchdogSec=30")
HIGHEST_SCORE = 2.5


def test_the_unit_says_what_hardens_it_and_starts_what_the_page_installs() -> None:
    lines = UNIT.read_text().splitlines()
    assert [each for each in HARDENED if each not in lines] == []
    page = (UNIT.parents[2] / "docs/how-to/run-as-a-service.md").read_text()
    assert "python3 -m venv /opt/rfhbridge" in page
    assert "ExecStart=/opt/rfhbridge/bin/rfhbridge run --config /etc/rfhbridge/rfhbridge.toml" in UNIT.read_text()


def test_systemd_finds_little_exposed() -> None:
    try:
        ended = subprocess.run(
            ["systemd-analyze", "security", "--offline=true", str(UNIT)], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("systemd-analyze is not installed (apt install systemd)")
    score = re.search(r"Overall exposure level for rfhbridge\.service: ([0-9.]+)", ended.stdout)
    assert score is not None, ended.stderr
    assert float(score[1]) < HIGHEST_SCORE
