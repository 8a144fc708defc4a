"""Negative notifications of a target's broker: what was acknowledged and refused later is kept, with the reason."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.audit_trail.notes.notes import NoteKind
from gateway.config import RouteSettings, TargetSettings
from mq_adapters.embedded.unit_of_work import Departure
from mq_adapters.message import MQMT_REPLY, Message, MessageDescriptor
from mq_adapters.transmission import read_transmission
from tests.gateway.bridge.conftest import DEFAULT_STREAM, REPLY_QUEUE, NewWorld, World, written
from tests.gateway.bridge.remote import Remote, transmissions
from tests.gateway.bridge.subscribe.test_subscribe import REPLY_OK, REPLY_TOPIC_ERROR

DEAD_LETTERS, SENT = "SYSTEM.DEAD.LETTER.QUEUE", "RFHBRIDGE.SENT.QM1"
NO_RETAINED = written(
    "'RFH ' 02000000 80000000 22020000 B8040000 '        ' 00000000 B8040000 58000000"
    "'<pscr><Completion>error</Completion><Response><Reason>3077</Reason></Response></pscr>   '"
)
WARNING = written(
    "'RFH ' 02000000 80000000 22020000 B8040000 '        ' 00000000 B8040000 58000000"
    "'<pscr><Completion>warning</Completion><Response><Reason>3081</Reason></Response></pscr> '"
)
#: 3072, MQRCCF_TOPIC_ERROR, behind 'DLH ' and version 1.
MQDLH_TOPIC_ERROR = written("'DLH ' 01000000 000C0000")


@pytest.fixture
def world(new_world: NewWorld) -> World:
    """A gateway with two targets; topics under `a` go to QM1."""
    targets = tuple(TargetSettings.model_validate({"name": name, "grace_s": 60.0}) for name in ("QM1", "QM2"))
    routes = (RouteSettings(target="QM1", topics=("a/#",)), RouteSettings(target="QM2", topics=("b/#",)))
    world = new_world(targets=targets, routes=routes)
    world.targets["QM1"].heard_from("CENTRAL", "CENTRAL_1", {})
    world.run()
    return world


def notify(world: World, msg_id: bytes, body: bytes = REPLY_TOPIC_ERROR, *, persistence: int = 1) -> None:
    """A notification of a target's broker arrives; its persistence is that of the command (IBM MQ, MQMD of a reply)."""
    unit = world.engine.begin()
    descriptor = MessageDescriptor(msg_type=MQMT_REPLY, format=b"MQHRF2  ", correl_id=msg_id, persistence=persistence)
    world.engine.put(unit, world.engine.queue(REPLY_QUEUE), Message(descriptor, body))
    world.engine.submit(unit)
    world.run()


def deliver(world: World, target: str = "QM1") -> None:
    """The channel has delivered what waits: it goes, and copies of it stay for a while."""
    queue = world.engine.queue(f"RFHBRIDGE.XMIT.{target}.0")
    unit = world.engine.begin()
    while (message := world.engine.take(queue)) is not None:
        unit.remove(queue, message, Departure.TAKEN)
        sent = read_transmission(message, now_us=world.now_us).message
        if sent.is_persistent:
            copy = Message(sent.descriptor.replace(expiry=600), sent.body, message.origin)
            world.engine.put(unit, world.targets[target].sent_queue, copy)
    world.engine.submit(unit)
    world.run()


def publish(world: World, packet: str = "32 0F 0003 'a/b' 0001 'precious'", target: str = "QM1") -> bytes:
    """A client publishes; the MsgId of what waits for the target."""
    world.receive(world.connect("self"), packet)
    return transmissions(world, target)[-1].message.msg_id


def pass_time(world: World, seconds: float) -> None:
    world.now_us += int(seconds * 1_000_000)
    world.bridge.tick()
    world.run()


def dead_lettered(world: World) -> list[tuple[object, ...]]:
    """Client, session, exchange and reason code of each note."""
    world.engine.tick()
    world.run()
    return [(*note[2:5], note[-1]) for note in world.notes if note[0] == NoteKind.DEAD_LETTERED]


@pytest.mark.parametrize("body", [REPLY_TOPIC_ERROR, WARNING])
def test_what_a_targets_broker_refuses_goes_whole_to_the_dead_letter_queue_with_its_mqtt_context(
    world: World, body: bytes
) -> None:
    msg_id = publish(world)
    deliver(world)
    notify(world, msg_id, body)
    (dead,) = world.messages(DEAD_LETTERS)
    reason = 3072 if body is REPLY_TOPIC_ERROR else 3081
    assert dead.body[:12] == b"DLH \x01\0\0\0" + reason.to_bytes(4, "little")
    assert dead.body[12:60].decode().rstrip() == DEFAULT_STREAM
    assert dead.body[60:108].decode().rstrip() == "CENTRAL", "where it was refused, not here"
    assert dead.body.endswith(b"precious")
    assert dead.msg_id == msg_id
    session = world.sessions.get("self")
    assert session is not None
    assert dead_lettered(world) == [("self", session.epoch, session.incoming_exchange, reason)]
    assert (world.depth(SENT), world.depth(REPLY_QUEUE)) == (0, 0)


def test_of_several_targets_the_message_identifier_says_which(world: World) -> None:
    msg_id = publish(world, "32 0F 0003 'b/b' 0001 'precious'", "QM2")
    deliver(world, "QM2")
    notify(world, msg_id)
    (dead,) = world.messages(DEAD_LETTERS)
    assert dead.body.endswith(b"precious")


def test_a_notice_that_is_faster_than_the_channels_own_commit_waits_for_the_copy(world: World) -> None:
    msg_id = publish(world)
    notify(world, msg_id)
    pass_time(world, 1)
    assert world.messages(DEAD_LETTERS) == []
    deliver(world)
    pass_time(world, 1)
    (dead,) = world.messages(DEAD_LETTERS)
    assert dead.body.endswith(b"precious")
    assert world.depth(REPLY_QUEUE) == 0


def test_a_notice_that_waits_survives_a_restart(world: World, new_world: NewWorld, tmp_path: Path) -> None:
    msg_id = publish(world)
    notify(world, msg_id)
    settings = tuple(target.settings for target in world.targets.values())
    again = new_world(
        world.kill(tmp_path / "after"), targets=settings, routes=(RouteSettings(target="QM1", topics=("a/#",)),)
    )
    deliver(again)
    pass_time(again, 1)
    (dead,) = again.messages(DEAD_LETTERS)
    assert dead.body.endswith(b"precious")


def test_without_a_copy_the_notice_itself_is_kept_when_the_time_of_grace_is_over(world: World) -> None:
    notify(world, b"RFHB" + b"\x55" * 20)
    assert world.messages(DEAD_LETTERS) == []
    pass_time(world, 61)
    (dead,) = world.messages(DEAD_LETTERS)
    assert dead.body[:12] == MQDLH_TOPIC_ERROR
    assert b"<Reason>3072</Reason>" in dead.body
    assert world.depth(REPLY_QUEUE) == 0


def test_a_notice_about_qos_0_is_counted(world: World) -> None:
    msg_id = publish(world, "30 06 0003 'a/b' 'A'")
    deliver(world)
    notify(world, msg_id, persistence=0)
    pass_time(world, 61)
    assert world.messages(DEAD_LETTERS) == []
    assert world.bridge.counts.totals == {"a target's broker refused a publication of QoS 0": 1}
    assert world.depth(REPLY_QUEUE) == 0


@pytest.mark.parametrize("body", [NO_RETAINED, REPLY_OK])
def test_nothing_retained_and_success_are_no_refusals(world: World, body: bytes) -> None:
    """DeletePub where nothing is retained is as good as done."""
    msg_id = publish(world, "33 07 0003 'a/b' 0001")
    deliver(world)
    notify(world, msg_id, body)
    pass_time(world, 61)
    assert world.messages(DEAD_LETTERS) == []
    assert world.depth(REPLY_QUEUE) == 0


def test_notices_that_wait_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.bridge.commands.replies._WAITING_NOTICES", 2)
    for number in (1, 2, 3):
        notify(world, b"RFHB" + bytes((number,)) * 20)
    assert len(world.messages(DEAD_LETTERS)) == 1
    pass_time(world, 61)
    assert len(world.messages(DEAD_LETTERS)) == 3


def test_two_notices_about_one_message_are_both_kept(world: World) -> None:
    msg_id = publish(world)
    notify(world, msg_id)
    notify(world, msg_id)
    deliver(world)
    pass_time(world, 1)
    assert sorted(dead.body.endswith(b"precious") for dead in world.messages(DEAD_LETTERS)) == [False, True]


@pytest.fixture
def remotes(tmp_path: Path) -> Iterator[Callable[[], Remote]]:
    made: list[Remote] = []

    def make() -> Remote:
        made.append(Remote(tmp_path / "remote"))
        return made[-1]

    yield make
    for remote in made:
        remote.close()


def test_what_a_real_broker_refuses_is_found_by_its_negative_notification(
    world: World, remotes: Callable[[], Remote]
) -> None:
    """The publication has come to the control queue: MQRCCF_INCORRECT_Q."""
    remote = remotes()
    msg_id = publish(world)
    (sent,) = transmissions(world)
    deliver(world)
    remote.put("SYSTEM.BROKER.CONTROL.QUEUE", sent.message)
    remote.carry(world)
    (dead,) = world.messages(DEAD_LETTERS)
    assert dead.body[8:12] == (3079).to_bytes(4, "little")
    assert dead.msg_id == msg_id
    assert dead.body.endswith(b"precious")


def test_a_clock_that_is_set_back_holds_up_no_notice(world: World) -> None:
    msg_id = publish(world)
    notify(world, msg_id)
    pass_time(world, 1)
    world.now_us -= 3_600_000_000
    deliver(world)
    pass_time(world, 1)
    assert len(world.messages(DEAD_LETTERS)) == 1


def test_answers_that_never_come_take_no_memory_for_ever(new_world: NewWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each SUBSCRIBE that runs into its time limit leaves an answer that may still come."""
    monkeypatch.setattr("gateway.bridge.commands.replies._EXPECTED_ANSWERS", 3)
    target = TargetSettings.model_validate({"name": "QM1"})
    world = new_world(targets=(target,), routes=(RouteSettings(target="QM1", topics=("a/#",)),))
    link = world.connect("self")
    for _ in range(5):
        world.receive(link, "82 08 0001 0003 'a/b' 01")
        pass_time(world, 11)
        assert link.taken() == written("90 03 0001 80")
    registered = [each.message.msg_id for each in transmissions(world)][::2]
    notify(world, registered[-1])
    assert world.messages(DEAD_LETTERS) == [], "somebody still knew what it was about"
    notify(world, registered[0])
    pass_time(world, 61)
    assert len(world.messages(DEAD_LETTERS)) == 1, "a refusal that nobody waits for any more is kept"
