"""How personal data stands in a line: in clear, or as hashes and ciphertext under a key (spark_audit/personal.py)."""

from pathlib import Path
from typing import Protocol

from gateway.audit_trail.json_text import base64_text, json_text
from gateway.audit_trail.keys.personal_key import read_personal_key
from spark_audit.personal import PersonalKey


class Disclosure(Protocol):
    """How values stand in a line; texts come back as JSON strings with their quotes."""

    def name(self, text: str) -> str:
        """A client identifier, a topic or a user."""
        ...

    def words(self, text: str) -> str:
        """A reason that may quote a topic."""
        ...

    def header(self, data: bytes) -> str:
        """Raw header bytes."""
        ...

    def identifier(self, identifier: bytes) -> str:
        """A CorrelId, in hex without quotes."""
        ...


class InClear:
    """Everything as it is."""

    name = staticmethod(json_text)
    words = staticmethod(json_text)

    @staticmethod
    def header(data: bytes) -> str:
        return f'"{base64_text(data)}"'

    @staticmethod
    def identifier(identifier: bytes) -> str:
        return identifier.hex()


class UnderKey:
    """Names as keyed hashes, headers and words encrypted."""

    def __init__(self, key: PersonalKey) -> None:
        self._key = key

    def name(self, text: str) -> str:
        return f'"{self._key.name(text)}"'

    def words(self, text: str) -> str:
        return f'"{self._key.sealed(text.encode(errors="replace"))}"'

    def header(self, data: bytes) -> str:
        return f'"{self._key.sealed(data)}"'

    def identifier(self, identifier: bytes) -> str:
        return self._key.identifier(identifier).hex()


def disclosure_of(personal_key: str) -> Disclosure:
    """How personal data stands in the lines of a trail. `personal_key` is the file of the key, "" for in clear.

    Raises ConfigurationError for a key that cannot be used.
    """
    return UnderKey(read_personal_key(Path(personal_key))) if personal_key else InClear()
