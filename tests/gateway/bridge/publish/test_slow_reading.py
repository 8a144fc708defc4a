"""A client that sends faster than its budget is read slowly, at every level; what it has sent is kept and answered."""

import pytest

from gateway.config.limits import Limit
from gateway.config.mqtt_limits import MqttLimits
from gateway.mqtt.reason_codes import ReasonCode
from tests.gateway.bridge.conftest import NOW_US, FakeLink, NewWorld, World, written

CONNECTS = {
    3: "10 12 0006 'MQIsdp' 03 00 0000 0004 '{0}'",
    4: "10 10 0004 'MQTT' 04 00 0000 0004 '{0}'",
    5: "10 16 0004 'MQTT' 05 00 0000 05 11 00000E10 0004 '{0}'",
}
SECOND_US = 1_000_000


def limited(new_world: NewWorld, **limits: int) -> World:
    return new_world(limits=MqttLimits.model_validate(limits))


def connected(world: World, level: int, name: str = "self") -> FakeLink:
    link = FakeLink()
    world.receive(link, CONNECTS[level].format(name))
    assert link.taken()[:1] == b"\x20"
    return link


def publishes(level: int, first: int, count: int, *, qos: int = 1, topic: str = "a") -> str:
    """PUBLISHes with packet identifiers from `first` on."""
    none = "00" if level == 5 else ""
    length = 2 + len(topic) + (2 if qos else 0) + len(none) // 2
    start = f"3{qos * 2:X} {length:02X} {len(topic):04X} '{topic}'"
    return " ".join(f"{start} {f'{first + each:04X}' if qos else ''} {none}" for each in range(count))


def at(world: World, seconds: float) -> None:
    """The gateway's tick at a time after the start."""
    world.now_us = NOW_US + round(seconds * SECOND_US)
    world.bridge.tick()
    world.run()


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("level", [3, 4, 5])
def test_a_client_ahead_of_its_budget_is_read_slowly_and_loses_nothing(
    new_world: NewWorld, level: int, qos: int
) -> None:
    world = limited(new_world, message_rate=2)
    link = connected(world, level)
    world.receive(link, publishes(level, 1, 19, qos=qos))
    assert link.is_read(), "ten seconds' worth is free"
    world.receive(link, publishes(level, 20, 4, qos=qos))
    assert not link.is_read()
    puback = "40 03 {:04X} 10 " if level == 5 else "40 02 {:04X} "  # nobody subscribes
    answers = {0: "", 1: puback, 2: "50 02 {:04X} "}[qos]
    assert link.taken() == written("".join(answers.format(number) for number in range(1, 24)))
    at(world, 1.4)
    assert not link.is_read()
    at(world, 1.6)
    assert link.is_read()
    assert link.is_open
    assert not world.refusals.totals


def test_others_are_read_meanwhile(new_world: NewWorld) -> None:
    world = limited(new_world, message_rate=1)
    greedy, other = connected(world, 4), connected(world, 4, "good")
    world.receive(greedy, publishes(4, 1, 50))
    assert not greedy.is_read()
    world.receive(other, publishes(4, 1, 5))
    assert other.taken() == written("".join(f"40 02 {number:04X} " for number in range(1, 6)))
    assert other.is_read()


def test_a_backlog_of_a_day_gets_through(new_world: NewWorld) -> None:
    world = limited(new_world, message_rate=10)
    link = connected(world, 4)
    answered, second = 0, 0.0
    for number in range(1, 1_000, 50):
        while not link.is_read():
            at(world, second := second + 0.1)
        world.receive(link, publishes(4, number, 50))
        answered += len(link.taken()) // 4
    assert (answered, link.is_open) == (1_000, True)
    assert 84 < second < 96, "990 - 10 * 10 messages at ten a second"


@pytest.mark.parametrize(("level", "answer"), [(3, ""), (4, ""), (5, "E0 01 96")])
def test_who_comes_again_and_again_with_new_identifiers_is_disconnected(
    new_world: NewWorld, level: int, answer: str
) -> None:
    """Each new connection brings one more read before slow reading stops it."""
    world = limited(new_world, message_rate_per_address=1)
    for number in range(8):
        connected_once = connected(world, level, f"id-{number}")
        world.receive(connected_once, publishes(level, 1, 9))
        assert connected_once.is_open
        world.lose(connected_once)
    link = connected(world, level, "last")
    world.receive(link, publishes(level, 1, 1))
    assert (link.is_open, link.taken()[:3].hex()) == (False, answer.replace(" ", "").lower())
    assert world.refusals.totals == {(Limit.MESSAGE_RATE_PER_ADDRESS, ReasonCode.MESSAGE_RATE_TOO_HIGH): 1}
    elsewhere = FakeLink()
    elsewhere.peer = "198.51.100.1:50000"
    world.receive(elsewhere, CONNECTS[level].format("good"), publishes(level, 1, 1))
    assert elsewhere.is_open


def test_what_a_disconnected_client_sent_last_is_not_acknowledged(new_world: NewWorld) -> None:
    world = limited(new_world, message_rate_per_address=1)
    for number in range(8):
        world.receive(connected(world, 4, f"id-{number}"), publishes(4, 1, 9))
    link = connected(world, 4, "last")
    put = sum(world.bridge.traffic.published)
    world.receive(link, publishes(4, 1, 7))
    assert (link.is_open, link.taken()) == (False, b"")
    assert sum(world.bridge.traffic.published) == put, "and the balance adds up, which closing the world checks"


def test_new_topics_are_slow_and_known_ones_are_not(new_world: NewWorld) -> None:
    world = limited(new_world, new_topic_rate=60)
    link = connected(world, 4)
    for number in range(9):
        world.receive(link, publishes(4, number + 1, 1, topic=str(number)))
    assert link.is_read()
    world.receive(link, publishes(4, 20, 40, topic="3"))
    assert link.is_read()
    world.receive(link, publishes(4, 70, 1, topic="new"), publishes(4, 71, 1, topic="newer"))
    assert not link.is_read()
    at(world, 1.1)
    assert link.is_read()


def test_bytes_of_every_packet_count(new_world: NewWorld) -> None:
    world = limited(new_world, byte_rate=10, trail_byte_rate=0)
    link = connected(world, 4)
    world.receive(link, "C0 00 " * 50)
    assert link.is_read()
    world.receive(link, "C0 00 " * 5)
    assert not link.is_read()
    assert link.taken() == written("D0 00 " * 55)


def test_packets_that_come_while_a_client_is_not_read_wait(new_world: NewWorld) -> None:
    """A TLS record or a WebSocket frame may still bring some."""
    world = limited(new_world, message_rate=1)
    link = connected(world, 4)
    world.receive(link, publishes(4, 1, 12))
    link.taken()
    world.receive(link, publishes(4, 13, 1), "C0 00")
    assert link.taken() == b""
    at(world, 2.1)
    assert link.taken() == written("D0 00 40 02 000D")


def test_a_client_that_leaves_while_it_is_not_read_is_forgotten(new_world: NewWorld) -> None:
    world = limited(new_world, message_rate=1)
    link = connected(world, 4)
    world.receive(link, publishes(4, 1, 30))
    world.lose(link)
    at(world, 60.0)
    assert len(world.bridge.paused_publishers) == 0


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_short_publishes_are_charged_for_the_records_that_they_make(new_world: NewWorld, qos: int) -> None:
    """5 bytes of PUBLISH made 1.4 KB of trail, at any speed."""
    world = limited(new_world, trail_byte_rate=1_000)
    link = connected(world, 4)
    world.receive(link, publishes(4, 1, 5, qos=qos))
    assert link.is_read(), "ten seconds' worth is free"
    world.receive(link, publishes(4, 10, 10, qos=qos))
    assert not link.is_read()
    assert not link.taken() or qos
    at(world, 30)
    assert link.is_read()


def test_filters_are_charged_for_the_records_that_they_make(new_world: NewWorld) -> None:
    world = limited(new_world, trail_byte_rate=100)
    link = connected(world, 4)
    world.receive(link, "82 06 0001 0001 'a' 00")
    assert not link.is_read()
