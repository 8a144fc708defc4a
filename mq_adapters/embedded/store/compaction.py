"""Pages of the database that nothing is in: room for what comes next, or for the disk.

A store that was made anew, or compacted, keeps account of where each page is needed (SQLite, "PRAGMA auto_vacuum",
INCREMENTAL): it gives free pages back in small steps, without a second copy of anything. One of an earlier version is
written anew once, by the command: that takes as much room as what is in it.

What a step moves is in the log first. So no step is longer than the log has room for: in its file, which begins anew
behind each step of the command, and on the disk.
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
#: Above so many free pages (8 MiB) idle moments give them back, down to these (4 MiB), which the next messages take.
_MANY_PAGES: Final = 2_048
_KEPT_PAGES: Final = 1_024
#: Pages given back in idle moments between two check-points: only these make the file shorter.
_PAGES_A_CHECKPOINT: Final = 4_096
#: Pages that moving one may change: its new place, what points to it, and the accounts of both.
_CHANGED_PAGES: Final = 5
_FRAME_BYTES: Final = PAGE_BYTES + 24
#: A store of an earlier version may hold this much while a gateway runs: nothing is committed meanwhile.
_WRITTEN_ANEW_BYTES: Final = 64 * 1024 * 1024
#: Left on the disk by a store that is written anew.
_MARGIN_BYTES: Final = 8 * 1024 * 1024
_INCREMENTAL: Final = 2


class FreePages:
    """The free pages of one database. StoreError where the disk fails: as after a failed commit, nothing may go on.

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
        """The same without what the file grows by when the log is copied; below 0: what it will take of the disk."""
        with _failing("read the store"):
            pages = self._pages("page_count", self._reader)
            return self.free_bytes - max(0, pages * PAGE_BYTES - self._path.stat().st_size)

    def settle(self) -> None:
        """Copies the log soon: what the file grows by is then seen on the disk."""
        self._checkpoint.want()

    # -- in idle moments -----------------------------------------------------------------------------------------------

    def are_many(self) -> bool:
        """Whether a step is due: once they are many, until they are few."""
        least = _KEPT_PAGES if self._is_giving_back else _MANY_PAGES
        self._is_giving_back = self._keeps_account and self.free_bytes > least * PAGE_BYTES
        return self._is_giving_back

    def give_back_some(self) -> None:
        """One small step, or a check-point where the log has no room for it; for a moment when nobody commits."""
        with self._lock, _failing("give room back"):
            self._given_back += self._give_back(_STEP_PAGES)
            is_last = self._free_pages() <= _KEPT_PAGES
            if is_last or self._given_back >= _PAGES_A_CHECKPOINT or not self._most(_STEP_PAGES):
                self._given_back = 0
                self._checkpoint.want()

    # -- for the command -----------------------------------------------------------------------------------------------

    def compaction(self) -> Compaction:
        """How far it is compacted."""
        free_bytes = self.free_bytes
        return Compaction(size_bytes=self._path.stat().st_size, free_bytes=free_bytes, is_done=False)

    def compact_some(self, *, may_stand_still: bool) -> Compaction:
        """One longer step, and the log begun anew; call it between two commits, until it is done.

        `may_stand_still`: nobody waits for a commit. QueueManagerError 2056 where there is no room for the way, 2042
        where it would take too long.
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
        """Not where the system has them, which may be a small disk: in memory, or in the data folder."""
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
        """Pages that left the database; none where the log has no room for what moves."""
        most = self._most(pages)
        if not most:
            return 0
        before = self._free_pages()
        try:
            for _ in self._writer.execute(f"PRAGMA incremental_vacuum({most})"):
                pass
        except apsw.FullError:  # others write there too: SQLite has taken it back, and nothing waits for it
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
        """While somebody reads, the log goes on, and the file gets shorter later: nobody waits for readers."""
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
