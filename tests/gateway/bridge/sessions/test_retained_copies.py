"""Retained copies that a SUBSCRIBE brings: their bytes are charged before they are written, and end with a refusal."""

from itertools import count, product

import pytest

from gateway.bridge.sessions.retained_copies import _QUIET_TICKS
from gateway.config.limits import Limit
from gateway.config.mqtt_limits import MqttLimits
from gateway.limits.budgets import Amount
from gateway.mqtt.reason_codes import ReasonCode
from tests.gateway.bridge.conftest import SUBSCRIBER_QUEUE, FakeLink, NewWorld, World, publish_packet, written

RETAINED_BYTES = 100_000
LIMIT = 310_000
TOPIC = "a/b/c/d/e"
IDENTIFIERS = count(1)


def filters_that_match(topic: str) -> list[str]:
    """All filters with `+` that match a topic."""
    return ["/".join(levels) for levels in product(*((level, "+") for level in topic.split("/")))]


def subscribe(world: World, link: FakeLink, topic_filter: str) -> bytes:
    """The end of the SUBACK, which says whether the filter is granted."""
    text = topic_filter.encode()
    packet = b"\x82" + bytes((5 + len(text),)) + next(IDENTIFIERS).to_bytes(2, "big") + bytes((0, len(text))) + text
    link.taken()
    world.bridge.receive(link, packet + b"\x00")
    world.run()
    return link.taken()[:5][-1:]


@pytest.fixture
def world(new_world: NewWorld) -> World:
    """A broker that retains one large message."""
    world = new_world(limits=MqttLimits(maximum_retained_copy_bytes=LIMIT))
    world.bridge.receive(world.connect("from"), publish_packet(0x33, TOPIC.encode(), bytes(RETAINED_BYTES)))
    world.run()
    return world


def test_overlapping_filters_fill_no_disk_with_copies_of_one_message(world: World) -> None:
    """One retained megabyte and 24 KB of SUBSCRIBE made 881 MiB."""
    link = world.connect("self", flags="00")
    link.can_send = False
    answers = [subscribe(world, link, each) for each in filters_that_match(TOPIC)]
    granted = answers.count(b"\x00")
    assert set(answers) == {b"\x00", b"\x80"}
    assert granted == 4  # one of everything, and three for the limit
    assert world.engine.queue(SUBSCRIBER_QUEUE).waiting_bytes < RETAINED_BYTES + LIMIT + 10_000
    assert world.registrations() == granted
    assert world.refusals.totals == {(Limit.RETAINED_COPIES, ReasonCode.QUOTA_EXCEEDED): len(answers) - granted}


def test_a_client_that_reads_has_every_copy(world: World) -> None:
    link = world.connect("self")
    for each in filters_that_match(TOPIC):
        assert subscribe(world, link, each) == b"\x00"
        for _ in range(_QUIET_TICKS + 1):
            world.bridge.tick()
    assert not world.sessions.budgets.everybody.amounts[Amount.RETAINED_COPIES]


def test_a_filter_that_is_refused_again_stays_granted(world: World) -> None:
    link = world.connect("self", flags="00")
    link.can_send = False
    for each in filters_that_match(TOPIC)[:4]:
        assert subscribe(world, link, each) == b"\x00"
    assert subscribe(world, link, TOPIC) == b"\x80"
    assert world.registrations() == 4
    assert TOPIC in world.sessions.get("self").subscriptions  # type: ignore[union-attr]


def test_the_end_of_a_session_releases_its_copies(world: World) -> None:
    link = world.connect("self")
    link.can_send = False
    for each in filters_that_match(TOPIC)[:3]:
        subscribe(world, link, each)
    assert world.sessions.budgets.everybody.amounts[Amount.RETAINED_COPIES]
    world.lose(link)
    world.bridge.tick()
    assert not world.sessions.budgets.everybody.amounts[Amount.RETAINED_COPIES]


def test_a_subscriber_to_everything_gets_all_that_is_retained(new_world: NewWorld) -> None:
    world = new_world(limits=MqttLimits(maximum_retained_copy_bytes=1))
    source = world.connect("from")
    for number in range(20):
        world.bridge.receive(source, publish_packet(0x31, b"t/%d" % number, bytes(1_000)))
    world.run()
    link = world.connect("self")
    assert subscribe(world, link, "#") == b"\x00"


def test_level_5_is_told_that_too_much_waits(world: World) -> None:
    link = FakeLink()
    world.receive(link, "10 11 0004 'MQTT' 05 02 0000 00 0004 'self'")
    link.can_send = False
    link.taken()
    for each in filters_that_match(TOPIC)[:4]:
        text = each.encode()
        body = next(IDENTIFIERS).to_bytes(2, "big") + bytes((0, 0, len(text))) + text + b"\x00"
        world.bridge.receive(link, bytes((0x82, len(body))) + body)
    world.run()
    link.taken()
    world.receive(link, "82 07 0009 00 0001 '#' 00")
    assert link.taken()[:6] == written("90 04 0009 00 97")


def test_what_was_promised_and_is_not_copied_is_released(new_world: NewWorld) -> None:
    """Two SUBSCRIBEs may each bring everything; the client gives both up before their copies are made."""
    world = new_world()
    source = world.connect("from")
    for number in range(100):
        world.bridge.receive(source, publish_packet(0x31, b"t/%02d" % number, bytes(1_000)))
    world.run()
    link = world.connect("self", flags="00")
    charged = world.sessions.budgets.everybody.amounts
    world.bridge.receive(link, written("82 06 0001 0001 '#' 00 82 08 0002 0003 't/#' 00"))
    world.turn()
    assert charged[Amount.RETAINED_COPIES] > 100_000
    world.bridge.receive(link, written("A2 05 0003 0001 '#' A2 07 0004 0003 't/#'"))
    world.run()
    for _ in range(_QUIET_TICKS + 1):
        world.bridge.tick()
    assert charged[Amount.RETAINED_COPIES] == 0
