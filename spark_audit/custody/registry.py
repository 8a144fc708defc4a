"""The registry: the registered subscriptions after each RegSub and DeregSub of a trail.

A subscription is one topic of one subscriber. A subscriber is a lane, queue and CorrelId, and its subscriptions differ
in topic space, topic, subscription point and content filter. The registry says how sure it is:

    is_certain      a copy is due for each matching publication; otherwise one may come
    is_whole        the registry knows all subscriptions of the lane, so any other copy is wrong

Only lanes of MQTT clients are whole: an operator may define a subscription for a queue of an application. Sources:
IBM MQ, "Register Subscriber message", "Deregister Subscriber message"; Message Broker V6, the same pages.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from spark_audit.custody.commands import DEFAULT_STREAM, Command, Lane
from spark_audit.custody.places import UNKNOWN_PLACE, Place, Rules
from spark_audit.custody.topic_match import PatternIndex, Scheme, topic_matches

#: Options of the command alone, which a subscription does not keep.
_OF_THE_COMMAND: Final = frozenset({"JoinShared", "JoinExcl", "AddName", "NoAlter", "FullResp", "CorrelAsId"})
_JOINING: Final = frozenset({"JoinShared", "JoinExcl"})
#: MQRCCF_TOPIC_ERROR and MQRCCF_NOT_REGISTERED.
TOPIC_ERROR: Final = 3072
NOT_REGISTERED: Final = 3073
#: With one of these a RegSub asks for nothing retained.
WITHOUT_RETAINED: Final = frozenset({"NewPubsOnly", "PubOnReqOnly"})
ON_REQUEST: Final = "PubOnReqOnly"
#: With one of these a copy is not as persistent as its publication.
_OTHER_PERSISTENCE: Final = frozenset({"Pers", "NonPers", "PersAsQueue"})
_AS_PUBLISHED: Final = frozenset({"PersAsPub"})
#: How the record of DEFINE SUB names the queue.
_DESTINATION: Final = re.compile(r"(?:^| )DEST\(([A-Za-z0-9._/%]+)\)")
_DUPLICATES: Final = "DupsOK"


@dataclass(frozen=True, slots=True)
class Interest:
    """The values that tell the subscriptions of a lane apart. `pattern` is the topic as it is matched in its space."""

    space: str
    pattern: str
    point: str = ""
    content_filter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subscription:
    """One registered topic of one subscriber, on the stream that its command names, or the default one.

    Its copies are in the format of that command, as `is_mqrfh` says. `is_certain` is as in the module's text.
    """

    lane: Lane
    stream: str
    topic: str
    interest: Interest
    place: Place
    options: frozenset[str]
    is_mqrfh: bool
    name: str = ""
    is_certain: bool = True

    @property
    def has_duplicates(self) -> bool:
        """Whether it has a copy of its own beside those of the subscriber's other subscriptions."""
        return _DUPLICATES in self.options

    @property
    def scheme(self) -> Scheme:
        """Which characters of its topic are wildcards."""
        return Scheme.CHARACTERS if self.is_mqrfh else Scheme.LEVELS

    @property
    def is_special(self) -> bool:
        """Whether it is not certain that its copies are as persistent as their publications."""
        return not self.is_certain or not self.options.isdisjoint(_OTHER_PERSISTENCE)


class Registry:
    """Every subscription that the trail tells of."""

    def __init__(self) -> None:
        self.rules = Rules()
        self.of_lane: dict[Lane, dict[Interest, Subscription]] = {}
        self._by_place: dict[Place, PatternIndex[Subscription]] = {}
        #: Counts the changes.
        self.generation = 0
        self._filters = 0
        #: How many subscriptions of a lane are doubtful, or leave copies with another persistence.
        self._special: Counter[Lane] = Counter()
        #: There is no subscription but those that it knows, and those of operators on these queues.
        self.is_whole = True
        self._of_operators: set[str] = set()

    def clear(self) -> None:
        """Forgets everything, because records are missing."""
        self.of_lane, self._by_place, self._filters, self._special = {}, {}, 0, Counter()
        self.is_whole = False
        self.generation += 1

    def index(self) -> None:
        """Makes the index anew, of the subscriptions that there are."""
        self._by_place, self._filters, self._special = {}, 0, Counter()
        for each in self._everyone():
            self._look_up(each)

    def change_rules(self, rules: Rules) -> None:
        """The gateway starts with these rules of its broker. Each subscription has its place by them from now on."""
        before, self.rules = self.rules, rules
        if before == rules:
            return
        everyone = list(self._everyone())
        self.of_lane, self._by_place, self._filters = {}, {}, 0
        for each in everyone:
            interest, place = self._interest(each.stream, each.topic, each.scheme, each.interest)
            is_same = not before.are_known or (interest, place) == (each.interest, each.place)
            moved = replace(each, interest=interest, place=place, is_certain=each.is_certain and is_same)
            if interest not in self.of_lane.get(each.lane, {}):  # of two that are now one, the first counts
                self._put(moved)

    def matching(self, place: Place, topics: Iterable[str]) -> Iterator[tuple[Subscription, bool]]:
        """The subscriptions that publications on these topics match, and whether their places are surely the same."""
        looked_at = self._by_place if place == UNKNOWN_PLACE else (place, UNKNOWN_PLACE)
        found: dict[Subscription, bool] = {}
        for each in looked_at:
            index = self._by_place.get(each)
            for topic in topics if index is not None else ():
                assert index is not None
                for subscription in index.matching(topic):
                    if self.rules.reaches(subscription.interest.pattern, topic):
                        found[subscription] = each == place != UNKNOWN_PLACE
        yield from found.items()

    def register(self, lane: Lane, command: Command, *, may_expire: bool = False) -> list[Subscription]:
        """A RegSub. Returns the subscriptions of its topics as they are now. No record tells when they expire.

        One that joins a subscription by its SubName changes nothing that copies depend on, and has no topics.
        """
        if self._joins_by_name(command):
            if self._has_name(command):
                return []
            may_expire = may_expire or not self.is_whole
        registered = []
        for topic in command.topics:
            stream = command.other("StreamName") or DEFAULT_STREAM
            interest, place = self._wanted(command, topic)
            before = self.of_lane.get(lane, {}).get(interest)
            made = Subscription(
                lane=lane,
                stream=stream,
                topic=topic,
                interest=interest,
                place=place,
                options=command.registration_options - _OF_THE_COMMAND,
                is_mqrfh=command.is_mqrfh,
                name=command.other("SubName") or (before.name if before is not None else ""),
                is_certain=not may_expire,
            )
            if before is not None and _may_be_kept(command):
                is_certain = before.is_certain and made.is_certain and before.options == made.options
                made = replace(before, is_certain=is_certain)
            self._put(made)
            registered.append(made)
        return registered

    def _has_name(self, command: Command) -> bool:
        name, space = command.other("SubName"), self.rules.space(command.other("StreamName") or DEFAULT_STREAM)
        return any(each.name == name and each.interest.space == space for each in self._everyone())

    @staticmethod
    def _joins_by_name(command: Command) -> bool:
        options = command.registration_options
        return command.other("SubName") is not None and "NoAlter" in options and not options.isdisjoint(_JOINING)

    def deregister(self, lane: Lane, command: Command) -> None:
        """A DeregSub: ends subscriptions. Where a SubIdentity leaves, others may still hold the subscription."""
        for each in self.named(lane, command):
            if command.other("SubIdentity") is None:
                self._remove(each)
            else:
                self._put(replace(each, is_certain=False))

    def wrong_outcome(self, lane: Lane, command: Command, reason_code: int | None) -> str:
        """What is wrong with the refusal of a DeregSub, or with its success (`reason_code` None); "" for nothing.

        The registry must know all subscriptions of the lane.
        """
        there = self.named(lane, command)
        if reason_code is None:
            return "" if there else "it ended no subscription, and no refusal says so"
        if reason_code == NOT_REGISTERED and any(each.is_certain for each in there):
            return f"refused as not registered, and topic {there[0].topic} is"
        if reason_code == TOPIC_ERROR and not command.topics:
            return "refused for its topic, and it has none"
        return ""

    def doubt(self, correlation_id: str) -> None:
        """A command of a client could not be read: nothing is certain of its lane any more."""
        for lane in [lane for lane in self.of_lane if lane[1] == correlation_id]:
            for each in tuple(self.of_lane[lane].values()):
                self._remove(each)

    def keeps_persistence(self, lane: Lane) -> bool:
        """Whether all subscriptions of a lane leave copies as persistent as their publications."""
        return lane in self.of_lane and not self._special[lane]

    def persistences(self, lane: Lane, topic: str) -> frozenset[str] | None:
        """The options that may decide whether a copy is persistent, "PersAsPub" where there is none; None: unknown."""
        there = self.of_lane.get(lane)
        if not there:
            return None
        if not self._special[lane]:
            return _AS_PUBLISHED
        found = [each for each in there.values() if topic_matches(each.interest.pattern, topic, each.scheme)]
        if not found or not all(each.is_certain for each in found):
            return None
        return frozenset(next(iter(each.options & _OTHER_PERSISTENCE), "PersAsPub") for each in found)

    def doubt_all(self) -> None:
        """An operator may have changed any subscription: copies may come, and none is due."""
        for each in tuple(self._everyone()):
            self._put(replace(each, is_certain=False))

    def order(self, reason: str) -> None:
        """An operator changed a subscription; `reason` names its queue, unless that stays as it is."""
        self.doubt_all()
        queue = _DESTINATION.search(reason)
        if queue is None:
            self.is_whole = False
        else:
            self._of_operators.add(queue[1])

    def tells_all_of(self, queue: str) -> bool:
        """Whether a queue has no subscriber but those that the registry knows."""
        return self.is_whole and queue not in self._of_operators

    def has_nobody_on(self, queue: str) -> bool:
        """Whether a queue has no subscriber at all."""
        return self.tells_all_of(queue) and not any(lane[0] == queue for lane in self.of_lane)

    @property
    def has_filters(self) -> bool:
        """Whether any subscription has a content filter."""
        return self._filters > 0

    def named(self, lane: Lane, command: Command) -> list[Subscription]:
        """The subscriptions that a DeregSub or ReqUpdate means."""
        there = list(self.of_lane.get(lane, {}).values())
        name = command.other("SubName")
        space = self.rules.space(command.other("StreamName") or DEFAULT_STREAM)
        if name is not None:
            everyone = (each for each in self._everyone() if each.name == name)
            if named := [each for each in everyone if not self.rules.are_known or each.interest.space == space]:
                return named
        wanted = {self._wanted(command, topic)[0] for topic in command.topics}
        if _is_for_all(command):
            return [each for each in there if _is_among(each.interest, command, space, wanted)]
        return [each for each in there if each.interest in wanted]

    def _wanted(self, command: Command, topic: str) -> tuple[Interest, Place]:
        """What a command asks for by one of its topics, and its place."""
        like = Interest("", "", command.other("SubPoint") or "", command.other("Filter") or "")
        return self._interest(command.other("StreamName") or DEFAULT_STREAM, topic, command.scheme, like)

    def _interest(self, stream: str, topic: str, scheme: Scheme, like: Interest) -> tuple[Interest, Place]:
        """The interest in a topic of a stream, at the point and with the filter of `like`."""
        place, pattern = self.rules.of_subscription(stream, topic, scheme, like.point)
        return replace(like, space=self.rules.space(stream), pattern=pattern), place

    def _everyone(self) -> Iterable[Subscription]:
        return (each for subscriptions in self.of_lane.values() for each in subscriptions.values())

    def _put(self, subscription: Subscription) -> None:
        before = self.of_lane.get(subscription.lane, {}).get(subscription.interest)
        if before is not None:
            self._remove(before)
        self.of_lane.setdefault(subscription.lane, {})[subscription.interest] = subscription
        self._look_up(subscription)

    def _look_up(self, subscription: Subscription) -> None:
        """It is found by its topic from now on."""
        self.generation += 1
        self._special[subscription.lane] += subscription.is_special
        self._filters += bool(subscription.interest.content_filter)
        if ON_REQUEST not in subscription.options:
            index = self._by_place.setdefault(subscription.place, PatternIndex())
            index.add(subscription.interest.pattern, subscription.scheme, subscription)

    def _remove(self, subscription: Subscription) -> None:
        interests = self.of_lane[subscription.lane]
        del interests[subscription.interest]
        if not interests:
            del self.of_lane[subscription.lane]
        self.generation += 1
        self._special[subscription.lane] -= subscription.is_special
        if not self._special[subscription.lane]:
            del self._special[subscription.lane]
        self._filters -= bool(subscription.interest.content_filter)
        if ON_REQUEST not in subscription.options:
            index = self._by_place[subscription.place]
            index.remove(subscription.interest.pattern, subscription.scheme, subscription)


def _may_be_kept(command: Command) -> bool:
    """Whether a RegSub may leave the attributes of a subscription as they are."""
    return "NoAlter" in command.registration_options or command.other("SubIdentity") is not None


def _is_for_all(command: Command) -> bool:
    """Whether DeregAll is set and counts. It does not if topic, subscription point and filter are all given."""
    given = (command.topics, command.other("SubPoint"), command.other("Filter"))
    return "DeregAll" in command.registration_options and not all(given)


def _is_among(interest: Interest, command: Command, space: str, wanted: Iterable[Interest]) -> bool:
    """Whether DeregAll, with the other parameters of the command, means a subscription."""
    return (
        interest.space == space
        and (not command.topics or interest.pattern in {each.pattern for each in wanted})
        and command.other("SubPoint") in (None, interest.point)
        and command.other("Filter") in (None, interest.content_filter)
    )
