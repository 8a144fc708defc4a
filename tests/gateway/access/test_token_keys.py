"""Keys of tokens from PEM files and JWK Sets: what each can verify, and which are refused."""

import datetime
import json
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.access.token_keys import MAXIMUM_KEYS, parse_token_keys, read_token_keys
from gateway.config.error import ConfigurationError
from tests.gateway.access.jwt_vectors import (
    ED25519_KEY,
    ES256_KEY,
    HS256_KEY,
    ec_key,
    ed_key,
    jwk_set,
    pem,
    rsa_key,
)

OF_RSA = {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}


def refusal(text: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        parse_token_keys(text, "keys")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "algorithms"),
    [
        (pem(rsa_key()), OF_RSA),
        (pem(ec_key()), {"ES256"}),
        (pem(ec_key(ec.SECP384R1)), {"ES384"}),
        (pem(ec_key(ec.SECP521R1)), {"ES512"}),
        (pem(ed_key()), {"EdDSA"}),
        (jwk_set(ES256_KEY), {"ES256"}),
        (jwk_set(ED25519_KEY), {"EdDSA"}),
        (jwk_set(HS256_KEY), {"HS256", "HS384", "HS512"}),
        (json.dumps(HS256_KEY), {"HS256", "HS384", "HS512"}),
        (jwk_set(HS256_KEY | {"alg": "HS256"}), {"HS256"}),
    ],
)
def test_a_key_verifies_the_algorithms_of_its_own_kind_alone(text: str, algorithms: set[str]) -> None:
    (key,) = parse_token_keys(text, "keys")
    assert key.algorithms == algorithms
    assert key.kid is None


def test_a_file_may_hold_several_keys_and_a_certificate_counts_as_its_key() -> None:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "issuer")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, ec_key().public_key(), 7, now, now + datetime.timedelta(days=1))
    certificate = builder.sign(ec_key(), hashes.SHA256()).public_bytes(Encoding.PEM).decode()
    found = parse_token_keys("the issuer's\n" + certificate + pem(rsa_key()), "keys")
    assert [key.algorithms for key in found] == [{"ES256"}, OF_RSA]
    (alone,) = parse_token_keys(pem(ec_key()), "keys")
    assert found[0].fingerprint == alone.fingerprint


def test_keys_of_a_jwk_set_have_their_names_and_those_for_encryption_are_passed_over() -> None:
    text = jwk_set(ES256_KEY | {"kid": "a", "use": "sig"}, ED25519_KEY | {"kid": "b", "use": "enc"})
    assert [key.kid for key in parse_token_keys(text, "keys")] == ["a"]


SECRET = HS256_KEY["k"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no key that verifies a token"),
        ("-----BEGIN PUBLIC KEY-----\n", "has no key"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "cannot be read as keys"),
        ("{", "cannot be read as keys"),
        ("{}", "has no kty"),
        ('{"keys": []}', "has no key"),
        ('{"keys": 1}', "is no JWK Set"),
        ('{"keys": [1]}', "is no JWK Set"),
        ('{"keys": ' + "[" * 100_000, "cannot be read as keys"),
        (jwk_set({"kty": "oct", "k": SECRET[:20]}), "is a secret of 15 bytes; HS256 needs 32"),
        (jwk_set(HS256_KEY | {"kty": "EC"}), "cannot be read as keys"),
        (jwk_set(ES256_KEY | {"alg": "HS256"}), "is said to be for 'HS256', which it cannot verify"),
        (jwk_set(ES256_KEY | {"alg": "none"}), "is said to be for 'none'"),
        (jwk_set(ES256_KEY | {"d": "AAAA"}), "is a private key"),
        (jwk_set(ES256_KEY | {"x": ES256_KEY["y"]}), "cannot be read as keys"),
        (pem(rsa_key(1024)), "has an RSA key of 1024 bits; it needs 2048"),
        (pem(ec_key(ec.SECP256K1)), "has a key on the curve secp256k1"),
    ],
)
def test_what_is_no_usable_key_is_refused_and_no_secret_told(text: str, words: str) -> None:
    told = refusal(text)
    assert words in told
    assert SECRET[:20] not in told


def test_a_private_key_and_one_of_another_kind_are_refused() -> None:
    private = ec_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    assert "is a private key; the gateway needs the public one alone" in refusal(private)
    other = dsa.generate_private_key(1024).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert "signs no token" in refusal(other.decode())


FIELDS = st.dictionaries(
    st.sampled_from(["kty", "crv", "x", "y", "n", "e", "k", "kid", "alg", "use", "key_ops", "d"]),
    st.none()
    | st.integers()
    | st.text(max_size=8)
    | st.lists(st.text(max_size=4), max_size=2)
    | st.sampled_from(["RSA", "EC", "OKP", "oct", "P-256", "Ed25519", "sig", "verify", "HS256", "AQAB", SECRET]),
    max_size=10,
)


@given(FIELDS | FIELDS.map(lambda fields: HS256_KEY | fields) | FIELDS.map(lambda fields: ES256_KEY | fields))
@example({"kty": "RSA", "n": "AQ", "e": "AQ"})
@example({"kty": "RSA", "n": SECRET, "e": ""})
@example({"kty": "OKP", "crv": "Ed25519", "x": ""})
@example({"kty": "oct"})
def test_whatever_a_key_says_ends_in_a_key_or_our_own_error(fields: dict[str, object]) -> None:
    told = ""
    try:
        (key,) = parse_token_keys(json.dumps({"keys": [fields]}), "keys")
        assert key.algorithms
    except ConfigurationError as error:
        told = str(error)
    assert fields.get("kid") == SECRET or SECRET not in told


def test_all_files_together_have_a_limited_number_of_keys(tmp_path: Path) -> None:
    for name, count in (("some", MAXIMUM_KEYS), ("more", 1)):
        (tmp_path / name).write_text(jwk_set(*[ES256_KEY] * count), encoding="utf-8")
    assert len(read_token_keys([tmp_path / "some"])) == MAXIMUM_KEYS
    with pytest.raises(ConfigurationError, match="more than 16 keys"):
        read_token_keys([tmp_path / "some", tmp_path / "more"])
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_token_keys([tmp_path / "none"])


def test_keys_of_kinds_that_are_not_known_do_not_spoil_a_set() -> None:
    """RFC 7517 section 5: keys of a kty that is not understood, or with values out of range, are ignored."""
    unknown = [
        {"kty": "AKP", "alg": "ML-DSA-44", "pub": "AA"},
        {"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"},
        {"kty": "OKP", "crv": "X25519", "x": "AA"},
    ]
    (key,) = parse_token_keys(jwk_set(*unknown, HS256_KEY), "jwks.json")
    assert "HS256" in key.algorithms
    for each in unknown:
        with pytest.raises(ConfigurationError, match="has no key that verifies a token"):
            parse_token_keys(jwk_set(each), "jwks.json")
