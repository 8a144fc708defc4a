"""An index of topic names by level. It finds the names that match a pattern; subscriptions.py has the reverse index.

A look-up visits only the levels that the pattern names, so a pattern that names few of 100,000 topics is cheap.
"""

from collections.abc import Iterator
from itertools import chain, repeat
from typing import Generic, TypeVar

from mappings.topics.topics import Scheme, literal_prefix, matches

Value = TypeVar("Value")


class _TopicLevel(Generic[Value]):
    """One topic level and those below it. A topic that ends here has a value."""

    __slots__ = ("below", "topic", "value")

    def __init__(self) -> None:
        self.below: dict[str, _TopicLevel[Value]] | None = None
        self.topic = ""
        self.value: Value | None = None


class TopicIndex(Generic[Value]):
    """Values by topic name."""

    def __init__(self) -> None:
        self._root: _TopicLevel[Value] = _TopicLevel()
        self._topics = 0

    def __len__(self) -> int:
        """The number of topics."""
        return self._topics

    def get(self, topic: str) -> Value | None:
        """The value of exactly that topic."""
        level = _down(self._root, topic.split("/"))
        return level.value if level is not None else None

    def put(self, topic: str, value: Value) -> None:
        """Sets or replaces the value of a topic."""
        level = self._root
        for name in topic.split("/"):
            if level.below is None:
                level.below = {}
            following = level.below.get(name)
            if following is None:
                following = level.below[name] = _TopicLevel()
            level = following
        self._topics += level.value is None
        level.topic, level.value = topic, value

    def remove(self, topic: str) -> None:
        """Removes a topic. It must be there."""
        names = topic.split("/")
        way = [self._root]
        for name in names:
            assert way[-1].below is not None
            way.append(way[-1].below[name])
        self._topics -= way[-1].value is not None
        way[-1].value = None
        for depth in range(len(names), 0, -1):
            above = way[depth - 1].below
            if way[depth].value is not None or way[depth].below or above is None:
                return
            del above[names[depth - 1]]

    def matching(self, pattern: str, scheme: Scheme) -> Iterator[tuple[str, Value]]:
        """Every topic that a pattern of the topic or the character scheme matches, with its value."""
        for found in self.steps(pattern, scheme):
            if found is not None:
                yield found

    def steps(self, pattern: str, scheme: Scheme) -> Iterator[tuple[str, Value] | None]:
        """Like `matching`, in small steps; None: a step found no topic. The index may change between two steps.

        `steps` may find or miss a topic that is added meanwhile.
        """
        if scheme is Scheme.CHARACTER:
            return self._character_steps(pattern)
        return self._level_steps(pattern.split("/"))

    def _level_steps(self, pattern: list[str]) -> Iterator[tuple[str, Value] | None]:
        """Goes down with the pattern. It visits each level once for each place in the pattern."""
        may_come_back = "#" in pattern[:-1]
        visited: set[tuple[_TopicLevel[Value], int]] = set()
        waiting = [iter(((self._root, 0),))]
        while waiting:
            step = next(waiting[-1], None)
            if step is None:
                waiting.pop()
                continue
            level, at = step
            if may_come_back and step in visited:
                yield None
                continue
            if may_come_back:
                visited.add(step)
            if at == len(pattern):
                yield None if level.value is None else (level.topic, level.value)
                continue
            yield None
            waiting.append(_following(level, pattern[at], at))

    def _character_steps(self, pattern: str) -> Iterator[tuple[str, Value] | None]:
        """Compares all topics below the last whole level before the first wildcard with the pattern."""
        prefix, is_exact = literal_prefix(pattern)
        if is_exact:
            value = self.get(prefix)
            if value is not None:
                yield prefix, value
            return
        *names, beginning = prefix.split("/")
        level = _down(self._root, names)
        found = _everything(level, beginning) if level is not None else iter(())
        for each in found:
            yield each if each and matches(pattern, each[0], Scheme.CHARACTER) else None


def _following(level: "_TopicLevel[Value]", wanted: str, at: int) -> "Iterator[tuple[_TopicLevel[Value], int]]":
    """The next levels to which a pattern leads from a level, each with its place in the pattern."""
    below = level.below or {}
    if wanted == "#":
        return chain(((level, at + 1),), zip(tuple(below.values()), repeat(at)))
    if wanted == "+":
        return zip(tuple(below.values()), repeat(at + 1))
    return iter(((below[wanted], at + 1),) if wanted in below else ())


def _down(level: "_TopicLevel[Value]", names: list[str]) -> "_TopicLevel[Value] | None":
    found: _TopicLevel[Value] | None = level
    for name in names:
        found = found.below.get(name) if found is not None and found.below is not None else None
    return found


def _everything(level: "_TopicLevel[Value]", beginning: str) -> "Iterator[tuple[str, Value] | None]":
    """All topics below a level whose next level begins with that text, in small steps."""
    waiting = [iter(tuple((level.below or {}).items()))]
    while waiting:
        step = next(waiting[-1], None)
        if step is None:
            waiting.pop()
            continue
        name, following = step
        if len(waiting) == 1 and not name.startswith(beginning):
            yield None
            continue
        yield None if following.value is None else (following.topic, following.value)
        waiting.append(iter(tuple((following.below or {}).items())))
