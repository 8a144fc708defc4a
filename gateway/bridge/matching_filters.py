"""The filters of a session that match a topic, in bounded time even for a client that chooses both.

A part of step 9 on the way of a PUBLISH. Many filters are in an index by their shapes (mappings/topics/level_index.py),
made when the session is first sent something. A few are compared one by one, which takes less memory.
"""

from collections.abc import Callable, Collection, Iterable
from itertools import chain
from typing import Final

from mappings.topics.level_index import LevelIndex
from mappings.topics.shapes import Found, Shapes
from mappings.topics.topics import Scheme, matches

#: Up to so many filters are a few.
_FEW: Final = 8

Allows = Callable[[str], bool]


class MatchingFilters:
    """Finds them. `allows` says whether the access list allows a filter now; call `forget` when that has changed."""

    __slots__ = ("_index",)

    def __init__(self) -> None:
        self._index: LevelIndex[str] | None = None

    def of(self, topic: str, filters: Collection[str], allows: Allows) -> Iterable[str]:
        """Those of all filters of the session that match a topic and are allowed."""
        if len(filters) <= _FEW:
            return filter(allows, [each for each in filters if matches(each, topic, Scheme.MQTT)])
        if self._index is None:
            self._index = LevelIndex(Scheme.MQTT, Shapes())
            for each in filter(allows, filters):
                self._index.add(each, each)
        found: Found[str] = []
        self._index.find(topic, found)
        return chain.from_iterable(found)

    def add(self, topic_filter: str, allows: Allows) -> None:
        """The session has one more filter."""
        if self._index is not None and allows(topic_filter):
            self._index.add(topic_filter, topic_filter)

    def remove(self, topic_filter: str) -> None:
        """The session has a filter no more."""
        if self._index is not None:
            self._index.remove(topic_filter, topic_filter)

    def forget(self) -> None:
        """What the access list allows may have changed."""
        self._index = None
