"""Lines that are no audit records: set aside by every other control, so they are a finding of their own."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, in_trail, trail_key, violations


def find(lines: DataFrame) -> DataFrame:
    """Each bad line by its file and number, from 1; only the files that have one are counted through."""
    file = [*trail_key(lines), "segment"]
    damaged = lines.where(~sf.col("is_record")).select(*file).distinct()
    order = Window.partitionBy(*file).orderBy("block", "place")
    numbered = lines.join(damaged, file, "left_semi").withColumn("number", sf.row_number().over(order))
    return violations(
        numbered.where(~sf.col("is_record")),
        subject=in_trail(numbered, sf.concat(sf.col("segment"), sf.lit(", line "), sf.col("number").cast("string"))),
        detail=sf.concat(sf.lit("no audit record: "), sf.col("line")),
    )


CONTROL = Control(
    identifier="integrity.lines",
    title="Every line of the trail is an audit record",
    severity=Severity.ERROR,
    source="spark_audit/record: the audit record",
    scope=Scope.LINES,
    rule=find,
)
