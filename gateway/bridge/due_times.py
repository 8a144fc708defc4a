"""When something falls due for a session: a heap of moments, in which those that count no more leave stale entries."""

from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final

from gateway.bridge.sessions import ClientSession

#: The heap is made anew when it has twice as many entries as there are sessions with a moment, and this many more.
_STALE_ENTRIES: Final = 64


class DueTimes:
    """One moment for each session, microseconds since 1970."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, ClientSession]] = []
        self._moments: dict[ClientSession, int] = {}
        self._tie_breaker = count()

    def __len__(self) -> int:
        """Sessions that have a moment."""
        return len(self._moments)

    def set(self, session: ClientSession, due_us: int) -> None:
        """The session's moment from now on, in the place of another."""
        self._moments[session] = due_us
        heappush(self._heap, (due_us, next(self._tie_breaker), session))
        if len(self._heap) > 2 * len(self._moments) + _STALE_ENTRIES:
            self._heap = [entry for entry in self._heap if self._counts(entry)]
            heapify(self._heap)

    def discard(self, session: ClientSession) -> None:
        """Nothing falls due for the session any more."""
        self._moments.pop(session, None)

    def take(self, now_us: int) -> ClientSession | None:
        """The session for which something has been due for longest, which has no moment then; None: nothing is due."""
        while self._heap and self._heap[0][0] <= now_us:
            entry = heappop(self._heap)
            if self._counts(entry):
                self.discard(entry[2])
                return entry[2]
        return None

    def _counts(self, entry: tuple[int, int, ClientSession]) -> bool:
        return self._moments.get(entry[2]) == entry[0]
