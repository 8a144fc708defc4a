"""PUBLISH on a topic whose route has a target: what waits on the transmission queue, and what may be taken."""

import pytest

from gateway.audit_trail.notes.notes import NoteKind, Translation
from gateway.bridge.commands.target_messages import own_message_identifier
from gateway.config import RouteSettings, TargetSettings
from mq_adapters.embedded.unit_of_work import Departure
from mq_adapters.message import MQRO_NAN
from mq_adapters.transmission import is_kept_with_next
from spark_audit.reperform.comparison import Status
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.performance import reperform
from tests.gateway.bridge.conftest import DEFAULT_STREAM, FakeLink, NewWorld, World, publish_packet, written
from tests.gateway.bridge.remote import headers, transmissions

XMIT, DEAD_LETTER_QUEUE = "RFHBRIDGE.XMIT.QM1.0", "SYSTEM.DEAD.LETTER.QUEUE"
WILL = "10 1A 0004 'MQTT' 04 2E 0000 0004 'will' 0003 'a/w' 0003 'bye'"


def target(**settings: object) -> TargetSettings:
    return TargetSettings.model_validate({"name": "QM1", **settings})


def route(*topics: str, **settings: object) -> RouteSettings:
    return RouteSettings.model_validate({"target": "QM1", "topics": topics, **settings})


def routed(new_world: NewWorld, **settings: object) -> World:
    """A gateway whose topics under `a` go to QM1."""
    return new_world(targets=(target(**settings),), routes=(route("a/#"),))


def carrier(qos: int, exchange: int, client: str = "self") -> str:
    return (
        f"<usr><rfhbQos dt='i4'>{qos}</rfhbQos><rfhbClient>{client}</rfhbClient>"
        f"<rfhbSeq dt='i8'>{exchange}</rfhbSeq></usr>"
    )


def exchange_of(world: World, client: str = "self") -> int:
    session = world.sessions.get(client)
    assert session is not None
    return session.incoming_exchange


def user_of(world: World, client: str, user: str) -> None:
    session = world.sessions.get(client)
    assert session is not None
    session.user = user


def test_a_publish_waits_whole_for_its_target_and_then_it_is_acknowledged(new_world: NewWorld) -> None:
    world = routed(new_world)
    link = world.connect("self")
    world.commits_are_held = True
    world.receive(link, "32 08 0003 'a/b' 0001 'A'")
    assert link.sent == b""
    world.commits_are_held = False
    world.run()
    assert link.taken() == written("40 02 0001")
    (sent,) = transmissions(world)
    assert (sent.queue_name, sent.queue_manager_name) == (DEFAULT_STREAM, "")
    session = world.sessions.get("self")
    assert session is not None
    exchange = session.incoming_exchange
    assert sent.message.msg_id == own_message_identifier(
        world.engine.incarnation, epoch=session.epoch, client="self", verb="Publish", sequence=exchange
    )
    assert (sent.message.descriptor.report, sent.message.descriptor.persistence) == (MQRO_NAN, 1)
    (header,) = headers(world)
    assert header.startswith("<psc><Command>Publish</Command><Topic>a/b</Topic></psc>")
    assert carrier(1, exchange) in header
    assert header.endswith("A")
    assert world.messages(DEFAULT_STREAM) == []


def test_what_no_route_takes_stays_at_the_embedded_broker(new_world: NewWorld) -> None:
    world = new_world(targets=(target(),), routes=(route("a/#"),), has_broker=False)
    world.receive(world.connect("self"), "32 08 0003 'b/b' 0001 'A'")
    assert transmissions(world) == []
    assert world.depth(DEFAULT_STREAM) == 1


def test_messages_that_wait_share_one_lane_however_many_they_are(new_world: NewWorld) -> None:
    """A lane costs about a kilobyte of memory, and in an outage a million messages wait."""
    world = routed(new_world)
    link = world.connect("self")
    for number in range(1, 6):
        world.receive(link, f"32 08 0003 'a/b' 000{number} 'A'")
    assert len(world.engine.queue(XMIT).lanes) == 1


def test_qos_0_and_2_are_carried_with_their_persistence(new_world: NewWorld) -> None:
    world = routed(new_world)
    link = world.connect("self")
    world.receive(link, "30 06 0003 'a/b' 'A'", "34 08 0003 'a/b' 0002 'B'")
    assert len(transmissions(world)) == 1, "QoS 2 waits for its PUBREL"
    world.receive(link, "62 02 0002")
    assert link.taken() == written("50 02 0002 70 02 0002")
    assert [each.message.descriptor.persistence for each in transmissions(world)] == [0, 1]
    exchange = exchange_of(world)
    assert [carrier(qos, exchange + qos // 2 - 1) in header for qos, header in zip((0, 2), headers(world), strict=True)]


def test_a_held_publish_is_released_once_also_after_a_restart(new_world: NewWorld) -> None:
    world = routed(new_world)
    world.receive(world.connect("self", flags="00"), "34 08 0003 'a/b' 0002 'B'")
    held = exchange_of(world)
    world = routed(new_world)
    link = world.connect("self", flags="00")
    world.receive(link, "62 02 0002")
    world.receive(link, "62 02 0002")
    assert link.taken() == written("70 02 0002 70 02 0002")
    (header,) = headers(world)
    assert carrier(2, held) in header
    world.receive(link, "32 08 0003 'a/b' 0003 'C'")
    assert exchange_of(world) > held, "no exchange has the number of another"


def test_a_retained_delete_is_a_pair_that_no_batch_may_split(new_world: NewWorld) -> None:
    world = routed(new_world)
    world.receive(world.connect("self"), "33 07 0003 'a/b' 0001")
    delete, publish = headers(world)
    assert delete.rstrip() == "<psc><Command>DeletePub</Command><Topic>a/b</Topic></psc>"
    assert publish.startswith("<psc><Command>Publish</Command><Topic>a/b</Topic></psc>")
    assert "</rfhbSeq><rfhbRetain dt='i4'>1</rfhbRetain></usr>" in publish
    assert [is_kept_with_next(message) for message in world.messages(XMIT)] == [True, False]
    first, second = (each.message for each in transmissions(world))
    assert first.msg_id != second.msg_id
    assert (first.descriptor.persistence, first.descriptor.expiry, first.descriptor.report) == (1, -1, MQRO_NAN)


@pytest.mark.parametrize("packet", ["32 07 0003 'a/b' 0001", "33 08 0003 'a/b' 0001 'A'"])
def test_only_an_empty_publish_with_retain_carries_it(new_world: NewWorld, packet: str) -> None:
    world = routed(new_world)
    world.receive(world.connect("self"), packet)
    (header,) = headers(world)
    assert "rfhbRetain" not in header


def test_a_will_goes_to_its_target(new_world: NewWorld) -> None:
    world = routed(new_world)
    link = FakeLink()
    world.receive(link, WILL)
    world.lose(link)
    (header,) = headers(world)
    assert "<PubOpt>RetainPub</PubOpt><Topic>a/w</Topic>" in header
    assert "<rfhbQos dt='i4'>1</rfhbQos><rfhbClient>will</rfhbClient>" in header
    assert header.endswith("bye")


def test_clients_of_one_target_share_its_shards_and_keep_their_order(new_world: NewWorld) -> None:
    world = routed(new_world, shards=4)
    for client in ("cli1", "cli2", "cli3", "cli4", "cli5"):
        link = world.connect(client)
        world.receive(link, "32 08 0003 'a/b' 0001 'A'", "82 08 0002 0003 'a/+' 01", "32 08 0003 'a/b' 0003 'B'")
    placed: dict[str, set[str]] = {}
    for queue in world.targets["QM1"].transmission_queues:
        for message in world.messages(queue.name):
            placed.setdefault(message.origin[-4:].decode(), set()).add(queue.name)
    assert {len(queues) for queues in placed.values()} == {1}
    assert len(set.union(*placed.values())) > 1


# -- what may be taken -------------------------------------------------------------------------------------------------


def test_a_payload_that_the_target_does_not_take_closes_the_connection_and_leaves_no_trace(
    new_world: NewWorld,
) -> None:
    world = routed(new_world)
    world.targets["QM1"].heard_from("QM1", "QM1_1", {DEFAULT_STREAM: 5_000})
    link = world.connect("self")
    world.bridge.receive(link, publish_packet(0x32, b"b/b", b"x" * 6_000))
    world.bridge.receive(link, publish_packet(0x32, b"a/b", b"x" * 3_000, 2))
    world.run()
    assert link.taken() == written("40 02 0001 40 02 0002")
    world.bridge.receive(link, publish_packet(0x32, b"a/b", b"x" * 5_000, 3))
    world.run()
    assert not link.is_open
    assert link.reason == f"a payload of 5000 bytes is too big for queue {DEFAULT_STREAM}"
    assert link.sent == b""
    assert len(transmissions(world)) == 1


def test_a_user_that_the_target_cannot_name_may_not_publish_there(new_world: NewWorld) -> None:
    world = routed(new_world, set_identity=True, users={"a-long-name-of-somebody": "SOMEBODY"})
    links = {user: world.connect(user[:4]) for user in ("anna-of-the-plant", "a-long-name-of-somebody", "otto")}
    for user, link in links.items():
        user_of(world, user[:4], user)
        world.receive(link, "31 05 0003 'a/b'")
    assert [link.is_open for link in links.values()] == [False, True, True]
    sent = [each.message.descriptor.user_identifier for each in transmissions(world)]
    assert sent == ["", "SOMEBODY", "", "otto"], "DeletePub goes under the gateway's own user"


def test_what_was_acknowledged_of_a_user_without_a_name_there_goes_whole_to_the_dead_letter_queue(
    new_world: NewWorld,
) -> None:
    """PUBREC has left, and then the configuration says that users count."""
    world = routed(new_world)
    link = world.connect("self", flags="00")
    user_of(world, "self", "anna-of-the-plant")
    world.receive(link, "34 08 0003 'a/b' 0002 'B'")
    world.lose(link)
    world = routed(new_world, set_identity=True)
    link = world.connect("self", flags="00")
    user_of(world, "self", "anna-of-the-plant")
    world.receive(link, "62 02 0002")
    assert link.taken() == written("70 02 0002")
    assert transmissions(world) == []
    (dead,) = world.messages(DEAD_LETTER_QUEUE)
    assert (dead.body[8:12], dead.body[12:60].decode().rstrip()) == (b"\xf3\x07\x00\x00", DEFAULT_STREAM)
    assert (dead.body[60:108].decode().rstrip(), dead.body[116:124]) == ("QM1", b"RFHBMQT4")
    assert dead.body[172:] == written("34 08 0003 'a/b' 0002 'B'")


# -- an outage ---------------------------------------------------------------------------------------------------------


def full(new_world: NewWorld) -> tuple[World, FakeLink]:
    """A gateway whose target is full after the first PUBLISH of a client."""
    world = routed(new_world, hold_bytes=600)
    link = world.connect("self")
    world.receive(link, "32 08 0003 'a/b' 0001 'A'")
    assert link.taken() == written("40 02 0001")
    assert world.targets["QM1"].is_full
    return world, link


def make_room(world: World) -> None:
    queue = world.engine.queue(XMIT)
    unit = world.engine.begin()
    while (message := world.engine.take(queue)) is not None:
        unit.remove(queue, message, Departure.TAKEN)
    world.engine.submit(unit)
    world.run()
    world.targets["QM1"].tick()
    world.run()


@pytest.mark.parametrize(
    ("publish", "answer"),
    [("32 08 0003 'a/b' 0002 'B'", "40 02 0002"), ("34 08 0003 'a/b' 0002 'B'", "50 02 0002")],
)
def test_a_publisher_is_held_back_while_its_target_is_full_and_goes_on_where_it_was(
    new_world: NewWorld, publish: str, answer: str
) -> None:
    world, link = full(new_world)
    world.receive(link, publish, "C0 00")
    assert link.sent == b""
    assert not link.is_read()
    assert link.is_open
    assert len(transmissions(world)) == 1
    make_room(world)
    assert sorted(link.taken()) == sorted(written(answer) + written("D0 00"))
    assert link.is_read()


def test_what_was_sent_behind_a_held_back_publish_keeps_its_place(new_world: NewWorld) -> None:
    world, link = full(new_world)
    world.receive(link, "32 08 0003 'a/b' 0002 'B'", "32 08 0003 'b/b' 0003 'C'")
    world.receive(link, "32 08 0003 'b/b' 0004 'D'")
    assert link.sent == b""
    make_room(world)
    assert link.taken() == written("40 02 0002 40 02 0003 40 02 0004")


def test_other_topics_and_other_clients_are_not_held_back(new_world: NewWorld) -> None:
    world, _ = full(new_world)
    other = world.connect("othr")
    world.receive(other, "32 08 0003 'b/b' 0002 'B'")
    assert other.taken() == written("40 02 0002")
    assert other.is_read()


def test_qos_0_is_dropped_while_the_target_is_full_and_the_audit_hears_of_it(new_world: NewWorld) -> None:
    world, link = full(new_world)
    world.receive(link, "30 06 0003 'a/b' 'A'", "C0 00")
    assert link.taken() == written("D0 00")
    assert link.is_read()
    world.engine.tick()
    world.run()
    (dropped,) = [note for note in world.notes if note[0] == NoteKind.DROPPED]
    assert (dropped[2], dropped[4:]) == ("self", (exchange_of(world), DEFAULT_STREAM, 0, "the target's queue is full"))
    assert len(transmissions(world)) == 1


def test_a_client_that_goes_while_it_is_held_back_sends_again_what_was_not_acknowledged(new_world: NewWorld) -> None:
    world, link = full(new_world)
    session = world.sessions.get("self")
    assert session is not None
    world.receive(link, "34 08 0003 'a/b' 0002 'B'")
    world.lose(link)
    assert session.held == {}
    make_room(world)
    assert transmissions(world) == []
    again = world.connect("self")
    world.receive(again, "34 08 0003 'a/b' 0002 'B'", "62 02 0002")
    assert again.taken() == written("50 02 0002 70 02 0002")
    assert len(transmissions(world)) == 1


def test_a_takeover_of_a_held_back_link_keeps_its_answers_to_deliveries(new_world: NewWorld) -> None:
    """PUBACK came behind the PUBLISH that waits: the delivery is done, and is not repeated on the new link."""
    world = routed(new_world, hold_bytes=600)
    link = world.connect("self", flags="00")
    world.receive(link, "82 06 0001 0001 'b' 01", "32 08 0003 'a/b' 0001 'A'")
    world.receive(world.connect("tell"), "32 06 0001 'b' 0001 'x'")
    assert link.taken().endswith(written("32 06 0001 'b' 0001 'x'"))
    world.receive(link, "32 08 0003 'a/b' 0002 'B'", "40 02 0001")
    again = world.connect("self", flags="00")
    assert again.taken() == b""
    assert link.reason == "the client connected again"
    assert world.depth("RFHBRIDGE.SUBSCRIBER") == 0


def test_a_disconnect_behind_a_held_back_publish_is_a_clean_end(new_world: NewWorld) -> None:
    world, _ = full(new_world)
    link = FakeLink()
    world.receive(link, WILL)
    world.receive(link, "32 08 0003 'a/b' 0002 'B'", "E0 00")
    world.lose(link)
    make_room(world)
    assert transmissions(world) == [], "the will is discarded with DISCONNECT"


def test_what_the_store_cannot_hold_in_memory_is_dropped_at_qos_0(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not persistent waits in memory, which has a limit of its own (MQRC 2056)."""
    world = routed(new_world)
    link = world.connect("self")
    monkeypatch.setattr("mq_adapters.embedded.message_cache.MessageCache.has_room_for", lambda _self, _message: False)
    world.receive(link, "30 06 0003 'a/b' 'A'", "32 08 0003 'a/b' 0001 'A'")
    assert link.taken() == written("40 02 0001")
    assert len(transmissions(world)) == 1


def test_a_transmission_queue_that_takes_nothing_closes_the_connection_before_anything_is_acknowledged(
    new_world: NewWorld,
) -> None:
    world = routed(new_world)
    link = world.connect("self", flags="00")
    world.receive(link, "34 08 0003 'a/b' 0002 'B'")
    link.taken()
    definition = world.engine.queue(XMIT).definition
    world.engine.objects.alter(definition.altered({"MAXDEPTH": 0}))
    world.receive(link, "62 02 0002")
    assert not link.is_open
    world.engine.objects.alter(definition)
    link = world.connect("self", flags="00")
    world.receive(link, "62 02 0002")
    assert link.taken() == written("70 02 0002")
    assert len(transmissions(world)) == 1


# -- the audit ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("header", "streams"), [("mqrfh", "queue"), ("mqrfh2", "message_broker")])
def test_the_audit_performs_every_put_for_a_target_again_from_its_record(
    new_world: NewWorld, header: str, streams: str
) -> None:
    settings = target(header=header, streams=streams)
    world = new_world(targets=(settings,), routes=(route("a/#", stream="SPORT"),))
    link = FakeLink()
    world.receive(link, WILL)
    packets = ("30 06 0003 'a/*' 'A'", "33 07 0003 'a/b' 0001", "34 08 0003 'a/b' 0002 'B'", "62 02 0002")
    world.receive(link, *packets, "82 06 0003 0001 '#' 01", "A2 05 0004 0001 '#'")
    world.lose(link)
    world.engine.tick()
    world.run()
    judged = [reperform(facts) for facts in _facts_of(world)]
    assert [(each.status, each.same_bytes, each.detail) for each in judged] == [(Status.MATCH, True, "")] * len(judged)
    assert len(judged) == 8


def _facts_of(world: World) -> list[Facts]:
    """What the records of the notes say, for each put for a target."""
    found = []
    for note in world.notes:
        context = note[-1]
        if not isinstance(context, Translation) or not context.destination:
            continue
        if note[0] == NoteKind.REQUESTED:
            (_, _, client, _, packet_type, _, part, length, *_), exchange = note, -1
        else:
            _, _, client, _, exchange, part, length, *_ = note
            packet_type = 3
        found.append(
            Facts(
                conversion="packet_to_header",
                command=context.command,
                topic=context.topic,
                queue=context.queue,
                packet_type=packet_type,
                granted_qos=-1,
                published_qos=-1,
                is_retained=False,
                payload_bytes=length,
                dropped_fields=(),
                input=part,
                input_format="MQTT",
                input_ccsid=-1,
                input_encoding=-1,
                output=context.header,
                output_format=context.format.decode().rstrip(),
                output_ccsid=context.coded_char_set_id,
                output_encoding=context.encoding,
                destination=context.destination,
                stream=context.stream,
                stream_style=context.stream_style,
                topic_filters=context.topic_filters,
                user=context.user or "",
                client=client,
                exchange=exchange,
            )
        )
    return found
