"""Log lines about strangers: some of each second, and how many more there were, so that no flood fills the disk."""

import logging
import time
from typing import Final

LINES_A_SECOND: Final = 10


class SparingLog:
    """The lines of one listener about connections that never came to be."""

    def __init__(self, log: logging.Logger, listener: str) -> None:
        self._log = log
        self._listener = listener
        self._second = 0
        self._told = self._untold = 0

    def tell(self, level: int, event: str, *values: object) -> None:
        """Writes the line, or counts it; the count is told with the first line of a later second."""
        second = int(time.monotonic())
        if second != self._second:
            if self._untold:
                self._log.warning("connections refused listener=%s count=%s", self._listener, self._untold)
            self._second, self._told, self._untold = second, 0, 0
        if self._told >= LINES_A_SECOND:
            self._untold += 1
            return
        self._told += 1
        self._log.log(level, event, *values)
