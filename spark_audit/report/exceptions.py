"""Every violation as Parquet, not only the sample: one data set, partitioned by control.

Columns: gateway, sequence, subject, detail, severity, control. Spark writes it, so the folder must be one that all of
its workers see. Without a violation the data set is empty, but exists. So its absence never means clean.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_audit.result import EXCEPTIONS_FOLDER, ControlResult

_COLUMNS: Final = ("gateway", "sequence", "subject", "detail")
_SCHEMA: Final = "gateway string, sequence long, subject string, detail string"


def write_exceptions(spark: SparkSession, found: Sequence[tuple[ControlResult, DataFrame]], report_folder: Path) -> str:
    """Writes the violations of each control; returns the name of the folder.

    A complete sample is not computed again.
    """
    target = str(report_folder / EXCEPTIONS_FOLDER)
    frames = [_labelled(spark, result, frame) for result, frame in found if result.violations]
    if not frames:
        empty = spark.createDataFrame([], f"{_SCHEMA}, severity string, control string")
        empty.write.mode("overwrite").parquet(target)
        return EXCEPTIONS_FOLDER
    every = frames[0]
    for frame in frames[1:]:
        every = every.unionByName(frame)
    every.write.mode("overwrite").partitionBy("control").parquet(target)
    return EXCEPTIONS_FOLDER


def _labelled(spark: SparkSession, result: ControlResult, frame: DataFrame) -> DataFrame:
    if len(result.sample) == result.violations:
        rows = [tuple(getattr(violation, name) for name in _COLUMNS) for violation in result.sample]
        frame = spark.createDataFrame(rows, _SCHEMA)
    return frame.select(
        *(sf.coalesce(name, sf.lit("" if name != "sequence" else 0)).alias(name) for name in _COLUMNS),
        sf.lit(result.severity).alias("severity"),
        sf.lit(result.identifier).alias("control"),
    )
