"""External users: an authority outside names them, in a token or in a client certificate.

`tokens` checks tokens, and listener/tls checks certificates.
"""

import re
from dataclasses import dataclass
from typing import Final, Protocol

#: Three parts between dots; the first begins as the base64url form of `{"` does.
_TOKEN: Final = re.compile(rb"eyJ[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*")

_LONGEST_USER: Final = 256


class TokenRefused(Exception):
    """A token is not valid. The text says why, and repeats nothing of the token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalUser:
    """The user of a valid token, its end (microseconds since 1970), and the fingerprint of the key that signed it."""

    user: str
    until_us: int
    fingerprint: str


class TokenCheck(Protocol):
    """A check of tokens (tokens.Tokens)."""

    def check(self, token: bytes) -> ExternalUser:
        """The user of a token. Raises TokenRefused."""
        ...


def looks_like_token(password: bytes) -> bool:
    """Whether a password has the form of a token: then the password file is not asked."""
    return _TOKEN.fullmatch(password) is not None


def is_user_name(text: str) -> bool:
    """Whether the name of an external user is allowed: 1 to 256 printable characters, no blank at an end."""
    return 1 <= len(text) <= _LONGEST_USER and text.isprintable() and text == text.strip()
