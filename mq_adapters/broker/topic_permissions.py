"""PUB and SUB of topic objects: the topics on which publishing and subscribing are allowed.

A topic object decides for its TOPICSTR and all topics below, down to the next object that decides otherwise. An object
with ASPARENT does not decide, and SYSTEM.BASE.TOPIC decides for the root. If a stream is a topic space, its topics
stand below the TOPICSTR of the topic object with the stream's name. If there is no such object, they stand below the
stream's name. For a pattern only the levels in front of its first wildcard count. So, as on IBM MQ, a subscription
above a closed topic still gets publications below it, and existing subscriptions stay. The refusal is 3081, with
MQPSErrorId 2051 or 2503, the codes of MQPUT and MQSUB.
Source: IBM MQ documentation, "DEFINE TOPIC", PUB and SUB; "Streams and topics".
"""

from collections.abc import Iterable
from typing import Final

from mappings.reasons import Reason
from mappings.topics.topics import Scheme, literal_prefix
from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.broker.responses import CommandRefusal
from mq_adapters.embedded.objects import Objects
from mq_adapters.reasons import ReasonCode
from mq_adapters.system_queues import DEFAULT_STREAM

MQRC_SUB_INHIBITED: Final = 2503
_BASE_TOPIC: Final = "SYSTEM.BASE.TOPIC"
_AS_PARENT: Final = "ASPARENT"
_WILDCARDS: Final = frozenset({"+", "#"})

Levels = tuple[str, ...]


class TopicPermissions:
    """The present PUB and SUB attributes of a queue manager's topic objects."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._read_at = -1
        self._deepest = 0
        self._closing = 0
        self._said: dict[str, dict[Levels, bool]] = {}

    @property
    def closing_objects(self) -> int:
        """How many topic objects close their topics to publishers."""
        self._read("PUB")
        return self._closing

    def refused_topics(self, space: str, routing_topics: Iterable[str]) -> tuple[str, ...]:
        """The topics of a topic space on which nobody may publish."""
        said = self._read("PUB")
        if not said:
            return ()
        return tuple(topic for topic in routing_topics if not self._is_allowed(said, space, tuple(topic.split("/"))))

    def may_publish_on(self, space: str, pattern: str, scheme: Scheme) -> bool:
        """Whether a DeletePub may name a routing pattern."""
        return self._is_allowed(self._read("PUB"), space, _literal_levels(pattern, scheme))

    def may_subscribe_to(self, space: str, pattern: str, scheme: Scheme) -> bool:
        """Whether a RegSub or ReqUpdate may name a routing pattern."""
        return self._is_allowed(self._read("SUB"), space, _literal_levels(pattern, scheme))

    # -- inside --------------------------------------------------------------------------------------------------------

    def _read(self, keyword: str) -> dict[Levels, bool]:
        """The levels where PUB or SUB is set, and whether it is ENABLED; read again if objects have changed."""
        if self._read_at != self._objects.changes:
            topics = self._objects.all((ObjectType.TOPIC,))
            self._said = {keyword: _said(topics, keyword) for keyword in ("PUB", "SUB")}
            self._deepest = max((len(levels) for said in self._said.values() for levels in said), default=0)
            self._closing = sum(not is_enabled for is_enabled in self._said["PUB"].values())
            self._read_at = self._objects.changes
        return self._said[keyword]

    def _is_allowed(self, said: dict[Levels, bool], space: str, levels: Levels) -> bool:
        if not said:
            return True
        path = (*self._levels_of(space), *levels)[: self._deepest]
        places = (path[:length] for length in range(len(path), -1, -1))
        return next((said[place] for place in places if place in said), True)

    def _levels_of(self, space: str) -> Levels:
        """The topic string above all topics of a topic space in the tree."""
        if space == DEFAULT_STREAM:
            return ()
        stream = self._objects.find(ObjectType.TOPIC, space)
        return tuple(((stream.text("TOPICSTR") if stream is not None else "") or space).split("/"))


def publish_refusal(topics: Iterable[str]) -> CommandRefusal:
    """3081 for topics on which nobody may publish."""
    return _refusal(ReasonCode.MQRC_PUT_INHIBITED, topics)


def subscribe_refusal(topics: Iterable[str]) -> CommandRefusal:
    """3081 for topics to which nobody may subscribe."""
    return _refusal(MQRC_SUB_INHIBITED, topics)


def _refusal(error_id: int, topics: Iterable[str]) -> CommandRefusal:
    named = (("Topic", topic) for topic in topics)
    return CommandRefusal(Reason.MQRCCF_NOT_AUTHORIZED, ("ErrorId", str(int(error_id))), *named)


def _said(topics: Iterable[Definition], keyword: str) -> dict[Levels, bool]:
    """The levels where a keyword is set. Of two objects with one topic string the first by name counts."""
    said: dict[Levels, bool] = {}
    for topic in topics:
        topic_string, value = topic.text("TOPICSTR"), topic.text(keyword)
        if value != _AS_PARENT and (topic_string or topic.name == _BASE_TOPIC):
            said.setdefault(tuple(topic_string.split("/")) if topic_string else (), value == "ENABLED")
    return said


def _literal_levels(pattern: str, scheme: Scheme) -> Levels:
    """The levels in front of the first wildcard."""
    if scheme is Scheme.CHARACTER:
        prefix, is_exact = literal_prefix(pattern)
        levels = prefix.split("/")
        return tuple(levels if is_exact else levels[:-1])
    levels = pattern.split("/")
    place = next((place for place, level in enumerate(levels) if level in _WILDCARDS), len(levels))
    return tuple(levels[:place])
