"""What a channel took to a target, or from one, it took once, and of each client in the order of its puts.

    put for a target = forwarded + dead-lettered + dropped + pending

A message that was forwarded may be dead-lettered afterwards: its broker refuses after the put has succeeded.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import (
    MESSAGE,
    Control,
    Scope,
    Severity,
    all_of,
    every_but_the_first,
    message_subject,
    violations,
)
from spark_audit.record import Kind

#: Where a message comes from a target: its MsgId there. On a transmission queue it has a number of its own here.
_FLOW: Final = ("gateway", "destination", "client", "session_epoch")
_THERE: Final = ("gateway", "queue_manager", "queue", "target_message_id")


def find(records: DataFrame) -> DataFrame:
    forwarded = records.where((sf.col("kind") == Kind.FORWARDED) & sf.col("message_id").isNotNull())
    received = records.where((sf.col("kind") == Kind.RECEIVED) & sf.col("target_message_id").isNotNull())
    found = (
        (every_but_the_first(forwarded, MESSAGE), "forwarded, and it was forwarded before"),
        (every_but_the_first(received, _THERE), "received, and it was received before"),
    )
    return all_of(*(violations(frame, subject=message_subject(), detail=sf.lit(detail)) for frame, detail in found))


def find_disordered(records: DataFrame) -> DataFrame:
    """What one client sent to one target went over the channel after what it had sent before."""
    puts = records.where((sf.col("kind") == Kind.PUT) & sf.col("destination").isNotNull())
    sent = puts.where((sf.col("direction") == "in") & sf.col("client").isNotNull()).select(
        *_FLOW, "message_id", sf.col("sequence").alias("put_at")
    )
    forwarded = records.where((sf.col("kind") == Kind.FORWARDED) & sf.col("message_id").isNotNull())
    passed = forwarded.groupBy(*MESSAGE).agg(sf.min("sequence").alias("sequence"))
    before = Window.partitionBy(*_FLOW).orderBy("put_at").rowsBetween(Window.unboundedPreceding, -1)
    told = sent.join(passed, list(MESSAGE)).withColumn("latest", sf.max("sequence").over(before))
    detail = sf.format_string(
        "overtook a message that the client had put before it; that one went in record %d", "latest"
    )
    return violations(told.where(sf.col("sequence") < sf.col("latest")), subject=message_subject(), detail=detail)


def passage_balance(records: DataFrame) -> DataFrame:
    """For each target: how many messages were put for it, and how many of them have each end."""
    key = list(MESSAGE)
    sent = records.where((sf.col("kind") == Kind.PUT) & sf.col("destination").isNotNull())
    order: Column = sf.lit("pending")
    for kind in (Kind.DROPPED, Kind.DEAD_LETTERED, Kind.FORWARDED):
        order = sf.when(sf.array_contains("ends", kind.value), sf.lit(kind.value)).otherwise(order)
    ends = records.where(sf.col("kind").isin(Kind.FORWARDED, Kind.DEAD_LETTERED, Kind.DROPPED))
    ended = ends.groupBy(*key).agg(sf.collect_set("kind").alias("ends"))
    messages = sent.groupBy(*key).agg(sf.max("destination").alias("destination"))
    return messages.join(ended, key, "left").withColumn("end", order).groupBy("destination", "end").count()


CONTROL = Control(
    identifier="passages",
    title="Each message went over a channel once",
    severity=Severity.ERROR,
    source="spark_audit/record/kinds.py: kinds forwarded and received",
    scope=Scope.RECORDS,
    rule=find,
)
ORDER = Control(
    identifier="passages.order",
    title="A channel carries the messages of one client in their order",
    severity=Severity.ERROR,
    source="MQTT 3.1.1 section 4.6; spark_audit/record/kinds.py: kind forwarded",
    scope=Scope.RECORDS,
    rule=find_disordered,
)
