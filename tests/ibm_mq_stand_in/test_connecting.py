"""Connecting: threads, users, several queue managers, programs that die, a library that is never there by chance."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from tests.ibm_mq_stand_in.process import (
    BINDINGS,
    BUILT,
    VARIABLE,
    Binding,
    StandInQueueManager,
    environment,
    load,
    needs_stand_in,
    wait_until,
)
from tests.ibm_mq_stand_in.program import (
    INPUT_EXCLUSIVE,
    INPUT_SHARED,
    OUTPUT,
    SHARE_BLOCK,
    SHARE_NO_BLOCK,
    SHARE_NONE,
    Program,
)

PUTS_AND_WAITS = """
import sys
BINDING = __import__(sys.argv[1])
from tests.ibm_mq_stand_in.program import *
program = Program(BINDING)
queue = program.open("ORDERS", INPUT_EXCLUSIVE | OUTPUT)
program.put(queue, b"uncommitted")
print(BINDING.__name__, flush=True)
sys.stdin.read()
"""


def _reason_in_thread(program: Program, call: object, *arguments: object, **named: object) -> int:
    reasons: list[int] = []
    thread = threading.Thread(target=lambda: reasons.append(program.reason_of(call, *arguments, **named)))
    thread.start()
    thread.join(60)
    return reasons[0]


def test_a_handle_belongs_to_its_thread(mq: ModuleType, queue_manager: StandInQueueManager) -> None:
    # ibmmq shares every handle of MQCONNX, so that only a plain MQCONN shows the rule through both.
    program = Program.__new__(Program)
    program.mq, program.manager = mq, mq.QueueManager(None)
    program.manager.connect("STANDIN")
    assert _reason_in_thread(program, program.open, "ORDERS", OUTPUT) == 2018
    assert program.reason_of(program.open, "ORDERS", OUTPUT) == 0
    program.manager.disconnect()


@pytest.mark.parametrize(("share", "delay_s", "reason"), [(SHARE_BLOCK, 0.3, 2033), (SHARE_NO_BLOCK, 600, 2219)])
def test_a_shared_handle_blocks_or_refuses_the_second_call(
    mq: ModuleType, queue_manager: StandInQueueManager, share: int, delay_s: float, reason: int
) -> None:
    program = Program(mq, share=share)
    orders = program.open("ORDERS", INPUT_SHARED)
    queue_manager.control.plant("MQGET", delay_s=delay_s)
    other = threading.Thread(target=program.reason_of, args=(program.get, orders))
    other.start()
    wait_until(lambda: queue_manager.control.calls_under_way() == 1)
    assert program.reason_of(program.get, orders) == reason
    queue_manager.control.hasten()
    other.join(60)


@needs_stand_in
def test_a_thread_has_one_handle_that_is_not_shared(queue_manager: StandInQueueManager) -> None:
    mq = load("pymqi")  # ibmmq shares every handle of MQCONNX
    first = Program(mq, share=SHARE_NONE)
    with pytest.raises(mq.MQMIError) as warned:
        Program(mq, share=SHARE_NONE)
    assert (warned.value.comp, warned.value.reason) == (1, 2002)
    assert first.reason_of(first.open, "ORDERS", OUTPUT) == 0


def test_a_thread_may_have_many_connections_of_a_client(mq: ModuleType, queue_manager: StandInQueueManager) -> None:
    managers = [mq.QueueManager(None) for _ in range(2)]
    for manager in managers:
        manager.connect_tcp_client("STANDIN", mq.CD(), "ANY.SVRCONN", "localhost(1414)", "", "")
        assert manager.inquire(mq.CMQC.MQCA_Q_MGR_NAME).strip() == b"STANDIN"
    managers[0].disconnect()
    assert managers[1].inquire(mq.CMQC.MQCA_Q_MGR_NAME).strip() == b"STANDIN"
    managers[1].disconnect()


def test_a_connect_without_the_right_password_is_2035(mq: ModuleType, queue_manager: StandInQueueManager) -> None:
    queue_manager.control.require_passwords({"gateway": "secret"})
    opened = Program(mq, user="gateway", password="secret")
    assert opened.reason_of(opened.open, "ORDERS", OUTPUT) == 0
    for wrong in ({}, {"user": "gateway", "password": "guess"}, {"user": "other", "password": "secret"}):
        assert opened.reason_of(Program, mq, **wrong) == 2035


def test_another_queue_manager_name_is_2058(mq: ModuleType, queue_manager: StandInQueueManager) -> None:
    with pytest.raises(mq.MQMIError, match="2058"):
        mq.QueueManager("QM9")


def _channel(mq: ModuleType, connection_name: str, **more: object) -> object:
    texts = {
        "ChannelName": "GATEWAY.SVRCONN",
        "ConnectionName": connection_name,
        "SSLCipherSpec": "ANY_TLS12_OR_HIGHER",
    }
    encoded = {name: text.encode() if mq.__name__ == "pymqi" else text for name, text in texts.items()}
    return mq.CD(Version=11, **encoded, **more)


def test_a_client_says_what_it_connects_with(mq: ModuleType, queue_manager: StandInQueueManager) -> None:
    program = Program(mq, cd=_channel(mq, "mq.example(1414)"), user="gateway", password="p")
    (said,) = queue_manager.control.connections()
    wanted = {
        "channel": "GATEWAY.SVRCONN",
        "connection_name": "mq.example(1414)",
        "cipher_spec": "ANY_TLS12_OR_HIGHER",
        "user": "gateway",
        "password": "***",
        "process": os.getpid(),
    }
    assert {name: said[name] for name in wanted} == wanted
    program.manager.disconnect()


def test_the_first_reachable_conname_is_taken(
    mq: ModuleType, queue_manager: StandInQueueManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StandInQueueManager(tmp_path / "second", name="SECOND") as second:
        monkeypatch.setenv(VARIABLE, f"one(1414)={queue_manager.socket};two(1414)={second.socket}")
        names = []
        for outage in (False, True):
            if outage:
                queue_manager.control.begin_outage()
            program = Program(mq, cd=_channel(mq, "nowhere(1414), one(1414),two(1414)"))
            names.append(bytes(program.manager.inquire(2015)).decode().strip())
            program.manager.disconnect()
        assert names == ["STANDIN", "SECOND"]
        with pytest.raises(mq.MQMIError, match="2538"):
            Program(mq, cd=_channel(mq, "nowhere(1414)"))


def test_a_message_longer_than_the_channel_takes_is_2218(mq: ModuleType, queue_manager: StandInQueueManager) -> None:
    client = Program(mq, cd=_channel(mq, "mq.example(1414)", MaxMsgLength=100))
    orders = client.open("ORDERS", OUTPUT)
    assert client.reason_of(client.put, orders, bytes(101)) == 2218
    queue_manager.control.limit_channel(50)
    assert client.reason_of(client.put, orders, bytes(51)) == 2218
    assert client.reason_of(client.put, orders, bytes(50)) == 0


@pytest.mark.parametrize("binding", [pytest.param(each, marks=needs_stand_in) for each in BINDINGS])
def test_a_program_that_is_killed_is_backed_out_and_lets_go(
    binding: Binding, queue_manager: StandInQueueManager
) -> None:
    command = [sys.executable, "-c", PUTS_AND_WAITS, binding]
    with subprocess.Popen(
        command,
        env=os.environ | queue_manager.environment(binding),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{binding}\n"
        assert len(queue_manager.control.connections()) == 1
        process.kill()
    wait_until(lambda: not queue_manager.control.connections())
    with queue_manager.client() as client:
        assert client.depth("ORDERS") == 0


def test_what_was_committed_survives_the_queue_manager(mq: ModuleType, queue_manager: StandInQueueManager) -> None:
    program = Program(mq)
    orders = program.open("ORDERS", OUTPUT | INPUT_SHARED)
    program.put(orders, b"committed")
    program.manager.commit()
    program.put(orders, b"open")
    queue_manager.kill()
    assert program.reason_of(program.manager.commit) == 2009
    assert program.reason_of(program.get, orders) == 2009
    assert program.reason_of(Program, mq) == 2059
    queue_manager.start()
    again = Program(mq)
    assert again.get(again.open("ORDERS", INPUT_EXCLUSIVE))[0] == b"committed"


@needs_stand_in
@pytest.mark.parametrize("binding", BINDINGS)
def test_the_library_does_not_load_by_accident(binding: Binding) -> None:
    variables = os.environ | environment(binding, "")
    del variables[VARIABLE]
    run = subprocess.run(
        [sys.executable, "-c", f"import {binding}"], env=variables, capture_output=True, text=True, check=False
    )
    assert run.returncode == 78
    assert "it is not IBM MQ and does not load without RFHBRIDGE_MQ_STAND_IN" in run.stderr


@needs_stand_in
@pytest.mark.parametrize("binding", BINDINGS)
def test_the_stand_in_is_not_in_the_environment_itself(binding: Binding) -> None:
    """A package of IBM's may be installed there for a real queue manager; it has nothing of the stand-in."""
    names = {path.name for path in (BUILT / f"python-{binding}").iterdir()}
    assert names & set(BINDINGS) == {binding}
    where = f"import importlib.util; found = importlib.util.find_spec('{binding}'); print(found and found.origin)"
    run = subprocess.run([sys.executable, "-c", where], capture_output=True, text=True, check=True)
    assert str(BUILT) not in run.stdout
