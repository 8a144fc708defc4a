"""Checks of topic names and topic filters (MQTT 3.1.1 section 4.7, MQTT 5.0 sections 4.7 and 4.8.2).

Matching is in mappings/topics.
"""

from collections.abc import Callable
from typing import NamedTuple

from gateway.mqtt.errors import MalformedPacket, ProtocolViolation
from gateway.mqtt.wire import decode_plain_text, decode_text

SHARED = "$share/"
"""The beginning of a shared subscription's topic filter, at level 5 (MQTT-4.8.2-1)."""

MAXIMUM_CACHED_NAMES = 10_000  # our choice: a fleet's topics, not an attacker's
MAXIMUM_CACHED_BYTES = 1_000_000  # our choice: some 3 MB of memory with the decoded texts


def check_topic_name(topic: str) -> None:
    """Checks the topic of a PUBLISH or a will (MQTT-3.3.2-2).

    Raises ProtocolViolation if it is empty (MQTT 5.0 section 3.3.2.1), and MalformedPacket if it has a wildcard.
    """
    if not topic:
        raise ProtocolViolation("the topic name is empty")
    if "#" in topic or "+" in topic:
        raise MalformedPacket("the topic name holds a wildcard")


def check_topic_filter(topic_filter: str) -> None:
    """Raises MalformedPacket if the filter is empty, or has a wildcard in a wrong place (section 4.7.1).

    '#' must be the whole of the last level, '+' the whole of a level.
    """
    if not topic_filter:
        raise MalformedPacket("the topic filter is empty")
    if "#" not in topic_filter and "+" not in topic_filter:
        return
    levels = topic_filter.split("/")
    if any("#" in level for level in levels[:-1]) or ("#" in levels[-1] and levels[-1] != "#"):
        raise MalformedPacket("'#' in the topic filter is not the whole of the last level")
    if any("+" in level and level != "+" for level in levels):
        raise MalformedPacket("'+' in the topic filter is not the whole of a level")


class Share(NamedTuple):
    """A shared subscription: the group that shares it, and the filter that its members share (section 4.8.2)."""

    name: str
    topic_filter: str


def share_of(topic_filter: str) -> Share | None:
    """The parts of a shared subscription's filter that `check_shared_filter` has passed; None for any other filter."""
    if not topic_filter.startswith(SHARED):
        return None
    name, _, shared_filter = topic_filter[len(SHARED) :].partition("/")
    return Share(name, shared_filter)


def check_shared_filter(topic_filter: str) -> None:
    """Raises ProtocolViolation if a filter that begins with "$share/" is not "$share/", ShareName, "/", filter.

    The ShareName has one character or more, and no wildcard (MQTT-4.8.2-1, MQTT-4.8.2-2). Call it only at level 5. It
    passes all other filters.
    """
    share = share_of(topic_filter)
    if share is None:
        return
    if not share.name or "#" in share.name or "+" in share.name:
        raise ProtocolViolation("the ShareName of a shared subscription is empty or holds a wildcard (MQTT-4.8.2-2)")
    if not share.topic_filter:
        raise ProtocolViolation("a shared subscription has no topic filter behind its ShareName (MQTT-4.8.2-2)")
    check_topic_filter(share.topic_filter)


class TopicNames(dict[bytes, str]):
    """Checked topic names by their bytes: `names[data]` decodes and checks a name that it does not hold yet.

    Raises MalformedPacket or ProtocolViolation for bytes that are no topic name, and does not keep them. Past its
    limits it empties itself as a whole, so a flood of names costs time only.
    """

    __slots__ = ("_decode", "_kept_bytes")

    def __init__(self, decode: Callable[[bytes], str] = decode_plain_text) -> None:
        super().__init__()
        self._decode = decode
        self._kept_bytes = 0

    def __missing__(self, data: bytes) -> str:
        topic = self._decode(data)
        check_topic_name(topic)
        if len(self) >= MAXIMUM_CACHED_NAMES or self._kept_bytes + len(data) > MAXIMUM_CACHED_BYTES:
            self.clear()
            self._kept_bytes = 0
        self._kept_bytes += len(data)
        self[data] = topic
        return topic


TOPIC_NAMES = TopicNames()
"""The names that all connections of this process share."""

TOPIC_NAMES_OF_3_1 = TopicNames(decode_text)
"""The names at level 3, which may have control characters."""
