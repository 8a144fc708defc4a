"""paho-mqtt as it comes (its second API), at both protocol levels and every QoS."""

import socket
from collections.abc import Callable, Iterator

import paho.mqtt.client as mqtt
import pytest

from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.paho_client import LEVELS, PahoClient

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
