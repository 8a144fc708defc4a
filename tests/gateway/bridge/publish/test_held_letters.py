"""A dead-letter queue that takes nothing holds back who caused the letters, and nobody else."""

from collections.abc import Callable

import pytest

from gateway.audit_trail.notes.notes import NoteKind
from gateway.config.limits import Limit
from gateway.limits.budgets import Amount
from gateway.mqtt.reason_codes import ReasonCode
from tests.gateway.bridge.conftest import LIMITS, FakeLink, NewWorld, World, publish_packet, written
from tests.mq_adapters.channel.faults import Connection

DEAD, HELD = "SYSTEM.DEAD.LETTER.QUEUE", "SYSTEM.RFHBRIDGE.HELD"


def mqsc(world: World, *commands: str) -> None:
    hand = Connection(world.engine, "a test")
    for command in commands:
        assert hand.mqsc(command).succeeded, command
    hand.close()
    world.run()


def closed_topic(world: World) -> None:
    """Before MQTT 5 a PUBLISH on a topic that is closed is acknowledged, and the broker refuses it afterwards."""
    mqsc(world, "DEFINE TOPIC(T) TOPICSTR('shut') PUB(DISABLED)")


def full_queue(world: World) -> None:
    """An application is subscribed to the same topic, and its queue takes nothing."""
    mqsc(world, "DEFINE QLOCAL(FULL) MAXDEPTH(0)", "DEFINE SUB(S) TOPICSTR('shut') DEST(FULL)")


def publish(world: World, link: FakeLink, count: int = 1, *, topic: bytes = b"shut", first_byte: int = 0x32) -> int:
    """PUBLISHes in one read; the number of PUBACKs."""
    packets = [publish_packet(first_byte, topic, b"%02d" % number, number + 1) for number in range(count)]
    world.bridge.receive(link, b"".join(packets))
    world.run()
    return link.taken().count(b"\x40\x02")


def kept(world: World) -> list[bytes]:
    return [message.body[-2:] for name in (DEAD, HELD) for message in world.messages(name)]


def pass_time(world: World, seconds: float = 2) -> None:
    world.now_us += int(seconds * 1_000_000)
    world.bridge.tick()
    world.engine.tick()
    world.run()


def test_all_that_was_acknowledged_is_kept_and_only_its_publisher_waits(new_world: NewWorld) -> None:
    world = new_world()
    full_queue(world)
    mqsc(world, f"ALTER QLOCAL({DEAD}) MAXDEPTH(5)")
    cause, other = world.connect("caus"), world.connect("othe")
    assert publish(world, cause, 10) == 10
    assert sorted(kept(world)) == [b"%02d" % number for number in range(10)]
    assert len(world.messages(HELD)) == 8, "one subscription has no more than half of a small queue"
    assert world.bridge.admission.refusals.totals == {(Limit.DEAD_LETTERS, ReasonCode.QUOTA_EXCEEDED): 8}
    assert publish(world, cause, 1, topic=b"open") == 0
    assert not cause.is_read()
    assert len(world.bridge.paused_publishers) == 1
    assert publish(world, other, 1, topic=b"open") == 1
    assert other.is_read()
    notes = [note for note in world.notes if note[0] == NoteKind.DEAD_LETTERED]
    assert len(notes) == 10
    pass_time(world)
    assert not cause.is_read()
    mqsc(world, f"ALTER QLOCAL({DEAD}) MAXDEPTH(1000)")
    pass_time(world)
    assert len(world.messages(DEAD)) == 10
    assert cause.is_read()
    assert cause.taken() == written("40 02 0001")
    assert len(world.bridge.paused_publishers) == 0


def test_one_publisher_fills_no_more_than_his_share(new_world: NewWorld) -> None:
    world = new_world(limits=LIMITS.model_copy(update={"maximum_dead_letters": 2}))
    closed_topic(world)
    cause, other = world.connect("caus"), world.connect("othe")
    assert sum(publish(world, cause) for _ in range(4)) == 3
    assert (len(world.messages(DEAD)), len(world.messages(HELD))) == (2, 1)
    assert world.bridge.admission.refusals.totals == {(Limit.DEAD_LETTERS, ReasonCode.QUOTA_EXCEEDED): 1}
    assert publish(world, other) == 1
    assert len(world.messages(DEAD)) == 3
    hand = Connection(world.engine, "a test")
    hand.get(DEAD)
    world.run()
    hand.close()
    pass_time(world)
    assert cause.taken() == written("40 02 0001")
    assert len(kept(world)) == 4


def test_who_has_how_many_letters_is_counted_at_the_start_and_not_behind_a_publish(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = LIMITS.model_copy(update={"maximum_dead_letters": 2})
    world = new_world(limits=limits)
    closed_topic(world)
    assert publish(world, world.connect("caus")) == 1
    world = new_world(limits=limits)
    monkeypatch.setattr(world.engine, "origins", None)
    cause = world.connect("caus")
    assert publish(world, cause) + publish(world, cause) == 2
    assert (len(world.messages(DEAD)), len(world.messages(HELD))) == (2, 1)


def test_who_waits_waits_over_a_restart_and_a_reconnect(new_world: NewWorld) -> None:
    world = new_world()
    closed_topic(world)
    mqsc(world, f"ALTER QLOCAL({DEAD}) PUT(DISABLED)")
    assert publish(world, world.connect("caus")) == 1
    world = new_world()
    again = world.connect("caus")
    assert publish(world, again) == 0
    mqsc(world, f"ALTER QLOCAL({DEAD}) PUT(ENABLED)")
    pass_time(world)
    assert again.taken() == written("40 02 0001")
    assert len(kept(world)) == 2


def test_qos_0_holds_nobody_and_is_counted_and_noted(new_world: NewWorld) -> None:
    world = new_world()
    closed_topic(world)
    mqsc(world, f"ALTER QLOCAL({DEAD}) PUT(DISABLED)")
    link = world.connect("caus")
    publish(world, link, 3, first_byte=0x30)
    assert kept(world) == []
    assert link.is_read()
    assert world.engine.dead_letters.dropped == 3
    pass_time(world)
    dropped = [note for note in world.notes if note[0] == NoteKind.DROPPED]
    assert [note[2] for note in dropped] == ["caus"] * 3
    assert publish(world, link, 1, topic=b"open") == 1


def test_who_has_no_letters_any_more_goes_on_while_others_wait(new_world: NewWorld) -> None:
    world = new_world()
    closed_topic(world)
    mqsc(world, f"ALTER QLOCAL({DEAD}) PUT(DISABLED)")
    cause, other = world.connect("caus"), world.connect("othe")
    assert (publish(world, cause), publish(world, other)) == (1, 1)
    assert (publish(world, cause, topic=b"open"), publish(world, other, topic=b"open")) == (0, 0)
    hand = Connection(world.engine, "a test")
    hand.get(HELD)
    world.run()
    hand.close()
    pass_time(world)
    assert cause.taken() == written("40 02 0001")
    assert not other.is_read()


def test_letters_that_an_operator_took_away_hold_nobody_back(new_world: NewWorld) -> None:
    world = new_world()
    closed_topic(world)
    mqsc(world, f"ALTER QLOCAL({DEAD}) PUT(DISABLED)")
    link = world.connect("caus")
    assert publish(world, link) == 1
    assert publish(world, link, topic=b"open") == 0
    hand = Connection(world.engine, "a test")
    while world.depth(HELD):
        hand.get(HELD)
        world.run()
    hand.close()
    pass_time(world)
    assert link.taken() == written("40 02 0001")


def test_a_will_whose_queue_takes_nothing_can_go_back(new_world: NewWorld) -> None:
    world = new_world()
    link = FakeLink()
    world.receive(link, "10 18 0004 'MQTT' 04 0E 0000 0004 'dies' 0003 'a/w' 0001 'W'")
    mqsc(world, "ALTER QLOCAL(SYSTEM.BROKER.DEFAULT.STREAM) MAXDEPTH(0)")
    world.lose(link)
    (letter,) = world.messages(DEAD)
    assert letter.body[116:124] == b"MQHRF2  "
    assert b"<Topic>a/w</Topic>" in letter.body
    assert letter.body.endswith(b"W")


@pytest.mark.parametrize("cause", [closed_topic, full_queue])
def test_the_bytes_of_letters_are_a_share_too(new_world: NewWorld, cause: Callable[[World], None]) -> None:
    """Letters without a CorrelId count for their client, and those of a subscription for it; over a restart too."""
    limits = LIMITS.model_copy(update={"maximum_dead_letter_bytes": 700})
    world = new_world(limits=limits)
    cause(world)
    assert publish(world, world.connect("caus"), 2) == 2
    world = new_world(limits=limits)
    again, other = world.connect("caus"), world.connect("othe")
    assert publish(world, again, 2) == 2
    held = len(world.messages(HELD))
    assert 0 < held < 4
    assert len(world.messages(DEAD)) == 4 - held
    assert publish(world, again) == 0
    assert publish(world, other, topic=b"open") == 1


# -- users and networks ------------------------------------------------------------------------------------------------


def limited(new_world: NewWorld, **limits: int) -> World:
    world = new_world(limits=LIMITS.model_copy(update=limits))
    closed_topic(world)
    return world


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        ({"maximum_dead_letters_per_address": 2}, Limit.DEAD_LETTERS_PER_ADDRESS),
        ({"maximum_dead_letters_per_prefix": 2}, Limit.DEAD_LETTERS_PER_PREFIX),
        ({"maximum_dead_letter_bytes_per_address": 800}, Limit.DEAD_LETTER_BYTES_PER_ADDRESS),
    ],
)
@pytest.mark.parametrize("queue", [DEAD, "MY.DEAD"])
def test_a_new_identifier_brings_no_new_share(
    new_world: NewWorld, queue: str, limits: dict[str, int], limit: Limit
) -> None:
    world = limited(new_world, **limits)
    mqsc(world, "DEFINE QLOCAL(MY.DEAD)", f"ALTER QMGR DEADQ({queue})")
    for number in range(4):
        publish(world, world.connect(f"cli{number}"))
    assert (len(world.messages(queue)), len(world.messages(HELD))) == (2, 1), "the fourth waits, for its network has"
    assert world.refusals.totals == {(limit, ReasonCode.QUOTA_EXCEEDED): 1}
    links = [world.connect("more"), world.connect("newc")]
    assert [publish(world, link, topic=b"open") for link in links] == [0, 0]
    mqsc(world, f"CLEAR QLOCAL({queue})")
    pass_time(world, 11)
    pass_time(world)
    assert (len(world.messages(queue)), world.messages(HELD)) == (2, []), "the letter that was held, and the fourth"
    assert all(link.is_read() for link in links)


@pytest.mark.parametrize("restarts", [False, True])
def test_others_never_fill_the_queue_for_who_has_few_letters(new_world: NewWorld, restarts: bool) -> None:
    """The shares of a user and of a network grow with their sessions, and MAXDEPTH does not."""
    world = limited(new_world)
    mqsc(world, f"ALTER QLOCAL({DEAD}) MAXDEPTH(100)")
    for number in range(40):
        publish(world, world.connect(f"ca{number:02}"), 3)
    assert (len(world.messages(DEAD)), len(world.messages(HELD))) == (90, 3), "the next clients of the network wait"
    if restarts:
        world = new_world(limits=LIMITS)
    for number in range(5):
        link = FakeLink()
        link.peer = f"198.51.{number}.1:50000"
        world.receive(link, f"10 10 0004 'MQTT' 04 02 0000 0004 'hon{number}'")
        link.taken()
        assert publish(world, link) == 1
        assert publish(world, link, topic=b"open") == 1
    assert (len(world.messages(DEAD)), len(world.messages(HELD))) == (95, 3)


def test_a_restart_charges_letters_to_those_who_caused_them(new_world: NewWorld) -> None:
    world = limited(new_world)
    link = world.connect("gone", flags="02")
    publish(world, link, 2)
    world.bridge.lost(link)
    world.run()
    assert world.sessions.get("gone") is None
    again = new_world(limits=LIMITS.model_copy(update={"maximum_dead_letters_per_address": 2}))
    assert again.sessions.budgets.everybody.amounts[Amount.DEAD_LETTERS] == 2
    publish(again, again.connect("othe"))
    assert len(again.messages(HELD)) == 1
