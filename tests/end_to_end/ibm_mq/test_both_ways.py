"""Sensors, a gateway and the broker of a queue manager in the data centre: each command takes effect there, and back.

One gateway and one queue manager for the whole module: each test has topics, queues and clients of its own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from mq_adapters.message import MQPER_NOT_PERSISTENT, MQPER_PERSISTENT
from tests.end_to_end.ibm_mq.central import MQRFH, MQRFH2, Central
from tests.end_to_end.ibm_mq.conftest import WAYS, NewClient, Way
from tests.end_to_end.ibm_mq.target_gateway import IN_REPLY, OUT, TargetGateway, wait_until
from tests.end_to_end.wire import WireClient

#: A queue there that is no stream of the broker: what is put on it stays.
PLAIN_QUEUE = "PLANT.INPUT"
#: Another one, which the tests of dead letters make small.
SMALL_QUEUE = "PLANT.SMALL"
#: MQDLH (IBM MQ, "MQDLH - Dead-letter header"): where the reason, the queue and the message behind it begin.
REASON, QUEUE, BEHIND_MQDLH = slice(8, 12), slice(12, 60), 172
MQRC_MSG_TOO_BIG_FOR_Q = 2030


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A gateway and its target, both running."""

    gateway: TargetGateway
    central: Central
    header: bytes

    def arrived(self, queue_name: str, *payloads: bytes) -> list[int]:
        """Waits until a queue there has these payloads, in this order; returns their persistence."""
        wait_until(
            lambda: len(self.central.payloads(queue_name)) >= len(payloads), f"{len(payloads)} are on {queue_name}"
        )
        assert self.central.payloads(queue_name) == list(payloads)
        return [message.descriptor.persistence for message in self.central.messages(queue_name)]

    def subscriptions(self, topic: str) -> list[str]:
        """The topics of subscriptions of MQTT sessions there, those that have this text in them."""
        return [each for each in self.central.subscribed_topics() if topic in each]


@pytest.fixture(scope="module", params=WAYS, ids=lambda way: f"{way.binding}-{way.header}")
def plant(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    way: Way = request.param
    folder = tmp_path_factory.mktemp("both_ways")
    with Central(folder / "central") as central:
        gateway = TargetGateway(
            folder / "gateway",
            central.environment(way.binding),
            target=way.target(),
            routes=(
                {"topics": ["plain/#"], "queue": PLAIN_QUEUE},
                {"topics": ["small/#"], "queue": SMALL_QUEUE},
                {"topics": ["#"]},
            ),
        )
        central.set_up(gateway.set_up_mqsc())
        gateway.start()
        gateway.wait_for_running()
        yield Plant(gateway=gateway, central=central, header=MQRFH2 if way.header == "mqrfh2" else MQRFH)
        gateway.clean_up()


# -- out ---------------------------------------------------------------------------------------------------------------


def test_publishes_of_every_qos_arrive_on_the_queue_of_their_route(plant: Plant, new_client: NewClient) -> None:
    sensor = new_client("sensor-1")
    sensor.connect(plant.gateway.port)
    for qos in (0, 1, 2):
        sensor.publish("plain/boiler", b"|%d" % qos, qos)
    persistence = plant.arrived(PLAIN_QUEUE, b"0", b"1", b"2")
    assert persistence == [MQPER_NOT_PERSISTENT, MQPER_PERSISTENT, MQPER_PERSISTENT]
    messages = plant.central.messages(PLAIN_QUEUE)
    assert {message.descriptor.format for message in messages} == {plant.header}
    assert {message.msg_id[:4] for message in messages} == {b"RFHB"}
    assert len({message.msg_id for message in messages}) == len(messages)
    for qos, message in enumerate(messages):
        assert b"plain/boiler" in message.body
        carried = rb"<rfhbQos dt='i4'>%d<" if plant.header == MQRFH2 else rb"rfhbQos %d "
        assert re.search(carried % qos, message.body), message.body


def test_an_application_that_has_subscribed_there_gets_what_sensors_publish(
    plant: Plant, new_client: NewClient
) -> None:
    plant.central.subscribe("APP.BOILERS", "boilers/*")
    sensor = new_client("sensor-2")
    sensor.connect(plant.gateway.port)
    for qos in (0, 1, 2):
        sensor.publish(f"boilers/{qos}", b"|%d" % qos, qos)
    assert plant.arrived("APP.BOILERS", b"0", b"1", b"2") == [0, 1, 1]


def test_a_retained_publication_is_kept_there_and_deleted_by_an_empty_one(plant: Plant, new_client: NewClient) -> None:
    sensor = new_client("sensor-3")
    sensor.connect(plant.gateway.port)
    plant.central.subscribe("APP.STATES.ALL", "states/*")
    sensor.publish("states/valve", b"|open", 1, retain=True)
    plant.arrived("APP.STATES.ALL", b"open")
    late = new_client("late-3")
    late.connect(plant.gateway.port)
    late.subscribe("states/#", 1)
    assert late.next_message() == ("states/valve", b"|open", 1, True)
    sensor.publish("states/valve", b"", 1, retain=True)
    assert late.next_message() == ("states/valve", b"", 1, False)
    later = new_client("later-3")
    later.connect(plant.gateway.port)
    later.subscribe("states/#", 1)
    sensor.publish("states/valve", b"|shut", 1)
    assert later.next_message() == ("states/valve", b"|shut", 1, False)


def test_the_will_of_a_sensor_that_vanishes_arrives(plant: Plant) -> None:
    plant.central.subscribe("APP.WILLS", "wills/*")
    with WireClient(plant.gateway.port, "the doomed") as doomed:
        doomed.send("connects with a will", "10 23 0004 'MQTT' 04 0E 003C 0006 'doomed' 0006 'wills/' 0007 '|went!!'")
        doomed.expect("is accepted", "20 02 00 00")
    plant.arrived("APP.WILLS", b"went!!")


# -- in ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("published", "subscribed", "delivered"), [(0, 2, 0), (1, 0, 0), (1, 2, 1), (2, 1, 1), (2, 2, 2)]
)
def test_what_a_sensor_publishes_comes_back_at_the_lower_of_both_qualities(
    plant: Plant, new_client: NewClient, published: int, subscribed: int, delivered: int
) -> None:
    topic = f"echo/{published}/{subscribed}"
    client = new_client(f"echo-{published}-{subscribed}")
    client.connect(plant.gateway.port)
    assert client.subscribe(topic, subscribed) == f"subscribed Granted QoS {subscribed}"
    client.publish(topic, b"payload", published)
    assert client.next_message() == (topic, b"payload", delivered, False)


@pytest.mark.parametrize("format", [MQRFH, MQRFH2])
def test_an_application_publishes_in_either_format_to_an_mqtt_client(
    plant: Plant, new_client: NewClient, format: bytes
) -> None:
    topic = f"orders/{format.decode().strip()}"
    client = new_client(f"hears-{format.decode().strip()}")
    client.connect(plant.gateway.port)
    client.subscribe(topic, 2)
    plant.central.publish(b"persistent", topic=topic, format=format)
    assert client.next_message() == (topic, b"persistent", 1, False)
    plant.central.publish(b"not persistent", topic=topic, format=format, persistent=False)
    assert client.next_message() == (topic, b"not persistent", 0, False)


def test_a_session_that_is_away_finds_what_was_published_meanwhile(plant: Plant, new_client: NewClient) -> None:
    away = new_client("away-1", clean_session=False)
    away.connect(plant.gateway.port)
    away.subscribe("away/#", 1)
    away.close()
    plant.central.publish(b"one", b"two", topic="away/a")
    back = new_client("away-1", clean_session=False)
    assert back.connect(plant.gateway.port) == "connected Success True"
    assert [back.next_message()[1] for _ in range(2)] == [b"one", b"two"]


def test_unsubscribe_and_the_end_of_a_session_deregister_there(plant: Plant, new_client: NewClient) -> None:
    client = new_client("leaves-1")
    client.connect(plant.gateway.port)
    for topic in ("leaving/a", "leaving/b"):
        client.subscribe(topic, 1)
    assert sorted(plant.subscriptions("leaving/")) == ["leaving/a", "leaving/b"]
    client.unsubscribe("leaving/a")
    wait_until(lambda: plant.subscriptions("leaving/") == ["leaving/b"], "one of two is deregistered")
    client.close()
    wait_until(lambda: not plant.subscriptions("leaving/"), "a clean session leaves nothing behind")


# -- refused -----------------------------------------------------------------------------------------------------------


def test_what_the_broker_there_refuses_becomes_a_dead_letter_here_with_its_reason(
    plant: Plant, new_client: NewClient
) -> None:
    """The PUBLISH is acknowledged long before the broker judges it: its negative notification tells."""
    with plant.central.client() as administrator:
        answer = administrator.mqsc("DEFINE TOPIC(CLOSED) TOPICSTR('closed') PUB(DISABLED)")
        assert answer.succeeded, answer.lines
    sensor = new_client("refused-1")
    sensor.connect(plant.gateway.port)
    sensor.publish("closed/door", b"|refused", 1)
    wait_until(lambda: _dead_letter(plant, b"|refused") != b"", "the refused publication is a dead letter")
    letter = _dead_letter(plant, b"|refused")
    assert letter[:4] == b"DLH "
    assert int.from_bytes(letter[REASON], "little") in (2035, 3081)
    assert letter[QUEUE].rstrip() == b"SYSTEM.BROKER.DEFAULT.STREAM"
    assert b"closed/door" in letter[BEHIND_MQDLH:]
    assert b"refused-1" in letter[BEHIND_MQDLH:]
    assert plant.gateway.channel(IN_REPLY)["STATUS"] == "RUNNING"


def resize(plant: Plant, maximum_message_bytes: int) -> None:
    """The administrator there changes how long a message of the small queue may be."""
    with plant.central.client() as administrator:
        assert administrator.mqsc(f"ALTER QLOCAL({SMALL_QUEUE}) MAXMSGL({maximum_message_bytes})").succeeded


def test_a_message_that_is_refused_for_good_holds_up_none_of_the_others(plant: Plant, new_client: NewClient) -> None:
    """In the middle of a batch: the channel is stopped until they all wait."""
    sensor = new_client("poison-1")
    sensor.connect(plant.gateway.port)
    resize(plant, 2_000)
    plant.gateway.mqsc(f"STOP CHANNEL({OUT})")
    plant.gateway.wait_for_channel("STOPPED")
    before = plant.gateway.waiting()
    for payload in (b"|a", b"|b", b"|" + b"!" * 3_000, b"|c", b"|d"):
        sensor.publish("small/poison", payload, 1)
    assert plant.gateway.waiting() == before + 5
    plant.gateway.mqsc(f"START CHANNEL({OUT})")
    plant.arrived(SMALL_QUEUE, b"a", b"b", b"c", b"d")
    wait_until(lambda: _dead_letter(plant, b"!" * 3_000) != b"", "it is a dead letter: here is committed after there")
    letter = _dead_letter(plant, b"!" * 3_000)
    assert int.from_bytes(letter[REASON], "little") == MQRC_MSG_TOO_BIG_FOR_Q
    assert letter[QUEUE].rstrip() == SMALL_QUEUE.encode()


def test_a_publish_that_is_longer_than_the_queue_there_takes_is_not_let_in(plant: Plant) -> None:
    """When a channel connects it finds out how long a message may be."""
    resize(plant, 2_000)
    plant.gateway.try_now(OUT)
    plant.gateway.wait_for_channel("RUNNING")
    with WireClient(plant.gateway.port, "the one with a long message") as client:
        client.send("connects", "10 10 0004 'MQTT' 04 02 003C 0004 'long'")
        client.expect("is accepted", "20 02 00 00")
        client.send("publishes 3,000 bytes", "32 C3 17 0007 'small/a' 0001", b"!" * 3_000)
        client.expect_end("is let go without a PUBACK")


def test_dead_letters_go_back_when_the_operator_says_so(plant: Plant, new_client: NewClient) -> None:
    """One that the queue was too small for, and one that the broker refused; both may pass now."""
    resize(plant, 4_194_304)
    plant.gateway.try_now(OUT)
    plant.gateway.wait_for_channel("RUNNING")
    with plant.central.client() as administrator:
        assert administrator.mqsc("DEFINE TOPIC(SHUT) TOPICSTR('shut') PUB(DISABLED)").succeeded
        administrator.clear(SMALL_QUEUE)
    resize(plant, 2_000)
    plant.central.subscribe("APP.SHUT", "shut/*")
    sensor = new_client("redrive-1")
    sensor.connect(plant.gateway.port)
    too_long = b"|" + b"?" * 3_000
    sensor.publish("small/redrive", too_long, 1)
    sensor.publish("shut/door", b"|refused there", 2)
    wait_until(
        lambda: all(_dead_letter(plant, each) for each in (too_long, b"|refused there")), "both are dead letters"
    )
    resize(plant, 4_194_304)
    with plant.central.client() as administrator:
        assert administrator.mqsc("DELETE TOPIC(SHUT)").succeeded
    redrive = ("queue", "redrive", "--client", "redrive-1", "--data", str(plant.gateway.data))
    done = plant.gateway.command(*redrive, "--dry-run")
    assert "would go back: 2, cannot go back: 0" in done.stdout, done.stdout + done.stderr
    done = plant.gateway.command(*redrive)
    assert "put back: 2, cannot go back: 0" in done.stdout, done.stdout + done.stderr
    plant.arrived(SMALL_QUEUE, too_long[1:])
    plant.arrived("APP.SHUT", b"refused there")
    assert not any(_dead_letter(plant, each) for each in (too_long, b"|refused there"))


def _dead_letter(plant: Plant, ending: bytes) -> bytes:
    """The dead letter whose message ends so; nothing where there is none."""
    return next((body for body in plant.gateway.dead_letters() if body.endswith(ending)), b"")


def test_a_gateway_with_a_target_leaves_no_error_in_its_log(plant: Plant) -> None:
    """The last test of the module: nothing of the above was a surprise."""
    assert "Traceback" not in plant.gateway.log
    assert plant.gateway.logged("channel process ended") == []
