"""A trail written line by line from the definition in record.py, and one Spark session for all tests of the audit."""

import gc
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_audit.read import read_lines, trail_files
from spark_audit.session import start_session

GATEWAY = "0102030405060708090a0b0c"
SEGMENT = "000000000001-20261120T07.jsonl"


class TrailBuilder:
    """Writes records as the definition says, with the standard library alone: nothing here is the gateway's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[bytes] = []
        self.sequence = 0
        self.head = "0" * 64

    def add(self, kind: str, *, batch: int | None = None, gateway: str = GATEWAY, **fields: object) -> int:
        """Adds one record; returns its sequence. Each is a batch of its own unless `batch` says otherwise."""
        self.sequence += 1
        record = {
            "version": 1,
            "sequence": self.sequence,
            "batch": self.sequence if batch is None else batch,
            "gateway": gateway,
            "kind": kind,
            "at_us": 1_795_158_000_000_000 + self.sequence,
            **fields,
            "prev": self.head,
        }
        text = json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()
        self.head = hashlib.sha256(text).hexdigest()
        self.lines.append(text[:-1] + b',"hash":"' + self.head.encode() + b'"}\n')
        return self.sequence

    def write(self, name: str = SEGMENT) -> Path:
        """Writes the lines so far into one segment; returns the trail's folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(b"".join(self.lines))
        return self.folder


@pytest.fixture
def trail(tmp_path: Path) -> TrailBuilder:
    """An empty trail under the test's own data folder."""
    return TrailBuilder(tmp_path / "data" / "trail")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all tests: one shuffle partition, no web page. Skipped where there is no Java."""
    noted = Path(sys.prefix) / "java-home"  # by the project's set-up
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ and not noted.is_file():
        pytest.skip("Spark needs Java 17 or 21: neither java on PATH nor JAVA_HOME is there (make test installs it)")
    session = start_session(tmp_path_factory.mktemp("spark"), trail_bytes=0, memory="1g")
    yield session
    session.stop()


@pytest.fixture
def read(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[[Path], DataFrame]]:
    """Reads a trail's folder as the audit does."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    yield lambda folder: read_lines(spark, trail_files(folder, scratch))
    gc.collect()  # PySpark leaves the sockets of its results to the collector; not to that of another test


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark does not close the sockets of its results: that is no failure of a test of ours."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
