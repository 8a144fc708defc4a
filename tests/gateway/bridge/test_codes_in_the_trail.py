"""The trail tells the codes that clients got in CONNACK, SUBACK, UNSUBACK and PUBACK, and how persistent copies are."""

from gateway.audit_trail.notes.notes import NoteKind
from gateway.bridge.subscribe.pending_packet import NO_ANSWER
from mq_adapters.embedded.unit_of_work import Note
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, written
from tests.gateway.bridge.subscribe.test_subscriptions_at_targets import configured, pass_time

_CONNECT_5 = "10 16 0004 'MQTT' 05 {} 0000 05 11 00000E10 0004 'self'"


def _connected(world: World, flags: str = "02") -> FakeLink:
    link = FakeLink()
    world.receive(link, _CONNECT_5.format(flags))
    link.taken()
    return link


def _notes(world: World, kind: NoteKind) -> list[Note]:
    world.engine.tick()  # notes of what changed nothing wait for others
    world.run()
    return [note for note in world.notes if note[0] == kind]


def test_a_session_tells_whether_a_clean_start_was_asked_and_both_bytes_of_connack(world: World) -> None:
    for flags in ("02", "00", "02"):
        world.lose(_connected(world, flags))
    told = [(note[4], *note[12:]) for note in _notes(world, NoteKind.SESSION) if len(note) > 12]
    assert told == [("opened", True, b"\0\0"), ("resumed", False, b"\1\0"), ("opened", True, b"\0\0")]


def test_mqtt_3_1_has_no_session_present(new_world: NewWorld) -> None:
    world = new_world()
    for _ in range(2):
        world.lose(world.connect("self", flags="00", level=3))
    told = [(note[4], *note[12:]) for note in _notes(world, NoteKind.SESSION) if len(note) > 12]
    assert told == [("opened", False, b"\0\0"), ("resumed", False, b"\0\0")]


def test_each_filter_of_suback_and_unsuback_has_its_code(new_world: NewWorld) -> None:
    world = new_world(subscribe=("a/#",))
    link = _connected(world)
    world.receive(link, "82 0D 0001 00 0002 'a/' 02 0002 'b/' 01", "A2 07 0002 00 0002 'a/'", "A2 07 0003 00 0002 'a/'")
    assert link.taken() == written("90 05 0001 00 02 87 B0 04 0002 00 00 B0 04 0003 00 11")
    assert [note[4:] for note in _notes(world, NoteKind.ANSWERED)] == [
        (9, 1, ("a/", "b/"), b"\2\1", b"\2\x87", (("2", "access.subscribe"),)),
        (11, 2, ("a/",), b"", b"\0", ()),
        (11, 3, ("a/",), b"", b"\x11", ()),
    ]


def test_unsuback_before_mqtt_5_has_no_codes(world: World) -> None:
    world.receive(world.connect("self"), "A2 05 0002 0001 'a'")
    assert [note[4:] for note in _notes(world, NoteKind.ANSWERED)] == [(11, 2, ("a",), b"", b"", ())]


def test_a_filter_that_a_target_does_not_answer_is_told_and_counted(new_world: NewWorld) -> None:
    world = new_world(**configured())
    link = _connected(world)
    world.receive(link, "82 09 0001 00 0003 'a/+' 01")
    assert _notes(world, NoteKind.ANSWERED) == []
    world.targets["QM1"].is_connected = True
    pass_time(world)
    world.run()
    pass_time(world, 0)
    world.run()
    (answered,), (refused,) = _notes(world, NoteKind.ANSWERED), _notes(world, NoteKind.TOPICS_REFUSED)
    assert answered[4:] == (9, 1, ("a/+",), b"\1", b"\x80", (("1", NO_ANSWER),))
    assert (refused[5], refused[9]) == (NO_ANSWER, b"\x80")


def test_the_entry_of_a_regsub_has_the_qos_that_counts(world: World) -> None:
    """Of several entries for one filter the last one counts, and the first one that wants what is retained."""
    link = _connected(world)
    world.receive(link, "82 0B 0001 00 0001 'a' 00 0001 'a' 22")
    assert link.taken() == written("90 05 0001 00 00 02")
    (requested,) = (note for note in _notes(world, NoteKind.REQUESTED) if note[4] == 8)
    assert requested[6] == b"\0\1a\2"


def test_puback_that_says_that_nobody_subscribes_is_told_with_its_code(world: World) -> None:
    link = _connected(world)
    world.receive(link, "82 07 0001 00 0001 'a' 00")
    link.taken()
    world.receive(link, *(f"32 07 0001 '{topic}' {number:04X} 00 'x'" for number, topic in enumerate("abab", start=1)))
    world.bridge.tick()
    world.run()
    first = next(iter(_notes(world, NoteKind.PUBLISHED)))[4]
    assert isinstance(first, int)
    told = [note[4:] for note in _notes(world, NoteKind.CONFIRMED)]
    assert told == [(4, [[first, first], [first + 2, first + 2]]), (4, [[first + 1] * 2, [first + 3] * 2], b"\x10")]


def test_a_refused_publish_is_counted_by_the_code_that_its_client_was_told(new_world: NewWorld) -> None:
    world = new_world(publish=("a",))
    world.receive(_connected(world), "32 07 0001 'b' 0001 00 'x'")
    world.receive(world.connect("four"), "32 06 0001 'b' 0001 'x'")
    world.bridge.tick()
    world.run()
    told = [(note[3], note[9]) for note in _notes(world, NoteKind.TOPICS_REFUSED)]
    assert told == [("self", b"\x87"), ("four", b"")]


def test_a_copy_tells_whether_it_is_persistent(world: World) -> None:
    """1: it is not, 2: it is."""
    world.receive(_connected(world), "82 07 0001 00 0001 'a' 02", "30 05 0001 'a' 00 'x'", "32 07 0001 'a' 0001 00 'x'")
    assert [note[7] for note in _notes(world, NoteKind.COPIED)] == [1, 2]
