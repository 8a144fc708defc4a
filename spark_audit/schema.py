"""The audit record as a Spark schema, derived from record.FIELDS."""

from typing import Final

from pyspark.sql.types import ArrayType, BooleanType, DataType, LongType, StringType, StructField, StructType

from spark_audit.record import FIELDS

_TYPES: Final[dict[str, DataType]] = {
    "long": LongType(),
    "string": StringType(),
    "boolean": BooleanType(),
    "array<string>": ArrayType(StringType()),
    "array<array<long>>": ArrayType(ArrayType(LongType())),
    "array<array<string>>": ArrayType(ArrayType(StringType())),
}

#: The column that holds a line which is no record.
CORRUPT: Final = "corrupt"


def record_schema() -> StructType:
    """Every field of a record, all nullable: what does not apply is left out of the line."""
    return StructType([StructField(field.name, _TYPES[field.type]) for field in FIELDS])


def ingested_schema() -> StructType:
    """A line of a trail as `read.read_lines` gives it, with the trail's name: what `ingest` keeps as Parquet."""
    placed = record_schema().add("segment", StringType()).add("block", LongType()).add("place", LongType())
    checked = placed.add("is_record", BooleanType()).add("actual_hash", StringType()).add("line", StringType())
    return checked.add("trail", StringType())


def line_schema() -> StructType:
    """A record and, where the line is none, the line."""
    return record_schema().add(CORRUPT, StringType())
