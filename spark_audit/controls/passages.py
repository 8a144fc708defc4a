"""What a channel took to a target, or from one, it took once.

    put for a target = forwarded + dead-lettered + dropped + pending

A message that was forwarded may be dead-lettered afterwards: its broker refuses after the put has succeeded.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, message_subject, violations
from spark_audit.record import Kind

#: A message on a transmission queue has a number of its own here; one that comes from a target has its MsgId there.
_HERE: Final = ("gateway", "message_id")
_THERE: Final = ("gateway", "queue_manager", "queue", "target_message_id")


def find(records: DataFrame) -> DataFrame:
    forwarded = records.where((sf.col("kind") == Kind.FORWARDED) & sf.col("message_id").isNotNull())
    received = records.where((sf.col("kind") == Kind.RECEIVED) & sf.col("target_message_id").isNotNull())
    twice = _again(forwarded, _HERE, "forwarded, and it was forwarded before")
    return twice.unionByName(_again(received, _THERE, "received, and it was received before"))


def passage_balance(records: DataFrame) -> DataFrame:
    """For each target: how many messages were put for it, and how many of them have each end."""
    key = list(_HERE)
    sent = records.where((sf.col("kind") == Kind.PUT) & sf.col("destination").isNotNull())
    order: Column = sf.lit("pending")
    for kind in (Kind.DROPPED, Kind.DEAD_LETTERED, Kind.FORWARDED):
        order = sf.when(sf.array_contains("ends", kind.value), sf.lit(kind.value)).otherwise(order)
    ends = records.where(sf.col("kind").isin(Kind.FORWARDED, Kind.DEAD_LETTERED, Kind.DROPPED))
    ended = ends.groupBy(*key).agg(sf.collect_set("kind").alias("ends"))
    messages = sent.groupBy(*key).agg(sf.max("destination").alias("destination"))
    return messages.join(ended, key, "left").withColumn("end", order).groupBy("destination", "end").count()


def _again(told: DataFrame, key: tuple[str, ...], detail: str) -> DataFrame:
    """Every record of a message but the first."""
    place = sf.row_number().over(Window.partitionBy(*key).orderBy("sequence"))
    repeated = told.withColumn("place", place).where(sf.col("place") > 1)
    return violations(repeated, subject=message_subject(), detail=sf.lit(detail))


CONTROL = Control(
    identifier="passages",
    title="A message went over a channel once",
    severity=Severity.ERROR,
    source="spark_audit/record.py: kinds forwarded and received",
    scope=Scope.RECORDS,
    find=find,
)
