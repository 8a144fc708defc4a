"""Log lines about connections that were not let in: some of each address in a minute, and how many more there were.

A device with an old password comes back every few seconds for weeks, and who tries passwords comes a thousand times a
second: neither fills the log, and neither hides the others in it.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from gateway.limits.addresses import network_of

_log = logging.getLogger(__name__)

#: How long lines are counted together, seconds.
INTERVAL_S: Final = 60.0
#: Lines about one address (IPv6: one /64) in that time, and about all of them.
LINES_OF_ADDRESS: Final = 20
LINES_IN_ALL: Final = 200
#: Addresses whose further attempts are told by number; those of the others are told together.
_NAMED_ADDRESSES: Final = 10
#: Addresses that are told apart, at some 300 bytes each.
_KEPT_ADDRESSES: Final = 4_096


class _Stranger:
    """One address in this interval, as it was when it came first; lines that were written, and that were not."""

    __slots__ = ("address", "told", "untold")

    def __init__(self, address: str) -> None:
        self.address = address
        self.told = self.untold = 0


class Strangers:
    """Tells of connections that end before they have a session; one for the gateway."""

    def __init__(self, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._ends_s = 0.0
        self._known: dict[bytes, _Stranger] = {}
        #: Of addresses that are not told apart any more.
        self._others = _Stranger("others")
        self._told = 0

    def tell(self, address: str, peer: str, reason: str) -> None:
        """Writes the line, or counts it. `address` is the client's without its port, `peer` with it."""
        self.tick()
        stranger = self._stranger(address)
        if stranger.told >= LINES_OF_ADDRESS or self._told >= LINES_IN_ALL:
            stranger.untold += 1
            return
        stranger.told += 1
        self._told += 1
        _log.warning("connection closed client=%s peer=%s reason=%s", "", peer, reason)

    def tick(self) -> None:
        """Several times a second: at the end of an interval it is told how many more there were."""
        now_s = self._now_s()
        if now_s < self._ends_s:
            return
        self._tell_numbers()
        self._ends_s = now_s + INTERVAL_S
        self._known.clear()
        self._others = _Stranger("others")
        self._told = 0

    def _stranger(self, address: str) -> _Stranger:
        network = network_of(address)
        found = self._known.get(network)
        if found is None and len(self._known) >= _KEPT_ADDRESSES:
            return self._others
        if found is None:
            found = self._known[network] = _Stranger(address)
        return found

    def _tell_numbers(self) -> None:
        """Those who came most often by their address, the rest together."""
        busy = sorted((each for each in self._known.values() if each.untold), key=lambda each: -each.untold)
        for stranger in busy[:_NAMED_ADDRESSES]:
            _log.warning("connections closed address=%s count=%s", stranger.address, stranger.untold)
        rest = sum(stranger.untold for stranger in busy[_NAMED_ADDRESSES:]) + self._others.untold
        if rest:
            _log.warning("connections closed address=%s count=%s", "others", rest)
