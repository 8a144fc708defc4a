"""The index of topic patterns: which of many subscriptions a topic name matches.

The broker uses it at step 7a on the way of a PUBLISH. A topic that was seen before costs one look-up in a dictionary. A
new topic costs a step for each shape of the patterns, not for each pattern: `level_index` tells why that is the bound.
"""

from itertools import chain
from typing import Final, Generic

from mappings.topics.character_index import CharacterIndex
from mappings.topics.level_index import LevelIndex
from mappings.topics.shapes import Found, Shape, Shapes, Value
from mappings.topics.wildcards import Scheme

LONGEST_CACHED_TOPIC: Final = 1_024  # characters; a longer one is looked up each time: it would fill the memory
CACHED_TOPICS: Final = 65_536  # topics whose matches an index remembers; a full cache starts again


class PatternIndex(Generic[Value]):
    """Patterns with values, and the values whose pattern matches a topic.

    `match` remembers its answers; every change begins a new `generation`, and the first `match` after it forgets them.
    """

    def __init__(self, *, cached_topics: int = CACHED_TOPICS) -> None:
        self.generation = 0
        #: The shapes of its patterns. Their weight bounds the time of `match`.
        self.shapes = Shapes()
        self._cached_topics = cached_topics
        self._cache: dict[str, tuple[Value, ...]] = {}
        self._cache_generation = 0
        self._by_characters: CharacterIndex[Value] = CharacterIndex(self.shapes)
        self._by_levels: dict[Scheme, LevelIndex[Value]] = {
            scheme: LevelIndex(scheme, self.shapes) for scheme in (Scheme.TOPIC, Scheme.MQTT)
        }
        #: Those that have patterns.
        self._used: tuple[LevelIndex[Value] | CharacterIndex[Value], ...] = ()

    def shape(self, pattern: str, scheme: Scheme) -> Shape | None:
        """The shape that a pattern has or would have in this index; None if it costs no further step.

        TopicError for a wrong escape.
        """
        return self._patterns(scheme).shape(pattern)

    def add(self, pattern: str, scheme: Scheme, value: Value) -> None:
        """Add a pattern; the same pattern and value twice count once. TopicError for a wrong escape."""
        patterns = self._patterns(scheme)
        patterns.add(pattern, value)
        if patterns not in self._used:
            self._used = (*self._used, patterns)
        self.generation += 1

    def remove(self, pattern: str, scheme: Scheme, value: Value) -> None:
        """Remove what `add` added; nothing happens when it is not there."""
        self._patterns(scheme).remove(pattern, value)
        self._used = tuple(patterns for patterns in self._used if patterns)
        self.generation += 1

    def match(self, topic: str) -> tuple[Value, ...]:
        """The values of all patterns that match the topic name, each once, in no promised order."""
        if self._cache_generation != self.generation or len(self._cache) >= self._cached_topics:
            self._cache.clear()
            self._cache_generation = self.generation
        found = self._cache.get(topic)
        if found is None:
            found = self._find(topic)
            if len(topic) <= LONGEST_CACHED_TOPIC:
                self._cache[topic] = found
        return found

    def _find(self, topic: str) -> tuple[Value, ...]:
        found: Found[Value] = []
        for patterns in self._used:
            patterns.find(topic, found)
        return tuple(found[0]) if len(found) == 1 else tuple(dict.fromkeys(chain.from_iterable(found)))

    def _patterns(self, scheme: Scheme) -> LevelIndex[Value] | CharacterIndex[Value]:
        return self._by_characters if scheme is Scheme.CHARACTER else self._by_levels[scheme]
