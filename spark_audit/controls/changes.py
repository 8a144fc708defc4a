"""What changed in the period: another program, field-mapping table or configuration than at the start before.

A change is no fault; whoever answers for the gateway should know of it. The rule of the table version is a fault: a
conversion by another table than the one that the running program named at its start.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import (
    Control,
    Scope,
    Severity,
    all_of,
    gateway_subject,
    message_subject,
    violations,
)
from spark_audit.record import ConversionKind, Kind

#: Field of a start, and what it is called.
_NAMED: Final = (
    ("code_version", "the program"),
    ("table_version", "the field-mapping table"),
    ("configuration_sha256", "the configuration"),
)


def find(records: DataFrame) -> DataFrame:
    started = records.where(sf.col("kind") == Kind.STARTED)
    return all_of(*(_changed(started, name, words) for name, words in _NAMED))


def _changed(started: DataFrame, name: str, words: str) -> DataFrame:
    in_order = Window.partitionBy("gateway").orderBy("sequence")
    told = started.select(
        "gateway",
        "sequence",
        sf.coalesce(name, sf.lit("")).alias("now"),
        sf.lag(sf.coalesce(name, sf.lit(""))).over(in_order).alias("before"),
    )
    detail = sf.format_string(f"{words} changed from %s to %s", "before", "now")
    return violations(told.where(sf.col("now") != sf.col("before")), subject=gateway_subject(), detail=detail)


def find_other_tables(records: DataFrame) -> DataFrame:
    """Conversions by another table version than that of the start before them."""
    is_start = sf.col("kind") == Kind.STARTED
    told = records.where(is_start | (sf.col("conversion") == ConversionKind.SERVICE))
    so_far = Window.partitionBy("gateway").orderBy("sequence").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    version = sf.last(sf.when(is_start, sf.col("table_version")), ignorenulls=True).over(so_far)
    served = told.withColumn("due", version).where(~is_start & sf.col("due").isNotNull())
    wrong = served.where(~sf.col("table_version").eqNullSafe(sf.col("due")))
    detail = sf.format_string(
        "converted by table %s, the program that runs started with table %s", "table_version", "due"
    )
    return violations(wrong, subject=message_subject(), detail=detail)


CONTROL = Control(
    identifier="changes",
    title="Program, table and configuration are those of the start before",
    severity=Severity.WARNING,
    source="spark_audit/record/kinds.py: kind started",
    scope=Scope.RECORDS,
    rule=find,
)
OTHER_TABLE = Control(
    identifier="conversion.table",
    title="Each conversion names the table that was in force",
    severity=Severity.ERROR,
    source="Message formats (aq19780_): field table; spark_audit/record/fields.py: `table_version`",
    scope=Scope.RECORDS,
    rule=find_other_tables,
)
