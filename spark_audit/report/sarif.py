"""audit.sarif: findings as SARIF 2.1.0 (OASIS), for viewers of static analysis: rules are controls, places are lines.

Messages are plain text of SARIF, in which brackets would make a link and braces a placeholder (sections 3.11.5 and
3.11.6): both are escaped. A control that could not judge is a result of kind `open`.
"""

import hashlib
import json
import shlex
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from spark_audit.report.text import visible
from spark_audit.result import (
    AuditResult,
    ControlResult,
    ControlStatus,
    IntegrityGap,
    IntegrityProblem,
    Verdict,
    Violation,
)

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
#: The placeholder of the trail's folder, which only the reader of the file knows.
_BASE: Final = "TRAIL"
_INTEGRITY: Final = "integrity.files"
#: Characters of one finding.
_FINDING_SHOWN: Final = 1_000
_ESCAPES: Final = str.maketrans({"\\": r"\\", "[": r"\[", "]": r"\]", "{": "{{", "}": "}}"})

#: A JSON object of SARIF, which has many optional members.
Json = dict[str, object]


def sarif(result: AuditResult) -> str:
    """The document, ASCII, with a line feed at the end."""
    versions = dict(result.versions)
    driver: Json = {
        "name": "rfhbridge audit",
        "version": versions.get("rfhbridge", "unknown"),
        "rules": [_integrity_rule(), *(_rule(control) for control in result.controls)],
    }
    run: Json = {
        "tool": {"driver": driver},
        "invocations": [_invocation(result)],
        "originalUriBaseIds": {
            _BASE: {"description": _message(f"The folder of the {result.subject.value} that was audited.")}
        },
        "results": list(_results(result)),
        "columnKind": "unicodeCodePoints",
        "properties": {"verdict": result.verdict.value, "reason": visible(result.reason, _FINDING_SHOWN)},
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(control: ControlResult) -> Json:
    return {
        "id": control.identifier,
        "shortDescription": _message(control.title),
        "help": _message(f"Source: {control.source}"),
        "defaultConfiguration": {"level": _level(control), "enabled": control.status is not ControlStatus.OFF},
        "properties": {"parameters": [str(parameter) for parameter in control.parameters]},
    }


def _integrity_rule() -> Json:
    return {
        "id": _INTEGRITY,
        "shortDescription": _message("The files of the trail are as they were written"),
        "help": _message("Source: spark_audit.verify"),
        "defaultConfiguration": {"level": "error"},
    }


def _invocation(result: AuditResult) -> Json:
    invocation: Json = {
        "executionSuccessful": result.verdict is not Verdict.NOT_EVALUABLE,
        "endTimeUtc": result.audited_at.replace("+00:00", "Z"),
        "exitCode": result.verdict.exit_code,
    }
    if result.command:
        invocation["commandLine"] = visible(shlex.join(result.command), _FINDING_SHOWN)
    if result.verdict is Verdict.NOT_EVALUABLE:
        invocation["toolExecutionNotifications"] = [{"level": "error", "message": _message(result.reason)}]
    return invocation


def _results(result: AuditResult) -> Iterator[Json]:
    for problem in result.integrity.problems:
        yield _problem(problem)
    for gap in result.integrity.gaps:
        if not gap.is_accepted:
            yield _gap(gap)
    for index, control in enumerate(result.controls, start=1):
        if control.status is ControlStatus.NOT_EVALUABLE:
            text = f"not evaluable: {control.not_evaluable}"
            yield {**_of_rule(control.identifier, index), "kind": "open", "level": "none", "message": _message(text)}
        for found in control.sample:
            yield _finding(control, index, found)


def _problem(problem: IntegrityProblem) -> Json:
    return {
        **_of_rule(_INTEGRITY, 0),
        "level": "error",
        "message": _message(problem.what),
        "locations": [{"physicalLocation": _place(problem.segment, problem.line)}],
        "properties": {"finding": problem.finding},
    }


def _gap(gap: IntegrityGap) -> Json:
    """A gap as a warning. The trail itself tells it, and nobody has accepted it yet."""
    return {
        **_of_rule(_INTEGRITY, 0),
        "level": "warning",
        "message": _message(gap.what),
        "locations": [{"logicalLocations": [{"fullyQualifiedName": visible(gap.gateway), "kind": "member"}]}],
        "properties": {"finding": "restored", "record": visible(gap.record)},
    }


def _finding(control: ControlResult, index: int, found: Violation) -> Json:
    name = visible(f"{found.gateway}/{found.sequence}")
    location: Json = {"logicalLocations": [{"fullyQualifiedName": name, "kind": "member"}]}
    if found.segment:
        location["physicalLocation"] = _place(found.segment, found.line)
    identity = "\0".join((control.identifier, found.gateway, str(found.sequence), found.subject, found.detail))
    fingerprint = hashlib.sha256(identity.encode(errors="backslashreplace")).hexdigest()
    return {
        **_of_rule(control.identifier, index),
        "level": _level(control),
        "message": _message(f"{found.subject}: {found.detail}"),
        "locations": [location],
        "partialFingerprints": {"finding/v1": fingerprint},
    }


def _level(control: ControlResult) -> str:
    """SARIF's word for a severity: error, warning, or none if the control is off."""
    return "none" if control.status is ControlStatus.OFF else control.severity


def _of_rule(identifier: str, index: int) -> Json:
    return {"ruleId": identifier, "ruleIndex": index}


def _place(segment: str, line: int) -> Json:
    place: Json = {"artifactLocation": {"uri": quote(segment, errors="replace"), "uriBaseId": _BASE}}
    if line > 0:
        place["region"] = {"startLine": line}
    return place


def _message(text: str) -> Json:
    return {"text": visible(text, _FINDING_SHOWN).translate(_ESCAPES)}
