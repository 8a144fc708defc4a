"""What a subscription costs beside its place in the index: rows in the store, and text in memory."""

from itertools import count
from pathlib import Path

from gateway.config.mqtt_limits import MqttLimits
from mq_adapters.embedded.unit_of_work import StateKind
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, remaining_length

LEVELS = 200
FILTERS = 100


def deep_filters(number: int) -> list[str]:
    """Filters of 200 levels that have no level in common at the same place, one character each."""
    return [
        "/".join(chr(0x4E00 + (number * LEVELS + place) % 20_000) for place in range(LEVELS))
        for number in range(number)
    ]


def subscribe(world: World, link: FakeLink, filters: list[str], *, level: int = 4) -> int:
    """One SUBSCRIBE for each filter; returns the bytes sent."""
    sent = 0
    for identifier, topic_filter in zip(count(1), filters, strict=False):
        text = topic_filter.encode()
        properties = b"\x00" if level == 5 else b""
        body = identifier.to_bytes(2, "big") + properties + len(text).to_bytes(2, "big") + text + b"\x00"
        packet = b"\x82" + remaining_length(len(body)) + body
        world.bridge.receive(link, packet)
        world.run()
        sent += len(packet)
    return sent


def test_a_filter_stands_in_the_store_once_for_the_session_and_once_for_the_broker(
    new_world: NewWorld, tmp_path: Path
) -> None:
    world = new_world(tmp_path, limits=MqttLimits())
    link = world.connect("deep", flags="00")
    sent = subscribe(world, link, deep_filters(FILTERS))
    assert len(world.sessions.get("deep").subscriptions) == FILTERS  # type: ignore[union-attr]
    kinds = (StateKind.SESSION, StateKind.SESSION_SUBSCRIPTION, StateKind.BROKER_SUBSCRIPTION)
    kept = sum(len(key) + len(value) for kind in kinds for key, value in world.engine.states(kind))
    assert kept < sent * 2 + 200 * FILTERS


def test_a_filter_is_one_text_in_memory_after_a_restart(new_world: NewWorld, tmp_path: Path) -> None:
    world = new_world(tmp_path, limits=MqttLimits())
    subscribe(world, world.connect("deep", flags="00"), deep_filters(3))
    world = new_world(tmp_path, limits=MqttLimits())
    session = world.sessions.get("deep")
    assert session is not None
    attached = world.engine.objects.publish_subscribe
    assert attached is not None
    of_broker = {id(each.topic) for each in attached().subscriptions()}
    assert of_broker == {id(each) for each in session.subscriptions}
    assert len(of_broker) == 3
