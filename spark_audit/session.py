"""The Spark session of an audit: local, on loopback, without a web page, and with this interpreter for its workers."""

import os
import sys
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

#: Rows handed to a Python worker at once; a record is about 1 kB.
_ARROW_ROWS: Final = 5_000
#: Below this it is faster to interpret plans than to compile each to Java first (measured at 0.3 MB: 9 s, not 21 s).
_COMPILED_FROM_BYTES: Final = 16 * 1024 * 1024
_INTERPRETED: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
#: Bytes of trail for each shuffle partition.
_PARTITION_BYTES: Final = 32 * 1024 * 1024
_CONFIGURATION: Final = Path(__file__).parent / "conf"
#: Where the project's set-up notes the Java that it found or installed, beside the interpreter.
_JAVA_HOME_NOTE: Final = Path(sys.prefix) / "java-home"


def start_session(scratch: Path, *, trail_bytes: int, memory: str = "2g") -> SparkSession:
    """Start Spark in this process; temporary files go to `scratch`. Without Java PySpark raises."""
    _prepare_environment()
    builder = SparkSession.Builder().appName("rfhbridge audit").master("local[*]")
    for key, value in _options(scratch, trail_bytes, memory).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _prepare_environment() -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable  # else the workers take whatever python3 is on PATH
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_CONF_DIR", str(_CONFIGURATION))
    if "JAVA_HOME" not in os.environ and _JAVA_HOME_NOTE.is_file():
        os.environ["JAVA_HOME"] = _JAVA_HOME_NOTE.read_text().strip()


def _options(scratch: Path, trail_bytes: int, memory: str) -> dict[str, str]:
    sized = _INTERPRETED if trail_bytes < _COMPILED_FROM_BYTES else {}
    return {
        **sized,
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": memory,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.sql.shuffle.partitions": str(1 + trail_bytes // _PARTITION_BYTES),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(_ARROW_ROWS),
        "spark.ui.showConsoleProgress": "false",
    }
