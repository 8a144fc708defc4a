"""The reader: lines of one piece to rows of the tables of facts (tables.py), in Arrow batches of bounded size."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from spark_audit.custody.commands import told_of
from spark_audit.decrypted_headers import in_clear
from spark_audit.facts.conversions import Conversions, Performed, printable, size_of
from spark_audit.facts.lines import Line, Record
from spark_audit.facts.tables import CHARACTERS_SHOWN, FIELD_COLUMNS, TABLES, schema_of
from spark_audit.facts.values import unexplained, wrong_values
from spark_audit.period import EVERYTHING, Period
from spark_audit.personal import NAME_PREFIX, PersonalKey, is_sealed
from spark_audit.policy_scope import PolicyScope
from spark_audit.record import EVENTS, FIELDS, RECORD_VERSION, ConversionKind, Kind
from spark_audit.reperform.comparison import Rule, Status

#: Lines of which rows are held before they are given as a batch.
_BATCH_ROWS: Final = 5_000
#: Multiplied by different lengths, any odd number gives different numbers of 63 bits.
_ODD: Final = 0x5851F42D4C957F2D
_LARGEST: Final = 2**63 - 1
#: Numbers that are remembered with the values for which they stand.
_NUMBERS_KEPT: Final = 50_000
#: More exchanges than one confirmation can speak of; a longer range is a violation and is not spelled out.
RANGE_LIMIT: Final = 1_000_000
PUBACK, PUBREC, PUBCOMP = 4, 5, 7
#: Which control asks for what a packet of the gateway confirms.
_ASKED_BY: Final = {PUBACK: "qos.1", PUBREC: "qos.2", PUBCOMP: "qos.2"}
CONTROLS_OF_RULES: Final = {
    Rule.FIELDS: "conversion.fields",
    Rule.SUPPORT: "conversion.support",
    Rule.REPORT: "conversion.report",
    Rule.RETAIN: "retained.option",
    Rule.BYTES: "records.bytes",
}
CONTROLS_OF_STATUS: Final = {
    Status.DIFFERENCE: "conversion.reperformance",
    Status.NOT_REPERFORMABLE: "conversion.reperformable",
}
_SAME, _REUSED = EVENTS[Kind.REPEATED]
_ENDS: Final = frozenset((Kind.DELIVERED, Kind.DROPPED, Kind.DEAD_LETTERED))
_SENT: Final = frozenset((Kind.DELIVERED, Kind.ACKNOWLEDGED))
_TOPICAL: Final = frozenset((Kind.PUT, Kind.DELIVERED))
_QUEUED: Final = frozenset((Kind.DELIVERED, Kind.DROPPED, Kind.FORWARDED))
_PUBLISH: Final = 3
_LOST: Final = "another message came under this packet identifier before PUBREL: it was acknowledged, and nobody got it"
#: With this begins the reason of each message that an operator's order destroyed.
_DESTROYED: Final = "an operator destroyed it"
#: Far more than any clock says, and near enough that the difference of two of them is a number.
_LATEST_US: Final = 2**62
_LAST_TIME_US: Final = 253_402_300_799_999_999
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NAMES: Final = tuple(row.name for row in FIELDS)
_KEYED_LENGTH: Final = len(NAME_PREFIX) + 32


_EVERYTHING: Final = PolicyScope()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How facts are read, the same for all pieces of an audit.

    `cut` are the trails ("" for one alone) of which older segments are not read. `salt` makes the numbers that stand
    for payloads, so that nobody can prepare two payloads with the same one.
    """

    period: Period = EVERYTHING
    scope: PolicyScope = _EVERYTHING
    backwards_us: int = 0
    personal_key: bytes | None = None
    cut: frozenset[str] = frozenset()
    salt: bytes = b""


@dataclass(slots=True, kw_only=True)
class _Run:
    """Lines that follow each other without a fault."""

    trail: str
    segment: str
    block: int
    place: int
    is_record: bool
    is_fresh: bool
    is_cut: bool
    line: str | None = None
    gateway: str | None = None
    first_sequence: int | None = None
    first_batch: int | None = None
    first_at_us: int | None = None
    first_prev: str | None = None
    is_restored: bool = False
    begins_late: bool = False
    first_missing_batch: int | None = None
    last_missing_batch: int | None = None
    last_sequence: int = 0
    last_batch: int = 0
    last_at_us: int | None = None
    last_hash: str | None = None
    last_line_hash: str | None = None
    lowest_at_us: int | None = None
    highest_at_us: int | None = None
    lines: int = 0
    other_versions: int = 0
    sealed: int = 0
    counted: int = 0
    plain: int = 0
    keyed: int = 0

    def goes_on_with(self, line: Line, record: Record, at_us: int | None, backwards_us: int) -> bool:
        """Whether a record follows the last one without a fault."""
        return (
            self.is_record
            and line.place == self.place + self.lines
            and line.block == self.block
            and line.segment == self.segment
            and line.trail == self.trail
            and record["gateway"] == self.gateway
            and record["sequence"] == self.last_sequence + 1
            and record.get("prev") == self.last_hash
            and 0 <= record["batch"] - self.last_batch <= 1
            and record["kind"] != Kind.RESTORED
            and at_us is not None
            and self.last_at_us is not None
            and self.last_at_us - at_us <= backwards_us
        )


class _Rows:
    """Rows of one table that wait to become a batch."""

    def __init__(self, table: str) -> None:
        self.schema = schema_of(table)
        self.rows: list[tuple[Any, ...]] = []

    def batch(self) -> pa.RecordBatch:
        columns: Iterable[tuple[Any, ...]] = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.schema)
        arrays = [pa.array(values, kind.type) for values, kind in zip(columns, self.schema, strict=True)]
        self.rows = []
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class FactReader:
    """Reads pieces one after the other; remembers conversions from one to the next."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._key = PersonalKey(reading.personal_key) if reading.personal_key else None
        self._conversions = Conversions(has_key=self._key is not None)
        self._topics: dict[str, bool] = {}
        self._numbers: dict[object, int] = {}
        self._rows = {table: _Rows(table) for table in TABLES}
        self._dropped: dict[tuple[str, str], int] = {}
        self._run: _Run | None = None
        self._findings_of: dict[str, Callable[[Line, Record], None]] = {
            Kind.CONFIRMED: self._confirmed,
            Kind.RESTORED: self._restored,
            Kind.OPERATED: self._operated,
            Kind.REPEATED: self._repeated,
        }

    def facts(self, lines: Iterable[Line]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Batches of rows, each with the name of its table."""
        for number, line in enumerate(lines, start=1):
            self._take(line)
            if not number % _BATCH_ROWS or len(self._rows["confirmations"].rows) >= _BATCH_ROWS:
                yield from self._batches()
        self._close_run()
        self._rows["dropped_fields"].rows = [(*pair, times) for pair, times in self._dropped.items()]
        self._dropped = {}
        yield from self._batches()

    def _batches(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        for table, rows in self._rows.items():
            if rows.rows:
                yield table, rows.batch()

    def _take(self, line: Line) -> None:
        record = line.record
        if record is None:
            self._close_run()
            self._run = self._begun(line)
            self._run.line, self._run.lines, self._run.last_line_hash = line.text, 1, line.actual_hash
            return
        at_us = record.get("at_us")
        if at_us is not None:
            at_us = max(1 - _LATEST_US, min(at_us, _LATEST_US))
        self._go_on(line, record, at_us)
        is_counted = self._reading.period.holds(record.get("at_us"))
        status, same_bytes = self._judged(line, record, is_counted=is_counted)
        self._rows["records"].rows.append(self._row(line, record, at_us, is_counted, status, same_bytes))
        if record["kind"] == Kind.CONFIRMED:
            self._confirm(record, at_us, is_counted=is_counted)

    # -- runs ----------------------------------------------------------------------------------------------------------

    def _begun(self, line: Line) -> _Run:
        return _Run(
            trail=line.trail,
            segment=line.segment,
            block=line.block,
            place=line.place,
            is_record=line.record is not None,
            is_fresh=True,
            is_cut=line.trail in self._reading.cut,
        )

    def _close_run(self) -> None:
        if self._run is not None:
            run = self._run
            self._rows["runs"].rows.append(tuple(getattr(run, name) for name in TABLES["runs"]))
            self._run = None

    def _go_on(self, line: Line, record: Record, at_us: int | None) -> None:
        """Puts a record into the run that it goes on with, or into a new one."""
        run = self._run
        if run is None or not run.goes_on_with(line, record, at_us, self._reading.backwards_us):
            self._close_run()
            run = self._run = self._begun(line)
            run.gateway, run.first_prev = record["gateway"], record.get("prev")
            run.first_sequence, run.first_batch, run.first_at_us = record["sequence"], record["batch"], at_us
            run.lowest_at_us = run.highest_at_us = at_us
            if record["kind"] == Kind.RESTORED:
                run.is_restored = True
                run.begins_late = record.get("event") == "trail_begun_late" and record["sequence"] == 1
                run.first_missing_batch = record.get("first_missing_batch")
                run.last_missing_batch = record.get("last_missing_batch")
        elif at_us is not None:
            run.lowest_at_us = min(at_us, at_us if run.lowest_at_us is None else run.lowest_at_us)
            run.highest_at_us = max(at_us, at_us if run.highest_at_us is None else run.highest_at_us)
        run.last_sequence, run.last_batch, run.last_at_us = record["sequence"], record["batch"], at_us
        run.last_hash, run.last_line_hash = record.get("hash"), line.actual_hash
        run.lines += 1
        run.other_versions += record["version"] != RECORD_VERSION

    # -- one record ----------------------------------------------------------------------------------------------------

    def _row(
        self,
        line: Line,
        record: Record,
        at_us: int | None,
        is_counted: bool,
        status: str | None,
        same_bytes: bool | None,
    ) -> tuple[Any, ...]:
        get = record.get
        kind = record["kind"]
        is_destroyed = kind == Kind.DROPPED and (get("reason") or "").startswith(_DESTROYED)
        if is_counted and (client := get("client")) is not None:
            run = self._run
            assert run is not None
            if client.startswith(NAME_PREFIX) and len(client) == _KEYED_LENGTH:
                run.keyed += 1
            else:
                run.plain += 1
        topic = get("topic")
        return (
            *line[:4],
            *map(get, FIELD_COLUMNS),
            at_us,
            *self._stand_ins(record),
            is_destroyed,
            is_counted,
            None if topic is None else self._asks_for(topic),
            status,
            same_bytes,
            *told_of(record),
        )

    def _stand_ins(self, record: Record) -> tuple[int | None, ...]:
        """The columns STAND_INS."""
        get, kind = record.get, record["kind"]
        payload_sum = payload = publication = who = said = topic = queue = lane = None
        if (sha256 := get("payload_sha256")) is not None:
            payload_sum = self._number(sha256)
            size = get("payload_bytes")
            payload = (payload_sum + _ODD * (0 if size is None else size + 1)) & _LARGEST
        if kind in (Kind.ACCEPTED, Kind.REPEATED):
            publication = self._number(repr((get("topic"), get("retain"), get("payload_bytes"), sha256)))
        if kind in _ENDS and get("client") is not None:
            who = self._known(record["client"])
        if kind == Kind.ACCEPTED or (kind == Kind.PUT and _is_of_publish(record)):
            said = self._known((get("topic"), get("qos"), get("retain")))
        elif kind in _SENT:
            said = self._number(repr((get("message_id"), get("packet_identifier"))))
        if kind in _TOPICAL:
            topic = self._known(get("topic"))
        is_copy = get("conversion") == ConversionKind.HEADER_TO_HEADER
        if is_copy or kind == Kind.DELIVERED:
            lane = self._known((get("queue"), get("correlation_id")))
        if is_copy or kind in _QUEUED or (kind == Kind.PUT and get("destination") is not None):
            queue = self._known((get("queue"),))
        return payload_sum, payload, publication, who, said, topic, queue, lane

    def _known(self, values: object) -> int:
        """A number that stands for values which come again and again."""
        number = self._numbers.get(values)
        if number is None:
            if len(self._numbers) >= _NUMBERS_KEPT:
                self._numbers.clear()
            number = self._numbers[values] = self._number(repr(values))
        return number

    def _number(self, text: str) -> int:
        """A number that stands for a text within this audit."""
        digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=8, key=self._reading.salt).digest()
        return int.from_bytes(digest, "big") >> 1

    def _asks_for(self, topic: str) -> bool:
        asked = self._topics.get(topic)
        if asked is None:
            if len(self._topics) >= _BATCH_ROWS:
                self._topics.clear()
            asked = self._topics[topic] = self._reading.scope.asks_for(topic)
        return asked

    def _judged(self, line: Line, record: Record, *, is_counted: bool) -> tuple[str | None, bool | None]:
        """Tells what is wrong with a record by itself; gives the comparison of its conversion."""
        run = self._run
        assert run is not None
        run.counted += is_counted
        if record.get("hash") != line.actual_hash:
            detail = f"the line's bytes have hash {line.actual_hash}: the line was changed"
            self._tell("integrity.hash", record, _file(line), detail)
        if wrong := wrong_values(record):
            self._tell("integrity.values", record, gateway_words(record), wrong)
        for why in unexplained(record):
            self._tell("reasons", record, message_words(record), why)
        if (tell := self._findings_of.get(record["kind"])) is not None:
            tell(line, record)
        if not is_counted:
            return None, None
        for pair in record.get("dropped_fields") or ():
            name, reason = (*(pair or ()), None, None)[:2]
            told = name or "", reason or ""
            self._dropped[told] = self._dropped.get(told, 0) + 1
        return (None, None) if record.get("conversion") is None else self._converted(record)

    def _tell(self, control: str, record: Record, subject: str, detail: str) -> None:
        values = {
            "control": control,
            "gateway": record["gateway"],
            "subject": subject,
            "detail": detail,
            "hash": record.get("hash"),
            "sequence": record["sequence"],
        }
        self._rows["findings"].rows.append(tuple(values[name] for name in TABLES["findings"]))

    def _converted(self, record: Record) -> tuple[str, bool]:
        clear = record
        if is_sealed(record.get("input")) or is_sealed(record.get("output")):
            if self._key is not None:
                clear = {**record, **in_clear({name: record.get(name) for name in _NAMES}, self._key)}
            else:
                assert self._run is not None
                self._run.sealed += 1
        performed = self._conversions.again(clear)
        comparison = performed.comparison
        if not performed.is_right:
            self._show(clear, performed)
            conversion = printable(record["conversion"])
            if (control := CONTROLS_OF_STATUS.get(comparison.status)) is not None:
                self._tell(control, record, message_words(record), f"{conversion}: {comparison.detail}")
            for each in performed.findings:
                self._tell(CONTROLS_OF_RULES[each.rule], record, message_words(record), f"{conversion}: {each.detail}")
        return comparison.status.value, comparison.same_bytes

    def _show(self, record: Record, performed: Performed) -> None:
        comparison = performed.comparison
        sides = {"input": record.get("input") or "", "output": record.get("output") or ""}
        sides["expected"] = base64.b64encode(comparison.expected).decode()
        values = {
            "gateway": record["gateway"],
            "sequence": record["sequence"],
            **{side: encoded[:CHARACTERS_SHOWN] for side, encoded in sides.items()},
            **{f"{side}_bytes": size_of(encoded) for side, encoded in sides.items()},
            "byte_offset": comparison.offset,
        }
        self._rows["evidence"].rows.append(tuple(values[name] for name in TABLES["evidence"]))

    def _confirm(self, record: Record, at_us: int | None, *, is_counted: bool) -> None:
        """Spells out the ranges of a confirmation."""
        rows = self._rows["confirmations"].rows
        get = record.get
        for first, last in _ranges(record)[0]:
            rows += [
                (
                    record["gateway"],
                    get("client"),
                    get("session_epoch"),
                    exchange,
                    get("packet_type"),
                    record["sequence"],
                    at_us,
                    is_counted,
                )
                for exchange in range(first, last + 1)
            ]

    def _confirmed(self, _line: Line, record: Record) -> None:
        control = _ASKED_BY.get(record.get("packet_type") or 0)
        if control is None:
            return
        for first in _ranges(record)[1]:
            self._tell(
                control, record, exchange_words(record, "in", first), "a confirmed range is no range of exchanges"
            )

    def _restored(self, _line: Line, record: Record) -> None:
        missing = " and ".join(filter(None, (_missing(record, "records", ""), _missing(record, "batches", "_batch"))))
        what = f"{missing} missing" if missing else "the trail does not know what the store lost"
        detail = f"restored at {_time(record.get('at_us'))}, {what}; until a policy names it: record = "
        self._tell("integrity.restored", record, gateway_words(record), detail + (record.get("hash") or "?"))

    def _operated(self, _line: Line, record: Record) -> None:
        get = record.get
        place = get("queue") if get("queue") is not None else get("object")
        place = "the queue manager" if place is None else place
        why = "" if get("reason") is None else f": {get('reason')}"
        detail = f"{get('command')} by {get('operator')} on {place}, messages: {get('messages')}{why}"
        self._tell("operators.acts", record, gateway_words(record), detail)

    def _repeated(self, _line: Line, record: Record) -> None:
        if record.get("event") == _REUSED and record.get("direction") == "in":
            self._tell("qos.identifiers", record, exchange_words(record, "in", record.get("exchange")), _LOST)


# -- words -------------------------------------------------------------------------------------------------------------


def gateway_words(record: Record) -> str:
    """What a finding of a gateway speaks of."""
    return f"gateway {record['gateway']}"


def message_words(record: Record) -> str:
    """What a finding of a message speaks of."""
    message_id = record.get("message_id")
    return f"message {'?' if message_id is None else message_id}"


def exchange_words(record: Record, direction: str, exchange: int | None) -> str:
    """What a finding of an exchange speaks of."""
    client, epoch = ("?" if value is None else value for value in (record.get("client"), record.get("session_epoch")))
    return f"{direction}: client {client}, session {epoch}, exchange {'?' if exchange is None else exchange}"


def _is_of_publish(record: Record) -> bool:
    return record.get("packet_type") == _PUBLISH and record.get("command") == "Publish"


def _file(line: Line) -> str:
    return f"{line.trail}/{line.segment}" if line.trail else line.segment


def _ranges(record: Record) -> tuple[list[tuple[int, int]], list[int | None]]:
    """The ranges of a confirmation, no more than RANGE_LIMIT exchanges in all; of those that are none, the first."""
    sound: list[tuple[int, int]] = []
    unsound: list[int | None] = []
    room = RANGE_LIMIT
    for pair in record.get("exchanges") or ():
        first, last = (*(pair or ()), None, None)[:2]
        if first is not None and last is not None and first >= 0 and 0 <= last - first < room:
            sound.append((first, last))
            room -= last - first + 1
        else:
            unsound.append(first)
    return sound, unsound


def _missing(record: Record, noun: str, suffix: str) -> str:
    first, last = record.get(f"first_missing{suffix}"), record.get(f"last_missing{suffix}")
    return "" if last is None else f"{noun} {'?' if first is None else first} to {last}"


def _time(at_us: int | None) -> str:
    if at_us is None or not 0 <= at_us <= _LAST_TIME_US:
        return "?"
    return str((_EPOCH + timedelta(microseconds=at_us)).replace(tzinfo=None))
