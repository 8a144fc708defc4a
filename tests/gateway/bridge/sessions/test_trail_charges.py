"""The charge for records of the trail, against the records that the exporter makes of the same notes."""

from collections.abc import Callable

import pytest

from gateway.audit_trail.notes.charges import CHARGES, Payer, trail_bytes
from gateway.audit_trail.notes.notes import NoteKind, pack_batch
from gateway.config.limit_row import LEAST_SHARES
from gateway.config.mqtt_limits import MqttLimits
from gateway.limits.addresses import network_of_peer
from gateway.limits.owner import Owner
from mq_adapters.embedded.unit_of_work import Note
from spark_audit.record.batch_line import text_of
from spark_audit.record.expansion import Expander
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, publish_packet
from tests.gateway.bridge.publish.test_held_letters import DEAD, full_queue, publish

GATEWAY = "0102030405060708090a0b0c"
#: What the chain puts around each record: its number and two hashes.
CHAIN_BYTES = 149
NOT_OF_PUBLISHES = {NoteKind.SESSION, NoteKind.CONFIRMED, NoteKind.COPIED}


def records_bytes(notes: list[Note]) -> int:
    _, records = Expander(GATEWAY).expand(pack_batch(1, notes))
    return sum(len(text_of(record)) + CHAIN_BYTES for record in records)


@pytest.mark.parametrize("topic", [b"a", b"plant/7/line/3/pump/12/temperature", b"long/" * 100])
@pytest.mark.parametrize("first_byte", [0x30, 0x32])
def test_the_charge_for_a_publish_is_about_what_its_records_have(
    new_world: NewWorld, first_byte: int, topic: bytes
) -> None:
    world = new_world(limits=MqttLimits())
    link = world.connect("self")
    world.engine.tick()
    world.run()
    world.notes.clear()
    for identifier in range(1, 11):
        world.bridge.receive(link, publish_packet(first_byte, topic, b"1", identifier))
    world.run()
    world.engine.tick()
    world.run()
    notes = [note for note in world.notes if note[0] not in NOT_OF_PUBLISHES]
    assert len(notes) == 10
    assert 0.8 < trail_bytes(notes) / records_bytes(notes) < 1.25


@pytest.mark.parametrize("topic", [b"a", b"plant/7/line/3/pump/12/temperature", b"long/" * 100])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_publisher_is_charged_for_what_its_copies_make(new_world: NewWorld, qos: int, topic: bytes) -> None:
    world = new_world(limits=MqttLimits())
    subscribers = [world.connect(f"s{number:03}") for number in range(20)]
    for link in subscribers:
        world.receive(link, f"82 06 0001 0001 '#' 0{qos}")
    publisher = world.connect("self")
    world.engine.tick()
    world.run()
    world.notes.clear()
    world.bridge.receive(publisher, publish_packet(0x30 | qos << 1, topic, b"1", 1))
    world.run()
    if qos == 2:
        world.receive(publisher, "62 02 0001")
    for link in subscribers:
        if qos:
            world.receive(link, "40 02 0001" if qos == 1 else "50 02 0001")
        if qos == 2:
            world.receive(link, "70 02 0001")
    world.engine.tick()
    world.run()
    assert len([note for note in world.notes if note[0] == NoteKind.COPIED]) == 20
    assert 0.8 < trail_bytes(world.notes) / records_bytes(world.notes) < 1.25
    account = world.sessions.get("self")
    assert account is not None
    silent = world.sessions.get("s000")
    assert silent is not None
    assert account.account.spent_s - silent.account.spent_s > 15 * trail_bytes(world.notes) / 20 / 134_217_728


@pytest.mark.parametrize("others", [0, 1, 60])
def test_the_record_of_acknowledgements_is_charged_to_who_is_acknowledged(new_world: NewWorld, others: int) -> None:
    """Packets of QoS 0 between them have exchanges too, so that each acknowledgement is a range of its own."""
    world = new_world(limits=MqttLimits())
    link, silent = world.connect("self"), world.connect("tell")
    for identifier in range(1, others + 2):
        world.bridge.receive(link, publish_packet(0x32, b"a", b"1", identifier) + publish_packet(0x30, b"a", b"1"))
    world.run()
    session, other = (world.sessions.get(name) for name in ("self", "tell"))
    assert session is not None
    assert other is not None
    before_s, before_other_s = session.account.spent_s, other.account.spent_s
    world.notes.clear()
    world.bridge.tick()
    world.run()
    world.engine.tick()
    world.run()
    (note,) = [note for note in world.notes if note[0] == NoteKind.CONFIRMED]
    assert 0.8 < trail_bytes([note]) / records_bytes([note]) < 1.25
    charged = session.account.spent_s - before_s
    assert charged == pytest.approx(trail_bytes([note]) / MqttLimits().trail_byte_rate)
    assert other.account.spent_s == before_other_s
    assert silent.is_read()


def test_a_retained_copy_is_charged_to_who_asks_for_it_and_stays_charged_for_who_comes_back(
    new_world: NewWorld,
) -> None:
    world = new_world(limits=MqttLimits(trail_byte_rate=20_000))
    world.receive(world.connect("self"), *(f"31 06 0003 'a/{letter}' 'x'" for letter in "abcdefghij"))
    waits = []
    for _ in range(12):
        link = world.connect("wild")
        world.receive(link, "82 08 0001 0003 'a/#' 00")
        waits.append(link.is_read())
        world.lose(link)
    assert waits[0]
    assert not waits[-1]


def charged_bytes(world: World) -> float:
    """What all clients of the one address, which have no user, have been charged so far."""
    budgets = world.sessions.budgets
    account = budgets.hold(budgets.visit(Owner(None, network_of_peer("192.0.2.7:1"))), Owner(None, b""))
    return account.spent_s * LEAST_SHARES * MqttLimits().trail_byte_rate


def subscribers(world: World, number: int) -> list[FakeLink]:
    links = [world.connect(f"s{each:03}") for each in range(number)]
    for link in links:
        world.receive(link, "82 06 0001 0001 '#' 01")
    return links


def with_a_will(world: World, name: str, *, clean: bool = True) -> FakeLink:
    """Its will is of QoS 1."""
    link = FakeLink()
    flags = "0E" if clean else "0C"
    world.receive(link, f"10 19 0004 'MQTT' 04 {flags} 0000 0004 '{name}' 0004 'will' 0001 'x'")
    assert link.taken()[:2] == b"\x20\x02"
    return link


def connections_that_come_and_go(world: World) -> None:
    for _ in range(20):
        world.lose(world.connect("self"))
        world.receive(world.connect("tidy"), "E0 00")


def persistent_sessions_that_come_and_go(world: World) -> None:
    for _ in range(20):
        world.lose(world.connect("self", flags="00"))


def connections_that_come_back_before_their_end_is_carried_out(world: World) -> None:
    link = world.connect("self", flags="00")
    for _ in range(20):
        link.is_open = False
        world.bridge.lost(link)
        link = world.connect("self", flags="00")


def members_of_shared_subscriptions_that_end(world: World) -> None:
    for _ in range(10):
        link = FakeLink()
        world.receive(link, "10 11 0004 'MQTT' 05 02 0000 00 0004 'self'", "82 10 0001 00 000A '$share/g/a' 00")
        assert link.sent.endswith(b"\x90\x04\x00\x01\x00\x00")
        world.lose(link)


def one_identifier_that_is_fought_for(world: World) -> None:
    for _ in range(20):
        world.connect("self")


def wills(world: World) -> None:
    links = subscribers(world, 10)
    for number in range(5):
        world.lose(with_a_will(world, f"w{number:03}"))
    for link in links:
        world.receive(link, *(f"40 02 {identifier:04x}" for identifier in range(1, 6)))


def wills_of_connections_that_others_take_over(world: World) -> None:
    links = subscribers(world, 10)
    for _ in range(5):
        with_a_will(world, "self", clean=False)
    for link in links:
        world.receive(link, *(f"40 02 {identifier:04x}" for identifier in range(1, 5)))


def deliveries_that_are_sent_again(world: World) -> None:
    link = world.connect("self", flags="00")
    world.receive(link, "82 06 0001 0001 '#' 01")
    for identifier in range(1, 11):
        world.receive(link, f"32 06 0001 'a' {identifier:04x} 'x'")
    for _ in range(20):
        world.lose(link)
        link = world.connect("self", flags="00")


def sessions_with_filters_that_end(world: World) -> None:
    for _ in range(10):
        link = world.connect("self")
        world.receive(link, "82 10 0001 0001 'a' 00 0001 'b' 00 0001 'c' 00")
        world.lose(link)


def dead_letters(world: World) -> None:
    full_queue(world)
    world.notes.clear()
    link = world.connect("caus")
    assert publish(world, link, 20) == 20
    assert len(world.messages(DEAD)) == 20


def acknowledgements(world: World) -> None:
    link = world.connect("self")
    for _ in range(20):
        world.receive(link, "32 06 0001 'a' 0001 'x'")
        world.now_us += 1
        world.bridge.tick()
        world.run()


LIVES: tuple[Callable[[World], None], ...] = (
    connections_that_come_and_go,
    persistent_sessions_that_come_and_go,
    connections_that_come_back_before_their_end_is_carried_out,
    members_of_shared_subscriptions_that_end,
    one_identifier_that_is_fought_for,
    wills,
    wills_of_connections_that_others_take_over,
    deliveries_that_are_sent_again,
    sessions_with_filters_that_end,
    dead_letters,
    acknowledgements,
)


@pytest.mark.parametrize("live", LIVES, ids=lambda live: live.__name__)
def test_all_that_clients_cause_is_charged_to_their_network(new_world: NewWorld, live: Callable[[World], None]) -> None:
    world = new_world(limits=MqttLimits(message_rate=0, byte_rate=0, new_topic_rate=0))
    keeps_the_account = world.connect("keep")
    world.engine.tick()
    world.run()
    world.notes.clear()
    before = charged_bytes(world)
    live(world)
    world.bridge.tick()
    world.run()
    world.engine.tick()
    world.run()
    caused = [note for note in world.notes if CHARGES[NoteKind(note[0])].payer is not Payer.NOBODY]  # type: ignore[arg-type]
    assert len(caused) > 15
    assert 0.8 < (charged_bytes(world) - before) / records_bytes(caused) < 1.3
    assert keeps_the_account.is_open


def test_a_client_that_comes_and_goes_is_read_more_slowly(new_world: NewWorld) -> None:
    world = new_world(limits=MqttLimits(trail_byte_rate=400))
    assert world.connect("self").is_read()
    for _ in range(5):
        link = world.connect("self")
    assert not link.is_read()
    assert world.connect("tell").is_read()


@pytest.mark.parametrize(
    ("topic_bytes", "packets", "is_written"), [(30, 100, False), (3_000, 4, False), (3_000, 12, True)]
)
def test_notes_of_qos_0_with_long_headers_do_not_wait_for_many_others(
    new_world: NewWorld, topic_bytes: int, packets: int, is_written: bool
) -> None:
    """Ten megabytes of them at once would take the event loop 60 ms."""
    world = new_world(limits=MqttLimits())
    subscriber, publisher = world.connect("hear"), world.connect("self")
    world.receive(subscriber, "82 06 0001 0001 '#' 00")
    world.engine.tick()
    world.run()
    world.notes.clear()
    for number in range(packets):
        topic = b"%03d" % number + topic_bytes * b"t"
        world.bridge.receive(publisher, publish_packet(0x30, topic, b"1"))
        world.run()
    assert bool(world.notes) == is_written
