"""Archives on a real Spark: for each control a planted fault that it finds, a clean archive, and a near miss."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_audit.archive.audit import ArchiveToAudit, audit_archive
from spark_audit.archive.files import ArchiveError, archive_files
from spark_audit.bulk import convert_archive
from spark_audit.controls.archive import READABLE
from spark_audit.engines import spark as spark_module
from spark_audit.reperform.captured import AskedConversion
from spark_audit.result import AuditResult, Subject, Verdict
from tests.headers import mqrfh, mqrfh2

BODY = b"\x00\xff 21.5 \xe9"


PUBLISH = mqrfh("MQPSCommand Publish MQPSTopic a/b")
PUBLISH_2 = mqrfh2("<psc><Command>Publish</Command><Topic>a/b</Topic></psc>")
NAMED = mqrfh("MQPSCommand Publish MQPSStreamName STOCK MQPSTopic a/b")
PUBLISHER = mqrfh("MQPSCommand RegPub MQPSTopic a/b")
OTHER_TOPIC = mqrfh2("<psc><Command>Publish</Command><Topic>a/c</Topic></psc>")
#: What is told of NAMED.
LOSS = "MQPSStreamName: it has no row in the table of Message formats (aq19780_)"

Files = dict[str, bytes] | Path
Audit = Callable[..., AuditResult]


@pytest.fixture(scope="module")
def audit(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """Audits two sets of files, or folders that are there."""

    def run(messages: Files, made: Files | None = None, asked: AskedConversion | None = None) -> AuditResult:
        source = _folder(tmp_path_factory.mktemp("archive") / "in", messages)
        converted = None if made is None else _folder(tmp_path_factory.mktemp("archive") / "made", made)
        return audit_archive(
            spark, ArchiveToAudit.of(source, converted), asked or AskedConversion(), lambda _line: None
        )

    return run


def _folder(folder: Path, files: Files) -> Path:
    if isinstance(files, Path):
        return files
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def _found(result: AuditResult) -> dict[str, list[str]]:
    """What each control found, by its identifier: message and detail."""
    return {
        each.identifier: sorted(f"{found.subject}: {found.detail}" for found in each.sample)
        for each in result.controls
        if each.violations
    }


def _report(**fields: object) -> str:
    """A conversion's report with at most one field."""
    return json.dumps({"mode": "strict", "fields": [fields] if fields else []})


def test_archive_without_conversions_is_clean_where_every_message_can_be_read_and_said(audit: Audit) -> None:
    """Names that end alike, an option and bodies are no losses: both formats have them."""
    retained = mqrfh("MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic a/b")
    messages = {"one": PUBLISH + BODY, "2026/one": PUBLISH_2, "2027/one": PUBLISH + BODY, "retained": retained}
    result = audit(messages | {"three": PUBLISH})
    assert (result.verdict, result.reason) == (Verdict.CLEAN, "5 messages, no violation")
    assert _found(result) == {}
    assert result.subject is Subject.ARCHIVE
    assert [(row.group, row.what, row.count) for row in result.balances.kinds] == [
        ("MQHRF", "Publish", 4),
        ("MQHRF2", "Publish", 1),
    ]
    unjudged = {each.identifier for each in result.controls if each.not_evaluable}
    assert unjudged == {
        "archive.paired", "conversion.reperformance", "conversion.reperformable", "conversion.fields",
        "conversion.support", "conversion.report", "archive.body", "archive.bytes",
    }  # fmt: skip


def test_malformed_not_convertible_and_losing_messages_are_found_with_reason_codes(audit: Audit) -> None:
    result = audit({"good": PUBLISH, "cut": PUBLISH[:40], "empty": b"", "publisher": PUBLISHER, "named": NAMED})
    assert result.verdict is Verdict.VIOLATIONS
    assert _found(result) == {
        "archive.readable": [
            "message cut: MQRC_RFH_ERROR (2334) at byte 8: StrucLength does not fit",
            "message empty: MQRC_RFH_ERROR (2334) at byte 0: the message is empty",
        ],
        "archive.convertible": [
            "message publisher: MQRC_RFH_COMMAND_ERROR (2336): "
            "RegPub would be converted, though MQRFH2 does not have it"
        ],
        "archive.losses": [f"message named: {LOSS}"],
    }
    assert [(row.name, row.count) for row in result.dropped_fields] == [("MQPSStreamName", 1)]


def test_what_is_only_told_leaves_the_verdict_alone(spark: SparkSession, audit: Audit, tmp_path: Path) -> None:
    """A code page that the audit does not know, a padded header, and a loss that the report names."""
    padded = mqrfh2("<psc><Command>Publish</Command><Topic>a/b</Topic></psc>        ")
    honest = _report(name="MQPSStreamName", outcome="dropped", reason="no row")
    rows = [
        ("right", bytearray(PUBLISH), bytearray(PUBLISH_2), 819, None),
        ("unknown", bytearray(PUBLISH), None, 930, None),
        ("padded", bytearray(PUBLISH + BODY), bytearray(padded + BODY), 819, None),
        ("named", bytearray(NAMED), bytearray(PUBLISH_2), 819, honest),
    ]
    described = [(*row, "MQHRF", 546) for row in rows]
    schema = "id string, data binary, converted binary, ccsid int, report string, format string, encoding int"
    spark.createDataFrame(described, schema).write.parquet(str(tmp_path / "parquet"))
    result = audit(tmp_path / "parquet", asked=AskedConversion(target="mqrfh2"))
    found = _found(result)
    (told,) = found.pop("archive.judged")
    assert told.startswith("message unknown: ")
    assert "930" in told
    assert found == {
        "archive.bytes": ["message padded: the meaning is the same, and byte 8 is another than the audit writes"],
        "archive.losses": [f"message named: {LOSS}"],
    }
    assert result.verdict is Verdict.CLEAN


def test_what_the_bulk_conversion_made_of_an_archive_is_performed_again(
    spark: SparkSession, audit: Audit, tmp_path: Path
) -> None:
    """Conversions whose names stand twice are not taken for those of a message."""
    messages = {"one": PUBLISH + BODY, "sub/named": NAMED, "publisher": PUBLISHER, "two": PUBLISH}
    source, made = _folder(tmp_path / "in", messages), tmp_path / "parquet"
    convert_archive(spark, source, made, to="mqrfh2", mode="strict")
    nothing = (None, None, None)
    rows = [("two", bytearray(b"x"), *nothing), ("ghost", None, *nothing)]
    more = spark.createDataFrame(rows, spark.read.parquet(str(made)).schema)  # Spark asks one file for the columns
    more.write.mode("append").parquet(str(made))
    result = audit(source, made, AskedConversion(target="mqrfh2"))
    assert _found(result) == {
        "archive.losses": [f"message sub/named: {LOSS}"],
        "archive.paired": ["message two: its name stands twice: nothing says which was made of which"] * 3,
    }
    assert [(row.status, row.same_bytes, row.count) for row in result.conversions] == [("match", True, 2)]


@pytest.fixture(scope="module")
def wrong(audit: Audit) -> AuditResult:
    """The audit of an archive of which nearly every conversion is wrong."""
    made = {
        "right": PUBLISH_2 + BODY,
        "other": OTHER_TOPIC + BODY,
        "cut": PUBLISH_2[:40],
        "shorter": PUBLISH_2 + BODY[:-1],
        "longer": PUBLISH_2 + BODY + b" ",
    }
    messages = dict.fromkeys((*made, "none"), PUBLISH + BODY)
    messages |= {"publisher": PUBLISHER, "silent": NAMED, "honest": NAMED}
    reports = {"silent": _report(), "honest": _report(name="MQPSStreamName", outcome="dropped", reason="no row")}
    lines = [{"path": name, "format": "MQHRF2", "report": json.loads(report)} for name, report in reports.items()]
    made |= {"report.jsonl": b"".join(json.dumps(line).encode() + b"\n" for line in lines)}
    return audit(messages, made | dict.fromkeys(("ghost", "silent", "honest"), PUBLISH_2))


def test_wrong_conversions_are_found_with_their_bytes(wrong: AuditResult) -> None:
    found = _found(wrong)
    assert {name: len(each) for name, each in found.items()} == {
        "archive.convertible": 1,
        "archive.losses": 2,
        "conversion.reperformance": 3,
        "conversion.fields": 1,
        "conversion.report": 1,
        "archive.body": 2,
        "archive.paired": 2,
    }
    assert any("message other" in each and "Topic 'a/b' was lost" in each for each in found["conversion.reperformance"])
    assert any("message cut" in each and "cannot be read" in each for each in found["conversion.reperformance"])
    assert any("message silent" in each for each in found["conversion.reperformance"])
    assert [each.partition(":")[0] for each in found["archive.body"]] == ["message longer", "message shorter"]
    evidence = next(
        each.evidence for control in wrong.controls for each in control.sample if each.subject == "message other"
    )
    assert evidence is not None
    assert (evidence.output_bytes, evidence.written_byte, evidence.expected_byte) == (len(OTHER_TOPIC), "63", "62")


def test_a_conversion_of_no_message_here_is_found_and_a_rightly_refused_message_is_not(wrong: AuditResult) -> None:
    assert _found(wrong)["archive.paired"] == [
        "message ghost: it was converted from no message here",
        "message none: there is no conversion of it",
    ]


def test_a_report_that_keeps_silent_about_a_lost_field_is_found(wrong: AuditResult) -> None:
    (told,) = _found(wrong)["conversion.report"]
    assert told.startswith("message silent: ")
    assert "MQPSStreamName was left out without a word" in told


def test_pairs_in_the_rows_of_parquet_are_compared(
    spark: SparkSession, audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here Spark keeps its tables on the disk, as for a large archive."""
    monkeypatch.setattr(spark_module, "_FEW_BYTES", 0)
    rows = [
        ("right", bytearray(PUBLISH + BODY), bytearray(PUBLISH_2 + BODY), None),
        ("wrong", bytearray(PUBLISH + BODY), bytearray(PUBLISH_2), None),
        ("refused", bytearray(PUBLISH + BODY), None, "MQRC_RFH_ERROR"),
        ("twice", bytearray(PUBLISH), bytearray(PUBLISH_2), None),
        ("twice", bytearray(PUBLISH), bytearray(PUBLISH_2), None),
    ]
    schema = "id string, data binary, converted binary, error string"
    spark.createDataFrame(rows, schema).write.parquet(str(tmp_path / "parquet"))
    result = audit(tmp_path / "parquet")
    assert _found(result) == {
        "archive.names": ["message twice: 2 messages have this name"],
        "archive.paired": ["message refused: it was refused, though it can be converted"],
        "archive.body": ["message wrong: the bytes behind the headers are others"],
    }


def test_foreign_and_empty_input_is_not_evaluable(audit: Audit) -> None:
    result = audit({"hello.txt": b"hello", "empty": b""})
    assert result.verdict is Verdict.NOT_EVALUABLE
    assert "this is no archive of messages" in result.reason
    assert (result.subject, result.scope.records) == (Subject.ARCHIVE, 2)


def test_clean_messages_beside_a_file_that_spark_passes_over_are_not_evaluable(audit: Audit, monkeypatch) -> None:
    monkeypatch.setattr("spark_audit.archive.audit.OF_MESSAGES", (READABLE,))
    monkeypatch.setattr("spark_audit.archive.audit.HELD_BY_PAIRS", ())
    result = audit({"one": PUBLISH, "_hidden": PUBLISH[:10], ".hidden/two": PUBLISH})
    assert (result.verdict, result.scope.lines_set_aside) == (Verdict.NOT_EVALUABLE, 2)
    assert result.scope.torn_files == (".hidden/two", "_hidden")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "holds no file"),
        ({"one.bin": PUBLISH, "two.bin.part": b"RF"}, "half-written"),
        ({"_temporary/0/one.parquet": b""}, "half-written"),
        ({"one.parquet": b"", "two.bin": PUBLISH}, "Parquet and other files"),
        ({"one.parquet": b""}, "half-written"),
    ],
)
def test_a_folder_that_is_no_finished_archive_is_refused(tmp_path: Path, files: dict[str, bytes], words: str) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(ArchiveError, match=words):
        archive_files(_folder(tmp_path / "in", files))


def test_columns_that_are_missing_or_no_bytes_are_an_error_that_names_them(
    spark: SparkSession, audit: Audit, tmp_path: Path
) -> None:
    for place, schema in enumerate(("id string, text string", "id string, data string", "data binary")):
        row = tuple(bytearray(PUBLISH) if "binary" in column else "a" for column in schema.split(", "))
        folder = tmp_path / str(place)
        spark.createDataFrame([row], schema).write.parquet(str(folder))
        with pytest.raises(ArchiveError, match="it needs path or id"):
            audit(folder)
