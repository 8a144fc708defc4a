"""How personal data stands in a record: in clear, or as the exporter's key makes it (personal.py)."""

import base64
from typing import Final, Protocol


class Disclosure(Protocol):
    """What a record shows of names, reasons, header bytes and CorrelIds."""

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
        """A CorrelId."""
        ...


class InClear:
    """Everything as it is: bytes in base64, identifiers in hex."""

    def name(self, text: str) -> str:
        """See Disclosure."""
        return text

    def words(self, text: str) -> str:
        """See Disclosure."""
        return text

    def header(self, data: bytes) -> str:
        """See Disclosure."""
        return base64.b64encode(data).decode()

    def identifier(self, identifier: bytes) -> str:
        """See Disclosure."""
        return identifier.hex()


IN_CLEAR: Final = InClear()
