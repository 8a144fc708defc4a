"""The report of an audit: result.json for programs, report.html for people, a summary for the terminal.

Topics, client identifiers and reasons come from strangers: the template escapes everything, and what goes to a terminal
is printed without markup and without control characters.
"""

import base64
import binascii
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_audit.result import AuditResult, Difference, Verdict, counted

RESULT_FILE: Final = "result.json"
REPORT_FILE: Final = "report.html"
_DUMP_BYTES: Final = 16
_SUMMARY_SAMPLE: Final = 3
_STYLES: Final = {Verdict.CLEAN: "bold green", Verdict.VIOLATIONS: "bold red", Verdict.NOT_EVALUABLE: "bold yellow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpRow:
    """Sixteen bytes: offset, hexadecimal, and as text. `differs` marks the row with the first byte that differs."""

    offset: str
    hexadecimal: str
    text: str
    differs: bool


def check_report_folder(folder: Path) -> None:
    """Makes the folder; OSError where `write_report` would fail there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (RESULT_FILE, REPORT_FILE):
        if (folder / name).exists():
            (folder / name).open("r+b").close()
    with tempfile.TemporaryFile(dir=folder):
        return


def write_report(result: AuditResult, folder: Path) -> tuple[Path, Path]:
    """Writes both files; OSError where the folder cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    result_file, report_file = folder / RESULT_FILE, folder / REPORT_FILE
    result_file.write_bytes(orjson.dumps(result.as_dict(), option=orjson.OPT_INDENT_2) + b"\n")
    report_file.write_text(html(result), encoding="utf-8")
    return result_file, report_file


def html(result: AuditResult) -> str:
    """The self-contained page: nothing is loaded from anywhere, no script runs."""
    environment = Environment(
        loader=PackageLoader("spark_audit", "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["moment"] = moment
    environment.globals["dump"] = dump
    return environment.get_template("report.html").render(result=result)


def moment(at_us: int) -> str:
    """A time for people, UTC; a dash for 0 or for a number that is no time."""
    try:
        return (
            datetime.fromtimestamp(at_us / 1_000_000, UTC).isoformat(sep=" ", timespec="milliseconds") if at_us else "–"
        )
    except (OverflowError, ValueError, OSError):
        return "–"


def dump(difference: Difference, side: str) -> list[DumpRow]:
    """The bytes of one side (`input`, `output` or `expected`) as rows; input is never marked."""
    encoded: str = getattr(difference, side)
    try:
        data = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return [DumpRow(offset="", hexadecimal="not base64", text="", differs=False)]
    return list(_rows(data, -1 if side == "input" else difference.byte_offset))


def _rows(data: bytes, marked: int) -> Iterator[DumpRow]:
    for offset in range(0, len(data), _DUMP_BYTES):
        row = data[offset : offset + _DUMP_BYTES]
        yield DumpRow(
            offset=f"{offset:04x}",
            hexadecimal=row.hex(" "),
            text="".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row),
            differs=offset <= marked < offset + _DUMP_BYTES,
        )


def print_summary(result: AuditResult, console: Console) -> None:
    """Verdict, controls, conversions and the first findings; plain text where the console is no terminal."""
    console.print(Text(f"{result.verdict.value}: {printable(result.reason)}", style=_STYLES[result.verdict]))
    scope = result.scope
    console.print(
        f"{counted(scope.records, 'record')} in {counted(len(scope.segments), 'segment')}, "
        f"{moment(scope.first_at_us)} to {moment(scope.last_at_us)}; "
        f"{counted(scope.lines_set_aside, 'line')} set aside; {counted(len(scope.torn_files), 'torn file')}",
        markup=False,
    )
    if not result.controls:
        return
    console.print(_controls_table(result))
    console.print(_conversions_table(result))
    for control in result.controls:
        for violation in control.sample[:_SUMMARY_SAMPLE]:
            record = f"record {violation.sequence} " if violation.sequence else ""  # a line that is none has no number
            line = f"{control.identifier} {record}{violation.subject}: {violation.detail}"
            console.print(Text(printable(line)), soft_wrap=True)


def printable(text: str) -> str:
    """Text without what could steer a terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def _controls_table(result: AuditResult) -> Table:
    table = Table("control", "violations", "question", box=None, pad_edge=False)
    for control in result.controls:
        style = "red" if control.violations and control.severity == "error" else ""
        count = f"{control.violations}" + (" (warning)" if control.violations and control.severity == "warning" else "")
        table.add_row(control.identifier, count, control.title, style=style)
    return table


def _conversions_table(result: AuditResult) -> Table:
    table = Table("conversion", "outcome", "bytes", "count", box=None, pad_edge=False)
    for row in result.conversions:
        bytes_are = "the same" if row.same_bytes else "layout differs" if row.status == "match" else ""
        table.add_row(printable(row.conversion), row.status, bytes_are, str(row.count))
    return table
