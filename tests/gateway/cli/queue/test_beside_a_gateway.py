"""`rfhbridge queue` as a client of a running gateway: other processes use the queues at the same time."""

import json
import select
import signal
import subprocess
import time

import pytest

from mq_adapters import connect
from mq_adapters.message import Message, MessageDescriptor
from tests.processes.forked import Forked


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The data folder of a real gateway, with queue ORDERS defined."""
    folder = tmp_path_factory.mktemp("data")
    command = ("gateway.cli", "run", "--listen", "127.0.0.1:0", "--data", str(folder))
    with Forked(*command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as gateway:
        try:
            assert gateway.stdout.readline()
            with connect(folder) as queue_manager:
                queue_manager.define("ORDERS")
            yield folder
        finally:
            gateway.terminate()


def test_message_goes_through_the_gateway_whole(rfhbridge, data, vectors):
    put = rfhbridge("queue", "put", "ORDERS", "-", "--format", "MQHRF", "--data", data, stdin=vectors.mqrfh + b"\x00")
    assert put.exit_code == 0
    assert rfhbridge("queue", "depth", "ORDERS", "--data", data).text == "1\n"
    (told,) = json.loads(rfhbridge("queue", "browse", "ORDERS", "--json", "--data", data).stdout)
    assert told["md"]["msg_id"] == put.text.strip()
    assert rfhbridge("queue", "get", "ORDERS", "--raw", "--data", data).stdout == vectors.mqrfh + b"\x00"


def test_get_waits_for_a_message_that_somebody_else_puts(data):
    command = ("gateway.cli", "queue", "get", "ORDERS", "--wait", "60", "--raw", "--data", str(data))
    with Forked(*command, stdout=subprocess.PIPE) as getter:
        try:
            with connect(data) as queue_manager:
                queue_manager.put("ORDERS", Message(MessageDescriptor(), b"late"))
            assert getter.stdout.read() == "late"
            assert getter.wait() == 0
        finally:
            getter.kill()


def test_get_that_waited_in_vain_is_2033(rfhbridge, data):
    ended = rfhbridge("queue", "get", "ORDERS", "--wait", "0.1", "--data", data)
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert "2033" in ended.stderr


def test_interrupted_get_ends_in_silence(data):
    command = ("gateway.cli", "queue", "get", "ORDERS", "--wait", "60", "--data", str(data))
    with Forked(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as getter:
        try:
            _await_a_waiting_get(data)
            getter.send_signal(signal.SIGINT)
            assert (getter.stdout.read(), getter.stderr.read()) == ("", "")
            assert getter.wait() == 130
        finally:
            getter.kill()


def _await_a_waiting_get(data):
    """Until a get waits at ORDERS: the gateway clears no queue that is in use."""
    deadline_s = time.monotonic() + 60
    with connect(data) as queue_manager:
        while queue_manager.mqsc("CLEAR QLOCAL(ORDERS)").succeeded:
            assert time.monotonic() < deadline_s
            select.select([], [], [], 0.02)


def test_undefined_queue_is_2085(rfhbridge, data):
    ended = rfhbridge("queue", "get", "NOWHERE", "--data", data)
    assert ended.exit_code == 1
    assert "2085" in ended.stderr


def test_clear_empties_a_queue_of_the_gateway(rfhbridge, data):
    rfhbridge("queue", "put", "ORDERS", "-", "--data", data, stdin=b"x")
    assert rfhbridge("queue", "clear", "ORDERS", "--data", data).text == "cleared 1\n"
