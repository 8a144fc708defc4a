"""Properties of MQTT 5 at the bridge: in the headers of publications, and back; packets and folders are typed by hand.

The properties (MQTT 5.0 section 3.3.2.3): payload format 1 (01), response topic `r/1` (08), correlation data 00 FF
(09), user properties (26) a=1, a=2, content type `text/plain` (03); 40 bytes.
"""

from collections.abc import Callable

import ormsgpack
import pytest

from gateway.bridge.sessions.session_store import HeldPublish
from gateway.config.mqtt_limits import MqttLimits
from mappings.commands.command import Dialect
from mq_adapters.message import MQEI_UNLIMITED, Message, MessageDescriptor
from tests.gateway.bridge.audited import assert_every_conversion_is_as_the_audit_predicts, records
from tests.gateway.bridge.commands.test_target_messages import mqrfh, mqrfh2
from tests.gateway.bridge.conftest import DEFAULT_STREAM, FakeLink, NewWorld, World, remaining_length, written
from tests.gateway.bridge.connect.test_level_5_sessions import connect, pass_seconds
from tests.gateway.bridge.deliver.test_deliveries_from_targets import configured
from tests.gateway.bridge.remote import Remote, headers, transmissions
from tests.gateway.bridge.subscribe.test_level_5_subscriptions import subscribe, subscribed

OF_MESSAGE = "0101 08 0003 'r/1' 09 0002 00FF 26 0001 'a' 0001 '1' 26 0001 'a' 0001 '2' 03 000A 'text/plain'"
PROPERTIES = f"28 {OF_MESSAGE}"
USR = (
    "<usr><rfhbPayloadFormat dt='i4'>1</rfhbPayloadFormat><rfhbContentType>text/plain</rfhbContentType>"
    "<rfhbRespTopic>r/1</rfhbRespTopic><rfhbCorrel dt='bin.hex'>00ff</rfhbCorrel>"
    '<rfhbUserProps>[["a","1"],["a","2"]]</rfhbUserProps></usr>'
)
PAIRS = (
    "rfhbPayloadFormat 1 rfhbContentType text/plain rfhbRespTopic r/1 rfhbCorrel 00ff"
    ' rfhbUserProps "[[""a"",""1""],[""a"",""2""]]"'
)
PSC = "<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"
#: PUBLISH to a/b with payload X.
QOS_0, QOS_1, QOS_2 = (
    f"{first} 0003 'a/b' {rest} {PROPERTIES} 'X'"
    for first, rest in (("30 2F", ""), ("32 31", "0001"), ("34 31", "0002"))
)


def header_at_broker(world: World) -> bytes:
    (message,) = world.messages(DEFAULT_STREAM)
    return message.body


@pytest.mark.parametrize("packet", [QOS_0, QOS_1])
def test_properties_become_a_folder_usr(new_world: NewWorld, packet: str) -> None:
    world = new_world(has_broker=False)
    world.receive(connect(world, "self"), packet)
    assert header_at_broker(world) == mqrfh2(PSC, USR) + b"X"


def test_properties_become_pairs_of_an_mqrfh(new_world: NewWorld) -> None:
    world = new_world(has_broker=False, dialect=Dialect.MQRFH)
    world.receive(connect(world, "self"), QOS_1)
    assert header_at_broker(world) == mqrfh(f"MQPSCommand Publish MQPSPubOpts NoReg MQPSTopic a/b {PAIRS}") + b"X"


def test_a_publish_without_properties_is_the_same_bytes_at_every_level(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    world.receive(connect(world, "self"), "30 07 0003 'a/b' 00 'X'", QOS_0, "30 07 0003 'a/b' 00 'X'")
    world.receive(world.connect("old "), "30 06 0003 'a/b' 'X'")
    bodies = [message.body for message in world.messages(DEFAULT_STREAM)]
    assert bodies == [mqrfh2(PSC) + b"X", mqrfh2(PSC, USR) + b"X", mqrfh2(PSC) + b"X", mqrfh2(PSC) + b"X"]


@pytest.mark.parametrize("dialect", list(Dialect))
def test_properties_reach_subscribers_of_level_5_and_no_others(new_world: NewWorld, dialect: Dialect) -> None:
    world = new_world(dialect=dialect)
    link, old = subscribed(world, "02"), world.connect("old ")
    world.receive(old, "82 08 0001 0003 'a/b' 00")
    old.taken()
    world.receive(connect(world, "else"), QOS_0, QOS_1, QOS_2, "62 02 0002")
    assert link.taken() == b"".join(
        written(f"{first} 0003 'a/b' {identifier} {PROPERTIES} 'X'")
        for first, identifier in (("30 2F", ""), ("32 31", "0001"), ("34 31", "0002"))
    )
    assert old.taken() == written("30 06 0003 'a/b' 'X'") * 3
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_properties_go_with_expiry_and_identifiers(world: World) -> None:
    link = subscribed(world, "00", properties="02 0B 07")
    world.receive(connect(world, "else"), f"30 34 0003 'a/b' 2D {OF_MESSAGE} 02 0000003C 'X'")
    assert link.taken() == written(
        "30 36 0003 'a/b' 2F 0101 02 0000003C 08 0003 'r/1' 09 0002 00FF 26 0001 'a' 0001 '1' 26 0001 'a' 0001 '2'"
        "0B 07 03 000A 'text/plain' 'X'"
    )
    assert_every_conversion_is_as_the_audit_predicts(world)


@pytest.mark.parametrize("dialect", list(Dialect))
def test_retained_copies_have_the_properties(new_world: NewWorld, dialect: Dialect) -> None:
    world = new_world(dialect=dialect)
    teller = connect(world, "else")
    world.receive(teller, "33" + QOS_1[2:])
    link = connect(world, "self")
    link.taken()
    subscribe(world, link, "00")
    assert link.taken() == written(f"90 04 0001 00 00 31 2F 0003 'a/b' {PROPERTIES} 'X'")
    world.receive(teller, f"33 30 0003 'a/b' 0002 {PROPERTIES}")
    assert link.taken() == written(f"30 2E 0003 'a/b' {PROPERTIES}")
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_what_is_held_for_qos_2_keeps_its_properties_over_a_restart(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    world.receive(connect(world, "self", properties="11 FFFFFFFF"), QOS_2)
    world = new_world(has_broker=False)
    world.receive(world.connect("self", flags="00"), "62 02 0002")
    assert header_at_broker(world) == mqrfh2(PSC, USR) + b"X"
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_properties_count_among_the_bytes_that_a_session_may_hold(new_world: NewWorld) -> None:
    world = new_world(limits=MqttLimits(maximum_held_bytes=2 * 600 + 80))
    link = connect(world, "self")
    link.taken()
    without = "34 09 0003 'a/b' 0003 00 'X'"
    world.receive(link, QOS_2, QOS_2.replace("0002", "0004", 1), without)
    assert link.taken() == written("50 02 0002 50 03 0004 97 50 02 0003")


def test_held_publishes_of_earlier_versions_are_read_as_they_were() -> None:
    before = HeldPublish(7, "a/b", False, b"header", b"payload", 5)
    assert HeldPublish.unpack(ormsgpack.packb([2, 7, "a/b", False, b"header", b"payload", 5])) == before
    assert before.level == 4
    assert HeldPublish.unpack(before._replace(level=5).pack()) == before._replace(level=5)


@pytest.mark.parametrize("dialect", list(Dialect))
def test_the_properties_of_a_will_survive_a_restart(new_world: NewWorld, dialect: Dialect) -> None:
    world = new_world(dialect=dialect)
    world.lose(subscribed(world, "01", name="hear"))
    will = f"32 18 0000000A 02 0000003C {OF_MESSAGE} 0003 'a/b' 0001 'X'"
    world.lose(connect(world, "self", flags="0E", properties="11 FFFFFFFF", payload=will))
    world = new_world(dialect=dialect)
    pass_seconds(world, 11)
    link = connect(world, "hear", flags="00", properties="11 FFFFFFFF")
    expected = f"32 36 0003 'a/b' 0001 2D 0101 02 0000003C {OF_MESSAGE[5:]} 'X'"
    sent = link.taken()
    assert sent[2 + sent[1] :] == written(expected)
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_an_alias_is_told_by_its_topic_in_the_trail(world: World) -> None:
    link = FakeLink()
    link.connection = type(link.connection)(levels=(5,), topic_alias_maximum=5)
    world.receive(link, "10 14 0004 'MQTT' 05 02 0000 03 22 0002 0004 'self'")
    link.taken()
    world.receive(link, "82 10 0001 00 000A 'plant/line' 00")
    link.taken()
    by_alias = ("30 11 000A 'plant/line' 03 23 0001 'X'", "30 07 0000 03 23 0001 'Y'")
    world.receive(link, *by_alias)
    assert link.taken() == written("".join(by_alias))
    assert_every_conversion_is_as_the_audit_predicts(world)
    topics = [(record["kind"], record["topic"]) for record in records(world) if record.get("packet_type") == 3]
    assert set(topics) == {("accepted", "plant/line"), ("put", "plant/line"), ("delivered", "plant/line")}


def test_records_of_level_5_say_so_and_others_do_not(world: World) -> None:
    subscribed(world, "00")
    world.receive(world.connect("old "), "30 06 0003 'a/b' 'X'")
    world.receive(connect(world, "else"), QOS_1)
    told = [(record["kind"], record.get("protocol_level")) for record in records(world) if "payload_sha256" in record]
    assert told == [
        ("accepted", None),
        ("put", None),
        ("put", None),  # the copy: no packet of MQTT made its header
        ("delivered", 5),
        ("accepted", 5),
        ("put", 5),
        ("put", None),
        ("delivered", 5),
    ]


# -- targets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["mqrfh", "mqrfh2"])
def test_properties_go_to_a_target_and_come_back(
    new_world: NewWorld, remotes: Callable[..., Remote], header: str
) -> None:
    world, remote = new_world(**configured(header=header)), remotes()
    remote.connect(world)
    link = connect(world, "self")
    link.taken()
    world.receive(link, "82 09 0001 00 0003 'a/#' 02")
    remote.carry(world)
    link.taken()
    world.receive(connect(world, "else"), QOS_0, QOS_1, QOS_2, "62 02 0002")
    assert [PAIRS in text or USR[5:] in text for text in headers(world)] == [True] * 3
    remote.carry(world)
    assert link.taken() == written(f"{QOS_0} {QOS_1} {QOS_2}")
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_no_local_and_retain_as_published_hold_for_a_target(
    new_world: NewWorld, remotes: Callable[..., Remote]
) -> None:
    world, remote = new_world(**configured()), remotes()
    remote.connect(world)
    link, other = connect(world, "self"), connect(world, "else")
    for each, options in ((link, "0D"), (other, "01")):
        each.taken()
        world.receive(each, f"82 09 0001 00 0003 'a/#' {options}")
        remote.carry(world)
        assert each.taken() == written("90 04 0001 00 01")
    world.receive(link, "31 07 0003 'a/b' 00 'X'")
    remote.carry(world)
    assert link.taken() == b""
    assert other.taken() == written("30 07 0003 'a/b' 00 'X'")
    world.receive(other, "31 07 0003 'a/b' 00 'Y'")
    remote.carry(world)
    assert link.taken() == written("31 07 0003 'a/b' 00 'Y'")
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_what_is_sent_to_a_target_expires_there(new_world: NewWorld) -> None:
    world = new_world(**configured())
    link = connect(world, "self")
    world.receive(link, "30 0C 0003 'a/b' 05 02 0000003C 'X'", "31 0B 0003 'a/b' 05 02 0000003C")
    world.now_us += 20_500_000
    queue = "RFHBRIDGE.XMIT.QM1.0"
    assert len(world.messages(queue)) == 3, "a DeletePub and its Publish go together, so nothing expires here"
    expiries = [sent.message.descriptor.expiry for sent in transmissions(world)]
    assert expiries == [395, MQEI_UNLIMITED, 395]


# -- from applications -------------------------------------------------------------------------------------------------


def application_put(world: World, body: bytes, *, format: bytes = b"MQHRF2  ", expiry: int = -1) -> None:
    unit = world.engine.begin()
    descriptor = MessageDescriptor(format=format, persistence=1, expiry=expiry)
    world.engine.put(unit, world.engine.queue(DEFAULT_STREAM), Message(descriptor, body))
    world.engine.submit(unit)
    world.run()


def test_an_application_sets_properties_and_expiry(world: World) -> None:
    link = subscribed(world, "01")
    application_put(world, mqrfh2(PSC, USR) + b"X", expiry=600)
    expected = f"32 36 0003 'a/b' 0001 2D 0101 02 0000003C {OF_MESSAGE[5:]} 'X'"
    assert link.taken() == written(expected)
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_an_application_sets_properties_in_pairs_where_the_gateway_speaks_mqrfh(new_world: NewWorld) -> None:
    world = new_world(dialect=Dialect.MQRFH)
    link = subscribed(world, "01")
    application_put(world, mqrfh(f"MQPSCommand Publish MQPSTopic a/b {PAIRS}") + b"X", format=b"MQHRF   ")
    assert link.taken() == written(QOS_1)
    assert_every_conversion_is_as_the_audit_predicts(world)


MANY = ",".join(['["",""]'] * 1_001)
HOSTILE = [
    "<usr><rfhbPayloadFormat>2</rfhbPayloadFormat></usr>",
    "<usr><rfhbRespTopic>a/#</rfhbRespTopic></usr>",
    "<usr><rfhbCorrel>0</rfhbCorrel></usr>",
    f"<usr><rfhbCorrel>{'00' * 65_536}</rfhbCorrel></usr>",
    f"<usr><rfhbContentType>{'c' * 65_536}</rfhbContentType></usr>",
    "<usr><rfhbContentTypeHex>ff</rfhbContentTypeHex></usr>",
    "<usr><rfhbContentTypeHex>07</rfhbContentTypeHex></usr>",
    "<usr><rfhbContentType>a\nb</rfhbContentType></usr>",
    "<usr><rfhbUserProps>{}</rfhbUserProps></usr>",
    '<usr><rfhbUserProps>[["a"]]</rfhbUserProps></usr>',
    '<usr><rfhbUserProps>[["a","\\u0000"]]</rfhbUserProps></usr>',
    f"<usr><rfhbUserProps>{'[' * 100_000}</rfhbUserProps></usr>",
    f"<usr><rfhbUserProps>[{MANY}]</rfhbUserProps></usr>",
]
UNREADABLE = [
    "<usr><rfhbPayloadFormat>1</usr>",
    "<usr><!DOCTYPE x><rfhbPayloadFormat>1</rfhbPayloadFormat></usr>",
    "<usr><g><rfhbPayloadFormat>1</rfhbPayloadFormat></g></usr>",
    "<usr><a>&#1;</a><rfhbPayloadFormat>1</rfhbPayloadFormat></usr>",
]


@pytest.mark.parametrize("usr", [*HOSTILE, *UNREADABLE], ids=lambda usr: usr[:48])
def test_what_is_no_property_is_left_out_and_the_message_delivered(
    world: World, usr: str, caplog: pytest.LogCaptureFixture
) -> None:
    link = subscribed(world, "01")
    application_put(world, mqrfh2(PSC, usr) + b"X")
    assert link.taken() == written("32 09 0003 'a/b' 0001 00 'X'")
    world.bridge.tick()
    assert "messages delivered in part reason=properties in a header that are none of MQTT" in caplog.text
    assert "dropped" not in caplog.text
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_one_wrong_property_takes_no_other_with_it(world: World) -> None:
    link = subscribed(world, "01")
    application_put(world, mqrfh2(PSC, USR.replace("r/1", "r/#")) + b"X")
    assert link.taken() == written(
        "32 2B 0003 'a/b' 0001 22 0101 09 0002 00FF 26 0001 'a' 0001 '1' 26 0001 'a' 0001 '2' 03 000A 'text/plain' 'X'"
    )


# -- hostile clients ---------------------------------------------------------------------------------------------------


def text(value: str) -> bytes:
    data = value.encode()
    return len(data).to_bytes(2, "big") + data


HARD_TEXTS = [
    "",
    " ",
    "<&>\"'",
    "]]></usr><psc>",
    "\U0001f600 \u00e4",
    '"a" ""',
    "\\u0000",
    "&" * 60_000,
    '"' * 60_000,
]


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("value", HARD_TEXTS, ids=lambda value: ascii(value)[:24])
def test_every_text_survives_in_every_property(new_world: NewWorld, dialect: Dialect, value: str) -> None:
    world = new_world(dialect=dialect)
    link = subscribed(world, "00")
    section = (
        b"\x08"
        + text(value or "r")
        + b"\x09"
        + text(value)
        + b"\x26"
        + text("<]]>")
        + text(value)
        + b"\x03"
        + text(value)
    )
    variable = text("a/b") + remaining_length(len(section)) + section
    packet = b"\x30" + remaining_length(len(variable) + 1) + variable + b"X"
    teller = connect(world, "else")
    world.bridge.receive(teller, packet)
    world.run()
    assert link.taken() == packet
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_a_payload_for_which_the_properties_leave_no_room_is_refused(new_world: NewWorld) -> None:
    world = new_world(**configured())
    world.targets["QM1"].heard_from("QM1", "QM1_1", {DEFAULT_STREAM: 5_000})
    link = connect(world, "self")
    link.taken()
    for section, answer in ((b"", "40 02 0001"), (b"\x09" + text("c" * 300), "40 03 0001 83")):
        variable = text("a/b") + b"\0\x01" + remaining_length(len(section)) + section + b"X" * 3_000
        world.bridge.receive(link, b"\x32" + remaining_length(len(variable)) + variable)
        world.run()
        assert link.taken() == written(answer)
    assert len(transmissions(world)) == 1
