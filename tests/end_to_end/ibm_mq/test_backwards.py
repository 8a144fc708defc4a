"""The way back, while connections to the queue manager break and the gateway is killed: each as its QoS says.

In full (RFHBRIDGE_PROOF=full): 20,000 publications, each to two persistent sessions.
"""

import pytest

from tests.end_to_end.ibm_mq.central import Central, by_client, numbered
from tests.end_to_end.ibm_mq.conftest import NewGateway, Way
from tests.end_to_end.ibm_mq.target_gateway import TargetGateway, wait_until
from tests.end_to_end.ibm_mq.test_exactly_once import RETRY_S, Scale, break_connections
from tests.end_to_end.resending_clients import Publisher, Subscriber

TOPIC = "back/a"
LAST = b"the last one"
#: Sensors publish half of it at QoS 1 and 2 by turns, an application of the queue manager the other half, persistent.
SCALES = {
    "short": Scale(clients=2, messages_each=125, calls_a_loss=120, batch_messages=20, kills=2, patience_s=600),
    "full": Scale(clients=4, messages_each=2_500, calls_a_loss=500, batch_messages=100, kills=10, patience_s=1_500),
}


def publish_through_kills(
    gateway: TargetGateway, central: Central, subscribers: list[Subscriber], scale: Scale
) -> list[bytes]:
    """The application publishes a part before each kill and the rest behind the last; returns what it published."""
    payloads = list(numbered(b"application", scale.messages))
    share = len(payloads) // (scale.kills + 1) + 1
    sent = 0
    for number, start in enumerate(range(0, len(payloads), share)):
        part = payloads[start : start + share]
        central.publish(*part, topic=TOPIC)
        sent += len(part)
        if number < scale.kills:
            due = sent - len(part) // 2
            wait_until(
                lambda due=due: all(_application_payloads(each) >= due for each in subscribers),
                f"half of part {number} is delivered",
                limit_s=scale.patience_s,
                found=lambda: f"{[each.error for each in subscribers]}\n{gateway.log}",
            )
            gateway.kill_and_restart()
    return payloads


def _application_payloads(subscriber: Subscriber) -> int:
    return sum(payload.startswith(b"application") for payload in tuple(subscriber.payloads[1]))


@pytest.mark.proof
@pytest.mark.timeout(3_600)
def test_each_publication_reaches_persistent_sessions_as_its_qos_says_through_losses_and_kills(
    new_target_gateway: NewGateway, central: Central, way: Way, proof_scale: str
) -> None:
    scale = SCALES[proof_scale]
    gateway = new_target_gateway(way, batch_messages=scale.batch_messages, retry_s=RETRY_S).start()
    gateway.wait_for_running()
    subscribers = [Subscriber(gateway.port, b"hears-%d" % number, TOPIC.encode()) for number in range(2)]
    for subscriber in subscribers:
        subscriber.end_with(LAST)
        subscriber.start()
        assert subscriber.subscribed.wait(scale.patience_s), subscriber.error
    break_connections(central, scale, seed=11)
    publishers = [
        Publisher(gateway.port, b"sensor-%d" % number, TOPIC.encode(), scale.messages_each)
        for number in range(scale.clients)
    ]
    for publisher in publishers:
        publisher.start()
    applications = publish_through_kills(gateway, central, subscribers, scale)
    for publisher in publishers:
        publisher.join(scale.patience_s)
        assert publisher.is_done(), (publisher.error, gateway.log)
    exactly_once = set[bytes]().union(*(each.acknowledged[2] for each in publishers))
    at_least_once = set[bytes](applications).union(*(each.acknowledged[1] for each in publishers))
    wait_until(
        lambda: all(
            exactly_once <= set(each.payloads[2]) and at_least_once <= set(each.payloads[1]) for each in subscribers
        ),
        "everything is delivered",
        limit_s=scale.patience_s,
        found=lambda: gateway.log,
    )
    assert sum(central.control.clear_faults()) >= scale.messages / scale.calls_a_loss
    central.publish(LAST, topic=TOPIC)
    for subscriber in subscribers:
        subscriber.join(scale.patience_s)
        assert subscriber.is_done(), subscriber.error
        check_delivered(subscriber, exactly_once, at_least_once)
    assert gateway.stop() == 0, gateway.log
    assert "Traceback" not in gateway.log
    received = gateway.trail("received")
    assert len({record["target_message_id"] for record in received}) == len(received)


def check_delivered(subscriber: Subscriber, exactly_once: set[bytes], at_least_once: set[bytes]) -> None:
    """What was published at QoS 2 came once, the rest at least once, and each publisher's in order."""
    assert set(subscriber.payloads[2]) == exactly_once
    assert set(subscriber.payloads[2].values()) == {1}
    assert set(subscriber.payloads[1]) == at_least_once | {LAST}
    for payloads in subscriber.payloads.values():  # a Counter has its keys in the order of their first arrival
        for client, arrived in by_client([each for each in payloads if each != LAST]).items():
            assert arrived == sorted(arrived, key=lambda each: int(each.rpartition(b" ")[2])), client
