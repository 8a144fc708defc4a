"""The limits on bytes and levels of topic names and filters; and a cache of names that pass them."""

from typing import Final

from gateway.config.limits import Limit
from gateway.config.mqtt_limits import SessionLimits
from gateway.limits.refusals import LimitReached, reached
from gateway.mqtt.reason_codes import ReasonCode

#: The most bytes of UTF-8 that one character has.
_BYTES_OF_CHARACTER: Final = 4
#: Topics that are kept, and their characters together; past either all are forgotten.
_KEPT_TOPICS: Final = 10_000
_KEPT_CHARACTERS: Final = 1_000_000


def levels_of(topic: str) -> int:
    """The levels of a topic name or filter; of a shared subscription with `$share` and the group."""
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
    """Passes most topics by their length alone: a short one has neither too many bytes nor too many levels."""

    def __init__(self, limits: SessionLimits) -> None:
        self._maximum_bytes = limits.maximum_topic_bytes
        self._maximum_levels = limits.maximum_topic_levels
        #: Topics of up to so many characters pass: ask `of_name` about longer ones alone.
        self.fine_characters = min(limits.maximum_topic_bytes // _BYTES_OF_CHARACTER, limits.maximum_topic_levels - 1)

    def of_name(self, topic: str) -> LimitReached | None:
        """Why a topic name is refused, if it is."""
        return self._reached(topic, ReasonCode.TOPIC_NAME_INVALID)

    def of_filter(self, topic_filter: str, asked: str) -> LimitReached | None:
        """Why a topic filter is refused, if it is. `asked`: of a shared subscription the part that topics match.

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
