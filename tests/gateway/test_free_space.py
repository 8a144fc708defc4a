"""The mark on the disk: passed once in each direction, with room between both."""

import logging
from pathlib import Path

import pytest

from gateway.free_space import FreeSpace


class Disk:
    """A disk with as much room as the test says."""

    def __init__(self) -> None:
        self.free = 2_000

    def __call__(self, _folder: Path) -> int:
        if self.free < 0:
            raise OSError(5, "Input/output error")
        return self.free


class Store:
    """A store with so much inside for the next messages."""

    def __init__(self, room: int = 0) -> None:
        self.room = room
        self.settled = 0

    def room_bytes(self) -> int:
        return self.room

    def settle(self) -> None:
        self.settled += 1


def free_space(
    disk: Disk, changes: list[bool], paused: list[bool] | None = None, store: Store | None = None
) -> FreeSpace:
    """With a mark of 1,000 bytes, and so a reserve of 250."""
    return FreeSpace(
        Path(),
        1_000,
        on_change=changes.append,
        on_reserve=([] if paused is None else paused).append,
        store=store or Store(),
        free_bytes=disk,
    )


def test_space_runs_short_below_the_mark_and_comes_back_five_percent_above_it(caplog: pytest.LogCaptureFixture) -> None:
    disk, changes = Disk(), list[bool]()
    space = free_space(disk, changes)
    with caplog.at_level(logging.INFO, "gateway"):
        for free in (1_000, 999, 500, 1_000, 1_049, -1, 1_050, 1_000, 999):
            disk.free = free
            space.tick()
    assert changes == [True, False, True]
    assert [record.getMessage().split(" free")[0] for record in caplog.records] == [
        "disk space ran short",
        "disk has room again",
        "disk space ran short",
    ]


def test_without_a_mark_the_disk_is_not_looked_at() -> None:
    disk = Disk()
    disk.free = -1

    def told(_is_short: bool) -> None:
        pytest.fail("there is no mark")

    space = FreeSpace(Path("/nowhere"), 0, on_change=told, on_reserve=told, store=Store(), free_bytes=disk)
    space.tick()
    assert not space.is_short


def test_what_is_free_inside_the_store_counts_until_the_disk_has_no_more_than_its_reserve() -> None:
    disk, changes, paused = Disk(), list[bool](), list[bool]()
    space = free_space(disk, changes, paused, Store(800))
    for free in (999, 251, 250):
        disk.free = free
        space.tick()
    assert (changes, paused) == ([], []), "the next messages have 1,050 bytes"
    disk.free = 249
    space.tick()
    assert (changes, paused) == ([True], [True])
    disk.free = 261
    space.tick()
    assert (changes, paused) == ([True], [True])
    disk.free = 262
    space.tick()
    assert (changes, paused) == ([True, False], [True, False])


def test_what_the_store_will_still_take_of_the_disk_is_no_room_and_is_taken_soon() -> None:
    disk, changes, paused, store = Disk(), list[bool](), list[bool](), Store(-500)
    space = free_space(disk, changes, paused, store)
    disk.free = 1_500
    space.tick()
    assert (changes, paused, store.settled) == ([], [], 0)
    disk.free = 1_499
    space.tick()
    assert (changes, paused, store.settled) == ([True], [], 1)
    disk.free = 749
    space.tick()
    assert (changes, paused, store.settled) == ([True], [True], 2)
