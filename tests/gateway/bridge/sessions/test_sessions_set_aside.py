"""A store whose sessions need more memory than they may: registrations of the largest stay in it. All are served."""

import logging
from pathlib import Path

import pytest

from gateway.bridge.sessions.sessions_set_aside import sessions_set_aside
from gateway.config.mqtt_limits import MqttLimits
from mappings.table import Dialect
from mq_adapters.embedded.unit_of_work import StateKind
from tests.gateway.bridge.conftest import SUBSCRIBER_QUEUE, FakeLink, NewWorld, World, written
from tests.gateway.bridge.subscribe.test_cost_of_filters import deep_filters, subscribe
from tests.gateway.bridge.subscribe.test_level_5_subscriptions import connected

#: Room for a session with few filters, and for one with many deep ones only if its registrations are set aside.
LITTLE = MqttLimits(maximum_session_memory_bytes=36_000)
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
    return world.engine.state(StateKind.SESSION, b"deep"), world.engine.states(StateKind.BROKER_SUBSCRIPTION)


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


def registered(world: World) -> list[tuple[int, str]]:
    """Number and topic of each registration, as DISPLAY SUB lists them."""
    attached = world.engine.objects.publish_subscribe
    assert attached is not None
    return sorted((each.number, each.topic) for each in attached().subscriptions())


def test_the_largest_is_set_aside_and_all_are_served(
    large_and_small: World, new_world: NewWorld, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = rows(large_and_small), registered(large_and_small)
    with caplog.at_level(logging.WARNING):
        world = new_world(tmp_path, limits=LITTLE)
    assert "session set aside client=deep saved_bytes=" in caplog.text
    assert "maximum_session_memory_bytes, and start it again" in caplog.text
    assert "client=tiny" not in caplog.text
    assert [session.client for session in world.sessions] == ["deep", "tiny"]
    assert (rows(world), registered(world)) == before
    assert world.broker.subscribers_set_aside == 1
    world.receive(world.connect("from"), "32 08 0003 'c/d' 0001 'x'")
    assert b"\x32\x08\x00\x03c/d" in sent_at_connect(world, "tiny")


def test_publications_reach_it_before_and_after_its_client_connects(
    large_and_small: World, new_world: NewWorld, tmp_path: Path
) -> None:
    world = new_world(tmp_path, limits=LITTLE)
    publisher = world.connect("from")
    world.receive(publisher, "32 08 0003 'a/b' 0001 'y'")
    assert publisher.taken() == written("40 02 0001")
    world = new_world(tmp_path, limits=LITTLE)
    sent = sent_at_connect(world, "deep")
    assert b"a/b\x00\x01x" in sent
    assert b"a/b\x00\x02y" in sent
    topic = deep_filters(FILTERS)[7].encode()
    payload = len(topic).to_bytes(2, "big") + topic + b"now"
    length = bytes((len(payload) % 128 | 128, len(payload) // 128))
    world.bridge.receive(world.connect("from"), b"\x30" + length + payload)
    world.run()
    session = world.sessions.get("deep")
    assert session is not None
    assert isinstance(session.link, FakeLink)
    assert session.link.taken().endswith(topic + b"now")
    world.check_balance()


def test_a_client_that_subscribes_again_loads_nothing(
    large_and_small: World, new_world: NewWorld, tmp_path: Path
) -> None:
    world = new_world(tmp_path, limits=LITTLE)
    link = world.connect("deep", flags="00")
    before = world.engine.states(StateKind.BROKER_SUBSCRIPTION)
    subscribe(world, link, deep_filters(FILTERS))
    assert world.engine.states(StateKind.BROKER_SUBSCRIPTION) == before
    assert world.broker.subscribers_set_aside == 1
    world.receive(link, "A2 07 0002 0003 'a/b'")
    assert [topic for _, topic in registered(world) if topic == "a/b"] == []
    world.receive(world.connect("from"), "30 06 0003 'a/b' 'z'")
    assert b"z" not in link.taken()


def test_it_ends_as_any_other(large_and_small: World, new_world: NewWorld, tmp_path: Path) -> None:
    world = new_world(tmp_path, limits=LITTLE)
    world.connect("deep", flags="02")
    world.run()
    assert [topic for _, topic in registered(world)] == ["c/d"]
    assert world.broker.subscribers_set_aside == 0
    assert world.depth(SUBSCRIBER_QUEUE) == 0
    world.check_balance()


def test_too_little_memory_even_so_is_told(
    large_and_small: World, new_world: NewWorld, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = new_world(tmp_path, limits=MqttLimits(maximum_session_memory_bytes=1))
    assert "sessions need more memory than there is needed_bytes=" in caplog.text
    assert "rfhbridge sessions expire" in caplog.text
    assert len(world.sessions) == 2


def test_a_new_registration_gets_no_number_of_one_that_is_set_aside(
    large_and_small: World, new_world: NewWorld, tmp_path: Path
) -> None:
    world = new_world(tmp_path, limits=LITTLE)
    subscribe(world, world.connect("anew", flags="00"), ["e/f"])
    world = new_world(tmp_path, limits=ROOMY)
    numbers = [number for number, _ in registered(world)]
    assert len(set(numbers)) == len(numbers) == FILTERS + 3


def test_a_member_of_a_shared_group_stays_a_member(new_world: NewWorld, tmp_path: Path) -> None:
    world = new_world(tmp_path, limits=ROOMY)
    link = connected(world, "deep")
    subscribe(world, link, deep_filters(FILTERS), level=5)
    world.receive(link, "82 10 0001 00 000A '$share/g/s' 01")
    world.lose(link)
    world = new_world(tmp_path, limits=LITTLE)
    session = world.sessions.get("deep")
    assert session is not None
    assert [each.topic_filter for each in session.shared.values()] == ["$share/g/s"]


def test_nothing_is_set_aside_where_the_system_does_not_say_what_is_free(large_and_small: World) -> None:
    engine = large_and_small.engine
    assert not sessions_set_aside(engine, 0, free_bytes=lambda: None)
    assert len(sessions_set_aside(engine, 0, free_bytes=lambda: 48_000)) == 1
    assert not sessions_set_aside(engine, 0, free_bytes=lambda: 1 << 30)


def test_registrations_with_wildcards_of_mqrfh_stay_loaded_and_are_counted_so(
    new_world: NewWorld, tmp_path: Path
) -> None:
    world = new_world(tmp_path, dialect=Dialect.MQRFH, limits=ROOMY)
    subscribe(world, world.connect("wild", flags="00"), ["a/+/b", "+/d"])
    assert sessions_set_aside(world.engine, 1) == frozenset()
    subscribe(world, world.connect("wild", flags="00"), ["plain"])
    assert len(sessions_set_aside(world.engine, 1)) == 1
    world = new_world(tmp_path, dialect=Dialect.MQRFH, limits=MqttLimits(maximum_session_memory_bytes=1))
    for topic in ("a/x/b", "c/d", "plain"):
        world.receive(world.connect("from"), f"32 {5 + len(topic):02X} {len(topic):04X} '{topic}' 0001 'x'")
    assert world.depth(SUBSCRIBER_QUEUE) == 3
