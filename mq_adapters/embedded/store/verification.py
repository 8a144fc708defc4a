"""Checks a store: the file, every checksum, and that everything in it agrees. A gateway may be running meanwhile.

It changes nothing, except `set_aside`, which takes damaged messages off their queues so that the others can be got.
"""

import fcntl
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from mq_adapters.attributes import ObjectType, unpack_definition
from mq_adapters.embedded.counters import cleared_rows
from mq_adapters.embedded.store.checksums import object_checksum, state_checksum
from mq_adapters.embedded.store.layout import APPLICATION_ID, USER_VERSION
from mq_adapters.embedded.store.reach import Reach
from mq_adapters.embedded.store.readers import may_be_ended
from mq_adapters.embedded.store.rollback_guard import RollbackGuard, stored_reach
from mq_adapters.embedded.store.rows import COLUMNS, DamagedRow, RowReader
from mq_adapters.embedded.store.store import FILE_NAME, LOCK_NAME, Store
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.reasons import StoreError

#: Findings beyond this many are counted, not listed.
MOST_FINDINGS: Final = 100
_BACK_OUT_KEY_BYTES: Final = 8
_ONE_MESSAGE: Final = f"SELECT {COLUMNS} FROM message WHERE sequence = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreVerification:
    """The result of a check. `findings` are sentences, at most MOST_FINDINGS of `count`; a sound store has none."""

    layout_version: int
    queues: int
    messages: int
    findings: tuple[str, ...]
    count: int

    @property
    def is_sound(self) -> bool:
        return not self.count


def verify_store(data_dir: Path) -> StoreVerification:
    """Checks the store of a data folder as it is now, and whether it went back. It stays as it is, with its WAL.

    Raises StoreError if there is no store, or if it is unreadable.
    """
    path = data_dir / FILE_NAME
    guard = _guard_of(path)
    found = list(guard.of_files())
    if not path.is_file() and found:
        raise StoreError(f"verify {path}", "; ".join(found), "restore it from a backup")
    if not path.is_file():
        raise StoreError(f"verify {path}", "there is no store", "name the data folder with --data")
    with reading(path) as connection:
        found += guard.of_store(stored_reach(connection))
        return _verified(connection, found)


def contradictions_of(data_dir: Path) -> tuple[tuple[str, ...], Reach | None]:
    """The signs that a store went back, and the reach that it claims; None if there is no store.

    Changes nothing. Raises StoreError if it is unreadable.
    """
    path = data_dir / FILE_NAME
    guard = _guard_of(path)
    found = guard.of_files()
    if not path.is_file():
        return found, None
    with reading(path) as connection:
        stored = stored_reach(connection)
        return (*found, *guard.of_store(stored)), None if stored is None else stored.reach


def _guard_of(path: Path) -> RollbackGuard:
    """The files beside a store. A running gateway has looked at the end of its journal already, and writes there."""
    try:
        with _unowned(path.parent) as is_unowned:
            return RollbackGuard(path, looks_at_journal=is_unowned)
    except OSError as error:
        raise StoreError(f"verify {path}", str(error), "let the gateway's user read the data folder") from error


def verify_file(path: Path) -> StoreVerification:
    """Checks one file that stands alone, such as a backup; see `verify_store`."""
    if not path.is_file():
        raise StoreError(f"verify {path}", "there is no store", "name the data folder with --data")
    with reading(path) as connection:
        return _verified(connection, [])


@contextmanager
def _unowned(data_dir: Path) -> Iterator[bool]:
    """Whether nobody owns the store. If so, nobody can come to own it meanwhile."""
    try:
        lock = os.open(data_dir / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield True
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(lock)


@contextmanager
def reading(path: Path) -> Iterator[apsw.Connection]:
    """The store as it is at one moment, for reading. StoreError if it cannot be read."""
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(10_000)
            connection.execute("PRAGMA query_only = ON")
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            with may_be_ended(path.with_name(LOCK_NAME), connection):
                connection.execute("BEGIN")
                yield connection
        finally:
            connection.close()
    except (apsw.Error, UnicodeDecodeError, TypeError, ValueError, LookupError) as error:
        raise StoreError(f"verify {path}", f"{type(error).__name__}: {error}", "restore it from a backup") from error


def set_aside(data_dir: Path) -> tuple[str, ...]:
    """Moves messages that cannot be got into table `damaged` of the store; returns a sentence for each one.

    Raises QueueManagerError 2042 while somebody else owns the store, and StoreError.
    """
    store = Store.open(data_dir)
    try:
        with reading(data_dir / FILE_NAME) as connection:
            found = dict(_damaged_messages(connection))
            names = Counter(_queue_name(connection, sequence) for sequence in found)
        store.set_aside(tuple(found), cleared_rows(store.states(StateKind.BALANCE), names))
    finally:
        store.close()
    return tuple(found.values())


def _queue_name(connection: apsw.Connection, sequence: int) -> str:
    """The queue of a message; "" if its number is that of no queue."""
    statement = "SELECT name FROM queue JOIN message ON queue.id = message.queue WHERE sequence = ?"
    return str(connection.execute(statement, (sequence,)).get or "")


def _verified(connection: apsw.Connection, went_back: list[str]) -> StoreVerification:
    version = connection.pragma("user_version")
    listed = list(went_back)
    count, queues, messages = len(listed), 0, 0
    if connection.pragma("application_id") != APPLICATION_ID or version != USER_VERSION:
        listed.append(f"layout version {version}, this program checks {USER_VERSION}; starting it upgrades older ones")
        count += 1
    else:
        queues = connection.execute("SELECT count(*) FROM queue").get
        messages = connection.execute("SELECT count(*) FROM message").get
        for finding in _findings(connection):
            count += 1
            if count <= MOST_FINDINGS:
                listed.append(finding)
    return StoreVerification(
        layout_version=version, queues=queues, messages=messages, findings=tuple(listed), count=count
    )


def _findings(connection: apsw.Connection) -> Iterator[str]:
    for (said,) in connection.execute("PRAGMA integrity_check"):
        if said != "ok":
            yield f"SQLite: {said}"
    yield from _meta_findings(connection)
    yield from _object_findings(connection)
    yield from (sentence for _, sentence in _damaged_messages(connection))
    yield from _state_findings(connection)


def _meta_findings(connection: apsw.Connection) -> Iterator[str]:
    meta = dict(connection.execute("SELECT key, value FROM meta"))
    for key, kind in (("incarnation", bytes), ("next_sequence", int), ("next_batch", int), ("reach", bytes)):
        if not isinstance(meta.get(key), kind):
            yield f"meta {key} is missing or of another type"
    reserved = meta.get("next_sequence")
    highest = connection.execute("SELECT max(sequence) FROM message").get
    if isinstance(reserved, int) and highest is not None and highest >= reserved:
        yield f"message {highest} is not below the reserved sequence {reserved}: its number could be used again"


def _object_findings(connection: apsw.Connection) -> Iterator[str]:
    local = set()
    for object_type, name, attributes, checksum in connection.execute(
        "SELECT type, name, attributes, checksum FROM object"
    ):
        if _checksum(object_checksum, object_type, name, attributes) != checksum:
            yield f"object {name} of type {object_type} is not as it was written: its checksum is another"
        try:
            unpack_definition(object_type, name, attributes)
        except (ValueError, TypeError, AttributeError) as error:
            yield f"object {name} of type {object_type} is not readable: {error}"
        if object_type == ObjectType.QLOCAL:
            local.add(name)
    queues = {name for (name,) in connection.execute("SELECT name FROM queue")}
    for name in sorted(local ^ queues, key=str):
        yield f"queue {name} has {'no messages table entry' if name in local else 'no attributes'}"


def _checksum(of: Callable[..., int], *columns: object) -> int | None:
    """The checksum of a row; None where damage has changed the type of a column."""
    try:
        return of(*columns)
    except TypeError:
        return None


def _damaged_messages(connection: apsw.Connection) -> Iterator[tuple[int, str]]:
    """The messages that cannot be got, by number, each with a sentence about it."""
    queues = dict(connection.execute("SELECT id, name FROM queue"))
    reader = RowReader()
    for sequence, queue in connection.execute("SELECT sequence, queue FROM message ORDER BY sequence"):
        if queue not in queues:
            yield sequence, f"message {sequence} is on queue number {queue}, which is not defined"
            continue
        try:
            reader.message(connection.execute(_ONE_MESSAGE, (sequence,)).fetchall()[0])
        except (DamagedRow, UnicodeDecodeError) as damage:
            yield sequence, f"message {sequence} on queue {queues[queue]} {_how(damage)}"


def _how(damage: DamagedRow | UnicodeDecodeError) -> str:
    return str(damage) if isinstance(damage, DamagedRow) else f"is not readable: {damage}"


def _state_findings(connection: apsw.Connection) -> Iterator[str]:
    for kind, key, value, checksum in connection.execute("SELECT space, key, value, checksum FROM state"):
        if _checksum(state_checksum, kind, key, value) != checksum:
            yield f"state {kind} {key!r:.80} is not as it was written: its checksum is another"
    rows = connection.execute("SELECT key, value FROM state WHERE space = ?", (int(StateKind.BACK_OUT_COUNT),))
    for key, value in list(rows):
        if not (
            isinstance(key, bytes) and len(key) == _BACK_OUT_KEY_BYTES and isinstance(value, bytes) and len(value) == 1
        ):
            yield f"back-out count {key!r:.80} is not readable"
            continue
        sequence = int.from_bytes(key, "big")
        if connection.execute("SELECT 1 FROM message WHERE sequence = ?", (sequence,)).get is None:
            yield f"back-out count of message {sequence}, which is not there"
