"""The index of topic patterns: which of many subscriptions a topic name matches.

The broker uses it at step 7a on the way of a PUBLISH. A topic that was seen before costs one look-up in a dictionary. A
new topic costs a step for each shape of the patterns, not for each pattern: `level_index` tells why that is the bound.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Final, Generic

from mappings.topics.character_index import CharacterIndex
from mappings.topics.level_index import LevelIndex
from mappings.topics.shapes import Found, Shape, Shapes, Value
from mappings.topics.wildcards import Scheme

LONGEST_CACHED_TOPIC: Final = 1_024  # characters; a longer one is looked up each time: it would fill the memory
CACHED_TOPICS: Final = 65_536  # topics whose matches an index remembers; a full cache starts again
_KEPT_VALUES: Final = 4_000_000  # of all remembered answers together, 8 bytes each
_VALUES_OF_AN_ANSWER: Final = 20  # that take as much memory as an answer beside its values


class PatternIndex(Generic[Value]):
    """Patterns with values, and the values whose pattern matches a topic.

    `match` remembers its answers; every change begins a new `generation`, and the first `match` after it forgets them.
    Topics that match the same patterns have one answer in common: the same tuple.
    """

    def __init__(self, *, cached_topics: int = CACHED_TOPICS) -> None:
        self.generation = 0
        #: How often `match` has forgotten its answers.
        self.forgets = 0
        #: The shapes of its patterns. Their weight bounds the time of `match`.
        self.shapes = Shapes()
        self._cached_topics = cached_topics
        self._cache: dict[str, tuple[Value, ...]] = {}
        self._cache_generation = 0
        #: The answers, by the values of the patterns that match (id); and the length of all of them.
        self._answers: dict[tuple[int, ...], tuple[Value, ...]] = {}
        self._kept_values = 0
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

    def new_shapes(self, patterns: Iterable[tuple[str, Scheme, Value]]) -> list[Shape]:
        """The shapes that the index would have in addition with these patterns; TopicError for a wrong escape.

        The values must not be there yet. Patterns that are compared one by one have a shape each, so all are tried.
        """
        tried = tuple(patterns)
        found: list[Shape] = []
        for each in tried:
            shape = self.shape(each[0], each[1])
            if shape is not None and shape not in self.shapes:
                found.append(shape)
            if len(tried) > 1:
                self.add(*each)
        for each in tried if len(tried) > 1 else ():
            self.remove(*each)
        return found

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
        is_full = len(self._cache) >= self._cached_topics or self._kept_values >= _KEPT_VALUES
        if is_full or self._cache_generation != self.generation:
            self._forget()
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
        if len(found) == 1 and isinstance(found[0], tuple):
            return found[0]
        of_patterns = tuple(map(id, found))
        answer = self._answers.get(of_patterns)
        if answer is None:
            answer = tuple(dict.fromkeys(chain.from_iterable(found)))
            self._answers[of_patterns] = answer
            self._kept_values += len(answer) + len(of_patterns) + _VALUES_OF_AN_ANSWER
        return answer

    def _forget(self) -> None:
        """Forgets all answers. Until the next change the values of a pattern are the same object."""
        self._cache.clear()
        self._answers.clear()
        self._kept_values = 0
        self._cache_generation = self.generation
        self.forgets += 1

    def _patterns(self, scheme: Scheme) -> LevelIndex[Value] | CharacterIndex[Value]:
        return self._by_characters if scheme is Scheme.CHARACTER else self._by_levels[scheme]
