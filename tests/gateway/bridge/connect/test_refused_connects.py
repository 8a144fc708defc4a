"""A CONNECT that is refused for another reason than its login is counted for the trail with the code of its CONNACK."""

import pytest

from gateway.audit_trail.notes.notes import NoteKind
from gateway.config.limits import Limit
from gateway.config.mqtt_limits import MqttLimits
from gateway.limits.refusals import REASONS
from mq_adapters.embedded.unit_of_work import Note
from spark_audit.custody import reason_codes
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, written


def told(world: World) -> list[Note]:
    world.bridge.tick()
    world.run()
    return [note for note in world.notes if note[0] == NoteKind.CONNECTS_REFUSED]


def wish(topic: str, level: int = 5) -> str:
    """CONNECT of client `self` with a will on a topic of fewer than 100 characters."""
    properties = "00" if level == 5 else ""
    length = 10 + 6 + 2 + len(topic) + 3 + 2 * (level == 5)
    return (
        f"10 {length:02X} 0004 'MQTT' {level:02X} 06 0000 {properties} 0004 'self' {properties} "
        f"{len(topic):04X} '{topic}' 0001 'x'"
    )


@pytest.mark.parametrize(
    ("packet", "answer", "told_of"),
    [
        ("10 10 0004 'MQTT' 05 02 0000 00 0003 'a' 00 'b'", "20 03 00 81 00", ("malformed", "", 5, "", b"\x81")),
        ("10 0F 0004 'MQTT' 04 02 0000 0003 'a' 00 'b'", "", ("malformed", "", 4, "", b"")),
        ("10 0D 0004 'MQTT' 06 02 0000 0001 'a'", "20 02 00 01", ("not_served", "", 0, "", b"\1")),
        ("10 0C 0004 'MQTT' 04 00 0000 0000", "20 02 00 02", ("identifier", "", 4, "", b"\2")),
        ("10 12 0004 'MQTT' 05 02 0000 05 15 0002 'XX' 0000", "20 03 00 8C 00", ("unknown_method", "", 5, "", b"\x8c")),
        ("16 03 01 02", "", ("malformed", "", 0, "", b"")),
        (wish("a/b/c/d"), "20 03 00 90 00", ("limit", "self", 5, "topic_levels", b"\x90")),
        (wish("a/b/c/d", 4), "", ("limit", "self", 4, "topic_levels", b"")),
    ],
)
def test_it_is_told_as_the_client_was_told(
    new_world: NewWorld, packet: str, answer: str, told_of: tuple[object, ...]
) -> None:
    world = new_world(limits=MqttLimits(maximum_topic_levels=3))
    link = FakeLink()
    world.receive(link, packet)
    assert (link.sent, link.is_open) == (written(answer), False)
    (note,) = told(world)
    event, client, network, level, rule, connects, _, code, reason = note[2:]
    assert (event, client, level, rule, code) == told_of
    assert (network, connects) == ("192.0.2.0/24", 1)
    assert bool(reason) is (event != "limit"), "a limit says all by its name"


def test_a_refused_connection_is_counted_when_its_connect_comes(new_world: NewWorld) -> None:
    world = new_world(limits=MqttLimits(maximum_connections=1, maximum_waiting_connections=10))
    links = [FakeLink() for _ in range(4)]
    for link in links:
        world.admission.admit(link)
    assert told(world) == []
    for number, link in enumerate(links):
        world.receive(link, f"10 10 0004 'MQTT' 05 02 0000 00 0003 'c-{number}'")
    assert [link.sent[3:4] for link in links] == [b"\0", b"\x97", b"\x97", b"\x97"]
    (first,) = told(world)
    assert (first[3], first[6], first[7]) == ("c-1", "connections", 1)
    world.bridge.is_stopping = True
    _, counted = told(world)
    assert (counted[3], counted[6], counted[7], counted[9]) == ("", "connections", 2, b"\x97")


def test_a_refused_login_is_counted_among_logins_alone(new_world: NewWorld) -> None:
    world = new_world(publish=("b",))
    link = FakeLink()
    world.receive(link, wish("a"))
    assert link.sent[3:4] == b"\x87"
    assert told(world) == []


def test_the_audit_has_a_code_for_each_limit_that_a_connack_tells_and_for_no_other() -> None:
    """Its table is one of its own. Logins past a limit are told elsewhere."""
    for limit, codes in REASONS.items():
        answers = zip(codes, limit.value.answers, strict=True)
        of_connack = {code for code, answer in answers if "CONNACK" in answer.packets}
        known = reason_codes.of_refused_connect("limit", limit.label, 5) or set()
        assert of_connack == known or limit is Limit.WAITING_LOGINS, limit
