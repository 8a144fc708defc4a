"""Routes: which broker has a topic, and what a subscription asks of each."""

import pytest

from gateway.config import RouteSettings, TargetSettings
from gateway.config.routes import EMBEDDED, Routes, overlap
from mappings.commands.command import Dialect
from mappings.errors import ConversionError
from mappings.topics.topics import Scheme, matches

DEFAULT_STREAM = "SYSTEM.BROKER.DEFAULT.STREAM"


def target(name: str, **settings: object) -> TargetSettings:
    return TargetSettings.model_validate({"name": name, **settings})


def route(to: str, *topics: str, **settings: object) -> RouteSettings:
    return RouteSettings.model_validate({"target": to, "topics": topics, **settings})


def routes(*each: RouteSettings, targets: tuple[TargetSettings, ...] = (target("A"), target("B"))) -> Routes:
    return Routes(each, targets)


def registered(found: Routes, topic_filter: str) -> list[tuple[str, tuple[str, ...]]]:
    """Destination and patterns of each registration; the embedded broker's key is empty."""
    return [(each.destination.key, each.patterns) for each in found.registrations(topic_filter)]


def test_the_first_route_that_matches_takes_a_topic() -> None:
    found = routes(route("A", "plant/1/#"), route("B", "plant/#", "lab/+"))
    assert found.of("plant/1/x").destination.key == f"A {DEFAULT_STREAM}"
    assert found.of("plant/2").destination.key == f"B {DEFAULT_STREAM}"
    assert found.of("lab/x").destination.key == f"B {DEFAULT_STREAM}"
    assert found.of("lab/x/y").target is None


def test_a_route_for_everything_does_not_take_topics_that_begin_with_a_dollar_sign() -> None:
    """MQTT 3.1.1 section 4.7.2."""
    found = routes(route("A", "#"))
    assert found.of("a").target is not None
    assert found.of("$SYS/a").target is None


def test_without_routes_everything_is_the_embedded_brokers() -> None:
    found = Routes()
    assert not found.has_targets
    assert found.of("a/b").target is None
    assert found.concerned("#") == (EMBEDDED,)


def test_a_subscription_asks_each_destination_for_its_own_topics_and_the_embedded_broker_last() -> None:
    found = routes(route("A", "plant/1/#"), route("B", "plant/#", "lab/+"))
    assert registered(found, "plant/+/temperature") == [
        (f"A {DEFAULT_STREAM}", ("plant/1/temperature",)),
        (f"B {DEFAULT_STREAM}", ("plant/+/temperature",)),
    ]
    assert registered(found, "#") == [
        (f"A {DEFAULT_STREAM}", ("plant/1/#",)),
        (f"B {DEFAULT_STREAM}", ("plant/#", "lab/+")),
        ("", ("#",)),
    ]
    assert registered(found, "office") == [("", ("office",))]


def test_a_route_that_covers_the_filter_ends_the_search() -> None:
    found = routes(route("A", "plant/#"), route("B", "#"))
    assert registered(found, "plant/1") == [(f"A {DEFAULT_STREAM}", ("plant/1",))]
    assert [key for key, _ in registered(found, "+/1")] == [f"A {DEFAULT_STREAM}", f"B {DEFAULT_STREAM}"]


def test_in_mqrfh_the_patterns_are_those_of_the_character_scheme() -> None:
    found = routes(route("A", "a/#"), targets=(target("A", header="mqrfh"),))
    assert registered(found, "a/#") == [(f"A {DEFAULT_STREAM}", ("a", "a/*"))]
    assert registered(found, "a/+") == [(f"A {DEFAULT_STREAM}", ("a/*",))]


def test_the_embedded_brokers_patterns_are_in_the_gateways_own_dialect() -> None:
    found = Routes(own_dialect=Dialect.MQRFH)
    assert registered(found, "a/#") == [("", ("a", "a/*"))]


def test_a_stream_that_is_a_queue_is_the_queue_of_its_publications() -> None:
    found = routes(route("A", "a/#", stream="S"), route("B", "b/#", stream="S", queue="IN"))
    assert (found.of("a/1").queue, found.of("b/1").queue) == ("S", "IN")
    assert found.of("a/1").destination.stream_name == "S"
    assert found.of("a/1").destination.prefix == ""


@pytest.mark.parametrize(("style", "prefix"), [("message_broker", "$SYS/STREAM/SPORT/"), ("queue_manager", "SPORT/")])
def test_a_stream_that_is_a_prefix_stands_in_front_of_topics_and_patterns(style: str, prefix: str) -> None:
    """IBM MQ, "Streams and topics"; Message Broker, "Streams"."""
    found = routes(route("A", "a/#", stream="SPORT"), targets=(target("A", streams=style),))
    there = found.of("a/1")
    assert (there.queue, there.destination.prefix, there.destination.stream_name) == (DEFAULT_STREAM, prefix, None)
    assert registered(found, "a/+") == [("A SPORT", (f"{prefix}a/+",))]
    assert found.without_prefix(f"{prefix}a/1") == ("a/1", there.destination)


def test_a_prefix_is_taken_off_topics_of_its_own_route_alone() -> None:
    found = routes(route("A", "a/#", stream="SPORT"), targets=(target("A", streams="queue_manager"),))
    assert found.without_prefix("SPORT/b") == ("SPORT/b", EMBEDDED)
    assert found.without_prefix("a/1") == ("a/1", EMBEDDED)
    assert found.without_prefix("SPORT/") == ("SPORT/", EMBEDDED)


def test_mqrfh2_cannot_subscribe_on_a_stream_that_has_no_prefix() -> None:
    found = routes(route("A", "a/#", stream="S"))
    with pytest.raises(ConversionError, match="MQRFH2 cannot name stream S"):
        found.registrations("a/1")


def test_a_prefix_is_literal_in_a_character_pattern() -> None:
    named = target("A", streams="queue_manager", header="mqrfh")
    found = routes(route("A", "a/#", stream="50%"), targets=(named,))
    assert registered(found, "a/+") == [("A 50%", ("50%%/a/*",))]


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ("#", "a/b", "a/b"),
        ("a/#", "#", "a/#"),
        ("a/#", "+/b", "a/b"),
        ("a/#", "a", "a"),
        ("a/#", "+", "a"),
        ("a/+", "a", None),
        ("+/b", "a/+", "a/b"),
        ("+/#", "a/b/c", "a/b/c"),
        ("a/b", "a/c", None),
        ("a", "a/b", None),
        ("#", "$SYS/a", None),
        ("+/a", "$SYS/#", None),
        ("$SYS/#", "$SYS/+", "$SYS/+"),
        ("/", "+/+", "/"),
    ],
)
def test_the_overlap_of_two_filters_is_one_filter(first: str, second: str, both: str | None) -> None:
    assert overlap(first, second) == overlap(second, first) == both


def test_an_overlap_matches_what_both_filters_match() -> None:
    levels = ("a", "b", "+", "")
    filters = ["#", *levels, *(f"{x}/{y}" for x in levels for y in (*levels, "#"))]
    topics = [topic for topic in filters if "+" not in topic and "#" not in topic and topic] + ["a/b/a", "$a", "$a/b"]
    for first in filter(None, filters):
        for second in filter(None, filters):
            both = overlap(first, second)
            for topic in topics:
                wanted = all(matches(each, topic, Scheme.MQTT) for each in (first, second))
                assert (both is not None and matches(both, topic, Scheme.MQTT)) == wanted, (first, second, topic)
