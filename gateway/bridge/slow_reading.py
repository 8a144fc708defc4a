"""Slow reading: a link that sends faster than its budget allows is not read for a while, at every level of MQTT.

What it has sent is carried out and acknowledged, and TCP makes the client wait with the rest. So nothing is lost, and a
device that empties a day's backlog gets through. Only a client that gets far ahead nevertheless is disconnected, with
96 hex at level 5 (MQTT 5.0 section 3.14.2.1): it comes back on new connections, or with new identifiers, and each of
them brings one more read. What it sent last is not carried out then, and not acknowledged.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Final

from gateway.bridge.links import MqttLink
from gateway.bridge.paused_publishers import PausedPublishers
from gateway.limits.budgets import FAR_AHEAD_S, Account, Budgets
from gateway.limits.refusals import LimitReached

#: The place's name of links that are read slowly (full_places.py).
_PACE: Final = "pace"


class SlowReading:
    """Charges what each read brings, and pauses the links that are ahead of their budgets."""

    def __init__(self, budgets: Budgets, paused: PausedPublishers, now_s: Callable[[], float]) -> None:
        """`now_s`: a clock that never goes back."""
        self._budgets = budgets
        self._paused = paused
        self._now_s = now_s
        #: The end of each pause, and its link.
        self._ends: list[tuple[float, int, MqttLink]] = []
        self._tie_breaker = count()
        #: Whether records of the trail have brought somebody ahead since the last `pause`.
        self.trail_is_ahead = False

    def charge(self, account: Account, messages: int, size: int) -> tuple[float, LimitReached | None]:
        """Charges a read. Returns the seconds for which its link must not be read, and the limit that closes it."""
        wait_s = self._budgets.spend(account, messages, size, 0, self._now_s())
        if wait_s <= FAR_AHEAD_S:
            return wait_s, None
        return wait_s, self._budgets.too_fast(account, messages, size)

    def charge_trail(self, account: Account, trail_bytes: int) -> None:
        """Charges the records that the packets of a client cause. `pause` must follow if `trail_is_ahead`."""
        if self._budgets.spend(account, 0, 0, 0, self._now_s(), trail_bytes=trail_bytes) > 0:
            self.trail_is_ahead = True

    def pause(self, link: MqttLink, account: Account, wait_s: float, topics: int) -> None:
        """Charges the new topics of a read, and does not read its link for as long as it must not be read."""
        now_s = self._now_s()
        if topics or self.trail_is_ahead:
            self.trail_is_ahead = False
            wait_s = max(wait_s, self._budgets.spend(account, 0, 0, topics, now_s))
        if wait_s > 0 and link.is_open and link.session is not None and link not in self._paused:
            self._budgets.slowed_down(account)
            self._paused.pause(link, _PACE, [])
            heappush(self._ends, (now_s + wait_s, next(self._tie_breaker), link))

    def tick(self) -> None:
        """Several times a second: reads the links again whose pause is over."""
        now_s = self._now_s()
        while self._ends and self._ends[0][0] <= now_s:
            _, _, link = heappop(self._ends)
            self._paused.goes_on(link)
