"""Lines about connections that were not let in: enough to see what happens, and never as many as there are attempts."""

import logging

import pytest

from gateway.limits.connection_log import ConnectionLog
from gateway.limits.log_rate import INTERVAL_S, LINES_IN_ALL, LINES_OF_ONE

ATTEMPTS = 500


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(clock: Clock, caplog: pytest.LogCaptureFixture) -> ConnectionLog:
    caplog.set_level(logging.INFO)
    return ConnectionLog(now_s=clock)


def written(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return lines


def test_one_address_has_some_lines_in_a_minute_and_then_a_number(
    log: ConnectionLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for port in range(ATTEMPTS):
        log.closed_without_session("192.0.2.7", listener="default", peer=f"192.0.2.7:{port}", reason="wrong")
        log.tick()
    line = "connection closed listener=default client= peer=192.0.2.7:{} reason=wrong"
    assert written(caplog) == [line.format(port) for port in range(LINES_OF_ONE)]
    clock.now_s += INTERVAL_S
    log.tick()
    assert written(caplog) == [f"connections closed address=192.0.2.7 count={ATTEMPTS - LINES_OF_ONE}"]
    log.closed_without_session("192.0.2.7", listener="default", peer="192.0.2.7:1", reason="wrong")
    assert written(caplog) == [line.format(1)]
    clock.now_s += INTERVAL_S
    log.tick()
    assert written(caplog) == [], "nothing was left out this time"


def test_who_comes_often_takes_no_line_from_another_address(
    log: ConnectionLog, caplog: pytest.LogCaptureFixture
) -> None:
    for host in range(ATTEMPTS):
        log.closed_without_session(
            f"2001:db8::{host:x}", listener="default", peer=f"[2001:db8::{host:x}]:1", reason="wrong"
        )
    assert len(written(caplog)) == LINES_OF_ONE, "one /64 is one address"
    log.closed_without_session("2001:db8:0:1::1", listener="default", peer="[2001:db8:0:1::1]:1", reason="other")
    assert written(caplog) == ["connection closed listener=default client= peer=[2001:db8:0:1::1]:1 reason=other"]


def test_many_addresses_have_a_bounded_number_of_lines_together(
    log: ConnectionLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    attempts = 0
    for network in range(6_000):
        for port in range(1 + (network < 3)):
            attempts += 1
            log.closed_without_session(
                f"10.1.{network >> 8}.{network & 255}", listener="default", peer=f"10.1.0.0:{port}", reason="wrong"
            )
    assert len(written(caplog)) == LINES_IN_ALL
    for _ in range(LINES_IN_ALL):
        attempts += 1
        log.closed_without_session("10.1.9.9", listener="default", peer="10.1.9.9:1", reason="wrong")
    clock.now_s += INTERVAL_S
    log.tick()
    numbers = written(caplog)
    assert numbers[0] == f"connections closed address=10.1.9.9 count={LINES_IN_ALL + 1}"
    assert numbers[-1].startswith("connections closed address=others count=")
    assert len(numbers) <= 11
    assert sum(int(line.rpartition("=")[2]) for line in numbers) == attempts - LINES_IN_ALL


def test_who_comes_no_further_than_the_port_counts_with_the_others_of_the_address(
    log: ConnectionLog, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(ATTEMPTS):
        log.refused("192.0.2.7", "request refused listener=%s number=%s", "web", number, level=logging.INFO)
    assert len(written(caplog)) == LINES_OF_ONE
    log.closed_without_session("192.0.2.7", listener="default", peer="192.0.2.7:1", reason="wrong")
    assert written(caplog) == []


def test_two_clients_with_one_identifier_have_some_lines_in_a_minute_and_then_a_number(
    log: ConnectionLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for port in range(ATTEMPTS):
        log.closed("pump-7", listener="default", peer=f"192.0.2.7:{port}", reason="it connected again")
    line = "connection closed listener=default client=pump-7 peer=192.0.2.7:{} reason=it connected again"
    assert written(caplog) == [line.format(port) for port in range(LINES_OF_ONE)]
    log.closed_without_session("192.0.2.7", listener="default", peer="192.0.2.7:1", reason="wrong")
    assert len(written(caplog)) == 1, "they take no line from those who were not let in"
    clock.now_s += INTERVAL_S
    log.tick()
    assert written(caplog) == [f"connections closed client=pump-7 count={ATTEMPTS - LINES_OF_ONE}"]


def test_clients_have_more_lines_together_than_addresses_and_not_as_many_as_they_like(
    log: ConnectionLog, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3_000):
        log.closed(f"pump-{number}", listener="default", peer="192.0.2.7:1", reason="the gateway stops")
    assert len(written(caplog)) == 2_000


def test_calls_without_a_right_have_few_lines_and_take_none_from_connections(
    log: ConnectionLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(ATTEMPTS):
        log.right_refused("billing", "right refused user=billing object=%s", number)
    assert len(written(caplog)) == LINES_OF_ONE
    log.refused("192.0.2.7", "connection closed")
    assert written(caplog) == ["connection closed"]
    clock.now_s += INTERVAL_S
    log.tick()
    assert written(caplog) == [f"rights refused user=billing count={ATTEMPTS - LINES_OF_ONE}"]
