"""A data folder that is gone while its store is open: nothing more is acknowledged, and what was open is saved."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.store.files import FilesGone
from mq_adapters.embedded.store.rescue import rescued_in
from mq_adapters.embedded.store.rollback_guard import MARKER_NAME
from mq_adapters.embedded.store.store import FILE_NAME, LOCK_NAME
from mq_adapters.embedded.store.verification import verify_store
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import StoreError
from tests.mounts import Mounts

WAL_NAME = f"{FILE_NAME}-wal"


class World:
    """A queue manager that owns its store, with queue ORDERS, and what it acknowledged."""

    def __init__(self, data: Path, rescue: Path | None) -> None:
        self.data = data
        self.rescue = rescue
        self.failures: list[StoreError] = []
        self.engine = Engine.open(data, rescue_folder=rescue)
        self.engine.on_failure = self.failures.append
        self.queue = self.engine.ensure("ORDERS", "for tests")
        self.acknowledged: list[bytes] = []

    def put(self, body: bytes) -> None:
        unit = self.engine.begin()
        self.engine.put(unit, self.queue, Message(MessageDescriptor(persistence=1), body))
        self.engine.submit(unit, lambda _unit: self.acknowledged.append(body))

    def rescued(self) -> Path:
        assert self.rescue is not None
        (place,) = rescued_in(self.rescue)
        return place


@pytest.fixture
def world(data_folder, tmp_path):
    made = World(data_folder, tmp_path / "rescue")
    for number in range(20):
        made.put(b"%d" % number + bytes(3_000))
    made.engine.maintenance.look()
    yield made
    made.engine.close()


def bodies(data: Path) -> list[bytes]:
    with Direct(data) as queue_manager:
        return [message.body for message in queue_manager.browse("ORDERS")]


def replaced(path: Path) -> None:
    copy = path.with_suffix(".copy")
    shutil.copy(path, copy)
    copy.rename(path)


WAYS: dict[str, Callable[[Path], object]] = {
    "the folder is removed": shutil.rmtree,
    "the folder is renamed": lambda data: data.rename(data.with_name("elsewhere")),
    "the database is removed": lambda data: (data / FILE_NAME).unlink(),
    "the WAL is removed": lambda data: (data / WAL_NAME).unlink(),
    "the marker is removed": lambda data: (data / MARKER_NAME).unlink(),
    "the database is replaced by a copy of itself": lambda data: replaced(data / FILE_NAME),
    "the database keeps another name": lambda data: (
        os.link(data / FILE_NAME, data / "other"),
        (data / FILE_NAME).unlink(),
    ),
    "a parent is renamed": lambda data: data.parent.rename(data.parent.with_name("moved")),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_the_next_commit_is_not_acknowledged_and_what_was_open_is_a_store(tmp_path, way):
    world = World(tmp_path / "parent" / "data", tmp_path / "rescue")
    for number in range(20):
        world.put(b"%d" % number + bytes(3_000))
    before = list(world.acknowledged)
    assert len(before) == 20
    way(world.data)
    world.put(b"too late")
    assert world.acknowledged == before
    (failure,) = world.failures
    assert isinstance(failure, FilesGone)
    assert f"copied to {world.rescued()}" in str(failure)
    with pytest.raises(FilesGone):
        world.put(b"much too late")
    world.engine.close()
    assert verify_store(world.rescued()).is_sound
    assert bodies(world.rescued())[:20] == before


def test_an_idle_queue_manager_sees_it_at_its_next_look(world):
    shutil.rmtree(world.data)
    world.engine.maintenance.look()
    assert isinstance(world.engine.failed, FilesGone)
    world.engine.maintenance.look()
    assert len(world.failures) == 1, "it is told once"
    assert bodies(world.rescued()) == world.acknowledged


def test_a_lock_that_is_gone_is_seen_and_a_store_that_is_there_is_not_copied(world):
    (world.data / LOCK_NAME).unlink()
    world.engine.maintenance.look()
    assert LOCK_NAME in str(world.engine.failed)
    assert rescued_in(world.rescue) == []


def test_what_else_was_there_is_saved_and_nobody_else_may_read_it(world):
    trail = world.data / "trail"
    world.engine.maintenance.watch(trail, suffix=".open")
    world.engine.maintenance.look()
    trail.mkdir()
    (trail / "000000000001-20260101T00.open").write_bytes(b"a line\n")
    (trail / "000000000000-20260101T00.jsonl").write_bytes(b"closed\n")
    (world.data / "marker").write_bytes(b"old")
    world.engine.maintenance.look()
    (world.data / "new").write_bytes(b"new")
    (world.data / "new").rename(world.data / "marker")
    world.engine.maintenance.look()
    with (trail / "000000000001-20260101T00.open").open("ab") as segment:
        segment.write(b"another\n")
    shutil.rmtree(world.data)
    world.put(b"too late")
    place = world.rescued()
    files = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    assert files == {FILE_NAME, WAL_NAME, MARKER_NAME, "marker", "trail/000000000001-20260101T00.open"}
    assert (place / "marker").read_bytes() == b"new"
    assert (place / "trail" / "000000000001-20260101T00.open").read_bytes() == b"a line\nanother\n"
    assert not any(stat.S_IMODE(path.stat().st_mode) & 0o077 for path in (place, *place.rglob("*")))


def test_a_watched_folder_that_is_gone_stops_it_and_only_its_files_are_saved(world):
    trail = world.data / "trail"
    trail.mkdir()
    (trail / "1.open").write_bytes(b"a line\n")
    world.engine.maintenance.watch(trail, suffix=".open")
    world.engine.maintenance.look()
    trail.rename(world.data / "aside")
    world.engine.maintenance.look()
    assert "trail" in str(world.engine.failed)
    assert [path.name for path in world.rescued().iterdir()] == ["trail"]
    assert (world.rescued() / "trail" / "1.open").read_bytes() == b"a line\n"


def test_without_a_rescue_folder_the_message_says_what_there_could_have_been(data_folder):
    world = World(data_folder, None)
    shutil.rmtree(data_folder)
    world.put(b"too late")
    assert not world.acknowledged
    assert "rescue_folder" in str(world.engine.failed)
    world.engine.close()


def test_a_rescue_that_fails_is_told_and_leaves_what_it_is(world, mounts: Mounts):
    mounts.mount(world.rescue, size_bytes=16_384)
    shutil.rmtree(world.data)
    world.put(b"too late")
    assert "could not be copied" in str(world.engine.failed)
    (unfinished,) = rescued_in(world.rescue)
    assert unfinished.suffix == ".unfinished"


def test_a_store_put_in_the_place_of_one_that_is_open_is_not_touched(data_folder, tmp_path):
    world = World(data_folder, tmp_path / "rescue")
    world.data.rename(world.data.with_name("elsewhere"))
    other = World(world.data, None)
    other.put(b"another store")
    world.put(b"too late")
    world.engine.close()
    assert (world.data / WAL_NAME).exists()
    other.put(b"goes on")
    other.engine.close()
    assert bodies(world.data) == [b"another store", b"goes on"]


def test_a_folder_mounted_over_and_a_volume_taken_away_are_seen(tmp_path, mounts: Mounts):
    volume, rescue = tmp_path / "volume", tmp_path / "rescue"
    mounts.mount(volume, size_bytes=32 * 1024 * 1024)
    world = World(volume / "data", rescue)
    world.put(b"on the volume")
    mounts.mount(volume / "data", size_bytes=4096)
    world.put(b"too late")
    assert world.acknowledged == bodies(world.rescued())[:1] == [b"on the volume"]
    world.engine.close()
    mounts.take_away(volume / "data")
    world = World(volume / "data", tmp_path / "rescue 2")
    mounts.take_away(volume)
    world.put(b"too late")
    assert not world.acknowledged
    assert bodies(world.rescued())[:1] == [b"on the volume"]
    world.engine.close()
