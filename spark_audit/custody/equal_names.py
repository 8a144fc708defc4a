"""Names under a key that are equal: a publication's topic is a client's topic filter, letter for letter.

Nobody can match a hash with a wildcard. But a filter whose hash is that of a topic is that topic, because a topic has
no wildcards. So the client is due a copy, whatever else it has subscribed to. Copies that are too many cannot be told,
because a filter with a wildcard may have brought them.
"""

from collections.abc import Mapping
from typing import Any

from spark_audit.personal import NAME_PREFIX
from spark_audit.reperform.mqtt import UNSUBSCRIBE

Record = Mapping[str, Any]


class EqualNames:
    """The filters under a key that clients registered with the gateway's own broker, by the subscriber's CorrelId."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets everything: records are missing, or an operator changed subscriptions."""
        #: CorrelIds by filter, and filters by CorrelId.
        self._subscribers: dict[str, dict[str, None]] = {}
        self._filters: dict[str, dict[str, None]] = {}
        #: The queue of publications. A subscription of a run with another one may be on another stream.
        self._queue = ""

    def start(self) -> None:
        """The gateway starts, perhaps with another queue for publications."""
        if not self._queue:
            self.clear()

    def take(self, record: Record) -> None:
        """A RegSub or DeregSub of a client that cannot be read."""
        correlation_id, topic = record["correlation_id"] or "", record["topic"] or ""
        if record["command"] == "RegSub":
            if topic.startswith(NAME_PREFIX):
                self._subscribers.setdefault(topic, {})[correlation_id] = None
                self._filters.setdefault(correlation_id, {})[topic] = None
        elif record["packet_type"] == UNSUBSCRIBE:
            self._end(correlation_id, topic)
        else:  # it ends all
            for each in tuple(self._filters.get(correlation_id, ())):
                self._end(correlation_id, each)

    def _end(self, correlation_id: str, topic: str) -> None:
        for names, name, other in (
            (self._subscribers, topic, correlation_id),
            (self._filters, correlation_id, topic),
        ):
            there = names.get(name, {})
            there.pop(other, None)
            if not there:
                names.pop(name, None)

    def due(self, record: Record) -> tuple[str, ...]:
        """The CorrelIds of the subscribers that are surely due a copy of a publication."""
        queue = record["queue"]
        if self._queue not in ("", queue):
            self.clear()
        self._queue = queue
        return tuple(self._subscribers.get(record["topic"] or "", ()))
