"""A frame that is kept: few rows in the plans, many and long ones on the disk, all as they were."""

import shutil
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from spark_audit.kept_frame import FEW_BYTES, FEW_ROWS, ON_DISK, kept

SCHEMA = "number long, text string, flag boolean, ranges array<array<long>>, names array<array<string>>"
ROWS = [(1, "a\u2028", True, [[1, 2**63 - 1], None, [None]], [["x", None], []]), (None, None, None, None, None)]


def test_few_rows_are_kept_without_the_files_that_they_come_from(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame(ROWS, SCHEMA).write.parquet(str(tmp_path / "rows"))
    read = spark.read.parquet(str(tmp_path / "rows"))
    with kept(read) as few:
        shutil.rmtree(tmp_path / "rows")
        assert few.inputFiles() == []
        assert few.schema == read.schema
        assert [tuple(row) for row in few.orderBy(sf.desc("number")).collect()] == ROWS
    assert read.storageLevel == StorageLevel.NONE


def test_many_rows_and_long_ones_are_kept_on_the_disk_until_the_end(spark: SparkSession) -> None:
    long = spark.range(1).select(sf.repeat(sf.lit("x"), FEW_BYTES).alias("text"))
    for frame, rows in ((spark.range(FEW_ROWS + 1), FEW_ROWS + 1), (long, 1)):
        with kept(frame) as on_disk:
            assert on_disk.storageLevel == ON_DISK
            assert on_disk.count() == rows
        assert frame.storageLevel == StorageLevel.NONE


def test_a_frame_without_a_row_is_kept_with_its_columns(spark: SparkSession) -> None:
    with kept(spark.createDataFrame([], SCHEMA)) as empty:
        assert (empty.schema.names, empty.count()) == ([each.split()[0] for each in SCHEMA.split(", ")], 0)
