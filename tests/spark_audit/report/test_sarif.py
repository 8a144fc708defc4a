"""audit.sarif: what SARIF 2.1.0 asks for, files and lines as places, and no link or placeholder of a stranger's."""

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from spark_audit.audit import not_evaluable
from spark_audit.report.sarif import sarif
from spark_audit.result import AuditResult
from tests.spark_audit.report.conftest import RESTORED

_MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
_PLACE = {
    "type": "object",
    "required": ["artifactLocation"],
    "additionalProperties": False,
    "properties": {
        "artifactLocation": {"type": "object", "required": ["uri"], "properties": {"uri": {"format": "uri-reference"}}},
        "region": {"type": "object", "properties": {"startLine": {"type": "integer", "minimum": 1}}},
    },
}
#: What the standard requires (sections 3.13, 3.14, 3.18, 3.19, 3.20, 3.27, 3.28, 3.29, 3.49), of the members in use.
_ESSENTIALS = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {"required": ["driver"], "properties": {"driver": {"$ref": "#/$defs/driver"}}},
                    "invocations": {"type": "array", "items": {"required": ["executionSuccessful"]}},
                    "results": {"type": "array", "items": {"$ref": "#/$defs/result"}},
                },
            },
        },
    },
    "$defs": {
        "driver": {
            "required": ["name", "rules"],
            "properties": {
                "rules": {
                    "type": "array",
                    "uniqueItems": True,
                    "items": {
                        "required": ["id"],
                        "properties": {
                            "shortDescription": _MESSAGE,
                            "help": _MESSAGE,
                            "defaultConfiguration": {
                                "properties": {"level": {"enum": ["none", "note", "warning", "error"]}}
                            },
                        },
                    },
                }
            },
        },
        "result": {
            "required": ["message", "ruleId", "ruleIndex"],
            "properties": {
                "message": _MESSAGE,
                "kind": {"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
                "level": {"enum": ["none", "note", "warning", "error"]},
                "locations": {"type": "array", "items": {"properties": {"physicalLocation": _PLACE}}},
                "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        },
    },
}


def _run(result: AuditResult) -> dict[str, Any]:
    document = json.loads(sarif(result))
    jsonschema.Draft202012Validator(_ESSENTIALS, format_checker=jsonschema.FormatChecker()).validate(document)
    (run,) = document["runs"]
    assert isinstance(run, dict)
    return run


def test_rules_are_controls_and_each_result_points_to_its_own(result: AuditResult) -> None:
    run = _run(result)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == ["integrity.files", *(control.identifier for control in result.controls)]
    assert all(rules[found["ruleIndex"]] == found["ruleId"] for found in run["results"])
    assert len(run["results"]) == 1 + 3 + 2 + 1 + 1


def test_a_finding_has_its_level_file_line_and_record(result: AuditResult) -> None:
    found = _run(result)["results"][1]
    assert (found["ruleId"], found["level"]) == ("qos.1", "error")
    (location,) = found["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "000000000001-20261120T07.jsonl", "uriBaseId": "TRAIL"},
        "region": {"startLine": 7},
    }
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "0102030405060708090a0b0c/7"


def test_a_warning_is_one_and_a_control_that_did_not_judge_is_open(result: AuditResult) -> None:
    by_rule = {found["ruleId"]: found for found in _run(result)["results"]}
    assert by_rule["timeliness"]["level"] == "warning"
    assert (by_rule["conversion.options"]["kind"], by_rule["conversion.options"]["level"]) == ("open", "none")
    assert "retained" not in by_rule


def test_what_strangers_wrote_makes_no_link_and_no_placeholder(result: AuditResult) -> None:
    text = _run(result)["results"][1]["message"]["text"]
    assert "{{{{ 7 * 7 }}}}" in text
    assert r"\[click\](javascript:x)" in text
    assert r"\\u202egnp.exe" in text
    assert sarif(result).isascii()


def test_the_same_finding_has_the_same_fingerprint_and_another_another(result: AuditResult) -> None:
    prints = [found.get("partialFingerprints") for found in _run(result)["results"][1:7]]
    again = [found.get("partialFingerprints") for found in _run(result)["results"][1:7]]
    assert prints == again
    assert len({str(each) for each in prints}) == 6


def test_a_place_that_is_not_known_is_left_out(result: AuditResult) -> None:
    control = result.controls[2]
    (found,) = control.sample
    lost = replace(control, sample=(replace(found, segment="", line=0),))
    (location,) = _run(replace(result, controls=(lost,)))["results"][1]["locations"]
    assert "physicalLocation" not in location


@pytest.mark.parametrize("name", ["a b%?#.jsonl", "../../etc/passwd", "\ud800"])
def test_a_hostile_file_name_is_a_relative_reference(result: AuditResult, name: str) -> None:
    control = result.controls[2]
    (found,) = control.sample
    odd = replace(control, sample=(replace(found, segment=name),))
    (location,) = _run(replace(result, controls=(odd,)))["results"][1]["locations"]
    uri = location["physicalLocation"]["artifactLocation"]["uri"]
    assert not set(uri) & set(" ?#\ud800")


def test_an_audit_that_could_judge_nothing_did_not_succeed() -> None:
    (invocation,) = _run(not_evaluable("the trail is empty"))["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 2)
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "the trail is empty"


def test_a_gap_that_nobody_has_accepted_is_a_warning(result: AuditResult) -> None:
    document = json.loads(sarif(replace(result, integrity=RESTORED, controls=())))
    (gap,) = document["runs"][0]["results"]
    assert (gap["ruleId"], gap["level"]) == ("integrity.files", "warning")
    assert gap["message"]["text"] == "restored at 2026-11-20T07:00:00Z, batches 1 to 4 missing"
    assert gap["properties"] == {"finding": "restored", "record": "ef" * 32}
