"""A line of a trail as `ingest` keeps it in Parquet, derived from record.FIELDS."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from spark_audit.facts.lines import Line
from spark_audit.record import FIELDS
from spark_audit.record.columns import ADDED

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_TEXTS: Final = pa.list_(pa.string())
_TYPES: Final[dict[str, pa.DataType]] = {
    "long": pa.int64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "array<string>": _TEXTS,
    "array<array<long>>": pa.list_(pa.list_(pa.int64())),
    "array<array<string>>": pa.list_(_TEXTS),
}
#: Every field of a record, all nullable: what does not apply is left out of the line. Then the columns of ADDED.
LINES: Final = pa.schema(
    {field.name: _TYPES[field.type] for field in FIELDS} | {name: _TYPES[kind] for name, kind, _meaning in ADDED}
)
_FIELD_NAMES: Final = tuple(field.name for field in FIELDS)
#: Rows that are given at once.
_BATCH_ROWS: Final = 2_000
_BATCH_BYTES: Final = 16 * 1024 * 1024


def ingested_schema() -> "StructType":
    """The same for Spark."""
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    schema = from_arrow_schema(LINES)
    assert isinstance(schema, StructType)
    return schema


def batches_of(lines: Iterable[Line]) -> Iterator[pa.RecordBatch]:
    """Lines as rows of LINES."""
    rows: list[tuple[Any, ...]] = []
    size_bytes = 0
    for line in lines:
        record = line.record or {}
        place = (
            line.segment,
            line.block,
            line.place,
            line.line_number,
            line.record is not None,
            line.actual_hash,
            line.text,
            line.trail,
        )
        rows.append((*map(record.get, _FIELD_NAMES), *place))
        size_bytes += line.size_bytes
        if len(rows) >= _BATCH_ROWS or size_bytes >= _BATCH_BYTES:
            yield _batch(rows)
            rows, size_bytes = [], 0
    if rows:
        yield _batch(rows)


def _batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, column.type) for values, column in zip(columns, LINES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=LINES)
