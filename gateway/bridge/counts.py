"""What the bridge did not carry on, counted: told in the log now and then, and never a line for each message."""

import logging
from collections import Counter
from typing import Final

_log = logging.getLogger(__name__)

#: How often the log tells what was counted since, microseconds.
_INTERVAL_US: Final = 10_000_000


class Counts:
    """Counts by reason."""

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        self._told: Counter[str] = Counter()
        self._due_us = 0

    def add(self, reason: str, count: int = 1) -> None:
        self.totals[reason] += count

    def tick(self, now_us: int) -> None:
        """Tells what is new, at most every ten seconds."""
        if now_us < self._due_us or self.totals == self._told:
            return
        self._due_us = now_us + _INTERVAL_US
        for reason, count in self.totals.items():
            if count > self._told[reason]:
                _log.warning(
                    "messages not carried on reason=%s count=%s total=%s", reason, count - self._told[reason], count
                )
        self._told = Counter(self.totals)
