"""The end of `run` and `bulk`: the report in its folder, the summary or the JSON on stdout, and an exit code."""

import argparse
import getpass
import os
import socket
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console

from spark_audit.commands.terminal import Tell, not_written
from spark_audit.options import RECEIPT
from spark_audit.report import print_summary, write_report
from spark_audit.report.destination import Destination
from spark_audit.result import AuditResult

#: Characters of a line without a terminal.
_PIPE_COLUMNS: Final = 160


def show_result(
    result: AuditResult,
    destination: Destination,
    options: argparse.Namespace,
    tell: Tell,
    seal: Callable[[Iterable[Path]], None] = lambda _files: None,
) -> int:
    """Writes the report, has its files sealed, and shows the result; returns the exit code."""
    result = replace(result, auditor=_auditor())
    folder = destination.folder
    try:
        files = write_report(result, folder)
        seal([*files, *(folder / name for name in (result.exceptions,) if name)])
        destination.publish()
        if receipt := os.environ.get(RECEIPT):
            Path(receipt).touch()
    except OSError as error:
        return not_written(options.out, error, tell)
    names = (*(file.name for file in files), *filter(None, (result.exceptions,)))
    tell(f"wrote {', '.join(names)} in {options.out}")
    _print(result.as_json() if options.as_json else _summary(result))
    return result.verdict.exit_code


def _summary(result: AuditResult) -> str:
    console = Console(width=None if sys.stdout.isatty() else _PIPE_COLUMNS, highlight=False)
    with console.capture() as summary:
        print_summary(result, console)
    return summary.get()


def _print(text: str) -> None:
    """Prints to a reader who may stop early, as `head` does: the report is complete, and the verdict stays."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python flushes at its end


def _auditor() -> str:
    """The user of the operating system and its machine; the machine alone if the user has no name here."""
    machine = socket.gethostname()
    try:
        return f"{getpass.getuser()}@{machine}"
    except (KeyError, OSError):
        return machine
