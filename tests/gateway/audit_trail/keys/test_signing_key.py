"""The key is made once, for its owner alone, and a missing or other one is told before anything starts."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, SECP384R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from gateway.audit_trail.keys.signing_key import make_key, make_next_key, next_key_path, ready_key
from gateway.config import ConfigurationError
from spark_audit.trail.signature import is_signature_of

#: RFC 8032, section 7.1, test 1: secret key and public key.
SECRET = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"


def _write(path: Path, data: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(data)
    path.chmod(mode)
    return path


def _pem(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def test_the_first_start_makes_a_key_for_its_owner_alone_and_the_public_one_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "elsewhere" / "trail-key.pem"
    key = ready_key(path, None)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (tmp_path / "elsewhere" / "trail-key.pub").read_text() == key.public_key + "\n"
    assert sorted(each.name for each in path.parent.iterdir()) == ["trail-key.pem", "trail-key.pub"]
    assert ready_key(path, key.public_key).public_key == key.public_key


def test_a_key_made_elsewhere_is_taken(tmp_path: Path) -> None:
    path = _write(tmp_path / "key.pem", _pem(Ed25519PrivateKey.from_private_bytes(SECRET)))
    assert ready_key(path, None).public_key == PUBLIC


def test_a_key_of_p256_made_by_a_token_s_owner_is_taken(tmp_path: Path) -> None:
    curve = generate_private_key(SECP256R1())
    path = _write(tmp_path / "key.pem", curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    key = ready_key(path, None)
    assert len(bytes.fromhex(key.public_key)) == 33
    assert is_signature_of(key.public_key, key.sign(b"data"), b"data")
    assert path.with_suffix(".pub").read_text() == key.public_key + "\n"


@pytest.mark.parametrize("case", ["missing", "another", "everybody", "no key", "passphrase", "curve", "folder"])
def test_a_key_that_cannot_sign_is_told_with_what_to_do(tmp_path: Path, case: str) -> None:
    path = tmp_path / "key.pem"
    right, passphrase = Ed25519PrivateKey.from_private_bytes(SECRET), BestAvailableEncryption(b"secret")
    if case == "another":
        _write(path, _pem(Ed25519PrivateKey.generate()))
    elif case == "everybody":
        _write(path, _pem(right), 0o644)
    elif case == "no key":
        _write(path, b"-----BEGIN PRIVATE KEY-----\n")
    elif case == "passphrase":
        _write(path, right.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, passphrase))
    elif case == "curve":
        curve = generate_private_key(SECP384R1())
        _write(path, curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    elif case == "folder":
        path.mkdir()
    expected = {
        "missing": "is missing, but the trail's digests are countersigned with it",
        "another": f"is not the key of this trail.*{PUBLIC}",
        "everybody": "is open to everybody",
        "folder": "cannot be read: Is a directory",
    }
    with pytest.raises(
        ConfigurationError, match=expected.get(case, "is not an Ed25519 or P-256 private key")
    ) as caught:
        ready_key(path, PUBLIC)
    assert caught.value.source == "audit.signing_key"
    assert caught.value.hint


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigurationError, match="cannot be made"):
        ready_key(tmp_path / "file" / "key.pem", None)


def test_a_hand_over_that_was_signed_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    make_key(path)
    following = make_next_key(path)
    assert ready_key(path, following.public_key).public_key == following.public_key
    assert not next_key_path(path).exists()


def test_openssl_reads_the_key(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    key = make_key(path)
    command = ["openssl", "pkey", "-in", os.fspath(path), "-pubout", "-outform", "DER"]
    try:
        done = subprocess.run(command, capture_output=True, check=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    assert done.stdout[-32:].hex() == key.public_key
