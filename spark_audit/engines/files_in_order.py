"""Files of facts whose rows stand in an order already: a function reads one after the other, and nobody sorts.

A gateway writes its records in their order, and each file of facts has those of one piece of a trail. So rows have to
be sorted only where lines were moved, or where a file has records of several gateways.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


class _Range(NamedTuple):
    """The rows of a file: their only value of the first column, and the ends of the second."""

    group: str
    first: int
    last: int
    file: Path


def read_parquet(file: Path, columns: Sequence[str]) -> pa.Table:
    """Columns of a file of Parquet."""
    return pq.read_table(file, columns=list(columns))


def files_in_order(
    files: Iterable[Path],
    by: tuple[str, str],
    read: Callable[[Path, Sequence[str]], pa.Table] = read_parquet,
) -> list[tuple[Path, ...]] | None:
    """Files for each value of the first column, in the order of the second; None where rows are in no order.

    `by` are a column of texts and one of numbers. No two rows may have the same number. `read` reads such columns.
    """
    ranges: list[_Range] = []
    for file in files:
        found = _range_of(file, read(file, by), by)
        if found is None:
            return None
        ranges.append(found)
    ranges.sort()
    groups: dict[str, list[_Range]] = {}
    for each in ranges:
        before = groups.setdefault(each.group, [])
        if before and before[-1].last >= each.first:
            return None
        before.append(each)
    return [tuple(each.file for each in group) for group in groups.values()]


def _range_of(file: Path, rows: pa.Table, by: tuple[str, str]) -> _Range | None:
    groups, numbers = rows.column(by[0]), rows.column(by[1])
    if not len(numbers) or groups.null_count or numbers.null_count or len(pc.unique(groups)) != 1:
        return None
    if not pc.all(pc.less(numbers[:-1], numbers[1:]), min_count=0).as_py():
        return None
    return _Range(groups[0].as_py(), numbers[0].as_py(), numbers[-1].as_py(), file)


def rows_of(files: Iterable[Path], columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of files, some of them at a time."""
    for path in files:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=rows, columns=list(columns))
