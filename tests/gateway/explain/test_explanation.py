"""What a topic becomes: routes, commands and their bytes, by the layout of the headers."""

from functools import partial

import pytest

import tests.headers
from gateway.config import Settings
from gateway.explain.command import Question
from gateway.explain.explanation import explain, with_assumed_target
from mappings.topics.topics import TopicError

mqrfh2 = partial(tests.headers.mqrfh2, format=tests.headers.NO_FORMAT)

TWO_TARGETS = {
    "header": "mqrfh",
    "target": [
        {"name": "OLD", "header": "mqrfh"},
        {"name": "NEW", "queue_manager": "QM2", "set_identity": True},
    ],
    "route": [
        {"target": "OLD", "topics": ["old/#"], "stream": "OLD.STREAM"},
        {"target": "NEW", "topics": ["new/#"]},
    ],
}


def test_without_a_configuration_a_topic_goes_to_one_target_with_the_default_names():
    found = explain(with_assumed_target(Settings()), Question(topic="plant/boiler", client="boiler-1", qos=2))
    publish, register, deregister = found.commands
    assert (publish.packet, publish.verb, publish.queue) == (
        "PUBLISH, QoS 2",
        "Publish",
        "SYSTEM.BROKER.DEFAULT.STREAM",
    )
    assert publish.header == mqrfh2(
        "<psc><Command>Publish</Command><Topic>plant/boiler</Topic></psc>",
        "<usr><rfhbQos dt='i4'>2</rfhbQos><rfhbClient>boiler-1</rfhbClient><rfhbSeq dt='i8'>1</rfhbSeq></usr>",
    )
    assert [command.queue for command in (register, deregister)] == ["SYSTEM.BROKER.CONTROL.QUEUE"] * 2
    assert register.descriptor.correl_id == deregister.descriptor.correl_id != bytes(24)
    assert [target.name for target, _ in found.sections] == ["IBMMQ"]


def test_each_target_gets_its_own_header_and_stream():
    settings = Settings.model_validate(TWO_TARGETS)
    (publish, *_) = explain(settings, Question(topic="old/pump", client="p")).commands
    assert publish.descriptor.format == b"MQHRF   "
    assert publish.queue == "OLD.STREAM"
    assert publish.header_text == (
        "MQPSCommand Publish MQPSPubOpts NoReg MQPSStreamName OLD.STREAM MQPSTopic old/pump"
        " rfhbQos 1 rfhbClient p rfhbSeq 1",
    )
    (publish, *_) = explain(settings, Question(topic="new/pump", user="otto")).commands
    assert (publish.target, publish.descriptor.user_identifier) == ("NEW", "otto")


def test_what_no_route_takes_stays_at_the_embedded_broker():
    publish, delete, register, deregister = explain(
        Settings.model_validate(TWO_TARGETS), Question(topic="other/pump", qos=0, retain=True)
    ).commands
    assert (delete.packet, delete.queue) == ("PUBLISH, RETAIN, no payload", "SYSTEM.BROKER.DEFAULT.STREAM")
    assert delete.header_text == ("MQPSCommand DeletePub MQPSTopic other/pump",)
    assert (publish.target, publish.queue) == ("", "SYSTEM.BROKER.DEFAULT.STREAM")
    assert publish.header_text == ("MQPSCommand Publish MQPSPubOpts RetainPub MQPSPubOpts NoReg MQPSTopic other/pump",)
    assert publish.descriptor.persistence == 0
    assert register.header_text == (
        "MQPSCommand RegSub MQPSRegOpts CorrelAsId MQPSRegOpts InformIfRet MQPSQName RFHBRIDGE.SUBSCRIBER "
        "MQPSQMgrName RFHBRIDGE MQPSTopic other/pump",
    )
    assert deregister.verb == "DeregSub"


def test_a_filter_is_registered_at_every_broker_that_may_have_its_topics():
    found = explain(Settings.model_validate(TWO_TARGETS), Question(topic="+/pump"))
    assert found.route is None
    assert [(command.target, command.verb) for command in found.commands] == [
        ("OLD", "RegSub"),
        ("OLD", "DeregSub"),
        ("NEW", "RegSub"),
        ("NEW", "DeregSub"),
        ("", "RegSub"),
        ("", "DeregSub"),
    ]
    assert [target.name for target, _ in found.sections] == ["OLD", "NEW"]


def test_a_shared_subscription_is_registered_for_its_group_without_what_is_retained():
    settings = Settings.model_validate(TWO_TARGETS)
    found = explain(settings, Question(topic="$share/night/new/pump", client="a"))
    assert found.route is None
    register, deregister = found.commands
    assert register.header_text == (
        "<psc><Command>RegSub</Command><RegOpt>CorrelAsId</RegOpt><RegOpt>NewPubsOnly</RegOpt><RegOpt>InformIfRet</RegOpt>"
        "<QName>RFHBRIDGE.SUBSCRIBER</QName><QMgrName>QM2</QMgrName><Topic>new/pump</Topic></psc>",
    )
    assert deregister.topics == ("new/pump",)
    other = explain(settings, Question(topic="$share/night/new/pump", client="b")).commands
    assert [command.descriptor.correl_id for command in other] == [register.descriptor.correl_id] * 2
    (here, _) = explain(settings, Question(topic="$share/night/other/+")).commands
    assert "MQPSRegOpts NewPubsOnly" in here.header_text[0]


@pytest.mark.parametrize("topic", ["$share/", "$share/night", "$share//a", "$share/ni+ght/a", "$share/night/"])
def test_half_a_shared_subscription_is_none(topic: str):
    with pytest.raises(TopicError):
        explain(Settings(), Question(topic=topic))


def test_a_retained_topic_is_deleted_by_a_deletepub():
    commands = explain(with_assumed_target(Settings()), Question(topic="a/b", retain=True)).commands
    assert [command.verb for command in commands] == ["Publish", "DeletePub", "RegSub", "DeregSub"]
    assert commands[0].header_text[0] == (
        "<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a/b</Topic></psc>"
    )
