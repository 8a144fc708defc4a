"""A cache with a bound on what it holds: each entry has a weight, and the oldest entries leave for a new one."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class WeightedCache(Generic[Key, Value]):
    """Entries of at most `most` together, by `weigh`. One entry stays, whatever it weighs."""

    def __init__(self, weigh: Callable[[Key, Value], int], most: int) -> None:
        self._weigh = weigh
        self._most = most
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._weight = 0
        #: Looks up an entry; None if there is none.
        self.get = self._entries.get

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, key: Key, value: Value) -> None:
        """Keeps an entry, and replaces an earlier one with the same key."""
        earlier = self._entries.pop(key, None)
        self._weight += self._weigh(key, value) - (0 if earlier is None else self._weigh(key, earlier))
        self._entries[key] = value
        while self._weight > self._most and len(self._entries) > 1:
            self._weight -= self._weigh(*self._entries.popitem(last=False))
