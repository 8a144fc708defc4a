"""The records of a gateway are numbered from 1 without gaps and without doubles."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, violations


def find(records: DataFrame) -> DataFrame:
    in_order = Window.partitionBy("gateway").orderBy("sequence")
    before = sf.coalesce(sf.lag("sequence").over(in_order), sf.lit(0))
    numbered = records.select("gateway", "sequence", before.alias("before"))
    wrong = numbered.where(sf.col("sequence") != sf.col("before") + 1)
    detail = sf.when(sf.col("sequence") == sf.col("before"), sf.lit("the number stands twice")).otherwise(
        sf.concat(sf.lit("follows sequence "), sf.col("before").cast("string"), sf.lit(": records are missing"))
    )
    return violations(wrong, subject=sf.concat(sf.lit("gateway "), sf.col("gateway")), detail=detail)


CONTROL = Control(
    identifier="integrity.sequence",
    title="Records are numbered without gaps and doubles",
    severity=Severity.ERROR,
    source="spark_audit/record.py: `sequence`",
    scope=Scope.RECORDS,
    find=find,
)
