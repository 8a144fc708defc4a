"""The copies of each publication against those that it was due: missing ones, and those that are too many.

Each copy is as persistent as its registration wants it. A publication is judged when its commit is over. A dead letter
of it stands for one copy on the queue that it names. The copies of a publication of an application stand in front of
its own record. If a copy is missing for an application, it is reported when that application has a later copy. Without
a later one the subscription may have ended without a record: it expired, an operator deleted it, or its queue is gone.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spark_audit.custody.commands import Lane, lane_of
from spark_audit.custody.equal_names import EqualNames
from spark_audit.custody.expectations import Expectations, Expected, Publication, Share
from spark_audit.custody.findings import Custody, Finding, message
from spark_audit.custody.lanes import Lanes
from spark_audit.custody.registry import Registry

_FORMATS: Final = {True: "MQHRF", False: "MQHRF2"}
_NOTHING: Final = Share(0, 0)
#: Whether a copy is persistent, by the option of its subscription. Without one, and with PersAsPub, it is as its
#: publication; with PersAsQueue it is as the definition of the queue, which its record tells.
_PERSISTENT: Final = {"Pers": (True,), "NonPers": (False,)}
_AS_QUEUE: Final = "PersAsQueue"
_WORDS: Final = {True: "persistent", False: "not persistent"}


@dataclass(slots=True)
class Distribution:
    """A publication, what it is due (None: nobody can tell), and the copies and dead letters of its commit.

    If names are under a key, `sure` are the CorrelIds of subscribers that are due a copy for certain.
    """

    message_id: str
    sequence: int
    expected: Expected | None
    queue: str = ""
    is_persistent: bool | None = None
    sure: tuple[str, ...] = ()
    copies: list[Mapping[str, Any]] = field(default_factory=list)
    letters: Counter[str] = field(default_factory=Counter)


class Copies:
    """Judges the copies of a trail."""

    def __init__(self, registry: Registry, lanes: Lanes) -> None:
        self._registry = registry
        self._lanes = lanes
        self._expectations = Expectations(registry)
        self._equal_names = EqualNames()
        self._open: dict[str, Distribution] = {}
        self._orphans: dict[str, list[Mapping[str, Any]]] = {}
        #: Missing copies of applications, which are reported when a later copy comes.
        self._lacking: dict[Lane, list[Finding]] = {}
        #: The options that decide on the persistence of this commit's copies, by MsgId.
        self._persistences: dict[str, frozenset[str]] = {}
        #: Whether the trail tells of every publication since the gateway started.
        self.tells_all = False
        self.is_whole = True

    def clear(self) -> None:
        """Forgets missing copies, because records are missing and things may have changed."""
        for each in (self._lacking, self._open, self._orphans, self._persistences, self._equal_names):
            each.clear()
        self.is_whole = False

    def publish(self, publication: Publication, sequence: int, *, is_refused: bool) -> None:
        """A publication came to the broker."""
        expected: Expected = {} if is_refused else self._expectations.of(publication)
        self._begin(publication.message_id, sequence, expected, publication)

    def publish_unread(self, message_id: str, sequence: int) -> None:
        """A publication came whose topic cannot be read, or that an operator put again: it is not judged."""
        self._begin(message_id, sequence, None)

    def publish_keyed(self, record: Mapping[str, Any], *, is_refused: bool) -> None:
        """A client's publication came whose topic is under a key."""
        sure = () if is_refused else self._equal_names.due(record)
        self._begin(record["message_id"], record["sequence"], None)
        self._open[record["message_id"]].sure = sure

    def doubt(self, record: Mapping[str, Any]) -> None:
        """A client's RegSub or DeregSub cannot be read."""
        self._equal_names.take(record)

    def doubt_all(self) -> None:
        """An operator may have changed any subscription."""
        self._equal_names.clear()

    def _begin(
        self, message_id: str, sequence: int, expected: Expected | None, publication: Publication | None = None
    ) -> None:
        if message_id in self._open:  # put again by an operator, and then told as an application's command
            return
        begun = self._open[message_id] = Distribution(message_id, sequence, expected)
        if publication is not None:
            begun.queue, begun.is_persistent = publication.queue, publication.is_persistent
        begun.copies += self._orphans.pop(message_id, ())

    def copy(self, record: Mapping[str, Any]) -> Iterator[Finding]:
        """A copy was made of a new publication."""
        source = record["source_message_id"] or ""
        begun = self._open.get(source)
        if begun is not None:
            begun.copies.append(record)
        else:
            self._orphans.setdefault(source, []).append(record)
        lane = lane_of(record["queue"], record["correlation_id"])
        yield from self._lacking.pop(lane, ())
        yield from self._wrong_format(record, lane)
        if (options := self._persistence_options(record, lane)) is not None:
            self._persistences[record["message_id"]] = options

    def letter(self, message_id: str, queue: str) -> None:
        """A copy of a publication became a dead letter, or was dropped because that was not possible."""
        begun = self._open.get(message_id)
        if begun is not None:
            begun.letters[queue] += 1

    def registered(self, lane: Lane) -> None:
        """A subscriber registers anew: its earlier subscription may have ended before the missing copy."""
        self._lacking.pop(lane, None)

    def operated(self) -> None:
        """An operator acts: subscriptions of applications may have changed without a record."""
        self._lacking.clear()

    def start(self) -> None:
        """The gateway starts. Subscriptions of applications may have changed without a record."""
        self.operated()
        self.tells_all = False
        self._equal_names.start()

    def end_of_commit(self) -> Iterator[Finding]:
        """Judges the publications of a commit."""
        for begun in self._open.values():
            if begun.expected is not None:
                yield from self._judged(begun, begun.expected)
            elif begun.sure:
                yield from self._missing_of_sure(begun)
        self._open.clear()
        self._persistences.clear()
        for source, copies in self._orphans.items():
            if self.tells_all and self.is_whole:
                what = f"a copy of message {source}, which is no publication of this commit"
                for copy in copies:
                    yield Finding(Custody.COPIES, copy["sequence"], message(copy["message_id"]), what)
        self._orphans.clear()

    def _judged(self, begun: Distribution, expected: Expected) -> Iterator[Finding]:
        made = Counter([lane_of(copy["queue"], copy["correlation_id"]) for copy in begun.copies])
        if begun.letters:
            yield from self._surplus_letters(begun, expected, made)
        for lane, number in made.items():
            most = expected.get(lane, _NOTHING).most
            if number > most and self._is_whole(lane, most):
                yield from self._surplus(begun, lane, number, most)
        for copy in begun.copies:
            if (options := self._persistences.get(copy["message_id"])) is not None:
                yield from self._wrong_persistence(copy, options, begun.is_persistent)
        for lane, share in expected.items():
            if made[lane] >= share.least:
                continue
            if begun.letters[lane[0]] > 0:
                begun.letters[lane[0]] -= 1
                continue
            finding = self._found(begun, f"{self._who(lane)} has {made[lane]} of {share.least} copies")
            if lane[0] in self._lanes.queues:
                yield finding
            else:
                self._lacking.setdefault(lane, []).append(finding)

    def _missing_of_sure(self, begun: Distribution) -> Iterator[Finding]:
        """Subscribers to just this topic, under a key, that have no copy. A dead letter stands for any one of them."""
        made = {copy["correlation_id"] for copy in begun.copies}
        missing = [each for each in begun.sure if each not in made]
        if len(missing) > begun.letters.total():
            for correlation_id in missing:
                who = self._who(("", correlation_id))
                yield self._found(begun, f"{who} has no copy, and its topic filter is equal to the topic")

    def _surplus_letters(self, begun: Distribution, expected: Expected, made: Counter[Lane]) -> Iterator[Finding]:
        """Dead letters of a queue whose subscribers have all copies, and of one without a subscriber."""
        may_lack: dict[str, int] = {}
        for lane, share in expected.items():
            may_lack[lane[0]] = may_lack.get(lane[0], 0) + max(share.most - made[lane], 0)
        for queue, number in begun.letters.items():
            most = may_lack.get(queue)
            if most is None:
                has_nobody = self.is_whole and queue != begun.queue and self._registry.has_nobody_on(queue)
                most = 0 if has_nobody else number
            if number > most:
                yield self._found(begun, f"{number} dead letters of queue {queue}, and {most} copies are missing")

    def _is_whole(self, lane: Lane, most: int) -> bool:
        """Whether a lane may have no copies but those that its known subscriptions bring."""
        if lane[1] in self._lanes.unread:
            return False
        if lane[0] in self._lanes.queues:
            return self.is_whole or lane[1] in self._lanes.fresh
        return self.is_whole and (most > 0 or self._registry.tells_all_of(lane[0]))

    def _surplus(self, begun: Distribution, lane: Lane, number: int, most: int) -> Iterator[Finding]:
        copies = [each for each in begun.copies if lane_of(each["queue"], each["correlation_id"]) == lane]
        for copy in copies[most:]:
            yield Finding(
                Custody.COPIES,
                copy["sequence"],
                message(copy["message_id"]),
                f"{self._who(lane)} has {number} copies of message {begun.message_id}, and is due {most}",
            )

    def _wrong_format(self, record: Mapping[str, Any], lane: Lane) -> Iterator[Finding]:
        """Whether a copy is in a format that none of its subscriber's subscriptions has."""
        subscriptions = self._registry.of_lane.get(lane)
        if not subscriptions or lane[1] in self._lanes.unread:
            return
        formats = {_FORMATS[each.is_mqrfh] for each in subscriptions.values()}
        if record["output_format"] is not None and record["output_format"] not in formats:
            yield Finding(
                Custody.COPIES,
                record["sequence"],
                message(record["message_id"]),
                f"{self._who(lane)} has a copy in {record['output_format']}, and registered for {min(formats)}",
            )

    def retained(self, record: Mapping[str, Any], lane: Lane, *, is_persistent: bool | None) -> Iterator[Finding]:
        """A copy was made of a retained publication."""
        if (options := self._persistence_options(record, lane)) is not None:
            yield from self._wrong_persistence(record, options, is_persistent)

    def _persistence_options(self, record: Mapping[str, Any], lane: Lane) -> frozenset[str] | None:
        """The options that decide whether a copy is persistent; None: nobody knows, or the trail does not tell it."""
        if record["persistent"] is None or lane[1] in self._lanes.unread:
            return None
        is_client = lane[0] in self._lanes.queues
        is_known = (
            self._lanes.tells_all_of(lane) if is_client else self.is_whole and self._registry.tells_all_of(lane[0])
        )
        return self._registry.persistences(lane, record["topic"] or "") if is_known else None

    def _wrong_persistence(
        self, copy: Mapping[str, Any], options: frozenset[str], is_persistent: bool | None
    ) -> Iterator[Finding]:
        """Whether a copy is not as persistent as its registration wants it."""
        # A trail of an earlier version does not tell the definition of the queue.
        as_queue, as_published = _told(copy["default_persistent"]), _told(is_persistent)
        allowed = {
            each
            for option in options
            for each in (as_queue if option == _AS_QUEUE else _PERSISTENT.get(option, as_published))
        }
        told = bool(copy["persistent"] or copy["in_memory"])
        if told not in allowed:
            who = self._who(lane_of(copy["queue"], copy["correlation_id"]))
            is_told, due = _WORDS[told], _WORDS[not told]
            detail = (
                f"the copy for {who} is {is_told}, and by its registration ({', '.join(sorted(options))}) it is {due}"
            )
            yield Finding(Custody.COPIES, copy["sequence"], message(copy["message_id"]), detail)

    def _who(self, lane: Lane) -> str:
        owner = self._lanes.owners.get(lane[1])
        return f"client {owner.client}" if owner is not None else f"the subscriber of queue {lane[0]}"

    def _found(self, begun: Distribution, detail: str) -> Finding:
        return Finding(Custody.COPIES, begun.sequence, message(begun.message_id), detail)


def _told(is_persistent: bool | None) -> tuple[bool, ...]:
    """The values that are possible."""
    return (True, False) if is_persistent is None else (is_persistent,)
