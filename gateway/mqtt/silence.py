"""Since when a client is silent, as its keep-alive counts (MQTT-3.1.2-24, at level 5 MQTT-3.1.2-22).

A whole control packet ends the silence. A client cannot send PINGREQ inside a large packet of its own, so the parts of
that packet end it too, while it makes progress. A byte now and then does not.
"""

from typing import Final

#: A packet makes progress where so much of it comes within a second and more than that is still to come; our choice.
PROGRESS_BYTES: Final = 1_000
_SECOND_S: Final = 1.0


class Silence:
    """The silence of one connection; times in seconds, on any clock that never goes back."""

    __slots__ = ("_part_bytes", "_part_s", "since_s")

    def __init__(self, now_s: float) -> None:
        self.since_s = now_s
        #: What has come of an unfinished packet since when: a second at most, and less than progress needs.
        self._part_bytes = 0
        self._part_s = now_s

    def end(self, now_s: float) -> None:
        """A whole packet has come, or it is the gateway that did not read."""
        self.since_s = now_s

    def part_came(self, size: int, to_come: int, now_s: float) -> None:
        """So many bytes of a packet have come that is not finished; `to_come`: how many more there will be."""
        if now_s > self._part_s + _SECOND_S:
            self._part_bytes, self._part_s = 0, now_s
        self._part_bytes += size
        if self._part_bytes >= PROGRESS_BYTES:
            self._part_bytes, self._part_s = 0, now_s
            if to_come > PROGRESS_BYTES:
                self.since_s = now_s
