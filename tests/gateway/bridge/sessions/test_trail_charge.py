"""The charge for records of the trail, against the records that the exporter makes of the same notes."""

import pytest

from gateway.audit_trail.notes import NoteKind, pack_batch, trail_bytes
from gateway.audit_trail.records import Expander
from gateway.config.mqtt_limits import MqttLimits
from mq_adapters.embedded.unit_of_work import Note
from tests.gateway.bridge.conftest import NewWorld, publish_packet

GATEWAY = "0102030405060708090a0b0c"
#: What the chain puts around each record: its number and two hashes.
CHAIN_BYTES = 170
NOT_OF_PUBLISHES = {NoteKind.SESSION, NoteKind.CONFIRMED, NoteKind.COPIED}


def records_bytes(notes: list[Note]) -> int:
    _, records = Expander(GATEWAY).expand(pack_batch(1, notes))
    return sum(len(record) + CHAIN_BYTES for record in records)


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
