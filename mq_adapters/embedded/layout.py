"""The tables of the store, their version, and how a file of an earlier version becomes one of this.

Layout version 2 (`application_id` 0x52464842 "RFHB", `user_version` 2):

    queue(id, name, description)                    one row a defined queue
    object(type, name, attributes)                  attributes of queues and other objects: Definition.pack()
    message(sequence, queue, correl_id, msg_id, put_us, expires_us, descriptor, origin, body, priority)
    state(space, key, value)                        sessions, subscriptions, retained publications, back-out counts
    meta(key, value)                                incarnation, next_sequence, next_batch, name

`sequence` numbers are handed out by the engine from blocks that are reserved in `meta` before use, so that none is ever
used twice, not even after a crash. `descriptor` is MessageDescriptor.pack(); `msg_id` is there only where the putter
chose it; `priority` repeats the descriptor's, for the index. Version 1 had neither `object` nor `priority`, and its
queues were first in, first out.

To change the layout: raise USER_VERSION, add a step to `_UPGRADES` that brings the previous version here, keep a file
of the previous version under tests/mq_adapters/stores with a test that opens it, and say so in CHANGELOG.md. All steps
of an upgrade are one transaction. A newer file is refused, never guessed at.
"""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

import apsw

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.message import unpack_descriptor
from mq_adapters.reasons import StoreError

APPLICATION_ID: Final = 0x52464842
USER_VERSION: Final = 2

_SCHEMA: Final = """
CREATE TABLE queue(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, description TEXT NOT NULL);
CREATE TABLE object(type INTEGER NOT NULL, name TEXT NOT NULL, attributes BLOB NOT NULL,
    PRIMARY KEY(type, name)) WITHOUT ROWID;
CREATE TABLE message(sequence INTEGER PRIMARY KEY, queue INTEGER NOT NULL, correl_id BLOB, msg_id BLOB,
    put_us INTEGER NOT NULL, expires_us INTEGER NOT NULL, descriptor BLOB NOT NULL, origin BLOB NOT NULL,
    body BLOB NOT NULL, priority INTEGER NOT NULL DEFAULT 0);
CREATE TABLE state(space INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY(space, key)) WITHOUT ROWID;
CREATE TABLE meta(key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
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
        connection.execute(_SCHEMA)
        connection.executemany(
            "INSERT INTO meta VALUES(?, ?)",
            [("incarnation", secrets.token_bytes(12)), ("next_sequence", 1), ("next_batch", 1)],
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


_UPGRADES: Final[dict[int, Callable[[apsw.Connection], None]]] = {1: _from_1_to_2}
