"""Refusals at a limit: the reason code and its words, and how often each limit refused.

The limits themselves are the table in gateway/config/limits.py.
"""

import logging
from collections import Counter
from dataclasses import dataclass
from typing import Final

from gateway.config.limits import Limit
from gateway.mqtt.reason_codes import ReasonCode

_log = logging.getLogger(__name__)

#: Microseconds between two lines of the log about new refusals.
_INTERVAL_US: Final = 10_000_000

REASONS: Final = {
    limit: tuple(ReasonCode[answer.reason_code] for answer in limit.value.answers)
    for limit in Limit
    if limit.value.answers
}
"""The reason codes under which refusals are counted, by limit. The usual one stands first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReached:
    """The reason of a refusal: the limit, the answer to a client of MQTT 5, and the words for the log."""

    limit: Limit
    reason_code: ReasonCode
    text: str

    @property
    def told(self) -> str:
        """The Reason String. It says only what the client may know, and so less than the log's text."""
        return self.limit.value.told


def reached(limit: Limit, reason_code: ReasonCode | None = None, text: str = "") -> LimitReached:
    """A limit that is reached. By default it has its usual reason code, and its key as the text for the log."""
    text = text or f"{limit.key or limit.label} is reached"
    return LimitReached(limit=limit, reason_code=reason_code or REASONS[limit][0], text=text)


class Refusals:
    """How often each limit refused, by limit and by the reason code that the peer got. The gateway has one."""

    def __init__(self) -> None:
        self.totals: Counter[tuple[Limit, ReasonCode]] = Counter()
        self._told: Counter[tuple[Limit, ReasonCode]] = Counter()
        self._due_us = 0

    def count(self, reached: LimitReached) -> None:
        self.totals[reached.limit, reached.reason_code] += 1

    def add(self, limit: Limit, reason_code: ReasonCode | None = None, count: int = 1) -> None:
        """Counts refusals. Without a reason code they count under the limit's usual one."""
        self.totals[limit, reason_code or REASONS[limit][0]] += count

    def tick(self, now_us: int) -> None:
        """Logs new refusals, at most every ten seconds. With a line for each, an attack could fill the log."""
        if self._due_us - _INTERVAL_US <= now_us < self._due_us or self.totals == self._told:
            return
        self._due_us = now_us + _INTERVAL_US
        for key, total in self.totals.items():
            if total > self._told[key]:
                limit, reason_code = key
                _log.warning(
                    "limit reached limit=%s answer=%s count=%s total=%s",
                    limit.label,
                    reason_code.name,
                    total - self._told[key],
                    total,
                )
        self._told = Counter(self.totals)
