"""Counts packets between clients and the bridge for the metrics, and messages not carried on as they came, by reason.

The log reports new counts by reason at most every ten seconds. It has no line for each message.
"""

import logging
from collections import Counter
from typing import Final

from spark_audit.record import EVENTS, Kind

_log = logging.getLogger(__name__)

#: The shortest time between two reports in the log, microseconds.
_INTERVAL_US: Final = 10_000_000
#: The reason of messages that are delivered, but without some of their properties.
UNFIT_PROPERTIES: Final = "properties in a header that are none of MQTT, delivered without them"
_DROPPED: Final = "messages dropped or refused reason=%s count=%s total=%s"
_DELIVERED_IN_PART: Final = "messages delivered in part reason=%s count=%s total=%s"


class Counts:
    """Messages that the bridge dropped, refused or delivered without a part, by reason."""

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
                event = _DELIVERED_IN_PART if reason == UNFIT_PROPERTIES else _DROPPED
                _log.warning(event, reason, count - self._told[reason], count)
        self._told = Counter(self.totals)


class Traffic:
    """Packets, and PUBLISHes by QoS among them. A DISCONNECT or CONNACK that ends a connection is not counted."""

    __slots__ = ("answers", "delivered", "packets_received", "published", "repeated")

    def __init__(self) -> None:
        self.packets_received = 0
        #: Packets sent, without PUBLISH.
        self.answers = 0
        #: By QoS: PUBLISH packets received and not refused (`published`), and sent (`delivered`), with repeats.
        self.published = [0, 0, 0]
        self.delivered = [0, 0, 0]
        #: PUBLISH packets of QoS 2 whose identifier was held already, by event (spark_audit.record.EVENTS).
        self.repeated = dict.fromkeys(EVENTS[Kind.REPEATED], 0)

    @property
    def packets_sent(self) -> int:
        return self.answers + sum(self.delivered)
