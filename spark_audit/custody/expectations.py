"""The copies that a publication is due: for each subscriber at least so many, and at most.

    matching          a subscription with a topic of the publication, on its stream, at its subscription point
    one subscriber    one copy, however many of its subscriptions match, and one more for each further DupsOK
    content filter    no copy unless its condition is true; where the record does not tell, there may be one
    OtherSubsOnly     no copy for the publisher's own queue

Shared groups of MQTT 5 are one subscriber. No Local is not the broker's: the copy is made, and dropped for the client.
A stream is a topic space in one dialect of brokers and a prefix in the other, and the trail does not say which: copies
on other streams than the default one are allowed and not due. Sources: IBM MQ, "Publish message", "Register Subscriber
message"; Message Broker V6, "Streams" (aq19790_).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from spark_audit.custody.commands import DEFAULT_STREAM, Command, Lane
from spark_audit.custody.content_filter import Content, Truth, accepts
from spark_audit.custody.registry import Registry, Subscription

#: In one of the dialects, topics that begin with this stand for other streams.
_OF_STREAMS: Final = "$SYS/STREAM/"


class Share(NamedTuple):
    """How many copies a lane is due, and how many it may have."""

    least: int
    most: int


Expected = Mapping[Lane, Share]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A publication, as far as its copies depend on it. `command` is None if only the topic is known of its header.

    `is_certain`: the broker took it without an error, so every copy that is due was made.
    """

    message_id: str
    queue: str
    topics: tuple[str, ...]
    is_certain: bool = True
    command: Command | None = None


class Expectations:
    """The copies that are due by a registry. Answers for one topic are remembered until the registry changes."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._generation = registry.generation
        self._known: dict[str, Expected] = {}

    def of(self, publication: Publication) -> Expected:
        """The share of each lane that may have a copy."""
        if self._generation != self._registry.generation:
            self._known.clear()
            self._generation = self._registry.generation
        topics = publication.topics
        is_plain = publication.command is None and publication.queue == DEFAULT_STREAM and publication.is_certain
        if not is_plain or len(topics) != 1:
            return self._expected(publication)
        known = self._known.get(topics[0])
        if known is None:
            known = self._known[topics[0]] = self._expected(publication)
        return known

    def _expected(self, publication: Publication) -> Expected:
        matching = {each: None for topic in publication.topics for each in self._registry.by_topic.matching(topic)}
        by_lane: dict[Lane, list[tuple[Subscription, bool]]] = {}
        for each in matching:
            truth = _truth(each, publication)
            if truth is not Truth.NO:
                by_lane.setdefault(each.lane, []).append((each, truth is Truth.YES))
        is_certain = publication.is_certain and not _is_for_others_alone(publication)
        return {lane: _share(found, is_certain=is_certain) for lane, found in by_lane.items()}


def _share(found: Iterable[tuple[Subscription, bool]], *, is_certain: bool) -> Share:
    pairs = list(found)
    sure = [each for each, is_sure in pairs if is_sure and each.is_certain]
    least = max(1, sum(each.has_duplicates for each in sure)) if sure and is_certain else 0
    return Share(least, max(1, sum(each.has_duplicates for each, _ in pairs)))


def _truth(subscription: Subscription, publication: Publication) -> Truth:
    """Whether a subscription whose topic matches gets a publication."""
    truth = Truth.YES
    if not (subscription.is_plain and _is_plain(publication)):
        truth = Truth.MAYBE
    command = publication.command
    if command is not None and command.is_mqrfh and "Local" in command.registration_options:
        truth = truth if "Local" in subscription.options else Truth.MAYBE
    text = subscription.interest.content_filter
    if not text or truth is Truth.NO:
        return truth
    passed = accepts(text, Content(publication.message_id, command)) if command is not None else Truth.MAYBE
    return passed if truth is Truth.YES or passed is Truth.NO else Truth.MAYBE


def _is_plain(publication: Publication) -> bool:
    """Whether a publication is on the default stream in either dialect."""
    named = publication.command.other("StreamName") if publication.command is not None else None
    is_default = publication.queue == DEFAULT_STREAM and named in (None, DEFAULT_STREAM)
    return is_default and not any(topic.startswith(_OF_STREAMS) for topic in publication.topics)


def _is_for_others_alone(publication: Publication) -> bool:
    """Whether the publisher wants no copy. Its queue may stand in the MQMD alone, so any lane may be its own."""
    return publication.command is not None and "OtherSubsOnly" in publication.command.publication_options
