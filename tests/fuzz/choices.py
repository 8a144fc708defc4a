"""Values that an input chooses byte by byte: numbers at the edges of machine words, and values of another type.

A compiled function checks the types of what it is given, and keeps small numbers in another form than large ones.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

_Value = TypeVar("_Value")

NUMBERS: Final = (
    *(0, 1, -1, 2, 127, 128, 255, 256, 65_535, 65_536, 268_435_455, 268_435_456),
    *(2**31 - 1, 2**31, -(2**31), 2**32, 2**62 - 1, 2**62, -(2**62), -(2**62) - 1, 2**63 - 1, -(2**63)),
)
#: What SQLite may give for a column whose type was damaged.
COLUMN_VALUES: Final = (None, "", "text", b"", b"\0", b"\xff" * 24, 0.0, 1.5, *NUMBERS)


class Choices:
    """Reads choices off an input. Behind its end every choice is the first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    @property
    def is_over(self) -> bool:
        return self._place >= len(self._data)

    def byte(self) -> int:
        self._place += 1
        return 0 if self._place > len(self._data) else self._data[self._place - 1]

    def of(self, table: Sequence[_Value]) -> _Value:
        return table[self.byte() % len(table)]

    def number(self) -> int:
        """A small number, or one at an edge."""
        chosen = self.byte()
        return chosen if chosen < 128 else NUMBERS[chosen % len(NUMBERS)] + self.byte() % 3 - 1

    def data(self) -> bytes:
        """Up to 255 bytes, behind a byte that says how many."""
        length = self.byte()
        self._place += length
        return self._data[self._place - length : self._place]

    def text(self) -> str:
        """A text, perhaps with a lone surrogate."""
        return self.data().decode("utf-8", "surrogateescape")

    def rest(self) -> bytes:
        """All that is left."""
        place, self._place = self._place, len(self._data)
        return self._data[place:]
