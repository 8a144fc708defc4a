"""What became of the messages of a client, a topic, a time. One scan of a trail, without Spark.

A message is found by the record that puts it, or by one that hands it to a client. From there on the scan follows it by
its MsgIds, as life.py does, and keeps what became of it instead of its records. It does not look back: a copy that is
found by its delivery has no publisher here. Memory holds at most MOST_MESSAGES, and MOST_BRANCHES of all together.

A waiting copy does not name its client. Its CorrelId does, which the client's SUBSCRIBE told, or an earlier delivery.
So a search for a client also reads what is older than its time, for CorrelIds alone. Other searches skip an early
segment by the hour in its name: the exporter wrote it then, and no record in it is of a later time. An exporter that
lags writes old records in a late hour. So a late segment is skipped only if its first record is late, too.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import orjson

from spark_audit.life import Needles
from spark_audit.period import hour_of
from spark_audit.personal import has_keyed
from spark_audit.record import ConversionKind, Kind, line_hashes
from spark_audit.record.batch_line import records_of, span_of
from spark_audit.verify.source import SegmentFile, TrailSource, each_segment

if TYPE_CHECKING:
    from spark_audit.segment_index import Contents, SegmentIndex

MOST_MESSAGES: Final = 10_000
MOST_BRANCHES: Final = 100_000
_MOST_LANES: Final = 100_000
#: A segment ends within the hour after that of its name (period.py).
_SEGMENT_US: Final = 2 * 3_600_000_000
#: Commands whose message is a publication, and that of a registration.
_PUBLICATIONS: Final = ("Publish", "DeletePub")
_REGISTRATION: Final = "RegSub"
#: PUBACK and PUBCOMP end an exchange; PUBREC does not.
_LAST_ANSWERS: Final = (4, 7)
_Session = tuple[object, object, object]


class State(StrEnum):
    """The last that the trail tells of a message, or of one of its copies."""

    WAITS = "waits"
    DELIVERED = "delivered"
    ACKNOWLEDGED = "acknowledged"
    FORWARDED = "forwarded"
    TAKEN = "taken"
    DEAD_LETTER = "dead letter"
    DROPPED = "dropped"
    REFUSED = "refused"


#: A message that is in one of these states may still change.
_OPEN: Final = (State.WAITS, State.DELIVERED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked for: all conditions hold for one record.

    `clients` are names of one client as records may have it, in clear or as keyed hash; none: every client. `matches`
    judges a topic name as the record has it; None: every topic. `topic_beginnings` is what an index has of topics that
    match (segment_index.py); None: anything. Times are microseconds since 1970 UTC, 0: no limit.
    """

    clients: frozenset[str] = frozenset()
    matches: Callable[[str], bool] | None = None
    topic_beginnings: frozenset[str] | None = None
    since_us: int = 0
    until_us: int = 0

    def fits(self, record: dict[str, Any], topic: object) -> bool:
        """Whether topic and time of a record are those that are asked for."""
        at_us = record.get("at_us")
        if (self.since_us or self.until_us) and not isinstance(at_us, int):
            return False
        if isinstance(at_us, int) and (at_us < self.since_us or (self.until_us and at_us >= self.until_us)):
            return False
        return self.matches is None or (isinstance(topic, str) and self.matches(topic))

    def may_be_in(self, contents: "Contents") -> bool:
        """Whether a segment may have a record for which all conditions hold."""
        return (
            contents.has_time(self.since_us, self.until_us)
            and (not self.clients or contents.has_client(self.clients))
            and (self.topic_beginnings is None or contents.has_topic(self.topic_beginnings))
        )

    def wants(self, client: object) -> bool:
        """Whether a client is asked for."""
        return not self.clients or client in self.clients


@dataclass(slots=True, kw_only=True)
class Branch:
    """One way that a message goes: to a client, to a queue of an application, to a target. Times 0: not yet.

    `client` is "" where nobody named it. `reason` belongs to an end without a delivery: text, or a reason code; of a
    message that an application took, or a channel handed over, it is the name of the one who has it.
    """

    message_id: str
    queue: str = ""
    client: str = ""
    target: str = ""
    qos: int = 0
    state: State = State.WAITS
    delivered_us: int = 0
    ended_us: int = 0
    reason: str = ""

    @property
    def is_open(self) -> bool:
        return self.state in _OPEN and not (self.state is State.DELIVERED and not self.qos)


@dataclass(slots=True, kw_only=True)
class Fate:
    """A message and what became of it.

    `is_delivery`: it was found on its way to `client`; otherwise `client` published it, "" where an application did.
    `message_id` is "" and `put_us` 0 while a PUBLISH of QoS 2 waits for its PUBREL. `confirmed_us`: the gateway
    acknowledged it then.
    `is_changed`: a record that tells this does not match its hash.
    """

    at_us: int
    client: str
    topic: str
    message_id: str
    qos: int
    is_delivery: bool = False
    put_us: int = 0
    confirmed_us: int = 0
    is_changed: bool = False
    branches: list[Branch] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fates:
    """The messages that fit, in the order in which they were found.

    `is_cut`: there are more. `segments` were read, `skipped` were not, for their time. `has_keyed_clients` and
    `has_keyed_topics`: names stand in the trail as keyed hashes, which only a name in full can be compared with.
    """

    messages: tuple[Fate, ...]
    segments: int
    skipped: int
    lines: int
    is_cut: bool
    has_keyed_clients: bool
    has_keyed_topics: bool

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def fates_of(wanted: Wanted, trails: Iterable[TrailSource], index: "SegmentIndex | None" = None) -> Fates:
    """What became of the messages that are wanted, in several trails. Raises the errors of the sources.

    With an index only segments are read that may tell something of them.
    """
    search = _Search(wanted, index=index)
    for trail in trails:
        search.scan(trail)
    return Fates(
        messages=tuple(fate for fate in search.fates if wanted.wants(fate.client)),
        segments=search.segments,
        skipped=search.skipped,
        lines=search.lines,
        is_cut=search.is_cut,
        has_keyed_clients=search.has_keyed_clients,
        has_keyed_topics=search.has_keyed_topics,
    )


@dataclass(slots=True)
class _Search:
    """The messages that were found so far."""

    wanted: Wanted
    fates: list[Fate] = field(default_factory=list)
    needles: Needles = field(default_factory=Needles)
    #: By MsgId: the message itself, and its ways, each with its message.
    messages: dict[str, Fate] = field(default_factory=dict)
    branches: dict[str, tuple[Fate, Branch]] = field(default_factory=dict)
    #: Exchanges that the gateway has not acknowledged, by session; and clients by CorrelId.
    exchanges: dict[_Session, dict[int, Fate]] = field(default_factory=dict)
    lanes: dict[str, str] = field(default_factory=dict)
    segments: int = 0
    skipped: int = 0
    lines: int = 0
    is_cut: bool = False
    has_keyed_clients: bool = False
    has_keyed_topics: bool = False
    index: "SegmentIndex | None" = None

    def __post_init__(self) -> None:
        self.needles.clients.update(map(orjson.dumps, self.wanted.clients))

    def scan(self, source: TrailSource) -> None:
        """Goes through a trail once."""
        for entry in each_segment(source):
            hour_us, wanted = hour_of(entry.stem), self.wanted
            is_early = bool(hour_us) and hour_us + _SEGMENT_US <= wanted.since_us
            is_late = bool(wanted.until_us) and hour_us >= wanted.until_us
            if (is_early and not wanted.clients) or (is_late and not self._waits() and self._begins_late(entry)):
                self.skipped += 1
                continue
            self.segments += 1
            contents = self.index.contents_of(entry) if self.index is not None else None
            if contents is None or self._may_tell(contents):
                self._scan_segment(entry, _LANES_ALONE if is_early else _HANDLERS)
            else:
                self.lines += contents.lines
                self.has_keyed_clients |= contents.has_keyed_clients
                self.has_keyed_topics |= contents.has_keyed_topics

    def _begins_late(self, segment: SegmentFile) -> bool:
        """Whether a segment's first record is behind the time. The exporter, whose hour the name has, may lag."""
        with segment.open_file() as file:
            block = next(segment.blocks(), b"")
            file.seek(0)
        first = span_of(block.partition(b"\n")[0])
        return first is not None and first.at_us >= self.wanted.until_us

    def _may_tell(self, contents: "Contents") -> bool:
        """Whether a segment may tell of a message that is wanted or was found, or of a lane that leads to one."""
        wanted = self.wanted
        return (
            (contents.has_client(wanted.clients) if wanted.clients else contents.has_command(_REGISTRATION))
            or wanted.may_be_in(contents)
            or contents.has_identifier(name.decode() for name in self.needles.names)
            or contents.has_client({str(client) for (_, client, _), open_ in self.exchanges.items() if open_})
        )

    def _waits(self) -> bool:
        """Whether anything may still become of a message that was found."""
        return any(self.exchanges.values()) or any(branch.is_open for _fate, branch in self.branches.values())

    def _scan_segment(self, segment: SegmentFile, handlers: "_Handlers") -> None:
        for block in segment.blocks():
            self.lines += block.count(b"\n") + (not block.endswith(b"\n"))
            self.has_keyed_clients |= has_keyed(block, "client")
            self.has_keyed_topics |= has_keyed(block, "topic")
            if not self._may_concern(block):
                continue
            for line in block.split(b"\n"):
                if self._may_concern(line) and (records := records_of(line)) is not None:
                    hashes = line_hashes(line)
                    is_changed = hashes is None or hashes[0] != hashes[1]
                    for record in records:
                        self._take(record, handlers, is_changed=is_changed)

    def _may_concern(self, text: bytes) -> bool:
        return not self.wanted.clients or self.needles.may_be_in(text)

    def _take(self, record: dict[str, Any], handlers: "_Handlers", *, is_changed: bool) -> None:
        handle = handlers.get(_text(record, "kind"))
        for fate in handle(self, record) if handle is not None else ():
            fate.is_changed |= is_changed

    # -- what a record of each kind tells: the messages of which it speaks ---------------------------------------------

    def accepted(self, record: dict[str, Any]) -> Iterator[Fate]:
        """A PUBLISH of a client; its put follows, for QoS 2 after the PUBREL."""
        if self._fits(record):
            fate = self._found(record, _text(record, "topic"))
            if fate is not None:
                self._exchanges_of(record)[_number(record, "exchange")] = fate
                yield fate

    def put(self, record: dict[str, Any]) -> Iterator[Fate]:
        """A registration tells a CorrelId; a copy belongs to its publication; the rest are publications."""
        self._learn_lane(record)
        if record.get("conversion") == ConversionKind.HEADER_TO_HEADER:
            yield from self._copied(record)
        elif record.get("command") in _PUBLICATIONS:
            yield from self._published(record)

    def _published(self, record: dict[str, Any]) -> Iterator[Fate]:
        message = _text(record, "message_id")
        fate = self.exchanges.get(_session_of(record), {}).get(_number(record, "exchange"))
        if fate is None and self._fits(record):
            fate = self._found(record, _text(record, "topic"))
        if fate is None or not message:
            return
        fate.message_id, fate.put_us = message, _number(record, "at_us")
        self.messages[message] = fate
        self.needles.names.add(message.encode())
        if not fate.qos:
            self._exchanges_of(record).pop(_number(record, "exchange"), None)
        if destination := _text(record, "destination"):
            self._branch(fate, Branch(message_id=message, queue=_text(record, "queue"), target=destination))
        yield fate

    def commanded(self, record: dict[str, Any]) -> Iterator[Fate]:
        """A publication of an application, which has no client."""
        topics = record.get("topics")
        if record.get("command") not in _PUBLICATIONS or self.wanted.clients or not isinstance(topics, list):
            return
        message = _text(record, "message_id")
        fitting = [topic for topic in topics if self.wanted.fits(record, topic)]
        if fitting and message and message not in self.messages:
            fate = self._found(record, str(fitting[0]))
            if fate is not None:
                fate.message_id, fate.put_us = message, fate.at_us
                self.messages[message] = fate
                yield fate

    def _copied(self, record: dict[str, Any]) -> Iterator[Fate]:
        message, lane = _text(record, "message_id"), _text(record, "correlation_id")
        client = self.lanes.get(lane, "")
        fate = self.messages.get(_text(record, "source_message_id"))
        if fate is None and (client or not self.wanted.clients) and self.wanted.fits(record, record.get("topic")):
            fate = self._found(record, _text(record, "topic"), client=client, is_delivery=True)
        if fate is not None and message:
            self._branch(fate, Branch(message_id=message, queue=_text(record, "queue"), client=client))
            yield fate

    def delivered(self, record: dict[str, Any]) -> Iterator[Fate]:
        """A copy, or a message from a target, handed to a client."""
        message, client = _text(record, "message_id"), _text(record, "client")
        if message and message not in self.branches and self._fits(record):
            self._learn(_text(record, "correlation_id"), client, is_sure=False)
            fate = self._found(record, _text(record, "topic"), client=client, is_delivery=True)
            if fate is not None:
                self._branch(fate, Branch(message_id=message, queue=_text(record, "queue")))
        if message in self.branches:
            fate, branch = self.branches[message]
            branch.client, branch.qos, branch.state = client, _number(record, "qos"), State.DELIVERED
            branch.delivered_us = branch.delivered_us or _number(record, "at_us")
            if fate.is_delivery:
                fate.client, fate.qos = client, branch.qos
            yield fate

    def acknowledged(self, record: dict[str, Any]) -> Iterator[Fate]:
        """The client's answer."""
        if record.get("packet_type") in _LAST_ANSWERS:
            yield from self._ended(record, State.ACKNOWLEDGED, "")

    def dropped(self, record: dict[str, Any]) -> Iterator[Fate]:
        """An end without a delivery."""
        yield from self._ended(record, State.DROPPED, _text(record, "reason"))

    def refused(self, record: dict[str, Any]) -> Iterator[Fate]:
        """A command, or a PUBLISH, that was refused."""
        yield from self._ended(record, State.REFUSED, _reason(record))

    def dead_lettered(self, record: dict[str, Any]) -> Iterator[Fate]:
        """A message, or its copy, on the dead-letter queue; its name there leads to its way back."""
        message, letter = _text(record, "message_id"), _text(record, "dead_letter_id")
        for fate in self._ended(record, State.DEAD_LETTER, _reason(record)):
            if letter:
                self._name(letter, fate, self.branches[message][1])
            yield fate

    def redriven(self, record: dict[str, Any]) -> Iterator[Fate]:
        """A dead letter that was put back, under a name of its own."""
        found, message = self.branches.get(_text(record, "dead_letter_id")), _text(record, "message_id")
        if found is not None and message:
            fate, branch = found
            branch.state, branch.ended_us, branch.reason, branch.message_id = State.WAITS, 0, "", message
            self._name(message, fate, branch)
            yield fate

    def forwarded(self, record: dict[str, Any]) -> Iterator[Fate]:
        """A message that a channel handed to its target."""
        yield from self._ended(record, State.FORWARDED, _text(record, "queue_manager"))

    def taken(self, record: dict[str, Any]) -> Iterator[Fate]:
        """A message that an application got from its queue."""
        yield from self._ended(record, State.TAKEN, _text(record, "application") or _text(record, "operator"))

    def confirmed(self, record: dict[str, Any]) -> Iterator[Fate]:
        """The gateway's acknowledgements of a session's exchanges."""
        waiting, ranges = self.exchanges.get(_session_of(record)), record.get("exchanges")
        if not waiting or record.get("packet_type") not in _LAST_ANSWERS or not isinstance(ranges, list):
            return
        for pair in ranges:
            match pair:
                case [int(first), int(last)]:
                    for exchange in [each for each in waiting if first <= each <= last]:
                        fate = waiting.pop(exchange)
                        fate.confirmed_us = _number(record, "at_us")
                        yield fate

    def lane(self, record: dict[str, Any]) -> Iterator[Fate]:
        """Of a record that is too old: the CorrelId of its client."""
        self._learn_lane(record)
        if record.get("kind") == Kind.DELIVERED and self.wanted.wants(record.get("client")):
            self._learn(_text(record, "correlation_id"), _text(record, "client"), is_sure=False)
        return iter(())

    def _fits(self, record: dict[str, Any]) -> bool:
        return self.wanted.wants(record.get("client")) and self.wanted.fits(record, record.get("topic"))

    # -- what is kept --------------------------------------------------------------------------------------------------

    def _found(
        self, record: dict[str, Any], topic: str, *, client: str | None = None, is_delivery: bool = False
    ) -> Fate | None:
        if len(self.fates) >= MOST_MESSAGES:
            self.is_cut = True
            return None
        fate = Fate(
            at_us=_number(record, "at_us"),
            client=_text(record, "client") if client is None else client,
            topic=topic,
            message_id=_text(record, "message_id") if is_delivery else "",
            qos=_number(record, "qos"),
            is_delivery=is_delivery,
        )
        self.fates.append(fate)
        return fate

    def _branch(self, fate: Fate, branch: Branch) -> None:
        if len(self.branches) >= MOST_BRANCHES:
            self.is_cut = True
            return
        fate.branches.append(branch)
        self._name(branch.message_id, fate, branch)

    def _name(self, message: str, fate: Fate, branch: Branch) -> None:
        self.branches[message] = fate, branch
        self.needles.names.add(message.encode())

    def _ended(self, record: dict[str, Any], state: State, reason: str) -> Iterator[Fate]:
        """The end of a copy; or of a publication that got no copy on a queue."""
        message, queue = _text(record, "message_id"), _text(record, "queue")
        known = self.branches.get(message)
        if (whole := self.messages.get(message)) is not None and (known is None or queue not in ("", known[1].queue)):
            self._branch(whole, Branch(message_id=message, queue=queue))
        if message in self.branches:
            fate, branch = self.branches[message]
            branch.state, branch.reason, branch.ended_us = state, reason, _number(record, "at_us")
            yield fate

    def _learn_lane(self, record: dict[str, Any]) -> None:
        if record.get("command") == _REGISTRATION and self.wanted.wants(record.get("client")):
            self._learn(_text(record, "correlation_id"), _text(record, "client"), is_sure=True)

    def _learn(self, lane: str, client: str, *, is_sure: bool) -> None:
        if lane and len(self.lanes) < _MOST_LANES and (is_sure or lane not in self.lanes):
            self.lanes[lane] = client
            self.needles.names.add(lane.encode())

    def _exchanges_of(self, record: dict[str, Any]) -> dict[int, Fate]:
        return self.exchanges.setdefault(_session_of(record), {})


_Handlers = dict[str, Callable[[_Search, dict[str, Any]], Iterator[Fate]]]
_HANDLERS: Final[_Handlers] = {
    Kind.ACCEPTED: _Search.accepted,
    Kind.PUT: _Search.put,
    Kind.COMMANDED: _Search.commanded,
    Kind.DELIVERED: _Search.delivered,
    Kind.ACKNOWLEDGED: _Search.acknowledged,
    Kind.CONFIRMED: _Search.confirmed,
    Kind.REFUSED: _Search.refused,
    Kind.DEAD_LETTERED: _Search.dead_lettered,
    Kind.REDRIVEN: _Search.redriven,
    Kind.DROPPED: _Search.dropped,
    Kind.FORWARDED: _Search.forwarded,
    Kind.MQGET: _Search.taken,
}
_LANES_ALONE: Final[_Handlers] = {Kind.PUT: _Search.lane, Kind.DELIVERED: _Search.lane}


def _session_of(record: dict[str, Any]) -> _Session:
    return tuple(map(str, (record.get("gateway"), record.get("client"), record.get("session_epoch"))))  # type: ignore[return-value]


def _text(record: dict[str, Any], name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""


def _number(record: dict[str, Any], name: str) -> int:
    value = record.get(name)
    return value if isinstance(value, int) else 0


def _reason(record: dict[str, Any]) -> str:
    """The reason in words, else its code."""
    return _text(record, "reason") or str(record.get("reason_code") or "")
