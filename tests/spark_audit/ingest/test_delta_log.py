"""The Delta table of ingested lines, as a foreign reader sees it: what the manifest names, each ingest as a whole."""

import re
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from spark_audit.ingest import delta_log
from spark_audit.ingest.manifest import DELTA_LOG, RECORDS, DataFile, Manifest, UnusableManifest
from spark_audit.ingest.warehouse import parquet_files, writing_to
from spark_audit.record.columns import PARTITION
from spark_audit.remote_location import location_of
from spark_audit.schema import LINES
from tests.spark_audit.conftest import GATEWAY
from tests.spark_audit.s3_server import Bucket

HOW_TO = Path(__file__).parents[3] / "docs" / "how-to" / "audit-with-spark.md"


def _file(to: Path, name: str, *sequences: int, date: str = "2026-11-20", schema: pa.Schema = LINES) -> DataFile:
    """A file with records of these numbers."""
    rows = [{"sequence": each, "kind": "accepted", "client": "boiler", "is_record": True} for each in sequences]
    return _file_of(to, name, rows, date, schema)


def _file_of(to: Path, name: str, rows: list[dict[str, Any]], date: str, schema: pa.Schema = LINES) -> DataFile:
    """A file of rows, where and as Spark leaves it."""
    path = to / RECORDS / f"date={date}" / f"gateway_id={GATEWAY}" / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    return DataFile(path=str(path.relative_to(to)), rows=len(rows), size_bytes=path.stat().st_size, sha256="")


def _table(to: Path) -> DeltaTable:
    return DeltaTable(str(to / RECORDS))


def _sequences(table: DeltaTable) -> list[int]:
    return sorted(table.to_pyarrow_table(columns=["sequence"])["sequence"].to_pylist())


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def test_a_foreign_reader_sees_the_lines_of_each_manifest_and_those_of_the_one_before(to: Path) -> None:
    one, two, three = _file(to, "1", 1, 2), _file(to, "2", 3, date="2026-11-21"), _file(to, "3", 1, 2, 3)
    delta_log.begin(to, Manifest(files=(one,)))
    assert _sequences(_table(to)) == [1, 2]
    delta_log.follow(to, Manifest(files=(one, two)))
    table = _table(to)
    assert _sequences(table) == [1, 2, 3]
    assert table.metadata().partition_columns == [name for name, _kind, _meaning in PARTITION]
    (of_a_day,) = table.to_pyarrow_dataset().to_table(filter=pa.compute.field("date") == "2026-11-21").to_pylist()
    assert (of_a_day["sequence"], of_a_day["gateway_id"]) == (3, GATEWAY)
    delta_log.follow(to, Manifest(files=(three,)))
    assert _table(to).file_uris() == [str(to / three.path)]
    table.load_as_version(1)
    assert _sequences(table) == [1, 2, 3]


def test_every_column_has_its_type(to: Path) -> None:
    delta_log.begin(to, Manifest(files=(_file(to, "1", 1),)))
    found = _table(to).to_pyarrow_dataset().schema
    columns = {column.name: column.type for column in found}
    partition = {name: pa.string() for name, _kind, _meaning in PARTITION}
    assert columns == {column.name: column.type for column in LINES} | partition


def test_nothing_is_written_where_no_log_was_begun_or_nothing_is_new(to: Path) -> None:
    manifest = Manifest(files=(_file(to, "1", 1),))
    delta_log.follow(to, manifest)
    assert not (to / RECORDS / DELTA_LOG).exists()
    delta_log.begin(to, manifest)
    delta_log.begin(to, manifest)
    delta_log.follow(to, manifest)
    assert [path.name for path in (to / RECORDS / DELTA_LOG).iterdir()] == [f"{0:020d}.json"]


def test_a_log_may_begin_before_there_is_a_line(to: Path) -> None:
    delta_log.begin(to, Manifest())
    assert _table(to).file_uris() == []


def test_the_next_ingest_mends_a_log_that_a_kill_left_behind_before_it_removes_files(to: Path, monkeypatch) -> None:
    """The manifest named one file in the place of two, and the process ended."""
    one, two, merged = _file(to, "1", 1), _file(to, "2", 2), _file(to, "3", 1, 2)
    delta_log.begin(to, Manifest(files=(one, two)))
    Manifest(files=(merged,)).save(to)
    unlink = Path.unlink

    def while_readers_look(path: Path, *values: bool) -> None:
        if path.suffix == ".parquet":
            assert _sequences(_table(to)) == [1, 2]
        unlink(path, *values)

    monkeypatch.setattr(Path, "unlink", while_readers_look)
    with writing_to(to):
        assert list((to / RECORDS).rglob("*.parquet")) == [to / merged.path]
    assert _sequences(_table(to)) == [1, 2]


def test_fields_of_a_later_version_come_into_the_table_and_are_null_in_earlier_files(to: Path, monkeypatch) -> None:
    schema = LINES.remove(LINES.get_field_index("operator"))
    one = _file(to, "1", 1, schema=schema)
    with monkeypatch.context() as earlier:
        earlier.setattr(delta_log, "LINES", schema)
        delta_log.begin(to, Manifest(files=(one,)))
        before = _table(to).metadata().id
    delta_log.follow(to, Manifest(files=(one,)))
    assert _table(to).to_pyarrow_table(columns=["operator"]).to_pylist() == [{"operator": None}]
    assert _table(to).metadata().id == before


def test_what_another_program_did_to_the_table_is_undone_and_its_checkpoint_stays(to: Path) -> None:
    one = _file(to, "1", 1)
    manifest = Manifest(files=(one,))
    delta_log.begin(to, manifest)
    manifest.save(to)
    table = _table(to)
    table.delete()
    table.create_checkpoint()
    assert _table(to).file_uris() == []
    with writing_to(to):
        pass
    assert _sequences(_table(to)) == [1]
    assert list((to / RECORDS / DELTA_LOG).glob("*.checkpoint.parquet"))
    assert [path.name for path in parquet_files(to)] == ["1.parquet"]


@pytest.mark.parametrize("damage", ["shortened", "no JSON", "no object", "no path"])
def test_a_log_that_cannot_be_read_is_told(to: Path, damage: str) -> None:
    one, two = _file(to, "1", 1), _file(to, "2", 2)
    delta_log.begin(to, Manifest(files=(one,)))
    delta_log.follow(to, Manifest(files=(one, two)))
    first = to / RECORDS / DELTA_LOG / f"{0:020d}.json"
    if damage == "shortened":
        first.unlink()
    else:
        first.write_text({"no JSON": "{", "no object": "[]", "no path": '{"add": {}}'}[damage])
    why = "lacks commit 0: remove the folder" if damage == "shortened" else r"0\.json is no commit of Delta"
    with pytest.raises(UnusableManifest, match=why):
        delta_log.follow(to, Manifest(files=(one,)))


def test_a_commit_that_another_process_wrote_meanwhile_is_not_replaced(to: Path, monkeypatch) -> None:
    one, two = _file(to, "1", 1), _file(to, "2", 2)
    delta_log.begin(to, Manifest(files=(one,)))
    before = delta_log._State.of(to / RECORDS / DELTA_LOG)
    delta_log.follow(to, Manifest(files=(one, two)))
    monkeypatch.setattr(delta_log._State, "of", lambda _log: before)
    with pytest.raises(UnusableManifest, match="meanwhile: ingest once more"):
        delta_log.follow(to, Manifest(files=()))
    assert _sequences(_table(to)) == [1, 2]
    assert sorted(path.suffix for path in (to / RECORDS / DELTA_LOG).iterdir()) == [".json", ".json"]


def test_a_table_in_a_bucket_is_read_there(to: Path, bucket: Bucket) -> None:
    one, two = _file(to, "1", 1, 2), _file(to, "2", 3)
    lake = location_of(bucket.upload(to, "delta"))
    delta_log.begin(lake, Manifest(files=(one,)))
    delta_log.follow(lake, Manifest(files=(one, two)))
    table = DeltaTable(bucket.uri(f"delta/{RECORDS}"), storage_options=bucket.storage_options)
    assert (table.version(), _sequences(table)) == (1, [1, 2, 3])


# -- examples of the how-to --------------------------------------------------------------------------------------------


def _examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL)


def _answer(records: Any, query: str) -> list[tuple[str, ...]]:
    """What DuckDB answers, which takes `records` from here."""
    assert records is not None
    return [tuple(map(str, row)) for row in duckdb.sql(query).fetchall()]


#: A row that each example finds.
TO_ASK = [
    {"kind": "accepted", "packet_type": 3, "client": "boiler", "payload_bytes": 64, "is_record": True},
    {"kind": "operated", "command": "CLEAR QLOCAL", "operator": "anna", "queue": "ORDERS", "messages": 3, "at_us": 1},
    {"is_record": False, "line": "nonsense", "trail": GATEWAY, "segment": "1.jsonl", "block": 0, "place": 1},
]


def test_examples_of_sql_give_the_same_rows_on_parquet_and_on_delta(to: Path, tmp_path: Path, monkeypatch) -> None:
    delta_log.begin(to, Manifest(files=(_file_of(to, "1", TO_ASK, "2026-11-20"),)))
    monkeypatch.chdir(tmp_path)
    answers = []
    for opening in _examples("python"):
        names: dict[str, Any] = {}
        exec(opening, names)
        answers.append([_answer(names["records"], query) for query in _examples("sql")])
    assert answers[0] == answers[1]
    by_kind, by_client, orders, lines = answers[0]
    assert {(date, gateway) for date, gateway, *_ in by_kind} == {("2026-11-20", GATEWAY)}
    assert by_client == [("boiler", "1", "64")]
    assert [row[1:] for row in orders] == [("anna", "CLEAR QLOCAL", "None", "ORDERS", "3")]
    assert lines == [(GATEWAY, "1.jsonl", "0", "1")]
