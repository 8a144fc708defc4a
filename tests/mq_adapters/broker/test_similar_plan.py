"""Plans for other topics: the copies are those that a plan of their own would make."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import pytest

from mappings.commands.command import Publish, write_command
from mappings.commands.options import PublicationOption, RegistrationOption
from mappings.table import Dialect
from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.broker.deliveries import DeliveryMaker
from mq_adapters.broker.similar_plan import Patterns
from mq_adapters.command_header import FORMAT_OF_DIALECT, WrittenCommand
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.message import MessageDescriptor
from mq_adapters.system_queues import DEFAULT_STREAM

PLAIN = Publish(topics=("t",))
RETAINED = Publish(topics=("t",), publication_options=PublicationOption.RETAIN_PUBLICATION)


def publish(
    station: Any, topic: str, command: Publish = PLAIN, dialect: Dialect = Dialect.MQRFH2, **fields: Any
) -> None:
    """Puts a publication as the gateway does, with the header that it has written."""
    command = replace(command, topics=(topic,))
    written = WrittenCommand(command, dialect, write_command(command, dialect))
    descriptor = MessageDescriptor(**{"format": FORMAT_OF_DIALECT[dialect], "persistence": 1, **fields})
    unit = station.engine.begin()
    station.engine.put(unit, station.engine.queue(DEFAULT_STREAM), written.message(descriptor, b"21.5", b""))
    station.engine.submit(unit)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics whose plan was made anew."""
    made: list[str] = []
    plan = DeliveryMaker.plan

    def recording(self: DeliveryMaker, published: Any, *others: Any, **named: Any) -> Any:
        made.append(published.command.topics[0])
        return plan(self, published, *others, **named)

    monkeypatch.setattr(DeliveryMaker, "plan", recording)
    return made


def test_one_plan_serves_publications_on_many_topics(station: Any, plans: list[str]) -> None:
    station.subscribe_new("a/#")
    for number in range(5):
        publish(station, f"a/{number}")
    assert plans == ["a/0"]
    copies = station.take_all("NEW")
    assert [copy.body.partition(b"<Topic>")[2][:3] for copy in copies] == [b"a/0", b"a/1", b"a/2", b"a/3", b"a/4"]
    deliveries = [delivery for _, _, delivery in station.listener.copies]
    assert [delivery.topics for delivery in deliveries] == [(f"a/{number}",) for number in range(5)]
    assert [delivery.output_header + b"21.5" for delivery in deliveries] == [copy.body for copy in copies]


def both_formats(station: Any) -> None:
    station.subscribe_new("#")
    station.subscribe_old("*")


def some_topics(station: Any) -> None:
    station.subscribe_new("a/1")
    station.subscribe_new("b/+", "<RegOpt>CorrelAsId</RegOpt>", correl_id=b"c" * 24)


def with_user_data(station: Any) -> None:
    station.subscribe_new("#", "<SubUserData>x</SubUserData>")


def nobody(_station: Any) -> None:
    return


def act(station: Any) -> None:
    """Publications that differ in one thing each, on ever new topics."""
    kinds: list[tuple[Publish, dict[str, Any]]] = [
        (PLAIN, {}),
        (RETAINED, {}),
        (PLAIN, {"persistence": 0}),
        (PLAIN, {"priority": 5}),
        (PLAIN, {"expiry": 600}),
        (PLAIN, {"dialect": Dialect.MQRFH}),
        (replace(PLAIN, publication_options=PublicationOption.NO_REGISTRATION), {"dialect": Dialect.MQRFH}),
        (replace(PLAIN, registration_options=RegistrationOption.CORREL_ID_AS_IDENTITY), {"correl_id": b"c" * 24}),
        (replace(PLAIN, queue_name="Q"), {}),
        (replace(PLAIN, sequence_number="7"), {}),
    ]
    for turn in range(3):
        for command, how in kinds:
            for area in "ab":
                publish(station, f"{area}/{turn}", command, **how)
                publish(station, f"{area}/{turn}/{len(station.listener.copies)}", command, **how)


@pytest.mark.parametrize(
    ("subscribe", "is_like"), [(both_formats, False), (some_topics, True), (with_user_data, False), (nobody, True)]
)
def test_copies_are_those_of_plans_that_are_made_anew(
    subscribe: Callable[[Any], None],
    is_like: bool,
    station_class: Any,
    memory_folder: Path,
    plans: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcomes = []
    for is_kept in (True, False):
        if not is_kept:
            monkeypatch.setattr(Patterns, "keep", lambda *_: None)
        station = station_class(memory_folder / str(is_kept), ())
        with closing(station.engine):
            subscribe(station)
            plans.clear()
            act(station)
            retained = [key for key, _ in station.engine.states(StateKind.BROKER_RETAINED)]
        copies = [(copy.descriptor, copy.body, astuple(delivery)) for _, copy, delivery in station.listener.copies]
        outcomes.append((len(plans), copies, retained))
    assert outcomes[0][1:] == outcomes[1][1:]
    assert len(outcomes[0][2]) > 3
    assert (outcomes[0][0] < outcomes[1][0]) == is_like


def test_a_plan_serves_no_other_topic_after_a_change(station: Any, plans: list[str]) -> None:
    station.subscribe_new("a/#")
    publish(station, "a/0")
    publish(station, "a/1")
    station.engine.define("LATER")
    publish(station, "a/2")
    station.subscribe_new("a/3", correl_id=b"c" * 24, options="<RegOpt>CorrelAsId</RegOpt>")
    publish(station, "a/3")
    assert plans == ["a/0", "a/2", "a/3"]
    assert len(station.bodies("NEW")) == 5


def test_each_long_topic_has_a_plan_of_its_own(station: Any) -> None:
    long = "x" * 4_200  # a header of more than 4,096 bytes stands in no key
    station.subscribe_new("#")
    station.subscribe_new(f"b/{long}", "<RegOpt>CorrelAsId</RegOpt>", correl_id=b"c" * 24)
    topics = ["a/1", f"a/{long}", f"b/{long}"]
    for topic in topics:
        publish(station, topic, RETAINED)
    told = [(delivery.topics[0], delivery.correl_id[:1]) for _, _, delivery in station.listener.copies]
    own = station.listener.copies[0][2].correl_id[:1]
    assert sorted(told) == sorted([*((topic, own) for topic in topics), (topics[-1], b"c")])
    bodies = [copy.body for copy in station.take_all("NEW")]
    assert [sum(f"<Topic>{topic}</Topic>".encode() in body for body in bodies) for topic in topics] == [1, 1, 2]
    retained = [key for key, _ in station.engine.states(StateKind.BROKER_RETAINED)]
    assert [sum(key.endswith(topic.encode()) for key in retained) for topic in topics] == [1, 1, 1]


def test_a_long_topic_that_is_closed_stays_closed_behind_one_that_is_not(station: Any) -> None:
    station.subscribe_new("#")
    long = "x" * 4_200
    said = {"TOPICSTR": "b", "PUB": "DISABLED"}
    station.engine.objects.define(Definition(object_type=ObjectType.TOPIC, name="SHUT", said=said))
    publish(station, "a/1")
    publish(station, f"a/{long}")
    publish(station, f"b/{long}")
    assert [delivery.topics[0][0] for _, _, delivery in station.listener.copies] == ["a", "a"]


@pytest.mark.parametrize(
    ("subscribers", "fields"), [(1, {"expiry": 600}), (65, {})], ids=["each remaining time", "very many copies"]
)
def test_no_pattern_is_kept_that_would_fill_the_memory(
    subscribers: int, fields: dict[str, Any], station: Any, plans: list[str]
) -> None:
    for number in range(subscribers):
        correl_id = number.to_bytes(2, "big").ljust(24, b"c")
        station.subscribe_new("#", "<RegOpt>CorrelAsId</RegOpt>", correl_id=correl_id)
    publish(station, "a/0", **fields)
    publish(station, "a/1", **fields)
    assert plans == ["a/0", "a/1"]
