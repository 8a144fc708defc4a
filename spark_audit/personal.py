"""Personal data of a trail under a key: hashes that cannot be undone, and bytes that only the key opens. Without Spark.

With `[audit] personal_data = "keyed"` no client identifier, topic, user or raw header stands in the trail in clear.
Anybody can check the chain, the digests and every count without the key, even after the key was destroyed. Only the
re-performance of conversions needs the key. A key is a file of 32 random bytes. Four subkeys are the HMAC-SHA256, with
that key, of the labels `names`, `identifiers`, `nonces` and `encryption`.

    client, topic ...    "k:" and the first 32 hex digits of HMAC-SHA256, with `names`, of the text in UTF-8
    correlation_id       as many hex digits as it had: the start of HMAC-SHA256, with `identifiers`, of its bytes
    input, output ...    "e:" and base64 of nonce (12 bytes), AES-256-GCM ciphertext and tag (16 bytes), by `encryption`

The nonce is the start of HMAC-SHA256, with `nonces`, of the plain bytes. So different bytes never have the same nonce,
and the same bytes look the same, as the same topics do. The additional data of AES-GCM is "rfhbridge trail, version 1".
":" is no digit of base64 or hex, so the first two characters mark a keyed value.
"""

import base64
import binascii
import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES: Final = 32
NAME_PREFIX: Final = "k:"
SEALED_PREFIX: Final = "e:"
#: Fields of a record whose bytes (base64) or words are encrypted.
SEALED_BYTES: Final = ("input", "output")
SEALED_WORDS: Final = ("reason",)
_NAME_DIGITS: Final = 32
_NONCE_BYTES: Final = 12
_PURPOSE: Final = b"rfhbridge trail, version 1"


class UnusablePersonalKey(ValueError):
    """The file is no key, or a record was written with another key."""


class PersonalKey:
    """The key of a trail's personal data."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise UnusablePersonalKey(f"a key for personal data has {KEY_BYTES} bytes, not {len(key)}")
        self._names, self._identifiers, self._nonces, encryption = (
            hmac.digest(key, label, "sha256") for label in (b"names", b"identifiers", b"nonces", b"encryption")
        )
        self._cipher = AESGCM(encryption)

    @classmethod
    def read(cls, path: Path) -> Self:
        """The key in a file. Raises UnusablePersonalKey if it has another length, OSError if there is no file."""
        with path.open("rb") as file:
            return cls(file.read(KEY_BYTES + 1))

    def name(self, text: str) -> str:
        """The keyed hash of a client identifier, a topic or a user."""
        return NAME_PREFIX + hmac.digest(self._names, text.encode(errors="replace"), "sha256").hex()[:_NAME_DIGITS]

    def identifier(self, identifier: bytes) -> bytes:
        """The keyed hash of a CorrelId, which is made from a client identifier that somebody may guess."""
        return hmac.digest(self._identifiers, identifier, "sha256")[: len(identifier)]

    def sealed(self, data: bytes) -> str:
        """The bytes, encrypted with the key."""
        nonce = hmac.digest(self._nonces, data, "sha256")[:_NONCE_BYTES]
        return SEALED_PREFIX + base64.b64encode(nonce + self._cipher.encrypt(nonce, data, _PURPOSE)).decode()

    def opened(self, text: str) -> bytes:
        """The bytes of a sealed text. Raises UnusablePersonalKey if it has another key, or was changed."""
        try:
            sealed = base64.b64decode(text.removeprefix(SEALED_PREFIX), validate=True)
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], _PURPOSE)
        except (binascii.Error, ValueError, InvalidTag):
            raise UnusablePersonalKey("it was written with another key, or has been changed") from None


def is_sealed(value: object) -> bool:
    """Whether a value of a record is encrypted."""
    return isinstance(value, str) and value.startswith(SEALED_PREFIX)


def has_keyed(lines: bytes, field: str) -> bool:
    """Whether a field of any of these lines of a trail is a keyed hash."""
    return b'"%b":"%b' % (field.encode(), NAME_PREFIX.encode()) in lines


def opened_record(record: Mapping[str, Any], key: PersonalKey) -> dict[str, Any]:
    """The record with its encrypted fields in clear. Names stay hashes. Raises UnusablePersonalKey."""
    clear = dict(record)
    for field in (*SEALED_BYTES, *SEALED_WORDS):
        if is_sealed(clear.get(field)):
            data = key.opened(clear[field])
            clear[field] = data.decode() if field in SEALED_WORDS else base64.b64encode(data).decode()
    return clear
