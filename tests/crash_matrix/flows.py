"""The flows of the matrix: publishing and receiving."""

from typing import Final

from tests.crash_matrix.questions import settle_messages
from tests.crash_matrix.stage import Flow, Stage

SUBSCRIBER: Final = "subscriber"


def _subscribed(stage: Stage) -> None:
    """A session that is absent while others publish."""
    with stage.connected(SUBSCRIBER) as subscriber:
        subscriber.subscribe("t/#")
        subscriber.disconnect()


def _publishes(qos: int, count: int = 3) -> "list[tuple[str, bytes, int]]":
    return [("t/a", b"qos %d number %d" % (qos, number), qos) for number in range(count)]


def _publish_qos_1(stage: Stage) -> None:
    with stage.connected("publisher") as publisher:
        for each in _publishes(1):
            publisher.publish(*each)
        publisher.disconnect()


def _publish_qos_2(stage: Stage) -> None:
    with stage.connected("publisher") as publisher:
        for each in _publishes(2):
            publisher.publish(*each)
        publisher.disconnect()


def _qos_1_waits(stage: Stage) -> None:
    _subscribed(stage)
    _publish_qos_1(stage)


def _qos_2_waits(stage: Stage) -> None:
    _subscribed(stage)
    _publish_qos_2(stage)


def _receive(stage: Stage) -> None:
    with stage.connected(SUBSCRIBER) as subscriber:
        subscriber.receive(3)
        subscriber.disconnect()


FLOWS: Final = (
    Flow(name="qos 1 in", prepare=_subscribed, run=_publish_qos_1, settle=settle_messages),
    Flow(name="qos 2 in", prepare=_subscribed, run=_publish_qos_2, settle=settle_messages),
    Flow(name="qos 1 out", prepare=_qos_1_waits, run=_receive, settle=settle_messages),
    Flow(name="qos 2 out", prepare=_qos_2_waits, run=_receive, settle=settle_messages),
)
