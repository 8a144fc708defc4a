"""Spark and `rfhbridge audit verify` say the same of a trail's integrity: two programs, one verdict.

They read the same bytes in different ways. Where one finds a fault that the other does not, one of them is wrong.
"""

from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, violations

#: The controls that ask what `verify` asks.
OF_INTEGRITY: Final = (
    "integrity.lines",
    "integrity.hash",
    "integrity.chain",
    "integrity.sequence",
    "integrity.batch",
    "integrity.digests",
)
_SCHEMA: Final = (
    "gateway string, sequence long, trail string, spark_faults long, verify_faults long, verify_reason string"
)


def verdicts(spark: SparkSession, told: list[tuple[str, int, int, str]]) -> DataFrame:
    """The frame of this control, a row for each trail.

    A row is the trail's name, how many violations the controls OF_INTEGRITY found, and what `verify` says of the same
    files: its `problem_count` and `reason`. Leave out a trail that verify could not evaluate.
    """
    return spark.createDataFrame([("", 0, *row) for row in told], _SCHEMA)


def find(verdicts: DataFrame) -> DataFrame:
    disagreeing = verdicts.where((sf.col("spark_faults") > 0) != (sf.col("verify_faults") > 0))
    detail = sf.format_string(
        "Spark found %d faults of integrity, verify %d: %s", "spark_faults", "verify_faults", "verify_reason"
    )
    return violations(disagreeing, subject=sf.concat(sf.lit("trail "), sf.col("trail")), detail=detail)


CONTROL = Control(
    identifier="integrity.agreement",
    title="Spark and verify agree",
    severity=Severity.ERROR,
    source="two readings of spark_audit/record/line.py and spark_audit/digest.py",
    scope=Scope.VERDICTS,
    rule=find,
)
