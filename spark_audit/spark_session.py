"""The Spark session of an audit, new or existing. No other module of this package makes a session.

    no place                local, on loopback, without a web page, and with this interpreter for its workers
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
from typing import TYPE_CHECKING, Final

from spark_audit.java_classes import EMPTY_FOLDER, archive_is_there
from spark_audit.java_classes import java_options as options_of_archive
from spark_audit.options import MEMORY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Rows handed to a Python worker at once; a record is about 1 kB.
_ARROW_ROWS: Final = 5_000
#: Below this size Spark interprets plans, which is faster than to compile each to Java (measured at 0.3 MB: 9 s, not 21
#: s; at 85 MB: 126 s of CPU, not 231 s, with the options of Java below).
_COMPILED_FROM_BYTES: Final = 128 * 1024 * 1024
_INTERPRETED: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
#: For so little data a plan costs more than its rows. So Spark infers fewer filters, and begins no more tasks than
#: needed.
_FEW_TASKS: Final = {
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.limit.initialNumPartitions": "100",
}
#: Whether each call of a DataFrame's method looks for its line in the program, which only an error would name.
_LINES_OF_CALLS: Final = "spark.sql.dataFrameQueryContext.enabled"
_PYTHON_LINES_OF_CALLS: Final = "spark.python.sql.dataFrameDebugging.enabled"
#: Below this size Java's second compiler and its collector's threads never pay. Measured on two busy cores: an audit of
#: 0.2 MB in 80 and 106 s, and in 121 and 227 s without these options. Java's part of one of 850 MB took 54 and 57 s of
#: CPU, 93 s with the second compiler, and 101 and 105 s with both. The first compiler gets enough room.
_LONG_LIVED_FROM_BYTES: Final = 2 * 1024 * 1024 * 1024
_SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=128m -XX:+UseSerialGC"
#: Bytes of trail for each shuffle partition.
_PARTITION_BYTES: Final = 32 * 1024 * 1024
#: Seconds for which Python and Java wait for each other at a result. On a busy machine one of them may stand still for
#: longer than Spark's 15 s.
_HANDOVER_S: Final = 300
_CONFIGURATION: Final = Path(__file__).parent / "conf"
#: The file beside the interpreter in which the project's set-up notes its Java.
_JAVA_HOME_NOTE: Final = Path(sys.prefix) / "java-home"
#: Set by spark-submit for the program that it starts.
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
_LOCAL: Final = "local"
_LOOPBACK_ADDRESS: Final = "127.0.0.1"
_LOOPBACK: Final = ("//127.", "//localhost", "//[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkPlace:
    """The place of Spark: a master, a remote (Spark Connect), or else this machine; and its driver's memory."""

    master: str = ""
    remote: str = ""
    memory: str = MEMORY

    @property
    def is_here(self) -> bool:
        """Whether all of Spark runs on this machine. Then it can read this machine's scratch folders."""
        if self.remote:
            return False
        return self.master.startswith(_LOCAL) if self.master else not _is_submitted()

    @property
    def is_on_loopback(self) -> bool:
        """Whether this machine's loopback address reaches every process of Spark."""
        return self.is_here or any(host in self.master for host in _LOOPBACK)


HERE: Final = SparkPlace()


def start_session(
    scratch: Path, *, trail_bytes: int, place: SparkPlace = HERE, java_options: str = ""
) -> "SparkSession":
    """Starts or reaches Spark. Temporary files go to `scratch`. PySpark raises if there is no Java, or no answer.

    `java_options`: those of the Java that starts here, instead of those for the archive of classes.
    """
    # PySpark 4.3 warns of pandas 3 whenever a frame is made of rows; nothing here uses pandas.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
    from pyspark.sql import SparkSession

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


def resize(spark: "SparkSession", trail_bytes: int) -> None:
    """Gives a session the options of plans for so much trail, where it judges one part after the other."""
    options = _options_of_plans(trail_bytes)
    for key in (_INTERPRETED | _FEW_TASKS).keys() - options:
        spark.conf.unset(key)
    for key, value in options.items():
        spark.conf.set(key, value)


def _is_submitted() -> bool:
    return _SUBMITTED in os.environ


def _prepare_environment(place: SparkPlace) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable  # otherwise the workers use the python3 of PATH
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if place.is_on_loopback:
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK_ADDRESS)
    os.environ.setdefault("SPARK_CONF_DIR", str(EMPTY_FOLDER if archive_is_there() else _CONFIGURATION))
    if "JAVA_HOME" not in os.environ and _JAVA_HOME_NOTE.is_file():
        os.environ["JAVA_HOME"] = _JAVA_HOME_NOTE.read_text().strip()


def _options_of_plans(trail_bytes: int) -> dict[str, str]:
    """Options that any session takes while it runs."""
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
    sized = _SHORT_LIVED if trail_bytes < _LONG_LIVED_FROM_BYTES else ""
    has_archive = archive_is_there() and os.environ["SPARK_CONF_DIR"] == str(EMPTY_FOLDER)
    return f"{sized} {said or (options_of_archive() if has_archive else '')}".strip()


def _umask() -> int:
    """The mask of this process. Java's files get theirs from Hadoop, which has a mask of its own."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _options_of_a_driver(scratch: Path, trail_bytes: int, place: SparkPlace) -> dict[str, str]:
    """Options that must be set before Java starts."""
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
