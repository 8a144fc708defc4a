"""`rfhbridge mqsc`: objects of the embedded queue manager by MQSC commands, from a file or as they are typed."""

import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import typer

from gateway.cli.application import ExitCode
from gateway.cli.files import read_input
from gateway.cli.settings_options import ConfigOption, DataOption, settings_for
from gateway.cli.terminal import write_line
from mq_adapters.mqsc import commands_of
from mq_adapters.queue_manager import QueueManager

_APPLICATION_NAME: Final = "rfhbridge"
_PROMPT: Final = "mqsc> "
_ENDS: Final = ("END", "QUIT")


def mqsc(
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE|-]", help="MQSC commands; without it or with -, standard input.")
    ] = None,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Carry out MQSC commands.

    DEFINE, ALTER, DELETE, DISPLAY and CLEAR, for queues of every type, topics, subscriptions, namelists and the queue
    manager. Exit code 1 where a command failed; those behind it are carried out.
    """
    from mq_adapters import connect

    folder = settings_for(config, data).data
    text = None if file in (None, "-") else read_input(file).decode(errors="replace")
    with connect(folder, application_name=_APPLICATION_NAME) as queue_manager:
        failed = _carry_out(queue_manager, _typed() if text is None else text.splitlines())
    if failed:
        raise typer.Exit(ExitCode.FAILED)


def _carry_out(queue_manager: QueueManager, lines: Iterable[str]) -> int:
    """Carries out each command and shows its answer; returns how many failed."""
    failed = 0
    for command in commands_of(lines):
        if command.strip().rstrip(";").upper() in _ENDS:
            break
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
        line = sys.stdin.readline()
        if not line:
            return
        yield line
