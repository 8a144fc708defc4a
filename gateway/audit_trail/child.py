"""A program that a witness or a key runs. Its time, its output and its own children are bounded.

It runs in a session of its own, and nothing of that session outlives the call. If the exporter is killed meanwhile,
timeout(1) ends the program.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Final

#: Bytes read of the output: git's `ls-remote` of one branch has 100, and a folder of a thousand digests 80,000.
_MOST_OUTPUT_BYTES: Final = 1024 * 1024
_MOST_COMPLAINT_BYTES: Final = 4_096
#: Seconds that the program may run beyond our own limit, in case that we have died.
_AFTER_US_S: Final = 5.0
_REASON_CHARACTERS: Final = 300


class ProgramFailed(Exception):
    """The program ended with an error, whose text this is, or it took too long."""


def output_of(
    command: Sequence[str],
    *,
    data: bytes = b"",
    timeout_s: float,
    environment: Mapping[str, str],
    most_file_blocks: int | None = None,
) -> bytes:
    """The standard output of a program. Raises ProgramFailed.

    The program may write at most `most_file_blocks` blocks of 512 bytes into one file.
    """
    limits = f"ulimit -f {most_file_blocks}; " if most_file_blocks else ""
    limited = f'{limits}exec timeout -s KILL {timeout_s + _AFTER_US_S:g} "$0" "$@"'
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as given:
        given.write(data)
        given.seek(0)
        process = subprocess.Popen(
            ("sh", "-c", limited, *command),
            stdin=given,
            stdout=output,
            stderr=told,
            env=dict(environment),
            start_new_session=True,
        )
        try:
            exit_code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise ProgramFailed(f"it took more than {timeout_s:g} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):  # what it started, too
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        told.seek(0)
        if exit_code:
            complaint = told.read(_MOST_COMPLAINT_BYTES).decode(errors="replace")
            raise ProgramFailed(on_one_line(complaint) or "it failed and said nothing")
        return output.read(_MOST_OUTPUT_BYTES)


def on_one_line(text: str) -> str:
    """Foreign text as one line, so that it cannot look like other lines of the log."""
    joined = " ".join(text.split())
    return "".join(character if character.isprintable() else "?" for character in joined)[:_REASON_CHARACTERS]
