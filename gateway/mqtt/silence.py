"""The silence of a client, as its keep-alive time counts it (MQTT-3.1.2-24, at level 5 MQTT-3.1.2-22).

A whole control packet ends the silence. A client cannot send PINGREQ inside a large packet of its own. So the parts of
that packet end the silence too, as long as the packet makes progress. A byte now and then is no progress.
"""

from typing import Final

#: An incomplete packet makes progress by so many bytes within a second, while more than that are missing; our choice.
PROGRESS_BYTES: Final = 1_000
_SECOND_S: Final = 1.0


class Silence:
    """The silence of one connection. Times are seconds, on any clock that never goes back."""

    __slots__ = ("_part_bytes", "_part_s", "since_s")

    def __init__(self, now_s: float) -> None:
        self.since_s = now_s
        #: Bytes of an incomplete packet, and since when: for a second at most, and too few for progress.
        self._part_bytes = 0
        self._part_s = now_s

    def end(self, now_s: float) -> None:
        """A complete packet has come, or the gateway itself has paused reading."""
        self.since_s = now_s

    def part_came(self, size: int, to_come: int, now_s: float) -> None:
        """Bytes of an incomplete packet have come. `to_come`: the number of missing bytes."""
        if now_s > self._part_s + _SECOND_S:
            self._part_bytes, self._part_s = 0, now_s
        self._part_bytes += size
        if self._part_bytes >= PROGRESS_BYTES:
            self._part_bytes, self._part_s = 0, now_s
            if to_come > PROGRESS_BYTES:
                self.since_s = now_s
