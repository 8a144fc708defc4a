"""PUBACK at level 5 says where nobody subscribes (MQTT 5.0 section 3.4.2.1); bytes and headers are written by hand."""

import hashlib

import pytest

from gateway.access.dollar_topics import DollarTopics
from gateway.audit_trail.notes.notes import NoteKind
from gateway.mqtt.connection import Connection
from mappings.commands.command import Dialect
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, mqrfh2, written
from tests.gateway.bridge.connect.test_level_5_sessions import connect
from tests.gateway.bridge.subscribe.test_subscriptions_at_targets import configured

CONTROL_QUEUE = "SYSTEM.BROKER.CONTROL.QUEUE"
DIALECTS = pytest.mark.parametrize("dialect", [Dialect.MQRFH, Dialect.MQRFH2])
NOBODY, SOMEBODY = "10", ""


def client(world: World, name: str = "self") -> FakeLink:
    link = connect(world, name, properties="11 FFFFFFFF")
    link.taken()
    return link


def subscribed(world: World, topic_filter: str, options: str = "01", name: str = "hear") -> FakeLink:
    """A client of level 5 with one subscription."""
    link = client(world, name)
    body = written(f"0001 00 {len(topic_filter):04X} '{topic_filter}' {options}")
    world.bridge.receive(link, bytes((0x82, len(body))) + body)
    world.run()
    assert link.taken()[-1] < 0x80
    return link


def puback(world: World, link: FakeLink, topic: str = "a/b", first_byte: int = 0x32, payload: str = "X") -> str:
    """The reason code of PUBACK to a PUBLISH of QoS 1, in hexadecimal digits; "" where it has none."""
    body = written(f"{len(topic):04X} '{topic}' 0009 00 '{payload}'")
    world.bridge.receive(link, bytes((first_byte, len(body))) + body)
    world.run()
    answer = link.taken()
    assert answer[:1] == b"\x40"
    assert answer[2:4] == b"\x00\x09"
    return answer[4 : 2 + answer[1]].hex()


def register(world: World, topic: str, *, options: str = "", queue: str = "APP") -> None:
    """An MQ application subscribes with an MQRFH, big-endian, in ISO 8859-1 (CCSID 819)."""
    world.engine.ensure(queue, "")
    text = f"MQPSCommand RegSub MQPSTopic {topic} MQPSQName {queue} {options}".encode()
    text += b" " * (-len(text) % 4)
    header = written("'RFH ' 00000001") + (32 + len(text)).to_bytes(4, "big")
    header += written("00000111 00000333 '        ' 00000000") + text
    descriptor = MessageDescriptor(
        format=b"MQHRF   ", encoding=273, coded_char_set_id=819, persistence=MQPER_PERSISTENT, reply_to_q=queue
    )
    unit = world.engine.begin()
    world.engine.put(unit, world.engine.queue(CONTROL_QUEUE), Message(descriptor, header))
    world.engine.submit(unit)
    world.run()
    assert world.registrations() == 1


@DIALECTS
def test_puback_says_that_nobody_subscribes(new_world: NewWorld, dialect: Dialect) -> None:
    world = new_world(dialect=dialect)
    assert puback(world, client(world)) == NOBODY


@DIALECTS
@pytest.mark.parametrize("topic_filter", ["a/b", "a/+", "#", "a/b/#", "$share/g/a/#"])
def test_puback_says_nothing_where_a_client_subscribes(
    new_world: NewWorld, dialect: Dialect, topic_filter: str
) -> None:
    world = new_world(dialect=dialect)
    subscribed(world, topic_filter)
    assert puback(world, client(world)) == SOMEBODY


@DIALECTS
@pytest.mark.parametrize(
    ("topic_filter", "topic"),
    [
        ("a/+", "a/b/c"),
        ("$share/g/a/+", "a/b/c"),
        ("+/b", "$a/b"),
        ("a/b", "a/B"),
    ],
)
def test_a_filter_that_a_broker_would_match_and_mqtt_does_not_is_nobody(
    new_world: NewWorld, dialect: Dialect, topic_filter: str, topic: str
) -> None:
    """In MQRFH `a/+` is registered as `a/*`, which matches every level below."""
    world = new_world(dialect=dialect, dollar_topics=DollarTopics(["$a/#"]))
    subscribed(world, topic_filter)
    assert puback(world, client(world), topic) == NOBODY


def test_each_subscription_and_its_end_is_heard_of_at_once(world: World) -> None:
    link = client(world)
    assert puback(world, link) == NOBODY
    hearer = subscribed(world, "a/b")
    assert puback(world, link) == SOMEBODY
    world.receive(hearer, "40 02 0001", "A2 08 0002 00 0003 'a/b'")
    assert puback(world, link) == NOBODY


def test_the_filter_that_is_left_decides_though_both_are_one_pattern_for_the_broker(new_world: NewWorld) -> None:
    """In MQRFH `a/+` and `a/+/#` are both `a/*`."""
    world = new_world(dialect=Dialect.MQRFH)
    hearer = subscribed(world, "a/+")
    world.receive(hearer, "82 0B 0002 00 0005 'a/+/#' 00")
    link = client(world)
    assert puback(world, link, "a/b/c") == SOMEBODY
    world.receive(hearer, "A2 0A 0003 00 0005 'a/+/#'")
    assert puback(world, link, "a/b/c") == NOBODY


def test_who_is_not_connected_subscribes_all_the_same(world: World) -> None:
    world.lose(subscribed(world, "a/b"))
    assert puback(world, client(world)) == SOMEBODY


def test_a_session_that_has_ended_subscribes_to_nothing(world: World) -> None:
    link = connect(world, "hear")
    world.receive(link, "82 09 0001 00 0003 'a/b' 01")
    world.lose(link)
    assert puback(world, client(world)) == NOBODY


def test_the_publisher_itself_is_somebody_even_with_no_local(world: World) -> None:
    """A filter that matches is a matching subscription, whoever the message is kept from."""
    assert puback(world, subscribed(world, "a/b", "05", "self")) == SOMEBODY


def test_a_subscription_that_has_not_been_answered_yet_is_somebody(world: World) -> None:
    hearer, link = client(world, "hear"), client(world)
    world.commits_are_held = True
    world.receive(hearer, "82 09 0001 00 0003 'a/b' 00")
    world.receive(link, "32 09 0003 'a/b' 0001 00 'X'")
    assert (hearer.taken(), link.taken()) == (b"", b"")
    world.commits_are_held = False
    world.run()
    assert link.taken() == written("40 02 0001")
    assert hearer.taken() == written("90 04 0001 00 00 30 07 0003 'a/b' 00 'X'")


@pytest.mark.parametrize("topic", ["a/b", "a/*"])
def test_an_application_that_subscribes_is_somebody(world: World, topic: str) -> None:
    register(world, topic)
    assert puback(world, client(world)) == SOMEBODY


def test_an_application_that_asks_for_publications_only_on_request_is_sent_none(world: World) -> None:
    register(world, "a/b", options="MQPSRegOpts PubOnReqOnly")
    assert puback(world, client(world)) == NOBODY


def test_what_is_only_retained_has_no_subscriber(world: World) -> None:
    link = client(world)
    assert puback(world, link, first_byte=0x33) == NOBODY
    assert puback(world, link, first_byte=0x33, payload="") == NOBODY


def test_pubrec_does_not_say_it_for_the_message_is_published_by_pubrel(world: World) -> None:
    link = client(world)
    world.receive(link, "34 09 0003 'a/b' 0001 00 'X'", "62 02 0001")
    assert link.taken() == written("50 02 0001 70 02 0001")


def test_before_level_5_puback_has_no_reason_code(world: World) -> None:
    link = world.connect("self")
    world.receive(link, "32 08 0003 'a/b' 0001 'X'")
    assert link.taken() == written("40 02 0001")


def test_what_goes_to_a_target_may_have_subscribers_there(new_world: NewWorld) -> None:
    world = new_world(**configured())
    assert puback(world, client(world)) == SOMEBODY


def test_puback_with_a_reason_code_waits_for_the_commit_and_frees_its_place(world: World) -> None:
    """The window has one place (MQTT 5.0 section 4.9): a second PUBLISH may come only after PUBACK."""
    link = FakeLink()
    link.connection = Connection(levels=(5,), receive_maximum=1)
    world.receive(link, "10 11 0004 'MQTT' 05 02 0000 00 0004 'self'")
    link.taken()
    world.commits_are_held = True
    world.receive(link, "32 09 0003 'a/b' 0001 00 'X'")
    assert link.taken() == b""
    world.commits_are_held = False
    world.run()
    assert link.taken() == written("40 03 0001 10")
    world.receive(link, "32 09 0003 'a/b' 0002 00 'X'")
    assert (link.taken(), link.is_open) == (written("40 03 0002 10"), True)


@DIALECTS
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_copy_has_the_hash_that_the_note_of_its_publish_has(
    new_world: NewWorld, dialect: Dialect, qos: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not hashed again for the copies."""
    world = three_subscribers(new_world(dialect=dialect))
    link = client(world)
    monkeypatch.setattr("gateway.audit_trail.notes.notes.hashlib", None)
    packet = "30 07 0003 'a/b' 00 'X'" if not qos else f"{0x30 | qos << 1:02x} 09 0003 'a/b' 0001 00 'X'"
    world.receive(link, packet, *(["62 02 0001"] if qos == 2 else []))
    assert payloads_of_copies(world) == [(1, hashlib.sha256(b"X").digest())] * 3


@DIALECTS
def test_a_publication_of_an_application_is_hashed_once_for_all_its_copies(
    new_world: NewWorld, dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = three_subscribers(new_world(dialect=dialect))
    hashed: list[bytes] = []

    class Hashes:
        @staticmethod
        def sha256(data: memoryview) -> object:
            hashed.append(bytes(data))
            return hashlib.sha256(data)

    monkeypatch.setattr("gateway.audit_trail.notes.notes.hashlib", Hashes)
    world.put(mqrfh2("a/b") + b"21.5")
    world.put(mqrfh2("nobody") + b"22.5")
    assert payloads_of_copies(world) == [(4, hashlib.sha256(b"21.5").digest())] * 3
    assert hashed == [b"21.5", b"22.5"]


def three_subscribers(world: World) -> World:
    """Two clients and an application."""
    register(world, "a/*")
    for name in ("hear", "heed"):
        subscribed(world, "a/#", name=name)
    world.engine.tick()
    world.run()
    world.notes.clear()
    return world


def payloads_of_copies(world: World) -> list[tuple[object, ...]]:
    """Bytes and SHA-256 of the payload, of each note of a copy."""
    world.engine.tick()
    world.run()
    return [note[5:7] for note in world.notes if note[0] == NoteKind.COPIED]
