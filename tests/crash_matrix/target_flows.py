"""Flows of the channels: a target's queue manager at the other end, which goes on while the gateway is cut off."""

from collections import Counter
from typing import Final

from tests.crash_matrix.ledger import ACKNOWLEDGED, SENT
from tests.crash_matrix.publish_flows import SUBSCRIBER, publish_qos_2, subscribed
from tests.crash_matrix.questions import LAST, check_deliveries, finish
from tests.crash_matrix.stage import CONFIGURATION, Flow, Stage, await_condition
from tests.end_to_end.ibm_mq.central import MARK

#: Everything goes there and comes from there.
TARGET: Final = """
[[target]]
name = "CENTRAL"
binding = "ibmmq"
header = "mqrfh2"
[[route]]
target = "CENTRAL"
topics = ["#"]
"""
ARRIVED: Final = "APP.ARRIVED"


def _set_up(stage: Stage) -> None:
    """The operator's part at the target, and an application that subscribes there."""
    said = stage.command("explain", "--mqsc", "--config", str(stage.folder / CONFIGURATION))
    assert said.returncode == 0, said
    stage.central.set_up(said.stdout)
    stage.central.subscribe(ARRIVED, "t/*")


# -- out ---------------------------------------------------------------------------------------------------------------


def _send(stage: Stage) -> None:
    publish_qos_2(stage)
    await_condition(lambda: stage.central.depth(ARRIVED) >= 3, stage)


def _settle_out(stage: Stage) -> None:
    finish(stage)
    sent = {entry.payload for entry in stage.ledger.of(SENT)}
    await_condition(lambda: stage.central.depth(ARRIVED) >= len(sent), stage)
    with stage.connected("publisher") as publisher:
        publisher.publish("t/a", MARK + LAST, 2)
    await_condition(lambda: stage.central.payloads(ARRIVED)[-1:] == [LAST], stage)
    counts = Counter(body for body in stage.central.payloads(ARRIVED) if body != LAST)
    assert counts == dict.fromkeys((payload.removeprefix(MARK) for payload in sent), 1)


# -- in ----------------------------------------------------------------------------------------------------------------


def _set_up_and_subscribe(stage: Stage) -> None:
    _set_up(stage)
    subscribed(stage)


def _publish_there(stage: Stage) -> None:
    """An application of the target publishes, persistent, while the subscriber is connected."""
    with stage.connected(SUBSCRIBER) as subscriber:
        for number in range(1, 4):
            payload = b"from there %d" % number
            stage.ledger.note("there", SENT, topic="t/a", payload=payload, qos=1, identifier=number)
            stage.central.publish(payload, topic="t/a")
            stage.ledger.note("there", ACKNOWLEDGED, identifier=number)
        subscriber.receive(3)
        subscriber.disconnect()


def _settle_in(stage: Stage) -> None:
    stage.central.publish(LAST, topic="t/a")
    with stage.connected(SUBSCRIBER) as subscriber:
        subscriber.receive_until(LAST)
        subscriber.disconnect()
    check_deliveries(stage, SUBSCRIBER)


FLOWS: Final = (
    Flow(name="channel out", settings=TARGET, has_target=True, prepare=_set_up, run=_send, settle=_settle_out),
    Flow(
        name="channel in",
        settings=TARGET,
        has_target=True,
        prepare=_set_up_and_subscribe,
        run=_publish_there,
        settle=_settle_in,
    ),
)
