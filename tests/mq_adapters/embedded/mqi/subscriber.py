"""A program with rights on topics, which publishes and subscribes at an engine with a broker."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.broker.broker import Broker, BrokerRules
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.connection import Connection, OpenedSubscription
from mq_adapters.embedded.mqi.getting import Got
from mq_adapters.embedded.mqi.open_object import ObjectName
from mq_adapters.embedded.mqi.options import GetOption, ObjectKind, OpenOption, PutOption, SubOption
from mq_adapters.embedded.mqi.subscription_request import SubscriptionRequest
from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.embedded.rights import Rights, TopicRights
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import DEFAULT_MODEL_QUEUE, DEFAULT_STREAM
from tests.mq_adapters.broker.conftest import RecordingListener
from tests.mq_adapters.embedded.mqi.program import request

MANAGED = SubOption.CREATE | SubOption.MANAGED
DURABLE = MANAGED | SubOption.DURABLE
RESUMED = SubOption.RESUME | SubOption.MANAGED | SubOption.DURABLE


class PlantAlone:
    """A program that may use the topics below plant."""

    def may_publish(self, topic: str) -> bool:
        return topic.startswith("plant/")

    def may_subscribe(self, topic_filter: str) -> bool:
        return topic_filter.startswith("plant/")


class House:
    """An engine with a broker, and programs that are connected to it. It can be opened again.

    With `call_soon` of an event loop it commits and sends retained publications in later turns.
    """

    def __init__(self, folder: Path, call_soon: Callable[[Callable[[], None]], object] | None = None) -> None:
        self.folder = folder
        self.call_soon = call_soon
        self.listener = RecordingListener()
        self.programs: list[Subscriber] = []
        self.now_us = 1_800_000_000_000_000
        self.open()

    def open(self) -> None:
        self.engine = Engine.open(self.folder, name="RFHB", now_us=lambda: self.now_us, call_soon=self.call_soon)
        if self.engine.objects.find_queue(DEFAULT_MODEL_QUEUE) is None:
            self.engine.objects.define(Definition(object_type=ObjectType.QMODEL, name=DEFAULT_MODEL_QUEUE))
        rules = BrokerRules(input_queues=(DEFAULT_STREAM,))
        self.broker = Broker(self.engine, listener=self.listener, rules=rules, call_soon=self.call_soon)
        self.broker.attach()

    def connect(
        self, user: str = "billing", topics: TopicRights | None = None, number: int = 0, **patterns: tuple[str, ...]
    ) -> "Subscriber":
        made = Subscriber(self.engine, topics or PlantAlone(), user=user, rights=Rights(**patterns), number=number)
        self.programs.append(made)
        return self.programs[-1]

    def restart(self) -> None:
        """The process dies, and another one opens the store."""
        self.engine.close()
        self.programs.clear()
        self.open()

    def close(self) -> None:
        for program in self.programs:
            program.connection.end()
        self.engine.close()

    def mqsc(self, command: str) -> list[str]:
        """The lines that an operator's command prints."""
        return list(CommandServer(self.engine, user="operator").execute(command).lines)

    def queues(self) -> list[str]:
        """The queues that the queue manager has made for programs."""
        made = ("SYSTEM.MANAGED.", "SYSTEM.RFHBRIDGE.ANSWER.")
        return [each.name for each in self.engine.queues() if each.name.startswith(made)]


class Subscriber:
    """A program with rights on topics; each call ends before it returns."""

    def __init__(
        self,
        engine: Engine,
        topics: TopicRights,
        *,
        user: str = "billing",
        rights: Rights | None = None,
        number: int = 0,
    ) -> None:
        """`number` is that of its connection in the trail."""
        self.application = Application(engine, "program", user=user, rights=rights or Rights(), program=number)
        self.connection = Connection(engine, self.application, topics=topics)

    def open(self, topic: str, object_name: str = "") -> int:
        return self._open(ObjectName(kind=ObjectKind.TOPIC, name=object_name, topic=topic), OpenOption.OUTPUT)

    def open_queue(self, name: str, options: int = OpenOption.INPUT_SHARED) -> int:
        return self._open(ObjectName(kind=ObjectKind.Q, name=name), options)

    def _open(self, wanted: ObjectName, options: int) -> int:
        handles: list[int] = []
        self.connection.open(wanted, options, lambda opened: handles.append(opened.handle))
        return handles[0]

    def publish(self, topic: str, body: bytes, options: int = PutOption.NO_SYNCPOINT, **fields: object) -> Message:
        message = Message(MessageDescriptor(persistence=1).replace(**fields), body)
        ends: list[str] = []
        self.connection.put(self.open(topic), message, options, lambda: ends.append("put"))
        assert ends == ["put"]
        return message

    def subscribe(self, topic: str, options: int = MANAGED, **said: Any) -> OpenedSubscription:
        """The handles of the queue and of the subscription."""
        made: list[OpenedSubscription] = []
        errors: list[QueueManagerError] = []
        asked = SubscriptionRequest(**{"options": options, "object_name": "", "topic": topic, **said})
        self.connection.subscribe(asked, made.append, errors.append)
        if errors:
            raise errors[0]
        return made[0]

    def request_publications(self, number: int) -> int:
        counts: list[int] = []
        errors: list[QueueManagerError] = []
        self.connection.request_publications(number, counts.append, errors.append)
        if errors:
            raise errors[0]
        return counts[0]

    def get(self, handle: int) -> Got:
        results: list[Got | QueueManagerError] = []
        self.connection.get(handle, request(GetOption.NO_SYNCPOINT), results.append)
        assert isinstance(results[0], Got)
        return results[0]

    def all(self, handle: int) -> list[bytes]:
        """Takes everything; the last three bytes of each message."""
        found: list[bytes] = []
        for _ in range(1_000):
            results: list[Got | QueueManagerError] = []
            try:
                self.connection.get(handle, request(GetOption.NO_SYNCPOINT), results.append)
            except QueueManagerError as error:
                if error.reason_code == ReasonCode.MQRC_NO_MSG_AVAILABLE:
                    break
                raise
            (got,) = results
            assert isinstance(got, Got)
            found.append(got.data[-3:])
        return found

    def close(self, opened: OpenedSubscription, options: int = 0) -> None:
        """Closes both handles, as JMS does."""
        self.connection.close(opened.number, options)
        self.connection.close(opened.handle)
