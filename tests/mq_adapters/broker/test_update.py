"""A session's command is answered first: what follows the answer, in which order, and where it goes on after a crash.

What waits on the queue is persistent, and the queue manager ends between two turns: each copy must come once.
"""

import random

import ormsgpack
import pytest

from mq_adapters.broker import update
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import StoreError
from mq_adapters.system_queues import DEFAULT_STREAM
from tests.mq_adapters.broker.on_a_loop import UNIT

MANY = [f"a/{number}" for number in range(100)]
ALL_OLD = sorted((topic, b"old") for topic in MANY)


class CountedLimit:
    """Promises so many bytes in all, and counts what it is told."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.promised = 0
        self.taken: list[bool] = []

    def promise(self, _correl_id: bytes | None, size_bytes: int) -> bool:
        may = self.promised + size_bytes <= self.most
        self.promised += size_bytes if may else 0
        return may

    def take(self, _correl_id: bytes | None, _size_bytes: int) -> bool:
        self.taken.append(False)
        return True

    def keep_promise(self, _correl_id: bytes | None, size_bytes: int, copies: int) -> None:
        self.taken += [True] * copies
        self.promised = max(0, self.promised - size_bytes)

    def release(self, _correl_id: bytes | None, size_bytes: int) -> None:
        self.promised = max(0, self.promised - size_bytes)


def rows(station) -> list[bytes]:
    return [key for key, _ in station.engine.states(StateKind.BROKER_UPDATE)]


def test_a_session_is_answered_at_once_and_all_follows_in_the_order_of_publication(loop_station):
    station = loop_station
    for topic in reversed(MANY):
        station.retain(topic)
    station.subscribe("a/#")
    assert (station.answers(), station.listener.copies) == ([b"ok"], [])
    station.run()
    assert [topic for topic, _ in station.received()] == MANY[::-1]
    assert (station.answers(), rows(station)) == ([], [])


def test_an_application_is_answered_behind_the_last_copy(loop_station):
    station = loop_station
    station.retain_all(MANY)
    station.register("a/#")
    station.run_until_copies()
    assert station.answers() == []
    station.run()
    assert (len(station.received()), station.answers()) == (100, [b"ok"])


@pytest.mark.parametrize("turns", [0, 1, 2, 18, 40, 70, 90])
def test_after_a_crash_each_copy_comes_that_had_not_come_and_no_other(loop_station, turns):
    station = loop_station
    station.retain_all(MANY)
    station.subscribe("a/#")
    for _ in range(turns):
        station.turn()
    before = station.received()
    station.restart()
    station.run()
    assert sorted(before + station.received()) == ALL_OLD
    assert (station.answers(), rows(station)) == ([b"ok"], [])


def test_an_applications_command_goes_on_too_and_is_answered_once(loop_station):
    station = loop_station
    station.retain_all(MANY)
    station.register("a/#")
    station.run_until_copies(2 * UNIT)
    before = station.received()
    station.restart()
    station.run()
    assert sorted(before + station.received()) == ALL_OLD
    assert station.answers() == [b"ok"]


def test_what_was_sent_ahead_of_its_turn_does_not_come_behind_the_newer_one_after_a_crash(loop_station):
    station = loop_station
    station.retain_all(MANY)
    station.subscribe("a/#")
    station.run_until_copies()
    station.live("a/99")
    assert [body for topic, body in station.received() if topic == "a/99"] == [b"old", b"new"]
    station.restart()
    station.run()
    assert "a/99" not in {topic for topic, _ in station.received()}
    assert rows(station) == []


def test_what_is_retained_after_the_command_comes_once_after_a_crash(loop_station):
    station = loop_station
    station.retain_all(MANY)
    station.subscribe("a/#")
    station.retain("a/new", b"live")
    station.retain("a/99", b"newer")
    before = station.received()
    assert before == [("a/new", b"live"), ("a/99", b"old"), ("a/99", b"newer")]
    station.restart()
    station.run()
    assert sorted(station.received()) == [each for each in ALL_OLD if each[0] != "a/99"]


def test_what_an_application_had_put_before_the_command_comes_once_after_a_crash(loop_station):
    """Its message has a lower number than the command, and comes to the broker behind it."""
    station = loop_station
    station.retain_all(MANY)
    unit = station.engine.begin()
    header = "<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a/late</Topic></psc>"
    message = Message(MessageDescriptor(format=b"MQHRF2  ", persistence=1), station.mqrfh2(header, body=b"live"))
    station.engine.put(unit, station.engine.queue(DEFAULT_STREAM), message)
    station.subscribe("a/#")
    station.engine.submit(unit)
    assert station.received() == [("a/late", b"live")]
    station.restart()
    station.run()
    assert sorted(station.received()) == ALL_OLD


@pytest.mark.parametrize("first", range(UNIT - 3, UNIT + 1))
def test_a_publication_on_several_topics_comes_on_one_that_is_still_its_own(loop_station, first):
    """The copies of one number are in one unit, also where a unit is full between them."""
    station = loop_station
    station.retain_all(MANY[:first])
    named = "".join(f"<Topic>b/{number}</Topic>" for number in range(4))
    station.publish(f"<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt>{named}</psc>", b"several")
    station.retain_all(MANY[first:])
    station.subscribe("#")
    for number in range(3):
        station.delete(f"b/{number}")
    station.run()
    received = station.received()
    assert [body for _, body in received].count(b"several") == 1
    assert len(received) == 101


def test_a_command_whose_subscription_ends_looks_no_further(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(2_000)])
    station.subscribe("a/#")
    station.turn()
    station.register("a/#", command="DeregSub", origin=b"a session")
    turns = 0
    while station.calls:
        turns += 1
        station.turn()
    assert (turns < 5, station.received(), rows(station)) == (True, [], [])


def test_thousands_of_topics_are_sorted_in_parts_and_come_oldest_first(loop_station, monkeypatch):
    monkeypatch.setattr(update, "_SORTED_AT_ONCE", 7)
    station = loop_station
    topics = [f"a/{number}" for number in range(250)]
    random.Random(1).shuffle(topics)
    station.retain_all(topics)
    for topic in topics[:50]:
        station.retain(topic, b"newer")
    station.subscribe("a/#")
    station.run()
    assert [topic for topic, _ in station.received()] == topics[50:] + topics[:50]


def test_a_session_waits_for_its_answer_where_the_limit_does_not_promise_all_copies(loop_station):
    station = loop_station
    station.broker.limit_retained_copies(limit := CountedLimit(0))
    station.retain_all(MANY)
    station.subscribe("a/#")
    station.run_until_copies()
    assert station.answers() == []
    station.run()
    assert (station.answers(), len(station.received())) == ([b"ok"], 100)
    assert (set(limit.taken), limit.promised) == ({False}, 0)


@pytest.mark.parametrize("topics", [20, 100])
def test_what_is_promised_is_taken_or_released(loop_station, topics):
    station = loop_station
    station.broker.limit_retained_copies(limit := CountedLimit(1_000_000))
    station.retain_all(MANY[:topics])
    what_matches = station.broker.retained_bytes
    station.retain("elsewhere", b"x" * 1_000)
    station.subscribe("a/#")
    assert limit.promised == (what_matches if topics == 20 else station.broker.retained_bytes)
    station.delete("a/7")
    station.run()
    assert (limit.promised, limit.taken) == (0, [True] * (topics - 1))


def test_what_was_promised_before_a_crash_is_refused_by_no_limit(loop_station):
    station = loop_station
    station.retain_all(MANY)
    station.subscribe("a/#")
    station.restart()
    station.broker.limit_retained_copies(limit := CountedLimit(0))
    station.run()
    assert (len(station.received()), set(limit.taken)) == (100, {True})


def test_the_end_of_each_command_is_told(loop_station):
    station = loop_station
    station.retain_all(MANY)
    ended = []
    station.broker.on_retained_sent(lambda correl_id, name: ended.append((correl_id[-1], name)))
    first = station.subscribe("a/#", 1)
    second = station.subscribe("a/#", 2)
    under_way = [(correl_id[-1], name) for correl_id, name in station.broker.commands_under_way()]
    assert under_way == [(1, first.msg_id), (2, second.msg_id)]
    assert station.broker.is_under_way(first.msg_id)
    assert not station.broker.is_unanswered(first.msg_id)
    station.run()
    assert sorted(ended) == [(1, first.msg_id), (2, second.msg_id)]
    assert (station.broker.commands_under_way(), station.broker.is_under_way(first.msg_id)) == ([], False)


def test_two_commands_of_applications_may_have_the_same_msg_id(loop_station):
    station = loop_station
    station.retain_all(MANY)
    for subscriber in (1, 2):
        station.register("a/#", subscriber, msg_id=b"M" * 24)
    station.run()
    assert [len(station.received(subscriber)) for subscriber in (1, 2)] == [100, 100]
    assert (station.answers(), station.broker.commands_under_way()) == ([b"ok"] * 2, [])


def test_a_command_that_an_earlier_version_stored_begins_anew(loop_station):
    """It has no further rows. This one has no command either, because it was an operator's."""
    station = loop_station
    station.retain_all(MANY)
    station.register("a/#", options="<RegOpt>NewPubsOnly</RegOpt>")
    (found,) = station.engine.objects.publish_subscribe().subscriptions()
    unit = station.engine.begin()
    row = ormsgpack.packb([1, [found.number], False, [], [], None])
    unit.set_state(StateKind.BROKER_UPDATE, station.engine.number().to_bytes(8, "big"), row)
    station.engine.submit(unit)
    station.restart()
    station.run()
    assert sorted(station.received()) == ALL_OLD
    assert rows(station) == []


@pytest.mark.parametrize("row", [b"\xc1", ormsgpack.packb(7), ormsgpack.packb([2, [1], False, [], [], None])])
def test_a_row_that_cannot_be_read_stops_the_start(loop_station, row):
    unit = loop_station.engine.begin()
    unit.set_state(StateKind.BROKER_UPDATE, bytes(7) + b"\x01", row)
    loop_station.engine.submit(unit)
    with pytest.raises(StoreError):
        loop_station.restart()


class Model:
    """What a session must have got of numbered publications: `seen` is the newest number of each topic."""

    def __init__(self) -> None:
        self.due: dict[str, int] = {}
        self.seen: dict[str, int] = {}

    def subscribe(self, retained: dict[str, int]) -> None:
        """It is to get all that is retained; what it had before may come again."""
        self.due, self.seen = dict(retained), {}

    def look(self, received: list[tuple[str, bytes]]) -> None:
        for topic, body in received:
            assert int(body) > self.seen.get(topic, 0), "older, or twice"
            self.seen[topic] = int(body)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_each_comes_once_and_nothing_older_behind_newer_through_any_crash(loop_station, seed):
    chance, station = random.Random(seed), loop_station
    retained: dict[str, int] = {}
    models = {subscriber: Model() for subscriber in range(1, 4)}

    def look() -> None:
        for subscriber, model in models.items():
            model.look(station.received(subscriber))

    def retain(topic: str, number: int) -> None:
        station.retain(topic, str(number).encode())
        retained[topic] = number

    def delete(topic: str, _number: int) -> None:
        station.delete(topic)
        for known in (retained, *(model.due for model in models.values())):
            known.pop(topic, None)

    def subscribe(_topic: str, _number: int) -> None:
        subscriber = chance.choice(list(models))
        station.register("#", subscriber, command="DeregSub", origin=b"a session")
        station.received(subscriber)
        station.subscribe("#", subscriber)
        models[subscriber].subscribe(retained)

    def restart(_topic: str, _number: int) -> None:
        station.restart()

    acts = [retain] * 12 + [lambda topic, number: station.live(topic, str(number).encode())] * 6
    acts += [delete] * 2 + [subscribe] * 2 + [restart] * 2 + [lambda *_: station.turn()] * 12 + [lambda *_: look()]
    for number in range(1, 400):
        chance.choice(acts)(f"{chance.choice('abc')}/{chance.randrange(60)}", number)
    station.run()
    look()
    for model in models.values():
        assert all(model.seen.get(topic, 0) >= number for topic, number in model.due.items())
    assert rows(station) == []
