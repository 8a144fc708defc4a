"""How long and how deep topic names and filters may be; which names were looked at and found in order."""

from typing import Final

from gateway.config.limits import Limit, SessionLimits
from gateway.limits.refusals import LimitReached, reached
from gateway.mqtt.reason_codes import ReasonCode

#: The most bytes of UTF-8 that one character has.
_BYTES_OF_CHARACTER: Final = 4
#: Topics that are kept, and their characters together; past either all are forgotten.
_KEPT_TOPICS: Final = 10_000
_KEPT_CHARACTERS: Final = 1_000_000


class FineTopics(set[str]):
    """Topics that no limit touches: whether one is here costs a PUBLISH one look. Only a bounded number is kept."""

    def __init__(self) -> None:
        super().__init__()
        self._characters = 0

    def keep(self, topic: str) -> None:
        """Takes note that no limit touches a topic."""
        if len(self) >= _KEPT_TOPICS or self._characters + len(topic) > _KEPT_CHARACTERS:
            self.clear()
            self._characters = 0
        self._characters += len(topic)
        self.add(topic)


class TopicLimits:
    """Answers most topics by their length alone: a shorter one can have neither too many bytes nor too many levels."""

    def __init__(self, limits: SessionLimits) -> None:
        self._maximum_bytes = limits.maximum_topic_bytes
        self._maximum_levels = limits.maximum_topic_levels
        #: Topics of so many characters need no look: ask `of_name` about longer ones alone.
        self.fine_characters = min(limits.maximum_topic_bytes // _BYTES_OF_CHARACTER, limits.maximum_topic_levels - 1)

    def of_name(self, topic: str) -> LimitReached | None:
        """Why a topic name is not taken; None where it is."""
        return self._reached(topic, ReasonCode.TOPIC_NAME_INVALID)

    def of_filter(self, topic_filter: str, asked: str) -> LimitReached | None:
        """Why a topic filter is not taken; None where it is. `asked`: of a shared subscription's its last part.

        The name of a group is no level, and its bytes are kept like the others.
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
