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


def test_space_runs_short_below_the_mark_and_comes_back_five_percent_above_it(caplog: pytest.LogCaptureFixture) -> None:
    disk, changes = Disk(), list[bool]()
    space = FreeSpace(Path(), 1_000, on_change=changes.append, free_bytes=disk)
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
    space = FreeSpace(Path("/nowhere"), 0, on_change=lambda _is_short: pytest.fail("there is no mark"))
    space.tick()
    assert not space.is_short
