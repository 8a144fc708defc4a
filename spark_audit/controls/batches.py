"""The group commits of a gateway are numbered from 1 without gaps, and their numbers grow with the records'."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, violations


def find(records: DataFrame) -> DataFrame:
    in_order = Window.partitionBy("gateway").orderBy("sequence")
    before = sf.coalesce(sf.lag("batch").over(in_order), sf.lit(0))
    numbered = records.select("gateway", "sequence", "batch", before.alias("before"))
    step = sf.col("batch") - sf.col("before")
    wrong = numbered.where((step < 0) | (step > 1) | ((sf.col("before") == 0) & (step != 1)))
    detail = sf.concat(
        sf.lit("batch "),
        sf.col("batch").cast("string"),
        sf.lit(" follows batch "),
        sf.col("before").cast("string"),
        sf.lit(": the records of a commit are missing"),
    )
    return violations(wrong, subject=sf.concat(sf.lit("gateway "), sf.col("gateway")), detail=detail)


CONTROL = Control(
    identifier="integrity.batch",
    title="No group commit is missing",
    severity=Severity.ERROR,
    source="spark_audit/record.py: `batch`",
    scope=Scope.RECORDS,
    find=find,
)
