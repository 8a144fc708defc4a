"""The limits of a real gateway: what each level is told past them, that others feel nothing, and what is counted."""

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Connect, StartGateway, connected
from tests.end_to_end.gateway_process import PATIENCE_S, Gateway
from tests.end_to_end.metrics_page import Page, scrape, scrape_until
from tests.end_to_end.wire import WireClient
from tests.processes.forked import rfhbridge

ACCEPTED, PINGREQ, PINGRESP = "20 02 00 00", "C0 00", "D0 00"
NOT_CLEAN = "10 10 0004 'MQTT' 04 00 0000 0004 '{0}'"
CONNECTS = {
    3: ("10 12 0006 'MQIsdp' 03 02 0000 0004 'more'", "20 02 00 03"),
    4: ("10 10 0004 'MQTT' 04 02 0000 0004 'more'", "20 02 00 03"),
    5: ("10 11 0004 'MQTT' 05 02 0000 00 0004 'more'", "20 03 00 {0} 00"),
}

Limited = Callable[..., Gateway]


@pytest.fixture
def limited(new_gateway: StartGateway, tmp_path: Path) -> Limited:
    """Starts a gateway with metrics, for all versions of MQTT, with these limits."""

    def start(**limits: float) -> Gateway:
        keys = "".join(f"{key} = {value}\n" for key, value in limits.items())
        (tmp_path / "rfhbridge.toml").write_text(
            f'[http]\nenabled = true\nlisten = "127.0.0.1:0"\n[mqtt]\nversions = ["3.1", "3.1.1", "5"]\n{keys}'
        )
        return new_gateway("--config", str(tmp_path / "rfhbridge.toml")).start()

    return start


def _feels_nothing(client: WireClient) -> None:
    client.send("pings", PINGREQ)
    client.expect("is answered", PINGRESP)


def _refused(page: Page, limit: str, reason: str) -> float:
    return page.value("refusals_total", limit=limit, reason=reason)


@pytest.mark.parametrize(
    ("limits", "limit", "reason", "code"),
    [
        ({"maximum_connections": 1}, "connections", "quota_exceeded", "97"),
        ({"maximum_connections_per_address": 1}, "connections_per_address", "quota_exceeded", "97"),
    ],
    ids=["in all", "of an address"],
)
def test_a_connection_too_many_is_answered_in_its_own_words(
    limited: Limited, connect: Connect, limits: dict[str, float], limit: str, reason: str, code: str
) -> None:
    gateway = limited(**limits)
    first = connected(connect, gateway, "good")
    for packet, answer in CONNECTS.values():
        more = connect(gateway, "one too many")
        more.send("connects", packet)
        more.expect("is refused", answer.format(code))
        more.expect_end("is closed")
    _feels_nothing(first)
    assert _refused(scrape(gateway), limit, reason) == 3
    first.send("leaves", "E0 00")
    first.expect_end("has left")
    connected(connect, gateway, "next")


def test_connections_that_are_made_too_often_are_told_so(limited: Limited, connect: Connect) -> None:
    gateway = limited(connection_rate_per_address=1)
    first = connected(connect, gateway, "good")
    for _ in range(40):
        connect(gateway)
    for packet, answer in CONNECTS.values():
        *_, more = [connect(gateway, "one too many") for _ in range(5)]  # the others take what a second has brought
        more.send("connects", packet)
        more.expect("is refused", answer.format("9F"))
        more.expect_end("is closed")
    _feels_nothing(first)
    assert _refused(scrape(gateway), "connection_rate_per_address", "connection_rate_exceeded") >= 20


def test_silent_connections_make_room_for_who_speaks(limited: Limited, connect: Connect) -> None:
    """As many half packets as there may be waiting, and many more: who sends CONNECT gets in at once."""
    gateway = limited(maximum_waiting_connections=20, connection_rate_per_address=0)
    first = connected(connect, gateway, "good")
    silent = []
    for _ in range(200):
        half = socket.create_connection(("127.0.0.1", gateway.port), 30)
        half.sendall(b"\x10\xff\xff")
        silent.append(half)
    second = connected(connect, gateway, "goo2")
    page = scrape_until(gateway, lambda page: page.value("connections_waiting") <= 20)
    assert _refused(page, "waiting_connections", "server_busy") >= 179
    _feels_nothing(first)
    _feels_nothing(second)
    for half in silent:
        half.close()


def test_who_takes_nothing_is_disconnected_and_keeps_its_session(limited: Limited, connect: Connect) -> None:
    """Its peers are served meanwhile; what it had not acknowledged comes again."""
    gateway = limited(slow_reader_timeout_s=5.0, maximum_unsent_bytes=65_536)
    slow = connect(gateway, "the slow reader")
    slow.send("connects to stay", NOT_CLEAN.format("slow"), "82 06 0001 0001 'a' 01")
    slow.expect("is accepted and granted QoS 1", ACCEPTED, "90 03 0001 01")
    teller = connected(connect, gateway, "tell")
    payload = bytes(1_000_000)
    body = b"\0\1a\0\1" + payload
    for _ in range(20):
        teller.send("publishes a megabyte", b"\x32\xc5\x84\x3d" + body)
        teller.expect("is answered", "40 02 0001")
    page = scrape_until(gateway, lambda page: _refused(page, "slow_reader", "quota_exceeded") == 1)
    _feels_nothing(teller)
    page = scrape_until(gateway, lambda page: page.value("sessions", state="offline") == 1)
    assert page.value("messages_waiting") == 20
    again = connect(gateway, "the slow reader again")
    again.send("connects", NOT_CLEAN.format("slow"))
    again.expect("finds its session", "20 02 01 00")
    first = again.receive(9 + len(payload))
    assert (first[0], first[-len(payload) :]) == (0x3A, payload)


def test_retained_copies_past_the_limit_are_counted_and_what_was_read_makes_room(
    limited: Limited, connect: Connect
) -> None:
    gateway = limited(maximum_retained_copy_bytes=110_000)
    teller = connected(connect, gateway, "tell")
    copy = b"\x31\xa3\x8d\x06" + b"\0\1a" + bytes(100_000)
    teller.send("retains a large message", b"\x33\xa5\x8d\x06" + b"\0\1a\0\1" + bytes(100_000))
    teller.expect("is told that it is stored", "40 02 0001")
    reader = connected(connect, gateway, "read")
    refused, granted, deadline_s = 0, 0, time.monotonic() + PATIENCE_S
    while granted < 6:
        assert time.monotonic() < deadline_s, f"{refused} SUBSCRIBEs were refused, and {granted} granted"
        reader.send("subscribes", "82 06 0001 0001 'a' 00")
        reader.expect("is answered", "90 03 0001")
        if reader.receive(1) == b"\0":
            granted += 1
            assert reader.receive(len(copy)) == copy
        else:
            refused += 1
    assert refused
    assert _refused(scrape(gateway), "retained_copies", "quota_exceeded") == refused


def test_what_a_session_has_no_room_for_is_kept_as_dead_letters_and_delivered_when_they_go_back(
    limited: Limited, connect: Connect, tmp_path: Path
) -> None:
    """The audit finds every balance right."""
    gateway = limited(maximum_queued_messages=10)
    away = connect(gateway, "the one that goes away")
    away.send("connects to stay", NOT_CLEAN.format("away"), "82 06 0001 0001 'a' 01")
    away.expect("is accepted and granted QoS 1", ACCEPTED, "90 03 0001 01")
    away.send("leaves", "E0 00")
    away.expect_end("has left")
    teller = connected(connect, gateway, "tell")
    for number in range(1, 31):
        teller.send("publishes", f"32 06 0001 'a' {number:04X} '{chr(96 + number) if number < 27 else number - 26}'")
        teller.expect("is answered", f"40 02 {number:04X}")
    page = scrape_until(gateway, lambda page: page.value("dead_letters") == 20)
    assert page.value("messages_waiting") == 10
    assert _refused(page, "queued_messages", "quota_exceeded") == 20
    _taken_by(connect, gateway, 10)
    redriven = rfhbridge("queue", "redrive", "--data", gateway.data, "--reason", "2053")
    assert redriven.returncode == 0, redriven.stderr
    scrape_until(gateway, lambda page: (page.value("messages_waiting"), page.value("dead_letters")) == (10, 10))
    _taken_by(connect, gateway, 10, first=10)
    assert gateway.stop() == 0
    ended = rfhbridge(
        "audit", "run", "--engine", "duckdb", "--data", gateway.data, "--out", tmp_path / "report", timeout=None
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def _taken_by(connect: Connect, gateway: Gateway, count: int, *, first: int = 0) -> None:
    """The session's client comes back and takes what waits."""
    back = connect(gateway, "the one that comes back")
    back.send("connects", NOT_CLEAN.format("away"))
    back.expect("finds its session", "20 02 01 00")
    for number in range(first, first + count):
        packet = back.receive_packet()
        assert packet[-1] == ord("a") + number
        back.send("acknowledges", b"\x40\x02" + packet[5:7])
    back.send("leaves", "E0 00")
    back.expect_end("has left")
