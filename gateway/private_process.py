"""A process into which no other program of its user can look: not its memory, nor what it has open.

The gateway, its exporter and its channel processes know keys and passwords, and the exporter has the one connection
that takes audit notes off their queue. Linux lets a program of the same user read another one's memory (ptrace(2)) and
copy its descriptors (pidfd_getfd(2)), except where that one is not dumpable. root can all the same. Such a process
writes no core file.

Source: prctl(2), PR_SET_DUMPABLE; ptrace(2), "Ptrace access mode checking".
"""

import ctypes
import sys
from typing import Final

_PR_SET_DUMPABLE: Final = 4


def forbid_inspection() -> None:
    """Makes this process not dumpable, until it starts another program in its place. Linux alone has that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
