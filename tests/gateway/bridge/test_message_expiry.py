"""Message expiry of MQTT 5: carried as MQMD.Expiry, and what is left of it delivered."""

import ormsgpack

from gateway.audit_trail.notes import NoteKind
from gateway.bridge.session_store import HeldPublish
from mq_adapters.message import MQEI_UNLIMITED
from tests.gateway.bridge.audited import assert_every_conversion_is_as_the_audit_predicts
from tests.gateway.bridge.conftest import DEFAULT_STREAM, NewWorld, World, written
from tests.gateway.bridge.test_level_5_sessions import connect, pass_seconds
from tests.gateway.bridge.test_level_5_subscriptions import connected, publish, subscribe, subscribed

#: PUBLISH of QoS 1 to a/b with payload X, that expires after 60 s.
IN_A_MINUTE = "32 0E 0003 'a/b' 0001 05 02 0000003C 'X'"


def test_expiry_in_seconds_becomes_tenths_of_a_second(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    link = connect(world, "self")
    world.receive(link, IN_A_MINUTE, "32 0E 0003 'a/b' 0002 05 02 FFFFFFFF 'X'", "32 09 0003 'a/b' 0003 00 'X'")
    expiries = [message.descriptor.expiry for message in world.messages(DEFAULT_STREAM)]
    assert expiries == [600, MQEI_UNLIMITED, MQEI_UNLIMITED]


def test_what_is_left_of_the_expiry_is_delivered(world: World) -> None:
    """MQTT-3.3.2-6."""
    world.lose(subscribed(world, "01"))
    world.receive(connect(world, "else"), IN_A_MINUTE)
    world.now_us += 20_500_000
    link = connect(world, "self", flags="00", properties="11 FFFFFFFF")
    assert link.taken()[5:] == written("32 0E 0003 'a/b' 0001 05 02 00000028 'X'")


def test_what_has_expired_is_not_delivered(world: World) -> None:
    """MQTT-3.3.2-5."""
    world.lose(subscribed(world, "01"))
    world.receive(connect(world, "else"), IN_A_MINUTE)
    pass_seconds(world, 60)
    link = connect(world, "self", flags="00", properties="11 FFFFFFFF")
    assert link.taken()[5:] == b""


def test_the_time_between_publish_and_release_counts(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    link = connect(world, "self")
    world.receive(link, "34 0E 0003 'a/b' 0001 05 02 0000003C 'X'")
    world.now_us += 15_000_000
    world.receive(link, "62 02 0001")
    assert [message.descriptor.expiry for message in world.messages(DEFAULT_STREAM)] == [450]


def test_what_expired_before_its_release_is_put_nowhere_and_acknowledged(new_world: NewWorld) -> None:
    """MQTT-3.3.2-5, MQTT-4.3.3-13; the audit hears of a refusal."""
    world = new_world(has_broker=False)
    link = connect(world, "self")
    world.receive(link, "34 0E 0003 'a/b' 0001 05 02 00000001 'X'")
    link.taken()
    world.now_us += 1_000_000
    world.receive(link, "62 02 0001")
    assert link.taken() == written("70 02 0001")
    assert world.messages(DEFAULT_STREAM) == []
    refused = [note[5:] for note in world.notes if note[0] == NoteKind.REFUSED]
    assert refused == [("Publish", 0, 2013, "it expired before its PUBREL")]


def test_what_expired_before_its_release_replaces_what_is_retained(world: World) -> None:
    """MQTT-3.3.1-5: an older message would be the newest again."""
    publish(world, "31 06 0003 'a/b' 'R'")
    link = connect(world, "else")
    world.receive(link, "35 0E 0003 'a/b' 0001 05 02 00000001 'X'")
    pass_seconds(world, 1)
    link.taken()
    world.receive(link, "62 02 0001")
    assert link.taken() == written("70 02 0001")
    subscriber = connected(world)
    subscribe(world, subscriber, "01")
    assert subscriber.taken() == written("90 04 0001 00 01")
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_a_will_expires_as_it_says(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    world.lose(connect(world, "self", flags="06", payload="05 02 0000003C 0003 'w/t' 0001 'W'"))
    assert [message.descriptor.expiry for message in world.messages(DEFAULT_STREAM)] == [600]


def test_a_held_publish_of_version_1_does_not_expire() -> None:
    packed = ormsgpack.packb([1, 7, "a/b", False, b"header", b"payload"])
    assert HeldPublish.unpack(packed) == HeldPublish(7, "a/b", False, b"header", b"payload", 0)
