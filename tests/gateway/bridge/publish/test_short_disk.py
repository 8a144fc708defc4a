"""A disk below its mark: QoS 1 and 2 wait, QoS 0 is dropped and counted, what fills it further is refused."""

from gateway.audit_trail.notes.notes import NoteKind
from tests.gateway.bridge.conftest import FakeLink, World, written

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


#: CONNECT of MQTT 5 for a session that stays for an hour.
STAYS = "10 16 0004 'MQTT' 05 00 0000 05 11 00000E10 0004 '{0}'"
QUOTA_EXCEEDED = written("20 03 00 97 00")


def test_no_session_is_begun_that_stays_and_those_that_are_there_go_on(world: World) -> None:
    there, new, other = FakeLink(), FakeLink(), FakeLink()
    world.receive(there, STAYS.format("self"))
    world.lose(there)
    world.bridge.disk_space_changed(True)
    world.receive(new, STAYS.format("more"))
    assert (new.taken(), new.is_open) == (QUOTA_EXCEEDED, False)
    assert world.sessions.get("more") is None
    again = FakeLink()
    world.receive(again, STAYS.format("self"))
    assert again.taken().startswith(written("20")), "its session is there already"
    assert again.is_open
    assert world.connect("end1").is_open, "it ends with its connection"
    world.bridge.disk_space_changed(False)
    world.receive(other, STAYS.format("more"))
    assert other.is_open


def _filters(*lengths: int) -> bytes:
    """SUBSCRIBE of MQTT 3.1.1 with filters of these lengths."""
    entries = b"".join(
        size.to_bytes(2, "big") + b"%d" % place + b"f" * (size - 1) + b"\0" for place, size in enumerate(lengths)
    )
    body = b"\0\1" + entries
    return b"\x82" + bytes((len(body) & 0x7F | 0x80, len(body) >> 7)) + body


def test_a_session_has_few_characters_of_filters(world: World) -> None:
    link = world.connect("self")
    world.bridge.receive(link, _filters(3_000))
    world.run()
    link.taken()
    world.bridge.disk_space_changed(True)
    world.bridge.receive(link, _filters(3_000, 2_000))
    world.run()
    assert link.taken() == written("90 04 0001 00 80"), "the first is there already"
    world.receive(link, "82 08 0002 0003 'a/b' 00")
    assert link.taken() == written("90 03 0002 00")


def test_a_large_will_is_refused_and_a_small_one_is_not(world: World) -> None:
    world.bridge.disk_space_changed(True)
    for size, is_taken in ((4_000, True), (5_000, False)):
        link = FakeLink()
        body = written("0004 'MQTT' 04 06 0000 0004 'self' 0001 'w'") + size.to_bytes(2, "big") + b"x" * size
        world.bridge.receive(link, b"\x10" + bytes((len(body) & 0x7F | 0x80, len(body) >> 7)) + body)
        world.run()
        assert link.is_open is is_taken
