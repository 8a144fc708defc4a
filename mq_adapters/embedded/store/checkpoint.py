"""The thread that copies a grown WAL back into the database, so that no commit has to wait for it.

The WAL cannot begin anew while a reader reads an earlier state of the store (readers.py), or while the disk is full.
Then the next commit asks again. Any other error is a failed write, which stops the queue manager.
"""

import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

PAGE_BYTES: Final = 4_096
#: A WAL of this many pages (64 MiB) is too long: sixteen times the length at which a check-point begins.
LONG_PAGES: Final = 16_384
#: How long a statement waits for the file's locks, which other connections of this process hold for a commit.
_BUSY_TIMEOUT_MS: Final = 10_000
#: So few pages that a commit can copy them back without a noticeable delay.
_FEW_PAGES: Final = 100
#: Each pass copies the pages written during the pass before, and syncs. There are at most this many passes.
_MOST_PASSES: Final = 4

_log = logging.getLogger(__name__)


def wait_for_locks(connection: apsw.Connection) -> None:
    """From now on statements wait for the file's locks."""
    connection.set_busy_timeout(_BUSY_TIMEOUT_MS)


def copy_without_waiting(connection: apsw.Connection, mode: int) -> None:
    """Copies the WAL back as `mode` says. Raises BusyError at once while somebody reads an earlier state."""
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
        #: Set when the WAL has been copied back. The writer clears it when it begins the WAL anew.
        self.copied = threading.Event()
        #: Pages in the WAL after the last commit.
        self.pages = 0
        #: Check-points that copied all, check-points that a reader prevented, and check-points that failed.
        self.done = self.held = self.failures = 0
        #: A failed read or write. The contents of the database are in doubt, so the queue manager must stop.
        self.error: Exception | None = None
        self.start()

    @property
    def is_long(self) -> bool:
        return self.pages >= LONG_PAGES

    def want(self) -> None:
        """Asks for a copy, unless one is under way, or is done and the WAL has not begun anew since."""
        has_ended = self._stopping or self.error is not None
        if self._rests.is_set() and not self.copied.is_set() and not has_ended:
            self._rests.clear()
            self._wanted.set()

    def wait(self) -> None:
        """Returns when no copy is under way. It waits for the disk, but never for a reader."""
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
            except Exception as error:  # the writer must see even an unexpected error
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
        """Copies the WAL, then the pages that came meanwhile, until these are few. The writer copies the rest itself.

        Returns False if a reader reads an earlier state of the store, because then newer pages must not be copied.
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
    """The status of the store in plain numbers, for metrics and commands.

    `free_bytes`: room inside the store's file for the next messages, before it takes more of the disk.
    `log_bytes`: bytes that wait to be copied into the database; `log_is_long`: whether they are too many.

    `checkpoints_*`: the attempts to copy it that succeeded, that a reader prevented, and that failed.
    """

    free_bytes: int
    log_bytes: int
    log_is_long: bool
    checkpoints_done: int
    checkpoints_held: int
    checkpoints_failed: int
