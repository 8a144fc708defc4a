"""A gateway that speaks every version of MQTT, and each client of others with each version and way that it has."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.end_to_end.clients.client import Client, Login, Way
from tests.end_to_end.clients.gmqtt_client import Gmqtt
from tests.end_to_end.clients.mqtt_js_client import MqttJs, Node, why_missing
from tests.end_to_end.clients.paho import Paho
from tests.end_to_end.clients.relay import Relay
from tests.end_to_end.gateway_process import Gateway

VERSIONS: Final = {"paho": ("3.1", "3.1.1", "5"), "mqtt.js": ("3.1", "3.1.1", "5"), "gmqtt": ("3.1.1", "5")}
CONFIGURATION: Final = """
[mqtt]
versions = ["3.1", "3.1.1", "5"]
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """A client and the version that it speaks."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name}-{self.version}"

    @property
    def prefix(self) -> str:
        """Begins the topics and client identifiers of a test, which no other kind uses."""
        return str(self).replace(".", "_")


KINDS: Final = tuple(Kind(name, version) for name, versions in VERSIONS.items() for version in versions)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)
every_kind_of_5 = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.version == "5"], ids=str)

NewClient = Callable[[Kind], Client]
#: Makes a client and connects it: kind, way, client identifier, and what else the Login has.
Connected = Callable[..., Client]


@pytest.fixture(scope="session")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("clients") / "rfhbridge.toml"
    file.write_text(CONFIGURATION)
    return file


@pytest.fixture(scope="session")
def _gateway_of_every_version(configuration: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("clients") / "data", "--config", str(configuration)).start()
    yield gateway
    gateway.clean_up()


@pytest.fixture
def gateway(_gateway_of_every_version: Gateway) -> Gateway:
    """One gateway for all these tests: they do not stop it, and each has its own topics and client identifiers."""
    assert _gateway_of_every_version.is_running, _gateway_of_every_version.log
    return _gateway_of_every_version


@pytest.fixture
def way(gateway: Gateway) -> Way:
    return Way(port=gateway.port)


@pytest.fixture
def relay(gateway: Gateway) -> Iterator[Relay]:
    made = Relay(gateway.port)
    yield made
    made.close()


@pytest.fixture(scope="session")
def _node() -> Iterator[Node]:
    node = Node()
    yield node
    node.close()


@pytest.fixture
def new_client(request: pytest.FixtureRequest) -> Iterator[NewClient]:
    """Makes clients that are closed at the end of the test."""
    with ExitStack() as stack:

        def make(kind: Kind) -> Client:
            client = _make(kind, request)
            stack.callback(client.close)
            return client

        yield make


def _make(kind: Kind, request: pytest.FixtureRequest) -> Client:
    if kind.name == "paho":
        return Paho()
    if kind.name == "gmqtt":
        return Gmqtt()
    if missing := why_missing():
        pytest.skip(missing)
    return MqttJs(request.getfixturevalue("_node"))


@pytest.fixture
def connected(new_client: NewClient) -> Connected:
    def connect(kind: Kind, way: Way, client_identifier: str, **more: object) -> Client:
        client = new_client(kind)
        client.connect(way, Login(client_identifier=client_identifier, version=kind.version, **more))
        return client

    return connect
