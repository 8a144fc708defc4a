"""The sessions in the store: each SUBSCRIBE writes its own filters, and a kill at any moment leaves them whole."""

from pathlib import Path

import pytest

from gateway.bridge.sessions.session_store import SubscriptionRow
from gateway.bridge.sessions.subscription import GrantedOptions
from gateway.config.mqtt_limits import MqttLimits
from mq_adapters.embedded.unit_of_work import StateKind, UnitOfWork
from tests.gateway.bridge.conftest import NewWorld
from tests.gateway.bridge.subscribe.test_cost_of_filters import subscribe

KINDS = (StateKind.SESSION, StateKind.SESSION_SUBSCRIPTION)


def test_a_subscribe_writes_its_own_filter_alone(
    new_world: NewWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = new_world(tmp_path, limits=MqttLimits())
    link = world.connect("self", flags="00")
    written: list[tuple[StateKind, int]] = []
    set_state = UnitOfWork.set_state

    def noted(unit: UnitOfWork, kind: StateKind, key: bytes, value: bytes) -> None:
        if kind in KINDS:
            written.append((kind, len(key) + len(value)))
        set_state(unit, kind, key, value)

    monkeypatch.setattr(UnitOfWork, "set_state", noted)
    subscribe(world, link, [f"a/{number:03}/+" for number in range(50)])
    assert written == [(StateKind.SESSION_SUBSCRIPTION, len("a/000/+") + 8 + 6)] * 50


def test_what_changes_is_what_a_restart_finds(new_world: NewWorld, tmp_path: Path) -> None:
    world = new_world(tmp_path)
    link = world.connect("self", flags="00")
    subscribe(world, link, ["a", "b", "c"])
    world.receive(link, "A2 05 0002 0001 'b'", "82 06 0003 0001 'c' 02")
    world = new_world(tmp_path)
    session = world.sessions.get("self")
    assert session is not None
    assert session.subscriptions == {"a": 0, "c": 2}
    assert not session.unsaved


def test_a_session_that_ends_leaves_no_row(new_world: NewWorld, tmp_path: Path) -> None:
    world = new_world(tmp_path)
    subscribe(world, world.connect("self", flags="00"), ["a", "b"])
    subscribe(world, world.connect("else", flags="00"), ["a"])
    world.connect("self", flags="02")
    ((key, row),) = world.engine.states(StateKind.SESSION_SUBSCRIPTION)
    other = world.sessions.get("else")
    assert other is not None
    assert SubscriptionRow.read_key(key) == (other.epoch, "a")
    assert GrantedOptions(*SubscriptionRow.unpack(row)[1:]) == GrantedOptions()


def test_a_kill_between_two_commits_loses_no_subscription_that_was_acknowledged(
    new_world: NewWorld, tmp_path: Path
) -> None:
    world = new_world(tmp_path / "first", limits=MqttLimits())
    link = world.connect("self", flags="00")
    world.commits_are_held = True
    acknowledged: list[str] = []
    folders: list[tuple[Path, list[str]]] = []
    for number, name in enumerate("abcdef"):
        subscribe(world, link, [name])
        while world.waiting_commits:
            folders.append((world.kill(tmp_path / f"k{len(folders)}"), list(acknowledged)))
            world.commit()
            world.run()
        assert link.taken().startswith(b"\x90\x03"), number
        acknowledged.append(name)
    for folder, expected in folders:
        again = new_world(folder, limits=MqttLimits())
        session = again.sessions.get("self")
        assert session is not None
        assert set(expected) <= set(session.subscriptions)
        attached = again.engine.objects.publish_subscribe
        assert attached is not None
        assert {each.topic for each in attached().subscriptions()} == set(session.subscriptions)
    assert len(folders) >= len(acknowledged)
