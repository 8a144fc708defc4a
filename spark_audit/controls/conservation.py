"""Nothing appears from nowhere and nothing vanishes.

    accepted = put + refused + dead-lettered + pending           of each client's exchanges
    copies   = delivered + dropped + dead-lettered + pending     of each subscriber's messages

A copy is the embedded broker's, or one that another broker made and a channel received.

The sums hold by counting each exchange and each copy once. Violations are what the sums cannot show: a put of an
exchange that was never accepted, an accepted QoS 0 or 1 exchange without an end, a delivery of what no copy made. What
stands in the last batch of a gateway may be cut by the end of the trail, and is pending.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.confirmed import outcomes
from spark_audit.controls.control import (
    EXCHANGE,
    Control,
    Scope,
    Severity,
    exchange_subject,
    message_subject,
    violations,
)
from spark_audit.record import ConversionKind, Kind

_PUBLISH = 3
_COPY = ["gateway", "message_id"]


def find(records: DataFrame) -> DataFrame:
    keys = list(EXCHANGE)
    accepted = records.where(sf.col("kind") == Kind.ACCEPTED)
    puts = records.where(
        (sf.col("kind") == Kind.PUT) & (sf.col("packet_type") == _PUBLISH) & sf.col("exchange").isNotNull()
    )
    unaccepted = puts.join(accepted.select(*keys), keys, "left_anti")
    delivered = records.where((sf.col("kind") == Kind.DELIVERED) & sf.col("message_id").isNotNull())
    uncopied = delivered.join(_copies(records), _COPY, "left_anti")
    subject = exchange_subject("in")
    return (
        violations(unaccepted, subject=subject, detail=sf.lit("put, but never accepted"))
        .unionByName(
            violations(
                _vanished(records, accepted), subject=subject, detail=sf.lit("accepted, and nothing became of it")
            )
        )
        .unionByName(violations(uncopied, subject=message_subject(), detail=sf.lit("delivered, but never put")))
    )


def _vanished(records: DataFrame, accepted: DataFrame) -> DataFrame:
    """Accepted QoS 0 and 1 exchanges without an outcome, before each gateway's last batch."""
    last = records.groupBy("gateway").agg(sf.max("batch").alias("last_batch"))
    at_once = accepted.where(sf.col("qos") < 2).join(sf.broadcast(last), "gateway")
    return at_once.where(sf.col("batch") < sf.col("last_batch")).join(outcomes(records), list(EXCHANGE), "left_anti")


def exchange_balance(records: DataFrame) -> DataFrame:
    """For each QoS: how many exchanges were accepted, and how many of them have each end."""
    keys = list(EXCHANGE)
    accepted = records.where(sf.col("kind") == Kind.ACCEPTED).groupBy(*keys).agg(sf.max("qos").alias("qos"))
    ends = outcomes(records).groupBy(*keys).agg(_has(Kind.PUT), _has(Kind.REFUSED), _has(Kind.DEAD_LETTERED))
    return _balance(accepted.join(ends, keys, "left"), (Kind.REFUSED, Kind.DEAD_LETTERED, Kind.PUT), "qos")


def copy_balance(records: DataFrame) -> DataFrame:
    """For each queue: how many copies were put for subscribers, and how many of them have each end."""
    told = records.where(sf.col("kind").isin(Kind.DELIVERED, Kind.DROPPED, Kind.DEAD_LETTERED))
    ends = told.groupBy(*_COPY).agg(_has(Kind.DELIVERED), _has(Kind.DROPPED), _has(Kind.DEAD_LETTERED))
    is_received = sf.col("kind") == Kind.RECEIVED
    made = records.where((sf.col("conversion") == ConversionKind.HEADER_TO_HEADER) | is_received)
    copies = made.groupBy(*_COPY).agg(sf.max("queue").alias("queue"))
    return _balance(copies.join(ends, _COPY, "left"), (Kind.DELIVERED, Kind.DEAD_LETTERED, Kind.DROPPED), "queue")


def _copies(records: DataFrame) -> DataFrame:
    made = sf.col("kind").isin(Kind.PUT, Kind.RECEIVED)
    return records.where(made & sf.col("message_id").isNotNull()).select(*_COPY)


def _has(kind: Kind) -> Column:
    return sf.bool_or(sf.col("kind") == kind).alias(f"is_{kind}")


def _balance(things: DataFrame, order: tuple[Kind, ...], group: str) -> DataFrame:
    """Counts by the first end in `order` that a thing has; `pending` where it has none."""
    end: Column = sf.lit("pending")
    for kind in reversed(order):
        end = sf.when(sf.coalesce(sf.col(f"is_{kind}"), sf.lit(False)), sf.lit(kind.value)).otherwise(end)
    return things.withColumn("end", end).groupBy(group, "end").count()


CONTROL = Control(
    identifier="conservation",
    title="What was accepted has an end, what was delivered a beginning",
    severity=Severity.ERROR,
    source="seed 004; spark_audit/record.py: kinds",
    scope=Scope.RECORDS,
    find=find,
)
