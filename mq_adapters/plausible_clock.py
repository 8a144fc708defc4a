"""The time by which sessions and messages end and old files go: the wall clock, as long as it is plausible.

A wall clock can be wrong: an operator mistypes a date, a device without a clock chip boots in 1970 or 2036. Whatever
ends or is destroyed by time would end at once, or never. So the wall clock is compared with CLOCK_BOOTTIME, which no
date changes and which counts while the machine sleeps, and at the start with the newest time that is kept:

    settled     both agree within the bound: the time is that of the wall clock
    ahead,      they do not: the time goes on from the last plausible moment by CLOCK_BOOTTIME
    behind

until the wall clock agrees again, or is believed: when NTP has called it synchronised for a minute, when it has kept
its new course for four hours, or when an operator says so. Source: clock_gettime(2); kernel_clock.py asks NTP's word.
"""

import threading
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from mq_adapters.kernel_clock import is_synchronised

#: How far both clocks may part within a minute: NTP slews 0.5 ms a second, and steps by less than that once it runs.
BOUND_US: Final = 5_000_000
#: How much later than the newest time that is kept a start may be without a doubt: a night, a weekend's end, a repair.
START_BOUND_US: Final = 24 * 3_600_000_000
#: How long NTP has to call the clock synchronised, and how long a clock keeps a new course, until they are believed.
SYNCHRONISED_US: Final = 60_000_000
STEADY_US: Final = 4 * 3_600_000_000
_MINUTE_US: Final = 60_000_000
#: How often the clocks are compared; between two times the time is that of CLOCK_BOOTTIME.
_LOOK_US: Final = 50_000
_ASK_US: Final = 1_000_000
_BOOT_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class ClockState(StrEnum):
    """How the wall clock stands to the plausible time."""

    SETTLED = "settled"
    AHEAD = "ahead"
    BEHIND = "behind"


class ClockEvent(NamedTuple):
    """An event of the clock: its state since, by how much it was off (microseconds, ahead is more), and why."""

    state: ClockState
    jump_us: int
    reason: str


def wall_us() -> int:
    """The wall clock, microseconds since 1970 UTC."""
    return time.time_ns() // 1000


def boot_us() -> int:
    """Microseconds since the machine was booted; what it slept counts."""
    return time.clock_gettime_ns(_BOOT_CLOCK) // 1000


class PlausibleClock:
    """The plausible time. Any thread may ask; whoever tells of its events takes them with `events`."""

    def __init__(
        self,
        newest_us: int = 0,
        *,
        late_us: int = START_BOUND_US,
        wall_us: Callable[[], int] = wall_us,
        boot_us: Callable[[], int] = boot_us,
        is_synchronised: Callable[[], bool] = is_synchronised,
    ) -> None:
        """`newest_us`: the newest time that is kept of before, 0 where nothing is; `late_us`: see START_BOUND_US."""
        self._start_bound_us = late_us
        self._wall_us, self._boot_us, self._is_synchronised = wall_us, boot_us, is_synchronised
        self._lock = threading.Lock()
        self._events: list[ClockEvent] = []
        self.state = ClockState.SETTLED
        self.jumps = 0
        self._newest_us = 0
        #: When the clocks are compared next, by CLOCK_BOOTTIME.
        self._look_again_us = boot_us()
        #: The offset to CLOCK_BOOTTIME; the course of the wall clock beside it, and since when it keeps that.
        self._offset_us = self._course_us = wall_us() - self._look_again_us
        self._course_since_us = self._look_again_us
        #: In doubt: by how much the wall clock may be late and is believed; after a start, as it would have been then.
        self._late_us = BOUND_US
        #: In doubt: since when NTP calls the clock synchronised (0: it does not), and when it is asked again.
        self._synchronised_since_us = self._ask_again_us = 0
        self.not_before(newest_us)

    def now_us(self) -> int:
        """The plausible time, microseconds since 1970 UTC."""
        boot = self._boot_us()
        if boot >= self._look_again_us:
            with self._lock:
                self._look(boot)
        return boot + self._offset_us

    @property
    def doubt_us(self) -> int:
        """How far the wall clock is ahead of the plausible time, or behind it (negative); 0 where it is settled."""
        return 0 if self.state is ClockState.SETTLED else self._wall_us() - self.now_us()

    def events(self) -> list[ClockEvent]:
        """The events since the last call."""
        with self._lock:
            events, self._events = self._events, []
        return events

    def not_before(self, newest_us: int) -> None:
        """For a start: something that is kept is of this time, microseconds. The newest of all calls counts."""
        with self._lock:
            if newest_us <= self._newest_us:
                return
            self._newest_us = newest_us
            self._events.clear()  # an older time has raised a doubt that this one may lay
            boot, wall = self._boot_us(), self._wall_us()
            self._follow(boot, wall)
            if not -BOUND_US <= wall - newest_us <= self._start_bound_us:
                self._doubt(boot, wall, newest_us - boot, "the newest time in store and trail disagrees with the clock")
                self._late_us = self._start_bound_us

    def believe(self, why: str) -> bool:
        """The wall clock is right, says somebody who knows; False where nobody doubts it."""
        with self._lock:
            if self.state is ClockState.SETTLED:
                return False
            self._settle(self._boot_us(), self._wall_us(), why)
            return True

    # -- inside, under the lock ----------------------------------------------------------------------------------------

    def _look(self, boot: int) -> None:
        self._look_again_us = boot + _LOOK_US
        wall = self._wall_us()
        has_left_its_course = abs(wall - boot - self._course_us) > BOUND_US
        if self.state is not ClockState.SETTLED:
            self._look_in_doubt(boot, wall, has_left_its_course)
        elif has_left_its_course:
            self._doubt(boot, wall, self._course_us, "the wall clock has jumped")
        else:
            self._offset_us = wall - boot
            if boot - self._course_since_us >= _MINUTE_US:
                self._course_us, self._course_since_us = self._offset_us, boot

    def _look_in_doubt(self, boot: int, wall: int, has_left_its_course: bool) -> None:
        if -BOUND_US <= wall - boot - self._offset_us <= self._late_us:
            self._settle(boot, wall, "the wall clock is plausible again")
        elif has_left_its_course:
            self._jump_again(boot, wall)
        elif boot - self._course_since_us >= STEADY_US:
            self._settle(boot, wall, "the wall clock has kept its course for four hours")
        elif boot >= self._ask_again_us:
            self._ask(boot, wall)

    def _ask(self, boot: int, wall: int) -> None:
        self._ask_again_us = boot + _ASK_US
        if not self._is_synchronised():
            self._synchronised_since_us = 0
        elif not self._synchronised_since_us:
            self._synchronised_since_us = boot
        elif boot - self._synchronised_since_us >= SYNCHRONISED_US:
            self._settle(boot, wall, "NTP calls the wall clock synchronised")

    def _doubt(self, boot: int, wall: int, offset_us: int, why: str) -> None:
        self._begin_course(boot, wall)
        self._offset_us = offset_us
        jump_us = wall - boot - offset_us
        self.state = ClockState.AHEAD if jump_us > 0 else ClockState.BEHIND
        self.jumps += 1
        self._events.append(ClockEvent(self.state, jump_us, why))

    def _jump_again(self, boot: int, wall: int) -> None:
        """In doubt: who believes the clock begins anew. It is told where the clock has come to the other side."""
        side = ClockState.AHEAD if wall - boot > self._offset_us else ClockState.BEHIND
        if side is self.state:
            self._begin_course(boot, wall)
        else:
            self._doubt(boot, wall, self._offset_us, "the wall clock has jumped again")

    def _settle(self, boot: int, wall: int, why: str) -> None:
        jump_us = wall - boot - self._offset_us
        self._follow(boot, wall)
        self._events.append(ClockEvent(ClockState.SETTLED, jump_us, why))

    def _follow(self, boot: int, wall: int) -> None:
        """The time is that of the wall clock, and its course begins here."""
        self.state = ClockState.SETTLED
        self._offset_us = wall - boot
        self._late_us = BOUND_US
        self._begin_course(boot, wall)

    def _begin_course(self, boot: int, wall: int) -> None:
        self._course_us, self._course_since_us = wall - boot, boot
        self._synchronised_since_us = self._ask_again_us = 0
