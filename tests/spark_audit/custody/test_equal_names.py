"""Filters and topics under a key that are equal: the client is due a copy, and nothing else is judged."""

from collections.abc import Callable

import pytest

from spark_audit.custody.findings import Custody
from spark_audit.custody.memory import Memory, replayed_from
from spark_audit.custody.replay import replayed
from spark_audit.personal import PersonalKey
from tests.every_case import for_every
from tests.spark_audit.custody.scenes import LANES, STREAM, Record, Scene, connected, record

_KEY = PersonalKey(bytes(range(32)))


def _keyed(each: Record) -> Record:
    """The record as a keyed trail has it."""
    sealed = {side: _KEY.sealed(each[side].encode()) for side in ("input", "output") if side in each}
    return each | sealed | {"topic": _KEY.name(each["topic"])}


def _subscribed(*filters: str) -> Scene:
    scene = connected("pump", "desk", "wall")
    for each in filters:
        scene.commit(*map(_keyed, scene.subscribe("desk", each)))
    return scene


def _published(scene: Scene, topic: str, *clients: str, further: tuple[Record, ...] = (), **fields: str) -> Record:
    put, *copies = (_keyed(each) for each in scene.publish("pump", topic, *clients))
    scene.commit(put | fields, *copies, *further)
    return put


def _found(scene: Scene) -> list[tuple[Custody, str]]:
    scene.commit(record("clock_jumped", event="settled"))
    return [(each.control, each.detail) for each in replayed(scene.rows())]


_NO_COPY = [(Custody.COPIES, "client desk has no copy, and its topic filter is equal to the topic")]


def _missing() -> Scene:
    scene = _subscribed("plant/+", "plant/a")
    _published(scene, "plant/a", "wall")
    return scene


def _missing_after_a_start() -> Scene:
    scene = _subscribed("plant/a")
    _published(scene, "plant/a", "desk")
    scene.commit(record("started"))
    _published(scene, "plant/a")
    return scene


def _missing_beside_one_that_ended() -> Scene:
    scene = _subscribed("plant/a", "plant/b")
    scene.commit(*map(_keyed, scene.unsubscribe("desk", "plant/b")))
    _published(scene, "plant/b")
    _published(scene, "plant/a")
    return scene


def _missing_of_what_was_refused_retained() -> Scene:
    """The broker refused to send so much that is retained, and kept the registration."""
    scene = connected("pump", "desk")
    (regsub,) = map(_keyed, scene.subscribe("desk", "plant/a"))
    scene.commit(regsub, record("refused", command="RegSub", message_id=regsub["message_id"], reason_code=2056))
    _published(scene, "plant/a")
    return scene


@for_every([_missing, _missing_after_a_start, _missing_beside_one_that_ended, _missing_of_what_was_refused_retained])
def test_a_missing_copy_is_told(case: Callable[[], Scene]) -> None:
    assert _found(case()) == _NO_COPY


def _copied() -> Scene:
    scene = _subscribed("plant/a")
    _published(scene, "plant/a", "desk", "wall")
    return scene


def _wildcard() -> Scene:
    scene = _subscribed("plant/+", "#")
    _published(scene, "plant/a")
    return scene


def _unsubscribed() -> Scene:
    scene = _subscribed("plant/a")
    scene.commit(*map(_keyed, scene.unsubscribe("desk", "plant/a")))
    _published(scene, "plant/a")
    return scene


def _ended() -> Scene:
    scene = _subscribed("plant/a", "plant/b")
    scene.commit(*map(_keyed, scene.deregister_all("desk")))
    _published(scene, "plant/a")
    return scene


def _refused_registration() -> Scene:
    scene = connected("pump", "desk")
    (regsub,) = map(_keyed, scene.subscribe("desk", "plant/a"))
    scene.commit(regsub, record("refused", command="RegSub", message_id=regsub["message_id"], reason_code=3081))
    _published(scene, "plant/a")
    return scene


def _refused_publication() -> Scene:
    scene = _subscribed("plant/a")
    (put,) = map(_keyed, scene.publish("pump", "plant/a"))
    scene.commit(put, record("refused", command="Publish", message_id=put["message_id"], reason_code=3081))
    return scene


def _dead_letter() -> Scene:
    scene = _subscribed("plant/a")
    (put,) = map(_keyed, scene.publish("pump", "plant/a"))
    letter = record("dead_lettered", message_id=put["message_id"], queue=LANES, dead_letter_id=scene.number())
    scene.commit(put, letter | {"reason_code": 2053})
    return scene


def _operated() -> Scene:
    scene = _subscribed("plant/a")
    scene.commit(record("operated", command="DELETE SUB", messages=0))
    _published(scene, "plant/a")
    return scene


def _another_stream() -> Scene:
    """The gateway may start with another stream for its clients: their registrations stay on the old one."""
    scene = _subscribed("plant/a")
    _published(scene, "plant/a", "desk")
    scene.commit(record("started"))
    _published(scene, "plant/a", queue="ANOTHER.STREAM")
    return scene


def _perhaps_another_stream() -> Scene:
    scene = _subscribed("plant/a")
    scene.commit(record("started"))
    _published(scene, "plant/a", queue="ANOTHER.STREAM")
    return scene


def _lost() -> Scene:
    """Records are missing: the client may have given its filter up."""
    scene = _subscribed("plant/a")
    scene.records.append(record("clock_jumped", event="settled", batch=90, sequence=900))
    scene._sequence = 900
    _published(scene, "plant/a")
    return scene


@for_every(
    [
        *(_copied, _wildcard, _unsubscribed, _ended, _refused_registration, _refused_publication, _dead_letter),
        *(_operated, _another_stream, _perhaps_another_stream, _lost),
    ]
)
def test_nothing_else_is_judged(case: Callable[[], Scene]) -> None:
    assert [each for each in _found(case()) if each[0] is Custody.COPIES] == []


@pytest.mark.parametrize("cut", range(2, 9))
def test_an_audit_that_goes_on_knows_the_filters(cut: int) -> None:
    scene = _missing_beside_one_that_ended()
    scene.commit(record("clock_jumped", event="settled"))
    rows = list(scene.rows())
    begun = [row for row in rows if row["batch"] <= cut]
    rest = [row for row in rows if row["batch"] > cut]
    *_, memory = replayed_from(Memory(), begun)
    assert isinstance(memory, Memory)
    since = [row for row in begun if row["sequence"] > memory.sequence] + rest
    found = [each for each in replayed_from(Memory.parse(memory.as_text()), since) if not isinstance(each, Memory)]
    assert [(each.control, each.detail) for each in found] == _NO_COPY


def test_the_scenes_publish_where_the_gateway_does() -> None:
    assert connected("pump").publish("pump", "plant/a")[0]["queue"] == STREAM
