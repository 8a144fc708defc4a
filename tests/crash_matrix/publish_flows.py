"""Flows of publishing and receiving: QoS 1 and 2, in and out, retained messages, and shares of a group."""

from contextlib import ExitStack
from typing import Final

from tests.crash_matrix.ledger import DELIVERED, SENT
from tests.crash_matrix.questions import LAST, check_deliveries, finish, settle_messages
from tests.crash_matrix.sensor import receive_by_any
from tests.crash_matrix.stage import Flow, Stage

SUBSCRIBER: Final = "subscriber"


def subscribed(stage: Stage) -> None:
    """A session that is absent while others publish."""
    with stage.connected(SUBSCRIBER) as subscriber:
        subscriber.subscribe("t/#")
        subscriber.disconnect()


def _publishes(qos: int, count: int = 3) -> "list[tuple[str, bytes, int]]":
    return [("t/a", b"|qos %d number %d" % (qos, number), qos) for number in range(count)]


def publish_qos_1(stage: Stage) -> None:
    with stage.connected("publisher") as publisher:
        for each in _publishes(1):
            publisher.publish(*each)
        publisher.disconnect()


def publish_qos_2(stage: Stage) -> None:
    with stage.connected("publisher") as publisher:
        for each in _publishes(2):
            publisher.publish(*each)
        publisher.disconnect()


def _qos_1_waits(stage: Stage) -> None:
    subscribed(stage)
    publish_qos_1(stage)


def _qos_2_waits(stage: Stage) -> None:
    subscribed(stage)
    publish_qos_2(stage)


def _receive(stage: Stage) -> None:
    with stage.connected(SUBSCRIBER) as subscriber:
        subscriber.receive(3)
        subscriber.disconnect()


def _take_over(stage: Stage) -> None:
    """A second connection of the same client, while the first has messages in flight."""
    with stage.connected(SUBSCRIBER) as first:
        first.receive(1)
        with stage.connected(SUBSCRIBER) as second:
            while stage.ledger.delivered(SUBSCRIBER).total() < 3 or stage.ledger.held(SUBSCRIBER):
                second.receive_one()
            second.disconnect()


def _everything_at_once(stage: Stage) -> None:
    """Somebody publishes while the subscriber is connected."""
    with stage.connected(SUBSCRIBER) as subscriber, stage.connected("publisher") as publisher:
        for number in range(4):
            publisher.publish("t/a", b"number %d" % number, number % 3)
            subscriber.receive(1)
        subscriber.disconnect()


def _publish_much(stage: Stage) -> None:
    """So much that the WAL is copied back into the store, and begun anew."""
    with stage.connected("publisher") as publisher:
        for number in range(9):
            publisher.publish("t/a", b"number %d " % number + bytes(3_000_000 if number < 6 else 3), 1)
        publisher.disconnect()


# -- retained messages -------------------------------------------------------------------------------------------------

RETAINED: Final = ("r/a", "r/b")


def _set_retained(stage: Stage) -> None:
    with stage.connected("publisher") as publisher:
        for number in range(2):
            for topic in RETAINED:
                publisher.publish(topic, b"%s %d" % (topic.encode(), number), 1 + number, retain=True)
        publisher.disconnect()


def _delete_retained(stage: Stage) -> None:
    with stage.connected("eraser") as publisher:
        publisher.publish(RETAINED[0], b"", 1, retain=True)
        publisher.disconnect()


def _settle_retained(stage: Stage) -> None:
    """Whoever subscribes now is told what was published last, and nothing where that was deleted."""
    finish(stage)
    newest = {entry.topic: entry.payload for entry in stage.ledger.of(SENT) if entry.retain}
    with stage.connected("newcomer", clean=True) as newcomer:
        newcomer.subscribe("r/#")
        with stage.connected("the last", clean=True) as last:
            last.publish("r/last", LAST, 1)
        told = {each.topic: each.payload for each in newcomer.receive_until(LAST) if each.retain}
    assert told == {topic: payload for topic, payload in newest.items() if payload}


#: More than a SUBSCRIBE brings in its own unit of work.
KEPT: Final = tuple(f"k/{number}" for number in range(8))


def _keep_many(stage: Stage) -> None:
    with stage.connected("publisher") as publisher:
        for topic in KEPT:
            publisher.publish(topic, topic.encode(), 2, retain=True)
        publisher.disconnect()


def _subscribe_to_many(stage: Stage) -> None:
    """SUBACK comes first. Somebody publishes on one of the topics while what is retained is on its way."""
    with stage.connected(SUBSCRIBER) as subscriber, stage.connected("teller") as teller:
        subscriber.subscribe("k/#")
        teller.publish(KEPT[-1], b"newer", 2)
        subscriber.receive(len(KEPT) + 1)
        subscriber.disconnect()


def _settle_many(stage: Stage) -> None:
    """Who had its SUBACK gets each retained message once, and the newer one behind the old one."""
    had_suback = bool(stage.ledger.of("subscribed", SUBSCRIBER))
    finish(stage)
    wanted = {topic.encode() for topic in KEPT}
    if any(entry.payload == b"newer" for entry in stage.ledger.of(SENT)):
        wanted.add(b"newer")
    with stage.connected(SUBSCRIBER) as subscriber:
        if not had_suback:
            subscriber.subscribe("k/#")
        while wanted - set(stage.ledger.delivered(SUBSCRIBER)) or stage.ledger.held(SUBSCRIBER):
            subscriber.receive_one()
        with stage.connected("the last", clean=True) as last:
            last.publish("k/last", LAST, 1)
        subscriber.receive_until(LAST)
        subscriber.disconnect()
    if had_suback:
        delivered = [entry.payload for entry in stage.ledger.of(DELIVERED, SUBSCRIBER) if entry.payload != LAST]
        assert sorted(delivered) == sorted(wanted)
        assert b"newer" not in delivered or delivered.index(b"newer") > delivered.index(KEPT[-1].encode())


# -- shared subscriptions ----------------------------------------------------------------------------------------------

#: Before level 5 the filter is one like any other.
MEMBERS: Final = ("member 1", "member 2")


def _members(stage: Stage) -> None:
    for name in MEMBERS:
        with stage.connected(name, level=5) as member:
            member.subscribe("$share/group/t/#")
            member.disconnect()


def _share(stage: Stage) -> None:
    """One member takes part of it and goes, then the other comes."""
    with stage.connected("publisher") as publisher:
        for number in range(6):
            publisher.publish("t/a", b"number %d" % number, 1 + number % 2)
        publisher.disconnect()
    with stage.connected(MEMBERS[0], level=5) as member:
        member.receive(2)
    with stage.connected(MEMBERS[1], level=5) as member:
        member.disconnect()


def _settle_shares(stage: Stage) -> None:
    """Together the members get everything, and nothing of QoS 2 twice."""
    finish(stage)
    wanted = {entry.payload for entry in stage.ledger.of(SENT)}
    with ExitStack() as stack:
        members = [stack.enter_context(stage.connected(name, level=5)) for name in MEMBERS]
        while wanted - set(stage.ledger.delivered(*MEMBERS)) or any(stage.ledger.held(name) for name in MEMBERS):
            receive_by_any(members)
        with stage.connected("the last", clean=True) as last:
            last.publish("t/last", LAST, 1)
        while not stage.ledger.delivered(*MEMBERS)[LAST]:
            receive_by_any(members)
    check_deliveries(stage, *MEMBERS, in_order=False)


FLOWS: Final = (
    Flow(name="qos 1 in", prepare=subscribed, run=publish_qos_1, settle=settle_messages),
    Flow(name="qos 2 in", prepare=subscribed, run=publish_qos_2, settle=settle_messages),
    Flow(name="qos 1 out", prepare=_qos_1_waits, run=_receive, settle=settle_messages),
    Flow(name="qos 2 out", prepare=_qos_2_waits, run=_receive, settle=settle_messages),
    Flow(name="in and out", prepare=subscribed, run=_everything_at_once, settle=settle_messages),
    Flow(name="take-over", prepare=_qos_2_waits, run=_take_over, settle=settle_messages),
    Flow(name="check-point", prepare=subscribed, run=_publish_much, settle=settle_messages, is_long=True),
    Flow(name="retained set", run=_set_retained, settle=_settle_retained),
    Flow(name="retained delete", prepare=_set_retained, run=_delete_retained, settle=_settle_retained),
    Flow(name="retained sent", prepare=_keep_many, run=_subscribe_to_many, settle=_settle_many),
    Flow(name="shared subscription", prepare=_members, run=_share, settle=_settle_shares),
)
