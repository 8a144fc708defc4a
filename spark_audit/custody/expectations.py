"""The copies that a publication is due: for each subscriber at least so many, and at most.

    matching          a subscription with a topic of the publication, at its place: topic space and subscription point
    one subscriber    one copy, however many of its subscriptions match, and one more for each further DupsOK
    content filter    no copy unless its condition is true; where the record does not tell, there may be one
    OtherSubsOnly     no copy for the publisher's own queue
    Local             in MQRFH and dialect mq6, no copy for subscriptions without Local

Shared groups of MQTT 5 are one subscriber. No Local is not the broker's: the copy is made, and dropped for the client.
Where the trail does not say the rules for streams, copies on other streams than the default one are allowed and not
due. Sources: IBM MQ, "Publish message", "Register Subscriber message"; Message Broker V6, "Streams" (aq19790_).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from spark_audit.custody.commands import Command, Lane, lane_of
from spark_audit.custody.content_filter import Content, Truth, accepts
from spark_audit.custody.places import Rules
from spark_audit.custody.registry import Registry, Subscription


class Share(NamedTuple):
    """How many copies a lane is due, and how many it may have."""

    least: int
    most: int


Expected = Mapping[Lane, Share]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A publication, as far as its copies depend on it. `command` is None if only the topic is known of its header.

    `is_mqrfh` and `stream` are the format of its header and the stream that it names. `is_certain`: the broker took it
    without an error, so every copy that is due was made. `own` is the lane of its publisher, if it is known.
    `is_persistent`: by its MQMD; None: unknown.
    """

    message_id: str
    queue: str
    topics: tuple[str, ...]
    is_mqrfh: bool = False
    stream: str | None = None
    is_certain: bool = True
    is_persistent: bool | None = None
    command: Command | None = None
    own: Lane | None = None


def of_application(record: Mapping[str, Any], command: Command) -> Publication:
    """The publication that a command of an application is."""
    is_correlated = "CorrelAsId" in command.publication_options | command.registration_options
    own = lane_of(command.queue_name, record["correlation_id"] if is_correlated else "")
    return Publication(
        message_id=record["message_id"],
        queue=record["queue"],
        topics=command.topics,
        is_mqrfh=command.is_mqrfh,
        stream=command.other("StreamName"),
        is_certain=record["completion"] == "ok",
        is_persistent=record["persistent"],
        command=command,
        own=own if command.queue_name else None,
    )


class Expectations:
    """The copies that are due by a registry. Answers for one topic are remembered until the registry changes."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._generation = registry.generation
        self._known: dict[tuple[str, bool, str], Expected] = {}

    def of(self, publication: Publication) -> Expected:
        """The share of each lane that may have a copy."""
        if self._generation != self._registry.generation:
            self._known.clear()
            self._generation = self._registry.generation
        if publication.command is not None or not publication.is_certain or len(publication.topics) != 1:
            return self._expected(publication)
        key = (publication.queue, publication.is_mqrfh, publication.topics[0])
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._expected(publication)
        return known

    def _expected(self, publication: Publication) -> Expected:
        rules = self._registry.rules
        place, topics = rules.of_publication(
            publication.queue, publication.stream, publication.topics, is_mqrfh=publication.is_mqrfh
        )
        by_lane: dict[Lane, list[tuple[Subscription, bool]]] = {}
        for each, is_there in self._registry.matching(place, topics):
            truth = _truth(each, publication, _local(each, publication, rules, is_there=is_there))
            if truth is not Truth.NO:
                by_lane.setdefault(each.lane, []).append((each, truth is Truth.YES))
        is_for_others = _is_for_others_alone(publication)
        unsure = set(by_lane) if is_for_others and publication.own is None else {publication.own}
        return {
            lane: _share(found, is_certain=publication.is_certain and not (is_for_others and lane in unsure))
            for lane, found in by_lane.items()
        }


def _share(found: Iterable[tuple[Subscription, bool]], *, is_certain: bool) -> Share:
    pairs = list(found)
    sure = [each for each, is_sure in pairs if is_sure and each.is_certain]
    least = max(1, sum(each.has_duplicates for each in sure)) if sure and is_certain else 0
    return Share(least, max(1, sum(each.has_duplicates for each, _ in pairs)))


def _local(subscription: Subscription, publication: Publication, rules: Rules, *, is_there: bool) -> Truth:
    """Whether a subscription whose topic matches is due a publication, but for its content filter."""
    command = publication.command
    is_local = command is not None and command.is_mqrfh and "Local" in command.registration_options
    if is_local and "Local" not in subscription.options and (rules.are_apart or not rules.are_known):
        return Truth.NO if rules.are_apart else Truth.MAYBE
    return Truth.YES if is_there else Truth.MAYBE


def _truth(subscription: Subscription, publication: Publication, truth: Truth) -> Truth:
    """The same with its content filter."""
    text, command = subscription.interest.content_filter, publication.command
    if not text or truth is Truth.NO:
        return truth
    passed = accepts(text, Content(publication.message_id, command)) if command is not None else Truth.MAYBE
    return passed if truth is Truth.YES or passed is Truth.NO else Truth.MAYBE


def _is_for_others_alone(publication: Publication) -> bool:
    """Whether the publisher wants no copy. Where its queue may stand in the MQMD alone, any lane may be its own."""
    return publication.command is not None and "OtherSubsOnly" in publication.command.publication_options
