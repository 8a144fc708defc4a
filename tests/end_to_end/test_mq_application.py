"""An MQ application beside sensors: MQRFH and MQRFH2 bytes typed by hand, on the queues of a running gateway.

Layouts: IBM MQ, "MQRFH - Rules and formatting header" and "MQRFH2"; MQMD of publications: IBM MQ, "Message descriptor
for publications". Integers are little-endian (Encoding 546, 0x222), text is UTF-8 (CCSID 1208, 0x4B8), unless said.
"""

import base64
import hashlib
import os
import pwd
import time
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.publish
import pytest

from mq_adapters import connect as connect_queue_manager
from mq_adapters.embedded.socket.peer import user_identifier
from mq_adapters.message import (
    MQMT_DATAGRAM,
    MQMT_REQUEST,
    MQPER_NOT_PERSISTENT,
    MQPER_PERSISTENT,
    Message,
    MessageDescriptor,
)
from mq_adapters.queue_manager import QueueManager
from tests.end_to_end.conftest import Connect, MosquittoPublish, StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.wire import packet
from tests.trail_lines import trail_records

PATIENCE_S = 30.0
CONTROL_QUEUE = "SYSTEM.BROKER.CONTROL.QUEUE"
STREAM_QUEUE = "SYSTEM.BROKER.DEFAULT.STREAM"
MQRFH, MQRFH2 = b"MQHRF   ", b"MQHRF2  "
CORREL_ID_1, CORREL_ID_2 = b"MQRFH application".ljust(24), b"MQRFH2 application".ljust(24)

REGISTER_MQRFH = (
    "'RFH ' 01000000 74000000 22020000 B8040000 '        ' 00000000"
    "'MQPSCommand RegSub MQPSRegOpts CorrelAsId MQPSQName APP.MQRFH MQPSTopic plant/*     '"
)
REGISTER_MQRFH2 = (
    "'RFH ' 02000000 98000000 22020000 B8040000 '        ' 00000000 B8040000 70000000"
    "'<psc><Command>RegSub</Command><RegOpt>CorrelAsId</RegOpt><QName>APP.MQRFH2</QName><Topic>plant/#</Topic></psc>  '"
)
ACCEPTED_MQRFH = "'MQPSCompCode 0 MQPSReason 0 MQPSReasonText MQRC_NONE'"

# What a sensor publishes; the publication behind an MQRFH; behind an MQRFH2. The payload follows each.
PUBLICATIONS = [
    (
        "plant/boiler",
        "'RFH ' 01000000 4C000000 22020000 B8040000 '        ' 00000000'MQPSCommand Publish MQPSTopic plant/boiler  '",
        "'RFH ' 02000000 68000000 22020000 B8040000 '        ' 00000000 B8040000 40000000"
        "'<psc><Command>Publish</Command><Topic>plant/boiler</Topic></psc>'",
    ),
    (
        'plant/50% of a*b "x"?',
        "'RFH ' 01000000 5C000000 22020000 B8040000 '        ' 00000000"
        '\'MQPSCommand Publish MQPSTopic "plant/50%% of a%*b ""x""%?"  \'',
        "'RFH ' 02000000 74000000 22020000 B8040000 '        ' 00000000 B8040000 4C000000"
        "'<psc><Command>Publish</Command><Topic>plant/50% of a*b \"x\"?</Topic></psc>   '",
    ),
    (
        "plant/1<2&3/\u00e4",
        "'RFH ' 01000000 4C000000 22020000 B8040000 '        ' 00000000"
        "'MQPSCommand Publish MQPSTopic plant/1<2&3/' C3A4",
        "'RFH ' 02000000 74000000 22020000 B8040000 '        ' 00000000 B8040000 4C000000"
        "'<psc><Command>Publish</Command><Topic>plant/1&lt;2&amp;3/' C3A4 '</Topic></psc>   '",
    ),
]


def _command(format: bytes, correl_id: bytes = bytes(24)) -> MessageDescriptor:
    """MQMD of a command that is always answered."""
    return MessageDescriptor(
        msg_type=MQMT_REQUEST, format=format, reply_to_q="APP.REPLY", correl_id=correl_id, persistence=MQPER_PERSISTENT
    )


def _ask(queue_manager: QueueManager, queue_name: str, descriptor: MessageDescriptor, body: bytes) -> Message:
    """Puts a command and gets its answer."""
    msg_id = queue_manager.put(queue_name, Message(descriptor, body))
    return queue_manager.get("APP.REPLY", correl_id=msg_id, wait_s=PATIENCE_S)


@pytest.fixture(params=["mqrfh2", "mqrfh"])
def plant(request: pytest.FixtureRequest, new_gateway: StartGateway) -> Gateway:
    """A gateway that writes one of the two headers."""
    return new_gateway("--header", request.param).start()


@pytest.fixture
def application(plant: Gateway) -> Iterator[QueueManager]:
    """An application that is registered in both formats, each on a queue of its own."""
    with connect_queue_manager(plant.data, application_name="plant-control") as queue_manager:
        for queue_name in ("APP.REPLY", "APP.MQRFH", "APP.MQRFH2"):
            queue_manager.define(queue_name)
        answer = _ask(queue_manager, CONTROL_QUEUE, _command(MQRFH, CORREL_ID_1), packet(REGISTER_MQRFH))
        assert answer.body[32:].startswith(packet(ACCEPTED_MQRFH)), answer.body
        answer = _ask(queue_manager, CONTROL_QUEUE, _command(MQRFH2, CORREL_ID_2), packet(REGISTER_MQRFH2))
        assert b"<pscr><Completion>ok</Completion>" in answer.body
        yield queue_manager


def test_each_subscriber_gets_the_same_publication_in_its_own_format(
    plant: Gateway, application: QueueManager, mosquitto_publish: MosquittoPublish
) -> None:
    for number, (topic, as_mqrfh, as_mqrfh2) in enumerate(PUBLICATIONS):
        payload = b"21.5 \xc2\xb0C %d" % number
        mosquitto_publish(plant, "-t", topic, "-q", str(number % 2 + 1), "-m", payload.decode())
        for queue_name, format, correl_id, header in (
            ("APP.MQRFH", MQRFH, CORREL_ID_1, as_mqrfh),
            ("APP.MQRFH2", MQRFH2, CORREL_ID_2, as_mqrfh2),
        ):
            received = application.get(queue_name, wait_s=PATIENCE_S)
            assert received.body == packet(header) + payload
            _check_descriptor(received, format=format, correl_id=correl_id, persistence=MQPER_PERSISTENT)
    assert application.depth("APP.MQRFH") == application.depth("APP.MQRFH2") == 0


def _check_descriptor(message: Message, *, format: bytes, correl_id: bytes, persistence: int) -> None:
    descriptor = message.descriptor
    assert (descriptor.format, descriptor.coded_char_set_id, descriptor.encoding) == (format, 1208, 546)
    assert (descriptor.msg_type, descriptor.report, descriptor.feedback) == (MQMT_DATAGRAM, 0, 0)
    assert (descriptor.expiry, descriptor.priority, descriptor.persistence) == (-1, 0, persistence)
    assert descriptor.correl_id == correl_id
    assert (descriptor.reply_to_q.strip(), descriptor.reply_to_q_mgr.strip()) == ("", "RFHBRIDGE")
    assert (descriptor.put_appl_type, descriptor.put_appl_name.strip()) == (26, "RFHBRIDGE")
    assert descriptor.appl_origin_data.strip() == ""
    assert message.msg_id != bytes(24)


def test_qos_0_is_not_persistent_and_every_copy_has_a_msg_id_of_its_own(
    plant: Gateway, application: QueueManager
) -> None:
    paho.mqtt.publish.multiple(
        [{"topic": "plant/boiler", "payload": b"\x00\xff", "qos": qos} for qos in (0, 1, 2)],
        hostname="127.0.0.1",
        port=plant.port,
    )
    header = packet(PUBLICATIONS[0][1])
    received = [application.get("APP.MQRFH", wait_s=PATIENCE_S) for _ in range(3)]
    received += [application.get("APP.MQRFH2", wait_s=PATIENCE_S) for _ in range(3)]
    assert [message.body for message in received[:3]] == [header + b"\x00\xff"] * 3
    assert sorted(message.descriptor.persistence for message in received) == [0, 0, 1, 1, 1, 1]
    assert len({message.msg_id for message in received}) == 6


def test_a_retained_message_reaches_a_later_subscriber_and_says_so(
    plant: Gateway, application: QueueManager, mosquitto_publish: MosquittoPublish
) -> None:
    mosquitto_publish(plant, "-t", "plant/state", "-q", "1", "-r", "-m", "on")
    live = application.get("APP.MQRFH", wait_s=PATIENCE_S)
    assert b"MQPSPubOpts RetainPub " in live.body
    assert b"IsRetainedPub" not in live.body
    application.define("APP.LATE")
    register = packet(
        "'RFH ' 01000000 74000000 22020000 B8040000 '        ' 00000000"
        "'MQPSCommand RegSub MQPSRegOpts InformIfRet MQPSQName APP.LATE MQPSTopic plant/state '"
    )
    answer = _ask(application, CONTROL_QUEUE, _command(MQRFH), register)
    assert answer.body[32:].startswith(packet(ACCEPTED_MQRFH))
    late = application.get("APP.LATE", wait_s=PATIENCE_S)
    assert b"IsRetainedPub" in late.body
    assert late.body.endswith(b"on")
    mosquitto_publish(plant, "-t", "plant/state", "-q", "1", "-r", "-n")
    empty = application.get("APP.LATE", wait_s=PATIENCE_S)
    assert b"RetainPub" not in empty.body
    assert empty.body.rstrip().endswith(b"MQPSTopic plant/state")


# Section 1.4 and 2.5 of the worked examples: big-endian MQRFH with the topic "a b", little-endian MQRFH2 with a/b.
WORKED_MQRFH = packet(
    "'RFH ' 00000001 0000005C 00000111 000004B8 'MQSTR   ' 00000000"
    "'MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic \"a b\"   '"
)
WORKED_MQRFH2 = packet(
    "'RFH ' 02000000 7C000000 22020000 B8040000 'MQSTR   ' 00000000 B8040000 54000000"
    "'<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a/b</Topic></psc>   '"
)


@pytest.mark.parametrize(
    ("persistence", "as_mqrfh", "as_mqrfh2"),
    [
        (MQPER_PERSISTENT, "32 0A 0003 'a b' 0001 'one'", "32 0A 0003 'a/b' 0002 'two'"),
        (MQPER_NOT_PERSISTENT, "30 08 0003 'a b' 'one'", "30 08 0003 'a/b' 'two'"),
    ],
    ids=["persistent", "not persistent"],
)
def test_an_application_publishes_to_mqtt_clients(
    plant: Gateway, application: QueueManager, connect: Connect, persistence: int, as_mqrfh: str, as_mqrfh2: str
) -> None:
    client = connect(plant)
    client.send("connects", "10 10 0004 'MQTT' 04 02 0000 0004 'hear'")
    client.expect("is accepted", "20 02 00 00")
    client.send("subscribes", "82 06 0001 0001 '#' 02")
    client.expect("is granted QoS 2", "90 03 0001 02")
    mqrfh = MessageDescriptor(format=MQRFH, encoding=273, persistence=persistence)
    application.put(STREAM_QUEUE, Message(mqrfh, WORKED_MQRFH + b"one"))
    client.expect("gets the one in MQRFH", as_mqrfh)
    mqrfh2 = MessageDescriptor(format=MQRFH2, persistence=persistence)
    application.put(STREAM_QUEUE, Message(mqrfh2, WORKED_MQRFH2 + b"two"))
    client.expect("gets the one in MQRFH2", as_mqrfh2)
    late = connect(plant, "the later client")
    late.send("connects", "10 10 0004 'MQTT' 04 02 0000 0004 'late'")
    late.expect("is accepted", "20 02 00 00")
    late.send("subscribes", "82 08 0001 0003 'a/b' 00")
    late.expect("gets the retained one with RETAIN", "90 03 0001 00 31 08 0003 'a/b' 'two'")


def test_a_publication_of_several_topics_is_one_packet_for_each_that_matches(
    plant: Gateway, application: QueueManager, connect: Connect
) -> None:
    client = connect(plant)
    client.send("connects", "10 10 0004 'MQTT' 04 02 0000 0004 'hear'")
    client.expect("is accepted", "20 02 00 00")
    client.send("subscribes", "82 0D 0001 0003 'm/1' 01 0002 'm3' 00")
    client.expect("is granted", "90 04 0001 01 00")
    publish = packet(
        "'RFH ' 01000000 70000000 22020000 B8040000 '        ' 00000000"
        "'MQPSCommand Publish MQPSTopic m/1 MQPSTopic m/2 MQPSTopic m3 MQPSPubOpts NoReg  '"
    )
    application.put(STREAM_QUEUE, Message(MessageDescriptor(format=MQRFH), publish + b"hi"))
    client.expect("gets two of the three", "32 09 0003 'm/1' 0001 'hi'", "30 06 0002 'm3' 'hi'")


def test_a_topic_that_mqtt_cannot_name_holds_nobody_up(
    plant: Gateway, application: QueueManager, connect: Connect
) -> None:
    """`+` and `#` are ordinary characters in an MQRFH topic; MQTT has no such topic name, so nothing is delivered."""
    client = connect(plant)
    client.send("connects", "10 10 0004 'MQTT' 04 00 0000 0004 'hear'")
    client.expect("is accepted", "20 02 00 00")
    client.send("subscribes", "82 06 0001 0001 '#' 01")
    client.expect("is granted QoS 1", "90 03 0001 01")
    publish = packet(
        "'RFH ' 01000000 44000000 22020000 B8040000 '        ' 00000000 'MQPSCommand Publish MQPSTopic a/+/# '"
    )
    application.put(STREAM_QUEUE, Message(MessageDescriptor(format=MQRFH), publish + b"no"))
    application.put(STREAM_QUEUE, Message(MessageDescriptor(format=MQRFH2), WORKED_MQRFH2 + b"yes"))
    client.expect("gets the other one", "32 0A 0003 'a/b' 0001 'yes'")
    assert "Traceback" not in plant.log


def test_a_backed_out_publication_reaches_nobody_and_a_committed_one_everybody(
    plant: Gateway, application: QueueManager, connect: Connect
) -> None:
    client = connect(plant)
    client.send("connects", "10 10 0004 'MQTT' 04 02 0000 0004 'hear'")
    client.expect("is accepted", "20 02 00 00")
    client.send("subscribes", "82 06 0001 0001 '#' 00")
    client.expect("is granted QoS 0", "90 03 0001 00")
    for payload, is_committed in ((b"no", False), (b"yes", True)):
        application.begin()
        application.put(STREAM_QUEUE, Message(MessageDescriptor(format=MQRFH2), WORKED_MQRFH2 + payload))
        application.commit() if is_committed else application.back_out()
    client.expect("gets what was committed", "30 08 0003 'a/b' 'yes'")


def test_the_trail_tells_each_command_of_an_application_and_who_gave_it(
    plant: Gateway, application: QueueManager
) -> None:
    header = packet(PUBLICATIONS[0][2])
    publication = MessageDescriptor(format=MQRFH2, persistence=MQPER_PERSISTENT, expiry=6_000)
    msg_id = application.put(STREAM_QUEUE, Message(publication, header + b"21.5"))
    refused = _ask(application, STREAM_QUEUE, _command(MQRFH2), packet(REGISTER_MQRFH2))
    assert b"<Reason>3079</Reason>" in refused.body
    assert plant.stop() == 0
    records = trail_records(plant.data / "trail")
    told = [record for record in records if record["kind"] == "commanded"]
    assert [(record["command"], record["completion"], record.get("reason_code", 0)) for record in told] == [
        ("RegSub", "ok", 0),
        ("RegSub", "ok", 0),
        ("Publish", "ok", 0),
        ("RegSub", "error", 3079),
    ]
    me = pwd.getpwuid(os.getuid()).pw_name
    assert {(record["application"], record["operator"]) for record in told} == {("plant-control", me)}
    assert {record["user_identifier"] for record in told} == {user_identifier(os.getuid())}
    published = told[2]
    lives_us = published["expires_us"] - published["at_us"]
    assert 500_000_000 < lives_us < 601_000_000, "ten minutes from its put"
    assert [record for record in told if "expires_us" in record] == [published]
    assert published["message_id"] == msg_id.hex()
    assert base64.b64decode(published["input"]) == header
    digest = hashlib.sha256(b"21.5").hexdigest()
    assert (published["payload_bytes"], published["payload_sha256"]) == (4, digest)
    got = [record for record in records if record["kind"] == "mqget"]
    assert [(record["queue"], record["application"], record["operator"]) for record in got] == [
        ("APP.REPLY", "plant-control", me) for _ in range(3)
    ]
    copies = [record for record in records if record.get("source_message_id") == msg_id.hex()]
    assert [(copy["queue"], copy["payload_sha256"]) for copy in copies] == [
        ("APP.MQRFH", digest),
        ("APP.MQRFH2", digest),
    ]


def test_an_application_that_fills_the_trail_is_read_more_slowly(new_gateway: StartGateway, tmp_path: Path) -> None:
    """A publication costs some 900 bytes by the estimate: 16 are 14 seconds of the rate, of which ten are free."""
    config = tmp_path / "rfhbridge.toml"
    config.write_text("[mqtt]\ntrail_byte_rate_per_user = 1000\n")
    gateway = new_gateway("--config", str(config)).start()
    publication = MessageDescriptor(format=MQRFH2, persistence=MQPER_PERSISTENT)
    started_s = time.monotonic()
    with connect_queue_manager(gateway.data) as busy:
        for _ in range(16):
            busy.put(STREAM_QUEUE, Message(publication, packet(PUBLICATIONS[0][2]) + b"21.5"))
        with connect_queue_manager(gateway.data, application_name="another of that user") as other:
            other.depth(STREAM_QUEUE)
        busy.depth(STREAM_QUEUE)
    assert time.monotonic() - started_s >= 3.0
    assert gateway.stop() == 0
