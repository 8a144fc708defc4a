"""Puts to topics and MQSUB, with a broker."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.broker.broker import Broker, BrokerRules
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.connection import Connection, ObjectName, Opened
from mq_adapters.embedded.mqi.getting import Got
from mq_adapters.embedded.mqi.options import GetOption, ObjectKind, OpenOption, PutOption, SubOption
from mq_adapters.embedded.mqi.topics import SubscriptionRequest
from mq_adapters.embedded.rights import NO_TOPICS, Rights, TopicRights
from mq_adapters.message import MQMT_REQUEST, MQRO_NAN, MQRO_PAN, Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import CONTROL_QUEUE, DEFAULT_MODEL_QUEUE, DEFAULT_STREAM
from tests.mq_adapters.broker.conftest import RecordingListener
from tests.mq_adapters.embedded.mqi.program import refused, request

MANAGED = SubOption.CREATE | SubOption.MANAGED


class PlantAlone:
    """A program that may use the topics below plant."""

    def may_publish(self, topic: str) -> bool:
        return topic.startswith("plant/")

    def may_subscribe(self, topic_filter: str) -> bool:
        return topic_filter.startswith("plant/")


class Program:
    """A program with rights on topics, and none on queues."""

    def __init__(self, engine: Engine, topics: TopicRights) -> None:
        self.application = Application(engine, "program", user="billing", rights=Rights())
        self.connection = Connection(engine, self.application, topics=topics)

    def open(self, topic: str, object_name: str = "") -> int:
        handles: list[int] = []
        wanted = ObjectName(kind=ObjectKind.TOPIC, name=object_name, topic=topic)
        self.connection.open(wanted, OpenOption.OUTPUT, lambda opened: handles.append(opened.handle))
        return handles[0]

    def publish(self, topic: str, body: bytes, options: int = PutOption.NO_SYNCPOINT) -> Message:
        message = Message(MessageDescriptor(persistence=1), body)
        ends: list[str] = []
        self.connection.put(self.open(topic), message, options, lambda: ends.append("put"))
        assert ends == ["put"]
        return message

    def subscribe(self, topic: str, options: int = MANAGED, selector: str = "") -> tuple[int, int]:
        """The handles of the managed queue and of the subscription."""
        made: list[tuple[Opened, int]] = []
        errors: list[QueueManagerError] = []
        asked = SubscriptionRequest(options=options, object_name="", topic=topic, selector=selector)
        self.connection.subscribe(asked, lambda opened, number: made.append((opened, number)), errors.append)
        if errors:
            raise errors[0]
        return made[0][0].handle, made[0][1]

    def get(self, handle: int) -> Got:
        results: list[Got | QueueManagerError] = []
        self.connection.get(handle, request(GetOption.NO_SYNCPOINT), results.append)
        assert isinstance(results[0], Got)
        return results[0]


@pytest.fixture
def engine(data_folder: Path) -> Iterator[Engine]:
    made = Engine.open(data_folder, name="RFHB")
    made.objects.define(Definition(object_type=ObjectType.QMODEL, name=DEFAULT_MODEL_QUEUE))
    Broker(made, listener=RecordingListener(), rules=BrokerRules(input_queues=(DEFAULT_STREAM,))).attach()
    yield made
    made.close()


@pytest.fixture
def program(engine: Engine) -> Iterator[Program]:
    made = Program(engine, PlantAlone())
    yield made
    made.connection.end()


def _managed(engine: Engine) -> list[str]:
    return [each.name for each in engine.queues() if each.name.startswith("SYSTEM.MANAGED.")]


def test_a_publication_reaches_each_subscription_once(program: Program) -> None:
    first, _ = program.subscribe("plant/#")
    second, _ = program.subscribe("plant/+/bar")
    published = program.publish("plant/7/bar", b"4.2")
    for handle in (first, second):
        got = program.get(handle)
        assert got.data.endswith(b"4.2")
        assert b"<Top>plant/7/bar</Top>" in got.data
        assert b"<psc>" not in got.data
        assert refused(lambda each=handle: program.get(each)) == ReasonCode.MQRC_NO_MSG_AVAILABLE  # type: ignore[misc]
    assert published.msg_id != bytes(24)


def test_a_request_by_topic_is_for_subscribers_to_answer(program: Program, engine: Engine) -> None:
    engine.define("REPLIES")
    handle, _ = program.subscribe("plant/#")
    descriptor = MessageDescriptor(msg_type=MQMT_REQUEST, report=MQRO_PAN | MQRO_NAN, reply_to_q="REPLIES")
    topic = program.open("plant/7")
    program.application.rights = Rights(put=("REPLIES",))
    program.connection.put(topic, Message(descriptor, b"who?"), PutOption.NO_SYNCPOINT, lambda: None)
    assert program.get(handle).data.endswith(b"who?")
    assert engine.queue("REPLIES").depth == 0


def test_a_publication_in_syncpoint_is_sent_with_the_commit(program: Program) -> None:
    handle, _ = program.subscribe("plant/#")
    program.publish("plant/7", b"lost", PutOption.SYNCPOINT)
    program.connection.back_out()
    program.publish("plant/7", b"kept", PutOption.SYNCPOINT)
    assert refused(lambda: program.get(handle)) == ReasonCode.MQRC_NO_MSG_AVAILABLE
    program.connection.commit(lambda: None)
    assert program.get(handle).data.endswith(b"kept")


def test_what_is_retained_comes_unless_only_new_publications_are_wanted(program: Program) -> None:
    program.publish("plant/7", b"old", PutOption.RETAIN)
    every, _ = program.subscribe("plant/#")
    new, _ = program.subscribe("plant/#", MANAGED | SubOption.NEW_PUBLICATIONS_ONLY)
    assert program.get(every).data.endswith(b"old")
    assert refused(lambda: program.get(new)) == ReasonCode.MQRC_NO_MSG_AVAILABLE


def test_a_subscription_ends_with_its_handle_and_its_queue_with_the_other(program: Program, engine: Engine) -> None:
    handle, number = program.subscribe("plant/#")
    program.publish("plant/7", b"before")
    program.connection.close(number)
    program.publish("plant/7", b"after")
    assert program.get(handle).data.endswith(b"before")
    assert refused(lambda: program.get(handle)) == ReasonCode.MQRC_NO_MSG_AVAILABLE
    assert len(_managed(engine)) == 1
    program.connection.close(handle)
    assert _managed(engine) == []
    assert refused(lambda: program.connection.close(number)) == ReasonCode.MQRC_HOBJ_ERROR


def test_everything_ends_with_the_connection(engine: Engine) -> None:
    program = Program(engine, PlantAlone())
    program.subscribe("plant/#")
    program.connection.end()
    assert _managed(engine) == []
    assert engine.objects.publish_subscribe is not None
    assert list(engine.objects.publish_subscribe().subscriptions()) == []


@pytest.mark.parametrize("topic", ["secret/1", "plan", "#", "+/7"])
def test_topics_are_a_right_of_their_own(program: Program, engine: Engine, topic: str) -> None:
    assert refused(lambda: program.open(topic)) == ReasonCode.MQRC_NOT_AUTHORIZED
    assert refused(lambda: program.subscribe(topic)) == ReasonCode.MQRC_NOT_AUTHORIZED
    assert _managed(engine) == []


def test_a_right_on_queues_is_no_right_on_topics(engine: Engine) -> None:
    program = Program(engine, NO_TOPICS)
    program.application.rights = Rights(put=("*", CONTROL_QUEUE, DEFAULT_STREAM))
    assert refused(lambda: program.open("plant/7")) == ReasonCode.MQRC_NOT_AUTHORIZED
    program.connection.end()


@pytest.mark.parametrize(
    ("options", "selector", "reason_code"),
    [
        (MANAGED | SubOption.DURABLE, "", ReasonCode.MQRC_DURABILITY_NOT_ALLOWED),
        (SubOption.RESUME | SubOption.MANAGED, "", ReasonCode.MQRC_NO_SUBSCRIPTION),
        (SubOption.CREATE, "", ReasonCode.MQRC_OPTIONS_ERROR),
        (MANAGED | SubOption.GROUP_SUB, "", ReasonCode.MQRC_OPTIONS_ERROR),
        (MANAGED | SubOption.READ_AHEAD, "", ReasonCode.MQRC_OPTIONS_ERROR),
        (MANAGED | SubOption.ALTERNATE_USER_AUTHORITY, "", ReasonCode.MQRC_NOT_AUTHORIZED),
        (MANAGED, "colour = 'blue'", ReasonCode.MQRC_SELECTION_NOT_AVAILABLE),
    ],
)
def test_what_is_not_carried_out_is_refused(
    program: Program, engine: Engine, options: int, selector: str, reason_code: ReasonCode
) -> None:
    assert refused(lambda: program.subscribe("plant/#", options, selector)) == reason_code
    assert _managed(engine) == []


@pytest.mark.parametrize("topic", ["", "plant/\0", "plant/" + "x" * 20_000])
def test_a_topic_that_is_none_is_refused(program: Program, engine: Engine, topic: str) -> None:
    for call in (lambda: program.publish(topic, b""), lambda: program.subscribe(topic)):
        with pytest.raises(QueueManagerError):
            call()
    assert _managed(engine) == []


def test_a_topic_object_comes_in_front(program: Program, engine: Engine) -> None:
    engine.objects.define(Definition(object_type=ObjectType.TOPIC, name="PLANT", said={"TOPICSTR": "plant"}))
    handle, _ = program.subscribe("plant/7/bar")
    topic = program.open("7/bar", object_name="PLANT")
    program.connection.put(topic, Message(MessageDescriptor(), b"4.2"), PutOption.NO_SYNCPOINT, lambda: None)
    assert program.get(handle).data.endswith(b"4.2")
    assert refused(lambda: program.open("7", object_name="NOWHERE")) == ReasonCode.MQRC_UNKNOWN_OBJECT_NAME


def test_a_program_that_goes_while_the_broker_is_asked_leaves_nothing(data_folder: Path) -> None:
    ends: list[object] = []

    async def story() -> None:
        engine = Engine.open(data_folder, name="RFHB", call_soon=asyncio.get_running_loop().call_soon)
        engine.objects.define(Definition(object_type=ObjectType.QMODEL, name=DEFAULT_MODEL_QUEUE))
        Broker(engine, listener=RecordingListener(), rules=BrokerRules(input_queues=(DEFAULT_STREAM,))).attach()
        program = Program(engine, PlantAlone())
        asked = SubscriptionRequest(options=MANAGED, object_name="", topic="plant/1")
        program.connection.subscribe(asked, lambda opened, _number: ends.append(opened), ends.append)
        program.connection.end()
        faults: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(context))
        await asyncio.sleep(0.05)
        assert (ends, faults, _managed(engine)) == ([], [], [])
        engine.close()

    asyncio.run(story())
