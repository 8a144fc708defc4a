"""The files of a report: whole or not at all, result.json by its schema, and nothing of an earlier audit left."""

import dataclasses
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

from spark_audit import result as values
from spark_audit.audit import not_evaluable
from spark_audit.report import check_report_folder, html, print_summary, write_report
from spark_audit.report.integrity import integrity_of
from spark_audit.result import EXCEPTIONS_FOLDER, AuditResult
from spark_audit.verify import verify
from tests.spark_audit.report.conftest import HOSTILE, RESTORED


def test_each_file_is_written_and_result_json_the_last(result: AuditResult, tmp_path: Path) -> None:
    written = write_report(result, tmp_path / "new" / "folder")
    assert [file.name for file in written] == ["report.html", "junit.xml", "audit.sarif", "result.json"]
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == sorted(
        file.name for file in written
    )
    assert written[0].read_text() == html(result)


def test_the_result_holds_everything_and_passes_its_schema(
    result: AuditResult, valid: Callable[[str], dict[str, object]], tmp_path: Path
) -> None:
    document = valid(write_report(result, tmp_path)[-1].read_text())
    assert (document["result_version"], document["verdict"]) == (3, "violations")
    assert document["reason"] == HOSTILE
    assert document["versions"] == {"rfhbridge": "0.1.0", "record": "1"}


def test_a_result_of_nothing_passes_the_schema_too(valid: Callable[[str], dict[str, object]]) -> None:
    assert valid(not_evaluable("the trail is empty").as_json())["verdict"] == "not evaluable"


def test_the_outcome_of_the_check_without_spark_passes_the_schema(
    result: AuditResult, valid: Callable[[str], dict[str, object]], tmp_path: Path
) -> None:
    (tmp_path / "000000000001-20261120T07.jsonl").write_bytes(b"no record\n")
    integrity = integrity_of(verify(tmp_path))
    assert (integrity.problem_count, integrity.problems[0].line) == (1, 1)
    valid(replace(result, integrity=integrity).as_json())
    valid(replace(result, integrity=RESTORED).as_json())


def test_the_result_file_is_ascii_so_that_it_steers_no_terminal(result: AuditResult) -> None:
    text = result.as_json()
    assert text.isascii()
    assert all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.parametrize(
    "place", ["", "scope", "control", "evidence", "violation", "integrity", "integrity_gap", "latency"]
)
def test_the_schema_names_exactly_the_fields_of_the_values(place: str) -> None:
    schema = json.loads((files("spark_audit.report") / "result.schema.json").read_text())
    described = schema["$defs"][place] if place else schema
    value = {"": "AuditResult", "control": "ControlResult"}.get(place, place.title().replace("_", ""))
    names = {field.name for field in dataclasses.fields(getattr(values, value))}
    assert set(described["properties"]) - {"status"} == names
    assert described["additionalProperties"] is False
    assert set(described["required"]) == set(described["properties"])


def test_an_unknown_field_does_not_pass_the_schema(
    result: AuditResult, valid: Callable[[str], dict[str, object]]
) -> None:
    with pytest.raises(jsonschema.ValidationError, match="Additional properties are not allowed"):
        valid(json.dumps(result.as_dict() | {"colour": "red"}))


def test_violations_of_an_earlier_audit_go_where_this_one_wrote_none(result: AuditResult, tmp_path: Path) -> None:
    earlier = tmp_path / EXCEPTIONS_FOLDER
    earlier.mkdir()
    write_report(result, tmp_path)
    assert earlier.is_dir()
    write_report(not_evaluable("the trail is empty"), tmp_path)
    assert not earlier.exists()


def test_a_folder_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(IsADirectoryError):
        check_report_folder(tmp_path)
    check_report_folder(tmp_path / "new")


def test_the_summary_on_a_pipe_is_plain_and_steers_no_terminal(result: AuditResult) -> None:
    pipe = io.StringIO()
    print_summary(result, Console(file=pipe, width=160))
    text = pipe.getvalue()
    assert all(character.isprintable() or character == "\n" for character in text)
    assert text.startswith("violations: ")
    assert "qos.1 record 7" in text
    assert "1 (warning)" in text
    assert "not evaluable" in text


def test_a_control_that_had_nothing_to_test_does_not_say_that_it_found_nothing(result: AuditResult) -> None:
    control = replace(result.controls[0], violations=0, tested=0)
    pipe = io.StringIO()
    print_summary(replace(result, controls=(control,)), Console(file=pipe, width=160))
    assert re.search(rf"{re.escape(control.identifier)} +nothing to test +0 ", pipe.getvalue())


def test_a_result_without_controls_has_a_summary() -> None:
    pipe = io.StringIO()
    print_summary(not_evaluable("the trail is empty"), Console(file=pipe, width=160))
    assert pipe.getvalue().startswith("not evaluable: the trail is empty\n")
