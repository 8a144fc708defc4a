"""The frame of every command: its exit code, and one line on standard error for each failure."""

import contextlib
import errno
import importlib.metadata
import logging
import os
import sys
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from gateway import log
from gateway.cli.invocation import invocation_of
from gateway.config import ConfigurationError
from mappings.errors import MappingError
from mappings.table import TableError
from mq_adapters.reasons import QueueManagerError, StoreError

#: 128 + SIGINT, as shells count.
INTERRUPTED: Final = 130
#: The words that pydantic puts before those of a validator.
_PYDANTIC_WORDS: Final = "Value error, "
_log = logging.getLogger(__name__)


class ExitCode(IntEnum):
    """The exit codes of all commands except the audit commands."""

    DONE = 0
    FAILED = 1
    USAGE = 2


class AuditExitCode(IntEnum):
    """The exit codes of audit commands."""

    CLEAN = 0
    VIOLATIONS = 1
    NOT_EVALUABLE = 2
    USAGE = 3


class CommandFailed(Exception):
    """A command failed. The text says why, and what to do about it."""


class UnreadableConfiguration(CommandFailed):
    """The file of --config cannot be read. Every command, even an audit command, then ends with exit code 2."""


class NotEvaluable(CommandFailed):
    """A command that judges has found nothing to judge.

    It ends with exit code 2, because 1 means a fault in the subject.
    """


#: What to do about a file, by the error of the operating system.
_HINTS: Final = {
    errno.ENOENT: "see that the path is right",
    errno.ENOTDIR: "see that the path is right",
    errno.EISDIR: "name a file, not a folder",
    errno.EACCES: "see who may read and write it",
    errno.ENOSPC: "make room on that disk, or name another one",
}
#: Errors that are no fault of the program, but of the peer, the operator or the disk.
_EXPECTED: Final = (
    CommandFailed,
    ConfigurationError,
    MappingError,
    OSError,
    QueueManagerError,
    StoreError,
    TableError,
)


class Application(TyperGroup):
    """The root of the commands. `main` ends the process with an exit code and never with a traceback."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> NoReturn:
        arguments = sys.argv[1:] if args is None else list(args)
        is_audit = next((argument for argument in arguments if argument in self.commands), "") == "audit"
        log.configure()
        try:
            code = self._run(prog_name or "rfhbridge", arguments)
            sys.stdout.flush()
        except BrokenPipeError:
            forget_standard_output()
            code = AuditExitCode.NOT_EVALUABLE if is_audit else ExitCode.FAILED
        except KeyboardInterrupt:
            code = INTERRUPTED
        except typer.Abort:  # somebody answered a question with no, or ended the input
            _tell("not done")
            code = AuditExitCode.NOT_EVALUABLE if is_audit else ExitCode.FAILED
        except typer.TyperException as error:
            _tell(" ".join(error.format_message().replace(_PYDANTIC_WORDS, "").split()) + _where_help_is(error))
            code = AuditExitCode.USAGE if is_audit else ExitCode.USAGE
        except (UnreadableConfiguration, NotEvaluable) as error:
            _tell(_sentence(error))
            code = ExitCode.USAGE
        except _EXPECTED as error:
            for line in error.complaints if isinstance(error, ConfigurationError) else (_sentence(error),):
                _tell(line)
            code = AuditExitCode.NOT_EVALUABLE if is_audit else ExitCode.FAILED
        except Exception as error:  # the border where a fault of this program becomes a line
            _tell(f"fault of this program: {error!r} (report it, with what --log-level debug shows)")
            _log.debug("command crashed", exc_info=error)
            code = AuditExitCode.NOT_EVALUABLE if is_audit else ExitCode.FAILED
        sys.exit(code)

    def _run(self, prog_name: str, arguments: Sequence[str]) -> int:
        invocation = invocation_of(arguments)
        log.configure(invocation.log_level or "info", invocation.log_format or "text")
        if invocation.shows_version:
            typer.echo(f"{prog_name} {version()}")
            return ExitCode.DONE
        try:
            with self.make_context(prog_name, list(invocation.arguments), obj=invocation) as context:
                self.invoke(context)
        except typer.Exit as ended:
            return ended.exit_code
        return ExitCode.DONE


def version() -> str:
    """The version of the installed distribution."""
    try:
        return importlib.metadata.version("rfhbridge")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _tell(text: str) -> None:
    """Writes one line to standard error, or one event if the log is JSON."""
    if log.is_json():
        _log.error("command failed error=%s", text)
    else:
        typer.echo(f"rfhbridge: {text}", err=True)


def _sentence(error: Exception) -> str:
    """The text of an error, on one line."""
    if isinstance(error, OSError) and error.strerror:
        names = " and ".join(str(name) for name in (error.filename, error.filename2) if name is not None)
        hint = f" ({_HINTS[error.errno]})" if names and error.errno in _HINTS else ""
        return f"{names}: {error.strerror}{hint}" if names else error.strerror
    return " ".join(str(error).replace(_PYDANTIC_WORDS, "").split())


def _where_help_is(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return "" if context is None else f" (see '{context.command_path} --help')"


def forget_standard_output() -> None:
    """Discards buffered output silently, because its reader has gone."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
