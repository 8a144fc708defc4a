"""Two gateways and no software of IBM: each message once from one to the other, through kill -9 of either.

In full (RFHBRIDGE_PROOF=full): 20,000 publishes of QoS 2 from the spoke, and 10,000 publications of the hub.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.hub_and_spoke.hub import Hub, Spoke
from tests.end_to_end.ibm_mq.central import by_client, numbered
from tests.end_to_end.ibm_mq.target_gateway import wait_until
from tests.end_to_end.ibm_mq.test_exactly_once import ExactPublisher, audit
from tests.end_to_end.resending_clients import Subscriber

QUEUE, TOPIC, LAST = "APP.PROOF", "back/a", b"the last one"
RETRY_S = [0.0, 0.4]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much a proof does. Each of `kills` is of the hub and of the spoke, in turns."""

    clients: int
    messages_each: int
    kills: int
    patience_s: float

    @property
    def messages(self) -> int:
        return self.clients * self.messages_each


SCALES = {
    "short": Scale(clients=3, messages_each=60, kills=2, patience_s=600),
    "full": Scale(clients=20, messages_each=1_000, kills=20, patience_s=1_500),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The two gateways, both running and connected."""

    hub: Hub
    spoke: Spoke

    def kill(self, number: int) -> None:
        """Kills one of them, each in its turn, and starts it again."""
        gateway: Gateway = self.hub if number % 2 else self.spoke
        gateway.kill_and_restart()

    def check(self, folder: Path, *, with_audit: bool = True) -> None:
        """Stops both; both trails hold, and both audits by every control are clean."""
        for name, gateway in (("spoke", self.spoke), ("hub", self.hub)):
            assert gateway.stop() == 0, gateway.log
            assert "Traceback" not in gateway.log
            done = self.spoke.command("audit", "verify", "--data", str(gateway.data))
            assert done.returncode == 0, done.stdout + done.stderr
            if with_audit:
                audit(gateway.data, folder / name)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    hub = Hub(tmp_path / "hub")
    spoke = Spoke(tmp_path / "spoke", hub, batch_messages=20, retry_s=RETRY_S)
    try:
        hub.start()
        hub.set_up(spoke.set_up_mqsc())
        checked = spoke.command("check", "--config", str(spoke.config), "--connect")
        assert checked.returncode == 0, (checked.stdout, checked.stderr)
        spoke.start()
        spoke.wait_for_running()
        yield Pair(hub=hub, spoke=spoke)
    finally:
        spoke.clean_up()
        hub.clean_up()


@pytest.mark.proof
@pytest.mark.timeout(3_600)
def test_each_publish_of_qos_2_reaches_the_hub_once_and_in_order_through_kills_of_both(
    pair: Pair, proof_scale: str, tmp_path: Path
) -> None:
    scale, hub, spoke = SCALES[proof_scale], pair.hub, pair.spoke
    hub.subscribe(QUEUE, "proof/*")
    publishers = [
        ExactPublisher(spoke.port, b"client-%d" % number, b"proof/a", scale.messages_each)
        for number in range(scale.clients)
    ]
    for publisher in publishers:
        publisher.start()
    for kill in range(scale.kills):
        due = scale.messages * (kill + 1) // (scale.kills + 1)
        wait_until(
            lambda due=due: hub.depth(QUEUE) >= due,
            f"kill {kill}: as much has arrived",
            limit_s=scale.patience_s,
            found=lambda: f"{[each.error for each in publishers]}\n{spoke.log}\n{hub.log}",
        )
        pair.kill(kill)
    for publisher in publishers:
        publisher.join(scale.patience_s)
        assert publisher.is_done(), (publisher.error, spoke.log)
    wait_until(
        lambda: hub.depth(QUEUE) >= scale.messages and spoke.waiting() == 0,
        "all have arrived",
        limit_s=scale.patience_s,
        found=lambda: spoke.log,
    )
    arrived = by_client(hub.payloads(QUEUE))
    assert {each.client: each.payloads for each in publishers} == arrived
    assert "context not granted" not in spoke.log
    pair.check(tmp_path)
    forwarded = spoke.trail("forwarded")
    assert len({record["target_message_id"] for record in forwarded}) == len(forwarded) == scale.messages


@pytest.mark.proof
@pytest.mark.timeout(3_600)
def test_each_publication_of_the_hub_reaches_a_session_of_the_spoke_through_kills_of_both(
    pair: Pair, proof_scale: str, tmp_path: Path
) -> None:
    scale, hub, spoke = SCALES[proof_scale], pair.hub, pair.spoke
    subscriber = Subscriber(spoke.port, b"hears", TOPIC.encode())
    subscriber.end_with(LAST)
    subscriber.start()
    assert subscriber.subscribed.wait(scale.patience_s), (subscriber.error, spoke.log)
    payloads = list(numbered(b"application", scale.messages // 2))
    share = len(payloads) // (scale.kills + 1) + 1
    for number, start in enumerate(range(0, len(payloads), share)):
        part = payloads[start : start + share]
        hub.publish(*part, topic=TOPIC)
        due = start + len(part) // 2
        wait_until(
            lambda due=due: len(subscriber.payloads[1]) >= due,
            f"half of part {number} is delivered",
            limit_s=scale.patience_s,
            found=lambda: f"{subscriber.error}\n{spoke.log}\n{hub.log}",
        )
        if number < scale.kills:
            pair.kill(number)
    wait_until(
        lambda: set(payloads) <= set(subscriber.payloads[1]),
        "all are delivered",
        limit_s=scale.patience_s,
        found=lambda: f"{subscriber.error}\n{spoke.log}",
    )
    hub.publish(LAST, topic=TOPIC)
    subscriber.join(scale.patience_s)
    assert subscriber.is_done(), subscriber.error
    assert list(subscriber.payloads[1]) == [*payloads, LAST], "QoS 1: each at least once, the first ones in order"
    pair.check(tmp_path, with_audit=proof_scale == "full")
    received = spoke.trail("received")
    assert len({record["target_message_id"] for record in received}) == len(received)
    assert len(received) >= len(payloads) + 1
