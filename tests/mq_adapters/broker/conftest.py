"""A queue manager with a broker, headers typed byte by byte from their layouts, and a listener that remembers."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from mappings.commands.response import Completion
from mq_adapters.broker import update, updates
from mq_adapters.broker.broker import Broker, BrokerRules
from mq_adapters.delivery_listener import Delivery, TakenCommand
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import Departure, UnitOfWork
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.system_queues import CONTROL_QUEUE, DEFAULT_STREAM
from tests.mq_adapters.broker.on_a_loop import UNIT, OnALoop

MQRFH = b"MQHRF   "
MQRFH2 = b"MQHRF2  "
START_US = 1_800_000_000_000_000


class RecordingListener:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.copies: list[tuple[Message, Message, Delivery]] = []
        self.commands: list[tuple[Message, TakenCommand, Completion, int]] = []
        self.refusals: list[tuple[str, int]] = []
        self.dead_letters: list[tuple[Message, str, int]] = []
        self.drops: list[tuple[str, str]] = []

    def copied(self, unit: UnitOfWork, publication: Message, copy: Message, delivery: Delivery) -> None:
        self.copies.append((publication, copy, delivery))

    def commanded(
        self, unit: UnitOfWork, message: Message, taken: TakenCommand, completion: Completion, reason_code: int
    ) -> None:
        self.commands.append((message, taken, completion, reason_code))

    def refused(self, unit: UnitOfWork, command: Message, verb: str, reason_code: int) -> None:
        self.refusals.append((verb, reason_code))

    def dead_lettered(
        self, unit: UnitOfWork, message: Message, dead_letter: Message, queue_name: str, reason_code: int
    ) -> None:
        self.dead_letters.append((message, queue_name, reason_code))

    def dropped(self, unit: UnitOfWork, message: Message, queue_name: str, reason: str) -> None:
        self.drops.append((queue_name, reason))


class Station:
    """A queue manager named QM1 with a broker, a clock that stands still, and queues OLD, NEW and REPLY."""

    def __init__(self, folder: Path, streams: tuple[str, ...], rules: BrokerRules | None = None) -> None:
        self.folder = folder
        self.rules = rules or BrokerRules(input_queues=streams)
        self.now_us = START_US
        self.listener = RecordingListener()
        self.open()

    def open(self) -> None:
        self.engine = Engine.open(self.folder, name="QM1", now_us=lambda: self.now_us)
        for name in ("OLD", "NEW", "REPLY"):
            self.engine.ensure(name, "")
        self.broker = Broker(self.engine, listener=self.listener, rules=self.rules)
        self.broker.attach()

    def restart(self) -> None:
        self.engine.close()
        self.open()

    def end_subscriptions(self, queue_name: str) -> None:
        """Ends every subscription whose publications go to a queue, as an operator does."""
        administration = self.engine.objects.publish_subscribe()
        unit = self.engine.begin()
        for found in administration.subscriptions():
            if found.identity.queue_name == queue_name:
                administration.delete(unit, found.number)
        self.engine.submit(unit)

    def pass_time(self, seconds: float) -> None:
        self.now_us += int(seconds * 1_000_000)

    # -- headers, typed from the layouts of MQRFH (32 bytes, then the string) and MQRFH2 (36 bytes, then the folders) --

    @staticmethod
    def mqrfh(string: str, body: bytes = b"", *, order: str = "<", next_format: bytes = b"MQSTR   ") -> bytes:
        text = string.encode()
        text += b" " * (-len(text) % 4)
        encoding = 546 if order == "<" else 273
        return b"RFH " + struct.pack(order + "iiii8si", 1, 32 + len(text), encoding, 1208, next_format, 0) + text + body

    @staticmethod
    def mqrfh2(*folders: str, body: bytes = b"", order: str = "<", next_ccsid: int = 1208) -> bytes:
        variable = b""
        for folder in folders:
            text = folder.encode()
            text += b" " * (-len(text) % 4)
            variable += struct.pack(order + "i", len(text)) + text
        encoding = 546 if order == "<" else 273
        fixed = struct.pack(order + "iiii8sii", 2, 36 + len(variable), encoding, next_ccsid, b"MQSTR   ", 0, 1208)
        return b"RFH " + fixed + variable + body

    # -- messages ------------------------------------------------------------------------------------------------------

    def put(
        self, queue_name: str, format: bytes, data: bytes, *, origin: bytes = b"", **fields: object
    ) -> tuple[Message, UnitOfWork]:
        """Puts a message in a unit of work of its own; returns both."""
        descriptor = MessageDescriptor(**{"format": format, "persistence": 1, **fields})  # type: ignore[arg-type]  # by name
        message = Message(descriptor, data, origin)
        unit = self.engine.begin()
        self.engine.put(unit, self.engine.queue(queue_name), message)
        self.engine.submit(unit)
        return message, unit

    def control(self, header: str, **fields: object) -> Message:
        """Sends a command to the control queue as a request: MQRFH, or MQRFH2 where it begins with `<`."""
        format, data = self._command(header)
        fields = {"msg_type": 1, "reply_to_q": "REPLY", **fields}
        return self.put(CONTROL_QUEUE, format, data, **fields)[0]

    def publish(self, header: str, body: bytes = b"", *, queue_name: str = DEFAULT_STREAM, **fields: object) -> Message:
        """Puts a publication, or a DeletePub, on a stream queue as a datagram."""
        format, data = self._command(header, body)
        return self.put(queue_name, format, data, **fields)[0]

    def _command(self, header: str, body: bytes = b"") -> tuple[bytes, bytes]:
        if header.startswith("<"):
            return MQRFH2, self.mqrfh2(header, body=body)
        return MQRFH, self.mqrfh(header, body)

    def take_all(self, queue_name: str) -> list[Message]:
        """Everything on a queue, oldest first, taken off."""
        queue = self.engine.queue(queue_name)
        found = []
        while (message := self.engine.take(queue)) is not None:
            unit = self.engine.begin()
            unit.remove(queue, message, Departure.TAKEN)
            self.engine.submit(unit)
            found.append(message)
        return found

    def bodies(self, queue_name: str) -> list[bytes]:
        return [message.body for message in self.take_all(queue_name)]

    def subscribe_old(self, topic: str, options: str = "", **fields: object) -> None:
        """An MQRFH subscription of queue OLD, quietly."""
        self.control(f"MQPSCommand RegSub {options} MQPSQName OLD MQPSTopic {topic}", **fields)
        self._expect_ok()

    def subscribe_new(self, topic: str, options: str = "", **fields: object) -> None:
        """An MQRFH2 subscription of queue NEW, quietly."""
        self.control(f"<psc><Command>RegSub</Command>{options}<QName>NEW</QName><Topic>{topic}</Topic></psc>", **fields)
        self._expect_ok()

    def _expect_ok(self) -> None:
        answers = self.bodies("REPLY")
        assert len(answers) == 1
        assert b"MQPSCompCode 0 " in answers[0] or b"<Completion>ok</Completion>" in answers[0], answers


@pytest.fixture
def station(memory_folder: Path) -> Iterator[Station]:
    """A fresh queue manager that also serves stream SAMPLE.BROKER.RESULTS.STREAM."""
    made = Station(memory_folder, ("SAMPLE.BROKER.RESULTS.STREAM",))
    yield made
    made.engine.close()


@pytest.fixture(scope="session")
def station_class() -> type[Station]:
    """For tests that make several queue managers."""
    return Station


@pytest.fixture
def loop_station(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OnALoop]:
    """A station whose broker has an event loop, with short turns."""
    monkeypatch.setattr(update, "_COPIES_IN_A_UNIT", UNIT)
    monkeypatch.setattr(updates, "_MOST_S", 0.0)
    made = type("LoopStation", (OnALoop, Station), {})(data_folder, ())
    yield made
    made.engine.close()
