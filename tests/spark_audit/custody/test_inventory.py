"""An inventory agrees with what the trail says that the gateway keeps; each entry that is wrong or lacks is found."""

from collections.abc import Callable

from spark_audit.custody.findings import Custody, Finding
from spark_audit.custody.replay import replayed
from tests.every_case import for_every
from tests.spark_audit.custody.scenes import LANES, STREAM, Record, Scene, connected, lane, record, session_record

_Entries = dict[str, list[list[str]]]
_FIELDS = {"retained": "retained_publications"}
_KEPT = "52464842" + f"{2:040x}"


def _entries(**other: list[list[str]]) -> _Entries:
    """What the gateway of `_scene` keeps, but for the parts that are given."""
    said: _Entries = {
        "sessions": [["desk", "1", "", "4", "connected"], ["pump", "1", "", "4", "away"]],
        "filters": [["1", "plant/#", "1"]],
        "registrations": [[LANES, lane("desk"), STREAM, "plant/#", "", "", "1"]],
        "retained": [[STREAM, "plant/a", "", _KEPT, "1", "0" * 64]],
    }
    return said | other


def _scene(*, is_whole: bool = True) -> Scene:
    """Client desk subscribes; client pump leaves a retained value, and goes."""
    scene = connected("desk", is_whole=is_whole)
    scene.commit(session_record("pump", "opened", 2) | {"protocol_level": 4})
    scene.commit(*scene.subscribe("desk", "plant/#"))
    put, copy = scene.publish("pump", "plant/a", "desk", retain=True)
    scene.commit(put | {"session_epoch": 2}, copy)
    scene.commit(session_record("pump", "lost", 2))
    return scene


def _told(entries: _Entries, scene: Scene | None = None, *meanwhile: Record) -> list[Finding]:
    scene = scene or _scene()
    scene.commit(record("inventory", event="begun", entries=0))
    scene.commit(*meanwhile) if meanwhile else None
    for part, rows in entries.items():
        listed = [["pump", "2", *row[2:]] if row[0] == "pump" else row for row in rows]
        scene.commit(record("inventory", event=part, entries=len(rows), **{_FIELDS.get(part, part): listed}))
    scene.commit(record("inventory", event="complete", entries=1))
    return [each for each in replayed(scene.rows()) if each.control is Custody.INVENTORY]


_WRONG: dict[str, tuple[Callable[[], _Entries], str]] = {
    "a session lacks": (lambda: _entries(sessions=[["desk", "1", "", "4", "connected"]]), "session 2 of client pump"),
    "a session that nobody opened": (
        lambda: _entries(sessions=[*_entries()["sessions"], ["wall", "9", "", "4", "away"]]),
        "session 9 of client wall",
    ),
    "another session of a client": (
        lambda: _entries(sessions=[["desk", "7", "", "4", "connected"], ["pump", "1", "", "4", "away"]]),
        "session 7 of client desk",
    ),
    "a client is there that went": (
        lambda: _entries(sessions=[["desk", "1", "", "4", "connected"], ["pump", "1", "", "4", "connected"]]),
        "client pump is connected",
    ),
    "a client speaks another level": (
        lambda: _entries(sessions=[["desk", "1", "", "4", "connected"], ["pump", "1", "", "5", "away"]]),
        "client pump speaks level 5",
    ),
    "a filter that nobody asked for": (lambda: _entries(filters=[["1", "other", "1"]]), "filter other"),
    "a filter has more QoS than was asked for": (lambda: _entries(filters=[["1", "plant/#", "2"]]), "has QoS 2"),
    "a registration lacks": (lambda: _entries(registrations=[]), "topic plant/# of client desk"),
    "a client's registration that nobody made": (
        lambda: _entries(registrations=[*_entries()["registrations"], [LANES, lane("desk"), STREAM, "x", "", "", "1"]]),
        "topic x is registered for client desk",
    ),
    "an application's registration that nobody made": (
        lambda: _entries(
            registrations=[*_entries()["registrations"], ["HISTORY", "00" * 24, STREAM, "x", "", "", "1"]]
        ),
        "topic x is registered for the subscriber of queue HISTORY",
    ),
    "a retained value lacks": (lambda: _entries(retained=[]), "topic plant/a with message"),
    "another value is retained": (
        lambda: _entries(retained=[[STREAM, "plant/a", "", "ff" * 24, "1", "0" * 64]]),
        "topic plant/a retains message ff",
    ),
    "a value is retained that nobody sent": (
        lambda: _entries(retained=[*_entries()["retained"], [STREAM, "b", "", "ff" * 24, "1", "0" * 64]]),
        "topic b retains",
    ),
    "an entry is none": (lambda: _entries(filters=[["one"]]), "an entry that is none"),
}


@for_every(list(_WRONG.items()))
def test_a_wrong_inventory_is_found(case: tuple[str, tuple[Callable[[], _Entries], str]]) -> None:
    entries, said = case[1]
    assert any(each.detail.startswith(said) or said in each.detail for each in _told(entries()))


def test_a_true_inventory_raises_no_alarm() -> None:
    assert _told(_entries()) == []


def test_what_changes_meanwhile_may_be_among_the_entries_or_not() -> None:
    for entries in (_entries(registrations=[]), _entries(filters=[], registrations=[])):
        scene = _scene()
        assert _told(entries, scene, *scene.unsubscribe("desk", "plant/#")) == []


def test_a_trail_that_begins_late_or_an_operator_makes_nothing_certain() -> None:
    more = _entries(
        sessions=[*_entries()["sessions"], ["wall", "9", "", "4", "away"]],
        registrations=[*_entries()["registrations"], ["HISTORY", "00" * 24, STREAM, "x", "", "", "1"]],
    )
    assert _told(more, _scene(is_whole=False)) == []
    scene = _scene()
    scene.commit(record("operated", command="DEFINE SUB", messages=0))
    assert _told(_entries(registrations=more["registrations"]), scene) == []
