"""MapMessages of JMS as their JSON at MQTT clients, and the audit: what was put, and what was sent."""

import hashlib

import pytest

import tests.headers
from tests.gateway.bridge.audited import assert_every_conversion_is_as_the_audit_predicts, records
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, written
from tests.gateway.bridge.connect.test_level_5_sessions import connect

PSC = "<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"
MCD, JMS = "<mcd><Msd>jms_map</Msd></mcd>", "<jms><Dst>topic://a/b</Dst><Tms>1</Tms></jms>"
MAP, JSON = b"<map><elt name=\"bar\" dt='r8'>4.2</elt></map>", b'{"bar":4.2}'


def of_jms(body: bytes, kind: str = MCD) -> bytes:
    return tests.headers.mqrfh2(PSC, kind, JMS, format=tests.headers.NO_FORMAT) + body


def subscriber(world: World, properties: str = "") -> FakeLink:
    link = connect(world, "self", properties=properties)
    world.receive(link, "82 09 0001 00 0003 'a/b' 01")
    link.taken()
    return link


def delivered(world: World) -> dict[str, object]:
    (record,) = [each for each in records(world) if each["kind"] == "delivered"]
    return record


def test_a_client_gets_json_and_the_trail_has_the_hashes_of_both(new_world: NewWorld) -> None:
    world = new_world(maps_as_json=True)
    link = subscriber(world)
    world.put(of_jms(MAP))
    assert link.taken() == written("32 13 0003 'a/b' 0001 00") + JSON
    told = delivered(world)
    assert (told["payload_bytes"], told["payload_sha256"]) == (len(MAP), hashlib.sha256(MAP).hexdigest())
    assert (told["sent_bytes"], told["sent_sha256"]) == (len(JSON), hashlib.sha256(JSON).hexdigest())
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_clients_before_mqtt_5_and_packets_by_alias_too(new_world: NewWorld) -> None:
    world = new_world(maps_as_json=True)
    older = world.connect("pump")
    world.receive(older, "82 08 0001 0003 'a/b' 01")
    older.taken()
    world.put(of_jms(MAP))
    assert older.taken() == written("32 12 0003 'a/b' 0001") + JSON
    link = subscriber(world, "22 000A")
    world.put(of_jms(MAP))
    world.put(of_jms(MAP))
    assert link.taken().endswith(JSON)
    assert [each["sent_bytes"] for each in records(world) if each["kind"] == "delivered"] == [len(JSON)] * 5
    assert {each["topic"] for each in records(world) if each["kind"] == "delivered"} == {"a/b"}
    assert_every_conversion_is_as_the_audit_predicts(world)


@pytest.mark.parametrize(
    ("body", "kind"),
    [(MAP, MCD.replace("map", "text")), (b"<map>", MCD), (b"", MCD), (MAP, "<mcd><a>jms_map</a></mcd>")],
)
def test_everything_else_is_sent_as_it_was_put(new_world: NewWorld, body: bytes, kind: str) -> None:
    world = new_world(maps_as_json=True)
    link = subscriber(world)
    world.put(of_jms(body, kind))
    assert link.taken().endswith(b"\x00\x03a/b\x00\x01\x00" + body)
    assert "sent_bytes" not in delivered(world)
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_without_the_setting_a_map_is_what_jms_wrote(new_world: NewWorld) -> None:
    world = new_world()
    link = subscriber(world)
    world.put(of_jms(MAP))
    assert link.taken().endswith(MAP)
    assert "sent_bytes" not in delivered(world)


def test_the_packet_size_of_a_client_counts_what_it_would_get(new_world: NewWorld) -> None:
    world = new_world(maps_as_json=True)
    link = subscriber(world, "27 00000015")
    world.put(of_jms(MAP))
    assert link.taken() == written("32 13 0003 'a/b' 0001 00") + JSON
    world.put(of_jms(MAP.replace(b"4.2", b"4.25")))
    assert link.taken() == b""
