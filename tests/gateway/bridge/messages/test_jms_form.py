"""Publications in the form of JMS: their headers here and at a target, and what the audit predicts of them.

The packets are typed by hand: PUBLISH of MQTT 5 on a/b with Payload Format Indicator 1 (01 01).
"""

import pytest

import tests.headers
from tests.gateway.bridge.audited import assert_every_conversion_is_as_the_audit_predicts, records
from tests.gateway.bridge.commands.test_target_messages import mqrfh2
from tests.gateway.bridge.conftest import DEFAULT_STREAM, NOW_US, NewWorld, World, written
from tests.gateway.bridge.connect.test_level_5_sessions import connect, pass_seconds
from tests.gateway.bridge.deliver.test_deliveries_from_targets import configured
from tests.gateway.bridge.remote import Remote, headers

PSC = "<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"
SAYS = "<usr><rfhbPayloadFormat dt='i4'>1</rfhbPayloadFormat></usr>"
PLAIN = "30 07 0003 'a/b' 00 'X'"
TEXT_0, TEXT_1, TEXT_2 = (
    f"{first} 0003 'a/b' {rest} 02 0101 'X'" for first, rest in (("30 09", ""), ("32 0B", "0001"), ("34 0B", "0002"))
)
NO_UTF_8, EMPTY = "32 0B 0003 'a/b' 0001 02 0101 FF", "32 0A 0003 'a/b' 0001 02 0101"


def of_jms(kind: str, *, mode: int, seconds: int = 0, topic: str = "a/b") -> tuple[str, str, str]:
    time_ms = NOW_US // 1_000 + seconds * 1_000
    return (
        f"<mcd><Msd>{kind}</Msd></mcd>",
        f"<jms><Dst>topic://{topic}</Dst><Tms>{time_ms}</Tms><Pri>0</Pri><Dlv>{mode}</Dlv></jms>",
        f"<mqps><Top>{topic}</Top></mqps>",
    )


def text(*folders: str) -> bytes:
    return tests.headers.mqrfh2(*folders, format=b"MQSTR   ")


def the_body(world: World) -> bytes:
    (message,) = world.messages(DEFAULT_STREAM)
    return message.body


def left_out(world: World) -> list[list[str]]:
    (found,) = [record.get("dropped_fields", []) for record in records(world) if record["kind"] == "put"]
    return found


@pytest.mark.parametrize(
    ("packet", "expected"),
    [
        (PLAIN, mqrfh2(PSC, *of_jms("jms_bytes", mode=1)) + b"X"),
        (TEXT_0, text(PSC, *of_jms("jms_text", mode=1), SAYS) + b"X"),
        (TEXT_1, text(PSC, *of_jms("jms_text", mode=2), SAYS) + b"X"),
        (EMPTY, text(PSC, *of_jms("jms_text", mode=2), SAYS)),
    ],
)
def test_a_publish_is_a_message_of_jms(new_world: NewWorld, packet: str, expected: bytes) -> None:
    world = new_world(has_broker=False, jms_folders=True)
    world.receive(connect(world, "self"), packet)
    assert the_body(world) == expected
    assert left_out(world) == []
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_a_payload_that_is_no_utf_8_is_bytes_whatever_its_publisher_says(new_world: NewWorld) -> None:
    world = new_world(has_broker=False, jms_folders=True)
    world.receive(connect(world, "self"), NO_UTF_8)
    assert the_body(world) == mqrfh2(PSC, *of_jms("jms_bytes", mode=2), SAYS) + b"\xff"
    assert left_out(world) == [["jms_text", "the payload is no UTF-8: it is bytes"]]
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_without_the_option_nothing_is_written(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    world.receive(connect(world, "self"), NO_UTF_8)
    assert the_body(world) == mqrfh2(PSC, SAYS) + b"\xff"
    assert left_out(world) == []


def test_a_publish_of_qos_2_has_the_time_of_its_pubrel(new_world: NewWorld) -> None:
    world = new_world(has_broker=False, jms_folders=True)
    link = connect(world, "self")
    world.receive(link, TEXT_2)
    pass_seconds(world, 60)
    world.receive(link, "62 02 0002")
    assert the_body(world) == text(PSC, *of_jms("jms_text", mode=2, seconds=60), SAYS) + b"X"
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_a_will_is_a_message_of_jms_too(new_world: NewWorld) -> None:
    world = new_world(has_broker=False, jms_folders=True)
    world.lose(connect(world, "self", flags="0E", payload="02 0101 0003 'a/b' 0001 'X'"))
    assert the_body(world) == text(PSC, *of_jms("jms_text", mode=2), SAYS) + b"X"
    assert_every_conversion_is_as_the_audit_predicts(world)


@pytest.mark.parametrize("packet", [PLAIN, TEXT_1])
def test_an_mqtt_subscriber_gets_what_was_published(new_world: NewWorld, packet: str) -> None:
    world = new_world(jms_folders=True)
    link = connect(world, "other")
    world.receive(link, "82 09 0001 00 0003 'a/#' 01")
    link.taken()
    world.receive(connect(world, "self"), packet)
    assert link.taken() == written(packet)
    (told,) = [record["dropped_fields"] for record in records(world) if record["kind"] == "delivered"]
    assert [name for name, _ in told] == ["mcd", "jms", "mqps"]
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_only_a_target_whose_option_says_so_gets_the_folders(new_world: NewWorld, remotes: type[Remote]) -> None:
    world = new_world(**configured(jms_folders=True), has_broker=False)
    world.receive(connect(world, "self"), TEXT_1)
    world.receive(connect(world, "else"), "32 09 0003 'b/c' 0001 00 'X'")
    (to_target,) = headers(world)
    for folder in of_jms("jms_text", mode=2):
        assert folder in to_target
    assert the_body(world) == mqrfh2(PSC.replace("a/b", "b/c")) + b"X"
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_the_destination_at_a_target_has_the_prefix_of_its_stream(new_world: NewWorld) -> None:
    world = new_world(**configured("RESULTS", jms_folders=True, streams="queue_manager"))
    world.receive(connect(world, "self"), PLAIN)
    (to_target,) = headers(world)
    for folder in of_jms("jms_bytes", mode=1, topic="RESULTS/a/b"):
        assert folder in to_target
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_a_user_property_with_the_name_of_the_report_is_none(new_world: NewWorld) -> None:
    world = new_world(has_broker=False, jms_folders=True, user_properties="each")
    world.receive(connect(world, "self"), "32 19 0003 'a/b' 0001 10 0101 26 0008 'jms_text' 0001 '1' 'X'")
    assert b"jms_text</Msd>" in the_body(world)
    assert [name for name, _ in left_out(world)] == ["jms_text"]
    assert_every_conversion_is_as_the_audit_predicts(world)
