"""A transmission queue that takes no message: no client is lost by that, no will, and no session stays half ended."""

import pytest

from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, written
from tests.gateway.bridge.subscribe.test_subscriptions_at_targets import (
    SUBSCRIBE,
    answer,
    commands,
    configured,
    forget,
    msg_ids,
    pass_time,
    persistent,
)
from tests.mq_adapters.channel.faults import Connection

TRANSMISSION_QUEUE = "RFHBRIDGE.XMIT.QM1.0"
pytestmark = pytest.mark.parametrize("refusal", ["MAXDEPTH(0)"])


def alter(world: World, attributes: str) -> None:
    hand = Connection(world.engine, "a test")
    assert hand.mqsc(f"ALTER QLOCAL('{TRANSMISSION_QUEUE}') {attributes}").succeeded
    hand.close()


def subscribed(new_world: NewWorld, refusal: str) -> tuple[World, FakeLink]:
    """A client that has `a/+`, and then a queue that takes nothing more."""
    world = new_world(**configured())
    link = world.connect("self")
    world.receive(link, SUBSCRIBE)
    answer(world, msg_ids(world)[0])
    assert link.taken() == written("90 03 0001 01")
    forget(world)
    alter(world, refusal)
    return world, link


def test_a_subscribe_is_refused(new_world: NewWorld, refusal: str) -> None:
    world, link = subscribed(new_world, refusal)
    world.receive(link, "82 08 0002 0003 'a/b' 01")
    assert link.taken() == written("90 03 0002 80")
    assert link.is_open
    world.receive(link, "82 06 0003 0001 '#' 01")
    assert link.taken() == written("90 03 0003 80")
    assert world.registrations() == 0, "and nothing stays at the embedded broker"


def test_an_unsubscribe_is_answered(new_world: NewWorld, refusal: str) -> None:
    world, link = subscribed(new_world, refusal)
    world.receive(link, "A2 07 0002 0003 'a/+'")
    assert link.taken() == written("B0 02 0002")
    session = world.sessions.get("self")
    assert session is not None
    assert session.subscriptions == {}


def test_a_clean_session_ends(new_world: NewWorld, refusal: str) -> None:
    world, link = subscribed(new_world, refusal)
    world.receive(link, "E0 00")
    assert world.sessions.get("self") is None
    again = world.connect("self")
    assert again.is_open


def test_a_lost_connection_leaves_its_will(new_world: NewWorld, refusal: str) -> None:
    world, _ = subscribed(new_world, refusal)
    reader = world.connect("read")
    world.receive(reader, "82 08 0001 0003 'b/+' 00")
    assert reader.taken() == written("90 03 0001 00")
    alter(world, "MAXDEPTH(1000) PUT(ENABLED)")
    dying = FakeLink()
    world.receive(dying, "10 18 0004 'MQTT' 04 06 0000 0004 'dies' 0003 'b/w' 0001 'W'")
    world.receive(dying, SUBSCRIBE)
    alter(world, refusal)
    world.lose(dying)
    assert reader.taken() == written("30 06 0003 'b/w' 'W'")
    assert world.sessions.get("dies") is None


def test_a_lost_connection_whose_will_deletes_what_is_retained_holds_up_nobody(
    new_world: NewWorld, refusal: str
) -> None:
    world, _ = subscribed(new_world, refusal)
    reader = world.connect("read")
    world.receive(reader, "82 08 0001 0003 'b/+' 00")
    assert reader.taken() == written("90 03 0001 00")
    deletes, publishes = FakeLink(), FakeLink()
    world.receive(deletes, "10 17 0004 'MQTT' 04 26 0000 0004 'dies' 0003 'a/w' 0000")
    world.receive(publishes, "10 18 0004 'MQTT' 04 06 0000 0004 'more' 0003 'b/w' 0001 'W'")
    world.lose(deletes)
    assert world.sessions.get("dies") is None
    assert len(world.messages("SYSTEM.DEAD.LETTER.QUEUE")) == 1
    world.lose(publishes)
    assert reader.taken() == written("30 06 0003 'b/w' 'W'")


def test_another_queue_manager_gets_its_subscriptions_when_the_queue_takes_them(
    new_world: NewWorld, refusal: str
) -> None:
    world = new_world(**configured())
    world.targets["QM1"].heard_from("QM1", "QM1_1", {})
    persistent(world, "cli1", "cli2")
    alter(world, refusal)
    world.targets["QM1"].heard_from("QM1", "QM1_2", {})
    world.run()
    assert commands(world) == []
    alter(world, "MAXDEPTH(1000) PUT(ENABLED)")
    pass_time(world, 61)
    assert commands(world) == ["RegSub a/+", "RegSub a/+"]
    forget(world)
    pass_time(world, 61)
    assert commands(world) == []
