"""One message's life in a trail: from packet to queue, over a channel, to clients. It scans the trail without Spark.

The search follows a message by all its names: its MsgId in the store or at a target, and that of its dead letter.
Downward it follows copies by the broker, their deliveries and acknowledgements, passages over channels, and dead
letters with their fate. Upward it follows the publication of which the message is a copy, the exchange of the client,
and the confirmation. Other copies of that publication do not belong to its life.

A name may stand in front of the record that links it to the message. So the search scans the trail until it learns
nothing new, mostly twice. Memory holds the records found, at most MOST_RECORDS.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson
import ormsgpack

from spark_audit.record import Kind, line_hashes
from spark_audit.record.batch_line import is_of_batch, packed_batch, records_of
from spark_audit.verify.source import SegmentFile, TrailSource, each_segment

if TYPE_CHECKING:
    from spark_audit.segment_index import Contents, SegmentIndex

#: The most records of a life. A message to more subscribers has more.
MOST_RECORDS: Final = 10_000
#: The most scans. A chain of copies and of dead letters that were put back is followed through so many.
_MOST_SCANS: Final = 8
#: The most names that are looked for one by one.
_FEW: Final = 16
#: Text that may be the name of a message, and text that is the name of a client, anywhere in a line.
_IDENTIFIER: Final = re.compile(rb'"([0-9a-f]{48})"')
#: How a line of a batch begins within a block, and the MsgIds and CorrelIds that a gateway gives.
_BATCH_IN_BLOCK: Final = b'\n{"version":2,'
_OF_THE_STORE: Final = b"RFHB"
_HEX: Final = re.compile(rb"(?:[0-9a-f]{2})+")
_CLIENT: Final = re.compile(rb'"client" ?: ?("(?:[^"\\]|\\.)*")')
_NAMING: Final = ("message_id", "source_message_id", "dead_letter_id", "target_message_id")
_OF_EXCHANGES: Final = frozenset(Kind) - {Kind.STARTED, Kind.SESSION, Kind.CONFIRMED}
#: gateway, client, session epoch, direction, exchange.
_Exchange = tuple[str, str, int, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeRecord:
    """A record of the life and its place; lines count from 1. `is_unchanged`: the line matches its hash."""

    trail: str
    segment: str
    line: int
    is_unchanged: bool
    record: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """The records in the order of the trails; `is_cut` if there are more than MOST_RECORDS."""

    message_id: str
    records: tuple[LifeRecord, ...]
    segments: int
    lines: int
    is_cut: bool

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


@dataclass(slots=True)
class Needles:
    """What a search looks for in the text of a trail, before it parses a line: MsgIds, and clients as JSON has them."""

    names: set[bytes] = field(default_factory=set)
    clients: set[bytes] = field(default_factory=set)

    def may_be_in(self, text: bytes) -> bool:
        """Whether a line, or one of a block of lines, may concern the search."""
        if is_of_batch(text):
            return b"\n" in text or self._may_be_packed_in(packed_batch(text))
        if _BATCH_IN_BLOCK in text:
            return True
        if len(self.names) + len(self.clients) <= _FEW:  # ten times faster than a look at every name
            return any(name in text for name in self.names) or any(client in text for client in self.clients)
        return not self.names.isdisjoint(_IDENTIFIER.findall(text)) or (
            bool(self.clients) and not self.clients.isdisjoint(_CLIENT.findall(text))
        )

    def _may_be_packed_in(self, packed: bytes) -> bool:
        """Whether notes may have one of the names. A MsgId of the store stands there as the number that ends it."""
        if len(self.names) + len(self.clients) > _FEW:
            return True
        forms = [form for name in self.names for form in _packed_forms(name)]
        forms += [orjson.loads(client).encode(errors="replace") for client in self.clients]
        return any(form in packed for form in forms)


@dataclass(slots=True)
class _Search:
    """The knowledge of the message so far."""

    #: MsgIds of the message, its copies and dead letters; and of the publications that it comes from.
    followed: set[str]
    origins: set[str] = field(default_factory=set)
    exchanges: set[_Exchange] = field(default_factory=set)
    #: All of these names, and the clients of the exchanges.
    needles: Needles = field(default_factory=Needles)
    #: By the trail's place, the segment's stem (a gateway may close or compress it between two scans), the line, and
    #: the place of the record in it.
    found: dict[tuple[int, str, int, int], LifeRecord] = field(default_factory=dict)
    segments: int = 0
    lines: int = 0
    is_cut: bool = False
    index: "SegmentIndex | None" = None

    def __post_init__(self) -> None:
        self.needles.names.update(name.encode() for name in self.followed)

    def known(self) -> int:
        """The number of known facts, which grows until nothing new is learned."""
        return len(self.followed) + len(self.origins) + len(self.exchanges)

    def scan(self, place: int, trail: str, source: TrailSource) -> None:
        """Goes through a trail once."""
        for segment in each_segment(source):
            self.segments += 1
            contents = self.index.contents_of(segment) if self.index is not None else None
            if contents is None or self._may_tell(contents):
                self._scan_segment(place, trail, segment)
            else:
                self.lines += contents.lines

    def _may_tell(self, contents: "Contents") -> bool:
        """Whether a segment may have a record of this life."""
        clients = {client for _, client, *_ in self.exchanges}
        return contents.has_identifier(self.followed | self.origins) or contents.has_client(clients)

    def _scan_segment(self, place: int, trail: str, segment: SegmentFile) -> None:
        number = 0
        for block in segment.blocks():
            count = block.count(b"\n") + (not block.endswith(b"\n"))
            if self.needles.may_be_in(block):
                for at, line in enumerate(block.removesuffix(b"\n").split(b"\n"), start=number + 1):
                    if self.needles.may_be_in(line):
                        self._take_line(place, trail, segment, at, line)
            number += count
        self.lines += number

    def _take_line(self, place: int, trail: str, segment: SegmentFile, number: int, line: bytes) -> None:
        hashes = None
        for within, record in enumerate(records_of(line) or ()):
            key = place, segment.stem, number, within
            if key in self.found or not self._learns_from(record):
                continue
            if len(self.found) >= MOST_RECORDS:
                self.is_cut = True
                return
            hashes = hashes or line_hashes(line)
            self.found[key] = LifeRecord(
                trail=trail,
                segment=segment.name,
                line=number,
                is_unchanged=hashes is not None and hashes[0] == hashes[1],
                record=record,
            )

    def _learns_from(self, record: dict[str, Any]) -> bool:
        """Whether a record belongs to this life. If so, the search also follows the other names in it."""
        message, source, letter, there = (_name_in(record, field) for field in _NAMING)
        if not self.followed.isdisjoint((message, source, letter, there)):
            self._learn(self.followed, message, letter)
            self._learn(self.origins, *({source} - self.followed))
        elif message in self.origins:
            self._learn(self.origins, source)
        else:
            return any(each in self.exchanges for each in _exchanges_of(record, self.exchanges))
        self._learn_exchange(record)
        return True

    def _learn(self, known: set[str], *names: str) -> None:
        known.update(filter(None, names))
        self.needles.names.update(name.encode() for name in names if name)

    def _learn_exchange(self, record: dict[str, Any]) -> None:
        for exchange in _exchanges_of(record, ()):
            self.exchanges.add(exchange)
            self.needles.clients.add(orjson.dumps(exchange[1]))


def life_of(
    message_id: str,
    trails: Iterable[tuple[str, Callable[[], TrailSource]]],
    index: "SegmentIndex | None" = None,
) -> Life:
    """The life of a message (MsgId in hex) in trails, each with its name. Raises the errors of the sources.

    With an index only segments are read that may have a record of it.
    If no record names it, `records` is empty. `lines` 0 means that there was nothing to search.
    """
    sources = tuple(trails)
    search = _Search({message_id}, index=index)
    for _scan in range(_MOST_SCANS):
        before = search.known()
        search.segments = search.lines = 0
        for place, (trail, source) in enumerate(sources):
            search.scan(place, trail, source())
        if search.known() == before:
            break
    return Life(
        message_id=message_id,
        records=tuple(search.found[key] for key in sorted(search.found)),
        segments=search.segments,
        lines=search.lines,
        is_cut=search.is_cut,
    )


def _packed_forms(name: bytes) -> Iterator[bytes]:
    """How notes may have an identifier: as text, as its bytes, and a MsgId of the store as the number that ends it.

    The gateway packs a number in the shortest form. A forger may choose a longer one.
    """
    yield name
    if _HEX.fullmatch(name) is not None:
        data = bytes.fromhex(name.decode())
        yield data
        if data.startswith(_OF_THE_STORE):
            yield ormsgpack.packb(int.from_bytes(data[-8:]))
            for size, signs in ((8, b"\xcf\xd3"), (4, b"\xce\xd2"), (2, b"\xcd\xd1"), (1, b"\xcc\xd0")):
                if not any(data[-8:-size]):
                    yield from (bytes((sign,)) + data[-size:] for sign in signs)


def _name_in(record: dict[str, Any], field: str) -> str:
    """The name of a message in a field; "" if there is none."""
    name = record.get(field)
    return name if isinstance(name, str) else ""


def _exchanges_of(record: dict[str, Any], wanted: Iterable[_Exchange]) -> Iterator[_Exchange]:
    """The exchange of a record; for a confirmation, the wanted exchanges in its ranges."""
    session = record.get("gateway"), record.get("client"), record.get("session_epoch"), record.get("direction")
    match session:
        case str(gateway), str(client), int(epoch), str(direction):
            pass
        case _:
            return
    if record.get("kind") == Kind.CONFIRMED:
        yield from (
            each for each in wanted if each[:4] == (gateway, client, epoch, direction) and _is_in(each[4], record)
        )
    elif record.get("kind") in _OF_EXCHANGES and isinstance(number := record.get("exchange"), int):
        yield gateway, client, epoch, direction, number


def _is_in(exchange: int, record: dict[str, Any]) -> bool:
    ranges = record.get("exchanges")
    for pair in ranges if isinstance(ranges, list) else ():
        match pair:
            case [int(first), int(last)] if first <= exchange <= last:
                return True
    return False
