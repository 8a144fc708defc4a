"""Headers for targets, performed again by the audit: two programs, one answer, byte for byte."""

from dataclasses import replace

import pytest

from gateway.bridge.commands.target_messages import (
    TargetMessage,
    deletion,
    deregistration,
    publication,
    registration,
    update_request,
)
from gateway.config import RouteSettings, TargetSettings
from gateway.config.routes import Registration, Routes, route_of
from spark_audit.reperform.comparison import Comparison, Status
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.performance import reperform
from tests.gateway.bridge.conftest import publish_packet

MSG_ID, CORREL_ID = b"M" * 24, b"C" * 24
STREAMS = ("SYSTEM.BROKER.DEFAULT.STREAM", "SPORT.%50")
PUBLISH, SUBSCRIBE, UNSUBSCRIBE, CONNECT = 3, 8, 10, 1
WAYS = [
    (header, style, stream)
    for header in ("mqrfh", "mqrfh2")
    for style in ("queue", "message_broker", "queue_manager")
    for stream in STREAMS
]


def routes_to(header: str, style: str, stream: str, *topics: str) -> Routes:
    target = TargetSettings.model_validate({"name": "QM1", "header": header, "streams": style})
    return Routes([RouteSettings(target="QM1", topics=topics or ("#",), stream=stream)], [target])


def facts(made: TargetMessage, routes: Routes, packet_type: int, packet: bytes, **more: object) -> Facts:
    """What the put's record says of a message for the first route's target."""
    (destination,) = routes.destinations
    assert destination.target is not None
    said: dict[str, object] = {
        "conversion": "packet_to_header",
        "command": made.verb,
        "topic": " ".join(made.topics),
        "queue": made.queue,
        "packet_type": packet_type,
        "granted_qos": -1,
        "published_qos": -1,
        "is_retained": False,
        "payload_bytes": 0,
        "dropped_fields": (),
        "input": packet,
        "input_format": "MQTT",
        "input_ccsid": -1,
        "input_encoding": -1,
        "output": made.header,
        "output_format": made.descriptor.format.decode().rstrip(),
        "output_ccsid": made.descriptor.coded_char_set_id,
        "output_encoding": made.descriptor.encoding,
        "destination": "QM1",
        "stream": destination.stream,
        "stream_style": destination.target.streams,
        "client": "pump 1",
        "exchange": 7,
    }
    return Facts(**{**said, **more})  # type: ignore[arg-type]  # passed on as they came


def comparison_of_publish(
    way: tuple[str, str, str], topic: str, first_byte: int, by: str | None, **recorded: object
) -> Comparison:
    """Of a PUBLISH by a user; `recorded` are facts of the record that differ from what happened."""
    routes = routes_to(*way)
    made = publication(
        routes.of(topic),
        topic=topic,
        qos=first_byte >> 1 & 3,
        retain=bool(first_byte & 1),
        client="pump 1",
        user=by,
        sequence=7,
        msg_id=MSG_ID,
    )
    packet = publish_packet(first_byte, topic.encode(), b"")
    return reperform(facts(made, routes, PUBLISH, packet, **{"payload_bytes": 3, "user": by or "", **recorded}))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("topic", ["a/b", "50% *?", 'a "b" <&>', "/"])
@pytest.mark.parametrize(("first_byte", "user"), [(0x30, None), (0x33, "anna <&>"), (0x34, "x" * 40)])
def test_every_publish_is_what_the_audit_predicts_from_the_packet(
    way: tuple[str, str, str], topic: str, first_byte: int, user: str | None
) -> None:
    comparison = comparison_of_publish(way, topic, first_byte, user)
    assert (comparison.status, comparison.same_bytes) == (Status.MATCH, True), comparison.detail


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "forged",
    [
        {"client": "pump 2"},
        {"exchange": 8},
        {"user": "otto"},
        {"destination": ""},
        {"stream": "OTHER", "stream_style": "queue_manager"},
        {"input": publish_packet(0x34, b"a/b", b"")},
    ],
)
def test_a_publish_that_carries_something_else_is_a_difference(
    way: tuple[str, str, str], forged: dict[str, object]
) -> None:
    comparison = comparison_of_publish(way, "a/b", 0x32, "anna", **forged)
    assert comparison.status is Status.DIFFERENCE


@pytest.mark.parametrize("way", WAYS)
def test_every_will_is_what_the_audit_predicts_from_the_connect(way: tuple[str, str, str]) -> None:
    """No record tells the exchange of a will; its QoS stands in the flags."""
    routes = routes_to(*way)
    made = publication(
        routes.of("w/w"), topic="w/w", qos=1, retain=True, client="pump 1", user=None, sequence=123, msg_id=MSG_ID
    )
    will = b"\x00\x03w/w" + bytes((1 << 1 | 1,))
    comparison = reperform(facts(made, routes, CONNECT, will, payload_bytes=3, exchange=-1))
    assert (comparison.status, comparison.same_bytes) == (Status.MATCH, True), comparison.detail


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("topic", ["a/b", "*", "50%", "a b?"])
def test_every_deletion_is_what_the_audit_predicts(way: tuple[str, str, str], topic: str) -> None:
    routes = routes_to(*way)
    made = deletion(routes.of(topic), topic=topic, msg_id=MSG_ID)
    comparison = reperform(facts(made, routes, PUBLISH, publish_packet(0x33, topic.encode(), b""), exchange=-1))
    assert (comparison.status, comparison.same_bytes) == (Status.MATCH, True), comparison.detail


def subscribed(way: tuple[str, str, str], topic_filter: str, *topics: str) -> tuple[Routes, Registration]:
    routes = routes_to(*way, *topics)
    return routes, routes.registrations(topic_filter)[0]


def entry(topic_filter: str, *qos: int) -> bytes:
    return len(topic_filter).to_bytes(2, "big") + topic_filter.encode() + bytes(qos)


def narrowed(found: Registration, topic_filter: str) -> tuple[str, ...]:
    """What the record says of a filter that is registered in parts."""
    return () if found.topic_filters == (topic_filter,) else found.topic_filters


SUBSCRIPTIONS = [way for way in WAYS if way != ("mqrfh2", "queue", STREAMS[1])]  # MQRFH2 cannot name a stream


@pytest.mark.parametrize("way", SUBSCRIPTIONS)
@pytest.mark.parametrize("topics", [("#",), ("a/#", "+/c/+", "50%/*")])
@pytest.mark.parametrize("topic_filter", ["a/+", "#", "+/+/d", "a/b/#", "50%/*"])
def test_every_registration_is_what_the_audit_predicts_from_the_subscribe(
    way: tuple[str, str, str], topics: tuple[str, ...], topic_filter: str
) -> None:
    routes, found = subscribed(way, topic_filter, *topics)
    made = registration(found.destination, patterns=found.patterns, correl_id=CORREL_ID, msg_id=MSG_ID)
    parts = narrowed(found, topic_filter)
    comparison = reperform(facts(made, routes, SUBSCRIBE, entry(topic_filter, 1), topic_filters=parts))
    assert (comparison.status, comparison.same_bytes) == (Status.MATCH, True), comparison.detail
    made = deregistration(found.destination, patterns=found.patterns, correl_id=CORREL_ID, msg_id=MSG_ID)
    comparison = reperform(facts(made, routes, UNSUBSCRIBE, entry(topic_filter), topic_filters=parts))
    assert (comparison.status, comparison.same_bytes) == (Status.MATCH, True), comparison.detail
    for pattern in found.patterns:
        made = update_request(found.destination, pattern=pattern, correl_id=CORREL_ID, msg_id=MSG_ID)
        comparison = reperform(facts(made, routes, SUBSCRIBE, entry(topic_filter, 1), topic_filters=parts))
        assert (comparison.status, comparison.same_bytes) == (Status.MATCH, True), comparison.detail


@pytest.mark.parametrize("way", SUBSCRIPTIONS)
def test_a_registration_that_asks_for_more_than_the_filter_is_a_difference(way: tuple[str, str, str]) -> None:
    routes, found = subscribed(way, "a/#")
    made = registration(found.destination, patterns=found.patterns, correl_id=CORREL_ID, msg_id=MSG_ID)
    comparison = reperform(facts(made, routes, SUBSCRIBE, entry("a/+", 1), topic_filters=("a/#",)))
    assert comparison.status is Status.DIFFERENCE
    assert "is more than" in comparison.detail
    made = update_request(found.destination, pattern="b", correl_id=CORREL_ID, msg_id=MSG_ID)
    assert reperform(facts(made, routes, SUBSCRIBE, entry("a/+", 1))).status is Status.DIFFERENCE


@pytest.mark.parametrize("way", SUBSCRIPTIONS)
def test_what_the_gateway_registers_and_ends_of_its_own_is_predicted_too(way: tuple[str, str, str]) -> None:
    """A registration that is repeated for another queue manager, and the end of a session: no packet asks."""
    routes, found = subscribed(way, "a/#")
    made = registration(found.destination, patterns=found.patterns, correl_id=CORREL_ID, msg_id=MSG_ID, anew=True)
    for message, packet_type in (
        (made, SUBSCRIBE),
        (deregistration(found.destination, patterns=(), correl_id=CORREL_ID, msg_id=MSG_ID), 14),
    ):
        comparison = reperform(facts(message, routes, packet_type, b""))
        assert (comparison.status, comparison.same_bytes) == (Status.MATCH, True), comparison.detail


@pytest.mark.parametrize("style", ["message_broker", "queue_manager"])
def test_a_delivery_without_the_prefix_and_with_the_carried_qos_is_predicted(style: str) -> None:
    target = TargetSettings.model_validate({"name": "QM1", "streams": style})
    route = route_of(RouteSettings(target="QM1", stream="SPORT"), target)
    made = publication(route, topic="a/b", qos=2, retain=False, client="pump 1", user=None, sequence=7, msg_id=MSG_ID)
    routes = Routes([RouteSettings(target="QM1", stream="SPORT")], [target])
    delivered = replace(
        facts(made, routes, PUBLISH, made.header),
        conversion="header_to_packet",
        destination="",
        client="",
        exchange=-1,
        granted_qos=1,
        published_qos=2,
        input_format="MQHRF2",
        input_ccsid=1208,
        input_encoding=546,
        output=bytes.fromhex("32 07 0003 612f62 0001"),
        output_format="MQTT",
    )
    assert reperform(delivered).status is Status.MATCH
    assert reperform(replace(delivered, published_qos=1)).status is Status.DIFFERENCE
    assert reperform(replace(delivered, stream="", stream_style="")).status is Status.DIFFERENCE
