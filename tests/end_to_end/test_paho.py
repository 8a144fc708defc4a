"""paho-mqtt as it comes (its second API), at both protocol levels and every QoS."""

import queue
import socket
from collections.abc import Callable, Iterator

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from tests.end_to_end.gateway_process import Gateway

PATIENCE_S = 30.0
LEVELS = {"3.1": mqtt.MQTTv31, "3.1.1": mqtt.MQTTv311}


class PahoClient:
    """A paho client with its network thread, and what arrives on queues."""

    def __init__(self, name: str, *, level: str, clean_session: bool) -> None:
        self.received: queue.Queue[tuple[str, bytes, int, bool]] = queue.Queue()
        self._happened: queue.Queue[str] = queue.Queue()
        self.client = mqtt.Client(
            CallbackAPIVersion.VERSION2, client_id=name, clean_session=clean_session, protocol=LEVELS[level]
        )
        self.client.on_message = lambda _client, _data, message: self.received.put(
            (message.topic, bytes(message.payload), message.qos, message.retain)
        )
        self.client.on_connect = lambda _client, _data, flags, reason, _properties: self._happened.put(
            f"connected {reason} {flags.session_present}"
        )
        self.client.on_subscribe = lambda _client, _data, _number, reasons, _properties: self._happened.put(
            f"subscribed {' '.join(str(reason) for reason in reasons)}"
        )
        self.client.on_disconnect = lambda *_arguments: self._happened.put("disconnected")

    def connect(self, port: int) -> str:
        self.client.connect("127.0.0.1", port, keepalive=60)
        self.client.loop_start()
        return self._happened.get(timeout=PATIENCE_S)

    def subscribe(self, topic_filter: str, qos: int) -> str:
        self.client.subscribe(topic_filter, qos)
        return self._happened.get(timeout=PATIENCE_S)

    def publish(self, topic: str, payload: bytes, qos: int, retain: bool = False) -> None:
        self.client.publish(topic, payload, qos, retain).wait_for_publish(PATIENCE_S)

    def next_message(self) -> tuple[str, bytes, int, bool]:
        return self.received.get(timeout=PATIENCE_S)

    def wait_until_disconnected(self) -> None:
        assert self._happened.get(timeout=PATIENCE_S) == "disconnected"

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


NewClient = Callable[..., PahoClient]


@pytest.fixture
def new_client() -> Iterator[NewClient]:
    """Makes clients that are closed at the end of the test."""
    made: list[PahoClient] = []

    def make(name: str, *, level: str = "3.1.1", clean_session: bool = True) -> PahoClient:
        made.append(PahoClient(name, level=level, clean_session=clean_session))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_goes_out_and_comes_back(
    shared_gateway: Gateway, new_client: NewClient, level: str, qos: int
) -> None:
    client = new_client(f"paho-{level}-{qos}", level=level)
    assert client.connect(shared_gateway.port) == "connected Success False"
    assert client.subscribe(f"pa/{level}/{qos}", qos) == f"subscribed Granted QoS {qos}"
    for number in range(50):
        client.publish(f"pa/{level}/{qos}", b"%d" % number, qos)
    assert [client.next_message() for _ in range(50)] == [
        (f"pa/{level}/{qos}", b"%d" % number, qos, False) for number in range(50)
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_a_retained_message_and_a_will_are_seen(shared_gateway: Gateway, new_client: NewClient, level: str) -> None:
    doomed = new_client(f"paho-doomed-{level}", level=level)
    doomed.client.will_set(f"pw/{level}/will", b"gone", qos=2, retain=True)
    doomed.connect(shared_gateway.port)
    doomed.publish(f"pw/{level}/state", b"on", 1, retain=True)
    watcher = new_client(f"paho-watcher-{level}", level=level)
    watcher.connect(shared_gateway.port)
    watcher.subscribe(f"pw/{level}/#", 2)
    assert watcher.next_message() == (f"pw/{level}/state", b"on", 1, True)
    broken = doomed.client.socket()
    assert isinstance(broken, socket.socket)
    doomed.client.reconnect_delay_set(60, 60)
    broken.shutdown(socket.SHUT_RDWR)
    assert watcher.next_message() == (f"pw/{level}/will", b"gone", 2, False)
    late = new_client(f"paho-late-{level}", level=level)
    late.connect(shared_gateway.port)
    late.subscribe(f"pw/{level}/will", 1)
    assert late.next_message() == (f"pw/{level}/will", b"gone", 1, True)


@pytest.mark.parametrize("level", LEVELS)
def test_a_client_that_reconnects_by_itself_loses_nothing_over_a_restart(
    gateway: Gateway, new_client: NewClient, level: str
) -> None:
    """paho resends what was not acknowledged, and its persistent session is still there."""
    watcher, publisher = (
        new_client(name, level=level, clean_session=False) for name in ("paho-watcher", "paho-publisher")
    )
    for client in (watcher, publisher):
        client.client.reconnect_delay_set(1, 1)
        assert client.connect(gateway.port) == "connected Success False"
    watcher.subscribe("pr/#", 2)
    publisher.publish("pr/a", b"before", 2)
    gateway.kill()
    for client in (watcher, publisher):
        client.wait_until_disconnected()
    meanwhile = publisher.client.publish("pr/a", b"meanwhile", 2)
    assert meanwhile.rc == mqtt.MQTT_ERR_NO_CONN
    gateway.start()
    assert [watcher.next_message()[1:3] for _ in range(2)] == [(b"before", 2), (b"meanwhile", 2)]
    publisher.publish("pr/a", b"after", 2)
    assert watcher.next_message()[1:3] == (b"after", 2)
    assert watcher.received.empty()


def test_a_refused_subscription_is_told(shared_gateway: Gateway, new_client: NewClient) -> None:
    client = new_client("paho-refused")
    client.connect(shared_gateway.port)
    assert client.subscribe("x" * 10_241, 1) == "subscribed Unspecified error"


def test_a_client_without_an_identifier_is_welcome(shared_gateway: Gateway, new_client: NewClient) -> None:
    client = new_client("")
    assert client.connect(shared_gateway.port) == "connected Success False"
