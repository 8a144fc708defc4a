"""The reader: lines of one piece to rows of the tables of facts (tables.py), in Arrow batches of bounded size.

Some thousand lines come together. First each line is taken by itself: runs, its hash, and what its kind brings. Then
records of one kind with the same fields are looked at together, column by column (record_columns.py, values.py). Each
conversion is performed again.
"""

import base64
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa

from spark_audit.decrypted_headers import in_clear
from spark_audit.facts.conversions import Conversions, Key, Performed, keys_of, printable, size_of
from spark_audit.facts.lines import Line, Record
from spark_audit.facts.reading import Reading
from spark_audit.facts.record_columns import Assembly, Fields, RecordColumns
from spark_audit.facts.runs import Run, Runs
from spark_audit.facts.tables import CHARACTERS_SHOWN, TABLES, schema_of
from spark_audit.facts.values import may_be_unexplained, may_be_wrong, unexplained, wrong_values
from spark_audit.facts.words import TOLD_KINDS, file_of, gateway_words, message_words, ranges_of, told_by_kind
from spark_audit.personal import PersonalKey, is_sealed
from spark_audit.record import FIELDS, Kind
from spark_audit.reperform.comparison import Rule, Status

#: Lines of which rows are held before they are given as a batch, and their bytes.
_BATCH_ROWS: Final = 5_000
_BATCH_BYTES: Final = 16 * 1024 * 1024
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
#: Far more than any clock says, and near enough that the difference of two of them is a number.
_LATEST_US: Final = 2**62
_CONFIRMED: Final = str(Kind.CONFIRMED)
_MATCH: Final = str(Status.MATCH)
_NAMES: Final = tuple([row.name for row in FIELDS])
_PLACE: Final = ("trail", "segment", "block", "place", "line_number")
_OF_BATCH: Final = (*_PLACE, "at_us", "is_counted")
_OF_RECORDS: Final = tuple([name for name in TABLES["records"] if name not in _OF_BATCH])
_SCHEMAS: Final = {table: schema_of(table) for table in TABLES}

_Row = tuple[Any, ...]


class _Taken:
    """The records of a batch, with what was found line by line. Lists go by the place of a record in the batch."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.runs: list[Run] = []
        self.times_us: list[int | None] = []
        self.are_counted: list[bool] = []
        #: Places of the records of one kind with the same fields.
        self.groups: dict[tuple[str, int], list[int]] = {}
        #: Rows of findings and evidence, with the place of their record.
        self.found: list[tuple[int, _Row]] = []
        self.evidence: list[tuple[int, _Row]] = []

    def tell(self, place: int, record: Record, control: str, subject: str, detail: str) -> None:
        """Adds a finding."""
        row = control, record["gateway"], subject, detail, record.get("hash"), record["sequence"]
        self.found.append((place, row))


class FactReader:
    """Reads pieces one after the other; remembers conversions from one to the next."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._key = PersonalKey(reading.personal_key) if reading.personal_key else None
        self._conversions = Conversions(has_key=self._key is not None)
        self._columns = RecordColumns(reading.salt, reading.scope)
        self._runs = Runs(reading.cut, reading.backwards_us)
        self._is_everything = reading.period.is_everything
        self._dropped: dict[tuple[str, str], int] = {}
        self._confirmations: list[_Row] = []

    def facts(self, lines: Iterable[Line]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Batches of rows, each with the name of its table."""
        held: list[Line] = []
        size_bytes = 0
        for line in lines:
            held.append(line)
            size_bytes += line.size_bytes
            if len(held) >= _BATCH_ROWS or size_bytes >= _BATCH_BYTES:
                yield from self._facts_of(held)
                held, size_bytes = [], 0
        yield from self._facts_of(held)
        self._runs.end()
        yield from _batch("runs", self._runs.rows())
        yield from _batch("dropped_fields", [(*pair, times) for pair, times in self._dropped.items()])
        self._dropped = {}

    def _facts_of(self, lines: Sequence[Line]) -> Iterator[tuple[str, pa.RecordBatch]]:
        taken = _Taken()
        for line in lines:
            if line.record is None:
                self._runs.take_foreign(line)
                continue
            self._take(taken, line, line.record)
            if len(self._confirmations) >= _BATCH_ROWS:
                yield from self._confirmed()
        if taken.lines:
            yield "records", self._records(taken)
        yield from self._confirmed()
        yield from _batch("runs", self._runs.rows())
        for table, rows in (("findings", taken.found), ("evidence", taken.evidence)):
            yield from _batch(table, [row for _, row in sorted(rows, key=itemgetter(0))])

    def _confirmed(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        rows, self._confirmations = self._confirmations, []
        yield from _batch("confirmations", rows)

    # -- one line ------------------------------------------------------------------------------------------------------

    def _take(self, taken: _Taken, line: Line, record: Record) -> None:
        at_us: int | None = record.get("at_us")
        is_counted = self._is_everything or self._reading.period.holds(at_us)
        if at_us is not None:
            at_us = max(1 - _LATEST_US, min(at_us, _LATEST_US))
        place = len(taken.lines)
        kind: str = record["kind"]
        taken.lines.append(line)
        taken.runs.append(self._runs.take(line, record, at_us, is_counted=is_counted))
        taken.times_us.append(at_us)
        taken.are_counted.append(is_counted)
        key = kind, id(line.names)
        places = taken.groups.get(key)
        if places is None:
            taken.groups[key] = [place]
        else:
            places.append(place)
        if record.get("hash") != line.actual_hash:
            detail = f"the line's bytes have hash {line.actual_hash}: the line was changed"
            taken.tell(place, record, "integrity.hash", file_of(line), detail)
        if is_counted and (dropped := record.get("dropped_fields")) is not None:
            self._count_dropped(dropped)
        if kind == _CONFIRMED:
            self._confirm(record, at_us, is_counted=is_counted)

    def _count_dropped(self, dropped: list[Any]) -> None:
        for pair in dropped:
            name, reason = (*(pair or ()), None, None)[:2]
            told = name or "", reason or ""
            self._dropped[told] = self._dropped.get(told, 0) + 1

    def _confirm(self, record: Record, at_us: int | None, *, is_counted: bool) -> None:
        """Spells out the ranges of a confirmation."""
        get = record.get
        gateway, client, epoch = record["gateway"], get("client"), get("session_epoch")
        packet_type, sequence = get("packet_type"), record["sequence"]
        for first, last in ranges_of(record)[0]:
            self._confirmations += [
                (gateway, client, epoch, exchange, packet_type, sequence, at_us, is_counted)
                for exchange in range(first, last + 1)
            ]

    # -- records together ----------------------------------------------------------------------------------------------

    def _records(self, taken: _Taken) -> pa.RecordBatch:
        """The table `records` of a batch."""
        assembly = Assembly()
        for (kind, _), places in taken.groups.items():
            records: list[Record] = []
            for place in places:
                record = taken.lines[place].record
                assert record is not None
                records.append(record)
            fields = Fields(kind, records)
            columns = self._columns.of(fields)
            self._judge(taken, places, fields)
            if "conversion" in fields.there:
                columns["status"], columns["same_bytes"] = self._converted(taken, places, fields)
            assembly.add(places, columns)
        arrays = assembly.columns(_OF_RECORDS)
        types = TABLES["records"]
        lines = taken.lines
        arrays["trail"] = pa.array([line.trail for line in lines], types["trail"])
        arrays["segment"] = pa.array([line.segment for line in lines], types["segment"])
        arrays["block"] = pa.array([line.block for line in lines], types["block"])
        arrays["place"] = pa.array([line.place for line in lines], types["place"])
        arrays["line_number"] = pa.array([line.line_number for line in lines], types["line_number"])
        arrays["at_us"] = pa.array(taken.times_us, types["at_us"])
        arrays["is_counted"] = pa.array(taken.are_counted, types["is_counted"])
        return pa.RecordBatch.from_arrays([arrays[name] for name in types], schema=_SCHEMAS["records"])

    def _judge(self, taken: _Taken, places: Sequence[int], fields: Fields) -> None:
        """Tells what is wrong with records by themselves, without their conversions."""
        kind, records = fields.kind, fields.records
        if may_be_wrong(kind, fields.there):
            for place, record in zip(places, records, strict=True):
                if wrong := wrong_values(record):
                    taken.tell(place, record, "integrity.values", gateway_words(record), wrong)
        if may_be_unexplained(kind, fields.there):
            for place, record in zip(places, records, strict=True):
                for why in unexplained(record):
                    taken.tell(place, record, "reasons", message_words(record), why)
        if kind in TOLD_KINDS:
            for place, record in zip(places, records, strict=True):
                for control, subject, detail in told_by_kind(record):
                    taken.tell(place, record, control, subject, detail)

    def _converted(self, taken: _Taken, places: Sequence[int], fields: Fields) -> tuple[list[Any], list[Any]]:
        """The columns `status` and `same_bytes`: each conversion of the period is performed again."""
        statuses: list[str | None] = []
        same_bytes: list[bool | None] = []
        conversions = fields.there["conversion"]
        keys: Sequence[Key | None] = keys_of(fields.there) or (None,) * fields.number
        for place, record, conversion, key in zip(places, fields.records, conversions, keys, strict=True):
            if conversion is None or not taken.are_counted[place]:
                statuses.append(None)
                same_bytes.append(None)
                continue
            known = None if key is None else self._conversions.known(key)
            if known is not None:
                statuses.append(_MATCH)
                same_bytes.append(known.comparison.same_bytes)
                continue
            performed = self._perform(taken, place, record, key)
            statuses.append(performed.comparison.status.value)
            same_bytes.append(performed.comparison.same_bytes)
        return statuses, same_bytes

    def _perform(self, taken: _Taken, place: int, record: Record, key: Key | None) -> Performed:
        clear = record
        if is_sealed(record.get("input")) or is_sealed(record.get("output")):
            if self._key is not None:
                clear, key = {**record, **in_clear({name: record.get(name) for name in _NAMES}, self._key)}, None
            else:
                taken.runs[place].sealed += 1
        performed = self._conversions.again(clear, key)
        if not performed.is_right:
            _show(taken, place, clear, performed)
            comparison = performed.comparison
            conversion, words = printable(record["conversion"]), message_words(record)
            if (control := CONTROLS_OF_STATUS.get(comparison.status)) is not None:
                taken.tell(place, record, control, words, f"{conversion}: {comparison.detail}")
            for each in performed.findings:
                taken.tell(place, record, CONTROLS_OF_RULES[each.rule], words, f"{conversion}: {each.detail}")
        return performed


def _show(taken: _Taken, place: int, record: Record, performed: Performed) -> None:
    """Adds the evidence of a conversion that is not right."""
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
    taken.evidence.append((place, tuple([values[name] for name in TABLES["evidence"]])))


def _batch(table: str, rows: Sequence[_Row]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The batch of a table; none without rows."""
    if rows:
        schema = _SCHEMAS[table]
        columns = zip(*rows, strict=True)
        arrays = [pa.array(values, kind.type) for values, kind in zip(columns, schema, strict=True)]
        yield table, pa.RecordBatch.from_arrays(arrays, schema=schema)
