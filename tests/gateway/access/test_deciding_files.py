"""Files that decide: which ones a configuration names, and how each is hashed."""

import hashlib
import re
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from gateway.access.deciding_files import DecidingFile, DecidingFiles, files_of, public_key_of
from gateway.config import Settings
from gateway.config.settings import known_keys
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import Note
from spark_audit.record import HashedBy
from tests.gateway.access.jwt_vectors import ec_key, pem

PRIVATE = ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
SECRET_JWK = b'{"kty": "oct", "k": "' + b"A" * 43 + b'"}'
NAMED = """
[access]
password_file = "users"
access_file = "access.toml"
[access.token]
key_files = ["one.pem", "two.json"]
[queue_manager]
token_file = "tokens"
[[listener]]
name = "tls"
listen = "127.0.0.1:0"
tls.certificate = "gateway.pem"
tls.key = "gateway.key"
tls.client_authority = "authority.pem"
tls.client_certificate = "required"
[[listener.tls.server_name]]
name = "mqtt.example.com"
certificate = "named.pem"
key = "named.key"
[[mq_listener]]
name = "queues"
listen = "127.0.0.1:1414"
tls.certificate = "queues.pem"
tls.key = "queues.key"
tls.client_authority = "programs.pem"
tls.client_certificate = "optional"
[[mq_listener.tls.server_name]]
name = "mq.example.com"
certificate = "named.pem"
key = "named.key"
[[application]]
name = "billing"
browse = ["*"]
[audit]
personal_data = "keyed"
[audit.signing_token]
type = "pkcs11"
public_key = "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
module = "token.so"
token = "trail"
key = "trail"
pin_file = "pin"
[audit.former_signing_token]
type = "pkcs11"
public_key = "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
module = "token.so"
token = "trail"
key = "trail"
pin_file = "former-pin"
[[audit.witness]]
name = "office"
type = "git"
remote = "ssh://git@git.example.com/digests.git"
git_settings_file = "git-settings"
[[audit.witness]]
name = "clock"
type = "rfc3161"
url = "http://tsa.example.com"
authority_file = "root.pem"
[[audit.witness]]
name = "vault"
type = "s3"
bucket = "plant-digests"
keep_days = 400
credentials_file = "s3-credentials"
[[target]]
name = "PLANT"
connections = ["mq1.example.com(1414)"]
user = "bridge"
password_file = "password"
"""
#: A key that names files which IBM MQ reads.
OF_OTHERS = {"target.key_repository"}
#: A label, and a key itself.
NO_FILES = {f"audit.{each}signing_token.{key}" for each in ("", "former_") for key in ("key", "public_key")}


@pytest.fixture
def named(tmp_path: Path) -> dict[str, list[DecidingFile]]:
    config = tmp_path / "rfhbridge.toml"
    config.write_text(NAMED)
    found: dict[str, list[DecidingFile]] = {}
    for file in files_of(Settings.load(config), config):
        found.setdefault(file.setting, []).append(file)
    return found


def test_each_key_that_names_a_file_has_its_files(named: dict[str, list[DecidingFile]]) -> None:
    keys = {
        key
        for key in known_keys()
        if key.endswith(("_file", "_files", "_key", ".key", ".certificate", "_authority", "_repository"))
    } - (OF_OTHERS | NO_FILES)
    shown = {
        re.sub(
            r"[.]((mqtt|mq)[.]example[.]com|queues|PLANT|office|clock|vault)",
            "",
            setting.replace("listener.tls.tls", "listener.tls"),
        )
        for setting in named
    }
    assert shown == keys | {"configuration", "fields.toml", "options.toml"}
    assert [file.path.name for file in named["access.token.key_files"]] == ["one.pem", "two.json"]


@pytest.mark.parametrize(
    ("setting", "data", "how"),
    [
        ("configuration", b"[access]", HashedBy.SHA256),
        ("access.access_file", b"", HashedBy.SHA256),
        ("access.password_file", b"anna:x", HashedBy.HMAC),
        ("queue_manager.token_file", b"app:x", HashedBy.HMAC),
        ("target.PLANT.password_file", b"secret", HashedBy.HMAC),
        ("access.token.key_files", pem(ec_key()).encode(), HashedBy.SHA256),
        ("access.token.key_files", SECRET_JWK, HashedBy.HMAC),
        ("listener.tls.tls.certificate", b"-----BEGIN CERTIFICATE-----", HashedBy.SHA256),
        ("listener.tls.tls.certificate", b"-----BEGIN CERTIFICATE-----\n" + PRIVATE, HashedBy.HMAC),
        ("listener.tls.tls.key", PRIVATE, HashedBy.PUBLIC_KEY),
        ("audit.signing_key", PRIVATE, HashedBy.PUBLIC_KEY),
        ("audit.signing_token.pin_file", b"4711", HashedBy.HMAC),
        ("audit.former_signing_token.pin_file", b"0815", HashedBy.HMAC),
        ("audit.personal_key", bytes(32), HashedBy.HMAC),
        ("audit.witness.office.git_settings_file", b"[http]", HashedBy.HMAC),
        ("audit.witness.clock.authority_file", b"-----BEGIN CERTIFICATE-----", HashedBy.SHA256),
    ],
)
def test_a_file_with_a_secret_is_never_hashed_in_clear(
    named: dict[str, list[DecidingFile]], setting: str, data: bytes, how: HashedBy
) -> None:
    assert named[setting][0].how(data) is how


def test_a_private_key_has_the_fingerprint_of_its_certificate() -> None:
    assert hashlib.sha256(public_key_of(PRIVATE)).hexdigest() != hashlib.sha256(PRIVATE).hexdigest()
    assert b"PRIVATE" not in public_key_of(PRIVATE)


def test_a_key_of_the_trail_is_told_when_it_is_replaced_removed_and_there_again(tmp_path: Path) -> None:
    settings = Settings.model_validate({"data": str(tmp_path), "audit": {"personal_data": "keyed"}})
    key, engine = tmp_path / "trail-personal.key", Engine.open(tmp_path / "data")
    notes: list[Note] = []

    def seal(_batch: int, added: list[Note]) -> bytes:
        notes.extend(added)
        return b"notes"

    engine.seal_notes = seal
    key.write_bytes(bytes(32))
    files = DecidingFiles(settings, None, engine)
    files.started()
    for data in (bytes(32), b"1" * 32, None, b"1" * 32):
        key.unlink() if data is None else key.write_bytes(data)
        files.read((key,))()
    engine.close()
    told = [(note[2], note[5], note[6]) for note in notes if note[3] == "audit.personal_key"]
    assert [event for event, *_ in told] == ["started", "changed", "removed", "changed"]
    assert {how for _, how, _ in told} == {"hmac"}
    assert told[0][2] != told[1][2] == told[2][2] == told[3][2]
