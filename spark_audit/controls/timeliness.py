"""How long it took: from the PUBLISH to its acknowledgement, over the channel, to the client.

An acknowledgement is noted in the commit after the one that it stands for, so the trail shows it late, never early. For
what waits to be forwarded, time runs until the last record of its gateway. A subscriber that is away is no delay of the
gateway's, so a delivery counts from the later of its put and its session's last (re)connection.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import (
    EXCHANGE,
    MESSAGE,
    SESSION,
    Control,
    Parameter,
    Scope,
    Severity,
    all_of,
    exchange_subject,
    gateway_subject,
    message_subject,
    violations,
)
from spark_audit.controls.incoming_exchanges import PUBACK, PUBREC, confirmed_exchanges
from spark_audit.record import Kind

_MICROSECONDS: Final = 1_000_000
_SECONDS: Final = "seconds"


def find(
    records: DataFrame, *, acknowledged_within_s: int, forwarded_within_s: int, delivered_within_s: int
) -> DataFrame:
    return all_of(
        _late(_acknowledged(records), acknowledged_within_s, exchange_subject("in"), "acknowledged"),
        _late(_forwarded(records), forwarded_within_s, message_subject(), "forwarded"),
        _late(_waiting(records), forwarded_within_s, message_subject(), "not forwarded yet"),
        _late(_delivered(records), delivered_within_s, message_subject(), "delivered"),
    )


def _late(told: DataFrame, limit_s: int, subject: Column, what: str) -> DataFrame:
    """Of frames with `from_us` and `until_us` what took longer; a time that no subtraction can give is not late."""
    took_us = sf.try_subtract(sf.col("until_us"), sf.col("from_us"))
    late = told.withColumn("took_s", took_us / _MICROSECONDS).where(sf.col("took_s") > limit_s)
    return violations(
        late, subject=subject, detail=sf.format_string(f"{what} after %.1f s, limit {limit_s} s", "took_s")
    )


def _acknowledged(records: DataFrame) -> DataFrame:
    """QoS 1 until PUBACK, QoS 2 until PUBREC."""
    accepted = records.where((sf.col("kind") == Kind.ACCEPTED) & (sf.col("direction") == "in"))
    confirmed = confirmed_exchanges(records, PUBACK).unionByName(confirmed_exchanges(records, PUBREC))
    answered = confirmed.groupBy(*EXCHANGE).agg(sf.min("at_us").alias("until_us"), sf.min("sequence").alias("sequence"))
    return accepted.select(*EXCHANGE, sf.col("at_us").alias("from_us")).join(answered, list(EXCHANGE))


def _forwarded(records: DataFrame) -> DataFrame:
    passed = records.where(sf.col("kind") == Kind.FORWARDED).select(
        *MESSAGE, "sequence", sf.col("at_us").alias("until_us")
    )
    return _for_targets(records).drop("sequence").join(passed, list(MESSAGE))


def _waiting(records: DataFrame) -> DataFrame:
    """What was put for a target and has no end, until the last record of its gateway."""
    ended = records.where(sf.col("kind").isin(Kind.FORWARDED, Kind.DEAD_LETTERED, Kind.DROPPED)).select(*MESSAGE)
    ends = records.groupBy("gateway").agg(sf.max("at_us").alias("until_us"))
    return _for_targets(records).join(ended, list(MESSAGE), "left_anti").join(sf.broadcast(ends), "gateway")


def _for_targets(records: DataFrame) -> DataFrame:
    puts = records.where((sf.col("kind") == Kind.PUT) & sf.col("destination").isNotNull())
    return puts.select(*MESSAGE, "sequence", sf.col("at_us").alias("from_us"))


def _delivered(records: DataFrame) -> DataFrame:
    """Each message's first delivery in a session."""
    connections = records.where((sf.col("kind") == Kind.SESSION) & sf.col("event").isin("opened", "resumed"))
    events = records.where((sf.col("kind") == Kind.DELIVERED) & sf.col("message_id").isNotNull()).select(
        *SESSION, "message_id", "sequence", sf.col("at_us").alias("until_us")
    )
    connected = connections.select(*SESSION, "sequence", sf.col("at_us").alias("connected_us"))
    so_far = Window.partitionBy(*SESSION).orderBy("sequence").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    both = events.unionByName(connected, allowMissingColumns=True)
    told = both.withColumn("connected_us", sf.max("connected_us").over(so_far)).where(sf.col("message_id").isNotNull())
    first = told.groupBy(*SESSION, "message_id").agg(
        sf.min("sequence").alias("sequence"),
        sf.min("until_us").alias("until_us"),
        sf.min("connected_us").alias("connected_us"),
    )
    made = records.where(sf.col("kind").isin(Kind.PUT, Kind.RECEIVED)).select(*MESSAGE, sf.col("at_us").alias("put_us"))
    return first.join(made, list(MESSAGE)).withColumn("from_us", sf.greatest("put_us", "connected_us"))


def _limit(name: str, value: int, meaning: str) -> Parameter:
    return Parameter(name=name, value=value, unit=_SECONDS, meaning=meaning)


CONTROL = Control(
    identifier="timeliness",
    title="Acknowledged, forwarded and delivered in time",
    severity=Severity.WARNING,
    source="QoS levels and flows (ac10850_): the interval before sending again is the application's; limits by policy",
    scope=Scope.RECORDS,
    rule=find,
    parameters=(
        _limit("acknowledged_within_s", 60, "from the PUBLISH to the record of its PUBACK or PUBREC"),
        _limit("forwarded_within_s", 3_600, "from the put for a target to its passage over the channel"),
        _limit("delivered_within_s", 60, "from the put for a connected client to its first PUBLISH"),
    ),
)


#: The gateway looks at its clock once a second: so far from the change its record may stand, with much to spare.
_TOLD_US = 10 * _MICROSECONDS


def find_backward_times(records: DataFrame, *, backwards_s: int) -> DataFrame:
    """Records that are noted before the one in front of them, by more than a margin.

    Within a commit notes stand in the order in which they were made, and the copies of a publication have the time of
    its put, so records are a little out of order by themselves. A clock that was set back makes every time of the trail
    doubtful, unless records of kind clock_jumped tell where the clock settled.
    """
    before = sf.lag("at_us").over(Window.partitionBy("gateway").orderBy("sequence"))
    timed = records.select("gateway", "sequence", "at_us", sf.try_subtract(before, sf.col("at_us")).alias("back_us"))
    wrong = timed.withColumn("back_s", sf.col("back_us") / _MICROSECONDS).where(sf.col("back_s") > backwards_s)
    detail = sf.format_string("noted %.1f s before the record in front of it", "back_s")
    return violations(_untold(wrong, records), subject=gateway_subject(), detail=detail)


def _untold(wrong: DataFrame, records: DataFrame) -> DataFrame:
    """Without those that stand where the gateway tells that its clock has come back to the time on the wall."""
    jumps = records.where((sf.col("kind") == Kind.CLOCK_JUMPED) & (sf.col("jump_us") < 0))
    told = jumps.select(sf.col("gateway").alias("told_by"), sf.col("at_us").alias("told_us"))
    is_told = (sf.col("told_by") == sf.col("gateway")) & sf.col("told_us").between(
        sf.try_subtract("at_us", sf.lit(_TOLD_US)), sf.try_add("at_us", sf.lit(_TOLD_US))
    )
    return wrong.join(told, is_told, "left_anti")


CLOCK = Control(
    identifier="timeliness.clock",
    title="The clock goes forward",
    severity=Severity.WARNING,
    source="spark_audit/record/fields.py: `at_us`",
    scope=Scope.RECORDS,
    rule=find_backward_times,
    parameters=(
        Parameter(
            name="backwards_s",
            value=5,
            unit="seconds",
            meaning="a record may be noted so long before the one in front of it",
        ),
    ),
)
