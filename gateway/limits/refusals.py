"""Refusals at a limit: the answer at each protocol level, and how often each limit refused something.

The limits themselves are the table in gateway/config/limits.py.
"""

import logging
from collections import Counter
from dataclasses import dataclass
from typing import Final

from gateway.config.limit_row import Answer
from gateway.config.limits import Limit
from gateway.mqtt.levels import LEVELS
from gateway.mqtt.reason_codes import CONNECT_RETURN_CODES, ReasonCode

_log = logging.getLogger(__name__)

#: How often the log has the refusals since the last time, microseconds.
_INTERVAL_US: Final = 10_000_000

REASONS: Final = {
    limit: tuple(ReasonCode[answer.reason_code] for answer in limit.value.answers)
    for limit in Limit
    if limit.value.answers
}
"""The reason codes that a refusal is counted under, by limit; the usual one first."""


def answers_at(level: int, limit: Limit) -> tuple[str, ...]:
    """The answers to a client of a protocol level (3 to 5) past a limit, `CONNACK 97` for example, or `closed`.

    Empty where nobody is told anything; then the row's `meaning` says what happens.
    """
    return tuple(dict.fromkeys(_met(level, each, packet) for each in limit.value.answers for packet in each.packets))


def _met(level: int, answer: Answer, packet: str) -> str:
    reason_code = ReasonCode[answer.reason_code]
    if LEVELS[level].has_reason_codes:
        return f"{packet} {reason_code:02X}"
    if packet == "CONNACK" and reason_code in CONNECT_RETURN_CODES:
        return f"CONNACK {CONNECT_RETURN_CODES[reason_code]:02X}"
    return "SUBACK 80" if packet == "SUBACK" and LEVELS[level].suback_can_refuse else "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReached:
    """Why something is refused: the limit, what a client of MQTT 5 is told, and the words for the log."""

    limit: Limit
    reason_code: ReasonCode
    text: str

    @property
    def told(self) -> str:
        """The Reason String. Unlike the log's text it says nothing that the client may not know."""
        return self.limit.value.told


def reached(limit: Limit, reason_code: ReasonCode | None = None, text: str = "") -> LimitReached:
    """A limit that is reached, with its usual reason code and its key for the log, where nothing else is given."""
    text = text or f"{limit.key or limit.label} is reached"
    return LimitReached(limit=limit, reason_code=reason_code or REASONS[limit][0], text=text)


class Refusals:
    """How often each limit refused, by limit and by what the peer was told; one for the gateway."""

    def __init__(self) -> None:
        self.totals: Counter[tuple[Limit, ReasonCode]] = Counter()
        self._told: Counter[tuple[Limit, ReasonCode]] = Counter()
        self._due_us = 0

    def count(self, reached: LimitReached) -> None:
        self.totals[reached.limit, reached.reason_code] += 1

    def add(self, limit: Limit, reason_code: ReasonCode | None = None, count: int = 1) -> None:
        """Counts refusals; without a reason code under the limit's usual one."""
        self.totals[limit, reason_code or REASONS[limit][0]] += count

    def tick(self, now_us: int) -> None:
        """Logs new refusals, at most every ten seconds. A line for each would let an attack fill the log."""
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
