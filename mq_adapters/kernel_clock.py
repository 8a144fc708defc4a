"""What the kernel says of its wall clock: whether something like NTP steers it, and how far it may be off.

adjtimex(2) with `modes` 0 changes nothing, needs no privilege and does not wait. An error grows by 500 parts per
million from one correction to the next, and past 16 s the kernel calls the clock unsynchronised. chrony tells the
kernel with its setting `rtcsync` alone. Elsewhere than on Linux, and where a filter of system calls refuses it, nobody
can say.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

#: Room behind the fields of this program: struct timex has 208 bytes on 64 bits.
_ROOM_BYTES: Final = 512
#: By the number that adjtimex returns: TIME_OK, TIME_INS, TIME_DEL, TIME_OOP, TIME_WAIT, TIME_ERROR.
STATES: Final = ("ok", "ins", "del", "oop", "wait", "error")
UNKNOWN: Final = "unknown"
_STEERED: Final = frozenset(STATES) - {"error"}


class _Timex(ctypes.Structure):
    """The first fields of struct timex, and room for the others. Source: adjtimex(2)."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("_more", ctypes.c_byte * _ROOM_BYTES),
    )


#: adjtimex, called with a pointer to struct timex.
Adjtimex = Callable[[object], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """One answer: the state, by the names of adjtimex(2) without TIME_, and errors in microseconds.

    With state "unknown" both errors are 0, and say nothing.
    """

    state: str = UNKNOWN
    maximum_error_us: int = 0
    estimated_error_us: int = 0

    @property
    def is_synchronised(self) -> bool:
        """Whether NTP, or what else steers the kernel's clock, calls it synchronised; False where nobody can say."""
        return self.state in _STEERED


@cache
def _adjtimex() -> Adjtimex | None:
    """The C library's function; None where there is none."""
    try:
        found: Adjtimex = ctypes.CDLL(None).adjtimex
    except (AttributeError, OSError):  # no Linux
        return None
    return found


def read_clock(adjtimex: Adjtimex | None = None) -> ClockReading:
    """What the kernel says now."""
    adjtimex = adjtimex or _adjtimex()
    told = _Timex()
    number = -1 if adjtimex is None else adjtimex(ctypes.byref(told))
    if not 0 <= number < len(STATES):
        return ClockReading()
    return ClockReading(
        state=STATES[number], maximum_error_us=max(0, told.maxerror), estimated_error_us=max(0, told.esterror)
    )


def is_synchronised() -> bool:
    """Whether the wall clock is synchronised now."""
    return read_clock().is_synchronised
