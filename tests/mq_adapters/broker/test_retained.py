"""Retained publications: kept, marked, expired, deleted, and sent to who registers or asks."""

from dataclasses import asdict

import pytest

from mappings.commands.command import Publish, write_command
from mappings.commands.options import PublicationOption, RegistrationOption
from mappings.table import Dialect
from mq_adapters.broker.deliveries import DeliveryMaker
from mq_adapters.command_header import WrittenCommand
from mq_adapters.message import MessageDescriptor
from mq_adapters.system_queues import DEFAULT_STREAM

STREAM = "SAMPLE.BROKER.RESULTS.STREAM"
STORED = "<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a/b</Topic></psc>"
MARKED = (
    "<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><PubOpt>IsRetainedPub</PubOpt><Topic>a/b</Topic></psc>"
)


def reason_of(station):
    """The reason code of the one MQRFH2 answer on the reply queue."""
    (answer,) = station.bodies("REPLY")
    return answer.partition(b"<Reason>")[2].partition(b"</Reason>")[0]


def test_newest_publication_is_sent_on_registration_in_the_same_unit_of_work(station):
    station.publish(STORED, b"1", origin=b"first")
    published = station.publish(STORED, b"2", origin=b"second", priority=4)
    station.subscribe_new("a/#")
    (copy,) = station.take_all("NEW")
    assert copy.body == station.mqrfh2(STORED, body=b"2")
    assert (copy.origin, copy.descriptor.priority, copy.descriptor.msg_type) == (b"second", 4, 8)
    ((publication, told, delivery),) = station.listener.copies
    assert publication.msg_id == published.msg_id
    assert told.msg_id == copy.msg_id
    assert delivery.is_retained


def test_stored_copy_is_marked_only_for_inform_if_ret(station):
    station.subscribe_new("a/b", "<RegOpt>InformIfRet</RegOpt>")
    station.publish(STORED, b"x")
    assert station.bodies("NEW") == [station.mqrfh2(STORED, body=b"x")]
    station.subscribe_new("a/b", "<RegOpt>InformIfRet</RegOpt>")
    assert station.bodies("NEW") == [station.mqrfh2(MARKED, body=b"x")]
    station.subscribe_new("a/b")
    assert station.bodies("NEW") == [station.mqrfh2(STORED, body=b"x")]


def test_stored_copy_is_converted_and_marked_for_an_mqrfh_subscriber(station):
    station.publish(STORED, b"x")
    station.subscribe_old("a/*", "MQPSRegOpts 256")
    expected = "MQPSCommand Publish MQPSPubOpts RetainPub MQPSPubOpts IsRetainedPub MQPSTopic a/b"
    assert station.bodies("OLD") == [station.mqrfh(expected, b"x")]


def test_publisher_cannot_mark_a_publication_itself(station):
    station.subscribe_new("a/b")
    station.publish(MARKED, b"x")
    assert station.bodies("NEW") == [station.mqrfh2(STORED, body=b"x")]


@pytest.mark.parametrize("option", ["NewPubsOnly", "PubOnReqOnly"])
def test_registration_without_stored_publications(station, option):
    station.publish(STORED, b"x")
    station.subscribe_new("a/b", f"<RegOpt>{option}</RegOpt>")
    assert station.bodies("NEW") == []


def test_pub_on_req_only_gets_publications_on_request_only(station):
    station.subscribe_new("a/#", "<RegOpt>PubOnReqOnly</RegOpt>")
    station.publish(STORED, b"x")
    assert station.bodies("NEW") == []
    station.control("<psc><Command>ReqUpdate</Command><QName>NEW</QName><Topic>a/#</Topic></psc>")
    assert station.bodies("NEW") == [station.mqrfh2(STORED, body=b"x")]


def test_request_update_needs_a_subscription_and_a_stored_publication(station):
    request = "<psc><Command>ReqUpdate</Command><QName>NEW</QName><Topic>a/b</Topic></psc>"
    station.control(request)
    assert reason_of(station) == b"3073"
    station.subscribe_new("a/b")
    station.control(request)
    assert reason_of(station) == b"3077"


def test_expiry_is_reduced_by_the_time_held_and_ends_the_publication(station):
    station.publish(STORED, b"x", expiry=100)
    station.pass_time(4)
    station.subscribe_new("a/b")
    assert [copy.descriptor.expiry for copy in station.take_all("NEW")] == [60]
    station.pass_time(6)
    station.subscribe_new("a/b")
    assert station.take_all("NEW") == []
    station.broker.tend()
    station.restart()
    station.subscribe_new("a/b")
    assert station.take_all("NEW") == []


def test_publication_is_kept_on_each_of_its_topics_and_sent_once(station):
    two = "<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>t/1</Topic><Topic>t/2</Topic></psc>"
    station.publish(two, b"x")
    station.subscribe_new("t/#")
    assert station.bodies("NEW") == [station.mqrfh2(two, body=b"x")]
    station.subscribe_new("t/2")
    assert station.bodies("NEW") == [station.mqrfh2(two, body=b"x")]


def test_stored_publications_come_oldest_first(station):
    for topic in ("c", "a", "b"):
        station.publish(f"MQPSCommand Publish MQPSPubOpts 2 MQPSTopic x/{topic}", topic.encode())
    station.subscribe_old("x/*")
    assert [body[-1:] for body in station.bodies("OLD")] == [b"c", b"a", b"b"]


def test_streams_keep_their_own(station):
    station.publish("MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic a/b", b"s", queue_name=STREAM)
    station.subscribe_old("a/b")
    assert station.bodies("OLD") == []
    station.subscribe_old("a/b", f"MQPSStreamName {STREAM}")
    assert len(station.bodies("OLD")) == 1


@pytest.mark.parametrize(
    ("delete", "left"),
    [
        ("<psc><Command>DeletePub</Command><Topic>d/+</Topic></psc>", [b"d/1/x", b"e"]),
        ("<psc><Command>DeletePub</Command><DelOpt>Local</DelOpt><Topic>d/#</Topic></psc>", [b"e"]),
        ("MQPSCommand DeletePub MQPSTopic d/*", [b"e"]),
        ("MQPSCommand DeletePub MQPSTopic d/1 MQPSTopic e", [b"d/1/x"]),
        ("MQPSCommand DeletePub MQPSDelOpts Local MQPSTopic *", [b"d/1", b"d/1/x", b"e"]),
        ("MQPSCommand DeletePub MQPSTopic nothing", [b"d/1", b"d/1/x", b"e"]),
    ],
)
def test_deletion_follows_the_wildcards_and_options_of_its_format(station, delete, left):
    for topic in ("d/1", "d/1/x", "e"):
        station.publish(f"MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic {topic}", b"|" + topic.encode())
    station.publish(delete, msg_type=1, reply_to_q="REPLY")
    (answer,) = station.bodies("REPLY")
    assert b"<Completion>ok<" in answer or b"MQPSCompCode 0 " in answer
    station.restart()
    station.subscribe_new("#")
    assert [body.rpartition(b"|")[2] for body in station.bodies("NEW")] == left


def test_mqrfh_deletes_what_was_published_local_with_local_only(station):
    station.publish("MQPSCommand Publish MQPSRegOpts Local MQPSPubOpts RetainPub MQPSTopic a/b", b"x")
    station.publish("MQPSCommand DeletePub MQPSTopic a/b")
    station.subscribe_new("a/b", "<RegOpt>Local</RegOpt>")
    assert len(station.take_all("NEW")) == 1
    station.publish("MQPSCommand DeletePub MQPSDelOpts Local MQPSTopic a/b")
    station.subscribe_new("a/b", "<RegOpt>Local</RegOpt>")
    assert station.take_all("NEW") == []


def test_stored_publications_survive_a_restart_whole(station):
    published = station.publish(STORED, b"x", origin=b"exchange", persistence=0, priority=5, expiry=1000)
    station.pass_time(10)
    station.restart()
    station.subscribe_new("a/b", "<RegOpt>InformIfRet</RegOpt>")
    (copy,) = station.take_all("NEW")
    assert copy.body == station.mqrfh2(MARKED, body=b"x")
    assert (copy.origin, copy.descriptor.persistence, copy.descriptor.priority) == (b"exchange", 0, 5)
    assert copy.descriptor.expiry == 900
    assert station.listener.copies[0][0].msg_id == published.msg_id


def test_the_broker_knows_how_many_are_retained_and_on_which_topics(station):
    broker = station.broker
    assert broker.retained_publications == 0
    station.publish(STORED, b"1")
    station.publish(STORED, b"2")
    station.publish(STORED.replace("a/b", "a"), b"3")
    assert broker.retained_publications == 2
    stream = "SYSTEM.BROKER.DEFAULT.STREAM"
    assert [broker.retains(stream, topic, Dialect.MQRFH2) for topic in ("a", "a/b", "b")] == [True, True, False]
    station.publish("<psc><Command>DeletePub</Command><Topic>a/b</Topic></psc>")
    assert broker.retained_publications == 1
    assert not broker.retains(stream, "a/b", Dialect.MQRFH2)


WANTED = (
    "<RegOpt>InformIfRet</RegOpt>",
    "",
    "<RegOpt>PersAsQueue</RegOpt>",
    "<RegOpt>NonPers</RegOpt><RegOpt>InformIfRet</RegOpt>",
    "<SubUserData>mine</SubUserData>",
    "<Filter>Root.MQMD.Priority &gt; 3</Filter>",
)
PUBLISHED = (
    Publish(topics=("a/b",), publication_options=PublicationOption.RETAIN_PUBLICATION),
    Publish(topics=("a/b & c",), publication_options=PublicationOption.RETAIN_PUBLICATION),
    Publish(topics=("a/b", "a/c"), publication_options=PublicationOption.RETAIN_PUBLICATION),
    Publish(
        topics=("a/b",),
        publication_options=PublicationOption.RETAIN_PUBLICATION,
        registration_options=RegistrationOption.LOCAL,
    ),
)


def _sent(station_class, folder, dialect, fields):
    """What each kind of subscriber is sent of each publication that this process wrote, and what is told of it."""
    station = station_class(folder, ())
    for publish in PUBLISHED:
        header = WrittenCommand(publish, dialect, write_command(publish, dialect))
        descriptor = MessageDescriptor(format=header.format, **fields)
        unit = station.engine.begin()
        station.engine.put(unit, station.engine.queue(DEFAULT_STREAM), header.message(descriptor, b"body", b"origin"))
        station.engine.submit(unit)
        for number, wanted in enumerate(WANTED):
            station.control(
                f"<psc><Command>RegSub</Command><RegOpt>CorrelAsId</RegOpt>{wanted}"
                "<QName>NEW</QName><Topic>a/#</Topic></psc>",
                correl_id=(number + 1).to_bytes(24, "big"),
            )
        station.control("MQPSCommand RegSub MQPSRegOpts InformIfRet MQPSQName OLD MQPSTopic a/*")
    sent = [
        (message.body, message.origin, asdict(message.descriptor))
        for name in ("OLD", "NEW")
        for message in station.take_all(name)
    ]
    told = [asdict(delivery) for _, _, delivery in station.listener.copies]
    station.engine.close()
    return sent, told


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize(
    "fields", [{"persistence": 1}, {"persistence": 0, "priority": 7}, {"persistence": 2}, {"expiry": 500}]
)
def test_the_short_way_of_a_copy_leads_to_the_same_as_the_long_one(
    station_class, tmp_path, monkeypatch, dialect, fields
):
    (tmp_path / "short").mkdir()
    (tmp_path / "long").mkdir()
    taken = []
    short_way = DeliveryMaker.retained_copy
    with monkeypatch.context() as patched:
        patched.setattr(DeliveryMaker, "retained_copy", lambda *each: taken.append(short_way(*each)) or taken[-1])
        short = _sent(station_class, tmp_path / "short", dialect, fields)
    assert any(taken) is ("expiry" not in fields)
    assert not all(taken)
    monkeypatch.setattr(DeliveryMaker, "retained_copy", lambda *_: None)
    assert short == _sent(station_class, tmp_path / "long", dialect, fields)
