"""Thousands of connections that end together: few are carried out in a unit of work, and none is forgotten."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from gateway.bridge.publish.publish_command import ToMq
from gateway.config.mqtt_limits import MqttLimits
from mq_adapters.embedded.operators_act import OperatorsAct
from mq_adapters.embedded.unit_of_work import StateKind
from tests.gateway.bridge.conftest import SUBSCRIBER_QUEUE, FakeLink, NewWorld, World, publish_packet, written
from tests.gateway.bridge.connect.test_level_5_sessions import connect, watcher

#: Sessions of which a unit of work may carry the end out.
AT_ONCE = 5
CLEAN_WITH_WILL, KEPT_WITH_WILL = "0E", "0C"
DISCONNECT = "E0 00"
WILL_PUBLISHED = written("30 04 0001 'w' 'x'")


def with_will(world: World, name: str, flags: str) -> FakeLink:
    """A client of level 4 whose will is x on w, at QoS 1."""
    link = FakeLink()
    world.receive(link, f"10 16 0004 'MQTT' 04 {flags} 0000 0004 '{name}' 0001 'w' 0001 'x'")
    assert link.taken()[:2] == b"\x20\x02"
    return link


def fleet(world: World, count: int, flags: str) -> list[FakeLink]:
    return [with_will(world, f"m{number:03}", flags) for number in range(count)]


def cut(world: World, links: list[FakeLink]) -> None:
    """All connections are gone in one turn of the event loop, which has not ended."""
    for link in links:
        link.is_open = False
        world.bridge.lost(link)


def most_at_once(world: World, count: Callable[[], int]) -> int:
    """By how much a number sinks at most in a turn of the event loop, until it is 0."""
    counts = [count()]
    while counts[-1] and len(counts) < 1_000:
        world.turn()
        counts.append(count())
    assert counts[-1] == 0
    return max(before - after for before, after in pairwise(counts))


def test_a_network_that_is_cut_ends_few_sessions_in_a_turn(world: World) -> None:
    heard = watcher(world)
    cut(world, fleet(world, 60, CLEAN_WITH_WILL))
    assert most_at_once(world, lambda: len(world.sessions) - 1) <= AT_ONCE
    world.run()
    assert heard.taken() == 60 * WILL_PUBLISHED


def test_a_network_that_is_cut_parts_few_sessions_in_a_turn_that_stay(world: World) -> None:
    cut(world, fleet(world, 60, KEPT_WITH_WILL))
    assert most_at_once(world, lambda: sum(each.connected for each in world.sessions)) <= AT_ONCE
    assert len(world.sessions) == 60


def test_an_error_in_one_ending_does_not_keep_the_others_waiting_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = watcher(world)
    first, second = fleet(world, 2, CLEAN_WITH_WILL)
    with monkeypatch.context() as broken:
        broken.setattr(ToMq, "publish_will", lambda *_arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            world.lose(first)
    world.lose(second)
    assert heard.taken() == WILL_PUBLISHED


def test_a_session_of_many_filters_takes_the_share_of_many_sessions_when_it_ends(world: World) -> None:
    links = fleet(world, 12, CLEAN_WITH_WILL)
    for session in world.sessions:
        session.subscriptions.update((f"a/{number}", 0) for number in range(200))
    cut(world, links)
    assert most_at_once(world, lambda: len(world.sessions)) == 1


@pytest.mark.parametrize("commits", range(8))
def test_a_kill_while_a_network_is_cut_leaves_each_will_once_and_no_session(
    new_world: NewWorld, tmp_path: Path, commits: int
) -> None:
    world = new_world()
    hear = world.connect("hear", flags="00")
    world.receive(hear, "82 06 0001 0001 'w' 01", DISCONNECT)
    links = fleet(world, 20, CLEAN_WITH_WILL)
    world.commits_are_held = True
    cut(world, links)
    world.run()
    for _ in range(commits):
        if world.waiting_commits:
            world.commit()
            world.run()
    world = new_world(data=world.kill(tmp_path / "killed"))
    assert [session.client for session in world.sessions] == ["hear"]
    assert world.depth(SUBSCRIBER_QUEUE) == 20
    assert len(world.engine.states(StateKind.SESSION)) == 1


@pytest.mark.parametrize(
    ("flags", "accepted"),
    [(CLEAN_WITH_WILL, "20 02 00 00"), (KEPT_WITH_WILL, "20 02 01 00")],
    ids=["clean", "kept"],
)
def test_a_client_that_is_back_before_its_turn_finds_its_session_as_the_connection_left_it(
    world: World, flags: str, accepted: str
) -> None:
    cut(world, fleet(world, 20, flags))
    world.commits_are_held = True
    back = FakeLink()
    world.receive(back, "10 10 0004 'MQTT' 04 00 0000 0004 'm019'")
    while not back.sent:
        world.commit()
        world.run()
    assert back.taken() == written(accepted)
    world.commits_are_held = False
    world.run()
    session = world.sessions.get("m019")
    assert session is not None
    assert session.link is back
    assert session.connected
    world.receive(back, "C0 00")
    assert back.taken() == written("D0 00")


def test_each_will_of_a_network_that_is_cut_is_published_once_whoever_comes_back(world: World) -> None:
    heard = watcher(world)
    cut(world, fleet(world, 20, KEPT_WITH_WILL))
    world.receive(FakeLink(), "10 10 0004 'MQTT' 04 00 0000 0004 'm019'")
    assert heard.taken() == 20 * WILL_PUBLISHED


def test_the_time_of_a_session_runs_from_the_end_of_its_connection(world: World) -> None:
    """What waits in line does not live longer."""
    cut(world, [connect(world, f"m{number}", properties="11 0000003C") for number in range(20)])
    world.now_us += 59_000_000
    world.run()
    assert len(world.sessions) == 20
    world.now_us += 1_000_000
    world.bridge.tick()
    world.run()
    assert len(world.sessions) == 0


def test_clients_that_take_their_leave_together_are_told_and_leave_no_will(world: World) -> None:
    heard = watcher(world)
    links = fleet(world, 20, KEPT_WITH_WILL)
    for link in links:
        world.bridge.receive(link, written(DISCONNECT))
    assert most_at_once(world, lambda: sum(link.is_open for link in links)) <= AT_ONCE
    world.run()
    assert [link.reason for link in links] == 20 * [""]
    assert heard.taken() == b""


def test_a_disconnect_is_answered_by_the_end_of_the_connection_behind_the_commit_of_what_came_before(
    world: World,
) -> None:
    link = world.connect("self", flags="00")
    world.commits_are_held = True
    world.receive(link, "32 06 0001 'a' 0007 'x'", DISCONNECT)
    assert link.is_open
    while link.is_open:
        world.commit()
        world.run()
    assert link.taken() == written("40 02 0007")


def test_the_operator_ends_a_session_that_waits_in_line(world: World) -> None:
    heard = watcher(world)
    cut(world, fleet(world, 20, KEPT_WITH_WILL))
    session = world.sessions.get("m019")
    assert session is not None
    world.bridge.disconnect_handler.expire(session, OperatorsAct(operator="ann", command="PURGE CHANNEL"), world.now_us)
    world.run()
    assert world.sessions.get("m019") is None
    assert len(world.sessions) == 20
    assert heard.taken() == 20 * WILL_PUBLISHED


def test_what_waits_for_a_session_that_ends_is_destroyed_a_megabyte_at_a_time(world: World) -> None:
    world.receive(world.connect("self", flags="00"), "82 06 0001 0001 'a' 01", DISCONNECT)
    tell = world.connect("tell")
    for _ in range(6):
        world.bridge.receive(tell, publish_packet(0x32, b"a", bytes(600_000)))
        world.run()
    assert world.depth(SUBSCRIBER_QUEUE) == 6
    world.bridge.receive(FakeLink(), written("10 10 0004 'MQTT' 04 02 0000 0004 'self'"))
    assert most_at_once(world, lambda: world.depth(SUBSCRIBER_QUEUE)) == 2


# -- groups that share subscriptions -----------------------------------------------------------------------------------


def sharer(world: World, name: str, count: int) -> FakeLink:
    """A client of level 5 that is the only member of so many groups, until its connection ends."""
    link = connect(world, name)
    for number in range(count):
        world.receive(link, f"82 13 0001 00 000D '$share/g/a{number:03}' 01")
    assert world.registrations() == count
    return link


@pytest.fixture
def sharing(new_world: NewWorld) -> World:
    return new_world(limits=MqttLimits(maximum_subscriptions=100))


def test_a_session_that_shares_much_ends_few_groups_in_a_turn(sharing: World) -> None:
    cut(sharing, [sharer(sharing, "self", 30)])
    assert most_at_once(sharing, sharing.registrations) <= AT_ONCE
    assert len(sharing.sessions) == 0
    assert sharing.engine.states(StateKind.SHARED_SUBSCRIPTION) == []


@pytest.mark.parametrize("commits", range(4))
def test_a_kill_while_the_groups_of_a_session_end_leaves_none(
    new_world: NewWorld, sharing: World, tmp_path: Path, commits: int
) -> None:
    link = sharer(sharing, "self", 12)
    sharing.commits_are_held = True
    cut(sharing, [link])
    sharing.run()
    for _ in range(commits):
        sharing.commit()
        sharing.run()
    world = new_world(data=sharing.kill(tmp_path / "killed"))
    assert len(world.sessions) == 0
    assert world.registrations() == 0
    assert world.engine.states(StateKind.SHARED_SUBSCRIPTION) == []


def test_a_group_that_somebody_joins_before_its_turn_goes_on(sharing: World) -> None:
    cut(sharing, [sharer(sharing, "self", 12)])
    while len(sharing.sessions):
        sharing.turn()
    link = connect(sharing, "new1")
    link.taken()
    sharing.receive(link, "82 13 0001 00 000D '$share/g/a011' 01")
    assert link.taken() == written("90 04 0001 00 01")
    assert sharing.registrations() == 1
    sharing.receive(sharing.connect("tell"), "30 07 0004 'a011' 'x'")
    assert link.taken() == written("30 08 0004 'a011' 00 'x'")
