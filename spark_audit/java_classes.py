"""The Java classes of Spark in one archive (Java's class data sharing), so that Spark starts with half the CPU time.

`python -m spark_audit.java_classes` makes the archive beside this interpreter, once for each environment; `make setup`
does that. Java checks that the archive belongs to its own version and to the same jars, and otherwise ignores it. A
folder that is on the class path must be empty, so Spark's logging is configured by a property instead. Measured on two
busy cores, 2026-11-23: 4.7 s of CPU for a session and one small query, 9.7 s without the archive. An audit of 9 records
took 26.4 s on 2026-11-24, and 29.5 s before the archive had the classes of a kept frame. Source: JDK 17, "java",
options -XX:ArchiveClassesAtExit and -XX:SharedArchiveFile.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOLDER: Final = Path(sys.prefix) / "java-classes"
ARCHIVE: Final = _FOLDER / "spark.jsa"
#: The folder of SPARK_CONF_DIR while the archive is used.
EMPTY_FOLDER: Final = _FOLDER / "empty"
_LOGGING: Final = Path(__file__).parent / "conf" / "log4j2.properties"
#: Java's warnings about an archive that does not fit would go to standard output.
_SILENT: Final = "-Xlog:disable -Xlog:all=error:stderr"
#: Seconds for Java to write the archive when it ends. On a busy machine that takes a minute.
_PATIENCE_S: Final = 600


def archive_is_there() -> bool:
    """Whether Spark may start with the archive.

    A path with a space rules it out, because spaces separate Java's options.
    """
    return ARCHIVE.is_file() and EMPTY_FOLDER.is_dir() and " " not in str(ARCHIVE)


def java_options(share: str = f"-XX:SharedArchiveFile={ARCHIVE}") -> str:
    """Java's options for a Spark with the archive. SPARK_CONF_DIR must name EMPTY_FOLDER."""
    return f"-Dlog4j2.configurationFile={_LOGGING.as_uri()} {_SILENT} {share}"


def make_archive() -> None:
    """Starts Spark, lets it do a little of everything that an audit does, and keeps the classes that it loaded."""
    from spark_audit.spark_session import start_session

    EMPTY_FOLDER.mkdir(parents=True, exist_ok=True)
    unfinished = ARCHIVE.with_suffix(f".{os.getpid()}")
    os.environ["SPARK_CONF_DIR"] = str(EMPTY_FOLDER)
    options = java_options(f"-XX:ArchiveClassesAtExit={unfinished}")
    scratch = Path(tempfile.mkdtemp())
    try:
        spark = start_session(scratch, trail_bytes=0, java_options=options)
        _audit_nothing(spark)
        gateway = spark.sparkContext._gateway
        spark.stop()
        assert gateway is not None  # this process has started Java
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(_PATIENCE_S)
        with unfinished.open("rb") as written:  # an unfinished archive would crash Java
            os.fsync(written.fileno())
        unfinished.rename(ARCHIVE)
    finally:
        unfinished.unlink(missing_ok=True)
        shutil.rmtree(scratch, ignore_errors=True)


def _audit_nothing(spark: "SparkSession") -> None:
    """Asks every control of a trail without a line."""
    from spark_audit.audit_input import AuditInput
    from spark_audit.controls.catalogue import CONTROLS
    from spark_audit.engines.spark import SparkEngine
    from spark_audit.facts.reading import Reading
    from spark_audit.judgement import Judgement, make_tables
    from spark_audit.report import figures

    engine = SparkEngine(spark)
    engine.read((), Reading(), 0)
    make_tables(engine)
    Judgement(engine=engine, audit_input=AuditInput(pieces=(), digests=None), controls=CONTROLS).results()
    figures.balances(engine)


if __name__ == "__main__":
    make_archive()
