"""Publications on their way to a client: windows, batches, what no PUBLISH can carry, flows without their message."""

import tracemalloc
from pathlib import Path

import pytest

from gateway.audit_trail.notes.notes import NoteKind
from mappings.commands.command import Dialect
from mq_adapters.command_header import WrittenCommand
from mq_adapters.embedded import message_cache
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import Departure, StateKind
from tests.gateway.bridge.conftest import (
    SUBSCRIBER_QUEUE,
    FakeLink,
    NewWorld,
    World,
    mqrfh2,
    publish_packet,
    written,
)
from tests.written_headers import compared

DEAD_LETTER_QUEUE = "SYSTEM.DEAD.LETTER.QUEUE"
CONNECT = "10 10 0004 'MQTT' 04 00 0000 0004 'self'"
#: Nine deliveries with the identifiers 1 to 9: of a window of ten, one is left.
NINE = "".join(f"32 06 0001 'a' {number:04X} 'x'" for number in range(1, 10))


def _subscribed(world: World, name: str = "self", topic_filter: str = "#") -> FakeLink:
    link = world.connect(name, flags="00")
    world.receive(link, f"82 06 0001 0001 '{topic_filter}' 01")
    assert link.taken() == written("90 03 0001 01")
    return link


def test_a_publication_with_more_topics_than_the_window_has_room_for_waits_until_it_has(world: World) -> None:
    link = _subscribed(world)
    world.receive(world.connect("tell"), NINE)
    assert link.taken() == written(NINE)
    world.put(mqrfh2("t/1", "t/2") + b"body")
    assert link.sent == b""
    world.receive(link, "40 02 0001")
    assert link.taken() == written("32 0B 0003 't/1' 000A 'body' 32 0B 0003 't/2' 000B 'body'")
    world.receive(link, *(f"40 02 {number:04X}" for number in range(2, 12)))
    assert world.depth(SUBSCRIBER_QUEUE) == 0


def test_what_takes_the_place_of_an_answered_message_is_committed_together_with_the_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, publisher = _subscribed(world), world.connect("tell")
    world.receive(publisher, NINE, "32 06 0001 'a' 000A 'x'", "32 06 0001 'a' 000B 'y'", "32 06 0001 'a' 000C 'z'")
    assert link.taken() == written(NINE + "32 06 0001 'a' 000A 'x'")
    sent_by_then: list[bytes] = []
    commit = world.engine._store.commit
    monkeypatch.setattr(world.engine._store, "commit", lambda: (sent_by_then.append(link.sent), commit()))
    world.receive(link, "40 02 0003", "40 02 0001")
    assert sent_by_then == [b""]
    assert link.taken() == written("32 06 0001 'a' 000B 'y' 32 06 0001 'a' 000C 'z'")
    flows = [int.from_bytes(key[8:], "big") for key, _ in world.engine.states(StateKind.SESSION_OUTGOING)]
    assert flows == [2, 4, 5, 6, 7, 8, 9, 10, 11, 12]


@pytest.mark.parametrize("qos", [1, 2])
def test_a_publication_and_its_delivery_to_a_client_that_is_there_are_one_commit_and_leave_behind_it(
    world: World, monkeypatch: pytest.MonkeyPatch, qos: int
) -> None:
    monkeypatch.setattr("mq_adapters.embedded.group_commit.SLOW_COMMIT_S", 60.0)
    link, publisher = world.connect("self", flags="00"), world.connect("tell")
    world.receive(link, f"82 06 0001 0001 '#' 0{qos}")
    link.taken()
    if qos == 2:
        world.receive(publisher, "34 06 0001 'a' 0001 'x'")
        publisher.taken()
    sent_by_then: list[bytes] = []
    commit = world.engine._store.commit
    monkeypatch.setattr(world.engine._store, "commit", lambda: (sent_by_then.append(link.sent), commit()))
    world.receive(publisher, "32 06 0001 'a' 0001 'x'" if qos == 1 else "62 02 0001")
    assert sent_by_then == [b""]
    assert link.taken() == written(f"{30 + 2 * qos} 06 0001 'a' 0001 'x'")
    assert len(world.engine.states(StateKind.SESSION_OUTGOING)) == 1


def test_what_is_published_while_commits_are_slow_is_delivered_behind_its_commit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, publisher = _subscribed(world), world.connect("tell")
    monkeypatch.setattr("mq_adapters.embedded.group_commit.SLOW_COMMIT_S", -1.0)
    world.commits_are_held = True
    world.receive(publisher, "32 06 0001 'a' 0001 'x'")
    assert (world.waiting_commits, link.sent, world.depth(SUBSCRIBER_QUEUE)) == (1, b"", 0)
    world.commit()
    world.run()
    assert (link.sent, world.depth(SUBSCRIBER_QUEUE)) == (b"", 1), "its packet identifier is not on the disk"
    world.commit()
    world.run()
    assert link.taken() == written("32 06 0001 'a' 0001 'x'")


def test_pubrec_for_an_identifier_that_is_not_in_use_is_answered_with_pubrel(world: World) -> None:
    """Its sender has forgotten nothing; unanswered it would hold the identifier for ever."""
    link = world.connect("self")
    world.receive(link, "50 02 0063")
    assert link.taken() == written("62 02 0063")
    world.receive(link, "70 02 0063")
    assert link.is_open


class OneWrite(FakeLink):
    """A peer that takes one write and then reads no more."""

    def send(self, data: bytes) -> None:
        super().send(data)
        if data[:1] == b"\x32":
            self.can_send = False


def test_a_batch_of_deliveries_ends_with_the_message_that_makes_it_a_mebibyte(world: World) -> None:
    world.lose(_subscribed(world))
    publisher = world.connect("tell")
    payload = bytes(600_000)
    for number in range(1, 4):
        world.bridge.receive(publisher, publish_packet(0x32, b"a", payload, number))
        world.run()
    link = OneWrite()
    world.receive(link, CONNECT)
    delivered = [publish_packet(0x32, b"a", payload, number) for number in range(1, 4)]
    assert link.taken() == written("20 02 01 00") + delivered[0] + delivered[1]
    link.can_send = True
    world.bridge.resumed(link)
    world.run()
    assert link.taken() == delivered[2]


def test_a_publication_that_is_too_long_for_a_publish_goes_to_the_dead_letter_queue_and_blocks_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real limit is 268,435,455 bytes behind the fixed header (MQTT 3.1.1 section 2.2.3)."""
    monkeypatch.setattr("gateway.bridge.messages.publications.MAXIMUM_REMAINING_LENGTH", 27)
    first, second = _subscribed(world, "one1"), _subscribed(world, "two2")
    world.put(mqrfh2("big") + bytes(21))
    world.put(mqrfh2("big") + b"x" * 20)
    world.put(mqrfh2("big") + b"small")
    delivered = written("32 1B 0003 'big' 0001") + b"x" * 20 + written("32 0C 0003 'big' 0002 'small'")
    assert first.taken() == second.taken() == delivered
    letters = [message.body for message in world.messages(DEAD_LETTER_QUEUE)]
    assert [letter[172:] for letter in letters] == [mqrfh2("big") + bytes(21)] * 2
    assert len(world.engine.states(StateKind.SESSION_OUTGOING)) == 4
    world.lose(first)
    again = FakeLink()
    world.receive(again, CONNECT.replace("self", "one1"))
    assert again.taken() == written("20 02 01 00") + delivered.replace(b"\x32\x1b", b"\x3a\x1b").replace(
        b"\x32\x0c", b"\x3a\x0c"
    )


def test_the_same_bytes_under_another_ccsid_name_another_topic(new_world: NewWorld) -> None:
    """C3 A9 is one letter in UTF-8 (1208) and two in ISO 8859-1 (819)."""
    world = new_world(dialect=Dialect.MQRFH)
    link = _subscribed(world)
    header = (
        b"RFH \x01\0\0\0" + (64).to_bytes(4, "little") + written("22020000 B8040000 '        ' 00000000")
    ) + "MQPSCommand Publish MQPSTopic é".encode()
    for coded_char_set_id in (1208, 819):
        world.put(header + b"x", format=b"MQHRF   ", coded_char_set_id=coded_char_set_id)
    assert link.taken() == written("32 07 0002 C3A9 0001 'x' 32 09 0004 C383 C2A9 0002 'x'")


def test_copies_that_memory_has_no_room_for_are_dropped_and_the_audit_hears_of_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """QoS 0 for a client that is away; what is persistent is kept all the same."""
    monkeypatch.setattr(message_cache, "MAXIMUM_IN_MEMORY_BYTES", 2_000)
    world.lose(_subscribed(world))
    publisher = world.connect("tell")
    for number in range(1, 4):
        world.bridge.receive(publisher, publish_packet(0x30, b"a", b"%d" % number + bytes(1_000)))
        world.run()
    world.receive(publisher, "32 06 0001 'a' 0001 'x'")
    assert publisher.taken() == written("40 02 0001")
    assert world.depth(SUBSCRIBER_QUEUE) == 2
    dropped = [note for note in world.notes if note[0] == NoteKind.DROPPED]
    assert [(note[2], note[5]) for note in dropped] == [("tell", SUBSCRIBER_QUEUE)] * 2
    assert all("2056" in note[-1] for note in dropped)
    link = FakeLink()
    world.receive(link, CONNECT)
    assert link.taken() == written("20 02 01 00") + publish_packet(0x30, b"a", b"1" + bytes(1_000)) + written(
        "32 06 0001 'a' 0001 'x'"
    )


def test_topics_that_are_long_and_many_do_not_stay_in_memory(world: World) -> None:
    world.engine.seal_notes = None  # this world keeps its notes
    link = _subscribed(world)
    publisher = world.connect("tell")

    def publish(count: int) -> None:
        for number in range(count):
            topic = b"%05d" % number + b"t" * 9_000
            world.bridge.receive(publisher, publish_packet(0x30, topic, b"x"))
            world.run()
            assert link.taken() == publish_packet(0x30, topic, b"x")
        world.engine.tick()  # the notes that waited for a group to join
        world.run()

    publish(10)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        publish(210)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # TOPIC_NAMES may keep a million bytes of names, each as bytes and as text; every cache more is two millions more.
    assert after - before < 5_000_000


def _without_messages(data: Path) -> Path:
    """The same store when somebody took everything off the subscriber queue while the gateway was away."""
    engine = Engine.open(data)
    queue = engine.queue(SUBSCRIBER_QUEUE)
    unit = engine.begin()
    while (message := engine.take(queue)) is not None:
        unit.remove(queue, message, Departure.TAKEN)
    engine.submit(unit)
    engine.close()
    return data


@pytest.mark.parametrize(
    ("publish", "repeated", "last_answer"),
    [
        ("32 06 0001 'a' 0001 'x'", "", ""),
        ("34 06 0001 'a' 0001 'x'", "62 02 0001", "70 02 0001"),
    ],
    ids=["QoS 1 is forgotten", "QoS 2 is released"],
)
def test_a_flow_whose_message_is_gone_after_a_restart_does_not_keep_its_identifier(
    new_world: NewWorld, tmp_path: Path, publish: str, repeated: str, last_answer: str
) -> None:
    world = new_world()
    link, publisher = world.connect("self", flags="00"), world.connect("tell")
    world.receive(link, "82 06 0001 0001 '#' 02")
    world.receive(publisher, publish, "62 02 0001")
    assert link.taken().endswith(written(publish))
    world = new_world(data=_without_messages(world.kill(tmp_path / "after the crash")))
    link = FakeLink()
    world.receive(link, CONNECT)
    assert link.taken() == written("20 02 01 00" + repeated)
    world.receive(link, last_answer)
    assert world.engine.states(StateKind.SESSION_OUTGOING) == []
    session = world.sessions.get("self")
    assert session is not None
    assert session.mqtt.window() == 10


@pytest.mark.parametrize(
    ("flags", "is_stored"), [("02", False), ("00", True)], ids=["ends with its connection", "outlives it"]
)
@pytest.mark.parametrize(("publish", "answer"), [("32 06 0001 'a' 0001 'x'", ""), ("34 06 0001 'a' 0001 'x'", "50")])
def test_a_delivery_is_on_the_disk_where_its_session_outlives_the_process(
    new_world: NewWorld, tmp_path: Path, flags: str, is_stored: bool, publish: str, answer: str
) -> None:
    """Of QoS 2 the flow between PUBREC and PUBCOMP."""
    world = new_world()
    link, publisher = world.connect("self", flags=flags), world.connect("tell")
    world.receive(link, "82 06 0001 0001 '#' 02")
    world.receive(publisher, publish, "62 02 0001")
    assert link.taken().endswith(written(publish))
    if answer:
        world.receive(link, f"{answer} 02 0001")
        assert link.taken() == written("62 02 0001")
    assert len(world.engine.states(StateKind.SESSION_OUTGOING)) == is_stored
    copies = [note for note in world.notes if note[0] == NoteKind.COPIED]
    assert [note[7:] for note in copies] == [(2,) if is_stored else (1, True)]
    world = new_world(data=world.kill(tmp_path / "after the crash"))
    assert (world.depth(SUBSCRIBER_QUEUE), world.sessions.get("self") is not None) == (
        is_stored and not answer,
        is_stored,
    )
    assert world.engine.counters.lost == ({} if is_stored else {SUBSCRIBER_QUEUE: 1}), "a PUBREC may be forgotten"
    link = FakeLink()
    world.receive(link, CONNECT)
    repeated = "62 02 0001" if answer else "3A 06 0001 'a' 0001 'x'"
    assert link.taken() == written("20 02 01 00" + repeated if is_stored else "20 02 00 00")


def test_the_last_answers_of_a_session_that_ends_with_its_connection_wait_for_no_disk(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, publisher = world.connect("self"), world.connect("tell")
    world.receive(link, "82 06 0001 0001 '#' 02")
    world.receive(publisher, "32 06 0001 'a' 0001 'x'", "34 06 0001 'a' 0002 'y'", "62 02 0002")
    link.taken()
    writes: list[object] = []
    monkeypatch.setattr(world.engine._store, "write", lambda **told: writes.append(told))
    world.receive(link, "40 02 0001", "50 02 0002")
    assert link.taken() == written("62 02 0002")
    world.receive(link, "70 02 0002")
    assert (world.depth(SUBSCRIBER_QUEUE), writes) == (0, [])


def test_while_deliveries_are_paused_nothing_leaves_answers_free_messages_and_then_all_goes_on(world: World) -> None:
    link, publisher = _subscribed(world), world.connect("tell")
    world.receive(publisher, "32 06 0001 'a' 0001 'x'")
    assert link.taken() == written("32 06 0001 'a' 0001 'x'")
    world.bridge.pause_deliveries(True)
    world.receive(publisher, "32 06 0001 'a' 0002 'y'")
    assert publisher.taken().endswith(written("40 02 0002"))
    world.receive(link, "40 02 0001")
    assert link.sent == b""
    assert world.depth(SUBSCRIBER_QUEUE) == 1, "the acknowledged one is gone"
    world.bridge.pause_deliveries(False)
    world.run()
    assert link.taken() == written("32 06 0001 'a' 0002 'y'")


@pytest.mark.parametrize("properties", ["00", "07 26 0001 'n' 0001 'v'"], ids=["a topic", "a user property"])
def test_a_delivery_to_a_connected_subscriber_reads_no_header_that_was_written_here(
    world: World, properties: str
) -> None:
    """The broker and the delivery both take the command that travels with the copy, and each is compared."""
    link, publisher = _subscribed(world), FakeLink()
    world.receive(publisher, "10 11 0004 'MQTT' 05 02 0000 00 0004 'tell'")
    before = compared.get(WrittenCommand, 0)
    body = written(f"0001 't' 0001 {properties} 'x'")
    world.receive(publisher, f"32 {len(body):02X} 0001 't' 0001 {properties} 'x'")
    assert link.taken() == written("32 06 0001 't' 0001 'x'")
    assert compared[WrittenCommand] == before + 2
