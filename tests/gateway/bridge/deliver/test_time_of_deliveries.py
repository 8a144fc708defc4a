"""Deliveries share the time of a turn of the event loop; the sessions that had none left follow in their order."""

import pytest

from mq_adapters.embedded import engine as engine_module
from mq_adapters.embedded.queue import Queue
from mq_adapters.message import Message
from mq_adapters.reasons import StoreError
from tests.gateway.bridge.conftest import SUBSCRIBER_QUEUE, FakeLink, World, written

A = "30 04 0001 'a' 'x'"
B = "30 04 0001 'a' 'y'"


@pytest.fixture(autouse=True)
def _nobody_joins_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As behind the first sixteen lanes of a commit."""
    monkeypatch.setattr(engine_module, "MOST_JOINED_LANES", 0)


def _messages_take(world: World, took_us: int) -> list[int]:
    """From now on each message that is taken for a session or a group takes so long.

    Returns a list whose last number counts those that are taken from now on.
    """
    taken, take = [0], world.engine.take

    def slow_take(queue: Queue, correl_id: bytes | None = None, msg_id: bytes | None = None) -> Message | None:
        message = take(queue, correl_id, msg_id)
        if message is not None and queue.name == SUBSCRIBER_QUEUE:
            world.now_us += took_us
            taken[-1] += 1
        return message

    world.engine.take = slow_take  # type: ignore[method-assign]
    return taken


def _taken_in_each_turn(world: World, taken: list[int]) -> list[int]:
    while world._calls:
        taken.append(0)
        world.turn()
    return [count for count in taken if count]


def _subscribed(world: World, count: int, qos: int = 0) -> list[FakeLink]:
    links = [world.connect(f"s{number:03}") for number in range(count)]
    for link in links:
        world.receive(link, f"82 06 0001 0001 'a' 0{qos}")
        link.taken()
    return links


def _publish(world: World, publisher: FakeLink, packet: str, turns: int) -> None:
    """The publication is committed in the first of these turns, and its deliveries, in the next ones."""
    world.bridge.receive(publisher, written(packet))
    for _ in range(turns):
        world.turn()


def _have(links: list[FakeLink]) -> int:
    return sum(bool(link.sent) for link in links)


def test_deliveries_of_one_publication_share_two_milliseconds_of_each_turn(world: World) -> None:
    """To ten thousand subscribers they would take half a second."""
    publisher, links = world.connect("tell"), _subscribed(world, 10)
    taken = _messages_take(world, 700)
    world.bridge.receive(publisher, written(A))
    assert _taken_in_each_turn(world, taken) == [3, 3, 3, 1]
    assert [link.taken() for link in links] == [written(A)] * 10


def test_a_session_that_still_waits_when_more_comes_gets_all_of_it_at_once_and_in_order(world: World) -> None:
    """Else subscribers would fall behind a publisher who is read all the time."""
    publisher, links = world.connect("tell"), _subscribed(world, 5)
    _messages_take(world, 2_500)
    _publish(world, publisher, A, turns=1)
    assert len(world.bridge._to_mqtt._late) == 4
    _publish(world, publisher, B, turns=1)
    assert len(world.bridge._to_mqtt._late) <= 1
    world.run()
    assert [link.taken() for link in links] == [written(A + B)] * 5


def test_what_arrives_behind_late_deliveries_has_no_further_time_of_their_turn(world: World) -> None:
    publisher, links = world.connect("tell"), _subscribed(world, 4)
    other = world.connect("desk")
    world.receive(other, "82 06 0001 0001 'b' 00")
    other.taken()
    taken = _messages_take(world, 2_500)
    _publish(world, publisher, A, turns=1)
    world.bridge.receive(publisher, written("30 04 0001 'b' 'x'"))
    assert _taken_in_each_turn(world, taken) == [1] * 5
    assert (_have(links), _have([other])) == (4, 1)


def test_a_session_whose_connection_ends_before_its_turn_leaves_nothing_behind(world: World) -> None:
    publisher, links = world.connect("tell"), _subscribed(world, 3)
    _messages_take(world, 2_500)
    _publish(world, publisher, A, turns=1)
    late = tuple(world.bridge._to_mqtt._late)
    assert len(late) == 2
    for session in late:
        assert isinstance(session.link, FakeLink)
        session.link.is_open = False
        world.bridge.lost(session.link)
    assert not world.bridge._to_mqtt._late
    world.run()
    assert _have(links) == 1


def test_deliveries_that_were_paused_for_all_sessions_share_the_time_too(world: World) -> None:
    publisher, links = world.connect("tell"), _subscribed(world, 4)
    world.bridge.pause_deliveries(True)
    world.receive(publisher, A)
    _messages_take(world, 1_500)
    world.bridge.pause_deliveries(False)
    assert len(world.bridge._to_mqtt._late) == 2
    world.run()
    assert [link.taken() for link in links] == [written(A)] * 4


def test_nothing_is_delivered_once_the_store_has_failed(world: World) -> None:
    publisher, links = world.connect("tell"), _subscribed(world, 3)
    _messages_take(world, 2_500)
    _publish(world, publisher, A, turns=1)
    world.engine.failed = StoreError("commit", "the disk is broken", "replace it")
    world.run()
    assert _have(links) <= 1
    assert len(world.bridge._to_mqtt._late) == 2


@pytest.mark.parametrize("qos", [0, 1])
def test_the_messages_of_one_session_have_two_milliseconds_of_a_turn(world: World, qos: int) -> None:
    """Headers that are not known yet take long: two hundred retained messages took 40 ms."""
    publisher = world.connect("tell")
    world.receive(publisher, *(f"31 06 0003 'r/{number}' 'x'" for number in range(7)))
    (link,) = _subscribed(world, 1)
    taken = _messages_take(world, 900)
    world.bridge.receive(link, written(f"82 08 0002 0003 'r/#' 0{qos}"))
    assert _taken_in_each_turn(world, taken) == [3, 3, 1]
    assert link.taken()[5:].count(b"r/") == 7


def test_sessions_with_more_messages_than_their_time_allows_share_the_time_of_later_turns(world: World) -> None:
    """A fleet that comes back to full queues would take a turn of 2 ms for each of its clients."""
    publisher, links = world.connect("tell"), _subscribed(world, 3, qos=1)
    world.bridge.pause_deliveries(True)
    world.receive(publisher, *(f"32 06 0001 'a' {number:04X} 'x'" for number in range(1, 7)))
    taken = _messages_take(world, 900)
    world.bridge.pause_deliveries(False)
    in_turns = _taken_in_each_turn(world, taken)
    assert (sum(in_turns), max(in_turns)) == (18, 3)
    assert [link.taken().count(b"x") for link in links] == [6] * 3


def test_the_messages_of_a_group_have_two_milliseconds_of_a_turn(world: World) -> None:
    publisher, link = world.connect("tell"), FakeLink()
    world.receive(link, "10 10 0004 'MQTT' 05 02 0000 00 0003 'mem'")
    world.receive(link, "82 10 0001 00 000A '$share/g/a' 01")
    link.taken()
    world.bridge.pause_deliveries(True)
    world.receive(publisher, *(f"32 06 0001 'a' {number:04X} 'x'" for number in range(1, 8)))
    taken = _messages_take(world, 900)
    world.bridge.pause_deliveries(False)
    assert _taken_in_each_turn(world, taken) == [3, 3, 1]
    assert link.taken().count(b"x") == 7
