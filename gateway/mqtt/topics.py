"""What a topic name and a topic filter may look like (MQTT 3.1.1 section 4.7); matching is in the room `mappings`."""

from gateway.mqtt.errors import ProtocolViolation
from gateway.mqtt.wire import decode_text

MAXIMUM_CACHED_NAMES = 10_000  # our choice: a fleet's topics, not an attacker's
MAXIMUM_CACHED_BYTES = 1_000_000  # our choice: some 3 MB of memory with the decoded texts


def check_topic_name(topic: str) -> None:
    """ProtocolViolation when a PUBLISH or a will may not have this topic: empty, or with a wildcard (MQTT-3.3.2-2)."""
    if not topic:
        raise ProtocolViolation("the topic name is empty")
    if "#" in topic or "+" in topic:
        raise ProtocolViolation("the topic name holds a wildcard")


def check_topic_filter(topic_filter: str) -> None:
    """ProtocolViolation when the filter is empty, or a wildcard does not stand where it may (section 4.7.1).

    '#' must be the whole of the last level, '+' the whole of a level.
    """
    if not topic_filter:
        raise ProtocolViolation("the topic filter is empty")
    if "#" not in topic_filter and "+" not in topic_filter:
        return
    levels = topic_filter.split("/")
    if any("#" in level for level in levels[:-1]) or ("#" in levels[-1] and levels[-1] != "#"):
        raise ProtocolViolation("'#' in the topic filter is not the whole of the last level")
    if any("+" in level and level != "+" for level in levels):
        raise ProtocolViolation("'+' in the topic filter is not the whole of a level")


class TopicNames(dict[bytes, str]):
    """Checked topic names by their bytes: `names[data]` decodes and checks what it does not hold yet.

    Raises MalformedPacket for bad text and ProtocolViolation for a bad name, and keeps neither. Emptied as a whole when
    it grows past its limits, so a flood of names costs time only.
    """

    __slots__ = ("_kept_bytes",)

    def __init__(self) -> None:
        super().__init__()
        self._kept_bytes = 0

    def __missing__(self, data: bytes) -> str:
        topic = decode_text(data)
        check_topic_name(topic)
        if len(self) >= MAXIMUM_CACHED_NAMES or self._kept_bytes + len(data) > MAXIMUM_CACHED_BYTES:
            self.clear()
            self._kept_bytes = 0
        self._kept_bytes += len(data)
        self[data] = topic
        return topic


TOPIC_NAMES = TopicNames()
"""The names that the connections of this process have in common."""
