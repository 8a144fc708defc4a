"""The listener is told of each command of an application once, when it takes effect, with its header and its end."""

import pytest

from mappings.commands.response import Completion
from mq_adapters.broker.updates import NoCopyLimit
from tests.every_case import for_every

CONTROL = "SYSTEM.BROKER.CONTROL.QUEUE"
STREAM = "SYSTEM.BROKER.DEFAULT.STREAM"
OK, WARNING, FAILED = Completion.OK, Completion.WARNING, Completion.FAILED
REGISTER = (
    "<psc><Command>RegSub</Command><QName>NEW</QName><Topic>a</Topic><Topic>b/#</Topic><Filter>x=1</Filter></psc>"
)

#: The queue, what is put there, and what is told: verb, topics, filter, completion, reason code.
COMMANDS = {
    "a registration": (CONTROL, REGISTER, ("RegSub", ("a", "b/#"), "x=1", OK, 0)),
    "a refused registration": (
        CONTROL,
        "MQPSCommand RegSub MQPSQName OLD MQPSTopic a%x",
        ("RegSub", (), "", FAILED, 3072),
    ),
    "the end of a registration that is not there": (
        CONTROL,
        "MQPSCommand DeregSub MQPSQName OLD MQPSTopic a",
        ("DeregSub", ("a",), "", FAILED, 3073),
    ),
    "a request for what nobody retained": (
        CONTROL,
        "<psc><Command>ReqUpdate</Command><QName>NEW</QName><Topic>there</Topic></psc>",
        ("ReqUpdate", ("there",), "", FAILED, 3077),
    ),
    "a request for what is retained": (
        CONTROL,
        "<psc><Command>ReqUpdate</Command><QName>NEW</QName><Topic>kept</Topic></psc>",
        ("ReqUpdate", ("kept",), "", OK, 0),
    ),
    "a publisher's registration": (
        CONTROL,
        "MQPSCommand RegPub MQPSQName OLD MQPSTopic a",
        ("RegPub", ("a",), "", OK, 0),
    ),
    "a publication that nobody gets": (
        STREAM,
        "MQPSCommand Publish MQPSTopic nobody",
        ("Publish", ("nobody",), "", OK, 0),
    ),
    "a deletion": (STREAM, "MQPSCommand DeletePub MQPSTopic a", ("DeletePub", ("a",), "", OK, 0)),
    "a command on the wrong queue": (STREAM, REGISTER, ("RegSub", ("a", "b/#"), "x=1", FAILED, 3079)),
    "a command without a topic": (STREAM, "MQPSCommand Publish", ("Publish", (), "", FAILED, 2339)),
}


@for_every(COMMANDS)
def test_each_command_of_an_application_is_told_once(case, memory_folder, station_class):
    queue_name, header, (verb, topics, topic_filter, completion, reason_code) = case
    station = station_class(memory_folder / queue_name / verb / str(len(header)), ())
    try:
        station.subscribe_new("there")
        station.subscribe_new("kept", "<RegOpt>PubOnReqOnly</RegOpt>")
        station.publish("<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>kept</Topic></psc>", b"1")
        station.listener.commands.clear()
        put = station.publish if queue_name == STREAM else station.control
        message = put(header)
        ((told, taken, *end),) = station.listener.commands
        assert told is message
        assert (taken.verb, taken.queue_name, taken.topics, taken.filter) == (verb, queue_name, topics, topic_filter)
        assert end == [completion, reason_code]
        assert taken.header in (message.body, b"")
        assert bool(taken.header) == (topics != ())
    finally:
        station.engine.close()


def test_a_repeated_end_of_registrations_of_which_some_are_missing_is_a_warning(station):
    station.subscribe_old("a")
    station.listener.commands.clear()
    station.control("MQPSCommand DeregSub MQPSQName OLD MQPSTopic a MQPSTopic b")
    ((_, _, *end),) = station.listener.commands
    assert end == [WARNING, 3073]


def test_a_command_whose_answer_finds_no_queue_was_not_carried_out(station):
    station.control("MQPSCommand RegSub MQPSQName OLD MQPSTopic a", reply_to_q="NONE")
    ((_, _, *end),) = station.listener.commands
    assert end == [FAILED, 2085]


class TakesNothing(NoCopyLimit):
    def take(self, _correl_id: bytes | None, _size_bytes: int) -> bool:
        return False


def test_a_registration_that_may_not_have_its_retained_copies_is_told_twice(station):
    station.publish("<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a</Topic></psc>", b"1")
    station.listener.commands.clear()
    station.broker.limit_retained_copies(TakesNothing())
    station.control("MQPSCommand RegSub MQPSQName OLD MQPSTopic a")
    assert [end for _, _, *end in station.listener.commands] == [[OK, 0], [FAILED, 2056]]


def test_the_messages_of_mqtt_clients_are_not_told(station):
    header = station.mqrfh2("<psc><Command>Publish</Command><Topic>a</Topic></psc>")
    station.put(STREAM, b"MQHRF2  ", header, origin=b"some client's")
    assert station.listener.commands == []


@pytest.mark.parametrize("payloads", [(b"1", b"22", b"")])
def test_publications_with_one_header_share_what_is_told_of_it(station, payloads):
    station.subscribe_new("a")
    station.listener.commands.clear()
    for payload in payloads:
        station.publish("<psc><Command>Publish</Command><Topic>a</Topic></psc>", payload)
    assert len({id(taken) for _, taken, *_ in station.listener.commands}) == 1
    assert [told.body[len(taken.header) :] for told, taken, *_ in station.listener.commands] == list(payloads)
