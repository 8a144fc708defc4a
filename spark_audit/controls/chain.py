"""Each record names the hash of the record that stands before it, across segments too.

The order is that of the lines in the files, not of their numbers: sorting would hide that lines were swapped.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, violations
from spark_audit.record import ZERO_HASH


def find(records: DataFrame) -> DataFrame:
    links = records.select("gateway", "sequence", "segment", "block", "place", "prev", "hash")
    in_segment = Window.partitionBy("segment").orderBy("block", "place")
    linked = links.withColumn("before", sf.lag("hash").over(in_segment))
    joined = linked.join(sf.broadcast(_heads(links)), "segment").withColumn(
        "due", sf.coalesce("before", "head_before", sf.lit(ZERO_HASH))
    )
    broken = joined.where(~sf.col("prev").eqNullSafe(sf.col("due")))
    detail = sf.concat(sf.lit("prev is not the hash of the record before, "), sf.col("due"))
    return violations(broken, subject=sf.col("segment"), detail=detail)


def _heads(links: DataFrame) -> DataFrame:
    """For each segment the last hash of the segment before: a row a file, so one partition is enough."""
    lasts = links.groupBy("segment").agg(sf.max_by("hash", sf.struct("block", "place")).alias("head"))
    return lasts.select("segment", sf.lag("head").over(Window.orderBy("segment")).alias("head_before"))


CONTROL = Control(
    identifier="integrity.chain",
    title="Each record is linked to the record before it",
    severity=Severity.ERROR,
    source="spark_audit/record.py: `prev`",
    scope=Scope.RECORDS,
    find=find,
)
