"""Spark as the engine of an audit: facts are read by its Python workers, tables are temporary views.

What comes from few rows, or has few, is kept in the plans of the queries, for Spark makes such plans faster. What has
many is kept on the disk, whose pages the system holds in memory while there is room. (In Java's own memory ten million
records left too little to sort with, in 2 GB.) Where all of Spark reaches one folder, it is kept there as Parquet. Then
workers write their facts without Java, and Spark reads only the columns that a query asks for.
"""

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from spark_audit.engines.engine import Columns, MakeTable, Row, write_partitioned
from spark_audit.engines.files_in_order import files_in_order, rows_of
from spark_audit.facts.files import PARQUET, write_facts
from spark_audit.facts.pieces import Piece
from spark_audit.facts.reader import FactReader
from spark_audit.facts.reading import Reading
from spark_audit.facts.tables import TABLES, schema_of

_FACT: Final = "fact"
#: Of all tables, each column once: workers give one frame.
_WIDE: Final = pa.schema(
    {_FACT: pa.string()} | {name: kind for columns in TABLES.values() for name, kind in columns.items()}
)
#: Text of which the facts are few rows.
_FEW_BYTES: Final = 1024 * 1024
#: Rows that a plan may hold.
_FEW_ROWS: Final = 10_000
#: Text that one task reads.
_TASK_BYTES: Final = 16 * 1024 * 1024
#: Rows that come here together.
_ROWS: Final = 2_000
_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_ON_DISK: Final = StorageLevel.DISK_ONLY


class SparkEngine:
    """An engine on a Spark session, which it leaves running. `scratch` is a folder that every process of Spark reaches.

    Without one, tables are kept by each worker of Spark.
    """

    name = "spark"

    def __init__(self, spark: SparkSession, scratch: Path | None = None) -> None:
        self._spark = spark
        self._kept: list[DataFrame] = []
        self._folder = Path(tempfile.mkdtemp(dir=scratch)) if scratch else None
        #: Folders with the files of tables of facts, as workers have written them.
        self._written: dict[str, Path] = {}
        self._files = 0
        self._are_few = False

    @property
    def versions(self) -> tuple[tuple[str, str], ...]:
        """See Engine."""
        return (("pyspark", version("pyspark")),)

    def read(self, pieces: Sequence[Piece], reading: Reading, text_bytes: int) -> None:
        """See Engine."""
        self._are_few = text_bytes < _FEW_BYTES
        tasks = max(1, min(len(pieces), text_bytes // _TASK_BYTES + 1))
        numbers = self._spark.range(0, len(pieces), 1, tasks)
        if self._folder and not self._are_few:
            self._read_files(numbers, self._folder / "facts", tuple(pieces), reading)
            return
        wide = numbers.mapInArrow(partial(_read, pieces=tuple(pieces), reading=reading), from_arrow_schema(_WIDE))
        if self._are_few:
            rows = wide.toArrow()
            for table, columns in TABLES.items():
                told = rows.filter(pa.compute.equal(rows[_FACT], table)).select(list(columns))
                self.give(table, told)
            return
        self._kept.append(wide.persist(_ON_DISK))
        for table, columns in TABLES.items():
            wide.where(f"{_FACT} = '{table}'").select(*columns).createOrReplaceTempView(table)

    def _read_files(self, numbers: DataFrame, folder: Path, pieces: tuple[Piece, ...], reading: Reading) -> None:
        folder.mkdir()
        write = partial(_write, pieces=pieces, reading=reading, folder=folder)
        numbers.mapInArrow(write, numbers.schema).count()
        for table in TABLES:
            self._view_files(table, folder / table, schema_of(table))
            self._written[table] = folder / table

    def keep(self, name: str, query: str) -> None:
        """See Engine."""
        self._keep(name, self._spark.sql(query))

    def keep_few(self, name: str, query: str) -> None:
        """See Engine. Rules over rows that stand in the plan, or over none, cost little."""
        self.keep(name, query)
        if not self._are_few and not self._folder:  # of files their number of rows was known
            rows = self._spark.table(name)
            if rows.count() <= _FEW_ROWS:
                self.give(name, rows.toArrow())

    def keep_in_order(
        self, name: str, asked: str | Columns, by: tuple[str, str], make: MakeTable, schema: pa.Schema
    ) -> None:
        """See Engine. Each worker takes the rows of some gateways; from files in their order it takes them itself."""
        groups = self._files_in_order(asked, by) if isinstance(asked, Columns) else None
        if groups and isinstance(asked, Columns):
            numbers = self._spark.range(0, len(groups), 1, min(len(groups), self._partitions))
            work = partial(_make_of_files, groups=groups, columns=asked.columns, make=make)
            self._keep(name, numbers.mapInArrow(work, from_arrow_schema(schema)))
            return
        frame = self._spark.sql(asked.query if isinstance(asked, Columns) else asked)
        if self._are_few:
            rows = frame.sort(*by).toArrow()
            self.give(name, pa.Table.from_batches(make(rows.to_batches()), schema=schema))
            return
        sorted_rows = frame.repartition(by[0]).sortWithinPartitions(*by)
        self._keep(name, sorted_rows.mapInArrow(make, from_arrow_schema(schema)))

    def take(self, name: str, frame: DataFrame, size_bytes: int) -> None:
        """Makes the first table from a frame, which comes from about so many bytes."""
        self._are_few = size_bytes < _FEW_BYTES
        self._keep(name, frame)

    def give(self, name: str, table: pa.Table) -> None:
        """See Engine."""
        self._view(name, self._spark.createDataFrame(table))

    def add(self, name: str, table: pa.Table) -> None:
        """See Engine."""
        frame = self._spark.table(name).unionByName(self._spark.createDataFrame(table))
        self._view(name, frame)

    def rows(self, query: str) -> list[Row]:
        """See Engine."""
        return [row.asDict() for row in self._spark.sql(query).collect()]

    def each(self, query: str) -> Iterator[Row]:
        """See Engine."""
        return (row.asDict() for row in self._spark.sql(query).toLocalIterator())

    def write(self, query: str, folder: Path) -> None:
        """See Engine. Workers on other machines write nothing: their rows come here."""
        frame = self._spark.sql(query)
        if str(self._spark.conf.get("spark.master", "")).startswith("local"):
            frame.write.mode("overwrite").partitionBy("control").parquet(str(folder))
        else:
            write_partitioned(_batches_of(frame), folder)

    def close(self) -> None:
        """See Engine."""
        for frame in self._kept:
            frame.unpersist()
        self._kept.clear()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _files_in_order(self, asked: Columns, by: tuple[str, str]) -> list[tuple[Path, ...]] | None:
        """The files of facts of a table, by gateway; None where there are none, or rows have to be sorted."""
        folder = self._written.get(asked.table)
        return None if folder is None else files_in_order(sorted(folder.glob(f"*{PARQUET}")), by)

    @property
    def _partitions(self) -> int:
        return int(str(self._spark.conf.get(_PARTITIONS)))

    def _keep(self, name: str, frame: DataFrame) -> None:
        if self._are_few:
            self.give(name, frame.toArrow())
            return
        # A union has all partitions of its parts, and each of its tasks reads the plan of all parts anew.
        kept = frame.coalesce(self._partitions)
        if self._folder:
            self._files += 1
            place = self._folder / f"{self._files}-{name}"
            kept.write.parquet(str(place))
            self._view_files(name, place, to_arrow_schema(kept.schema))
            return
        self._kept.append(kept.persist(_ON_DISK))
        self._view(name, kept)

    def _view_files(self, name: str, folder: Path, schema: pa.Schema) -> None:
        """Makes a table of the files in a folder, if it is there. Few rows are given to Spark for its plans."""
        files = sorted(folder.glob(f"*{PARQUET}"))
        if sum(pq.read_metadata(file).num_rows for file in files) <= _FEW_ROWS:
            parts = [pq.read_table(file, columns=schema.names).cast(schema) for file in files]
            self.give(name, pa.concat_tables([schema.empty_table(), *parts]))
        else:
            self._view(name, self._spark.read.schema(from_arrow_schema(schema)).parquet(str(folder)))

    def _view(self, name: str, frame: DataFrame) -> None:
        """Makes a table, perhaps in place of one of facts."""
        self._written.pop(name, None)
        frame.createOrReplaceTempView(name)


def _batches_of(frame: DataFrame) -> pa.RecordBatchReader:
    """The rows of a frame, a part of them at a time."""
    schema = to_arrow_schema(frame.schema)
    rows = (row.asDict() for row in frame.toLocalIterator())
    parts = iter(lambda: list(islice(rows, _ROWS)), [])
    return pa.RecordBatchReader.from_batches(schema, (pa.RecordBatch.from_pylist(part, schema) for part in parts))


def _read(
    batches: Iterable[pa.RecordBatch], *, pieces: tuple[Piece, ...], reading: Reading
) -> Iterator[pa.RecordBatch]:
    """The facts of the pieces whose numbers come in, in the columns of all tables."""
    reader = FactReader(reading)
    for numbers in batches:
        for number in numbers.column(0).to_pylist():
            for table, batch in reader.facts(pieces[number].lines()):
                yield _widened(table, batch)


def _write(
    batches: Iterable[pa.RecordBatch], *, pieces: tuple[Piece, ...], reading: Reading, folder: Path
) -> Iterator[pa.RecordBatch]:
    """Writes the facts of the pieces whose numbers come in, and gives the numbers back."""
    for numbers in batches:
        for number in numbers.column(0).to_pylist():
            write_facts(pieces[number], number, reading, folder, PARQUET)
        yield numbers


def _make_of_files(
    batches: Iterable[pa.RecordBatch], *, groups: Sequence[Sequence[Path]], columns: tuple[str, ...], make: MakeTable
) -> Iterator[pa.RecordBatch]:
    """What a function makes of the files of the groups whose numbers come in."""
    for numbers in batches:
        for number in numbers.column(0).to_pylist():
            yield from make(rows_of(groups[number], columns, _ROWS))


def _widened(table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    there = {name: batch.column(name) for name in batch.schema.names}
    there[_FACT] = pa.array([table]).take(pa.array([0] * batch.num_rows))
    columns = [there.get(column.name) for column in _WIDE]
    filled = [
        pa.nulls(batch.num_rows, column.type) if values is None else values
        for values, column in zip(columns, _WIDE, strict=True)
    ]
    return pa.RecordBatch.from_arrays(filled, schema=_WIDE)
