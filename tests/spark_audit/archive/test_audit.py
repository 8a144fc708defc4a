"""Archives on a real Spark: for each control a planted fault that it finds, a clean archive, and a near miss."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_audit.archive.audit import ArchiveToAudit, audit_archive
from spark_audit.archive.files import ArchiveError, archive_files
from spark_audit.bulk import convert_archive
from spark_audit.reperform.captured import Wish
from spark_audit.result import AuditResult, Subject, Verdict
from tests.headers import mqrfh, mqrfh2

BODY = b"\x00\xff 21.5 \xe9"


PUBLISH = mqrfh("MQPSCommand Publish MQPSTopic a/b")
PUBLISH_2 = mqrfh2("<psc><Command>Publish</Command><Topic>a/b</Topic></psc>")
NAMED = mqrfh("MQPSCommand Publish MQPSStreamName STOCK MQPSTopic a/b")
PUBLISHER = mqrfh("MQPSCommand RegPub MQPSTopic a/b")

Audit = Callable[..., AuditResult]


@pytest.fixture
def audit(spark: SparkSession, tmp_path: Path) -> Audit:
    """Audits two sets of files, or folders that are there."""

    def run(
        messages: dict[str, bytes] | Path, made: dict[str, bytes] | Path | None = None, wish: Wish | None = None
    ) -> AuditResult:
        source = _folder(tmp_path / "in", messages)
        converted = None if made is None else _folder(tmp_path / "made", made)
        return audit_archive(spark, ArchiveToAudit.of(source, converted), wish or Wish(), lambda _line: None)

    return run


def _folder(folder: Path, files: dict[str, bytes] | Path) -> Path:
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


def test_archive_without_conversions_is_clean_where_every_message_can_be_read_and_said(audit: Audit) -> None:
    result = audit({"one": PUBLISH + BODY, "2026/two": PUBLISH_2, "three": PUBLISH})
    assert (result.verdict, result.reason) == (Verdict.CLEAN, "3 messages, no violation")
    assert result.subject is Subject.ARCHIVE
    assert [(row.group, row.what, row.count) for row in result.balances.kinds] == [
        ("MQHRF", "Publish", 2),
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
        "archive.losses": ["message named: MQPSStreamName: it has no row in the table of Message formats (aq19780_)"],
    }
    assert [(row.name, row.count) for row in result.dropped_fields] == [("MQPSStreamName", 1)]


def test_a_code_page_that_the_audit_does_not_know_is_told_and_is_no_violation(
    spark: SparkSession, audit: Audit, tmp_path: Path
) -> None:
    rows = [("known", bytearray(PUBLISH), "MQHRF", 819, 546), ("unknown", bytearray(PUBLISH), "MQHRF", 930, 546)]
    schema = "id string, data binary, format string, ccsid int, encoding int"
    spark.createDataFrame(rows, schema).write.parquet(str(tmp_path / "parquet"))
    result = audit(tmp_path / "parquet")
    (told,) = _found(result)["archive.judged"]
    assert told.startswith("message unknown: ")
    assert "930" in told
    assert (result.verdict, _found(result).keys()) == (Verdict.CLEAN, {"archive.judged"})


def test_names_options_and_bodies_that_both_formats_have_are_no_losses(audit: Audit) -> None:
    retained = mqrfh("MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic a/b")
    result = audit({"a/one": PUBLISH, "b/one": PUBLISH + BODY, "retained": retained, "no body": PUBLISH_2})
    assert (result.verdict, _found(result)) == (Verdict.CLEAN, {})


def test_what_the_bulk_conversion_made_of_an_archive_is_performed_again(
    spark: SparkSession, audit: Audit, tmp_path: Path
) -> None:
    source = _folder(tmp_path / "in", {"one": PUBLISH + BODY, "sub/named": NAMED, "publisher": PUBLISHER})
    convert_archive(spark, source, tmp_path / "parquet", to="mqrfh2", mode="strict")
    result = audit(source, tmp_path / "parquet", Wish(target="mqrfh2"))
    assert _found(result) == {
        "archive.losses": [
            "message sub/named: MQPSStreamName: it has no row in the table of Message formats (aq19780_)"
        ]
    }
    assert [(row.status, row.same_bytes, row.count) for row in result.conversions] == [("match", True, 2)]


def test_wrong_conversions_are_found_with_their_bytes(audit: Audit) -> None:
    other_topic = mqrfh2("<psc><Command>Publish</Command><Topic>a/c</Topic></psc>")
    made = {
        "right": PUBLISH_2 + BODY,
        "other": other_topic + BODY,
        "cut": PUBLISH_2[:40],
        "shorter": PUBLISH_2 + BODY[:-1],
        "longer": PUBLISH_2 + BODY + b" ",
    }
    result = audit(dict.fromkeys((*made, "none"), PUBLISH + BODY), made)
    found = _found(result)
    assert {name: len(each) for name, each in found.items()} == {
        "conversion.reperformance": 2,
        "conversion.fields": 1,
        "archive.body": 2,
        "archive.paired": 1,
    }
    assert any("message other" in each and "Topic 'a/b' was lost" in each for each in found["conversion.reperformance"])
    assert any("message cut" in each and "cannot be read" in each for each in found["conversion.reperformance"])
    assert [each.partition(":")[0] for each in found["archive.body"]] == ["message longer", "message shorter"]
    assert found["archive.paired"] == ["message none: there is no conversion of it"]
    evidence = next(
        each.evidence for control in result.controls for each in control.sample if each.subject == "message other"
    )
    assert evidence is not None
    assert (evidence.output_bytes, evidence.written_byte, evidence.expected_byte) == (len(other_topic), "63", "62")


def test_a_conversion_of_no_message_here_is_found_and_a_rightly_refused_message_is_not(audit: Audit) -> None:
    result = audit({"one": PUBLISH, "publisher": PUBLISHER}, {"one": PUBLISH_2, "ghost": PUBLISH_2})
    assert _found(result)["archive.paired"] == ["message ghost: it was converted from no message here"]


def test_a_padded_header_is_told_with_its_first_byte_and_leaves_the_verdict_alone(audit: Audit) -> None:
    padded = mqrfh2("<psc><Command>Publish</Command><Topic>a/b</Topic></psc>        ")
    result = audit({"one": PUBLISH + BODY}, {"one": padded + BODY})
    assert result.verdict is Verdict.CLEAN
    assert _found(result) == {
        "archive.bytes": ["message one: the meaning is the same, and byte 8 is another than the audit writes"]
    }


def test_a_report_that_keeps_silent_about_a_lost_field_is_found(audit: Audit, tmp_path: Path) -> None:
    report: dict[str, Any] = {"mode": "strict", "fields": []}
    line = json.dumps({"path": "named", "format": "MQHRF2", "report": report})
    made = {"named": PUBLISH_2, "report.jsonl": line.encode() + b"\n"}
    found = _found(audit({"named": NAMED}, made, Wish(target="mqrfh2")))
    assert any("MQPSStreamName was left out without a word" in each for each in found["conversion.report"])
    report["fields"] = [{"name": "MQPSStreamName", "outcome": "dropped", "reason": "no row"}]
    honest = json.dumps({"path": "named", "format": "MQHRF2", "report": report})
    (tmp_path / "made" / "report.jsonl").write_text(honest + "\n")
    assert _found(audit(tmp_path / "in", tmp_path / "made", Wish(target="mqrfh2"))).keys() == {"archive.losses"}


def test_pairs_in_the_rows_of_parquet_are_compared(spark: SparkSession, audit: Audit, tmp_path: Path) -> None:
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


def test_clean_messages_beside_a_file_that_spark_passes_over_are_not_evaluable(audit: Audit) -> None:
    result = audit({"one": PUBLISH, "_hidden": PUBLISH[:10], ".hidden/two": PUBLISH})
    assert (result.verdict, result.scope.lines_set_aside) == (Verdict.NOT_EVALUABLE, 2)
    assert result.scope.torn_files == (".hidden/two", "_hidden")


def test_conversions_whose_names_stand_twice_are_not_taken_for_those_of_a_message(
    spark: SparkSession, audit: Audit, tmp_path: Path
) -> None:
    made = [("one", bytearray(PUBLISH_2)), ("two", bytearray(PUBLISH_2)), ("two", bytearray(b"x")), ("ghost", None)]
    spark.createDataFrame(made, "id string, data binary").write.parquet(str(tmp_path / "parquet"))
    result = audit({"one": PUBLISH, "two": PUBLISH}, tmp_path / "parquet")
    assert _found(result) == {
        "archive.paired": ["message two: its name stands twice: nothing says which was made of which"] * 3
    }


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
