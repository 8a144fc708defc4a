"""Trails for the comparison of two builds: an audit reads records that somebody changed, line after line.

Records are those that the code of the first edition wrote, and of the trail of the benchmark. An input changes some
fields of a few of them: to values of other records, to values at edges and of other types, or to null. Then they are
sealed anew, most of them rightly.
"""

import functools
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import orjson

from benchmarks.trail.made import make_trail
from spark_audit.custody.commands import row_of
from spark_audit.custody.replay import Replay
from spark_audit.facts.lines import Line, hash_of, parsed, shown
from spark_audit.facts.reader import FactReader
from spark_audit.facts.reading import Reading
from spark_audit.record import ZERO_HASH
from spark_audit.trail.segment_forms import OPEN
from spark_audit.verify.chain import LineChain
from spark_audit.verify.completeness import Completeness
from spark_audit.verify.verdict import Findings
from tests.fuzz.canonical import attempted
from tests.fuzz.choices import NUMBERS, Choices
from tests.trail_lines import trail_records

_FIRST_EDITION: Final = Path(__file__).parents[1] / "spark_audit" / "forger" / "first_edition" / "trail"
_VALUES: Final[tuple[Any, ...]] = (
    *(None, "", "x", "in", "out", "put", "k:" + "0a" * 16, "e:abc", "0a" * 24, True, False, 1.5, {}),
    *([], [None], [[1, 2]], [[1, 5], [9, 3]], [["a", "b"]], [["a", None]], ["x"]),
    *[number for number in NUMBERS if -(2**63) <= number < 2**64],
)
_MADE_RECORDS: Final = 400


@functools.cache
def _records() -> tuple[dict[str, Any], ...]:
    with tempfile.TemporaryDirectory() as name:
        make_trail(Path(name), _MADE_RECORDS)
        return (*trail_records(_FIRST_EDITION), *trail_records(Path(name)))


@functools.cache
def _names() -> list[str]:
    return sorted({name for record in _records() for name in record} - {"prev", "hash"})


class _Segment:
    """A segment of some lines, for `verify`."""

    name = f"000000000001-20261120T00{OPEN}"
    stem = "000000000001-20261120T00"
    number = 1
    ending = OPEN

    def __init__(self, text: bytes) -> None:
        self._text = text

    def blocks(self) -> Iterator[bytes]:
        yield self._text


class _Auditor:
    """Reads lines as the audit and `verify` do, and replays their records."""

    def __init__(self) -> None:
        self._reader = FactReader(Reading(salt=b"salt"))
        self._findings = Findings()
        self._chain = LineChain(self._findings)
        self._replay = Replay()
        self._head, self._sequence, self._place = ZERO_HASH, 0, 0

    def audited(self, given: bytes) -> object:
        choices = Choices(given)
        lines = [self._sealed(choices) for _ in range(1 + choices.byte() % 4)]
        return (
            attempted(lambda: self._facts(lines)),
            attempted(lambda: self._verified(lines)),
            attempted(lambda: self._replayed(lines)),
        )

    def _sealed(self, choices: Choices) -> bytes:
        """The line of a record that was changed."""
        records = _records()
        record = dict(records[(choices.byte() << 8 | choices.byte()) % len(records)])
        self._sequence += 1
        record |= {"sequence": self._sequence, "batch": 1 + self._sequence // 3, "gateway": "0a" * 12}
        for _ in range(choices.byte() % 4):
            kind, name = choices.byte() % 8, choices.of(_names())
            if kind < 3:
                record.pop(name, None)
            elif kind < 6:
                record[name] = records[choices.byte() % len(records)].get(name)
            else:
                record[name] = choices.of(_VALUES)
        del record["hash"]
        record["prev"] = record.pop("prev") if choices.byte() % 16 == 1 else self._head
        body = orjson.dumps(record)
        self._head = hashlib.sha256(body).hexdigest()
        told = ZERO_HASH if choices.byte() % 16 == 1 else self._head
        line = body[:-1] + b',"hash":"' + told.encode() + b'"}'
        return line[: choices.number()] if choices.byte() % 32 == 1 else line

    def _facts(self, lines: Sequence[bytes]) -> object:
        return [(table, batch.to_pylist()) for table, batch in self._reader.facts(self._lines(lines))]

    def _lines(self, lines: Iterable[bytes]) -> Iterator[Line]:
        for data in lines:
            for record in parsed(data) or (None,):
                text = None if record else shown(data)
                yield Line("", "segment", 0, self._place, self._place, record, hash_of(data), text, len(data))
                self._place += 1

    def _verified(self, lines: Sequence[bytes]) -> object:
        completeness = Completeness(findings=self._findings, lines=self._chain)
        completeness.read(_Segment(b"".join(line + b"\n" for line in lines)))  # type: ignore[arg-type]
        chain = self._chain
        return chain.head, chain.records, chain.restorations, chain.ranges, self._findings

    def _replayed(self, lines: Sequence[bytes]) -> object:
        records = [record for record in map(parsed, lines) if record is not None]
        by_batch: dict[int, list[Mapping[str, Any]]] = {}
        for record in records:
            by_batch.setdefault(record["batch"], []).append(row_of(record))
        return [list(self._replay.take(commit)) for commit in by_batch.values()]


@contextmanager
def audited() -> Iterator[Any]:
    """An audit of lines, which goes on from input to input."""
    yield _Auditor().audited
