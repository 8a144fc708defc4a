"""`maximum_session_expiry_s`: no session outlives its connection for longer, whatever its client asks for."""

from pathlib import Path

import ormsgpack
import pytest

from gateway.bridge.sessions.sessions import ClientSession
from gateway.config.mqtt_limits import MqttLimits
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.embedded.unit_of_work import StateKind
from tests.gateway.bridge.conftest import NOW_US, FakeLink, NewWorld, World, written

#: CONNECTs of sessions that stay: before level 5 for ever, at level 5 for an hour.
KEPT = {
    3: "10 12 0006 'MQIsdp' 03 00 0000 0004 'self'",
    4: "10 10 0004 'MQTT' 04 00 0000 0004 'self'",
    5: "10 16 0004 'MQTT' 05 00 0000 05 11 00000E10 0004 'self'",
}
ACCEPTED = {3: "20 02 00 00", 4: "20 02 00 00", 5: "20 08 00 00 05 11 0000003C"}
SECOND_US = 1_000_000
A_MINUTE = MqttLimits(maximum_session_expiry_s=60)


def pass_seconds(world: World, seconds: int) -> None:
    world.now_us += seconds * SECOND_US
    world.bridge.tick()
    world.run()


def connected(world: World, packet: str) -> FakeLink:
    link = FakeLink()
    world.receive(link, packet)
    assert link.session is not None, link.reason
    return link


def session_of(world: World) -> ClientSession:
    session = world.sessions.get("self")
    assert session is not None
    return session


@pytest.mark.parametrize("level", [3, 4, 5])
def test_a_session_ends_when_its_longest_time_is_over(new_world: NewWorld, level: int) -> None:
    world = new_world(limits=A_MINUTE)
    link = connected(world, KEPT[level])
    told = link.taken()
    assert written(ACCEPTED[level])[-4 if level < 5 else -5 :] in told, "level 5 is told the time"
    pass_seconds(world, 3_600)
    world.lose(link)
    pass_seconds(world, 59)
    assert world.sessions.get("self") is not None
    pass_seconds(world, 2)
    assert world.sessions.get("self") is None


def test_a_client_that_asks_for_less_gets_what_it_asks_for(new_world: NewWorld) -> None:
    world = new_world(limits=A_MINUTE)
    link = connected(world, "10 16 0004 'MQTT' 05 00 0000 05 11 0000000A 0004 'self'")
    assert b"\x11" not in link.taken()
    world.lose(link)
    pass_seconds(world, 11)
    assert world.sessions.get("self") is None


def test_a_disconnect_does_not_ask_for_more(new_world: NewWorld) -> None:
    world = new_world(limits=A_MINUTE)
    link = connected(world, KEPT[5])
    world.receive(link, "E0 07 00 05 11 00000E10")
    assert session_of(world).expiry_s == 60
    pass_seconds(world, 61)
    assert world.sessions.get("self") is None


def test_a_lower_limit_holds_for_sessions_of_the_store(new_world: NewWorld, tmp_path: Path) -> None:
    world = new_world(limits=MqttLimits())
    world.lose(connected(world, KEPT[4]))
    pass_seconds(world, 30)
    again = new_world(world.kill(tmp_path / "killed"), limits=A_MINUTE)
    pass_seconds(again, 59)
    assert again.sessions.get("self") is not None
    pass_seconds(again, 2)
    assert again.sessions.get("self") is None


def test_a_session_of_an_earlier_version_is_idle_from_the_first_start_on(new_world: NewWorld, tmp_path: Path) -> None:
    data = tmp_path / "older"
    data.mkdir()
    engine = Engine.open(data)
    unit = engine.begin()
    never = 0xFFFF_FFFF
    row = ormsgpack.packb([4, 77, 4, False, False, None, {}, None, {}, never, 0, 0, {}])
    unit.set_state(StateKind.SESSION, b"self", row)
    engine.submit(unit)
    engine.close()
    world = new_world(data, limits=A_MINUTE)
    assert session_of(world).parted_us == NOW_US
    world.now_us += 40 * SECOND_US
    again = new_world(world.kill(tmp_path / "killed"), limits=A_MINUTE)
    assert session_of(again).parted_us == NOW_US, "a restart does not begin the time again"


@pytest.mark.parametrize(("idle_s", "ends"), [(100, True), (101, False)])
def test_purge_with_idle_ends_only_a_session_without_a_connection_for_so_long(
    new_world: NewWorld, idle_s: int, ends: bool
) -> None:
    world = new_world(limits=MqttLimits())
    link = connected(world, KEPT[4])
    purge = f"PURGE CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('self') IDLE({idle_s})"
    assert not CommandServer(world.engine).execute(purge).succeeded, "it is connected"
    world.lose(link)
    pass_seconds(world, 100)
    assert CommandServer(world.engine).execute(purge).succeeded == ends
    world.run()
    assert (world.sessions.get("self") is None) == ends


@pytest.mark.parametrize("idle", ["", "x", "-1", "1,2", "99999999999"])
def test_purge_refuses_an_idle_time_that_is_none(new_world: NewWorld, idle: str) -> None:
    world = new_world(limits=MqttLimits())
    world.lose(connected(world, KEPT[4]))
    answer = CommandServer(world.engine).execute(f"PURGE CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('self') IDLE({idle})")
    assert not answer.succeeded
    assert world.sessions.get("self") is not None
