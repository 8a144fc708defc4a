"""The messages that the gateway counted on its queues, against those that are there by the trail.

A stock-take lists the deepest queues, and of each the subscribers with the most messages. If such a list is full,
queues and subscribers that are not in it are not compared.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from spark_audit.custody.findings import Custody, Finding
from spark_audit.custody.lanes import Lanes
from spark_audit.custody.queues import Queues

Record = Mapping[str, Any]
#: Subscribers that a stock-take lists of one queue, and queues.
_MOST_SUBSCRIBERS: Final = 2_000
_MOST_QUEUES: Final = 500


class StockTake:
    """The stock-take of one commit."""

    def __init__(self) -> None:
        self._sequence = 0
        #: How many queues have messages, and their records.
        self._number = 0
        self._queues: dict[str, Record] = {}
        self._depths: dict[str, dict[str, int]] = {}

    @property
    def is_under_way(self) -> bool:
        """Whether it has not been judged yet."""
        return self._sequence > 0

    def add(self, record: Record) -> None:
        """Takes one of its records."""
        self._sequence = record["sequence"]
        if record["event"] == "queues":
            self._number = record["queues"] or 0
        elif record["event"] == "queue":
            self._queues[record["queue"]] = record
        elif record["event"] == "subscribers":
            counted = self._depths.setdefault(record["queue"], {})
            counted.update(_rows(record["listed"]))

    def judged(self, lanes: Lanes, queues: Queues) -> Iterator[Finding]:
        """Compares it, if the commit had one."""
        if self._sequence and len(self._queues) == self._number < _MOST_QUEUES and self._is_complete():
            for queue in lanes.queues if lanes.is_counted else ():
                yield from self._differences(queue, lanes)
            for queue, waiting in lanes.arrived.items():
                yield from self._fewer_than_arrived(queue, len(waiting))
            counted = {name: row["messages"] or 0 for name, row in self._queues.items()}
            yield from queues.count(counted, lanes.queues, self._sequence)
        self.clear()

    def clear(self) -> None:
        """Forgets the stock-take that is under way."""
        self._sequence, self._number, self._queues, self._depths = 0, 0, {}, {}

    def _is_complete(self) -> bool:
        """Whether all rows of its queues are there: a trail may end in the middle of a stock-take."""
        return all(
            len(self._depths.get(name, {})) == min(row["subscribers"] or 0, _MOST_SUBSCRIBERS)
            for name, row in self._queues.items()
        )

    def _fewer_than_arrived(self, queue: str, waiting: int) -> Iterator[Finding]:
        """Messages that came from a target in this run and have not ended are missing."""
        counted = self._queues[queue]["messages"] if queue in self._queues else 0
        if counted < waiting:
            detail = f"{counted} messages were counted, and by the records {waiting} from a target wait"
            yield Finding(Custody.STOCK, self._sequence, f"queue {queue}", detail)

    def _differences(self, queue: str, lanes: Lanes) -> Iterator[Finding]:
        counted, expected = self._depths.get(queue, {}), lanes.depths(queue)
        is_full = len(counted) >= _MOST_SUBSCRIBERS
        for lane in sorted(counted.keys() | expected.keys()):
            if is_full and lane not in counted:
                continue
            number, wanted = counted.get(lane, 0), expected.get(lane, 0)
            if number != wanted:
                owner = lanes.owners.get(lane)
                who = f"client {owner.client}" if owner is not None else f"CorrelId {lane}"
                detail = f"{number} messages were counted for {who}, and by the records {wanted} wait"
                yield Finding(Custody.STOCK, self._sequence, f"queue {queue}", detail)


def _rows(listed: str | None) -> Iterator[tuple[str, int]]:
    """CorrelId and number of messages of each row. A malformed row is left out, so the stock-take is not whole."""
    for row in json.loads(listed or "[]"):
        if row and len(row) > 1 and row[0] is not None and str(row[1]).isdecimal():
            yield row[0], int(row[1])
