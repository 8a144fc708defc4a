"""Free pages of the database: new messages take them, or the store gives them back to the disk.

A new or compacted store keeps account of the use of each page (SQLite, "PRAGMA auto_vacuum", INCREMENTAL). So it gives
free pages back in small steps, without a second copy of any data. The command writes a store of an earlier version anew
once. That takes as much room as the store's contents.

The log holds the moved pages of a step first. So no step is longer than the log has room for, in its file and on the
disk. The log's file begins anew behind each step of the command.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

import apsw

from mq_adapters.embedded.store.checkpoint import PAGE_BYTES, CheckpointThread, copy_without_waiting
from mq_adapters.embedded.store.errors import failure
from mq_adapters.queue_manager import Compaction
from mq_adapters.reasons import QueueManagerError, ReasonCode

#: Pages that a step in an idle moment gives back: a millisecond or two, and its sync.
_STEP_PAGES: Final = 64
#: Pages that a step of the command gives back.
_COMMAND_PAGES: Final = 512
#: Above so many free pages (8 MiB), idle moments give pages back, until these are left (4 MiB) for the next messages.
_MANY_PAGES: Final = 2_048
_KEPT_PAGES: Final = 1_024
#: Pages given back in idle moments between two check-points: only these make the file shorter.
_PAGES_A_CHECKPOINT: Final = 4_096
#: Pages that moving one may change: its new place, what points to it, and the accounts of both.
_CHANGED_PAGES: Final = 5
_FRAME_BYTES: Final = PAGE_BYTES + 24
#: The most bytes of a store of an earlier version to write anew while a gateway runs: commits have to wait for it.
_WRITTEN_ANEW_BYTES: Final = 64 * 1024 * 1024
#: Left on the disk by a store that is written anew.
_MARGIN_BYTES: Final = 8 * 1024 * 1024
_INCREMENTAL: Final = 2


class FreePages:
    """The free pages of one database. StoreError if the disk fails. The queue manager must then stop.

    `lock` is held while a commit is under way, perhaps in a thread.
    """

    def __init__(
        self, path: Path, writer: apsw.Connection, reader: apsw.Connection, *, checkpoint: CheckpointThread, lock: Lock
    ) -> None:
        self._path = path
        self._writer = writer
        self._reader = reader
        self._checkpoint = checkpoint
        self._lock = lock
        self._is_giving_back = False
        self._given_back = 0
        self._keeps_account = writer.pragma("auto_vacuum") == _INCREMENTAL

    @property
    def free_bytes(self) -> int:
        """Free bytes inside the file for the next messages, before it takes more of the disk."""
        with _failing("read the store"):
            return self._pages("freelist_count", self._reader) * PAGE_BYTES

    @property
    def room_bytes(self) -> int:
        """`free_bytes`, less the growth of the file when the log is copied; below 0: bytes it will take of the disk."""
        with _failing("read the store"):
            pages = self._pages("page_count", self._reader)
            return self.free_bytes - max(0, pages * PAGE_BYTES - self._path.stat().st_size)

    def settle(self) -> None:
        """Copies the log soon, so that the growth of the file shows on the disk."""
        self._checkpoint.want()

    # -- in idle moments -----------------------------------------------------------------------------------------------

    def are_many(self) -> bool:
        """Whether a step is due. Steps begin when the free pages are many, and go on until they are few."""
        least = _KEPT_PAGES if self._is_giving_back else _MANY_PAGES
        self._is_giving_back = self._keeps_account and self.free_bytes > least * PAGE_BYTES
        return self._is_giving_back

    def give_back_some(self) -> None:
        """Makes one small step, or a check-point if the log has no room for one. Call it while nobody commits."""
        with self._lock, _failing("give room back"):
            self._given_back += self._give_back(_STEP_PAGES)
            is_last = self._free_pages() <= _KEPT_PAGES
            if is_last or self._given_back >= _PAGES_A_CHECKPOINT or not self._most(_STEP_PAGES):
                self._given_back = 0
                self._checkpoint.want()

    # -- for the command -----------------------------------------------------------------------------------------------

    def compaction(self) -> Compaction:
        """How far the store is compacted."""
        free_bytes = self.free_bytes
        return Compaction(size_bytes=self._path.stat().st_size, free_bytes=free_bytes, is_done=False)

    def compact_some(self, *, may_stand_still: bool) -> Compaction:
        """Makes one longer step, and begins the log anew. Call it between two commits, until the work is done.

        `may_stand_still`: nobody waits for a commit. QueueManagerError 2056 if the step has no room, 2042 if it would
        take too long.
        """
        with self._lock, _failing("compact the store"):
            if not self._keeps_account:
                self._write_anew(may_stand_still=may_stand_still)
            elif self._free_pages() and not self._give_back(_COMMAND_PAGES):
                raise _no_room(_CHANGED_PAGES * _FRAME_BYTES)
            free = self._free_pages()
            self._copy_back(apsw.SQLITE_CHECKPOINT_RESTART if free else apsw.SQLITE_CHECKPOINT_TRUNCATE)
            return Compaction(size_bytes=self._path.stat().st_size, free_bytes=free * PAGE_BYTES, is_done=not free)

    def _write_anew(self, *, may_stand_still: bool) -> None:
        """Writes the whole database once more, with its account, through memory or a file beside it."""
        needed = (self._pages("page_count", self._writer) - self._free_pages()) * PAGE_BYTES
        if needed > _WRITTEN_ANEW_BYTES:
            if not may_stand_still:
                operation = f"compact a store of an earlier version with {needed} bytes in it while the gateway runs"
                raise QueueManagerError(ReasonCode.MQRC_OBJECT_IN_USE, operation, "stop the gateway, and run it again")
            needed *= 2
        if self._room_bytes() < needed + _MARGIN_BYTES:
            raise _no_room(needed + _MARGIN_BYTES)
        with self._temporary_files(in_memory=needed <= _WRITTEN_ANEW_BYTES):
            self._writer.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
            try:
                self._writer.execute("VACUUM")
            except apsw.FullError as error:
                raise _no_room(needed + _MARGIN_BYTES) from error
        self._keeps_account = self._writer.pragma("auto_vacuum") == _INCREMENTAL

    @contextmanager
    def _temporary_files(self, *, in_memory: bool) -> Iterator[None]:
        """Puts SQLite's temporary files in memory or in the data folder: the system's place may be a small disk."""
        folder = str(self._path.parent.absolute()).replace("'", "''")
        if in_memory:
            self._writer.execute("PRAGMA temp_store = MEMORY")
        else:
            self._writer.execute(f"PRAGMA temp_store_directory = '{folder}'")
        try:
            yield
        finally:
            self._writer.execute("PRAGMA temp_store = DEFAULT" if in_memory else "PRAGMA temp_store_directory = ''")

    # -- inside --------------------------------------------------------------------------------------------------------

    def _give_back(self, pages: int) -> int:
        """Gives pages back, and returns their number; none if the log has no room for the pages that move."""
        most = self._most(pages)
        if not most:
            return 0
        before = self._free_pages()
        try:
            for _ in self._writer.execute(f"PRAGMA incremental_vacuum({most})"):
                pass
        except apsw.FullError:  # others fill the disk too; SQLite has undone the step, and nobody waits for it
            return 0
        return before - self._free_pages()

    def _most(self, pages: int) -> int:
        return min(pages, self._room_bytes() // (_CHANGED_PAGES * _FRAME_BYTES))

    def _room_bytes(self) -> int:
        """Bytes that the log may still write: in its file, and on the disk."""
        log_bytes = Path(f"{self._path}-wal").stat().st_size
        status = os.statvfs(self._path.parent)
        return max(0, log_bytes - self._checkpoint.pages * _FRAME_BYTES) + status.f_bavail * status.f_frsize

    def _free_pages(self) -> int:
        return self._pages("freelist_count", self._writer)

    @staticmethod
    def _pages(pragma: str, connection: apsw.Connection) -> int:
        return int(connection.pragma(pragma))

    def _copy_back(self, mode: int) -> None:
        """Copies the log back, without waiting for readers: while one reads, the file gets shorter later."""
        self._checkpoint.wait()
        try:
            copy_without_waiting(self._writer, mode)
        except apsw.BusyError:
            return
        except apsw.FullError as error:
            self._checkpoint.failed(error)
            return
        self._checkpoint.pages = 0


@contextmanager
def _failing(operation: str) -> Iterator[None]:
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise failure(operation, error) from error


def _no_room(needed_bytes: int) -> QueueManagerError:
    operation = f"compact the store: {needed_bytes} bytes are needed on the disk"
    return QueueManagerError(ReasonCode.MQRC_Q_SPACE_NOT_AVAILABLE, operation)
