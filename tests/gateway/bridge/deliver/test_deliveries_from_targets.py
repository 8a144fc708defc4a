"""Publications that come from a target: QoS, topic, retained flag, and what the audit hears of their origin."""

from collections.abc import Callable

import pytest

from gateway.audit_trail.notes.notes import Arrival, NoteKind
from gateway.config import RouteSettings, TargetSettings
from mq_adapters.message import MQAT_BROKER, MQPER_NOT_PERSISTENT, MQPER_PERSISTENT, Message, MessageDescriptor
from tests.gateway.bridge.commands.test_target_messages import mqrfh
from tests.gateway.bridge.commands.test_target_messages import mqrfh2 as with_folders
from tests.gateway.bridge.conftest import SUBSCRIBER_QUEUE, FakeLink, NewWorld, World, mqrfh2, written
from tests.gateway.bridge.connect.test_level_5_sessions import connect
from tests.gateway.bridge.remote import Remote

PSC = "<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"


def configured(stream: str = "SYSTEM.BROKER.DEFAULT.STREAM", **settings: object) -> dict[str, object]:
    target = TargetSettings.model_validate({"name": "QM1", **settings})
    return {"targets": (target,), "routes": (RouteSettings(target="QM1", topics=("a/#",), stream=stream),)}


def subscribed(world: World, remote: Remote, qos: str = "02") -> FakeLink:
    """A client that has `a/#` at the target."""
    remote.connect(world)
    link = world.connect("self")
    world.receive(link, f"82 08 0001 0003 'a/#' {qos}")
    remote.carry(world)
    assert link.taken() == written(f"90 03 0001 {qos}")
    return link


def arrive(world: World, body: bytes, *, format: bytes = b"MQHRF2  ", persistence: int = 1, **fields: object) -> None:
    """A publication for the client, as a target's channel puts it on the subscriber queue: without an origin."""
    session = world.sessions.get("self")
    assert session is not None
    descriptor = MessageDescriptor(
        format=format,
        persistence=persistence,
        correl_id=session.correl_id,
        put_appl_type=MQAT_BROKER,
        put_appl_name="QM1",
    ).replace(**fields)
    unit = world.engine.begin()
    world.engine.put(unit, world.engine.queue(SUBSCRIBER_QUEUE), Message(descriptor, body))
    world.engine.submit(unit)
    world.run()


def arrivals(world: World) -> list[tuple[int, Arrival]]:
    """Published QoS and header context of each delivery."""
    world.engine.tick()
    world.run()
    return [(note[-2], note[-1]) for note in world.notes if note[0] == NoteKind.DELIVERED]  # type: ignore[misc]


@pytest.mark.parametrize("granted", ["00", "01", "02"])
@pytest.mark.parametrize("header", ["mqrfh", "mqrfh2"])
def test_a_publication_comes_back_with_the_lower_of_its_own_qos_and_the_granted_one(
    new_world: NewWorld, remotes: Callable[..., Remote], header: str, granted: str
) -> None:
    world, remote = new_world(**configured(header=header)), remotes()
    link, teller = subscribed(world, remote, granted), world.connect("tell")
    packets = ("30 06 0003 'a/b' 'A'", "32 08 0003 'a/b' 0001 'A'", "34 08 0003 'a/b' 0002 'A'", "62 02 0002")
    world.receive(teller, *packets)
    remote.carry(world)
    assert (
        link.taken()
        == {
            "00": written("30 06 0003 'a/b' 'A'") * 3,
            "01": written("30 06 0003 'a/b' 'A' 32 08 0003 'a/b' 0001 'A' 32 08 0003 'a/b' 0002 'A'"),
            "02": written("30 06 0003 'a/b' 'A' 32 08 0003 'a/b' 0001 'A' 34 08 0003 'a/b' 0002 'A'"),
        }[granted]
    )
    assert [published for published, _ in arrivals(world)] == [0, 1, 2]


def test_the_audit_hears_which_exchange_a_publication_says_it_was(
    new_world: NewWorld, remotes: Callable[..., Remote]
) -> None:
    world, remote = new_world(**configured()), remotes()
    subscribed(world, remote)
    teller = world.connect("tell")
    world.receive(teller, "32 08 0003 'a/1' 0001 'B'", "32 08 0003 'a/1' 0002 'C'")
    remote.carry(world)
    session = world.sessions.get("tell")
    assert session is not None
    told = [(context.source_client, context.source_exchange) for _, context in arrivals(world)]
    assert told == [("tell", session.incoming_exchange - 1), ("tell", session.incoming_exchange)]


@pytest.mark.parametrize(("persistence", "qos"), [(MQPER_NOT_PERSISTENT, 0), (MQPER_PERSISTENT, 1)])
def test_without_a_carrier_the_persistence_says_the_qos(
    new_world: NewWorld, remotes: Callable[..., Remote], persistence: int, qos: int
) -> None:
    world, remote = new_world(**configured()), remotes()
    link = subscribed(world, remote)
    remote.publish(mqrfh2("a/b") + b"A", persistence=persistence)
    remote.carry(world)
    assert link.taken() == written("32 08 0003 'a/b' 0001 'A'" if qos else "30 06 0003 'a/b' 'A'")


@pytest.mark.parametrize(
    ("body", "first_byte"),
    [
        (with_folders(PSC, "<usr><rfhbQos dt='i4'>2</rfhbQos></usr>"), 0x34),
        (with_folders("<usr><rfhbQos>0</rfhbQos></usr>", PSC), 0x30),
        (with_folders(PSC, "<usr><rfhbQos>7</rfhbQos></usr>"), 0x32),
        (with_folders(PSC, "<usr><rfhbQos>2</usr>"), 0x32),
        (with_folders(PSC, "<usr><rfhbClient>x</rfhbClient><rfhbSeq>-1</rfhbSeq></usr>"), 0x32),
        (with_folders(PSC, f"<usr><rfhbClient>{'c' * 60_000}</rfhbClient></usr>"), 0x32),
    ],
)
def test_a_carrier_from_anywhere_is_believed_as_far_as_it_makes_sense(
    new_world: NewWorld, remotes: Callable[..., Remote], body: bytes, first_byte: int
) -> None:
    world, remote = new_world(**configured()), remotes()
    link = subscribed(world, remote)
    arrive(world, body + b"A")
    sent = link.taken()
    assert sent[0] == first_byte
    assert sent.endswith(b"A")


def test_a_carrier_in_pairs_of_an_mqrfh_is_read(new_world: NewWorld, remotes: Callable[..., Remote]) -> None:
    world, remote = new_world(**configured()), remotes()
    link = subscribed(world, remote)
    arrive(world, mqrfh("MQPSCommand Publish MQPSTopic a/b rfhbQos 2 rfhbSeq 5") + b"A", format=b"MQHRF   ")
    assert link.taken() == written("34 08 0003 'a/b' 0001 'A'")


def test_the_embedded_brokers_own_word_counts_more_than_what_a_publication_carries(new_world: NewWorld) -> None:
    """A copy of the embedded broker knows the QoS of its PUBLISH: nobody can write over it."""
    world = new_world()
    link = world.connect("self")
    world.receive(link, "82 08 0001 0003 'a/#' 02")
    link.taken()
    world.put(with_folders(PSC, "<usr><rfhbQos>2</rfhbQos></usr>") + b"A", persistence=0)
    world.receive(world.connect("tell"), "30 06 0003 'a/b' 'B'")
    assert link.taken() == written("34 08 0003 'a/b' 0001 'A' 30 06 0003 'a/b' 'B'")


@pytest.mark.parametrize(("style", "prefix"), [("message_broker", "$SYS/STREAM/SPORT/"), ("queue_manager", "SPORT/")])
def test_the_prefix_of_a_stream_is_not_seen_by_mqtt_clients(
    new_world: NewWorld, remotes: Callable[..., Remote], style: str, prefix: str
) -> None:
    world, remote = new_world(**configured("SPORT", streams=style)), remotes(dialect="wmb")
    link = subscribed(world, remote)
    world.receive(world.connect("tell"), "32 08 0003 'a/b' 0001 'A'")
    remote.carry(world)
    remote.publish(mqrfh2(f"{prefix}a/c") + b"B")
    remote.publish(mqrfh2("a/c") + b"of another stream")
    remote.carry(world)
    assert link.taken() == written("32 08 0003 'a/b' 0001 'A' 32 08 0003 'a/c' 0002 'B'")
    assert [(context.stream, context.stream_style) for _, context in arrivals(world)] == [("SPORT", style)] * 2
    assert [context.topic for _, context in arrivals(world)] == ["a/b", "a/c"]


def test_a_topic_of_the_embedded_broker_that_looks_like_a_prefix_keeps_it(new_world: NewWorld) -> None:
    world = new_world(**configured("SPORT", streams="queue_manager"))
    link = world.connect("self")
    world.receive(link, "82 0C 0001 0007 'SPORT/#' 01")
    assert link.taken() == written("90 03 0001 01")
    world.receive(world.connect("tell"), "32 0E 0009 'SPORT/a/b' 0001 'A'")
    assert link.taken() == written("32 0E 0009 'SPORT/a/b' 0001 'A'")


def test_a_stream_that_is_a_queue_is_a_topic_space_of_its_own(
    new_world: NewWorld, remotes: Callable[..., Remote]
) -> None:
    world, remote = new_world(**configured("SPORT", header="mqrfh")), remotes(inputs=("SPORT",))
    link = subscribed(world, remote)
    world.receive(world.connect("tell"), "32 08 0003 'a/b' 0001 'A'")
    remote.publish(mqrfh2("a/b") + b"on the default stream")
    remote.carry(world)
    assert link.taken() == written("32 08 0003 'a/b' 0001 'A'")


def test_a_retained_copy_of_a_target_is_marked_and_comes_once(
    new_world: NewWorld, remotes: Callable[..., Remote]
) -> None:
    world, remote = new_world(**configured()), remotes()
    remote.connect(world)
    world.receive(world.connect("tell"), "33 08 0003 'a/b' 0001 'A'")
    remote.carry(world)
    link = world.connect("self")
    world.receive(link, "82 08 0001 0003 'a/#' 02")
    remote.carry(world)
    assert link.taken() == written("90 03 0001 02 33 08 0003 'a/b' 0001 'A'")


@pytest.mark.parametrize("header", ["mqrfh", "mqrfh2"])
@pytest.mark.parametrize(("options", "retain"), [("08", "31"), ("00", "30")])
def test_an_empty_retained_publish_comes_back_as_published_where_that_is_asked_for(
    new_world: NewWorld, remotes: Callable[..., Remote], header: str, options: str, retain: str
) -> None:
    """MQTT-3.3.1-13 and -12: it deletes what is retained, so no RetainPub says that it had RETAIN."""
    world, remote = new_world(**configured(header=header)), remotes()
    remote.connect(world)
    link = connect(world, "self")
    world.receive(link, f"82 09 0001 00 0003 'a/#' {options}")
    remote.carry(world)
    assert link.taken().endswith(written("90 04 0001 00 00"))
    world.receive(world.connect("tell"), "31 05 0003 'a/b'", "30 05 0003 'a/b'")
    remote.carry(world)
    assert link.taken() == written(f"{retain} 06 0003 'a/b' 00 30 06 0003 'a/b' 00")


def test_no_local_keeps_back_what_the_client_itself_published_at_a_target(
    new_world: NewWorld, remotes: Callable[..., Remote]
) -> None:
    """MQTT-3.8.3-3. Whoever writes another's client identifier keeps its own message from that client, no other."""
    world, remote = new_world(**configured()), remotes()
    remote.connect(world)
    link = connect(world, "self")
    world.receive(link, "82 09 0001 00 0003 'a/#' 04")
    remote.carry(world)
    link.taken()
    world.receive(link, "30 07 0003 'a/b' 00 'A'")
    world.receive(world.connect("tell"), "30 06 0003 'a/b' 'B'")
    remote.carry(world)
    assert link.taken() == written("30 07 0003 'a/b' 00 'B'")
    arrive(world, with_folders(PSC, "<usr><rfhbClient>self</rfhbClient><rfhbSeq>1</rfhbSeq></usr>") + b"C")
    arrive(world, with_folders(PSC, "<usr><rfhbClient>tell</rfhbClient><rfhbSeq>1</rfhbSeq></usr>") + b"D")
    assert link.taken() == written("30 07 0003 'a/b' 00 'D'")


def test_publications_that_differ_only_in_what_they_carry_are_not_kept_in_memory(
    new_world: NewWorld, remotes: Callable[..., Remote]
) -> None:
    """Each carries its own exchange, so none would ever be found again."""
    world, remote = new_world(**configured()), remotes()
    link = subscribed(world, remote)
    publications = world.bridge._to_mqtt._publications
    for number in range(1, 8):
        arrive(world, with_folders(PSC, f"<usr><rfhbQos>0</rfhbQos><rfhbSeq>{number}</rfhbSeq></usr>") + b"A")
    assert link.taken() == written("30 06 0003 'a/b' 'A'") * 7
    assert (len(publications._kept), len(publications._contexts)) == (0, 0)
