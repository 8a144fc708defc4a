"""The messages that the gateway counted on its queues, against those that are there by the trail.

A stock-take lists the deepest queues, and of each the subscribers with the most messages. If such a list is full,
queues and subscribers that are not in it are not compared. Its records say how many others there are, and their sums
must agree: a stock-take with a record less or changed would be compared with nothing.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
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
        #: Messages in all, None before the record that says it; and what is wrong with its records.
        self._total: int | None = None
        self._wrong: list[str] = []
        #: Records were missing, perhaps the first of this one.
        self._is_cut = False

    @property
    def is_under_way(self) -> bool:
        """Whether it has not been judged yet."""
        return self._sequence > 0

    def add(self, record: Record) -> None:
        """Takes one of its records."""
        self._sequence = record["sequence"]
        if record["event"] == "queues":
            if self._total is not None:
                self._wrong.append("it begins twice")
            self._number, self._total = record["queues"] or 0, record["messages"] or 0
        elif record["event"] == "queue":
            if record["queue"] in self._queues:
                self._wrong.append(f"queue {record['queue']} is counted twice")
            self._queues[record["queue"]] = record
        elif record["event"] == "subscribers":
            self._add_rows(record, list(_rows(record["listed"])))

    def _add_rows(self, record: Record, rows: list[tuple[str, int]]) -> None:
        counted, queue = self._depths.setdefault(record["queue"], {}), record["queue"]
        if any(lane in counted for lane, _ in rows):
            self._wrong.append(f"a subscriber of queue {queue} is counted twice")
        if (in_rows := sum(number for _, number in rows)) != record["messages"]:
            self._wrong.append(f"{record['messages']} messages are of subscribers of queue {queue}, in rows {in_rows}")
        counted.update(rows)

    def judged(self, lanes: Lanes, queues: Queues, *, is_whole: bool = True) -> Iterator[Finding]:
        """Compares it, if the commit had one. `is_whole`: the trail goes on behind it, so all its records came."""
        if self._sequence and is_whole and not (self._is_cut and self._total is None):
            for wrong in (*self._wrong, *self._disagreements()):
                yield Finding(Custody.STOCK, self._sequence, "stock-take", wrong)
        if self._sequence and len(self._queues) == self._number < _MOST_QUEUES and self._is_complete():
            for queue in lanes.queues if lanes.is_counted else ():
                yield from self._differences(queue, lanes)
            for queue, waiting in lanes.arrived.items():
                yield from self._fewer_than_arrived(queue, len(waiting))
            counted = {name: row["messages"] or 0 for name, row in self._queues.items()}
            yield from queues.count(counted, lanes.queues, self._sequence)
        if self._sequence:
            self._is_cut = False
        self._forget()

    def _forget(self) -> None:
        self._sequence, self._number, self._queues, self._depths = 0, 0, {}, {}
        self._total, self._wrong = None, []

    def clear(self) -> None:
        """Forgets the stock-take that is under way: records are missing, and they may be its own."""
        self._forget()
        self._is_cut = True

    def _disagreements(self) -> Iterator[str]:
        """Where its records say something else about each other."""
        if self._total is None:
            yield "the record with its sums is missing"
            return
        yield from _compared(
            "queues", len(self._queues), self._number, _MOST_QUEUES, self._total, self._messages(self._queues.values())
        )
        for queue in self._depths.keys() - self._queues.keys():
            yield f"queue {queue} has subscribers, and is not counted"
        for queue, row in self._queues.items():
            there = self._depths.get(queue, {})
            what, wanted = f"subscribers of queue {queue}", row["subscribers"] or 0
            yield from _compared(what, len(there), wanted, _MOST_SUBSCRIBERS, row["messages"] or 0, sum(there.values()))

    @staticmethod
    def _messages(rows: Iterable[Record]) -> int:
        return sum(row["messages"] or 0 for row in rows)

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


def _compared(what: str, rows: int, wanted: int, most: int, messages: int, in_rows: int) -> Iterator[str]:
    """What is wrong with a list of so many rows with so many messages, where `wanted` and `messages` are said."""
    if rows != min(wanted, most):
        yield f"{wanted} {what} are said to have messages, and {rows} have a row"
    elif in_rows > messages or (wanted <= most and in_rows != messages):
        yield f"{messages} messages are said to be of {what}, and in their rows {in_rows} are"


def _rows(listed: str | None) -> Iterator[tuple[str, int]]:
    """CorrelId and number of messages of each row. A malformed row is left out, so the stock-take is not whole."""
    for row in json.loads(listed or "[]"):
        if row and len(row) > 1 and row[0] is not None and str(row[1]).isdecimal():
            yield row[0], int(row[1])
