"""Commands that programs put on the queues of the broker, and the rights that decide about them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mappings.commands.command import (
    Command,
    DeletePublication,
    DeregisterSubscriber,
    Publish,
    RegisterSubscriber,
    RequestUpdate,
    write_command,
)
from mappings.commands.options import RegistrationOption
from mappings.table import Dialect
from mq_adapters.embedded.mqi.options import OpenOption, PutOption
from mq_adapters.message import MQMT_REQUEST, Message, MessageDescriptor
from mq_adapters.reasons import ReasonCode
from mq_adapters.system_queues import CONTROL_QUEUE, DEFAULT_STREAM
from tests.mq_adapters.embedded.mqi.program import refused
from tests.mq_adapters.embedded.mqi.subscriber import DURABLE, House, Subscriber

FORMATS = {Dialect.MQRFH: b"MQHRF   ", Dialect.MQRFH2: b"MQHRF2  "}
RIGHTS = {"put": (CONTROL_QUEUE, DEFAULT_STREAM), "get": ("OWN",)}
CORRELATED = RegistrationOption.CORREL_ID_AS_IDENTITY
BY_NAME = RegistrationOption.NO_ALTERATION | RegistrationOption.JOIN_EXCLUSIVE | RegistrationOption.VARIABLE_USER_ID


@pytest.fixture
def house(data_folder: Path) -> Iterator[House]:
    made = House(data_folder)
    for name in ("OWN", "OTHERS"):
        made.engine.define(name)
    yield made
    made.close()


def put(
    program: Subscriber, command: Command, *, queue: str = CONTROL_QUEUE, to: Dialect = Dialect.MQRFH2, **fields: object
) -> None:
    descriptor = MessageDescriptor(format=FORMATS[to], encoding=273).replace(**fields)
    message = Message(descriptor, write_command(command, to, encoding=273))
    ends: list[str] = []
    handle = program.open_queue(queue, OpenOption.OUTPUT)
    program.connection.put(handle, message, PutOption.NO_SYNCPOINT, lambda: ends.append("put"))
    assert ends == ["put"]


def topics(house: House) -> list[str]:
    administration = house.engine.objects.publish_subscribe
    assert administration is not None
    return sorted(each.topic for each in administration().subscriptions())


@pytest.mark.parametrize("to", Dialect)
def test_a_program_subscribes_by_command_to_its_topics_on_its_queues(house: House, to: Dialect) -> None:
    program = house.connect(**RIGHTS)
    topic, secret = ("plant/*", "*") if to is Dialect.MQRFH else ("plant/#", "#")
    put(program, RegisterSubscriber(topics=(topic,), queue_name="OWN"), to=to)
    assert topics(house) == [topic]
    for command in (
        RegisterSubscriber(topics=(secret,), queue_name="OWN"),
        RegisterSubscriber(topics=(topic, "secret/1"), queue_name="OWN"),
        RegisterSubscriber(topics=(topic,), queue_name="OTHERS"),
        RequestUpdate(topics=(secret,), queue_name="OWN"),
    ):
        assert refused(lambda asked=command: put(program, asked, to=to)) == ReasonCode.MQRC_NOT_AUTHORIZED  # type: ignore[misc]
    assert topics(house) == [topic]
    put(program, DeregisterSubscriber(topics=(topic,), queue_name="OWN"), to=to)
    assert topics(house) == []


@pytest.mark.parametrize("to", Dialect)
def test_a_program_publishes_by_command_to_its_topics(house: House, to: Dialect) -> None:
    program = house.connect(**RIGHTS)
    opened = program.subscribe("plant/#")
    put(program, Publish(topics=("plant/1",)), queue=DEFAULT_STREAM, to=to)
    assert len(program.all(opened.handle)) == 1
    for command in (
        Publish(topics=("secret/1",)),
        Publish(topics=("plant/1", "secret/1")),
        DeletePublication(topics=("secret/1",)),
    ):
        assert refused(lambda asked=command: put(program, asked, queue=DEFAULT_STREAM, to=to)) == (  # type: ignore[misc]
            ReasonCode.MQRC_NOT_AUTHORIZED
        )
    assert program.all(opened.handle) == []


def test_answers_come_to_queues_of_the_program_alone(house: House) -> None:
    program = house.connect(**RIGHTS)
    asked = {"msg_type": MQMT_REQUEST, "reply_to_q": "OTHERS"}
    command = RegisterSubscriber(topics=("plant/1",), queue_name="OWN")
    assert refused(lambda: put(program, command, **asked)) == ReasonCode.MQRC_NOT_AUTHORIZED
    put(program, command, **{**asked, "reply_to_q": "OWN"})
    assert house.engine.queue("OWN").depth == 1


def test_a_subscription_of_another_application_is_not_touched(house: House) -> None:
    options = CORRELATED | RegistrationOption.VARIABLE_USER_ID
    owner, other = house.connect(**RIGHTS), house.connect("payroll", **RIGHTS)
    kept = RegisterSubscriber(
        topics=("plant/1",), queue_name="OWN", registration_options=options, subscription_name="kept"
    )
    put(owner, kept, correl_id=b"c" * 24)
    opened = owner.subscribe("plant/2", DURABLE, name="mqsub")
    for command in (
        kept,
        DeregisterSubscriber(topics=("plant/1",), queue_name="OWN", registration_options=options),
        DeregisterSubscriber(subscription_name="kept", registration_options=options),
        DeregisterSubscriber(subscription_name="mqsub", registration_options=options),
        RegisterSubscriber(
            topics=("plant/1",), subscription_name="kept", registration_options=BY_NAME, subscription_identity="i"
        ),
        RegisterSubscriber(topics=("plant/1",), queue_name=opened.subscription.queue.name),
    ):
        assert refused(lambda asked=command: put(other, asked, correl_id=b"c" * 24)) == ReasonCode.MQRC_NOT_AUTHORIZED  # type: ignore[misc]
    put(owner, DeregisterSubscriber(subscription_name="kept", registration_options=options), correl_id=b"c" * 24)
    assert topics(house) == ["plant/2"]


def test_a_general_pattern_leads_no_command_to_anothers_managed_queue(house: House) -> None:
    evil = house.connect("evil", put=(CONTROL_QUEUE, DEFAULT_STREAM), get=("*",), browse=("*",))
    opened = house.connect("victim", get=("OWN",)).subscribe("plant/1", DURABLE, name="kept")
    name = opened.subscription.queue.name
    register = RegisterSubscriber(topics=("plant/evil",), queue_name=name)
    for command, reply_queue in (
        (register, ""),
        (RegisterSubscriber(topics=("plant/evil",)), name),
        (RequestUpdate(topics=("plant/evil",), queue_name=name), ""),
        (RegisterSubscriber(topics=("plant/evil",), queue_name="RFHBRIDGE.ERRORS"), ""),
    ):
        assert refused(lambda asked=command, to=reply_queue: put(evil, asked, reply_to_q=to)) == (  # type: ignore[misc]
            ReasonCode.MQRC_NOT_AUTHORIZED
        )
    evil.publish("plant/evil", b"one")
    assert (topics(house), opened.subscription.queue.depth) == (["plant/1"], 0)
    put(house.connect("jms", put=RIGHTS["put"], get=("SYSTEM.MANAGED.*",)), register)
    assert topics(house) == ["plant/1", "plant/evil"]


def test_a_general_pattern_sends_no_answers_to_system_queues(house: House) -> None:
    command = RegisterSubscriber(topics=("plant/1",), queue_name="OWN")
    house.engine.define("SYSTEM.JMS.REPORT.QUEUE")
    asked = {"msg_type": MQMT_REQUEST, "reply_to_q": "SYSTEM.JMS.REPORT.QUEUE"}
    to_the_broker = RIGHTS["put"]
    for patterns in ({"put": ("*", *to_the_broker), "get": ("*",)}, {"put": to_the_broker, "get": ("S*", "OWN")}):
        evil = house.connect("evil", **patterns)
        assert refused(lambda each=evil: put(each, command, **asked)) == ReasonCode.MQRC_NOT_AUTHORIZED  # type: ignore[misc]
    assert topics(house) == []
    put(house.connect(put=("*", *to_the_broker), get=("OWN", "SYSTEM.JMS.*")), command, **asked)
    assert house.engine.queue("SYSTEM.JMS.REPORT.QUEUE").depth == 1


def test_jms_takes_hold_of_its_own_subscription_without_its_topic(house: House) -> None:
    program = house.connect(**RIGHTS)
    options = CORRELATED | BY_NAME
    said = {"subscription_name": "kept", "subscription_identity": "i", "queue_name": "OWN"}
    put(program, RegisterSubscriber(topics=("plant/1",), registration_options=options, **said), correl_id=b"c" * 24)
    put(program, RegisterSubscriber(topics=("JMS:SYS:Unknown",), registration_options=BY_NAME, **said))
    assert topics(house) == ["plant/1"]


def test_a_stream_that_is_not_known_leaves_nothing_behind(house: House) -> None:
    program = house.connect(**RIGHTS)
    spaces = house.broker._registry._spaces
    before = set(spaces)
    for number in range(3):
        asked = {"stream_name": f"STREAM.{number}", "subscription_name": "kept", "queue_name": "OWN"}
        put(program, RegisterSubscriber(topics=("plant/1",), **asked), to=Dialect.MQRFH)
        put(program, DeregisterSubscriber(topics=("plant/1",), **asked), to=Dialect.MQRFH)
    assert set(spaces) == before
    assert topics(house) == []


def test_what_cannot_be_read_is_the_brokers(house: House) -> None:
    program = house.connect(**RIGHTS)
    for format, body in ((b"MQHRF2  ", b"RFH "), (b"MQSTR   ", b"hello"), (b"MQHRF   ", b"")):
        handle = program.open_queue(CONTROL_QUEUE, OpenOption.OUTPUT)
        message = Message(MessageDescriptor(format=format), body)
        program.connection.put(handle, message, PutOption.NO_SYNCPOINT, lambda: None)
    assert topics(house) == []
    assert house.engine.queue("SYSTEM.DEAD.LETTER.QUEUE").depth == 3
