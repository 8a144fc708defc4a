"""Lanes: the places of a queue's available messages with one CorrelId, first one first.

A place is a number that orders the messages of a queue; queue.py says how it is made.
"""

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from heapq import merge
from typing import Final

#: A place is (9 - priority) << BAND_BITS, and the sequence number: 89 years at 100,000 messages a second.
BAND_BITS: Final = 48
#: The bits of a place that are the sequence number.
SEQUENCE_MASK: Final = (1 << BAND_BITS) - 1


class Lane:
    """The available messages of a queue with one CorrelId, by their places, first one first."""

    __slots__ = ("_gone", "_numbers")

    def __init__(self) -> None:
        self._numbers: deque[int] = deque()
        self._gone: set[int] = set()

    def __len__(self) -> int:
        return len(self._numbers) - len(self._gone)

    def __iter__(self) -> Iterator[int]:
        return self._remaining(self._numbers) if self._gone else iter(self._numbers)

    def __reversed__(self) -> Iterator[int]:
        return self._remaining(reversed(self._numbers))

    def behind(self, place: int, count: int) -> list[int]:
        """The first `count` numbers behind one, which need not be there itself."""
        found: list[int] = []
        numbers = self._numbers
        if not numbers or numbers[-1] <= place:
            return found
        for index in range(bisect_right(numbers, place), len(numbers)):
            number = numbers[index]
            if number not in self._gone:
                found.append(number)
                if len(found) == count:
                    break
        return found

    def _remaining(self, numbers: Iterable[int]) -> Iterator[int]:
        for number in numbers:
            if number not in self._gone:
                yield number

    def append(self, number: int) -> None:
        """Adds a number at its place: the end, unless its unit of work was open for longer than others."""
        if self._numbers and number < self._numbers[-1]:
            insort(self._numbers, number)
        else:
            self._numbers.append(number)

    def head(self) -> int:
        """The oldest number, or 0 for an empty lane."""
        numbers, gone = self._numbers, self._gone
        while numbers:
            if numbers[0] not in gone:
                return numbers[0]
            gone.discard(numbers.popleft())
        return 0

    def oldest(self) -> int:
        """The lowest number, or 0 for an empty lane."""
        return self.head()

    def pop(self) -> int:
        """Takes the oldest number off, or returns 0."""
        number = self.head()
        if number:
            self._numbers.popleft()
        return number

    def pass_by(self, moments: dict[int, int], now_us: int) -> list[int]:
        """Takes off the first numbers as long as their messages have expired; see Queue.pass_by."""
        numbers, gone = self._numbers, self._gone
        passed: list[int] = []
        while numbers:
            number = numbers[0]
            if number in gone:
                gone.discard(number)
            else:
                sequence = number & SEQUENCE_MASK
                if not 0 < moments.get(sequence, 0) <= now_us:
                    break
                passed.append(sequence)
            numbers.popleft()
        return passed

    def discard(self, number: int) -> None:
        """Takes a number out of the middle."""
        if self.head() == number:
            self._numbers.popleft()
        elif self._numbers and self._numbers[-1] == number:
            self._numbers.pop()
        else:
            self._gone.add(number)

    def give_back(self, numbers: Collection[int]) -> None:
        """Puts numbers that were taken back at their places."""
        back = sorted(number for number in numbers if number not in self._gone)
        self._gone.difference_update(numbers)
        older: list[int] = []
        while back and self._numbers and self._numbers[0] < back[-1]:
            older.append(self._numbers.popleft())
        self._numbers.extendleft(reversed(list(merge(older, back))))


class PriorityLane:
    """A lane of a queue with MSGDLVSQ(PRIORITY): a Lane for each priority that occurs."""

    __slots__ = ("_bands",)

    def __init__(self) -> None:
        self._bands: dict[int, Lane] = {}

    def __len__(self) -> int:
        return sum(map(len, self._bands.values()))

    def __iter__(self) -> Iterator[int]:
        for band in sorted(self._bands):
            yield from self._bands[band]

    def __reversed__(self) -> Iterator[int]:
        for band in sorted(self._bands, reverse=True):
            yield from reversed(self._bands[band])

    def behind(self, place: int, count: int) -> list[int]:
        """As of a Lane, in the order of priorities."""
        found: list[int] = []
        for band in sorted(self._bands):
            if len(found) < count and band >= place >> BAND_BITS:
                found += self._bands[band].behind(place, count - len(found))
        return found

    def append(self, number: int) -> None:
        band = number >> BAND_BITS
        lane = self._bands.get(band)
        if lane is None:
            lane = self._bands[band] = Lane()
        lane.append(number)

    def head(self) -> int:
        """The first number, or 0 for an empty lane."""
        bands = self._bands
        for band in bands if len(bands) == 1 else sorted(bands):
            number = bands[band].head()
            if number:
                return number
        return 0

    def oldest(self) -> int:
        """The lowest sequence number of any priority, or 0 for an empty lane."""
        return min((lane.head() & SEQUENCE_MASK for lane in self._bands.values()), default=0)

    def pop(self) -> int:
        """Takes the first number off, or returns 0."""
        number = self.head()
        if number:
            band = number >> BAND_BITS
            lane = self._bands[band]
            lane.pop()
            if not lane.head():
                del self._bands[band]
        return number

    def pass_by(self, moments: dict[int, int], now_us: int) -> list[int]:
        """As of a Lane, in every priority."""
        passed = [sequence for band in self._bands.values() for sequence in band.pass_by(moments, now_us)]
        if passed:
            self._bands = {priority: band for priority, band in self._bands.items() if band.head()}
        return passed

    def discard(self, number: int) -> None:
        """Takes a number out of the middle."""
        self._bands[number >> BAND_BITS].discard(number)

    def give_back(self, numbers: Collection[int]) -> None:
        """Puts numbers that were taken back at their places."""
        for band in {number >> BAND_BITS for number in numbers}:
            back = [number for number in numbers if number >> BAND_BITS == band]
            self._bands.setdefault(band, Lane()).give_back(back)
