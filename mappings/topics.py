"""Topics: names and patterns in three wildcard schemes, and the index that finds the patterns of a topic.

- TOPIC (MQRFH2, IBM MQ 7 and later): `+` is one level, `#` any number of levels, wherever it stands as a whole level.
- CHARACTER (MQRFH): `*` is any characters, `?` one character, both also `/`; `%` escapes `*`, `?` and `%`.
- MQTT: as TOPIC with `#` last only; a filter that begins with a wildcard does not match topics that begin with `$`.

Sources: IBM MQ documentation, "Wildcard schemes"; WebSphere MQ V6 Publish/Subscribe User's Guide, "Topics"; MQTT 3.1.1
section 4.7.
"""

import re
from collections.abc import Hashable
from enum import StrEnum
from functools import lru_cache
from typing import Generic, TypeVar

from mappings.errors import CommandError
from mappings.reasons import Reason

MAXIMUM_MQTT_BYTES = 65_535  # MQTT 3.1.1 section 1.5.3, the length of a UTF-8 string has two bytes
_COMPILED_PATTERNS = 16_384  # regular expressions kept; the least recently used goes first

CACHED_TOPICS = 65_536  # topics whose matches an index remembers; a full cache starts again

_ESCAPED = re.compile(r"%([*?%])|([^*?%]+)", re.DOTALL)
_CHARACTER_TOKEN = re.compile(r"%[*?%]|\*|\?|[^*?%]+", re.DOTALL)
_TO_ESCAPE = re.compile(r"[*?%]")
_TOPIC_WILDCARDS = frozenset({"+", "#"})


class Scheme(StrEnum):
    """Which characters of a pattern are wildcards."""

    TOPIC = "topic"
    CHARACTER = "character"
    MQTT = "mqtt"


Value = TypeVar("Value", bound=Hashable)


class TopicError(CommandError, ValueError):
    """A topic name or a pattern breaks its rules (MQRCCF_TOPIC_ERROR): the fault of the application or the sensor."""


def topic_error(topic: str, problem: str) -> TopicError:
    """The error for a topic, with the text at fault."""
    return TopicError(Reason.MQRCCF_TOPIC_ERROR, f"topic {topic[:200]!a} {problem}", parameter=topic)


def matches(pattern: str, topic: str, scheme: Scheme) -> bool:
    """Whether a topic name matches a pattern; TopicError for a character pattern with a wrong escape."""
    if scheme is Scheme.CHARACTER:
        return character_expression(pattern).match(topic) is not None
    if scheme is Scheme.MQTT and topic.startswith("$") and pattern[:1] in _TOPIC_WILDCARDS:
        return False
    return _levels_match(pattern.split("/"), topic.split("/"))


def escape_topic(topic: str) -> str:
    """A topic name as MQRFH writes it: `%`, `*` and `?` become `%%`, `%*` and `%?`."""
    return _TO_ESCAPE.sub(r"%\g<0>", topic)


def unescape_topic(text: str) -> str:
    """The topic name that MQRFH text stands for; TopicError for a bare wildcard or a wrong escape."""
    if not _TO_ESCAPE.search(text):
        return text
    found = list(_ESCAPED.finditer(text))
    if sum(len(match[0]) for match in found) != len(text):
        raise topic_error(text, "must be a name: write %*, %? and %% for *, ? and %")
    return "".join(match[1] or match[2] for match in found)


def check_mqtt_topic_name(text: str) -> None:
    """TopicError unless the text can be the topic name of an MQTT PUBLISH (MQTT 3.1.1 section 4.7)."""
    _check_mqtt_text(text)
    if "+" in text or "#" in text:
        raise topic_error(text, "is a topic name and must not hold + or #")


def check_mqtt_topic_filter(text: str) -> None:
    """TopicError unless the text is a topic filter of MQTT (MQTT 3.1.1 section 4.7.1)."""
    _check_mqtt_text(text)
    levels = text.split("/")
    if "#" in levels[:-1]:
        raise topic_error(text, "holds # before the last level")
    if any(len(level) > 1 and ("+" in level or "#" in level) for level in levels):
        raise topic_error(text, "holds + or # beside other characters of a level")


def character_patterns(topic_filter: str) -> tuple[str, ...]:
    """Patterns of the character scheme that together match at least what the filter matches.

    Where they match more, the receiver checks each topic again with `matches`. `a/#` gives two: `a` and `a/*`.
    """
    if not topic_filter:
        raise topic_error(topic_filter, "is empty")
    levels = _without_repeated_hashes(topic_filter.split("/"))
    if levels[-1] != "#":
        return (_character_pattern(levels),)
    parents = levels[:-1]
    if not parents:
        return ("*",)
    parent = _character_pattern(parents)
    if parents[-1] == "+":
        return (parent,)
    return (parent, f"{parent}/*") if parent else ("/*",)


def topic_filter_for(character_pattern: str) -> str:
    """A filter of the topic scheme that matches at least what the character pattern matches.

    The pattern is cut back to the last `/` before its first wildcard, because `*` and `?` match `/` too and `+` never
    does. Raises TopicError when `+` or `#` would have to be literal, or for a wrong escape.
    """
    prefix, exact = literal_prefix(character_pattern)
    if "+" in prefix or "#" in prefix:
        raise topic_error(character_pattern, "holds + or #, which the topic scheme cannot say literally")
    if exact:
        return prefix
    parent, slash, _ = prefix.rpartition("/")
    return f"{parent}/#" if slash else "#"


def literal_prefix(character_pattern: str) -> tuple[str, bool]:
    """The unescaped text before the first wildcard, and whether that is the whole pattern."""
    literal: list[str] = []
    for token in _character_tokens(character_pattern):
        if token in ("*", "?"):
            return "".join(literal), False
        literal.append(token[1:] if token[0] == "%" else token)
    return "".join(literal), True


@lru_cache(maxsize=_COMPILED_PATTERNS)
def character_expression(pattern: str) -> re.Pattern[str]:
    """The regular expression of a character pattern; it does not backtrack over earlier `*` (atomic groups)."""
    pieces = [""]
    for token in _character_tokens(pattern):
        if token == "*":
            pieces.append("")
        else:
            pieces[-1] += "." if token == "?" else re.escape(token[1:] if token[0] == "%" else token)
    first, *rest = pieces
    if not rest:
        return re.compile(rf"{first}\Z", re.DOTALL)
    middle = "".join(f"(?>.*?{piece})" for piece in rest[:-1] if piece)
    return re.compile(rf"{first}{middle}.*{rest[-1]}\Z", re.DOTALL)


def _character_tokens(pattern: str) -> list[str]:
    tokens = _CHARACTER_TOKEN.findall(pattern)
    if sum(map(len, tokens)) != len(pattern):
        raise topic_error(pattern, "holds % before something that is not *, ? or %")
    return tokens


def _check_mqtt_text(text: str) -> None:
    if not text:
        raise topic_error(text, "is empty")
    if "\0" in text:
        raise topic_error(text, "holds U+0000")
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        raise topic_error(text, "holds half a surrogate pair, which UTF-8 cannot carry") from None
    if length > MAXIMUM_MQTT_BYTES:
        raise topic_error(text, f"has {length} bytes, and MQTT carries {MAXIMUM_MQTT_BYTES}")


def _levels_match(pattern: list[str], topic: list[str]) -> bool:
    """Match level by level; each `#` takes as few levels as will do, as in a glob."""
    at_pattern = at_topic = 0
    retry: tuple[int, int] | None = None
    while at_topic < len(topic) or at_pattern < len(pattern):
        if at_pattern < len(pattern) and pattern[at_pattern] == "#":
            at_pattern += 1
            if at_pattern == len(pattern):
                return True
            retry = (at_pattern, at_topic)
        elif at_pattern < len(pattern) and at_topic < len(topic) and pattern[at_pattern] in ("+", topic[at_topic]):
            at_pattern, at_topic = at_pattern + 1, at_topic + 1
        elif retry is None or retry[1] >= len(topic):
            return False
        else:
            retry = (retry[0], retry[1] + 1)
            at_pattern, at_topic = retry
    return True


def _without_repeated_hashes(levels: list[str]) -> list[str]:
    return [level for index, level in enumerate(levels) if level != "#" or levels[index - 1 : index] != ["#"]]


def _character_pattern(levels: list[str]) -> str:
    """The levels in the character scheme; a `#` inside takes the slash behind it along."""
    text = ""
    for index, level in enumerate(levels):
        last = index == len(levels) - 1
        if level == "#":
            text += "*"
            continue
        text += ("*" if level == "+" else escape_topic(level)) + ("" if last else "/")
    return re.sub(r"(?<!%)\*\*+", "*", text)


class PatternIndex(Generic[Value]):
    """Patterns with values, and the values whose pattern matches a topic.

    Topic and MQTT patterns are kept as a tree by level, so that a look-up costs a few steps for each level however many
    patterns there are; character patterns are kept by the literal text before their first wildcard. `match` remembers
    its answers; every change begins a new `generation`, and the first `match` after it forgets them.
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
            found = self._cache[topic] = tuple(self._find(topic))
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
    """Character patterns by their literal beginning; those without a wildcard are looked up by the topic itself."""

    def __init__(self) -> None:
        self._exact: dict[str, dict[Value, None]] = {}
        self._by_prefix: dict[str, dict[str, dict[Value, None]]] = {}
        self._prefixes_of_length: dict[int, int] = {}

    def add(self, pattern: str, value: Value) -> None:
        prefix, exact = literal_prefix(pattern)
        if exact:
            self._exact.setdefault(prefix, {})[value] = None
            return
        if prefix not in self._by_prefix:
            self._by_prefix[prefix] = {}
            self._prefixes_of_length[len(prefix)] = self._prefixes_of_length.get(len(prefix), 0) + 1
        self._by_prefix[prefix].setdefault(pattern, {})[value] = None

    def remove(self, pattern: str, value: Value) -> None:
        prefix, exact = literal_prefix(pattern)
        if exact:
            _discard(self._exact, prefix, value)
            return
        bucket = self._by_prefix.get(prefix)
        if bucket is None:
            return
        _discard(bucket, pattern, value)
        if not bucket:
            del self._by_prefix[prefix]
            self._prefixes_of_length[len(prefix)] -= 1
            if not self._prefixes_of_length[len(prefix)]:
                del self._prefixes_of_length[len(prefix)]

    def find(self, topic: str, found: dict[Value, None]) -> None:
        """Add the values of all patterns that match."""
        found.update(self._exact.get(topic, {}))
        for length in self._prefixes_of_length:
            for pattern, values in self._by_prefix.get(topic[:length], {}).items():
                if character_expression(pattern).match(topic):
                    found.update(values)


def _discard(groups: dict[str, dict[Value, None]], key: str, value: Value) -> None:
    values = groups.get(key)
    if values is not None:
        values.pop(value, None)
        if not values:
            del groups[key]
