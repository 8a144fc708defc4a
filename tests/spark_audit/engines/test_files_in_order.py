"""Which files of facts a worker may read one after the other, and what it reads of them."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_audit.audit_input import AuditInput, input_of_trails
from spark_audit.controls import custody
from spark_audit.engines import files_in_order as module
from spark_audit.engines import spark as spark_module
from spark_audit.engines.duck import DuckEngine
from spark_audit.engines.engine import Engine, Row
from spark_audit.engines.spark import SparkEngine
from spark_audit.facts.reading import Reading
from spark_audit.facts.tables import schema_of
from spark_audit.read import trail_files
from tests.spark_audit.conftest import TrailBuilder
from tests.spark_audit.custody.test_replay import WRONG, ended

BY = ("gateway", "sequence")
SCHEMA = pa.schema([("sequence", pa.int64()), ("kind", pa.string()), ("gateway", pa.string())])
Rows = list[tuple[str | None, int | None]]
#: Rows of files that need not be sorted, and those files by gateway.
IN_ORDER: dict[str, tuple[list[Rows], list[list[int]]]] = {
    "one file": ([[("a", 1), ("a", 2), ("a", 5)]], [[0]]),
    "files that follow each other": ([[("a", 1)], [("a", 2), ("a", 3)]], [[0, 1]]),
    "files in another order": ([[("a", 4), ("a", 5)], [("a", 1)]], [[1, 0]]),
    "two gateways": ([[("b", 1)], [("a", 1), ("a", 2)], [("b", 2)]], [[1], [0, 2]]),
}
TO_SORT: dict[str, list[Rows]] = {
    "swapped rows": [[("a", 2), ("a", 1)]],
    "a number twice": [[("a", 1), ("a", 1)]],
    "a number in two files": [[("a", 1), ("a", 2)], [("a", 2), ("a", 3)]],
    "a file within another": [[("a", 1), ("a", 9)], [("a", 5)]],
    "two gateways in a file": [[("a", 1), ("b", 2)]],
    "no number": [[("a", 1), ("a", None)]],
    "no gateway": [[("a", 1), (None, 2)]],
    "no row": [[]],
}


def written(folder: Path, files: list[Rows]) -> list[Path]:
    """Files with these rows."""
    paths: list[Path] = []
    for number, rows in enumerate(files):
        paths.append(folder / f"{number}.parquet")
        told = [{"gateway": gateway, "sequence": sequence, "kind": "put"} for gateway, sequence in rows]
        pq.write_table(pa.Table.from_pylist(told, schema=SCHEMA), paths[-1])
    return paths


@pytest.mark.parametrize(("files", "groups"), IN_ORDER.values(), ids=IN_ORDER)
def test_files_in_order_are_found_by_gateway(tmp_path: Path, files: list[Rows], groups: list[list[int]]) -> None:
    paths = written(tmp_path, files)
    assert module.files_in_order(paths, BY) == [tuple(paths[each] for each in group) for group in groups]


@pytest.mark.parametrize("files", TO_SORT.values(), ids=TO_SORT)
def test_rows_in_no_order_have_to_be_sorted(tmp_path: Path, files: list[Rows]) -> None:
    assert module.files_in_order(written(tmp_path, files), BY) is None


def test_rows_come_in_the_order_of_their_files_with_the_columns_that_are_asked_for(tmp_path: Path) -> None:
    one, other = written(tmp_path, [[("a", 1), ("a", 2), ("a", 3)], [("a", 4)]])
    batches = list(module.rows_of([one, other], BY, 2))
    assert [batch.column("sequence").to_pylist() for batch in batches] == [[1, 2], [3], [4]]
    assert {tuple(sorted(batch.schema.names)) for batch in batches} == {BY}


@pytest.fixture(scope="module")
def wronged(tmp_path_factory: pytest.TempPathFactory) -> AuditInput:
    """Trails of gateways that are wrong in custody, each with its lines in order."""
    folder = tmp_path_factory.mktemp("wronged")
    trails: list[Path] = []
    for number, (_control, made) in enumerate(WRONG.values(), start=1):
        builder = TrailBuilder(folder / f"{number}" / "trail")
        for record in ended(made()).records:
            told = {name: value for name, value in record.items() if name != "sequence"}
            builder.add(**told | {"gateway": f"{number:024x}"})
        trails.append(builder.write())
    return input_of_trails([trail_files(each, folder) for each in trails])


def found(engine: Engine, audit_input: AuditInput) -> list[Row]:
    """What the replay finds."""
    engine.read(audit_input.pieces, Reading(salt=b"salt"), audit_input.text_bytes)
    custody.replay(engine, audit_input)
    return engine.rows("SELECT * FROM custody ORDER BY gateway, sequence, control, subject, detail")


@pytest.mark.proof
@pytest.mark.parametrize("has_order", [True, False], ids=["files in order", "rows to sort"])
def test_the_replay_finds_the_same_in_files_and_in_sorted_rows(
    spark: SparkSession, wronged: AuditInput, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_order: bool
) -> None:
    groups: list[object] = []

    def files_in_order(files: Iterable[Path], by: tuple[str, str]) -> list[tuple[Path, ...]] | None:
        groups.extend(module.files_in_order(files, by) or ())
        return groups if has_order else None  # type: ignore[return-value]

    monkeypatch.setattr(spark_module, "_FEW_BYTES", 0)
    monkeypatch.setattr(spark_module, "files_in_order", files_in_order)
    with closing(DuckEngine(tmp_path, "1g")) as on_duckdb, closing(SparkEngine(spark, tmp_path)) as on_spark:
        rows = found(on_spark, wronged)
        assert rows == found(on_duckdb, wronged)
    assert len(groups) == len(WRONG) == len({row["gateway"] for row in rows})


def test_a_table_that_was_given_anew_is_not_read_from_the_files_of_the_one_before(
    spark: SparkSession, wronged: AuditInput, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(spark_module, "_FEW_BYTES", 0)
    with closing(SparkEngine(spark, tmp_path)) as engine:
        engine.read(wronged.pieces[:2], Reading(salt=b"salt"), wronged.text_bytes)
        engine.give("records", schema_of("records").empty_table())
        custody.replay(engine, wronged)
        assert engine.rows("SELECT * FROM custody") == []
