"""A running gateway for each test, or one for those that leave it running, and raw sockets to it."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MosquittoClients
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.wire import WireClient

StartGateway = Callable[..., Gateway]
Connect = Callable[..., WireClient]
MosquittoPublish = Callable[..., None]

#: CONNACK of MQTT 3.1.1 for a client without a session.
ACCEPTED = "20 02 00 00"


@pytest.fixture
def new_gateway(tmp_path: Path) -> Iterator[StartGateway]:
    """Makes gateways that are not yet started; what still runs at the end of the test is killed."""
    made: list[Gateway] = []

    def make(*arguments: str, data: Path | None = None, **how: Any) -> Gateway:
        gateway = Gateway(data or tmp_path / "data", *arguments, **how)
        made.append(gateway)
        return gateway

    yield make
    for gateway in made:
        gateway.clean_up()


@pytest.fixture
def gateway(new_gateway: StartGateway) -> Gateway:
    """A gateway of the test's own, running."""
    return new_gateway().start()


@pytest.fixture(scope="session")
def _running_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("shared") / "data").start()
    yield gateway
    gateway.clean_up()


@pytest.fixture
def shared_gateway(_running_gateway: Gateway) -> Gateway:
    """A gateway that many tests use: they neither stop it nor use the topics and client identifiers of another."""
    assert _running_gateway.is_running, _running_gateway.log
    return _running_gateway


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Opens raw sockets to a gateway; they are dropped at the end of the test."""
    with ExitStack() as stack:

        def open_socket(gateway: Gateway, name: str = "the client") -> WireClient:
            return stack.enter_context(WireClient(gateway.port, name))

        yield open_socket


@pytest.fixture
def mosquitto_publish(mosquitto_clients: MosquittoClients) -> MosquittoPublish:
    """Runs mosquitto_pub to its end."""

    def run(gateway: Gateway, *arguments: str, text: str | None = None) -> None:
        command = [str(mosquitto_clients.publish), "-h", "127.0.0.1", "-p", str(gateway.port), *arguments]
        done = subprocess.run(command, input=text, capture_output=True, timeout=30, check=False, encoding="utf-8")
        assert done.returncode == 0, f"{command}: {done.stderr}\n{gateway.log}"

    return run


def connected(connect: Connect, gateway: Gateway, name: str) -> WireClient:
    """A client of MQTT 3.1.1 with a clean session and no keep-alive; its client identifier has four characters."""
    client = connect(gateway, name)
    client.send("connects", f"10 10 0004 'MQTT' 04 02 0000 0004 '{name}'")
    client.expect("is accepted", ACCEPTED)
    return client
