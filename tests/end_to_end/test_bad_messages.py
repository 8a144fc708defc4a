"""Bad input over queues: each ends in its reason code or whole on the dead-letter queue, never in silence."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mq_adapters import connect as connect_queue_manager
from mq_adapters.message import MQMT_DATAGRAM, MQMT_REQUEST, MQPER_PERSISTENT, MQRO_NAN, Message, MessageDescriptor
from mq_adapters.queue_manager import QueueManager
from mq_adapters.reasons import QueueManagerError
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.wire import packet

PATIENCE_S = 30.0
CONTROL_QUEUE, STREAM_QUEUE = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
DEAD_LETTER_QUEUE = "SYSTEM.DEAD.LETTER.QUEUE"
MQRFH, MQRFH2 = b"MQHRF   ", b"MQHRF2  "

PUBLISH_MQRFH = packet(
    "'RFH ' 01000000 44000000 22020000 B8040000 '        ' 00000000 'MQPSCommand Publish MQPSTopic bad/1 '"
)
PUBLISH_MQRFH2 = packet(
    "'RFH ' 02000000 60000000 22020000 B8040000 '        ' 00000000 B8040000 38000000"
    "'<psc><Command>Publish</Command><Topic>b/1</Topic></psc> '"
)


@pytest.fixture(scope="module")
def module_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder: Path = tmp_path_factory.mktemp("bad-messages")
    gateway = Gateway(folder / "data").start()
    yield gateway
    gateway.clean_up()


@pytest.fixture
def application(module_gateway: Gateway) -> Iterator[QueueManager]:
    with connect_queue_manager(module_gateway.data) as queue_manager:
        if "APP.REPLY" not in [status.name for status in queue_manager.queues()]:
            queue_manager.define("APP.REPLY")
        yield queue_manager
        assert queue_manager.depth("APP.REPLY") == 0
        queue_manager.clear(DEAD_LETTER_QUEUE)
        assert "Traceback" not in module_gateway.log


def _mqrfh(name_values: str) -> bytes:
    """An MQRFH in little-endian around a string."""
    string = name_values.encode()
    length = (32 + len(string)).to_bytes(4, "little")
    return b"RFH \x01\0\0\0" + length + packet("22020000 B8040000 '        ' 00000000") + string


def _mqrfh2(folder: str) -> bytes:
    """An MQRFH2 in little-endian around a folder, which is padded to a multiple of 4."""
    data = folder.encode() + b" " * (-len(folder.encode()) % 4)
    length = (40 + len(data)).to_bytes(4, "little")
    fixed = packet("22020000 B8040000 '        ' 00000000 B8040000")
    return b"RFH \x02\0\0\0" + length + fixed + len(data).to_bytes(4, "little") + data


def _request(format: bytes, correl_id: bytes = bytes(24)) -> MessageDescriptor:
    return MessageDescriptor(
        msg_type=MQMT_REQUEST, format=format, reply_to_q="APP.REPLY", correl_id=correl_id, persistence=MQPER_PERSISTENT
    )


def _reason(application: QueueManager, queue_name: str, descriptor: MessageDescriptor, body: bytes) -> int:
    """The reason code with which a command is refused."""
    msg_id = application.put(queue_name, Message(descriptor, body))
    answer = application.get("APP.REPLY", correl_id=msg_id, wait_s=PATIENCE_S)
    assert answer.descriptor.format == descriptor.format
    if descriptor.format == MQRFH:
        names = answer.body[32:].split(b"\0")[0].decode().split()
        assert names[:3] == ["MQPSCompCode", "2", "MQPSReason"], names
        return int(names[3])
    text = answer.body.decode("latin-1")
    assert "<pscr><Completion>error</Completion><Response><Reason>" in text, text
    return int(text.split("<Reason>")[1].split("<")[0])


@pytest.mark.parametrize(
    ("queue_name", "body", "reason_code"),
    [
        (STREAM_QUEUE, "MQPSCommand Bogus MQPSTopic a ", 2336),
        (CONTROL_QUEUE, "MQPSCommand Bogus MQPSTopic a ", 2336),
        (CONTROL_QUEUE, "MQPSTopic a MQPSCommand RegSub  ", 2336),
        (CONTROL_QUEUE, "                                ", 2336),
        (CONTROL_QUEUE, "MQPSCommand RegSub MQPSTopic    ", 2335),
        (CONTROL_QUEUE, 'MQPSCommand RegSub MQPSTopic "a ', 2335),
        (CONTROL_QUEUE, "MQPSCommand RegSub MQPSQName APP.REPLY  ", 2339),
        (CONTROL_QUEUE, "MQPSCommand Publish MQPSTopic a ", 3079),
        (CONTROL_QUEUE, "MQPSCommand DeletePub MQPSTopic a   ", 3079),
        (STREAM_QUEUE, "MQPSCommand RegSub MQPSTopic a  ", 3079),
        (STREAM_QUEUE, "MQPSCommand Publish MQPSTopic a*b   ", 3072),
        (STREAM_QUEUE, "MQPSCommand Publish MQPSTopic a%b   ", 3072),
        (STREAM_QUEUE, "MQPSCommand Publish MQPSPubOpts Often MQPSTopic a   ", 3084),
        (STREAM_QUEUE, "MQPSCommand Publish MQPSStreamName OTHER MQPSTopic a", 3075),
        (CONTROL_QUEUE, "MQPSCommand RegSub MQPSRegOpts CorrelAsId MQPSTopic a   ", 3080),
        (CONTROL_QUEUE, "MQPSCommand RegSub MQPSRegOpts Often MQPSTopic a", 3083),
        (CONTROL_QUEUE, "MQPSCommand RegSub MQPSStreamName NO.SUCH MQPSTopic a", 3082),
        (CONTROL_QUEUE, "MQPSCommand DeregSub MQPSTopic never", 3073),
    ],
)
def test_a_bad_command_in_mqrfh_has_its_reason_code(
    application: QueueManager, queue_name: str, body: str, reason_code: int
) -> None:
    assert _reason(application, queue_name, _request(MQRFH), _mqrfh(body)) == reason_code


@pytest.mark.parametrize(
    ("queue_name", "folder", "reason_code"),
    [
        (CONTROL_QUEUE, "<psc><Command>Bogus</Command><Topic>a</Topic></psc>", 2336),
        (CONTROL_QUEUE, "<psc><Topic>a</Topic></psc>", 2336),
        (CONTROL_QUEUE, "<psc><Command>RegPub</Command><Topic>a</Topic></psc>", 2336),
        (CONTROL_QUEUE, "<psc><Command>RegSub</Command></psc>", 2339),
        (CONTROL_QUEUE, "<psc><Command>Publish</Command><Topic>a</Topic></psc>", 3079),
        (STREAM_QUEUE, "<psc><Command>RegSub</Command><Topic>a</Topic></psc>", 3079),
        (STREAM_QUEUE, "<psc><Command>Publish</Command></psc>", 2339),
    ],
)
def test_a_bad_command_in_mqrfh2_has_its_reason_code(
    application: QueueManager, queue_name: str, folder: str, reason_code: int
) -> None:
    assert _reason(application, queue_name, _request(MQRFH2), _mqrfh2(folder)) == reason_code


@pytest.mark.parametrize(
    ("format", "whole"), [(MQRFH, PUBLISH_MQRFH), (MQRFH2, PUBLISH_MQRFH2)], ids=["MQRFH", "MQRFH2"]
)
def test_a_header_cut_at_every_length_is_answered(application: QueueManager, format: bytes, whole: bytes) -> None:
    reasons = {_reason(application, STREAM_QUEUE, _request(format), whole[:length]) for length in range(len(whole))}
    assert reasons == {2334}


@pytest.mark.parametrize("queue_name", [CONTROL_QUEUE, STREAM_QUEUE])
@pytest.mark.parametrize("body", [b"", b"\x00", b"no header at all", PUBLISH_MQRFH])
def test_what_is_no_command_goes_whole_to_the_dead_letter_queue(
    application: QueueManager, queue_name: str, body: bytes
) -> None:
    """MQDLH, 172 bytes: Reason 2110 (83E) at offset 8, DestQName at 12, DestQMgrName at 60, Format at 116."""
    application.put(queue_name, Message(MessageDescriptor(format=b"MQSTR   ", persistence=MQPER_PERSISTENT), body))
    dead = application.get(DEAD_LETTER_QUEUE, wait_s=PATIENCE_S)
    assert dead.descriptor.format == b"MQDEAD  "
    assert dead.body[:12] == packet("'DLH ' 01000000 3E080000")
    assert dead.body[12:60] == queue_name.encode().ljust(48)
    assert dead.body[60:108] == b"RFHBRIDGE".ljust(48)
    assert dead.body[108:124] == packet("22020000 B8040000 'MQSTR   '")
    assert dead.body[172:] == body


def test_a_refused_datagram_is_answered_as_its_report_asks(application: QueueManager) -> None:
    bad = _mqrfh("MQPSCommand Bogus MQPSTopic a ")
    silent = MessageDescriptor(msg_type=MQMT_DATAGRAM, format=MQRFH, reply_to_q="APP.REPLY")
    application.put(STREAM_QUEUE, Message(silent, bad))
    asking = silent.replace(report=MQRO_NAN)
    msg_id = application.put(STREAM_QUEUE, Message(asking, bad))
    answer = application.get("APP.REPLY", wait_s=PATIENCE_S)
    assert answer.descriptor.correl_id == msg_id
    assert b"MQPSReason 2336 " in answer.body


def test_a_subscriber_queue_that_is_not_defined_gets_nothing_lost(application: QueueManager) -> None:
    """Either the registration is refused, or what it brings ends on the dead-letter queue."""
    register = _mqrfh("MQPSCommand RegSub MQPSQName NO.SUCH.QUEUE MQPSTopic bad/lost   ")
    msg_id = application.put(CONTROL_QUEUE, Message(_request(MQRFH), register))
    answer = application.get("APP.REPLY", correl_id=msg_id, wait_s=PATIENCE_S)
    if b"MQPSCompCode 0" in answer.body:
        publish = _mqrfh("MQPSCommand Publish MQPSTopic bad/lost  ") + b"precious"
        application.put(STREAM_QUEUE, Message(MessageDescriptor(format=MQRFH), publish))
        assert application.get(DEAD_LETTER_QUEUE, wait_s=PATIENCE_S).body.endswith(b"precious")
    else:
        assert b"MQPSReason 3076 " in answer.body


def test_a_queue_that_is_not_defined_is_2085(application: QueueManager) -> None:
    with pytest.raises(QueueManagerError) as refused:
        application.put("NO.SUCH.QUEUE", Message(MessageDescriptor(), b""))
    assert refused.value.reason_code == 2085
    assert "rfhbridge queue define" in str(refused.value)
