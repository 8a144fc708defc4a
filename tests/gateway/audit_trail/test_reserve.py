"""The trail waits where the disk has no more than its reserve: batches stay on their queue, each is written once."""

import logging
from pathlib import Path

import pytest

from gateway.audit_trail.exporter import Exporter, run
from gateway.audit_trail.notes.notes import NoteKind
from gateway.audit_trail.reserve import Reserve
from gateway.audit_trail.segment import Trail
from mq_adapters.system_queues import AUDIT_QUEUE
from spark_audit.verify import Verdict, verify

AT = 1_795_000_000_000_000
RESERVE = 10_000


class Disk:
    """As much room as the test says, less what is written after it said so."""

    def __init__(self, trail: Path, free: int) -> None:
        self._trail = trail
        self.free = free

    def __call__(self, _folder: Path) -> int:
        return self.free - sum(path.stat().st_size for path in self._trail.glob("*.open"))


class Asked:
    """The end is asked for at once."""

    def wait(self, _seconds: float) -> bool:
        return True


def _commit_some(store, count: int) -> None:
    for number in range(count):
        store.commit(*((NoteKind.SESSION, AT, f"{number}-{note}", 1, "opened", 4, True) for note in range(5)))


def test_a_batch_whose_lines_have_no_room_stays_on_the_queue_and_is_written_once_there_is(store, caplog) -> None:
    caplog.set_level(logging.INFO, "gateway")
    _commit_some(store, 20)
    disk = Disk(store.trail, RESERVE + 5_000)
    with Trail.open(store.trail) as trail:
        exporter = Exporter(store.queue_manager, trail, reserve=Reserve(store.trail, RESERVE, disk))
        assert exporter.step() == 0
        assert RESERVE <= disk(store.trail) < RESERVE + 1_000
        assert store.queue_manager.depth(AUDIT_QUEUE) == 20
        written = len(store.records())
        assert 0 < written < 100
        assert exporter.step() == 0
        assert len(store.records()) == written
        disk.free = 1_000_000
        assert exporter.step() == 20
    assert [record["client"] for record in store.records()] == [
        f"{batch}-{note}" for batch in range(20) for note in range(5)
    ]
    assert [record.getMessage().split(" free")[0] for record in caplog.records] == ["trail paused", "trail resumed"]


def test_at_its_end_it_leaves_what_has_no_room_and_calls_no_time_quiet(store) -> None:
    _commit_some(store, 2)
    with Trail.open(store.trail) as trail:
        run(store.queue_manager, trail, Asked(), reserve=Reserve(store.trail, RESERVE, lambda _folder: RESERVE - 1))
    assert store.queue_manager.depth(AUDIT_QUEUE) == 2
    assert not list((store.trail / "digests").glob("*"))


def test_without_a_reserve_the_disk_is_not_looked_at() -> None:
    def look(_folder: Path) -> int:
        return pytest.fail("it looked")

    assert Reserve(Path(), 0, look).allows(1_000)


def test_it_goes_on_when_what_was_refused_has_room() -> None:
    free = RESERVE + 999
    reserve = Reserve(Path(), RESERVE, lambda _folder: free)
    assert reserve.allows()
    assert not reserve.allows(1_000)
    assert not reserve.allows()
    free = RESERVE + 1_499
    assert not reserve.allows()
    free = RESERVE + 1_500
    assert reserve.allows()
    assert reserve.allows(1_000)


def test_an_intact_trail_follows_a_pause(store) -> None:
    _commit_some(store, 20)
    disk = Disk(store.trail, RESERVE + 5_000)
    with Trail.open(store.trail) as trail:
        Exporter(store.queue_manager, trail, reserve=Reserve(store.trail, RESERVE, disk)).step()
    with Trail.open(store.trail) as trail:
        Exporter(store.queue_manager, trail).drain()
        trail.close_segment()
    assert verify(store.trail).verdict is Verdict.INTACT
    assert len(store.records()) == 100
