"""Patterns of the character scheme, looked up by the literal text at both their ends.

`*` and `?` stand for slashes too, so levels alone do not help. A pattern has literal text in front of its first
wildcard and behind its last one. Its *shape* is where the two texts end in a topic: behind so many slashes and in front
of so many, or, where a text does not end at a slash, after so many characters. One step cuts a topic as a shape says,
and finds the patterns with both texts. If a pattern has a single `*`, that is all.

A pattern with more wildcards is compared by a regular expression, which takes time in proportion to the topic. Only the
patterns whose longest whole level between wildcards is a level of the topic are compared. The third pattern with the
same texts and the same such level has another shape than the second. So the weight of all shapes bounds the patterns
that are compared for each level of a topic, and thousands of patterns that name one device each have few shapes.
"""

import re
from itertools import accumulate
from typing import Final, Generic, NamedTuple

from mappings.topics.shapes import Found, Shape, Shapes, Value, Values, with_value, without_value
from mappings.topics.wildcards import (
    CharacterPattern,
    Scheme,
    compile_character_pattern,
    literal_texts,
    parse_character_pattern,
)

#: Steps of the index of levels in the time that a topic is cut and both texts are looked up.
_STEPS_OF_A_CUT: Final = 2
#: The same for a regular expression.
_STEPS_OF_A_COMPARISON: Final = 6


class _Place(NamedTuple):
    """Where the texts at both ends of a pattern end: after so many slashes of a topic, or characters."""

    is_by_slashes: bool
    before: int
    behind: int


class _Topic:
    """A topic name that is looked up."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.levels = text.split("/")
        lengths = (len(level) + 1 for level in self.levels[:-1])
        #: Where its levels begin, and behind its end.
        self._beginnings = [*accumulate(lengths, initial=0), len(text) + 1]

    def ends(self, place: _Place) -> tuple[str, str] | None:
        """The texts at both ends as a place cuts them; None if the topic is too short."""
        if place.is_by_slashes:
            slashes = len(self.levels) - 1
            if place.before > slashes or place.behind > slashes:
                return None
            first, last = self._beginnings[place.before], self._beginnings[-1 - place.behind] - 1
        else:
            first, last = place.before, len(self.text) - place.behind
        return None if first > last else (self.text[:first], self.text[last:])


class _Compared(Generic[Value]):
    """A pattern that the text at both ends does not decide."""

    __slots__ = ("expression", "values")

    def __init__(self, expression: re.Pattern[str]) -> None:
        self.expression = expression
        self.values: Values[Value] = ()


class _Alike(Generic[Value]):
    """The patterns with the same text at both ends."""

    __slots__ = ("compared", "simple")

    def __init__(self) -> None:
        #: The values of the pattern with a single `*`.
        self.simple: Values[Value] = ()
        #: The other ones, by the level that a topic must have; "": there is none.
        self.compared: dict[str, dict[str, _Compared[Value]]] = {}

    def find(self, topic: _Topic, found: Found[Value]) -> None:
        if self.simple:
            found.append(self.simple)
        if self.compared:
            for level in {"", *topic.levels}:
                for each in self.compared.get(level, {}).values():
                    if each.expression.match(topic.text):
                        found.append(each.values)


class CharacterIndex(Generic[Value]):
    """Patterns of the character scheme with their values."""

    def __init__(self, shapes: Shapes) -> None:
        """`shapes` counts those of this index too."""
        self._shapes = shapes
        self._exact: dict[str, Values[Value]] = {}
        self._places: dict[_Place, dict[tuple[str, str], _Alike[Value]]] = {}

    def __bool__(self) -> bool:
        """Whether it has a pattern."""
        return bool(self._exact or self._places)

    def shape(self, pattern: str) -> Shape | None:
        """The shape that a pattern has, or would have; None without a wildcard. TopicError for a wrong escape."""
        parsed = parse_character_pattern(pattern)
        if not parsed.wildcards:
            return None
        place, level = _place(parsed), _level(parsed)
        alike = self._places.get(place, {}).get((parsed.prefix, parsed.suffix))
        if level is None:
            return _shape(place)
        compared = {} if alike is None else alike.compared.get(level, {})
        return _shape(place, len(compared) + (pattern not in compared))

    def add(self, pattern: str, value: Value) -> None:
        """Adds a value of a pattern; TopicError for a wrong escape."""
        parsed = parse_character_pattern(pattern)
        if not parsed.wildcards:
            self._exact[parsed.prefix] = with_value(self._exact.get(parsed.prefix), value)
            return
        place, level = _place(parsed), _level(parsed)
        ends = (parsed.prefix, parsed.suffix)
        alike = self._places.setdefault(place, {}).setdefault(ends, _Alike())
        if level is None:
            if not alike.simple:
                self._shapes.add(_shape(place))
            alike.simple = with_value(alike.simple, value)
            return
        compared = alike.compared.setdefault(level, {})
        if pattern not in compared:
            compared[pattern] = _Compared(compile_character_pattern(pattern))
            self._shapes.add(_shape(place, len(compared)))
        compared[pattern].values = with_value(compared[pattern].values, value)

    def remove(self, pattern: str, value: Value) -> None:
        """Removes a value of a pattern, if it is there."""
        parsed = parse_character_pattern(pattern)
        if not parsed.wildcards:
            left = without_value(self._exact.pop(parsed.prefix, ()), value)
            if left:
                self._exact[parsed.prefix] = left
            return
        place, ends = _place(parsed), (parsed.prefix, parsed.suffix)
        alike = self._places.get(place, {}).get(ends)
        if alike is None:
            return
        self._remove(alike, place, _level(parsed), pattern, value)
        if not alike.simple and not alike.compared:
            del self._places[place][ends]
            if not self._places[place]:
                del self._places[place]

    def find(self, text: str, found: Found[Value]) -> None:
        """Adds the values of each pattern that matches to `found`."""
        exact = self._exact.get(text)
        if exact is not None:
            found.append(exact)
        if not self._places:
            return
        topic = _Topic(text)
        for place, by_ends in self._places.items():
            ends = topic.ends(place)
            alike = None if ends is None else by_ends.get(ends)
            if alike is not None:
                alike.find(topic, found)

    def _remove(self, alike: _Alike[Value], place: _Place, level: str | None, pattern: str, value: Value) -> None:
        if level is None:
            before = alike.simple
            alike.simple = without_value(before, value)
            if before and not alike.simple:
                self._shapes.remove(_shape(place))
            return
        compared = alike.compared.get(level, {})
        if pattern not in compared:
            return
        compared[pattern].values = without_value(compared[pattern].values, value)
        if not compared[pattern].values:
            self._shapes.remove(_shape(place, len(compared)))
            del compared[pattern]
            if not compared:
                del alike.compared[level]


def _place(parsed: CharacterPattern) -> _Place:
    before, behind = parsed.prefix, parsed.suffix
    if (not before or before.endswith("/")) and (not behind or behind.startswith("/")):
        return _Place(True, before.count("/"), behind.count("/"))
    return _Place(False, len(before), len(behind))


def _level(parsed: CharacterPattern) -> str | None:
    """The longest whole level between wildcards, "" if there is none; None if the texts at both ends are enough."""
    if parsed.wildcards == ("*",):
        return None
    levels = (level for text in literal_texts(parsed) for level in text.split("/")[1:-1])
    return max(levels, key=len, default="")


def _shape(place: _Place, rank: int = 0) -> Shape:
    """`rank`: the place among patterns that are compared one by one; 0: it needs no comparison."""
    return Shape(Scheme.CHARACTER, (*map(int, place), rank), _STEPS_OF_A_COMPARISON if rank else _STEPS_OF_A_CUT)
