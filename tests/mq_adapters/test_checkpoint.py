"""The thread that copies the WAL back: it does, and the WAL begins anew, while the store goes on."""

import pytest

from mq_adapters.embedded import store as store_module
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.store import FILE_NAME
from mq_adapters.message import Message, MessageDescriptor

PAGES = 50
RESTARTS = 3
#: A put writes three pages or so, so this is many times what the restarts need.
MOST_PUTS = 5_000
#: Of the WAL's header: how often it has begun anew (SQLite, "WAL-mode File Format").
CHECKPOINT_SEQUENCE = slice(12, 16)


def test_a_grown_wal_is_copied_back_by_the_thread_and_begins_anew(data_folder, monkeypatch):
    monkeypatch.setattr(store_module, "CHECKPOINT_PAGES", PAGES)
    wal = data_folder / f"{FILE_NAME}-wal"

    def begun_anew() -> int:
        return int.from_bytes(wal.read_bytes()[:32][CHECKPOINT_SEQUENCE], "big")

    with Direct(data_folder) as queue_manager:
        queue_manager.define("ORDERS")
        at_first, puts, size_bytes = begun_anew(), 0, (data_folder / FILE_NAME).stat().st_size
        while begun_anew() < at_first + RESTARTS and puts < MOST_PUTS:
            queue_manager.put("ORDERS", Message(MessageDescriptor(), bytes(4096)))
            puts += 1
        assert begun_anew() >= at_first + RESTARTS
        assert (data_folder / FILE_NAME).stat().st_size > size_bytes, "the pages are in the database"


@pytest.mark.parametrize("size", [1, 3])
def test_what_was_copied_back_is_read_as_before(data_folder, monkeypatch, size):
    monkeypatch.setattr(store_module, "CHECKPOINT_PAGES", size)
    with Direct(data_folder) as queue_manager:
        queue_manager.define("ORDERS")
        for number in range(30):
            queue_manager.put("ORDERS", Message(MessageDescriptor(), b"%d" % number))
    with Direct(data_folder) as queue_manager:
        assert [message.body for message in queue_manager.browse("ORDERS")] == [b"%d" % each for each in range(30)]
