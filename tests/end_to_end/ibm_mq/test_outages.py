"""The queue manager is away: sensors publish and are acknowledged, and what they sent arrives when it is back."""

import threading
import time
from collections.abc import Callable

import pytest

from tests.end_to_end.ibm_mq.central import Central, by_client
from tests.end_to_end.ibm_mq.conftest import NewClient, NewGateway, Way
from tests.end_to_end.ibm_mq.target_gateway import wait_until
from tests.end_to_end.ibm_mq.test_exactly_once import ExactPublisher
from tests.end_to_end.resending_clients import Publisher

QUEUE = "PLANT.INPUT"
ROUTES = ({"topics": ["plant/#"], "queue": QUEUE}, {"topics": ["broker/#"]})
WAY = Way(binding="ibmmq", header="mqrfh2")
MESSAGES = {"short": 5_000, "full": 1_000_000}
PUBLISHERS = 5
PATIENCE_S = 1_500.0
#: Memory that a message costs the gateway while it waits, in bytes: its number and its place in the queue.
MEMORY_OF_A_MESSAGE = 48
#: Memory that the load itself takes, however many messages it is, in bytes: connections, caches of the store and of
#: headers, notes. It was 100 MiB behind the first 60,000 messages and behind 300,000.
MEMORY_OF_THE_LOAD = 128 * 1024 * 1024


class FastPublisher(Publisher):
    """QoS 1, with a wide window; a payload is `|client number`."""

    WINDOW = 500

    def __init__(self, port: int, client: bytes, topic: bytes, count: int) -> None:
        super().__init__(port, client, topic, 0)
        self.waiting = [(1, b"|%s %d" % (client, number)) for number in reversed(range(count))]


@pytest.mark.proof
@pytest.mark.timeout(3_600)
def test_everything_is_acknowledged_in_an_outage_and_arrives_after_it(
    new_target_gateway: NewGateway,
    central: Central,
    proof_scale: str,
    record_property: Callable[[str, object], None],
) -> None:
    count = MESSAGES[proof_scale]
    gateway = new_target_gateway(WAY, routes=ROUTES)
    with central.client() as administrator:
        assert administrator.mqsc(f"ALTER QLOCAL({QUEUE}) MAXDEPTH(999999999)").succeeded
    gateway.start()
    gateway.wait_for_running()
    before = gateway.resident_bytes()
    central.control.begin_outage()
    publishers = [
        FastPublisher(gateway.port, b"client-%d" % number, b"plant/a", count // PUBLISHERS)
        for number in range(PUBLISHERS)
    ]
    for publisher in publishers:
        publisher.start()
    gateway.wait_for_channel("WAITING")
    for publisher in publishers:
        publisher.join(PATIENCE_S)
        assert publisher.is_done(), publisher.error
    assert gateway.waiting() == count
    grown = gateway.resident_bytes() - before
    assert grown < MEMORY_OF_THE_LOAD + count * MEMORY_OF_A_MESSAGE

    central.control.end_outage()
    gateway.try_now()
    began = time.monotonic()
    wait_until(lambda: central.depth(QUEUE) >= count // 4, "a quarter has arrived", limit_s=PATIENCE_S)
    early = gateway.resident_bytes()
    wait_until(lambda: central.depth(QUEUE) >= count, "everything has arrived", limit_s=PATIENCE_S)
    rate = count / (time.monotonic() - began)
    late = gateway.resident_bytes()
    record_property("catch_up_messages_per_second", round(rate))
    record_property("grown_bytes", grown)
    print(f"caught up with {count:,} messages at {rate:,.0f} a second; memory grew by {grown / 2**20:.1f} MiB in")
    print(f"the outage; it was {early / 2**20:.1f} MiB after a quarter of the rest, {late / 2**20:.1f} MiB at the end")
    assert late - early < MEMORY_OF_THE_LOAD // 2
    assert gateway.stop() == 0, gateway.log
    with central.client() as application:
        arrived = by_client([message.body.rpartition(b"|")[2] for message in application.browse(QUEUE)])
    assert {client: len(payloads) for client, payloads in arrived.items()} == {
        publisher.client: count // PUBLISHERS for publisher in publishers
    }
    for client, payloads in arrived.items():
        assert payloads == [b"%s %d" % (client, number) for number in range(count // PUBLISHERS)]
    waits = [line for line in gateway.logged("channel_state_changed") if "waiting" in str(line)]
    assert len(waits) <= 6  # two a channel, however long it lasts: it broke, and is away


def test_a_gateway_starts_while_its_target_is_away(
    new_target_gateway: NewGateway, central: Central, new_client: NewClient, way: Way
) -> None:
    gateway = new_target_gateway(way, routes=ROUTES)
    central.control.begin_outage()
    gateway.start()
    sensor = new_client("early")
    sensor.connect(gateway.port)
    for qos in (1, 2):
        sensor.publish("plant/a", b"|%d" % qos, qos)
    status = gateway.wait_for_channel("WAITING")
    assert (status["REASON"], status["CURDEPTH"], status["INDOUBT"]) == ("2059", "2", "NO")
    central.control.end_outage()
    gateway.try_now()
    wait_until(lambda: central.payloads(QUEUE) == [b"1", b"2"], "both arrive")


def test_an_outage_in_the_middle_of_a_batch_loses_and_doubles_nothing(
    new_target_gateway: NewGateway, central: Central, way: Way
) -> None:
    """The queue manager is killed, and started again on its data."""
    gateway = new_target_gateway(way, routes=ROUTES)
    gateway.start()
    gateway.wait_for_running()
    central.control.plant("MQPUT", delay_s=30, nth=150)
    publisher = ExactPublisher(gateway.port, b"client", b"plant/a", 300)
    publisher.start()
    publisher.join(PATIENCE_S)
    assert publisher.is_done(), publisher.error
    wait_until(lambda: central.control.calls()["MQPUT"] >= 149, "a batch is under way")
    central.kill()
    gateway.wait_for_channel("WAITING")
    central.start()
    gateway.try_now()
    wait_until(lambda: central.depth(QUEUE) >= 300, "everything has arrived")
    wait_until(lambda: gateway.waiting() == 0, "nothing waits")
    assert central.payloads(QUEUE) == publisher.payloads


def test_past_the_limit_qos_1_and_2_are_held_back_and_qos_0_is_dropped(
    new_target_gateway: NewGateway, central: Central, new_client: NewClient
) -> None:
    """Topics of no route go on as ever."""
    gateway = new_target_gateway(WAY, routes=ROUTES, hold_bytes=20_000)
    gateway.start()
    gateway.wait_for_running()
    central.control.begin_outage()
    publisher = ExactPublisher(gateway.port, b"held", b"plant/a", 200)
    publisher.start()
    gateway.wait_for_log("target full")
    dropped = new_client("dropped")
    dropped.connect(gateway.port)
    for number in range(20):
        dropped.publish("plant/zero", b"|dropped %d" % number, 0)
    other = new_client("other")
    other.connect(gateway.port)
    other.subscribe("elsewhere/a", 2)
    for qos in (0, 1, 2):
        other.publish("elsewhere/a", b"%d" % qos, qos)
    assert [other.next_message()[1] for _ in range(3)] == [b"0", b"1", b"2"]
    assert not publisher.is_done()
    assert gateway.waiting() < 200
    gateway.wait_for_log("messages dropped or refused", reason="QoS 0", total="^20$")
    central.control.end_outage()
    gateway.try_now()
    publisher.join(PATIENCE_S)
    assert publisher.is_done(), publisher.error
    wait_until(lambda: central.depth(QUEUE) >= 200, "what was held back arrives")
    assert central.payloads(QUEUE) == publisher.payloads


@pytest.mark.parametrize(("configured", "answer"), [("refuse", "Unspecified error"), ("grant", "Granted QoS 1")])
def test_a_subscribe_in_an_outage_waits_and_is_then_answered_as_configured(
    new_target_gateway: NewGateway, central: Central, new_client: NewClient, configured: str, answer: str
) -> None:
    gateway = new_target_gateway(WAY, settings={"subscribe": {"answer_timeout_s": 2.0}}, subscribe_in_outage=configured)
    central.control.begin_outage()
    gateway.start()
    client = new_client("asks")
    client.connect(gateway.port)
    assert client.subscribe("late/a", 1) == f"subscribed {answer}"  # long before the outage ends
    central.control.end_outage()
    gateway.try_now()
    is_registered = threading.Event()

    def is_due() -> bool:
        topics = central.subscribed_topics()
        is_registered.set() if topics == ["late/a"] else is_registered.clear()
        return gateway.waiting() == 0 and is_registered.is_set() == (configured == "grant")

    wait_until(is_due, "it is registered, or deregistered again")
    if configured == "grant":
        client.publish("late/a", b"heard", 1)
        assert client.next_message()[1] == b"heard"
