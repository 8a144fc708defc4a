"""Users that others vouch for: what a token says in the words of the login, and names that come from outside.

How tokens are checked stands in tokens, and how certificates are in listener/tls.
"""

import re
from dataclasses import dataclass
from typing import Final, Protocol

#: Three parts between dots, the first of which is the base64url form of what begins with `{"`.
_TOKEN: Final = re.compile(rb"eyJ[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*")

_LONGEST_USER: Final = 256


class TokenRefused(Exception):
    """A token that does not let anybody in; the text says why, and nothing of the token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vouched:
    """What a valid token says: the user, until when (microseconds since 1970), and the key that it is signed with."""

    user: str
    until_us: int
    fingerprint: str


class TokenCheck(Protocol):
    """Who checks tokens (tokens.Tokens)."""

    def check(self, token: bytes) -> Vouched:
        """What the token says. Raises TokenRefused."""
        ...


def looks_like_token(password: bytes) -> bool:
    """Whether a password has the form of a token: then no password file is asked."""
    return _TOKEN.fullmatch(password) is not None


def is_user_name(text: str) -> bool:
    """Whether an authority outside may name a user so: 1 to 256 printable characters, no blank at an end."""
    return 1 <= len(text) <= _LONGEST_USER and text.isprintable() and text == text.strip()
