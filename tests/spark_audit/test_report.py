"""What people and programs get: hostile text stays text, bytes are shown with the first that differs, JSON is whole."""

import base64
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from spark_audit.audit import not_evaluable
from spark_audit.report import dump, html, moment, print_summary, write_report
from spark_audit.result import (
    AuditResult,
    ControlResult,
    ConversionCount,
    Count,
    Difference,
    ProgramStart,
    Verdict,
    Violation,
    Volumes,
)

HOSTILE = "</td><script>alert('x')</script>\x1b[31m{{ 7 * 7 }}"
ESCAPED = "&lt;/td&gt;&lt;script&gt;"


@pytest.fixture
def result() -> AuditResult:
    """A result in which everything that a stranger can write is hostile."""
    violation = Violation(gateway=HOSTILE, sequence=7, subject=HOSTILE, detail=HOSTILE)
    return replace(
        not_evaluable(HOSTILE),
        verdict=Verdict.VIOLATIONS,
        controls=(
            ControlResult(
                identifier="qos.1",
                title="QoS 1",
                severity="error",
                source="seed 004",
                violations=3,
                sample=(violation,),
                seconds=0.1,
            ),
        ),
        conversions=(ConversionCount(conversion=HOSTILE, status="match", same_bytes=False, count=3),),
        differences=(_difference(),),
        volumes=Volumes(
            kinds=(Count(group=HOSTILE, what=HOSTILE, count=1),),
            exchanges=(),
            copies=(),
            passages=(),
            dropped_fields=(),
        ),
        starts=(
            ProgramStart(
                gateway="a", at_us=10**18, code_version=HOSTILE, table_version="1", configuration_sha256=HOSTILE
            ),
        ),
    )


def _difference() -> Difference:
    return Difference(
        gateway="a",
        sequence=7,
        message_id=HOSTILE,
        conversion="packet_to_header",
        detail=HOSTILE,
        byte_offset=17,
        input=base64.b64encode(bytes(range(20))).decode(),
        output=base64.b64encode(b"<Topic>a/c</Topic></psc>").decode(),
        expected="not base64",
    )


def test_the_page_escapes_what_strangers_wrote(result) -> None:
    page = html(result)
    assert "<script" not in page
    assert page.count(ESCAPED) >= 10
    assert "49" not in page[page.index(ESCAPED) : page.index(ESCAPED) + 80]


def test_the_page_loads_nothing_and_has_its_verdict_first(result) -> None:
    page = html(result)
    assert "default-src 'none'" in page
    assert not any(outside in page for outside in ("http://", "https://", "src=", "<link"))
    assert page.index("<h1>violations</h1>") < page.index("<h2>Scope</h2>") < page.index("<h2>Controls</h2>")


def test_the_first_byte_that_differs_is_marked_in_what_was_written_alone() -> None:
    difference = _difference()
    assert [row.differs for row in dump(difference, "output")] == [False, True]
    assert [row.differs for row in dump(difference, "input")] == [False, False]
    assert dump(difference, "output")[0].hexadecimal == "3c 54 6f 70 69 63 3e 61 2f 63 3c 2f 54 6f 70 69"
    assert dump(difference, "output")[1].text == "c></psc>"
    assert dump(difference, "input")[0].text == "." * 16
    assert dump(difference, "expected")[0].hexadecimal == "not base64"


def test_the_summary_on_a_pipe_is_plain_and_steers_no_terminal(result) -> None:
    pipe = io.StringIO()
    print_summary(result, Console(file=pipe, width=160))
    assert "\x1b" not in pipe.getvalue()
    assert pipe.getvalue().startswith("violations: ")
    assert "qos.1 record 7" in pipe.getvalue()


def test_the_result_file_holds_everything_under_its_version(result, tmp_path: Path) -> None:
    result_file, report_file = write_report(result, tmp_path / "new" / "folder")
    written = json.loads(result_file.read_text())
    assert written == json.loads(json.dumps(result.as_dict()))
    assert (written["result_version"], written["verdict"], written["versions"]["record"]) == (1, "violations", "1")
    assert report_file.read_text() == html(result)


def test_a_result_without_controls_still_has_a_page_and_a_summary() -> None:
    pipe = io.StringIO()
    print_summary(not_evaluable("the trail is empty"), Console(file=pipe, width=160))
    assert pipe.getvalue().startswith("not evaluable: the trail is empty\n")
    assert "the trail is empty" in html(not_evaluable("the trail is empty"))


def test_times_are_shown_in_utc_and_a_number_that_is_none_as_a_dash() -> None:
    assert moment(1_795_158_000_123_000) == "2026-11-20 07:00:00.123+00:00"
    assert [moment(0), moment(2**62), moment(-(2**62))] == ["–"] * 3
