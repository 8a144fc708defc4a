"""Where the records begin: what began before them is pending, not a violation.

An audit may read a part of a trail: older segments are removed by retention, or lie before its period. Then the first
record of a gateway is not number 1, and an exchange or message that is spoken of may have begun before. Numbers tell
which: exchanges of a session and messages of a store are numbered in the order in which they begin.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import SESSION, Parameter, trail_key
from spark_audit.record import Kind

FROM_START: Final = Parameter(
    name="from_start",
    value=True,
    unit="yes or no",
    meaning="whether the first record must be number 1; no, where older segments are removed or not read",
)


def numbered_apart(records: DataFrame) -> DataFrame:
    """With a column `part`: of several trails one that begins late numbers its gateway's records from 1 again.

    "" for all else, so that a trail and a copy of it are still doubles.
    """
    trail = trail_key(records)
    if not trail:
        return records.withColumn("part", sf.lit(""))
    is_late = (sf.col("kind") == Kind.RESTORED) & (sf.col("event") == "trail_begun_late") & (sf.col("sequence") == 1)
    late = records.where(is_late).select(*trail, "gateway").distinct().withColumn("part", sf.col(trail[0]))
    return records.join(sf.broadcast(late), [*trail, "gateway"], "left").withColumn(
        "part", sf.coalesce("part", sf.lit(""))
    )


def begun_exchanges(exchanges: DataFrame, records: DataFrame) -> DataFrame:
    """Of incoming exchanges those that began within the records."""
    accepted = records.where((sf.col("kind") == Kind.ACCEPTED) & (sf.col("direction") == "in"))
    return _begun(exchanges, records, accepted)


def begun_deliveries(exchanges: DataFrame, records: DataFrame) -> DataFrame:
    """Of outgoing exchanges those that began within the records."""
    return _begun(exchanges, records, records.where(sf.col("kind") == Kind.DELIVERED))


def begun_messages(messages: DataFrame, records: DataFrame) -> DataFrame:
    """Of messages those that were put within the records; a MsgId ends in the store's own number."""
    made = records.where(sf.col("kind").isin(Kind.PUT, Kind.RECEIVED))
    firsts = made.groupBy("gateway").agg(sf.min("message_id").alias("first_message"))
    edged = messages.join(_cut_gateways(records), "gateway", "left").join(sf.broadcast(firsts), "gateway", "left")
    is_later = sf.coalesce(sf.col("message_id") >= sf.col("first_message"), sf.lit(False))
    return edged.where(sf.col("is_cut").isNull() | is_later).select(*messages.columns)


def _begun(exchanges: DataFrame, records: DataFrame, beginnings: DataFrame) -> DataFrame:
    session = list(SESSION)
    opened = records.where((sf.col("kind") == Kind.SESSION) & (sf.col("event") == "opened"))
    known = beginnings.select(*session, "exchange").unionByName(
        opened.select(*session, sf.lit(0).cast("long").alias("exchange"))
    )
    firsts = known.groupBy(*session).agg(sf.min("exchange").alias("first_exchange"))
    edged = exchanges.join(_cut_gateways(records), "gateway", "left").join(firsts, session, "left")
    is_later = sf.coalesce(sf.col("exchange") >= sf.col("first_exchange"), sf.lit(False))
    return edged.where(sf.col("is_cut").isNull() | is_later).select(*exchanges.columns)


def _cut_gateways(records: DataFrame) -> DataFrame:
    """Gateways whose records do not begin with number 1, or that go on from a store that went back or a lost trail."""
    firsts = records.groupBy("gateway").agg(
        sf.min("sequence").alias("first"), sf.max(sf.col("kind") == Kind.RESTORED).alias("is_restored")
    )
    is_cut = (sf.col("first") > 1) | sf.col("is_restored")
    return sf.broadcast(firsts.where(is_cut).select("gateway", sf.lit(True).alias("is_cut")))
