"""Dead letters of messages that no header can carry expire, each with its record; all others are kept for ever."""

from gateway.audit_trail.notes.notes import NoteKind
from gateway.config.mqtt_limits import MqttLimits
from mappings.commands.command import Dialect
from mq_adapters.dead_letter import reason_of
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import MQEI_UNLIMITED, Message
from tests.gateway.bridge.conftest import LIMITS, FakeLink, NewWorld, World
from tests.gateway.bridge.publish.test_held_letters import DEAD, mqsc, pass_time, publish

DAY_S = 86_400


def with_dead_letter(new_world: NewWorld, limits: MqttLimits = LIMITS) -> tuple[World, FakeLink]:
    """A client of MQTT 3.1 has published on a topic that the MQRFH2 of a subscriber cannot hold: XML 1.0 forbids it."""
    world = new_world(dialect=Dialect.MQRFH, limits=limits)
    mqsc(world, "DEFINE QLOCAL(APP)", "DEFINE SUB(S) TOPICSTR('#') DEST(APP)")

    def expired(unit: UnitOfWork, queue: Queue, message: Message) -> None:
        world.engine.dead_letters.listener.dropped(unit, message, queue.name, "the message expired")

    world.engine.on_expired = expired
    link = world.connect("caus", level=3)
    assert publish(world, link, topic=b"a\x01") == 1
    assert [reason_of(letter) for letter in world.messages(DEAD)] == [3072]
    return world, link


def test_a_letter_that_can_never_go_back_expires_after_thirty_days_with_a_record(new_world: NewWorld) -> None:
    world, _ = with_dead_letter(new_world)
    pass_time(world, 29 * DAY_S)
    assert world.depth(DEAD) == 1
    pass_time(world, 2 * DAY_S)
    pass_time(world)
    assert world.depth(DEAD) == 0
    dropped = [note for note in world.notes if note[0] == NoteKind.DROPPED]
    assert [note[-1] for note in dropped] == ["the message expired"]
    assert dropped[0][2] == "caus"
    world.check_balance()


def test_an_operator_may_keep_such_letters_for_ever(new_world: NewWorld) -> None:
    world, _ = with_dead_letter(new_world, LIMITS.model_copy(update={"dead_letter_expiry_s": 0}))
    assert [letter.descriptor.expiry for letter in world.messages(DEAD)] == [MQEI_UNLIMITED]


def test_a_letter_that_found_no_room_never_expires(new_world: NewWorld) -> None:
    world = new_world()
    mqsc(world, "DEFINE QLOCAL(FULL) MAXDEPTH(0)", "DEFINE SUB(S) TOPICSTR('shut') DEST(FULL)")
    assert publish(world, world.connect("caus")) == 1
    assert [letter.descriptor.expiry for letter in world.messages(DEAD)] == [MQEI_UNLIMITED]
