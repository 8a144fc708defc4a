"""The archive of Spark's Java classes: used where it fits, passed over where it does not, and never in the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_audit import java_classes, spark_session
from tests.spark_audit.conftest import SPARK_TIMEOUT_S

SUM = """
import sys
from pathlib import Path
from spark_audit import java_classes, spark_session

folder = Path(sys.argv[1])
java_classes.ARCHIVE = folder / "spark.jsa"
java_classes.EMPTY_FOLDER = spark_session.EMPTY_FOLDER = folder
assert java_classes.archive_is_there()
java_classes.java_options.__defaults__ = (f"-XX:SharedArchiveFile={java_classes.ARCHIVE}",)
spark = spark_session.start_session(folder, trail_bytes=0)
print(spark.range(10).count())
"""


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive that is there, for a session that nobody starts."""
    monkeypatch.setattr(java_classes, "ARCHIVE", tmp_path / "spark.jsa")
    monkeypatch.setattr(java_classes, "EMPTY_FOLDER", tmp_path)
    monkeypatch.setattr(spark_session, "EMPTY_FOLDER", tmp_path)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark.jsa").write_bytes(b"classes")
    return tmp_path / "spark.jsa"


@pytest.mark.timeout(SPARK_TIMEOUT_S)
def test_an_archive_that_java_cannot_use_is_passed_over_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "spark.jsa").write_bytes(bytes(range(256)) * 400)
    variables = {name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"}
    command = [sys.executable, "-c", SUM, str(tmp_path)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=SPARK_TIMEOUT_S)
    assert (done.stdout, done.returncode) == ("10\n", 0), done.stderr


@pytest.mark.usefixtures("archive")
def test_java_is_told_of_the_archive_beside_other_options() -> None:
    small, large = spark_session._java_options(10**9, ""), spark_session._java_options(10**10, "")
    assert "-XX:SharedArchiveFile=" in small
    assert "-XX:SharedArchiveFile=" in large
    assert "-XX:+UseSerialGC" in small
    assert "-XX:+UseSerialGC" not in large


@pytest.mark.usefixtures("archive")
def test_an_own_configuration_folder_of_spark_goes_before_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    assert "-XX:SharedArchiveFile=" not in spark_session._java_options(0, "")


def test_no_archive_is_named_whose_path_java_would_take_apart(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert java_classes.archive_is_there()
    spaced = archive.parent / "a b"
    spaced.mkdir()
    monkeypatch.setattr(java_classes, "ARCHIVE", archive.rename(spaced / archive.name))
    assert not java_classes.archive_is_there()
