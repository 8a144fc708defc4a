"""A disk below its mark: QoS 1 and 2 wait with their client, QoS 0 is dropped and counted, all else goes on."""

from gateway.audit_trail.notes import NoteKind
from tests.gateway.bridge.conftest import World, written

STREAM = "SYSTEM.BROKER.DEFAULT.STREAM"


def _dropped(world: World) -> list[object]:
    return [note[-1] for note in world.notes if note[0] == NoteKind.DROPPED]


def test_qos_1_and_2_are_not_read_below_the_mark_and_go_on_above_it(world: World) -> None:
    first, second = world.connect("one1"), world.connect("two2")
    world.bridge.disk_space_changed(True)
    world.receive(first, "32 08 0003 'a/b' 0001 'A'")
    world.receive(second, "34 08 0003 'a/b' 0002 'B'")
    assert (first.sent, second.sent) == (b"", b"")
    assert not first.is_read()
    assert not second.is_read()
    world.bridge.disk_space_changed(False)
    world.run()
    assert (first.taken(), second.taken()) == (written("40 02 0001"), written("50 02 0002"))
    assert first.is_read()
    assert second.is_read()


def test_qos_0_is_dropped_below_the_mark_and_told_once_with_its_number(world: World) -> None:
    link = world.connect("self")
    world.bridge.disk_space_changed(True)
    world.receive(link, "30 06 0003 'a/b' 'A'", "30 06 0003 'a/b' 'B'", "C0 00")
    assert link.taken() == written("D0 00")
    assert world.depth(STREAM) == 0
    assert _dropped(world) == []
    world.bridge.disk_space_changed(False)
    world.run()
    world.engine.tick()
    world.run()
    assert _dropped(world) == ["2 PUBLISH of QoS 0 in all: the disk is short of space"]
    world.bridge.disk_space_changed(True)
    world.bridge.disk_space_changed(False)
    world.run()
    assert len(_dropped(world)) == 1


def test_what_was_held_for_qos_2_is_released_and_what_is_awaited_is_delivered(world: World) -> None:
    sender, receiver = world.connect("send"), world.connect("recv")
    world.receive(receiver, "82 08 0001 0003 'a/b' 01")
    world.receive(sender, "34 08 0003 'a/b' 0002 'B'")
    receiver.taken()
    sender.taken()
    world.bridge.disk_space_changed(True)
    world.receive(sender, "62 02 0002")
    assert sender.taken() == written("70 02 0002")
    assert receiver.taken() == written("32 08 0003 'a/b' 0001 'B'")


def test_a_client_that_goes_meanwhile_sends_again_what_was_not_acknowledged(world: World) -> None:
    link = world.connect("self", flags="00")
    world.bridge.disk_space_changed(True)
    world.receive(link, "34 08 0003 'a/b' 0002 'B'")
    world.lose(link)
    world.bridge.disk_space_changed(False)
    world.run()
    again = world.connect("self", flags="00")
    world.receive(again, "3C 08 0003 'a/b' 0002 'B'", "62 02 0002")
    assert again.taken() == written("50 02 0002 70 02 0002")
    assert world.depth(STREAM) == 0
