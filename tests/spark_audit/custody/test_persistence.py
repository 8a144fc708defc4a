"""A copy that is not as persistent as its registration wants it is found."""

from itertools import product

from spark_audit.custody.findings import Custody
from spark_audit.custody.replay import replayed
from tests.every_case import for_every
from tests.headers import mqrfh
from tests.spark_audit.custody.scenes import CONTROL, Record, Scene, connected, record

#: What the Register Subscriber message says of each option ("RegOpt"): whether the copy of a publication that is
#: persistent or not is persistent; None: the queue decides, and the trail does not tell how it is defined.
COPIES = {
    "": (True, False),
    "PersAsPub": (True, False),
    "Pers": (True, True),
    "NonPers": (False, False),
    "PersAsQueue": (None, None),
}


def _registered(option: str, scene: Scene | None = None, topic: str = "plant/*") -> Scene:
    """An application that registered with an option, and a publisher."""
    scene = scene or connected("pump")
    options = f"MQPSRegOpts {option} " if option else ""
    text = f"MQPSCommand RegSub {options}MQPSQName HISTORY MQPSTopic {topic}"
    said = {"topics": [topic], "command": "RegSub", "completion": "ok", "queue": CONTROL, "input_format": "MQHRF"}
    scene.commit(record("commanded", message_id=scene.number(), input=mqrfh(text), **said))
    return scene


def _copied(scene: Scene, *, publication: bool, copy: bool | None, default: bool | None = None) -> Scene:
    put, made = scene.publish("pump", "plant/a", "queue:HISTORY", qos=int(publication))
    told = {"persistent": copy, "default_persistent": default}
    said = {name: value for name, value in told.items() if value is not None}
    scene.commit(put, made | {"output_format": "MQHRF"} | said)
    return scene


def _found(scene: Scene) -> set[Custody]:
    scene.commit(record("clock_jumped", event="settled"))
    return {each.control for each in replayed(scene.rows())}


@for_every(list(product(COPIES, (True, False), (True, False))))
def test_a_copy_for_an_application_is_as_its_option_says(case: tuple[str, bool, bool]) -> None:
    option, publication, copy = case
    due = COPIES[option][not publication]
    wanted = set() if due in (None, copy) else {Custody.COPIES}
    assert _found(_copied(_registered(option), publication=publication, copy=copy)) == wanted


@for_every(list(product((True, False), repeat=3)))
def test_with_pers_as_queue_a_copy_is_as_its_queue_is_defined(case: tuple[bool, bool, bool]) -> None:
    default, publication, copy = case
    scene = _copied(_registered("PersAsQueue"), publication=publication, copy=copy, default=default)
    assert _found(scene) == (set() if copy == default else {Custody.COPIES})
    scene = _copied(
        _registered("Pers", _registered("PersAsQueue")), publication=publication, copy=copy, default=default
    )
    assert _found(scene) == (set() if copy else {Custody.COPIES}), "the later registration counts"


def test_a_definition_may_change_between_two_copies() -> None:
    scene = _copied(_registered("PersAsQueue"), publication=True, copy=True, default=True)
    assert _found(_copied(scene, publication=True, copy=False, default=False)) == set()


def test_a_retained_publication_is_copied_as_the_queue_is_defined() -> None:
    for default, copy in product((True, False), repeat=2):
        scene = connected("pump")
        (put,) = scene.publish("pump", "plant/a", retain=True)
        scene.commit(put)
        registered = _registered("PersAsQueue", scene)
        made = scene.copy(put, "queue:HISTORY", is_retained=True) | {"output_format": "MQHRF"}
        registered.commit(made | {"persistent": copy, "default_persistent": default})
        assert _found(registered) == (set() if copy == default else {Custody.COPIES})


def test_an_option_counts_until_the_next_registration() -> None:
    scene = _copied(_registered("Pers"), publication=False, copy=True)
    assert _found(_copied(_registered("", scene), publication=False, copy=True)) == {Custody.COPIES}
    scene = _copied(_registered("Pers"), publication=False, copy=True)
    assert _found(_copied(_registered("NonPers", scene), publication=True, copy=False)) == set()


def test_of_several_registrations_that_match_any_may_have_decided() -> None:
    for copy in (True, False):
        scene = _registered("Pers", _registered("NonPers"), "plant/a")
        assert _found(_copied(scene, publication=True, copy=copy)) == set()


def test_a_registration_for_another_topic_does_not_decide() -> None:
    scene = _registered("NonPers", _registered(""), "other")
    assert _found(_copied(scene, publication=True, copy=False)) == {Custody.COPIES}


def test_what_an_operator_may_have_changed_is_not_judged() -> None:
    for reason in ("S DEST(HISTORY)", "S DEST(ELSEWHERE)"):
        scene = _registered("Pers")
        scene.commit(record("operated", command="ALTER SUB", messages=0, reason=reason))
        assert _found(_copied(scene, publication=True, copy=False)) == set()


def test_a_trail_of_an_earlier_version_or_with_a_gap_is_not_judged() -> None:
    assert _found(_copied(_registered("Pers"), publication=False, copy=None)) == set()
    scene = _copied(_registered("Pers"), publication=True, copy=False)
    for each in scene.records[-2:]:
        each["sequence"] += 1
    assert {each.control for each in replayed(scene.rows())} == set()


def test_a_copy_for_a_client_is_as_its_publication() -> None:
    for publication, copy in product((True, False), repeat=2):
        scene = connected("pump", "desk")
        scene.commit(*scene.subscribe("desk", "plant/#"))
        put, made = scene.publish("pump", "plant/a", "desk", qos=int(publication))
        scene.commit(put, made | {"persistent": copy})
        assert _found(scene) == (set() if copy == publication else {Custody.COPIES})


def test_a_copy_of_an_applications_publication_stands_in_front_of_it() -> None:
    for publication, copy in product((True, False), repeat=2):
        scene = connected("desk")
        scene.commit(*scene.subscribe("desk", "plant/#"))
        message_id = scene.number()
        put: Record = {"topic": "plant/a", "message_id": message_id}
        said = {"topics": ["plant/a"], "command": "Publish", "completion": "ok", "persistent": publication}
        header = {"input": mqrfh("MQPSCommand Publish MQPSTopic plant/a"), "input_format": "MQHRF"}
        queue = {"queue": "SYSTEM.BROKER.DEFAULT.STREAM", "message_id": message_id}
        scene.commit(scene.copy(put, "desk") | {"persistent": copy}, record("commanded", **said, **header, **queue))
        assert _found(scene) == (set() if copy == publication else {Custody.COPIES})


def test_a_copy_of_a_retained_publication_is_as_that_one() -> None:
    for copy in (True, False):
        scene = connected("pump", "desk")
        (put,) = scene.publish("pump", "plant/a", retain=True)
        scene.commit(put)
        (regsub,) = scene.subscribe("desk", "plant/#")
        scene.commit(regsub, scene.copy(put, "desk", is_retained=True) | {"persistent": copy})
        assert _found(scene) == (set() if copy else {Custody.COPIES})
