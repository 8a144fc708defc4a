"""How long commits took, as a histogram of plain numbers: whoever shows it reads them when it likes."""

from bisect import bisect_left
from typing import Final

#: Upper bounds in seconds: an fsync takes some 50 microseconds on fast disks, and seconds on ones in trouble.
BOUNDS_S: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class CommitTimes:
    """`counts` has the commits of each bound that were above the one before; the last are above all."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.sum_s += seconds
