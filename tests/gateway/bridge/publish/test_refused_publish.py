"""A PUBLISH that is refused, and what stands behind it in the same read: the session has taken note of it already."""

import pytest

from gateway.config.mqtt_limits import MqttLimits
from gateway.limits.log_rate import LINES_OF_ONE
from mq_adapters.embedded.unit_of_work import StateKind
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, written

REFUSED = "30 05 0003 'bad'"


@pytest.fixture
def guarded(new_world: NewWorld) -> World:
    """Clients may publish below ok, and nowhere else."""
    return new_world(publish=("ok/#",))


def _reconnected(world: World, link: FakeLink, name: str) -> FakeLink:
    world.lose(link)
    return world.connect(name, flags="00")


def test_the_identifier_of_a_refused_qos_2_publish_is_free_again(guarded: World) -> None:
    """Were it still held, PUBREC would acknowledge the next PUBLISH with that identifier, which nobody stored."""
    link = guarded.connect("self", flags="00")
    guarded.receive(link, "34 07 0003 'bad' 0007")
    assert not link.is_open
    link = _reconnected(guarded, link, "self")
    guarded.receive(link, "34 09 0004 'ok/a' 0007 'A'")
    assert link.taken() == written("50 02 0007")
    assert len(guarded.engine.states(StateKind.SESSION_INCOMING)) == 1
    watcher = guarded.connect("hear")
    guarded.receive(watcher, "82 06 0001 0001 '#' 00")
    watcher.taken()
    guarded.receive(link, "62 02 0007")
    assert link.taken() == written("70 02 0007")
    assert watcher.taken() == written("30 07 0004 'ok/a' 'A'")


def test_a_qos_2_publish_behind_a_refused_one_is_stored_and_published_once(guarded: World) -> None:
    watcher = guarded.connect("hear")
    guarded.receive(watcher, "82 06 0001 0001 '#' 00")
    watcher.taken()
    link = guarded.connect("self", flags="00")
    guarded.receive(link, REFUSED, "34 09 0004 'ok/a' 0007 'A'")
    assert (link.is_open, link.sent) == (False, b"")
    link = _reconnected(guarded, link, "self")
    guarded.receive(link, "3C 09 0004 'ok/a' 0007 'A'", "62 02 0007")
    assert link.taken() == written("50 02 0007 70 02 0007")
    assert watcher.taken() == written("30 07 0004 'ok/a' 'A'")


def test_the_release_of_a_refused_qos_2_publish_in_the_same_read_publishes_nothing(guarded: World) -> None:
    link = guarded.connect("self", flags="00")
    guarded.receive(link, "34 07 0003 'bad' 0007", "3C 07 0003 'bad' 0007", "62 02 0007")
    assert (link.is_open, link.sent) == (False, b"")
    assert guarded.engine.states(StateKind.SESSION_INCOMING) == []
    link = _reconnected(guarded, link, "self")
    guarded.receive(link, "34 09 0004 'ok/a' 0007 'A'")
    assert link.taken() == written("50 02 0007")
    assert len(guarded.engine.states(StateKind.SESSION_INCOMING)) == 1


def test_the_release_of_a_publish_that_came_before_the_refused_one_is_carried_out(guarded: World) -> None:
    watcher = guarded.connect("hear")
    guarded.receive(watcher, "82 06 0001 0001 '#' 00")
    watcher.taken()
    link = guarded.connect("self", flags="00")
    guarded.receive(link, "34 09 0004 'ok/a' 0007 'A'")
    assert link.taken() == written("50 02 0007")
    guarded.receive(link, REFUSED, "62 02 0007")
    assert watcher.taken() == written("30 07 0004 'ok/a' 'A'")
    link = _reconnected(guarded, link, "self")
    guarded.receive(link, "62 02 0007")
    assert link.taken() == written("70 02 0007")
    assert watcher.sent == b""


def test_puback_behind_a_refused_publish_ends_its_delivery(guarded: World) -> None:
    """Were it lost, the flow would hold its identifier for ever: a second PUBACK never comes."""
    link, publisher = guarded.connect("self", flags="00"), guarded.connect("tell")
    guarded.receive(link, "82 09 0001 0004 'ok/#' 01")
    guarded.receive(publisher, "32 09 0004 'ok/a' 0001 'A'")
    assert link.taken() == written("90 03 0001 01 32 09 0004 'ok/a' 0001 'A'")
    guarded.receive(link, REFUSED, "40 02 0001")
    assert guarded.depth("RFHBRIDGE.SUBSCRIBER") == 0
    assert guarded.engine.states(StateKind.SESSION_OUTGOING) == []
    link = _reconnected(guarded, link, "self")
    assert link.sent == b""


def test_a_disconnect_behind_a_refused_publish_does_not_take_the_will_back(guarded: World) -> None:
    watcher = guarded.connect("hear")
    guarded.receive(watcher, "82 06 0001 0001 '#' 00")
    watcher.taken()
    link = FakeLink()
    guarded.receive(link, "10 1B 0004 'MQTT' 04 06 0000 0004 'will' 0004 'ok/w' 0003 'bye'")
    guarded.receive(link, REFUSED, "E0 00")
    guarded.lose(link)
    assert watcher.taken() == written("30 09 0004 'ok/w' 'bye'")
    assert guarded.sessions.get("will") is None


def test_a_session_holds_so_many_bytes_of_qos_2_and_no_more(
    new_world: NewWorld,
) -> None:
    """One that is larger than all is taken where nothing else is held; what was held before a restart counts."""
    limits = MqttLimits(maximum_held_bytes=4 + 2 * 7 + 2 * 600)
    world = new_world(limits=limits)
    link = world.connect("self", flags="00")
    world.receive(link, "34 0A 0001 'a' 0001 'large'", "62 02 0001")
    world.receive(link, "34 08 0001 'a' 0002 'two'", "34 06 0001 'a' 0003 '1'")
    assert link.taken() == written("50 02 0001 70 02 0001 50 02 0002 50 02 0003")
    world = new_world(limits=limits)
    link = world.connect("self", flags="00")
    world.receive(link, "34 06 0001 'a' 0004 '5'")
    assert (link.is_open, link.sent) == (False, b"")
    assert link.reason == "maximum_held_bytes is reached"
    link = _reconnected(world, link, "self")
    world.receive(link, "62 02 0002", "34 06 0001 'a' 0004 '5'")
    assert link.taken() == written("70 02 0002 50 02 0004")


def test_a_publish_that_is_refused_by_its_reason_code_is_logged_and_a_flood_of_them_counted(
    guarded: World, caplog: pytest.LogCaptureFixture
) -> None:
    link = FakeLink()
    guarded.receive(link, "10 11 0004 'MQTT' 05 02 0000 00 0004 'self'")
    assert link.taken()[0] == 0x20
    for identifier in range(1, 31):
        guarded.receive(link, f"32 08 0003 'bad' {identifier:04X} 00")
    assert link.taken() == written("".join(f"40 03 {identifier:04X} 87" for identifier in range(1, 31)))
    lines = [record.getMessage() for record in caplog.records if record.name == "gateway.bridge.publish.publish"]
    assert lines == ["publish refused client=self reason=publish to 'bad' is not allowed"] * LINES_OF_ONE
