"""The command `rfhbridge` within this process, with streams of its own: `command("queue", "list", stdin=b"")`."""

import sys
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from gateway.cli.commands import application


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended."""

    exit_code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout.decode()


def command(*arguments: str | Path, stdin: bytes = b"") -> Ended:
    """Runs a command to its end."""
    with CliRunner().isolation(input=stdin) as (stdout, stderr, _):
        try:
            application([str(argument) for argument in arguments], prog_name="rfhbridge")
        except SystemExit as end:
            exit_code = end.code
        sys.stdout.flush()
        sys.stderr.flush()
        assert isinstance(exit_code, int)
        return Ended(exit_code=exit_code, stdout=stdout.getvalue(), stderr=stderr.getvalue().decode())
