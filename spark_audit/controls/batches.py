"""The group commits of a gateway are numbered from 1 without gaps, and their numbers grow with the records'."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, gateway_subject, violations
from spark_audit.controls.window_edge import FROM_START, numbered_apart
from spark_audit.record import Kind


def find(records: DataFrame, *, from_start: bool) -> DataFrame:
    in_order = Window.partitionBy("gateway", "part").orderBy("sequence")
    before = sf.lag("batch").over(in_order)
    step = sf.try_subtract(sf.col("batch"), before)
    is_right = sf.when(before.isNull(), sf.col("batch") == 1 if from_start else sf.lit(True)).otherwise(
        step.between(0, 1)
    )
    begins_late = before.isNull() & (sf.col("kind") == Kind.RESTORED) & (sf.col("first_missing_batch") == 1)
    tells_gap = sf.coalesce(begins_late & (sf.col("last_missing_batch") == sf.col("batch")), sf.lit(False))
    is_right = sf.when(tells_gap, sf.lit(True)).otherwise(is_right)
    numbered = numbered_apart(records).select(
        "gateway", "sequence", "batch", before.alias("before"), is_right.alias("is_right")
    )
    wrong = numbered.where(~sf.coalesce("is_right", sf.lit(False)))
    detail = sf.concat(
        sf.lit("batch "),
        sf.col("batch").cast("string"),
        sf.lit(" follows batch "),
        sf.coalesce("before", sf.lit(0)).cast("string"),
        sf.lit(": the records of a commit are missing"),
    )
    return violations(wrong, subject=gateway_subject(), detail=detail)


CONTROL = Control(
    identifier="integrity.batch",
    title="No group commit is missing",
    severity=Severity.ERROR,
    source="spark_audit/record/fields.py: `batch`",
    scope=Scope.RECORDS,
    rule=find,
    parameters=(FROM_START,),
)
