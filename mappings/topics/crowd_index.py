"""Patterns past the bound on shapes, compared with a topic a few thousand at a time, as bits of large integers.

A store may have more shapes than the index of levels takes steps for (level_index.py): an earlier version wrote it, an
operator lowered the limit, or defined subscriptions without a gateway. No acknowledged subscription may end for that,
and a step for each of its shapes would stop everybody else.

The theory. Each pattern has a bit in a block of patterns. For each level one integer has the bits of the patterns that
take any text there, by `+` or because their `#` stands in front, and one for each text the bits of those that name it.
A topic's level keeps the patterns with either bit: one OR and one AND for all patterns of the block (Baeza-Yates and
Gonnet, "A new approach to text searching"). After the last level the bits that are left are the patterns that match.
So all states of the search, which are 2^k in a tree, are merged into one integer.

The bound. Whatever patterns and topics a stranger chooses, a look-up takes two operations for each level of each block
of `BLOCK` patterns, some 300 ns with their look-ups. For a level of one pattern that is less than a ten-thousandth of a
microsecond, and the limits on filters and levels bound their number. A block is left as soon as no pattern is. What
matches costs up to 1 us for each pattern, a third of it when other topics matched the same ones before.

Memory: an entry of a dictionary for each text of a level of a block, with up to `BLOCK` bits if several patterns have
it: 100 to 700 bytes. That is more than in the index of levels, and why honest patterns stand there.
"""

from collections.abc import Sequence
from functools import reduce
from itertools import compress
from operator import or_
from typing import Final, Generic, TypeVar

from mappings.topics.shapes import Found, Value, Values, with_value, without_value

#: Patterns of a block. More would take more memory for a text that two patterns name, fewer more look-ups.
BLOCK: Final = 4_096
#: Up to so many patterns of a block are read off bit by bit.
_FEW: Final = 8
Key = TypeVar("Key", str, int)
_AS_SELECTORS: Final = bytes.maketrans(b"01", b"\x00\x01")


class Block(Generic[Value]):
    """Up to `BLOCK` patterns."""

    __slots__ = ("_any", "_free", "_named", "_of_length", "_open", "_right_length", "values")

    def __init__(self) -> None:
        #: The bits of the patterns that take any text at a level, and of those that name one. A negative number is the
        #: complement of the place of one pattern, which is all that most texts have.
        self._any = [0]
        self._named: list[dict[str, int]] = [{}]
        #: The bits of the patterns that `#` ends, and of all patterns by number of levels.
        self._open = 0
        self._of_length: dict[int, int] = {}
        #: The bits of the patterns that may match a topic of so many levels, until a pattern comes or goes.
        self._right_length: dict[int, int] = {}
        self._free: list[int] = []
        #: The values by place.
        self.values: list[Values[Value]] = []

    @property
    def is_full(self) -> bool:
        return len(self.values) >= BLOCK and not self._free

    @property
    def is_empty(self) -> bool:
        return not self._of_length

    def add(self, levels: Sequence[str], *, is_open: bool) -> int:
        """A new pattern without values; its place."""
        if self._free:
            place = self._free.pop()
        else:
            place = len(self.values)
            self.values.append(())
        bit = 1 << place
        while len(self._any) < len(levels):
            self._any.append(self._open)
            self._named.append({})
        for each, level in enumerate(levels):
            if level == "+":
                self._any[each] |= bit
            else:
                others = self._named[each].get(level)
                self._named[each][level] = ~place if others is None else _bits(others) | bit
        if is_open:
            self._open |= bit
            self._any[len(levels) :] = [others | bit for others in self._any[len(levels) :]]
        self._of_length[len(levels)] = self._of_length.get(len(levels), 0) | bit
        self._right_length.clear()
        return place

    def remove(self, place: int, levels: Sequence[str]) -> None:
        """The pattern at a place is gone."""
        rest = ~(1 << place)
        self._open &= rest
        self._any = [others & rest for others in self._any]
        for level, named in zip(levels, self._named, strict=False):
            if level != "+":
                _set(named, level, _bits(named[level]) & rest)
        _set(self._of_length, len(levels), self._of_length[len(levels)] & rest)
        self._right_length.clear()
        self.values[place] = ()
        self._free.append(place)

    def find(self, levels: Sequence[str], found: Found[Value], *, hides: bool) -> None:
        """Adds the values of each pattern that matches these levels. `hides`: none that begins with a wildcard does."""
        length = min(len(levels), len(self._any) + 1)  # whatever is longer than all patterns is alike
        left = self._right_length.get(length)
        if left is None:
            left = self._remembered_right_length(length)
        if hides:
            left &= ~self._any[0]
        for level, any_text, named in zip(levels, self._any, self._named, strict=False):
            bits = named.get(level, 0)
            left &= any_text | (bits if bits >= 0 else 1 << ~bits)
            if not left:
                return
        self._read_off(left, found)

    def _read_off(self, left: int, found: Found[Value]) -> None:
        if left.bit_count() > _FEW:
            found += compress(self.values, f"{left:b}"[::-1].encode().translate(_AS_SELECTORS))
            return
        while left:
            last = left.bit_length() - 1
            found.append(self.values[last])
            left ^= 1 << last

    def _remembered_right_length(self, levels: int) -> int:
        shorter = (bits for length, bits in self._of_length.items() if length < levels)
        open_ones = reduce(or_, shorter, 0) & self._open
        self._right_length[levels] = right = open_ones | self._of_length.get(levels, 0)
        return right


class CrowdIndex(Generic[Value]):
    """Patterns of the topic scheme or of MQTT with `+`, or with `#` at their end alone."""

    def __init__(self) -> None:
        #: A look-up asks each of them (`Block.find`).
        self.blocks: list[Block[Value]] = []
        self._places: dict[str, tuple[Block[Value], int]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, pattern: object) -> bool:
        return pattern in self._places

    def add(self, pattern: str, levels: Sequence[str], value: Value) -> bool:
        """Adds a value of a pattern; `levels` without its `#`. Whether the pattern is new."""
        is_new = pattern not in self._places
        if is_new:
            block = next((each for each in reversed(self.blocks) if not each.is_full), None)
            if block is None:
                self.blocks.append(block := Block())
            self._places[pattern] = block, block.add(levels, is_open=_is_open(pattern))
        block, place = self._places[pattern]
        block.values[place] = with_value(block.values[place] or None, value)
        return is_new

    def remove(self, pattern: str, levels: Sequence[str], value: Value) -> bool:
        """Removes a value of a pattern that is here. Whether that was its last one."""
        block, place = self._places[pattern]
        left = without_value(block.values[place], value)
        if left:
            block.values[place] = left
            return False
        block.remove(place, levels)
        del self._places[pattern]
        if block.is_empty:
            self.blocks.remove(block)
        return True


def _is_open(pattern: str) -> bool:
    return pattern == "#" or pattern.endswith("/#")


def _bits(kept: int) -> int:
    return kept if kept >= 0 else 1 << ~kept


def _set(bits_of: dict[Key, int], key: Key, bits: int) -> None:
    if bits:
        bits_of[key] = bits
    else:
        del bits_of[key]
