"""Spark for the length of a command: started while an interruption waits, stopped unless one has killed it."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from spark_audit.interruption import Interruption

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_audit.session import SparkPlace


class SparkDoesNotStart(Exception):
    """There is no Java, or nobody answers at the master or the remote."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for temporary files, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="rfhbridge-audit-") as name:
        yield Path(name)


@contextmanager
def spark_session(
    scratch: Path, trail_bytes: int, place: "SparkPlace", memory: str, interruption: Interruption
) -> Iterator["SparkSession"]:
    """A session. Raises SparkDoesNotStart."""
    from pyspark.errors import PySparkException

    from spark_audit.session import start_session

    try:
        with interruption.held():
            spark = start_session(scratch, trail_bytes=trail_bytes, memory=memory, place=place)
    except (PySparkException, OSError, ImportError) as error:
        where = place.remote or place.master
        hint = f"at {where}" if where else "(it needs Java 17 or 21)"
        raise SparkDoesNotStart(f"Spark does not start {hint}: {error}") from None
    try:
        yield spark
    finally:
        if not interruption.has_come:
            spark.stop()
