"""Lines that are no audit records: set aside by every other control, so they are a finding of their own."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, violations


def find(lines: DataFrame) -> DataFrame:
    bad = lines.where(~sf.col("is_record"))
    return violations(bad, subject=sf.col("segment"), detail=sf.concat(sf.lit("no audit record: "), sf.col("line")))


CONTROL = Control(
    identifier="integrity.lines",
    title="Every line of the trail is an audit record",
    severity=Severity.ERROR,
    source="spark_audit/record.py: the audit record",
    scope=Scope.LINES,
    find=find,
)
