"""Small trails, and what the replay finds in them: nothing in true ones, and each planted fault by its control."""

from collections.abc import Callable

import pytest

from spark_audit.custody.commands import row_of
from spark_audit.custody.findings import Custody
from spark_audit.custody.replay import replayed
from tests.every_case import for_every
from tests.headers import mqrfh, mqrfh2
from tests.spark_audit.custody.scenes import (
    BROKERS,
    CONTROL,
    STREAM,
    Record,
    Scene,
    connected,
    lane,
    record,
    session_record,
)
from tests.spark_audit.custody.test_answers import WRONG as CODES
from tests.spark_audit.custody.test_confirmations import skipped

_COPIES, _RETAINED, _DELIVERIES = Custody.COPIES, Custody.RETAINED, Custody.DELIVERIES
_SESSIONS, _ORDER, _STOCK = Custody.SESSIONS, Custody.ORDER, Custody.STOCK
_COMMANDS, _PASSAGES = Custody.COMMANDS, Custody.PASSAGES


def ended(scene: Scene) -> Scene:
    """The same trail with one more commit, so that the one before is judged."""
    scene.commit(record("clock_jumped", event="settled"))
    return scene


def _found(scene: Scene) -> set[Custody]:
    return {each.control for each in replayed(ended(scene).rows())}


# -- true trails -------------------------------------------------------------------------------------------------------


def _subscribed(*filters: str, is_whole: bool = True) -> Scene:
    """Client pump publishes, and desk has these filters."""
    scene = connected("pump", "desk", is_whole=is_whole)
    for each in filters:
        scene.commit(*scene.subscribe("desk", each))
    return scene


def _to_and_fro() -> Scene:
    scene = _subscribed("plant/+", "plant/#")
    put, copy = scene.publish("pump", "plant/a", "desk")
    scene.commit(put, copy)
    delivery = scene.deliver(copy, "desk")
    scene.commit(delivery)
    scene.commit(scene.acknowledge(delivery))
    scene.commit(*scene.publish("pump", "other"))
    scene.stock()
    return scene


def _away() -> Scene:
    scene = _subscribed("plant/#")
    scene.session("desk", "disconnected")
    copies = [scene.publish("pump", "plant/a", "desk") for _ in range(3)]
    for each in copies:
        scene.commit(*each)
    scene.stock(desk=3)
    scene.commit(record("started"))
    scene.stock(desk=3)
    scene.session("desk", "resumed")
    for _, copy in copies:
        delivery = scene.deliver(copy, "desk")
        scene.commit(delivery, scene.acknowledge(delivery))
    scene.stock()
    return scene


def _ended() -> Scene:
    scene = _subscribed("plant/#")
    put, copy = scene.publish("pump", "plant/a", "desk")
    scene.commit(put, copy)
    scene.commit(*scene.deregister_all("desk"), session_record("desk", "ended"))
    scene.commit(record("dropped", direction="out", client="desk", queue=copy["queue"], message_id=copy["message_id"]))
    scene.commit(*scene.publish("pump", "plant/a"))
    scene.session("desk", "opened", epoch=2)
    scene.commit(*scene.subscribe("desk", "plant/#", epoch=2))
    scene.commit(*scene.publish("pump", "plant/a", "desk/2"))
    return scene


def _will() -> Scene:
    """It is retained, which its record does not say: its header does."""
    scene = _subscribed("plant/#")
    put, copy = scene.publish("pump", "plant/will", "desk", retain=True)
    will = {name: value for name, value in put.items() if name not in ("retain", "qos")} | {"packet_type": 1}
    scene.commit(will, session_record("pump", "ended"), copy)
    scene.session("late", "opened")
    scene.commit(*scene.subscribe("late", "plant/+"), scene.copy(put, "late", is_retained=True))
    return scene


def _kept() -> Scene:
    """Two values are kept, sent to whoever subscribes, and one of them is deleted."""
    scene = connected("pump", "desk", "late")
    (first,), (second,) = (scene.publish("pump", topic, retain=True) for topic in ("plant/a", "plant/b"))
    scene.commit(first, second)
    scene.commit(*scene.subscribe("desk", "plant/a"), scene.copy(first, "desk", is_retained=True))
    (delete,) = scene.publish("pump", "plant/a")
    header = mqrfh2("<psc><Command>DeletePub</Command><Topic>plant/a</Topic></psc>")
    (empty, copy) = scene.publish("pump", "plant/a", "desk")
    scene.commit(delete | _header(header) | {"command": "DeletePub"}, empty, copy)
    scene.commit(*scene.subscribe("late", "plant/+"), scene.copy(second, "late", is_retained=True))
    scene.commit(*scene.subscribe("late", "plant/+", options="<RegOpt>NewPubsOnly</RegOpt>"))
    return scene


def _header(header: bytes) -> Record:
    return {"output": record("put", output=header)["output"]}


def _command(text: str, *, verb: str, completion: str = "ok", message_id: str, queue: str = CONTROL) -> Record:
    topics = [topic for name, topic in zip(text.split()[::2], text.split()[1::2], strict=True) if name == "MQPSTopic"]
    return record(
        "commanded",
        topics=topics,
        command=verb,
        completion=completion,
        message_id=message_id,
        queue=queue,
        input=mqrfh(f"MQPSCommand {verb} {text}"),
        input_format="MQHRF",
    )


def _application(*, completion: str = "ok") -> Scene:
    scene = connected("pump")
    text = "MQPSQName HISTORY MQPSTopic plant/*"
    scene.commit(_command(text, verb="RegSub", completion=completion, message_id=scene.number()))
    return scene


def _to_application() -> Scene:
    scene = _application()
    for _ in range(2):
        put, copy = scene.publish("pump", "plant/a", "queue:HISTORY")
        scene.commit(put, copy | {"output_format": "MQHRF"})
    text = "MQPSQName HISTORY MQPSTopic plant/*"
    scene.commit(_command(text, verb="DeregSub", message_id=scene.number()))
    scene.commit(*scene.publish("pump", "plant/a"))
    return scene


def _from_application() -> Scene:
    """The copies of an application's publication stand in front of its own record."""
    scene = _subscribed("plant/#")
    message_id = scene.number()
    copy = scene.copy({"topic": "plant/a", "message_id": message_id}, "desk")
    scene.commit(copy, _command("MQPSTopic plant/a", verb="Publish", message_id=message_id, queue=STREAM))
    return scene


def _group() -> Scene:
    scene = connected("pump", "crew-1", "crew-2")
    group = "$share/crew/jobs/#"
    for _ in range(2):
        (regsub,) = scene.subscribe(group, "jobs/#", options="<RegOpt>NewPubsOnly</RegOpt>")
        scene.commit(regsub)
    for number in range(4):
        put, copy = scene.publish("pump", "jobs/1", group)
        scene.commit(put, copy)
        delivery = scene.deliver(copy, f"crew-{number % 2 + 1}")
        scene.commit(delivery, scene.acknowledge(delivery))
    return scene


def _group_moves() -> Scene:
    """A member of a group has a message in flight, and its session ends: another member gets it, at QoS 0."""
    scene = connected("pump", "crew-1", "crew-2")
    group = "$share/crew/jobs/#"
    (regsub,) = scene.subscribe(group, "jobs/#", options="<RegOpt>NewPubsOnly</RegOpt>")
    scene.commit(regsub)
    put, copy = scene.publish("pump", "jobs/1", group)
    scene.commit(put, copy)
    scene.commit(scene.deliver(copy, "crew-1"))
    for event in ("lost", "ended"):
        scene.session("crew-1", event)
    scene.commit(scene.deliver(copy, "crew-2", qos=0))
    scene.stock()
    return scene


def _begun_anew() -> Scene:
    """The gateway ends before it has sent all that is retained. What was retained meanwhile comes again."""
    scene = connected("pump", "desk")
    for number in range(80):
        scene.commit(*scene.publish("pump", f"plant/{number}", retain=True))
    scene.commit(*scene.subscribe("desk", "plant/#"))
    put, copy = scene.publish("pump", "plant/new", "desk", retain=True)
    scene.commit(put, copy)
    scene.commit(record("started"))
    scene.commit(scene.copy(put, "desk", is_retained=True))
    return scene


def _dead_letter() -> Scene:
    scene = _application()
    (put,) = scene.publish("pump", "plant/a")
    scene.commit(put, _letter(scene, put, "HISTORY"))
    put, copy = scene.publish("pump", "plant/a", "queue:HISTORY")
    scene.commit(put, copy | {"output_format": "MQHRF"})
    return scene


def _letter(scene: Scene, put: Record, queue: str) -> Record:
    """A copy of a publication became a dead letter."""
    fields = {"message_id": put["message_id"], "dead_letter_id": scene.number(), "reason_code": 2053}
    return record("dead_lettered", queue=queue, **fields)


def _refused() -> Scene:
    scene = _subscribed("plant/#")
    (put,) = scene.publish("pump", "plant/closed")
    scene.commit(put, record("refused", command="Publish", message_id=put["message_id"], reason_code=3081))
    (regsub,) = scene.subscribe("pump", "plant/closed")
    scene.commit(regsub, record("refused", command="RegSub", message_id=regsub["message_id"], reason_code=3081))
    scene.commit(*scene.publish("pump", "plant/closed", "desk"))
    return scene


def _middle() -> Scene:
    """A trail that begins in the middle: of what began before nothing is known."""
    scene = Scene(is_whole=False)
    scene.commit(*scene.publish("pump", "plant/a", "desk"))
    put, copy = scene.publish("pump", "plant/b", "wall")
    scene.commit(put, copy, scene.deliver(copy, "wall", 0))
    scene.session("wall", "ended")
    scene.session("late", "opened")
    scene.commit(*scene.subscribe("late", "plant/#"), scene.copy(put, "late", is_retained=True))
    scene.commit(*scene.publish("pump", "plant/a", "desk", "late"))
    return scene


def _keyed() -> Scene:
    """Names are keyed and headers encrypted: who gets what cannot be told, and is not judged."""
    scene = connected("pump", "desk")
    (regsub,) = scene.subscribe("desk", "plant/#")
    scene.commit(regsub | {"output": "e:AAAA", "input": "e:AAAA", "topic": "k:" + "0" * 32})
    put, copy = scene.publish("pump", "k:" + "1" * 32, "desk")
    scene.commit(put, copy, scene.deliver(copy, "desk", 0))
    return scene


TRUE = {
    "a publication goes to and fro": _to_and_fro,
    "a client is away over a restart": _away,
    "a session ends with what waits": _ended,
    "a will is published": _will,
    "values are kept and deleted": _kept,
    "an application is sent copies, and deregisters": _to_application,
    "an application publishes": _from_application,
    "a group takes turns": _group,
    "what was retained comes again after a kill": _begun_anew,
    "a message of a group moves to another member": _group_moves,
    "a queue is full": _dead_letter,
    "commands are refused": _refused,
    "one of an application's subscriptions expires": lambda: _expired(expires_us=1_000_000),
    "an UNSUBSCRIBE is refused": lambda: _unsubscribed("other", 3073),
    "an UNSUBSCRIBE is carried out": lambda: _unsubscribed("plant/#", None),
    "the trail begins in the middle": _middle,
    "personal data is keyed": _keyed,
}


@for_every(list(TRUE.items()))
def test_a_true_trail_raises_no_alarm(case: tuple[str, Callable[[], Scene]]) -> None:
    assert list(replayed(case[1]().rows())) == []


# -- wrong trails ------------------------------------------------------------------------------------------------------


def _nobody_registered() -> Scene:
    scene = _subscribed("plant/#")
    scene.commit(*scene.publish("pump", "other", "desk"))
    return scene


def _missing() -> Scene:
    scene = _subscribed("plant/#")
    scene.commit(*scene.publish("pump", "plant/a"))
    return scene


def _twice() -> Scene:
    scene = _subscribed("plant/#", "plant/+")
    scene.commit(*scene.publish("pump", "plant/a", "desk", "desk"))
    return scene


def _after_unsubscribe() -> Scene:
    scene = _subscribed("plant/#")
    scene.commit(*scene.unsubscribe("desk", "plant/#"))
    scene.commit(*scene.publish("pump", "plant/a", "desk"))
    return scene


def _no_source() -> Scene:
    scene = _subscribed("plant/#")
    scene.commit(scene.copy({"topic": "plant/a", "message_id": scene.number()}, "desk"))
    return scene


def _hole() -> Scene:
    scene = _application()
    scene.commit(*scene.publish("pump", "plant/a"))
    put, copy = scene.publish("pump", "plant/a", "queue:HISTORY")
    scene.commit(put, copy | {"output_format": "MQHRF"})
    return scene


def _expired(**expiry: object) -> Scene:
    """An application registers for two topics, the second time with an expiry, and gets copies of the first alone."""
    scene = _application()
    text = "MQPSQName HISTORY MQPSTopic hall/*"
    scene.commit(_command(text, verb="RegSub", completion="ok", message_id=scene.number()) | expiry)
    scene.commit(*scene.publish("pump", "hall/a"))
    put, copy = scene.publish("pump", "plant/a", "queue:HISTORY")
    scene.commit(put, copy | {"output_format": "MQHRF"})
    return scene


def _other_format() -> Scene:
    scene = _application()
    scene.commit(*scene.publish("pump", "plant/a", "queue:HISTORY"))
    return scene


def _refused_and_copied() -> Scene:
    scene = _subscribed("plant/#")
    put, copy = scene.publish("pump", "plant/a", "desk")
    scene.commit(put, copy, record("refused", command="Publish", message_id=put["message_id"], reason_code=3081))
    return scene


def _unsent() -> Scene:
    scene = connected("pump", "desk")
    scene.commit(*scene.publish("pump", "plant/a", retain=True))
    scene.commit(*scene.subscribe("desk", "plant/#"))
    return scene


def _unasked() -> Scene:
    scene = _subscribed("plant/#")
    put, copy = scene.publish("pump", "plant/a", "desk", retain=True)
    scene.commit(put, copy)
    scene.commit(scene.copy(put, "desk", is_retained=True))
    return scene


def _sent_what_was_replaced() -> Scene:
    scene = connected("pump", "desk")
    (first,), (second,) = (scene.publish("pump", "plant/a", retain=True) for _ in range(2))
    scene.commit(first, second)
    scene.commit(*scene.subscribe("desk", "plant/#"), scene.copy(first, "desk", is_retained=True))
    return scene


def _to_another() -> Scene:
    scene = _subscribed("plant/#")
    put, copy = scene.publish("pump", "plant/a", "desk")
    scene.commit(put, copy, scene.deliver(copy, "pump", 0))
    return scene


def _beyond(topic: str, qos: int) -> Scene:
    scene = _subscribed("plant/#")
    put, copy = scene.publish("pump", "plant/a", "desk")
    scene.commit(put, copy, scene.deliver(copy | {"topic": topic}, "desk", qos))
    return scene


def _delivered_again(qos: int) -> Scene:
    scene = _subscribed("plant/#")
    put, copy = scene.publish("pump", "plant/a", "desk")
    scene.commit(put, copy, scene.deliver(copy, "desk", qos), scene.deliver(copy, "desk", qos, exchange=900))
    return scene


def _overtaken() -> Scene:
    scene = _subscribed("plant/#")
    (_, first), (_, second) = both = [scene.publish("pump", "plant/a", "desk") for _ in range(2)]
    scene.commit(*both[0], *both[1])
    scene.commit(scene.deliver(second, "desk"), scene.deliver(first, "desk"))
    return scene


def _put_in_another_order() -> Scene:
    scene = _subscribed()
    first, second = (scene.publish("pump", "plant/a")[0] for _ in range(2))
    scene.commit(second, first)
    return scene


def _never_opened() -> Scene:
    scene = connected("pump")
    scene.commit(*scene.publish("ghost", "plant/a"))
    return scene


def _while_away() -> Scene:
    scene = _subscribed("plant/#")
    scene.session("desk", "lost")
    put, copy = scene.publish("pump", "plant/a", "desk")
    scene.commit(put, copy, scene.deliver(copy, "desk", 0))
    return scene


def _event(event: str, epoch: int = 1) -> Callable[[], Scene]:
    def made() -> Scene:
        scene = connected("desk")
        scene.session("desk", event, epoch)
        return scene

    return made


def _left_registered() -> Scene:
    scene = _subscribed("plant/#")
    scene.session("desk", "ended")
    return scene


def _undue_will() -> Scene:
    scene = connected("pump")
    (put,) = scene.publish("pump", "plant/will")
    scene.commit(put | {"packet_type": 1})
    return scene


def _other_lane() -> Scene:
    scene = _subscribed("plant/#")
    (regsub,) = scene.subscribe("pump", "plant/#")
    scene.commit(regsub | {"correlation_id": lane("desk")})
    return scene


def _counted(**waiting: int) -> Callable[[], Scene]:
    def made() -> Scene:
        scene = _subscribed("plant/#")
        scene.session("desk", "disconnected")
        scene.commit(*scene.publish("pump", "plant/a", "desk"))
        scene.stock(**waiting)
        return scene

    return made


def _lost_from_a_queue() -> Scene:
    scene = connected("pump")
    scene.commit(record("mqput", queue="ORDERS", message_id=scene.number(), persistent=True))
    scene.stock()
    return scene


def _session_of_nobody() -> Scene:
    scene = connected("pump")
    scene.commit(record("inventory", event="sessions", entries=1, sessions=[["ghost", "9", "", "4", "away"]]))
    return scene


def _another_level() -> Scene:
    scene = Scene()
    scene.commit(session_record("pump", "opened") | {"protocol_level": 5})
    scene.commit(*scene.publish("pump", "plant/a"))
    return scene


def _unsubscribed(topic: str, reason_code: int | None) -> Scene:
    """Client desk has plant/#, and unsubscribes from a topic."""
    scene = _subscribed("plant/#")
    (deregsub,) = scene.unsubscribe("desk", topic)
    refusal = record("refused", command="DeregSub", message_id=deregsub["message_id"], reason_code=reason_code)
    scene.commit(deregsub, *([refusal] if reason_code else ()))
    return scene


def _refused_for_no_topic() -> Scene:
    scene = connected("desk")
    scene.commit(*scene.subscribe("desk", "plant/#"))
    (deregsub,) = scene.deregister_all("desk")
    scene.commit(deregsub, record("refused", command="DeregSub", message_id=deregsub["message_id"], reason_code=3072))
    return scene


def _other_command() -> Scene:
    scene = connected("pump")
    text = "MQPSQName HISTORY MQPSTopic plant/*"
    scene.commit(_command(text, verb="RegSub", message_id=scene.number()) | {"topics": ["plant/b*"]})
    return scene


def _left_behind() -> Scene:
    scene = connected("pump")
    puts = [scene.publish("pump", "plant/a")[0] | {"destination": "CENTRAL"} for _ in range(2)]
    scene.commit(*puts)
    scene.commit(record("forwarded", message_id=puts[1]["message_id"], queue="Q", queue_manager="C", channel="OUT"))
    return scene


def _put_by_a_program_that_never_connected() -> Scene:
    scene = Scene()
    said = {"queue": "ORDERS", "message_id": scene.number(), "persistent": True}
    scene.commit(record("mqput", program=1, operator="billing (127.0.0.1:5)", **said))
    return scene


_COPIED_TO_NOBODY = "PUBACK says that nobody subscribes, and there is a copy"
WRONG: dict[str, tuple[Custody, Callable[[], Scene]]] = {
    "a copy for a client without a matching filter": (_COPIES, _nobody_registered),
    "a copy is missing": (_COPIES, _missing),
    "a second copy, for a client with two matching filters": (_COPIES, _twice),
    "a copy after UNSUBSCRIBE": (_COPIES, _after_unsubscribe),
    "a copy of no publication": (_COPIES, _no_source),
    "an application lacks a copy, and has a later one": (_COPIES, _hole),
    "an application lacks a copy of one of its topics": (_COPIES, _expired),
    "a copy in the other format": (_COPIES, _other_format),
    "a publication is refused and copied": (_COPIES, _refused_and_copied),
    "a new subscription is not sent what is retained": (_RETAINED, _unsent),
    "a retained copy that nobody asked for": (_RETAINED, _unasked),
    "a retained copy of what was replaced": (_RETAINED, _sent_what_was_replaced),
    "a delivery to another client": (_DELIVERIES, _to_another),
    "a delivery of a topic that no filter matches": (_DELIVERIES, lambda: _beyond("other", 0)),
    "a delivery above what was asked for": (_DELIVERIES, lambda: _beyond("plant/a", 2)),
    "QoS 0 is delivered twice": (_DELIVERIES, lambda: _delivered_again(0)),
    "QoS 1 is delivered in two exchanges": (_DELIVERIES, lambda: _delivered_again(1)),
    "two messages are delivered in another order": (_ORDER, _overtaken),
    "two messages are put in another order": (_ORDER, _put_in_another_order),
    "a session was never opened": (_SESSIONS, _never_opened),
    "a delivery while the client is away": (_SESSIONS, _while_away),
    "a session is opened twice": (_SESSIONS, _event("opened", 2)),
    "a session is resumed while it is connected": (_SESSIONS, _event("resumed")),
    "a session that never was ends": (_SESSIONS, _event("ended", 7)),
    "a session ends and stays registered": (_SESSIONS, _left_registered),
    "a will without the end of its connection": (_SESSIONS, _undue_will),
    "a registration for another client's lane": (_SESSIONS, _other_lane),
    "an application's command is another one than its header": (_COMMANDS, _other_command),
    "a DeregSub of what nobody registered is not refused": (_COMMANDS, lambda: _unsubscribed("other", None)),
    "a DeregSub is refused, and its topic was registered": (_COMMANDS, lambda: _unsubscribed("plant/#", 3073)),
    "a DeregSub is refused for a topic that it has not": (_COMMANDS, _refused_for_no_topic),
    "a message for a target is left behind": (_PASSAGES, _left_behind),
    "less is counted than waits": (_STOCK, _counted()),
    "more is counted than waits": (_STOCK, _counted(desk=2)),
    "it is counted for another client": (_STOCK, _counted(desk=1, pump=1)),
    "a message of an application is gone": (Custody.QUEUES, _lost_from_a_queue),
    "an MQ program puts a message and has never connected": (Custody.PROGRAMS, _put_by_a_program_that_never_connected),
    "an inventory has a session that nobody opened": (Custody.INVENTORY, _session_of_nobody),
    "a PUBACK is missing between two others": (Custody.CONFIRMATIONS, skipped),
    "a PUBLISH has another level than its connection": (_SESSIONS, _another_level),
    "CONNACK says that there was no session": (Custody.CODES, CODES["a session goes on, and CONNACK does not say so"]),
    "a filter is granted a higher QoS": (Custody.CODES, CODES["a filter is granted a higher QoS"]),
    "PUBACK says 10, and a client has a copy": (Custody.CODES, CODES[_COPIED_TO_NOBODY]),
}


@for_every(list(WRONG.items()))
def test_a_planted_fault_is_found_by_its_control(case: tuple[str, tuple[Custody, Callable[[], Scene]]]) -> None:
    control, made = case[1]
    assert control in _found(made())


def test_behind_a_gap_nothing_is_known_of_what_began_before() -> None:
    scene = _missing()
    assert _found(scene) == {_COPIES}
    for each in scene.records[-2:]:
        each["sequence"] += 1
    assert {each.control for each in replayed(scene.rows())} == set()


def test_what_the_last_commit_lacks_may_still_come() -> None:
    """A trail is read while it is written, and may end anywhere."""
    scene = _to_and_fro()
    for place in range(2, len(scene.records)):
        assert list(replayed(map(row_of, scene.records[:place]))) == []


def test_a_roll_back_is_the_end_of_all_knowledge() -> None:
    scene = _subscribed("plant/#")
    scene.commit(record("restored", event="rolled_back"))
    scene.commit(*scene.publish("pump", "plant/a"))
    assert _found(scene) == set()


def test_an_operator_who_changes_subscriptions_makes_them_doubtful() -> None:
    scene = _subscribed("plant/#")
    scene.commit(record("operated", command="DELETE SUB", messages=0))
    scene.commit(*scene.publish("pump", "plant/a"))
    assert _found(scene) == set()


def _to_unknown(*first: Record, **started: bool) -> Scene:
    """A copy for a queue that no registration names, in a trail that begins with these records."""
    scene = connected("pump")
    scene.records[0] |= started
    scene.commit(*first) if first else None
    scene.commit(*scene.publish("pump", "plant/a", "queue:DEFINED"))
    assert scene.records[-1]["correlation_id"] == BROKERS
    return scene


def test_a_copy_for_a_queue_on_which_nobody_registered_is_found() -> None:
    assert _found(_to_unknown()) == {_COPIES}


def test_a_subscription_of_an_operator_or_of_the_time_before_the_trail_is_not_judged() -> None:
    order = record("operated", command="DEFINE SUB", messages=0, reason="S SUBUSER(root) DEST(DEFINED)")
    assert _found(_to_unknown(order)) == set()
    assert _found(_to_unknown(record("operated", command="ALTER SUB", messages=0))) == set()
    assert _found(_to_unknown(is_in_use=True)) == set()
    elsewhere = order | {"reason": "S DEST(ELSEWHERE)"}
    assert _found(_to_unknown(elsewhere)) == {_COPIES}


def test_a_dead_letter_from_a_queue_on_which_nobody_registered_is_found() -> None:
    scene = _subscribed("plant/#")
    put, copy = scene.publish("pump", "plant/a", "desk")
    scene.commit(put, copy, _letter(scene, put, "ELSEWHERE"))
    assert _COPIES in _found(scene)


def test_a_record_without_what_it_must_say_stops_nothing() -> None:
    scene = _subscribed("plant/#")
    scene.commit(record("delivered"), record("session"), record("put"), record("commanded"), record("unheard of"))
    scene.commit(*scene.publish("pump", "plant/a"))
    assert _found(scene) == {_COPIES}


@pytest.mark.proof
@for_every(list(TRUE.items()))
def test_no_value_in_a_record_stops_the_replay(case: tuple[str, Callable[[], Scene]], proof_scale: str) -> None:
    records = case[1]().records
    rows = list(map(row_of, records))
    for place in _places(records, proof_scale):
        for name, value in records[place].items():
            if name in ("sequence", "batch", "kind", "depths", "topics"):  # the reader checks lists
                continue
            for other in _HOSTILE.get(type(value), (None,)):
                hostile = row_of(records[place] | {name: other})
                list(replayed([*rows[:place], hostile, *rows[place + 1 :]]))


def _places(records: list[Record], proof_scale: str) -> list[int]:
    """Of all records, or of the first and the last of neighbours of one shape: one trail has eighty of them."""
    if proof_scale == "full":
        return list(range(len(records)))
    shapes = [{name: type(value) for name, value in each.items()} | {"kind": each["kind"]} for each in records]
    nowhere: dict[str, object] = {}
    around = zip([nowhere, *shapes], shapes, [*shapes[1:], nowhere], strict=False)
    return [place for place, (before, shape, after) in enumerate(around) if not before == shape == after]


_HOSTILE: dict[type, tuple[object, ...]] = {
    int: (None, -1, 2**62),
    str: (None, "", "k:" + "0" * 32, "$share/"),
    bool: (None,),
}
