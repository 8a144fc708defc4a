"""The network side of a session, as the bridge uses it; links.py has the work of one link."""

from typing import Protocol

from gateway.mqtt.connection import Connection
from gateway.mqtt.reason_codes import ReasonCode


class Link(Protocol):
    """The network side of a connected session."""

    @property
    def is_open(self) -> bool:
        """False once the link is closed; `Bridge.lost` follows some time later."""
        ...

    @property
    def can_send(self) -> bool:
        """False while the peer reads too slowly."""
        ...

    @property
    def connection(self) -> Connection: ...

    def send(self, data: bytes) -> None: ...

    def close(
        self, reason: str, reason_code: ReasonCode = ReasonCode.UNSPECIFIED_ERROR, told: str | None = None
    ) -> None:
        """Ends the connection. Level 5 is told the code first, unless the client has sent DISCONNECT.

        `reason` goes to the log, `told` to the client; None: the client is told the meaning of the code.
        """
        ...
