"""A WAL that cannot begin anew: the disk fails under the check-point, or somebody reads and stands still."""

import logging
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import apsw
import pytest

from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.store import checkpoint as checkpoint_module
from mq_adapters.embedded.store import readers as readers_module
from mq_adapters.embedded.store import store as store_module
from mq_adapters.embedded.store.readers import readers
from mq_adapters.embedded.store.store import FILE_NAME, LOCK_NAME, Store
from mq_adapters.embedded.store.verification import verify_store
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import StoreError

PAGES = 50
LONG = 200
MOST_PUTS = 5_000
PATIENCE_S = 20.0
VFS_NAME = "rfhbridge-database-faults"
needs_proc = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="who holds a lock is known from /proc/locks")

#: Reads as a check does, says so, and then stands still.
STANDING = """
import os, pathlib, sys
from mq_adapters.embedded.store.verification import reading
from mq_adapters.reasons import StoreError
try:
    with reading(pathlib.Path(sys.argv[1])) as connection:
        connection.execute("SELECT count(*) FROM message").get
        print("reads", flush=True)
        sys.stdin.read()
except StoreError as error:
    print(error, flush=True)
    sys.exit(3)
"""
#: The same of a program that is not ours.
FOREIGN = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM message").get
print("reads", flush=True)
sys.stdin.read()
"""


class DatabaseFile(apsw.VFSFile):
    """The database, not its WAL: what fails here fails in a check-point."""

    error: type[apsw.Error] | None = None

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802  # SQLite's name
        if DatabaseFile.error is not None:
            raise DatabaseFile.error("a write of the database failed")
        super().xWrite(data, offset)


class DatabaseVfs(apsw.VFS):
    def __init__(self) -> None:
        super().__init__(VFS_NAME, "unix", makedefault=True)

    def xOpen(self, name: object, flags: list[int]) -> apsw.VFSFile:  # noqa: N802  # SQLite's name
        kind = DatabaseFile if flags[0] & apsw.SQLITE_OPEN_MAIN_DB else apsw.VFSFile
        return kind("unix", name, flags)


@pytest.fixture
def faulty_database() -> Iterator[type[DatabaseFile]]:
    vfs = DatabaseVfs()
    yield DatabaseFile
    DatabaseFile.error = None
    vfs.unregister()


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check-points begin early, and a WAL is too long soon."""
    monkeypatch.setattr(store_module, "CHECKPOINT_PAGES", PAGES)
    monkeypatch.setattr(checkpoint_module, "LONG_PAGES", LONG)


def put(queue_manager: Direct) -> str:
    return queue_manager.put("ORDERS", Message(MessageDescriptor(), bytes(4096))).hex()


def put_until(queue_manager: Direct, happened: Callable[[], object]) -> None:
    for _ in range(MOST_PUTS):
        put(queue_manager)
        if happened():
            return
    pytest.fail("it has not happened")


def put_many(queue_manager: Direct, acknowledged: list[str]) -> None:
    for _ in range(MOST_PUTS):
        acknowledged.append(put(queue_manager))


def store_of(queue_manager: Direct) -> Store:
    assert queue_manager._engine is not None
    return queue_manager._engine._store


def test_an_error_of_the_disk_in_a_check_point_stops_the_queue_manager(short, faulty_database, data_folder, caplog):
    queue_manager = Direct(data_folder)
    queue_manager.define("ORDERS")
    acknowledged = [put(queue_manager)]
    faulty_database.error = apsw.IOError
    with pytest.raises(StoreError, match="check-point the store"):
        put_many(queue_manager, acknowledged)
    faulty_database.error = None
    assert store_of(queue_manager).status().checkpoints_failed == 1
    queue_manager.close()  # the thread of check-points has ended, which logs behind what it counts
    assert [record.getMessage().split(" error=")[0] for record in caplog.records] == ["check-point failed"]
    assert verify_store(data_folder).is_sound
    with Direct(data_folder) as again:
        assert [message.msg_id.hex() for message in again.browse("ORDERS")][: len(acknowledged)] == acknowledged


def test_an_idle_queue_manager_sees_a_check_point_that_failed(short, faulty_database, data_folder):
    queue_manager = Direct(data_folder)
    queue_manager.define("ORDERS")
    put(queue_manager)
    engine, store = queue_manager._engine, store_of(queue_manager)
    assert engine is not None
    faulty_database.error = apsw.IOError
    store._checkpoint.want()
    store._checkpoint.join(PATIENCE_S)
    engine.maintenance.look()
    assert engine.failed is not None
    assert engine.failed.operation == "check-point the store"
    faulty_database.error = None
    queue_manager.close()


def test_a_full_disk_in_a_check_point_is_told_counted_and_tried_again(short, faulty_database, data_folder, caplog):
    caplog.set_level(logging.INFO, "mq_adapters")
    with Direct(data_folder) as queue_manager:
        queue_manager.define("ORDERS")
        faulty_database.error = apsw.FullError
        store = store_of(queue_manager)
        put_until(queue_manager, lambda: store.status().checkpoints_failed > 1)
        assert not store.status().checkpoints_done
        faulty_database.error = None
        put_until(queue_manager, lambda: store.status().checkpoints_done)
    events = [record.getMessage().partition("=")[0].rpartition(" ")[0] for record in caplog.records]
    assert events == ["check-point failed", "check-point succeeded again"]


@pytest.fixture
def filled(short, data_folder) -> Iterator[Direct]:
    with Direct(data_folder) as queue_manager:
        queue_manager.define("ORDERS")
        put(queue_manager)
        yield queue_manager


@pytest.fixture
def started(data_folder: Path) -> Iterator[Callable[[str], "subprocess.Popen[str]"]]:
    """Starts other processes that read now."""
    with ExitStack() as processes:

        def start(program: str) -> "subprocess.Popen[str]":
            command = [sys.executable, "-c", program, str(data_folder / FILE_NAME)]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            processes.enter_context(process)
            processes.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == "reads\n"
            return process

        yield start


def look_until_ended(store: Store, process: "subprocess.Popen[str]") -> int:
    """Looks as the daemon does, though more often."""
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        store.look()
    return process.wait(0.1)


@needs_proc
def test_who_reads_is_known_and_whether_it_may_be_ended(filled, started, data_folder):
    ours, foreign = started(STANDING), started(FOREIGN)
    found = {reader.pid: reader for reader in readers(data_folder / FILE_NAME, data_folder / LOCK_NAME)}
    assert {pid: reader.may_be_ended for pid, reader in found.items()} == {ours.pid: True, foreign.pid: False}
    assert sys.executable in found[foreign.pid].command
    for process in (ours, foreign):
        process.communicate()
    assert readers(data_folder / FILE_NAME, data_folder / LOCK_NAME) == []


@needs_proc
def test_a_reader_that_stands_still_is_ended_and_the_wal_begins_anew(filled, started, monkeypatch):
    monkeypatch.setattr(readers_module, "STANDING_S", 0.1)
    store, reader = store_of(filled), started(STANDING)
    put_until(filled, lambda: store.status().log_is_long)
    assert look_until_ended(store, reader) == 3
    assert reader.stdout is not None
    assert "the gateway ended it" in reader.communicate()[0]
    put_until(filled, lambda: store.status().log_bytes < PAGES * checkpoint_module.PAGE_BYTES)
    store.look()


@needs_proc
def test_a_command_that_was_stopped_is_ended_at_once(filled, started):
    store, reader = store_of(filled), started(STANDING)
    reader.send_signal(signal.SIGSTOP)
    put_until(filled, lambda: store.status().log_is_long)
    assert look_until_ended(store, reader) == 3
    reader.communicate()


@needs_proc
def test_a_foreign_reader_is_named_and_left_alone(filled, started, monkeypatch, caplog):
    monkeypatch.setattr(readers_module, "STANDING_S", 0.0)
    caplog.set_level(logging.INFO, "mq_adapters")
    store, reader = store_of(filled), started(FOREIGN)
    put_until(filled, lambda: store.status().log_is_long and store.status().checkpoints_held)
    for _ in range(3):
        store.look()
    assert reader.poll() is None
    reader.communicate()
    put_until(filled, lambda: not store.status().log_is_long)
    store.look()
    grew, shrank = [record.getMessage() for record in caplog.records]
    assert grew.startswith("wal grew too long")
    assert f"readers={reader.pid} " in grew
    assert shrank.startswith("wal is short again")
