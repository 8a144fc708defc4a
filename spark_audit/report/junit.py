"""junit.xml: a test case for each control, so that a build server shows an audit as it shows tests.

A control of severity error fails if it found something. A control that could not judge, or had nothing to test, is
skipped, with its reason. A warning passes, with its findings. The first case is the audit itself. It is an error if
nothing could be judged, because a file without cases would look like success. The second case is the integrity of the
files.
"""

import re
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from spark_audit.controls.control import Severity
from spark_audit.report.text import visible
from spark_audit.result import NOT_CHECKED, AuditResult, ControlResult, ControlStatus, Subject, Verdict, counted
from spark_audit.verify import Verdict as VerifyVerdict

_SUITE: Final = "rfhbridge audit"
#: Characters of one finding.
_FINDING_SHOWN: Final = 1_000
_RESTORED: Final = VerifyVerdict.RESTORED.value
_UNKNOWN: Final = (NOT_CHECKED, Verdict.NOT_EVALUABLE.value)
#: Characters that XML 1.0 cannot hold in any form (section 2.2).
_NO_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(result: AuditResult) -> str:
    """The document, with its declaration and a line feed at the end."""
    suites = Element("testsuites", name=_SUITE)
    suite = SubElement(suites, "testsuite", name=_SUITE, timestamp=result.audited_at)
    _properties(suite, result)
    _add_audit(suite, result)
    if result.subject is Subject.TRAIL:
        _add_integrity(suite, result)
    for control in result.controls:
        _add_control(suite, control)
    _add_sums(suites, suite, sum(seconds for _step, seconds in result.seconds))
    indent(suites)
    text = tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _properties(suite: Element, result: AuditResult) -> None:
    properties = SubElement(suite, "properties")
    scope = result.scope
    told = {
        "verdict": result.verdict.value,
        "result_version": str(result.result_version),
        "records": str(scope.records),
        "segments": str(scope.segment_count),
        **dict(result.versions),
    }
    for name, value in told.items():
        SubElement(properties, "property", name=_text(name), value=_text(value))


def _add_audit(suite: Element, result: AuditResult) -> None:
    case = _case(suite, "audit", "There was something to judge")
    if result.verdict is Verdict.NOT_EVALUABLE:
        SubElement(case, "error", type=result.verdict.value, message=_text(result.reason))


def _add_integrity(suite: Element, result: AuditResult) -> None:
    integrity = result.integrity
    case = _case(suite, "integrity", "The files of the trail are as they were written")
    if integrity.problem_count or integrity.verdict == _RESTORED:
        failure = SubElement(case, "failure", type=integrity.verdict, message=_text(integrity.reason))
        problems = [_place(problem.segment, problem.line) + _text(problem.what) for problem in integrity.problems]
        gaps = [_text(f"{gap.what}, of gateway {gap.gateway}") for gap in integrity.gaps if not gap.is_accepted]
        failure.text = "\n".join((*problems, *gaps))
    elif integrity.verdict in _UNKNOWN:
        SubElement(case, "skipped", message=_text(integrity.reason or integrity.verdict))
    else:
        SubElement(case, "system-out").text = _text(f"{integrity.verdict}: {integrity.reason}")


def _add_control(suite: Element, control: ControlResult) -> None:
    case = _case(suite, control.identifier, control.title)
    if control.status is ControlStatus.NOT_EVALUABLE:
        SubElement(case, "skipped", message=_text(control.not_evaluable))
    elif control.status is ControlStatus.OFF:
        SubElement(case, "skipped", message="switched off by the policy")
    elif control.status is ControlStatus.NOTHING_TO_TEST:
        SubElement(case, "skipped", message=f"there are no {control.items} to test")
    elif control.violations and control.severity == Severity.ERROR:
        failure = SubElement(case, "failure", type=control.identifier, message=counted(control.violations, "violation"))
        failure.text = _findings(control)
    elif control.violations:
        SubElement(case, "system-out").text = _findings(control)


def _findings(control: ControlResult) -> str:
    lines = [
        f"{_place(found.segment, found.line)}{_text(found.subject)}: {_text(found.detail)}" for found in control.sample
    ]
    if control.violations > len(control.sample):
        lines.append(f"the first {len(control.sample)} of {control.violations}")
    return "\n".join(lines)


def _place(segment: str, line: int) -> str:
    if not segment:
        return ""
    return f"{_text(segment)}, line {line}: " if line else f"{_text(segment)}: "


def _case(suite: Element, name: str, title: str) -> Element:
    group = name.partition(".")[0]
    return SubElement(suite, "testcase", classname=f"rfhbridge.audit.{group}", name=_text(f"{name}: {title}"))


def _add_sums(suites: Element, suite: Element, seconds: float) -> None:
    for element in (suites, suite):
        element.set("tests", str(len(suite.findall("testcase"))))
        element.set("failures", str(len(suite.findall("testcase/failure"))))
        element.set("errors", str(len(suite.findall("testcase/error"))))
        element.set("skipped", str(len(suite.findall("testcase/skipped"))))
        element.set("time", f"{seconds:.3f}")


def _text(text: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", visible(text, _FINDING_SHOWN))
