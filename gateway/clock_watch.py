"""What became of the clock, told in the log and in the trail; and the newest time, kept for the next start.

Sessions, messages and wills end by the plausible time (mq_adapters/plausible_clock.py). While the wall clock is in
doubt an operator has to know: nothing ends early, and what he expects to end by the clock on his wall does not.
"""

import logging
from typing import Final

from gateway.audit_trail.notes.notes import NoteKind
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.kept_time import keep
from mq_adapters.plausible_clock import ClockEvent, ClockState

#: How old the kept time may be while there are commits, and while there are none, microseconds.
_KEPT_US: Final = 60_000_000
_KEPT_IDLE_US: Final = 600_000_000
_SECOND_US: Final = 1_000_000

_log = logging.getLogger(__name__)


class ClockWatch:
    """Watches the clock of a queue manager."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept_us = 0
        self._commits = 0

    def tick(self) -> None:
        """Call it about once a second."""
        if self._engine.failed is not None:
            return
        now_us = self._engine.now_us()
        for event in self._engine.clock.events():
            self._tell(event, now_us)
        commits = sum(self._engine.commit_times.counts)
        since_us = now_us - self._kept_us
        if since_us < 0 or since_us >= (_KEPT_IDLE_US if commits == self._commits else _KEPT_US):
            self._kept_us, self._commits = now_us, commits + 1
            keep(self._engine)

    def _tell(self, event: ClockEvent, now_us: int) -> None:
        off_s = event.jump_us / _SECOND_US
        if event.state is ClockState.SETTLED:
            _log.warning("clock settled moved_s=%s reason=%s", round(off_s, 3), event.reason)
        else:
            _log.error(
                "clock in doubt state=%s off_s=%s reason=%s nothing_ends_by=%s hint=%s",
                event.state.value,
                round(off_s, 3),
                event.reason,
                "the wall clock until it is plausible, NTP has set it or it has kept its course for four hours",
                "if it is right, say RESET QMGR TYPE(CLOCK) to rfhbridge mqsc",
            )
        unit = self._engine.begin()
        unit.notes.append((NoteKind.CLOCK_JUMPED, now_us, event.state.value, event.jump_us, event.reason))
        unit.notes_are_due = True
        self._engine.submit(unit)
