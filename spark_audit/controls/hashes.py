"""The bytes of each line have the hash that the line bears."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, in_trail, violations


def find(records: DataFrame) -> DataFrame:
    changed = records.where(~sf.col("hash").eqNullSafe(sf.col("actual_hash")))
    detail = sf.concat(sf.lit("the line's bytes have hash "), sf.col("actual_hash"), sf.lit(": the line was changed"))
    return violations(changed, subject=in_trail(changed, sf.col("segment")), detail=detail)


CONTROL = Control(
    identifier="integrity.hash",
    title="Each record has the hash that it bears",
    severity=Severity.ERROR,
    source="spark_audit/record/line.py: `hash`",
    scope=Scope.RECORDS,
    rule=find,
)
