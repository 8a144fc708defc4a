"""Shapes of filters are limited, so that no choice of filters and topics makes a PUBLISH or a delivery long work."""

import logging
import re
from collections.abc import Iterable
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.bridge.sessions.filter_shapes import NEWCOMER, FilterShapes
from gateway.config.limits import Limit
from gateway.config.mqtt_limits import MqttLimits
from gateway.config.routes import EMBEDDED, Registration
from gateway.limits.budgets import Budgets
from gateway.limits.owner import Owner
from gateway.limits.refusals import Refusals
from gateway.mqtt.reason_codes import ReasonCode
from mappings.table import Dialect
from mappings.topics.pattern_index import PatternIndex
from mappings.topics.shapes import Shape, Shapes
from mappings.topics.topics import Scheme
from mq_adapters.broker.subscriptions import MayAdd
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.system_queues import CONTROL_QUEUE
from tests.calls import calls_of
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, remaining_length, written
from tests.mq_adapters.broker.conftest import Station

CONNECTS = {
    3: "10 12 0006 'MQIsdp' 03 00 0000 0004 '{0}'",
    4: "10 10 0004 'MQTT' 04 00 0000 0004 '{0}'",
    5: "10 16 0004 'MQTT' 05 00 0000 05 11 00000E10 0004 '{0}'",
}
QUOTA_EXCEEDED = ReasonCode.QUOTA_EXCEEDED


def limited(new_world: NewWorld, **limits: int) -> World:
    return new_world(limits=MqttLimits.model_validate(limits))


def connected(world: World, name: str = "self", *, level: int = 5, peer: str = "192.0.2.7:50000") -> FakeLink:
    link = FakeLink()
    link.peer = peer
    world.receive(link, CONNECTS[level].format(name))
    link.taken()
    return link


def subscribed(world: World, link: FakeLink, *filters: str) -> bytes:
    """Sends one SUBSCRIBE of QoS 0; returns the codes of its SUBACK."""
    properties = b"\0" if link.connection.level == 5 else b""
    entries = b"".join(len(each).to_bytes(2, "big") + each.encode() + b"\0" for each in filters)
    body = b"\0\x01" + properties + entries
    world.bridge.receive(link, b"\x82" + remaining_length(len(body)) + body)
    world.run()
    return link.taken()[-len(filters) :]


def unsubscribed(world: World, link: FakeLink, topic_filter: str) -> None:
    body = b"\0\x02\0" + len(topic_filter).to_bytes(2, "big") + topic_filter.encode()
    world.bridge.receive(link, b"\xa2" + remaining_length(len(body)) + body)
    world.run()
    link.taken()


def publish(world: World, link: FakeLink, topic: str) -> None:
    body = len(topic).to_bytes(2, "big") + topic.encode() + b"\0x"
    world.bridge.receive(link, b"\x30" + remaining_length(len(body)) + body)
    world.run()


@pytest.mark.parametrize(("level", "code"), [(4, 0x80), (5, 0x97)])
def test_a_filter_of_a_shape_too_many_is_refused_and_others_feel_nothing(
    new_world: NewWorld, level: int, code: int
) -> None:
    world = limited(new_world, maximum_filter_shapes_per_user=2)
    link = connected(world, level=level)
    assert subscribed(world, link, "+/+/a", "+/+/a/#", "+/+/a/a") == bytes((0, 0, code))
    assert subscribed(world, link, "+/+/b", "+/+/c/#", "a", "a/b/c") == bytes(4)
    assert link.is_open
    assert world.refusals.totals == {(Limit.FILTER_SHAPES_PER_USER, QUOTA_EXCEEDED): 1}
    other = connected(world, "good", peer="198.51.100.1:50000")
    assert subscribed(world, other, "+/+/a/a") == b"\0"
    assert subscribed(world, link, "+/+/a/b") == b"\0", "now the shape is known"


ORDINARY = ["#", *("/".join("a" * length) + "/#" for length in range(1, 9))]
ORDINARY += [
    f"{'a/' * place}+{'/a' * (length - 1 - place)}{end}"
    for length in range(1, 9)
    for place in range(length)
    for end in ("", "/#")
]


@pytest.mark.parametrize("header", Dialect)
def test_an_ordinary_shape_is_taken_whatever_others_have_brought(
    new_world: NewWorld, tmp_path: Path, header: Dialect
) -> None:
    limits = MqttLimits(maximum_filter_shapes_in_all=1, maximum_filter_shapes_per_user=1)
    world = new_world(limits=limits, dialect=header)
    assert subscribed(world, connected(world, "evil", peer="198.51.100.1:50000"), "+/+/+/a") == b"\0"
    link = connected(world)
    assert len(ORDINARY) == 81
    assert subscribed(world, link, *ORDINARY, *NOT_ORDINARY) == bytes(81) + b"\x97" * len(NOT_ORDINARY)
    folder = world.kill(tmp_path / "killed")
    again = World(folder, limits=limits, dialect=header)
    link = connected(again)
    assert subscribed(again, link, "b/+", *NOT_ORDINARY) == b"\0" + b"\x97" * len(NOT_ORDINARY)
    again.close()


#: Nine levels, or two `+`.
NOT_ORDINARY = ["+" + "/a" * 8, "a/" * 9 + "a/#", "+/a/+/a", "+/a/+/a/#"]


def test_a_client_of_mqtt_3_1_is_closed_because_its_suback_has_no_code_for_it(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_filter_shapes_per_user=1)
    link = connected(world, level=3)
    subscribed(world, link, "+/+/a", "+/a/+")
    assert not link.is_open


def test_an_unsubscribed_shape_makes_room_again(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_filter_shapes_per_user=1)
    link = connected(world)
    assert subscribed(world, link, "+/+/a", "+/+/b", "+/a/+/a") == bytes((0, 0, 0x97))
    unsubscribed(world, link, "+/+/a")
    assert subscribed(world, link, "+/a/+/a") == b"\x97", "one filter of the shape is left"
    unsubscribed(world, link, "+/+/b")
    world.bridge.tick()
    assert subscribed(world, link, "+/a/+/a") == b"\0"


def test_the_last_quarter_is_kept_for_newcomers(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_filter_shapes_in_all=48)
    first = connected(world)
    two_wild = ["/".join(each) for each in product("a+", repeat=6) if each.count("+") == 2]
    filters = [f"{each}/a{end}" for each in two_wild for end in ("", "/b", "/#")]
    codes = b"".join(subscribed(world, first, each) for each in filters)
    assert codes == bytes(36) + b"\x97" * (len(filters) - 36)
    newcomer = connected(world, "good", peer="198.51.100.1:50000")
    assert b"".join(subscribed(world, newcomer, each) for each in filters[36 : 36 + NEWCOMER]) == bytes(NEWCOMER)
    assert world.refusals.totals == {(Limit.FILTER_SHAPES_IN_ALL, QUOTA_EXCEEDED): len(filters) - 36}


def test_shapes_are_charged_to_the_prefix_of_a_client_without_a_user(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_filter_shapes_per_user=1)
    one = connected(world, "one1", peer="[2001:db8:0:1::1]:50000")
    same = connected(world, "two2", peer="[2001:db8:0:2::2]:50001")
    other = connected(world, "tri3", peer="[2001:db8:1:1::1]:50000")
    assert subscribed(world, one, "+/+/a") == b"\0"
    assert subscribed(world, same, "+/+/a/a") == b"\x97"
    assert subscribed(world, other, "+/+/a/a") == b"\0"


def test_an_old_store_past_the_limit_keeps_its_subscriptions_and_the_log_tells(
    new_world: NewWorld, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    world = new_world(limits=MqttLimits())
    link = connected(world)
    filters = ["/".join(each) for each in product("a+", repeat=4)]
    assert subscribed(world, link, *filters) == bytes(16)
    folder = world.kill(tmp_path / "killed")
    with caplog.at_level(logging.WARNING):
        again = World(folder, limits=MqttLimits(maximum_filter_shapes_in_all=4))
    assert "filter shapes past the limit shapes=11 limit=4" in caplog.text
    link = connected(again)
    assert subscribed(again, link, "b/+/+/c", "+/+") == bytes((0, 0x97))
    publish(again, link, "a/a/a/a")
    assert link.taken() == written("30 0B 0007 'a/a/a/a' 00 'x'")
    again.close()


def regsub(world: World, header: Dialect, *topics: str, user: str = "app1") -> int:
    """Sends a RegSub as an MQ application with a queue of its own; the reason code of the answer, 0 for success."""
    if header is Dialect.MQRFH2:
        text = f"<psc><Command>RegSub</Command><QName>{user}</QName>" + "".join(
            f"<Topic>{each}</Topic>" for each in topics
        )
        format_name, data = b"MQHRF2  ", Station.mqrfh2(f"{text}</psc>")
    else:
        text = f"MQPSCommand RegSub MQPSQName {user}" + "".join(f" MQPSTopic {each}" for each in topics)
        format_name, data = b"MQHRF   ", Station.mqrfh(text)
    descriptor = MessageDescriptor(format=format_name, msg_type=1, reply_to_q="REPLY", user_identifier=user)
    for name in (user, "REPLY"):
        world.engine.ensure(name, "")
    unit = world.engine.begin()
    world.engine.put(unit, world.engine.queue(CONTROL_QUEUE), Message(descriptor, data))
    world.engine.submit(unit)
    world.run()
    answer = world.engine.take(world.engine.queue("REPLY"))
    assert answer is not None
    code = re.search(rb"(?:MQPSReason |<Reason>)(\d+)", answer.body)
    return int(code[1]) if code is not None else 0


@pytest.mark.parametrize("header", Dialect)
def test_shapes_of_an_application_are_charged_to_its_user(new_world: NewWorld, header: Dialect) -> None:
    world = limited(new_world, maximum_filter_shapes_per_user=4)
    more = ("+/+/b", "a/+/+/b", "+/b/+/b") if header is Dialect.MQRFH2 else ("a/*", "b/b/*")
    assert regsub(world, header, *more) == 0
    one_more, known = ("+/b/c/+", "+/+/y") if header is Dialect.MQRFH2 else ("a/b/c/*", "x/*")
    assert regsub(world, header, one_more, "z/+/+/+/+") == 2102
    assert regsub(world, header, one_more) == (2102 if header is Dialect.MQRFH else 0)
    assert world.refusals.totals[Limit.FILTER_SHAPES_PER_USER, QUOTA_EXCEEDED] >= 1
    assert regsub(world, header, known, "without/wildcard") == 0
    assert regsub(world, header, one_more, user="app2") == 0
    link = connected(world, "good")
    assert subscribed(world, link, "+/1/2/3/4") == b"\0", "an MQTT user has a budget of its own"


def test_patterns_that_are_compared_one_by_one_are_charged_each_in_one_command(new_world: NewWorld) -> None:
    world = limited(new_world, maximum_filter_shapes_per_user=64)
    patterns = [f"*/x/{'?' * length}*" for length in range(1, 40)]
    assert regsub(world, Dialect.MQRFH, *patterns) == 2102
    assert regsub(world, Dialect.MQRFH, *patterns[:5]) == 0


@pytest.mark.parametrize("header", Dialect)
def test_shapes_of_applications_are_charged_again_after_a_restart(
    new_world: NewWorld, header: Dialect, tmp_path: Path
) -> None:
    world = limited(new_world, maximum_filter_shapes_per_user=4)
    wild = "+/+" if header is Dialect.MQRFH2 else "*"
    for life in range(2):
        codes = [regsub(world, header, f"{'b/' * length}{wild}") for length in range(1, 7)]
        assert codes == ([0] * 4 + [2102] * 2 if header is Dialect.MQRFH2 else [0] * 2 + [2102] * 4)
        assert regsub(world, header, f"{'b/' * 6}{wild}", user="app2") == 0
        folder = world.kill(tmp_path / f"killed {life}")
        world = World(folder, limits=MqttLimits(maximum_filter_shapes_per_user=4))
    world.close()


@pytest.mark.parametrize("dialect", Dialect)
def test_a_filter_refused_for_its_shape_has_a_reason_string_that_says_so(new_world: NewWorld, dialect: Dialect) -> None:
    world = new_world(limits=MqttLimits(maximum_filter_shapes_per_user=1), dialect=dialect)
    link = connected(world)
    filters = ["+/+/a", *(f"{'a/' * length}+/+/a" for length in range(1, 5))]
    body = b"\0\x01\0" + b"".join(len(each).to_bytes(2, "big") + each.encode() + b"\0" for each in filters)
    world.bridge.receive(link, b"\x82" + remaining_length(len(body)) + body)
    world.run()
    assert link.taken()[-5:] == bytes((0, *[0x97] * 4))
    assert link.told == [Limit.FILTER_SHAPES_PER_USER.value.told]


ATTACK = ["/".join(each) + "/z" for each in product("a+", repeat=6)]


@pytest.mark.parametrize("dialect", Dialect)
def test_a_publish_takes_no_more_work_than_the_limit_on_shapes_allows(new_world: NewWorld, dialect: Dialect) -> None:
    limits = MqttLimits(maximum_filter_shapes_in_all=32, maximum_filter_shapes_per_user=16)
    world = new_world(limits=limits, dialect=dialect)
    publisher = connected(world, "good", peer="198.51.100.1:50000")

    def calls(place: int) -> int:
        return calls_of(partial(publish, world, publisher, f"{'a/' * 6}new{place}"))

    calls(0)
    before = calls(1)
    for place in range(2):
        attacker = connected(world, f"bad{place}", peer=f"192.0.{place}.1:50000")
        subscribed(world, attacker, *ATTACK)
    calls(2)
    assert calls(3) - before <= 2 * 32
    assert world.refusals.totals[Limit.FILTER_SHAPES_PER_USER, QUOTA_EXCEEDED]


@pytest.mark.parametrize("dialect", Dialect)
def test_a_topic_of_many_levels_takes_no_more_work_with_mqrfh(new_world: NewWorld, dialect: Dialect) -> None:
    """As character patterns, all filters of one shape that name a level of the topic would be compared with it."""
    world = new_world(limits=MqttLimits(), dialect=dialect)
    attacker = connected(world)
    publisher = connected(world, "good", peer="198.51.100.1:50000")
    topic = "/".join(f"l{place}" for place in range(100))
    assert subscribed(world, attacker, "a/+/x/one/+") == b"\0"

    def calls(number: int) -> int:
        return calls_of(partial(publish, world, publisher, f"a/{topic}/{number}"))

    calls(0)
    before = calls(1)
    assert subscribed(world, attacker, *(f"a/+/x/l{place}/+" for place in range(100))) == bytes(100)
    calls(2)
    assert calls(3) <= before + 10


def test_a_delivery_takes_a_step_for_each_shape_of_the_sessions_filters(new_world: NewWorld) -> None:
    world = new_world(limits=MqttLimits())
    link = connected(world)
    filters = [f"site/+/device{number}/temperature" for number in range(100)]
    assert subscribed(world, link, *filters, "site/#") == bytes(101)
    session = link.session
    assert session is not None
    assert session.granted_qos("site/x/device7/temperature") == 0
    assert calls_of(partial(session.granted_qos, "site/x/device8/temperature")) <= 50
    unsubscribed(world, link, "site/#")
    assert session.granted_qos("site/x/other") is None
    assert subscribed(world, link, "site/+/other") == b"\0"
    assert session.granted_qos("site/y/other") == 0


PATTERN = st.lists(st.sampled_from("ab+"), min_size=1, max_size=6).map("/".join)


class IndexShapes:
    """The shapes of an index that stands for the broker's."""

    def __init__(self, index: PatternIndex[str]) -> None:
        self._index = index

    @property
    def shapes(self) -> Shapes:
        return self._index.shapes

    def of(self, pattern: str) -> Shape | None:
        return self._index.shape(pattern, Scheme.TOPIC)

    def of_applications(self) -> Iterable[tuple[str, Shapes, Shape]]:
        return ()

    def ask(self, may_add: MayAdd) -> None:
        pass


def places(pattern: str) -> tuple[int, tuple[int, ...]]:
    levels = pattern.split("/")
    return len(levels), tuple(place for place, level in enumerate(levels) if level == "+")


def shapes_of(patterns: Iterable[str]) -> set[tuple[int, tuple[int, ...]]]:
    """Those that are limited."""
    return {places(pattern) for pattern in patterns if pattern.count("+") > 1}


USERS = ["anna", "ben", "cleo", "dan"]


class ShapesMachine(RuleBasedStateMachine):
    """Users who subscribe and unsubscribe, beside a plain list of their filters and of who brought which shape."""

    MOST, OF_USER = 16, 7

    def __init__(self) -> None:
        super().__init__()
        self.index: PatternIndex[str] = PatternIndex()
        limits = MqttLimits(maximum_filter_shapes_in_all=self.MOST, maximum_filter_shapes_per_user=self.OF_USER)
        budgets = Budgets(limits)
        self.accounts = {user: budgets.open(user, Owner(user)) for user in USERS}
        self.shapes = FilterShapes(limits, IndexShapes(self.index), Refusals())
        self.filters: set[tuple[str, str]] = set()
        self.brought: dict[tuple[int, tuple[int, ...]], str] = {}

    @rule(user=st.sampled_from(USERS), pattern=PATTERN)
    def subscribe(self, user: str, pattern: str) -> None:
        session = SimpleNamespace(account=self.accounts[user])
        wanted = [Registration(destination=EMBEDDED, topic_filters=(pattern,), patterns=(pattern,))]
        known = shapes_of(each for _, each in self.filters)
        self.brought = {shape: who for shape, who in self.brought.items() if shape in known}
        own = sum(who == user for who in self.brought.values())
        refused = self.shapes.refuses(session, wanted)  # type: ignore[arg-type]  # what it needs of a session
        if shapes_of([pattern]) <= known:
            assert refused is None
        elif own >= self.OF_USER:
            assert refused is not None
            assert refused.limit is Limit.FILTER_SHAPES_PER_USER
        elif len(known) >= self.MOST:
            assert refused is not None
            assert refused.limit is Limit.FILTER_SHAPES_IN_ALL
        else:
            assert refused is None, "every user of so few shapes is a newcomer"
        if refused is None:
            self.index.add(pattern, Scheme.TOPIC, user)
            self.filters.add((user, pattern))
            self.brought = dict.fromkeys(shapes_of([pattern]), user) | self.brought
        self.shapes.tick()

    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        if self.filters:
            user, pattern = data.draw(st.sampled_from(sorted(self.filters)))
            self.index.remove(pattern, Scheme.TOPIC, user)
            self.filters.remove((user, pattern))

    @invariant()
    def counts_the_shapes_that_there_are(self) -> None:
        assert self.index.shapes.unusual_weight == len(shapes_of(each for _, each in self.filters)) <= self.MOST


TestShapesMachine = ShapesMachine.TestCase
TestShapesMachine.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
