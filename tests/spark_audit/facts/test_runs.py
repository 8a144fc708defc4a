"""Runs of lines: what they count, of lines of records and of lines of batches."""

import pytest

from spark_audit.facts.lines import lines_of
from spark_audit.facts.runs import Runs
from spark_audit.facts.tables import TABLES
from tests.spark_audit.verify.test_chain import _sealed, _session

BARE = b'{"version":1,"sequence":%d,"batch":%d,"gateway":"%b","kind":"session","at_us":1}'


def _sums(texts: list[bytes], runs: Runs | None = None) -> tuple[int, int]:
    """The lines and records of all runs."""
    runs = runs or Runs(frozenset(), 5_000_000)
    for line in lines_of(texts, "", "segment", 0):
        if line.record is None:
            runs.take_foreign(line)
        else:
            runs.take(line, line.record, line.record.get("at_us"), is_counted=True)
    runs.end()
    rows = [dict(zip(TABLES["runs"], row, strict=True)) for row in runs.rows()]
    return sum(row["lines"] for row in rows), sum(row["records"] for row in rows)


def test_a_line_of_a_batch_is_one_line_and_all_of_its_records() -> None:
    lines = [line[:-1] for line in _sealed([_session("a")], [_session("b"), _session("c")])]
    assert _sums(lines) == (2, 3)


def test_a_run_that_begins_within_a_line_does_not_count_it_again() -> None:
    late = (*_session("b")[:1], 1, *_session("b")[2:])  # far back in time
    lines = [line[:-1] for line in _sealed([_session("a"), late, _session("c")])]
    assert _sums(lines) == (1, 3)


@pytest.mark.parametrize("count", [1, 3])
def test_lines_without_hashes_and_lines_that_are_no_records_are_counted_too(count: int) -> None:
    bare = [BARE % (number, number, b"ab" * 12) for number in range(1, count + 1)]
    assert _sums([*bare, b"no record"]) == (count + 1, count)


def test_a_trail_of_one_line_is_counted_each_time_that_it_is_read() -> None:
    runs = Runs(frozenset(), 5_000_000)
    (line,) = [line[:-1] for line in _sealed([_session("a"), _session("b")])]
    assert [_sums([line], runs) for _ in range(2)] == [(1, 2)] * 2
