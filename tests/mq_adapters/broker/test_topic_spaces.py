"""Streams in both dialects, and subscription points: which publication reaches which subscription."""

from pathlib import Path

import pytest

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.broker.broker import STREAM_NAMELIST, BrokerRules
from mq_adapters.broker.topic_spaces import BrokerDialect
from mq_adapters.embedded.unit_of_work import StateKind

DEFAULT = "SYSTEM.BROKER.DEFAULT.STREAM"
WMB, MQ6 = BrokerDialect.WMB, BrokerDialect.MQ6


@pytest.fixture
def make_station(station_class, tmp_path: Path):
    """Makes stations with rules of a broker; closes them."""
    made = []

    def make(**rules):
        station = station_class(tmp_path / str(len(made)), (), BrokerRules(**rules))
        made.append(station)
        return station

    yield make
    for station in made:
        station.engine.close()


@pytest.fixture
def wmb(make_station):
    return make_station(dialect=WMB, input_queues=("IN", "STOCK"))


def bodies(station, queue_name):
    return [body.rpartition(b"|")[2].decode() for body in station.bodies(queue_name)]


#: A subscription and a publication, each with its stream or None, in one topic space; whether they meet.
MEETINGS = [
    ("MQRFH", None, "a", "MQRFH", None, "a", True),
    ("MQRFH", "STOCK", "a", "MQRFH", "STOCK", "a", True),
    ("MQRFH", "STOCK", "*", "MQRFH", "STOCK", "a/b", True),
    ("MQRFH", "STOCK", "a", "MQRFH", None, "a", False),
    ("MQRFH", None, "a", "MQRFH", "STOCK", "a", False),
    ("MQRFH", None, "*", "MQRFH", "STOCK", "a", False),
    ("MQRFH", "STOCK", "*", "MQRFH", "OTHER", "a", False),
    ("MQRFH2", None, "#", "MQRFH", "STOCK", "a", False),
    ("MQRFH2", None, "+/STREAM/STOCK/a", "MQRFH", "STOCK", "a", False),
    ("MQRFH2", None, "$SYS/STREAM/STOCK/a", "MQRFH", "STOCK", "a", True),
    ("MQRFH2", None, "$SYS/STREAM/STOCK/#", "MQRFH", "STOCK", "a/b", True),
    ("MQRFH2", None, "$SYS/STREAM/+/a", "MQRFH", "STOCK", "a", True),
    ("MQRFH", "STOCK", "a", "MQRFH2", None, "$SYS/STREAM/STOCK/a", True),
    ("MQRFH", DEFAULT, "a", "MQRFH2", None, "a", True),
    ("MQRFH2", None, "a", "MQRFH", DEFAULT, "a", True),
    ("MQRFH", "50%", "a", "MQRFH", "50%", "a", True),
    ("MQRFH2", None, "$SYS/STREAM/50%/a", "MQRFH", "50%", "a", True),
]


@pytest.mark.parametrize(
    ("format", "stream", "pattern", "published_format", "published_on", "topic", "meets"), MEETINGS
)
@pytest.mark.parametrize("is_retained", [False, True])
def test_streams_are_prefixes_of_one_topic_space(
    wmb, format, stream, pattern, published_format, published_on, topic, meets, is_retained
):
    def publish():
        named = f"MQPSStreamName {published_on} " if published_on else ""
        if published_format == "MQRFH":
            wmb.publish(f"MQPSCommand Publish MQPSPubOpts 2 {named}MQPSTopic {topic}", b"|x", queue_name="IN")
        else:
            option = "<PubOpt>RetainPub</PubOpt>"
            wmb.publish(f"<psc><Command>Publish</Command>{option}<Topic>{topic}</Topic></psc>", b"|x", queue_name="IN")

    if is_retained:
        publish()
    named = f"MQPSStreamName {stream}" if stream else ""
    (wmb.subscribe_old(pattern, named) if format == "MQRFH" else wmb.subscribe_new(pattern))
    if not is_retained:
        publish()
    assert bodies(wmb, "OLD" if format == "MQRFH" else "NEW") == (["x"] if meets else [])


def test_headers_are_delivered_without_the_prefix(wmb):
    wmb.subscribe_new("$SYS/STREAM/STOCK/a")
    wmb.subscribe_old("a", "MQPSStreamName STOCK MQPSRegOpts InclStreamName")
    wmb.publish("MQPSCommand Publish MQPSStreamName STOCK MQPSTopic a", queue_name="IN")
    assert wmb.bodies("NEW") == [wmb.mqrfh2("<psc><Command>Publish</Command><Topic>a</Topic></psc>")]
    assert wmb.bodies("OLD") == [wmb.mqrfh("MQPSCommand Publish MQPSTopic a")]


@pytest.mark.parametrize("queue_name", [DEFAULT, "IN", "STOCK"])
def test_any_input_queue_takes_publications_of_any_stream(wmb, queue_name):
    wmb.subscribe_old("a", "MQPSStreamName NEVER.DEFINED")
    wmb.publish("MQPSCommand Publish MQPSStreamName NEVER.DEFINED MQPSTopic a", b"|x", queue_name=queue_name)
    assert bodies(wmb, "OLD") == ["x"]


@pytest.mark.parametrize(
    ("is_implicit", "queue_name", "stream"),
    [(True, "STOCK", "STOCK"), (False, "STOCK", DEFAULT), (True, DEFAULT, DEFAULT)],
)
def test_stream_is_named_by_the_queue_where_that_is_set(make_station, is_implicit, queue_name, stream):
    station = make_station(dialect=WMB, input_queues=("STOCK",), has_implicit_stream_naming=is_implicit)
    station.subscribe_old("a", f"MQPSStreamName {stream}")
    station.publish("MQPSCommand Publish MQPSTopic a", b"|x", queue_name=queue_name)
    station.publish("<psc><Command>Publish</Command><Topic>a</Topic></psc>", b"|y", queue_name=queue_name)
    assert bodies(station, "OLD") == (["x"] if stream == "STOCK" else ["x", "y"])


@pytest.mark.parametrize(
    ("header", "queue_name", "reason"),
    [
        ("MQPSCommand RegSub MQPSQName OLD MQPSTopic a/+", None, 3072),
        ("MQPSCommand RegSub MQPSQName OLD MQPSTopic #", None, 3072),
        ("<psc><Command>RegSub</Command><QName>OLD</QName><Topic>a/#/b</Topic></psc>", None, 3072),
        ("<psc><Command>RegSub</Command><QName>OLD</QName><Topic>#/a/#/b/#</Topic></psc>", None, 3072),
        ("<psc><Command>RegSub</Command><QName>OLD</QName><Topic>a/b#/c</Topic></psc>", None, 3072),
        ("MQPSCommand RegSub MQPSQName OLD MQPSStreamName ? MQPSTopic a", None, 3071),
        ("MQPSCommand Publish MQPSTopic a", None, 3079),
        ("MQPSCommand RegSub MQPSQName OLD MQPSTopic a", "IN", 3079),
    ],
)
def test_commands_are_refused_as_message_broker_does(wmb, header, queue_name, reason):
    if queue_name is None:
        wmb.control(header)
    else:
        wmb.publish(header, queue_name=queue_name)
    assert [code for _, code in wmb.listener.refusals] == [reason]


@pytest.mark.parametrize("topic", ["#", "a/#", "#/b", "#/b/#", "+", "a/+/b", "a/+/#", "a*b/?"])
def test_message_broker_takes_wildcards_of_whole_levels_and_hash_at_either_end(wmb, topic):
    wmb.subscribe_new(topic)
    assert wmb.listener.refusals == []


def test_in_mq6_hash_may_stand_in_the_middle_and_wildcards_of_mqrfh2_are_text_to_mqrfh(station):
    station.subscribe_new("a/#/b")
    station.subscribe_old("a/+/#")
    for topic in ("a/b", "a/x/y/b", "a/x", "a/+/#"):
        station.publish(f"MQPSCommand Publish MQPSTopic {topic}", f"|{topic}".encode())
    assert bodies(station, "NEW") == ["a/b", "a/x/y/b"]
    assert bodies(station, "OLD") == ["a/+/#"]


def test_deletion_is_by_stream_and_does_not_span_streams(wmb):
    for stream in (DEFAULT, "STOCK"):
        wmb.publish(f"MQPSCommand Publish MQPSPubOpts 2 MQPSStreamName {stream} MQPSTopic a", b"|x")
    wmb.publish("MQPSCommand DeletePub MQPSTopic *")
    wmb.subscribe_old("a")
    wmb.subscribe_new("$SYS/STREAM/STOCK/a")
    assert (bodies(wmb, "OLD"), bodies(wmb, "NEW")) == ([], ["x"])
    wmb.publish("<psc><Command>DeletePub</Command><Topic>$SYS/STREAM/STOCK/#</Topic></psc>")
    wmb.subscribe_new("$SYS/STREAM/STOCK/a")
    assert bodies(wmb, "NEW") == []


def test_prefixed_subscription_is_the_same_as_one_on_the_stream(wmb):
    wmb.control("MQPSCommand RegSub MQPSQName NEW MQPSStreamName STOCK MQPSTopic a")
    wmb.control("<psc><Command>RegSub</Command><QName>NEW</QName><Topic>$SYS/STREAM/STOCK/a</Topic></psc>")
    wmb.publish("MQPSCommand Publish MQPSStreamName STOCK MQPSTopic a")
    assert [copy.descriptor.format for copy in wmb.take_all("NEW")] == [b"MQHRF2  "]
    wmb.restart()
    wmb.control("MQPSCommand DeregSub MQPSQName NEW MQPSStreamName STOCK MQPSTopic a")
    wmb.publish("MQPSCommand Publish MQPSStreamName STOCK MQPSTopic a")
    assert wmb.take_all("NEW") == []
    assert wmb.listener.refusals == []


def test_in_mq6_the_prefix_is_a_topic_like_any_other(make_station):
    station = make_station(dialect=MQ6)
    station.subscribe_new("#")
    station.publish("<psc><Command>Publish</Command><Topic>$SYS/STREAM/STOCK/a</Topic></psc>", b"|x")
    assert bodies(station, "NEW") == ["x"]


@pytest.mark.parametrize("dialect", BrokerDialect)
def test_subscription_points_are_apart_and_named_on_delivery(make_station, dialect):
    rules = {"dialect": dialect, "subscription_points": {DEFAULT: "dollar"}}
    station = make_station(**rules)
    psc = "<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a</Topic></psc>"
    station.publish(psc, b"1")
    station.subscribe_new("a", "<SubPoint>dollar</SubPoint><RegOpt>InformIfRet</RegOpt>")
    station.subscribe_old("a")
    station.publish(psc, b"2")
    marked = psc.replace("<Topic>", "<PubOpt>IsRetainedPub</PubOpt><Topic>")
    expected = [
        station.mqrfh2(text.replace("</psc>", "<SubPoint>dollar</SubPoint></psc>"), body=body)
        for text, body in ((marked, b"1"), (psc, b"2"))
    ]
    assert station.bodies("NEW") == expected
    assert station.bodies("OLD") == []
    station.restart()
    request = "<psc><Command>ReqUpdate</Command><QName>NEW</QName><Topic>a</Topic><SubPoint>dollar</SubPoint></psc>"
    station.control(request)
    assert len(station.take_all("NEW")) == 1
    station.publish("<psc><Command>DeletePub</Command><Topic>a</Topic></psc>")
    station.control(request)
    assert station.take_all("NEW") == []


def test_stream_is_served_from_when_the_namelist_has_its_queue(station):
    def name_streams(*names):
        definition = Definition(object_type=ObjectType.NAMELIST, name=STREAM_NAMELIST, said={"NAMES": names})
        objects = station.engine.objects
        known = objects.find(ObjectType.NAMELIST, STREAM_NAMELIST)
        (objects.define if known is None else objects.alter)(definition)

    command = "MQPSCommand RegSub MQPSQName OLD MQPSStreamName STOCK MQPSTopic a"
    station.engine.ensure("STOCK", "")
    station.control(command)
    assert station.listener.refusals == [("RegSub", 3082)]
    name_streams(DEFAULT, "STOCK", "NOT.DEFINED.YET", "SYSTEM.BROKER.CONTROL.QUEUE")
    station.publish("MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic a", b"|waits", queue_name="STOCK")
    station.broker.tend()
    assert station.engine.queue("STOCK").depth == 0
    station.control(command)
    station.publish("MQPSCommand Publish MQPSTopic a", b"|x", queue_name="STOCK")
    assert bodies(station, "OLD") == ["waits", "x"]
    station.restart()
    station.publish("MQPSCommand Publish MQPSTopic a", b"|y", queue_name="STOCK")
    assert bodies(station, "OLD") == ["y"]


@pytest.mark.parametrize("is_swept", [False, True])
def test_subscriptions_on_a_temporary_queue_end_with_it(station, is_swept):
    objects = station.engine.objects
    model = Definition(object_type=ObjectType.QMODEL, name="MODEL", said={})
    objects.define(model)
    queue = objects.create_dynamic("MODEL", "TEMP.*")
    station.control(f"MQPSCommand RegSub MQPSQName {queue.name} MQPSTopic a")
    station.publish("MQPSCommand Publish MQPSTopic a", b"|x", persistence=0)
    assert bodies(station, queue.name) == ["x"]
    objects.delete_queue(queue)
    if is_swept:
        station.broker.tend()
    station.publish("MQPSCommand Publish MQPSTopic a", b"|y", persistence=0)
    assert station.listener.dead_letters == []
    assert station.take_all("REPLY")
    station.restart()
    assert station.engine.states(StateKind.BROKER_SUBSCRIPTION) == []
