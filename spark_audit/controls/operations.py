"""What people did to the gateway: orders of operators, and another program, mapping table or configuration.

An order is no fault, but somebody who answers for the messages should know of it. A message that an order destroyed has
a `dropped` record of its own, of the same moment and queue, and the order counts them: where the two disagree, a record
is missing. A conversion by another table than the one that the program named at its start is a fault.
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

#: The commands that destroy messages of a queue.
_DESTROYING: Final = ("CLEAR QLOCAL", "DELETE QLOCAL", "DELETE QLOCAL PURGE", "queue clear")
#: With this begins the reason of each message that one of them destroyed.
_DESTROYED: Final = "an operator destroyed it"
_UNIT: Final = ("gateway", "queue", "at_us")


def find_acts(records: DataFrame) -> DataFrame:
    """Every act, as it is to be told."""
    acts = records.where(sf.col("kind") == Kind.OPERATED)
    place = sf.coalesce("queue", "object", sf.lit("the queue manager"))
    why = sf.when(sf.col("reason").isNotNull(), sf.concat(sf.lit(": "), sf.col("reason"))).otherwise(sf.lit(""))
    told = sf.format_string("%s by %s on %s, messages: %d", "command", "operator", place, "messages")
    return violations(acts, subject=gateway_subject(), detail=sf.concat(told, why))


def find_untold(records: DataFrame) -> DataFrame:
    """Acts whose number is not that of the messages told beside them, and messages without an act."""
    acts = records.where((sf.col("kind") == Kind.OPERATED) & sf.col("command").isin(*_DESTROYING))
    counted = acts.groupBy(*_UNIT).agg(sf.min("sequence").alias("sequence"), sf.sum("messages").alias("messages"))
    dropped = records.where((sf.col("kind") == Kind.DROPPED) & sf.col("reason").startswith(_DESTROYED))
    told = dropped.groupBy(*_UNIT).agg(sf.min("sequence").alias("first"), sf.count("*").alias("told"))
    both = counted.join(told, list(_UNIT), "full")
    number, found = sf.coalesce("messages", sf.lit(0)), sf.coalesce("told", sf.lit(0))
    wrong = both.withColumn("sequence", sf.coalesce("sequence", "first")).where(number != found)
    detail = sf.format_string("queue %s: acts say %d messages, and %d are told", "queue", number, found)
    return violations(wrong, subject=gateway_subject(), detail=detail)


ACTS = Control(
    identifier="operators.acts",
    title="No operator destroyed, took, moved or limited anything",
    severity=Severity.WARNING,
    source="spark_audit/record/kinds.py: kind operated",
    scope=Scope.RECORDS,
    rule=find_acts,
)
DESTROYED = Control(
    identifier="operators.destroyed",
    title="Each message that an operator destroyed has a record",
    severity=Severity.ERROR,
    source="spark_audit/record/kinds.py: kinds operated and dropped",
    scope=Scope.RECORDS,
    rule=find_untold,
)


#: Field of a start, and what it is called.
_NAMED: Final = (
    ("code_version", "the program"),
    ("table_version", "the field-mapping table"),
    ("configuration_sha256", "the configuration"),
)


def find_changes(records: DataFrame) -> DataFrame:
    """Starts with another program, mapping table or configuration than at the start before.

    A change is no fault, but somebody who answers for the gateway should know of it.
    """
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


CHANGES = Control(
    identifier="changes",
    title="Program, table and configuration did not change between two starts",
    severity=Severity.WARNING,
    source="spark_audit/record/kinds.py: kind started",
    scope=Scope.RECORDS,
    rule=find_changes,
)
OTHER_TABLE = Control(
    identifier="conversion.table",
    title="Each conversion names the table that was in force",
    severity=Severity.ERROR,
    source="Message formats (aq19780_): field table; spark_audit/record/fields.py: `table_version`",
    scope=Scope.RECORDS,
    rule=find_other_tables,
)
