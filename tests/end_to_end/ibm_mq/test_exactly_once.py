"""The way out, while connections to the queue manager break and the gateway is killed: each message once, in order.

In full (RFHBRIDGE_PROOF=full): 100,000 QoS 2 publishes of 20 clients, with each binding.
"""

import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.end_to_end.ibm_mq.central import Central, by_client, numbered
from tests.end_to_end.ibm_mq.conftest import NewGateway, Way
from tests.end_to_end.ibm_mq.target_gateway import TargetGateway, wait_until
from tests.end_to_end.resending_clients import Publisher
from tests.processes.forked import rfhbridge

QUEUE = "APP.PROOF"
#: How soon the queue manager notices that a connection has gone, seconds: until then its queues stay open (2042).
LATE_S = 0.2
#: Many losses in a row are usual here: a channel does not wait 10 seconds behind the second, and 60 behind the third.
RETRY_S = [0.0, 2 * LATE_S]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much a proof does. `calls_a_loss`: connections break once in so many calls, on average."""

    clients: int
    messages_each: int
    calls_a_loss: int
    batch_messages: int
    kills: int
    patience_s: float

    @property
    def messages(self) -> int:
        return self.clients * self.messages_each


SCALES = {
    "short": Scale(clients=6, messages_each=250, calls_a_loss=100, batch_messages=20, kills=2, patience_s=600),
    "full": Scale(clients=20, messages_each=5_000, calls_a_loss=500, batch_messages=100, kills=10, patience_s=1_500),
}


class ExactPublisher(Publisher):
    """Publishes everything at QoS 2; behind the mark a payload says who sent it, and the how manieth it is."""

    def __init__(self, port: int, client: bytes, topic: bytes, count: int) -> None:
        super().__init__(port, client, topic, 0)
        self.payloads = list(numbered(client, count))
        self.waiting = [(2, b"|" + payload) for payload in reversed(self.payloads)]


def break_connections(central: Central, scale: Scale, *, seed: int, channels: int = 1) -> None:
    """From now on connections break, at calls that the seed chooses."""
    draw, at, calls_a_loss = random.Random(seed), 0, scale.calls_a_loss * channels
    for number in range(2 * scale.messages // calls_a_loss):
        at += draw.randrange(calls_a_loss * 6 // 10, calls_a_loss * 14 // 10)
        central.control.plant("*", 2009, "random", nth=at, seed=seed + number, late_s=LATE_S)


def kill_in_the_middle(gateway: TargetGateway, publishers: list[ExactPublisher], central: Central, kills: int) -> None:
    """Each kill when so much more has arrived at the target; the clients go on by themselves."""
    total = sum(len(each.payloads) for each in publishers)
    for kill in range(1, kills + 1):
        wait_until(
            lambda due=total * kill // (kills + 1): central.depth(QUEUE) >= due,
            f"kill {kill}: as much has arrived",
            limit_s=SCALES["full"].patience_s,
            found=lambda: f"{[each.error for each in publishers]}\n{gateway.log}",
        )
        gateway.kill_and_restart()


def publish_all(
    gateway: TargetGateway, central: Central, scale: Scale, *, topics: tuple[bytes, ...] = (b"proof/a",)
) -> list[ExactPublisher]:
    """Every client publishes, through losses and kills; returns when everything has arrived, or too much."""
    publishers = [
        ExactPublisher(gateway.port, b"client-%d" % number, topics[number % len(topics)], scale.messages_each)
        for number in range(scale.clients)
    ]
    for publisher in publishers:
        publisher.start()
    kill_in_the_middle(gateway, publishers, central, scale.kills)
    for publisher in publishers:
        publisher.join(scale.patience_s)
        assert publisher.is_done(), (publisher.error, gateway.log)
    wait_until(
        lambda: central.depth(QUEUE) >= scale.messages,
        "all have arrived",
        limit_s=scale.patience_s,
        found=lambda: gateway.log,
    )
    return publishers


def check_each_arrived_once(central: Central, publishers: list[ExactPublisher]) -> None:
    arrived = by_client(central.payloads(QUEUE))
    assert set(arrived) == {each.client for each in publishers}
    for publisher in publishers:
        assert arrived[publisher.client] == publisher.payloads


def check_trail(gateway: TargetGateway, central: Central, messages: int) -> None:
    """Every link of the trail holds, and it tells of each message once that it went there; the gateway has stopped."""
    done = gateway.command("audit", "verify", "--data", str(gateway.data))
    assert done.returncode == 0, done.stdout + done.stderr
    forwarded = gateway.trail("forwarded")
    assert len({record["target_message_id"] for record in forwarded}) == len(forwarded) == messages
    assert {record["queue_manager"] for record in forwarded} == {central.control.identifier}


def audit(data: Path, out: Path) -> None:
    """The audit by every control, on DuckDB."""
    done = rfhbridge("audit", "run", "--engine", "duckdb", "--data", data, "--out", out, timeout=None)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.proof
@pytest.mark.timeout(3_600)
def test_each_publish_of_qos_2_arrives_once_and_in_order_through_losses_and_kills(
    new_target_gateway: NewGateway, central: Central, way: Way, proof_scale: str, tmp_path: Path
) -> None:
    scale = SCALES[proof_scale]
    central.subscribe(QUEUE, "proof/*")
    gateway = new_target_gateway(way, batch_messages=scale.batch_messages, retry_s=RETRY_S).start()
    gateway.wait_for_running()
    break_connections(central, scale, seed=5)
    publishers = publish_all(gateway, central, scale)
    wait_until(lambda: gateway.waiting() == 0, "nothing waits any more", limit_s=scale.patience_s)
    losses = sum(central.control.clear_faults())
    assert losses >= scale.messages / scale.calls_a_loss
    assert gateway.stop() == 0, gateway.log
    check_each_arrived_once(central, publishers)
    check_trail(gateway, central, scale.messages)
    assert "Traceback" not in gateway.log
    audit(gateway.data, tmp_path / "audit")


@pytest.mark.proof
@pytest.mark.timeout(3_600)
def test_channels_in_parallel_deliver_each_message_once_and_each_clients_in_order(
    new_target_gateway: NewGateway, central: Central, proof_scale: str
) -> None:
    scale = SCALES[proof_scale]
    central.subscribe(QUEUE, "proof/*")
    gateway = new_target_gateway(
        Way(binding="ibmmq", header="mqrfh2"), shards=3, batch_messages=scale.batch_messages, retry_s=RETRY_S
    ).start()
    gateway.wait_for_running(shards=3)
    break_connections(central, scale, seed=7, channels=3)
    publishers = publish_all(gateway, central, scale)
    wait_until(lambda: gateway.waiting(shards=3) == 0, "nothing waits any more", limit_s=scale.patience_s)
    central.control.clear_faults()
    assert gateway.stop() == 0, gateway.log
    check_each_arrived_once(central, publishers)
    check_trail(gateway, central, scale.messages)
    channels = {record["channel"] for record in gateway.trail("forwarded")}
    assert channels == {f"CENTRAL.OUT.{shard}" for shard in range(3)}
