"""Checkpoints of a Delta log: a foreign reader and the next ingest begin with the last one, and old commits go."""

import os
import time
from pathlib import Path

import duckdb
import orjson
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from spark_audit.ingest import delta_log
from spark_audit.ingest.delta_checkpoint import EVERY, checkpoint_name, read_checkpoint
from spark_audit.ingest.manifest import DELTA_LOG, RECORDS, DataFile, Manifest, UnusableManifest
from spark_audit.ingest.warehouse import parquet_files
from spark_audit.remote_location import location_of
from tests.spark_audit.ingest.test_delta_log import _file, _sequences, _table
from tests.spark_audit.s3_server import Bucket

_DAY_S = 86_400


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def _grown(to: Path, commits: int) -> list[DataFile]:
    """A table with so many commits: each adds a file, and each third one puts one in the place of two."""
    files: list[DataFile] = []
    for number in range(commits):
        files.append(_file(to, str(number), number))
        if number % 3 == 2:
            numbers = [int(Path(each.path).stem.partition("-")[0]) for each in files[-2:]]
            files[-2:] = [_file(to, f"{numbers[0]}-merged", *numbers)]
        (delta_log.begin if number == 0 else delta_log.follow)(to, Manifest(files=tuple(files)))
    return files


def _log(to: Path) -> Path:
    return to / RECORDS / DELTA_LOG


def _names(to: Path, form: str) -> list[str]:
    return sorted(path.name for path in _log(to).glob(form))


def test_each_tenth_commit_has_the_whole_state_of_the_table(to: Path) -> None:
    files = _grown(to, 2 * EVERY + 4)
    assert _names(to, "*.checkpoint.parquet") == [checkpoint_name(EVERY), checkpoint_name(2 * EVERY)]
    told = orjson.loads((_log(to) / "_last_checkpoint").read_bytes())
    actions = read_checkpoint(_log(to) / checkpoint_name(2 * EVERY))
    assert told == {"version": 2 * EVERY, "size": len(actions)}
    assert [next(iter(each)) for each in actions[:2]] == ["protocol", "metaData"]
    assert not any(each["add"]["dataChange"] for each in actions if "add" in each)
    assert sum("remove" in each for each in actions) == 7
    assert [path.name for path in parquet_files(to) if "checkpoint" in path.name] == []
    assert sorted(_table(to).file_uris()) == sorted(str(to / each.path) for each in files)


def test_a_foreign_reader_needs_no_commit_before_the_checkpoint(to: Path) -> None:
    _grown(to, EVERY + 4)
    expected, version = _sequences(_table(to)), _table(to).version()
    for number in range(EVERY + 1):
        (_log(to) / f"{number:020d}.json").unlink()
    table = _table(to)
    assert (_sequences(table), table.version()) == (expected, version)
    assert table.metadata().partition_columns == ["date", "gateway_id"]
    one = duckdb.sql(f"SELECT count(*) FROM read_parquet({[*table.file_uris()]!r})").fetchall()
    assert one == [(len(expected),)]


def test_the_next_ingest_begins_with_the_checkpoint_and_goes_on(to: Path) -> None:
    files = _grown(to, EVERY + 2)
    for number in range(EVERY + 1):
        (_log(to) / f"{number:020d}.json").unlink()
    further = _file(to, "further", 100)
    delta_log.follow(to, Manifest(files=(*files[1:], further)))
    table = _table(to)
    assert table.version() == EVERY + 2
    assert sorted(table.file_uris()) == sorted(str(to / each.path) for each in (*files[1:], further))
    before = table.metadata().id
    for number in range(EVERY):
        delta_log.follow(to, Manifest(files=(*files[1:], further, _file(to, f"more-{number}", 200 + number))))
    assert _table(to).metadata().id == before
    assert _names(to, "*.checkpoint.parquet")[-1] == checkpoint_name(2 * EVERY)


def _aged(to: Path, days: int, until: int) -> None:
    """Everything up to a version was written so many days ago."""
    then = time.time() - days * _DAY_S
    for path in _log(to).iterdir():
        if path.name[:20].isdecimal() and int(path.name[:20]) <= until:
            os.utime(path, (then, then))


def test_commits_of_the_last_month_stay_and_can_be_read_back_to(to: Path) -> None:
    _grown(to, 3 * EVERY)
    _aged(to, 31, 2 * EVERY + 5)
    _grown_on = [_file(to, f"on-{number}", 500 + number) for number in range(EVERY)]
    for number in range(1, len(_grown_on) + 1):
        delta_log.follow(to, Manifest(files=tuple(_grown_on[:number])))
    left = [int(name[:20]) for name in _names(to, "*.json")]
    assert left == list(range(2 * EVERY, 4 * EVERY))
    assert _names(to, "*.checkpoint.parquet") == [checkpoint_name(number * EVERY) for number in (2, 3)]
    table = _table(to)
    for version in (2 * EVERY, 2 * EVERY + 5, 3 * EVERY + 1):
        table.load_as_version(version)
        assert table.version() == version
    with pytest.raises(Exception, match=r"[Vv]ersion|not found|[Ll]og"):
        table.load_as_version(EVERY)


def test_nothing_goes_where_no_checkpoint_is_older_than_a_month(to: Path) -> None:
    _grown(to, EVERY)
    _aged(to, 40, EVERY - 1)
    delta_log.follow(to, Manifest(files=(_file(to, "further", 100),)))
    assert len(_names(to, "*.json")) == EVERY + 1


def test_tombstones_older_than_a_week_are_left_out(to: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _grown(to, EVERY)
    later_ns = time.time_ns() + 8 * _DAY_S * 10**9
    monkeypatch.setattr("spark_audit.ingest.delta_log.time.time_ns", lambda: later_ns)
    delta_log.follow(to, Manifest(files=(_file(to, "further", 100),)))
    actions = read_checkpoint(_log(to) / checkpoint_name(EVERY))
    assert {each["remove"]["deletionTimestamp"] for each in actions if "remove" in each} == {later_ns // 10**6}


@pytest.mark.parametrize("damage", ["cut", "empty", "of another table"])
def test_a_checkpoint_that_cannot_be_read_is_told(to: Path, damage: str) -> None:
    files = _grown(to, EVERY + 2)
    place = _log(to) / checkpoint_name(EVERY)
    if damage == "of another table":
        pq.write_table(pq.read_table(place).select(["protocol"]).slice(0, 0), place)
        (_log(to) / f"{EVERY + 1:020d}.json").write_text('{"add": 7}')
    else:
        place.write_bytes(place.read_bytes()[:100] if damage == "cut" else b"")
    with pytest.raises(UnusableManifest, match="Delta"):
        delta_log.follow(to, Manifest(files=tuple(files[1:])))


def test_a_commit_that_is_missing_behind_the_checkpoint_is_told(to: Path) -> None:
    files = _grown(to, EVERY + 4)
    (_log(to) / f"{EVERY + 2:020d}.json").unlink()
    with pytest.raises(UnusableManifest, match=f"lacks commit {EVERY + 2}"):
        delta_log.follow(to, Manifest(files=tuple(files)))


def test_a_kill_before_the_number_is_written_costs_nothing(to: Path) -> None:
    """The next ingest looks for checkpoints by itself, and a foreign reader reads commits."""
    files = _grown(to, EVERY + 2)
    (_log(to) / "_last_checkpoint").unlink()
    expected = sorted(str(to / each.path) for each in files[1:])
    delta_log.follow(to, Manifest(files=tuple(files[1:])))
    assert sorted(_table(to).file_uris()) == expected


def test_a_table_in_a_bucket_has_checkpoints_too(to: Path, bucket: Bucket) -> None:
    files = [_file(to, str(number), number) for number in range(EVERY + 3)]
    lake = location_of(bucket.upload(to, "checkpoints"))
    for number in range(1, len(files) + 1):
        (delta_log.begin if number == 1 else delta_log.follow)(lake, Manifest(files=tuple(files[:number])))
    for number in range(EVERY + 1):
        (lake / RECORDS / DELTA_LOG / f"{number:020d}.json").unlink()
    table = DeltaTable(bucket.uri(f"checkpoints/{RECORDS}"), storage_options=bucket.storage_options)
    assert (table.version(), _sequences(table)) == (EVERY + 2, list(range(EVERY + 3)))
