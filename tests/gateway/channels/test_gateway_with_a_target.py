"""A gateway with a target: both directions, each message once, through kills, outages and the operator's commands."""

import signal
from datetime import UTC, datetime, timedelta

import pytest

from mq_adapters.channel import LocalState
from mq_adapters.channel.local_state import StateRecord
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from tests.trail_lines import trail_records

OUT, IN_SUBSCRIBER, IN_REPLY = "CENTRAL.OUT.0", "CENTRAL.IN.SUBSCRIBER", "CENTRAL.IN.REPLY"
TRANSMISSION_QUEUE, SENT_QUEUE = "RFHBRIDGE.XMIT.CENTRAL.0", "RFHBRIDGE.SENT.CENTRAL"
DEAD_LETTERS = "SYSTEM.DEAD.LETTER.QUEUE"
MQRC_MSG_TOO_BIG_FOR_Q = 2030


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [b"%06d" % number for number in range(start, start + count)]


def publication(correl_id: bytes, body: bytes) -> Message:
    descriptor = MessageDescriptor(persistence=MQPER_PERSISTENT, correl_id=correl_id, format=b"MQSTR   ")
    return Message(descriptor, body)


def records(gateway, kind: str) -> list[dict[str, object]]:
    """What the trail says; the gateway must have stopped."""
    return [record for record in trail_records(gateway.data / "trail") if record["kind"] == kind]


def doubt(gateway) -> LocalState:
    """Leaves what waits in doubt, as a crash after the note of a batch does. The channel must be stopped."""
    with gateway.connected() as store:
        record = StateRecord(OUT, gateway=store.incarnation)
        record.load(store)
        waiting = [message.msg_id for message in store.browse(TRANSMISSION_QUEUE)]
        record.write(store, record.state.doubting(waiting))
        return record.state


def test_messages_go_to_the_target_in_order_and_are_kept_for_a_late_refusal(gateway, central, until):
    gateway.send(*numbered(600))
    until(lambda: len(central.bodies()) == 600, "all have arrived")
    assert central.bodies() == numbered(600)
    until(lambda: gateway.status()["MSGS"] == "600", "the status tells them")
    with gateway.connected() as store, SocketClient(central.data) as target:
        sent = {message.msg_id: message.body for message in store.browse(SENT_QUEUE)}
        assert sent == {message.msg_id: message.body for message in target.browse("STOCK")}
    assert gateway.end() == 0
    assert records(gateway, "forwarded") == [], "an application's own messages are no conversions"
    assert records(gateway, "dropped") == []


def test_publications_of_the_target_arrive_here_with_their_identifiers(gateway, central, until):
    correl_ids = [b"RFHB" + bytes(19) + bytes((number,)) for number in range(50)]
    central.put("RFHBRIDGE.SUBSCRIBER", *(publication(each, each) for each in correl_ids))

    def arrived() -> list[Message]:
        with gateway.connected() as store:
            return list(store.browse("RFHBRIDGE.SUBSCRIBER"))

    until(lambda: len(arrived()) == 50, "all have arrived")
    messages = arrived()
    assert [(message.descriptor.correl_id, message.body) for message in messages] == [
        (each, each) for each in correl_ids
    ]
    assert gateway.end() == 0
    received = records(gateway, "received")
    assert [record["target_message_id"] for record in received] == [message.msg_id.hex() for message in messages]
    assert {(record["queue"], record["channel"]) for record in received} == {("RFHBRIDGE.SUBSCRIBER", IN_SUBSCRIBER)}


def test_each_message_arrives_once_although_processes_are_killed(gateway, central, until, is_gone):
    total = 0
    for victim in ("channels", "gateway", "channels"):
        gateway.send(*numbered(2_000, total))
        total += 2_000
        gateway.wait_for_state("RUNNING")
        process = gateway.channel_process()
        if victim == "gateway":
            gateway.end(signal.SIGKILL)
            until(lambda process=process: is_gone(process), "the channel process ends with its gateway")
            gateway.start()
        else:
            gateway.kill(process)
            until(lambda process=process: is_gone(process), "it is killed")
    until(lambda: central.depth() >= total, "all have arrived")
    assert central.bodies() == numbered(total)
    assert gateway.end() == 0


def test_messages_wait_in_an_outage_and_the_status_says_why(gateway, central, until):
    gateway.wait_for_state("RUNNING")
    central.end(signal.SIGKILL)
    gateway.send(*numbered(10))
    status = gateway.wait_for_state("WAITING")
    assert (status["CURDEPTH"], status["INDOUBT"]) == ("10", "NO")
    assert int(status["CURBYTES"]) > 10 * 6
    assert int(status["REASON"]) in (2009, 2059)
    assert status["PROBLEM"]
    central.start()
    gateway.mqsc(f"STOP CHANNEL({OUT})")
    gateway.wait_for_state("STOPPED")
    gateway.mqsc(f"START CHANNEL({OUT})")
    until(lambda: central.bodies() == numbered(10), "all have arrived")
    waiting_lines = [line for line in gateway.log.read_text().splitlines() if "state=waiting" in line and OUT in line]
    assert len(waiting_lines) <= 2


def test_channels_try_again_when_the_configuration_says(new_program, central, tmp_path):
    gateway = new_program(tmp_path, central.data, retry_s=[300.0])
    for channel in (OUT, IN_SUBSCRIBER):
        gateway.wait_for_state("RUNNING", channel)
    broken_at = datetime.now(UTC)
    central.end(signal.SIGKILL)
    for channel in (OUT, IN_SUBSCRIBER):
        next_try = datetime.fromisoformat(gateway.wait_for_state("WAITING", channel)["RETRYTIM"])
        assert timedelta(seconds=299) <= next_try - broken_at < timedelta(seconds=360)


def test_a_stopped_channel_stays_stopped_over_a_restart(gateway, central, until):
    gateway.wait_for_state("RUNNING")
    gateway.mqsc(f"STOP CHANNEL({OUT})")
    gateway.wait_for_state("STOPPED")
    gateway.send(*numbered(5))
    assert gateway.end() == 0
    gateway.start()
    gateway.wait_for_state("RUNNING", IN_REPLY)
    assert gateway.status()["STATUS"] == "STOPPED"
    assert gateway.status()["CURDEPTH"] == "5"
    assert central.bodies() == []
    gateway.mqsc(f"START CHANNEL({OUT})")
    until(lambda: central.bodies() == numbered(5), "all have arrived")


@pytest.mark.parametrize(("action", "arrives"), [("COMMIT", 0), ("BACKOUT", 3)])
def test_a_batch_in_doubt_is_resolved_while_its_channel_is_stopped(
    tmp_path, new_program, central, until, action, arrives
):
    """Of a channel that has never reached its queue manager: none can say anything else than the operator."""
    central.end(signal.SIGKILL)
    gateway = new_program(tmp_path, central.data)
    gateway.wait_for_state("WAITING")
    gateway.mqsc(f"STOP CHANNEL({OUT})")
    gateway.wait_for_state("STOPPED")
    gateway.send(*numbered(3))
    state = doubt(gateway)
    assert state.doubtful is not None
    gateway.end()
    central.start()
    gateway.start()
    until(lambda: gateway.status()["INDOUBT"] == "YES", "the process tells the doubt")
    numbers = [int.from_bytes(msg_id[-8:], "big") for msg_id in state.doubtful.messages]
    status = gateway.status()
    assert status["DOUBTMSGS"] == f"{numbers[0]}-{numbers[-1]}"
    gateway.mqsc(f"RESOLVE CHANNEL({OUT}) ACTION({action})")
    until(lambda: gateway.status()["RESOLVED"].startswith("done"), "it is resolved")
    assert gateway.status()["INDOUBT"] == "NO"
    gateway.mqsc(f"START CHANNEL({OUT})")
    gateway.send(b"afterwards")
    until(lambda: b"afterwards" in central.bodies(), "the channel goes on")
    assert central.bodies() == [*numbered(arrives), b"afterwards"]


def test_a_running_channel_is_not_resolved(gateway):
    gateway.wait_for_state("RUNNING")
    with gateway.connected() as store:
        answer = store.mqsc(f"RESOLVE CHANNEL({OUT}) ACTION(COMMIT)")
    assert not answer.succeeded
    assert f"STOP CHANNEL({OUT})" in answer.lines[0]


def test_what_the_target_refuses_for_good_is_a_dead_letter_here(gateway, central, until):
    with SocketClient(central.data) as target:
        assert target.mqsc("ALTER QLOCAL(STOCK) MAXMSGL(10)").succeeded
    gateway.send(b"before", b"much too long for it", b"behind")
    until(lambda: central.bodies() == [b"before", b"behind"], "the others arrive")
    with gateway.connected() as store:
        until(lambda: any(store.browse(DEAD_LETTERS)), "the batch is committed here after it is there")
        (letter,) = store.browse(DEAD_LETTERS)
    assert letter.body[8:12] == MQRC_MSG_TOO_BIG_FOR_Q.to_bytes(4, "little")
    assert letter.body.endswith(b"much too long for it")
    assert gateway.end() == 0
    (told,) = records(gateway, "dead_lettered")
    assert (told["reason_code"], told["queue"]) == (MQRC_MSG_TOO_BIG_FOR_Q, TRANSMISSION_QUEUE)
    assert told["message_id"] not in {record["message_id"] for record in records(gateway, "forwarded")}


def test_a_gateway_that_is_told_to_stop_leaves_nothing_in_doubt(gateway, until, is_gone):
    gateway.wait_for_state("RUNNING")
    process = gateway.channel_process()
    gateway.send(*numbered(3_000))
    assert gateway.end() == 0
    assert is_gone(process)
    gateway.start()
    gateway.wait_for_state("RUNNING")
    assert 'channel=CENTRAL.OUT.0 action="deliver the rest"' not in gateway.log.read_text()
    assert 'channel=CENTRAL.OUT.0 action="remove what was delivered"' not in gateway.log.read_text()


def test_another_number_of_shards_counts_when_nothing_waits(gateway, central, until):
    gateway.send(*numbered(10))
    until(lambda: len(central.bodies()) == 10, "all have arrived")
    gateway.end()
    gateway.set_target(shards=2)
    gateway.start()
    for channel in (OUT, "CENTRAL.OUT.1"):
        gateway.wait_for_state("RUNNING", channel)
