"""An engine for the length of a command: Spark or DuckDB. An interruption waits during the start of Spark.

Spark is stopped at the end, unless killed. DuckDB runs in this process.
"""

import argparse
import re
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spark_audit.interruption import Interruption

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_audit.engines.engine import Engine
    from spark_audit.spark_session import SparkPlace


#: A place that a worker could not use, in the text of Spark's error.
_OURS: Final = re.compile(r"^spark_audit\.location\.LocationFailed: (.+)$", re.MULTILINE)


class EngineFailed(Exception):
    """There is no Java, nobody answers at the master or the remote, or an engine gave up. The text says which."""


def place_of(options: argparse.Namespace) -> "SparkPlace":
    """The place of Spark in the options."""
    from spark_audit.spark_session import SparkPlace

    return SparkPlace(master=options.master, remote=options.remote, memory=options.memory)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for temporary files, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="rfhbridge-audit-") as name:
        yield Path(name)


@contextmanager
def spark_session(
    scratch: Path, trail_bytes: int, place: "SparkPlace", interruption: Interruption
) -> Iterator["SparkSession"]:
    """A session. Raises EngineFailed, also for errors while it is used."""
    from spark_audit.spark_session import start_session

    try:
        with interruption.held():
            spark = start_session(scratch, trail_bytes=trail_bytes, place=place)
    except _errors_of_spark(OSError, ImportError) as error:
        where = place.remote or place.master
        hint = f"at {where}" if where else "(it needs Java 17 or 21)"
        raise EngineFailed(f"Spark does not start {hint}: {_reason(error)}") from None
    try:
        yield spark
    except _errors_of_spark() as error:
        if interruption.has_come:
            raise
        raise EngineFailed(f"Spark gave up: {_reason(error)}") from error
    finally:
        if not interruption.has_come:
            spark.stop()


@contextmanager
def spark_engine(
    scratch: Path, trail_bytes: int, place: "SparkPlace", interruption: Interruption
) -> Iterator["Engine"]:
    """Spark as an engine. Raises EngineFailed."""
    from spark_audit.engines.spark import SparkEngine

    with spark_session(scratch, trail_bytes, place, interruption) as spark:
        engine = SparkEngine(spark, scratch if place.is_here else None)
        yield engine
        engine.close()


@contextmanager
def duck_engine(scratch: Path, memory: str, text_bytes: int) -> Iterator["Engine"]:
    """DuckDB as an engine. Raises EngineFailed, also for what goes wrong while it is used."""
    try:
        import duckdb

        from spark_audit.engines.duck import DuckEngine
    except ImportError as error:
        raise EngineFailed(
            f"DuckDB is not installed: {error} (pip install '.[audit]' in a clone of the repository)"
        ) from None
    folder = Path(tempfile.mkdtemp(dir=scratch))
    try:
        with closing(DuckEngine(folder, memory, text_bytes)) as engine:
            yield engine
    except duckdb.Error as error:
        raise EngineFailed(f"DuckDB gave up: {str(error).splitlines()[0]}") from error


def _errors_of_spark(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """PySpark's own errors, and errors of Java that it passes on unchanged, if this process has a Java."""
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JError
    except ImportError:  # Spark Connect without Java
        return (PySparkException, *others)
    return (PySparkException, Py4JError, *others)


def _reason(error: Exception) -> str:
    """The words of an error before its many lines of Java.

    An error of Java names the call first, and then the cause. One of ours in a worker stands behind its traceback.
    """
    if found := _OURS.search(str(error)):
        return found[1]
    lines = str(error).strip().split("\n")
    return next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0])
