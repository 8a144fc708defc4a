"""DuckDB as the engine of an audit: processes beside this one read the facts, DuckDB asks them in this one.

Nothing is downloaded: DuckDB's extensions are switched off, and files are read and written through pyarrow.

The tables stand in memory where there is room for them. For a file DuckDB tries several ways to pack each column, which
costs a tenth of an audit. What grows beyond the memory goes to `scratch` in either case.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa

from spark_audit.engines.engine import Columns, MakeTable, Row, write_partitioned
from spark_audit.engines.files_in_order import files_in_order
from spark_audit.facts.files import ARROW, write_arrow
from spark_audit.facts.pieces import Piece
from spark_audit.facts.reading import Reading
from spark_audit.facts.tables import TABLES, schema_of

#: Text that one process is worth.
_PROCESS_BYTES: Final = 16 * 1024 * 1024
_ROWS: Final = 2_000
_UNITS: Final = {"k": 1_000, "m": 1_000**2, "g": 1_000**3, "t": 1_000**4}
#: Memory for each byte of text for which tables stand there: they take 1.5 bytes, and queries need room beside them.
_MEMORY_OF_A_BYTE: Final = 2
_IN_MEMORY: Final = ":memory:"
_RECORDS: Final = "records"
#: A gateway writes its records in this order.
_ORDER: Final = ("gateway", "sequence")


class DuckEngine:
    """An engine in this process; files that it needs stand in `scratch`. `memory` is what DuckDB may take, as 2g.

    `text_bytes`: so much text will be read, about.
    """

    name = "duckdb"

    def __init__(self, scratch: Path, memory: str, text_bytes: int = 0) -> None:
        self._scratch = scratch
        number, unit = int(memory[:-1]), memory[-1].lower()
        #: Tables of facts whose rows stand in the order of these columns.
        self._orders: dict[str, tuple[str, str]] = {}
        self._is_in_memory = text_bytes * _MEMORY_OF_A_BYTE <= number * _UNITS[unit]
        self._database = duckdb.connect(
            _IN_MEMORY if self._is_in_memory else str(scratch / "facts.duckdb"),
            config={
                "memory_limit": f"{number}{unit.upper()}B",
                "temp_directory": str(scratch / "spilled"),
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
            },
        )

    @property
    def versions(self) -> tuple[tuple[str, str], ...]:
        """See Engine."""
        return (("duckdb", version("duckdb")),)

    def read(self, pieces: Sequence[Piece], reading: Reading, text_bytes: int) -> None:
        """See Engine."""
        folder = self._scratch / "facts"
        folder.mkdir()
        processes = max(1, min(os.cpu_count() or 1, len(pieces), text_bytes // _PROCESS_BYTES + 1))
        work = partial(write_arrow, reading=reading, folder=folder)
        if processes == 1:
            for task in enumerate(pieces):
                work(task)
        else:
            with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
                for _done in pool.map(work, enumerate(pieces)):
                    pass
        if self._is_in_memory:  # several threads would only wait for each other to keep the rows in order
            self._database.execute("SET threads = 1")
        for table in TABLES:
            files = sorted((folder / table).glob(f"*{ARROW}"))
            self._make(table, pa.RecordBatchReader.from_batches(schema_of(table), _batches_of(files)))
            if table == _RECORDS and _are_in_order(files):
                self._orders[table] = _ORDER
        self._database.execute("RESET threads")
        shutil.rmtree(folder)

    def _make(self, name: str, rows: object) -> None:
        self._orders.pop(name, None)
        self._database.register("given", rows)
        self._database.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given")
        self._database.unregister("given")

    def keep(self, name: str, query: str) -> None:
        """See Engine."""
        self._database.execute(f"CREATE OR REPLACE TABLE {name} AS {query}")

    def keep_few(self, name: str, query: str) -> None:
        """See Engine."""
        self.keep(name, query)

    def keep_in_order(
        self, name: str, asked: str | Columns, by: tuple[str, str], make: MakeTable, schema: pa.Schema
    ) -> None:
        """See Engine. One process makes the table, a batch at a time."""
        query = asked.query if isinstance(asked, Columns) else asked
        is_in_order = isinstance(asked, Columns) and self._orders.get(asked.table) == by
        order = "" if is_in_order else f" ORDER BY {', '.join(by)}"
        rows = self._database.cursor().sql(query + order).to_arrow_reader(_ROWS)
        self._make(name, pa.Table.from_batches(make(rows), schema=schema))

    def give(self, name: str, table: pa.Table) -> None:
        """See Engine."""
        self._make(name, table)

    def add(self, name: str, table: pa.Table) -> None:
        """See Engine."""
        self._database.register("given", table)
        self._orders.pop(name, None)
        self._database.execute(f"INSERT INTO {name} BY NAME SELECT * FROM given")
        self._database.unregister("given")

    def rows(self, query: str) -> list[Row]:
        """See Engine."""
        return list(self.each(query))

    def each(self, query: str) -> Iterator[Row]:
        """See Engine."""
        cursor = self._database.cursor()
        cursor.execute(query)
        names = [column[0] for column in cursor.description]
        while rows := cursor.fetchmany(_ROWS):
            for row in rows:
                yield dict(zip(names, row, strict=True))

    def write(self, query: str, folder: Path) -> None:
        """See Engine."""
        write_partitioned(self._database.sql(query).to_arrow_reader(_ROWS), folder)

    def close(self) -> None:
        """See Engine."""
        self._database.close()


def _are_in_order(files: Sequence[Path]) -> bool:
    """Whether the rows of files, read one after the other, stand in the order of records."""
    groups = files_in_order(files, _ORDER, _columns_of)
    return groups is not None and [file for group in groups for file in group] == list(files)


def _columns_of(file: Path, columns: Sequence[str]) -> pa.Table:
    schema = schema_of(_RECORDS)
    return pa.Table.from_batches(_batches_of([file]), schema).select(list(columns))


def _batches_of(files: Iterable[Path]) -> Iterator[pa.RecordBatch]:
    """The batches of files of Arrow. Their bytes are not copied."""
    for path in files:
        with pa.memory_map(str(path)) as file:
            reader = pa.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)
