"""A publication, its copies, the answer, what is retained and the audit notes are one commit: all there, or nothing."""

import shutil
from pathlib import Path

import pytest

from mq_adapters.broker.broker import Broker
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.system_queues import AUDIT_QUEUE, CONTROL_QUEUE, DEFAULT_STREAM

QUEUES = ("OLD", "NEW", "REPLY")
RETAINED = "<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a</Topic></psc>"


class NotingListener:
    """Notes each fact in the unit of work, as the gateway does."""

    def copied(self, unit, publication, copy, delivery) -> None:
        unit.notes.append(("copied", delivery.queue_name))

    def commanded(self, unit, message, taken, completion, reason_code) -> None:
        unit.notes.append(("commanded", taken.verb))

    def refused(self, unit, command, verb, reason_code) -> None:
        unit.notes.append(("refused", verb, reason_code))

    def dead_lettered(self, unit, message, dead_letter, queue_name, reason_code) -> None:
        unit.notes.append(("dead_lettered", queue_name))

    def dropped(self, unit, message, queue_name, reason) -> None:
        unit.notes.append(("dropped", queue_name))


class Turns:
    """An event loop that runs what is due when it is told to."""

    def __init__(self) -> None:
        self.due = []

    def run(self) -> None:
        while self.due:
            self.due.pop(0)()


def engine_with_broker(folder: Path, turns: Turns) -> Engine:
    engine = Engine.open(folder, name="QM1", call_soon=turns.due.append)
    engine.seal_notes = lambda _batch, notes: repr(notes).encode()
    for name in QUEUES:
        engine.ensure(name, "")
    Broker(engine, listener=NotingListener()).attach()
    turns.run()
    return engine


def what_is_there(folder: Path) -> dict[str, int]:
    """Messages by queue, and retained publications, of a copy of the store: what a crash now would leave."""
    copy = folder.with_name("after-the-crash")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*.sock", "lock"))
    engine = Engine.open(copy)
    found = {name: engine.queue(name).depth for name in (*QUEUES, AUDIT_QUEUE, DEFAULT_STREAM, CONTROL_QUEUE)}
    found["retained"] = len(engine.states(StateKind.BROKER_RETAINED))
    found["subscriptions"] = len(engine.states(StateKind.BROKER_SUBSCRIPTION))
    engine.close()
    return found


@pytest.mark.parametrize("way", ["put", "waiting"])
def test_crash_before_the_commit_leaves_nothing_and_after_it_everything(tmp_path, station_class, way):
    folder, turns = tmp_path / "store", Turns()
    folder.mkdir()
    engine = engine_with_broker(folder, turns)

    def put(queue_name: str, format: bytes, data: bytes, **fields: object) -> None:
        unit = engine.begin()
        descriptor = MessageDescriptor(format=format, persistence=1, **fields)
        engine.put(unit, engine.queue(queue_name), Message(descriptor, data))
        engine.submit(unit)

    regsub = "<psc><Command>RegSub</Command><QName>NEW</QName><Topic>a</Topic></psc>"
    put(CONTROL_QUEUE, b"MQHRF2  ", station_class.mqrfh2(regsub))
    put(CONTROL_QUEUE, b"MQHRF   ", station_class.mqrfh("MQPSCommand RegSub MQPSQName OLD MQPSTopic a"))
    turns.run()
    before = what_is_there(folder)
    assert (before["subscriptions"], before["OLD"], before["NEW"]) == (2, 0, 0)
    asked = {"msg_type": 1, "reply_to_q": "REPLY"}
    if way == "waiting":
        engine.queue(DEFAULT_STREAM).handler = None
        put(DEFAULT_STREAM, b"MQHRF2  ", station_class.mqrfh2(RETAINED, body=b"x"), **asked)
        turns.run()
        before = what_is_there(folder)
        assert before[DEFAULT_STREAM] == 1
        Broker(engine, listener=NotingListener()).attach()
    else:
        put(DEFAULT_STREAM, b"MQHRF2  ", station_class.mqrfh2(RETAINED, body=b"x"), **asked)
    assert what_is_there(folder) == before
    turns.run()
    after = what_is_there(folder)
    changes = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    waited = {DEFAULT_STREAM: -1} if way == "waiting" else {}
    assert changes == {"OLD": 1, "NEW": 1, "REPLY": 1, AUDIT_QUEUE: 1, "retained": 1} | waited
    engine.close()
