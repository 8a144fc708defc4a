"""Finds a store that went back: compares it with the end of its journal and with the marker beside it.

Both are read before SQLite opens the store, because opening overwrites the journal. They are compared with the store's
own word before anything is written to it. A contradiction changes nothing: an operator either restores the missing
files, or accepts the loss (rollback.py). Another store keeps the same marker, and tells the end of its own journal.

Nothing in the data folder can show that the whole folder went back, with marker and trail.
"""

import logging
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Final

import apsw

from mq_adapters.embedded.store.journal_end import JournalEnd, journal_end, wal_path
from mq_adapters.embedded.store.layout import APPLICATION_ID, FIRST_VERSION_WITH_REACH
from mq_adapters.embedded.store.reach import Marker, Reach, UnreadableMarker, read_marker
from mq_adapters.plausible_clock import wall_us
from mq_adapters.reasons import StoreError

MARKER_NAME: Final = "queue_manager.marker"
#: The reach in the store itself, in `meta`: number of its commits, and the time of the last.
_STORED: Final = Struct(">QQ")
WRITE_REACH: Final = "UPDATE meta SET value = ? WHERE key = 'reach'"
_HINT: Final = (
    "put the newest copies of all files of the data folder back, or go on without what is missing:"
    " rfhbridge queue accept-rollback"
)

#: The marker of a store that was about to be made.
_NOTHING: Final = Reach(incarnation=bytes(12))

_log = logging.getLogger(__name__)


class StoreWentBack(StoreError):
    """Committed work is missing. Nothing was changed. `findings` are sentences."""

    def __init__(self, operation: str, findings: tuple[str, ...]) -> None:
        super().__init__(operation, "; ".join(findings), _HINT)
        self.findings = findings


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReach:
    """A store's word on itself; `knows_marker`: its layout is one that has a marker beside it."""

    reach: Reach
    knows_marker: bool


class RollbackGuard:
    """The end of a store's journal, and its marker, which the store keeps from `begin` on. Raises OSError."""

    def __init__(self, database: Path, *, looks_at_journal: bool = True, accepts_rollback: bool = False) -> None:
        self._database = database
        self._accepts_rollback = accepts_rollback
        self._marker_path = database.with_name(MARKER_NAME)
        self._marker: Marker | None = None
        self.journal = journal_end(database) if looks_at_journal else JournalEnd()
        #: The content of the marker; None where it is missing or unreadable.
        self.marked: Reach | None = None
        self._unreadable = ""
        try:
            self.marked = read_marker(self._marker_path)
        except UnreadableMarker as error:
            self._unreadable = str(error)
        files = (database, wal_path(database))
        self._is_empty = not any(path.exists() and path.stat().st_size for path in files)

    # -- looking -------------------------------------------------------------------------------------------------------

    def of_files(self) -> tuple[str, ...]:
        """The findings in the files before they are opened."""
        end, name = self.journal, wal_path(self._database).name
        found: list[str] = []
        if end.lost:
            found.append(
                f"{name} is damaged at byte {end.damaged_at}: {end.lost + end.torn} commits behind that place cannot be"
                f" read, and {end.lost} of them had been synced"
            )
        if self._is_empty and self.marked is not None and self.marked.commits:
            told = f"commit {self.marked.commits} of {self.marked.at}"
            found.append(f"{self._database.name} is missing or empty, and its marker says {told}")
        return tuple(found)

    def of_store(self, stored: StoredReach | None) -> tuple[str, ...]:
        """The marker of a store; None for a file that is no store yet, or a foreign one."""
        if stored is None:
            return ()
        if self.marked is None:
            missing = f"its marker {MARKER_NAME} is missing: nobody can tell how far it had come"
            unknown = self._unreadable or (missing if stored.knows_marker else "")
            return (unknown,) if unknown else ()
        return _differences(stored, self.marked)

    # -- keeping -------------------------------------------------------------------------------------------------------

    def admit_files(self) -> None:
        """Raises StoreWentBack if the files show it before they are opened."""
        self._refuse(self.of_files())

    def admit(self, connection: apsw.Connection) -> None:
        """Raises StoreWentBack if the store's own word shows it. Then the store stays as it is, with its WAL."""
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        stored = stored_reach(connection)
        try:
            self._refuse(self.of_store(stored))
        except StoreWentBack:
            connection.close()
            raise
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        if self.journal.is_damaged:
            _log.warning("store recovered torn_commits=%s at_byte=%s", self.journal.torn, self.journal.damaged_at)
            # Removes the bytes behind the torn commit, which could look like a loss behind the next commits.
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        if stored is None or not stored.knows_marker:
            # Tables that should have a marker are about to be made: a crash never leaves them without one.
            Marker(self._marker_path, _NOTHING if stored is None else stored.reach).close()

    def begin(self, connection: apsw.Connection) -> Reach:
        """Writes the marker of a store that is open and sound; returns how far it reaches."""
        stored = stored_reach(connection)
        assert stored is not None, "the tables are there"
        self.close()
        self._marker = Marker(self._marker_path, stored.reach)
        return stored.reach

    def _refuse(self, findings: tuple[str, ...]) -> None:
        if findings and not self._accepts_rollback:
            raise StoreWentBack(f"open {self._database}", findings)

    def note(self, reach: Reach, *, is_synced: bool) -> None:
        """A commit is durable."""
        assert self._marker is not None, "begin comes first"
        if is_synced:
            self._marker.sync(reach)
        else:
            self._marker.note(reach)

    def close(self) -> None:
        if self._marker is not None:
            self._marker.close()
            self._marker = None


def stored_reach(connection: apsw.Connection) -> StoredReach | None:
    """The word of a store of any layout on itself; None for a file that is no store."""
    version = connection.pragma("user_version")
    if connection.pragma("application_id") != APPLICATION_ID:
        return None
    meta = dict(connection.execute("SELECT key, value FROM meta"))
    commits, at_us = _STORED.unpack(meta["reach"]) if "reach" in meta else (0, 0)
    if not isinstance(meta["incarnation"], bytes):  # of a number bytes() would make so many
        raise TypeError("incarnation is not made of bytes")
    reach = Reach(
        incarnation=meta["incarnation"],
        commits=commits,
        batch=int(meta["next_batch"]) - 1,
        numbers=int(meta["next_sequence"]),
        at_us=at_us,
    )
    return StoredReach(reach=reach, knows_marker=version >= FIRST_VERSION_WITH_REACH)


def packed_reach(commits: int, at_us: int) -> bytes:
    """The value of `WRITE_REACH`."""
    return _STORED.pack(commits, at_us)


def next_reach(before: Reach, *, batch: int, numbers: int) -> Reach:
    """How far a store reaches with one commit more."""
    return Reach(
        incarnation=before.incarnation, commits=before.commits + 1, batch=batch, numbers=numbers, at_us=wall_us()
    )


def _differences(stored: StoredReach, marked: Reach) -> tuple[str, ...]:
    reach = stored.reach
    if marked == _NOTHING and not reach.commits:
        return ()
    if reach.incarnation != marked.incarnation:
        told = f"its marker is that of incarnation {marked.incarnation.hex()} ({marked.at})"
        return (f"the store is of incarnation {reach.incarnation.hex()}, and {told}",)
    found: list[str] = []
    if stored.knows_marker and reach.commits < marked.commits:
        found.append(
            f"the store ends with commit {reach.commits} of {reach.at}, and its marker says commit {marked.commits} of"
            f" {marked.at}: {marked.commits - reach.commits} commits are missing"
        )
    if reach.batch < marked.batch:
        found.append(f"batches {reach.batch + 1} to {marked.batch} of audit notes are missing")
    if reach.numbers < marked.numbers:
        found.append(f"numbers up to {marked.numbers} were given to messages, and the store knows {reach.numbers}")
    return tuple(found)
