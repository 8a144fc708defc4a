"""PUT(DISABLED) on a queue of the gateway: publishers wait as at a full target, and nothing else stops."""

import pytest

from gateway.audit_trail.notes.notes import NoteKind
from mq_adapters.embedded.application import Application
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, written
from tests.gateway.bridge.subscribe.test_subscriptions_at_targets import (
    SUBSCRIBE,
    answer,
    commands,
    configured,
    msg_ids,
)
from tests.mq_adapters.channel.faults import Connection

STREAM = "SYSTEM.BROKER.DEFAULT.STREAM"
SUBSCRIBER = "RFHBRIDGE.SUBSCRIBER"
XMIT = "RFHBRIDGE.XMIT.QM1.0"
DEAD_LETTERS = "SYSTEM.DEAD.LETTER.QUEUE"

on_either_queue = pytest.mark.parametrize("queue_name", [STREAM, SUBSCRIBER])


def put(world: World, queue_name: str, word: str) -> None:
    hand = Connection(world.engine, "a test")
    assert hand.mqsc(f"ALTER QLOCAL('{queue_name}') PUT({word})").succeeded
    hand.close()
    world.bridge.tick()
    world.run()


def reader_of(world: World) -> FakeLink:
    reader = world.connect("read")
    world.receive(reader, "82 08 0001 0003 'a/b' 02")
    assert reader.taken() == written("90 03 0001 02")
    return reader


@on_either_queue
def test_qos_1_and_2_wait_for_put_enabled_and_then_all_comes(world: World, queue_name: str) -> None:
    reader, first, second = reader_of(world), world.connect("one1"), world.connect("two2")
    put(world, queue_name, "DISABLED")
    world.receive(first, "32 08 0003 'a/b' 0001 'A'", "32 08 0003 'a/b' 0002 'B'")
    world.receive(second, "34 08 0003 'a/b' 0003 'C'")
    assert (first.sent, second.sent, reader.sent) == (b"", b"", b"")
    assert (first.is_open, second.is_open) == (True, True)
    assert not first.is_read()
    assert len(world.bridge.paused_publishers) == 2
    assert world.bridge.pauses.queues == {queue_name}
    put(world, queue_name, "ENABLED")
    assert (first.taken(), second.taken()) == (written("40 02 0001 40 02 0002"), written("50 02 0003"))
    assert reader.taken() == written("32 08 0003 'a/b' 0001 'A' 32 08 0003 'a/b' 0002 'B'")
    assert first.is_read()
    assert not world.bridge.pauses.queues
    assert world.depth(DEAD_LETTERS) == 0


@on_either_queue
def test_qos_0_is_dropped_counted_and_noted(world: World, queue_name: str) -> None:
    link = world.connect("self")
    put(world, queue_name, "DISABLED")
    world.receive(link, "30 06 0003 'a/b' 'A'", "C0 00")
    assert link.taken() == written("D0 00")
    reason = "the queue is closed by PUT(DISABLED)"
    assert world.bridge.counts.totals[f"QoS 0, {reason}"] == 1
    world.engine.tick()
    world.run()
    assert [note[-1] for note in world.notes if note[0] == NoteKind.DROPPED] == [reason]


@on_either_queue
def test_what_was_acknowledged_and_wills_subscriptions_and_ends_go_on(world: World, queue_name: str) -> None:
    reader, sender = reader_of(world), world.connect("send")
    world.receive(sender, "34 08 0003 'a/b' 0002 'B'")
    assert sender.taken() == written("50 02 0002")
    dying = FakeLink()
    world.receive(dying, "10 18 0004 'MQTT' 04 0E 0000 0004 'dies' 0003 'a/b' 0001 'W'")
    put(world, queue_name, "DISABLED")
    world.receive(sender, "62 02 0002")
    assert sender.taken() == written("70 02 0002")
    world.lose(dying)
    assert reader.taken() == written("34 08 0003 'a/b' 0001 'B' 32 08 0003 'a/b' 0002 'W'")
    world.receive(sender, "82 08 0004 0003 'c/d' 01", "A2 07 0005 0003 'c/d'")
    assert sender.taken() == written("90 03 0004 01 B0 02 0005")
    world.receive(sender, "E0 00")
    assert world.sessions.get("send") is None
    assert world.depth(DEAD_LETTERS) == 0


def test_a_publisher_that_goes_meanwhile_sends_again_and_is_held_again(world: World) -> None:
    link = world.connect("self", flags="00")
    put(world, STREAM, "DISABLED")
    world.receive(link, "34 08 0003 'a/b' 0002 'B'")
    world.lose(link)
    again = world.connect("self", flags="00")
    world.receive(again, "3C 08 0003 'a/b' 0002 'B'")
    assert again.is_open
    assert again.sent == b""
    put(world, STREAM, "ENABLED")
    assert again.taken() == written("50 02 0002")


@on_either_queue
def test_an_application_is_refused_with_2051(world: World, queue_name: str) -> None:
    put(world, queue_name, "DISABLED")
    application = Application(world.engine, "a test")
    message = Message(MessageDescriptor(format=b"MQHRF   "), b"x")
    for name in {STREAM, queue_name}:
        with pytest.raises(QueueManagerError, match="2051"):
            application.put(name, message, lambda: None)
    put(world, queue_name, "ENABLED")
    application.put(queue_name, message, lambda: None)
    application.close()


def test_a_transmission_queue_pauses_its_own_publishers_alone(new_world: NewWorld) -> None:
    world = new_world(**configured())
    local, link = world.connect("here"), world.connect("self")
    put(world, XMIT, "DISABLED")
    world.receive(link, SUBSCRIBE)
    assert commands(world) == ["RegSub a/+"]
    answer(world, msg_ids(world)[0])
    assert link.taken() == written("90 03 0001 01")
    world.receive(link, "32 08 0003 'a/b' 0001 'A'")
    world.receive(local, "32 08 0003 'b/b' 0001 'A'")
    assert (link.sent, local.taken()) == (b"", written("40 02 0001"))
    put(world, XMIT, "ENABLED")
    assert link.taken() == written("40 02 0001")


def test_the_audit_queue_closed_or_full_stops_nobody(world: World) -> None:
    """No operator can do that any more; a store of an earlier version may be so until it is opened again."""
    said = {"PUT": "DISABLED", "MAXDEPTH": 0, "MAXMSGL": 1}
    world.engine.objects.alter(world.engine.queue("SYSTEM.RFHBRIDGE.AUDIT").definition.altered(said))
    link = world.connect("self")
    world.receive(link, "32 08 0003 'a/b' 0001 'A'")
    assert link.taken() == written("40 02 0001")
    assert world.engine.failed is None


def test_a_pause_holds_from_the_next_packet_on(world: World) -> None:
    link = world.connect("self")
    hand = Connection(world.engine, "a test")
    assert hand.mqsc(f"ALTER QLOCAL({STREAM}) PUT(DISABLED)").succeeded
    hand.close()
    world.receive(link, "32 08 0003 'a/b' 0001 'A'")
    assert link.sent == b""
