"""`rfhbridge channel` beside a gateway with a target."""

import json

import pytest

from mq_adapters.embedded.socket.client import SocketClient
from tests.command_line import command

OUT = "CENTRAL.OUT.0"


def channel(gateway, *arguments: str) -> tuple[int, str, str]:
    ended = command("channel", *arguments, "--data", gateway.data)
    return ended.exit_code, ended.text, ended.stderr


def test_the_operator_lists_stops_resolves_and_starts_channels(gateway, central, until):
    gateway.wait_for_state("RUNNING")
    exit_code, text, _ = channel(gateway, "list")
    assert exit_code == 0
    lines = text.splitlines()
    assert lines[0].split()[:2] == ["channel", "state"]
    assert [line.split()[0] for line in lines[1:]] == ["CENTRAL.IN.REPLY", "CENTRAL.IN.SUBSCRIBER", OUT]
    assert channel(gateway, "stop", OUT)[:2] == (0, f"stopped {OUT}\n")
    gateway.send(b"one", b"two")
    (status,) = (found for found in json.loads(channel(gateway, "list", "--json")[1]) if found["channel"] == OUT)
    assert (status["state"], status["type"], status["waiting_messages"]) == ("stopped", "outbound", 2)
    assert (status["is_in_doubt"], status["queue_manager"]) == (False, "CENTRAL")
    exit_code, _, errors = channel(gateway, "resolve", OUT, "--action", "commit")
    assert exit_code == 1
    assert "has no batch in doubt" in errors
    assert channel(gateway, "resolve", OUT, "--action", "reset")[0] == 0
    assert channel(gateway, "start", OUT)[:2] == (0, f"started {OUT}\n")
    until(lambda: central.bodies() == [b"one", b"two"], "they arrive")
    exit_code, text, _ = channel(gateway, "show", OUT)
    shown = dict(line.split("  ", 1) for line in text.splitlines() if "  " in line)
    assert shown["queue manager"].strip() == "CENTRAL"


def test_dead_letters_for_the_target_go_back_to_it_with_the_same_msg_id(gateway, central, until):
    with SocketClient(central.data) as target:
        assert target.mqsc("ALTER QLOCAL(STOCK) MAXMSGL(10)").succeeded
    gateway.send(b"much too long for it", b"short")
    until(lambda: central.bodies() == [b"short"], "the other one arrives")
    with gateway.connected() as store:
        until(lambda: store.depth("SYSTEM.DEAD.LETTER.QUEUE") == 1, "the batch is settled here, too")
        (letter,) = store.browse("SYSTEM.DEAD.LETTER.QUEUE")
    with SocketClient(central.data) as target:
        assert target.mqsc("ALTER QLOCAL(STOCK) MAXMSGL(100)").succeeded
    redrive = ("queue", "redrive", "--reason", "2030", "--data", gateway.data)
    ended = command(*redrive, "--dry-run", "--json")
    assert json.loads(ended.stdout) == {
        "dry_run": True,
        "put_back": 1,
        "passed_over": 0,
        "refused": 0,
        "queues": {"RFHBRIDGE.XMIT.CENTRAL.0": 1},
        "reasons": [],
    }
    ended = command(*redrive)
    assert ended.exit_code == 0
    assert ended.text.splitlines()[-1] == "put back: 1, cannot go back: 0, passed over: 0"
    until(lambda: len(central.bodies()) == 2, "it arrives")
    with SocketClient(central.data) as target:
        _, again = target.browse("STOCK")
    assert (again.msg_id, again.body) == (letter.msg_id, b"much too long for it")


def test_a_running_channel_is_not_resolved_and_an_unknown_one_not_found(gateway):
    gateway.wait_for_state("RUNNING")
    exit_code, _, errors = channel(gateway, "resolve", OUT, "--action", "backout")
    assert exit_code == 1
    assert "STOP CHANNEL" in errors
    for arguments in (("show", "OTHER"), ("start", "OTHER"), ("stop", "OTHER")):
        exit_code, _, errors = channel(gateway, *arguments)
        assert exit_code == 1
        assert "OTHER" in errors
        assert errors.count("\n") == 1


def test_without_a_gateway_there_are_no_channels(gateway):
    gateway.end()
    exit_code, text, _ = channel(gateway, "list")
    assert exit_code == 0
    assert text == "no channel runs, because no gateway runs here\n"
    exit_code, text, errors = channel(gateway, "show", OUT)
    assert (exit_code, text) == (1, "")
    assert "no gateway runs here" in errors


@pytest.mark.parametrize("action", ["", "perhaps"])
def test_an_action_is_one_of_three(gateway, action):
    exit_code, _, errors = channel(gateway, "resolve", OUT, "--action", action)
    assert exit_code == 2
    assert "commit" in errors
