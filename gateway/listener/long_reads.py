"""Long reads of all connections, in pieces: a share of each turn of the event loop, so that nobody holds up the others.

A read that is short goes to the bridge at once. Who sends much, or what is dear to read, waits in line with his like:
each gets a piece in turn, as long as the share lasts, and the others are read and committed between the shares.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

#: What the pieces of one turn of the loop may take together, and what one piece may, seconds: little more than a commit
#: on a quick disk.
_SHARE_S: Final = 0.0003
#: The same where nobody else has sent anything for a while: a turn has its own commit, and a piece its unit of work.
_SHARE_AMONG_THEMSELVES_S: Final = 0.004
_WHILE_S: Final = 0.02


class LongRead(Protocol):
    """A connection of which more has been read than goes to the bridge at once."""

    def hand_on_piece(self) -> bool:
        """Hands the next piece to the bridge; whether there is more."""
        ...


class LongReads:
    """The line of those who wait; one for all listeners, on the event loop."""

    def __init__(self, commit_now: Callable[[], None]) -> None:
        """`commit_now`: what the others have asked for is answered before a share begins."""
        self._commit_now = commit_now
        #: When the last short read came, by the monotonic clock.
        self.short_read_s = 0.0
        #: What a piece should take at present, seconds.
        self.piece_s = _SHARE_S
        self._line: deque[LongRead] = deque()
        self._is_due = False

    def join(self, read: LongRead) -> None:
        """Its pieces are handed on from the next turn of the loop on; who is in line does not join again."""
        self._line.append(read)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        try:
            self._hand_on()
        finally:  # an error in one of them, or in a commit, is told, and the others go on
            self._is_due = bool(self._line)
            if self._is_due:
                asyncio.get_running_loop().call_soon(self._serve)

    def _hand_on(self) -> None:
        self._commit_now()
        now_s = time.monotonic()
        others_send = now_s < self.short_read_s + _WHILE_S
        self.piece_s = _SHARE_S if others_send else _SHARE_AMONG_THEMSELVES_S
        ends_s = now_s + self.piece_s
        while self._line:
            first = self._line.popleft()
            if first.hand_on_piece():
                self._line.append(first)
            if time.monotonic() > ends_s:
                break
