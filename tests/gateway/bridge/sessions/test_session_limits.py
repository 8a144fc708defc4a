"""Each limit that the bridge knows, and the answer of each protocol level; others feel nothing, and it is counted."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.access.login import Admitted, Decision, Entrance, Login
from gateway.audit_trail.notes.notes import NoteKind
from gateway.config.limits import Limit
from gateway.config.mqtt_limits import MqttLimits
from gateway.limits.budgets import Amount
from gateway.mqtt.connection import Connection
from gateway.mqtt.events import ConnectReceived, Will
from gateway.mqtt.properties import WillProperties
from gateway.mqtt.reason_codes import ReasonCode
from mq_adapters.embedded.operators_act import OperatorsAct
from mq_adapters.embedded.unit_of_work import StateKind
from spark_audit.record import LoginProof
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, publish_packet, written

CONNECTS = {
    3: "10 12 0006 'MQIsdp' 03 02 0000 0004 'self'",
    4: "10 10 0004 'MQTT' 04 02 0000 0004 'self'",
    5: "10 11 0004 'MQTT' 05 02 0000 00 0004 'self'",
}
#: CONNECT of a session that stays: not clean, at level 5 with an expiry of an hour.
KEPT = {
    3: "10 12 0006 'MQIsdp' 03 00 0000 0004 '{0}'",
    4: "10 10 0004 'MQTT' 04 00 0000 0004 '{0}'",
    5: "10 16 0004 'MQTT' 05 02 0000 05 11 00000E10 0004 '{0}'",
}
QUOTA_EXCEEDED = ReasonCode.QUOTA_EXCEEDED
UNAVAILABLE = written("20 02 00 03")


def limited(new_world: NewWorld, **limits: int) -> World:
    return new_world(limits=MqttLimits.model_validate(limits))


def connected(world: World, level: int, packet: str = "") -> FakeLink:
    link = FakeLink()
    world.receive(link, packet or CONNECTS[level])
    link.taken()
    return link


def publish(world: World, link: FakeLink, first_byte: int, topic: bytes, payload: bytes = b"x") -> bytes:
    """Sends a PUBLISH with packet identifier 1; returns what comes back."""
    packet = publish_packet(first_byte, topic, payload)
    if link.connection.level == 5:
        behind = 2 + len(topic) + (2 if first_byte & 6 else 0)
        header, body = packet[: -behind - len(payload)], packet[-behind - len(payload) :]
        packet = header[:1] + bytes((header[1] + 1,)) + body[:behind] + b"\0" + body[behind:]
    world.bridge.receive(link, packet)
    world.run()
    return link.taken()


def others_feel_nothing(world: World) -> None:
    other = world.connect("good")
    world.receive(other, "32 07 0003 'a/b' 0001")
    assert other.taken() == written("40 02 0001")
    assert other.is_open


# -- topics ------------------------------------------------------------------------------------------------------------

TOO_LONG = [(b"a" * 21, Limit.TOPIC_BYTES), (b"a/b/c/d/e", Limit.TOPIC_LEVELS)]


@pytest.mark.parametrize(("topic", "limit"), TOO_LONG)
@pytest.mark.parametrize("first_byte", [0x30, 0x32, 0x34])
@pytest.mark.parametrize("level", [3, 4, 5])
def test_a_publish_on_a_topic_that_is_too_long_is_refused(
    new_world: NewWorld, level: int, first_byte: int, topic: bytes, limit: Limit
) -> None:
    world = limited(new_world, maximum_topic_bytes=20, maximum_topic_levels=4)
    link = connected(world, level)
    expected = {0x30: "E0 01 90", 0x32: "40 03 0001 90", 0x34: "50 03 0001 90"}[first_byte] if level == 5 else ""
    assert publish(world, link, first_byte, topic) == written(expected)
    assert link.is_open == (level == 5 and first_byte > 0x30)
    assert world.refusals.totals == {(limit, ReasonCode.TOPIC_NAME_INVALID): 1}
    others_feel_nothing(world)


@pytest.mark.parametrize(("topic_filter", "limit"), TOO_LONG)
@pytest.mark.parametrize(("level", "code"), [(4, "80"), (5, "8F")])
def test_a_filter_that_is_too_long_is_refused_in_the_suback(
    new_world: NewWorld, level: int, code: str, topic_filter: bytes, limit: Limit
) -> None:
    world = limited(new_world, maximum_topic_bytes=20, maximum_topic_levels=4)
    link = connected(world, level)
    properties = "00" if level == 5 else ""
    body = written(f"0001 {properties}") + len(topic_filter).to_bytes(2, "big") + topic_filter + b"\1"
    world.bridge.receive(link, bytes((0x82, len(body))) + body)
    world.run()
    assert link.taken() == written(f"90 04 0001 00 {code}" if level == 5 else f"90 03 0001 {code}")
    assert world.refusals.totals == {(limit, ReasonCode.TOPIC_FILTER_INVALID): 1}


@pytest.mark.parametrize(("level", "answer"), [(3, ""), (4, ""), (5, "20 03 00 90 00")])
def test_a_will_on_a_topic_that_is_too_long_is_refused_with_its_connect(
    new_world: NewWorld, level: int, answer: str
) -> None:
    world = limited(new_world, maximum_topic_levels=2)
    name = {3: "0006 'MQIsdp' 03", 4: "0004 'MQTT' 04", 5: "0004 'MQTT' 05"}[level]
    none = "00" if level == 5 else ""
    body = written(f"{name} 06 0000 {none} 0004 'self' {none} 0005 'a/b/c' 0001 'W'")
    link = FakeLink()
    world.bridge.receive(link, bytes((0x10, len(body))) + body)
    world.run()
    assert (link.is_open, link.taken()) == (False, written(answer))
    assert world.sessions.get("self") is None


# -- subscriptions and sessions ----------------------------------------------------------------------------------------


def test_filters_past_the_limit_of_a_session_have_the_code_of_level_5(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_subscriptions=1)
    link = connected(world, 5)
    world.receive(link, "82 0B 0001 00 0001 'a' 01 0001 'b' 01")
    assert link.taken() == written("90 05 0001 00 01 97")
    world.receive(link, "82 07 0002 00 0001 'a' 01")
    assert link.taken() == written("90 04 0002 00 01")
    assert world.refusals.totals == {(Limit.SUBSCRIPTIONS, QUOTA_EXCEEDED): 1}


def test_filters_that_are_too_long_together_are_refused(new_world: NewWorld) -> None:
    """They stand in the session's row, which is written with each of them."""
    world = limited(new_world, maximum_subscription_characters=6)
    link = connected(world, 5)
    world.receive(link, "82 15 0001 00 0003 'a/b' 01 0003 'c/d' 01 0003 'e/f' 01")
    assert link.taken() == written("90 06 0001 00 01 01 97")
    world.receive(link, "82 09 0002 00 0003 'a/b' 00")
    world.receive(link, "A2 08 0003 00 0003 'a/b'")
    world.receive(link, "82 09 0004 00 0003 'e/f' 01")
    assert link.taken() == written("90 04 0002 00 00 B0 04 0003 00 00 90 04 0004 00 01")


@pytest.mark.parametrize(("level", "answer"), [(3, UNAVAILABLE), (4, UNAVAILABLE), (5, written("20 03 00 97 00"))])
def test_a_session_too_many_that_would_stay_is_refused(new_world: NewWorld, level: int, answer: bytes) -> None:
    """One that ends with its connection is not: connections are limited themselves."""
    world = limited(new_world, maximum_sessions=2)
    for name in ("one1", "two2"):
        world.lose(connected(world, level, KEPT[level].format(name)))
    link = FakeLink()
    world.receive(link, KEPT[level].format("thr3"))
    assert (link.is_open, link.taken()) == (False, answer)
    assert world.sessions.get("thr3") is None
    assert connected(world, level).is_open
    assert connected(world, level, KEPT[level].format("one1")).is_open
    assert world.refusals.totals == {(Limit.SESSIONS, QUOTA_EXCEEDED): 1}
    others_feel_nothing(world)


def test_a_clean_session_is_no_way_around_the_limit_of_sessions(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_sessions=1)
    world.lose(connected(world, 4, KEPT[4].format("one1")))
    clean = connected(world, 4)
    link = FakeLink()
    world.receive(link, KEPT[4].format("self"))
    assert link.taken() == UNAVAILABLE
    assert clean.is_open


# -- connections -------------------------------------------------------------------------------------------------------


class Visitor(FakeLink):
    address = "192.0.2.7"


@pytest.mark.parametrize(("level", "answer"), [(3, UNAVAILABLE), (4, UNAVAILABLE), (5, written("20 03 00 97 00"))])
def test_a_connection_too_many_is_told_so_when_its_connect_has_come(
    new_world: NewWorld, level: int, answer: bytes
) -> None:
    world = limited(new_world, maximum_connections=1)
    first, second = Visitor(), Visitor()
    world.admission.admit(first)
    world.admission.admit(second)
    world.receive(first, CONNECTS[4].replace("self", "else"))
    first.taken()
    world.receive(second, CONNECTS[level], "C0 00")
    assert (second.is_open, second.taken()) == (False, answer)
    assert world.sessions.get("self") is None
    world.receive(first, "C0 00")
    assert first.taken() == written("D0 00")


@pytest.mark.parametrize(("level", "answer"), [(3, UNAVAILABLE), (4, UNAVAILABLE), (5, written("20 03 00 9F 00"))])
def test_connections_too_often_are_told_so(new_world: NewWorld, level: int, answer: bytes) -> None:
    world = limited(new_world, connection_rate_per_address=1)
    links = [Visitor() for _ in range(11)]
    for link in links:
        world.admission.admit(link)
        world.receive(link, CONNECTS[level])
    assert links[-1].taken() == answer
    limited_links = [link for link in links if (link.reason or "").endswith("connection_rate_per_address is reached")]
    assert limited_links == links[-1:]


class EverybodyIsAda(Login):
    """Lets everybody in as the same user."""

    def decide(
        self,
        connect: ConnectReceived,
        is_wanted: Callable[[], bool],
        decided: Callable[[Decision], None],
        entrance: Entrance | None = None,
    ) -> None:
        decided(Admitted(user="ada", proof=LoginProof.PASSWORD))


@pytest.mark.parametrize(("level", "answer"), [(3, UNAVAILABLE), (4, UNAVAILABLE), (5, written("20 03 00 97 00"))])
def test_a_connection_too_many_of_a_user_is_refused_and_a_take_over_is_not(
    new_world: NewWorld, level: int, answer: bytes
) -> None:
    world = new_world(limits=MqttLimits(maximum_connections_per_user=1), login=EverybodyIsAda())
    first, second, again = Visitor(), Visitor(), Visitor()
    for link in (first, second, again):
        world.admission.admit(link)
    world.receive(first, CONNECTS[4].replace("self", "else"))
    assert first.taken() == written("20 02 00 00")
    world.receive(second, CONNECTS[level])
    assert (second.is_open, second.taken()) == (False, answer)
    world.receive(first, "C0 00")
    assert first.taken() == written("D0 00")
    world.receive(again, CONNECTS[4].replace("self", "else"))
    assert again.taken() == written("20 02 00 00")
    assert not first.is_open
    assert world.refusals.totals == {(Limit.CONNECTIONS_PER_USER, QUOTA_EXCEEDED): 1}


# -- in flight ---------------------------------------------------------------------------------------------------------


def windowed() -> FakeLink:
    link = FakeLink()
    link.connection = Connection(levels=(5,), receive_maximum=2)
    return link


def test_the_receive_maximum_is_announced_and_answered_publishes_make_room(world: World) -> None:
    link = windowed()
    world.receive(link, CONNECTS[5])
    assert link.taken() == written("20 06 00 00 03 21 0002")
    for number in range(1, 6):
        world.receive(link, f"32 07 0001 'a' {number:04X} 00 'x'", f"34 07 0001 'a' {number + 9:04X} 00 'x'")
        world.receive(link, f"62 02 {number + 9:04X}")
        assert link.taken() == written(f"40 03 {number:04X} 10 50 02 {number + 9:04X} 70 02 {number + 9:04X}")
    assert link.is_open


def test_more_than_the_receive_maximum_ends_the_connection(world: World) -> None:
    link = windowed()
    world.receive(link, CONNECTS[5])
    link.taken()
    world.receive(link, *(f"34 07 0001 'a' {number:04X} 00 'x'" for number in (1, 2, 3)))
    assert not link.is_open
    assert link.taken().endswith(written("E0 01 93"))
    assert world.refusals.totals == {(Limit.RECEIVE_MAXIMUM, ReasonCode.RECEIVE_MAXIMUM_EXCEEDED): 1}


def test_more_properties_than_a_packet_may_have_end_the_connection_and_are_counted(world: World) -> None:
    link = connected(world, 5)
    properties = written("26 0001 'k' 0001 'v'") * 1_001
    size = len(properties)
    body = written("0001 'a'") + bytes((size & 0x7F | 0x80, size >> 7)) + properties
    world.bridge.receive(link, bytes((0x30, len(body) & 0x7F | 0x80, len(body) >> 7)) + body)
    assert link.taken() == written("E0 01 97")
    assert not link.is_open
    assert world.refusals.totals == {(Limit.PROPERTIES, QUOTA_EXCEEDED): 1}
    others_feel_nothing(world)


def test_publishes_whose_commit_is_under_way_are_not_answered_yet(world: World) -> None:
    link = windowed()
    world.receive(link, CONNECTS[5])
    link.taken()
    world.commits_are_held = True
    for number in (1, 2, 3):
        world.receive(link, f"32 07 0001 'a' {number:04X} 00 'x'")
    assert (link.is_open, link.sent) == (False, written("E0 01 93"))


def test_a_packet_that_is_too_large_ends_the_connection_and_is_counted(world: World) -> None:
    link = FakeLink()
    link.connection = Connection(levels=(3, 4, 5), maximum_packet_bytes=40)
    world.receive(link, CONNECTS[5])
    link.taken()
    world.receive(link, "32 FFFFFF7F")
    assert (link.is_open, link.taken()) == (False, written("E0 01 95"))
    assert world.refusals.totals == {(Limit.PACKET_BYTES, ReasonCode.PACKET_TOO_LARGE): 1}


# -- held at QoS 2 -----------------------------------------------------------------------------------------------------


def held(world: World, link: FakeLink, identifier: int, size: int) -> bytes:
    """A PUBLISH of QoS 2 and level 5 with a payload of that many bytes; returns what comes back."""
    body = b"\x00\x01t" + identifier.to_bytes(2, "big") + b"\x00" + b"x" * size
    length = bytes((len(body) & 0x7F | 0x80, len(body) >> 7 & 0x7F | 0x80, len(body) >> 14))
    world.bridge.receive(link, b"\x34" + length + body)
    world.run()
    return link.taken()


def test_what_all_clients_hold_has_a_limit_and_a_small_one_is_always_taken(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_held_bytes_in_all=250_000)
    links = [connected(world, 5, KEPT[5].format(name)) for name in ("one1", "two2", "thr3")]
    assert [held(world, link, 1, 100_000) for link in links] == [
        written("50 02 0001"),
        written("50 02 0001"),
        written("50 03 0001 97"),
    ]
    assert held(world, links[2], 2, 60_000) == written("50 02 0002"), "it holds nothing else"
    assert held(world, links[2], 3, 20_000) == written("50 03 0003 97")
    assert world.refusals.totals == {(Limit.HELD_BYTES_IN_ALL, QUOTA_EXCEEDED): 2}
    world.receive(links[0], "62 02 0001")
    assert links[0].taken() == written("70 02 0001")
    world.bridge.tick()
    assert held(world, links[2], 4, 20_000) == written("50 02 0004"), "what was released has made room"
    others_feel_nothing(world)


def test_what_was_held_before_a_restart_counts(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_held_bytes_in_all=250_000)
    assert held(world, connected(world, 5, KEPT[5].format("one1")), 1, 200_000) == written("50 02 0001")
    world = limited(new_world, maximum_held_bytes_in_all=250_000)
    assert held(world, connected(world, 5, KEPT[5].format("two2")), 1, 100_000) == written("50 03 0001 97")


def test_small_ones_end_at_twice_the_limit_whoever_comes_under_new_identifiers(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_held_bytes_in_all=250_000)
    answers = []
    for number in range(10):
        link = connected(world, 5, KEPT[5].format(f"one{number}"))
        answers.append(held(world, link, 1, 60_000))
        world.lose(link)
        world.bridge.tick()
    assert answers == [written("50 02 0001")] * 8 + [written("50 03 0001 97")] * 2
    assert world.refusals.totals == {(Limit.HELD_BYTES_IN_ALL, QUOTA_EXCEEDED): 2}
    others_feel_nothing(world)


#: What stands in front of a will's topic in CONNECT: a session of an hour, and a will without properties.
LEAVING = {
    4: "0004 'MQTT' 04 04 0000 0004 '{0}'",
    5: "0004 'MQTT' 05 06 0000 05 11 00000E10 0004 '{0}' 00",
}


def leave(world: World, level: int, client: str, size: int) -> FakeLink:
    """A client that connects with a will of that many bytes."""
    behind = b"\x00\x01w" + size.to_bytes(2, "big") + b"x" * size
    body = written(LEAVING[level].format(client)) + behind
    length = bytes((len(body) & 0x7F | 0x80, len(body) >> 7 & 0x7F | 0x80, len(body) >> 14))
    link = FakeLink()
    world.bridge.receive(link, b"\x10" + length + body)
    world.run()
    return link


@pytest.mark.parametrize(("level", "answer"), [(4, UNAVAILABLE), (5, written("20 03 00 97 00"))])
def test_wills_count_among_what_all_clients_hold(new_world: NewWorld, level: int, answer: bytes) -> None:
    world = limited(new_world, maximum_held_bytes_in_all=100_000)
    links = [leave(world, level, f"one{number}", 60_000) for number in range(4)]
    assert [link.is_open for link in links] == [True, True, True, False]
    assert links[-1].taken() == answer
    assert world.sessions.get("one3") is None
    assert world.refusals.totals == {(Limit.HELD_BYTES_IN_ALL, QUOTA_EXCEEDED): 1}
    others_feel_nothing(world)
    world.bridge.tick()
    world.receive(links[0], "E0 00")
    assert leave(world, level, "more", 60_000).is_open, "a will that is taken back has made room"


def test_a_large_will_is_refused_where_the_room_is_full(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_held_bytes_in_all=100_000)
    assert leave(world, 5, "one1", 65_000).is_open
    large = leave(world, 5, "two2", 65_500)
    assert (large.is_open, large.taken()) == (False, written("20 03 00 97 00"))
    assert leave(world, 5, "thr3", 20_000).is_open


def test_user_properties_of_a_will_count() -> None:
    will = Will("w", b"x" * 10, 1, False, WillProperties(user_properties=(("k" * 60_000, "v" * 5),) * 4))
    assert 240_000 < will.kept_bytes < 242_000


# -- retained ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [3, 4, 5])
@pytest.mark.parametrize("first_byte", [0x33, 0x35])
def test_a_retained_message_too_many_is_refused(new_world: NewWorld, level: int, first_byte: int) -> None:
    world = limited(new_world, maximum_retained_messages=2)
    link = connected(world, level)
    for topic in (b"a", b"b", b"a"):
        assert publish(world, link, 0x33, topic) == written("40 02 0001" if level < 5 else "40 03 0001 10")
    answer = {0x33: "40 03 0001 97", 0x35: "50 03 0001 97"}[first_byte] if level == 5 else ""
    assert publish(world, link, first_byte, b"c") == written(answer)
    assert link.is_open == (level == 5)
    assert world.refusals.totals == {(Limit.RETAINED_MESSAGES, QUOTA_EXCEEDED): 1}
    others_feel_nothing(world)


def test_a_client_whose_will_would_be_a_retained_message_too_many_may_not_connect(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_retained_messages=1)
    world.receive(world.connect("else"), "31 06 0003 'w/t' 'A'")
    new, old = FakeLink(), FakeLink()
    world.receive(new, "10 18 0004 'MQTT' 04 26 0000 0004 'self' 0003 'w/u' 0001 'W'")
    assert (new.taken(), new.is_open) == (UNAVAILABLE, False)
    world.receive(old, "10 18 0004 'MQTT' 04 26 0000 0004 'self' 0003 'w/t' 0001 'W'")
    assert old.taken() == written("20 02 00 00")


def retained(world: World) -> int:
    """How many messages there are, when everything that was taken is retained."""
    world.run()
    world.bridge.tick()
    world.run()
    return len(list(world.engine.states(StateKind.BROKER_RETAINED)))


def test_many_retained_messages_in_one_read_come_no_further_than_one_after_another(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_retained_messages=2)
    link = connected(world, 5)
    sent = b"".join(written(f"33 09 0003 'a/{number}' 000{number} 00 'x'") for number in range(1, 5))
    world.bridge.receive(link, sent)
    world.run()
    assert link.taken() == written("40 03 0001 10 40 03 0002 10 40 03 0003 97 40 03 0004 97")
    assert retained(world) == 2


def test_a_delete_that_waits_for_its_pubrel_makes_no_room(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_retained_messages=1)
    link = connected(world, 5)
    sent = written("33 09 0003 'a/1' 0001 00 'x' 35 08 0003 'a/1' 0002 00 33 09 0003 'a/2' 0003 00 'x'")
    world.bridge.receive(link, sent)
    world.run()
    assert link.taken() == written("40 03 0001 10 50 02 0002 40 03 0003 97")
    assert retained(world) == 1


def test_what_waits_for_its_pubrel_has_its_place_until_it_is_retained_or_given_up(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_retained_messages=2)
    link, other = connected(world, 5), connected(world, 5, KEPT[5].format("more"))
    assert publish(world, other, 0x35, b"held") == written("50 02 0001")
    assert retained(world) == 0
    assert publish(world, link, 0x33, b"a/1") == written("40 03 0001 10")
    assert retained(world) == 1
    assert publish(world, link, 0x33, b"a/2") == written("40 03 0001 97"), "one place is held's"
    session = world.sessions.get("more")
    assert session is not None
    world.bridge.disconnect_handler.expire(session, OperatorsAct(operator="ann", command="PURGE CHANNEL"), world.now_us)
    assert retained(world) == 1
    assert publish(world, link, 0x33, b"a/2") == written("40 03 0001 10"), (
        "its session has ended, and with it the promise"
    )
    assert retained(world) == 2


def test_many_wills_come_no_further_than_one(new_world: NewWorld) -> None:
    """10 1A: will `w/N` "bye" with RETAIN."""
    world = limited(new_world, maximum_retained_messages=2)
    links = [
        connected(world, 5, f"10 1A 0004 'MQTT' 05 26 0000 00 0002 's{n}' 00 0003 'w/{n}' 0003 'bye'") for n in "123"
    ]
    assert [link.is_open for link in links] == [True, True, False]
    for link in links[:2]:
        world.lose(link)
    assert retained(world) == 2


def test_a_will_that_is_delayed_keeps_its_place_over_a_restart(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_retained_messages=1)
    will = "10 24 0004 'MQTT' 05 26 0000 05 11 00000E10 0002 's1' 05 18 0000003C 0003 'w/1' 0003 'bye'"
    assert connected(world, 5, will).is_open
    world = limited(new_world, maximum_retained_messages=1)
    assert publish(world, connected(world, 5), 0x33, b"a/1") == written("40 03 0001 97")


def test_deleting_and_replacing_what_is_retained_is_no_message_more(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_retained_messages=1)
    link = connected(world, 4)
    for topic, payload in ((b"a", b"1"), (b"b", b""), (b"a", b"2"), (b"a", b""), (b"b", b"3")):
        assert publish(world, link, 0x33, topic, payload) == written("40 02 0001")
    assert world.refusals.totals == {}


def test_a_retained_message_too_many_of_qos_0_is_dropped_and_the_audit_hears_of_it(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_retained_messages=1)
    link = connected(world, 4)
    assert publish(world, link, 0x31, b"a") == publish(world, link, 0x31, b"b") == b""
    assert link.is_open
    world.engine.tick()
    world.run()
    assert [note[-1] for note in world.notes if note[0] == NoteKind.DROPPED] == ["maximum_retained_messages is reached"]


# -- budgets that nest -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "codes"), [(4, "90 03 0002 80"), (5, "90 04 0002 00 97")])
def test_a_new_identifier_does_not_bring_its_address_more_filters(new_world: NewWorld, level: int, codes: str) -> None:
    world = limited(new_world, maximum_subscriptions_per_address=2)
    first = world.connect("frst")
    world.receive(first, "82 0C 0001 0001 'a' 01 0003 'b/c' 01")
    link = connected(world, level, KEPT[level].format("next"))
    none = "00" if level == 5 else ""
    world.receive(link, f"82 {'07' if level == 5 else '06'} 0002 {none} 0001 'a' 01")
    assert link.taken() == written(codes)
    assert world.refusals.totals == {(Limit.SUBSCRIPTIONS_PER_ADDRESS, QUOTA_EXCEEDED): 1}
    world.receive(first, "A2 05 0003 0001 'a'")
    world.receive(link, f"82 {'07' if level == 5 else '06'} 0002 {none} 0001 'a' 01")
    assert link.taken()[-1] == 1, "a filter that was given up makes room"


@pytest.mark.parametrize(("level", "answer"), [(3, UNAVAILABLE), (4, UNAVAILABLE), (5, written("20 03 00 97 00"))])
def test_an_address_has_no_more_sessions_that_stay_than_its_limit(
    new_world: NewWorld, level: int, answer: bytes
) -> None:
    world = limited(new_world, maximum_sessions_per_address=1)
    connected(world, 4, KEPT[4].format("frst"))
    link = FakeLink()
    world.receive(link, KEPT[level].format("next"))
    assert (link.is_open, link.taken()) == (False, answer)
    elsewhere = FakeLink()
    elsewhere.peer = "192.0.2.8:50000"
    world.receive(elsewhere, KEPT[level].format("next"))
    assert elsewhere.is_open
    assert world.refusals.totals == {(Limit.SESSIONS_PER_ADDRESS, QUOTA_EXCEEDED): 1}


def test_budgets_are_the_same_after_a_restart(new_world: NewWorld, tmp_path: Path) -> None:
    world = new_world(limits=MqttLimits())
    link = connected(world, 5, KEPT[5].format("self"))
    world.receive(link, "82 0B 0001 00 0001 'a' 01 0001 'b' 01")
    world.receive(link, "82 10 0002 00 000A '$share/g/a' 01")
    before = [(each.key, each.amounts) for each in world.sessions.get("self").account.line()]  # type: ignore[union-attr]
    charged = {Amount.SESSIONS: 1, Amount.SUBSCRIPTIONS: 3, Amount.LEVELS: 5}
    assert all({each: amounts[each] for each in charged} == charged for _, amounts in before)
    again = new_world(world.kill(tmp_path / "killed"), limits=MqttLimits())
    after = [(each.key, each.amounts) for each in again.sessions.get("self").account.line()]  # type: ignore[union-attr]
    assert after == before


@pytest.mark.parametrize(("level", "answer"), [(4, "90 03 0002 80"), (5, "90 04 0002 00 97")])
def test_deep_filters_cost_what_they_take_of_memory(new_world: NewWorld, level: int, answer: str) -> None:
    """2,000 filters of 200 levels took 127 MiB, for ever."""
    world = limited(new_world, maximum_subscriptions=10, maximum_subscription_levels=5)
    link = connected(world, level)
    properties = "00" if level == 5 else ""
    world.receive(link, f"82 {10 + level // 5:02X} 0001 {properties} 0005 'a/b/c' 01")
    link.taken()
    world.receive(link, f"82 {10 + level // 5:02X} 0002 {properties} 0005 'd/e/f' 01")
    assert link.taken() == written(answer)
    assert world.refusals.totals == {(Limit.SUBSCRIPTION_LEVELS, QUOTA_EXCEEDED): 1}
    world.receive(link, f"82 {10 + level // 5:02X} 0003 {properties} 0005 'a/b/c' 00")
    assert link.taken()[-1:] == b"\x00"  # it has that one already


def test_deep_filters_count_against_the_address_under_every_identifier(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_subscription_levels=5, maximum_subscription_levels_per_address=5)
    first, second = connected(world, 4), FakeLink()
    world.receive(first, "82 0A 0001 0005 'a/b/c' 01")
    world.receive(second, KEPT[4].format("next"))
    second.taken()
    world.receive(second, "82 0A 0001 0005 'd/e/f' 01")
    assert second.taken() == written("90 03 0001 80")
    world.receive(first, "A2 09 0002 0005 'a/b/c'")
    world.receive(second, "82 0A 0002 0005 'd/e/f' 01")
    assert second.taken() == written("90 03 0002 01")


def test_a_session_that_ends_releases_what_it_had(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_subscriptions_in_all=10)
    link = connected(world, 5)
    world.receive(link, "82 0B 0001 00 0001 'a' 01 0001 'b' 01")
    assert world.sessions.budgets.everybody.amounts[Amount.SUBSCRIPTIONS] == 2
    world.lose(link)
    assert not any(world.sessions.budgets.everybody.amounts)
    assert len(world.sessions.budgets) == 0
