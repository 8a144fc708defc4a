"""Puts to topics, with a broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.options import PutOption
from mq_adapters.embedded.rights import NO_TOPICS, Rights
from mq_adapters.message import MQMT_REQUEST, MQRO_NAN, MQRO_PAN, Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import CONTROL_QUEUE, DEFAULT_STREAM
from tests.mq_adapters.embedded.mqi.program import refused
from tests.mq_adapters.embedded.mqi.subscriber import House, PlantAlone, Subscriber


@pytest.fixture
def engine(data_folder: Path) -> Iterator[Engine]:
    house = House(data_folder)
    yield house.engine
    house.close()


@pytest.fixture
def program(engine: Engine) -> Iterator[Subscriber]:
    made = Subscriber(engine, PlantAlone())
    yield made
    made.connection.end()


def test_a_publication_reaches_each_subscription_once(program: Subscriber) -> None:
    first = program.subscribe("plant/#").handle
    second = program.subscribe("plant/+/bar").handle
    published = program.publish("plant/7/bar", b"4.2")
    for handle in (first, second):
        got = program.get(handle)
        assert got.data.endswith(b"4.2")
        assert b"<Top>plant/7/bar</Top>" in got.data
        assert b"<psc>" not in got.data
        assert program.all(handle) == []
    assert published.msg_id != bytes(24)


def test_a_request_by_topic_is_for_subscribers_to_answer(program: Subscriber, engine: Engine) -> None:
    engine.define("REPLIES")
    handle = program.subscribe("plant/#").handle
    descriptor = MessageDescriptor(msg_type=MQMT_REQUEST, report=MQRO_PAN | MQRO_NAN, reply_to_q="REPLIES")
    topic = program.open("plant/7")
    program.application.rights = Rights(put=("REPLIES",))
    program.connection.put(topic, Message(descriptor, b"who?"), PutOption.NO_SYNCPOINT, lambda: None)
    assert program.get(handle).data.endswith(b"who?")
    assert engine.queue("REPLIES").depth == 0


def test_a_publication_in_syncpoint_is_sent_with_the_commit(program: Subscriber) -> None:
    handle = program.subscribe("plant/#").handle
    program.publish("plant/7", b"lost", PutOption.SYNCPOINT)
    program.connection.back_out()
    program.publish("plant/7", b"kept", PutOption.SYNCPOINT)
    assert program.all(handle) == []
    program.connection.commit(lambda: None)
    assert program.get(handle).data.endswith(b"kept")


@pytest.mark.parametrize("topic", ["secret/1", "plan", "#", "+/7"])
def test_topics_are_a_right_of_their_own(program: Subscriber, topic: str) -> None:
    assert refused(lambda: program.open(topic)) == ReasonCode.MQRC_NOT_AUTHORIZED


def test_a_right_on_queues_is_no_right_on_topics(engine: Engine) -> None:
    program = Subscriber(engine, NO_TOPICS)
    program.application.rights = Rights(put=("*", CONTROL_QUEUE, DEFAULT_STREAM))
    assert refused(lambda: program.open("plant/7")) == ReasonCode.MQRC_NOT_AUTHORIZED
    program.connection.end()


@pytest.mark.parametrize("topic", ["", "plant/\0", "plant/" + "x" * 20_000])
def test_a_topic_that_is_none_is_refused(program: Subscriber, topic: str) -> None:
    with pytest.raises(QueueManagerError):
        program.publish(topic, b"")


def test_a_topic_object_comes_in_front(program: Subscriber, engine: Engine) -> None:
    engine.objects.define(Definition(object_type=ObjectType.TOPIC, name="PLANT", said={"TOPICSTR": "plant"}))
    handle = program.subscribe("plant/7/bar").handle
    topic = program.open("7/bar", object_name="PLANT")
    program.connection.put(topic, Message(MessageDescriptor(), b"4.2"), PutOption.NO_SYNCPOINT, lambda: None)
    assert program.get(handle).data.endswith(b"4.2")
    assert refused(lambda: program.open("7", object_name="NOWHERE")) == ReasonCode.MQRC_UNKNOWN_OBJECT_NAME
