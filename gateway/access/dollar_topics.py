"""Topics that begin with `$` are reserved for servers, except those that the operator opens (MQTT 5.0 section 4.7.2).

No client publishes on a reserved topic, subscribes to one, or is sent a message from there. The access list and the
keys of [access] can only narrow the open topics further. Of `$share/GROUP/FILTER` only the FILTER counts at level 5.
Everybody may subscribe to the gateway's own topics below `$SYS/broker` (bridge/sys_topics.py), if they are switched on,
and nobody may publish there.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Self

from gateway.access.filters import covers
from gateway.config.tables import MqttSettings
from mappings.topics.topics import Scheme, matches

#: The beginning of the gateway's own topics, which have mosquitto's names.
SYS_ROOT: Final = "$SYS/broker/"
_SYS_LEVELS: Final = ("$SYS", "broker", "#")
#: The filter that everybody uses for them. It covers more topics; reserved ones are not sent.
_ALL_OF_SYS: Final = "$SYS/#"
#: So many of each kind are named, so that a store with many does not fill the screen.
_NAMED: Final = 10
_KEPT: Final = "they are kept, and mqtt.dollar_topics opens them"


class DollarTopics:
    """Decides which of them are open; `opened`: topic filters of the configuration."""

    def __init__(self, opened: Iterable[str] = (), *, has_sys_topics: bool = False) -> None:
        self._opened = tuple(opened)
        self._has_sys_topics = has_sys_topics

    @classmethod
    def of(cls, settings: MqttSettings) -> Self:
        """As the configuration says."""
        return cls(settings.dollar_topics, has_sys_topics=settings.sys_topics_interval_s > 0)

    def may_publish(self, topic: str) -> bool:
        """Whether a topic name is not reserved."""
        if not topic.startswith("$"):
            return True
        return self._opens(topic) and not (self._has_sys_topics and topic.startswith(SYS_ROOT))

    def may_subscribe(self, topic_filter: str) -> bool:
        """Whether a topic filter matches no reserved topic; a wildcard at its beginning matches none."""
        if not topic_filter.startswith("$"):
            return True
        asked = topic_filter.split("/")
        if any(covers(allowed.split("/"), asked) for allowed in self._opened):
            return True
        return self._has_sys_topics and (topic_filter == _ALL_OF_SYS or covers(_SYS_LEVELS, asked))

    def may_receive(self, topic: str) -> bool:
        """Whether messages on a topic name may be sent to clients."""
        if not topic.startswith("$") or self._opens(topic):
            return True
        return self._has_sys_topics and topic.startswith(SYS_ROOT)

    def cautions(self, subscriptions: Iterable[tuple[str, str]], retained: Iterable[str]) -> Iterator[str]:
        """Warnings about reserved topics in a store: subscriptions, and retained messages."""
        filters = [f"{asked} of {client}" for client, asked in subscriptions if not self.may_subscribe(asked)]
        if filters:
            yield f"subscriptions bring nothing, because their topics are reserved: {_some(filters)}; {_KEPT}"
        topics = [topic for topic in retained if not self.may_receive(topic)]
        if topics:
            yield f"retained messages reach no client, because their topics are reserved: {_some(topics)}; {_KEPT}"

    def _opens(self, topic: str) -> bool:
        return any(matches(allowed, topic, Scheme.MQTT) for allowed in self._opened)


ALL_RESERVED: Final = DollarTopics()


def _some(texts: list[str]) -> str:
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return ", ".join(repr(text[:200]) for text in texts[:_NAMED]) + more
