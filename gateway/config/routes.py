"""Routes: the broker that a topic belongs to, and the brokers that a subscription must be registered at.

Step 3 on the way of a PUBLISH. The first route with a filter that matches the topic counts. A topic without a route
belongs to the embedded broker. A subscription goes to every destination that may have topics of it. There it asks only
for topics of the destination's routes; the overlap of two filters is again one filter. So each topic comes from one
broker alone, and the gateway needs authority there only for its own topics.

This module also decides, before anything is acknowledged, whether MQ can carry a topic. In its header it has at most
10,240 characters, with the prefix of its stream, and in MQRFH with escapes for `%`, `*` and `?`. An MQRFH2 carries only
characters of XML 1.0. MQ can always carry the properties of MQTT 5 (usr_folder.py). Sources: MQTT 3.1.1 section 4.7;
IBM MQ, "Streams and topics", and MQ_TOPIC_STR_LENGTH.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from gateway.config import RouteSettings, TargetSettings
from mappings.commands.command import Dialect
from mappings.commands.rules import check_topic_text
from mappings.errors import ConversionError
from mappings.reasons import Reason
from mappings.topics.streams import StreamStyle, StreamTopic
from mappings.topics.topics import Scheme, character_patterns, escape_topic, matches
from mq_adapters.system_queues import DEFAULT_STREAM

#: The most topics whose route is kept. Past it the cache is emptied.
_KNOWN_TOPICS: Final = 10_000
#: Longer topics (characters) are not kept, because they would fill the memory.
_LONGEST_KEPT_TOPIC: Final = 1_024
_WILDCARDS: Final = ("+", "#")
#: `streams` of a target whose streams are queues, not prefixes.
_STREAM_IS_QUEUE: Final = "queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """A topic space of a broker: the embedded broker's (`target` is None), or one stream at a target.

    `key` names it in the store; two destinations with the same key are equal. `stream_name` is the name of the stream
    in commands, if they name it. `prefix` stands in front of its topics there. `topics` are the filters of its routes,
    in order.
    """

    key: str
    target: TargetSettings | None = field(default=None, compare=False)
    stream: str = field(default=DEFAULT_STREAM, compare=False)
    stream_name: str | None = field(default=None, compare=False)
    prefix: str = field(default="", compare=False)

    @property
    def why_nobody_can_subscribe(self) -> str:
        """Why a SUBSCRIBE to this stream is refused, and what to do; "" if it is not refused.

        A Publish names its stream by its queue. A RegSub goes to the control queue, and MQRFH2 has no field for the
        stream.
        """
        if self.target is None or self.target.header != "mqrfh2" or self.stream_name is None:
            return ""
        return (
            f"MQRFH2 cannot name stream {self.stream_name} in a RegSub; set header of target {self.target.name} to"
            ' "mqrfh", or its streams to "message_broker" or "queue_manager"'
        )

    def pattern_texts(self, topic_filter: str) -> tuple[str, ...]:
        """The patterns to register at a target for a topic filter: with its prefix, and in the scheme of its header.

        Raises MappingError if the target's header cannot carry one.
        """
        assert self.target is not None, "the embedded broker's patterns are the gateway's own"
        if self.why_nobody_can_subscribe:
            raise ConversionError(
                Reason.MQRC_RFH_PARM_ERROR, self.why_nobody_can_subscribe, parameter=self.stream_name or ""
            )
        if self.target.header == "mqrfh2":
            return (self._prefixed(topic_filter, Scheme.TOPIC),)
        return tuple(self._prefixed(pattern, Scheme.CHARACTER) for pattern in character_patterns(topic_filter))

    def _prefixed(self, pattern: str, scheme: Scheme) -> str:
        style = None if self.target is None else _stream_style(self.target)
        if style is None:
            return pattern
        return style.pattern(StreamTopic(stream_name=self.stream, topic=pattern), scheme)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The way of publications of some topics: the queue there, and the topic space in which they are published.

    `target` is None for the embedded broker.
    """

    topics: tuple[str, ...]
    queue: str
    destination: Destination

    @property
    def target(self) -> TargetSettings | None:
        return self.destination.target


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """The meaning of a topic filter at one destination: its overlaps with the routes' filters, and their patterns."""

    destination: Destination
    topic_filters: tuple[str, ...]
    patterns: tuple[str, ...]


EMBEDDED: Final = Destination(key="")
_TO_EMBEDDED: Final = Route(topics=("#",), queue="", destination=EMBEDDED)


class Routes:
    """The routes of a configuration; pure, and the same for the daemon and for `rfhbridge explain`."""

    def __init__(
        self,
        routes: Iterable[RouteSettings] = (),
        targets: Iterable[TargetSettings] = (),
        *,
        own_dialect: Dialect = Dialect.MQRFH2,
    ) -> None:
        """`own_dialect`: that of commands to the embedded broker."""
        by_name = {target.name: target for target in targets}
        self._routes = tuple(route_of(route, by_name[route.target]) for route in routes)
        self._own_dialect = own_dialect
        self._known: dict[str, Route] = {}
        prefixes = {route.destination.prefix for route in self._routes} - {""}
        self._prefixes = tuple(sorted(prefixes, key=len, reverse=True))

    @property
    def has_targets(self) -> bool:
        return bool(self._routes)

    @property
    def writes_jms(self) -> bool:
        """Whether publications to any target have the folders of JMS."""
        return any(route.target is not None and route.target.jms_folders for route in self._routes)

    @property
    def has_prefixes(self) -> bool:
        """Whether topics of any target have a prefix that MQTT clients do not see."""
        return bool(self._prefixes)

    @property
    def destinations(self) -> tuple[Destination, ...]:
        """Every topic space of the targets, each once."""
        return tuple(dict.fromkeys(route.destination for route in self._routes))

    def of(self, topic: str) -> Route:
        """The route of a topic name."""
        found = self._known.get(topic)
        if found is None:
            found = next((route for route in self._routes if _takes(route, topic)), _TO_EMBEDDED)
            if len(topic) <= _LONGEST_KEPT_TOPIC:
                if len(self._known) >= _KNOWN_TOPICS:
                    self._known.clear()
                self._known[topic] = found
        return found

    def is_for_target(self, topic: str) -> bool:
        """Whether a topic name belongs to a target's broker."""
        return bool(self._routes) and self.of(topic).target is not None

    def check_name(self, topic: str) -> None:
        """Raises TopicError if the header of the route cannot carry the topic name with the prefix of its stream."""
        destination = self.of(topic).destination if self._routes else EMBEDDED
        dialect, name = self._dialect_at(destination), destination.prefix + topic
        check_topic_text(escape_topic(name) if dialect is Dialect.MQRFH else name, dialect)

    def _dialect_at(self, destination: Destination) -> Dialect:
        return self._own_dialect if destination.target is None else Dialect(destination.target.header)

    def concerned(self, topic_filter: str) -> tuple[Destination, ...]:
        """Every destination where a subscription must be registered, in the order of the routes."""
        return tuple(registration.destination for registration in self.registrations(topic_filter))

    def registrations(self, topic_filter: str) -> tuple[Registration, ...]:
        """The meaning of a topic filter at each destination that it concerns. The embedded broker comes last.

        Raises MappingError if a destination's header cannot carry it.
        """
        filters: dict[Destination, dict[str, None]] = {}
        is_covered = False
        for route in self._routes:
            overlaps = [each for each in (overlap(topics, topic_filter) for topics in route.topics) if each is not None]
            filters.setdefault(route.destination, {}).update(dict.fromkeys(overlaps))
            is_covered = topic_filter in overlaps
            if is_covered:
                break
        found = [_registration(destination, tuple(narrowed)) for destination, narrowed in filters.items() if narrowed]
        if not is_covered:
            found.append(self._at_embedded(topic_filter))
        for each in found:
            for pattern in each.patterns:
                check_topic_text(pattern, self._dialect_at(each.destination))
        return tuple(found)

    def without_prefix(self, topic: str) -> tuple[str, Destination]:
        """A topic as a target published it, without the prefix of its stream; and the destination with that prefix."""
        for prefix in self._prefixes:
            plain = topic.removeprefix(prefix)
            if plain and plain != topic:
                destination = self.of(plain).destination
                if destination.prefix == prefix:
                    return plain, destination
        return topic, EMBEDDED

    def _at_embedded(self, topic_filter: str) -> Registration:
        patterns = (topic_filter,) if self._own_dialect is Dialect.MQRFH2 else character_patterns(topic_filter)
        return Registration(destination=EMBEDDED, topic_filters=(topic_filter,), patterns=patterns)


def route_of(route: RouteSettings, target: TargetSettings) -> Route:
    """A route of the configuration with its target.

    If a stream is its queue, its publications go to that queue. If it is a prefix of the topic, they go to the queue of
    the default stream, which adds no prefix.
    """
    style = _stream_style(target)
    is_named = style is None and route.stream != DEFAULT_STREAM
    destination = Destination(
        key=f"{target.name} {route.stream}",
        target=target,
        stream=route.stream,
        stream_name=route.stream if is_named else None,
        prefix="" if style is None else style.prefix(route.stream),
    )
    queue = route.queue or (route.stream if style is None else DEFAULT_STREAM)
    return Route(topics=route.topics, queue=queue, destination=destination)


def _stream_style(target: TargetSettings) -> StreamStyle | None:
    """The style of stream prefixes at a target; None if a stream is a queue."""
    return None if target.streams == _STREAM_IS_QUEUE else StreamStyle(target.streams)


def overlap(first: str, second: str) -> str | None:
    """The filter of the topics that match two MQTT topic filters; None if there are no such topics."""
    ours, theirs = first.split("/"), second.split("/")
    begins = (ours[0], theirs[0])
    if any(level in _WILDCARDS for level in begins) and any(level.startswith("$") for level in begins):
        return None
    levels: list[str] = []
    for place in range(max(len(ours), len(theirs))):
        if ours[place : place + 1] == ["#"]:
            return "/".join((*levels, *theirs[place:]))
        if theirs[place : place + 1] == ["#"]:
            return "/".join((*levels, *ours[place:]))
        if place >= min(len(ours), len(theirs)) or not _may_be_equal(ours[place], theirs[place]):
            return None
        levels.append(theirs[place] if ours[place] == "+" else ours[place])
    return "/".join(levels)


def _may_be_equal(ours: str, theirs: str) -> bool:
    return ours == theirs or "+" in (ours, theirs)


def _takes(route: Route, topic: str) -> bool:
    return any(matches(topic_filter, topic, Scheme.MQTT) for topic_filter in route.topics)


def _registration(destination: Destination, topic_filters: tuple[str, ...]) -> Registration:
    patterns = dict.fromkeys(pattern for narrowed in topic_filters for pattern in destination.pattern_texts(narrowed))
    return Registration(destination=destination, topic_filters=topic_filters, patterns=tuple(patterns))
