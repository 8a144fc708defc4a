"""Copies that stay in memory: they end with the gateway's run, and only a session that ends with it may have them."""

import pytest

from spark_audit.custody.findings import Custody
from spark_audit.custody.replay import replayed
from tests.spark_audit.custody.scenes import Record, Scene, connected, record, session_record

IN_MEMORY = {"persistent": False, "in_memory": True}


def _subscribed(*, clean_session: bool | None, option: str = "") -> Scene:
    scene = connected("pump")
    scene.commit(session_record("desk", "opened") | {"clean_session": clean_session})
    options = f"<RegOpt>{option}</RegOpt>" if option else ""
    scene.commit(*scene.subscribe("desk", "plant/a", options=options))
    return scene


def _published(scene: Scene, *, qos: int = 1, **told: bool) -> Record:
    put, copy = scene.publish("pump", "plant/a", "desk", qos=qos)
    scene.commit(put, copy | told)
    return copy


def _found(scene: Scene) -> set[Custody]:
    scene.commit(record("clock_jumped", event="settled"))
    return {each.control for each in replayed(scene.rows())}


@pytest.mark.parametrize(("clean_session", "found"), [(True, set()), (None, set()), (False, {Custody.COPIES})])
def test_only_a_session_that_ends_with_its_connection_may_have_one(
    clean_session: bool | None, found: set[Custody]
) -> None:
    """An earlier version did not say which sessions do."""
    scene = _subscribed(clean_session=clean_session)
    copy = _published(scene, **IN_MEMORY)
    delivery = scene.deliver(copy, "desk")
    scene.commit(delivery)
    scene.commit(scene.acknowledge(delivery))
    assert _found(scene) == found


def test_a_shared_group_may_not() -> None:
    scene = connected("pump", "one")
    group = "$share/crew/jobs/#"
    scene.commit(*scene.subscribe(group, group))
    put, copy = scene.publish("pump", "jobs/1", group)
    scene.commit(put, copy | IN_MEMORY)
    assert _found(scene) == {Custody.COPIES}


@pytest.mark.parametrize(("qos", "option"), [(0, ""), (1, "NonPers")])
def test_nor_may_a_copy_be_in_memory_for_its_session_that_is_not_persistent(qos: int, option: str) -> None:
    scene = _subscribed(clean_session=True, option=option)
    _published(scene, qos=qos, **IN_MEMORY)
    assert _found(scene) == {Custody.COPIES}


@pytest.mark.parametrize(("told", "found"), [(IN_MEMORY, set()), ({"persistent": True}, {Custody.STOCK})])
def test_after_a_start_it_waits_no_more(told: dict[str, bool], found: set[Custody]) -> None:
    scene = _subscribed(clean_session=True)
    _published(scene, **told)
    scene.stock(desk=1)
    scene.commit(record("started"))
    scene.stock()
    assert _found(scene) == found


@pytest.mark.parametrize(("client", "found"), [("k:" + "1" * 32, set()), ("$share/crew/plant/a", {Custody.COPIES})])
def test_in_the_middle_of_a_keyed_trail_any_client_may_seem_to_be_a_group(client: str, found: set[Custody]) -> None:
    scene = Scene(is_whole=False)
    scene.commit(*scene.subscribe(client, "plant/a"))
    put, copy = scene.publish("pump", "plant/a", client)
    scene.commit(put, copy | IN_MEMORY)
    assert _found(scene) == found
