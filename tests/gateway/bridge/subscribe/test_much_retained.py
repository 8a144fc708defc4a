"""A SUBSCRIBE that brings much that is retained: the others go on, nothing is lost, and SUBACK comes behind it."""

from pathlib import Path

import pytest

from mappings.commands.command import Dialect
from tests.gateway.bridge.audited import assert_every_conversion_is_as_the_audit_predicts
from tests.gateway.bridge.conftest import REPLY_QUEUE, SUBSCRIBER_QUEUE, FakeLink, NewWorld, World, written
from tests.gateway.bridge.connect.test_level_5_sessions import connect

#: More than some pieces of copies (mq_adapters.broker.updates).
MANY = 70
ALL = [f"t/{number:02}" for number in range(MANY)]
SUBSCRIBE_ALL = "82 06 0001 0001 '#' 00"
SUBACK = written("90 03 0001 00")


def retain(world: World, payload: str = "R") -> None:
    link = world.connect("puts")
    world.receive(link, *(f"31 07 0004 '{topic}' '{payload}'" for topic in ALL))
    world.receive(link, "E0 00")


def begin(world: World, link: FakeLink, *packets: str, turns: int = 4) -> None:
    """Packets arrive; the loop goes on for a few turns, which do not bring all that is retained."""
    world.bridge.receive(link, b"".join(written(packet) for packet in packets))
    for _ in range(turns):
        world.turn()


def begin_and_send_some(world: World, link: FakeLink) -> None:
    """SUBSCRIBE arrives, and some of what is retained has been sent."""
    world.bridge.receive(link, written(SUBSCRIBE_ALL))
    while not world.depth(SUBSCRIBER_QUEUE):
        world.turn()


def taken(link: FakeLink) -> tuple[list[str], list[str]]:
    """Topic and payload of each PUBLISH of QoS 0 in hexadecimal digits, and the other packets, since the last call."""
    data, publications, others, position = link.taken(), [], [], 0
    while position < len(data):
        end = position + 2 + data[position + 1]
        packet = data[position:end]
        if packet[0] >> 4 == 3:
            publications.append(packet[4:].decode())
        else:
            others.append(packet.hex())
        position = end
    return publications, others


def test_all_that_is_retained_comes_once_and_suback_behind_it(world: World) -> None:
    retain(world)
    link = world.connect("subs")
    begin_and_send_some(world, link)
    assert link.taken() == b""
    assert 0 < world.depth(SUBSCRIBER_QUEUE) < MANY
    world.run()
    publications, others = taken(link)
    assert others == [SUBACK.hex()]
    assert sorted(publications) == [topic + "R" for topic in ALL]


def test_meanwhile_others_are_answered(world: World) -> None:
    retain(world)
    link, other = world.connect("subs"), world.connect("othe")
    begin(world, link, SUBSCRIBE_ALL, turns=1)
    begin(world, other, "C0 00", "82 09 0002 0004 't/03' 00", "C0 00")
    assert taken(other) == (["t/03R"], ["d000", "d000", "9003000200"])
    assert link.taken() == b""


def test_a_second_subscribe_meanwhile_takes_nothing_from_the_first(world: World) -> None:
    retain(world)
    link = world.connect("subs")
    begin_and_send_some(world, link)
    begin(world, link, "82 09 0002 0004 't/03' 00")
    world.run()
    publications, others = taken(link)
    assert sorted(others) == [SUBACK.hex(), "9003000200"]
    assert sorted(publications) == sorted([*(topic + "R" for topic in ALL), "t/03R"])


def test_a_broker_that_is_at_work_is_waited_for(world: World) -> None:
    retain(world)
    link = world.connect("subs")
    begin_and_send_some(world, link)
    world.now_us += 60_000_000
    world.bridge.tick()
    world.run()
    publications, others = taken(link)
    assert (len(publications), others) == (MANY, [SUBACK.hex()])


def test_what_is_published_meanwhile_comes_behind_what_was_retained(world: World) -> None:
    retain(world)
    link = world.connect("subs")
    begin_and_send_some(world, link)
    other = world.connect("othe")
    world.bridge.receive(other, b"".join(written(f"30 07 0004 '{topic}' 'L'") for topic in ALL))
    world.run()
    publications, _ = taken(link)
    assert len(publications) == 2 * MANY
    for topic in ALL:
        assert publications.index(topic + "R") < publications.index(topic + "L")


def test_unsubscribe_meanwhile_ends_it(world: World) -> None:
    retain(world)
    link = world.connect("subs")
    begin(world, link, SUBSCRIBE_ALL, "A2 05 0002 0001 '#'")
    world.run()
    assert world.registrations() == 0
    assert world.depth(SUBSCRIBER_QUEUE) == 0
    assert sorted(taken(link)[1]) == [SUBACK.hex(), "b0020002"]


def test_the_end_of_the_session_meanwhile_ends_it(world: World) -> None:
    retain(world)
    link = world.connect("subs")
    begin_and_send_some(world, link)
    world.lose(link)
    assert world.registrations() == 0
    assert world.depth(SUBSCRIBER_QUEUE) == 0
    assert world.depth(REPLY_QUEUE) == 0


@pytest.mark.parametrize("turns", [0, 1, 2, 5, 12, 40])
def test_a_crash_meanwhile_leaves_no_registration_that_was_not_granted(
    new_world: NewWorld, tmp_path: Path, turns: int
) -> None:
    world = new_world()
    retain(world)
    link = world.connect("subs", flags="00")
    world.bridge.receive(link, written(SUBSCRIBE_ALL))
    for _ in range(turns):
        world.turn()
    granted = link.taken() != b""
    world = new_world(world.kill(tmp_path / "killed"))
    assert world.registrations() == int(granted)
    assert world.depth(REPLY_QUEUE) == 0
    link = world.connect("subs", flags="00")
    assert taken(link) == ([], [])
    world.receive(link, SUBSCRIBE_ALL)
    publications, others = taken(link)
    assert others == [SUBACK.hex()]
    assert sorted(publications) == [topic + "R" for topic in ALL]


def test_a_crash_while_a_granted_filter_is_asked_for_again_loses_nothing(new_world: NewWorld, tmp_path: Path) -> None:
    world = new_world()
    link = world.connect("subs", flags="00")
    world.receive(link, SUBSCRIBE_ALL)
    world.lose(link)
    retain(world)
    link = world.connect("subs", flags="00")
    begin_and_send_some(world, link)
    link.taken()
    world = new_world(world.kill(tmp_path / "killed"))
    world.run()
    assert world.registrations() == 1
    link = world.connect("subs", flags="00")
    world.receive(link, SUBSCRIBE_ALL)
    assert set(taken(link)[0]) == {topic + "R" for topic in ALL}


@pytest.mark.parametrize("dialect", list(Dialect))
def test_the_audit_performs_it_again(new_world: NewWorld, dialect: Dialect) -> None:
    world = new_world(dialect=dialect)
    retain(world)
    link = world.connect("subs")
    begin_and_send_some(world, link)
    begin(world, world.connect("othe"), *(f"30 07 0004 '{topic}' 'L'" for topic in ALL))
    world.run()
    assert len(taken(link)[0]) == 2 * MANY
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_retained_messages_too_large_for_a_client_use_up_nothing_of_its_window(world: World) -> None:
    teller = world.connect("puts")
    world.receive(teller, *(f"33 26 0004 '{topic}' 0001 '{'R' * 30}'" for topic in ALL))
    world.receive(teller, "31 07 0004 't/03' 'S'")
    link = connect(world, "subs", properties="27 00000014 21 0002")
    link.taken()
    world.receive(link, "82 07 0001 00 0001 '#' 02")
    assert link.taken() == written("90 04 0001 00 02 31 08 0004 't/03' 00 'S'")
    world.receive(teller, "32 08 0003 'x/y' 0001 'A'", "32 08 0003 'x/z' 0002 'B'")
    assert link.taken() == written("32 09 0003 'x/y' 0046 00 'A' 32 09 0003 'x/z' 0047 00 'B'")
    assert world.depth(SUBSCRIBER_QUEUE) == 2
