"""What an audit asks of an engine: to read facts, to keep tables, to answer queries, to write findings."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.dataset as ds

from spark_audit.facts.pieces import Piece
from spark_audit.facts.reading import Reading

Row = dict[str, Any]
#: Makes rows of rows; any process may call it.
MakeTable = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Columns(NamedTuple):
    """All rows of a table of facts, with these columns."""

    table: str
    columns: tuple[str, ...]

    @property
    def query(self) -> str:
        """The same in SQL."""
        return f"SELECT {', '.join(self.columns)} FROM {self.table}"


#: Columns of a violation.
VIOLATION: Final = pa.schema(
    [
        ("control", pa.string()),
        ("gateway", pa.string()),
        ("sequence", pa.int64()),
        ("subject", pa.string()),
        ("detail", pa.string()),
    ]
)


class Engine(Protocol):
    """An engine with tables of its own, by name. Names and queries are ours; values never stand in a query."""

    @property
    def name(self) -> str:
        """How a result names it."""
        ...

    @property
    def versions(self) -> tuple[tuple[str, str], ...]:
        """Its library and version."""
        ...

    def read(self, pieces: Sequence[Piece], reading: Reading, text_bytes: int) -> None:
        """Makes the tables of facts from pieces, which hold about so many bytes of text."""
        ...

    def keep(self, name: str, query: str) -> None:
        """Makes a table from a query, once."""
        ...

    def keep_few(self, name: str, query: str) -> None:
        """The same for a query that gives few rows or none, unless much is wrong."""
        ...

    def keep_in_order(
        self, name: str, asked: str | Columns, by: tuple[str, str], make: MakeTable, schema: pa.Schema
    ) -> None:
        """Makes a table of few rows by a function, once. It gets the rows of a query, or of a table, in an order.

        `by` are the columns of the order. A worker gets all rows with the same value of the first one.
        """
        ...

    def give(self, name: str, table: pa.Table) -> None:
        """Makes a table from rows."""
        ...

    def add(self, name: str, table: pa.Table) -> None:
        """Adds rows to a table of facts."""
        ...

    def rows(self, query: str) -> list[Row]:
        """All rows of a query that gives few."""
        ...

    def each(self, query: str) -> Iterator[Row]:
        """The rows of a query that may give many, a part of them at a time."""
        ...

    def write(self, query: str, folder: Path) -> None:
        """Writes rows as Parquet, in a folder for each value of the column `control`; replaces what is there."""
        ...

    def close(self) -> None:
        """Lets go of all tables."""
        ...


def write_partitioned(rows: pa.RecordBatchReader, folder: Path) -> None:
    """Writes rows as Engine.write does."""
    shutil.rmtree(folder, ignore_errors=True)
    partitioning = ds.partitioning(pa.schema([("control", pa.string())]), flavor="hive")
    ds.write_dataset(rows, folder, format="parquet", partitioning=partitioning)
