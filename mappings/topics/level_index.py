"""Patterns of the topic scheme and of MQTT, looked up by shape: a look-up's work has a bound that no topic can pass.

The theory. `levels` are what stands between the slashes. The *shape* of a pattern is the number of its levels, the
places of its `+`, and whether `#` ends it. A topic matches a pattern if the levels that are not `+` are equal, one by
one. So for one topic and one shape there is exactly one pattern that can match: the topic with `+` in the places of the
shape. A dictionary finds it at once. A look-up costs one such step for each shape that the index has, however many
patterns there are.

A tree by level, which most brokers have, has no such bound. The 2^k patterns `{a,+}^k/z` have 2^k shapes, and one topic
`a/a/.../a/y` visits a node for each. States that are cached by the beginning of the topic do not help either: each
topic of the 2^k that have `b` in some places of `a` leads to other states. That is no fault of the tree. To find
patterns with wildcards in arbitrary places among n is partial match, for which no structure of moderate size is known
that is much faster than n steps. Whoever wants a bound has to limit something, and shapes are the right thing: those of
honest patterns are few (a fleet has some twenty, however many devices it has), and a further pattern of a known shape
costs nothing. The caller limits shapes (gateway/bridge/sessions/filter_shapes.py): `shape` names that of a pattern,
and `Shapes` has those of the index with their weight. Ordinary shapes have few levels and at most one `+`. Together
they weigh 127, so nobody needs to limit them. The weight is the bound, for every topic and every choice of patterns:

- Long levels, equal beginnings, distinct ends, long chains: the steps do not depend on them.
- `#` at each level: each number of levels in front of `#` is a shape.
- Many levels: a step takes longer with more levels, so a shape weighs 1 for each eight levels begun.
- Churn: `add` and `remove` take one step. If a shape comes or goes, the list of steps is made anew, once.
- Patterns without a wildcard have no shape. All of them together cost one step.
- Patterns that match are found in the same steps. Their values cost more, once for all topics that match the same
  patterns (`PatternIndex`).

How a step works. Each level that some pattern names has a secret number of 32 bits. The numbers of a topic's levels,
side by side, make one large integer. A shape is a mask with zeros in the places of `+` and behind its last level. One
AND makes the key of the only pattern of that shape that can match, and the key is exact, because the numbers are
unique. The number 0 stands for a level that no pattern names, so it matches `+` and `#` alone.

Numbers are secret because Python hashes integers without a secret, modulo 2^61 - 1. With numbers in order a stranger
could choose levels whose keys collide. In that hash a number counts times a power of 2. The powers of 61 levels in a
row differ, so levels that change places change the hash. But level 61 has the power of level 0 again. So each block of
60 levels has numbers of its own.

Memory: a pattern without wildcard takes one entry of a dictionary, whose key is the text that the caller has anyway. A
pattern with wildcards takes an entry and 4 bytes for each level, and each distinct level is kept once. A tree took some
500 bytes for each level, so 2,000 patterns of 200 levels had taken 127 MiB.

Whoever lets more shapes in than `MOST_STEPS` weigh loses no pattern: what comes past it is in `crowd_index`, whose work
has a bound for any patterns. That bound grows with all patterns there, so it is for the few that should not be.

The topic scheme allows `#` in front of other levels too, in commands of MQ applications alone. Such a pattern is found
by what stands in front of its first `#`, and then compared: one by one among those with the same beginning.
"""

import secrets
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Final, Generic, NamedTuple, TypeVar

from mappings.topics.crowd_index import CrowdIndex
from mappings.topics.shapes import Found, Shape, Shapes, Value, Values, with_value, without_value
from mappings.topics.wildcards import Scheme, levels_match

_NUMBER_BYTES: Final = 4
#: Levels in a row whose numbers are drawn together.
_BLOCK: Final = 60
_NO_NUMBER: Final = bytes(_NUMBER_BYTES)
_WHOLE_NUMBER: Final = b"\xff" * _NUMBER_BYTES
_FIRST_LEVEL: Final = 0xFFFFFFFF
#: Levels whose numbers are compared in the time that a step takes anyway.
_LEVELS_OF_A_STEP: Final = 8
#: The weight of the shapes that are looked up by steps, beside the ordinary ones.
MOST_STEPS: Final = 384
#: A pattern of up to so many levels with at most one `+` has an ordinary shape.
_ORDINARY_LEVELS: Final = 8
#: Numbers of levels for which the steps are remembered.
_REMEMBERED_STEPS: Final = 256
#: To compare a pattern level by level takes as long as so many steps.
_STEPS_OF_A_COMPARISON: Final = 16

#: The kinds of shape: nothing, a `#`, or a `#` and further levels stand behind the levels of the shape.
_CLOSED, _OPEN, _INNER = range(3)


class _Numbers:
    """The secret numbers of the levels that patterns name in one block."""

    def __init__(self) -> None:
        self._number: dict[str, bytes] = {}
        self._uses: dict[str, int] = {}
        self._taken = {_NO_NUMBER}

    def __len__(self) -> int:
        return len(self._number)

    def side_by_side(self, levels: Iterable[str]) -> bytes:
        """The numbers of levels; 0 for `+`, and for a level without a number."""
        return b"".join(map(self._number.get, levels, repeat(_NO_NUMBER)))

    def take(self, levels: Iterable[str]) -> None:
        """A pattern with these levels is added."""
        for level in levels:
            if level == "+":
                continue
            if level not in self._number:
                self._number[level] = self._new()
            self._uses[level] = self._uses.get(level, 0) + 1

    def give_back(self, levels: Iterable[str]) -> None:
        """The pattern is gone. A level that no pattern names any more loses its number."""
        for level in levels:
            if level == "+":
                continue
            self._uses[level] -= 1
            if not self._uses[level]:
                del self._uses[level]
                self._taken.remove(self._number.pop(level))

    def _new(self) -> bytes:
        while (number := secrets.token_bytes(_NUMBER_BYTES)) in self._taken:
            continue
        self._taken.add(number)
        return number


class _Parts(NamedTuple):
    """A pattern with wildcards: its kind, the levels of its shape, and their mask."""

    kind: int
    levels: list[str]
    mask: int


def _parts(pattern: str) -> _Parts | None:
    levels = pattern.split("/")
    kind = _CLOSED
    if "#" in levels:
        place = levels.index("#")
        kind = _OPEN if place == len(levels) - 1 else _INNER
        levels = levels[:place]
    elif "+" not in levels:
        return None
    mask = b"".join([_NO_NUMBER if level == "+" else _WHOLE_NUMBER for level in levels])
    return _Parts(kind, levels, int.from_bytes(mask, "little"))


def _is_ordinary(parts: _Parts) -> bool:
    """A last `#` does not count. A `+` in front of it does not count either: `a/#` of MQTT is `a/+/#` with MQRFH."""
    levels = parts.levels[:-1] if parts.kind == _OPEN and parts.levels[-1:] == ["+"] else parts.levels
    return parts.kind != _INNER and len(levels) <= _ORDINARY_LEVELS and levels.count("+") <= 1


def _blocks(levels: list[str]) -> Iterator[list[str]]:
    for place in range(0, len(levels), _BLOCK):
        yield levels[place : place + _BLOCK]


Entry = TypeVar("Entry")
_Step = tuple[int, dict[int, Entry]]
"""A mask, and the entries of its shape by key."""


class _Tables(Generic[Entry]):
    """The shapes of one kind with their patterns, by number of levels."""

    def __init__(self) -> None:
        self._of: dict[int, dict[int, dict[int, Entry]]] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    def get(self, parts: _Parts, key: int) -> Entry | None:
        return self._of.get(len(parts.levels), {}).get(parts.mask, {}).get(key)

    def put(self, parts: _Parts, key: int, entry: Entry) -> None:
        self._of.setdefault(len(parts.levels), {}).setdefault(parts.mask, {})[key] = entry

    def delete(self, parts: _Parts, key: int) -> None:
        """Deletes an entry. It must be there."""
        by_mask = self._of[len(parts.levels)]
        table = by_mask[parts.mask]
        del table[key]
        if not table:
            del by_mask[parts.mask]
        if not by_mask:
            del self._of[len(parts.levels)]

    def of(self, levels: int) -> Iterable[_Step[Entry]]:
        """The masks and tables of the shapes with so many levels."""
        return self._of.get(levels, {}).items()

    def up_to(self, levels: int) -> Iterator[_Step[Entry]]:
        """The same for so many levels or less."""
        for length, by_mask in self._of.items():
            if length <= levels:
                yield from by_mask.items()


class LevelIndex(Generic[Value]):
    """Patterns of the topic scheme or of MQTT with their values."""

    def __init__(self, scheme: Scheme, shapes: Shapes) -> None:
        """`shapes` counts those of this index too."""
        self._scheme = scheme
        self._shapes = shapes
        #: The shapes that are looked up by steps, and the patterns past them.
        self._stepped = Shapes()
        self._crowd: CrowdIndex[Value] = CrowdIndex()
        #: The numbers by block.
        self._numbers = [_Numbers()]
        self._exact: dict[str, Values[Value]] = {}
        self._closed: _Tables[Values[Value]] = _Tables()
        self._open: _Tables[Values[Value]] = _Tables()
        #: Patterns with `#` in front of other levels, each with its values, by the levels in front of it.
        self._inner: _Tables[dict[str, Values[Value]]] = _Tables()
        #: The steps of a look-up, by the number of the topic's levels, until a shape comes or goes.
        self._steps: dict[int, tuple[_Step[Values[Value]], ...]] = {}

    def __bool__(self) -> bool:
        """Whether it has a pattern."""
        return bool(self._exact or self._closed or self._open or self._inner or self._crowd)

    def shape(self, pattern: str) -> Shape | None:
        """The shape that a pattern has, or would have; None without a wildcard."""
        parts = _parts(pattern)
        if parts is None:
            return None
        if parts.kind != _INNER:
            return self._shape(parts)
        alike = self._inner.get(parts, self._key(parts.levels)) or {}
        return self._shape(parts, len(alike) + (pattern not in alike))

    def add(self, pattern: str, value: Value) -> None:
        """Adds a value of a pattern."""
        parts = _parts(pattern)
        if parts is None:
            self._exact[pattern] = with_value(self._exact.get(pattern), value)
        elif parts.kind == _INNER:
            self._add_inner(parts, pattern, value)
        elif self._is_crowded(parts, pattern):
            if self._crowd.add(pattern, parts.levels, value):
                self._shapes.add(self._shape(parts))
        else:
            self._add(parts, value)

    def remove(self, pattern: str, value: Value) -> None:
        """Removes a value of a pattern, if it is there."""
        parts = _parts(pattern)
        if parts is None:
            left = without_value(self._exact.pop(pattern, ()), value)
            if left:
                self._exact[pattern] = left
        elif parts.kind == _INNER:
            self._remove_inner(parts, pattern, value)
        elif pattern in self._crowd:
            if self._crowd.remove(pattern, parts.levels, value):
                self._shapes.remove(self._shape(parts))
        else:
            self._remove(parts, value)

    def find(self, topic: str, found: Found[Value]) -> None:
        """Adds the values of each pattern that matches to `found`."""
        exact = self._exact.get(topic)
        if exact is not None:
            found.append(exact)
        levels = topic.split("/")
        steps = self._steps.get(len(levels))
        if steps is None:
            steps = self._remembered_steps(len(levels))
        key = self._key(levels)
        hides = self._scheme is Scheme.MQTT and topic.startswith("$")
        for mask, table in steps:
            values = table.get(key & mask)
            if values is not None and not (hides and not mask & _FIRST_LEVEL):
                found.append(values)
        for block in self._crowd.blocks:
            block.find(levels, found, hides=hides)
        for mask, patterns in self._inner.up_to(len(levels)):
            if not (hides and not mask & _FIRST_LEVEL):
                alike = patterns.get(key & mask, {})
                found += [each for pattern, each in alike.items() if levels_match(pattern.split("/"), levels)]

    # -- inside --------------------------------------------------------------------------------------------------------

    def _key(self, levels: list[str]) -> int:
        """The numbers of levels side by side, the first one lowest."""
        if len(levels) <= _BLOCK:
            return int.from_bytes(self._numbers[0].side_by_side(levels), "little")
        blocks = [numbers.side_by_side(block) for numbers, block in zip(self._numbers, _blocks(levels), strict=False)]
        return int.from_bytes(b"".join(blocks), "little")

    def _take(self, levels: list[str]) -> None:
        self._numbers += [_Numbers() for _ in range(len(self._numbers), -(-len(levels) // _BLOCK))]
        for numbers, block in zip(self._numbers, _blocks(levels), strict=False):
            numbers.take(block)

    def _give_back(self, levels: list[str]) -> None:
        for numbers, block in zip(self._numbers, _blocks(levels), strict=False):
            numbers.give_back(block)

    def _remembered_steps(self, levels: int) -> tuple[_Step[Values[Value]], ...]:
        if len(self._steps) >= _REMEMBERED_STEPS:
            self._steps.clear()
        steps = self._steps[levels] = (*self._closed.of(levels), *self._open.up_to(levels))
        return steps

    def _shape(self, parts: _Parts, rank: int = 0) -> Shape:
        """`rank`: the place among patterns that are compared one by one; 0: it needs no comparison."""
        count = len(parts.levels)
        steps = max(1, -(-count // _LEVELS_OF_A_STEP)) + (_STEPS_OF_A_COMPARISON if rank else 0)
        return Shape(self._scheme, (parts.kind, count, parts.mask, rank), steps, _is_ordinary(parts))

    def _is_crowded(self, parts: _Parts, pattern: str) -> bool:
        """Whether a pattern is among those past the steps, or would be."""
        if pattern in self._crowd:
            return True
        shape = self._shape(parts)
        if shape.is_ordinary or shape in self._stepped:
            return False
        return self._stepped.unusual_weight + shape.weight > MOST_STEPS

    def _add(self, parts: _Parts, value: Value) -> None:
        tables = self._open if parts.kind == _OPEN else self._closed
        values = tables.get(parts, self._key(parts.levels))
        if values is None:
            self._take(parts.levels)
            self._shapes.add(shape := self._shape(parts))
            self._stepped.add(shape)
            if self._stepped.patterns(shape) == 1:
                self._steps.clear()
        tables.put(parts, self._key(parts.levels), with_value(values, value))

    def _remove(self, parts: _Parts, value: Value) -> None:
        tables, key = self._open if parts.kind == _OPEN else self._closed, self._key(parts.levels)
        values = tables.get(parts, key)
        if values is None:
            return
        left = without_value(values, value)
        if left:
            tables.put(parts, key, left)
            return
        tables.delete(parts, key)
        self._give_back(parts.levels)
        self._shapes.remove(shape := self._shape(parts))
        self._stepped.remove(shape)
        if shape not in self._stepped:
            self._steps.clear()

    def _add_inner(self, parts: _Parts, pattern: str, value: Value) -> None:
        alike = self._inner.get(parts, self._key(parts.levels))
        if alike is None or pattern not in alike:
            self._take(parts.levels)
            alike = {} if alike is None else alike
            self._inner.put(parts, self._key(parts.levels), alike)
            self._shapes.add(self._shape(parts, len(alike) + 1))
        alike[pattern] = with_value(alike.get(pattern), value)

    def _remove_inner(self, parts: _Parts, pattern: str, value: Value) -> None:
        key = self._key(parts.levels)
        alike = self._inner.get(parts, key)
        if alike is None or pattern not in alike:
            return
        alike[pattern] = left = without_value(alike[pattern], value)
        if left:
            return
        self._shapes.remove(self._shape(parts, len(alike)))
        del alike[pattern]
        if not alike:
            self._inner.delete(parts, key)
        self._give_back(parts.levels)
