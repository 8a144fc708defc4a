"""The file under the queue manager: one SQLite database that one process owns.

Its tables and their version: layout.py.

Writes go through one connection: WAL, synchronous FULL, so COMMIT returns after fsync. A second connection reads and
defines queues; a third one, in a thread of its own, copies the WAL back when it has grown (safe since SQLite 3.51.3).
"""

import os
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeVar

import apsw

from mq_adapters.attributes import Definition, ObjectType, unpack_definition
from mq_adapters.embedded.store.checkpoint import (
    LONG_PAGES,
    PAGE_BYTES,
    CheckpointThread,
    StoreStatus,
    copy_without_waiting,
    wait_for_locks,
)
from mq_adapters.embedded.store.checksums import object_checksum, sound, state_checksum
from mq_adapters.embedded.store.compaction import FreePages
from mq_adapters.embedded.store.errors import damage, failure
from mq_adapters.embedded.store.files import StoreFiles, keep_private, lock_now, make_folder
from mq_adapters.embedded.store.layout import prepare
from mq_adapters.embedded.store.readers import StandingReaders
from mq_adapters.embedded.store.rollback_guard import MARKER_NAME, WRITE_REACH, RollbackGuard, next_reach, packed_reach
from mq_adapters.embedded.store.rows import COLUMNS, OTHER_CHECKSUM, DamagedRow, MessageRow, RowReader, checked_state
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.message import IDENTIFIER_TAG, Message
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError

FILE_NAME: Final = "queue_manager.sqlite"
LOCK_NAME: Final = "queue_manager.lock"
#: A WAL of this many 4,096-byte pages is copied back by the checkpoint thread: 4,000 at once hold up commits beside it.
CHECKPOINT_PAGES: Final = 1_000
#: Numbers reserved at a time. The reservation costs one row, and a gap after a restart costs nothing.
SEQUENCE_BLOCK: Final = 1_000_000
_LOCK_POLL_S: Final = 0.05
#: The name of a queue manager without a configured name.
DEFAULT_NAME: Final = "RFHBRIDGE"
#: A back-out count's key is the number of its message, 8 bytes, big-endian (unit_of_work.back_out_key).
_DELETE_BACK_OUT_COUNTS: Final = (
    "DELETE FROM state WHERE space = ? AND key IN"
    " (SELECT unhex(printf('%016X', sequence)) FROM message WHERE queue = ?)"
)
_READ: Final = f"SELECT {COLUMNS} FROM message WHERE sequence IN carray(?) ORDER BY sequence"

_Value = TypeVar("_Value")
StateRow = tuple[int, bytes, bytes | None]
Change = tuple[str, tuple[int | str | bytes, ...]]


class Store:
    """The database of one data folder, opened by its one owner."""

    def __init__(
        self, data_dir: Path, lock: int, rescue_folder: Path | None = None, *, accepts_rollback: bool = False
    ) -> None:
        self._lock = lock
        #: Held while a commit is under way, perhaps in a thread.
        self._committing = Lock()
        self.path = data_dir / FILE_NAME
        self._rows = RowReader()
        try:
            self._guard = RollbackGuard(self.path, accepts_rollback=accepts_rollback)
            self._guard.admit_files()
            keep_private(self.path)
            self._writer = self._connect(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
            self._guard.admit(self._writer)
            prepare(self._writer, self.path)
            self._reader = self._connect(apsw.SQLITE_OPEN_READWRITE)
            self.incarnation = self._meta("incarnation", bytes)
            #: The first incarnation. Names that survive a store that went back are made of it.
            self.identity = self._meta("identity", bytes, self.incarnation)
            self.next_sequence = self._meta("next_sequence", int)
            self.next_batch = self._meta("next_batch", int)
            self.reserved_to = self.next_sequence
            self.reserve_sequences(self.next_sequence)
            #: How far the store reaches, including the commit under way.
            self.reach = self._guard.begin(self._writer)
            #: Whether the next commit syncs the marker.
            self._marker_is_due = False
            self.files = StoreFiles(
                data_dir,
                written=(FILE_NAME, f"{FILE_NAME}-wal", MARKER_NAME),
                looked_at=(LOCK_NAME,),
                without=(f"{FILE_NAME}-shm",),
                rescue_folder=rescue_folder,
            )
            self._checkpoint = CheckpointThread(self.path)
            connections = self._writer, self._reader
            self.free_pages = FreePages(self.path, *connections, checkpoint=self._checkpoint, lock=self._committing)
        except (apsw.Error, OSError, TypeError, ValueError, LookupError) as error:
            raise failure(f"open {self.path.name}", error) from error
        self._standing_readers = StandingReaders(self.path, data_dir / LOCK_NAME)
        self._writer.set_wal_hook(self._wal_has_grown)

    @classmethod
    def open(
        cls,
        data_dir: Path,
        *,
        wait_s: float = 0.0,
        rescue_folder: Path | None = None,
        accepts_rollback: bool = False,
    ) -> "Store":
        """Opens or makes the store of a data folder. If the data folder is gone, files are copied to the rescue folder.

        Waits up to `wait_s` seconds for another owner to leave, then raises QueueManagerError 2042. The lock is the
        kernel's: it goes with the process, however that ends. Raises StoreError for a damaged or newer file, and
        StoreWentBack for a file that went back, unless that is accepted.
        """
        try:
            make_folder(data_dir)
            lock = os.open(data_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise failure(f"open the data folder {data_dir}", error) from error
        deadline = time.monotonic() + wait_s
        while not lock_now(lock):
            if time.monotonic() >= deadline:
                os.close(lock)
                raise QueueManagerError(ReasonCode.MQRC_OBJECT_IN_USE, f"open the store in {data_dir}")
            time.sleep(_LOCK_POLL_S)
        try:
            return cls(data_dir, lock, rescue_folder, accepts_rollback=accepts_rollback)
        except BaseException:
            os.close(lock)
            raise

    # -- reading -----------------------------------------------------------------------------------------------------

    def queues(self) -> list[tuple[int, str, str]]:
        rows = self._read("SELECT id, name, description FROM queue ORDER BY id")
        for row in rows:
            if [type(column) for column in row] != [int, str, str]:
                raise damage(f"read queue {row[1]!r:.60}", "has a column of another type")
        return rows

    def definitions(self) -> list[Definition]:
        """Every object, with its attributes."""
        rows = self._read("SELECT type, name, attributes, checksum FROM object ORDER BY type, name")
        try:
            for *row, checksum in rows:
                if object_checksum(*row) != checksum:
                    raise damage(f"read object {row[1]!r:.60}", OTHER_CHECKSUM)
            return [unpack_definition(*row) for *row, _ in rows]
        except (ValueError, TypeError, AttributeError) as error:
            raise failure("read the objects", error) from error

    def index(self) -> Iterator[tuple[Any, ...]]:
        """Number, queue, CorrelId, MsgId, expiry, priority and length of every message, oldest first; unchecked."""
        columns = "sequence, queue, correl_id, msg_id, expires_us, priority, length(body)"
        try:
            yield from self._reader.execute(f"SELECT {columns} FROM message ORDER BY sequence")
        except (apsw.Error, UnicodeDecodeError) as error:
            raise failure("read the index", error) from error

    def priorities(self, queue: int) -> dict[int, int]:
        """The priority of each message of a queue, by its number."""
        return dict(self._read("SELECT sequence, priority FROM message WHERE queue = ?", (queue,)))

    def origins(self, sequences: Sequence[int]) -> list[tuple[bytes, int]]:
        """Private origin and bytes of the body of those messages in the store; empty what is of another type."""
        found = self._of_messages("origin, length(body)", sequences)
        return [(sound(bytes, origin) or b"", length or 0) for origin, length in found]

    def lanes(self, sequences: Sequence[int]) -> list[tuple[int, bytes | None, int]]:
        """Number, CorrelId and time of the put, as `origins`."""
        found = self._of_messages("sequence, correl_id, put_us", sequences)
        return [(each[0], sound(bytes, each[1]), sound(int, each[2]) or 0) for each in found]

    def _of_messages(self, columns: str, sequences: Sequence[int]) -> list[tuple]:  # type: ignore[type-arg]  # by columns
        if not sequences:
            return []  # SQLite refuses an empty array
        wanted = apsw.carray(array("q", sequences))
        return self._read(f"SELECT {columns} FROM message WHERE sequence IN carray(?)", (wanted,))

    def state(self, kind: int, key: bytes) -> bytes | None:
        """One value of a kind, as last committed; None if there is none."""
        rows = self._read("SELECT key, value, checksum FROM state WHERE space = ? AND key = ?", (kind, key))
        return checked_state(kind, rows[0])[1] if rows else None

    def each_state(self, kind: int, prefix: bytes = b"", *, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Keys and values of a kind, for keys with that prefix, from `start` on. Together they may be large."""
        statement = "SELECT key, value, checksum FROM state WHERE space = ? AND key >= ? ORDER BY key"
        try:
            for row in self._reader.execute(statement, (kind, max(prefix, start))):
                if not row[0].startswith(prefix):
                    return
                yield checked_state(kind, row)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise failure("read the store", error) from error

    def states(self, kind: int) -> list[tuple[bytes, bytes]]:
        return list(self.each_state(kind))

    def messages(self, sequences: Sequence[int], most_bytes: int) -> Iterator[tuple[int, Message]]:
        """The messages of these numbers that are in the store, each with the number of its queue, oldest first.

        Ends after the message with which the bodies have more than `most_bytes`. Raises StoreError, which names message
        and queue, for a message that has changed since it was put.
        """
        wanted = apsw.carray(array("q", sequences))
        left = most_bytes
        try:
            for row in self._reader.execute(_READ, (wanted,)):
                message = self._message(row)
                yield row[1], message
                left -= len(message.body)
                if left < 0:
                    return
        except (apsw.Error, UnicodeDecodeError) as error:
            raise failure("read the store", error) from error

    def count_states(self, kind: int) -> int:
        """How many keys of a kind there are."""
        return int(self._read("SELECT count(*) FROM state WHERE space = ?", (kind,))[0][0])

    def count_messages(self, queue: int) -> int:
        """How many messages a queue has, by their rows."""
        return int(self._read("SELECT count(*) FROM message WHERE queue = ?", (queue,))[0][0])

    def last_put_us(self) -> int:
        """The put time of the newest message in the store, microseconds since 1970 UTC; 0 without messages."""
        rows = self._read("SELECT put_us FROM message ORDER BY sequence DESC LIMIT 1")
        return rows[0][0] if rows and isinstance(rows[0][0], int) else 0

    def settled_name(self, name: str | None) -> str:
        """The queue manager's name: `name`, which the store keeps from now on, or the kept one."""
        kept = self._read("SELECT value FROM meta WHERE key = 'name'")
        if name is None or (kept and kept[0][0] == name):
            return str(kept[0][0]) if kept else DEFAULT_NAME
        self._change("name the queue manager", [("INSERT OR REPLACE INTO meta VALUES('name', ?)", (name,))])
        return name

    @property
    def identifier_prefix(self) -> bytes:
        return IDENTIFIER_TAG + self.incarnation

    def status(self) -> StoreStatus:
        """The present status of the store."""
        checkpoint = self._checkpoint
        return StoreStatus(
            free_bytes=self.free_pages.free_bytes,
            log_bytes=checkpoint.pages * PAGE_BYTES,
            log_is_long=checkpoint.is_long,
            checkpoints_done=checkpoint.done,
            checkpoints_held=checkpoint.held,
            checkpoints_failed=checkpoint.failures,
        )

    def look(self) -> None:
        """Checks what no commit checks. Call it about once a second. Raises StoreError as `commit` does."""
        self._standing_readers.look(self._checkpoint.pages * PAGE_BYTES, is_long=self._checkpoint.is_long)
        self._check()
        self.files.look()

    def rescued(self, error: StoreError) -> StoreError:
        """The error that ends the store's use. If its files are gone, it copies them, and the error says where to."""
        with self._committing:
            if not self.files.are_gone():
                return error
            self._checkpoint.stop()
            return self.files.rescue(error)

    # -- writing -----------------------------------------------------------------------------------------------------

    def reserve_sequences(self, up_to: int) -> None:
        """From the next commit on, a restart gives no number up to a block above `up_to`."""
        self.reserved_to = up_to + SEQUENCE_BLOCK
        self._writer.execute("UPDATE meta SET value = ? WHERE key = 'next_sequence'", (self.reserved_to,))

    def write(
        self,
        *,
        puts: list[MessageRow],
        removals: list[tuple[int]],
        states: list[StateRow],
        next_sequence: int,
        next_batch: int,
    ) -> None:
        """Writes a group of units of work into one transaction and leaves it open for `commit`."""
        execute, execute_many = self._writer.execute, self._writer.executemany
        try:
            execute("BEGIN IMMEDIATE")
            if next_sequence + SEQUENCE_BLOCK // 2 > self.reserved_to:
                self.reserve_sequences(next_sequence)
                self._marker_is_due = True
            if next_batch != self.next_batch:
                execute("UPDATE meta SET value = ? WHERE key = 'next_batch'", (next_batch,))
                self.next_batch = next_batch
            if puts:
                execute_many("INSERT INTO message VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", puts)
            if removals:
                execute_many("DELETE FROM message WHERE sequence = ?", removals)
            if states:
                self._write_states(states)
            self.reach = next_reach(self.reach, batch=next_batch - 1, numbers=self.reserved_to)
            execute(WRITE_REACH, (packed_reach(self.reach.commits, self.reach.at_us),))
        except apsw.Error as error:
            raise failure("write a group of units of work", error) from error

    def commit(self) -> None:
        """COMMIT, which returns after fsync. After an error the group is not acknowledged: stop."""
        with self._committing:
            try:
                reach = self.reach
                self._writer.execute("COMMIT")
                if self._checkpoint.copied.is_set():
                    self._restart_wal()
                    self._marker_is_due = True
                self._guard.note(reach, is_synced=self._marker_is_due)
                self._marker_is_due = False
            except (apsw.Error, OSError) as error:
                raise failure("commit a group of units of work", error) from error
            self._check()

    def add_queue(self, definition: Definition) -> int:
        """Adds a queue; returns its number."""
        name, description = definition.name, definition.text("DESCR")
        added = ("INSERT INTO queue(name, description) VALUES(?, ?)", (name, description))
        self._change(f"define queue {name}", [added, _kept(definition)])
        return self._reader.last_insert_rowid()

    def remove_queue(self, identifier: int, name: str, counters: Sequence[StateRow]) -> None:
        """Removes a queue and the messages on it, and writes the changed rows of the counters."""
        self._change(
            f"delete queue {name}",
            [
                (_DELETE_BACK_OUT_COUNTS, (int(StateKind.BACK_OUT_COUNT), identifier)),
                ("DELETE FROM message WHERE queue = ?", (identifier,)),
                ("DELETE FROM queue WHERE id = ?", (identifier,)),
                ("DELETE FROM object WHERE type = ? AND name = ?", (int(ObjectType.QLOCAL), name)),
                *map(state_change, counters),
            ],
        )

    def set_definition(self, definition: Definition) -> None:
        """Adds or replaces an object."""
        changes = [_kept(definition)]
        if definition.object_type == ObjectType.QLOCAL:
            described = (definition.text("DESCR"), definition.name)
            changes.append(("UPDATE queue SET description = ? WHERE name = ?", described))
        self._change(f"define {definition.name}", changes)

    def set_aside(self, sequences: Sequence[int], counters: Sequence[StateRow]) -> None:
        """Moves damaged messages off their queues into table `damaged`, and writes the rows of the counters.

        Call it before the queues are served.
        """
        moved = f"INSERT INTO damaged SELECT {COLUMNS} FROM message WHERE sequence = ?"
        changes: list[Change] = []
        for sequence in sequences:
            changes += [(moved, (sequence,)), ("DELETE FROM message WHERE sequence = ?", (sequence,))]
        changes += map(state_change, counters)
        self._change("set damaged messages aside", changes)

    @contextmanager
    def rewriting(self) -> Iterator[apsw.Connection]:
        """One transaction for a change that is no unit of work. Close the store after it: memory has the old state."""
        try:
            with self._writer:
                yield self._writer
            self._guard.begin(self._writer)
        except (apsw.Error, OSError) as error:
            raise failure("change the store", error) from error

    def remove_definition(self, definition: Definition) -> None:
        place = (int(definition.object_type), definition.name)
        self._change(f"delete {definition.name}", [("DELETE FROM object WHERE type = ? AND name = ?", place)])

    def close(self) -> None:
        """Waits for a commit that is under way in a thread."""
        with self._committing:
            self._close()

    def _close(self) -> None:
        self._checkpoint.stop()
        self._reader.close()
        self._writer.close()
        self.files.close()
        self._guard.close()
        os.close(self._lock)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _connect(self, flags: int) -> apsw.Connection:
        connection = apsw.Connection(str(self.path), flags=flags)
        wait_for_locks(connection)
        if not self.path.stat().st_size:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # compaction.py
        for pragma in (
            f"page_size = {PAGE_BYTES}",
            "journal_mode = WAL",
            "synchronous = FULL",
            "wal_autocheckpoint = 0",
            f"journal_size_limit = {LONG_PAGES * PAGE_BYTES}",  # a WAL that was too long gives its room back
        ):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _change(self, operation: str, changes: "list[Change]") -> None:
        """Runs statements in a transaction of their own, because a thread may be committing on the other connection."""
        reach = next_reach(self.reach, batch=self.reach.batch, numbers=self.reserved_to)
        try:
            with self._reader:
                for statement, bindings in (*changes, (WRITE_REACH, (packed_reach(reach.commits, reach.at_us),))):
                    self._reader.execute(statement, bindings)
            self.reach = reach
            self._guard.note(reach, is_synced=False)
        except (apsw.Error, OSError) as error:
            raise failure(operation, error) from error
        self.files.check()

    def _meta(self, key: str, kind: type[_Value], otherwise: _Value | None = None) -> _Value:
        found = self._writer.execute("SELECT value FROM meta WHERE key = ?", (key,)).get
        value = otherwise if found is None else found
        if not isinstance(value, kind):
            raise LookupError(f"{key} is not in its table meta, or of another type")
        return value

    def _read(self, statement: str, bindings: tuple[Any, ...] = ()) -> list[tuple]:  # type: ignore[type-arg]  # rows differ by statement
        try:
            return list(self._reader.execute(statement, bindings))
        except (apsw.Error, UnicodeDecodeError) as error:
            raise failure("read the store", error) from error

    def _message(self, row: tuple[Any, ...]) -> Message:
        try:
            message = self._rows.message(row)
        except DamagedRow as error:
            raise damage(f"read message {row[0]} on queue {self._queue_name(row[1])}", str(error)) from error
        message.identifier_prefix = self.identifier_prefix
        return message

    def _queue_name(self, identifier: Any) -> str:
        names = self._read("SELECT name FROM queue WHERE id = ?", (identifier,))
        return str(names[0][0]) if names else f"number {identifier}, which is not defined"

    def _write_states(self, states: list[StateRow]) -> None:
        """Writes the last value of each key. Of several changes in one group only the last counts."""
        latest = {(kind, key): value for kind, key, value in states}
        deleted = [place for place, value in latest.items() if value is None]
        kept = [
            (kind, key, value, state_checksum(kind, key, value))
            for (kind, key), value in latest.items()
            if value is not None
        ]
        if deleted:
            self._writer.executemany("DELETE FROM state WHERE space = ? AND key = ?", deleted)
        if kept:
            self._writer.executemany("INSERT OR REPLACE INTO state VALUES(?, ?, ?, ?)", kept)

    def _check(self) -> None:
        """Checks that written data is kept, because a failed check-point is a failed write like any other."""
        error = self._checkpoint.error
        if error is not None:
            raise failure("check-point the store", error) from error
        self.files.check()

    def _wal_has_grown(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._checkpoint.pages = pages
        if pages >= CHECKPOINT_PAGES:
            self._checkpoint.want()
        return apsw.SQLITE_OK

    def _restart_wal(self) -> None:
        """Copies the rest of the WAL back, after the thread has copied most of it, and begins the WAL anew.

        While somebody reads (a backup, a check), the WAL goes on growing instead: no commit waits for readers.
        """
        self._checkpoint.copied.clear()
        try:
            copy_without_waiting(self._writer, apsw.SQLITE_CHECKPOINT_RESTART)
        except apsw.BusyError:
            return
        except apsw.Error as error:
            self._checkpoint.failed(error)


def state_change(row: StateRow) -> Change:
    kind, key, value = row
    if value is None:
        return "DELETE FROM state WHERE space = ? AND key = ?", (int(kind), key)
    checksum = state_checksum(kind, key, value)
    return "INSERT OR REPLACE INTO state VALUES(?, ?, ?, ?)", (int(kind), key, value, checksum)


def _kept(definition: Definition) -> Change:
    place, packed = (int(definition.object_type), definition.name), definition.pack()
    return "INSERT OR REPLACE INTO object VALUES(?, ?, ?, ?)", (*place, packed, object_checksum(*place, packed))
