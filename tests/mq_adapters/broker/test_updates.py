"""What is retained, sent a little in each turn of the event loop: what comes, in which order, and after a crash.

A unit of work has at most 15 copies; a turn makes one ready. The loop is a list of calls, and a commit takes no time.
"""

import random

import pytest

from mq_adapters.embedded import queue_administration
from mq_adapters.embedded.unit_of_work import StateKind
from tests.mq_adapters.broker.on_a_loop import UNIT, OnALoop


def test_each_turn_sends_a_few_copies_and_the_last_one_answers(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(50)])
    station.register("a/#")
    turns = [len(station.listener.copies)]
    while station.calls:
        assert station.answers() == []
        turns.append(station.turn())
    assert max(turns) <= UNIT
    assert sorted(station.received()) == sorted((f"a/{number}", b"old") for number in range(50))
    assert station.answers() == [b"ok"]
    assert station.engine.states(StateKind.BROKER_UPDATE) == []


def test_a_few_copies_are_sent_at_once_and_the_oldest_first(loop_station):
    for topic in ("a/3", "a/1", "a/2"):
        loop_station.retain(topic)
    loop_station.register("a/#")
    assert [topic for topic, _ in loop_station.received()] == ["a/3", "a/1", "a/2"]
    assert (loop_station.answers(), len(loop_station.calls)) == ([b"ok"], 0)


def test_copies_that_were_made_ready_are_as_the_queue_is_defined_when_they_are_put(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(50)])
    station.register("a/#", options="<RegOpt>PersAsQueue</RegOpt>")
    while not station.listener.copies:
        station.turn()
    station.turn()  # makes the next copies ready
    before = len(station.listener.copies)
    queue = station.engine.queue("NEW")
    queue_administration.alter(station.engine, queue.definition.altered({"DEFPSIST": "NO"}))
    station.run()
    told = [(copy.descriptor.persistence, each.default_persistence) for _, copy, each in station.listener.copies]
    assert (set(told[:before]), set(told[before:])) == ({(1, 2)}, {(0, 1)})


def test_a_turn_that_looks_at_many_topics_and_finds_none_ends_too(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}/x" for number in range(250)])
    station.register("a/+/y")
    assert station.answers() == []
    turns = 0
    while station.calls:
        turns += 1
        station.turn()
    assert turns >= 2
    assert (station.received(), station.answers()) == ([], [b"ok"])


def test_large_publications_fill_a_turn_sooner(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(4)], b"x" * 50_000)
    station.register("a/#")
    turns = []
    while station.calls:
        turns.append(station.turn())
    assert max(turns) == 2
    assert len(station.received()) == 4


def test_who_asks_for_little_does_not_wait_for_who_asks_for_much(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(250)])
    station.register("a/#", 1)
    station.turn()
    station.register("a/7", 2)
    assert (station.received(2), station.answers()) == ([("a/7", b"old")], [b"ok"])


def test_who_asks_for_little_does_not_wait_for_who_asks_often(loop_station):
    station = loop_station
    station.retain_all([f"{number}/{place}" for number in range(100) for place in range(5)])
    for number in range(100):
        station.register(f"{number}/+", 1)
    station.register("7/#", 2)
    received = []
    for _ in range(20):
        station.turn()
        received += station.received(2)
    assert len(received) == 5
    station.run()
    assert len(station.received(1)) == 500
    assert station.answers() == [b"ok"] * 101


def test_commands_are_carried_out_in_turn(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(3 * UNIT)])
    for subscriber in range(1, 11):
        station.register("a/#", subscriber)
    while not station.listener.copies:
        station.turn()
    for _ in range(9 * (UNIT + 1)):
        station.turn()
    assert [len(station.received(subscriber)) > 0 for subscriber in range(1, 11)] == [True] * 10
    station.run()
    assert [len(station.received(subscriber)) for subscriber in range(1, 11)] == [2 * UNIT] * 10
    assert station.answers() == [b"ok"] * 10


def test_of_the_large_commands_a_few_take_turns_and_all_are_answered(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(80)])
    for subscriber in range(1, 11):
        station.register("a/#", subscriber)
        station.register("#", subscriber)
    for _ in range(5 * (UNIT + 1)):
        station.turn()
    assert sum(len(station.received(subscriber)) > 0 for subscriber in range(1, 11)) == 4
    station.run()
    assert station.answers() == [b"ok"] * 20
    assert station.engine.states(StateKind.BROKER_UPDATE) == []


def test_a_publication_on_a_topic_comes_behind_what_was_retained_there(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(100)])
    station.register("a/#")
    for number in range(100):
        station.live(f"a/{number}")
    station.run()
    received = station.received()
    assert len(received) == 200
    assert [body for topic, body in received if topic == "a/77"] == [b"old", b"new"]
    for number in range(100):
        assert [body for topic, body in received if topic == f"a/{number}"] == [b"old", b"new"]


def test_what_takes_the_place_of_a_retained_one_is_not_sent_twice(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(100)])
    station.register("a/#")
    station.retain("a/99", b"newer")
    station.run()
    assert [body for topic, body in station.received() if topic == "a/99"] == [b"old", b"newer"]


def test_what_is_deleted_or_expires_before_its_turn_is_not_sent(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(98)])
    station.retain("b/1")
    station.retain("b/2", expiry=10)
    station.register("#")
    sent = {topic for topic, _ in station.received()}
    station.delete("b/1")
    station.pass_time(2)
    station.run()
    later = {topic for topic, _ in station.received()}
    assert len(sent | later) >= 98
    assert not {"b/1", "b/2"} & later


def test_a_subscription_that_ends_is_sent_no_more_and_its_command_is_answered(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(100)])
    station.register("a/#")
    while not station.listener.copies:
        station.turn()
    station.register("a/#", command="DeregSub")
    assert station.answers() == [b"ok"]
    sent = station.received()
    assert 0 < len(sent) < 100
    station.run()
    assert (station.received(), station.answers()) == ([], [b"ok"])


def test_a_subscription_that_ends_and_is_made_again_gets_all_once(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(100)])
    station.register("a/#")
    station.register("a/#", command="DeregSub")
    station.received()
    station.register("a/#")
    station.run()
    assert len(station.received()) == 100
    assert station.answers() == [b"ok"] * 3


def test_each_command_for_the_same_subscription_is_answered(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(100)])
    for _ in range(5):
        station.register("a/#")
    station.run()
    assert station.answers() == [b"ok"] * 5
    received = station.received()
    assert len(received) <= 5 * 100
    assert {topic for topic, _ in received} == {f"a/{number}" for number in range(100)}


def test_several_topics_of_a_command_bring_each_publication_once(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(40)])
    station.control(
        "<psc><Command>RegSub</Command><QName>NEW</QName><Topic>a/#</Topic><Topic>a/+</Topic><Topic>+/3</Topic></psc>"
    )
    station.run()
    assert len(station.bodies("NEW")) == 40


def test_request_update_is_answered_behind_its_publications(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(40)])
    station.register("a/#")
    station.run()
    station.received()
    station.answers()
    station.register("a/#", command="ReqUpdate")
    assert station.answers() == []
    station.run()
    assert (len(station.received()), station.answers()) == (40, [b"ok"])


def test_request_update_that_finds_nothing_after_a_long_look_is_answered_so(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}/x" for number in range(250)])
    station.register("a/+/y", command="RegSub")
    station.run()
    station.bodies("REPLY")
    station.register("a/+/y", command="ReqUpdate")
    station.run()
    (answer,) = station.bodies("REPLY")
    assert b"<Reason>3077</Reason>" in answer


def test_after_a_crash_all_is_sent_and_the_command_is_answered(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(100)])
    station.register("a/#")
    station.turn()
    station.restart()
    assert station.answers() == []
    station.run()
    received = station.received()
    assert {topic for topic, _ in received} == {f"a/{number}" for number in range(100)}
    assert station.answers() == [b"ok"]
    assert station.engine.states(StateKind.BROKER_UPDATE) == []


def test_a_broker_that_is_stopped_puts_nothing_more_and_goes_on_after_the_start(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(100)])
    station.register("a/#")
    station.turn()
    station.broker.stop()
    before = len(station.listener.copies)
    station.run()
    assert (len(station.listener.copies), station.answers()) == (before, [])
    station.restart()
    station.run()
    assert (len(station.received()), station.answers()) == (100, [b"ok"])


def test_after_a_crash_a_command_whose_subscription_has_ended_is_answered(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(100)])
    station.register("a/#")
    station.register("a/#", command="DeregSub")
    station.bodies("REPLY")
    station.restart()
    station.run()
    assert station.answers() == [b"ok"]
    assert station.engine.states(StateKind.BROKER_UPDATE) == []


def test_a_broker_without_a_loop_takes_up_what_one_with_a_loop_has_left(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(100)])
    station.register("a/#")
    while not station.listener.copies:
        station.turn()
    station.engine.close()
    super(OnALoop, station).open()
    assert station.answers() == [b"ok"]
    assert len(station.received()) == 100


def test_an_answer_says_after_a_crash_what_it_would_have_said(loop_station):
    station = loop_station
    station.retain_all([f"a/{number}" for number in range(100)])
    for _ in range(2):
        station.control(
            "<psc><Command>RegSub</Command><RegOpt>JoinShared</RegOpt><RegOpt>FullResp</RegOpt><QName>NEW</QName>"
            "<Topic>a/#</Topic><SubIdentity>me</SubIdentity></psc>"
        )
    station.restart()
    station.run()
    first, second = station.bodies("REPLY")
    assert b"<SubIdentity>me</SubIdentity>" in first
    assert b"<Completion>ok</Completion>" in first
    assert b"<Completion>warning</Completion>" in second
    assert b"<Reason>3157</Reason>" in second


class Model:
    """What a subscriber of # must have got of numbered publications: `seen` is the newest number of each topic."""

    def __init__(self) -> None:
        self.due: dict[str, int] = {}
        self.seen: dict[str, int] = {}

    def register(self, retained: dict[str, int]) -> None:
        """It is to get all that is retained; what it had before may come again."""
        self.due, self.seen = dict(retained), {}

    def look(self, received: list[tuple[str, bytes]]) -> None:
        for topic, body in received:
            assert int(body) >= self.seen.get(topic, 0)
            self.seen[topic] = int(body)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_nothing_is_lost_and_nothing_older_comes_behind_newer(loop_station, seed):
    chance, station = random.Random(seed), loop_station
    retained: dict[str, int] = {}
    models = {subscriber: Model() for subscriber in range(1, 7)}

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

    def register(_topic: str, _number: int) -> None:
        look()
        subscriber = chance.choice(list(models))
        station.register("#", subscriber)
        models[subscriber].register(retained)

    def deregister(_topic: str, _number: int) -> None:
        subscriber = chance.choice(list(models))
        station.register("#", subscriber, command="DeregSub")
        station.received(subscriber)
        models[subscriber] = Model()

    acts = [retain] * 12 + [lambda topic, number: station.live(topic, str(number).encode())] * 6
    acts += [delete] * 2 + [register] * 2 + [deregister] + [lambda *_: station.turn()] * 9 + [lambda *_: look()]
    for number in range(1, 400):
        chance.choice(acts)(f"{chance.choice('abc')}/{chance.randrange(60)}", number)
    station.run()
    look()
    for model in models.values():
        assert all(model.seen.get(topic, 0) >= number for topic, number in model.due.items())
    assert station.engine.states(StateKind.BROKER_UPDATE) == []
