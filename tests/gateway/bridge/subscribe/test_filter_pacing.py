"""SUBSCRIBE and UNSUBSCRIBE of many filters: carried out in parts, between which others get their turn."""

import itertools
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from gateway.bridge.sessions.sessions import ClientSession, Sessions
from gateway.bridge.subscribe.filter_pacing import FILTERS_AT_ONCE, LONG_BYTES, FilterPacing
from gateway.bridge.subscribe.subscribe import Subscriptions
from gateway.config.mqtt_limits import MqttLimits
from mq_adapters.embedded.unit_of_work import UnitOfWork
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, remaining_length, written

MANY = 2 * FILTERS_AT_ONCE + 5
ONE_MORE_THAN_MAY = MANY + 1
#: Enough for twenty turns without a PUBLISH, behind which a turn may take more filters.
_TOGETHER = 60 * FILTERS_AT_ONCE


@pytest.fixture
def world(new_world: NewWorld) -> World:
    return new_world(limits=MqttLimits(maximum_subscriptions=MANY))


def _request(first_byte: int, filters: list[str], options: bytes) -> bytes:
    """SUBSCRIBE with an options byte behind each filter, or UNSUBSCRIBE with none; its identifier is 7."""
    body = b"\x00\x07" + b"".join(len(each).to_bytes(2, "big") + each.encode() + options for each in filters)
    return bytes((first_byte,)) + remaining_length(len(body)) + body


def _subscribe(count: int, prefix: str = "a") -> bytes:
    return _request(0x82, [f"{prefix}/{number}" for number in range(count)], b"\x01")


def _send(world: World, link: FakeLink, data: bytes) -> None:
    """Bytes arrive, and the loop has not turned since."""
    world.bridge.receive(link, data)


def test_many_filters_have_one_suback_with_all_codes_in_their_order(world: World) -> None:
    link = world.connect("self")
    _send(world, link, _subscribe(ONE_MORE_THAN_MAY))
    world.run()
    codes = b"\x01" * MANY + b"\x80"
    assert link.taken() == b"\x90" + remaining_length(2 + len(codes)) + b"\x00\x07" + codes
    assert world.registrations() == MANY
    assert link.is_read()


def test_filters_that_wait_count_for_their_link_until_the_last_is_carried_out(world: World) -> None:
    link = world.connect("self")
    asked = _subscribe(MANY)
    _send(world, link, asked)
    assert link.waiting_bytes > 10 * len(asked)
    world.run()
    assert link.waiting_bytes == 0


def test_a_filter_that_stands_in_several_parts_is_registered_once_and_has_a_code_at_each_place(world: World) -> None:
    """Each registration would send everything that is retained again; the last QoS counts (MQTT-3.8.4-3)."""
    link = world.connect("self")
    entries = "0001 'a' 00 0001 'b' 01 0001 'c' 01 0001 'a' 02 0001 'd' 01 0001 'a' 01"
    _send(world, link, written(f"82 1A 0007 {entries}"))
    world.run()
    assert link.taken() == written("90 08 0007 00 01 01 02 01 01")
    assert world.registrations() == len("abcd")
    session = world.bridge.sessions.get("self")
    assert session is not None
    assert session.subscriptions == dict.fromkeys("abcd", 1)


def test_who_asks_for_much_is_not_read_until_all_is_asked_for(world: World) -> None:
    link = world.connect("self")
    _send(world, link, _subscribe(MANY))
    assert not link.is_read()
    world.run()
    assert link.is_read()


def test_what_comes_behind_a_long_request_is_carried_out_behind_it(world: World) -> None:
    link = world.connect("self")
    unsubscribe = _request(0xA2, [f"a/{number}" for number in range(MANY)], b"")
    _send(world, link, _subscribe(MANY) + unsubscribe + written("C0 00"))
    _send(world, link, written("32 07 0003 'a/1' 0009"))
    world.run()
    suback = b"\x90" + remaining_length(2 + MANY) + b"\x00\x07" + b"\x01" * MANY
    assert sorted(link.taken()) == sorted(suback + written("B0 02 0007 D0 00 40 02 0009"))
    assert world.registrations() == 0


def test_suback_comes_before_what_the_first_parts_bring(world: World) -> None:
    """The standard allows both (MQTT 5.0 section 3.8.4); a client sees no difference to a request of few filters."""
    teller, link = world.connect("tell"), world.connect("self")
    world.receive(teller, "31 06 0003 'r/1' 'R'")
    filters = ["#", *(f"a/{number}" for number in range(MANY - 1))]
    _send(world, link, _request(0x82, filters, b"\x00"))
    while not link.sent:
        _send(world, teller, written("30 06 0003 'b/1' 'B'"))
        world.turn()
    suback = b"\x90" + remaining_length(2 + MANY) + b"\x00\x07" + bytes(MANY)
    assert link.sent.startswith(suback)
    world.run()
    behind = link.taken()[len(suback) :]
    assert behind.count(written("31 06 0003 'r/1' 'R'")) == 1
    assert written("30 06 0003 'b/1' 'B'") in behind


@pytest.mark.parametrize("turns", range(8))
def test_a_session_whose_connection_ends_between_the_parts_is_served_when_it_comes_back(
    world: World, turns: int
) -> None:
    link = world.connect("self", flags="00")
    _send(world, link, _subscribe(MANY))
    for _ in range(turns):
        world.turn()
    world.lose(link)
    again, teller = world.connect("self", flags="00"), world.connect("tell")
    world.receive(again, "82 08 0001 0003 'a/1' 01")
    assert again.taken() == written("90 03 0001 01")
    world.receive(teller, "32 08 0003 'a/1' 0002 'X'")
    assert again.taken() == written("32 08 0003 'a/1' 0001 'X'")


def test_others_are_served_between_the_parts(world: World) -> None:
    greedy, other = world.connect("many"), world.connect("tell")
    world.commits_are_held = True
    _send(world, greedy, _subscribe(MANY))
    _send(world, other, written("32 07 0003 'b/1' 0003"))
    while not other.sent:
        world.run()
        world.commit()
    assert other.taken() == written("40 02 0003")
    assert greedy.sent == b""
    world.commits_are_held = False
    world.run()
    assert greedy.taken()[-1:] == b"\x01"


def test_those_who_wait_take_turns(world: World) -> None:
    """Who asks for little comes behind one part of who asks for much, not behind all of it."""
    answered: list[str] = []
    links = {name: world.connect(name) for name in ("many", "more", "less")}
    for (name, link), count in zip(links.items(), (MANY, MANY, 1), strict=True):
        link.send = lambda _data, name=name: answered.append(name)  # type: ignore[method-assign]  # only who counts
        _send(world, link, _subscribe(count, prefix=name))
    world.run()
    assert answered == ["less", "many", "more"]
    assert world.registrations() == 2 * MANY + 1


def test_a_connection_that_ends_in_the_middle_leaves_nothing_behind(world: World) -> None:
    link, other = world.connect("self"), world.connect("tell")
    _send(world, link, _subscribe(MANY))
    world.lose(link)
    world.run()
    assert world.registrations() == 0
    assert len(world.bridge.paused_publishers) == 0
    _send(world, other, _subscribe(1))
    world.run()
    assert other.taken() == written("90 03 0007 01")


def test_few_filters_are_carried_out_at_once(world: World) -> None:
    link = world.connect("self")
    _send(world, link, _subscribe(FILTERS_AT_ONCE))
    assert link.is_read()
    _send(world, link, _subscribe(1))
    assert not link.is_read()
    world.run()
    assert link.is_read()
    assert world.registrations() == FILTERS_AT_ONCE


def test_two_long_filters_of_one_packet_are_carried_out_apart(world: World) -> None:
    link = world.connect("self")
    _send(world, link, _subscribe(2, "l" * LONG_BYTES))
    registrations = []
    while not link.sent:
        world.turn()
        registrations.append(world.registrations())
    assert 1 in registrations
    assert link.taken() == written("90 04 0007 01 01")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("others_publish", [True, False])
def test_filters_that_take_longer_than_a_whole_turn_end_one_a_turn_and_others_go_on(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch, others_publish: bool
) -> None:
    """Only afterwards is it known that a filter had many levels, or that it brought a large retained message.

    Those who are refused the turn stand in line again, and the turn ends all the same.
    """
    world = new_world(limits=MqttLimits(maximum_subscriptions=_TOGETHER))
    began = 0
    subscribe = Subscriptions.subscribe

    def take_long(*arguments: Any) -> None:
        nonlocal began
        began += 1
        world.now_us += 1_000_000  # far longer than any turn
        subscribe(*arguments)

    monkeypatch.setattr(Subscriptions, "subscribe", take_long)
    many, one, other = world.connect("many"), world.connect("less"), world.connect("tell")
    _send(world, many, _subscribe(_TOGETHER))
    _send(world, one, _subscribe(1, "b"))
    in_a_turn, asked, answered = [began], 0, 0
    while not (many.sent and one.sent):
        if others_publish:
            _send(world, other, written("32 07 0003 'b/1' 0003"))
            asked += 1
        before = began
        world.turn()
        in_a_turn.append(began - before)
        answered += other.taken().count(written("40 02 0003"))
        assert asked - answered <= 2
    assert max(in_a_turn) == 1
    assert began == 1 + _TOGETHER // FILTERS_AT_ONCE
    world.run()
    assert world.registrations() == 1 + _TOGETHER
    assert many.is_read()
    assert one.is_read()


def _turns_until_answered(world: World, link: FakeLink) -> int:
    turns = 0
    while not link.sent:
        world.turn()
        turns += 1
    link.taken()
    return turns


def test_where_nobody_publishes_for_a_while_more_filters_are_carried_out_in_a_turn(new_world: NewWorld) -> None:
    world = new_world(limits=MqttLimits(maximum_subscriptions=1_000))
    link, other = world.connect("self"), world.connect("tell")
    _send(world, link, _subscribe(200, "a"))
    began_slowly = _turns_until_answered(world, link)
    _send(world, link, _subscribe(200, "b"))
    alone = _turns_until_answered(world, link)
    assert alone < began_slowly
    _send(world, other, written("30 04 0001 'b' 'x'"))
    _send(world, link, _subscribe(200, "c"))
    assert _turns_until_answered(world, link) > alone


@pytest.mark.parametrize(("published_in_a_turn", "most_ms"), [(1, 1.0), (0, 2.5)])
def test_a_turn_carries_out_slow_filters_for_a_bounded_time_and_one_filter_more(
    published_in_a_turn: int, most_ms: float
) -> None:
    """Each takes 0.7 ms, three times a usual one; there are always some in line."""
    filter_ms = 0.7
    turns: deque[Callable[[], None]] = deque()
    now_ms, published = 0.0, 0

    def next_goes_on() -> bool:
        nonlocal now_ms
        if pacing.take(1):
            now_ms += filter_ms
        return True

    pacing = FilterPacing(turns.append, lambda: None, next_goes_on, lambda: published, lambda: now_ms / 1_000)
    pacing.take(1)
    took_ms = []
    for _turn in range(100):
        published += published_in_a_turn
        began_ms = now_ms
        turns.popleft()()
        took_ms.append(now_ms - began_ms)
    assert most_ms < max(took_ms) + filter_ms
    assert max(took_ms) <= most_ms + filter_ms


def test_the_row_of_a_session_is_written_once_for_all_parts_of_one_commit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has all filters: once for each part would be as much work as filters times filters.

    The first part is being committed, and the others wait for the next commit.
    """
    saved: list[str] = []
    save = Sessions.save

    def counted(sessions: Sessions, unit: UnitOfWork, session: ClientSession) -> None:
        saved.append(session.client)
        save(sessions, unit, session)

    link = world.connect("self")
    world.commits_are_held = True
    _send(world, link, _subscribe(MANY))
    world.run()
    monkeypatch.setattr(Sessions, "save", counted)
    world.commits_are_held = False
    world.run()
    assert saved == ["self"]
    assert link.taken() == b"\x90" + remaining_length(2 + MANY) + b"\x00\x07" + b"\x01" * MANY


def test_who_waits_in_line_goes_on_although_the_process_gets_no_core_between_two_looks_at_the_clock() -> None:
    """Also where those who were in front have gone, and ask for nothing any more."""
    turns: deque[Callable[[], None]] = deque()
    line = deque(["gone", "gone too", "waits"])
    seconds = itertools.count()

    def next_goes_on() -> bool:
        if not line:
            return False
        who = line.popleft()
        if who == "waits" and not pacing.take(FILTERS_AT_ONCE):
            line.append(who)
        return True

    pacing = FilterPacing(turns.append, lambda: None, next_goes_on, lambda: 0, lambda: next(seconds))
    pacing.take(FILTERS_AT_ONCE)
    for _turn in range(20):
        if turns:
            turns.popleft()()
    assert not line
