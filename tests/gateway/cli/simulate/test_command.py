"""`rfhbridge simulate`: the counting, the exit code, and a run against a real gateway."""

import json
import select
import signal
import socket
import subprocess
import time

import pytest
from paho.mqtt import subscribe
from paho.mqtt.client import Client

from gateway.cli.simulate.sensors import EarlyEnd, SimulatedClient
from gateway.cli.simulate.simulation_counts import SimulationCounts, SimulationResult
from mq_adapters import connect
from tests.processes.forked import Forked

PLAN = ("--sensors", "2", "--rate", "20", "--seconds", "0.2")


def outcome(**changes):
    kept = {"qos": 1, "sent": 4, "acknowledged": 4, "unacknowledged": 0, "received": 4}
    kept |= {"lost": 0, "doubled": 0, "lost_connections": 0}
    return SimulationResult(**{**kept, **changes})


@pytest.mark.parametrize(
    ("what", "as_promised"),
    [
        (outcome(), True),
        (outcome(qos=0, received=3, lost=1), True),
        (outcome(qos=1, received=3, lost=1), False),
        (outcome(qos=1, doubled=1), True),
        (outcome(qos=2, received=3, lost=1), False),
        (outcome(qos=2, doubled=1), False),
        (outcome(qos=2, lost_connections=3), True),
        (outcome(qos=2, acknowledged=3, unacknowledged=1, received=3), True),
    ],
)
def test_promise_of_each_qos_decides_the_exit_code(rfhbridge, monkeypatch, what, as_promised):
    monkeypatch.setattr("gateway.cli.simulate.sensors.simulate", lambda _plan, _on_progress, _early_end: what)
    ended = rfhbridge("simulate", *PLAN, "--qos", str(what.qos), "--json")
    assert ended.exit_code == (0 if as_promised else 1)
    assert json.loads(ended.stdout)["as_promised"] is as_promised


def test_counts_tells_lost_from_doubled():
    counts = SimulationCounts(2)
    for number in range(4):
        counts.note_sent((0, number))
        counts.note_acknowledged((0, number))
    for number in (0, 1, 1, 3, 1):
        counts.note_received((0, number))
    counts.note_lost_connection()
    assert counts.result() == outcome(qos=2, received=3, lost=1, doubled=2, lost_connections=1)


def test_counts_is_settled_when_nothing_is_missing():
    counts = SimulationCounts(1)
    counts.note_sent((0, 0))
    assert not counts.is_settled()
    counts.note_received((0, 0))
    assert not counts.is_settled()
    counts.note_acknowledged((0, 0))
    assert counts.is_settled()


def test_what_was_never_acknowledged_is_not_lost():
    counts = SimulationCounts(1)
    for number in range(4):
        counts.note_sent((0, number))
    for number in (0, 1):
        counts.note_acknowledged((0, number))
    for number in (0, 2):
        counts.note_received((0, number))
    assert counts.result() == outcome(acknowledged=2, unacknowledged=2, received=2, lost=1)


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_run_that_is_ended_early_shows_what_was_counted_and_leaves_no_session(gateway, signal_number):
    port, data = gateway
    plan = ("--sensors", "2", "--rate", "20", "--seconds", "3600", "--qos", "1", "--port", port, "--json")
    with Forked("gateway.cli", "simulate", *plan, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as simulation:
        subscribe.simple("#", hostname="127.0.0.1", port=int(port))  # until something is published
        simulation.send_signal(signal_number)
        shown, errors = simulation.stdout.read(), simulation.stderr.read()
    assert (simulation.wait(), errors) == (0, "")
    told = json.loads(shown)
    assert (told["ended_early"], told["lost"], told["unacknowledged"]) == (True, 0, 0)
    assert told["received"] == told["acknowledged"] == told["sent"] < 100_000
    assert not _subscribes(data)


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_signal_in_the_middle_of_a_publication_leaves_it_counted(rfhbridge, gateway_port, monkeypatch, signal_number):
    publish, sent = Client.publish, []

    def publish_and_signal(client, *arguments):
        sent.append(publish(client, *arguments))
        if len(sent) == 3:
            signal.raise_signal(signal_number)
        return sent[-1]

    monkeypatch.setattr(Client, "publish", publish_and_signal)
    plan = ("--sensors", "2", "--rate", "20", "--seconds", "3600", "--qos", "1", "--port", gateway_port, "--json")
    told = json.loads(rfhbridge("simulate", *plan).stdout)
    assert told["ended_early"]
    assert [told[what] for what in ("sent", "acknowledged", "received")] == [3, 3, 3]


def test_signal_before_a_connection_is_answered_leaves_no_session(rfhbridge, gateway, monkeypatch):
    port, data = gateway
    await_answer = SimulatedClient._await_answer

    def await_and_interrupt(station, what):
        await_answer(station, what)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(SimulatedClient, "_await_answer", await_and_interrupt)
    assert rfhbridge("simulate", *PLAN, "--qos", "1", "--port", port).exit_code == 130
    deadline_s = time.monotonic() + 60  # by when the gateway has read the last DISCONNECT
    while json.loads(rfhbridge("sessions", "list", "--json", "--data", data).stdout):
        assert time.monotonic() < deadline_s
        select.select([], [], [], 0.05)


def test_signal_before_the_first_publication_is_an_interruption():
    early_end = EarlyEnd()
    with pytest.raises(KeyboardInterrupt):
        early_end.wish()
    with early_end.noted():
        early_end.wish()
        assert not early_end.sleep_until(time.monotonic() + 60)
        assert early_end.sleep_until(time.monotonic())


def _subscribes(data):
    with connect(data) as queue_manager:
        return "simulate/" in "".join(queue_manager.mqsc("DISPLAY SUB(*) ALL").lines)


def test_counts_waits_for_no_acknowledgement_at_qos_0():
    counts = SimulationCounts(0)
    counts.note_sent((0, 0))
    counts.note_received((0, 0))
    assert counts.is_settled()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    """The port and the data folder of a real gateway."""
    data = tmp_path_factory.mktemp("data")
    command = ("gateway.cli", "run", "--listen", "127.0.0.1:0", "--data", str(data))
    with Forked(*command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as gateway:
        try:
            yield gateway.stdout.readline().strip().rpartition(":")[2], data
        finally:
            gateway.terminate()


@pytest.fixture(scope="module")
def gateway_port(gateway):
    return gateway[0]


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_simulation_against_a_gateway_loses_and_doubles_nothing(rfhbridge_process, gateway_port, qos):
    ended = rfhbridge_process("simulate", *PLAN, "--qos", str(qos), "--port", gateway_port, "--json")
    assert (ended.exit_code, ended.stderr) == (0, "")
    told = json.loads(ended.stdout)
    assert (told["sent"], told["received"], told["lost"], told["doubled"]) == (8, 8, 0, 0)
    assert told["acknowledged"] == (0 if qos == 0 else 8)


def test_outcome_is_shown_without_a_progress_bar_where_it_is_piped(rfhbridge_process, gateway_port):
    ended = rfhbridge_process("simulate", *PLAN, "--qos", "1", "--port", gateway_port)
    assert [line.rsplit(maxsplit=1) for line in ended.text.splitlines()] == [
        ["sent", "8"],
        ["acknowledged", "8"],
        ["unacknowledged", "0"],
        ["received", "8"],
        ["lost", "0"],
        ["doubled", "0"],
        ["lost connections", "0"],
    ]
    assert ended.stderr == ""


def test_gateway_that_does_not_answer_is_one_line(rfhbridge):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    ended = rfhbridge("simulate", *PLAN, "--qos", "1", "--port", str(port))
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert f"no gateway answers on 127.0.0.1:{port}: Connection refused" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--sensors", "0", "--rate", "1", "--qos", "1", "--seconds", "1"],
        ["--sensors", "1", "--rate", "0", "--qos", "1", "--seconds", "1"],
        ["--sensors", "1", "--rate", "1", "--qos", "3", "--seconds", "1"],
        ["--sensors", "1", "--rate", "1", "--qos", "1", "--seconds", "x"],
        ["--sensors", "1", "--rate", "inf", "--qos", "1", "--seconds", "1"],
        ["--sensors", "1", "--rate", "1", "--qos", "1", "--seconds", "nan"],
        ["--sensors", "1", "--rate", "1", "--qos", "1", "--seconds", "1", "--port", "70000"],
    ],
    ids=" ".join,
)
def test_wrong_use_is_exit_code_2_in_one_line(rfhbridge, arguments):
    ended = rfhbridge("simulate", *arguments)
    assert (ended.exit_code, ended.stdout) == (2, b"")
    assert ended.stderr.count("\n") == 1
