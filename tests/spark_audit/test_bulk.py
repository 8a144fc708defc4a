"""Archives of messages converted on a real Spark: vectors of the specification in Parquet and in files."""

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from mappings.conversion.convert import Mode
from mappings.table import TABLE_VERSION, Dialect
from spark_audit.__main__ import main
from spark_audit.archive.files import ArchiveError
from spark_audit.bulk import convert_archive, converted
from tests.headers import mqrfh, mqrfh2

BODY = b"\x00\xff 21.5 \xe9"


PUBLISH = mqrfh("MQPSCommand Publish MQPSStreamName STOCK MQPSTopic a/b")
PUBLISH_2 = mqrfh2("<psc><Command>Publish</Command><Topic>a/b</Topic></psc>")
NAMED = mqrfh("MQPSCommand RegSub MQPSTopic a MQPSSubName pump")


def _rows(frame: DataFrame, name: str = "id") -> dict[str, dict[str, object]]:
    return {row[name]: row.asDict(recursive=True) for row in frame.collect()}


def test_each_message_has_its_conversion_and_report_or_its_error(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [
            ("plain", bytearray(PUBLISH + BODY)),
            ("there", bytearray(PUBLISH_2 + BODY)),
            ("foreign", bytearray(b"hello world")),
            ("empty", bytearray(b"")),
            ("null", None),
        ],
        "id string, data binary",
    )
    rows = _rows(converted(frame, to=Dialect.MQRFH2))
    assert bytes(rows["plain"]["converted"]) == PUBLISH_2 + BODY
    assert (rows["plain"]["format"], rows["plain"]["error"]) == ("MQHRF2", None)
    report = json.loads(rows["plain"]["report"])
    assert report["table_version"] == TABLE_VERSION
    assert [field["name"] for field in report["fields"] if field["outcome"] == "dropped"] == ["MQPSStreamName"]
    assert bytes(rows["there"]["converted"]) == PUBLISH_2 + BODY
    for name in ("foreign", "empty", "null"):
        row = rows[name]
        assert (row["converted"], row["format"], row["report"]) == (None, None, None)
        assert (row["error"]["reason_code"], row["error"]["reason_name"]) == (2334, "MQRC_RFH_ERROR")
        assert row["error"]["text"]
    assert len(rows) == 5


def test_what_the_archive_says_of_a_message_goes_before_what_is_found(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [
            (1, bytearray(PUBLISH), "MQHRF", 1208, 546),
            (2, bytearray(PUBLISH), None, None, None),
            (3, bytearray(PUBLISH), None, None, 273),
            (4, bytearray(PUBLISH), "MUCH TOO LONG", 1208, 546),
        ],
        "id long, data binary, format string, ccsid int, encoding int",
    )
    rows = _rows(converted(frame, to=Dialect.MQRFH2))
    assert [rows[number]["error"] is None for number in "1234"] == [True, True, False, False]
    assert rows["1"]["converted"] == rows["2"]["converted"]


def test_extended_mode_copies_what_strict_drops(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("named", bytearray(NAMED))], "id string, data binary")
    assert b"SubName" not in _rows(converted(frame, to=Dialect.MQRFH2))["named"]["converted"]
    extended = _rows(converted(frame, to=Dialect.MQRFH2, mode=Mode.EXTENDED))
    assert b"<SubName>pump</SubName>" in extended["named"]["converted"]


@pytest.mark.parametrize("columns", ["path string, content binary", "name string, data binary"])
def test_frame_without_the_columns_is_an_error_that_names_them(spark: SparkSession, columns: str) -> None:
    frame = spark.createDataFrame([("a", bytearray(PUBLISH))], columns)
    with pytest.raises(ArchiveError, match="it needs path or id, and data"):
        converted(frame, to=Dialect.MQRFH2)


def test_folder_of_files_becomes_parquet_and_stays_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    (source / "2026" / "11").mkdir(parents=True)
    (source / "one.bin").write_bytes(PUBLISH + BODY)
    (source / "2026" / "11" / "two.bin").write_bytes(PUBLISH + b"2")
    (source / "bad.bin").write_bytes(b"junk")
    (source / "empty.bin").touch()
    archive = convert_archive(spark, source, target, to="mqrfh2", mode="strict")
    assert (archive.messages, archive.failed) == (4, 2)
    assert {path.stat().st_mode & 0o777 for path in target.iterdir()} == {0o600}, "Java writes for their owner too"
    rows = _rows(spark.read.parquet(str(target)), "path")
    by_name = {path.rpartition("/")[2]: row for path, row in rows.items()}
    assert bytes(by_name["one.bin"]["converted"]) == PUBLISH_2 + BODY
    assert bytes(by_name["two.bin"]["converted"]) == PUBLISH_2 + b"2"
    assert by_name["bad.bin"]["error"]["reason_code"] == 2334
    assert by_name["empty.bin"]["error"]["reason_code"] == 2334
    assert (source / "one.bin").read_bytes() == PUBLISH + BODY


def test_parquet_becomes_parquet_in_many_batches(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    messages = [(number, bytearray(PUBLISH + b"%d" % number)) for number in range(500)]
    spark.createDataFrame(messages, "id long, data binary").write.parquet(str(source))
    archive = convert_archive(spark, source, target, to="mqrfh2", mode="strict")
    assert (archive.messages, archive.failed) == (500, 0)
    rows = _rows(spark.read.parquet(str(target)))
    assert {name: bytes(row["converted"]) for name, row in rows.items()} == {
        str(number): PUBLISH_2 + b"%d" % number for number in range(500)
    }


def test_command_converts_a_folder_and_its_exit_code_tells_of_errors(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(type(spark), "stop", lambda _session: None)  # other tests go on with it
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "one.bin").write_bytes(PUBLISH + BODY)
    (source / "bad.bin").write_bytes(b"junk")
    code = main(["convert", "--to", "mqrfh2", "--in", str(source), "--out", str(target)])
    assert (code, capsys.readouterr().out) == (1, f"2 messages, 1 could not be converted, {target}\n")
    assert list(target.glob("*.parquet"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--in", "IN", "--out", "OUT"], "--to"),
        (["--to", "mqrfh3", "--in", "IN", "--out", "OUT"], "mqrfh3"),
        (["--to", "mqrfh2", "--in", "NONE", "--out", "OUT"], "is not a folder"),
        (["--to", "mqrfh2", "--in", "IN", "--out", "IN"], "is there already"),
    ],
)
def test_wrong_usage_is_3_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    (tmp_path / "IN").mkdir()
    places = {"IN", "OUT", "NONE"}
    try:
        code = main(["convert", *(str(tmp_path / each) if each in places else each for each in arguments)])
    except SystemExit as ended:
        code = ended.code
    assert code == 3
    assert words in capsys.readouterr().err
