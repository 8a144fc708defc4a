"""PUB and SUB of topic objects: who is refused where, what is answered, and when a change of an object counts."""

import pytest

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.broker.broker import BrokerRules
from mq_adapters.broker.topic_spaces import BrokerDialect
from mq_adapters.embedded.mqsc.command_server import CommandServer

STREAM = "SAMPLE.BROKER.RESULTS.STREAM"
PUB = "<psc><Command>Publish</Command>{}<Topic>{}</Topic></psc>"


def define(station, name: str, topic_string: str, **said: str) -> None:
    """A topic object, in the place of one of that name."""
    objects = station.engine.objects
    definition = Definition(object_type=ObjectType.TOPIC, name=name, said={"TOPICSTR": topic_string, **said})
    known = objects.find(ObjectType.TOPIC, name)
    (objects.define if known is None else objects.alter)(definition)


def refusals(station) -> list[int]:
    found = [code for _, code in station.listener.refusals]
    station.listener.refusals.clear()
    return found


@pytest.mark.parametrize(
    ("topic", "is_refused"),
    [
        ("a", True),
        ("a/b", True),
        ("a/open", False),
        ("a/open/x", False),
        ("a/open/x/no", True),
        ("ab", False),
        ("b", False),
    ],
)
def test_attribute_counts_down_the_tree_to_the_next_that_says_otherwise(station, topic, is_refused):
    define(station, "A", "a", PUB="DISABLED", SUB="DISABLED")
    define(station, "A.B", "a/b")
    define(station, "A.OPEN", "a/open", PUB="ENABLED", SUB="ENABLED")
    define(station, "A.NO", "a/open/x/no", PUB="DISABLED", SUB="DISABLED")
    station.control(f"MQPSCommand RegSub MQPSQName OLD MQPSTopic {topic}")
    station.publish(f"MQPSCommand Publish MQPSTopic {topic}")
    station.publish(PUB.format("", topic))
    assert refusals(station) == ([3081] * 3 if is_refused else [])
    assert len(station.take_all("OLD")) == (0 if is_refused else 2)


def test_base_topic_is_the_root_and_another_object_without_a_topic_string_is_nothing(station):
    define(station, "NOTHING", "", PUB="DISABLED")
    station.publish("MQPSCommand Publish MQPSTopic a")
    assert refusals(station) == []
    define(station, "SYSTEM.BASE.TOPIC", "", PUB="DISABLED")
    station.publish("MQPSCommand Publish MQPSTopic a")
    assert refusals(station) == [3081]


@pytest.mark.parametrize(
    ("header", "told"),
    [
        (
            "MQPSCommand Publish MQPSTopic a/1",
            "MQPSCompCode 2 MQPSReason 3081 MQPSReasonText MQRCCF_NOT_AUTHORIZED MQPSCommand Publish MQPSErrorId 2051 "
            "MQPSTopic a/1",
        ),
        (
            "<psc><Command>Publish</Command><Topic>a/1</Topic></psc>",
            "<pscr><Completion>error</Completion><Response><Reason>3081</Reason><Topic>a/1</Topic></Response></pscr>",
        ),
        (
            "MQPSCommand Publish MQPSTopic a/1 MQPSTopic b MQPSTopic a/2",
            "MQPSCompCode 1 MQPSReason 3081 MQPSReasonText MQRCCF_NOT_AUTHORIZED MQPSCommand Publish MQPSErrorId 2051 "
            "MQPSTopic a/1 MQPSCompCode 1 MQPSReason 3081 MQPSReasonText MQRCCF_NOT_AUTHORIZED MQPSErrorId 2051 "
            "MQPSTopic a/2",
        ),
        (
            "<psc><Command>Publish</Command><Topic>b</Topic><Topic>a/1</Topic></psc>",
            "<pscr><Completion>warning</Completion><Response><Reason>3081</Reason><Topic>a/1</Topic></Response></pscr>",
        ),
        (
            "<psc><Command>DeletePub</Command><Topic>b</Topic><Topic>a/#</Topic></psc>",
            "<pscr><Completion>warning</Completion><Response><Reason>3081</Reason><Topic>a/#</Topic></Response></pscr>",
        ),
    ],
)
def test_publisher_is_told_on_which_topics_nobody_may_publish(station, header, told):
    define(station, "A", "a", PUB="DISABLED")
    for _ in range(2):  # the second comes by the short way of headers that were seen before
        station.publish(header, msg_type=1, reply_to_q="REPLY")
        (answer,) = station.bodies("REPLY")
        assert told.encode() in answer


@pytest.mark.parametrize("report", [0, 1, 2])
def test_publication_is_used_for_the_topics_that_are_left(station, report):
    define(station, "A", "a", PUB="DISABLED")
    station.subscribe_old("a/1")
    station.subscribe_new("b")
    for _ in range(2):
        header = "MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic a/1 MQPSTopic b"
        station.publish(header, report=report, reply_to_q="REPLY")
        assert (len(station.take_all("OLD")), len(station.take_all("NEW"))) == (0, 1)
        assert len(station.bodies("REPLY")) == bool(report)
    station.control("MQPSCommand ReqUpdate MQPSQName OLD MQPSTopic a/1")
    station.control("<psc><Command>ReqUpdate</Command><QName>NEW</QName><Topic>b</Topic></psc>")
    assert refusals(station) == [3077]


def test_change_of_an_object_counts_for_the_next_publication_of_a_known_header(station):
    station.subscribe_old("a")
    server = CommandServer(station.engine)
    header = "MQPSCommand Publish MQPSTopic a"
    for command, is_refused in [
        ("DEFINE TOPIC(A) TOPICSTR('a') PUB(ENABLED)", False),
        ("ALTER TOPIC(A) PUB(DISABLED)", True),
        ("ALTER TOPIC(A) PUB(ASPARENT)", False),
        ("ALTER TOPIC(A) PUB(DISABLED)", True),
        ("DELETE TOPIC(A)", False),
    ]:
        assert server.execute(command).succeeded
        station.publish(header)
        assert (refusals(station), len(station.take_all("OLD"))) == (([3081], 0) if is_refused else ([], 1)), command


@pytest.mark.parametrize(
    ("pattern", "is_refused"),
    [("a", True), ("a/#", True), ("a/+/b", True), ("#", False), ("+", False), ("+/b", False), ("b/#", False)],
)
def test_subscription_stands_at_the_levels_before_its_first_wildcard(station, pattern, is_refused):
    define(station, "A", "a", SUB="DISABLED")
    station.control(f"<psc><Command>RegSub</Command><QName>NEW</QName><Topic>{pattern}</Topic></psc>")
    assert refusals(station) == ([3081] if is_refused else [])
    character = pattern.replace("#", "*").replace("+", "?")
    station.control(f"MQPSCommand RegSub MQPSQName OLD MQPSTopic b MQPSTopic {character}")
    (_, answer) = station.bodies("REPLY")
    assert (f"MQPSErrorId 2503 MQPSTopic {character}".encode() in answer) == is_refused
    station.publish(PUB.format("", "b"))
    assert len(station.take_all("OLD")) == (not is_refused), "a RegSub is carried out whole or refused whole"


def test_subscription_that_is_there_stays_but_asks_for_nothing(station):
    station.subscribe_new("a")
    station.publish(PUB.format("<PubOpt>RetainPub</PubOpt>", "a"))
    define(station, "A", "a", SUB="DISABLED")
    station.publish(PUB.format("", "a"))
    assert len(station.take_all("NEW")) == 2
    station.control("<psc><Command>ReqUpdate</Command><QName>NEW</QName><Topic>a</Topic></psc>")
    assert refusals(station) == [3081]
    station.control("<psc><Command>DeregSub</Command><QName>NEW</QName><Topic>a</Topic></psc>")
    assert refusals(station) == []


def test_deletion_spares_what_nobody_may_publish(station):
    for topic in ("a/1", "a/no/1", "b"):
        station.publish(PUB.format("<PubOpt>RetainPub</PubOpt>", topic))
    define(station, "NO", "a/no", PUB="DISABLED")
    station.publish("<psc><Command>DeletePub</Command><Topic>a/#</Topic></psc>", msg_type=1, reply_to_q="REPLY")
    (answer,) = station.bodies("REPLY")
    assert b"<Response><Reason>3081</Reason><Topic>a/#</Topic></Response>" in answer
    station.publish("MQPSCommand DeletePub MQPSTopic a/no/1")
    assert refusals(station) == [3081]
    station.subscribe_new("#")
    assert len(station.take_all("NEW")) == 2


def test_topics_of_a_stream_stand_below_its_topic_object_or_its_name(station):
    define(station, "A", "a", PUB="DISABLED")
    define(station, "BELOW", f"{STREAM}/a", PUB="DISABLED")
    for topic, expected in (("a", [3081]), ("b", [])):
        station.publish(f"MQPSCommand Publish MQPSTopic {topic}", queue_name=STREAM)
        assert refusals(station) == expected
    define(station, STREAM, "results/of")
    station.publish("MQPSCommand Publish MQPSTopic a", queue_name=STREAM)
    assert refusals(station) == []
    define(station, "BELOW", "results", PUB="DISABLED")
    station.publish("MQPSCommand Publish MQPSTopic a", queue_name=STREAM)
    assert refusals(station) == [3081]


def test_in_wmb_the_prefix_of_a_stream_is_part_of_its_topics(station_class, tmp_path):
    station = station_class(tmp_path, (), BrokerRules(dialect=BrokerDialect.WMB, input_queues=("IN",)))
    define(station, "STOCK", "$SYS/STREAM/STOCK", PUB="DISABLED")
    for stream, expected in (("STOCK", [3081]), ("OTHER", [])):
        station.publish(f"MQPSCommand Publish MQPSStreamName {stream} MQPSTopic a", queue_name="IN")
        assert refusals(station) == expected
    station.engine.close()


def test_long_topic_costs_no_more_than_the_deepest_object(station):
    define(station, "A", "a/b", PUB="DISABLED")
    station.publish(PUB.format("", "a/b" + "/x" * 5_000))
    station.publish(PUB.format("", "b" + "/x" * 5_000))
    assert refusals(station) == [3081]
