"""`rfhbridge queue compact` without a gateway, and beside a running one (the port's own tests have the steps)."""

import json

from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.store.store import FILE_NAME
from mq_adapters.message import Message, MessageDescriptor
from tests.mq_adapters.adapters import EmbeddedAdapter

MIB = 1024 * 1024


def _fill_and_drain(queue_manager) -> None:
    queue_manager.define("ORDERS")
    for _ in range(100):
        queue_manager.put("ORDERS", Message(MessageDescriptor(), bytes(50_000)))
    queue_manager.clear("ORDERS")


def test_it_says_what_it_gave_back(rfhbridge, data_folder) -> None:
    with Direct(data_folder) as queue_manager:
        _fill_and_drain(queue_manager)
    before = (data_folder / FILE_NAME).stat().st_size
    done = rfhbridge("queue", "compact", "--data", data_folder)
    size = (data_folder / FILE_NAME).stat().st_size
    assert size < MIB < before
    assert done.text == f"gave {before - size} bytes back to the disk; the store has {size}\n"
    told = json.loads(rfhbridge("queue", "compact", "--json", "--data", data_folder).stdout)
    assert told == {"given_back_bytes": 0, "size_bytes": size, "free_bytes": 0}


def test_beside_a_gateway_it_is_the_gateway_that_does_it(rfhbridge, data_folder) -> None:
    adapter = EmbeddedAdapter("client", data_folder)
    try:
        _fill_and_drain(adapter.connection)
        told = json.loads(rfhbridge("queue", "compact", "--json", "--data", data_folder).stdout)
        assert told["size_bytes"] < MIB
        assert told["free_bytes"] == 0
        adapter.connection.put("ORDERS", Message(MessageDescriptor(), b"goes on"))
    finally:
        adapter.stop()


def test_where_there_is_no_store_it_says_so(rfhbridge, data_folder) -> None:
    done = rfhbridge("queue", "compact", "--data", data_folder)
    assert done.exit_code == 1
    assert "there is no store" in done.stderr
