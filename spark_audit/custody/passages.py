"""The messages that go over channels to other queue managers: none of a client's messages for a target is left behind.

The messages of one client for one target go over one channel, in their order. So a persistent message that has not
gone, while a later one has, is lost, unless a record says how it ended. A channel belongs to one target.
Source: spark_audit/record/kinds.py: forwarded; MQTT 3.1.1 section 4.6.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from spark_audit.custody.findings import Custody, Finding, message

Record = Mapping[str, Any]
_Way = tuple[str | None, str]


class Passages:
    """The messages for targets that the trail tells of."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets everything, because records are missing."""
        #: Client, target and sequence of each message that has not gone yet.
        self._waiting: dict[str, tuple[_Way, int]] = {}
        #: The last message that has gone, by client and target.
        self._last: dict[_Way, str] = {}
        self._targets: dict[str, str] = {}

    def put(self, record: Record) -> None:
        """A persistent message for a target was put."""
        if record["persistent"] and record["message_id"] is not None:
            way = record["client"], record["destination"]
            self._waiting[record["message_id"]] = way, record["sequence"]

    def end(self, message_id: str) -> None:
        """A message has ended otherwise."""
        self._waiting.pop(message_id, None)

    def forward(self, record: Record) -> Iterator[Finding]:
        """A message has gone over a channel."""
        message_id, channel = record["message_id"], record["channel"]
        way, _ = self._waiting.pop(message_id, (None, 0))
        if way is None:
            return
        self._last[way] = max(message_id, self._last.get(way, ""))
        target = self._targets.setdefault(channel, way[1])
        if target != way[1]:
            detail = f"it was put for {way[1]}, and went over {channel}, which goes to {target}"
            yield Finding(Custody.PASSAGES, record["sequence"], message(message_id), detail)

    def left_behind(self) -> Iterator[Finding]:
        """Messages that have not gone at the end of the trail, although later ones of their clients have."""
        for message_id, (way, sequence) in self._waiting.items():
            last = self._last.get(way, "")
            if message_id < last:
                detail = f"it never went to {way[1]}, but the later message {last} did"
                yield Finding(Custody.PASSAGES, sequence, message(message_id), detail)
