"""The thread that copies the WAL back: it does, and the WAL begins anew, while the store goes on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.store import checkpoint as checkpoint_module
from mq_adapters.embedded.store import store as store_module
from mq_adapters.embedded.store.store import FILE_NAME
from mq_adapters.message import Message, MessageDescriptor

PAGES = 50
#: Messages, for more than two steps of a compaction.
COMPACTED = 1_200
RESTARTS = 3
#: A put writes three pages or so, so this is many times what the restarts need.
MOST_PUTS = 5_000
#: Of the WAL's header: how often it has begun anew (SQLite, "WAL-mode File Format").
CHECKPOINT_SEQUENCE = slice(12, 16)
#: Longer than a test may take: a commit that waits for a reader ends the test.
FOR_EVER_MS = 600_000


def begun_anew(data_folder: Path) -> int:
    with (data_folder / f"{FILE_NAME}-wal").open("rb") as wal:
        return int.from_bytes(wal.read(32)[CHECKPOINT_SEQUENCE], "big")


def put(queue_manager: Direct) -> None:
    queue_manager.put("ORDERS", Message(MessageDescriptor(), bytes(4096)))


def put_until_begun_anew(queue_manager: Direct, data_folder: Path, times: int) -> None:
    wanted, puts = begun_anew(data_folder) + times, 0
    while begun_anew(data_folder) < wanted and puts < MOST_PUTS:
        put(queue_manager)
        puts += 1
    assert begun_anew(data_folder) >= wanted


@contextmanager
def reading(data_folder: Path) -> Iterator[None]:
    """Somebody reads the store as it is now, as a backup does."""
    reader = apsw.Connection(str(data_folder / FILE_NAME))
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM message").get is not None
    yield
    reader.close()


@pytest.fixture
def filled(data_folder, monkeypatch) -> Iterator[Direct]:
    """A queue manager with queue ORDERS and a message on it; its commits would wait for ever."""
    monkeypatch.setattr(store_module, "CHECKPOINT_PAGES", PAGES)
    monkeypatch.setattr(checkpoint_module, "_BUSY_TIMEOUT_MS", FOR_EVER_MS)
    with Direct(data_folder) as queue_manager:
        queue_manager.define("ORDERS")
        put(queue_manager)
        yield queue_manager


def test_a_grown_wal_is_copied_back_by_the_thread_and_begins_anew(filled, data_folder):
    size_bytes = (data_folder / FILE_NAME).stat().st_size
    put_until_begun_anew(filled, data_folder, RESTARTS)
    assert (data_folder / FILE_NAME).stat().st_size > size_bytes, "the pages are in the database"


def test_while_somebody_reads_the_wal_grows_and_no_commit_waits(filled, data_folder):
    store = filled._engine._store
    before = begun_anew(data_folder)
    with reading(data_folder):
        for _ in range(2):
            for _ in range(PAGES):
                put(filled)
            while not store._checkpoint._rests.is_set():
                put(filled)
        assert not store._checkpoint.copied.is_set()
        assert begun_anew(data_folder) == before
    put_until_begun_anew(filled, data_folder, 1)


def test_no_commit_waits_for_who_begins_to_read_just_before_it(filled, data_folder):
    before = begun_anew(data_folder)
    with reading(data_folder):
        filled._engine._store._checkpoint.copied.set()
        put(filled)
        assert begun_anew(data_folder) == before
    put_until_begun_anew(filled, data_folder, 1)


def test_no_step_of_a_compaction_waits_for_who_reads(filled, data_folder):
    filled.begin()
    for _ in range(COMPACTED):
        put(filled)
    filled.commit()
    for _ in range(COMPACTED):
        filled.get("ORDERS")
    before = filled.compaction()
    with reading(data_folder):
        put(filled)
        begun = begun_anew(data_folder)
        assert filled.compact_some().free_bytes < before.free_bytes
        assert begun_anew(data_folder) == begun
    assert not filled.compact_some().is_done
    put(filled)
    assert begun_anew(data_folder) > begun


@pytest.mark.parametrize("size", [1, 3])
def test_what_was_copied_back_is_read_as_before(data_folder, monkeypatch, size):
    monkeypatch.setattr(store_module, "CHECKPOINT_PAGES", size)
    with Direct(data_folder) as queue_manager:
        queue_manager.define("ORDERS")
        for number in range(30):
            queue_manager.put("ORDERS", Message(MessageDescriptor(), b"%d" % number))
    with Direct(data_folder) as queue_manager:
        assert [message.body for message in queue_manager.browse("ORDERS")] == [b"%d" % each for each in range(30)]
