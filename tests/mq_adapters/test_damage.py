"""A bit that the disk changed: it is found by `verify`, and what it is in is delivered to nobody."""

from pathlib import Path

import apsw
import pytest

from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.store.store import FILE_NAME, Store
from mq_adapters.embedded.store.verification import set_aside, verify_store
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, StoreError

BODY = b"temperature=21.5;" * 40
PUMP = b"pump".ljust(24, b"\0")


@pytest.fixture
def filled(data_folder: Path) -> Path:
    """A data folder with three messages on the queue ORDERS and a state, closed. The second message has number 2."""
    engine = Engine.open(data_folder)
    queue = engine.define("ORDERS")
    unit = engine.begin()
    for body, origin in ((b"first", b""), (BODY, b"sensor 7"), (b"last", b"")):
        descriptor = MessageDescriptor(persistence=MQPER_PERSISTENT, correl_id=PUMP, msg_id=body[:1] * 24)
        engine.put(unit, queue, Message(descriptor, body, origin))
    unit.set_state(StateKind.SESSION, b"client", b"what the session holds")
    engine.submit(unit)
    engine.close()
    return data_folder


def in_the_file(data_folder: Path, wanted: bytes, bit: int) -> None:
    """Changes one bit of the only place where the file has these bytes."""
    path = data_folder / FILE_NAME
    content = bytearray(path.read_bytes())
    assert content.count(wanted) == 1
    content[content.index(wanted) + bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def change(data_folder: Path, statement: str) -> None:
    connection = apsw.Connection(str(data_folder / FILE_NAME))
    connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("bit", [0, 7, 8, 300, len(BODY) * 8 - 1])
def test_a_changed_bit_in_a_body_is_found_and_the_message_is_not_delivered(filled, bit):
    assert verify_store(filled).is_sound
    in_the_file(filled, BODY, bit)
    assert verify_store(filled).findings == ("message 2 on queue ORDERS is not as it was put: its checksum is another",)
    with Direct(filled) as queue_manager:
        assert queue_manager.depth("ORDERS") == 3
        with pytest.raises(StoreError, match="read message 2 on queue ORDERS"):
            queue_manager.get("ORDERS", msg_id=b"t" * 24)
        with pytest.raises(StoreError, match="message 2 on queue ORDERS"):  # it has stopped
            queue_manager.put("ORDERS", Message(MessageDescriptor(), b"more"))


@pytest.mark.parametrize(
    "column", ["queue", "put_us", "expires_us", "priority", "descriptor", "origin", "body", "correl_id", "msg_id"]
)
def test_a_change_in_any_column_of_a_message_is_found(filled, column):
    kind = "int" if column in ("queue", "put_us", "expires_us", "priority") else "blob"
    changed = (
        f"({column} | 64) - ({column} & 64)"
        if kind == "int"
        else f"CAST(substr({column}, 1, 5) || x'01' || substr({column}, 7) AS BLOB)"
    )
    change(filled, f"UPDATE message SET {column} = {changed} WHERE sequence = 2")
    found = verify_store(filled)
    assert [finding.split()[:2] for finding in found.findings] == [["message", "2"]]
    read: list[bytes] = []
    with pytest.raises(StoreError), Direct(filled) as queue_manager:
        read += [message.body for message in queue_manager.browse("ORDERS")]
    assert set(read) <= {b"first", b"last"}


@pytest.mark.parametrize("value", ["'text'", "7", "1.5", "x'ff' || x'fe'"])
def test_a_body_of_another_type_is_damage_too(filled, value):
    change(filled, f"UPDATE message SET body = {value} WHERE sequence = 2")
    assert not verify_store(filled).is_sound
    with pytest.raises(StoreError), Direct(filled) as queue_manager:
        list(queue_manager.browse("ORDERS"))
    assert len(set_aside(filled)) == 1
    assert verify_store(filled).is_sound


def test_a_changed_bit_in_a_state_is_found_and_the_state_is_not_read(filled):
    in_the_file(filled, b"what the session holds", 9)
    assert verify_store(filled).findings == ("state 3 b'client' is not as it was written: its checksum is another",)
    store = Store.open(filled)
    for read in (lambda: store.states(StateKind.SESSION), lambda: store.state(StateKind.SESSION, b"client")):
        with pytest.raises(StoreError, match="checksum"):
            read()
    store.close()


def test_a_change_in_what_was_said_of_a_queue_is_found_and_the_store_does_not_open(filled):
    change(filled, "UPDATE object SET attributes = CAST(attributes || x'00' AS BLOB) WHERE name = 'ORDERS'")
    assert "object ORDERS of type 1 is not as it was written" in verify_store(filled).findings[0]
    with pytest.raises(StoreError, match="read object 'ORDERS'"):
        Direct(filled)


def test_damaged_messages_are_set_aside_and_the_others_can_be_got(filled):
    in_the_file(filled, BODY, 4)
    change(filled, "UPDATE message SET queue = 999 WHERE sequence = 3")
    with pytest.raises(StoreError, match="queue number 999"):
        Direct(filled)
    assert set_aside(filled) == (
        "message 2 on queue ORDERS is not as it was put: its checksum is another",
        "message 3 is on queue number 999, which is not defined",
    )
    assert verify_store(filled).is_sound
    with Direct(filled) as queue_manager:
        assert [message.body for message in queue_manager.browse("ORDERS")] == [b"first"]
    connection = apsw.Connection(str(filled / FILE_NAME))
    assert [number for (number,) in connection.execute("SELECT sequence FROM damaged")] == [2, 3]
    connection.close()


def test_nothing_is_set_aside_while_somebody_owns_the_store(filled):
    with Direct(filled), pytest.raises(QueueManagerError, match="2042"):
        set_aside(filled)
