"""Room on the disk: below a mark, publishers are held back before the store and the trail have filled it.

A full disk stops the queue manager, and everybody with it. At the mark what was acknowledged is safe, what comes next
is not taken, and nothing has failed: deliveries go on, the exporter compresses and removes, an operator makes room.
"""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

#: Publishers go on above the mark and this share of it, in percent, so that they do not start and stop all the time.
ROOM_PERCENT: Final = 5

_log = logging.getLogger(__name__)


def _free_bytes(folder: Path) -> int:
    """What the gateway's user may still write there."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


class FreeSpace:
    """Watches the disk of a folder; `mark_bytes` 0: there is no mark. `on_change` hears whether space is short now."""

    def __init__(
        self,
        folder: Path,
        mark_bytes: int,
        *,
        on_change: Callable[[bool], None],
        free_bytes: Callable[[Path], int] = _free_bytes,
    ) -> None:
        self.is_short = False
        self._folder = folder
        self._mark_bytes = mark_bytes
        self._on_change = on_change
        self._free_bytes = free_bytes

    def tick(self) -> None:
        """Looks at the disk; about once a second. What cannot be looked at is left to the store to find out."""
        if not self._mark_bytes:
            return
        try:
            free = self._free_bytes(self._folder)
        except OSError:
            return
        room = self._mark_bytes * (100 + ROOM_PERCENT) // 100 if self.is_short else self._mark_bytes
        if (free < room) is self.is_short:
            return
        self.is_short = not self.is_short
        if self.is_short:
            _log.error("disk space ran short free_bytes=%s mark_bytes=%s", free, self._mark_bytes)
        else:
            _log.info("disk has room again free_bytes=%s mark_bytes=%s", free, self._mark_bytes)
        self._on_change(self.is_short)
