"""The operator accepts that a store went back: a new incarnation begins, and its numbers never meet the lost ones.

The messages in the store stay, with their MsgIds. The MsgIds are written into them, because from now on the store makes
MsgIds of its present incarnation. So no earlier MsgId, and no earlier batch of audit notes, can come again. Sequence
numbers, and session numbers with them, go on behind all numbers that may have been given. Some names are known to
others and must survive this, such as a session's CorrelId at a target. They are made of the first incarnation,
`Store.identity`.

All of it is one transaction. After a crash between it and the new marker, the operator has to accept once more.
"""

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, cast

import apsw

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.counters import put_rows
from mq_adapters.embedded.store.journal_end import journal_end, wal_path
from mq_adapters.embedded.store.reach import Reach
from mq_adapters.embedded.store.rollback_guard import RollbackGuard, next_reach, packed_reach
from mq_adapters.embedded.store.rows import COLUMNS, DamagedRow, MessageRow, RowReader, rows_of
from mq_adapters.embedded.store.store import FILE_NAME, StateRow, Store, state_change
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.plausible_clock import wall_us
from mq_adapters.reasons import StoreError
from mq_adapters.system_queues import AUDIT_QUEUE, SYSTEM_QUEUES

#: More messages than any store can have lost. Sequence numbers have 63 bits.
_NUMBERS_LEFT_OUT: Final = 1 << 32
_INCARNATION_BYTES: Final = 12
_ROWS_AT_ONCE: Final = 500
_UPDATE: Final = "UPDATE message SET msg_id = ?, descriptor = ?, body = ?, checksum = ? WHERE sequence = ?"
_INSERT: Final = "INSERT INTO message VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """A store that went back, before and after it was accepted.

    `before` is how far it reaches. `marked` is how far it had come by its marker, None if that is unknown.
    `kept_journal` is the name of the copy of a damaged WAL, "" if the WAL was not damaged.
    """

    before: Reach
    marked: Reach | None
    incarnation: bytes
    kept_journal: str = ""


#: Makes the first batch of notes of a new incarnation: from (before, marked, waiting) to the packed batch, number 1.
FirstBatch = Callable[[Reach, Reach | None, int], bytes]
#: Makes the body of a message on the queue of channel states anew, for the new incarnation.
Restated = Callable[[bytes, bytes], bytes]


def accept_rollback(
    data_dir: Path,
    *,
    first_batch: FirstBatch | None = None,
    state_queue: str = "",
    restated: Restated | None = None,
    states: Iterable[StateRow] = (),
) -> Rollback:
    """Begins a new incarnation of the store in a data folder; the gateway must not run.

    `first_batch` makes its first batch of notes. `restated` makes each message on the queue of channel states anew.
    `states` are written with it.
    Raises QueueManagerError 2042 if somebody owns the store, StoreError if it cannot be used even so.
    """
    marked = RollbackGuard(data_dir / FILE_NAME).marked
    kept = _keep_journal(data_dir / FILE_NAME)
    store = Store.open(data_dir, accepts_rollback=True)
    try:
        before = _reach_before(store.reach, marked)
        incarnation = secrets.token_bytes(_INCARNATION_BYTES)
        number = max(before.numbers, 0 if marked is None else marked.numbers) + _NUMBERS_LEFT_OUT
        if first_batch is not None and AUDIT_QUEUE not in [name for _, name, _ in store.queues()]:
            store.add_queue(_AUDIT_QUEUE)  # the file was gone
        counted = store.states(StateKind.BALANCE)
        with store.rewriting() as connection:
            _check_structure(connection, store.path)
            queues = {name: identifier for identifier, name in connection.execute("SELECT id, name FROM queue")}
            _keep_identifiers(connection, store.identifier_prefix)
            if restated is not None and state_queue in queues:
                _restate(connection, queues[state_queue], partial(_of_next, restated, incarnation))
            if first_batch is not None and AUDIT_QUEUE in queues:
                identifier = queues[AUDIT_QUEUE]
                waiting = connection.execute("SELECT count(*) FROM message WHERE queue = ?", (identifier,)).get
                _put(connection, identifier, number, first_batch(before, marked, waiting))
                for row in put_rows(counted, {AUDIT_QUEUE: 1}):
                    connection.execute(*state_change(row))
            for row in states:
                connection.execute(*state_change(row))
            _write_meta(connection, store, before, incarnation, number + 1)
    finally:
        store.close()
    return Rollback(before=before, marked=marked, incarnation=incarnation, kept_journal=kept)


def _reach_before(reach: Reach, marked: Reach | None) -> Reach:
    """How far the store reaches. If the file was gone, only its marker tells."""
    is_new = not reach.commits and marked is not None and any(marked.incarnation)
    return Reach(incarnation=marked.incarnation, numbers=reach.numbers) if is_new and marked is not None else reach


def _of_next(restated: Restated, incarnation: bytes, body: bytes) -> bytes:
    return restated(body, incarnation)


def _put(connection: apsw.Connection, queue: int, number: int, batch: bytes) -> None:
    message = Message(_NOTES, batch)
    message.sequence, message.put_us = number, wall_us()
    connection.executemany(_INSERT, rows_of([(queue, message)]))


#: As the engine defines it (Engine.ensure).
_AUDIT_QUEUE: Final = Definition(
    object_type=ObjectType.QLOCAL,
    name=AUDIT_QUEUE,
    said={"DESCR": SYSTEM_QUEUES[AUDIT_QUEUE].description, "MSGDLVSQ": "FIFO"},
)
#: As the engine puts batches of notes (embedded/engine.py).
_NOTES: Final = MessageDescriptor(persistence=MQPER_PERSISTENT, format=b"RFHBAUD ")


def _write_meta(connection: apsw.Connection, store: Store, before: Reach, incarnation: bytes, number: int) -> None:
    reach = next_reach(before, batch=1, numbers=number)
    values: dict[str, bytes | int] = {
        "incarnation": incarnation,
        "identity": store.identity,
        "next_sequence": number,
        "next_batch": 2,
        "reach": packed_reach(reach.commits, reach.at_us),
    }
    connection.executemany("INSERT OR REPLACE INTO meta VALUES(?, ?)", list(values.items()))


def _keep_identifiers(connection: apsw.Connection, prefix: bytes) -> None:
    """Writes each message's MsgId into the message. A damaged message stays as it is, for `queue verify`."""
    for row, message in _rows(connection, "msg_id IS NULL"):
        msg_id = prefix + message.sequence.to_bytes(8, "big")
        message.descriptor = message.descriptor.replace(msg_id=msg_id)
        _write(connection, row[1], message)


def _restate(connection: apsw.Connection, queue: int, restated: Callable[[bytes], bytes]) -> None:
    for row, message in _rows(connection, f"queue = {queue:d}"):
        message.body = restated(message.body)
        _write(connection, row[1], message)


def _rows(connection: apsw.Connection, condition: str) -> Iterator[tuple[MessageRow, Message]]:
    reader, last = RowReader(), 0
    statement = f"SELECT {COLUMNS} FROM message WHERE {condition} AND sequence > ? ORDER BY sequence LIMIT ?"
    while rows := list(connection.execute(statement, (last, _ROWS_AT_ONCE))):
        for row in rows:
            last = row[0]
            try:
                yield cast(MessageRow, row), reader.message(cast(MessageRow, row))
            except DamagedRow:
                continue


def _write(connection: apsw.Connection, queue: int, message: Message) -> None:
    ((sequence, _, _, msg_id, _, _, packed, _, body, _, checksum),) = rows_of([(queue, message)])
    connection.execute(_UPDATE, (msg_id, packed, body, checksum, sequence))


def _check_structure(connection: apsw.Connection, path: Path) -> None:
    """Checks the structure, because pages that a damaged WAL had copied back may not fit the earlier ones."""
    said = connection.execute("PRAGMA integrity_check(1)").get
    if said != "ok":
        hint = "restore a backup: rfhbridge queue backup makes them"
        raise StoreError(f"accept {path} as it is", f"its pages do not fit each other: {said}", hint)


def _keep_journal(database: Path) -> str:
    """Copies a damaged WAL, which holds the lost commits. Returns the name of the copy, "" if there is no damage."""
    if not journal_end(database).lost:
        return ""
    copy = database.with_name(f"{wal_path(database).name}.lost-{wall_us()}")
    try:
        shutil.copyfile(wal_path(database), copy)
        copy.chmod(0o600)
        opened = os.open(copy, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
    except OSError as error:
        hint = "make room on the disk: no other file has the lost commits"
        raise StoreError(f"keep {wal_path(database)}", str(error), hint) from error
    return copy.name
