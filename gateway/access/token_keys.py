"""The keys that tokens are signed with, from the operator's files: PEM, or a JWK Set (RFC 7517).

The kind of a key decides which algorithms it can verify, and no token changes that: a public key never becomes the
secret of an HMAC. A secret (`oct`) is allowed in a JWK Set only, and must be at least as long as its HMAC's output (RFC
7518 section 3.2). Private keys are refused: the gateway only checks.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from jwt.algorithms import ECAlgorithm, HMACAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.exceptions import PyJWTError

from gateway.access.text_file import read_text_file
from gateway.config.error import ConfigurationError

#: The most keys of all files together: a token without a key's name is tried with each that fits.
MAXIMUM_KEYS: Final = 16
#: NIST SP 800-57: shorter ones have not been trusted since 2014.
_SHORTEST_RSA_BITS: Final = 2_048
#: RFC 7518 section 3.4: each curve has its algorithm.
_OF_CURVE: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_OF_RSA: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
#: Shortest secret of each, in bytes.
_OF_SECRET: Final = {"HS256": 32, "HS384": 48, "HS512": 64}
_PEM_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)
_CERTIFICATE: Final = "CERTIFICATE"
_PUBLIC_BLOCKS: Final = frozenset({"PUBLIC KEY", "RSA PUBLIC KEY"})
_FROM_JWK: Final = {
    "RSA": RSAAlgorithm.from_jwk,
    "EC": ECAlgorithm.from_jwk,
    "OKP": OKPAlgorithm.from_jwk,
    "oct": HMACAlgorithm.from_jwk,
}
#: Curves of keys that sign (RFC 7518 section 6.2.1.1, RFC 8037 section 2); None: the kind of key has none.
_CURVES: Final = frozenset({None, "P-256", "P-384", "P-521", "Ed25519", "Ed448"})
_PRIVATE: Final = "is a private key; the gateway needs the public one alone"
_HINT: Final = "name PEM files of public keys or certificates, or a JWK Set"

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey | Ed448PublicKey


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenKey:
    """One key: its name in tokens (`kid`; None: it has none), its algorithms, and its fingerprint."""

    kid: str | None
    algorithms: frozenset[str]
    fingerprint: str
    key: PublicKey | bytes


def read_token_keys(paths: Iterable[Path]) -> tuple[TokenKey, ...]:
    """The keys of all files. Raises ConfigurationError for a file without a key, and for a key that cannot be used."""
    keys: list[TokenKey] = []
    for path in paths:
        keys += parse_token_keys(read_text_file(path), str(path))
        if len(keys) > MAXIMUM_KEYS:
            problem = f"there are more than {MAXIMUM_KEYS} keys with it"
            raise ConfigurationError(str(path), (problem,), "leave out keys that no longer sign tokens")
    return tuple(keys)


def holds_secret(path: Path) -> bool:
    """Whether a file of keys holds a secret, with which its readers can make tokens. Raises ConfigurationError."""
    return any(isinstance(key.key, bytes) for key in read_token_keys([path]))


def parse_token_keys(text: str, source: str) -> list[TokenKey]:
    """The keys of a file's text. Raises ConfigurationError, which names no secret."""
    try:
        keys = list(_of_jwk_set(text) if text.lstrip().startswith("{") else _of_pem(text))
    except (ValueError, TypeError, LookupError, PyJWTError, UnsupportedAlgorithm, RecursionError) as error:
        reason = str(error) if isinstance(error, _KeyProblem) else f"cannot be read as keys ({type(error).__name__})"
        raise ConfigurationError(source, (reason,), _HINT) from None
    if not keys:
        raise ConfigurationError(source, ("has no key that verifies a token",), _HINT)
    return keys


class _KeyProblem(ValueError):
    """A key that may not be used; the text repeats nothing of it."""


def _of_pem(text: str) -> Iterator[TokenKey]:
    for block in _PEM_BLOCK.finditer(text):
        if "PRIVATE KEY" in block[1]:
            raise _KeyProblem(_PRIVATE)
        data = block[0].encode()
        if block[1] == _CERTIFICATE:
            yield _public(x509.load_pem_x509_certificate(data).public_key(), None)
        elif block[1] in _PUBLIC_BLOCKS:
            yield _public(load_pem_public_key(data), None)
        else:
            raise _KeyProblem(f"has a block {block[1]!r}, which is no public key")


def _of_jwk_set(text: str) -> Iterator[TokenKey]:
    """The keys for signatures. Skips keys for encryption, and in a set those of unknown kinds.

    An issuer may add them at any time (RFC 7517 section 5: they should be ignored).
    """
    document = json.loads(text)
    keys = document.get("keys", [document])
    if not isinstance(keys, list) or not all(isinstance(each, dict) for each in keys):
        raise _KeyProblem("is no JWK Set: 'keys' must be an array of objects")
    for jwk in keys:
        is_for_signatures = jwk.get("use", "sig") == "sig" and "verify" in jwk.get("key_ops", ("verify",))
        is_known = jwk is document or (str(jwk.get("kty")) in _FROM_JWK and jwk.get("crv") in _CURVES)
        if is_for_signatures and is_known:
            yield _of_jwk(jwk)


def _of_jwk(jwk: dict[str, Any]) -> TokenKey:
    kid = jwk.get("kid")
    if kid is not None and not isinstance(kid, str):
        raise _KeyProblem("has a key whose kid is no text")
    shown = "a key" if kid is None else f"key {kid!r}"
    read = _FROM_JWK.get(str(jwk.get("kty")))
    if read is None:
        raise _KeyProblem(f"{shown} has no kty of {', '.join(_FROM_JWK)}")
    if "d" in jwk:
        raise _KeyProblem(f"{shown} {_PRIVATE}")
    key = read(jwk)
    found = _secret(key, kid, shown) if isinstance(key, bytes) else _public(key, kid)
    declared = jwk.get("alg")
    if declared is None:
        return found
    if declared not in found.algorithms:
        raise _KeyProblem(f"{shown} is said to be for {str(declared)[:16]!r}, which it cannot verify")
    return TokenKey(kid=kid, algorithms=frozenset({declared}), fingerprint=found.fingerprint, key=found.key)


def _public(key: object, kid: str | None) -> TokenKey:
    if isinstance(key, RSAPublicKey):
        if key.key_size < _SHORTEST_RSA_BITS:
            raise _KeyProblem(f"has an RSA key of {key.key_size} bits; it needs {_SHORTEST_RSA_BITS}")
        algorithms = _OF_RSA
    elif isinstance(key, EllipticCurvePublicKey):
        if key.curve.name not in _OF_CURVE:
            raise _KeyProblem(f"has a key on the curve {key.curve.name}; {', '.join(_OF_CURVE)} are known")
        algorithms = frozenset({_OF_CURVE[key.curve.name]})
    elif isinstance(key, Ed25519PublicKey | Ed448PublicKey):
        algorithms = frozenset({"EdDSA"})
    else:
        raise _KeyProblem(f"has a {type(key).__name__}, which signs no token")
    data = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return TokenKey(kid=kid, algorithms=algorithms, fingerprint=hashlib.sha256(data).hexdigest(), key=key)


def _secret(key: bytes, kid: str | None, shown: str) -> TokenKey:
    algorithms = frozenset(name for name, shortest in _OF_SECRET.items() if len(key) >= shortest)
    if not algorithms:
        raise _KeyProblem(f"{shown} is a secret of {len(key)} bytes; HS256 needs {_OF_SECRET['HS256']}")
    # Its own hash would let whoever reads a log try secrets; the fingerprint never leaves the process.
    return TokenKey(kid=kid, algorithms=algorithms, fingerprint=hashlib.sha256(b"oct" + key).hexdigest(), key=key)
