"""The clock of a gateway goes forward: no record is noted before the one in front of it, but for a margin.

Within a commit notes stand in the order in which they were made, and the copies of a publication bear its put's time,
so records are a little out of order by themselves. A clock that was set back makes every time of the trail doubtful.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Parameter, Scope, Severity, gateway_subject, violations

_MICROSECONDS = 1_000_000


def find(records: DataFrame, *, backwards_s: int) -> DataFrame:
    before = sf.lag("at_us").over(Window.partitionBy("gateway").orderBy("sequence"))
    timed = records.select("gateway", "sequence", sf.try_subtract(before, sf.col("at_us")).alias("back_us"))
    wrong = timed.withColumn("back_s", sf.col("back_us") / _MICROSECONDS).where(sf.col("back_s") > backwards_s)
    detail = sf.format_string("noted %.1f s before the record in front of it", "back_s")
    return violations(wrong, subject=gateway_subject(), detail=detail)


CONTROL = Control(
    identifier="timeliness.clock",
    title="The clock goes forward",
    severity=Severity.WARNING,
    source="spark_audit/record.py: `at_us`",
    scope=Scope.RECORDS,
    rule=find,
    parameters=(
        Parameter(
            name="backwards_s",
            value=5,
            unit="seconds",
            meaning="a record may be noted so long before the one in front of it",
        ),
    ),
)
