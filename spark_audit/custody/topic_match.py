"""Topics against one pattern, and against many: written for the audit alone.

LEVELS      of MQRFH2: `+` is one level, `#` any number of levels, none included, wherever it stands alone
CHARACTERS  of MQRFH: `*` is any characters, `?` is one, both match `/` too; `%` escapes `*`, `?` and `%`
MQTT        as LEVELS; a filter that begins with a wildcard does not match a topic that begins with `$`

Many patterns are looked up by their literal parts: a pattern without wildcards by its text, a pattern of levels by the
levels that are no wildcards, a pattern of characters by the text in front of its first wildcard. Answers are remembered
until a pattern comes or goes.

Sources: MQTT 3.1.1 section 4.7; IBM MQ, "Wildcard schemes"; WebSphere MQ V6 Publish/Subscribe User's Guide, "Topics".
"""

from collections.abc import Hashable, Iterable, Iterator
from enum import StrEnum
from typing import Final, Generic, NamedTuple, TypeVar

from spark_audit.reperform.topics import characters_match, read_characters

Value = TypeVar("Value")

_SHARED: Final = "$share/"
#: Topics whose answers are remembered.
_MOST_ANSWERS: Final = 200_000


class Scheme(StrEnum):
    """Which characters of a pattern are wildcards."""

    LEVELS = "levels"
    CHARACTERS = "characters"
    MQTT = "mqtt"


def topic_matches(pattern: str, topic: str, scheme: Scheme) -> bool:
    """Whether a pattern of a scheme matches a topic name."""
    if scheme is Scheme.CHARACTERS:
        return characters_match(read_characters(pattern), topic)
    if scheme is Scheme.MQTT and topic[:1] == "$" and pattern[:1] in ("+", "#"):
        return False
    return _levels_match(pattern.split("/"), topic.split("/"))


def behind_group(topic_filter: str) -> str:
    """The filter of `$share/GROUP/FILTER`; any other filter as it is."""
    return topic_filter.removeprefix(_SHARED).partition("/")[2] if is_shared(topic_filter) else topic_filter


def is_shared(topic_filter: str | None) -> bool:
    """Whether a filter, or the name of a subscriber, is that of a shared subscription."""
    return topic_filter is not None and topic_filter.startswith(_SHARED)


def _levels_match(pattern: list[str], topic: list[str]) -> bool:
    """Keeps the places in the pattern that the levels so far may lead to."""
    places = _with_hashes({0}, pattern)
    for level in topic:
        places = {
            place if pattern[place] == "#" else place + 1
            for place in places
            if place < len(pattern) and pattern[place] in ("#", "+", level)
        }
        places = _with_hashes(places, pattern)
    return len(pattern) in places


def _with_hashes(places: set[int], pattern: list[str]) -> set[int]:
    """The places, and those behind a `#` that stands for no level."""
    waiting = list(places)
    while waiting:
        place = waiting.pop()
        if place < len(pattern) and pattern[place] == "#" and place + 1 not in places:
            places.add(place + 1)
            waiting.append(place + 1)
    return places


class _Shape(NamedTuple):
    """Patterns of levels that are looked up alike: the number of levels, the literal ones, and whether `#` follows."""

    levels: int
    literal: tuple[int, ...]
    has_tree: bool


class _Under(NamedTuple, Generic[Value]):
    """A value and its pattern; `characters` are those of a pattern of characters."""

    value: Value
    pattern: str
    scheme: Scheme
    characters: tuple[str, ...] = ()


#: Values by the literal parts of their patterns.
_Table = dict[Hashable, dict[_Under[Value], None]]


class PatternIndex(Generic[Value]):
    """Values under patterns; one value may stand under several."""

    def __init__(self) -> None:
        self._literal: _Table[Value] = {}
        self._by_shape: dict[_Shape, _Table[Value]] = {}
        self._by_prefix: dict[int, _Table[Value]] = {}
        self._others: _Table[Value] = {}
        self._answers: dict[str, tuple[Value, ...]] = {}

    def add(self, pattern: str, scheme: Scheme, value: Value) -> None:
        """Adds a value under a pattern."""
        self._answers.clear()
        table, key, under = self._place(pattern, scheme, value)
        table.setdefault(key, {})[under] = None

    def remove(self, pattern: str, scheme: Scheme, value: Value) -> None:
        """Removes it again. It must be there."""
        self._answers.clear()
        table, key, under = self._place(pattern, scheme, value)
        del table[key][under]
        if not table[key]:
            del table[key]

    def matching(self, topic: str) -> tuple[Value, ...]:
        """The values whose patterns match a topic name, each once."""
        known = self._answers.get(topic)
        if known is None:
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            known = self._answers[topic] = tuple(dict.fromkeys(self._found(topic)))
        return known

    def _place(self, pattern: str, scheme: Scheme, value: Value) -> tuple[_Table[Value], Hashable, _Under[Value]]:
        """The table of a pattern, its key there, and what stands under that key."""
        under = _Under(value, pattern, scheme)
        if scheme is Scheme.CHARACTERS:
            read = tuple(read_characters(pattern))
            prefix = _literal_prefix(read)
            if len(prefix) == len(read):
                return self._literal, prefix, under
            return self._by_prefix.setdefault(len(prefix), {}), prefix, _Under(value, pattern, scheme, read)
        levels = pattern.split("/")
        has_tree = levels[-1] == "#"
        kept = levels[:-1] if has_tree else levels
        if "#" in kept or (scheme is Scheme.MQTT and levels[0] in ("+", "#")):
            return self._others, pattern, under
        literal = tuple(place for place, level in enumerate(kept) if level != "+")
        if len(literal) == len(levels):
            return self._literal, pattern, under
        shape = _Shape(len(kept), literal, has_tree)
        return self._by_shape.setdefault(shape, {}), tuple([kept[place] for place in literal]), under

    def _found(self, topic: str) -> Iterator[Value]:
        tables = (self._literal.get(topic, ()), *self._of_shapes(topic.split("/")))
        yield from (under.value for table in tables for under in table)
        for length, prefixes in self._by_prefix.items():
            for under in prefixes.get(topic[:length], ()):
                if under.characters[length:] == ("*",) or characters_match(under.characters, topic):
                    yield under.value
        others = (under for table in self._others.values() for under in table)
        yield from (under.value for under in others if topic_matches(under.pattern, topic, under.scheme))

    def _of_shapes(self, levels: list[str]) -> Iterator[Iterable[_Under[Value]]]:
        for shape, patterns in self._by_shape.items():
            if len(levels) == shape.levels or (shape.has_tree and len(levels) > shape.levels):
                yield patterns.get(tuple([levels[place] for place in shape.literal]), ())


def _literal_prefix(pattern: tuple[str, ...]) -> str:
    """The text of a pattern of characters in front of its first wildcard."""
    prefix = ""
    for character in pattern:
        if character in ("*", "?"):
            break
        prefix += character[-1]
    return prefix
