"""What operators did in the period, and whether each message that they destroyed is told.

An act is no fault; whoever answers for the messages should know of it. A message that an act destroyed has a `dropped`
record of its own, of the same moment and queue, and the act counts them: where the two disagree, a record is missing.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, gateway_subject, violations
from spark_audit.record import Kind

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


CONTROL = Control(
    identifier="operators.acts",
    title="No operator destroyed, took, moved or limited anything",
    severity=Severity.WARNING,
    source="spark_audit/record/kinds.py: kind operated",
    scope=Scope.RECORDS,
    rule=find_acts,
)
DESTROYED = Control(
    identifier="operators.destroyed",
    title="Each message that an operator destroyed is told",
    severity=Severity.ERROR,
    source="spark_audit/record/kinds.py: kinds operated and dropped",
    scope=Scope.RECORDS,
    rule=find_untold,
)
