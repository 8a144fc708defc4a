"""The copies of retained publications: those that commands promised, and those that nobody asked for.

A RegSub of a client or an application has its record in front of its copies, a ReqUpdate behind them. If few
publications are retained, the copies of a ReqUpdate are in its own commit. Otherwise they come over several commits,
and the record in the last of them, and a copy waits for it. After a start the gateway goes on with what was asked for,
and the record of a ReqUpdate never comes.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from spark_audit.custody.commands import Lane
from spark_audit.custody.copies import Copies
from spark_audit.custody.findings import Custody, Finding, message, session
from spark_audit.custody.lanes import Lanes
from spark_audit.custody.registry import Registry, Subscription
from spark_audit.custody.retained import Promise, RetainedTopics
from spark_audit.custody.topic_match import topic_matches

Record = Mapping[str, Any]
#: How long the copies of one ReqUpdate may take: a thousand times as long as usual.
_LONGEST_US: Final = 600_000_000


class Unasked(NamedTuple):
    """A copy for an application that no command has asked for yet."""

    lane: Lane
    topic: str
    source: str
    at_us: int
    finding: Finding


class RetainedCopies:
    """Judges the copies of retained publications."""

    def __init__(self, *, registry: Registry, lanes: Lanes, retained: RetainedTopics, copies: Copies) -> None:
        self._registry = registry
        self._lanes = lanes
        self._retained = retained
        self._copies = copies
        self.clear()

    def clear(self) -> None:
        """Forgets everything, because records are missing."""
        self._promises: list[tuple[Record, Promise]] = []
        self._sent: set[tuple[Lane, str]] = set()
        #: Copies that wait for the record of a ReqUpdate, and those of this commit that cannot wait for a later one.
        self._unasked: deque[Unasked] = deque()
        self._prompt: list[Unasked] = []
        #: The subscriptions that the ReqUpdates of this commit name.
        self._requested: list[Subscription] = []
        self._now_us = 0

    def begin(self, at_us: int) -> None:
        """A commit begins, whose first record is of this time."""
        self._now_us = at_us

    def start(self) -> None:
        """The gateway starts, and goes on with what applications have asked for before, by RegSub or ReqUpdate."""
        self._unasked.clear()
        for lane, subscriptions in self._registry.of_lane.items():
            if lane[0] not in self._lanes.queues:
                self._retained.promise(subscriptions.values(), self._registry.rules)

    def promise(self, record: Record, promises: Iterable[Promise]) -> None:
        """A RegSub promised copies."""
        self._promises += [(record, each) for each in promises]

    def request(self, subscriptions: list[Subscription]) -> None:
        """A ReqUpdate came for these."""
        self._requested += subscriptions

    def copied(self, record: Record, lane: Lane) -> Generator[Finding, None, bool | None]:
        """A copy was sent. Returns whether its publication is persistent; None: nobody knows."""
        source = record["source_message_id"] or ""
        self._sent.add((lane, source))
        allowed = self._retained.take(lane, source)
        if allowed is not None:
            yield from self._copies.retained(record, lane, is_persistent=allowed.is_persistent)
            return allowed.is_persistent
        detail = f"a copy of retained message {source}, for which no registration has asked"
        finding = Finding(Custody.RETAINED, record["sequence"], message(record["message_id"]), detail)
        if not self._retained.is_whole or lane[1] in self._lanes.unread:
            return None
        if lane[0] in self._lanes.queues:
            yield finding
        elif self._copies.is_whole and self._registry.tells_all_of(lane[0]):
            self._hold(Unasked(lane, record["topic"] or "", source, self._now_us, finding))
        return None

    def _hold(self, unasked: Unasked) -> None:
        """Whether the record of a ReqUpdate may come in a later commit is certain now: topics may be deleted."""
        there = self._registry.of_lane.get(unasked.lane, {}).values()
        is_prompt = self._retained.is_prompt_for(there, self._registry.rules)
        (self._prompt if is_prompt else self._unasked).append(unasked)

    def judged(self) -> Iterator[Finding]:
        """What is wrong when a commit is over."""
        yield from self._broken()
        left = self._without_asked(self._prompt)
        self._unasked = deque(self._without_asked(self._unasked)) if self._requested else self._unasked
        self._prompt, self._requested = [], []
        yield from (each.finding for each in left)
        while self._unasked and self._now_us - self._unasked[0].at_us > _LONGEST_US:
            yield self._unasked.popleft().finding

    def _without_asked(self, unasked: Iterable[Unasked]) -> list[Unasked]:
        """Without those that a ReqUpdate of this commit has asked for: each of its subscriptions asks for one."""
        asked: set[tuple[int, str]] = set()
        return [each for each in unasked if not self._is_asked(each, asked)]

    def _is_asked(self, unasked: Unasked, asked: set[tuple[int, str]]) -> bool:
        for number, each in enumerate(self._requested):
            is_of_it = each.lane == unasked.lane and (number, unasked.source) not in asked
            if is_of_it and topic_matches(each.interest.pattern, unasked.topic, each.scheme):
                asked.add((number, unasked.source))
                return True
        return False

    def _broken(self) -> Iterator[Finding]:
        """Promises for this commit to a RegSub of it, and what was not sent."""
        for record, promise in self._promises:
            if not promise.is_prompt or promise.lane[0] not in self._lanes.queues:
                continue
            for message_id in promise.due:
                if (promise.lane, message_id) not in self._sent:
                    detail = f"message {message_id} was retained, but was not sent to the new subscription"
                    subject = session(record["client"], record["session_epoch"])
                    yield Finding(Custody.RETAINED, record["sequence"], subject, detail)
        self._promises, self._sent = [], set()
