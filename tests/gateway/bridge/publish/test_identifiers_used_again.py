"""Packet identifiers of QoS 2 that a client uses again: what is a repeat, what is new, and what came too early."""

import logging
from pathlib import Path

import pytest

from gateway.audit_trail.notes.notes import NoteKind
from mq_adapters.embedded.balance import running_publications
from spark_audit.record import EVENTS, Kind
from tests.gateway.bridge.commands.test_transmission_queues import full, make_room, transmissions
from tests.gateway.bridge.conftest import DEFAULT_STREAM, NewWorld, World, written
from tests.gateway.bridge.connect.test_level_5_sessions import connect

FIRST, RELEASE = "34 06 0001 'a' 0007 'A'", "62 02 0007"
SECOND, SECOND_WITH_DUP = "34 06 0001 'a' 0007 'B'", "3C 06 0001 'a' 0007 'B'"
SAME, REUSED = EVENTS[Kind.REPEATED]


def published(world: World) -> bytes:
    """The last byte of every message on the stream, in order."""
    return b"".join(message.body[-1:] for message in world.messages(DEFAULT_STREAM))


def repeats(world: World) -> list[tuple[object, ...]]:
    """Client, exchange, payload length and event of each repeat that was noted."""
    world.engine.tick()
    world.run()
    noted = [note for note in world.notes if note[0] == NoteKind.REPEATED]
    return [(note[2], note[4], note[6], note[8]) for note in noted]


@pytest.mark.parametrize("second", [SECOND, SECOND_WITH_DUP], ids=["without DUP", "with DUP"])
@pytest.mark.parametrize("level", [3, 4])
def test_publish_behind_the_pubrel_of_its_identifier_is_a_new_message(
    new_world: NewWorld, second: str, level: int
) -> None:
    """In one read. MQTT 4.3.3: no sender repeats a PUBLISH behind its PUBREL."""
    world = new_world(has_broker=False)
    link = world.connect("self", level=level)
    world.receive(link, FIRST, RELEASE, second, RELEASE)
    assert link.taken() == written("50 02 0007 70 02 0007 50 02 0007 70 02 0007")
    assert published(world) == b"AB"
    assert repeats(world) == []


@pytest.mark.parametrize("second", [SECOND, SECOND_WITH_DUP], ids=["without DUP", "with DUP"])
def test_its_pubrec_leaves_behind_the_pubcomp_of_the_old_one(new_world: NewWorld, second: str) -> None:
    """In two reads, with the commit of the release under way."""
    world = new_world(has_broker=False)
    link = world.connect("self")
    world.receive(link, FIRST)
    assert link.taken() == written("50 02 0007")
    world.commits_are_held = True
    world.receive(link, RELEASE)
    world.receive(link, second)
    assert link.sent == b""
    world.commit()
    world.run()
    assert link.taken() == written("70 02 0007")
    world.commit()
    world.run()
    assert link.taken() == written("50 02 0007")
    world.commits_are_held = False
    world.receive(link, RELEASE)
    assert published(world) == b"AB"


def test_publish_behind_a_pubrel_is_new_at_level_5_too(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    link = connect(world, "self")
    second = "34 07 0001 'a' 0007 00 'B'"
    world.receive(link, "34 07 0001 'a' 0007 00 'A'", "62 03 0007 00", second, RELEASE, RELEASE, "62 02 0008")
    expected = "50 02 0007 70 02 0007 50 02 0007 70 02 0007 70 02 0007 70 03 0008 92"
    assert link.taken().endswith(written(expected))
    assert published(world) == b"AB"


def test_repeat_before_pubrel_is_answered_and_noted(new_world: NewWorld) -> None:
    """MQTT-4.3.3-2; on the same connection, and on the next one."""
    world = new_world(has_broker=False)
    link = world.connect("self", flags="00")
    world.receive(link, FIRST, FIRST.replace("34", "3C", 1))
    assert link.taken() == written("50 02 0007 50 02 0007")
    world.lose(link)
    link = world.connect("self", flags="00")
    world.receive(link, FIRST.replace("34", "3C", 1), RELEASE)
    assert link.taken() == written("50 02 0007 70 02 0007")
    assert published(world) == b"A"
    (accepted,) = (note for note in world.notes if note[0] == NoteKind.ACCEPTED)
    assert repeats(world) == [("self", accepted[4], 1, SAME)] * 2
    assert world.bridge.traffic.repeated == {SAME: 2, REUSED: 0}
    assert world.bridge.counts.totals == {}


@pytest.mark.parametrize(
    "other",
    [SECOND, SECOND_WITH_DUP, "34 06 0001 'b' 0007 'A'", "35 06 0001 'a' 0007 'A'"],
    ids=["payload", "payload, with DUP", "topic", "RETAIN"],
)
def test_another_message_before_pubrel_came_too_early_and_is_told(
    new_world: NewWorld, other: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The rule leaves nothing but PUBREC, so its commit holds the note, and log and metrics tell of it too."""
    world = new_world(has_broker=False)
    link = world.connect("self")
    with caplog.at_level(logging.WARNING):
        world.receive(link, FIRST)
        world.receive(link, other)
        world.receive(link, RELEASE)
    assert link.taken() == written("50 02 0007 50 02 0007 70 02 0007")
    assert published(world) == b"A"
    assert [note[3] for note in repeats(world)] == [REUSED]
    assert world.bridge.traffic.repeated == {SAME: 0, REUSED: 1}
    assert world.bridge.counts.totals == {"QoS 2, packet identifier reused too early": 1}
    (line,) = (record.getMessage() for record in caplog.records if "reused" in record.getMessage())
    assert line.startswith("packet identifier reused too early client=self packet_identifier=7 topic=")


def test_balance_tells_what_came_too_early_from_repeats(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    link = world.connect("self")
    world.receive(link, FIRST, FIRST, SECOND, RELEASE, SECOND)
    found = running_publications(world.engine, held=1)
    assert (found.received, found.repeats, found.dropped_by_rule, found.published, found.held) == (4, 1, 1, 1, 1)
    assert found.difference == 0


def test_pubrec_of_what_came_too_early_stands_for_the_commit_of_its_note(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    link = world.connect("self")
    world.receive(link, FIRST)
    link.taken()
    world.commits_are_held = True
    world.receive(link, SECOND)
    assert world.waiting_commits == 1
    assert link.sent == b""
    world.commit()
    world.run()
    assert link.taken() == written("50 02 0007")


def test_log_has_few_lines_of_a_client_that_always_comes_too_early(
    new_world: NewWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world = new_world(has_broker=False)
    link = world.connect("self")
    with caplog.at_level(logging.WARNING):
        world.receive(link, FIRST, *[SECOND] * 100)
    assert len([record for record in caplog.records if "reused" in record.getMessage()]) == 20
    assert len(repeats(world)) == 100


@pytest.mark.parametrize(
    ("first", "other", "event"),
    [
        ("01 01", "01 01", SAME),
        ("01 01", "01 00", REUSED),
        ("02 0000003C", "02 00000032", SAME),  # a sender may say what is left of it
        ("26 0001 'n' 0002 'v1'", "26 0001 'n' 0002 'v2'", REUSED),
        ("", "03 0001 'c'", REUSED),
    ],
    ids=["none", "payload format", "what is left of the expiry", "user property", "content type"],
)
def test_at_level_5_the_properties_of_the_message_count(
    new_world: NewWorld, first: str, other: str, event: str
) -> None:
    world = new_world(has_broker=False)
    link = connect(world, "self")
    for properties in (first, other):
        body = written(f"0001 'a' 0007 {len(written(properties)):02X} {properties} 'A'")
        world.bridge.receive(link, bytes((0x34, len(body))) + body)
    world.run()
    assert [note[3] for note in repeats(world)] == [event]


def test_client_that_comes_back_at_another_level_repeats_the_same_message(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    link = world.connect("self", flags="00")
    world.receive(link, FIRST)
    world.lose(link)
    link = connect(world, "self", flags="00", properties="11 FFFFFFFF")
    world.receive(link, "3C 07 0001 'a' 0007 00 'A'")
    assert [note[3] for note in repeats(world)] == [SAME]


def test_publish_of_qos_1_under_a_held_identifier_is_a_message_of_its_own(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    link = world.connect("self")
    world.receive(link, FIRST, "32 06 0001 'a' 0007 'C'", "82 06 0007 0001 'x' 01", RELEASE)
    assert link.taken()[:8] == written("50 02 0007 40 02 0007")
    assert published(world) == b"CA"
    assert repeats(world) == []


def test_identifier_of_a_refused_publish_is_free_for_what_comes_in_the_same_read(new_world: NewWorld) -> None:
    """MQTT-4.3.3-9: what is held decides, so nothing that is refused makes a repeat of what follows."""
    world = new_world(has_broker=False, publish=("a",))
    link = connect(world, "self")
    link.taken()
    refused = "34 07 0001 'b' 0007 00 'X'"
    world.receive(link, refused, refused, "34 07 0001 'a' 0007 00 'A'", RELEASE, refused, RELEASE)
    pubrec, refusal, pubcomp = "50 02 0007", "50 03 0007 87", "70 02 0007"
    assert link.taken() == written(f"{refusal}{refusal}{pubrec}{pubcomp}{refusal}{pubcomp}")
    assert published(world) == b"A"


def test_crash_behind_the_commit_of_both_leaves_the_new_message_held(new_world: NewWorld, tmp_path: Path) -> None:
    """PUBREL(7) and PUBLISH(7) in one write are one unit of work: the store has both, or neither."""
    world = new_world(has_broker=False)
    link = world.connect("self", flags="00")
    world.receive(link, FIRST)
    world.commits_are_held = True
    world.receive(link, RELEASE, SECOND)
    before = world.kill(tmp_path / "before")
    world.commit()
    after = world.kill(tmp_path / "after")
    for data, sent_again, all_of_it in (
        (before, (RELEASE, SECOND_WITH_DUP, RELEASE), b"AB"),
        (after, (SECOND_WITH_DUP, RELEASE), b"AB"),
    ):
        world = new_world(data, has_broker=False)
        link = world.connect("self", flags="00")
        world.receive(link, *sent_again)
        assert link.taken().endswith(written("50 02 0007 70 02 0007"))
        assert published(world) == all_of_it


def test_repeat_waits_for_no_room_at_its_target(new_world: NewWorld) -> None:
    """It becomes nothing; a new message behind its PUBREL waits."""
    world, link = full(new_world)
    world.lose(link)
    make_room(world)
    link = world.connect("self", flags="00")
    world.receive(link, "34 08 0003 'a/b' 0007 'A'")
    world.receive(link, "32 08 0003 'a/b' 0001 'F'")
    link.taken()
    world.receive(link, "3C 08 0003 'a/b' 0007 'A'", RELEASE, "34 08 0003 'a/b' 0007 'B'", RELEASE)
    assert link.taken() == written("50 02 0007 70 02 0007")
    assert not link.is_read()
    world.lose(link)
    make_room(world)
    session = world.sessions.get("self")
    assert session is not None
    assert session.held == {}
    assert transmissions(world) == []
