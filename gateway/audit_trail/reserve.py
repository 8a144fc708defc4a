"""Disk space that the trail leaves free for the store. The store needs it more: its messages free room when they go."""

import logging
from collections.abc import Callable
from pathlib import Path

from gateway.free_space import Mark, disk_free_bytes

_log = logging.getLogger(__name__)


class Reserve:
    """Says whether lines may be written; `reserve_bytes` 0: always."""

    def __init__(self, folder: Path, reserve_bytes: int, free_bytes: Callable[[Path], int] = disk_free_bytes) -> None:
        self._folder = folder
        self._mark = Mark(reserve_bytes)
        self._free_bytes = free_bytes
        #: Bytes that the batch needs that was refused last.
        self._refused_bytes = 0

    def allows(self, needed: int = 0) -> bool:
        """Whether lines of so many bytes may be written; without any whether it is worth while to ask."""
        if not self._mark.mark_bytes:
            return True
        try:
            free = self._free_bytes(self._folder)
        except OSError:  # writing will tell
            return True
        if self._mark.has_changed(free - max(needed, self._refused_bytes)):
            self._tell(free)
        self._refused_bytes = max(needed, self._refused_bytes) if self._mark.is_short else 0
        return not self._mark.is_short

    def _tell(self, free: int) -> None:
        if self._mark.is_short:
            _log.error("trail paused free_bytes=%s reserve_bytes=%s", free, self._mark.mark_bytes)
        else:
            _log.info("trail resumed free_bytes=%s reserve_bytes=%s", free, self._mark.mark_bytes)
