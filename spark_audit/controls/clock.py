"""The clock of a gateway goes forward: no record is noted before the one in front of it, but for a margin.

Within a commit notes stand in the order in which they were made, and the copies of a publication bear its put's time,
so records are a little out of order by themselves. A clock that was set back makes every time of the trail doubtful,
unless the gateway tells of it: where a clock that was in doubt settles, records of kind clock_jumped say so.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Parameter, Scope, Severity, gateway_subject, violations
from spark_audit.record import Kind

_MICROSECONDS = 1_000_000
#: The gateway looks at its clock once a second: so far from the change its record may stand, with much to spare.
_TOLD_US = 10 * _MICROSECONDS


def find(records: DataFrame, *, backwards_s: int) -> DataFrame:
    before = sf.lag("at_us").over(Window.partitionBy("gateway").orderBy("sequence"))
    timed = records.select("gateway", "sequence", "at_us", sf.try_subtract(before, sf.col("at_us")).alias("back_us"))
    wrong = timed.withColumn("back_s", sf.col("back_us") / _MICROSECONDS).where(sf.col("back_s") > backwards_s)
    detail = sf.format_string("noted %.1f s before the record in front of it", "back_s")
    return violations(_untold(wrong, records), subject=gateway_subject(), detail=detail)


def _untold(wrong: DataFrame, records: DataFrame) -> DataFrame:
    """Without those that stand where the gateway tells that its clock has come back to the time on the wall."""
    jumps = records.where((sf.col("kind") == Kind.CLOCK_JUMPED) & (sf.col("jump_us") < 0))
    told = jumps.select(sf.col("gateway").alias("told_by"), sf.col("at_us").alias("told_us"))
    is_told = (sf.col("told_by") == sf.col("gateway")) & sf.col("told_us").between(
        sf.try_subtract("at_us", sf.lit(_TOLD_US)), sf.try_add("at_us", sf.lit(_TOLD_US))
    )
    return wrong.join(told, is_told, "left_anti")


CONTROL = Control(
    identifier="timeliness.clock",
    title="The clock goes forward",
    severity=Severity.WARNING,
    source="spark_audit/record/fields.py: `at_us`",
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
