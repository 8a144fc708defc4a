"""The records of a gateway are numbered from 1 without gaps and without doubles."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, gateway_subject, violations
from spark_audit.controls.window_edge import FROM_START, numbered_apart


def find(records: DataFrame, *, from_start: bool) -> DataFrame:
    in_order = Window.partitionBy("gateway", "part").orderBy("sequence")
    before = sf.lag("sequence").over(in_order)
    first = sf.lit(0) if from_start else sf.try_subtract(sf.col("sequence"), sf.lit(1))
    numbered = numbered_apart(records).select("gateway", "sequence", sf.coalesce(before, first).alias("before"))
    # A number beside the largest there is has none behind it: then nothing is due, and null is not equal.
    wrong = numbered.where(~sf.col("sequence").eqNullSafe(sf.try_add(sf.col("before"), sf.lit(1))))
    detail = sf.when(sf.col("sequence") == sf.col("before"), sf.lit("the number stands twice")).otherwise(
        sf.concat(sf.lit("follows sequence "), sf.col("before").cast("string"), sf.lit(": records are missing"))
    )
    return violations(wrong, subject=gateway_subject(), detail=detail)


CONTROL = Control(
    identifier="integrity.sequence",
    title="Records are numbered without gaps and doubles",
    severity=Severity.ERROR,
    source="spark_audit/record/fields.py: `sequence`",
    scope=Scope.RECORDS,
    rule=find,
    parameters=(FROM_START,),
)
