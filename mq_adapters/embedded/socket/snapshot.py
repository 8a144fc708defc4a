"""Durable states of a store at one moment, for commands that only look. A gateway may be running meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from mq_adapters.embedded.store.checksums import state_checksum
from mq_adapters.embedded.store.layout import APPLICATION_ID, USER_VERSION
from mq_adapters.embedded.store.readers import may_be_ended
from mq_adapters.embedded.store.store import FILE_NAME, LOCK_NAME
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.reasons import StoreError


def states_of(data_dir: Path, kind: StateKind) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """The store's identity, and every key and value of a kind. StoreError if there is no sound store."""
    with _looking_at(data_dir) as connection:
        meta = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('incarnation', 'identity')"))
        rows = list(connection.execute("SELECT key, value, checksum FROM state WHERE space = ? ORDER BY key", (kind,)))
    for key, value, checksum in rows:
        if state_checksum(int(kind), key, value) != checksum:
            raise StoreError(f"read state {int(kind)} {key!r:.80}", "it is damaged", "see 'rfhbridge queue verify'")
    return bytes(meta.get("identity", meta["incarnation"])), [(key, value) for key, value, _ in rows]


def keys_of(data_dir: Path, kind: StateKind) -> list[bytes]:
    """Every key of a kind, in order, without the values. StoreError if no store can be read."""
    with _looking_at(data_dir) as connection:
        return [key for (key,) in connection.execute("SELECT key FROM state WHERE space = ? ORDER BY key", (kind,))]


@contextmanager
def _looking_at(data_dir: Path) -> Iterator[apsw.Connection]:
    """The store as it is at this moment."""
    path = data_dir / FILE_NAME
    if not path.is_file():
        raise StoreError(f"read {path}", "there is no store", "name the data folder with --data")
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(10_000)
            connection.execute("PRAGMA query_only = ON")
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # leaves the WAL as it is
            with may_be_ended(path.with_name(LOCK_NAME), connection):
                connection.execute("BEGIN")
                _check_layout(connection, path)
                yield connection
        finally:
            connection.close()
    except apsw.Error as error:
        hint = "restore the data folder from a backup"
        raise StoreError(f"read {path}", f"{type(error).__name__}: {error}", hint) from error


def _check_layout(connection: apsw.Connection, path: Path) -> None:
    version = connection.pragma("application_id"), connection.pragma("user_version")
    if version != (APPLICATION_ID, USER_VERSION):
        raise StoreError(f"read {path}", f"it has layout {version}", "start the gateway once: it brings it up to date")
