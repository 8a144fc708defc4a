"""A topic that MQ cannot say is refused before anything is acknowledged, by the answer of each protocol level."""

from collections.abc import Callable

import pytest

from gateway.access.login import Admitted, Decision, Entrance, Login
from gateway.config import RouteSettings, TargetSettings
from gateway.config.limits import Limit
from gateway.config.mqtt_limits import MqttLimits
from gateway.mqtt.events import ConnectReceived
from gateway.mqtt.reason_codes import ReasonCode
from mappings.commands.command import Dialect
from mq_adapters.embedded.unit_of_work import PublicationCounter
from spark_audit.record import LoginProof
from tests.gateway.bridge.conftest import (
    DEFAULT_STREAM,
    FakeLink,
    NewWorld,
    World,
    publish_packet,
    remaining_length,
    written,
)

CONNECTS = {
    3: "10 12 0006 'MQIsdp' 03 02 0000 0004 'self'",
    4: "10 10 0004 'MQTT' 04 02 0000 0004 'self'",
    5: "10 11 0004 'MQTT' 05 02 0000 00 0004 'self'",
}
LONGEST = b"t" * 10_240
TOO_LONG = LONGEST + b"t"
#: What XML 1.0 has no form for; a client of MQTT 3.1 alone gets so far with it.
NO_XML = ["\x01", "\x1f", "\ufffe", "\uffff"]
NAME, FILTER = ReasonCode.TOPIC_NAME_INVALID, ReasonCode.TOPIC_FILTER_INVALID


def connected(world: World, level: int) -> FakeLink:
    link = FakeLink()
    world.receive(link, CONNECTS[level])
    link.taken()
    return link


def publish(world: World, link: FakeLink, first_byte: int, topic: bytes) -> bytes:
    """Sends a PUBLISH with packet identifier 1; returns what comes back."""
    payload = b"A"
    if link.connection.level == 5:  # no properties, between the identifier and the payload
        payload = b"\0A"
    world.bridge.receive(link, publish_packet(first_byte, topic, payload))
    world.run()
    return link.taken()


def subscribe(world: World, link: FakeLink, topic_filter: bytes) -> bytes:
    none = b"\0" if link.connection.level == 5 else b""
    body = b"\0\1" + none + len(topic_filter).to_bytes(2, "big") + topic_filter + b"\1"
    world.bridge.receive(link, b"\x82" + remaining_length(len(body)) + body)
    world.run()
    return link.taken()


class EverybodyIsWhoTheySay(Login):
    def decide(
        self,
        connect: ConnectReceived,
        is_wanted: Callable[[], bool],
        decided: Callable[[Decision], None],
        entrance: Entrance | None = None,
    ) -> None:
        decided(Admitted(user=connect.user_name, proof=LoginProof.PASSWORD))


def connect_with_will(world: World, level: int, topic: bytes, user: str = "") -> FakeLink:
    name = {3: "0006 'MQIsdp' 03", 4: "0004 'MQTT' 04", 5: "0004 'MQTT' 05"}[level]
    none = b"\0" if level == 5 else b""
    will = none + len(topic).to_bytes(2, "big") + topic + written("0001 'W'")
    body = written(name + (" 86" if user else " 06") + " 0000") + none + written("0004 'self'") + will
    body += len(user).to_bytes(2, "big") + user.encode() if user else b""
    link = FakeLink()
    world.bridge.receive(link, b"\x10" + remaining_length(len(body)) + body)
    world.run()
    return link


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("first_byte", [0x30, 0x31, 0x32, 0x33, 0x34, 0x35])
@pytest.mark.parametrize("level", [3, 4, 5])
def test_a_publish_on_a_topic_that_is_too_long_for_mq_is_refused(
    new_world: NewWorld, level: int, first_byte: int, dialect: Dialect
) -> None:
    world = new_world(dialect=dialect, has_broker=False)
    link = connected(world, level)
    assert publish(world, link, first_byte, LONGEST) == written(["", "40 02 0001", "50 02 0001"][first_byte >> 1 & 3])
    link = connected(world, level)
    puts = world.depth(DEFAULT_STREAM)
    expected = ["E0 01 90", "40 03 0001 90", "50 03 0001 90"][first_byte >> 1 & 3] if level == 5 else ""
    assert publish(world, link, first_byte, TOO_LONG) == written(expected)
    assert link.is_open == (level == 5 and first_byte > 0x31)
    assert world.depth(DEFAULT_STREAM) == puts
    assert world.messages("SYSTEM.DEAD.LETTER.QUEUE") == []
    assert world.refusals.totals == {(Limit.TOPIC_CHARACTERS, NAME): 1}


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("character", NO_XML)
def test_a_character_that_xml_has_not_closes_a_client_of_3_1_where_the_header_is_xml(
    new_world: NewWorld, character: str, qos: int
) -> None:
    """MQRFH can say it."""
    topic = f"a/{character}b".encode()
    for dialect in Dialect:
        world = new_world(dialect=dialect)
        link = connected(world, 3)
        assert subscribe(world, link, b"a/#") == written("90 03 0001 01")
        answer = publish(world, link, 0x30 | qos << 1, topic)
        assert (link.is_open, bool(answer)) == ((dialect is Dialect.MQRFH,) * 2)
        assert (topic in answer) == (dialect is Dialect.MQRFH and qos < 2)
        assert world.messages("SYSTEM.DEAD.LETTER.QUEUE") == []


def test_what_mqrfh_must_escape_counts_twice(new_world: NewWorld) -> None:
    """A retained message of such a topic could not be deleted: DeletePub has the escapes in its pattern."""
    for dialect, answer in ((Dialect.MQRFH2, "40 02 0001"), (Dialect.MQRFH, "40 03 0001 90")):
        world = new_world(dialect=dialect, has_broker=False)
        assert publish(world, connected(world, 5), 0x33, b"%" * 5_121) == written(answer)
        assert publish(world, connected(world, 5), 0x33, b"%" * 5_120) == written("40 02 0001")


@pytest.mark.parametrize(("header", "escapes"), [("mqrfh", 1), ("mqrfh2", 0)])
def test_at_a_target_its_header_and_the_prefix_of_its_stream_count(
    new_world: NewWorld, header: str, escapes: int
) -> None:
    """The embedded broker's header is the other one. `$SYS/STREAM/A%B/` has 16 characters, and an escape in MQRFH."""
    target = TargetSettings.model_validate({"name": "QM1", "header": header, "streams": "message_broker"})
    route = RouteSettings.model_validate({"target": "QM1", "topics": ["t/#"], "stream": "A%B"})
    own = Dialect.MQRFH if header == "mqrfh2" else Dialect.MQRFH2
    world = new_world(dialect=own, targets=(target,), routes=(route,))
    link = connected(world, 5)
    longest = b"t/" + b"t" * (10_240 - 16 - escapes - 2)
    assert publish(world, link, 0x32, longest) == written("40 02 0001")
    assert publish(world, link, 0x32, longest + b"t") == written("40 03 0001 90")
    assert subscribe(world, link, longest + b"t") == written("90 04 0001 00 8F")
    assert world.depth("RFHBRIDGE.XMIT.QM1.0") == 1
    old = connected(world, 3)
    assert publish(world, old, 0x32, b"t/\x01") == (written("40 02 0001") if header == "mqrfh" else b"")


@pytest.mark.parametrize(("level", "answer"), [(3, ""), (4, ""), (5, "20 03 00 90 00")])
@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_will_that_mq_cannot_say_is_refused_with_its_connect(
    new_world: NewWorld, dialect: Dialect, level: int, answer: str
) -> None:
    world = new_world(dialect=dialect)
    link = connect_with_will(world, level, TOO_LONG)
    assert (link.is_open, link.taken()) == (False, written(answer))
    assert world.sessions.get("self") is None
    assert world.refusals.totals == {(Limit.TOPIC_CHARACTERS, NAME): 1}
    assert connect_with_will(world, level, LONGEST).is_open


@pytest.mark.parametrize(("level", "answer"), [(4, ""), (5, "20 03 00 83 00")])
def test_a_will_whose_user_its_target_cannot_name_is_refused_with_its_connect(
    new_world: NewWorld, level: int, answer: str
) -> None:
    """So is a PUBLISH; and when the will is due nobody could be told."""
    target = TargetSettings.model_validate({"name": "QM1", "set_identity": True})
    route = RouteSettings.model_validate({"target": "QM1", "topics": ["a/#"]})
    world = new_world(targets=(target,), routes=(route,), login=EverybodyIsWhoTheySay())
    link = connect_with_will(world, level, b"a/w", user="somebody.with.a.long.name")
    assert (link.is_open, link.taken()) == (False, written(answer))
    assert connect_with_will(world, level, b"b/w", user="somebody.with.a.long.name").is_open
    assert connect_with_will(world, level, b"a/w", user="anna").is_open


@pytest.mark.parametrize(("level", "answer"), [(3, ""), (4, "90 03 0001 80"), (5, "90 04 0001 00 8F")])
@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_filter_that_mq_cannot_say_is_refused_in_the_suback(
    new_world: NewWorld, dialect: Dialect, level: int, answer: str
) -> None:
    world = new_world(dialect=dialect)
    link = connected(world, level)
    assert subscribe(world, link, TOO_LONG) == written(answer)
    assert world.registrations() == 0
    assert world.refusals.totals == {(Limit.TOPIC_CHARACTERS, FILTER): 1}
    assert subscribe(world, connected(world, level), LONGEST)[-1] == 1


def test_the_limit_in_bytes_that_holds_by_default_is_what_mq_carries_at_the_most() -> None:
    assert MqttLimits().maximum_topic_bytes == 4 * 10_240


def test_a_topic_that_was_found_in_order_is_not_looked_at_again(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = new_world()
    link = connected(world, 4)
    assert publish(world, link, 0x32, b"a/b") == written("40 02 0001")

    def looked_at(*_arguments: object) -> None:
        raise AssertionError("a known topic is looked at")

    monkeypatch.setattr("gateway.config.routes.check_topic_text", looked_at)
    assert publish(world, link, 0x33, b"a/b") == written("40 02 0001")
    with pytest.raises(AssertionError):
        publish(world, link, 0x32, b"a/c")
    with pytest.raises(AssertionError, match="received=3, repeats=0, wills=0, published=2"):
        world.check_balance()  # a fault of the program that forgets a PUBLISH is found
    world.engine.counters.count(PublicationCounter.GIVEN_UP, 1)
