"""Subscriptions that outlive their programs, as IBM MQ classes for JMS and Java use them, and the audit of all that."""

import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from mq_adapters import connect
from mq_adapters.client_channel.charv import Charv
from mq_adapters.client_channel.segments import SegmentType
from mq_adapters.client_channel.structures import Mqsd
from mq_adapters.client_channel.verbs import Mqsub
from mq_adapters.queue_manager import QueueAdministration
from mq_adapters.subscribed_queue import SubscriptionOption
from tests.end_to_end.mq_clients.house import PATIENCE_S, House
from tests.end_to_end.mq_clients.raw_client import RawClient
from tests.end_to_end.paho_client import PahoClient
from tests.processes.forked import rfhbridge

Java = Callable[..., list[str]]
StartJava = Callable[..., "subprocess.Popen[str]"]


def test_durable_and_shared_subscriptions_of_jms_keep_what_comes(house: House, java: Java) -> None:
    assert java("Durable", *house.as_billing("durable", "shared", "sharedDurable", "listener")) == [
        "durable: there a",
        "durable: in use 2429",
        "durable: back b topic://plant/durable/2 c",
        "durable: other topic e",
        "durable: gone 2428",
        "shared: 1234 true true",
        "shared: left alone 5",
        "shared: later ",
        "sharedDurable: 1234 true true",
        "sharedDurable: left alone 5",
        "sharedDurable: later 6",
        "listener: before later",
    ]


def test_the_base_classes_subscribe_resume_and_remove(house: House, java: Java) -> None:
    assert java("Durable", *house.as_billing("base", "own", "request")) == [
        "base: aplant/base 2033",
        "base: refused 2432",
        "base: refused 2509",
        "base: bplant/base 2033",
        "base: removed 2428",
        "own: aplant/own 2033",
        "request: nothing 2437",
        "request: 2033",
        "request: 1 aplant/request 2033",
    ]


def test_a_subscription_survives_the_death_of_the_gateway_with_a_sensors_reading(house: House, java: Java) -> None:
    assert java("Durable", *house.as_billing("begin")) == ["begin: left"]
    sensor = PahoClient("sensor")
    sensor.connect(house.gateway.port)
    sensor.publish("plant/other", b"not for it", 1)
    sensor.close()
    house.gateway.signal(signal.SIGKILL)
    time.sleep(0.1)
    house.gateway.kill_and_restart()
    with connect(str(house.gateway.data)) as operator:
        shown = "\n".join(operator.mqsc("DISPLAY SUB('JMS:RFHB:orders:kept') ALL").lines)
        for part in ("DESTCLAS(MANAGED)", "SUBUSER('billing')", "TOPICSTR('plant/begin')", "DURABLE(YES)"):
            assert part in shown
    assert java("Durable", *house.as_billing("back")) == ["back: true one two"]
    with connect(str(house.gateway.data)) as operator:
        assert not operator.mqsc("DISPLAY SUB('JMS:*')").succeeded


@pytest.mark.proof
def test_a_durable_subscriber_gets_each_publication_once_when_the_gateway_is_killed(
    house: House, start_java: StartJava, tmp_path: Path, proof_scale: str
) -> None:
    units, kills = (1_000, 3) if proof_scale == "full" else (100, 1)
    outcomes: dict[str, dict[str, list[list[str]]]] = {}
    for way in ("prepare", "publish", "subscribe"):
        program = start_java("Load", *house.as_billing(way, str(units)), folder=tmp_path)
        assert program.stdout is not None
        lines: list[str] = []
        for number in range(0 if way == "prepare" else kills):
            while len([line for line in lines if line.startswith("committed")]) < (number + 1) * units // (kills + 2):
                lines.append(program.stdout.readline())
                assert lines[-1], lines
            house.gateway.signal(signal.SIGKILL)
            time.sleep(0.1)
            house.gateway.kill_and_restart()
        lines += program.stdout.read().splitlines()
        assert program.wait(timeout=PATIENCE_S) == 0, lines[-20:]
        outcomes[way] = {
            kind: [line.split()[1:] for line in lines if line.split()[0] == kind] for kind in ("committed", "doubt")
        }
    sent = Counter(text for unit in outcomes["publish"]["committed"] for text in unit)
    perhaps = Counter(text for unit in outcomes["publish"]["doubt"] for text in unit)
    got = Counter(text for unit in outcomes["subscribe"]["committed"] for text in unit)
    in_hand = Counter(text for unit in outcomes["subscribe"]["doubt"] for text in unit)
    assert not sent - got - in_hand, "committed publications are missing"
    assert not got - sent - perhaps, "publications are there twice, or were never committed"


def test_what_is_not_durable_dies_with_the_gateway_and_the_audit_knows(house: House, tmp_path: Path) -> None:
    create, managed = SubscriptionOption.CREATE, SubscriptionOption.MANAGED
    client = RawClient(house.port)
    queue = client.connect().open("ORDERS", 0x2)
    topic = Charv(value=b"plant/short")
    for options, handle in ((create, queue), (create | managed, 0), (create | managed | SubscriptionOption.DURABLE, 0)):
        named = Mqsd(options=options, object_string=topic, sub_name=Charv(value=f"short-{options:d}".encode()))
        header, _ = client.ask(SegmentType.MQSUB, Mqsub(subscription_descriptor=named), handle)
        assert header.completion_code == 0
    house.gateway.signal(signal.SIGKILL)
    time.sleep(0.1)
    client.socket.close()
    house.gateway.kill_and_restart()
    sensor = PahoClient("sensor")
    sensor.connect(house.gateway.port)
    for _ in range(3):
        sensor.publish("plant/short", b"4.2", 1)
    sensor.close()
    with connect(str(house.gateway.data)) as operator:
        assert operator.depth("ORDERS") == 0
        shown = "\n".join(operator.mqsc("DISPLAY SUB('short-*') DURABLE").lines)
        assert (shown.count("DURABLE(YES)"), shown.count("DURABLE(NO)")) == (1, 0)
    _check_audit(house, tmp_path)
    house.gateway.start()


def test_the_audit_finds_no_fault_in_it(house: House, java: Java, start_java: StartJava, tmp_path: Path) -> None:
    program = start_java("Load", *house.as_billing("prepare", "0"), folder=tmp_path)
    assert program.wait(timeout=PATIENCE_S) == 0
    java("Durable", *house.as_billing("durable", "sharedDurable", "base", "own", "request", "begin"))
    with connect(str(house.gateway.data)) as operator:
        for name in ("JMS:RFHB:orders:kept", "JMS:RFHB:load:load", *_names(operator, "short-*")):
            assert operator.mqsc(f"DELETE SUB('{name}')").succeeded
        end = time.monotonic() + PATIENCE_S
        while operator.mqsc("DISPLAY QLOCAL(SYSTEM.MANAGED.*)").succeeded and time.monotonic() < end:
            time.sleep(0.1)
        assert not operator.mqsc("DISPLAY QLOCAL(SYSTEM.MANAGED.*)").succeeded
    java("Durable", *house.as_billing("begin"))
    _check_audit(house, tmp_path)


def _names(operator: QueueAdministration, pattern: str) -> list[str]:
    """The names of subscriptions."""
    lines = operator.mqsc(f"DISPLAY SUB('{pattern}')").lines
    return [line.split("SUB('")[1].split("'")[0] for line in lines if "SUB('" in line]


def _check_audit(house: House, folder: Path) -> None:
    assert house.gateway.stop() == 0, house.gateway.log
    report = folder / "report"
    ended = rfhbridge("audit", "run", "--engine", "duckdb", "--data", house.gateway.data, "--out", report, timeout=None)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    balance = rfhbridge("balance", "--data", house.gateway.data, timeout=None)
    assert balance.returncode == 0, balance.stdout + balance.stderr
