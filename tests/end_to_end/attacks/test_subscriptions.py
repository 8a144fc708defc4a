"""Subscriptions without number, wildcards at every level, topics as deep as they can be."""

import itertools

import pytest

from tests.end_to_end.attacks.attacker import (
    ACCEPTED,
    PATIENCE_S,
    Attacker,
    Crowd,
    connect,
    packet,
    publish,
    subscribe,
    text,
    two,
)
from tests.end_to_end.attacks.bystander import watched
from tests.end_to_end.attacks.conftest import Scale
from tests.end_to_end.gateway_process import Gateway

pytestmark = pytest.mark.proof

FILTERS_OF_A_SESSION = 500  # maximum_subscriptions of the attacked gateway
LEVELS = 200  # maximum_topic_levels
FAILURE = 0x80
SHAPES_OF_A_NETWORK = 64  # maximum_filter_shapes_per_user


def _connected(attacker: Attacker, client: str) -> None:
    attacker.send(connect(client))
    attacker.expect(ACCEPTED)


def _subscribe(attacker: Attacker, filters: list[str]) -> bytes:
    """The return codes."""
    attacker.send(subscribe(filters))
    suback = attacker.receive(1)
    while not suback[1:] or suback[-1] & 0x80:
        suback += attacker.receive(1)
    length = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(suback[1:]))
    return attacker.receive(length)[2:]


def test_a_session_has_so_many_filters_and_the_rest_is_refused(attacked: Gateway) -> None:
    with watched(attacked, memory_mib=60) as watch, Attacker(attacked.port) as attacker:
        _connected(attacker, "many-filters")
        codes = _subscribe(attacker, [f"many/{place}/+" for place in range(FILTERS_OF_A_SESSION + 200)])
        assert codes == bytes(FILTERS_OF_A_SESSION) + bytes((FAILURE,)) * 200
        assert _subscribe(attacker, ["one/more"]) == bytes((FAILURE,))
        watch.others_are_served()


def test_the_same_filters_again_and_again_cost_nothing_more(attacked: Gateway, scale: Scale) -> None:
    filters = [f"again/{place}/#" for place in range(100)]
    with watched(attacked, memory_mib=80) as watch, Attacker(attacked.port) as attacker:
        _connected(attacker, "again-and-again")
        for turn in range(scale(20, 500)):
            assert _subscribe(attacker, filters) == bytes(100)
            if turn % 2:
                attacker.send(packet(0xA2, b"\x00\x01" + b"".join(text(each) for each in filters)))
                attacker.expect(b"\xb0\x02\x00\x01")
        watch.others_are_served()


def test_a_storm_of_subscriptions_leaves_others_room(attacked: Gateway, scale: Scale) -> None:
    """In full 100,000 filters, some 1,300 a second where others publish. They go with their sessions.

    Each session comes from a network of its own, for one network may have the filters of 16 clients.
    """
    sessions = scale(6, 200)
    with (
        watched(attacked, memory_mib=80 + sessions * 2.5) as watch,
        Crowd(
            attacked.port,
            sessions,
            lambda place: connect(f"storm-{place}"),
            source=lambda place: f"127.{place + 1}.1.1",
        ) as crowd,
    ):
        crowd.read_until(lambda member: len(member.received) >= 4)
        crowd.send(lambda place: subscribe(f"storm/{place}/{each}/+" for each in range(FILTERS_OF_A_SESSION)))
        answered = 4 + 3 + 2 + FILTERS_OF_A_SESSION
        crowd.read_until(lambda member: len(member.received) >= answered, patience_s=10 * PATIENCE_S)
        assert all(member.received[9:] == bytes(FILTERS_OF_A_SESSION) for member in crowd.members)
        watch.others_are_served()
        crowd.send(lambda _: packet(0xE0, b""))
        crowd.read_until(lambda _: False)


@pytest.mark.parametrize("missing_bytes", [0, 1], ids=["whole", "unfinished"])
def test_filters_that_wait_are_dropped_where_they_take_too_much(attacked: Gateway, missing_bytes: int) -> None:
    """maximum_unfinished_bytes_in_all, here 64 MiB: a filter of six bytes takes some 300, so two packets may wait."""
    asked = subscribe(f"{each:06d}" for each in range(100_000))
    with (
        watched(attacked, memory_mib=450) as watch,
        Crowd(attacked.port, 10, lambda place: connect(f"waiting-{place}")) as crowd,
    ):
        crowd.read_until(lambda member: len(member.received) >= 4)
        crowd.send(lambda _: asked[: len(asked) - missing_bytes])
        crowd.read_until(lambda _: crowd.ended >= 8)
        watch.others_are_served()
        assert crowd.ended == 8


def test_filters_of_nothing_but_wildcards_do_not_multiply(attacked: Gateway, scale: Scale) -> None:
    """2**8 filters would match each of these topics, and a search that follows every branch visits 2**24 nodes.

    Each is of another shape, and the clients of one network have a limit of shapes.
    """
    filters = ["/".join(levels) for levels in itertools.product("a+", repeat=8)]
    deep = ["/".join(["+"] * depth + ["#"]) for depth in range(1, 25)]
    always_taken = 1 + 8 + 3  # without a wildcard; with one +; #, +/# and +/+/#, which has one + in front of +/#
    with (
        watched(attacked, memory_mib=120) as watch,
        Attacker(attacked.port) as bomber,
        Attacker(attacked.port) as writer,
    ):
        _connected(bomber, "wildcard-bomb")
        answers = _subscribe(bomber, [*filters, *deep, "#"])
        assert set(answers) == {0, FAILURE}
        assert answers.count(0) <= SHAPES_OF_A_NETWORK + always_taken
        _connected(writer, "lights-it")
        for place in range(scale(30, 1_000)):
            topic = "/".join(["a"] * (8 if place % 2 else 24))
            writer.send(publish(topic, b"%d" % place, qos=1, identifier=1))
            writer.expect(b"\x40\x02\x00\x01")
        watch.others_are_served()
        bomber.send(packet(0xE0, b""))


@pytest.mark.parametrize(
    "filter_of", ["+/" * (LEVELS - 1) + "#", "+/" * (LEVELS - 1) + "+", "/" * (LEVELS - 1), "a/" * (LEVELS - 1) + "#"]
)
def test_deep_filters_and_topics_are_served_up_to_200_levels(attacked: Gateway, filter_of: str) -> None:
    with watched(attacked, memory_mib=80) as watch, Attacker(attacked.port) as attacker:
        _connected(attacker, "deep")
        topic = filter_of.replace("+", "a").replace("#", "a")
        assert _subscribe(attacker, [filter_of]) == b"\x00"
        assert _subscribe(attacker, [f"b/{filter_of}"]) == bytes((FAILURE,))
        attacker.send(publish(topic, b"deep"))
        attacker.expect(publish(topic, b"deep"))
        watch.others_are_served()


def test_a_topic_of_more_levels_is_refused_and_costs_nothing(attacked: Gateway, scale: Scale) -> None:
    with watched(attacked, memory_mib=60):
        for place in range(scale(20, 500)):
            with Attacker(attacked.port) as attacker:
                _connected(attacker, "too-deep")
                attacker.send(publish("/" * (30_000 + place), b"", qos=1, identifier=1))
                assert attacker.read_to_end() == b""


def test_every_topic_is_new_and_none_is_kept(attacked: Gateway, scale: Scale) -> None:
    """Caches by topic have an end."""
    count = scale(3_000, 300_000)
    with watched(attacked, memory_mib=120) as watch, Attacker(attacked.port) as attacker:
        _connected(attacker, "new-topics")
        for first in range(0, count, 100):
            attacker.send(
                b"".join(publish(f"new/{first + n:08}/{'t' * 200}", b"", qos=1, identifier=n + 1) for n in range(100))
            )
            attacker.expect(b"".join(b"\x40\x02" + two(n + 1) for n in range(100)))
        watch.others_are_served()
