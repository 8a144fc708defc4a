"""kill -9 in the middle of thousands of publishes: nothing acknowledged is lost, QoS 2 comes once, the trail agrees."""

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from mq_adapters import connect as connect_queue_manager
from mq_adapters.embedded.balance import Messages, read_balance
from mq_adapters.message import MQMT_DATAGRAM, Message, MessageDescriptor
from mq_adapters.queue_manager import QueueManager
from spark_audit.verify import Verdict, verify
from tests.end_to_end.conftest import StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.resending_clients import Publisher, Subscriber
from tests.end_to_end.wire import packet
from tests.processes.forked import rfhbridge
from tests.trail_lines import trail_records

PATIENCE_S = 300.0
LAST = b"the last one"
APPLICATION_QUEUE, SUBSCRIBER_QUEUE = "APP.PROOF", "RFHBRIDGE.SUBSCRIBER"
REGISTER = packet(
    "'RFH ' 01000000 58000000 22020000 B8040000 '        ' 00000000"
    "'MQPSCommand RegSub MQPSQName APP.PROOF MQPSTopic pr/*   '"
)
HEADER_BYTES = 32 + len("MQPSCommand Publish MQPSTopic pr/f  ")


@pytest.mark.proof
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("header", ["mqrfh2", "mqrfh"])
def test_kill_9_in_the_middle_of_many_publishes_loses_and_doubles_nothing(
    new_gateway: StartGateway, proof_scale: str, tmp_path: Path, header: str
) -> None:
    count, kills = (5_000, 6) if proof_scale == "full" else (400, 2)  # publishes of each of the four clients
    gateway = new_gateway("--header", header).start()
    with connect_queue_manager(gateway.data) as application:
        application.define(APPLICATION_QUEUE)
        command = MessageDescriptor(msg_type=MQMT_DATAGRAM, format=b"MQHRF   ")
        application.put("SYSTEM.BROKER.CONTROL.QUEUE", Message(command, REGISTER))
    subscriber = Subscriber(gateway.port, b"proof-subscriber", b"pr/#")
    subscriber.end_with(LAST)
    subscriber.start()
    assert subscriber.subscribed.wait(PATIENCE_S)
    publishers = [Publisher(gateway.port, b"proof-%d" % number, b"pr/f", count) for number in range(4)]
    _allow_until_kill(publishers, count, 1, kills)
    for publisher in publishers:
        publisher.start()
    _kill_in_the_middle(gateway, publishers, count, kills)
    _finish(gateway, subscriber, publishers)

    acknowledged = {qos: set[bytes]().union(*(each.acknowledged[qos] for each in publishers)) for qos in (1, 2)}
    assert (len(acknowledged[1]), len(acknowledged[2])) == (2 * count, 2 * count)
    _check_counts(subscriber.payloads[1] + subscriber.payloads[2], acknowledged)
    with connect_queue_manager(gateway.data) as application:
        messages = _get_all(application)
    _check_counts(Counter(message.body[HEADER_BYTES:] for message in messages), acknowledged)
    assert gateway.stop() == 0, gateway.log
    subscriber_queue = _check_balance(gateway)[SUBSCRIBER_QUEUE]
    assert subscriber_queue.put == subscriber_queue.taken == len(messages)
    _check_trail(gateway.data / "trail", messages, 2 * count)
    assert "Traceback" not in gateway.log
    _audit(gateway.data, tmp_path / "audit")


def _audit(data: Path, out: Path) -> None:
    """The audit by every control, on DuckDB."""
    done = rfhbridge("audit", "run", "--engine", "duckdb", "--data", data, "--out", out, timeout=None)
    assert done.returncode == 0, done.stdout + done.stderr
    assert orjson.loads((out / "result.json").read_bytes())


def _check_balance(gateway: Gateway) -> dict[str, Messages]:
    """No message and no publication is missing; what was counted of each queue, whatever its persistence."""
    balance = read_balance(gateway.data)
    assert balance is not None
    assert balance.adds_up, balance
    return {queue.name: queue.together for queue in balance.queues}


def _kill_in_the_middle(gateway: Gateway, publishers: list[Publisher], count: int, kills: int) -> None:
    total = count * len(publishers)
    progress = threading.Event()
    for kill in range(1, kills + 1):
        while sum(len(each.acknowledged[qos]) for each in publishers for qos in (1, 2)) < total * kill / (kills + 1):
            assert any(each.is_alive() for each in publishers), [each.error for each in publishers]
            progress.wait(0.005)
        gateway.kill()
        _check_balance(gateway)
        _allow_until_kill(publishers, count, kill + 1, kills)
        gateway.start()


def _allow_until_kill(publishers: list[Publisher], count: int, kill: int, kills: int) -> None:
    """Half of a part more than it takes to that kill, so that none has ended by then, however late it comes."""
    for publisher in publishers:
        publisher.most = round(count * (kill + 0.5) / (kills + 1)) if kill <= kills else None


def _finish(gateway: Gateway, subscriber: Subscriber, publishers: list[Publisher]) -> None:
    """Waits until everything is acknowledged, then sends the message behind which nothing comes."""
    for publisher in publishers:
        publisher.join(PATIENCE_S)
        assert publisher.is_done(), (publisher.error, gateway.log)
    assert any(publisher.connections > 1 for publisher in publishers)
    last = Publisher(gateway.port, b"proof-last", b"pr/f", 0)
    last.waiting = [(1, LAST)]
    last.start()
    last.join(PATIENCE_S)
    subscriber.join(PATIENCE_S)
    assert subscriber.is_done(), (subscriber.error, gateway.log)


def _check_counts(received: Counter[bytes], acknowledged: dict[int, set[bytes]]) -> None:
    """Everything that was acknowledged is there, and nothing else; what was sent at QoS 2 is there once."""
    del received[LAST]
    assert set(received) == acknowledged[1] | acknowledged[2]
    assert {payload: received[payload] for payload in acknowledged[2] if received[payload] != 1} == {}


def _get_all(application: QueueManager) -> list[Message]:
    return [application.get(APPLICATION_QUEUE) for _ in range(application.depth(APPLICATION_QUEUE))]


def _check_trail(trail: Path, messages: list[Message], count_of_qos_2: int) -> None:
    """Every link of the trail holds, and it has one put record for each copy on the queues."""
    verification = verify(trail)
    assert verification.verdict is Verdict.INTACT, verification
    forms = (".jsonl", ".zst", ".torn")
    assert [path.name for path in trail.iterdir() if path.suffix not in forms] == ["digests"]
    records = trail_records(trail)
    copies = _copies(records, APPLICATION_QUEUE)
    assert Counter(record["message_id"] for record in copies) == Counter(m.msg_id.hex() for m in messages)
    assert {record["source_message_id"] for record in copies} == {
        record["source_message_id"] for record in _copies(records, SUBSCRIBER_QUEUE)
    }
    assert len(_copies(records, SUBSCRIBER_QUEUE)) == len(messages)
    accepted = [record for record in records if record["kind"] == "accepted" and record["qos"] == 2]
    assert len(accepted) == count_of_qos_2
    released = {record["exchange"] for record in records if record["kind"] == "put" and record.get("qos") == 2}
    assert len(released) <= count_of_qos_2


def _copies(records: list[dict[str, Any]], queue_name: str) -> list[dict[str, Any]]:
    return [record for record in records if record["kind"] == "put" and record["queue"] == queue_name]
