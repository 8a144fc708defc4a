"""The three standard streams, if the caller of a command has closed some of them (`>&-`, `<&-`).

A closed input counts as empty, and text for a closed standard error is lost. Writing to a closed output is an error,
because `queue get` must not take a message that nobody gets.
"""

import errno
import io
import os
import sys
from pathlib import Path
from typing import Final

_NUMBERS: Final = (0, 1, 2)


class _ClosedOutput(io.RawIOBase):
    """An output that refuses every write."""

    def writable(self) -> bool:
        return True

    def write(self, _data: object) -> int:
        raise OSError(errno.EBADF, "it is closed, so nothing can be written", "standard output")


def open_closed_streams() -> None:
    """Replaces each closed stream.

    Their descriptors become /dev/null. Otherwise the next file to be opened, for example the store, would get the
    number of a standard stream, and a child process would write into it.
    """
    for number in _NUMBERS:
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
            os.set_inheritable(opened, True)
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115  # as long as the process
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(_ClosedOutput(), encoding="utf-8", write_through=True)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # as long as the process
