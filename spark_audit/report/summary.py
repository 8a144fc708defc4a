"""The summary of an audit for the terminal, without characters that could steer it; plain text without a terminal."""

from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_audit.report.text import moment, visible
from spark_audit.result import AuditResult, ControlResult, ControlStatus, Subject, Verdict, counted

_SUMMARY_SAMPLE: Final = 3
#: The most characters of a finding. Its detail sometimes has several topics.
_LINE_SHOWN: Final = 1_000
_STYLES: Final = {Verdict.CLEAN: "bold green", Verdict.VIOLATIONS: "bold red", Verdict.NOT_EVALUABLE: "bold yellow"}


def print_summary(result: AuditResult, console: Console) -> None:
    """Prints verdict, controls, conversions and the first findings; plain text if the console is no terminal."""
    console.print(Text(f"{result.verdict.value}: {visible(result.reason, _LINE_SHOWN)}", style=_STYLES[result.verdict]))
    console.print(_scope_line(result), markup=False)
    if not result.controls:
        return
    console.print(_controls_table(result))
    console.print(_conversions_table(result))
    for control in result.controls:
        for violation in control.sample[:_SUMMARY_SAMPLE]:
            record = f"record {violation.sequence} " if violation.sequence else ""  # some lines are no records
            line = f"{control.identifier} {record}{violation.subject}: {violation.detail}"
            console.print(Text(visible(line, _LINE_SHOWN)), soft_wrap=True)


def _scope_line(result: AuditResult) -> str:
    scope = result.scope
    if result.subject is Subject.ARCHIVE:
        unread = f"; {counted(scope.lines_set_aside, 'file')} not read" if scope.lines_set_aside else ""
        return f"{counted(scope.records, 'message')} in {counted(scope.segment_count, 'file')}{unread}"
    return (
        f"{counted(scope.records, 'record')} in {counted(scope.segment_count, 'segment')}, "
        f"{moment(scope.first_at_us)} to {moment(scope.last_at_us)}; "
        f"{counted(scope.lines_set_aside, 'line')} set aside; {counted(len(scope.torn_files), 'torn file')}"
    )


def _controls_table(result: AuditResult) -> Table:
    table = Table("control", "violations", "tested", "question", box=None, pad_edge=False)
    for control in result.controls:
        style = "red" if control.violations and control.severity == "error" else ""
        table.add_row(control.identifier, _found(control), _tested(control), control.title, style=style)
    return table


def _found(control: ControlResult) -> str:
    if control.status not in (ControlStatus.HELD, ControlStatus.VIOLATED):
        return control.status.value
    return f"{control.violations}" + (" (warning)" if control.violations and control.severity == "warning" else "")


def _tested(control: ControlResult) -> str:
    is_run = control.status not in (ControlStatus.NOT_EVALUABLE, ControlStatus.OFF)
    return f"{control.tested} {control.items}" if is_run else ""


def _conversions_table(result: AuditResult) -> Table:
    table = Table("conversion", "outcome", "bytes", "count", box=None, pad_edge=False)
    for row in result.conversions:
        bytes_are = "the same" if row.same_bytes else "layout differs" if row.status == "match" else ""
        table.add_row(visible(row.conversion), row.status, bytes_are, str(row.count))
    return table
