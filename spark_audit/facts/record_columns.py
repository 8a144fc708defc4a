"""The columns of the table `records`, for records of one kind with the same fields: column by column.

What is the same for all of them is looked at once, and what Arrow and Python do for a whole column they do in C.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from spark_audit.custody.commands import TOLD, may_be_told, told_of
from spark_audit.facts.lines import Record
from spark_audit.facts.tables import FIELD_COLUMNS, TABLES
from spark_audit.policy_scope import PolicyScope
from spark_audit.record import ConversionKind, Kind

#: The values of a field or column, one for each record.
Values = Sequence[Any]
#: Multiplied by different lengths, any odd number gives different numbers of 63 bits.
_ODD: Final = 0x5851F42D4C957F2D
_LARGEST: Final = 2**63 - 1
#: Numbers, those of payloads, and topics that are remembered with the values for which they stand. The records of a
#: payload stand near each other.
_NUMBERS_KEPT: Final = 50_000
_PAYLOADS_KEPT: Final = 10_000
_TOPICS_KEPT: Final = 5_000
_ENDS: Final = frozenset(map(str, (Kind.DELIVERED, Kind.DROPPED, Kind.DEAD_LETTERED)))
_SENT: Final = frozenset(map(str, (Kind.DELIVERED, Kind.ACKNOWLEDGED)))
_TOPICAL: Final = frozenset(map(str, (Kind.PUT, Kind.DELIVERED)))
_QUEUED: Final = frozenset(map(str, (Kind.DELIVERED, Kind.DROPPED, Kind.FORWARDED)))
_WITH_PUBLICATION: Final = frozenset(map(str, (Kind.ACCEPTED, Kind.REPEATED)))
_ACCEPTED, _PUT, _DELIVERED, _DROPPED = map(str, (Kind.ACCEPTED, Kind.PUT, Kind.DELIVERED, Kind.DROPPED))
_COPY: Final = str(ConversionKind.HEADER_TO_HEADER)
_PUBLISH: Final = 3
#: With this begins the reason of each message that an operator's order destroyed.
_DESTROYED: Final = "an operator destroyed it"
_TYPES: Final = TABLES["records"]


class Fields:
    """The fields of records of one kind that have the same ones."""

    def __init__(self, kind: str, records: Sequence[Record]) -> None:
        self.kind = kind
        self.records = records
        self.number = len(records)
        values = zip(*[record.values() for record in records], strict=True)
        self.there: dict[str, Values] = dict(zip(records[0], values, strict=True))
        self._nothing: Values = (None,) * self.number

    def of(self, name: str) -> Values:
        """The values of a field; None where it is missing."""
        return self.there.get(name, self._nothing)


class RecordColumns:
    """Makes columns; remembers numbers and topics from one batch to the next."""

    def __init__(self, salt: bytes, scope: PolicyScope) -> None:
        self._keyed = hashlib.blake2b(digest_size=8, key=salt)
        self._scope = scope
        self._topics: dict[str, bool] = {}
        self._numbers: dict[Any, int] = {}
        self._payloads: dict[str, int] = {}

    def of(self, fields: Fields) -> dict[str, Values]:
        """The columns that come from fields. One that is missing has no value."""
        there = fields.there
        columns: dict[str, Values] = {name: there[name] for name in FIELD_COLUMNS if name in there}
        if (topics := there.get("topic")) is not None:
            columns["is_asked"] = [None if topic is None else self._asks_for(topic) for topic in topics]
        columns["is_destroyed"] = _are_destroyed(fields)
        columns.update(self._stand_ins(fields))
        if may_be_told(fields.kind, there):
            told: Iterable[Values] = zip(*[told_of(record) for record in fields.records], strict=True)
            columns.update(zip(TOLD, told, strict=True))
        return columns

    def _stand_ins(self, fields: Fields) -> dict[str, Values]:
        """The columns STAND_INS that records of this kind have."""
        kind, there, of = fields.kind, fields.there, fields.of
        found: dict[str, Values] = {}
        sums = there.get("payload_sha256")
        if sums is not None:
            numbers = [None if each is None else self._of_payload(each) for each in sums]
            found["payload_sum"] = numbers
            found["payload"] = [
                None if each is None else (each + _ODD * (0 if size is None else size + 1)) & _LARGEST
                for each, size in zip(numbers, of("payload_bytes"), strict=True)
            ]
        if kind in _WITH_PUBLICATION:
            told = zip(of("topic"), of("retain"), of("payload_bytes"), of("payload_sha256"), strict=True)
            found["publication"] = [self._number(repr(each)) for each in told]
        if kind in _ENDS and (clients := there.get("client")) is not None:
            found["who"] = [None if each is None else self._known(each) for each in clients]
        if kind in (_ACCEPTED, _PUT):
            said = zip(of("topic"), of("qos"), of("retain"), strict=True)
            if kind == _ACCEPTED:
                found["said"] = [self._known(each) for each in said]
            elif "packet_type" in there and "command" in there:
                publishes = zip(there["packet_type"], there["command"], strict=True)
                found["said"] = [
                    self._known(each) if packet_type == _PUBLISH and command == "Publish" else None
                    for each, (packet_type, command) in zip(said, publishes, strict=True)
                ]
        elif kind in _SENT:
            sent = zip(of("message_id"), of("packet_identifier"), strict=True)
            found["said"] = [self._number(repr(each)) for each in sent]
        if kind in _TOPICAL:
            found["topic_number"] = [self._known(each) for each in of("topic")]
        found.update(self._places(fields))
        return found

    def _places(self, fields: Fields) -> dict[str, Values]:
        """Those of the queue to which a message went, and of its subscriber."""
        kind, of = fields.kind, fields.of
        copies: Values = [each == _COPY for each in of("conversion")]
        lanes: Values = [True] * fields.number if kind == _DELIVERED else copies
        if kind in _QUEUED:
            queued: Values = [True] * fields.number
        elif kind == _PUT:
            queued = [is_copy or each is not None for is_copy, each in zip(copies, of("destination"), strict=True)]
        else:
            queued = copies
        queues = of("queue")
        found: dict[str, Values] = {}
        if any(queued):
            told = zip(queued, queues, strict=True)
            found["queue_number"] = [self._known((queue,)) if is_there else None for is_there, queue in told]
        if any(lanes):
            of_lane = zip(lanes, queues, of("correlation_id"), strict=True)
            found["lane"] = [self._known((queue, who)) if is_there else None for is_there, queue, who in of_lane]
        return found

    def _known(self, values: Any) -> int:
        """A number that stands for values which come again and again."""
        number = self._numbers.get(values)
        if number is None:
            if len(self._numbers) >= _NUMBERS_KEPT:
                self._numbers.clear()
            number = self._numbers[values] = self._number(repr(values))
        return number

    def _number(self, text: str) -> int:
        """A number that stands for a text within this audit."""
        digest = self._keyed.copy()  # in less time than a new one
        digest.update(text.encode(errors="replace"))
        return int.from_bytes(digest.digest(), "big") >> 1

    def _of_payload(self, digest: str) -> int:
        """A number that stands for the SHA-256 of a payload."""
        number = self._payloads.get(digest)
        if number is None:
            if len(self._payloads) >= _PAYLOADS_KEPT:
                self._payloads.clear()
            number = self._payloads[digest] = self._number(digest)
        return number

    def _asks_for(self, topic: str) -> bool:
        asked = self._topics.get(topic)
        if asked is None:
            if len(self._topics) >= _TOPICS_KEPT:
                self._topics.clear()
            asked = self._topics[topic] = self._scope.asks_for(topic)
        return asked


def _are_destroyed(fields: Fields) -> Values:
    if fields.kind != _DROPPED:
        return [False] * fields.number
    return [(reason or "").startswith(_DESTROYED) for reason in fields.of("reason")]


class Assembly:
    """The rows of a batch, which come in groups: their columns, and the place of each row in the batch."""

    def __init__(self) -> None:
        self._places: list[int] = []
        self._parts: list[tuple[int, Mapping[str, Values]]] = []

    def add(self, places: Sequence[int], columns: Mapping[str, Values]) -> None:
        """Adds the rows of a group."""
        self._places += places
        self._parts.append((len(places), columns))

    def columns(self, names: Iterable[str]) -> dict[str, pa.Array]:
        """Columns of all rows, in the order of their places."""
        number = len(self._places)
        order = pa.array(sorted(range(number), key=self._places.__getitem__))
        orders: dict[tuple[bool, ...], pa.Array] = {}
        found: dict[str, pa.Array] = {}
        for name in names:
            kind = _TYPES[name]
            are_there = tuple([name in columns for _, columns in self._parts])
            parts = [pa.array(columns[name], kind) for _, columns in self._parts if name in columns]
            if not parts:
                found[name] = pa.nulls(number, kind)
                continue
            if are_there not in orders:
                orders[are_there] = self._order_among(are_there).take(order)
            found[name] = pa.concat_arrays(parts).take(orders[are_there])
        return found

    def _order_among(self, are_there: Sequence[bool]) -> pa.Array:
        """For each row, as they were added, its number among those of some groups; null for one of another group."""
        number = 0
        numbers: list[int | None] = []
        for (size, _), is_there in zip(self._parts, are_there, strict=True):
            numbers += range(number, number + size) if is_there else [None] * size
            number += size if is_there else 0
        return pa.array(numbers, pa.int64())
