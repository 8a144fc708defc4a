"""Shared subscriptions at a target: a group is one subscriber there, from its first member to its last."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.bridge.deliver.shared_groups import stored_groups
from mq_adapters.embedded.unit_of_work import StateKind
from tests.gateway.bridge.audited import assert_every_conversion_is_as_the_audit_predicts
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, written
from tests.gateway.bridge.connect.test_level_5_sessions import connect
from tests.gateway.bridge.deliver.test_shared_subscriptions import JOIN, KEPT, LEAVE, back, payloads, publish
from tests.gateway.bridge.remote import Remote, headers, transmissions
from tests.gateway.bridge.subscribe.test_subscriptions_at_targets import (
    KEY,
    answer,
    commands,
    configured,
    msg_ids,
    pass_time,
)

IDENTITY = "<RegOpt>CorrelAsId</RegOpt>"


def asked(world: World, name: str, *, properties: str = KEPT) -> FakeLink:
    """A client that wants to be a member, before the target has answered."""
    link = connect(world, name, properties=properties)
    link.taken()
    world.receive(link, JOIN)
    assert link.taken() == b"", "the target has not answered"
    return link


def test_members_register_one_identity_that_asks_for_nothing_retained(new_world: NewWorld) -> None:
    world = new_world(**configured())
    asked(world, "one1")
    asked(world, "two2")
    assert commands(world) == ["RegSub a/b", "RegSub a/b"]
    assert all(f"{IDENTITY}<RegOpt>NewPubsOnly</RegOpt>" in each for each in headers(world))
    (correl_id,) = {each.message.descriptor.correl_id for each in transmissions(world)}
    assert all(session.correl_id != correl_id for session in world.sessions)


def test_publications_from_the_target_go_to_one_member_each(
    new_world: NewWorld, remotes: Callable[..., Remote]
) -> None:
    world, remote = new_world(**configured()), remotes()
    remote.connect(world)
    one, two = asked(world, "one1"), asked(world, "two2")
    remote.carry(world)
    assert one.taken() == two.taken() == written("90 04 0001 00 01")
    publish(world, *"ABCD")
    remote.carry(world)
    assert (payloads(one), payloads(two)) == ("AC", "BD")
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_the_last_member_takes_the_registration_at_the_target_along(
    new_world: NewWorld, remotes: Callable[..., Remote]
) -> None:
    world, remote = new_world(**configured()), remotes()
    remote.connect(world)
    one, two = asked(world, "one1"), asked(world, "two2", properties="")
    remote.carry(world)
    world.receive(one, LEAVE)
    assert commands(world) == []
    world.lose(two)
    (command,) = headers(world)
    assert f"<Command>DeregSub</Command>{IDENTITY}<RegOpt>DeregAll</RegOpt>" in command
    remote.carry(world)
    publish(world, "A")
    remote.carry(world)
    assert world.depth("RFHBRIDGE.SUBSCRIBER") == 0
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_a_group_that_the_target_refuses_is_none(new_world: NewWorld) -> None:
    world = new_world(**configured())
    link = asked(world, "one1")
    world.now_us += 11_000_000
    world.bridge.tick()
    world.run()
    assert link.taken() == written("90 04 0001 00 80")
    assert commands(world) == ["RegSub a/b", "DeregSub a/b"]
    assert world.engine.states(StateKind.SHARED_SUBSCRIPTION) == []


def test_a_group_survives_a_restart_and_another_queue_manager(
    new_world: NewWorld, remotes: Callable[..., Remote]
) -> None:
    world, remote = new_world(**configured()), remotes()
    remote.connect(world)
    asked(world, "one1")
    remote.carry(world)
    world = new_world(**configured())
    assert commands(world) == []
    other = remotes(name="QM1")
    other.connect(world, "QM1_2027-01-01")
    other.carry(world)
    link = back(world, "one1")
    link.taken()
    publish(world, "A")
    other.carry(world)
    assert payloads(link) == "A"


def test_a_group_that_died_before_its_answer_is_deregistered_after_the_restart(
    new_world: NewWorld, tmp_path: Path
) -> None:
    world = new_world(**configured())
    asked(world, "one1")
    world = new_world(world.kill(tmp_path / "killed"), **configured())
    assert [each.split("<RegOpt>DeregAll")[0] == each for each in headers(world)] == [True, False]
    assert world.engine.states(StateKind.SHARED_SUBSCRIPTION) == []


def test_a_sweep_knows_what_groups_have_at_targets(new_world: NewWorld) -> None:
    world = new_world(**configured())
    asked(world, "one1")
    rows = world.engine.states(StateKind.SHARED_SUBSCRIPTION)
    (group,) = stored_groups(rows, world.engine.incarnation)
    assert (group.client, group.patterns) == ("$share/g/a/b", {KEY: ("a/b",)})
    assert group.correl_id == transmissions(world)[0].message.descriptor.correl_id


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_session_that_ends_before_the_answer_leaves_no_group(new_world: NewWorld, is_answered: bool) -> None:
    world = new_world(**configured())
    world.lose(asked(world, "one1", properties=""))
    if is_answered:
        answer(world, msg_ids(world)[0])
    else:
        pass_time(world)
    assert commands(world)[0] == "RegSub a/b"
    assert commands(world)[-1] == "DeregSub a/b"
    assert world.engine.states(StateKind.SHARED_SUBSCRIPTION) == []


def test_a_session_that_ends_before_the_answer_leaves_the_group_to_the_others(new_world: NewWorld) -> None:
    world = new_world(**configured())
    link = asked(world, "one1")
    answer(world, msg_ids(world)[0])
    assert link.taken() == written("90 04 0001 00 01")
    world.lose(asked(world, "two2", properties=""))
    answer(world, msg_ids(world)[1])
    assert commands(world) == ["RegSub a/b", "RegSub a/b"]
    assert len(world.engine.states(StateKind.SHARED_SUBSCRIPTION)) == 2, "the group and its member"
