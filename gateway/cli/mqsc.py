"""`rfhbridge mqsc`: objects of the embedded queue manager by MQSC commands, from a file or a terminal."""

import shlex
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Annotated, Final

import typer

from gateway.cli.application import CommandFailed, ExitCode
from gateway.cli.connection import connected
from gateway.cli.files import read_input
from gateway.cli.settings_options import ConfigOption, DataOption, check_store, settings_for
from gateway.cli.terminal import write_line
from mq_adapters.mqsc import MAXIMUM_COMMAND_CHARACTERS, commands_of
from mq_adapters.queue_manager import QueueAdministration

_PROMPT: Final = "mqsc> "
_ENDS: Final = ("END", "QUIT")
#: The words that begin a command that only asks. Such commands alone make no store.
_DISPLAY: Final = "DIS"


def mqsc(
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE|-]", help="File of MQSC commands. Default: - for standard input.")
    ] = None,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Carry out MQSC commands.

    The commands are DEFINE, ALTER, DELETE, DISPLAY and CLEAR, for queues of every type, topics, subscriptions,
    namelists, channels of MQ clients and the queue manager; START and STOP CHANNEL, DISPLAY CHSTATUS, and RESET QMGR
    TYPE(CLOCK). If a command fails, the others are still carried out, and the exit code is 1.
    """
    folder = settings_for(config, data).data
    text = None if file in (None, "-") else _read(file)
    commands = _commands(_typed() if text is None else text.splitlines())
    first = next(commands, None)
    if first is None:
        return
    if first.upper().startswith(_DISPLAY):
        check_store(folder)
    with connected(folder) as queue_manager:
        failed = _carry_out(queue_manager, chain((first,), commands))
    if failed:
        raise typer.Exit(ExitCode.FAILED)


def _read(name: str) -> str:
    """The text of a file. CommandFailed if the file is missing; it has a hint if the name looks like a command."""
    try:
        return read_input(name).decode(errors="replace")
    except FileNotFoundError as error:
        if " " not in name:
            raise
        hint = f"give a command on standard input: echo {shlex.quote(name)} | rfhbridge mqsc"
        raise CommandFailed(f"{name}: {error.strerror} ({hint})") from None


def _commands(lines: Iterable[str]) -> Iterator[str]:
    """The commands up to END, each as soon as it is complete."""
    for command in commands_of(lines):
        if command.strip().rstrip(";").upper() in _ENDS:
            return
        yield command.strip()


def _carry_out(queue_manager: QueueAdministration, commands: Iterable[str]) -> int:
    """Carries out each command and shows its answer; returns how many failed."""
    failed = 0
    for command in commands:
        answer = queue_manager.mqsc(command)
        failed += not answer.succeeded
        for line in answer.lines:
            write_line(line)
    return failed


def _typed() -> Iterator[str]:
    """The lines of standard input, with a prompt on a terminal."""
    is_asked = sys.stdin.isatty()
    while True:
        if is_asked:
            typer.echo(_PROMPT, nl=False)
        line = sys.stdin.readline(MAXIMUM_COMMAND_CHARACTERS + 1)
        if not line:
            return
        if len(line) > MAXIMUM_COMMAND_CHARACTERS:
            raise CommandFailed(f"a line of more than {MAXIMUM_COMMAND_CHARACTERS} characters is no MQSC command")
        yield line
