"""Lines as files of Parquet. A file counts when the manifest names it.

In a folder of this machine Spark writes and reads them itself, which takes the least CPU. Where a URI names the place,
Spark's Python workers do so through pyarrow, and each file is written where it stays. So a lake on an object store
needs no jars of Hadoop, and nothing is renamed. A task that failed, or that Spark gave up for a faster one, leaves a
file there with a name of its own, and the next ingest removes it.
"""

import hashlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from spark_audit.facts.pieces import parquet_file
from spark_audit.ingest.manifest import RECORDS, DataFile
from spark_audit.ingest.warehouse import STAGING, bring_into_place
from spark_audit.location import Location
from spark_audit.remote_location import RemoteLocation
from spark_audit.schema import LINES, ingested_schema

#: Bytes of columns that become a group of rows.
_GROUP_BYTES: Final = 64 * 1024 * 1024
_ROWS: Final = 5_000
#: The columns that name the folder of a line.
_PARTITION: Final = ("date", "gateway_id")
#: What Spark takes for a pattern in a path.
_GLOB_CHARACTERS: Final = re.compile(r"([\\{}\[\]*?])")
_WRITTEN: Final = pa.schema(
    [("path", pa.string()), ("rows", pa.int64()), ("size_bytes", pa.int64()), ("sha256", pa.string())]
)


def write_files(lines: DataFrame, folder: Location, number: int) -> tuple[DataFile, ...]:
    """Writes lines that are sorted by date and gateway within each part. No manifest names the files yet."""
    if isinstance(folder, Path):
        staged = folder / STAGING / f"{number:08d}"
        writer = lines.write.mode("overwrite").option("compression", "zstd")
        writer.partitionBy(*_PARTITION).parquet(str(staged))
        return bring_into_place(folder, staged, number)
    assert isinstance(folder, RemoteLocation)
    rows = lines.mapInArrow(partial(_write, folder=folder, number=number), from_arrow_schema(_WRITTEN)).collect()
    return tuple(DataFile(**row.asDict()) for row in rows)


def read_files(spark: SparkSession, folder: Location, files: Iterable[DataFile]) -> DataFrame:
    """The lines in these files. Fields that an earlier version did not know are null in its files."""
    places = tuple(folder / file.path for file in files)
    if isinstance(folder, Path):
        paths = (_GLOB_CHARACTERS.sub(r"\\\1", str(place)) for place in places)
        return spark.read.schema(ingested_schema()).parquet(*paths)
    return spark.range(0, len(places), 1, len(places)).mapInArrow(partial(_read, places=places), ingested_schema())


# -- in workers --------------------------------------------------------------------------------------------------------


def _read(batches: Iterable[pa.RecordBatch], *, places: Sequence[Location]) -> Iterator[pa.RecordBatch]:
    for numbers in batches:
        for number in numbers.column(0).to_pylist():
            with parquet_file(places[number]) as file:
                for batch in file.iter_batches(batch_size=_ROWS):
                    yield _as_lines(batch)


def _as_lines(batch: pa.RecordBatch) -> pa.RecordBatch:
    there = set(batch.schema.names)
    columns = [
        batch.column(field.name).cast(field.type) if field.name in there else pa.nulls(batch.num_rows, field.type)
        for field in LINES
    ]
    return pa.RecordBatch.from_arrays(columns, schema=LINES)


def _write(batches: Iterable[pa.RecordBatch], *, folder: RemoteLocation, number: int) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    assert context is not None
    name = f"{number:08d}-{context.partitionId():05d}-{context.taskAttemptId()}.parquet"
    for (date, gateway), parts in groupby(_parts(batches), key=lambda part: part[0]):
        path = f"{RECORDS}/date={date}/gateway_id={gateway}/{name}"
        rows, size_bytes, sha256 = _write_file(folder / path, (part for _key, part in parts))
        yield pa.RecordBatch.from_pylist(
            [{"path": path, "rows": rows, "size_bytes": size_bytes, "sha256": sha256}], schema=_WRITTEN
        )


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[tuple[str, str], pa.RecordBatch]]:
    """Rows that follow each other and are of one date and gateway, without these columns."""
    for batch in batches:
        keys = zip(*(batch.column(name).to_pylist() for name in _PARTITION), strict=True)
        lines, start = batch.select(LINES.names), 0
        for key, same in groupby(keys):
            length = sum(1 for _ in same)
            yield key, lines.slice(start, length)
            start += length


def _write_file(place: RemoteLocation, parts: Iterable[pa.RecordBatch]) -> tuple[int, int, str]:
    """Writes a file that is there as a whole at the end; returns its rows, bytes and SHA-256."""
    rows = 0
    with place.writing() as file:
        sink = _Measured(file.write)
        with pq.ParquetWriter(sink, LINES, compression="zstd") as writer:
            for group in _groups(parts):
                table = pa.Table.from_batches(group).cast(LINES)
                writer.write_table(table, row_group_size=max(table.num_rows, 1))
                rows += table.num_rows
    return rows, sink.size_bytes, sink.digest.hexdigest()


def _groups(parts: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    size_bytes = 0
    for part in parts:
        group.append(part)
        size_bytes += part.get_total_buffer_size()  # nbytes reads offsets, which Java leaves out where nothing is
        if size_bytes >= _GROUP_BYTES:
            yield group
            group, size_bytes = [], 0
    if group:
        yield group


class _Measured(io.RawIOBase):
    """Counts and hashes the bytes that are written to a file."""

    def __init__(self, write: Callable[[Any], object]) -> None:
        self._write = write
        self.size_bytes = 0
        self.digest = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._write(data)
        self.digest.update(data)
        self.size_bytes += len(data)
        return len(data)

    def tell(self) -> int:
        return self.size_bytes
