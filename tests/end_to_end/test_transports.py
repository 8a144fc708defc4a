"""paho-mqtt and mosquitto's clients over TLS, WebSocket and both, against one gateway with a listener for each."""

import contextlib
import queue
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from tests.certificate_authority import Authority
from tests.conftest import MosquittoClients
from tests.end_to_end.gateway_process import Gateway

PATIENCE_S = 30.0
LEVELS = {"3.1": mqtt.MQTTv31, "3.1.1": mqtt.MQTTv311, "5": mqtt.MQTTv5}
LISTENERS = """
[mqtt]
versions = ["3.1", "3.1.1", "5"]
connect_timeout_s = 5.0

[[listener]]
name = "tls"
listen = "127.0.0.1:0"
tls.certificate = "{gateway}.pem"
tls.key = "{gateway}.key"
[[listener.tls.server_name]]
name = "mqtt.example.com"
certificate = "{named}.pem"
key = "{named}.key"

[[listener]]
name = "certified"
listen = "127.0.0.1:0"
anonymous = false
tls.certificate = "{gateway}.pem"
tls.key = "{gateway}.key"
tls.client_authority = "{authority}"
tls.client_certificate = "required"
tls.user_from_certificate = "common_name"

[[listener]]
name = "web"
listen = "127.0.0.1:0"
transport = "websocket"

[[listener]]
name = "secure-web"
listen = "127.0.0.1:0"
transport = "websocket"
path = "/"
tls.certificate = "{gateway}.pem"
tls.key = "{gateway}.key"

[[listener]]
name = "balanced"
listen = "127.0.0.1:0"
proxy_protocol = true
tls.certificate = "{gateway}.pem"
tls.key = "{gateway}.key"
"""


class House:
    """A gateway with its listeners, and the authority that its certificates are of."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        self.files = self.authority.issue("gateway")
        self.named = self.authority.issue("named", hosts=("mqtt.example.com",))
        self.pump = self.authority.issue("pump-7")
        config = folder / "rfhbridge.toml"
        text = LISTENERS.format(
            gateway=folder / "gateway", named=folder / "named", authority=self.authority.certificate
        )
        config.write_text(text, encoding="utf-8")
        self.gateway = Gateway(folder / "data", "--config", str(config))

    def port(self, name: str) -> int:
        port: int = self.gateway.wait_for_log("listener opened", name=f"^{name}$")["port"]
        return port


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One for all tests of this file, which close what they open."""
    house = House(tmp_path_factory.mktemp("transports"))
    house.gateway.start()
    yield house
    house.gateway.clean_up()


class Talker:
    """A client of paho that says its own words and hears them again."""

    def __init__(self, name: str, level: str, *, transport: str = "tcp", path: str = "/mqtt") -> None:
        self.happened: queue.Queue[Any] = queue.Queue()
        happened = self.happened
        self.client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=name,
            protocol=LEVELS[level],
            transport="websockets" if transport == "websocket" else "tcp",
        )
        if transport == "websocket":
            self.client.ws_set_options(path=path)
        self.client.on_connect = lambda _client, _data, _flags, reason, _properties: happened.put(str(reason))
        self.client.on_subscribe = lambda *_arguments: happened.put("subscribed")
        self.client.on_message = lambda _client, _data, message: happened.put((message.topic, bytes(message.payload)))

    def secure(
        self, house: House, version: ssl.TLSVersion | None = None, pair: tuple[Path, Path] | None = None
    ) -> None:
        context = ssl.create_default_context(cafile=str(house.authority.certificate))
        if version is not None:
            context.minimum_version = context.maximum_version = version
        if pair is not None:
            context.load_cert_chain(*pair)
        self.client.tls_set_context(context)

    def hears_itself(self, port: int, payload: bytes = b"21.5") -> None:
        topic = f"transports/{port}"
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        try:
            assert self.happened.get(timeout=PATIENCE_S) == "Success"
            self.client.subscribe(topic, 2)
            assert self.happened.get(timeout=PATIENCE_S) == "subscribed"
            for qos in (0, 1, 2):
                self.client.publish(topic, payload, qos)
                assert self.happened.get(timeout=PATIENCE_S) == (topic, payload)
        finally:
            self.client.disconnect()
            self.client.loop_stop()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_paho_over_tls(house: House, level: str, version: ssl.TLSVersion) -> None:
    """MQTT-4.2.0-1."""
    talker = Talker(f"tls-{level}-{version.name}", level)
    talker.secure(house, version)
    talker.hears_itself(house.port("tls"))


@pytest.mark.parametrize("level", LEVELS)
def test_paho_over_websockets(house: House, level: str) -> None:
    Talker(f"web-{level}", level, transport="websocket").hears_itself(house.port("web"))


@pytest.mark.parametrize("level", LEVELS)
def test_paho_over_secure_websockets_at_the_root(house: House, level: str) -> None:
    talker = Talker(f"secure-web-{level}", level, transport="websocket", path="/")
    talker.secure(house)
    talker.hears_itself(house.port("secure-web"))


@pytest.mark.parametrize("name", ["tls", "web"])
def test_a_payload_of_three_mebibytes_comes_and_goes(house: House, name: str) -> None:
    talker = Talker(f"large-{name}", "3.1.1", transport="websocket" if name == "web" else "tcp")
    if name == "tls":
        talker.secure(house)
    talker.hears_itself(house.port(name), bytes(range(256)) * 12_288)


def test_the_user_of_a_clients_certificate_is_let_in_where_nobody_is_anonymous(house: House) -> None:
    talker = Talker("certified", "3.1.1")
    talker.secure(house, pair=house.pump)
    talker.hears_itself(house.port("certified"))


def test_a_client_without_a_certificate_is_not_let_in_where_one_is_required(house: House) -> None:
    context = ssl.create_default_context(cafile=str(house.authority.certificate))
    with (
        socket.create_connection(("127.0.0.1", house.port("certified")), PATIENCE_S) as plain,
        contextlib.suppress(ssl.SSLError, ConnectionError),
        context.wrap_socket(plain, server_hostname="localhost") as tls,
    ):
        assert tls.recv(1) == b""  # with TLS 1.3 it learns of it here
    house.gateway.wait_for_log("connection refused", listener="certified", reason="did not return a certificate")


def test_the_certificate_is_that_of_the_host_that_is_asked_for(house: House) -> None:
    context = ssl.create_default_context(cafile=str(house.authority.certificate))
    for host in ("localhost", "mqtt.example.com"):
        with (
            socket.create_connection(("127.0.0.1", house.port("tls")), PATIENCE_S) as plain,
            context.wrap_socket(plain, server_hostname=host) as tls,
        ):
            certificate = tls.getpeercert()
            assert certificate is not None
            assert ("DNS", host) in certificate["subjectAltName"]


def test_a_client_behind_a_balancer_is_logged_with_its_own_address(house: House) -> None:
    context = ssl.create_default_context(cafile=str(house.authority.certificate))
    with socket.create_connection(("127.0.0.1", house.port("balanced")), PATIENCE_S) as plain:
        plain.sendall(bytes.fromhex("0D0A0D0A000D0A515549540A 21 11 000C C0000207 C6336402 DC04 22B3"))
        with context.wrap_socket(plain, server_hostname="localhost") as tls:
            tls.sendall(bytes.fromhex("10 0E 0004 4D515454 04 02 003C 0002 6238") + b"\x00\x00")
            received = tls.recv(4)
            assert received == bytes.fromhex("20 02 00 00")
            while tls.recv(100):
                pass
    house.gateway.wait_for_log("connection closed", peer=r"^192\.0\.2\.7:56324$")


@pytest.mark.parametrize("name", ["tls", "certified", "secure-web", "balanced"])
def test_hostile_bytes_end_their_own_connection_and_leave_the_others_alone(house: House, name: str) -> None:
    port = house.port(name)
    beginnings = bytes.fromhex("10 0E 0004 4D515454 04 02 003C 0002 6331"), bytes(1_000), b"\x16\x03\x01\x02\x00"
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S)) for _ in beginnings]
        for hostile, beginning in zip(opened, beginnings, strict=True):
            hostile.sendall(beginning)
        for hostile in opened:
            _read_to_the_end(hostile)
    talker = Talker(f"unharmed-by-{name}", "3.1.1")
    talker.secure(house)
    talker.hears_itself(house.port("tls"))
    assert "Traceback" not in house.gateway.log


def _read_to_the_end(connection: socket.socket) -> None:
    try:
        while connection.recv(1_000):
            pass
    except ConnectionResetError:
        return


# -- mosquitto's clients -----------------------------------------------------------------------------------------------

Watch = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def subscribe(mosquitto_clients: MosquittoClients) -> Iterator[Watch]:
    """Starts mosquitto_sub, which says line by line on its output what happens."""
    unbuffered = shutil.which("stdbuf")
    if unbuffered is None:
        pytest.skip("stdbuf (coreutils) is not installed: mosquitto_sub would not say when it is subscribed")
    started = []

    def run(*arguments: str) -> "subprocess.Popen[str]":
        command = [unbuffered, "-oL", str(mosquitto_clients.subscribe), "-h", "localhost", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


@pytest.mark.parametrize("version", ["mqttv31", "mqttv311", "mqttv5"])
@pytest.mark.parametrize("name", ["tls", "certified"])
def test_mosquittos_clients_over_tls(
    house: House, mosquitto_clients: MosquittoClients, subscribe: Watch, name: str, version: str
) -> None:
    more = ["-p", str(house.port(name)), "-V", version, "--cafile", str(house.authority.certificate)]
    if name == "certified":
        more += ["--cert", str(house.pump[0]), "--key", str(house.pump[1])]
    topic = f"mosquitto/{name}/{version}"
    watching = subscribe(*more, "-t", topic, "-q", "1", "-C", "1", "-d")
    assert watching.stdout is not None
    seen = []
    for line in watching.stdout:
        seen.append(line)
        if "SUBACK" in line:
            break
    assert "SUBACK" in seen[-1], seen
    command = [str(mosquitto_clients.publish), "-h", "localhost", *more, "-t", topic, "-q", "1", "-m", "over TLS"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    output, _ = watching.communicate(timeout=PATIENCE_S)
    assert "over TLS" in output.splitlines()


# -- the files, while it runs ------------------------------------------------------------------------------------------


def test_a_renewed_certificate_is_used_at_sighup_and_a_broken_one_is_not(
    tmp_path: Path,
) -> None:
    house = House(tmp_path)
    house.gateway.start()
    try:
        house.authority.issue("gateway", hosts=("localhost", "renewed.example.com"))
        house.gateway.signal(signal.SIGHUP)
        house.gateway.wait_for_log("file read again", count=4, file=r"gateway\.pem$")
        assert "renewed.example.com" in _hosts(house)
        house.files[1].write_text("no key")
        house.gateway.signal(signal.SIGHUP)
        house.gateway.wait_for_log("file refused", file=r"gateway\.key$", reason="holds no private key in PEM")
        assert "renewed.example.com" in _hosts(house)
        assert house.gateway.stop() == 0
    finally:
        house.gateway.clean_up()


def _hosts(house: House) -> list[str]:
    context = ssl.create_default_context(cafile=str(house.authority.certificate))
    with (
        socket.create_connection(("127.0.0.1", house.port("tls")), PATIENCE_S) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as tls,
    ):
        certificate = tls.getpeercert()
        assert certificate is not None
        return [value for _, value in certificate["subjectAltName"]]


def test_every_listener_that_opens_is_logged(house: House) -> None:
    opened = [(line["name"], line["transport"]) for line in house.gateway.logged("listener opened")]
    assert opened == [
        ("default", "tcp"),
        ("tls", "tls"),
        ("certified", "tls"),
        ("web", "websocket"),
        ("secure-web", "secure websocket"),
        ("balanced", "tls"),
    ]
