"""The duration of each step, from the times of the records at its two ends: percentiles computed on Spark.

    acknowledged after accepted    the gateway's PUBACK (QoS 1) or PUBCOMP (QoS 2) after the PUBLISH was accepted
    forwarded after put            the commit at the target after the put on the transmission queue
    delivered after put            the PUBLISH to a client after the put on the subscriber's queue

A time is the gateway's clock when the fact was noted. Over a restart or a step of the clock a duration may be negative.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import EXCHANGE
from spark_audit.controls.incoming_exchanges import PUBACK, PUBCOMP, confirmed_exchanges
from spark_audit.record import Kind
from spark_audit.result import Latency

_SHARES: Final = (0.5, 0.9, 0.99)
#: Relative error of a percentile is 1 / this (Spark's default).
_ACCURACY: Final = 10_000
_MESSAGE: Final = ("gateway", "message_id")
#: The packet that ends an exchange of a QoS.
_LAST_PACKET: Final = {1: PUBACK, 2: PUBCOMP}


def latencies(records: DataFrame) -> tuple[Latency, ...]:
    """Percentiles of each step and QoS. A step counts if the records have both of its ends."""
    durations = _acknowledged(records).unionByName(_after_put(records, Kind.FORWARDED))
    durations = durations.unionByName(_after_put(records, Kind.DELIVERED))
    summed = durations.groupBy("step", "qos").agg(
        sf.count("*").alias("count"),
        sf.percentile_approx("duration_us", list(_SHARES), _ACCURACY).alias("shares"),
        sf.max("duration_us").alias("max"),
    )
    return tuple(
        Latency(
            step=row["step"],
            qos=row["qos"],
            count=row["count"],
            p50_us=row["shares"][0],
            p90_us=row["shares"][1],
            p99_us=row["shares"][2],
            max_us=row["max"],
        )
        for row in summed.orderBy("step", "qos").collect()
    )


def _acknowledged(records: DataFrame) -> DataFrame:
    """From the first record that accepted an exchange.

    A repeat (DUP) has a record too, but the sensor waits since the first.
    """
    begun = (
        records.where((sf.col("kind") == Kind.ACCEPTED) & sf.col("qos").isin(*_LAST_PACKET))
        .groupBy(*EXCHANGE)
        .agg(sf.min("at_us").alias("began_at_us"), sf.max("qos").alias("qos"))
    )
    one, two = (
        confirmed_exchanges(records, packet_type).join(begun.where(sf.col("qos") == qos), list(EXCHANGE))
        for qos, packet_type in _LAST_PACKET.items()
    )
    ends = one.unionByName(two).withColumn("ended_at_us", sf.col("at_us"))
    return _steps(ends, "acknowledged after accepted")


def _after_put(records: DataFrame, kind: Kind) -> DataFrame:
    """From the put (or, for a message that a channel brought, its arrival) to the first record of that kind."""
    key = list(_MESSAGE)
    begun = records.where(sf.col("kind").isin(Kind.PUT, Kind.RECEIVED) & sf.col("message_id").isNotNull())
    ended = records.where((sf.col("kind") == kind) & sf.col("message_id").isNotNull())
    qos = sf.lit(-1).cast("long") if kind is Kind.FORWARDED else sf.coalesce(sf.max("qos"), sf.lit(-1).cast("long"))
    joined = (
        ended.groupBy(*key)
        .agg(sf.min("at_us").alias("ended_at_us"), qos.alias("qos"))
        .join(begun.groupBy(*key).agg(sf.min("at_us").alias("began_at_us")), key)
    )
    return _steps(joined, f"{kind.value} after put")


def _steps(ends: DataFrame, step: str) -> DataFrame:
    duration = sf.try_subtract(sf.col("ended_at_us"), sf.col("began_at_us"))
    timed = ends.select(sf.lit(step).alias("step"), "qos", duration.alias("duration_us"))
    return timed.where(sf.col("duration_us").isNotNull())
