"""Room inside the store: what it is after a backlog, given back by a command, and by itself in idle moments."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import apsw
import pytest

from mq_adapters.embedded import group_commit
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.embedded.store import compaction as compaction_module
from mq_adapters.embedded.store.backup import back_up
from mq_adapters.embedded.store.rollback import accept_rollback
from mq_adapters.embedded.store.store import FILE_NAME
from mq_adapters.embedded.store.verification import verify_store
from mq_adapters.embedded.unit_of_work import Departure
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.queue_manager import Compaction
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError
from tests.mounts import Mounts
from tests.mq_adapters.adapters import EmbeddedAdapter

MIB = 1024 * 1024
BODY = bytes(50_000)
BACKLOG = 200
#: A database without a message has some pages for its tables and objects.
SMALL_BYTES = MIB


def fill(queue_manager: Direct | SocketClient, count: int = BACKLOG) -> None:
    """A message that stays, and a backlog behind it that is drained."""
    queue_manager.put("ORDERS", Message(MessageDescriptor(), b"stays"))
    queue_manager.begin()
    for _ in range(count):
        queue_manager.put("ORDERS", Message(MessageDescriptor(), BODY))
    queue_manager.commit()


def drain(queue_manager: Direct | SocketClient) -> None:
    queue_manager.put("ORDERS", queue_manager.get("ORDERS"))  # to the end of the file
    for _ in range(BACKLOG):
        queue_manager.get("ORDERS")


def compact(queue_manager: Direct | SocketClient) -> list[Compaction]:
    steps = [queue_manager.compaction()]
    while not steps[-1].is_done:
        steps.append(queue_manager.compact_some())
        assert len(steps) < 1_000
    return steps


def bodies(queue_manager: Direct | SocketClient) -> list[bytes]:
    return [message.body for message in queue_manager.browse("ORDERS")]


def of_an_earlier_version(data_folder: Path) -> None:
    """Makes the store one that keeps no account of its pages."""
    connection = apsw.Connection(str(data_folder / FILE_NAME))
    connection.execute("PRAGMA auto_vacuum = NONE")
    connection.execute("VACUUM")
    assert connection.pragma("auto_vacuum") == 0
    connection.close()


def test_the_room_of_a_drained_backlog_is_given_back_in_steps(queue_manager, data_folder):
    fill(queue_manager)
    drain(queue_manager)
    first, *steps = compact(queue_manager)
    assert first.free_bytes > BACKLOG * len(BODY) // 2
    assert len(steps) > 4
    assert [step.free_bytes for step in steps] == sorted((step.free_bytes for step in steps), reverse=True)
    assert steps[-1].free_bytes == 0
    assert steps[-1].size_bytes == (data_folder / FILE_NAME).stat().st_size < SMALL_BYTES
    assert bodies(queue_manager) == [b"stays"]
    assert verify_store(data_folder).is_sound


def test_a_store_of_an_earlier_version_is_written_anew_once_and_then_keeps_account(
    adapter: EmbeddedAdapter, queue_manager, data_folder
):
    adapter.stop()
    of_an_earlier_version(data_folder)
    adapter.start()
    queue_manager = adapter.connection
    fill(queue_manager)
    drain(queue_manager)
    assert compact(queue_manager)[-1].size_bytes < SMALL_BYTES
    assert bodies(queue_manager) == [b"stays"]
    adapter.restart()
    fill(adapter.connection)
    adapter.connection.clear("ORDERS")
    assert len(compact(adapter.connection)) > 4, "in steps"


@pytest.mark.parametrize("adapter", ["client"], indirect=True)
def test_a_large_store_of_an_earlier_version_is_not_written_anew_beside_a_gateway(
    adapter: EmbeddedAdapter, queue_manager, data_folder, monkeypatch
):
    adapter.stop()
    of_an_earlier_version(data_folder)
    monkeypatch.setattr(compaction_module, "_WRITTEN_ANEW_BYTES", MIB)
    adapter.start()
    fill(adapter.connection)
    with pytest.raises(QueueManagerError, match="while the gateway runs") as refusal:
        compact(adapter.connection)
    assert refusal.value.reason_code == ReasonCode.MQRC_OBJECT_IN_USE
    assert len(bodies(adapter.connection)) == BACKLOG + 1, "it goes on"
    adapter.stop()
    with Direct(data_folder) as stopped:
        assert compact(stopped)[-1].free_bytes == 0
        assert len(bodies(stopped)) == BACKLOG + 1


def test_on_a_nearly_full_disk_it_takes_small_steps_and_without_any_room_it_says_so(tmp_path, mounts: Mounts):
    disk = tmp_path / "disk"
    mounts.mount(disk, size_bytes=40 * MIB)
    with Direct(disk / "data") as queue_manager:
        queue_manager.define("ORDERS")
        fill(queue_manager)
        drain(queue_manager)
    filler = disk / "filler"
    with Direct(disk / "data") as queue_manager:
        before = queue_manager.compaction()
        full = _filled_up_to(filler, left=8_192)
        with pytest.raises(QueueManagerError, match="bytes are needed on the disk") as refusal:
            compact(queue_manager)
        assert refusal.value.reason_code == ReasonCode.MQRC_Q_SPACE_NOT_AVAILABLE
        full.truncate(full.tell() - 128 * 1024)
        full.close()
        after = compact(queue_manager)[-1]
        assert (after.free_bytes, after.size_bytes < before.size_bytes // 4) == (0, True)
        assert bodies(queue_manager) == [b"stays"]
    assert verify_store(disk / "data").is_sound


def _filled_up_to(path: Path, *, left: int) -> BinaryIO:
    """An open file that takes all of its disk but so many bytes."""
    file = path.open("wb")
    while (free := os.statvfs(path.parent).f_bavail * os.statvfs(path.parent).f_frsize) > left:
        file.write(bytes(min(MIB, free - left)))
        file.flush()
    return file


class IdleWorld:
    """An engine with an event loop, as the daemon's, and one queue."""

    def __init__(self, data_folder: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.calls = 0

        def offload(call, done) -> None:
            self.calls += 1
            error: BaseException | None = None
            try:
                call()
            except StoreError as failure:
                error = failure
            loop.call_soon(done, error)

        self.engine = Engine.open(data_folder, call_soon=loop.call_soon, offload=offload)
        self.queue = self.engine.define("ORDERS")

    def turn(self) -> None:
        self.loop.run_until_complete(asyncio.sleep(0))

    def tick(self) -> None:
        self.engine.tick()
        self.turn()

    def put(self, body: bytes) -> None:
        unit = self.engine.begin()
        self.engine.put(unit, self.queue, Message(MessageDescriptor(persistence=1), body))
        self.engine.submit(unit)

    def clear(self) -> None:
        unit = self.engine.begin()
        while (message := self.engine.take(self.queue)) is not None:
            unit.remove(self.queue, message, Departure.TAKEN)
        self.engine.submit(unit)

    def free_bytes(self) -> int:
        return self.engine.maintenance.status().free_bytes


@pytest.fixture
def idle(data_folder: Path) -> Iterator[IdleWorld]:
    loop = asyncio.new_event_loop()
    world = IdleWorld(data_folder, loop)
    for _ in range(2 * BACKLOG):
        world.put(BODY)
    world.turn()
    world.clear()
    world.turn()
    yield world
    world.engine.close()
    loop.close()


def test_idle_moments_give_room_back_until_what_the_next_messages_need_is_left(idle, data_folder):
    before = idle.free_bytes()
    assert before > 16 * MIB
    idle.tick()
    smaller = idle.free_bytes()
    assert 0 < before - smaller <= 256 * 1024, "a small step"
    for _ in range(1_000):
        idle.tick()
    assert 3 * MIB < idle.free_bytes() <= 4 * MIB
    idle.put(b"goes on")
    idle.turn()
    assert idle.engine.failed is None


def test_no_step_is_made_while_a_commit_waits_or_many_were_made(idle):
    idle.tick()
    before = idle.free_bytes()
    idle.put(b"waits")
    idle.tick()
    assert idle.free_bytes() == before
    for _ in range(20):
        idle.put(b"one of many")
        idle.turn()
    before = idle.free_bytes()
    idle.tick()
    assert idle.free_bytes() == before
    idle.tick()
    assert idle.free_bytes() < before


def test_where_commits_are_slow_a_step_is_made_in_a_thread_and_what_comes_meanwhile_is_committed_behind_it(
    idle, monkeypatch
):
    monkeypatch.setattr(group_commit, "SLOW_COMMIT_S", -1.0)
    before, calls = idle.free_bytes(), idle.calls
    idle.engine.tick()
    assert idle.calls == calls + 1
    assert not idle.engine.is_idle
    idle.put(b"comes meanwhile")
    for _ in range(5):
        idle.turn()
    assert idle.free_bytes() < before
    assert (idle.queue.depth, idle.engine.is_idle) == (1, True)


def test_a_step_that_fails_stops_the_queue_manager(idle, monkeypatch):
    def fails(*_arguments: object) -> int:
        raise apsw.IOError("a disk")

    monkeypatch.setattr(compaction_module.FreePages, "_give_back", fails)
    idle.tick()
    assert isinstance(idle.engine.failed, StoreError)


def test_a_backup_has_no_free_pages_and_is_a_store_that_keeps_account(data_folder, tmp_path):
    with Direct(data_folder) as queue_manager:
        queue_manager.define("ORDERS")
        fill(queue_manager)
        drain(queue_manager)
        restored = tmp_path / "restored"
        restored.mkdir()
        found = back_up(data_folder, restored / FILE_NAME)
        assert (found.is_sound, found.messages) == (True, 1)
    accept_rollback(restored)
    assert (restored / FILE_NAME).stat().st_size < SMALL_BYTES
    assert (restored / FILE_NAME).stat().st_mode & 0o077 == 0
    with Direct(restored) as queue_manager:
        assert bodies(queue_manager) == [b"stays"]
        fill(queue_manager)
        queue_manager.clear("ORDERS")
        assert len(compact(queue_manager)) > 4, "in steps"


def test_a_disk_that_others_fill_meanwhile_stops_nothing(tmp_path, mounts: Mounts, monkeypatch):
    """What was to move stays where it is, as if there had been no room from the start."""
    mounts.mount(tmp_path / "disk", size_bytes=40 * MIB)
    with Direct(tmp_path / "disk" / "data") as queue_manager:
        queue_manager.define("ORDERS")
        fill(queue_manager)
        drain(queue_manager)
    with Direct(tmp_path / "disk" / "data") as queue_manager:
        full = _filled_up_to(tmp_path / "disk" / "filler", left=0)
        monkeypatch.setattr(compaction_module.FreePages, "_room_bytes", lambda _pages: 100 * MIB)
        before = queue_manager.compaction()
        with pytest.raises(QueueManagerError) as refusal:
            compact(queue_manager)
        assert refusal.value.reason_code == ReasonCode.MQRC_Q_SPACE_NOT_AVAILABLE
        assert queue_manager.compaction() == before
        full.truncate(0)
        full.close()
        queue_manager.put("ORDERS", Message(MessageDescriptor(), b"goes on"))
        assert bodies(queue_manager) == [b"stays", b"goes on"]
    assert verify_store(tmp_path / "disk" / "data").is_sound


def test_a_store_that_cannot_be_read_for_its_room_stops_the_queue_manager(idle, data_folder, monkeypatch):
    def fails(*_arguments: object) -> int:
        raise apsw.IOError("a disk")

    monkeypatch.setattr(compaction_module.FreePages, "_pages", staticmethod(fails))
    assert idle.engine.maintenance.room_bytes() == 0
    assert isinstance(idle.engine.failed, StoreError)
    assert idle.engine.maintenance.room_bytes() == 0
