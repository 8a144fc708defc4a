"""Tallies: what strangers may cause in any number, counted for the audit trail.

A record for each would let a few bytes of a stranger write 400 bytes of trail. So a tally counts by a key for five
minutes. Then the keys with the highest numbers have a note each, and all others are counted together. Memory and trail
are bounded whatever comes. A `TallyWithFirsts` also tells the first of each key at once, as many as have a note.

What is counted and not yet noted stands in one row of the store, which is written every five seconds at most. So a
`kill -9` loses what the last five seconds brought, and the next start notes the others. The row (StateKind.GATEWAY) is
deleted in the unit of work that has the notes. It has the keys that get a note:

    msgpack [version, when counting began (microseconds since 1970), [[*key, number], ...]]

In version 1 a key lacks the code that clients were told, its last part.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar, cast

import ormsgpack

from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import Note, StateKind, UnitOfWork
from mq_adapters.reasons import StoreError

#: How long is counted together, microseconds.
INTERVAL_US: Final = 300_000_000
#: After how long the store has what is counted, microseconds.
KEPT_AFTER_US: Final = 5_000_000
_VERSION: Final = 2
_READABLE: Final = (1, 2)

#: A tuple: its parts are packed one by one.
Key = TypeVar("Key", bound=tuple[Any, ...])


def code_told(code: int) -> bytes:
    """A code that clients were told, as a note has it; 0: they were told none."""
    return bytes([code]) if code else b""


class Tally(ABC, Generic[Key]):
    """Counts by key. A subclass says how a key is packed, which keys count together, and what a note says."""

    def __init__(self, *, row_key: bytes, words: str, records: int, kept: int) -> None:
        """`words` name what is counted. At most `records` keys have a note, and `kept` keys are counted one by one."""
        self.row_key, self._words = row_key, words
        self._records, self._kept = records, kept
        self._counted: Counter[Key] = Counter()
        self._since_us = 0
        #: Since when the row in the store lacks something; 0: it has everything. And whether there is a row.
        self._unkept_us = 0
        self._has_row = False
        #: Whether what is counted is of a run that was killed.
        self._is_left = False

    @abstractmethod
    def _packed(self, key: Key) -> list[object]:
        """The parts of a key, for the row."""

    @abstractmethod
    def _unpacked(self, parts: list[Any]) -> Key:
        """The key of these parts. Raises ValueError, TypeError or KeyError for others."""

    @abstractmethod
    def _merged(self, key: Key) -> Key:
        """The key under which a key is counted together with others. There are few such keys."""

    @abstractmethod
    def _note(self, key: Key, number: int, now_us: int) -> Note:
        """The note of what was counted under a key since `_since_us`."""

    def load(self, row: bytes | None) -> None:
        """Takes up what a run that was killed had counted, from the value of the row."""
        if row is None:
            return
        try:
            version, self._since_us, counted = cast(list[Any], ormsgpack.unpackb(row))
            if version not in _READABLE:
                raise ValueError(f"version {version} of the row, and this program reads up to {_VERSION}")
            for *parts, number in counted:
                self._counted[self._unpacked(parts)] += number
        except (ValueError, TypeError, KeyError) as error:
            hint = "use the program that wrote it, or a later one"
            raise StoreError(f"read the {self._words}", str(error), hint) from error
        self._has_row = self._is_left = True

    def write(self, unit: UnitOfWork, now_us: int, *, is_last: bool = False) -> bool:
        """Adds to a unit of work what the trail or the store should have by now. Returns whether there is something."""
        if self.is_due(now_us, is_last=is_last):
            unit.notes += self.notes(now_us)
            unit.notes_are_due = True
            if self._has_row:
                unit.delete_state(StateKind.GATEWAY, self.row_key)
            self._has_row = self._is_left = False
            return True
        if not self._unkept_us or self._unkept_us <= now_us < self._unkept_us + KEPT_AFTER_US:
            return False
        rows = [[*self._packed(key), number] for key, number in self._sums()]
        unit.set_state(StateKind.GATEWAY, self.row_key, ormsgpack.packb([_VERSION, self._since_us, rows]))
        self._has_row, self._unkept_us = True, 0
        return True

    def is_due(self, now_us: int, *, is_last: bool = False) -> bool:
        """Whether the trail should have what was counted; `is_last`: the gateway stops. A clock may be set back."""
        is_over = is_last or self._is_left or not self._since_us <= now_us < self._since_us + INTERVAL_US
        return bool(self._counted) and is_over

    def notes(self, now_us: int) -> Iterator[Note]:
        """The notes of what was counted, which is forgotten then."""
        sums = list(self._sums())
        self._counted, self._unkept_us = Counter(), 0
        for key, number in sums:
            yield self._note(key, number, now_us)

    def _add(self, key: Key, now_us: int, number: int = 1) -> None:
        if not self._counted:
            self._since_us = now_us
        if not self._unkept_us:
            self._unkept_us = now_us
        if key not in self._counted and len(self._counted) >= self._kept:
            key = self._merged(key)
        self._counted[key] += number

    def _sums(self) -> Iterator[tuple[Key, int]]:
        """The keys with the highest numbers one by one, then all others together."""
        rest: Counter[Key] = Counter()
        for place, (key, number) in enumerate((+self._counted).most_common()):
            if place < self._records and key != self._merged(key):
                yield key, number
            else:
                rest[self._merged(key)] += number
        yield from rest.items()


class TallyWithFirsts(Tally[Key]):
    """Tells the first of each key whole, in the next unit of work, and counts further ones."""

    def __init__(self, *, row_key: bytes, words: str, records: int, kept: int) -> None:
        super().__init__(row_key=row_key, words=words, records=records, kept=kept)
        #: First ones that the next unit of work tells, and how many there were in this interval.
        self._firsts: list[Note] = []
        self._told = 0

    def _add_or_tell(self, key: Key, now_us: int, first: Callable[[], Note]) -> None:
        """Adds to a key. `first` makes the note of its first one."""
        is_first = key not in self._counted and self._told < self._records
        if is_first:
            self._told += 1
            self._firsts.append(first())
        self._add(key, now_us, 0 if is_first else 1)

    def write(self, unit: UnitOfWork, now_us: int, *, is_last: bool = False) -> bool:
        firsts, self._firsts = self._firsts, []
        if self.is_due(now_us, is_last=is_last):
            self._told = 0
        has_written = super().write(unit, now_us, is_last=is_last)
        if firsts:
            unit.notes[:0] = firsts
            unit.notes_are_due = True
        return has_written or bool(firsts)


class Tallies:
    """All tallies of the gateway, which are written together."""

    def __init__(self, engine: Engine, *tallies: Tally[Any]) -> None:
        self._engine = engine
        self._tallies = list(tallies)

    def add(self, tally: Tally[Any]) -> None:
        """One more, after `load`."""
        tally.load(self._engine.state(StateKind.GATEWAY, tally.row_key))
        self._tallies.append(tally)

    def load(self) -> None:
        """Takes up what a run that was killed had counted."""
        for tally in self._tallies:
            tally.load(self._engine.state(StateKind.GATEWAY, tally.row_key))

    def write(self, now_us: int, *, is_last: bool) -> None:
        """Submits what the trail or the store should have by now; `is_last`: the gateway stops."""
        unit = self._engine.begin()
        written = [tally.write(unit, now_us, is_last=is_last) for tally in self._tallies]
        if any(written):
            self._engine.submit(unit)
