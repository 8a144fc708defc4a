"""When messages expire: a heap of moments, in which messages that went in other ways leave stale entries."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Final

from mq_adapters.embedded.queue import Queue

#: The heap is made anew when it has twice as many entries as there are messages that expire, and this many more.
_STALE_EXPIRIES: Final = 64


class Expiries:
    """The committed messages of a queue manager that have an expiry."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Queue]] = []
        self._sequences: set[int] = set()

    def add(self, expires_us: int, sequence: int, queue: Queue) -> None:
        """A message that expires at that moment, microseconds since 1970, became available, perhaps again."""
        self._sequences.add(sequence)
        heappush(self._heap, (expires_us, sequence, queue))
        if len(self._heap) > 2 * len(self._sequences) + _STALE_EXPIRIES:
            self._heap = [entry for entry in self._heap if entry[1] in self._sequences]
            heapify(self._heap)

    def discard(self, sequence: int) -> None:
        """The message is no more."""
        self._sequences.discard(sequence)

    def due(self, now_us: int) -> Iterator[tuple[int, Queue]]:
        """Takes off what is due: sequence number and queue; some may have gone, or be taken just now."""
        while self._heap and self._heap[0][0] <= now_us:
            _, sequence, queue = heappop(self._heap)
            yield sequence, queue
