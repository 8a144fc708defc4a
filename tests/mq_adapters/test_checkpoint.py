"""The thread that copies the WAL back: it does, and the WAL begins anew, while the store goes on."""

import pytest

from mq_adapters.embedded import store as store_module
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.store import FILE_NAME
from mq_adapters.message import Message, MessageDescriptor

PAGES = 50
PAGE_BYTES = 4096
RESTARTS = 3
#: A put writes three pages or so, so this is many times what the restarts need.
MOST_PUTS = 5_000


def test_a_grown_wal_is_copied_back_by_the_thread_and_begins_anew(data_folder, monkeypatch):
    monkeypatch.setattr(store_module, "CHECKPOINT_PAGES", PAGES)
    wal = data_folder / f"{FILE_NAME}-wal"
    restarts: list[int] = []
    with Direct(data_folder) as queue_manager:
        queue_manager.define("ORDERS")
        store = queue_manager._engine._store
        restart = store._restart_wal
        monkeypatch.setattr(store, "_restart_wal", lambda: (restart(), restarts.append(wal.stat().st_size)))
        at_first = (data_folder / FILE_NAME).stat().st_size
        for _ in range(MOST_PUTS):
            queue_manager.put("ORDERS", Message(MessageDescriptor(), bytes(PAGE_BYTES)))
            grown = (data_folder / FILE_NAME).stat().st_size - at_first
            if len(restarts) >= RESTARTS and grown >= 20 * PAGES * PAGE_BYTES:
                break
        assert len(restarts) >= RESTARTS
        assert grown >= 20 * PAGES * PAGE_BYTES
        assert wal.stat().st_size < grown, "a WAL that never began anew has every page that was ever written"


@pytest.mark.parametrize("size", [1, 3])
def test_what_was_copied_back_is_read_as_before(data_folder, monkeypatch, size):
    monkeypatch.setattr(store_module, "CHECKPOINT_PAGES", size)
    with Direct(data_folder) as queue_manager:
        queue_manager.define("ORDERS")
        for number in range(30):
            queue_manager.put("ORDERS", Message(MessageDescriptor(), b"%d" % number))
    with Direct(data_folder) as queue_manager:
        assert [message.body for message in queue_manager.browse("ORDERS")] == [b"%d" % each for each in range(30)]
