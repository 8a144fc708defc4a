"""The filters of a session: those that match a topic, and the SUBSCRIBEs that asked for retained messages.

A part of step 9 on the way of a PUBLISH. Matching takes bounded time even for a client that chooses filters and topics.
Many filters are in an index by their shapes (mappings/topics/level_index.py), which is made when the session is first
sent something. A few filters are compared one by one, which takes less memory.

A retained copy is due only for the filters of the SUBSCRIBE that asked for it. The session remembers its latest
SUBSCRIBEs for this, within bounds on their number and on the characters of their filters. Where it has forgotten a
SUBSCRIBE, it takes every copy of that time as due, so that a bound costs no copy. So it does after a restart while the
broker goes on with copies for SUBSCRIBEs of the run before.
"""

from collections import deque
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


#: The most SUBSCRIBEs that a session remembers, and the most characters of their filters together.
_MARKS: Final = 1_000
_CHARACTERS: Final = 65_536
#: Larger than the number of any message.
_NO_END: Final = 2**64


class RetainedMark:
    """A SUBSCRIBE: its first and last number of retained copies, and its filters that want retained messages.

    `filters` is None for one that has been forgotten: every copy is for it.
    """

    __slots__ = ("filters", "first", "is_answered", "last", "looks_back", "under_way")

    def __init__(self, first: int, filters: frozenset[str] | None, looks_back: int) -> None:
        self.first = first
        #: How many earlier marks to check: back to the oldest that had more to come when this one came.
        self.looks_back = looks_back
        #: It gets its last number when it is answered and all is sent.
        self.last = _NO_END
        self.filters = filters
        self.is_answered = False
        #: The names of its commands that bring copies behind their answer.
        self.under_way: set[bytes] = set()

    @property
    def characters(self) -> int:
        """Characters of its filters."""
        return sum(map(len, self.filters or ()))

    def wants(self, topic: str) -> bool:
        """Whether one of its filters matches a topic."""
        return self.filters is None or any(matches(each, topic, Scheme.MQTT) for each in self.filters)

    def answer(self, number: int) -> None:
        """It is answered; `number` is above those of its copies so far."""
        self.is_answered = True
        if not self.under_way:
            self.last = number


class RetainedMarks:
    """The SUBSCRIBEs of this run that a session remembers, oldest first."""

    __slots__ = ("_characters", "_marks")

    def __init__(self) -> None:
        self._marks: deque[RetainedMark] = deque()
        self._characters = 0

    @property
    def characters(self) -> int:
        """Characters of all filters that are remembered."""
        return self._characters

    def begin(self, first: int, filters: frozenset[str] | None) -> RetainedMark:
        """A SUBSCRIBE begins: retained copies from number `first` on may be for it. None: its filters are forgotten."""
        is_open = (place for place, mark in enumerate(self._marks) if mark.last == _NO_END)
        oldest = next(is_open, len(self._marks))
        mark = RetainedMark(first, filters, len(self._marks) - oldest)
        self._marks.append(mark)
        self._characters += mark.characters
        while len(self._marks) > _MARKS or (self._characters > _CHARACTERS and len(self._marks) > 1):
            self._characters -= self._marks.popleft().characters
        return mark

    def all_sent(self, name: bytes, number: int) -> None:
        """A command has brought its last copy; `number` is above those of its copies."""
        for mark in self._marks:
            if name in mark.under_way:
                mark.under_way.remove(name)
                if mark.is_answered:
                    mark.answer(number)
                return

    def want(self, topic: str, number: int) -> bool:
        """Whether a retained copy is due. After a SUBSCRIBE it is due only for the filters of that packet.

        A copy that came while an earlier SUBSCRIBE had more to come may be for that one.
        """
        left: int | None = None
        for mark in reversed(self._marks):
            if left is None and mark.first > number:
                continue
            is_latest = left is None
            left = mark.looks_back if left is None else left - 1
            if (is_latest or number <= mark.last) and mark.wants(topic):
                return True
            if not left:
                return False
        return True
