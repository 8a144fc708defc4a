"""The rate of log lines that clients cause: a few lines about each source in a minute, then the number of the rest.

Somebody may try a thousand passwords a second, and one SUBSCRIBE may hold 100,000 refused filters. Neither
fills the log, and neither hides others in it.
"""

import logging
import time
from collections.abc import Callable, Hashable
from typing import Final

#: How long lines are counted together, in seconds.
INTERVAL_S: Final = 60.0
#: Lines about one source in that time, and about all of them.
LINES_OF_ONE: Final = 20
LINES_IN_ALL: Final = 200
#: Sources that have a line of their own for the number of further lines; the others share one.
_NAMED_SOURCES: Final = 10
#: Sources that are counted one by one, at some 300 bytes each; further ones are counted together.
_KEPT_SOURCES: Final = 4_096


class _Source:
    """One source in this interval: lines about it that were written, and lines that were only counted."""

    __slots__ = ("counted", "name", "written")

    def __init__(self, name: str) -> None:
        self.name = name
        self.written = self.counted = 0


class LogRate:
    """Lines of one kind. `summary`: template of the last line of an interval, with a source's name and its number."""

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
        #: Sources past `_KEPT_SOURCES`.
        self._others = _Source("others")
        self._written = 0

    def tell(self, source: Hashable, name: str, event: str, *values: object, level: int = logging.WARNING) -> None:
        """Writes the line, or counts it. `name` is the source's name in the log; the first one of an interval stays."""
        self.tick()
        found = self._source(source, name)
        if found.written >= LINES_OF_ONE or self._written >= self._lines_in_all:
            found.counted += 1
            return
        found.written += 1
        self._written += 1
        self._log.log(level, event, *values)

    def tick(self) -> None:
        """Several times a second: at the end of an interval it writes how many more lines there were."""
        now_s = self._now_s()
        if now_s < self._ends_s:
            return
        self._write_numbers()
        self._ends_s = now_s + INTERVAL_S
        self._known.clear()
        self._others = _Source("others")
        self._written = 0

    def _source(self, source: Hashable, name: str) -> _Source:
        found = self._known.get(source)
        if found is None and len(self._known) >= _KEPT_SOURCES:
            return self._others
        if found is None:
            found = self._known[source] = _Source(name)
        return found

    def _write_numbers(self) -> None:
        """The sources with most lines by their name, the rest together."""
        busy = sorted((each for each in self._known.values() if each.counted), key=lambda each: -each.counted)
        for source in busy[:_NAMED_SOURCES]:
            self._log.warning(self._summary, source.name, source.counted)
        rest = sum(source.counted for source in busy[_NAMED_SOURCES:]) + self._others.counted
        if rest:
            self._log.warning(self._summary, "others", rest)
