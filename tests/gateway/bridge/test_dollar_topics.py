"""Reserved topics on the wire: each level's answer, what is kept, and what comes from MQ applications."""

import pytest

from gateway.access.dollar_topics import DollarTopics
from mappings.commands.command import Dialect
from tests.gateway.bridge.conftest import DEFAULT_STREAM, FakeLink, NewWorld, World, mqrfh2, publish_packet, written

CONNECTS = {
    3: "10 12 0006 'MQIsdp' 03 00 0000 0004 'self'",
    4: "10 10 0004 'MQTT' 04 00 0000 0004 'self'",
    5: "10 16 0004 'MQTT' 05 00 0000 05 11 00000E10 0004 'self'",
}
OPEN = DollarTopics(["$aws/#"])


def connected(world: World, level: int) -> FakeLink:
    link = FakeLink()
    world.receive(link, CONNECTS[level])
    link.taken()
    return link


def publish(world: World, link: FakeLink, first_byte: int, topic: str) -> bytes:
    payload = b"\0A" if link.connection.level == 5 else b"A"
    world.bridge.receive(link, publish_packet(first_byte, topic.encode(), payload))
    world.run()
    return link.taken()


def subscribe(world: World, link: FakeLink, topic_filter: str) -> bytes:
    body = b"\0\1" + (b"\0" if link.connection.level == 5 else b"")
    body += len(topic_filter).to_bytes(2, "big") + topic_filter.encode() + b"\1"
    world.bridge.receive(link, bytes((0x82, len(body))) + body)
    world.run()
    return link.taken()


@pytest.mark.parametrize("first_byte", [0x30, 0x32, 0x34])
@pytest.mark.parametrize("level", [3, 4, 5])
def test_a_publish_on_a_reserved_topic_is_answered_as_the_access_list_does(
    new_world: NewWorld, level: int, first_byte: int
) -> None:
    world = new_world(has_broker=False)
    link = connected(world, level)
    expected = {0x30: "E0 01 87", 0x32: "40 03 0001 87", 0x34: "50 03 0001 87"}[first_byte] if level == 5 else ""
    assert publish(world, link, first_byte, "$aws/a") == written(expected)
    assert link.is_open == (level == 5 and first_byte > 0x30)
    assert world.messages(DEFAULT_STREAM) == []
    world = new_world(has_broker=False, dollar_topics=OPEN)
    link = connected(world, level)
    assert publish(world, link, first_byte, "$aws/a") == written(["", "40 02 0001", "50 02 0001"][first_byte >> 1 & 3])


@pytest.mark.parametrize(("level", "answer"), [(3, ""), (4, "90 03 0001 80"), (5, "90 04 0001 00 87")])
def test_a_subscribe_to_reserved_topics_is_answered_as_the_access_list_does(
    new_world: NewWorld, level: int, answer: str
) -> None:
    world = new_world()
    for topic_filter in ("$aws/#", "$SYS/STREAM/STOCK/#", "$SYS/#"):
        assert subscribe(world, connected(world, level), topic_filter) == written(answer)
    assert world.registrations() == 0
    world = new_world(dollar_topics=OPEN)
    assert subscribe(world, connected(world, level), "$aws/#")[-1] == 1


@pytest.mark.parametrize(("level", "answer"), [(3, "20 02 00 05"), (4, "20 02 00 05"), (5, "20 03 00 87 00")])
def test_a_will_on_a_reserved_topic_is_refused_with_its_connect(new_world: NewWorld, level: int, answer: str) -> None:
    world = new_world()
    name = {3: "0006 'MQIsdp' 03", 4: "0004 'MQTT' 04", 5: "0004 'MQTT' 05"}[level]
    none = "00" if level == 5 else ""
    body = written(f"{name} 06 0000 {none} 0004 'self' {none} 0002 '$w' 0001 'W'")
    link = FakeLink()
    world.bridge.receive(link, bytes((0x10, len(body))) + body)
    world.run()
    assert (link.is_open, link.taken()) == (False, written(answer))


def test_shared_subscriptions_are_asked_for_what_they_share(new_world: NewWorld) -> None:
    world = new_world()
    link = connected(world, 5)
    assert subscribe(world, link, "$share/g/a/b") == written("90 04 0001 00 01")
    assert subscribe(world, link, "$share/g/$aws/b") == written("90 04 0001 00 87")
    assert subscribe(world, connected(world, 4), "$share/g/a/b") == written("90 03 0001 80")


@pytest.mark.parametrize("dialect", list(Dialect))
def test_what_the_store_has_is_kept_while_it_is_reserved(new_world: NewWorld, dialect: Dialect) -> None:
    """A subscription brings nothing meanwhile, and the retained message waits for whoever may have it."""
    world = new_world(dialect=dialect, dollar_topics=OPEN)
    link = connected(world, 4)
    assert subscribe(world, link, "$aws/a") == written("90 03 0001 01")
    publish(world, link, 0x31, "$aws/a")
    world = new_world(dialect=dialect)
    assert list(world.bridge.subscriptions) == [("self", "$aws/a")]
    assert world.retained_topics("$*") == ["$aws/a"]
    link = connected(world, 4)
    world.put(mqrfh2("$aws/a") + b"M")
    assert link.sent == b""
    world = new_world(dialect=dialect, dollar_topics=OPEN)
    link = connected(world, 4)
    world.put(mqrfh2("$aws/a") + b"N")
    assert link.taken().endswith(written("'$aws/a' 0001 'N'"))
    assert subscribe(world, connected(world, 5), "$aws/+").endswith(b"A")
