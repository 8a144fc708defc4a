"""An acknowledgement that was due and has no record is found; one that may never have been sent is not."""

from collections.abc import Callable

import pytest

from spark_audit.custody.confirmations import Confirmations
from spark_audit.custody.findings import Custody, Finding
from spark_audit.custody.replay import replayed
from tests.every_case import for_every
from tests.spark_audit.custody.scenes import Scene, connected, record


def _found(scene: Scene) -> list[Finding]:
    scene.commit(record("clock_jumped", event="settled"))
    return [each for each in replayed(scene.rows()) if each.control is Custody.CONFIRMATIONS]


def _accepted(scene: Scene, exchange: int, client: str = "pump", qos: int = 1) -> None:
    """A PUBLISH to which nobody has subscribed."""
    put = scene.publish(client, "plant/a", qos=qos)[0] | {"exchange": exchange}
    accepted = record("accepted", **{n: put[n] for n in ("direction", "client", "session_epoch", "packet_type", "qos")})
    scene.commit(accepted | {"exchange": exchange}, *(() if qos == 2 else (put,)))


def _confirmed(scene: Scene, *exchanges: int, client: str = "pump", packet_type: int = 4) -> None:
    is_one = exchanges == tuple(range(exchanges[0], exchanges[-1] + 1))
    ranges = [[exchanges[0], exchanges[-1]]] if is_one else [[each, each] for each in exchanges]
    scene.commit(
        record("confirmed", direction="in", client=client, session_epoch=1, packet_type=packet_type, exchanges=ranges)
    )


def skipped(qos: int = 1) -> Scene:
    """The second of three exchanges is never confirmed."""
    scene = connected("pump", "desk")
    for exchange in (1, 2, 3):
        _accepted(scene, exchange, qos=qos)
    _confirmed(scene, 1, 3, packet_type=3 + qos)
    _accepted(scene, 1, "desk")
    _confirmed(scene, 1, client="desk")
    return scene


def _last_unconfirmed() -> Scene:
    """The only exchange of a client that goes on, and another client gets a later PUBACK."""
    scene = connected("pump", "desk")
    _accepted(scene, 1)
    _accepted(scene, 1, "desk")
    scene.commit(record("acknowledged", direction="out", client="pump", session_epoch=1, exchange=1, packet_type=4))
    _confirmed(scene, 1, client="desk")
    return scene


def _without_pubcomp() -> Scene:
    """Two PUBLISHes of QoS 2 are released, and only the second has its PUBCOMP."""
    scene = connected("pump", "desk")
    for exchange in (1, 2):
        _accepted(scene, exchange, qos=2)
    _confirmed(scene, 1, 2, packet_type=5)
    for exchange in (1, 2):
        scene.commit(scene.publish("pump", "plant/a", qos=2)[0] | {"exchange": exchange})
    _confirmed(scene, 2, packet_type=7)
    _accepted(scene, 1, "desk")
    _confirmed(scene, 1, client="desk")
    return scene


def _lost_at_once() -> Scene:
    """The connection ends while the commit is under way."""
    scene = connected("pump", "desk")
    _accepted(scene, 1)
    scene.session("pump", "lost")
    _accepted(scene, 1, "desk")
    scene.session("pump", "resumed")
    _accepted(scene, 2)
    _confirmed(scene, 2)
    _confirmed(scene, 1, client="desk")
    return scene


def _refused_at_3_1(code: str = "80") -> Scene:
    """A filter is refused at MQTT 3.1. What stands behind it is still carried out, and the connection is closed."""
    scene = connected("desk")
    scene.commit(record("session", client="pump", session_epoch=1, event="opened", protocol_level=3))
    said = {"packet_type": 9, "packet_identifier": 1, "topic_filters": ["a"], "requested_qos": "00", "codes": code}
    refused = {"refused_filters": [["1", "line 7"]]} if code == "80" else {}
    scene.commit(record("answered", direction="in", client="pump", session_epoch=1, **said, **refused))
    _accepted(scene, 1)
    _accepted(scene, 1, "desk")
    scene.commit(record("acknowledged", direction="out", client="pump", session_epoch=1, exchange=1, packet_type=4))
    _confirmed(scene, 1, client="desk")
    scene.session("pump", "lost")
    return scene


def _killed() -> Scene:
    """The gateway ends before it notes what it has sent."""
    scene = connected("pump", "desk")
    for exchange in (1, 2):
        _accepted(scene, exchange)
    scene.commit(record("started"))
    scene.session("pump", "resumed")
    _accepted(scene, 3)
    _confirmed(scene, 3)
    return scene


def _not_noted_yet() -> Scene:
    scene = connected("pump")
    _accepted(scene, 1)
    _confirmed(scene, 1)
    for exchange in (2, 3, 4, 5):
        _accepted(scene, exchange)
    return scene


def _begun_late() -> Scene:
    """The trail begins between a PUBLISH and its note, which tells of earlier ones too."""
    scene = connected("pump", is_whole=False)
    _accepted(scene, 900)
    _confirmed(scene, *range(800, 901))
    for exchange in (901, 902):
        _accepted(scene, exchange)
    _confirmed(scene, 901, 902)
    _accepted(scene, 903)
    return scene


def _noted_late() -> Scene:
    """The note comes when the client has gone and is back."""
    scene = connected("pump")
    for exchange in (1, 2):
        _accepted(scene, exchange)
    scene.session("pump", "lost")
    scene.session("pump", "resumed")
    _confirmed(scene, 1, 2)
    return scene


def _confirmed_twice(qos: int = 1) -> Scene:
    scene = connected("pump")
    for exchange in (1, 2):
        _accepted(scene, exchange, qos=qos)
    _confirmed(scene, 1, 2, packet_type=3 + qos)
    _confirmed(scene, 2, packet_type=3 + qos)
    return scene


def _confirmed_behind_a_gap() -> Scene:
    """An earlier exchange is released behind the gap, and so nobody knows which ones began before it."""
    scene = connected("pump")
    scene._sequence += 7
    (put,) = scene.publish("pump", "plant/a", qos=2)
    scene.commit(put | {"exchange": 1})
    _confirmed(scene, 2)
    return scene


def _confirmed_unasked() -> Scene:
    scene = connected("pump")
    _accepted(scene, 1)
    _confirmed(scene, 1)
    _confirmed(scene, 7)
    return scene


TRUE: dict[str, Callable[[], Scene]] = {
    "the PUBLISH of a PUBACK stands in a gap": _confirmed_behind_a_gap,
    "a PUBREC is sent again for a PUBLISH that is repeated": lambda: _confirmed_twice(2),
    "the connection is lost at once": _lost_at_once,
    "a filter is refused at MQTT 3.1": _refused_at_3_1,
    "the gateway is killed": _killed,
    "the trail ends before the next note": _not_noted_yet,
    "the note is late": _noted_late,
    "the trail begins before the note": _begun_late,
}
WRONG: dict[str, Callable[[], Scene]] = {
    "a PUBACK between two others": skipped,
    "a PUBACK is told twice": _confirmed_twice,
    "a PUBACK for what was never accepted": _confirmed_unasked,
    "a PUBREC between two others": lambda: skipped(2),
    "a PUBACK of MQTT 3.1 behind a filter that was granted": lambda: _refused_at_3_1("00"),
    "a PUBCOMP before another": _without_pubcomp,
    "the PUBACK of a client that goes on": _last_unconfirmed,
}


@for_every(list(TRUE.items()))
def test_what_may_not_have_been_sent_is_no_alarm(case: tuple[str, Callable[[], Scene]]) -> None:
    assert _found(case[1]()) == []


@for_every(list(WRONG.items()))
def test_what_was_sent_and_has_no_record_is_found_once(case: tuple[str, Callable[[], Scene]]) -> None:
    assert len(_found(case[1]())) == 1


def test_a_range_that_is_none_is_passed_over() -> None:
    scene = connected("pump")
    _accepted(scene, 1)
    scene.commit(
        record(
            "confirmed", direction="in", client="pump", session_epoch=1, packet_type=4, exchanges=[[1], "x", [1, 2**62]]
        )
    )
    assert _found(scene) == []


@pytest.mark.timeout(120)  # it takes a second, and hours where each range looks at all that is due
def test_long_ranges_that_confirm_nothing_cost_little_however_much_is_due() -> None:
    many, who = 50_000, {"client": "pump", "session_epoch": 1}
    confirmations = Confirmations()
    for exchange in range(1, many + 1):
        confirmations.accept(who | {"qos": 1, "exchange": exchange, "batch": exchange, "sequence": exchange})
    ranges = [(many + 1, 2 * many)] * many + [(1, many)]
    assert len(list(confirmations.confirm(who | {"packet_type": 4, "sequence": 7}, ranges))) == 1
    assert list(confirmations.judged()) == []
    confirmations.accept(who | {"qos": 1, "exchange": 1, "batch": many + 1, "sequence": many + 1})
    confirmations.accept(who | {"qos": 1, "exchange": 2, "batch": many + 2, "sequence": many + 2})
    list(confirmations.confirm(who | {"packet_type": 4, "sequence": 8}, [(2, 2)]))
    assert [each.sequence for each in confirmations.judged()] == [many + 1], "nothing of before is due any more"
