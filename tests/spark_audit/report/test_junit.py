"""junit.xml: a case a control, failures with their findings, and never a green file where nothing was judged."""

from dataclasses import replace
from xml.etree import ElementTree

from spark_audit.audit import not_evaluable
from spark_audit.report.junit import junit
from spark_audit.result import AuditResult, Integrity
from tests.spark_audit.report.conftest import RESTORED


def _cases(result: AuditResult) -> dict[str, ElementTree.Element]:
    suites = ElementTree.fromstring(junit(result))
    return {case.get("name", "").partition(":")[0]: case for case in suites.iter("testcase")}


def test_each_control_is_a_case_with_its_outcome(result: AuditResult) -> None:
    outcomes = {name: [child.tag for child in case] for name, case in _cases(result).items()}
    assert outcomes == {
        "audit": [],
        "integrity": ["failure"],
        "qos.1": ["failure"],
        "conversion.reperformance": ["failure"],
        "timeliness": ["system-out"],
        "conversion.options": ["skipped"],
        "retained": ["skipped"],
        "conservation": [],
        "passages": ["skipped"],
    }


def test_a_failure_tells_its_findings_by_file_and_line_and_counts_the_rest(result: AuditResult) -> None:
    failure = _cases(result)["qos.1"].find("failure")
    assert failure is not None
    assert failure.get("message") == "81234 violations"
    lines = (failure.text or "").splitlines()
    assert lines[0].startswith("000000000001-20261120T07.jsonl, line 7: </td><script>alert('x')</script>\\u001b[31m")
    assert lines[-1] == "the first 3 of 81234"


def test_the_sums_are_those_of_the_cases(result: AuditResult) -> None:
    suites = ElementTree.fromstring(junit(result))
    for element in (suites, suites[0]):
        sums = [element.get(name) for name in ("tests", "failures", "errors", "skipped", "time")]
        assert sums == ["9", "3", "0", "3", "1.500"]


def test_an_audit_that_could_judge_nothing_is_an_error() -> None:
    suites = ElementTree.fromstring(junit(not_evaluable("the trail is empty")))
    assert suites.get("errors") == "1"
    (error,) = suites.iter("error")
    assert error.get("message") == "the trail is empty"


def test_integrity_that_was_not_checked_is_skipped_and_one_that_holds_says_how_far(result: AuditResult) -> None:
    assert [child.tag for child in _cases(replace(result, integrity=Integrity()))["integrity"]] == ["skipped"]
    held = Integrity(verdict="consistent, not anchored", reason="9 records, every hash holds")
    (told,) = _cases(replace(result, integrity=held))["integrity"]
    assert (told.tag, told.text) == ("system-out", "consistent, not anchored: 9 records, every hash holds")


def test_a_gap_that_nobody_has_accepted_is_a_failure_that_tells_it(result: AuditResult) -> None:
    (failure,) = _cases(replace(result, integrity=RESTORED))["integrity"]
    assert (failure.tag, failure.get("type")) == ("failure", "restored")
    assert failure.text == f"restored at 2026-11-20T07:00:00Z, batches 1 to 4 missing, of gateway {'0a' * 12}"


def test_the_document_holds_only_what_xml_can() -> None:
    (error,) = _cases(not_evaluable("\x00\x08\ufffe\ud800]]>&<"))["audit"]
    assert (error.tag, error.get("message")) == ("error", r"\u0000\u0008\ufffe\ud800]]>&<")
