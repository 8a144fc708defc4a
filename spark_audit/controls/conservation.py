"""Nothing appears from nowhere and nothing vanishes.

    accepted = put + refused + dead-lettered + pending           of each client's exchanges
    copies   = delivered + dropped + dead-lettered + pending     of each subscriber's messages

A copy is the embedded broker's, or one that another broker made and a channel received.

The sums hold by counting each exchange and each copy once. Violations are what the sums cannot show: a put of an
exchange that was never accepted, one that was accepted twice, an accepted QoS 0 or 1 exchange without an end, a
delivery of what no copy made, a dead letter that was put back twice. What stands in the last batch of a gateway may be
cut by the end of the trail, and what began before its first record by the beginning: both are pending.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import (
    EXCHANGE,
    MESSAGE,
    Control,
    Scope,
    Severity,
    all_of,
    every_but_the_first,
    exchange_subject,
    message_subject,
    violations,
)
from spark_audit.controls.incoming_exchanges import outcomes
from spark_audit.controls.window_edge import begun_exchanges, begun_messages
from spark_audit.record import ConversionKind, Kind

_PUBLISH: Final = 3
_DEAD_LETTER: Final = ("gateway", "dead_letter_id")


def find(records: DataFrame) -> DataFrame:
    accepted = records.where((sf.col("kind") == Kind.ACCEPTED) & (sf.col("direction") == "in"))
    delivered = records.where((sf.col("kind") == Kind.DELIVERED) & sf.col("message_id").isNotNull())
    uncopied = begun_messages(delivered.join(_copies(records), list(MESSAGE), "left_anti"), records)
    of_exchanges = (
        (_unaccepted(records, accepted), "put, but never accepted"),
        (every_but_the_first(accepted, EXCHANGE), "accepted, and it was accepted before"),
        (_vanished(records, accepted), "accepted, and nothing became of it"),
    )
    of_messages = (
        (uncopied, "delivered, but never put"),
        (every_but_the_first(_redriven(records), _DEAD_LETTER), "put back, and its dead letter was put back before"),
    )
    exchange, message = exchange_subject("in"), message_subject()
    return all_of(
        *(violations(frame, subject=exchange, detail=sf.lit(detail)) for frame, detail in of_exchanges),
        *(violations(frame, subject=message, detail=sf.lit(detail)) for frame, detail in of_messages),
    )


def _unaccepted(records: DataFrame, accepted: DataFrame) -> DataFrame:
    puts = records.where(
        (sf.col("kind") == Kind.PUT) & (sf.col("packet_type") == _PUBLISH) & sf.col("exchange").isNotNull()
    )
    return begun_exchanges(puts.join(accepted.select(*EXCHANGE), list(EXCHANGE), "left_anti"), records)


def _vanished(records: DataFrame, accepted: DataFrame) -> DataFrame:
    """Accepted QoS 0 and 1 exchanges without an outcome, before each gateway's last batch."""
    last = records.groupBy("gateway").agg(sf.max("batch").alias("last_batch"))
    at_once = accepted.where(sf.col("qos") < 2).join(sf.broadcast(last), "gateway")
    ended = outcomes(records).select(*EXCHANGE)
    return at_once.where(sf.col("batch") < sf.col("last_batch")).join(ended, list(EXCHANGE), "left_anti")


def _redriven(records: DataFrame) -> DataFrame:
    return records.where((sf.col("kind") == Kind.REDRIVEN) & sf.col("dead_letter_id").isNotNull())


def exchange_balance(records: DataFrame) -> DataFrame:
    """For each QoS: how many exchanges were accepted, and how many of them have each end."""
    keys = list(EXCHANGE)
    accepted = records.where(sf.col("kind") == Kind.ACCEPTED).groupBy(*keys).agg(sf.max("qos").alias("qos"))
    ends = outcomes(records).groupBy(*keys).agg(_has(Kind.PUT), _has(Kind.REFUSED), _has(Kind.DEAD_LETTERED))
    return _balance(accepted.join(ends, keys, "left"), (Kind.REFUSED, Kind.DEAD_LETTERED, Kind.PUT), "qos")


def copy_balance(records: DataFrame) -> DataFrame:
    """For each queue: how many copies were put for subscribers, and how many of them have each end."""
    told = records.where(sf.col("kind").isin(Kind.DELIVERED, Kind.DROPPED, Kind.DEAD_LETTERED))
    ends = told.groupBy(*MESSAGE).agg(_has(Kind.DELIVERED), _has(Kind.DROPPED), _has(Kind.DEAD_LETTERED))
    is_received = sf.col("kind") == Kind.RECEIVED
    made = records.where((sf.col("conversion") == ConversionKind.HEADER_TO_HEADER) | is_received)
    copies = made.groupBy(*MESSAGE).agg(sf.max("queue").alias("queue"))
    return _balance(
        copies.join(ends, list(MESSAGE), "left"), (Kind.DELIVERED, Kind.DEAD_LETTERED, Kind.DROPPED), "queue"
    )


def _copies(records: DataFrame) -> DataFrame:
    made = sf.col("kind").isin(Kind.PUT, Kind.RECEIVED, Kind.REDRIVEN)  # put back, a copy has another number
    return records.where(made & sf.col("message_id").isNotNull()).select(*MESSAGE)


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
    title="Everything accepted has an end, and everything delivered a beginning",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_); spark_audit/record/kinds.py: kinds",
    scope=Scope.RECORDS,
    rule=find,
)
