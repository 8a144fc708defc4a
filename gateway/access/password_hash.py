"""The hash of a password in the password file: Argon2id, in PHC text form.

    $argon2id$v=19$m=19456,t=2,p=1$<salt>$<digest>     m: memory in KiB, t: passes, p: lanes; Base64 without `=`

Entries of other programs in this form, the argon2 command for example, are read too. Sources: RFC 9106; the PHC
string format.
"""

import base64
import binascii
import hmac
import os
import re
from dataclasses import dataclass
from typing import Final, Self

#: The least that OWASP's Password Storage Cheat Sheet names for Argon2id: about 25 ms of one core, in KiB and passes.
MEMORY_KIB: Final = 19_456
PASSES: Final = 2
LANES: Final = 1
_SALT_BYTES: Final = 16
_DIGEST_BYTES: Final = 32
#: The most that an entry may ask for: 1 GiB of memory, 64 passes, 16 lanes; salt and digest in bytes.
_MEMORY_RANGE: Final = range(8, 1_048_577)
_PASSES_RANGE: Final = range(1, 65)
_LANES_RANGE: Final = range(1, 17)
_SALT_RANGE: Final = range(8, 65)
_DIGEST_RANGE: Final = range(16, 65)
#: RFC 9106 section 3.1: at least this much memory for each lane, in KiB.
_KIB_PER_LANE: Final = 8

_PHC: Final = re.compile(
    r"\$argon2id\$v=19\$m=([0-9]{1,7}),t=([0-9]{1,2}),p=([0-9]{1,2})\$([A-Za-z0-9+/]{1,128})\$([A-Za-z0-9+/]{1,128})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordHash:
    """The hash of one password. It is never shown, except as the text of the file."""

    memory_kib: int
    passes: int
    lanes: int
    salt: bytes
    digest: bytes

    @classmethod
    def of(cls, password: bytes) -> Self:
        """The hash of a new password, with a salt of its own."""
        salt = os.urandom(_SALT_BYTES)
        digest = _argon2id(password, salt, _DIGEST_BYTES, MEMORY_KIB, PASSES, LANES)
        return cls(memory_kib=MEMORY_KIB, passes=PASSES, lanes=LANES, salt=salt, digest=digest)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The hash of a line of the file; ValueError, which does not repeat the text, says what is wrong."""
        found = _PHC.fullmatch(text)
        if found is None:
            raise ValueError("is no hash of the form $argon2id$v=19$m=...,t=...,p=...$salt$digest")
        memory_kib, passes, lanes = (int(digits) for digits in found.groups()[:3])
        try:
            salt, digest = (_from_base64(part) for part in found.groups()[3:])
        except binascii.Error:
            raise ValueError("has a salt or a digest that is not Base64") from None
        is_sound = memory_kib in _MEMORY_RANGE and passes in _PASSES_RANGE and lanes in _LANES_RANGE
        if not is_sound or memory_kib < _KIB_PER_LANE * lanes:
            raise ValueError("asks for more than 1 GiB of memory, 64 passes or 16 lanes, or for too little memory")
        if len(salt) not in _SALT_RANGE or len(digest) not in _DIGEST_RANGE:
            raise ValueError("has a salt that is not 8 to 64 bytes long, or a digest that is not 16 to 64")
        return cls(memory_kib=memory_kib, passes=passes, lanes=lanes, salt=salt, digest=digest)

    @property
    def cost(self) -> str:
        """The cost of one check, as the file writes it."""
        return f"m={self.memory_kib},t={self.passes},p={self.lanes}"

    @property
    def text(self) -> str:
        """The text of the file."""
        return f"$argon2id$v=19${self.cost}${_base64(self.salt)}${_base64(self.digest)}"

    def is_of(self, password: bytes) -> bool:
        """Whether the password is the one; slow by design, so never on the event loop. Takes no lock of Python's."""
        digest = _argon2id(password, self.salt, len(self.digest), self.memory_kib, self.passes, self.lanes)
        return hmac.compare_digest(digest, self.digest)


def _argon2id(password: bytes, salt: bytes, length: int, memory_kib: int, passes: int, lanes: int) -> bytes:
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id  # a gateway without users does not load it

    return Argon2id(salt=salt, length=length, iterations=passes, lanes=lanes, memory_cost=memory_kib).derive(password)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
