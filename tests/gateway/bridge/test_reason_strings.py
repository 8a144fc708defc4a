"""Every refusal to a client of MQTT 5 says why in words, as far as the client wants and takes them, and no more."""

from collections.abc import Callable

import pytest

from gateway.access.access_list import AccessList
from gateway.access.login import Decision, Entrance, Login, Refused
from gateway.access.refused_logins import LoginRefusal
from gateway.config.limits import Limit
from gateway.config.mqtt_limits import MqttLimits
from gateway.mqtt.events import ConnectReceived
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.mqtt.reason_strings import REASON_STRINGS, reason_string
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, publish_packet, written
from tests.gateway.bridge.publish.test_queues_that_take_nothing import alter
from tests.gateway.bridge.subscribe.test_subscriptions_at_targets import configured

CONNECT = "10 11 0004 'MQTT' 05 02 0000 00 0004 'self'"
RULES = AccessList.parse('[[rule]]\npublish = "ok/#"\nsubscribe = "ok/#"\n', "rules")
OK = ReasonCode.SUCCESS
TOO_LONG = b"ok/" + b"t" * 10_240


class NobodyComesIn(Login):
    def __init__(self, refused: Refused) -> None:
        super().__init__()
        self._refused = refused

    def decide(
        self,
        connect: ConnectReceived,
        is_wanted: Callable[[], bool],
        decided: Callable[[Decision], None],
        entrance: Entrance | None = None,
    ) -> None:
        decided(self._refused)


def connected(world: World, packet: str = CONNECT) -> FakeLink:
    link = FakeLink()
    world.receive(link, packet)
    assert link.taken()[3] == OK
    assert link.told == []
    return link


def with_problems(maximum_bytes: int = 0, *, are_wanted: bool) -> str:
    """CONNECT with Maximum Packet Size, if any, and Request Problem Information."""
    properties = f"27 {maximum_bytes:08X} " if maximum_bytes else ""
    properties += f"17 {are_wanted:02X}"
    length = len(bytes.fromhex(properties))
    return f"10 {17 + length:02X} 0004 'MQTT' 05 02 0000 {length:02X} {properties} 0004 'self'"


# -- the table ---------------------------------------------------------------------------------------------------------


def test_every_failure_and_every_limit_has_its_words() -> None:
    assert {code for code in ReasonCode if code >= FAILURE} <= set(REASON_STRINGS)
    told = [limit.value.told for limit in Limit if limit.value.told]
    assert len(told) > 15
    for text in (*REASON_STRINGS.values(), *told):
        assert text.isprintable()
        assert 10 < len(text) <= 100


def test_what_is_told_can_be_written_and_is_short() -> None:
    assert reason_string(0x81, "a\x01\ud800\n" + "x" * 500) == "a???" + "x" * 196
    assert [reason_string(code) for code in (0, 1, 2, 0x10)] == [None] * 4


# -- CONNACK -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("refusal", list(LoginRefusal))
@pytest.mark.parametrize("packet", [CONNECT, with_problems(are_wanted=False)])
def test_a_login_that_fails_is_told_by_its_code_alone(new_world: NewWorld, refusal: LoginRefusal, packet: str) -> None:
    """Not whether the user exists, nor what the log says. Where the client asked for no problems, too."""
    world = new_world(login=NobodyComesIn(Refused(refusal=refusal, reason="no line for bob in the password file")))
    link = FakeLink()
    world.receive(link, packet)
    code = ReasonCode(link.taken()[3])
    assert link.told == [REASON_STRINGS[code]]


def test_a_connect_that_is_past_a_limit_is_told_which(new_world: NewWorld) -> None:
    world = new_world(limits=MqttLimits(maximum_sessions=1))
    connected(world, "10 16 0004 'MQTT' 05 02 0000 05 11 00000E10 0004 'more'")
    link = FakeLink()
    world.receive(link, "10 16 0004 'MQTT' 05 02 0000 05 11 00000E10 0004 'self'")
    assert link.told == [Limit.SESSIONS.value.told]


def test_a_will_that_may_not_be_or_cannot_be_is_told_so(new_world: NewWorld) -> None:
    world = new_world(access_list=RULES)
    for topic, told in ((b"bad", REASON_STRINGS[ReasonCode.NOT_AUTHORIZED]), (TOO_LONG, "MQ cannot carry the topic: ")):
        body = written("0004 'MQTT' 05 06 0000 00 0004 'self' 00") + len(topic).to_bytes(2, "big") + topic
        body += written("0001 'W'")
        link = FakeLink()
        world.bridge.receive(link, b"\x10" + publish_packet(0x30, b"", body[2:])[1 : -len(body)] + body)
        world.run()
        assert link.told[0].startswith(told)


def test_what_is_wrong_with_a_connect_is_told(world: World) -> None:
    link = FakeLink()
    world.receive(link, "10 11 0004 'MQTT' 05 03 0000 00 0004 'self'")
    assert link.taken() == written("20 03 00 81 00")
    assert link.told == ["CONNECT has the reserved flag set (MQTT-3.1.2-3)"]
    link = FakeLink()
    world.receive(link, "10 16 0004 'MQTT' 05 02 0000 05 15 0002 'jw' 0004 'self'")
    assert link.taken() == written("20 03 00 8C 00")
    assert link.told == [REASON_STRINGS[ReasonCode.BAD_AUTHENTICATION_METHOD]]


@pytest.mark.parametrize(
    ("connect", "answer"), [(CONNECT, "20 03 00 88 00"), ("10 10 0004 'MQTT' 04 02 0000 0004 'self'", "20 02 00 03")]
)
def test_a_connect_that_meets_a_stopping_gateway_is_told_to_come_back(world: World, connect: str, answer: str) -> None:
    world.bridge.is_stopping = True
    link = FakeLink()
    world.receive(link, connect)
    link.close("the gateway stops", ReasonCode.SERVER_SHUTTING_DOWN)
    assert link.taken() == written(answer)
    assert link.told == ([REASON_STRINGS[ReasonCode.SERVER_SHUTTING_DOWN]] if connect == CONNECT else [])


# -- the packets of a session ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("qos", [1, 2])
def test_a_publish_that_is_refused_is_told_why(new_world: NewWorld, qos: int) -> None:
    world = new_world(access_list=RULES, limits=MqttLimits(maximum_retained_messages=1, maximum_topic_levels=3))
    link = connected(world)
    refusals = {
        b"bad": (0x87, REASON_STRINGS[ReasonCode.NOT_AUTHORIZED]),
        TOO_LONG: (0x90, Limit.TOPIC_CHARACTERS.value.told),
        b"ok/1/2/3": (0x90, Limit.TOPIC_LEVELS.value.told),
    }
    for topic, (code, told) in refusals.items():
        world.bridge.receive(link, publish_packet(0x30 | qos << 1, topic, b"\0A"))
        world.run()
        assert link.taken() == written(f"{'40' if qos == 1 else '50'} 03 0001 {code:02X}")
        assert link.told.pop() == told


def test_what_a_queue_does_not_take_is_told_without_its_name(new_world: NewWorld) -> None:
    world = new_world(**configured())
    alter(world, "MAXDEPTH(0)")
    link = connected(world)
    world.receive(link, "32 08 0003 'a/b' 0001 00")
    assert link.taken() == written("40 03 0001 97")
    assert link.told == [REASON_STRINGS[ReasonCode.QUOTA_EXCEEDED]]


def test_pubcomp_for_nothing_is_told_so(world: World) -> None:
    link = connected(world)
    world.receive(link, "62 02 0007")
    assert link.taken() == written("70 03 0007 92")
    assert link.told == [REASON_STRINGS[ReasonCode.PACKET_IDENTIFIER_NOT_FOUND]]


def test_suback_tells_each_reason_once_behind_its_code(new_world: NewWorld) -> None:
    world = new_world(access_list=RULES, limits=MqttLimits(maximum_topic_levels=2))
    link = connected(world)
    world.receive(link, "82 0F 0001 00 0003 'bad' 00 0003 'ba2' 00")
    assert link.taken() == written("90 05 0001 00 87 87")
    assert link.told.pop() == REASON_STRINGS[ReasonCode.NOT_AUTHORIZED]
    world.receive(link, "82 19 0002 00 0003 'bad' 00 0006 'ok/1/2' 00 0004 'ok/1' 00")
    assert link.taken() == written("90 06 0002 00 87 8F 00")
    assert link.told.pop() == f"87: {REASON_STRINGS[ReasonCode.NOT_AUTHORIZED]}; 8F: {Limit.TOPIC_LEVELS.value.told}"


def test_unsuback_tells_of_what_was_not_subscribed(world: World) -> None:
    link = connected(world)
    world.receive(link, "A2 06 0001 00 0001 'a'")
    assert link.taken() == written("B0 04 0001 00 11")
    assert link.told == [REASON_STRINGS[ReasonCode.NO_SUBSCRIPTION_EXISTED]]


def test_what_was_wrong_with_a_packet_is_told_in_the_disconnect(world: World) -> None:
    link = connected(world)
    world.receive(link, "32 08 0003 'a/+' 0001 00")
    assert link.taken() == written("E0 01 81")
    assert link.told == ["the topic name holds a wildcard"]
    assert not link.is_open


def test_who_is_taken_over_refused_at_qos_0_or_ended_by_an_operator_is_told_so(new_world: NewWorld) -> None:
    world = new_world(access_list=RULES)
    first = connected(world)
    second = connected(world)
    assert (first.taken(), first.told) == (written("E0 01 8E"), [REASON_STRINGS[ReasonCode.SESSION_TAKEN_OVER]])
    world.receive(second, "30 06 0003 'bad' 00")
    assert (second.taken(), second.told) == (written("E0 01 87"), [REASON_STRINGS[ReasonCode.NOT_AUTHORIZED]])
    third = connected(world)
    third.close("the operator has disconnected the client", ReasonCode.ADMINISTRATIVE_ACTION)
    assert third.told == [REASON_STRINGS[ReasonCode.ADMINISTRATIVE_ACTION]]


# -- what the client wants and takes -----------------------------------------------------------------------------------


def test_a_client_that_wants_no_problems_is_told_in_connack_and_disconnect_alone(new_world: NewWorld) -> None:
    """MQTT-3.1.2-29."""
    world = new_world(access_list=RULES)
    link = connected(world, with_problems(are_wanted=False))
    world.receive(link, "32 08 0003 'bad' 0001 00", "34 08 0003 'bad' 0002 00", "62 02 0007")
    world.receive(link, "82 09 0003 00 0003 'bad' 00", "A2 08 0004 00 0003 'bad'")
    assert link.taken() == written("40 03 0001 87 50 03 0002 87 70 03 0007 92 90 04 0003 00 87 B0 04 0004 00 11")
    assert link.told == []
    world.receive(link, "30 06 0003 'bad' 00")
    assert link.told == [REASON_STRINGS[ReasonCode.NOT_AUTHORIZED]]


def test_a_client_is_told_nothing_that_makes_a_packet_larger_than_it_takes(new_world: NewWorld) -> None:
    """MQTT-3.4.2-2, MQTT-3.9.2-1, MQTT-3.14.2-3 and their like."""
    world = new_world(access_list=RULES)
    told = REASON_STRINGS[ReasonCode.NOT_AUTHORIZED]
    puback = 2 + 2 + 1 + 1 + 1 + 2 + len(told)
    for maximum, is_told in ((puback, True), (puback - 1, False)):
        link = connected(world, with_problems(maximum, are_wanted=True))
        world.receive(link, "32 08 0003 'bad' 0001 00")
        assert link.taken() == written("40 03 0001 87")
        assert link.told == [told] * is_told
    world.receive(link, "82 09 0003 00 0003 'bad' 00")
    world.receive(link, "30 06 0003 'bad' 00")
    assert link.taken() == written("90 04 0003 00 87 E0 01 87")
    assert link.told == [told], "the DISCONNECT is two bytes shorter"
