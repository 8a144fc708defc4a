"""Log lines that others decide the number of: few of each of them in a minute, and then how many more there were.

Who tries passwords comes a thousand times a second, and one SUBSCRIBE may hold 100,000 filters that are refused:
neither fills the log, and neither hides the others in it.
"""

import logging
import time
from collections.abc import Callable, Hashable
from typing import Final

#: How long lines are counted together, seconds.
INTERVAL_S: Final = 60.0
#: Lines about one source in that time, and about all of them.
LINES_OF_ONE: Final = 20
LINES_IN_ALL: Final = 200
#: Sources whose further lines are told by number; those of the others are told together.
_NAMED_SOURCES: Final = 10
#: Sources that are told apart, at some 300 bytes each.
_KEPT_SOURCES: Final = 4_096


class _Source:
    """One source in this interval; lines that were written, and that were not."""

    __slots__ = ("name", "told", "untold")

    def __init__(self, name: str) -> None:
        self.name = name
        self.told = self.untold = 0


class FewLines:
    """Lines of one kind. `summary` is the template of the line with a source's name and its number at the end."""

    def __init__(
        self,
        log: logging.Logger,
        summary: str,
        *,
        lines_in_all: int = LINES_IN_ALL,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._summary = summary
        self._lines_in_all = lines_in_all
        self._now_s = now_s
        self._ends_s = 0.0
        self._known: dict[Hashable, _Source] = {}
        #: Those that are not told apart any more.
        self._others = _Source("others")
        self._told = 0

    def tell(self, source: Hashable, name: str, event: str, *values: object, level: int = logging.WARNING) -> None:
        """Writes the line, or counts it. `name` is the source's in the log; the first counts."""
        self.tick()
        found = self._source(source, name)
        if found.told >= LINES_OF_ONE or self._told >= self._lines_in_all:
            found.untold += 1
            return
        found.told += 1
        self._told += 1
        self._log.log(level, event, *values)

    def tick(self) -> None:
        """Several times a second: at the end of an interval it is told how many more there were."""
        now_s = self._now_s()
        if now_s < self._ends_s:
            return
        self._tell_numbers()
        self._ends_s = now_s + INTERVAL_S
        self._known.clear()
        self._others = _Source("others")
        self._told = 0

    def _source(self, source: Hashable, name: str) -> _Source:
        found = self._known.get(source)
        if found is None and len(self._known) >= _KEPT_SOURCES:
            return self._others
        if found is None:
            found = self._known[source] = _Source(name)
        return found

    def _tell_numbers(self) -> None:
        """Those with most lines by their name, the rest together."""
        busy = sorted((each for each in self._known.values() if each.untold), key=lambda each: -each.untold)
        for source in busy[:_NAMED_SOURCES]:
            self._log.warning(self._summary, source.name, source.untold)
        rest = sum(source.untold for source in busy[_NAMED_SOURCES:]) + self._others.untold
        if rest:
            self._log.warning(self._summary, "others", rest)
