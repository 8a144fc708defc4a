"""The tables of the store, their version, and how a file of an earlier version becomes one of this.

Layout version 4 (`application_id` 0x52464842 "RFHB", `user_version` 4):

    queue(id, name, description)                    one row a defined queue
    object(type, name, attributes, checksum)        attributes of queues and other objects: Definition.pack()
    message(sequence, queue, correl_id, msg_id, put_us, expires_us, descriptor, origin, body, priority, checksum)
    damaged(the same)                               messages that were found damaged, and set aside by hand
    state(space, key, value, checksum)              sessions, subscriptions, retained publications, back-out counts
    meta(key, value)                                incarnation, identity, next_sequence, next_batch, reach, name

`sequence` numbers are handed out by the engine from blocks that are reserved in `meta` before use, so that none is ever
used twice, not even after a crash. `descriptor` is MessageDescriptor.pack(). `msg_id` is set only if the putter chose
it. `correl_id`, `msg_id` and `priority` repeat the descriptor's, for the index. `space` is a StateKind
(unit_of_work.py). `checksum` is that of checksums.py.
Version 1 had neither `object` nor `priority`, and its queues were first in, first out. Version 2 had no checksums; an
upgrade computes them from the rows as they are. Version 3 had neither `reach` (number and time of the last commit,
rollback_guard.py) nor the marker beside the file that goes with it. `identity` is the first incarnation, if the store
went back since (rollback.py).

To change the layout:

1. Keep a file of the present version under tests/mq_adapters/embedded/stores, written by the program before the change.
2. Raise USER_VERSION; change `_SCHEMA`, the list above, and the statements in store.py and verification.py.
3. Add a step to `_UPGRADES` that brings the previous version here. It may call nothing that a later change could alter
   in meaning: a stored form that changes with the layout is read by a function that is kept for the step.
4. In tests/mq_adapters/embedded/store/test_store.py open the kept file. Compare its tables with those of a new file.
5. Say in CHANGELOG.md what an upgrade does, and what it needs: time, and room on the disk.

All steps of an upgrade are one transaction: after a crash the file is as it was. A newer file is refused, never guessed
at; there is no way back but a backup (`rfhbridge queue backup`) from before the upgrade.
"""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

import apsw

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.store.checksums import descriptor_checksum, message_checksum, object_checksum, state_checksum
from mq_adapters.message import unpack_descriptor
from mq_adapters.reasons import StoreError

APPLICATION_ID: Final = 0x52464842
USER_VERSION: Final = 4
#: From here on a marker lies beside the store.
FIRST_VERSION_WITH_REACH: Final = 4

_SCHEMA: Final = """
CREATE TABLE queue(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, description TEXT NOT NULL);
CREATE TABLE object(type INTEGER NOT NULL, name TEXT NOT NULL, attributes BLOB NOT NULL,
    checksum INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(type, name)) WITHOUT ROWID;
CREATE TABLE message(sequence INTEGER PRIMARY KEY, queue INTEGER NOT NULL, correl_id BLOB, msg_id BLOB,
    put_us INTEGER NOT NULL, expires_us INTEGER NOT NULL, descriptor BLOB NOT NULL, origin BLOB NOT NULL,
    body BLOB NOT NULL, priority INTEGER NOT NULL DEFAULT 0, checksum INTEGER NOT NULL DEFAULT 0);
CREATE TABLE state(space INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,
    checksum INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(space, key)) WITHOUT ROWID;
CREATE TABLE meta(key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
"""
_NO_REACH: Final = bytes(16)
_DAMAGED: Final = """
CREATE TABLE damaged(sequence INTEGER PRIMARY KEY, queue INTEGER NOT NULL, correl_id BLOB, msg_id BLOB,
    put_us INTEGER NOT NULL, expires_us INTEGER NOT NULL, descriptor BLOB NOT NULL, origin BLOB NOT NULL,
    body BLOB NOT NULL, priority INTEGER NOT NULL DEFAULT 0, checksum INTEGER NOT NULL DEFAULT 0);
"""


def prepare(connection: apsw.Connection, path: Path) -> None:
    """Makes the tables of a new file, or brings an earlier version here. StoreError for a newer or foreign file."""
    application_id = connection.pragma("application_id")
    version = connection.pragma("user_version")
    if (application_id, version) == (APPLICATION_ID, USER_VERSION):
        return
    if application_id == 0 and version == 0 and not connection.pragma("schema_version"):
        _create(connection)
        return
    if application_id != APPLICATION_ID or version not in _UPGRADES:
        raise StoreError(
            f"open {path.name}",
            f"application_id {application_id:#x} and layout version {version}; this program reads {USER_VERSION}",
            "use the program that wrote it, or another data folder",
        )
    with connection:
        for earlier in range(version, USER_VERSION):
            _UPGRADES[earlier](connection)
        connection.execute(f"PRAGMA user_version = {USER_VERSION}")


def _create(connection: apsw.Connection) -> None:
    with connection:
        connection.execute(_SCHEMA + _DAMAGED)
        connection.executemany(
            "INSERT INTO meta VALUES(?, ?)",
            [("incarnation", secrets.token_bytes(12)), ("next_sequence", 1), ("next_batch", 1), ("reach", _NO_REACH)],
        )
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {USER_VERSION}")


def _from_1_to_2(connection: apsw.Connection) -> None:
    connection.execute("ALTER TABLE message ADD COLUMN priority INTEGER NOT NULL DEFAULT 0")
    connection.execute(
        "CREATE TABLE object(type INTEGER NOT NULL, name TEXT NOT NULL, attributes BLOB NOT NULL,"
        " PRIMARY KEY(type, name)) WITHOUT ROWID"
    )
    for name, description in list(connection.execute("SELECT name, description FROM queue")):
        said = {"MSGDLVSQ": "FIFO", "DESCR": description}
        attributes = Definition(object_type=ObjectType.QLOCAL, name=name, said=said).pack()
        connection.execute("INSERT INTO object VALUES(?, ?, ?)", (int(ObjectType.QLOCAL), name, attributes))
    for sequence, packed in list(connection.execute("SELECT sequence, descriptor FROM message")):
        priority = unpack_descriptor(packed).priority
        if priority:
            connection.execute("UPDATE message SET priority = ? WHERE sequence = ?", (priority, sequence))


def _from_2_to_3(connection: apsw.Connection) -> None:
    """Writes every row again, in one pass: the WAL grows by as much as the store holds."""
    for table in ("message", "state", "object"):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
    connection.execute(_DAMAGED)

    def of_message(sequence: int, queue: int, put_us: int, expires_us: int, *data: bytes) -> int:
        packed, origin, body = data
        return message_checksum(descriptor_checksum(packed), sequence ^ queue ^ put_us ^ expires_us, origin, body)

    for name, function, columns in (
        ("message", of_message, "sequence, queue, put_us, expires_us, descriptor, origin, body"),
        ("state", state_checksum, "space, key, value"),
        ("object", object_checksum, "type, name, attributes"),
    ):
        connection.create_scalar_function("checksum_of", function)  # type: ignore[arg-type]  # takes the columns' types
        connection.execute(f"UPDATE {name} SET checksum = checksum_of({columns})")
    connection.create_scalar_function("checksum_of", None)


def _from_3_to_4(connection: apsw.Connection) -> None:
    connection.execute("INSERT OR IGNORE INTO meta VALUES('reach', ?)", (_NO_REACH,))


_UPGRADES: Final[dict[int, Callable[[apsw.Connection], None]]] = {1: _from_1_to_2, 2: _from_2_to_3, 3: _from_3_to_4}
