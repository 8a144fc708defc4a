"""The file of application tokens: names of applications, each with the hash of its token.

    # a comment; empty lines are ignored
    billing:$sha256$<43 characters of Base64 without `=`>

One application a line. A token has 256 random bits, so one pass of SHA-256 protects it: nobody can guess it.
"""

import base64
import binascii
import hashlib
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from gateway.access.text_file import read_text_file
from gateway.access.users import entries_of

_HINT: Final = "'rfhbridge user token add NAME --file FILE' writes a right line"
_TOKEN_BYTES: Final = 32
#: So that a search for secrets finds one that was left somewhere.
_PREFIX: Final = "rfhbridge_"
_ENTRY: Final = re.compile(r"\$sha256\$([A-Za-z0-9+/]{43})")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenHash:
    """The hash of one token."""

    digest: bytes

    @classmethod
    def of(cls, token: str) -> Self:
        return cls(digest=hashlib.sha256(token.encode()).digest())

    @classmethod
    def parse(cls, text: str) -> Self:
        """The hash of a line of the file; ValueError says what is wrong."""
        found = _ENTRY.fullmatch(text)
        if found is None:
            raise ValueError("is no hash of the form $sha256$digest")
        try:
            return cls(digest=base64.b64decode(found[1] + "=", validate=True))
        except binascii.Error:
            raise ValueError("has a digest that is not Base64") from None

    @property
    def text(self) -> str:
        """The text of the file."""
        return f"$sha256${base64.b64encode(self.digest).decode().rstrip('=')}"


def new_token() -> str:
    """A token that nobody can guess."""
    return _PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)


def parse_application_tokens(text: str, source: str) -> dict[str, TokenHash]:
    """The hashes of the file's text by application. Raises ConfigurationError."""
    return entries_of(text, source, TokenHash.parse, hint=_HINT)


def read_application_tokens(path: Path) -> dict[str, TokenHash]:
    """The hashes of a file. Raises ConfigurationError."""
    made_by = f"'rfhbridge user token add NAME --file {path}'"
    return parse_application_tokens(read_text_file(path, made_by=made_by), str(path))
