"""Shapes: what patterns have in common that one step of a look-up serves; and the values of one pattern.

The work of a look-up in the index of patterns is a step for each shape, so the weight of all shapes bounds it. Why it
is so is told in `level_index` and `character_index`.
"""

from collections.abc import Collection, Hashable
from typing import Final, NamedTuple, TypeVar

from mappings.topics.wildcards import Scheme

Value = TypeVar("Value", bound=Hashable)

#: Up to so many values of one pattern are a tuple, which takes a quarter of the memory of a dictionary.
_FEW: Final = 4


class Shape(NamedTuple):
    """One shape. `places` says which, in the words of its scheme's index; `weight` is the time of its step.

    `is_ordinary`: it is one of a few that honest patterns have. Nobody needs to limit these.
    """

    scheme: Scheme
    places: tuple[int, ...]
    weight: int
    is_ordinary: bool = False


class Shapes:
    """The shapes that the patterns of an index have now."""

    def __init__(self) -> None:
        self._patterns: dict[Shape, int] = {}
        #: The weight of all of them, and of those that are not ordinary.
        self.weight = self.unusual_weight = 0

    def __contains__(self, shape: object) -> bool:
        return shape in self._patterns

    def __len__(self) -> int:
        return len(self._patterns)

    def patterns(self, shape: Shape) -> int:
        """How many patterns have the shape."""
        return self._patterns.get(shape, 0)

    def add(self, shape: Shape) -> None:
        """One more pattern has the shape."""
        before = self._patterns.get(shape, 0)
        self._patterns[shape] = before + 1
        if not before:
            self._weigh(shape, shape.weight)

    def remove(self, shape: Shape) -> None:
        """A pattern of the shape is gone. There must have been one."""
        left = self._patterns[shape] - 1
        if left:
            self._patterns[shape] = left
        else:
            del self._patterns[shape]
            self._weigh(shape, -shape.weight)

    def _weigh(self, shape: Shape, weight: int) -> None:
        self.weight += weight
        if not shape.is_ordinary:
            self.unusual_weight += weight


Values = tuple[Value, ...] | dict[Value, None]
"""The values of one pattern, each once, the earliest first."""


def with_value(values: Values[Value] | None, value: Value) -> Values[Value]:
    """The values with one more."""
    if values is None:
        return (value,)
    if isinstance(values, dict):
        values[value] = None
        return values
    if value in values:
        return values
    return (*values, value) if len(values) < _FEW else dict.fromkeys((*values, value))


def without_value(values: Values[Value], value: Value) -> Values[Value]:
    """The values without that one; empty when it was the last."""
    if isinstance(values, dict):
        values.pop(value, None)
        return values
    return tuple(each for each in values if each != value)


Found = list[Collection[Value]]
