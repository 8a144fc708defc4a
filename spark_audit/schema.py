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

#: The column for a line that is no record.
CORRUPT: Final = "corrupt"


def record_schema() -> StructType:
    """Every field of a record. All are nullable, because a line leaves out fields that do not apply."""
    return StructType([StructField(field.name, _TYPES[field.type]) for field in FIELDS])


def ingested_schema() -> StructType:
    """A line of a trail from `read.read_lines`, with the trail's name. `ingest` keeps these as Parquet."""
    placed = record_schema().add("segment", StringType()).add("block", LongType()).add("place", LongType())
    checked = placed.add("is_record", BooleanType()).add("actual_hash", StringType()).add("line", StringType())
    return checked.add("trail", StringType())


def line_schema() -> StructType:
    """A record; and the line, if it is no record."""
    return record_schema().add(CORRUPT, StringType())
