"""Flows of sessions: CONNECT, SUBSCRIBE at each level, wills, and what ends by time."""

from functools import partial
from typing import Final

from tests.crash_matrix.ledger import Ledger
from tests.crash_matrix.publish_flows import SUBSCRIBER, publish_qos_1, subscribed
from tests.crash_matrix.questions import LAST, settle_messages
from tests.crash_matrix.sensor import Will
from tests.crash_matrix.stage import Flow, Stage, await_condition

LEVELS: Final = (3, 4, 5)
PUBLICATIONS: Final = "RFHBRIDGE.SUBSCRIBER"
#: Each start sets the registrations of all sessions aside.
SET_ASIDE: Final = "[mqtt]\nmaximum_session_memory_bytes = 1\n"


# -- CONNECT -----------------------------------------------------------------------------------------------------------


def _connect(stage: Stage) -> None:
    for level in LEVELS:
        with stage.connected(f"device {level}", level=level) as device:
            device.disconnect()


def _settle_connects(stage: Stage) -> None:
    """A session that was granted is there; level 3 does not tell."""
    for level in LEVELS[1:]:
        name = f"device {level}"
        was_granted = bool(stage.ledger.of("connected", name))
        with stage.sensor(name, level=level) as device:
            assert device.connect() or not was_granted, f"the session of {name} is gone"


# -- SUBSCRIBE ---------------------------------------------------------------------------------------------------------


def _subscribe(level: int, stage: Stage) -> None:
    with stage.connected("watcher", level=level) as watcher:
        watcher.subscribe("s/1", "s/2", qos=1)
        watcher.subscribe("s/3", qos=1)
        watcher.unsubscribe("s/1")
        watcher.disconnect()


def _subscribed_before(stage: Stage) -> None:
    """Two filters that the next start sets aside."""
    with stage.connected("watcher", level=5) as watcher:
        watcher.subscribe("s/1", "s/3", qos=1)
        watcher.disconnect()


def _is_subscribed(ledger: Ledger, topic_filter: str) -> bool | None:
    """What the answers say; None: the last thing that was asked was not answered."""
    said: bool | None = False
    for entry in ledger.entries:
        if entry.who == "watcher" and topic_filter in entry.topic.split():
            said = {"subscribed": True, "unsubscribed": False}.get(entry.what)
    return said


def _settle_subscriptions(level: int, stage: Stage) -> None:
    expected = {name: _is_subscribed(stage.ledger, name) for name in ("s/1", "s/2", "s/3")}
    with stage.connected("watcher", level=level) as watcher:
        watcher.subscribe("s/last", qos=1)
        with stage.connected("the last", clean=True) as last:
            for topic in expected:
                last.publish(topic, topic.encode(), 1)
            last.publish("s/last", LAST, 1)
        heard = {each.topic for each in watcher.receive_until(LAST)}
    wrong = [name for name, is_there in expected.items() if is_there is not None and is_there != (name in heard)]
    assert not wrong, f"{heard}, not {expected}"


# -- wills -------------------------------------------------------------------------------------------------------------


def _wills(level: int, delay_s: int, stage: Stage) -> None:
    """One connection is lost, one ends in order, one is open to the end."""
    for name in ("lost", "orderly", "open"):
        stage.ledger.note(name, "will", payload=name.encode())
        will = Will(topic="t/will", payload=name.encode(), qos=2, delay_s=delay_s)
        device = stage.connected(name, level=level, will=will)
        if name == "orderly":
            device.disconnect()
        elif name == "lost":
            device.drop()
        else:
            stage.keep(device)
    await_condition(lambda: _publications(stage) >= 1, stage)


def _publications(stage: Stage) -> int:
    """What waits for sessions."""
    with stage.application() as application:
        return application.depth(PUBLICATIONS)


def _will(stage: Stage) -> None:
    _wills(4, 0, stage)


def _delayed_will(stage: Stage) -> None:
    _wills(5, 1, stage)


def _settle_wills(stage: Stage) -> None:
    """Each will whose connection was granted and did not end in order comes, once; the delay may be to come yet."""
    granted = {entry.who for entry in stage.ledger.of("connected")}
    ended = {entry.who for entry in stage.ledger.of("disconnecting")}
    owed = {entry.payload for entry in stage.ledger.of("will") if entry.who in granted - ended}
    with stage.connected(SUBSCRIBER) as subscriber:
        while owed - set(stage.ledger.delivered(SUBSCRIBER)) or stage.ledger.held(SUBSCRIBER):
            subscriber.receive_one()
        with stage.connected("the last", clean=True) as last:
            last.publish("t/last", LAST, 1)
        subscriber.receive_until(LAST)
    counts = stage.ledger.delivered(SUBSCRIBER)
    del counts[LAST]
    assert set(counts.values()) <= {1}, counts
    assert owed <= set(counts) <= {entry.payload for entry in stage.ledger.of("will")}


# -- what ends by time -------------------------------------------------------------------------------------------------


def _short_lived(stage: Stage) -> None:
    """Messages that expire while their subscriber is away, and one that does not."""
    subscribed(stage)
    with stage.connected("publisher", level=5) as publisher:
        for number in range(3):
            publisher.publish("t/a", b"short-lived %d" % number, 1, expiry_s=1)
        publisher.publish("t/a", b"long-lived", 2)
        publisher.disconnect()


def _await_expiry(stage: Stage) -> None:
    await_condition(lambda: _publications(stage) <= 1, stage)


def _settle_expiry(stage: Stage) -> None:
    with stage.connected("the last", clean=True) as last:
        last.publish("t/last", LAST, 1)
    with stage.connected(SUBSCRIBER) as subscriber:
        subscriber.receive_until(LAST)
        subscriber.disconnect()
    counts = stage.ledger.delivered(SUBSCRIBER)
    assert counts[b"long-lived"] == 1
    assert all(count == 1 for count in counts.values()), counts


def _guest(stage: Stage) -> None:
    """A session of one second with messages, beside one that stays."""
    subscribed(stage)
    with stage.connected("guest", level=5, session_expiry_s=1) as guest:
        guest.subscribe("t/#", qos=2)
        with stage.connected("publisher") as publisher:
            guest.drop()
            publisher.publish("t/a", b"for both 1", 1)
            publisher.publish("t/a", b"for both 2", 2)
            publisher.disconnect()


def _await_end_of_session(stage: Stage) -> None:
    await_condition(lambda: _publications(stage) <= 2, stage)


def _is_listed(client: str, stage: Stage) -> bool:
    listed = stage.command("sessions", "list", "--data", str(stage.data))
    assert listed.returncode == 0, listed.stderr
    return client in listed.stdout


def _settle_end_of_session(stage: Stage) -> None:
    """On a quick machine less than a second has passed by now: then the session is still there, and ends soon."""
    settle_messages(stage)
    await_condition(lambda: not _is_listed("guest", stage), stage)
    with stage.sensor("guest", level=5) as guest:
        assert not guest.connect(), "a session that was over is there"


FLOWS: Final = (
    Flow(name="connect", run=_connect, settle=_settle_connects),
    *(
        Flow(
            name=f"subscribe at level {level}",
            run=partial(_subscribe, level),
            settle=partial(_settle_subscriptions, level),
        )
        for level in LEVELS
    ),
    Flow(
        name="subscribe while set aside",
        prepare=_subscribed_before,
        run=partial(_subscribe, 5),
        settle=partial(_settle_subscriptions, 5),
        settings=SET_ASIDE,
    ),
    Flow(
        name="publish to a session set aside",
        prepare=subscribed,
        run=publish_qos_1,
        settle=settle_messages,
        settings=SET_ASIDE,
    ),
    Flow(name="will", prepare=subscribed, run=_will, settle=_settle_wills),
    Flow(name="delayed will", prepare=subscribed, run=_delayed_will, settle=_settle_wills),
    Flow(name="message expiry", prepare=_short_lived, run=_await_expiry, settle=_settle_expiry),
    Flow(name="session expiry", prepare=_guest, run=_await_end_of_session, settle=_settle_end_of_session),
)
