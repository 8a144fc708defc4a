"""The line of a whole batch: its records, what it says of them, and lines that say something else."""

import base64
import dataclasses
import hashlib
from collections.abc import Callable

import orjson
import ormsgpack
import pytest

from gateway.audit_trail.notes.notes import NoteKind, Translation, pack_batch
from gateway.audit_trail.records import Chain, fits_in_one_line
from spark_audit.facts.lines import parsed
from spark_audit.record import line_hashes
from spark_audit.record.batch_line import (
    LARGEST_PACKED_BYTES,
    MOST_RECORDS,
    MOST_TOLD_BYTES,
    Span,
    Summary,
    is_of_batch,
    packed_batch,
    records_of,
    span_of,
    summary_of,
)
from spark_audit.record.expansion import Expander, MalformedBatch

GATEWAY = "0102030405060708090a0b0c"
HEAD = "ab" * 32
AT = 1_795_158_000_000_000
PUBLISH = bytes.fromhex("33 09 0003 612f62 000a")
DIGEST = hashlib.sha256(b"21").digest()
TRANSLATION = Translation(
    command="Publish",
    topic="a/b",
    queue="SYSTEM.BROKER.DEFAULT.STREAM",
    correl_id=bytes(24),
    persistent=True,
    format=b"MQHRF2  ",
    coded_char_set_id=1208,
    encoding=546,
    header=b"RFH \x02\x00\x00\x00",
)
PUBLISHED = (NoteKind.PUBLISHED, AT, "boiler", 5, 2, PUBLISH, 2, DIGEST, 300, TRANSLATION)
ENDED = (NoteKind.SESSION, AT + 7, "boiler", 5, "ended", 4, True)
PACKED = pack_batch(7, [PUBLISHED, ENDED])


def sealed(text: dict[str, object]) -> bytes:
    """A line with these fields and its hash, as a forger makes it who has every key."""
    body = orjson.dumps(text)
    return body[:-1] + b',"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'"}'


@pytest.fixture
def line() -> bytes:
    chain = Chain(sequence=40, head=HEAD)
    line = chain.seal_batch(PACKED, summary_of(PACKED), GATEWAY).removesuffix(b"\n")
    assert (chain.sequence, chain.head) == (43, line_hashes(line)[0])
    return line


def test_its_records_are_those_that_lines_of_their_own_would_have(line: bytes) -> None:
    records = records_of(line)
    own = orjson.loads(line)["hash"]
    assert [(each["sequence"], each["kind"], each["prev"], each["hash"]) for each in records] == [
        (41, "accepted", HEAD, own),
        (42, "put", own, own),
        (43, "session", own, own),
    ]
    alone = [
        records_of(each)[0]
        for each in Chain(sequence=40, head=HEAD).seal(Expander(GATEWAY).expand(PACKED)[1]).splitlines()
    ]
    links = {"prev": "", "hash": ""}
    assert [each | links for each in records] == [each | links for each in alone]


def test_the_line_has_a_hash_as_every_line_and_says_what_it_holds(line: bytes) -> None:
    borne, actual = line_hashes(line)
    assert borne == actual
    assert is_of_batch(line)
    assert packed_batch(line) == PACKED
    assert span_of(line) == Span(GATEWAY, 7, 41, 43, AT, AT + 7)
    assert span_of(line).records == 3


def test_the_line_of_one_record_has_a_span_and_no_batch() -> None:
    alone = Chain(sequence=40, head=HEAD).seal(Expander(GATEWAY).expand(PACKED)[1]).splitlines()[1]
    assert span_of(alone) == Span(GATEWAY, 7, 42, 42, AT, AT)
    assert not is_of_batch(alone)
    assert packed_batch(alone) == b""


@pytest.mark.parametrize(
    "change",
    [
        {"records": 2},
        {"records": True},
        {"batch": 8},
        {"at_us": AT - 1},
        {"until_us": AT},
        {"sequence": "41"},
        {"sequence": 0},
        {"sequence": 2**63 - 2},
        {"gateway": "g"},
        {"gateway": None},
        {"kind": "put"},
        {"packed": "!" + base64.b64encode(PACKED).decode()},
        {"packed": base64.b64encode(PACKED[:-1]).decode()},
        {"packed": base64.b64encode(pack_batch(7, [])).decode(), "records": 0, "at_us": 0, "until_us": 0},
        {"packed": "A" * (LARGEST_PACKED_BYTES // 3 * 4 + 8)},
    ],
    ids=lambda change: f"{next(iter(change))} {str(next(iter(change.values())))[:9]}",
)
def test_a_line_that_says_something_else_than_its_batch_has_no_records(line: bytes, change: dict[str, object]) -> None:
    told = orjson.loads(line)
    del told["hash"]
    assert len(records_of(sealed(told))) == 3
    assert records_of(sealed(told | change)) is None


def test_a_batch_with_more_records_than_memory_should_hold_has_none(line: bytes) -> None:
    packed = pack_batch(7, [ENDED] * (MOST_RECORDS + 1))
    told = orjson.loads(line) | {"packed": base64.b64encode(packed).decode(), "records": MOST_RECORDS + 1}
    del told["hash"]
    assert records_of(sealed(told | {"at_us": AT + 7})) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'{"version":2,', b'{"version": 2,'),
        (b'{"version":2,', b'{"version":2.0,'),
        (b'{"version":2,', b'{"version":1,"version":2,'),
        (b',"packed":', b',"packed":"AAAA","packed":'),
        (b',"records":', b' ,"records":'),
        (b'","prev"', b'","more":1,"prev"'),
    ],
)
def test_the_line_of_a_batch_has_one_spelling(line: bytes, old: bytes, new: bytes) -> None:
    """A search looks at bytes: in another spelling it would not find what the audit reads."""
    assert line.count(old) == 1
    body = line[:-75].replace(old, new) + b"}"
    other = body[:-1] + b',"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'"}'
    assert line_hashes(other)[0] == line_hashes(other)[1]
    assert records_of(other) is None
    assert parsed(other) is None


def test_a_long_header_of_many_notes_does_not_fill_the_memory() -> None:
    wide = dataclasses.replace(TRANSLATION, header=bytes(100_000))
    notes = [(*PUBLISHED[:-1], wide)] * 400
    packed = pack_batch(7, notes)
    summary = summary_of(packed)
    assert (len(packed) < 200_000, summary.told_bytes > MOST_TOLD_BYTES) == (True, True)
    assert not fits_in_one_line(packed, summary)
    line = Chain(sequence=0, head=HEAD).seal_batch(packed, summary, GATEWAY)[:-1]
    assert records_of(line) is None
    few = pack_batch(7, notes[:300])
    assert len(records_of(Chain(sequence=0, head=HEAD).seal_batch(few, summary_of(few), GATEWAY)[:-1])) == 600


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"version":2}', b'{"version":2,"batch":1', b"\xff"])
def test_what_is_no_line_has_neither_records_nor_span(text: bytes) -> None:
    assert records_of(text) in (None, [{}])
    assert span_of(text) is None


@pytest.mark.parametrize("value", [b"\xff", {"a": 1}, 1.5, [[["deep"]]]], ids=["bytes", "map", "fraction", "deep"])
def test_a_value_that_json_cannot_tell_or_no_record_has_leaves_the_line_without_records(
    line: bytes, value: object
) -> None:
    """A forger who writes the open segment chooses every value of a note."""
    packed = _unpacked(lambda notes, _contexts: notes[0].__setitem__(3, value))
    told = orjson.loads(line) | {"packed": base64.b64encode(packed).decode()}
    del told["hash"]
    assert records_of(sealed(told)) is None


def _unpacked(change: Callable[[list[object], list[list[object]]], None]) -> bytes:
    """The batch with other notes and header contexts."""
    version, batch, packed_notes, contexts = ormsgpack.unpackb(PACKED)
    notes = ormsgpack.unpackb(packed_notes)
    change(notes, contexts)
    return ormsgpack.packb([version, batch, ormsgpack.packb(notes), contexts])


@pytest.mark.parametrize(
    "change",
    [
        lambda notes, contexts: notes[0].append(0) or notes[0].extend([0] * 9),
        lambda notes, contexts: notes[0].__setitem__(slice(5), []),
        lambda notes, contexts: notes[0].__setitem__(0, 99),
        lambda notes, contexts: notes[0].__setitem__(9, 1),
        lambda notes, contexts: notes[0].__setitem__(9, -1),
        lambda notes, contexts: notes[1].__setitem__(1, "now"),
        lambda notes, contexts: contexts[0].__setitem__(slice(4), []),
        lambda notes, contexts: contexts[0].__setitem__(0, "other"),
        lambda notes, contexts: contexts.append(7),
    ],
)
def test_a_batch_with_another_shape_than_the_tables_is_malformed(change) -> None:
    with pytest.raises(MalformedBatch):
        summary_of(_unpacked(change))


@pytest.mark.parametrize(
    "packed", [b"", b"\xc1", b"\x93", ormsgpack.packb([2, 1, b"\x90", []]), pack_batch(1, [(99, AT)])]
)
def test_what_is_no_batch_is_named_as_such(packed: bytes) -> None:
    with pytest.raises(MalformedBatch):
        summary_of(packed)


def test_the_summary_counts_records_and_takes_the_times_of_the_first_and_the_last() -> None:
    told_bytes = len(ormsgpack.packb(ormsgpack.unpackb(PACKED)[3][0]))
    assert summary_of(PACKED) == Summary(7, 3, AT, AT + 7, told_bytes)
    assert summary_of(pack_batch(8, [])) == Summary(8, 0, 0, 0)
