"""Every planted fault on both engines: they find the same, count the same, and sum up the same."""

import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_audit.audit import audit
from spark_audit.audit_input import AuditInput, input_of_trails
from spark_audit.controls.catalogue import CONTROLS
from spark_audit.engines import spark as spark_module
from spark_audit.engines.duck import DuckEngine
from spark_audit.engines.engine import Engine
from spark_audit.engines.spark import SparkEngine
from spark_audit.policy import Policy
from spark_audit.read import trail_files
from tests.conftest import PROOF_VARIABLE
from tests.spark_audit.conftest import TrailBuilder
from tests.spark_audit.controls.conftest import Story
from tests.spark_audit.controls.test_controls import CASES
from tests.spark_audit.controls.test_conversions import HOSTILE, plant_conversions
from tests.spark_audit.controls.test_stages import CASES as STAGES
from tests.spark_audit.custody.test_replay import WRONG as CUSTODY
from tests.spark_audit.custody.test_replay import ended

IS_FULL = os.environ.get(PROOF_VARIABLE) == "full"
STORIES = (*CASES.values(), *STAGES.values())
#: Controls of digests and verdicts, which these trails lack: test_attacks.py and controls/test_digests.py ask them.
ELSEWHERE = {"integrity.digests", "integrity.agreement", "timeliness.synchronised"}
#: What two audits of the same trail may say otherwise: when and with what they were made.
MAY_DIFFER = ("audited_at", "engine", "seconds", "versions")
#: Where Spark keeps tables: below how many bytes of trail in its plans, as in nearly all other tests on Spark, and up
#: to how many rows of a table; and whether all of it reaches one folder. Short: the two ways of a large trail, on one
#: machine and on a cluster.
KEPT = {"in files, small ones in the plans": (0, 20, True), "by each worker": (0, spark_module._FEW_ROWS, False)}
if IS_FULL:
    KEPT |= {"in files": (0, 0, True), "in the plans": (spark_module._FEW_BYTES, 0, True)}
POLICY = b'[control."delivery.qos1"]\novertaken_by_messages = 2\n'


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> AuditInput:
    """A trail for each fault, each of a gateway of its own, and one of hostile records."""
    folder = tmp_path_factory.mktemp("planted")
    trails: list[Path] = []
    for number, (_control, plant) in enumerate(STORIES, start=1):
        builder = TrailBuilder(folder / f"{number}" / "trail")
        story = Story(_OfGateway(builder, f"{number:024x}"))
        plant(story)
        trails.append(builder.write())
    for number, (_control, made) in enumerate(CUSTODY.values(), start=len(STORIES) + 1):
        builder = TrailBuilder(folder / f"{number}" / "trail")
        for record in ended(made()).records:
            builder.add(
                **{name: value for name, value in record.items() if name != "sequence"} | {"gateway": f"{number:024x}"}
            )
        trails.append(builder.write())
    hostile = TrailBuilder(folder / "hostile" / "trail")
    for fields in HOSTILE:
        hostile.add(**fields)
    hostile.add("restored", event="rolled_back")
    hostile.lines += [b"text\n", hostile.lines[-1].replace(b"rolled_back", b"rolled_BACK")]
    trails.append(hostile.write())
    converted = TrailBuilder(folder / "converted" / "trail")
    plant_conversions(_OfGateway(converted, "f" * 24))
    for number in (2, 1):  # swapped lines
        converted.lines[-number], converted.lines[-3] = converted.lines[-3], converted.lines[-number]
    trails.append(converted.write())
    return input_of_trails([trail_files(each, folder) for each in trails])


class _OfGateway:
    """A trail whose records are of a gateway unless they say another."""

    def __init__(self, trail: TrailBuilder, gateway: str) -> None:
        self.trail, self.gateway = trail, gateway

    def add(self, kind: str, **fields: Any) -> int:
        return self.trail.add(kind, **{"gateway": self.gateway} | fields)


def _told(engine: Engine, audit_input: AuditInput) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The result without what may differ, and every violation in order."""
    result = audit(engine, audit_input, lambda _line: None, policy=Policy.parse(POLICY))
    rows = engine.rows("SELECT * FROM told ORDER BY control, gateway, sequence, subject, detail")
    return {name: value for name, value in result.as_dict().items() if name not in MAY_DIFFER}, rows


@pytest.fixture(scope="module")
def on_duckdb(planted: AuditInput, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[Any]]:
    with closing(DuckEngine(tmp_path_factory.mktemp("duck"), "1g")) as engine:
        return _told(engine, planted)


@pytest.mark.proof
@pytest.mark.parametrize(("few_bytes", "few_rows", "has_folder"), KEPT.values(), ids=KEPT)
def test_spark_says_what_duckdb_says(
    spark: SparkSession,
    planted: AuditInput,
    on_duckdb: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    few_bytes: int,
    few_rows: int,
    has_folder: bool,
) -> None:
    monkeypatch.setattr(spark_module, "_FEW_BYTES", few_bytes)
    monkeypatch.setattr(spark_module, "_FEW_ROWS", few_rows)
    with closing(SparkEngine(spark, tmp_path if has_folder else None)) as engine:
        result, rows = _told(engine, planted)
        assert any(tmp_path.rglob("*.parquet")) == (has_folder and not few_bytes)
    assert list(tmp_path.iterdir()) == []
    assert rows == on_duckdb[1]
    assert result == on_duckdb[0]


@pytest.mark.parametrize(("rows", "is_in_plan"), [(0, True), (3, True), (4, False)])
def test_a_table_of_few_rows_stands_in_sparks_plans(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rows: int, is_in_plan: bool
) -> None:
    monkeypatch.setattr(spark_module, "_FEW_ROWS", 3)
    query = f"SELECT id AS number, CAST(NULL AS STRING) AS nothing, id % 2 = 0 AS is_even FROM range({rows})"
    with closing(SparkEngine(spark, tmp_path)) as engine:
        engine.keep("told", query)
        table = spark.table("told")
        assert table.schema.simpleString() == "struct<number:bigint,nothing:string,is_even:boolean>"
        assert (table.inputFiles() == []) == is_in_plan
        assert sorted(row["number"] for row in engine.rows("SELECT * FROM told WHERE nothing IS NULL")) == [
            *range(rows)
        ]


@pytest.mark.parametrize(("text_bytes", "has_file"), [(500_000_000, False), (500_000_001, True)])
def test_duckdb_says_the_same_with_its_tables_in_memory_and_in_a_file(
    planted: AuditInput, on_duckdb: Any, tmp_path: Path, text_bytes: int, has_file: bool
) -> None:
    with closing(DuckEngine(tmp_path, "1g", text_bytes)) as engine:
        assert (tmp_path / "facts.duckdb").exists() == has_file
        assert (*_told(engine, planted),) == on_duckdb


def test_every_control_finds_a_planted_fault(on_duckdb: tuple[dict[str, Any], list[Any]]) -> None:
    found = {row["control"] for row in on_duckdb[1]}
    assert {control.identifier for control in CONTROLS} - found == ELSEWHERE
