"""`rfhbridge sessions`: what it lists, and which registrations it ends, at the embedded broker and at a target."""

import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mappings.commands.command import Dialect, RegisterSubscriber, write_command
from mappings.commands.options import RegistrationOption
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.message import MQMT_DATAGRAM, MQPER_PERSISTENT, Message, MessageDescriptor
from tests.command_line import command

STEP_S = 60.0
ORPHAN = b"RFHS" + b"\x77" * 20
CONTROL_QUEUE = "SYSTEM.BROKER.CONTROL.QUEUE"
#: MQTT 3.1.1: CONNECT of client pump, clean session 0; SUBSCRIBE to a/b, QoS 1, packet identifier 1.
CONNECT = bytes.fromhex("10 10 0004 4d515454 04 00 003c 0004 70756d70")
SUBSCRIBE = bytes.fromhex("82 08 0001 0003 612f62 01")
CONNACK, SUBACK = bytes.fromhex("20 02 00 00"), bytes.fromhex("90 03 0001 01")


@pytest.fixture
def gateway(tmp_path: Path, central, new_program) -> Iterator[object]:
    """A gateway that keeps all topics but those under `far` to itself, with a persistent session of client pump."""
    gateway = new_program(tmp_path, central.data, topics="far/#")
    with socket.create_connection(("127.0.0.1", int(gateway.line)), STEP_S) as link:
        link.sendall(CONNECT)
        assert link.recv(4, socket.MSG_WAITALL) == CONNACK
        link.sendall(SUBSCRIBE)
        assert link.recv(5, socket.MSG_WAITALL) == SUBACK
    return gateway


def register_orphan(gateway) -> None:
    """A registration on the gateway's queue that belongs to none of its sessions."""
    command = RegisterSubscriber(
        topics=("old/#",),
        registration_options=RegistrationOption.CORREL_ID_AS_IDENTITY,
        queue_name="RFHBRIDGE.SUBSCRIBER",
    )
    descriptor = MessageDescriptor(
        format=b"MQHRF2  ", msg_type=MQMT_DATAGRAM, persistence=MQPER_PERSISTENT, correl_id=ORPHAN
    )
    with gateway.connected() as store:
        store.put(CONTROL_QUEUE, Message(descriptor, write_command(command, Dialect.MQRFH2)))


def sessions(gateway, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
    ended = command("sessions", *arguments, "--config", gateway.config, stdin=stdin.encode())
    return ended.exit_code, ended.text, ended.stderr


def pump(gateway) -> dict[str, object]:
    (told,) = json.loads(sessions(gateway, "list", "--json")[1])
    return told


def test_a_session_is_listed_with_its_correlation_identifier(gateway):
    told = pump(gateway)
    assert told["client"] == "pump"
    assert re.fullmatch(r"[0-9a-f]{48}", str(told["correl_id"]))
    assert "pump" in sessions(gateway, "list")[1]


def test_what_no_session_has_at_the_embedded_broker_is_ended_and_nothing_else(gateway):
    assert sessions(gateway, "sweep")[1] == "ended 0 registrations of 1; sessions: 1\n"
    register_orphan(gateway)
    told = json.loads(sessions(gateway, "sweep", "--dry-run", "--json")[1])
    assert told["ended"] == [{"topic": "old/#", "correl_id": ORPHAN.hex()}]
    assert (told["dry_run"], told["registrations"], told["sessions"]) == (True, 2, 1)
    exit_code, text, _ = sessions(gateway, "sweep")
    assert exit_code == 0
    assert text == f"{ORPHAN.hex()} old/#\nended 1 registration of 2; sessions: 1\n"
    assert sessions(gateway, "sweep")[1] == "ended 0 registrations of 1; sessions: 1\n"


def test_what_no_session_has_at_a_target_is_ended_by_its_broker(gateway, central, until: Callable[..., None]):
    known = str(pump(gateway)["correl_id"]).upper()
    output = f"""5724-H72 (C) Copyright IBM Corp. 1994, 2025.
AMQ8096I: IBM MQ subscription inquired.
   SUBID(414D5120514D3120202020202020202001)
   SUB(QM1:RFHBRIDGE.SUBSCRIBER:1)         TOPICSTR('far/#')
   DEST(RFHBRIDGE.SUBSCRIBER)              DESTQMGR(QM1)
   DESTCORL({known})
AMQ8096I: IBM MQ subscription inquired.
   SUB('it''s (old)')                      TOPICSTR('far/old')
   DEST(RFHBRIDGE.SUBSCRIBER)              DESTQMGR(QM1)
   DESTCORL({ORPHAN.hex().upper()})
AMQ8096I: IBM MQ subscription inquired.
   SUB(SOMEBODY.ELSE)                      TOPICSTR('far/old')
   DEST(SOMEBODY.ELSE)                     DESTQMGR(QM1)
   DESTCORL(414D5120514D31202020202020202020414D512051000001)
One MQSC command read.
"""
    exit_code, text, _ = sessions(gateway, "sweep", "--registrations", "-", stdin=output)
    assert (exit_code, text) == (0, f"{ORPHAN.hex()} far/old\nended 1 registration of 3; sessions: 1\n")
    until(lambda: len(central.bodies(CONTROL_QUEUE)) == 1, "the DeregSub arrives")
    with SocketClient(central.data) as target:
        (message,) = target.browse(CONTROL_QUEUE)
    assert message.descriptor.correl_id == ORPHAN
    assert b"<Command>DeregSub</Command>" in message.body
    assert b"<RegOpt>DeregAll</RegOpt>" in message.body
    assert b"<QName>RFHBRIDGE.SUBSCRIBER</QName>" in message.body


@pytest.mark.parametrize("output", ["AMQ8096I: IBM MQ subscription inquired.\n   SUB(A)   DEST(B)\n"])
def test_registrations_without_their_identifiers_are_refused(gateway, output):
    exit_code, _, errors = sessions(gateway, "sweep", "--registrations", "-", stdin=output)
    assert exit_code == 1
    assert "DISPLAY SUB(*) ALL" in errors
    assert sessions(gateway, "sweep", "--target", "CENTRAL")[0] == 2
    assert sessions(gateway, "sweep", "--registrations", "-", "--target", "OTHER", stdin="")[0] == 2
