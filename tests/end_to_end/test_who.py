"""Who did what: the records of a running gateway that name users, addresses, rules, files and operators."""

import contextlib
import hashlib
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from gateway.access.deciding_files import public_key_of
from mappings import table
from spark_audit.personal import PersonalKey
from spark_audit.verify import Verdict, verify
from tests.certificate_authority import Authority
from tests.end_to_end.conftest import StartGateway
from tests.end_to_end.gateway_process import PATIENCE_S, Gateway
from tests.end_to_end.wire import packet
from tests.gateway.access.jwt_vectors import ec_key, pem
from tests.trail_lines import trail_lines, trail_records

#: The reference implementation of Argon2 gives this for "password" with the salt "somesalt".
USERS = "anna:$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4\n"
CONFIGURATION = """
[access]
anonymous = false
password_file = "{folder}/users"
access_file = "{folder}/access.toml"
[access.token]
key_files = ["{folder}/keys.pem"]
[audit]
personal_data = "{personal_data}"

[[listener]]
name = "open"
listen = "127.0.0.1:0"
anonymous = true
proxy_protocol = true
[[listener]]
name = "secure"
listen = "127.0.0.1:0"
tls.certificate = "{folder}/gateway.pem"
tls.key = "{folder}/gateway.key"
tls.client_authority = "{folder}/authority.pem"
tls.client_certificate = "required"
tls.user_from_certificate = "common_name"
"""
RULES = """
[[rule]]
publish = "all/#"
subscribe = "all/#"

[[rule]]
user = "anna"
deny_publish = "all/secret/+"
"""
#: PROXY protocol version 2: a client at 192.0.2.9, port 1000, of IPv4 and TCP.
PROXIED = bytes.fromhex("0D0A0D0A000D0A515549540A 21 11 000C C0000209 7F000001 03E8 075B")
MAPPINGS = Path(table.__file__).parent
CONNACK = packet("20 02 00 00")


class Watched:
    """A gateway with one way in for each proof, and the records of its trail."""

    def __init__(self, new_gateway: StartGateway, folder: Path, personal_data: str) -> None:
        self.authority = Authority(folder)
        self.authority.issue("gateway")
        (folder / "users").write_text(USERS)
        (folder / "users").chmod(0o600)
        (folder / "keys.pem").write_text(pem(ec_key()))
        (folder / "access.toml").write_text(RULES)
        config = folder / "rfhbridge.toml"
        config.write_text(CONFIGURATION.format(folder=folder, personal_data=personal_data))
        self.gateway: Gateway = new_gateway("--config", str(config)).start()

    def port(self, name: str) -> int:
        return int(self.gateway.wait_for_log("listener opened", name=f"^{name}$")["port"])

    @contextlib.contextmanager
    def talk(self, listener: str, *sent: bytes, tls: ssl.SSLContext | None = None) -> Iterator[socket.socket]:
        """A connection that has sent a CONNECT and is accepted."""
        link = socket.create_connection(("127.0.0.1", self.port(listener)), PATIENCE_S)
        if tls is not None:
            link = tls.wrap_socket(link, server_hostname="localhost")
        with link:
            link.sendall(b"".join(sent))
            assert link.recv(4) == CONNACK
            yield link

    def records(self, kind: str) -> list[dict[str, Any]]:
        """The records of a kind, after the gateway has stopped. The trail must verify."""
        trail = self.gateway.data / "trail"
        assert verify(trail).verdict is Verdict.INTACT
        return [record for record in trail_records(trail) if record["kind"] == kind]


def _token() -> str:
    return jwt.encode({"sub": "ann", "exp": int(time.time() + 3_600)}, ec_key(), "ES256")


def _connect(client: str, user: str = "", password: str = "") -> bytes:
    flags = 0xC2 if user else 0x02
    fields = [client, *((user, password) if user else ())]
    rest = b"".join(len(field).to_bytes(2, "big") + field.encode() for field in fields)
    body = packet("0004 'MQTT' 04") + bytes((flags, 0, 0)) + rest
    length = bytes((len(body),)) if len(body) < 128 else bytes((len(body) & 0x7F | 0x80, len(body) >> 7))
    return b"\x10" + length + body


def _all_connect(watched: Watched, folder: Path) -> None:
    """One client for each proof, which leaves; the one of the password is taken over first."""
    certificate, key = watched.authority.issue("pump-7")
    tls = ssl.create_default_context(cafile=str(watched.authority.certificate))
    tls.load_cert_chain(certificate, key)
    anna = _connect("p1", "anna", "password")
    with watched.talk("default", anna), watched.talk("default", anna) as second:
        second.sendall(packet("E0 00"))
    with watched.talk("default", _connect("t1", "jwt", _token())) as link:
        link.sendall(packet("E0 00"))
    with watched.talk("open", PROXIED, _connect("o1")):
        pass
    with watched.talk("secure", _connect("c1"), tls=tls) as link:
        link.sendall(packet("E0 00"))
    assert watched.gateway.stop() == 0


WHO = ("user", "proof", "address", "listener", "certificate_subject")
HERE = "127.0.0.1"
EXPECTED = {
    "p1": ("anna", "password", HERE, "default", None),
    "t1": ("ann", "token", HERE, "default", None),
    "o1": (None, "listener", "192.0.2.9", "open", None),
    "c1": ("pump-7", "certificate", HERE, "secure", "CN=pump-7,O=Plant"),
}


def test_every_record_of_a_session_tells_who_its_client_is(new_gateway: StartGateway, tmp_path: Path) -> None:
    watched = Watched(new_gateway, tmp_path, "plain")
    _all_connect(watched, tmp_path)
    records = watched.records("session")
    told = {(record["client"], tuple(record.get(name) for name in WHO)) for record in records}
    assert told == set(EXPECTED.items())
    events = [record["event"] for record in records if record["client"] == "p1"]
    assert events[:4] == ["opened", "taken_over", "ended", "opened"]


def test_users_addresses_and_subjects_are_personal(new_gateway: StartGateway, tmp_path: Path) -> None:
    watched = Watched(new_gateway, tmp_path, "keyed")
    _all_connect(watched, tmp_path)
    key = PersonalKey.read(watched.gateway.data / "trail-personal.key")
    text = b"".join(trail_lines(watched.gateway.data / "trail"))
    for clear in (b"anna", b"Plant", b"192.0.2.9", b"127.0.0", b"CN=", b"pump-7"):
        assert clear not in text, clear
    records = watched.records("session")
    keyed = ("user", "address", "certificate_subject")
    for client, who in EXPECTED.items():
        (told,) = {tuple(each.get(name) for name in WHO) for each in records if each["client"] == key.name(client)}
        assert told == tuple(
            key.name(value) if value and name in keyed else value for name, value in zip(WHO, who, strict=True)
        )


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_connection_that_outlived_its_gateway_is_told_with_the_user_of_its_session(
    new_gateway: StartGateway, tmp_path: Path, is_killed: bool
) -> None:
    """The store knows the user of a session and no address: a later run cannot tell where the client was."""
    watched = Watched(new_gateway, tmp_path, "plain")
    kept = _connect("p1", "anna", "password").replace(b"\x04\xc2", b"\x04\xc0")
    with watched.talk("default", kept):
        if is_killed:
            watched.gateway.kill_and_restart()
    assert watched.gateway.stop() == 0
    lost = [record for record in watched.records("session") if record["event"] == "lost"][-1]
    assert tuple(lost.get(name) for name in WHO) == (("anna", None, None, None, None) if is_killed else EXPECTED["p1"])


def test_refused_topics_are_told_whole_once_and_then_by_client_and_rule(
    new_gateway: StartGateway, tmp_path: Path
) -> None:
    watched = Watched(new_gateway, tmp_path, "plain")
    anna = _connect("p1", "anna", "password")
    for number in range(1, 8):
        with watched.talk("default", anna) as link:
            link.sendall(packet("82 0C 0009 0007 'other/#' 01"))
            assert link.recv(5) == packet("90 03 0009 80")
            link.sendall(packet(f"32 10 000C 'all/secret/{number}' 0001"))
            assert link.recv(5) == b"", "level 3.1.1 has no other answer to a PUBLISH that is refused"
    assert watched.gateway.stop() == 0
    told = [
        tuple(each.get(name) for name in ("event", "client", "user", "rule", "topic", "refusals"))
        for each in watched.records("topics_refused")
    ]
    assert told == [
        ("subscribe", "p1", "anna", "no rule", "other/#", 1),
        ("publish", "p1", "anna", "line 6", "all/secret/1", 1),
        ("subscribe", "p1", "anna", "no rule", None, 6),
        ("publish", "p1", "anna", "line 6", None, 6),
    ]


def _files(watched: Watched) -> list[tuple[str, str, str, str, str]]:
    names = ("event", "setting", "file", "hashed_by", "file_hash")
    return [tuple(record[name] for name in names) for record in watched.records("file_read")]  # type: ignore[misc]


def test_every_file_that_decides_is_told_at_the_start_and_at_each_change(
    new_gateway: StartGateway, tmp_path: Path
) -> None:
    watched = Watched(new_gateway, tmp_path, "plain")
    rules, users = tmp_path / "access.toml", tmp_path / "users"
    rules.write_text("")
    watched.gateway.wait_for_log("file read again", file="access.toml")
    users.write_text(users.read_text())
    watched.gateway.signal(signal.SIGHUP)
    watched.gateway.wait_for_log("file read again", file="users")
    users.write_text(users.read_text().replace("anna", "bob"))
    watched.gateway.wait_for_log("file read again", count=2, file="users")
    certificate, key = watched.authority.issue("gateway")
    watched.gateway.wait_for_log("file read again", count=2, file="gateway.pem")
    watched.gateway.restart().stop()
    told = _files(watched)
    listener = "listener.secure.tls"
    expected = {
        "configuration": ("rfhbridge.toml", "sha256", hashlib.sha256((tmp_path / "rfhbridge.toml").read_bytes())),
        "fields.toml": ("fields.toml", "sha256", hashlib.sha256((MAPPINGS / "fields.toml").read_bytes())),
        "options.toml": ("options.toml", "sha256", hashlib.sha256((MAPPINGS / "options.toml").read_bytes())),
        "access.access_file": ("access.toml", "sha256", hashlib.sha256()),
        "access.token.key_files": ("keys.pem", "sha256", hashlib.sha256((tmp_path / "keys.pem").read_bytes())),
        f"{listener}.client_authority": (
            *("authority.pem", "sha256"),
            hashlib.sha256(watched.authority.certificate.read_bytes()),
        ),
        f"{listener}.certificate": ("gateway.pem", "sha256", hashlib.sha256(certificate.read_bytes())),
        f"{listener}.key": ("gateway.key", "public_key", hashlib.sha256(public_key_of(key.read_bytes()))),
        "audit.signing_key": (
            *("trail-key.pem", "public_key"),
            hashlib.sha256(public_key_of((watched.gateway.data / "trail-key.pem").read_bytes())),
        ),
    }
    second = {setting: row for event, setting, *row in told[-10:] if event == "started"}
    by_users = second.pop("access.password_file")
    assert second == {setting: [file, how, each.hexdigest()] for setting, (file, how, each) in expected.items()}
    changes = [row for row in told if row[0] == "changed"]
    assert [row[1] for row in changes[:2]] == ["access.access_file", "access.password_file"]
    assert {row[1] for row in changes[2:]} == {f"{listener}.certificate", f"{listener}.key"}
    at_start = next(row for row in told if row[1] == "access.password_file")
    assert (at_start[3], len({at_start[4], changes[1][4]})) == ("hmac", 2), "the same file has the same hash"
    assert by_users == ["users", "hmac", changes[1][4]], "after a restart too"
    assert by_users[2] != hashlib.sha256(users.read_bytes()).hexdigest()


def test_a_key_of_the_trail_that_is_removed_or_put_back_is_told_while_the_gateway_runs(
    new_gateway: StartGateway, tmp_path: Path
) -> None:
    watched = Watched(new_gateway, tmp_path, "keyed")
    key = watched.gateway.data / "trail-personal.key"
    kept = key.read_bytes()
    key.unlink()
    watched.gateway.wait_for_log("file read again", file="trail-personal.key")
    key.write_bytes(kept)
    key.chmod(0o600)
    watched.gateway.wait_for_log("file read again", count=2, file="trail-personal.key")
    assert watched.gateway.stop() == 0
    told = [row for row in _files(watched) if row[1] == "audit.personal_key"]
    assert [row[0] for row in told] == ["started", "removed", "changed"]
    assert len({row[4] for row in told}) == 1
    assert told[0][4] != hashlib.sha256(kept).hexdigest()
