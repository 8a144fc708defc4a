"""A store whose sessions need more memory than they may: the gateway starts without the largest, which stay whole."""

import logging
from pathlib import Path

import pytest

from gateway.bridge.sessions.sessions_set_aside import sessions_set_aside
from gateway.config.mqtt_limits import MqttLimits
from mq_adapters.embedded.unit_of_work import StateSpace
from tests.gateway.bridge.conftest import SUBSCRIBER_QUEUE, FakeLink, NewWorld, World, written
from tests.gateway.bridge.subscribe.test_cost_of_filters import deep_filters, subscribe
from tests.gateway.bridge.subscribe.test_level_5_subscriptions import connected

#: Room for a session with few filters, and not for one with many deep ones.
LITTLE = MqttLimits(maximum_session_memory_bytes=100_000)
ROOMY = MqttLimits(maximum_session_memory_bytes=100_000_000)
FILTERS = 20


def sent_at_connect(world: World, client: str, *, level: int = 4) -> bytes:
    """What a client is sent that comes back to its session."""
    link = FakeLink()
    properties = "" if level == 4 else "05 11 FFFFFFFF"
    length = 16 + len(written(properties))
    world.receive(link, f"10 {length:02X} 0004 'MQTT' {level:02X} 00 0000 {properties} 0004 '{client}'")
    return link.taken()


def rows(world: World) -> tuple[bytes | None, list[tuple[bytes, bytes]]]:
    """The row of the large session, and those of all registrations."""
    return world.engine.state(StateSpace.SESSION, b"deep"), world.engine.states(StateSpace.BROKER_SUBSCRIPTION)


@pytest.fixture
def large_and_small(new_world: NewWorld, tmp_path: Path) -> World:
    """A session with deep filters and a waiting message, and one with a short filter."""
    world = new_world(tmp_path, limits=ROOMY)
    large, small = world.connect("deep", flags="00"), world.connect("tiny", flags="00")
    subscribe(world, large, deep_filters(FILTERS))
    world.receive(large, "82 08 0001 0003 'a/b' 01")
    world.receive(small, "82 08 0001 0003 'c/d' 01")
    world.lose(large)
    world.lose(small)
    world.receive(world.connect("from"), "32 08 0003 'a/b' 0001 'x'")
    assert world.depth(SUBSCRIBER_QUEUE) == 1
    return world


def test_the_largest_session_is_set_aside_and_the_others_are_served(
    large_and_small: World, new_world: NewWorld, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        world = new_world(tmp_path, limits=LITTLE)
    assert [session.client for session in world.sessions] == ["tiny"]
    assert "session set aside client=deep memory_bytes=" in caplog.text
    assert "maximum_session_memory_bytes, and start it again" in caplog.text
    world.receive(world.connect("from"), "32 08 0003 'c/d' 0001 'x'")
    assert b"\x32\x08\x00\x03c/d" in sent_at_connect(world, "tiny")


def test_its_client_is_told_that_it_cannot_be_served_now(
    large_and_small: World, new_world: NewWorld, tmp_path: Path
) -> None:
    world = new_world(tmp_path, limits=LITTLE)
    assert sent_at_connect(world, "deep") == written("20 02 00 03")
    assert sent_at_connect(world, "deep", level=5)[:4] == written("20 03 00 97")
    assert world.refusals.totals


def test_all_that_it_has_stays_in_the_store_and_is_back_where_there_is_room(
    large_and_small: World, new_world: NewWorld, tmp_path: Path
) -> None:
    before = rows(large_and_small)
    world = new_world(tmp_path, limits=LITTLE)
    world.receive(world.connect("from"), "30 06 0003 'a/b' 'y'")  # it is in no index: this is not for it
    assert world.depth(SUBSCRIBER_QUEUE) == 1
    world.check_balance()
    assert rows(world) == before
    world = new_world(tmp_path, limits=ROOMY)
    sent = sent_at_connect(world, "deep")
    assert sent[:4] == written("20 02 01 00")
    assert sent[-1:] == b"x"


def test_a_new_registration_gets_no_number_of_one_that_is_set_aside(
    large_and_small: World, new_world: NewWorld, tmp_path: Path
) -> None:
    world = new_world(tmp_path, limits=LITTLE)
    subscribe(world, world.connect("anew", flags="00"), ["e/f"])
    world = new_world(tmp_path, limits=ROOMY)
    attached = world.engine.objects.publish_subscribe
    assert attached is not None
    numbers = [each.number for each in attached().subscriptions()]
    assert len(set(numbers)) == len(numbers) == FILTERS + 3


def test_a_shared_group_outlives_the_absence_of_its_only_member(new_world: NewWorld, tmp_path: Path) -> None:
    world = new_world(tmp_path, limits=ROOMY)
    link = connected(world, "deep")
    subscribe(world, link, deep_filters(FILTERS), level=5)
    world.receive(link, "82 10 0001 00 000A '$share/g/s' 01")
    world.lose(link)
    world = new_world(tmp_path, limits=LITTLE)
    assert len(world.engine.states(StateSpace.SHARED_SUBSCRIPTION)) == 2
    world = new_world(tmp_path, limits=ROOMY)
    session = world.sessions.get("deep")
    assert session is not None
    assert [each.topic_filter for each in session.shared.values()] == ["$share/g/s"]


def test_nothing_is_set_aside_where_the_system_does_not_say_what_is_free(large_and_small: World) -> None:
    engine = large_and_small.engine
    assert not sessions_set_aside(engine, 0, free_bytes=lambda: None)
    assert len(sessions_set_aside(engine, 0, free_bytes=lambda: 100_000)) == 1
    assert not sessions_set_aside(engine, 0, free_bytes=lambda: 1 << 30)
