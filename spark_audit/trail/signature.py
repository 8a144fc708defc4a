"""Signatures and public keys, in hex, and the signer that holds a private key.

    Ed25519 (RFC 8032)                          key of 32 bytes; signature of 64 bytes
    ECDSA with P-256 and SHA-256 (FIPS 186-5)   key of 33 bytes, the compressed point (02 or 03 first, SEC 1 section
                                                2.3.3); signature of 64 bytes, r and s, 32 bytes each, big-endian

The length of a key says which of the two it is. P-256 is for tokens that lack Ed25519.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final, Protocol

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

PUBLIC_KEY: Final = re.compile(r"[0-9a-f]{64}|0[23][0-9a-f]{64}")
SIGNATURE: Final = re.compile(r"[0-9a-f]{128}")
_ED25519_BYTES: Final = 32
_NUMBER_BYTES: Final = 32
_SECRET_BYTES: Final = 32


class UnusableKey(ValueError):
    """A text is no public key in hex, or a file is no private key that can sign."""


class Signer(Protocol):
    """Signs with a private key, wherever that is: in a file today."""

    @property
    def public_key(self) -> str:
        """Hex."""
        ...

    def sign(self, data: bytes) -> str:
        """Hex."""
        ...


@dataclass(frozen=True, slots=True)
class KeySigner:
    """A signer whose private key is in this process."""

    key: Ed25519PrivateKey | EllipticCurvePrivateKey

    @property
    def public_key(self) -> str:
        return public_key_of(self.key)

    def sign(self, data: bytes) -> str:
        if isinstance(self.key, Ed25519PrivateKey):
            return self.key.sign(data).hex()
        numbers = decode_dss_signature(self.key.sign(data, ECDSA(SHA256())))
        return b"".join(number.to_bytes(_NUMBER_BYTES, "big") for number in numbers).hex()

    def secret(self, purpose: str) -> bytes:
        """32 bytes that only the holder of the key can make, always the same for a purpose."""
        private = self.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        return hashlib.blake2b(
            purpose.encode(), digest_size=_SECRET_BYTES, key=hashlib.sha256(private).digest()
        ).digest()


def signer_of_pem(data: bytes) -> KeySigner:
    """The signer with the private key in a PEM file. Raises UnusableKey."""
    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    is_p256 = isinstance(key, EllipticCurvePrivateKey) and isinstance(key.curve, SECP256R1)
    if isinstance(key, Ed25519PrivateKey) or (isinstance(key, EllipticCurvePrivateKey) and is_p256):
        return KeySigner(key)
    raise UnusableKey("is not an Ed25519 or P-256 private key in PEM without a passphrase")


def public_key_of(key: Ed25519PrivateKey | EllipticCurvePrivateKey) -> str:
    """The public half of a private key, hex."""
    public = key.public_key()
    if isinstance(public, Ed25519PublicKey):
        return public.public_bytes_raw().hex()
    return public.public_bytes(Encoding.X962, PublicFormat.CompressedPoint).hex()


def algorithm_of(public_key: str) -> str:
    """The name of the algorithm of a public key in hex."""
    return "Ed25519" if len(public_key) == 2 * _ED25519_BYTES else "P-256"


def is_signature_of(public_key: str, signature: str, data: bytes) -> bool:
    """Whether a signature is that of a public key over data; False too for what is no key and no signature."""
    try:
        key, signed = bytes.fromhex(public_key), bytes.fromhex(signature)
        if len(key) == _ED25519_BYTES:
            Ed25519PublicKey.from_public_bytes(key).verify(signed, data)
        elif len(signed) == 2 * _NUMBER_BYTES:
            r, s = (int.from_bytes(part, "big") for part in (signed[:_NUMBER_BYTES], signed[_NUMBER_BYTES:]))
            point = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), key)
            point.verify(encode_dss_signature(r, s), data, ECDSA(SHA256()))
        else:
            return False
    except (InvalidSignature, ValueError):
        return False
    return True


def public_key_from_text(text: str) -> str:
    """The public key in a `.pub` file or an argument: hex digits, blanks around them. Raises UnusableKey."""
    key = text.strip().lower()
    if PUBLIC_KEY.fullmatch(key) is None:
        raise UnusableKey(
            "a public key is one line of 64 hex digits (66 for P-256), as `rfhbridge audit key show` prints it"
        )
    return key
