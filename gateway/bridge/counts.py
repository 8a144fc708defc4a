"""Counts: packets between clients and the bridge, for the metrics, and messages that were not carried on, by reason.

The log tells of the latter every ten seconds at most, and never with a line for each message.
"""

import logging
from collections import Counter
from typing import Final

from spark_audit.record import EVENTS, Kind

_log = logging.getLogger(__name__)

#: How often the log tells what was counted since, microseconds.
_INTERVAL_US: Final = 10_000_000


class Counts:
    """Messages that were not carried on, by reason."""

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        self._told: Counter[str] = Counter()
        self._due_us = 0

    def add(self, reason: str, count: int = 1) -> None:
        self.totals[reason] += count

    def tick(self, now_us: int) -> None:
        """Logs new counts, at most every ten seconds."""
        if now_us < self._due_us or self.totals == self._told:
            return
        self._due_us = now_us + _INTERVAL_US
        for reason, count in self.totals.items():
            if count > self._told[reason]:
                _log.warning(
                    "messages not carried on reason=%s count=%s total=%s", reason, count - self._told[reason], count
                )
        self._told = Counter(self.totals)


class Traffic:
    """Packets, and PUBLISHes by QoS among them. A DISCONNECT or CONNACK that ends a connection is not counted."""

    __slots__ = ("answers", "delivered", "packets_received", "published", "repeated")

    def __init__(self) -> None:
        self.packets_received = 0
        #: Packets sent that are no PUBLISH.
        self.answers = 0
        #: PUBLISH packets that were received and not refused, and that were sent, repeats among them, by QoS.
        self.published = [0, 0, 0]
        self.delivered = [0, 0, 0]
        #: PUBLISH packets of QoS 2 whose identifier was held, by what they were (spark_audit.record.EVENTS).
        self.repeated = dict.fromkeys(EVENTS[Kind.REPEATED], 0)

    @property
    def packets_sent(self) -> int:
        return self.answers + sum(self.delivered)
