"""Text that is none: wherever a packet has a string, at every level."""

import random
from collections.abc import Callable

import pytest

from tests.end_to_end.attacks.attacker import ACCEPTED, Attacker, connect, number, packet, publish, text
from tests.end_to_end.attacks.bystander import watched
from tests.end_to_end.attacks.conftest import Scale
from tests.end_to_end.gateway_process import Gateway
from tests.reason_strings import plain

pytestmark = pytest.mark.proof

NO_TEXT = [
    b"\xff",
    b"\xc0\x80",
    b"\xe0\x80\xaf",
    b"\xed\xa0\x80",
    b"\xed\xbf\xbf",
    b"\xf4\x90\x80\x80",
    b"\xf8\x88\x80\x80\x80",
    b"a\x00b",
    b"\xc3",
    b"\xe2\x82",
    b"\x80",
    b"\xfe\xfe\xff\xff",
]
#: Malformed packet, protocol error, topic name invalid, topic filter invalid.
TOLD = {0x81, 0x82, 0x90, 0x8F}

PLACES: dict[str, Callable[[bytes, bytes], bytes]] = {
    "topic": lambda garbage, properties: packet(0x30, text(garbage) + properties),
    "filter": lambda garbage, properties: packet(0x82, b"\x00\x01" + properties + text(garbage) + b"\x00"),
    "filter to take back": lambda garbage, properties: packet(0xA2, b"\x00\x01" + properties + text(garbage)),
}
PLACES_IN_PROPERTIES = {"content type": b"\x03", "response topic": b"\x08", "user property": b"\x26\x00\x00"}


@pytest.mark.parametrize("level", [3, 4, 5])
@pytest.mark.parametrize("place", PLACES)
def test_text_that_is_not_utf_8_ends_the_connection(attacked: Gateway, level: int, place: str) -> None:
    with watched(attacked, memory_mib=40):
        for garbage in NO_TEXT:
            with Attacker(attacked.port) as attacker:
                _connect(attacker, level)
                attacker.send(PLACES[place](garbage, b"\x00" if level == 5 else b""))
                _is_ended(attacker.read_to_end(), level)


@pytest.mark.parametrize("place", PLACES_IN_PROPERTIES)
def test_text_in_properties_that_is_not_utf_8_ends_the_connection(attacked: Gateway, place: str) -> None:
    with watched(attacked, memory_mib=40):
        for garbage in NO_TEXT:
            with Attacker(attacked.port) as attacker:
                _connect(attacker, 5)
                attacker.send(publish("a", properties=PLACES_IN_PROPERTIES[place] + text(garbage)))
                _is_ended(attacker.read_to_end(), 5)


@pytest.mark.parametrize("level", [3, 4, 5])
@pytest.mark.parametrize("place", ["client identifier", "will topic", "user name"])
def test_a_connect_with_text_that_is_not_utf_8_is_refused(attacked: Gateway, level: int, place: str) -> None:
    properties, will_properties = (b"\x00", b"\x00") if level == 5 else (b"", b"")
    name = "MQIsdp" if level == 3 else "MQTT"
    with watched(attacked, memory_mib=40):
        for garbage in NO_TEXT:
            bodies = {
                "client identifier": (2, text(garbage)),
                "will topic": (6, text("c") + will_properties + text(garbage) + text("gone")),
                "user name": (0x82, text("c") + text(garbage)),
            }
            flags, body = bodies[place]
            with Attacker(attacked.port) as attacker:
                attacker.send(packet(0x10, text(name) + bytes((level, flags, 0, 0)) + properties + body))
                answer = attacker.read_to_end()
                assert plain(answer) in {b"", *(bytes((0x20, 3, 0, code, 0)) for code in (0x81, 0x82, 0x85, 0x90))}


def test_noise_ends_its_connection_and_no_other(attacked: Gateway, scale: Scale) -> None:
    chance = random.Random(7)
    with watched(attacked, memory_mib=80):
        for place in range(scale(200, 5_000)):
            with Attacker(attacked.port) as attacker:
                level = chance.choice((4, 5))
                _connect(attacker, level)
                attacker.send(chance.randbytes(chance.randrange(1, 400)) + b"\x00\x00\xf0\xff")
                if place % 10 == 0:
                    attacker.send(packet(0xE0, b"") + number(0))


def _connect(attacker: Attacker, level: int) -> None:
    if level == 3:
        attacker.send(packet(0x10, text("MQIsdp") + b"\x03\x02\x00\x00" + text("garbage")))
        attacker.expect(ACCEPTED)
        return
    attacker.send(connect("garbage", level=level))
    header = attacker.receive(2)
    assert attacker.receive(header[1])[:2] == b"\x00\x00"


def _is_ended(received: bytes, level: int) -> None:
    if level < 5:
        assert received == b""
        return
    assert received[0] == 0xE0
    assert plain(received)[2] in TOLD
