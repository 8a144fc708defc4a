"""A SUBSCRIBE or UNSUBSCRIBE of many filters is looked at and cut a little at a time."""

from itertools import islice, pairwise

import pytest

from gateway.bridge.sessions.sessions import ClientSession
from gateway.bridge.subscribe.filter_pacing import FILTERS_AT_ONCE, LOOKED_AT_ONCE, LongRequest, Part
from gateway.bridge.subscribe.pending_packet import CodesOfAnswer
from gateway.mqtt.events import SubscribeReceived, SubscriptionOptions, UnsubscribeReceived
from tests.gateway.bridge.conftest import World, remaining_length

MANY = 2 * LOOKED_AT_ONCE + 1


@pytest.fixture
def session(world: World) -> ClientSession:
    world.connect("self")
    found = world.sessions.get("self")
    assert found is not None
    return found


def subscribe(*filters: tuple[str, int], options: tuple[SubscriptionOptions, ...] = ()) -> LongRequest:
    return LongRequest(SubscribeReceived(7, filters, tuple(name.encode() for name, _ in filters), options))


def parts(request: LongRequest, session: ClientSession) -> list[Part]:
    """All of them, each as it is cut out."""
    found = []
    while not request.is_over:
        part = request.next_part(session)
        if part is not None:
            found.append(part)
    return found


def answered(request: LongRequest, session: ClientSession, refused: str = "") -> bytes:
    """The codes where one filter is refused and the others are granted."""
    whole = None
    for part in parts(request, session):
        assert whole is None
        assert isinstance(part.event, SubscribeReceived)
        codes = bytes(0x80 if name == refused else qos for name, qos in part.event.subscriptions)
        whole = part.whole(CodesOfAnswer(codes))
    assert whole is not None
    return whole.codes


def test_filters_are_looked_at_some_at_a_time_and_cut_out_few_at_a_time(session: ClientSession) -> None:
    request = subscribe(*((f"a/{number}", 1) for number in range(MANY)))
    looks = [request.next_part(session) for _ in range(3)]
    assert looks == [None, None, None]
    assert session.pending_answers == 0
    cut = parts(request, session)
    assert {len(part.event.entries) for part in cut[:-1]} == {FILTERS_AT_ONCE}
    assert sum(len(part.event.entries) for part in cut) == MANY
    assert session.pending_answers == 1
    codes = [part.whole(CodesOfAnswer(bytes(len(part.event.entries)))) for part in cut]
    assert codes[:-1] == [None] * (len(cut) - 1)
    assert codes[-1] == (b"\x01" * MANY, {})
    assert session.pending_answers == 0


def test_an_unsubscribe_is_cut_as_it_stands_there(session: ClientSession) -> None:
    filters = ("a", "b", "a", "c", "a")
    request = LongRequest(UnsubscribeReceived(7, filters, tuple(name.encode() for name in filters)))
    cut = parts(request, session)
    assert [part.event.entries for part in cut] == [(b"a", b"b"), (b"a", b"c"), (b"a",)]
    assert cut[2].whole(CodesOfAnswer(b"\x11", {0x11: "one"})) is None
    assert cut[0].whole(CodesOfAnswer(b"\x00\x11", {0x11: "two", 0x80: "three"})) is None
    assert cut[1].whole(CodesOfAnswer(b"\x11\x00")) == (b"\x00\x11\x11\x00\x11", {0x11: "one", 0x80: "three"})


def test_a_filter_that_is_refused_is_so_at_each_of_its_places(session: ClientSession) -> None:
    filters = (("a", 0), ("b", 1), ("c", 2), ("a", 2), ("b", 0), ("a", 1))
    assert answered(subscribe(*filters), session, refused="a") == b"\x80\x01\x02\x80\x00\x80"
    assert answered(subscribe(*filters), session, refused="c") == b"\x00\x01\x80\x02\x00\x01"


@pytest.mark.parametrize(
    ("handling", "decisive"), [((2, 0, 1), 1), ((1, 2, 2), 0), ((0, 1, 0), 0), ((2, 2, 2), 0), ((2, 1, 0), 2)]
)
def test_the_last_entry_counts_and_another_may_ask_for_what_is_retained(
    session: ClientSession, handling: tuple[int, ...], decisive: int
) -> None:
    options = tuple(SubscriptionOptions(place == 2, False, each) for place, each in enumerate(handling))
    entries = tuple(bytes((qos | each << 4,)) for qos, each in zip((0, 2, 1), handling, strict=True))
    event = SubscribeReceived(7, (("a", 0), ("a", 2), ("a", 1)), entries, options)
    (part,) = parts(LongRequest(event), session)
    assert isinstance(part.event, SubscribeReceived)
    assert part.event.subscriptions == (("a", 1),)
    assert part.event.entries == (bytes((1 | handling[decisive] << 4,)),)
    assert part.event.options == (SubscriptionOptions(True, False, handling[decisive]),)


def test_before_level_5_the_last_entry_says_all(session: ClientSession) -> None:
    (part,) = parts(LongRequest(SubscribeReceived(7, (("a", 0),) * 3, (b"0", b"1", b"2"))), session)
    assert part.event.entries == (b"2",)


def test_what_is_given_up_leaves_the_session_free(session: ClientSession) -> None:
    request = subscribe(*((f"a/{number}", 1) for number in range(5)))
    assert request.next_part(session) is None
    request.end()
    assert session.pending_answers == 0
    assert request.next_part(session) is not None
    assert session.pending_answers == 1
    request.end()
    request.end()
    assert session.pending_answers == 0


def test_no_turn_of_the_event_loop_looks_at_more_than_its_share(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    next_part = LongRequest.next_part

    def counted(request: LongRequest, session: ClientSession) -> Part | None:
        nonlocal calls
        calls += 1
        return next_part(request, session)

    monkeypatch.setattr(LongRequest, "next_part", counted)
    link = world.connect("self")
    entries = b"".join(b"\x00\x05" + f"{number:05}".encode() + b"\x00" for number in range(2_000))
    body = b"\x00\x07" + entries
    world.bridge.receive(link, b"\x82" + remaining_length(len(body)) + body)
    counts = [calls]
    for _ in islice(iter(lambda: not link.sent, False), 5_000):
        world.turn()
        counts.append(calls)
    assert link.taken()[-1_997:] == b"\x80" * 1_997  # three filters are allowed here
    assert counts[0] <= 1
    assert max(later - earlier for earlier, later in pairwise(counts)) <= 5
