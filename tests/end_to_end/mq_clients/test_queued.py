"""Queued publish/subscribe as IBM MQ classes for JMS do it with provider version 6, in both formats."""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mq_adapters import connect
from tests.end_to_end.mq_clients.house import PATIENCE_S, House
from tests.end_to_end.paho_client import PahoClient
from tests.processes.forked import rfhbridge

Java = Callable[..., list[str]]
StartJava = Callable[..., "subprocess.Popen[str]"]
VERSIONS = pytest.mark.parametrize("version", ["V1", "V2"])


def subscriptions(house: House) -> list[str]:
    """The queues of the subscriptions that the program has now."""
    with connect(str(house.gateway.data)) as operator:
        lines = operator.mqsc("DISPLAY SUB(*) DEST WHERE(SUBUSER EQ 'queued')").lines
    return sorted(line.split("DEST(")[1].split(")")[0] for line in lines if "DEST(" in line)


def wait_for(house: House, expected: list[str]) -> None:
    end = time.monotonic() + PATIENCE_S / 2
    while subscriptions(house) != expected and time.monotonic() < end:
        time.sleep(0.05)
    assert subscriptions(house) == expected


@VERSIONS
def test_programs_publish_subscribe_come_back_and_unsubscribe(house: House, java: Java, version: str) -> None:
    said = java("Queued", house.port, "QUEUED", version, "topics", "durable", "begin", "back", "forbidden")
    assert said == [
        "topics: 4.2 topic://plant/queued/1 bar",
        "topics: later ",
        "durable: there a",
        "durable: back b",
        "durable: new ",
        "durable: gone InvalidDestinationException",
        "begin: left",
        "back: one",
        "forbidden: subscribe 2035",
        "forbidden: publish 2035",
    ]
    assert subscriptions(house) == []


@VERSIONS
@pytest.mark.parametrize("end", ["program", "gateway", "stop"])
def test_a_dead_program_leaves_its_durable_subscription_alone(
    house: House, start_java: StartJava, tmp_path: Path, version: str, end: str
) -> None:
    program = start_java("Queued", house.port, "QUEUED", version, "hang", folder=tmp_path)
    assert program.stdout is not None
    assert program.stdout.readline().strip() == "hang: there"
    assert subscriptions(house) == ["SYSTEM.JMS.D.SUBSCRIBER.QUEUE", "SYSTEM.JMS.ND.SUBSCRIBER.QUEUE"]
    if end == "program":
        program.kill()
    elif end == "gateway":
        house.gateway.signal(signal.SIGKILL)
        time.sleep(0.1)
        program.kill()
        house.gateway.kill_and_restart()
    else:
        house.gateway.stop()
        program.kill()
        house.gateway.start()
    wait_for(house, ["SYSTEM.JMS.D.SUBSCRIBER.QUEUE"])
    with connect(str(house.gateway.data)) as operator:
        assert operator.mqsc("DELETE SUB('JMS:RFHB:queued:hanging')").succeeded


def test_a_sensors_reading_comes_to_a_queued_subscriber(house: House, java: Java) -> None:
    assert java("Queued", house.port, "QUEUED", "V2", "begin") == ["begin: left"]
    sensor = PahoClient("sensor")
    sensor.connect(house.gateway.port)
    sensor.publish("plant/queued/1", b"4.2", 1)
    sensor.close()
    with connect(str(house.gateway.data)) as operator:
        assert operator.depth("SYSTEM.JMS.D.SUBSCRIBER.QUEUE") == 2
        for _ in range(2):
            message = operator.get("SYSTEM.JMS.D.SUBSCRIBER.QUEUE")
        assert b"<psc>" in message.body
        assert message.body.endswith(b"4.2")
        assert operator.mqsc("DELETE SUB('JMS:RFHB:queued:left')").succeeded


def test_the_audit_finds_no_fault_in_it(house: House, java: Java, tmp_path: Path) -> None:
    for version in ("V1", "V2"):
        java(
            "Queued", house.port, "QUEUED", version, "topics", "durable", "begin", "back", "forbidden", "begin", "back"
        )
    assert house.gateway.stop() == 0, house.gateway.log
    report = tmp_path / "report"
    ended = rfhbridge("audit", "run", "--engine", "duckdb", "--data", house.gateway.data, "--out", report, timeout=None)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    balance = rfhbridge("balance", "--data", house.gateway.data, timeout=None)
    assert balance.returncode == 0, balance.stdout + balance.stderr
