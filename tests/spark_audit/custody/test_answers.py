"""Codes of CONNACK, SUBACK, UNSUBACK, PUBACK and PUBREC that the rules do not give are found."""

from collections.abc import Callable
from typing import Any

from spark_audit.custody.commands import row_of
from spark_audit.custody.findings import Custody, Finding
from spark_audit.custody.replay import replayed
from tests.every_case import for_every
from tests.spark_audit.custody.scenes import Record, Scene, connected, record

_SECOND_US = 1_000_000


def told(*clients: str, level: int = 5, is_whole: bool = True) -> Scene:
    """A trail in which these clients have just connected, and that tells codes."""
    scene = Scene(is_whole=is_whole)
    for client in clients:
        scene.commit(connack(client, level=level))
    return scene


def connack(client: str, event: str = "opened", codes: str | None = "0000", **fields: Any) -> Record:
    """A session record with a CONNACK."""
    said = {"session_epoch": 1, "level": 5, "at_us": 1} | fields
    level = said.pop("level")
    return record("session", client=client, event=event, protocol_level=level, codes=codes, **said)


def suback(
    client: str, filters: dict[str, tuple[int, int]], rules: dict[str, str] | None = None, **fields: Any
) -> Record:
    """The answer for filters: of each the requested QoS and the code."""
    names = list(filters)
    refused = [[str(names.index(name) + 1), rule] for name, rule in (rules or {}).items()]
    asked, codes = (bytes(each[place] for each in filters.values()).hex() for place in (0, 1))
    said = {"session_epoch": 1, "packet_identifier": 1, "requested_qos": asked, "codes": codes} | fields
    lists = {"topic_filters": names, "refused_filters": refused or None}
    return record("answered", direction="in", client=client, packet_type=9, **said, **lists)


def unsuback(client: str, codes: str | None, *filters: str) -> Record:
    said = {"session_epoch": 1, "packet_identifier": 1, "codes": codes, "topic_filters": list(filters)}
    return record("answered", direction="in", client=client, packet_type=11, **said)


def _subscribed(code: int = 1, qos: int = 1, rule: str = "", level: int = 5, filter: str = "plant/#") -> Scene:
    """A SUBSCRIBE with a RegSub, unless a rule refuses it."""
    scene = told("desk", level=level)
    rules = {filter: rule} if rule else {}
    commands = [] if rule else scene.subscribe("desk", filter, qos, options=_NEW_ONLY)
    scene.commit(*commands, suback("desk", {filter: (qos, code)}, rules))
    return scene


_NEW_ONLY = "<RegOpt>NewPubsOnly</RegOpt>"


def _found(scene: Scene) -> list[Finding]:
    scene.commit(record("clock_jumped", event="settled"))
    found = list(replayed(scene.rows()))
    assert {each.control for each in found} <= {Custody.CODES}, found
    return found


# -- CONNACK -----------------------------------------------------------------------------------------------------------


def _again(event: str, codes: str | None, level: int = 5, clean_start: bool | None = None) -> Scene:
    """The client connects a second time, to a session that lasts."""
    scene = told("desk", level=level)
    scene.commit(record("session", client="desk", session_epoch=1, event="lost"))
    ended = record("session", client="desk", session_epoch=1, event="ended")
    if event == "opened":
        scene.commit(ended)
    epoch = 1 + (event == "opened")
    scene.commit(connack("desk", event, codes, level=level, clean_start=clean_start, session_epoch=epoch))
    return scene


def _taken_over(clean_start: bool | None, is_clean: bool) -> Scene:
    """A second connection ends the session of the first."""
    scene = told("desk")
    parts = ("taken_over", "ended")
    scene.commit(
        *(record("session", client="desk", session_epoch=1, event=each, clean_session=is_clean) for each in parts),
        connack("desk", session_epoch=2, clean_start=clean_start),
    )
    return scene


def _taken_over_twice() -> Scene:
    """In one commit a clean start ends a session that lasts, and another connection ends the new one."""
    scene = told("desk")
    parts = ("taken_over", "ended")
    scene.commit(
        *(record("session", client="desk", session_epoch=1, event=each, clean_session=False) for each in parts),
        connack("desk", session_epoch=2, clean_start=True),
        *(record("session", client="desk", session_epoch=2, event=each, clean_session=True) for each in parts),
        connack("desk", session_epoch=3),
    )
    return scene


# -- SUBACK and UNSUBACK -----------------------------------------------------------------------------------------------


def _refused_by_broker(reason: int, code: int, level: int = 5, rule: str = "MQRCCF_TOPIC_ERROR") -> Scene:
    scene = told("desk", level=level)
    (regsub,) = scene.subscribe("desk", "plant/#", options=_NEW_ONLY)
    refused = record("refused", command="RegSub", message_id=regsub["message_id"], reason_code=reason, client="desk")
    rules = {"plant/#": rule} if code >= 0x80 else {}
    scene.commit(regsub, refused, suback("desk", {"plant/#": (1, code)}, rules))
    return scene


def _without_suback() -> Scene:
    scene = told("desk")
    scene.commit(*scene.subscribe("desk", "plant/#", options=_NEW_ONLY))
    return scene


def _unsubscribed(codes: str | None, *filters: str, level: int = 5) -> Scene:
    """A session with the filter a gives up others or this one."""
    scene = told("desk", level=level)
    scene.commit(*scene.subscribe("desk", "a", options=_NEW_ONLY), suback("desk", {"a": (1, 1)}))
    gone = scene.unsubscribe("desk", "a") if "a" in filters else []
    scene.commit(*gone, unsuback("desk", codes, *filters))
    return scene


# -- PUBACK and PUBREC -------------------------------------------------------------------------------------------------


def _published(
    codes: str | None, *copies: str, qos: int = 1, level: int = 5, is_gone: bool = False, **fields: Any
) -> Scene:
    """A PUBLISH with its copies, and the codes of its PUBACK or PUBREC, which is noted when the client is gone."""
    scene = told("pump", "desk", level=level)
    scene.commit(*scene.subscribe("desk", "plant/#", options=_NEW_ONLY), suback("desk", {"plant/#": (1, 1)}))
    if not copies:
        scene.commit(*scene.unsubscribe("desk", "plant/#"), unsuback("desk", "00" if level == 5 else None, "plant/#"))
    protocol_level = 5 if level == 5 else None
    put, *made = scene.publish("pump", "plant/a", *copies, qos=qos)
    put |= {"exchange": 1} | ({"protocol_level": 5} if protocol_level else {}) | fields
    names = ("direction", "client", "session_epoch", "packet_type", "qos", "exchange", "protocol_level")
    accepted = record("accepted", **{name: put[name] for name in names if name in put})
    confirmed = {"direction": "in", "client": "pump", "session_epoch": 1, "exchanges": [[1, 1]]}
    if qos == 1:
        scene.commit(accepted, put, *made)
        if is_gone:
            # each record has the time of its act, and PUBACK was sent before
            scene.commit(record("session", client="pump", session_epoch=1, event="lost", at_us=9))
        scene.commit(record("confirmed", packet_type=4, codes=codes, at_us=8, **confirmed))
    else:
        scene.commit(accepted)
        scene.commit(record("confirmed", packet_type=5, codes=codes, **confirmed))
        scene.commit(put, *made)
    return scene


def _to_a_target(codes: str | None) -> Scene:
    scene = told("pump")
    put = scene.publish("pump", "plant/a")[0] | {"exchange": 1, "protocol_level": 5, "destination": "CENTRAL"}
    scene.commit(put)
    ranges = {"exchanges": [[1, 1]], "codes": codes}
    scene.commit(record("confirmed", direction="in", client="pump", session_epoch=1, packet_type=4, **ranges))
    scene.commit(
        record("forwarded", message_id=put["message_id"], queue="Q", queue_manager="C", channel="OUT"),
    )
    return scene


# -- refusals ----------------------------------------------------------------------------------------------------------


def _refusal(event: str, rule: str, codes: str | None, level: int = 5, *, is_first: bool = True) -> Scene:
    """A record of a refused topic, of a client whose SUBACK refused it where it is a filter."""
    scene = told("desk", level=level)
    if event == "subscribe":
        code = int(codes or "80", 16)
        rules = {"a": rule} if code >= 0x80 else {}
        scene.commit(suback("desk", {"a": (1, code)}, rules, at_us=5))
    topic = "a" if is_first else None
    said = {"event": event, "rule": rule, "codes": codes, "topic": topic, "refusals": 1, "since_us": 5, "at_us": 5}
    scene.commit(record("topics_refused", client="desk", **said))
    return scene


def _uncounted(later_us: int = 2 * _SECOND_US, counted: dict[str, Any] | None = None) -> Scene:
    """A filter is refused, and the next commits come so much later."""
    scene = told("desk")
    scene.commit(suback("desk", {"a": (1, 0x87)}, {"a": "line 7"}, at_us=1_000 * _SECOND_US))
    if counted is not None:
        scene.commit(record("topics_refused", event="subscribe", rule="line 7", codes="87", **counted))
    for _ in range(6):
        scene.commit(record("stock", event="queues", messages=0, at_us=1_000 * _SECOND_US + later_us))
    return scene


def _logins(event: str, codes: str | None, since_us: int = 5) -> Scene:
    scene = told("desk")
    scene.records[0]["at_us"] = 3
    scene.commit(record("logins_refused", event=event, user_class="known", logins=1, since_us=since_us, codes=codes))
    return scene


def _connects(event: str, codes: str | None, level: int | None = 5, rule: str | None = None) -> Scene:
    scene = told("desk")
    said = {"event": event, "codes": codes, "protocol_level": level, "rule": rule}
    scene.commit(record("connects_refused", connects=1, since_us=5, **said))
    return scene


WRONG: dict[str, Callable[[], Scene]] = {
    "a session begins, and CONNACK says that there was one": lambda: _again("opened", "0100"),
    "a session goes on, and CONNACK does not say so": lambda: _again("resumed", "0000"),
    "CONNACK refuses a session that is there": lambda: _again("resumed", "0187"),
    "CONNACK of MQTT 3.1 says that there was a session": lambda: _again("resumed", "0100", 3),
    "a CONNACK is not told, and others are": lambda: _again("resumed", None),
    "a session goes on in spite of a clean start": lambda: _again("resumed", "0100", clean_start=True),
    "a session that lasts ends without a clean start": lambda: _taken_over(clean_start=None, is_clean=False),
    "a filter is granted a higher QoS": lambda: _subscribed(2, 1),
    "a filter is granted a lower QoS": lambda: _subscribed(0, 1),
    "a filter is refused without a rule": lambda: _subscribed(0x87),
    "a rule refuses a filter, and it is granted": lambda: _subscribed(1, 1, "line 7"),
    "a rule of access has the code of a quota": lambda: _subscribed(0x97, 1, "no rule"),
    "a limit has the code of access": lambda: _subscribed(0x87, 1, "subscriptions_per_user"),
    "a long filter has the code of a quota": lambda: _subscribed(0x97, 1, "topic_levels"),
    "SUBACK tells another QoS as asked for": lambda: _with_codes("02", "02"),
    "SUBACK of MQTT 3.1.1 has a code of MQTT 5": lambda: _subscribed(0x87, 1, "line 7", 4),
    "SUBACK has a code that no SUBACK has": lambda: _subscribed(0x90, 1, "line 7"),
    "the broker refuses a filter, and it is granted": lambda: _refused_by_broker(3072, 1),
    "the broker refuses a filter with another reason": lambda: _refused_by_broker(3081, 0x8F),
    "the broker takes a filter, and SUBACK says that it refused it": lambda: _subscribed_and_refused_by_mq(),
    "a filter is granted without a RegSub": lambda: _granted_unasked(),
    "a RegSub has no SUBACK": _without_suback,
    "a filter has no code": lambda: _with_codes(""),
    "there are more codes than filters": lambda: _with_codes("0101"),
    "UNSUBACK says 11 for a filter that is there": lambda: _unsubscribed("11", "a"),
    "UNSUBACK says 00 for a filter that is not there": lambda: _unsubscribed("00", "b"),
    "UNSUBACK says 00 twice for one filter": lambda: _unsubscribed("0000", "a", "a"),
    "UNSUBACK of MQTT 3.1.1 has codes": lambda: _unsubscribed("00", "a", level=4),
    "UNSUBACK has a code that no UNSUBACK has": lambda: _unsubscribed("97", "a"),
    "PUBACK says that nobody subscribes, and there is a copy": lambda: _published("10", "desk"),
    "PUBACK of a client that is gone says so": lambda: _published("10", "desk", is_gone=True),
    "PUBREC says that nobody subscribes, and there is a copy": lambda: _published("10", "desk", qos=2),
    "PUBACK refuses a message that was accepted": lambda: _published("87"),
    "PUBACK of MQTT 3.1.1 says that nobody subscribes": lambda: _published("10", level=4),
    "PUBACK says that nobody subscribes at a target": lambda: _to_a_target("10"),
    "a PUBLISH is refused with the code of another rule": lambda: _refusal("publish", "line 7", "97"),
    "a PUBLISH is refused with a code of SUBACK": lambda: _refusal("publish", "topic_bytes", "8f"),
    "a PUBLISH is refused with a success": lambda: _refusal("publish", "line 7", "10"),
    "a PUBLISH of MQTT 5 is refused without a code": lambda: _refusal("publish", "line 7", None),
    "a PUBLISH of MQTT 3.1.1 is refused with a code": lambda: _refusal("publish", "line 7", "87", 4),
    "a count of refusals has the code of another rule": lambda: _refusal("publish", "no rule", "97", is_first=False),
    "a filter is refused, and SUBACK grants it": lambda: _refusal("subscribe", "line 7", "01"),
    "a filter that was given up before its SUBACK, and twice since, is there": lambda: _given_up_early(
        "00", "11", "00"
    ),
    "of two packets for one filter the second is granted what the first has asked for": lambda: (
        _one_filter_in_two_packets(1, 1)
    ),
    "a refused filter is not counted": _uncounted,
    "a login with wrong credentials is refused for another reason": lambda: _logins("wrong_credentials", "87"),
    "a login is refused without a code": lambda: _logins("busy", None),
    "a login is refused with a success": lambda: _logins("busy", "00"),
    "a CONNECT past a limit is refused for another reason": lambda: _connects("limit", "87", rule="connections"),
    "a CONNECT past a limit is refused with a success": lambda: _connects("limit", "00", rule="sessions_per_user"),
    "a CONNECT past a rate is refused as past a number": lambda: _connects("limit", "97", rule="connection_rate"),
    "a CONNECT of MQTT 3.1.1 past a limit has a code of MQTT 5": lambda: _connects("limit", "97", 4, "connections"),
    "a CONNECT of MQTT 3.1.1 past a limit has no code": lambda: _connects("limit", None, 4, "connections"),
    "a malformed CONNECT of MQTT 5 has no code": lambda: _connects("malformed", None),
    "a malformed CONNECT of MQTT 3.1.1 has a code": lambda: _connects("malformed", "05", 4),
    "a CONNECT that nobody could read has a code": lambda: _connects("malformed", "81", None),
    "a level that is not served is refused for another reason": lambda: _connects("not_served", "02", None),
    "a client identifier is refused for another reason": lambda: _connects("identifier", "86"),
    "a CONNECT has two codes": lambda: _connects("malformed", "8182"),
}


def _subscribed_and_refused_by_mq() -> Scene:
    scene = told("desk")
    commands = scene.subscribe("desk", "a", options=_NEW_ONLY)
    scene.commit(*commands, suback("desk", {"a": (1, 0x83)}, {"a": "MQRC_PUT_INHIBITED"}))
    return scene


def _granted_unasked() -> Scene:
    scene = told("desk")
    scene.commit(suback("desk", {"a": (1, 1)}))
    return scene


def _with_codes(codes: str, requested: str = "01") -> Scene:
    scene = told("desk")
    answer = suback("desk", {"a": (1, 1)}) | {"codes": codes, "requested_qos": requested}
    scene.commit(*scene.subscribe("desk", "a", options=_NEW_ONLY), answer)
    return scene


def _one_filter_twice() -> Scene:
    scene = told("desk")
    answer = suback("desk", {"a": (2, 2)}) | {"topic_filters": ["a", "a"], "requested_qos": "0002", "codes": "0002"}
    scene.commit(*scene.subscribe("desk", "a", 2, options=_NEW_ONLY), answer)
    return scene


def _one_filter_in_two_packets(*codes: int) -> Scene:
    """A client subscribes again before the broker has answered."""
    scene = _slow_broker(is_refused=False)
    (second,) = scene.subscribe("desk", "plant/#", 0)
    scene.commit(second | {"packet_identifier": 2})
    scene.commit(suback("desk", {"plant/#": (1, 0x80)}, {"plant/#": "line 7"}, packet_identifier=3))
    for identifier, (qos, code) in enumerate(zip((1, 0), codes, strict=True), start=1):
        scene.commit(suback("desk", {"plant/#": (qos, code)}, packet_identifier=identifier))
    return scene


def _given_up_early(*codes: str, is_again: bool = False) -> Scene:
    """A client gives a filter up before the broker has answered its SUBSCRIBE, and again; level 5 is told codes."""
    scene = _slow_broker(is_refused=False, level=5)
    first, *rest = codes
    scene.commit(*scene.unsubscribe("desk", "plant/#"), unsuback("desk", first, "plant/#"))
    scene.commit(suback("desk", {"plant/#": (1, 1)}))
    if is_again:
        scene.commit(*scene.subscribe("desk", "plant/#", options=_NEW_ONLY), suback("desk", {"plant/#": (1, 1)}))
    for code in rest:
        scene.commit(unsuback("desk", code, "plant/#"))
    return scene


def _refused_beside_another() -> Scene:
    """Of two filters of a packet one is refused at once. The other one waits, and so does their SUBACK."""
    scene = _slow_broker(is_refused=False, level=5)
    said = {"rule": "line 7", "codes": "87", "refusals": 1, "since_us": 5, "at_us": 5}
    scene.commit(record("topics_refused", event="subscribe", client="desk", topic="a", **said))
    scene.commit(suback("desk", {"plant/#": (1, 1), "a": (1, 0x87)}, {"a": "line 7"}, at_us=6))
    return scene


def _before_codes() -> Scene:
    """The trail of an earlier version tells no code."""
    scene = connected("desk", "pump")
    scene.commit(*scene.subscribe("desk", "plant/#"))
    scene.commit(*scene.unsubscribe("desk", "plant/#"))
    scene.commit(record("topics_refused", event="publish", client="desk", topic="a", rule="line 7", refusals=1))
    scene.commit(record("logins_refused", event="busy", user_class="known", logins=1, since_us=1))
    return scene


def _upgraded() -> Scene:
    """A session of an earlier version goes on, and gives up a filter of that time."""
    scene = connected("desk")
    scene.commit(*scene.subscribe("desk", "plant/#"))
    scene.commit(record("started", at_us=9))
    scene.session("desk", "lost")
    scene.commit(connack("desk", "resumed", "0100"))
    scene.commit(*scene.unsubscribe("desk", "plant/#"), unsuback("desk", "00", "plant/#"))
    scene.commit(*scene.subscribe("desk", "plant/a"), suback("desk", {"plant/a": (1, 1)}))
    return scene


def _slow_broker(*, is_refused: bool = True, level: int = 4) -> Scene:
    """The broker has many retained publications to send, and answers in a later commit."""
    scene = told("desk", level=level)
    scene.commit(connack("pump", level=4))
    for number in range(9):
        scene.commit(*scene.publish("pump", f"plant/{number}", retain=True, qos=0))
    (regsub,) = scene.subscribe("desk", "plant/#")
    scene.commit(regsub)
    if not is_refused:
        return scene
    refused = record("refused", command="RegSub", message_id=regsub["message_id"], reason_code=2056, client="desk")
    scene.commit(refused)
    scene.commit(suback("desk", {"plant/#": (1, 0x80)}, {"plant/#": "MQRC_Q_SPACE_NOT_AVAILABLE"}))
    return scene


TRUE: dict[str, Callable[[], Scene]] = {
    "a session begins": lambda: told("desk"),
    "a session goes on": lambda: _again("resumed", "0100"),
    "a session of MQTT 3.1 goes on": lambda: _again("resumed", "0000", 3),
    "a session ends, and the next one begins": lambda: _again("opened", "0000"),
    "a clean start ends a session that lasts": lambda: _taken_over(clean_start=True, is_clean=False),
    "a session is taken over twice in a commit": _taken_over_twice,
    "a session ends with its connection": lambda: _taken_over(clean_start=None, is_clean=True),
    "a filter is granted": _subscribed,
    "a rule of access refuses a filter": lambda: _subscribed(0x87, 1, "rule#2"),
    "a limit refuses a filter": lambda: _subscribed(0x97, 1, "filter_shapes_in_all"),
    "a filter has too many levels": lambda: _subscribed(0x8F, 1, "topic_levels"),
    "a later version has a rule of its own": lambda: _subscribed(0xA2, 1, "wildcards"),
    "MQTT 3.1.1 has one code of failure": lambda: _subscribed(0x80, 1, "line 7", 4),
    "the broker refuses a filter": lambda: _refused_by_broker(3072, 0x8F),
    "the broker refuses a filter of MQTT 3.1.1": lambda: _refused_by_broker(3072, 0x80, 4),
    "the broker answers late": _slow_broker,
    "a filter is refused at once beside one that waits": _refused_beside_another,
    "a filter is given up before its SUBACK": lambda: _given_up_early("00", "11", "11"),
    "a filter is given up before its SUBACK, and asked for again": lambda: _given_up_early(
        "00", "00", "11", is_again=True
    ),
    "the broker answers two packets for one filter late": lambda: _one_filter_in_two_packets(1, 0),
    "one filter is asked for twice": _one_filter_twice,
    "a filter is given up": lambda: _unsubscribed("00", "a"),
    "a filter is given up twice": lambda: _unsubscribed("0011", "a", "a"),
    "a filter that is not there is given up": lambda: _unsubscribed("11", "b"),
    "UNSUBACK of MQTT 3.1.1 has no codes": lambda: _unsubscribed(None, "a", "b", level=4),
    "nobody subscribes": lambda: _published("10"),
    "nobody subscribes, and PUBREC says so": lambda: _published("10", qos=2),
    "PUBACK may leave out that nobody subscribes": lambda: _published(None),
    "somebody subscribes": lambda: _published(None, "desk"),
    "a PUBLISH is refused": lambda: _refusal("publish", "line 7", "87"),
    "a topic of a PUBLISH is too long": lambda: _refusal("publish", "topic_characters", "90"),
    "MQ refuses a PUBLISH": lambda: _refusal("publish", "MQRC_PUT_INHIBITED", "83"),
    "a PUBLISH of MQTT 3.1.1 is refused": lambda: _refusal("publish", "line 7", None, 4),
    "a filter of MQTT 3.1.1 is refused": lambda: _refusal("subscribe", "line 7", "80", 4),
    "a refused filter is told": lambda: _uncounted(counted={"client": "desk", "topic": "a", "at_us": 1_000_000_000}),
    "a refused filter is counted": lambda: _uncounted(counted={"client": "desk", "at_us": 1_001_000_000}),
    "a refused filter is counted with others": lambda: _uncounted(counted={"at_us": 1_001_000_000}),
    "a refused filter may still be counted": lambda: _uncounted(later_us=10),
    "a login is refused": lambda: _logins("wrong_credentials", "86"),
    "a login of MQTT 3.1.1 is refused": lambda: _logins("wrong_identifier", "02"),
    "a CONNECT is past a limit": lambda: _connects("limit", "97", rule="connections_per_address"),
    "a CONNECT of MQTT 3.1.1 is past a limit": lambda: _connects("limit", "03", 4, "connection_rate"),
    "a CONNECT of MQTT 3.1.1 has a will that is too deep": lambda: _connects("limit", None, 4, "topic_levels"),
    "a CONNECT is too long for its level to be known": lambda: _connects("limit", None, None, "packet_bytes"),
    "a later version has a limit of its own": lambda: _connects("limit", "9b", rule="moons"),
    "a later version has a refusal of its own": lambda: _connects("eclipse", "9b"),
    "a CONNECT is malformed": lambda: _connects("malformed", "82"),
    "a CONNECT of MQTT 3.1.1 is malformed": lambda: _connects("malformed", None, 4),
    "a level is not served": lambda: _connects("not_served", "01", None),
    "a will is not kept": lambda: _connects("will", "83"),
    "logins of the run before have no code": lambda: _logins("busy", None, since_us=1),
    "an earlier version tells no codes": _before_codes,
    "an earlier version began the session": _upgraded,
}


@for_every(list(WRONG.items()))
def test_a_wrong_code_is_found(case: tuple[str, Callable[[], Scene]]) -> None:
    assert _found(case[1]()), case[0]


@for_every(list(TRUE.items()))
def test_a_right_code_raises_no_alarm(case: tuple[str, Callable[[], Scene]]) -> None:
    assert _found(case[1]()) == [], case[0]


@for_every([(name, made) for cases in (WRONG, TRUE) for name, made in cases.items()])
def test_no_value_of_an_answer_stops_the_replay(case: tuple[str, Callable[[], Scene]]) -> None:
    scene = case[1]()
    for place, each in enumerate(scene.records):
        for name in each.keys() & _READ:
            for other in (None, *_HOSTILE.get(type(each[name]), ())):
                wrong = [*scene.records[:place], each | {name: other}, *scene.records[place + 1 :]]
                list(replayed(map(row_of, wrong)))


#: Fields of an answer and a refusal; test_replay.py has those of all others.
_READ = {
    *("codes", "requested_qos", "refused_filters", "topic_filters", "event", "rule", "since_us", "at_us"),
    *("client", "session_epoch", "protocol_level", "packet_type", "clean_start", "topic"),
}
_HOSTILE: dict[type, tuple[object, ...]] = {
    int: (-1, 2**62),
    str: ("", "zz", "8", "8780", "k:" + "0" * 32, "$share/"),
    list: ([], [None]),
}
