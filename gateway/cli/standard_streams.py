"""The three standard streams where whoever started the command closed some of them (`>&-`, `<&-`).

A closed input is an empty one, and what would go to a closed standard error goes nowhere. A closed output is an error
as soon as something is to be written: `queue get` must not take a message off its queue for nobody.
"""

import errno
import io
import os
import sys
from pathlib import Path
from typing import Final

_NUMBERS: Final = (0, 1, 2)


class _ClosedOutput(io.RawIOBase):
    """Refuses what is written to it."""

    def writable(self) -> bool:
        return True

    def write(self, _data: object) -> int:
        raise OSError(errno.EBADF, "it is closed, so nothing can be written", "standard output")


def open_closed_streams() -> None:
    """Puts something in the place of each stream that is closed.

    Their descriptors become /dev/null: else the next file that is opened, the store for example, has the number of a
    standard stream, and a child process writes into it.
    """
    for number in _NUMBERS:
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is this one
            os.set_inheritable(opened, True)
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115  # as long as the process
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(_ClosedOutput(), encoding="utf-8", write_through=True)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # as long as the process
