"""The log of connections that the gateway refuses or closes: few lines about each address, client and user.

A device with an old password comes back every few seconds for weeks, and two clients with one identifier take each
other's place a hundred times a second.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from gateway.limits.addresses import network_of
from gateway.limits.log_rate import LogRate

_log = logging.getLogger(__name__)

#: Lines a minute about connections with a session, in all: there are more of them, and their clients are known.
_LINES_OF_CLIENTS: Final = 2_000
_CLOSED: Final = "connection closed listener=%s client=%s peer=%s reason=%s"


class ConnectionLog:
    """One for the gateway."""

    def __init__(self, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._of_addresses = LogRate(_log, "connections closed address=%s count=%s", now_s=now_s)
        self._of_clients = LogRate(
            _log, "connections closed client=%s count=%s", lines_in_all=_LINES_OF_CLIENTS, now_s=now_s
        )
        self._of_programs = LogRate(_log, "rights refused user=%s count=%s", now_s=now_s)

    def closed(self, client: str, *, listener: str, peer: str, reason: str) -> None:
        """The gateway has closed a connection with a session."""
        self._of_clients.tell(client, client, _CLOSED, listener, client, peer, reason)

    def closed_without_session(self, address: str, *, listener: str, peer: str, reason: str) -> None:
        """The gateway has closed a connection that had no session. `peer` is its `address` with the port."""
        self.refused(address, _CLOSED, listener, "", peer, reason)

    def refused(self, address: str, event: str, *values: object, level: int = logging.WARNING) -> None:
        """A connection failed before MQTT, in TLS, PROXY or HTTP: `event` is that layer's line.

        One /64 of IPv6 counts as one address.
        """
        self._of_addresses.tell(network_of(address), address, event, *values, level=level)

    def right_refused(self, user: str, event: str, *values: object) -> None:
        """A program of this user has not the right for a call. Its lines take none from those about connections."""
        self._of_programs.tell(user, user, event, *values)

    def tick(self) -> None:
        """Several times a second."""
        self._of_addresses.tick()
        self._of_clients.tick()
        self._of_programs.tick()
