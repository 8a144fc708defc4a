"""Packets to commands: the bytes that the gateway puts on the broker's queues, typed by hand from IBM's layouts.

No broker is attached here, so what it would take stays on the queue and can be looked at.
"""

import pytest

from gateway.audit_trail.notes.notes import NoteKind, Translation
from mappings.commands.command import Dialect
from mq_adapters.message import MQMT_DATAGRAM, MQMT_REQUEST, MQRO_NAN, Message
from spark_audit.reperform.comparison import Status
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.performance import reperform
from tests.gateway.bridge.conftest import DEFAULT_STREAM, FakeLink, NewWorld, World, publish_packet, written

CONTROL_QUEUE, DEAD_LETTER_QUEUE = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.DEAD.LETTER.QUEUE"
MQRFH, MQRFH2 = b"MQHRF   ", b"MQHRF2  "
#: Encoding 546, CodedCharSetId 1208, no format, no flags; of what follows the header.
NO_BODY = written("22020000 B8040000 '        ' 00000000")


def _mqrfh(name_values: str) -> bytes:
    """An MQRFH in little-endian, its string padded with blanks to a multiple of 4."""
    string = name_values.encode()
    string += b" " * (-len(string) % 4)
    return b"RFH \x01\0\0\0" + (32 + len(string)).to_bytes(4, "little") + NO_BODY + string


def _mqrfh2(folder: str) -> bytes:
    """An MQRFH2 in little-endian with one folder in UTF-8."""
    data = folder.encode()
    data += b" " * (-len(data) % 4)
    length = (40 + len(data)).to_bytes(4, "little")
    return b"RFH \x02\0\0\0" + length + NO_BODY + written("B8040000") + len(data).to_bytes(4, "little") + data


def _bodies(world: World, queue_name: str) -> list[bytes]:
    return [message.body for message in world.messages(queue_name)]


@pytest.fixture
def mqrfh(new_world: NewWorld) -> World:
    return new_world(dialect=Dialect.MQRFH, has_broker=False)


@pytest.fixture
def mqrfh2(new_world: NewWorld) -> World:
    return new_world(dialect=Dialect.MQRFH2, has_broker=False)


def test_a_publish_becomes_a_publish_command_with_its_payload_behind_it(mqrfh: World) -> None:
    packets = ("30 06 0003 'a/b' 'A'", "33 08 0003 'a b' 0001 'B'", "34 08 0003 'c*d' 0002 'C'", "62 02 0002")
    mqrfh.receive(mqrfh.connect("self"), *packets)
    assert sorted(_bodies(mqrfh, DEFAULT_STREAM), key=lambda body: body[-1]) == [
        _mqrfh("MQPSCommand Publish MQPSPubOpts NoReg MQPSTopic a/b") + b"A",
        _mqrfh('MQPSCommand Publish MQPSPubOpts RetainPub MQPSPubOpts NoReg MQPSTopic "a b"') + b"B",
        _mqrfh("MQPSCommand Publish MQPSPubOpts NoReg MQPSTopic c%*d") + b"C",
    ]


def test_a_publish_in_mqrfh2_has_a_psc_folder(mqrfh2: World) -> None:
    mqrfh2.receive(mqrfh2.connect("self"), "32 08 0003 'a&b' 0001 'A'", "33 08 0003 'a/b' 0002 'B'")
    assert _bodies(mqrfh2, DEFAULT_STREAM) == [
        _mqrfh2("<psc><Command>Publish</Command><Topic>a&amp;b</Topic></psc>") + b"A",
        _mqrfh2("<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a/b</Topic></psc>") + b"B",
    ]


@pytest.mark.parametrize(("dialect", "format"), [(Dialect.MQRFH, MQRFH), (Dialect.MQRFH2, MQRFH2)])
def test_the_mqmd_of_a_publish_asks_for_negative_notification(
    new_world: NewWorld, dialect: Dialect, format: bytes
) -> None:
    world = new_world(dialect=dialect, has_broker=False)
    world.receive(world.connect("self"), "30 06 0003 'a/b' 'A'", "32 08 0003 'a/b' 0001 'B'")
    for message, persistence in zip(world.messages(DEFAULT_STREAM), (0, 1), strict=True):
        descriptor = message.descriptor
        assert (descriptor.msg_type, descriptor.report) == (MQMT_DATAGRAM, MQRO_NAN)
        assert (descriptor.format, descriptor.coded_char_set_id, descriptor.encoding) == (format, 1208, 546)
        assert (descriptor.persistence, descriptor.expiry, descriptor.priority) == (persistence, -1, 0)
        assert (descriptor.reply_to_q, descriptor.reply_to_q_mgr) == ("RFHBRIDGE.REPLY", "RFHBRIDGE")


@pytest.mark.parametrize(
    ("dialect", "delete", "publish"),
    [
        (
            Dialect.MQRFH,
            _mqrfh("MQPSCommand DeletePub MQPSTopic a/b"),
            _mqrfh("MQPSCommand Publish MQPSPubOpts NoReg MQPSTopic a/b"),
        ),
        (
            Dialect.MQRFH2,
            _mqrfh2("<psc><Command>DeletePub</Command><Topic>a/b</Topic></psc>"),
            _mqrfh2("<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"),
        ),
    ],
)
@pytest.mark.parametrize(
    "packets", [["31 05 0003 'a/b'"], ["33 07 0003 'a/b' 0001"], ["35 07 0003 'a/b' 0001", "62 02 0001"]]
)
def test_a_retained_delete_is_deletepub_and_then_publish_in_one_unit(
    new_world: NewWorld, dialect: Dialect, delete: bytes, publish: bytes, packets: list[str]
) -> None:
    world = new_world(dialect=dialect, has_broker=False)
    link = world.connect("self")
    world.receive(link, *packets[:-1])
    world.commits_are_held = True
    world.receive(link, packets[-1])
    assert world.waiting_commits == 1
    world.commits_are_held = False
    world.run()
    assert _bodies(world, DEFAULT_STREAM) == [delete, publish]


def test_a_will_becomes_a_publish(mqrfh: World) -> None:
    link = FakeLink()
    mqrfh.receive(link, "10 1A 0004 'MQTT' 04 2E 0000 0004 'will' 0003 'w/w' 0003 'bye'")
    mqrfh.lose(link)
    assert _bodies(mqrfh, DEFAULT_STREAM) == [
        _mqrfh("MQPSCommand Publish MQPSPubOpts RetainPub MQPSPubOpts NoReg MQPSTopic w/w") + b"bye"
    ]


def test_a_subscribe_becomes_one_regsub_for_each_filter(mqrfh: World) -> None:
    """In MQRFH the patterns are those of the character scheme, and never narrower than the filter."""
    link = mqrfh.connect("self")
    mqrfh.receive(link, "82 0E 0001 0003 'a/+' 01 0003 'a/#' 02")
    names = "MQPSRegOpts CorrelAsId MQPSRegOpts InformIfRet"
    queue = "MQPSQName RFHBRIDGE.SUBSCRIBER MQPSQMgrName RFHBRIDGE"
    assert _bodies(mqrfh, CONTROL_QUEUE) == [
        _mqrfh(f"MQPSCommand RegSub {names} {queue} MQPSTopic a/*"),
        _mqrfh(f"MQPSCommand RegSub {names} {queue} MQPSTopic a MQPSTopic a/*"),
    ]
    assert link.sent == b"", "SUBACK waits for the broker's answer"
    _check_requests(mqrfh.messages(CONTROL_QUEUE), MQRFH)


def _check_requests(messages: list[Message], format: bytes) -> None:
    correl_ids = {message.descriptor.correl_id for message in messages}
    assert len(correl_ids) == 1
    assert bytes(24) not in correl_ids
    for message in messages:
        descriptor = message.descriptor
        assert (descriptor.msg_type, descriptor.format, descriptor.persistence) == (MQMT_REQUEST, format, 1)
        assert (descriptor.reply_to_q, descriptor.expiry) == ("RFHBRIDGE.REPLY", -1)


def test_a_subscribe_in_mqrfh2_keeps_the_filter(mqrfh2: World) -> None:
    mqrfh2.receive(mqrfh2.connect("self"), "82 08 0001 0003 'a/+' 01")
    (message,) = mqrfh2.messages(CONTROL_QUEUE)
    folder = message.body[40:].decode().rstrip()
    assert folder.startswith("<psc><Command>RegSub</Command>")
    for element in (
        "<RegOpt>CorrelAsId</RegOpt>",
        "<RegOpt>InformIfRet</RegOpt>",
        "<QName>RFHBRIDGE.SUBSCRIBER</QName>",
        "<QMgrName>RFHBRIDGE</QMgrName>",
        "<Topic>a/+</Topic>",
    ):
        assert folder.count(element) == 1, folder
    _check_requests([message], MQRFH2)


def test_two_clients_and_two_sessions_of_one_have_identities_of_their_own(mqrfh2: World) -> None:
    for name in ("one1", "two2", "one1"):
        mqrfh2.receive(mqrfh2.connect(name), "82 08 0001 0003 'a/+' 01")
    registered = [message for message in mqrfh2.messages(CONTROL_QUEUE) if b"RegSub" in message.body]
    assert len({message.descriptor.correl_id for message in registered}) == 3


@pytest.mark.parametrize(
    ("dialect", "command"),
    [
        (Dialect.MQRFH, "MQPSCommand DeregSub MQPSRegOpts CorrelAsId MQPSRegOpts DeregAll"),
        (Dialect.MQRFH2, "<Command>DeregSub</Command><RegOpt>CorrelAsId</RegOpt><RegOpt>DeregAll</RegOpt>"),
    ],
)
@pytest.mark.parametrize("how", ["disconnect", "lost", "clean connect"])
def test_the_end_of_a_session_deregisters_all_of_it(
    new_world: NewWorld, dialect: Dialect, command: str, how: str
) -> None:
    world = new_world(dialect=dialect, has_broker=False)
    link = world.connect("self", flags="00" if how == "clean connect" else "02")
    world.receive(link, "82 08 0001 0003 'a/+' 01")
    if how == "disconnect":
        world.receive(link, "E0 00")
    elif how == "lost":
        world.lose(link)
    else:
        world.connect("self")
    register, deregister = world.messages(CONTROL_QUEUE)
    assert command.encode() in deregister.body
    assert b"Topic" not in deregister.body
    assert deregister.descriptor.correl_id == register.descriptor.correl_id
    assert deregister.is_persistent


def test_the_end_of_a_session_without_subscriptions_says_nothing_to_the_broker(mqrfh2: World) -> None:
    mqrfh2.receive(mqrfh2.connect("self"), "E0 00")
    assert mqrfh2.messages(CONTROL_QUEUE) == []


def test_what_was_acknowledged_and_cannot_be_said_under_another_configuration_goes_to_the_dead_letter_queue(
    new_world: NewWorld,
) -> None:
    """An MQRFH holds U+0001, and an MQRFH2 does not: between PUBREC and PUBREL the header was changed."""
    world = new_world(dialect=Dialect.MQRFH)
    link = world.connect("self", flags="00", level=3)
    world.receive(link, "34 10 0004 'a/' 0162 0001 'precious'")
    assert link.taken() == written("50 02 0001")
    world = new_world(dialect=Dialect.MQRFH2)
    link = world.connect("self", flags="00", level=3)
    world.receive(link, "62 02 0001")
    assert link.taken() == written("70 02 0001")
    (dead,) = world.messages(DEAD_LETTER_QUEUE)
    assert dead.descriptor.format == b"MQDEAD  "
    assert dead.body[:12] == written("'DLH ' 01000000 000C0000")
    assert dead.body[12:60].decode().rstrip() == DEFAULT_STREAM
    assert dead.body[116:124] == b"RFHBMQT3", "the packet itself: no header can say its topic"
    assert dead.body[172:] == written("34 10 0004 'a/' 0162 0001 'precious'")
    kinds = [note[0] for note in world.notes]
    assert kinds.count(NoteKind.REFUSED) == kinds.count(NoteKind.DEAD_LETTERED) == 1
    assert world.messages(DEFAULT_STREAM) == []


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("topic", ["a/b", "*", "50%", "a b?"])
def test_every_header_of_a_deletion_is_what_the_audit_predicts_from_the_packet(
    new_world: NewWorld, dialect: Dialect, topic: str
) -> None:
    """Two programs, one answer: DeletePub, whose topic is a pattern, and the Publish behind it."""
    world = new_world(dialect=dialect, has_broker=False)
    packet = publish_packet(0x33, topic.encode(), b"")
    world.bridge.receive(world.connect("self"), packet)
    world.run()
    contexts = {note[-1].command: note[-1] for note in world.notes if isinstance(note[-1], Translation)}
    assert list(contexts) == ["DeletePub", "Publish"]
    for command, context in contexts.items():
        outcome = reperform(
            Facts(
                conversion="packet_to_header",
                command=command,
                topic=context.topic,
                queue=context.queue,
                packet_type=3,
                granted_qos=-1,
                published_qos=-1,
                is_retained=False,
                payload_bytes=0,
                dropped_fields=(),
                input=packet,
                input_format="MQTT",
                input_ccsid=-1,
                input_encoding=-1,
                output=context.header,
                output_format=context.format.decode().rstrip(),
                output_ccsid=context.coded_char_set_id,
                output_encoding=context.encoding,
            )
        )
        assert (outcome.status, outcome.same_bytes) == (Status.MATCH, True), outcome.detail
