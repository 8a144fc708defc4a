"""A store that went back and was accepted: what is left stays as it was, and nothing of before comes again."""

from pathlib import Path

import pytest

from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.store.reach import Reach, read_marker
from mq_adapters.embedded.store.rollback import accept_rollback
from mq_adapters.embedded.store.rollback_guard import MARKER_NAME, StoreWentBack
from mq_adapters.embedded.store.store import FILE_NAME, Store
from mq_adapters.embedded.store.verification import verify_store
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, StoreError
from mq_adapters.system_queues import AUDIT_QUEUE

GIVEN = b"given".ljust(24, b"\0")


def put(folder: Path, *bodies: bytes, msg_id: bytes = bytes(24)) -> list[bytes]:
    with Direct(folder) as queue_manager:
        return [queue_manager.put("ORDERS", Message(MessageDescriptor(msg_id=msg_id), body)) for body in bodies]


def browse(folder: Path) -> dict[bytes, bytes]:
    with Direct(folder) as queue_manager:
        return {message.msg_id: message.body for message in queue_manager.browse("ORDERS")}


@pytest.fixture
def went_back(data_folder: Path) -> tuple[Path, list[bytes], list[bytes]]:
    """A data folder with an older store, the MsgIds of what it holds, and those of what is lost."""
    with Direct(data_folder) as queue_manager:
        queue_manager.define("ORDERS")
    kept = [*put(data_folder, b"one", b"two"), *put(data_folder, b"three", msg_id=GIVEN)]
    older = (data_folder / FILE_NAME).read_bytes()
    lost = put(data_folder, b"four", b"five")
    (data_folder / FILE_NAME).write_bytes(older)
    with pytest.raises(StoreWentBack):
        Direct(data_folder)
    return data_folder, kept, lost


def test_what_is_left_keeps_its_identifiers_and_no_number_of_before_comes_again(went_back):
    folder, kept, lost = went_back
    done = accept_rollback(folder)
    assert browse(folder) == dict(zip(kept, (b"one", b"two", b"three"), strict=True))
    assert verify_store(folder).is_sound
    later = put(folder, b"later", b"last")
    assert all(msg_id[4:16] == done.incarnation for msg_id in later)
    numbers = [int.from_bytes(msg_id[16:], "big") for msg_id in (*kept[:2], *lost)]
    assert min(int.from_bytes(msg_id[16:], "big") for msg_id in later) > max(numbers)
    with Direct(folder) as queue_manager:
        assert queue_manager.get("ORDERS", msg_id=kept[1]).body == b"two"
        assert queue_manager.get("ORDERS", msg_id=kept[2]).body == b"three"


def test_the_identity_outlives_it_twice_and_the_incarnation_does_not(went_back):
    folder, _, _ = went_back
    first = accept_rollback(folder)
    second = accept_rollback(folder)
    store = Store.open(folder)
    assert (store.identity, store.incarnation) == (first.before.incarnation, second.incarnation)
    assert second.before.incarnation == first.incarnation != second.incarnation
    assert store.next_batch == 2
    store.close()
    assert read_marker(folder / MARKER_NAME).incarnation == second.incarnation


def test_the_first_batch_of_notes_tells_it_with_what_was_known(went_back):
    folder, _, _ = went_back
    known: list[tuple[Reach, Reach | None, int]] = []

    def first_batch(before: Reach, marked: Reach | None, waiting: int) -> bytes:
        known.append((before, marked, waiting))
        return b"packed"

    done = accept_rollback(folder, first_batch=first_batch)
    ((before, marked, waiting),) = known
    assert before.is_behind(marked)
    assert waiting == 0
    with Direct(folder) as queue_manager:
        (batch,) = queue_manager.browse(AUDIT_QUEUE)
    assert (batch.body, batch.msg_id[4:16]) == (b"packed", done.incarnation)
    assert batch.is_persistent


def test_a_crash_before_the_new_marker_is_one_more_contradiction(went_back):
    folder, kept, _ = went_back
    marker = (folder / MARKER_NAME).read_bytes()
    accept_rollback(folder)
    (folder / MARKER_NAME).write_bytes(marker)
    with pytest.raises(StoreWentBack, match="the store is of incarnation"):
        Direct(folder)
    accept_rollback(folder)
    assert list(browse(folder)) == kept


def test_a_damaged_journal_is_kept_whole_and_what_is_before_the_damage_stays(data_folder):
    with Direct(data_folder) as queue_manager:
        queue_manager.define("ORDERS")
        for number in range(50):
            queue_manager.put("ORDERS", Message(MessageDescriptor(), b"%d" % number))
        copy = data_folder.with_name("killed")
        copy.mkdir()
        for name in (MARKER_NAME, f"{FILE_NAME}-wal", FILE_NAME):
            (copy / name).write_bytes((data_folder / name).read_bytes())
    wal = copy / f"{FILE_NAME}-wal"
    data = bytearray(wal.read_bytes())
    data[len(data) * 2 // 3] ^= 4
    wal.write_bytes(data)
    with pytest.raises(StoreWentBack, match="had been synced"):
        Direct(copy)
    done = accept_rollback(copy)
    assert (copy / done.kept_journal).read_bytes() == data
    left = [int(body) for body in browse(copy).values()]
    assert left == list(range(len(left)))
    assert 10 < len(left) < 50


def test_a_store_that_is_gone_begins_anew(went_back):
    folder, kept, _ = went_back
    (folder / FILE_NAME).unlink()
    done = accept_rollback(folder, first_batch=lambda _before, _marked, _waiting: b"packed")
    assert done.before.incarnation == kept[0][4:16]
    with Direct(folder) as queue_manager:
        queue_manager.define("ORDERS")
        assert [batch.body for batch in queue_manager.browse(AUDIT_QUEUE)] == [b"packed"]
    (msg_id,) = put(folder, b"new")
    assert int.from_bytes(msg_id[16:], "big") > int.from_bytes(kept[1][16:], "big")


def test_it_is_refused_while_somebody_has_the_store(data_folder):
    with Direct(data_folder), pytest.raises(QueueManagerError, match="2042"):
        accept_rollback(data_folder)


def test_pages_that_do_not_fit_each_other_are_not_accepted(went_back):
    folder, _, _ = went_back
    data = bytearray((folder / FILE_NAME).read_bytes())
    for page in range(2, len(data) // 4_096):
        data[page * 4_096 : page * 4_096 + 8] = bytes(8)
    (folder / FILE_NAME).write_bytes(data)
    with pytest.raises(StoreError):
        accept_rollback(folder)
