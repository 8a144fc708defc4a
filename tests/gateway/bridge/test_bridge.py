"""Answers and their commits: what leaves when, on which link, and what a takeover in between changes."""

import pytest

from gateway.audit_trail.notes.notes import NoteKind
from tests.gateway.bridge.conftest import DEFAULT_STREAM, FakeLink, NewWorld, World, remaining_length, written

PUBLISH_1 = "32 08 0003 'a/b' 0001 'A'"
PUBLISH_2 = "34 08 0003 'a/b' 0002 'B'"


def test_connack_is_not_sent_before_the_session_is_committed(world: World) -> None:
    world.commits_are_held = True
    link = FakeLink()
    world.receive(link, "10 10 0004 'MQTT' 04 00 0000 0004 'self'", PUBLISH_1)
    assert link.sent == b""
    assert not link.is_read()
    world.commit()
    world.run()
    assert link.taken() == written("20 02 00 00")
    assert link.is_read()
    world.commit()
    world.run()
    assert link.taken() == written("40 02 0001")


@pytest.mark.parametrize(
    ("packet", "answer"),
    [(PUBLISH_1, "40 02 0001"), (PUBLISH_2, "50 02 0002")],
    ids=["PUBACK", "PUBREC"],
)
def test_nothing_is_acknowledged_before_commit(world: World, packet: str, answer: str) -> None:
    """Not even what nobody subscribes to: its audit record is committed first."""
    link = world.connect("self")
    world.commits_are_held = True
    world.receive(link, packet)
    assert world.waiting_commits == 1
    assert link.sent == b""
    world.commits_are_held = False
    world.run()
    assert link.taken().endswith(written(answer))


def test_pubcomp_waits_for_the_commit_of_the_put(world: World) -> None:
    """And a PUBREL that is repeated meanwhile has a PUBCOMP of its own, behind it (MQTT-4.3.3-2)."""
    link = world.connect("self")
    world.receive(link, PUBLISH_2)
    assert link.taken() == written("50 02 0002")
    world.commits_are_held = True
    world.receive(link, "62 02 0002")
    world.receive(link, "62 02 0002")
    assert link.sent == b""
    world.commit()
    world.run()
    assert link.taken() == written("70 02 0002 70 02 0002")
    assert world.sessions.get("self") is not None


def test_answers_of_several_reads_leave_in_packet_order(world: World) -> None:
    link = world.connect("self")
    world.commits_are_held = True
    world.receive(link, PUBLISH_1, PUBLISH_2)
    world.receive(link, "62 02 0007", "32 08 0003 'a/b' 0003 'C'")
    world.receive(link, "62 02 0002", "3C 08 0003 'a/b' 0002 'B'")
    assert link.sent == b""
    world.commits_are_held = False
    world.run()
    assert link.taken() == written("40 02 0001 50 02 0002 70 02 0007 40 02 0003 70 02 0002 50 02 0002")


def test_a_link_that_sends_faster_than_the_disk_commits_is_not_read(world: World) -> None:
    link = world.connect("self")
    world.commits_are_held = True
    for number in range(1, 5):
        assert link.is_read()
        world.receive(link, f"32 08 0003 'a/b' {number:04X} 'A'")
    assert not link.is_read()
    world.commits_are_held = False
    world.run()
    assert link.is_read()
    assert link.outstanding == 0


def test_a_takeover_during_a_commit_answers_on_neither_link_but_loses_nothing(world: World) -> None:
    first = world.connect("self", flags="00")
    world.commits_are_held = True
    world.receive(first, PUBLISH_1, PUBLISH_2)
    second = FakeLink()
    world.receive(second, "10 10 0004 'MQTT' 04 00 0000 0004 'self'")
    assert not first.is_open
    world.lose(first)
    world.commits_are_held = False
    world.run()
    assert first.sent == b""
    assert second.taken() == written("20 02 01 00")
    world.receive(second, "3C 08 0003 'a/b' 0002 'B'", "62 02 0002")
    assert second.taken() == written("50 02 0002 70 02 0002")


def test_a_release_that_a_takeover_met_is_completed_on_the_new_link(world: World) -> None:
    """The client repeats PUBREL; whether the commit is through by then or not, it is published once."""
    watcher = world.connect("hear")
    world.receive(watcher, "82 08 0001 0003 'a/b' 00")
    assert watcher.taken() == written("90 03 0001 00")
    first = world.connect("self", flags="00")
    world.receive(first, PUBLISH_2)
    world.commits_are_held = True
    world.receive(first, "62 02 0002")
    second = FakeLink()
    world.receive(second, "10 10 0004 'MQTT' 04 00 0000 0004 'self'", "62 02 0002")
    world.commits_are_held = False
    world.run()
    assert second.taken() == written("20 02 01 00 70 02 0002")
    assert watcher.taken() == written("30 06 0003 'a/b' 'B'")


def test_what_came_before_a_disconnect_is_answered_before_the_link_closes(world: World) -> None:
    link = world.connect("self")
    world.receive(link, PUBLISH_1, "E0 00")
    assert link.taken() == written("40 02 0001")
    assert (link.is_open, link.reason) == (False, "")


def test_a_delivery_leaves_after_the_commit_of_its_packet_identifier(world: World) -> None:
    watcher, client = world.connect("hear", flags="00"), world.connect("self")
    world.receive(watcher, "82 08 0001 0003 'a/b' 02")
    watcher.taken()
    world.commits_are_held = True
    world.receive(client, PUBLISH_1)
    world.commit()
    world.run()
    assert client.taken() == written("40 02 0001")
    assert watcher.sent == b""
    world.commit()
    world.run()
    assert watcher.taken() == written("32 08 0003 'a/b' 0001 'A'")


def test_pubrel_leaves_after_the_commit_of_pubrec(world: World) -> None:
    link = world.connect("self", flags="00")
    world.receive(link, "82 08 0001 0003 'a/b' 02", PUBLISH_2, "62 02 0002")
    link.taken()
    world.commits_are_held = True
    world.receive(link, "50 02 0001")
    world.receive(link, "50 02 0001")
    assert link.sent == b""
    world.commits_are_held = False
    world.run()
    assert link.taken() == written("62 02 0001")
    world.receive(link, "70 02 0001")
    assert world.depth("RFHBRIDGE.SUBSCRIBER") == 0


def test_a_full_window_and_a_slow_peer_hold_deliveries_back(world: World) -> None:
    """Ten may be in flight here. What waits stays on the queue, where a restart finds it."""
    watcher, client = world.connect("hear", flags="00"), world.connect("self")
    world.receive(watcher, "82 08 0001 0003 'a/b' 01")
    watcher.taken()
    world.receive(client, *(f"32 08 0003 'a/b' {number:04X} 'A'" for number in range(1, 16)))
    assert watcher.taken() == written("".join(f"32 08 0003 'a/b' {number:04X} 'A'" for number in range(1, 11)))
    watcher.can_send = False
    world.receive(watcher, *(f"40 02 {number:04X}" for number in range(1, 11)))
    assert watcher.sent == b""
    assert len(world.messages("RFHBRIDGE.SUBSCRIBER")) == 5
    watcher.can_send = True
    world.bridge.resumed(watcher)
    world.run()
    assert watcher.taken() == written("".join(f"32 08 0003 'a/b' {number:04X} 'A'" for number in range(11, 16)))


def test_a_restart_takes_up_every_flow(new_world: NewWorld) -> None:
    world = new_world()
    watcher, client = world.connect("hear", flags="00"), world.connect("self", flags="00")
    world.receive(watcher, "82 08 0001 0003 'a/b' 02")
    world.receive(client, PUBLISH_1, "34 08 0003 'a/b' 0003 'C'", "62 02 0003", PUBLISH_2)
    watcher.taken()
    world.receive(watcher, "50 02 0002")
    assert watcher.taken() == written("62 02 0002")
    world = new_world()
    watcher, client = FakeLink(), FakeLink()
    world.receive(watcher, "10 10 0004 'MQTT' 04 00 0000 0004 'hear'")
    assert watcher.taken() == written("20 02 01 00 3A 08 0003 'a/b' 0001 'A' 62 02 0002")
    world.receive(client, "10 10 0004 'MQTT' 04 00 0000 0004 'self'", "62 02 0002")
    assert client.taken() == written("20 02 01 00 70 02 0002")
    assert watcher.taken() == written("34 08 0003 'a/b' 0003 'B'")


def test_a_publish_that_is_not_allowed_closes_the_link_and_is_not_put(new_world: NewWorld) -> None:
    """MQTT-3.3.5-2."""
    world = new_world(publish=("open/#",), has_broker=False)
    link = world.connect("self")
    world.receive(link, "32 0B 0006 'open/a' 0001 'A'", "32 0B 0006 'shut/a' 0002 'B'")
    assert not link.is_open
    assert link.reason is not None
    assert "not allowed" in link.reason
    assert [message.body[-1:] for message in world.messages(DEFAULT_STREAM)] == [b"A"]


def test_a_subscription_that_is_not_allowed_is_refused_and_noted(new_world: NewWorld) -> None:
    world = new_world(subscribe=("open/#",))
    link = world.connect("self")
    world.receive(link, "82 16 0001 0006 'open/+' 01 0001 '#' 01 0004 'open' 01")
    assert link.taken() == written("90 05 0001 01 80 01")
    world.bridge.tick()
    world.run()
    refused = [note for note in world.notes if note[0] == NoteKind.TOPICS_REFUSED]
    assert [note[2:8] for note in refused] == [("subscribe", "self", "", "access.subscribe", "#", 1)]
    answered = [note[5:] for note in world.notes if note[0] == NoteKind.ANSWERED]
    assert answered == [
        (1, ("open/+", "#"), b"\1\1", b"\1\x80", (("2", "access.subscribe"),)),
        (1, ("open",), b"\1", b"\1", ()),
    ]


def test_a_gateway_that_stops_keeps_sessions_and_wills_for_the_next_start(new_world: NewWorld) -> None:
    world = new_world()
    watcher = world.connect("hear", flags="00")
    world.receive(watcher, "82 06 0001 0001 '#' 01")
    doomed = FakeLink()
    world.receive(doomed, "10 1A 0004 'MQTT' 04 0E 0000 0004 'will' 0003 'w/w' 0003 'bye'")
    world.bridge.is_stopping = True
    world.lose(doomed)
    world.lose(watcher)
    watcher.taken()
    world = new_world()
    watcher = FakeLink()
    world.receive(watcher, "10 10 0004 'MQTT' 04 00 0000 0004 'hear'")
    assert watcher.taken() == written("20 02 01 00 32 0A 0003 'w/w' 0001 'bye'")
    assert world.sessions.get("will") is None


def test_acknowledged_exchanges_are_noted_in_ranges(world: World) -> None:
    link = world.connect("self")
    world.receive(link, *(f"32 08 0003 'a/b' {number:04X} 'A'" for number in range(1, 6)))
    world.bridge.tick()
    world.run()
    world.engine.tick()
    world.run()
    confirmed = [note for note in world.notes if note[0] == NoteKind.CONFIRMED]
    published = [note[4] for note in world.notes if note[0] == NoteKind.PUBLISHED]
    assert [note[5] for note in confirmed] == [[[published[0], published[-1]]]]


@pytest.mark.parametrize(("characters", "connack"), [(1_024, "20 02 00 00"), (1_025, "20 02 00 02")])
def test_a_client_identifier_that_would_swell_every_record_is_refused(
    world: World, characters: int, connack: str
) -> None:
    """Return code 2, identifier rejected (MQTT-3.1.3-9). The limit is in characters: these have two bytes each."""
    identifier = "é".encode() * characters
    body = written("0004 'MQTT' 04 02 0000") + len(identifier).to_bytes(2, "big") + identifier
    link = FakeLink()
    world.bridge.receive(link, b"\x10" + remaining_length(len(body)) + body)
    world.run()
    assert link.taken() == written(connack)
    assert link.is_open is (connack[-1] == "0")
