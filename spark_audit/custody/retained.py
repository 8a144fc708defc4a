"""The retained publications, and the copies that were promised.

A Publish with RetainPub replaces what its topics retain at its place (places.py), a DeletePub deletes it. A RegSub
promises what its topics retain then, unless it says NewPubsOnly or PubOnReqOnly; a ReqUpdate promises it again. A
publication that may expire is not certain, and none is after an operator has cleared topics: then a copy may come, or
none.
Sources: IBM MQ, "Register Subscriber message"; MQTT 3.1.1 section 3.3.1.3.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from spark_audit.custody.commands import Command, Lane
from spark_audit.custody.expectations import Publication
from spark_audit.custody.places import UNKNOWN_PLACE, Place, Rules
from spark_audit.custody.registry import Subscription
from spark_audit.custody.topic_match import Scheme, topic_matches

#: The broker sends up to 3 retained publications at once, where its look-up takes 200 steps at most.
_AT_ONCE: Final = 3
_STEPS_AT_ONCE: Final = 200
#: How long the copies of a command may take that found more publications than there are now.
_FEWER_FOR_US: Final = 600_000_000


@dataclass(frozen=True, slots=True)
class Kept:
    """A retained publication, whether it is certain that it is still there, and whether it is persistent.

    `is_local`: its publisher set Local in MQRFH.
    """

    message_id: str
    is_certain: bool
    is_persistent: bool | None = None
    is_local: bool = False


class Allowed(NamedTuple):
    """How often a lane may be sent a retained publication, and whether that is persistent; None: unknown."""

    times: int
    is_persistent: bool | None


@dataclass(frozen=True, slots=True)
class Promise:
    """The certain publications that a command promised to a lane; `is_prompt`: in the command's own commit."""

    lane: Lane
    due: tuple[str, ...]
    is_prompt: bool


class RetainedTopics:
    """The retained publications that the trail tells of."""

    def __init__(self) -> None:
        self._kept: dict[Place, dict[str, Kept]] = {}
        self._trees: dict[Place, _Level] = {}
        self._levels = 0
        #: How often each lane may be sent each retained publication.
        self._allowed: dict[Lane, dict[str, Allowed]] = {}
        #: Copies that were promised to a lane in more than one commit; they are promised again when the gateway starts.
        self._long: dict[Lane, dict[str, bool | None]] = {}
        #: There may be publications that the trail did not tell of.
        self.is_whole = True
        #: When one was last retained no longer, or may have been.
        self._fewer_us = -_FEWER_FOR_US
        self._now_us = 0

    def clear(self) -> None:
        """Forgets everything, because records are missing: there may be other publications now."""
        self._kept, self._trees, self._levels = {}, {}, 0
        self._fewer_us = self._now_us
        self._allowed, self._long, self.is_whole = {}, {}, False

    def index(self) -> None:
        """Makes the index anew, of the topics that there are."""
        self._trees, self._levels = {}, 0
        for place, kept in self._kept.items():
            for topic in kept:
                self._find(place, topic)

    def _find(self, place: Place, topic: str) -> None:
        """A topic is found by its levels from now on."""
        self._levels += topic.count("/") + 2
        self._trees.setdefault(place, _Level()).add(topic)

    def keep(self, place: Place, topics: Iterable[str], kept: Kept) -> None:
        """A publication with RetainPub."""
        there = self._kept.setdefault(place, {})
        for topic in topics:
            if topic not in there:
                self._find(place, topic)
            there[topic] = kept if place != UNKNOWN_PLACE else replace(kept, is_certain=False)

    def keep_of(self, publication: Publication, kept: Kept, rules: Rules) -> None:
        """The same at the place and on the topics that the rules give it."""
        named, is_mqrfh = publication.stream, publication.is_mqrfh
        place, topics = rules.of_publication(publication.queue, named, publication.topics, is_mqrfh=is_mqrfh)
        self.keep(place, topics, kept)

    def delete(self, place: Place, patterns: Iterable[tuple[str, Scheme]], rules: Rules, *, is_local: bool) -> None:
        """A DeletePub. In MQRFH it deletes the publications with Local, or the others, as `is_local` says."""
        if place == UNKNOWN_PLACE:
            self.doubt()
            return
        for pattern, scheme in patterns:
            for topic in self._matching(place, pattern, scheme):
                is_meant = scheme is not Scheme.CHARACTERS or self._kept[place][topic].is_local == is_local
                if is_meant and rules.reaches(pattern, topic):
                    self._fewer_us = self._now_us
                    del self._kept[place][topic]
                    self._levels -= topic.count("/") + 2
                    self._trees[place].remove(topic)

    def _matching(self, place: Place, pattern: str, scheme: Scheme) -> list[str]:
        tree = self._trees.get(place)
        return [] if tree is None else tree.matching(pattern, scheme)

    def delete_by(self, command: Command | None, queue: str, rules: Rules) -> None:
        """A DeletePub in either format, which came on a queue; None: it cannot be read."""
        if command is None:
            self.doubt()
            return
        place, patterns = rules.of_deletion(queue, command)
        self.delete(place, patterns, rules, is_local="Local" in command.delete_options)

    def doubt(self) -> None:
        """Any retained publication may be retained no longer."""
        self._fewer_us = self._now_us
        for place, there in self._kept.items():
            self._kept[place] = {topic: replace(kept, is_certain=False) for topic, kept in there.items()}

    def get(self, place: Place, topic: str) -> Kept | None:
        """What a topic retains."""
        return self._kept.get(place, {}).get(topic)

    def may_keep_elsewhere(self, topic: str) -> bool:
        """Whether a publication on a topic is retained at a place that the trail does not say."""
        return self.get(UNKNOWN_PLACE, topic) is not None

    def message_ids(self) -> Iterator[str]:
        """The publications that are retained, as far as is known."""
        return (kept.message_id for there in self._kept.values() for kept in there.values())

    def certain(self) -> Iterator[tuple[tuple[Place, str], Kept]]:
        """Places and topics, and what they retain for certain."""
        for place, there in self._kept.items():
            yield from (((place, topic), kept) for topic, kept in there.items() if kept.is_certain)

    def promise(self, subscriptions: Iterable[Subscription], rules: Rules) -> list[Promise]:
        """What a RegSub or ReqUpdate for subscriptions of one lane promises."""
        return [self._promised(each, rules) for each in subscriptions]

    def begin(self, at_us: int) -> None:
        """A commit begins, whose first record is of this time."""
        self._now_us = at_us

    def is_prompt_for(self, subscriptions: Iterable[Subscription], rules: Rules) -> bool:
        """Whether a command for some of these has all its copies in its own commit, now and for a while."""
        is_steady = self._now_us - self._fewer_us >= _FEWER_FOR_US and self._levels <= _STEPS_AT_ONCE
        return is_steady and sum(len(self._found(each, rules)) for each in subscriptions) <= _AT_ONCE

    def _found(self, subscription: Subscription, rules: Rules) -> list[Kept]:
        """What the topics of a subscription retain."""
        interest, place = subscription.interest, subscription.place
        looked_at = tuple(self._kept) if place == UNKNOWN_PLACE else (place, UNKNOWN_PLACE)
        return [
            self._kept[each][topic]
            for each in looked_at
            for topic in self._matching(each, interest.pattern, subscription.scheme)
            if rules.reaches(interest.pattern, topic)
        ]

    def _promised(self, subscription: Subscription, rules: Rules) -> Promise:
        interest, place = subscription.interest, subscription.place
        found = self._found(subscription, rules)
        for kept in found:
            self._allow(subscription.lane, kept.message_id, kept.is_persistent)
        is_sure = place != UNKNOWN_PLACE and subscription.is_certain and not interest.content_filter and self.is_whole
        due = tuple(dict.fromkeys(kept.message_id for kept in found if kept.is_certain)) if is_sure else ()
        is_prompt = len(found) <= _AT_ONCE and self._levels <= _STEPS_AT_ONCE
        if not is_prompt:
            self._long.setdefault(subscription.lane, {}).update((kept.message_id, kept.is_persistent) for kept in found)
        return Promise(subscription.lane, due, is_prompt)

    def repeat(self) -> list[Lane]:
        """The gateway starts again: copies that it was about to send may be sent once more. Returns their lanes."""
        for lane, found in self._long.items():
            for message_id, is_persistent in found.items():
                self._allow(lane, message_id, is_persistent)
        return list(self._long)

    def _allow(self, lane: Lane, message_id: str, is_persistent: bool | None) -> None:
        allowed = self._allowed.setdefault(lane, {})
        before = allowed.get(message_id)
        allowed[message_id] = Allowed(1 if before is None else before.times + 1, is_persistent)

    def take(self, lane: Lane, message_id: str) -> Allowed | None:
        """A retained copy was sent to a lane. Returns the promise; None if there was none."""
        allowed = self._allowed.get(lane, {})
        left = allowed.pop(message_id, None)
        if left is not None and left.times > 1:
            allowed[message_id] = Allowed(left.times - 1, left.is_persistent)
        return left

    def end(self, lane: Lane) -> None:
        """A lane has ended."""
        self._allowed.pop(lane, None)
        self._long.pop(lane, None)


class _Level:
    """A level of topic names and those below it; `topic` is the name that ends here."""

    __slots__ = ("below", "topic")

    def __init__(self) -> None:
        self.below: dict[str, _Level] = {}
        self.topic: str | None = None

    def add(self, topic: str) -> None:
        """Adds a name below this level."""
        level = self
        for name in topic.split("/"):
            level = level.below.setdefault(name, _Level())
        level.topic = topic

    def remove(self, topic: str) -> None:
        """Removes a name. It must be there."""
        names = topic.split("/")
        way = [self]
        for name in names:
            way.append(way[-1].below[name])
        way[-1].topic = None
        for depth in range(len(names), 0, -1):
            if way[depth].topic is not None or way[depth].below:
                return
            del way[depth - 1].below[names[depth - 1]]

    def matching(self, pattern: str, scheme: Scheme) -> list[str]:
        """The names below this level that a pattern matches, looked for where the pattern's first levels lead."""
        level, names = self, pattern.split("/")
        for name in names if scheme is not Scheme.CHARACTERS else _literal_levels(names):
            if name in ("+", "#"):
                break
            if name not in level.below:
                return []
            level = level.below[name]
        return [topic for topic in level.names() if topic_matches(pattern, topic, scheme)]

    def names(self) -> Iterator[str]:
        """Every name that ends here or below."""
        waiting = [self]
        while waiting:
            level = waiting.pop()
            if level.topic is not None:
                yield level.topic
            waiting += level.below.values()


def _literal_levels(names: list[str]) -> list[str]:
    """The first levels of a pattern of characters that have neither wildcards nor escapes, but for the last level."""
    literal = next((place for place, name in enumerate(names[:-1]) if set(name) & set("*?%")), len(names) - 1)
    return names[:literal]
