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
NOT_CHARGED = {NoteKind.SESSION, NoteKind.CONFIRMED, NoteKind.COPIED}


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
    notes = [note for note in world.notes if note[0] not in NOT_CHARGED]
    assert len(notes) == 10
    assert 0.8 < trail_bytes(notes) / records_bytes(notes) < 1.25
