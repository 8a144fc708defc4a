"""A gateway that speaks every version of MQTT, and each client of others with each version and way that it has."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import pytest

from tests.end_to_end.clients.certificates import Certificates, make_certificates
from tests.end_to_end.clients.client import Client, Login, Way
from tests.end_to_end.clients.gmqtt_client import Gmqtt
from tests.end_to_end.clients.mqtt_js_client import MqttJs, Node, why_missing
from tests.end_to_end.clients.paho import Paho
from tests.end_to_end.clients.relay import Relay
from tests.end_to_end.gateway_process import Gateway

#: What each client speaks, and over what; mosquitto's clients have a module of their own.
VERSIONS: Final = {"paho": ("3.1", "3.1.1", "5"), "mqtt.js": ("3.1", "3.1.1", "5"), "gmqtt": ("3.1.1", "5")}
ALL_TRANSPORTS: Final = ("tcp", "tls", "websocket", "secure-websocket")
TRANSPORTS: Final = {"paho": ALL_TRANSPORTS, "mqtt.js": ALL_TRANSPORTS, "gmqtt": ("tcp", "tls")}
CONFIGURATION: Final = """
[mqtt]
versions = ["3.1", "3.1.1", "5"]

[[listener]]
name = "tls"
listen = "127.0.0.1:0"
tls = {{ certificate = "{certificate}", key = "{key}" }}

[[listener]]
name = "websocket"
listen = "127.0.0.1:0"
transport = "websocket"

[[listener]]
name = "secure-websocket"
listen = "127.0.0.1:0"
transport = "websocket"
tls = {{ certificate = "{certificate}", key = "{key}" }}
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """A client, the version that it speaks, and the listener that it comes to."""

    name: str
    version: str
    transport: str = "tcp"

    def __str__(self) -> str:
        return f"{self.name}-{self.version}-{self.transport}"

    @property
    def prefix(self) -> str:
        """Begins the topics and client identifiers of a test, which no other kind uses."""
        return str(self).replace(".", "_")


KINDS: Final = tuple(
    Kind(name, version, transport)
    for name, versions in VERSIONS.items()
    for version in versions
    for transport in TRANSPORTS[name]
)
_OVER_TCP: Final = [kind for kind in KINDS if kind.transport == "tcp"]
#: Over TCP alone; over everything that it can; over TCP and of level 5.
every_kind = pytest.mark.parametrize("kind", _OVER_TCP, ids=str)
every_kind_and_transport = pytest.mark.parametrize("kind", KINDS, ids=str)
every_kind_of_5 = pytest.mark.parametrize("kind", [kind for kind in _OVER_TCP if kind.version == "5"], ids=str)

NewClient = Callable[[Kind], Client]
#: Makes a client and connects it: kind, way, client identifier, and what else the Login has.
Connected = Callable[..., Client]


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def _gateway_of_every_version(
    certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("clients")
    configuration = folder / "rfhbridge.toml"
    configuration.write_text(CONFIGURATION.format(certificate=certificates.certificate, key=certificates.key))
    gateway = Gateway(folder / "data", "--config", str(configuration)).start()
    yield gateway
    gateway.clean_up()


@pytest.fixture
def gateway(_gateway_of_every_version: Gateway) -> Gateway:
    """One gateway for all these tests: they do not stop it, and each has its own topics and client identifiers."""
    assert _gateway_of_every_version.is_running, _gateway_of_every_version.log
    return _gateway_of_every_version


@pytest.fixture
def way(gateway: Gateway, certificates: Certificates, request: pytest.FixtureRequest) -> Way:
    """To the listener of the test's kind; plain TCP where it has none."""
    kind = getattr(request.node, "callspec", None) and request.node.callspec.params.get("kind")
    if kind is None or kind.transport == "tcp":
        return Way(port=gateway.port)
    return Way(
        port=gateway.wait_for_log("listener opened", name=f"^{kind.transport}$")["port"],
        is_websocket="websocket" in kind.transport,
        authority=None if kind.transport == "websocket" else certificates.authority,
    )


@pytest.fixture
def relay(way: Way) -> Iterator[Relay]:
    """Between the test's clients and the listener that they come to."""
    made = Relay(way.port)
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
