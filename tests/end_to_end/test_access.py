"""Who gets in and what follows, on a running gateway: tokens, certificates, listeners' own rules, and the log."""

import json
import queue
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from tests.certificate_authority import Authority
from tests.conftest import MosquittoClients
from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.gateway.access.jwt_vectors import ec_key, pem, rsa_key
from tests.processes.forked import rfhbridge
from tests.trail_lines import trail_text

PATIENCE_S = 30.0
#: The reference implementation of Argon2 gives this for "password" with the salt "somesalt".
ANNA = "anna:$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4\n"
VERSIONS = 'versions = ["3.1", "3.1.1", "5"]'
RULES = """
[[rule]]
publish = "own/%u/#"
subscribe = "own/%u/#"
"""


def token(user: str = "ann", *, lives_s: float = 3_600, key: Any = None, **claims: object) -> str:
    """A token that ec_key signs, or another key."""
    said = {"sub": user, "exp": int(time.time() + lives_s), **claims}
    return jwt.encode(said, key or ec_key(), "ES256" if key is None else "RS256")


@pytest.fixture
def start(new_gateway: StartGateway, tmp_path: Path) -> Callable[..., Gateway]:
    """Starts a gateway with a configuration, every version of MQTT, and its log at level debug."""

    def made(*lines: str) -> Gateway:
        config = tmp_path / "rfhbridge.toml"
        config.write_text("\n".join(["[mqtt]", VERSIONS, *lines]), encoding="utf-8")
        return new_gateway("--config", str(config), "--log-level", "debug").start()

    return made


@pytest.fixture
def with_tokens(start: Callable[..., Gateway], tmp_path: Path) -> Gateway:
    keys, users, rules = tmp_path / "keys.pem", tmp_path / "users", tmp_path / "access.toml"
    keys.write_text(pem(ec_key()), encoding="utf-8")
    users.write_text(ANNA, encoding="utf-8")
    users.chmod(0o600)
    rules.write_text(RULES, encoding="utf-8")
    files = [f'password_file = "{users}"', f'access_file = "{rules}"']
    return start("[access]", *files, "[access.token]", f'key_files = ["{keys}"]')


class Paho:
    """A paho client, and what happened to it."""

    def __init__(self, name: str, level: int, user: str | None, password: str | None, *, is_clean: bool = True) -> None:
        self.happened: queue.Queue[str] = queue.Queue()
        happened = self.happened  # the callbacks hold the queue alone: the client then goes, with its sockets, at once
        options: dict[str, Any] = {} if level == mqtt.MQTTv5 else {"clean_session": is_clean}
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=name, protocol=level, **options)
        self.client.reconnect_delay_set(min_delay=60, max_delay=60)
        if user is not None or password is not None:
            self.client.username_pw_set(user, password)  # type: ignore[arg-type]  # MQTT 5 has passwords without a name
        self.client.on_connect = lambda _client, _data, flags, reason, _properties: happened.put(
            f"{reason}{', present' if flags.session_present else ''}"
        )
        self.client.on_disconnect = lambda _client, _data, _flags, reason, _properties: happened.put(str(reason))
        self.client.on_message = lambda _client, _data, message: happened.put(message.payload.decode())
        self.client.on_subscribe = lambda _c, _d, _n, reasons, _properties: happened.put(str(reasons[0]))

    def connect(self, port: int) -> str:
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        return self.next()

    def next(self) -> str:
        return self.happened.get(timeout=PATIENCE_S)


NewPaho = Callable[..., Paho]


@pytest.fixture
def new_paho() -> Iterator[NewPaho]:
    made: list[Paho] = []

    def make(*arguments: Any, **options: Any) -> Paho:
        made.append(Paho(*arguments, **options))
        return made[-1]

    yield make
    for each in made:
        each.client.disconnect()
        each.client.loop_stop()


# -- tokens ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [mqtt.MQTTv31, mqtt.MQTTv311, mqtt.MQTTv5])
def test_a_token_lets_its_user_in_with_that_users_rights(with_tokens: Gateway, new_paho: NewPaho, level: int) -> None:
    ann = new_paho("pump", level, "jwt", token())
    assert ann.connect(with_tokens.port) == "Success"
    ann.client.subscribe("own/ann/#", 1)
    assert ann.next() == "Granted QoS 1"
    ann.client.publish("own/ann/a", "mine", 1).wait_for_publish(PATIENCE_S)
    assert ann.next() == "mine"
    named = new_paho("other", level, "ann", token())
    assert named.connect(with_tokens.port) == "Success"
    for user, password in (("bob", token()), ("jwt", token(lives_s=-5)), ("jwt", token(key=rsa_key())), ("ann", "x")):
        assert new_paho("refused", level, user, password).connect(with_tokens.port) == "Bad user name or password"
    anna = new_paho("anna", level, "anna", "password")
    assert anna.connect(with_tokens.port) == "Success"
    assert new_paho("pump", level, "anna", "password").connect(with_tokens.port) == "Not authorized"


def test_mqtt_5_needs_no_user_name_beside_a_token(with_tokens: Gateway, connect: Connect) -> None:
    password = token().encode()
    length = 17 + len(password)
    client = connect(with_tokens)
    head = bytes((0x10, length & 0x7F | 0x80, length >> 7))
    client.send("connects", head, "0004 'MQTT' 05 42 0000 00 0002 'us'", len(password).to_bytes(2, "big"), password)
    connack = client.receive_packet()
    assert (connack[0], connack[2:4]) == (0x20, b"\x00\x00")


@pytest.mark.parametrize(
    ("level", "told"), [(mqtt.MQTTv311, "Unspecified error"), (mqtt.MQTTv5, "Maximum connect time")]
)
def test_a_connection_ends_with_its_token_and_the_session_is_kept(
    with_tokens: Gateway, new_paho: NewPaho, level: int, told: str
) -> None:
    dying = new_paho("pump", level, "jwt", token(lives_s=10), is_clean=False)
    if level == mqtt.MQTTv5:
        properties = mqtt.Properties(mqtt.PacketTypes.CONNECT)
        properties.SessionExpiryInterval = 600
        dying.client.connect("127.0.0.1", with_tokens.port, clean_start=False, properties=properties)
        dying.client.loop_start()
        assert dying.next() == "Success"
    else:
        assert dying.connect(with_tokens.port) == "Success"
    assert dying.next() == told
    with_tokens.wait_for_log("connection closed", client="pump", reason="^the token has expired$")
    back = new_paho("pump", mqtt.MQTTv311, "jwt", token(), is_clean=False)
    assert back.connect(with_tokens.port) == "Success, present"


def test_a_key_that_leaves_the_file_ends_the_connections_that_it_let_in(
    with_tokens: Gateway, new_paho: NewPaho, tmp_path: Path
) -> None:
    ann, anna = new_paho("pump", mqtt.MQTTv5, "jwt", token()), new_paho("anna", mqtt.MQTTv5, "anna", "password")
    assert (ann.connect(with_tokens.port), anna.connect(with_tokens.port)) == ("Success", "Success")
    (tmp_path / "keys.pem").write_text(pem(rsa_key()), encoding="utf-8")
    assert ann.next() == "Not authorized"
    assert new_paho("pump", mqtt.MQTTv5, "jwt", token()).connect(with_tokens.port) == "Bad user name or password"
    assert new_paho("pump", mqtt.MQTTv5, "jwt", token(key=rsa_key())).connect(with_tokens.port) == "Success"
    assert anna.happened.empty()


# -- client certificates, and listeners' own rules ---------------------------------------------------------------------


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def with_certificates(start: Callable[..., Gateway], authority: Authority, tmp_path: Path) -> Gateway:
    """A plain listener for known users alone, and one with TLS whose users are those of the certificates."""
    certificate, key = authority.issue("gateway")
    rules = tmp_path / "access.toml"
    rules.write_text(RULES, encoding="utf-8")
    return start(
        "[access]",
        "anonymous = false",
        f'access_file = "{rules}"',
        "[[listener]]",
        'name = "secure"',
        'listen = "127.0.0.1:0"',
        "[listener.tls]",
        f'certificate = "{certificate}"',
        f'key = "{key}"',
        f'client_authority = "{authority.certificate}"',
        'client_certificate = "required"',
        'user_from_certificate = "common_name"',
        "[[listener]]",
        'name = "open"',
        'listen = "127.0.0.1:0"',
        "anonymous = true",
    )


def port_of(gateway: Gateway, name: str) -> int:
    port = gateway.wait_for_log("listener opened", name=f"^{name}$")["port"]
    assert isinstance(port, int)
    return port


def secured(client: Paho, authority: Authority, files: tuple[Path, Path] | None) -> Paho:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if files is not None:
        context.load_cert_chain(*files)
    client.client.tls_set_context(context)
    return client


def shown_user(gateway: Gateway, client: str) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(rfhbridge("sessions", "show", client, "--json", "--data", gateway.data).stdout)
    return shown


@pytest.mark.parametrize("level", [mqtt.MQTTv311, mqtt.MQTTv5])
def test_the_name_in_a_certificate_is_the_user_and_no_password_is_asked(
    with_certificates: Gateway, authority: Authority, new_paho: NewPaho, level: int
) -> None:
    port, files = port_of(with_certificates, "secure"), authority.issue("pump-7")
    pump = secured(new_paho("seven", level, None, None), authority, files)
    assert pump.connect(port) == "Success"
    shown = shown_user(with_certificates, "seven")
    assert (shown["user"], shown["listener"]) == ("pump-7", "secure")
    pump.client.subscribe("own/pump-7/#", 1)
    assert pump.next() == "Granted QoS 1"
    pump.client.subscribe("own/pump-8/#", 1)
    assert pump.next() == ("Unspecified error" if level == mqtt.MQTTv311 else "Not authorized")
    same = secured(new_paho("again", level, "pump-7", "whatever"), authority, files)
    assert same.connect(port) == "Success"
    other = secured(new_paho("other", level, "pump-8", "whatever"), authority, files)
    assert other.connect(port) == "Bad user name or password"
    thief = secured(new_paho("seven", level, None, None), authority, authority.issue("pump-8"))
    assert thief.connect(port) == "Not authorized"
    assert shown_user(with_certificates, "seven")["connected"]


def test_each_listener_has_its_own_word_on_clients_without_a_user(
    with_certificates: Gateway, new_paho: NewPaho
) -> None:
    assert new_paho("plain", mqtt.MQTTv5, None, None).connect(with_certificates.port) == "Not authorized"
    assert new_paho("named", mqtt.MQTTv5, "ann", "x").connect(with_certificates.port) == "Not authorized"
    guest = new_paho("guest", mqtt.MQTTv5, None, None)
    assert guest.connect(port_of(with_certificates, "open")) == "Success"
    assert shown_user(with_certificates, "guest")["user"] is None


def test_mosquittos_clients_come_in_by_certificate(
    with_certificates: Gateway, authority: Authority, mosquitto_clients: MosquittoClients
) -> None:
    certificate, key = authority.issue("pump-9")
    port = port_of(with_certificates, "secure")
    tls = ["--cafile", str(authority.certificate), "--cert", str(certificate), "--key", str(key)]
    for version in ("mqttv311", "mqttv5"):
        common = ["-h", "127.0.0.1", "-p", str(port), "-V", version, "-q", "1", *tls]
        published = [str(mosquitto_clients.publish), *common, "-t", "own/pump-9/a", "-r", "-m", version]
        assert subprocess.run(published, timeout=60, check=False, capture_output=True).returncode == 0
        received = [str(mosquitto_clients.subscribe), *common, "-t", "own/pump-9/#", "-C", "1"]
        assert subprocess.run(received, timeout=60, check=True, capture_output=True).stdout == f"{version}\n".encode()


# -- enhanced authentication -------------------------------------------------------------------------------------------


def test_enhanced_authentication_is_refused_by_its_reason_code(with_tokens: Gateway, connect: Connect) -> None:
    client = connect(with_tokens)
    client.send("asks for SCRAM", "10 20 0004 'MQTT' 05 02 0000 10 15 000D 'SCRAM-SHA-256' 0003 'scr'")
    client.expect("is refused", "20 03 00 8C 00")
    client.expect_end("is disconnected")


# -- what never reaches the log ----------------------------------------------------------------------------------------

SECRETS = ("sesame-1", "sesame-2", "sesame-3", "sesame-4", "sesame-5", "sesame-6", "sesame-7")


def test_no_password_token_or_payload_reaches_the_log_at_level_debug(
    with_tokens: Gateway, connect: Connect, new_paho: NewPaho
) -> None:
    wrong, _, as_name, payload, will, unread, malformed = SECRETS
    right, forged = token("sesame"), token("sesame", key=rsa_key(), note=SECRETS[1])
    ann = new_paho("ann1", mqtt.MQTTv5, "jwt", right)
    ann.client.will_set("own/sesame/will", will, 1)
    assert ann.connect(with_tokens.port) == "Success"
    ann.client.subscribe("own/sesame/#", 2)
    assert ann.next() == "Granted QoS 2"
    for qos in (0, 1, 2):
        ann.client.publish("own/sesame/a", payload, qos, retain=qos == 1).wait_for_publish(PATIENCE_S)
        assert ann.next() == payload
    for user, password in (("anna", wrong), (as_name, "x"), ("jwt", forged), (right, right)):
        assert new_paho("in", mqtt.MQTTv311, user, password).connect(with_tokens.port) == "Bad user name or password"
    refused = new_paho("out", mqtt.MQTTv5, "anna", "password")
    assert refused.connect(with_tokens.port) == "Success"
    refused.client.publish("not/mine", unread, 1)
    client = connect(with_tokens, "a broken client")
    client.send(
        "sends a CONNECT with a field too many", "10 1A 0004 'MQTT' 04 02 0000 0002 'us' 0008", malformed.encode()
    )
    client.expect_end("is disconnected")
    client = connect(with_tokens, "another broken client")
    client.send("connects", "10 1F 0004 'MQTT' 04 C2 0000 0003 'bad' 0004 'anna' 0008 'password'")
    client.expect("is accepted", "20 02 00 00")
    client.send("publishes with QoS 3", "36 12 0004 'mine' 0001", malformed.encode(), "0000")
    client.expect_end("is disconnected")
    lost = ann.client.socket()
    assert isinstance(lost, socket.socket)
    lost.shutdown(socket.SHUT_RDWR)  # without DISCONNECT: her will is published
    assert ann.next() == "Unspecified error"
    assert with_tokens.stop() == 0
    trail = trail_text(with_tokens.data / "trail").decode(errors="replace")
    assert '"own/sesame/a"' in trail, "it has headers and no payloads"
    # A record of a session may say how the user was proved, in a word that is a password here.
    written = [with_tokens.log, trail.replace('"proof":"password"', "")]
    assert "session changed" in with_tokens.log, "the log is at level debug"
    parts = [part for each in (right, forged) for part in each.split(".")[1:]]
    for secret in (*SECRETS, *parts, 'password"', "c29tZXNhbHQ"):
        assert all(secret not in text for text in written), secret
