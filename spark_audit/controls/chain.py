"""Each record names the hash of the record that stands before it, across segments too.

The order is that of the lines in the files, not of their numbers: sorting would hide that lines were swapped.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, in_trail, trail_key, violations
from spark_audit.controls.window_edge import FROM_START
from spark_audit.record import ZERO_HASH


def find(records: DataFrame, *, from_start: bool) -> DataFrame:
    trail = trail_key(records)
    links = records.select(*trail, "gateway", "sequence", "segment", "block", "place", "prev", "hash")
    in_segment = Window.partitionBy(*trail, "segment").orderBy("block", "place")
    linked = links.withColumn("before", sf.lag("hash").over(in_segment))
    start = sf.lit(ZERO_HASH) if from_start else sf.col("prev")
    joined = linked.join(sf.broadcast(_heads(links, trail)), [*trail, "segment"]).withColumn(
        "due", sf.coalesce("before", "head_before", start)
    )
    broken = joined.where(~sf.col("prev").eqNullSafe(sf.col("due")))
    detail = sf.concat(sf.lit("prev is not the hash of the record before, "), sf.coalesce("due", sf.lit("none")))
    return violations(broken, subject=in_trail(broken, sf.col("segment")), detail=detail)


def _heads(links: DataFrame, trail: tuple[str, ...]) -> DataFrame:
    """For each segment the last hash of the segment before: a row a file, so one partition is enough."""
    lasts = links.groupBy(*trail, "segment").agg(sf.max_by("hash", sf.struct("block", "place")).alias("head"))
    in_order = Window.partitionBy(*trail).orderBy("segment")
    return lasts.select(*trail, "segment", sf.lag("head").over(in_order).alias("head_before"))


CONTROL = Control(
    identifier="integrity.chain",
    title="Each record is linked to the record before it",
    severity=Severity.ERROR,
    source="spark_audit/record/line.py: `prev`",
    scope=Scope.RECORDS,
    rule=find,
    parameters=(FROM_START,),
)
