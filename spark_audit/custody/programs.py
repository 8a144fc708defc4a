"""Sessions of MQ programs: they begin and end once, and what a program puts and gets lies within.

Each connection of a program has a number. The numbers rise, and begin anew at each start of the gateway. Records of its
work have that number, and the operator that its session names. What the broker takes of a program may be told after its
end, because the gateway ends its subscriptions for it. Source: spark_audit/record/kinds.py.

A run may have any number of sessions. So one that has ended is forgotten after KEPT_COMMITS commits. Its number tells
that it was there: it is not higher than the highest so far. If a command comes later still, nobody asks whose it is.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_audit.custody.findings import Custody, Finding

Record = Mapping[str, Any]
#: So many commits a session is remembered after its end. The commands for its subscriptions come within a few.
KEPT_COMMITS: Final = 100
_CONNECTED: Final = "connected"
#: MQRC_NOT_AUTHORIZED, the answer to every program that may not connect.
_NOT_AUTHORIZED: Final = 2035
#: Refusals that end a connection without an answer to MQCONN.
_WITHOUT_ANSWER: Final = frozenset({"channel", "limit"})
#: Refusals that a rule decides.
_BY_RULE: Final = frozenset({"channel", "limit", "not_allowed"})


@dataclass(slots=True)
class Program:
    """A program's session, and the operator that it names."""

    operator: str | None
    is_connected: bool = True


class Programs:
    """The sessions of this run of the gateway."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets everything, because records are missing."""
        self._of: dict[int, Program] = {}
        #: Sessions that have ended: the commit of the end, and the number. The oldest is the first.
        self._ended: deque[tuple[int, int]] = deque()
        #: Every session from the first number to the last has been told since its beginning. 0, 0: none.
        self._first = self._last = 0
        self._commit = 0
        #: Whether this run's records are known from its start.
        self._is_whole = False

    def start(self) -> None:
        """The gateway starts. Sessions do not outlast it."""
        self.clear()
        self._is_whole = True

    def begin(self) -> None:
        """A commit begins."""
        self._commit += 1
        while self._ended and self._ended[0][0] <= self._commit - KEPT_COMMITS:
            _, number = self._ended.popleft()
            if number in self._of and not self._of[number].is_connected:
                del self._of[number]

    def change(self, record: Record) -> Iterator[Finding]:
        """A session begins or ends."""
        number, found = record["program"], self._of.get(record["program"])
        if record["event"] == _CONNECTED:
            if number <= self._last:
                yield _found(record, "it connects, and it has connected before, or a higher number has")
            self._first, self._last = self._first or number, max(number, self._last)
            self._of[number] = Program(record["operator"])
            return
        if found is None:
            if self._knows(number):
                yield _found(record, "its session ends, and no record tells its beginning, or it has ended before")
            return
        if not found.is_connected:
            yield _found(record, "its session ends a second time")
        else:
            self._ended.append((self._commit, number))
        if record["operator"] != found.operator:
            yield _found(record, "at its end it is somebody else than at its beginning")
        found.is_connected = False

    def _knows(self, number: int) -> bool:
        """Whether the beginning of a session with this number must have been told."""
        return self._is_whole or 0 < self._first <= number <= self._last

    def work(self, record: Record, *, may_be_late: bool = False) -> Iterator[Finding]:
        """A program put or got a message, or the broker took a command of it."""
        number = record["program"]
        if number is None:
            return
        found = self._of.get(number)
        if found is None:
            if self._knows(number) and not (may_be_late and number <= self._last):
                yield _found(record, "it acts, and no record tells that it connected, or it has ended")
        elif record["operator"] != found.operator:
            yield _found(record, f"it acts as {record['operator']}, and it connected as {found.operator}")
        elif not found.is_connected and not may_be_late:
            yield _found(record, "it acts after the end of its session")

    def refuse(self, record: Record, rule: str | None) -> Iterator[Finding]:
        """Programs were refused."""
        event, code = record["event"], record["reason_code"]
        if (code is None) is not (event in _WITHOUT_ANSWER) or code not in (None, _NOT_AUTHORIZED):
            yield _found(record, f"refused as {event}, and MQCONN is answered with {code or 'nothing'}")
        if bool(rule) is not (event in _BY_RULE):
            yield _found(record, f"refused as {event}, and the rule is {rule or 'none'}")


def _found(record: Record, detail: str) -> Finding:
    number = record["program"]
    subject = "programs" if number is None else f"program {number}"
    return Finding(Custody.PROGRAMS, record["sequence"], subject, detail)
