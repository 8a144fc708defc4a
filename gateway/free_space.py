"""Room on the disk: three marks, below which less and less is written, before the store and the trail have filled it.

A full disk stops the queue manager, and everybody with it.

    the mark         publishers are paused. Room inside the store counts, for the next messages go there first
    half of it       the exporter waits: the trail takes the disk for good, and its batches are safe in the store
    a quarter of it  nothing is delivered: flows and notes are written too. Room inside the store counts no more, for
                     the log is written first

What was acknowledged is safe, and nothing has failed. What clients acknowledge still frees messages, the store gives
its room back to the disk, the trail's keeper compresses and removes, an operator makes room. Since the exporter waits
before deliveries do, a backlog can be drained.
"""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

#: What stopped goes on above its mark and this share of it, in percent, so that it does not start and stop for ever.
ROOM_PERCENT: Final = 5
_TRAIL_SHARE: Final = 2
_RESERVE_SHARE: Final = 4

_log = logging.getLogger(__name__)


def trail_reserve_bytes(mark_bytes: int) -> int:
    """What the exporter leaves on the disk, of a mark in bytes."""
    return mark_bytes // _TRAIL_SHARE


def disk_free_bytes(folder: Path) -> int:
    """What the gateway's user may still write there. Raises OSError."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


class Mark:
    """Passed downwards at its bytes, and upwards a little above them."""

    def __init__(self, mark_bytes: int) -> None:
        self.mark_bytes = mark_bytes
        self.is_short = False

    def has_changed(self, free_bytes: int) -> bool:
        """Whether `is_short` is another one now."""
        room = self.mark_bytes * (100 + ROOM_PERCENT) // 100 if self.is_short else self.mark_bytes
        if (free_bytes < room) is self.is_short:
            return False
        self.is_short = not self.is_short
        return True


class StoreRoom(Protocol):
    """What is asked of the store."""

    def room_bytes(self) -> int:
        """What it has inside for the next messages; below 0: what it will take of the disk for those it has."""
        ...

    def settle(self) -> None:
        """Has it take that soon."""
        ...


class FreeSpace:
    """Watches the disk of a folder; `mark_bytes` 0: there is no mark.

    `on_change` hears whether space is short now, `on_reserve` whether no more than the reserve is left.
    """

    def __init__(
        self,
        folder: Path,
        mark_bytes: int,
        *,
        store: StoreRoom,
        on_change: Callable[[bool], None],
        on_reserve: Callable[[bool], None],
        free_bytes: Callable[[Path], int] = disk_free_bytes,
    ) -> None:
        self.free_bytes = 0
        self._folder = folder
        self._mark = Mark(mark_bytes)
        self._reserve = Mark(mark_bytes // _RESERVE_SHARE)
        self._store = store
        self._on_change = on_change
        self._on_reserve = on_reserve
        self._free_bytes = free_bytes

    @property
    def is_short(self) -> bool:
        return self._mark.is_short

    @property
    def is_reserve(self) -> bool:
        """Whether no more than the reserve is left."""
        return self._reserve.is_short

    def tick(self) -> None:
        """Looks at the disk; several times a second. What cannot be looked at is left to the store to find out."""
        if not self._mark.mark_bytes:
            return
        try:
            self.free_bytes = self._free_bytes(self._folder)
        except OSError:
            return
        inside = self._store.room_bytes()
        if self._reserve.has_changed(self.free_bytes + min(inside, 0)):
            self._tell_reserve()
            self._on_reserve(self.is_reserve)
        if self.is_reserve:
            inside = min(inside, 0)
        if self._mark.has_changed(self.free_bytes + inside):
            self._tell_mark(inside)
            self._on_change(self.is_short)
        if self.is_short and inside < 0:
            self._store.settle()

    def _tell_mark(self, inside: int) -> None:
        free, mark = self.free_bytes, self._mark.mark_bytes
        if self.is_short:
            _log.error("disk space ran short free_bytes=%s free_inside_bytes=%s mark_bytes=%s", free, inside, mark)
        else:
            _log.info("disk has room again free_bytes=%s free_inside_bytes=%s mark_bytes=%s", free, inside, mark)

    def _tell_reserve(self) -> None:
        free, reserve = self.free_bytes, self._reserve.mark_bytes
        if self.is_reserve:
            _log.error("deliveries paused free_bytes=%s reserve_bytes=%s", free, reserve)
        else:
            _log.info("deliveries resumed free_bytes=%s reserve_bytes=%s", free, reserve)
