"""The thread that copies a grown WAL back into the database, so that no commit has to wait for it.

Somebody who reads the store as it was keeps the WAL from beginning anew (readers.py). A disk that is full does
so too, and the next commit asks again. Any other error is a failed write: it stops the queue manager.
"""

import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

PAGE_BYTES: Final = 4_096
#: A WAL of this many pages (64 MiB) is too long: four times what a check-point begins at.
LONG_PAGES: Final = 16_384
#: How long a statement waits for the file's locks: this process's other connections have them for a commit.
_BUSY_TIMEOUT_MS: Final = 10_000
#: Pages that a commit can copy back and nobody notices.
_FEW_PAGES: Final = 100
#: Each pass copies what was written during the one before, and syncs; where that does not get less, this many are made.
_MOST_PASSES: Final = 4

_log = logging.getLogger(__name__)


def wait_for_locks(connection: apsw.Connection) -> None:
    """From now on statements wait for the file's locks."""
    connection.set_busy_timeout(_BUSY_TIMEOUT_MS)


def copy_without_waiting(connection: apsw.Connection, mode: int) -> None:
    """Copies the WAL back as `mode` says. Raises BusyError at once while somebody reads what it was before."""
    connection.set_busy_timeout(0)
    try:
        connection.wal_checkpoint(mode=mode)
    finally:
        wait_for_locks(connection)


class CheckpointThread(threading.Thread):
    """Copies the WAL back into the database when it is told that it has grown."""

    def __init__(self, path: Path) -> None:
        super().__init__(name="store-checkpoint", daemon=True)
        self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        self._connection.pragma("schema_version")  # before it has read, it knows of no WAL and copies nothing
        self._stopping = False
        self._rests = threading.Event()
        self._rests.set()
        self._is_failing = False
        self._wanted = threading.Event()
        #: Set when the WAL has been copied back; whoever begins it anew clears it.
        self.copied = threading.Event()
        #: Pages in the WAL, as the last commit left it.
        self.pages = 0
        #: Check-points that copied all, those that a reader kept from it, and those that failed.
        self.done = self.held = self.failures = 0
        #: A read or a write that failed: what is in the database is in doubt, and nothing may go on.
        self.error: Exception | None = None
        self.start()

    @property
    def is_long(self) -> bool:
        return self.pages >= LONG_PAGES

    def want(self) -> None:
        """Asks for a copy, unless one is under way or waits to be made use of: the WAL begins anew while this rests."""
        has_ended = self._stopping or self.error is not None
        if self._rests.is_set() and not self.copied.is_set() and not has_ended:
            self._rests.clear()
            self._wanted.set()

    def wait(self) -> None:
        """Returns when no copy is under way: that waits for the disk, and for no reader."""
        self._rests.wait()

    def run(self) -> None:
        while self.error is None:
            self._wanted.wait()
            self._wanted.clear()
            if self._stopping:
                break
            try:
                self._copied(is_whole=self._copy())
            except (apsw.BusyError, apsw.LockedError):
                self.held += 1
            except Exception as error:  # also what nobody expected must be seen by the writer
                self.failed(error)
            self._rests.set()
        self._rests.set()
        self._connection.close()

    def failed(self, error: Exception) -> None:
        """Counts a check-point that failed; the first one in a row is logged."""
        self.failures += 1
        if not isinstance(error, apsw.FullError):
            self.error = error
        if not self._is_failing:
            self._is_failing = True
            _log.error("check-point failed error=%s wal_bytes=%s", error, self.pages * PAGE_BYTES)

    def _copied(self, *, is_whole: bool) -> None:
        if not is_whole:
            self.held += 1
            return
        self.done += 1
        if self._is_failing:
            self._is_failing = False
            _log.info("check-point succeeded again failures=%s", self.failures)
        self.copied.set()

    def _copy(self) -> bool:
        """Copies, and then what has come meanwhile, until that is little: who begins the WAL anew copies the rest.

        False where that cannot be done yet: somebody reads the store as it was, and nothing newer may be copied.
        """
        before = 0
        for _ in range(_MOST_PASSES):
            pages, copied = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            if copied < pages:
                return False
            if copied - before <= _FEW_PAGES:
                break
            before = copied
        return True

    def stop(self) -> None:
        self._stopping = True
        self._wanted.set()
        self.join()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """How the store is, in plain numbers, for whoever shows it.

    `free_bytes`: room inside the store's file for the next messages, before it takes more of the disk.
    `log_bytes`: bytes that wait to be copied into the database; `log_is_long`: whether they are too many.

    `checkpoints_*`: the attempts to copy it that did, that a reader kept from it, and that failed.
    """

    free_bytes: int
    log_bytes: int
    log_is_long: bool
    checkpoints_done: int
    checkpoints_held: int
    checkpoints_failed: int
