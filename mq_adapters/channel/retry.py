"""The times when a channel tries again: at once, after 10 seconds, then every 60, for ever.

The caller has the clock.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySchedule:
    """Seconds to wait before each attempt; the last number is for all later ones.

    There is at least one, and none below 0.
    """

    delays_s: tuple[float, ...] = (0.0, 10.0, 60.0)

    def __post_init__(self) -> None:
        if not self.delays_s or min(self.delays_s) < 0:
            raise ValueError(f"a retry schedule of {self.delays_s} s needs at least one delay, and none below 0")

    @property
    def longest_s(self) -> float:
        """The wait after a failure that needs an operator, such as a missing definition or authority."""
        return self.delays_s[-1]


class Retry:
    """Counts failures since the last success.

    A connection that lived longer than the longest delay counts as a success.
    """

    def __init__(self, schedule: RetrySchedule, *, now_s: Callable[[], float]) -> None:
        self._schedule = schedule
        self._now_s = now_s
        self._failures = 0
        self._last_failure_s = float("-inf")

    def succeeded(self) -> None:
        self._failures = 0

    def delay_s(self) -> float:
        """Counts a failure; returns how long to wait now."""
        now_s = self._now_s()
        if now_s - self._last_failure_s > 2 * self._schedule.longest_s:
            self._failures = 0
        delays_s = self._schedule.delays_s
        delay_s = delays_s[min(self._failures, len(delays_s) - 1)]
        self._failures += 1
        self._last_failure_s = now_s
        return delay_s
