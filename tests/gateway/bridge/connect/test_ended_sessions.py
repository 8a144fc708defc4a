"""What a session leaves behind: nothing, whenever it ends and wherever a crash meets its end."""

from pathlib import Path

import pytest

from mappings.commands.command import Dialect
from mq_adapters.broker.updates import NoCopyLimit
from mq_adapters.embedded.unit_of_work import StateKind
from tests.gateway.bridge.conftest import SUBSCRIBER_QUEUE, FakeLink, NewWorld, World, written

WITH_WILL = "10 16 0004 'MQTT' 04 0E 0000 0004 'self' 0001 'w' 0001 'x'"
SUBSCRIBE_ALL = "82 06 0001 0001 '#' 01"


def _with_will(world: World) -> FakeLink:
    """A clean session whose will matches its own subscription."""
    link = FakeLink()
    world.receive(link, WITH_WILL, SUBSCRIBE_ALL)
    assert link.taken() == written("20 02 00 00 90 03 0001 01")
    return link


def test_the_will_of_a_clean_session_does_not_stay_in_its_own_lane(world: World) -> None:
    for _ in range(2):
        world.lose(_with_will(world))
        assert world.depth(SUBSCRIBER_QUEUE) == 0
    assert world.sessions.get("self") is None
    assert world.registrations() == 0


@pytest.mark.parametrize("commits", [0, 1, 2])
def test_a_crash_while_a_clean_session_ends_leaves_no_message_that_nobody_will_ever_get(
    new_world: NewWorld, tmp_path: Path, commits: int
) -> None:
    world = new_world()
    link = _with_will(world)
    world.commits_are_held = True
    world.lose(link)
    for _ in range(commits):
        world.commit()
        world.run()
    world = new_world(data=world.kill(tmp_path / "after the crash"))
    assert world.depth(SUBSCRIBER_QUEUE) == 0
    assert world.registrations() == 0
    assert world.sessions.get("self") is None


def test_a_crash_between_the_end_of_a_session_and_the_draining_of_its_lane_leaves_no_message(
    new_world: NewWorld, tmp_path: Path
) -> None:
    world = new_world()
    link = world.connect("self", flags="00")
    world.receive(link, SUBSCRIBE_ALL)
    world.lose(link)
    world.receive(world.connect("tell"), *(f"32 06 0001 'a' {number:04X} 'x'" for number in range(1, 6)))
    assert world.depth(SUBSCRIBER_QUEUE) == 5
    world.commits_are_held = True
    world.receive(FakeLink(), "10 10 0004 'MQTT' 04 02 0000 0004 'self'")
    world.commit()
    world = new_world(data=world.kill(tmp_path / "after the crash"))
    assert world.depth(SUBSCRIBER_QUEUE) == 0


class PromisesNothing(NoCopyLimit):
    """So the broker answers behind the copies."""

    def promise(self, _correl_id: bytes | None, _size_bytes: int) -> bool:
        return False


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_crash_between_the_registration_and_the_session_s_row_leaves_no_registration(
    new_world: NewWorld, tmp_path: Path, dialect: Dialect
) -> None:
    """The broker would copy for ever what nobody takes. It answers late where it sends much that is retained."""
    world = new_world(dialect=dialect)
    world.receive(world.connect("tell"), *(f"31 06 0003 'r/{number}' 'x'" for number in range(1, 9)))
    world.broker.limit_retained_copies(PromisesNothing())
    link = world.connect("self")
    world.commits_are_held = True
    world.receive(link, SUBSCRIBE_ALL)
    world.commit()
    assert link.sent == b""
    killed = world.kill(tmp_path / "after the crash")
    assert world.registrations() == 1
    world = new_world(data=killed, dialect=dialect)
    assert world.registrations() == 0
    world.receive(world.connect("tell"), "32 06 0001 'a' 0001 'x'")
    assert world.depth(SUBSCRIBER_QUEUE) == 0
    assert world.engine.states(StateKind.SESSION_OUTGOING) == []


def test_an_empty_retained_publish_deletes_the_retained_publication_of_that_topic_alone(new_world: NewWorld) -> None:
    """In MQRFH DeletePub takes patterns: the topic names `*` and `50%` must not be read as such."""
    world = new_world(dialect=Dialect.MQRFH)
    publisher = world.connect("tell")
    world.receive(publisher, "31 06 0003 'a/1' 'x'", "31 04 0001 '*' 'y'", "31 06 0003 '50%' 'z'")
    world.receive(publisher, "31 03 0001 '*'", "31 05 0003 '50%'")
    watcher = world.connect("self")
    world.receive(watcher, SUBSCRIBE_ALL)
    assert watcher.taken() == written("90 03 0001 01 31 06 0003 'a/1' 'x'")
    assert world.depth("SYSTEM.DEAD.LETTER.QUEUE") == 0
    assert len(world.engine.states(StateKind.BROKER_RETAINED)) == 1


@pytest.mark.parametrize("late", [SUBSCRIBE_ALL, "A2 05 0001 0001 '#'"], ids=["SUBSCRIBE", "UNSUBSCRIBE"])
def test_a_request_on_a_connection_whose_session_has_ended_leaves_no_row_and_no_registration(
    new_world: NewWorld, late: str
) -> None:
    """A new clean session has ended the one before, and bytes of the old connection come after that."""
    world = new_world()
    old = world.connect("self", flags="00")
    new = world.connect("self")
    rows = world.engine.states(StateKind.SESSION)
    assert len(rows) == 1
    world.receive(old, late)
    assert old.sent == b""
    assert world.registrations() == 0
    assert world.engine.states(StateKind.SESSION) == rows
    world.lose(new)
    assert world.engine.states(StateKind.SESSION) == []
