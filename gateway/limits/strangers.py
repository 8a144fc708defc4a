"""Log lines about connections that were not let in, few of each address; and about those of clients that are closed.

A device with an old password comes back every few seconds for weeks, and two with one client identifier take each
other's place a hundred times a second.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from gateway.limits.addresses import network_of
from gateway.limits.few_lines import FewLines

_log = logging.getLogger(__name__)

#: Lines a minute about connections of clients that were let in: they are known, and there are more of them.
_LINES_OF_CLIENTS: Final = 2_000


class Strangers:
    """Tells of connections that end before they have a session; one for the gateway."""

    def __init__(self, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._lines = FewLines(_log, "connections closed address=%s count=%s", now_s=now_s)
        self._of_clients = FewLines(
            _log, "connections closed client=%s count=%s", lines_in_all=_LINES_OF_CLIENTS, now_s=now_s
        )

    def tell_of_client(self, client: str, *, listener: str, peer: str, reason: str) -> None:
        """A connection with a session is closed, and not because the client asked for it."""
        event = "connection closed listener=%s client=%s peer=%s reason=%s"
        self._of_clients.tell(client, client, event, listener, client, peer, reason)

    def tell(self, address: str, *, listener: str, peer: str, reason: str) -> None:
        """`address` is the client's without its port, `peer` with it. One /64 of IPv6 counts as one address."""
        self.tell_more(address, "connection closed listener=%s client=%s peer=%s reason=%s", listener, "", peer, reason)

    def tell_more(self, address: str, event: str, *values: object, level: int = logging.WARNING) -> None:
        """The same of a connection that ended before it spoke MQTT, in the words of what came before."""
        self._lines.tell(network_of(address), address, event, *values, level=level)

    def tick(self) -> None:
        """Several times a second."""
        self._lines.tick()
        self._of_clients.tick()
