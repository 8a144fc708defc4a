"""The Spark session of an audit: local, on loopback, without a web page, and with this interpreter for its workers."""

import os
import sys
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

#: Rows handed to a Python worker at once; a record is about 1 kB.
_ARROW_ROWS: Final = 5_000
_CONFIGURATION: Final = Path(__file__).parent / "conf"
#: Where the project's set-up notes the Java that it found or installed, beside the interpreter.
_JAVA_HOME_NOTE: Final = Path(sys.prefix) / "java-home"


def start_session(scratch: Path, *, shuffle_partitions: int, memory: str = "2g") -> SparkSession:
    """Start Spark in this process; temporary files go to `scratch`. Without Java PySpark raises."""
    _prepare_environment()
    builder = SparkSession.Builder().appName("rfhbridge audit").master("local[*]")
    for key, value in _options(scratch, shuffle_partitions, memory).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _prepare_environment() -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable  # else the workers take whatever python3 is on PATH
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_CONF_DIR", str(_CONFIGURATION))
    if "JAVA_HOME" not in os.environ and _JAVA_HOME_NOTE.is_file():
        os.environ["JAVA_HOME"] = _JAVA_HOME_NOTE.read_text().strip()


def _options(scratch: Path, shuffle_partitions: int, memory: str) -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": memory,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(_ARROW_ROWS),
        "spark.ui.showConsoleProgress": "false",
    }
