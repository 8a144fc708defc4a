"""The acknowledgements that clients are due: PUBACK or PUBREC for what was accepted, PUBCOMP for what PUBREL released.

The gateway sends an acknowledgement when its commit is durable, if the connection is still there. A moment later one
commit notes all acknowledgements that were sent, to all clients together. A missing note is a violation if both hold:

    the connection was there: a later acknowledgement was sent on it, or the client did something on it at least two
    commits later (work that the next commit notes may have been done before)
    the note is late: an acknowledgement of a later commit has been noted

At the end of the gateway's run an acknowledgement may be sent and not noted. A PUBACK is sent once: each PUBLISH of
QoS 1 begins an exchange. PUBREC and PUBCOMP come again if the client repeats its packet.
Source: MQTT 3.1.1 sections 4.3 and 4.6; spark_audit/record/kinds.py.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from spark_audit.custody.findings import Custody, Finding, session
from spark_audit.record import Kind
from spark_audit.reperform.mqtt import EXACTLY_ONCE

Record = Mapping[str, Any]
#: Client and session as a record tells them: one of an earlier version may lack them.
_Who = tuple[Any, Any]
_NAMES: Final = {4: "PUBACK", 5: "PUBREC", 7: "PUBCOMP"}
_PUBACK, _PUBREC, _PUBCOMP = _NAMES
#: Records of acts of a client, which it can do only while it is connected.
ACTS: Final = frozenset(map(str, (Kind.ACCEPTED, Kind.ACKNOWLEDGED, Kind.REPEATED)))
#: Acts that are noted so many commits later were done after the commit.
_LATER_COMMITS: Final = 2
#: Notes come several times a second, so no more exchanges can wait for theirs.
_MOST_WAITING: Final = 1_000_000
#: First and last exchange of a range.
_ENDS: Final = 2


@dataclass(slots=True, eq=False)
class Connection:
    """A connection of a client. `acted`: the last commit in which it did something; `confirmed`: see `Due.number`.

    `is_closed`: the gateway has closed it. What had come by then is still carried out, and shows nothing.
    """

    is_open: bool = True
    is_closed: bool = False
    #: The first exchange that records say to have begun on it; 0 before there is one.
    first: int = 0
    acted: int = 0
    confirmed: int = 0
    #: Acknowledgements that would have been noted by now, if the connection was there.
    doubtful: "list[Due]" = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Due:
    """An acknowledgement that is due, `number` in their order. `commit` is the one that it stands for."""

    who: _Who
    packet_type: int
    exchange: int
    number: int
    commit: int
    sequence: int
    connection: Connection

    @property
    def key(self) -> tuple[_Who, int, int]:
        return self.who, self.packet_type, self.exchange

    @property
    def was_sent(self) -> bool:
        """Whether its connection was there when its commit was durable."""
        connection = self.connection
        has_acted = connection.acted >= self.commit + _LATER_COMMITS and not connection.is_closed
        return connection.confirmed > self.number or has_acted


class Confirmations:
    """The acknowledgements that the trail does not tell of yet."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets everything: the gateway starts, or records are missing."""
        self._connections: dict[_Who, Connection] = {}
        self._due: dict[tuple[_Who, int, int], Due] = {}
        #: The exchanges of each client for which a type of packet is due, ascending.
        self._exchanges: dict[tuple[_Who, int], list[int]] = {}
        self._in_order: deque[Due] = deque()
        self._number = 0
        #: Acknowledgements of commits before this one have been noted.
        self._noted = 0
        self._looked_at: list[Connection] = []

    def change(self, who: _Who) -> None:
        """A session record: its connection, if it had one, is another one or gone."""
        connection = self._connections.pop(who, None)
        if connection is not None:
            connection.is_open = False
            for due in connection.doubtful:
                if self._due.get(due.key) is due:
                    self._settle(due)
            connection.doubtful = []

    def close(self, who: _Who) -> None:
        """The gateway closes the connection: at MQTT 3.1, because it refused a filter."""
        self._connections.setdefault(who, Connection()).is_closed = True

    def act(self, record: Record) -> None:
        """A client did something on its connection."""
        connection = self._connections.get((record["client"], record["session_epoch"]))
        if connection is not None:
            connection.acted = record["batch"]
            self._look_at(connection)

    def accept(self, record: Record) -> None:
        """A PUBLISH was accepted."""
        if record["qos"]:
            self._expect(record, _PUBREC if record["qos"] == EXACTLY_ONCE else _PUBACK)
            connection = self._connections[record["client"], record["session_epoch"]]
            connection.first = connection.first or record["exchange"]

    def release(self, record: Record) -> None:
        """A PUBLISH was put; one of QoS 2, because its PUBREL came."""
        if record["qos"] == EXACTLY_ONCE and record["exchange"] is not None:
            self._expect(record, _PUBCOMP)

    def _expect(self, record: Record, packet_type: int) -> None:
        who = record["client"], record["session_epoch"]
        connection = self._connections.setdefault(who, Connection())
        self._number += 1
        number, commit, sequence = self._number, record["batch"], record["sequence"]
        due = Due(who, packet_type, record["exchange"], number, commit, sequence, connection)
        if due.key not in self._due:
            self._due[due.key] = due
            insort(self._exchanges.setdefault((who, packet_type), []), due.exchange)
            self._in_order.append(due)

    def confirm(self, record: Record, ranges: Iterable[tuple[int, int]]) -> Iterator[Finding]:
        """Acknowledgements were sent, of ranges of exchanges."""
        who, undue = (record["client"], record["session_epoch"]), 0
        for first, last in ranges:
            there = self._within(who, record["packet_type"], first, last)
            if not there and not undue and record["packet_type"] == _PUBACK and self._is_known(who, first):
                undue = first
            for due in there:
                self._settle(due)
                due.connection.confirmed = max(due.connection.confirmed, due.number)
                self._noted = max(self._noted, due.commit)
                self._look_at(due.connection)
        if undue:
            detail = f"PUBACK of exchange {undue} was sent, and it was not due or had been sent before"
            yield Finding(Custody.CONFIRMATIONS, record["sequence"], session(*who), detail)

    def _is_known(self, who: _Who, exchange: int) -> bool:
        """Whether records tell of everything since a connection of a client on which an exchange may have begun."""
        connection = self._connections.get(who)
        return connection is not None and 0 < connection.first <= exchange

    def _within(self, who: _Who, packet_type: int, first: int, last: int) -> list[Due]:
        """The acknowledgements that are due within a range. The range may be longer than all of them."""
        exchanges = self._exchanges.get((who, packet_type), [])
        found = exchanges[bisect_left(exchanges, first) : bisect_right(exchanges, last)]
        return [self._due[who, packet_type, exchange] for exchange in found]

    def _settle(self, due: Due) -> None:
        """It is due no longer."""
        del self._due[due.key]
        exchanges = self._exchanges[due.who, due.packet_type]
        del exchanges[bisect_left(exchanges, due.exchange)]
        if not exchanges:
            del self._exchanges[due.who, due.packet_type]

    def _look_at(self, connection: Connection) -> None:
        if connection.doubtful:
            self._looked_at.append(connection)

    def judged(self) -> Iterator[Finding]:
        """The acknowledgements that are missing when a commit is over."""
        looked_at, self._looked_at = self._looked_at, []
        for connection in looked_at:
            doubtful, connection.doubtful = connection.doubtful, []
            for due in doubtful:
                yield from self._judged(due)
        order = self._in_order
        while order and (order[0].commit < self._noted or len(order) > _MOST_WAITING):
            yield from self._judged(order.popleft())

    def _judged(self, due: Due) -> Iterator[Finding]:
        """Judges one that would have been noted by now."""
        if self._due.get(due.key) is not due:
            return
        if not due.was_sent and due.connection.is_open:
            due.connection.doubtful.append(due)
            return
        self._settle(due)
        if due.was_sent:
            name = _NAMES[due.packet_type]
            detail = f"{name} of exchange {due.exchange} was due, and no record says that it was sent"
            yield Finding(Custody.CONFIRMATIONS, due.sequence, session(*due.who), detail)


def ranges_of(listed: str | None) -> Iterator[tuple[int, int]]:
    """The ranges of a record. Another control reports a malformed range."""
    for pair in orjson.loads(listed or "[]"):
        if isinstance(pair, list) and len(pair) == _ENDS:
            first, last = pair
            if isinstance(first, int) and isinstance(last, int):
                yield first, last
