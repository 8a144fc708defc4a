"""Who may publish and subscribe what: step 3 on the way of a PUBLISH, before anything is translated."""

from collections.abc import Iterable

from mappings.topics import Scheme, matches

#: Entries of the decision cache before it is emptied.
_CACHE_ENTRIES = 10_000
#: Longer topics, in characters, are decided anew each time: they would fill the memory.
_LONGEST_KEPT_TOPIC = 1_024


class Access:
    """Allows what one of the configured topic filters covers; the default filter `#` covers everything.

    A subscription is allowed when its own filter, read as a topic, is matched by an allowed filter: `#` in a
    subscription is covered only by an allowed `#` at that level or above.
    """

    def __init__(self, *, publish: Iterable[str], subscribe: Iterable[str]) -> None:
        self._publish = tuple(publish)
        self._subscribe = tuple(subscribe)
        self.allows_every_publish = "#" in self._publish
        self._decided: dict[str, bool] = {}

    def may_publish(self, topic: str) -> bool:
        if self.allows_every_publish:
            return True
        decided = self._decided.get(topic)
        if decided is None:
            decided = any(matches(allowed, topic, Scheme.MQTT) for allowed in self._publish)
            if len(topic) <= _LONGEST_KEPT_TOPIC:
                if len(self._decided) >= _CACHE_ENTRIES:
                    self._decided.clear()
                self._decided[topic] = decided
        return decided

    def may_subscribe(self, topic_filter: str) -> bool:
        return any(
            allowed == "#" or _covers(allowed.split("/"), topic_filter.split("/")) for allowed in self._subscribe
        )


def _covers(allowed: list[str], asked: list[str]) -> bool:
    """Whether every topic that `asked` matches is matched by `allowed`, level by level.

    A wildcard at the start does not match topics that start with `$` (MQTT 3.1.1 section 4.7.2).
    """
    if asked[0].startswith("$") and allowed[0] in ("+", "#"):
        return False
    for index, level in enumerate(allowed):
        if level == "#":
            return True
        if index >= len(asked):
            return False
        if asked[index] == "#" or (asked[index] != level and level != "+"):
            return False
    return len(allowed) == len(asked)
