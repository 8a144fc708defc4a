"""Long reads go to the bridge in slices, for a limited time in each turn of the event loop, so that nobody else waits.

A short read goes to the bridge at once. The connection of a long read, or of packets that are slow to read, waits in a
line. The connections in line hand on one slice each, one after the other, until the time of this turn is used up. Then
the gateway reads and commits all other clients. When many connections without a session are read in one turn, they wait
there too.

Each prefix of addresses has a line of its own, and the prefixes take turns: a slice for each, however many of its
connections wait. So whoever opens fifty connections gets no more slices than a neighbour with one.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, Protocol

#: Seconds for all slices of one turn of the loop, and for one slice: little more than a commit on a quick disk takes.
_TIME_S: Final = 0.0003
#: The same when no other client has sent anything for a while: a turn has its own commit, a slice its unit of work.
#: Turns of 1 ms cost bulk senders a fifth of their rate.
_TIME_AMONG_THEMSELVES_S: Final = 0.004
_WHILE_S: Final = 0.02
#: Turns of the loop for which nobody else was heard either. Behind a pause, of the disk for example, the time says
#: nothing: nobody was read meanwhile.
_TURNS_OF_SILENCE: Final = 20
#: Seconds in which connections without a session hand on their reads at once, all of them together, in one turn. To
#: read a byte takes as long as a usual packet, and anybody may open a thousand connections.
_NEWCOMERS_S: Final = 0.001


class LongRead(Protocol):
    """A connection that has read more bytes than go to the bridge at once."""

    def hand_on_piece(self) -> bool:
        """Hands the next slice to the bridge. Returns whether there is more."""
        ...


class LongReads:
    """The lines of waiting connections. All listeners share them."""

    def __init__(self, commit_now: Callable[[], None]) -> None:
        """`commit_now` commits the packets of all other clients, so that their answers leave first."""
        self._commit_now = commit_now
        #: When the last short read came, by the monotonic clock.
        self.short_read_s = 0.0
        #: Seconds that a slice should take at present.
        self.piece_s = _TIME_S
        #: The short read that came last before the last turn, and how many turns have come since.
        self._heard_s = 0.0
        self._silence = 0
        #: When the time of newcomers in this turn is over; 0: no newcomer was read in it.
        self._newcomers_end_s = 0.0
        #: The lines by prefix, the one first whose turn is next. None is empty.
        self._lines: OrderedDict[bytes, deque[LongRead]] = OrderedDict()
        self._is_due = False

    def newcomer_waits(self, now_s: float) -> bool:
        """Whether the read of a connection without a session must wait in line, because others took the turn's time."""
        if not self._newcomers_end_s:
            self._newcomers_end_s = now_s + _NEWCOMERS_S
            asyncio.get_running_loop().call_soon(self._end_newcomers_turn)
        return now_s > self._newcomers_end_s

    def _end_newcomers_turn(self) -> None:
        self._newcomers_end_s = 0.0

    def join(self, read: LongRead, prefix: bytes) -> None:
        """Hands on slices of a connection from the next turn of the loop on. Do not join again while in line.

        `prefix`: that of its client's address (limits.addresses.prefix_of); all without an address share b"".
        """
        self._lines.setdefault(prefix, deque()).append(read)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        try:
            self._hand_on()
        finally:  # the loop reports an error of one connection, or of a commit, and the other connections go on
            self._is_due = bool(self._lines)
            if self._is_due:
                asyncio.get_running_loop().call_soon(self._serve)

    def _hand_on(self) -> None:
        self._commit_now()
        now_s = time.monotonic()
        self.piece_s = _TIME_S if self._others_send(now_s) else _TIME_AMONG_THEMSELVES_S
        ends_s = now_s + self.piece_s
        while self._lines:
            prefix, line = self._lines.popitem(last=False)
            first = line.popleft()
            if line:
                self._lines[prefix] = line
            if first.hand_on_piece():
                self._lines.setdefault(prefix, deque()).append(first)
            if time.monotonic() > ends_s:
                break

    def _others_send(self, now_s: float) -> bool:
        self._silence = self._silence + 1 if self.short_read_s == self._heard_s else 0
        self._heard_s = self.short_read_s
        return self._silence < _TURNS_OF_SILENCE or now_s < self.short_read_s + _WHILE_S
