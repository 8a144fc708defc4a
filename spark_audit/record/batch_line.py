"""A line of a whole batch: the notes of one commit as the gateway packed them. Its records are made when it is read.

    version     2
    sequence    that of its first record
    batch       number of the batch
    gateway     as in a record
    kind        'batch'
    at_us       time of its first record
    until_us    time of its last one
    records     how many it has
    packed      the packed batch (notes.py) in base64
    prev, hash  as in a record (line.py)

Its records have sequences one after the other from the line's on. The first has the line's `prev`, the others the
line's own hash in its place, and all have the line's hash as theirs. Each record has a line of its own instead where
names are keyed, in trails of earlier versions, and in a batch of more than 8 MiB, 20,000 records, or 32 MiB of header
contexts, each counted for each of its notes.
"""

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any, Final

import orjson
import ormsgpack

from spark_audit.record.expansion import LARGEST, Expander, MalformedBatch
from spark_audit.record.fields import FIELD_PLACES
from spark_audit.record.header_contexts import HEADER_CONTEXTS
from spark_audit.record.line import HASH_SUFFIX_BYTES, parsed_record
from spark_audit.record.notes import BATCH_VERSION, NOTES

BATCH_LINE_VERSION: Final = 2
BATCH_KIND: Final = "batch"
#: An auditor's memory holds the records of a line, and writes out for each what its header context says.
LARGEST_PACKED_BYTES: Final = 8 * 1024 * 1024
MOST_RECORDS: Final = 20_000
MOST_TOLD_BYTES: Final = 32 * 1024 * 1024
_BEGINNING: Final = b'{"version":%d,' % BATCH_LINE_VERSION
_GATEWAY: Final = re.compile("[0-9a-f]{24}")
_NUMBERS: Final = ("sequence", "batch", "at_us", "until_us", "records")
#: By the kind of a note: its fewest and its most items, its records, and the place of its header context (0: none).
_SHAPES: Final = {
    int(note.kind): (
        2 + len(note.items),
        2 + len(note.items) + len(note.optional),
        len(note.records),
        next((2 + place for place, name in enumerate(note.items) if name in HEADER_CONTEXTS), 0),
    )
    for note in NOTES
}
_CONTEXT_LENGTHS: Final = {
    name: (1 + context.required, 1 + len(context.facts)) for name, context in HEADER_CONTEXTS.items()
}
#: Types of most values of records.
_SCALARS: Final = frozenset((str, int, bool, type(None)))
_PLACES: Final = FIELD_PLACES.__getitem__
_MOST_GATEWAYS: Final = 16
_EXPANDERS: Final[dict[str, Expander]] = {}

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Summary:
    """What the line of a batch says of it: its number, records, and the times of the first and the last of them.

    `told_bytes`: the packed length of the header contexts of all records.
    """

    batch: int
    records: int
    at_us: int
    until_us: int
    told_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """Whose records a line has, and of which sequences, batch and times."""

    gateway: str
    batch: int
    first_sequence: int
    last_sequence: int
    at_us: int
    until_us: int

    @property
    def records(self) -> int:
        return self.last_sequence - self.first_sequence + 1


def summary_of(packed: bytes) -> Summary:
    """Looks through a packed batch without expanding it. Raises MalformedBatch."""
    try:
        version, batch, packed_notes, contexts = ormsgpack.unpackb(packed)
        if version != BATCH_VERSION:
            raise MalformedBatch(f"the batch has version {version!r}, this program reads {BATCH_VERSION}")
        for facts in contexts:
            fewest, most = _CONTEXT_LENGTHS[facts[0]]
            if not fewest <= len(facts) <= most:
                raise MalformedBatch(f"a header context has {len(facts)} items")
        notes = ormsgpack.unpackb(packed_notes)
        records, at_us, until_us, told_bytes = 0, 0, 0, 0
        sizes = [len(ormsgpack.packb(facts)) for facts in contexts]
        for note in notes:
            fewest, most, made, place = _SHAPES[note[0]]
            if not fewest <= len(note) <= most:
                raise MalformedBatch(f"a note has {len(note)} items")
            if place:
                if not 0 <= note[place] < len(sizes):
                    raise MalformedBatch(f"a note names header context {note[place]}, and there are {len(sizes)}")
                told_bytes += sizes[note[place]]
            until_us = note[1]
            if not records:
                at_us = until_us
            records += made
        return Summary(int(batch), records, int(at_us), int(until_us), told_bytes)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise MalformedBatch(f"the batch cannot be read ({type(error).__name__}: {error})") from error


def text_of_batch(packed: bytes, summary: Summary, gateway: str, sequence: int, prev: str) -> bytes:
    """The line of a batch up to its hash: what `,"hash":"..."}` follows, and what is hashed with a `}` behind it."""
    return (
        f'{{"version":{BATCH_LINE_VERSION},"sequence":{sequence},"batch":{summary.batch},"gateway":"{gateway}"'
        f',"kind":"{BATCH_KIND}","at_us":{summary.at_us},"until_us":{summary.until_us},"records":{summary.records}'
        f',"packed":"{base64.b64encode(packed).decode()}","prev":"{prev}"'
    ).encode()


def is_of_batch(line: bytes) -> bool:
    """Whether a line is that of a whole batch, by its beginning."""
    return line.startswith(_BEGINNING)


def packed_batch(line: bytes) -> bytes:
    """The packed batch in the line of one; b"" where there is none."""
    begin = line.find(b'"packed":"') + 10
    if not is_of_batch(line) or begin < 10:
        return b""
    try:
        return base64.b64decode(line[begin : line.find(b'"', begin)])
    except binascii.Error:
        return b""


def records_of(line: bytes) -> list[Record] | None:
    """The records of a line; None if it has none, they are not those that it says, or JSON cannot tell their values."""
    records = records_in(line, parsed_record(line))
    if records is None or not is_of_batch(line):
        return records
    for each in records:
        if not _SCALARS.issuperset(map(type, each.values())) and not _are_told(list(each.values()), 2):
            return None
    return records


def records_in(text: bytes, line: Record | None) -> list[Record] | None:
    """The same of a line that is parsed already, without a look at the types of values.

    The line of a batch has one spelling, that of `text_of_batch`. In another one a search would not find it.
    """
    if line is None or is_of_batch(text) != (line.get("version") == BATCH_LINE_VERSION):
        return None
    return _of_batch(text, line) if is_of_batch(text) else [line]


def _of_batch(text: bytes, line: Record) -> list[Record] | None:
    packed, gateway, prev, own = line.get("packed"), line.get("gateway"), line.get("prev"), line.get("hash")
    numbers = [line.get(name) for name in _NUMBERS]
    if (
        type(packed) is not str
        or type(prev) is not str
        or type(gateway) is not str
        or _GATEWAY.fullmatch(gateway) is None
        or len(packed) > LARGEST_PACKED_BYTES // 3 * 4 + 4
        or any(type(number) is not int for number in numbers)
    ):
        return None
    try:
        data = base64.b64decode(packed, validate=True)
        batch, records = _expander(gateway).expand(data, int(line["sequence"]), MOST_RECORDS, MOST_TOLD_BYTES)
    except (binascii.Error, ValueError, MalformedBatch):
        return None
    if not records:
        return None
    if not 0 < line["sequence"] <= LARGEST - MOST_RECORDS:
        return None
    told = [batch, len(records), records[0]["at_us"], records[-1]["at_us"]]
    if told != [line[name] for name in ("batch", "records", "at_us", "until_us")]:
        return None
    summary = Summary(batch, len(records), line["at_us"], line["until_us"])
    if text_of_batch(data, summary, gateway, line["sequence"], prev) != text[:-HASH_SUFFIX_BYTES]:
        return None
    for record in records:
        record["prev"] = record["hash"] = own
    records[0]["prev"] = prev
    return records


def _are_told(values: list[Any], depth: int) -> bool:
    """Whether values are numbers, texts, truth values, or lists of these, or lists of such lists: so deep at most."""
    for value in values:
        if isinstance(value, (str, int)) or value is None:
            continue
        if not depth or type(value) is not list or not _are_told(value, depth - 1):
            return False
    return True


def text_of(record: Record) -> bytes:
    """A record of a batch as JSON text, its fields in the order of the table."""
    return orjson.dumps({name: record[name] for name in sorted(record, key=_PLACES)})


def span_of(line: bytes) -> Span | None:
    """Whose records a line has, and which, without making them; None for what is no line of records."""
    try:
        record = orjson.loads(line)
        gateway, batch, first, at_us = record["gateway"], record["batch"], record["sequence"], record.get("at_us", 0)
        last, until_us = first, at_us
        if record.get("version") == BATCH_LINE_VERSION:
            last, until_us = first + record["records"] - 1, record["until_us"]
        if type(gateway) is not str or any(type(each) is not int for each in (batch, first, last, at_us, until_us)):
            return None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return Span(gateway, batch, first, last, at_us, until_us)


def _expander(gateway: str) -> Expander:
    found = _EXPANDERS.get(gateway)
    if found is None:
        if len(_EXPANDERS) >= _MOST_GATEWAYS:
            _EXPANDERS.clear()
        found = _EXPANDERS[gateway] = Expander(gateway)
    return found
