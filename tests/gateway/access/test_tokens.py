"""Tokens as passwords: the vectors of the standards, every claim that counts, and what is malformed or forged."""

import base64
import json
import time
from typing import Any

import jwt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.access.external_users import TokenRefused, is_user_name, looks_like_token
from gateway.access.token_keys import parse_token_keys
from gateway.access.tokens import Tokens
from gateway.config.error import ConfigurationError
from gateway.config.tokens import TokenSettings
from tests.gateway.access.jwt_vectors import (
    ED25519_KEY,
    ED25519_TOKEN,
    ES256_KEY,
    ES256_TOKEN,
    HS256_KEY,
    HS256_TOKEN,
    ec_key,
    ed_key,
    jwk_set,
    pem,
    rsa_key,
    token,
)

SECRET = b"0123456789abcdef0123456789abcdef"
SECRET_JWK = {"kty": "oct", "k": base64.urlsafe_b64encode(SECRET).decode().rstrip("=")}


def tokens(text: str, **settings: Any) -> Tokens:
    return Tokens(parse_token_keys(text, "keys"), TokenSettings(key_files=("keys",), **settings))


def refusal(checked: Tokens, password: bytes) -> str:
    with pytest.raises(TokenRefused) as caught:
        checked.check(password)
    assert password.decode(errors="replace")[:12] not in str(caught.value)
    return str(caught.value)


# -- the standards' vectors: whose signature is right is refused only for its time, or its claims ----------------------


@pytest.mark.parametrize(("key", "signed"), [(HS256_KEY, HS256_TOKEN), (ES256_KEY, ES256_TOKEN)])
def test_the_token_of_rfc_7515_is_rightly_signed_and_has_expired(key: dict[str, str], signed: bytes) -> None:
    assert looks_like_token(signed)
    assert refusal(tokens(jwk_set(key), user_claim="iss"), signed) == "has expired"
    forged = signed[:-3] + (b"AAA" if not signed.endswith(b"AAA") else b"BBB")
    assert refusal(tokens(jwk_set(key), user_claim="iss"), forged) == "is signed with another key"


def test_the_signature_of_rfc_8037_is_right_and_its_payload_no_token() -> None:
    assert refusal(tokens(jwk_set(ED25519_KEY)), ED25519_TOKEN) == "is malformed"
    assert refusal(tokens(jwk_set(ED25519_KEY)), ED25519_TOKEN[:-4] + b"AAAA") == "is signed with another key"


# -- keys and algorithms -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "password"),
    [
        (pem(rsa_key()), token(rsa_key(), "RS256")),
        (pem(rsa_key()), token(rsa_key(), "PS256")),
        (pem(ec_key()), token(ec_key(), "ES256")),
        (pem(ed_key()), token(ed_key(), "EdDSA")),
        (jwk_set(SECRET_JWK), token(SECRET, "HS256")),
    ],
)
def test_a_token_of_each_kind_of_key_lets_its_user_in(text: str, password: bytes) -> None:
    external = tokens(text).check(password)
    assert external.user == "ann"
    expires_s = jwt.decode(password, options={"verify_signature": False})["exp"]
    assert external.until_us == expires_s * 1_000_000


def test_a_public_key_is_never_the_secret_of_an_hmac() -> None:
    """The forgery that made the rule: HS256 with the text of the public key as its secret."""
    text = pem(rsa_key())
    header, claims = ({"alg": "HS256", "typ": "JWT"}, {"sub": "ann", "exp": int(time.time()) + 3_600})
    signing_input = b".".join(_part(json.dumps(each).encode()) for each in (header, claims))
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(signing_input, text.encode())
    assert refusal(tokens(text), signing_input + b"." + _part(signature)) == "is signed with another key"


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", "HS1", None, 7, ["RS256"], {"a": 1}])
def test_a_token_without_a_signature_or_with_an_odd_algorithm_is_refused(algorithm: object) -> None:
    claims = _part(json.dumps({"sub": "ann", "exp": int(time.time()) + 3_600}).encode())
    for signature in (b"", b"AAAA"):
        password = _part(json.dumps({"alg": algorithm, "typ": "JWT"}).encode()) + b"." + claims + b"." + signature
        assert refusal(tokens(pem(rsa_key())), password) == "is signed by another algorithm"


def test_an_algorithm_that_is_not_allowed_is_refused_though_the_key_could_verify_it() -> None:
    assert tokens(pem(rsa_key()), algorithms=["RS512"]).check(token(rsa_key(), "RS512"))
    assert refusal(tokens(pem(rsa_key())), token(rsa_key(), "RS512")) == "is signed by another algorithm"


def test_of_several_keys_the_one_that_the_token_names_is_asked_and_each_where_it_names_none() -> None:
    first, second = SECRET, SECRET[::-1]
    text = jwk_set(*(_secret_jwk(key, kid) for key, kid in ((first, "1"), (second, "2"))))
    checked = tokens(text)
    assert checked.check(token(second, "HS256", kid="2")).fingerprint == checked.keys[1].fingerprint
    assert checked.check(token(second, "HS256")).fingerprint == checked.keys[1].fingerprint
    assert refusal(checked, token(second, "HS256", kid="1")) == "is signed with another key"
    assert refusal(checked, token(second, "HS256", kid="3")) == "is signed with another key"


def test_keys_that_fit_no_allowed_algorithm_are_an_error_of_the_configuration(tmp_path) -> None:
    file = tmp_path / "keys"
    file.write_text(pem(rsa_key()), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"access\.token\.algorithms: no key of .*keys is for ES256"):
        Tokens.read(TokenSettings(key_files=(str(file),), algorithms=("ES256",)))


def test_a_key_that_has_left_the_files_is_told(tmp_path) -> None:
    before, after = tokens(pem(rsa_key()) + pem(ec_key())), tokens(pem(ec_key()))
    assert after.gone_since(before) == {before.keys[0].fingerprint}
    assert before.gone_since(after) == frozenset()


# -- claims ------------------------------------------------------------------------------------------------------------


def now(offset_s: int = 0) -> int:
    return int(time.time()) + offset_s


@pytest.mark.parametrize(
    ("claims", "settings", "words"),
    [
        ({"exp": None}, {}, "lacks the claim 'exp'"),
        ({"exp": now(-5)}, {}, "has expired"),
        ({"exp": "soon"}, {}, "is malformed"),
        ({"exp": [1]}, {}, "is malformed"),
        ({"nbf": now(36_000)}, {}, "is not valid yet"),
        ({"iat": now(36_000)}, {}, "is not valid yet"),
        ({"sub": None}, {}, "lacks the claim 'sub'"),
        ({"sub": ""}, {}, "has no user name in its claim 'sub'"),
        ({"sub": " ann"}, {}, "has no user name in its claim 'sub'"),
        ({"sub": "a\nn"}, {}, "has no user name in its claim 'sub'"),
        ({"sub": "\ud800"}, {}, "has no user name in its claim 'sub'"),
        ({"sub": "x" * 257}, {}, "has no user name in its claim 'sub'"),
        ({"name": 7}, {"user_claim": "name"}, "has no user name in its claim 'name'"),
        ({}, {"user_claim": "name"}, "lacks the claim 'name'"),
        ({}, {"issuer": "https://issuer"}, "lacks the claim 'iss'"),
        ({"iss": "https://other"}, {"issuer": "https://issuer"}, "is from another issuer"),
        ({"iss": ["https://issuer"]}, {"issuer": "https://issuer"}, "is from another issuer"),
        ({}, {"audience": "mqtt"}, "lacks the claim 'aud'"),
        ({"aud": "web"}, {"audience": "mqtt"}, "is for another audience"),
        ({"aud": ["web"]}, {"audience": "mqtt"}, "is for another audience"),
        ({"aud": "web"}, {}, "is for another audience"),
    ],
)
def test_a_claim_that_is_missing_or_wrong_refuses_the_token(
    claims: dict[str, Any], settings: dict[str, Any], words: str
) -> None:
    assert refusal(tokens(jwk_set(SECRET_JWK), **settings), _signed(claims)) == words


@pytest.mark.parametrize(
    ("claims", "settings", "user"),
    [
        ({"iss": "https://issuer"}, {"issuer": "https://issuer"}, "ann"),
        ({"iss": "https://whoever"}, {}, "ann"),
        ({"aud": "mqtt"}, {"audience": "mqtt"}, "ann"),
        ({"aud": ["web", "mqtt"]}, {"audience": "mqtt"}, "ann"),
        ({"name": "Ann A."}, {"user_claim": "name"}, "Ann A."),
        ({"sub": "system:serviceaccount:plant:pump"}, {}, "system:serviceaccount:plant:pump"),
    ],
)
def test_a_token_whose_claims_are_right_lets_in(claims: dict[str, Any], settings: dict[str, Any], user: str) -> None:
    assert tokens(jwk_set(SECRET_JWK), **settings).check(_signed(claims)).user == user


@pytest.mark.parametrize(("claim", "offset_s"), [("exp", -5), ("nbf", 5)])
def test_leeway_lets_in_what_has_just_ended_or_is_about_to_begin(claim: str, offset_s: int) -> None:
    checked = tokens(jwk_set(SECRET_JWK), leeway_s=3_600)
    assert checked.check(_signed({claim: now(offset_s)})).user == "ann"


def test_leeway_counts_for_the_end_of_the_connection_too_and_a_far_end_is_cut() -> None:
    end = now(100)
    assert tokens(jwk_set(SECRET_JWK), leeway_s=60).check(_signed({"exp": end})).until_us == (end + 60) * 1_000_000
    assert tokens(jwk_set(SECRET_JWK)).check(_signed({"exp": 10**30})).until_us == 253_402_300_799 * 1_000_000


def test_a_token_that_is_too_long_is_not_looked_at() -> None:
    checked = tokens(jwk_set(SECRET_JWK), maximum_bytes=300)
    assert checked.check(_signed({"more": "x" * 20}))
    assert refusal(checked, _signed({"more": "x" * 300})) == "has more than 300 bytes"


# -- malformed ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "payload"),
    [
        (b"[]", b"{}"),
        (b'"x"', b"{}"),
        (b'{"alg":"HS256"', b"{}"),
        (b'{"alg":"HS256","crit":["exp"]}', b"{}"),
        (b'{"alg":"HS256","crit":["b64"],"b64":false}', b"{}"),
        (b'{"alg":"HS256","kid":7}', b"{}"),
        (b'{"alg":"HS256","kid":["a"]}', b"{}"),
        (b'{"alg":"HS256"}', b"[" * 4_000),
        (b'{"alg":"HS256"}', b"{" * 4_000),
        (b'{"alg":"HS256"}', b'{"sub":"ann","exp":1e999}'),
        (b'{"alg":"HS256"}', b'{"sub":"ann","exp":NaN}'),
        (b'{"alg":"HS256"}', b'{"sub":"ann","exp":' + b"9" * 5_000 + b"}"),
        (b'{"alg":"HS256"}', b"\xff\xfe"),
        (b'{"alg":"HS256"}', b"[]"),
        (b'{"alg":"HS256"}', b"null"),
    ],
)
def test_what_is_rightly_signed_and_malformed_is_refused_by_our_own_error(header: bytes, payload: bytes) -> None:
    signing_input = _part(header) + b"." + _part(payload)
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(signing_input, SECRET)
    refusal(tokens(jwk_set(SECRET_JWK)), signing_input + b"." + _part(signature))


@given(st.binary(max_size=200), st.binary(max_size=200), st.binary(max_size=64))
@example(b'{"alg":"HS256"}', b'{"exp":99999999999,"sub":"ann"}', b"")
def test_whatever_comes_ends_in_our_own_error(header: bytes, payload: bytes, signature: bytes) -> None:
    checked = tokens(jwk_set(SECRET_JWK))
    for password in (b".".join(map(_part, (header, payload, signature))), header + b"." + payload, signature):
        with pytest.raises(TokenRefused):
            checked.check(password)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["mqtt", "issuer"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
CLAIMS = st.dictionaries(st.sampled_from(["sub", "exp", "nbf", "iat", "iss", "aud", "jti", "x"]), VALUES, max_size=8)


@given(CLAIMS, st.booleans())
def test_whatever_a_right_signature_stands_for_ends_in_a_user_or_our_own_error(
    claims: dict[str, Any], is_strict: bool
) -> None:
    settings = {"issuer": "issuer", "audience": "mqtt"} if is_strict else {}
    try:
        external = tokens(jwk_set(SECRET_JWK), **settings).check(_signed({"sub": "ann", "exp": now(60), **claims}))
    except TokenRefused:
        return
    assert is_user_name(external.user)
    assert 0 < external.until_us <= 253_402_300_799 * 1_000_000


@given(st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jwk", "x5c"]), VALUES, max_size=6))
def test_whatever_the_header_says_ends_in_a_user_or_our_own_error(header: dict[str, Any]) -> None:
    signing_input = _part(json.dumps({"alg": "HS256", **header}).encode()) + b"." + _part(b'{"sub":"ann","exp":9e9}')
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(signing_input, SECRET)
    try:
        assert tokens(jwk_set(SECRET_JWK)).check(signing_input + b"." + _part(signature)).user == "ann"
    except TokenRefused:
        return
    assert header.get("alg", "HS256") == "HS256"


@pytest.mark.parametrize(
    ("password", "looks"),
    [
        (b"eyJhbGciOiJub25lIn0.e30.", True),
        (b"eyJhbGciOiJub25lIn0.e30", False),
        (b"eyJh.e30.x.y.z", False),
        (b"eyJh.e30.x y", False),
        (b"a.b.c", False),
        (b"", False),
        (b"password", False),
    ],
)
def test_a_password_that_has_not_the_form_of_a_token_is_none(password: bytes, looks: bool) -> None:
    assert looks_like_token(password) is looks


def _part(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _secret_jwk(key: bytes, kid: str) -> dict[str, str]:
    return {"kty": "oct", "k": _part(key).decode(), "kid": kid}


def _signed(claims: dict[str, Any]) -> bytes:
    """A token with any claims, also such as PyJWT would not write; of user ann and for an hour by default."""
    said = {"sub": "ann", "exp": now(3_600), **claims}
    left = {name: value for name, value in said.items() if value is not None}
    signing_input = _part(b'{"alg":"HS256","typ":"JWT"}') + b"." + _part(json.dumps(left).encode())
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(signing_input, SECRET)
    return signing_input + b"." + _part(signature)
