"""The limits on bytes and levels of topic names and filters, and a cache of names that pass them."""

from typing import Final

from gateway.config.limits import Limit
from gateway.config.mqtt_limits import SessionLimits
from gateway.limits.refusals import LimitReached, reached
from gateway.mqtt.reason_codes import ReasonCode

#: The most bytes of UTF-8 that one character has.
_BYTES_OF_CHARACTER: Final = 4
#: The most topics that are kept, and the most characters of them together. Past either, all are forgotten.
_KEPT_TOPICS: Final = 10_000
_KEPT_CHARACTERS: Final = 1_000_000


def levels_of(topic: str) -> int:
    """The levels of a topic name or filter. A shared subscription's levels include `$share` and the group."""
    return topic.count("/") + 1


class FineTopics(set[str]):
    """A bounded cache of topic names that pass all limits: a PUBLISH on one of them costs one lookup."""

    def __init__(self) -> None:
        super().__init__()
        self._characters = 0

    def keep(self, topic: str) -> None:
        """Adds a topic name that passes all limits."""
        if len(self) >= _KEPT_TOPICS or self._characters + len(topic) > _KEPT_CHARACTERS:
            self.clear()
            self._characters = 0
        self._characters += len(topic)
        self.add(topic)


class TopicLimits:
    """Passes most topics by their length alone: a short topic has neither too many bytes nor too many levels."""

    def __init__(self, limits: SessionLimits) -> None:
        self._maximum_bytes = limits.maximum_topic_bytes
        self._maximum_levels = limits.maximum_topic_levels
        #: Topics of up to so many characters pass. Ask `of_name` only about longer ones.
        self.fine_characters = min(limits.maximum_topic_bytes // _BYTES_OF_CHARACTER, limits.maximum_topic_levels - 1)

    def of_name(self, topic: str) -> LimitReached | None:
        """The limit that refuses a topic name, if any."""
        return self._reached(topic, ReasonCode.TOPIC_NAME_INVALID)

    def of_filter(self, topic_filter: str, asked: str) -> LimitReached | None:
        """The limit that refuses a topic filter, if any. `asked`: the part of a shared subscription that topics match.

        The group's name is not a level, but its bytes count.
        """
        found = self._reached(asked, ReasonCode.TOPIC_FILTER_INVALID)
        if found is None and len(topic_filter.encode()) > self._maximum_bytes:
            return reached(Limit.TOPIC_BYTES, ReasonCode.TOPIC_FILTER_INVALID)
        return found

    def _reached(self, topic: str, reason_code: ReasonCode) -> LimitReached | None:
        if len(topic) <= self.fine_characters:
            return None
        if len(topic.encode()) > self._maximum_bytes:
            return reached(Limit.TOPIC_BYTES, reason_code)
        if topic.count("/") >= self._maximum_levels:
            return reached(Limit.TOPIC_LEVELS, reason_code)
        return None
