"""The index of topic patterns: which of many subscriptions a topic name matches.

The broker uses it at step 7a on the way of a PUBLISH. With 100,000 subscriptions a new topic costs a few dictionary
look-ups for each level, and a topic that was seen before costs one.
"""

import re
from collections.abc import Hashable
from typing import Generic, TypeVar

from mappings.topics.wildcards import Scheme, compile_character_pattern, parse_character_pattern

LONGEST_CACHED_TOPIC = 1_024  # characters; a longer one is looked up each time: it would fill the memory
CACHED_TOPICS = 65_536  # topics whose matches an index remembers; a full cache starts again

Value = TypeVar("Value", bound=Hashable)


class PatternIndex(Generic[Value]):
    """Patterns with values, and the values whose pattern matches a topic.

    Topic and MQTT patterns are in a tree by level, so that the cost of a look-up grows with the levels of the topic and
    not with the number of patterns. Character patterns are kept by the literal text at both their ends. `match`
    remembers its answers; every change begins a new `generation`, and the first `match` after it forgets them.
    """

    def __init__(self, *, cached_topics: int = CACHED_TOPICS) -> None:
        self.generation = 0
        self._cached_topics = cached_topics
        self._cache: dict[str, tuple[Value, ...]] = {}
        self._cache_generation = 0
        self._topic_tree: _LevelTree[Value] = _LevelTree()
        self._mqtt_tree: _LevelTree[Value] = _LevelTree()
        self._character_buckets: _CharacterBuckets[Value] = _CharacterBuckets()

    def add(self, pattern: str, scheme: Scheme, value: Value) -> None:
        """Add a pattern; the same pattern and value twice count once. TopicError for a wrong escape."""
        self._patterns(scheme).add(pattern, value)
        self.generation += 1

    def remove(self, pattern: str, scheme: Scheme, value: Value) -> None:
        """Remove what `add` added; nothing happens when it is not there."""
        self._patterns(scheme).remove(pattern, value)
        self.generation += 1

    def match(self, topic: str) -> tuple[Value, ...]:
        """The values of all patterns that match the topic name, each once, in no promised order."""
        if self._cache_generation != self.generation or len(self._cache) >= self._cached_topics:
            self._cache.clear()
            self._cache_generation = self.generation
        found = self._cache.get(topic)
        if found is None:
            found = tuple(self._find(topic))
            if len(topic) <= LONGEST_CACHED_TOPIC:
                self._cache[topic] = found
        return found

    def _find(self, topic: str) -> dict[Value, None]:
        found: dict[Value, None] = {}
        levels = topic.split("/")
        self._topic_tree.find(levels, found)
        if topic.startswith("$"):
            self._mqtt_tree.find_below_literal_first_level(levels, found)
        else:
            self._mqtt_tree.find(levels, found)
        self._character_buckets.find(topic, found)
        return found

    def _patterns(self, scheme: Scheme) -> "_LevelTree[Value] | _CharacterBuckets[Value]":
        if scheme is Scheme.CHARACTER:
            return self._character_buckets
        return self._mqtt_tree if scheme is Scheme.MQTT else self._topic_tree


class _Node(Generic[Value]):
    """One level of a tree of topic patterns; `+` and `#` are children like others."""

    __slots__ = ("children", "takes_any_number", "values")

    def __init__(self, level: str) -> None:
        self.takes_any_number = level == "#"
        self.children: dict[str, _Node[Value]] = {}
        self.values: dict[Value, None] = {}


class _LevelTree(Generic[Value]):
    """Patterns of the topic scheme or of MQTT, by level."""

    def __init__(self) -> None:
        self._root: _Node[Value] = _Node("")

    def add(self, pattern: str, value: Value) -> None:
        node = self._root
        for level in pattern.split("/"):
            child = node.children.get(level)
            if child is None:
                child = node.children[level] = _Node(level)
            node = child
        node.values[value] = None

    def remove(self, pattern: str, value: Value) -> None:
        path = [self._root]
        levels = pattern.split("/")
        for level in levels:
            child = path[-1].children.get(level)
            if child is None:
                return
            path.append(child)
        path[-1].values.pop(value, None)
        for depth in range(len(levels), 0, -1):
            if path[depth].values or path[depth].children:
                return
            del path[depth - 1].children[levels[depth - 1]]

    def find(self, levels: list[str], found: dict[Value, None]) -> None:
        """Add the values of all patterns that match."""
        reached: dict[_Node[Value], None] = {}
        _reach(self._root, reached)
        _walk(reached, levels, found)

    def find_below_literal_first_level(self, levels: list[str], found: dict[Value, None]) -> None:
        """The same without patterns that begin with a wildcard: the rule of MQTT for topics that begin with `$`."""
        child = self._root.children.get(levels[0])
        if child is not None:
            reached: dict[_Node[Value], None] = {}
            _reach(child, reached)
            _walk(reached, levels[1:], found)


def _walk(reached: dict[_Node[Value], None], levels: list[str], found: dict[Value, None]) -> None:
    """Go down the tree with every node reached so far, level by level, and collect the values at the end."""
    for level in levels:
        following: dict[_Node[Value], None] = {}
        for node in reached:
            if node.takes_any_number:
                following[node] = None
            for name in (level, "+"):
                child = node.children.get(name)
                if child is not None:
                    _reach(child, following)
        if not following:
            return
        reached = following
    for node in reached:
        found.update(node.values)


def _reach(node: _Node[Value], reached: dict[_Node[Value], None]) -> None:
    """Note a node as reached, and the `#` below it, which may stand for no level at all."""
    following: _Node[Value] | None = node
    while following is not None and following not in reached:
        reached[following] = None
        following = following.children.get("#")


class _CharacterBuckets(Generic[Value]):
    """Character patterns by the literal text at both their ends; a topic is looked up once for each pair of lengths.

    Those without a wildcard are looked up by the topic itself. A single `*` needs no more than the two ends; only the
    patterns that hold more have a regular expression.
    """

    def __init__(self) -> None:
        self._exact: dict[str, dict[Value, None]] = {}
        self._by_ends: dict[tuple[str, str], dict[str, _CharacterEntry[Value]]] = {}
        self._ends_of_lengths: dict[tuple[int, int], int] = {}

    def add(self, pattern: str, value: Value) -> None:
        parsed = parse_character_pattern(pattern)
        if not parsed.wildcards:
            self._exact.setdefault(parsed.prefix, {})[value] = None
            return
        ends = (parsed.prefix, parsed.suffix)
        bucket = self._by_ends.get(ends)
        if bucket is None:
            bucket = self._by_ends[ends] = {}
            lengths = (len(parsed.prefix), len(parsed.suffix))
            self._ends_of_lengths[lengths] = self._ends_of_lengths.get(lengths, 0) + 1
        entry = bucket.get(pattern)
        if entry is None:
            simple = parsed.wildcards == ("*",)
            entry = bucket[pattern] = _CharacterEntry(None if simple else compile_character_pattern(pattern))
        entry.values[value] = None

    def remove(self, pattern: str, value: Value) -> None:
        parsed = parse_character_pattern(pattern)
        if not parsed.wildcards:
            self._remove_exact(parsed.prefix, value)
            return
        ends = (parsed.prefix, parsed.suffix)
        bucket = self._by_ends.get(ends, {})
        entry = bucket.get(pattern)
        if entry is None:
            return
        entry.values.pop(value, None)
        if not entry.values:
            del bucket[pattern]
        if not bucket:
            self._remove_bucket(ends)

    def find(self, topic: str, found: dict[Value, None]) -> None:
        """Add the values of all patterns that match."""
        found.update(self._exact.get(topic, {}))
        length = len(topic)
        for before, behind in self._ends_of_lengths:
            if before + behind > length:
                continue
            bucket = self._by_ends.get((topic[:before], topic[length - behind :]))
            if bucket is not None:
                for entry in bucket.values():
                    if entry.expression is None or entry.expression.match(topic):
                        found.update(entry.values)

    def _remove_exact(self, topic: str, value: Value) -> None:
        values = self._exact.get(topic)
        if values is not None:
            values.pop(value, None)
            if not values:
                del self._exact[topic]

    def _remove_bucket(self, ends: tuple[str, str]) -> None:
        del self._by_ends[ends]
        lengths = (len(ends[0]), len(ends[1]))
        self._ends_of_lengths[lengths] -= 1
        if not self._ends_of_lengths[lengths]:
            del self._ends_of_lengths[lengths]


class _CharacterEntry(Generic[Value]):
    """The values of one character pattern, and its regular expression where the text at both ends is not enough."""

    __slots__ = ("expression", "values")

    def __init__(self, expression: re.Pattern[str] | None) -> None:
        self.expression = expression
        self.values: dict[Value, None] = {}
