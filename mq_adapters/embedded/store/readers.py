"""Processes that read the store beside its owner (a backup, a check, a command), and for how long.

A reader sees the store of one moment, and SQLite keeps all later changes in the WAL. The store leaves a reader alone as
long as it makes progress. If a reader stands still while the WAL is too long, the store ends it. Only our commands are
ended: each says so with `may_be_ended`. The log names a foreign program, but the store never touches it.

The kernel knows the holder of each lock (proc(5), /proc/locks). A read of SQLite holds one of five bytes of the `-shm`
file (SQLite, "WAL-mode File Format", 2.3.1). A process that may be ended holds the byte of the store's lock file whose
number is its process identifier. Without /proc no reader is found. The store's owner opens neither file here, because
closing a file drops all POSIX locks of the process on it.
"""

import contextlib
import fcntl
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

import apsw

from mq_adapters.reasons import StoreError

#: A reader that uses no processor time for so many seconds, while the WAL is too long, is told to end.
STANDING_S: Final = 5.0
#: A reader that was told to end has so many seconds for it.
_ENDING_S: Final = 3.0
#: In the `-shm` file, the locks on the five marks of readers.
_READ_MARKS: Final = range(123, 128)
_LOCKS: Final = Path("/proc/locks")
#: Bytes of a command line that are shown.
_COMMAND_BYTES: Final = 120
#: Steps of SQLite's machine between two looks for a signal, a few milliseconds.
_STEPS: Final = 50_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReader:
    """A process that reads. `processor_ticks`: processor time so far; `is_stopped`: by a signal."""

    pid: int
    command: str
    may_be_ended: bool
    processor_ticks: int
    is_stopped: bool


@contextlib.contextmanager
def may_be_ended(lock_file: Path, connection: apsw.Connection) -> Iterator[None]:
    """Says that the store's owner may end this process's reading. StoreError when it does."""
    connection.set_progress_handler(lambda: False, _STEPS)
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGUSR1, _give_way) if in_main else None
    descriptor = _marked(lock_file) if in_main else -1
    try:
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)
        if in_main:
            signal.signal(signal.SIGUSR1, before)
        connection.set_progress_handler(None, _STEPS)


def _marked(lock_file: Path) -> int:
    """A descriptor with this process's mark; -1 if no store owner could read it."""
    try:
        descriptor = os.open(lock_file, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return -1
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, os.getpid())
    except OSError:
        os.close(descriptor)
        return -1
    return descriptor


def _give_way(_number: int, _frame: FrameType | None) -> None:
    raise StoreError(
        "read the store",
        "the gateway ended it, because it read nothing for some seconds and the log grew too long meanwhile",
        "try again; write a backup to a disk that takes it",
    )


def readers(database: Path, lock_file: Path) -> list[StoreReader]:
    """Other processes that read the store at this moment, by their number."""
    try:
        shared = Path(f"{database}-shm").stat().st_ino
        own = lock_file.stat().st_ino
        locks = _locks()
    except (OSError, ValueError):
        return []
    found = {pid for inode, pid, start in locks if inode == shared and start in _READ_MARKS}
    marked = {pid for inode, pid, start in locks if inode == own and start == pid}
    return [reader for pid in sorted(found) if pid > 0 and (reader := _reader(pid, pid in marked)) is not None]


def _locks() -> list[tuple[int, int, int]]:
    """Inode, process and first byte of each POSIX lock that others hold."""
    found = []
    for line in _LOCKS.read_text().splitlines():
        words = line.split()  # number: POSIX ADVISORY READ pid major:minor:inode start end
        if len(words) == 8 and words[1] == "POSIX" and int(words[4]) != os.getpid():
            found.append((int(words[5].rpartition(":")[2]), int(words[4]), int(words[6])))
    return found


def _reader(pid: int, is_marked: bool) -> StoreReader | None:
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:  # it has ended
        return None
    return StoreReader(
        pid=pid,
        command=command[:_COMMAND_BYTES].decode(errors="replace").strip(),
        may_be_ended=is_marked,
        processor_ticks=int(fields[10]) + int(fields[11]),  # utime and stime, fields 14 and 15 of proc(5)
        is_stopped=state in "Tt",
    )


class StandingReaders:
    """Watches the readers while the WAL is too long, and ends those that stand still."""

    def __init__(self, database: Path, lock_file: Path) -> None:
        self._database = database
        self._lock_file = lock_file
        #: The processor time of each reader when it last moved, and when that was.
        self._seen: dict[int, tuple[int, float]] = {}
        #: Readers that were told to end, and when.
        self._told: dict[int, float] = {}
        #: Whether the WAL was too long at the last look.
        self._was_long = False

    def look(self, wal_bytes: int, *, is_long: bool) -> None:
        """Call it about once a second.

        It logs when the WAL becomes too long, with its readers, and when it is short again.
        """
        found = readers(self._database, self._lock_file) if is_long else []
        if is_long is not self._was_long:
            self._was_long = is_long
            if is_long:
                who = "; ".join(f"{reader.pid} {reader.command}" for reader in found)
                _log.error("wal grew too long wal_bytes=%s readers=%s", wal_bytes, who or "none found")
            else:
                _log.info("wal is short again wal_bytes=%s", wal_bytes)
        now_s = time.monotonic()
        self._seen = {reader.pid: self._movement(reader, now_s) for reader in found}
        self._told = {pid: told_s for pid, told_s in self._told.items() if pid in self._seen}
        for reader in found:
            if reader.may_be_ended:
                self._end_standing(reader, now_s)

    def _movement(self, reader: StoreReader, now_s: float) -> tuple[int, float]:
        ticks, moved_s = self._seen.get(reader.pid, (-1, now_s))
        return (ticks, moved_s) if ticks == reader.processor_ticks else (reader.processor_ticks, now_s)

    def _end_standing(self, reader: StoreReader, now_s: float) -> None:
        stands_s = now_s - self._seen[reader.pid][1]
        told_s = self._told.get(reader.pid)
        if told_s is None and (reader.is_stopped or stands_s >= STANDING_S):
            self._told[reader.pid] = now_s
            _log.warning(
                "reader told to end pid=%s command=%s stood_still_s=%.1f", reader.pid, reader.command, stands_s
            )
            _signal(reader.pid, signal.SIGUSR1)
            _signal(reader.pid, signal.SIGCONT)
        elif told_s is not None and now_s - told_s >= _ENDING_S:
            self._told[reader.pid] = now_s
            _log.warning("reader killed pid=%s command=%s", reader.pid, reader.command)
            _signal(reader.pid, signal.SIGKILL)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(OSError):  # it has ended, or is another user's
        os.kill(pid, number)
