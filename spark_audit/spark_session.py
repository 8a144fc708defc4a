"""The Spark session of an audit, or the one that is there already: nothing else of this package makes a session.

    nothing said            local, on loopback, without a web page, and with this interpreter for its workers
    a master                the same program as the driver of a cluster: `spark://host:7077`
    under spark-submit      the session that spark-submit has prepared, with its master, memory and addresses
    a remote                Spark Connect: `sc://host:15002`

The rest of the package takes a session and uses only DataFrames, so all four run the same code. Workers need this
package: the same environment, or `--py-files` with its wheel.
"""

import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from spark_audit.java_classes import EMPTY_FOLDER, archive_is_there
from spark_audit.java_classes import java_options as options_of_archive
from spark_audit.options import MEMORY

#: Rows handed to a Python worker at once; a record is about 1 kB.
_ARROW_ROWS: Final = 5_000
#: Below this it is faster to interpret plans than to compile each to Java first (measured at 0.3 MB: 9 s, not 21 s).
_COMPILED_FROM_BYTES: Final = 16 * 1024 * 1024
_INTERPRETED: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
#: For as little a plan costs more than its rows: fewer filters are inferred, and no more tasks begin than are needed.
_FEW_TASKS: Final = {
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.limit.initialNumPartitions": "100",
}
#: Whether each call of a DataFrame's method looks for the line that makes it, which only an error would name.
_LINES_OF_CALLS: Final = "spark.sql.dataFrameQueryContext.enabled"
_PYTHON_LINES_OF_CALLS: Final = "spark.python.sql.dataFrameDebugging.enabled"
#: For as little Java's second compiler never pays, nor do its collector's threads (measured on two busy cores: an audit
#: of 0.2 MB in 80 and 106 s, and in 121 and 227 s without these). The first compiler has room for what it made.
_SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=128m -XX:+UseSerialGC"
#: Bytes of trail for each shuffle partition.
_PARTITION_BYTES: Final = 32 * 1024 * 1024
#: How long Python and Java wait for each other when a result is handed over, seconds: on a busy machine one of them may
#: stand still for longer than the 15 s that Spark gives them.
_HANDOVER_S: Final = 300
_CONFIGURATION: Final = Path(__file__).parent / "conf"
#: Where the project's set-up notes the Java that it found or installed, beside the interpreter.
_JAVA_HOME_NOTE: Final = Path(sys.prefix) / "java-home"
#: Set by spark-submit for the program that it starts.
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
_LOCAL: Final = "local"
_LOOPBACK_ADDRESS: Final = "127.0.0.1"
_LOOPBACK: Final = ("//127.", "//localhost", "//[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkPlace:
    """Where Spark runs: at a master, at a remote (Spark Connect), or, with neither, here; and its driver's memory."""

    master: str = ""
    remote: str = ""
    memory: str = MEMORY

    @property
    def is_here(self) -> bool:
        """Whether all of Spark runs on this machine: then it reads what lies in this machine's scratch folders."""
        if self.remote:
            return False
        return self.master.startswith(_LOCAL) if self.master else not _is_submitted()

    @property
    def is_on_loopback(self) -> bool:
        """Whether every process of Spark is reached by this machine's loopback address."""
        return self.is_here or any(host in self.master for host in _LOOPBACK)


HERE: Final = SparkPlace()


def start_session(scratch: Path, *, trail_bytes: int, place: SparkPlace = HERE, java_options: str = "") -> SparkSession:
    """Start or reach Spark; temporary files go to `scratch`. Without Java, or without an answer, PySpark raises.

    `java_options`: for the Java that starts here, instead of those that let it read the archive of classes.
    """
    # PySpark 4.3 warns of pandas 3 whenever a frame is made of rows; nothing here uses pandas.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
    builder = SparkSession.Builder().appName("rfhbridge audit")
    options = _options_of_plans(trail_bytes)
    if place.remote:
        builder = builder.remote(place.remote)
    elif not _is_submitted() or place.master:
        _prepare_environment(place)
        builder = builder.master(place.master or "local[*]")
        options |= _options_of_a_driver(scratch, trail_bytes, place)
        options["spark.driver.defaultJavaOptions"] = _java_options(trail_bytes, java_options)
    for key, value in options.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _is_submitted() -> bool:
    return _SUBMITTED in os.environ


def _prepare_environment(place: SparkPlace) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable  # else the workers take whatever python3 is on PATH
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if place.is_on_loopback:
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK_ADDRESS)
    os.environ.setdefault("SPARK_CONF_DIR", str(EMPTY_FOLDER if archive_is_there() else _CONFIGURATION))
    if "JAVA_HOME" not in os.environ and _JAVA_HOME_NOTE.is_file():
        os.environ["JAVA_HOME"] = _JAVA_HOME_NOTE.read_text().strip()


def _options_of_plans(trail_bytes: int) -> dict[str, str]:
    """What any session may be told while it runs."""
    sized = _INTERPRETED | _FEW_TASKS if trail_bytes < _COMPILED_FROM_BYTES else {}
    return {
        **sized,
        _LINES_OF_CALLS: "false",
        "spark.sql.shuffle.partitions": str(1 + trail_bytes // _PARTITION_BYTES),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(_ARROW_ROWS),
    }


def _java_options(trail_bytes: int, said: str) -> str:
    sized = _SHORT_LIVED if trail_bytes < _COMPILED_FROM_BYTES else ""
    has_archive = archive_is_there() and os.environ["SPARK_CONF_DIR"] == str(EMPTY_FOLDER)
    return f"{sized} {said or (options_of_archive() if has_archive else '')}".strip()


def _umask() -> int:
    """The mask of this process; Java's files get theirs from Hadoop, which has one of its own."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _options_of_a_driver(scratch: Path, trail_bytes: int, place: SparkPlace) -> dict[str, str]:
    """What must be said before Java starts."""
    addresses = ("spark.driver.host", "spark.driver.bindAddress") if place.is_on_loopback else ()
    return {
        **dict.fromkeys(addresses, _LOOPBACK_ADDRESS),
        _PYTHON_LINES_OF_CALLS: "false",
        **({"spark.authenticate": "true"} if place.is_here else {}),
        "spark.hadoop.fs.permissions.umask-mode": f"{_umask():03o}",
        "spark.ui.enabled": "false",
        "spark.driver.memory": place.memory,
        "spark.local.dir": str(scratch),
        "spark.python.authenticate.socketTimeout": f"{_HANDOVER_S}s",
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.ui.showConsoleProgress": "false",
    }
