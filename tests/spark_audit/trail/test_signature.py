"""Keys and signatures of both algorithms in the one form that the trail has, held against other implementations."""

import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, SECP384R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from spark_audit.trail.signature import (
    KeySigner,
    UnusableKey,
    is_signature_of,
    public_key_from_text,
    public_key_of,
    signer_of_pem,
)

#: RFC 8032, section 7.1, TEST 2.
KEY = Ed25519PrivateKey.from_private_bytes(
    bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
)
PUBLIC_KEY = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
SIGNATURE = (
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)
#: RFC 6979, section A.2.5: P-256, SHA-256, message "sample"; the key is the compressed point of Ux and Uy.
P256_KEY = "0360fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6"
P256_SIGNATURE = (
    "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
    "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"
)


def test_the_vectors_of_both_specifications_hold() -> None:
    assert (public_key_of(KEY), KeySigner(KEY).sign(b"\x72")) == (PUBLIC_KEY, SIGNATURE)
    assert is_signature_of(PUBLIC_KEY, SIGNATURE, b"\x72")
    assert is_signature_of(P256_KEY, P256_SIGNATURE, b"sample")


@pytest.mark.parametrize(
    ("key", "signature", "data"), [(PUBLIC_KEY, SIGNATURE, b"\x72"), (P256_KEY, P256_SIGNATURE, b"sample")]
)
def test_anything_else_is_no_signature(key: str, signature: str, data: bytes) -> None:
    other = {PUBLIC_KEY: P256_KEY, P256_KEY: PUBLIC_KEY}[key]
    cases = [(key, signature, data + b"x"), (key, "0" * 128, data), (other, signature, data)]
    cases += [(key, signature[:-2], data), (key, "", data), ("", signature, data), ("no key", signature, data)]
    cases += [(key[:-2], signature, data), (key, "f" * 128, data)]
    for case in cases:
        assert not is_signature_of(*case), case


def test_a_signer_of_p256_signs_what_openssl_verifies(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key = generate_private_key(SECP256R1())
    signer = signer_of_pem(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    signature = signer.sign(b"sample")
    assert is_signature_of(signer.public_key, signature, b"sample")
    numbers = (int(part, 16) for part in (signature[:64], signature[64:]))
    (tmp_path / "signature").write_bytes(encode_dss_signature(*numbers))
    (tmp_path / "data").write_bytes(b"sample")
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "key.pem").write_bytes(pem)
    command = ["openssl", "dgst", "-sha256", "-verify", "key.pem", "-signature", "signature", "data"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout == "Verified OK\n"


def test_a_key_of_another_curve_is_refused() -> None:
    other = generate_private_key(SECP384R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for data in (b"", b"no key", other):
        with pytest.raises(UnusableKey, match="is not an Ed25519 or P-256 private key"):
            signer_of_pem(data)


def test_a_public_key_is_a_line_of_hex() -> None:
    for key in (PUBLIC_KEY, P256_KEY):
        assert public_key_from_text(f" {key.upper()}\n") == key
    for text in ("", "d75a98", PUBLIC_KEY + "00", "04" + PUBLIC_KEY, "-----BEGIN PUBLIC KEY-----"):
        with pytest.raises(UnusableKey, match="64 hex digits"):
            public_key_from_text(text)


def test_a_key_of_either_kind_has_a_secret_of_its_own_for_each_purpose() -> None:
    keys = [KEY, Ed25519PrivateKey.generate(), generate_private_key(SECP256R1()), generate_private_key(SECP256R1())]
    secrets = [KeySigner(key).secret(purpose) for key in keys for purpose in ("one", "two")]
    assert len({*secrets}) == len(secrets)
    assert [KeySigner(key).secret(purpose) for key in keys for purpose in ("one", "two")] == secrets
    assert {len(each) for each in secrets} == {32}
