"""Copies and the care of old segments never hold up the trail; what fails is told once and tried again."""

import logging
import threading

import pytest

from gateway.audit_trail.housekeeper import Housekeeper
from gateway.audit_trail.plan import TrailPlan
from gateway.audit_trail.segment import Trail
from mq_adapters.plausible_clock import PlausibleClock
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError

PATIENCE_S = 60.0


class Work:
    """A task with things to do, that may fail, or hang until it is let go."""

    def __init__(self, count: int = 0) -> None:
        self.count = count
        self.done = 0
        self.problem: Exception | None = None
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.has_begun = threading.Event()
        self.found_nothing = threading.Event()

    def step(self) -> bool:
        self.has_begun.set()
        assert self.may_go_on.wait(PATIENCE_S)
        if self.problem is not None:
            raise self.problem
        if not self.count:
            self.found_nothing.set()
            return False
        self.count -= 1
        self.done += 1
        return True


@pytest.mark.parametrize(
    "problem",
    [
        OSError(5, "Input/output error"),
        StoreError("copy", "there is no such folder", "mount it"),
        QueueManagerError(ReasonCode.MQRC_Q_FULL, "put"),
    ],
    ids=["disk", "place", "queue"],
)
def test_a_failure_is_told_once_and_so_is_its_end(problem: Exception, caplog: pytest.LogCaptureFixture) -> None:
    failing, other = Work(2), Work(3)
    housekeeper = Housekeeper({"copying": failing, "sending": other})
    failing.problem = problem
    with caplog.at_level(logging.INFO, "gateway"):
        for _ in range(3):
            housekeeper.turn()
        assert other.done == 3, "one task's failure is not another's"
        failing.problem = None
        housekeeper.turn()
        housekeeper.turn()
    assert failing.done == 2
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    assert "task=copying" in caplog.messages[0]


def test_whoever_ends_waits_for_copies_and_not_for_old_segments() -> None:
    copies, old = Work(), Work()
    with Housekeeper({"copying": copies}, {"tending": old}):
        assert old.found_nothing.wait(PATIENCE_S)
        copies.count, old.count = 5, 5
    assert (copies.done, old.done) == (5, 0)


def test_a_second_place_that_hangs_holds_up_nobody(monkeypatch: pytest.MonkeyPatch, folder, clock, batches) -> None:
    monkeypatch.setattr("gateway.audit_trail.housekeeper.END_WAIT_S", 0.05)
    hanging = Work(1)
    hanging.may_go_on.clear()
    with Trail.open(folder, now=clock) as trail, Housekeeper({"copying": hanging}) as housekeeper:
        assert hanging.has_begun.wait(PATIENCE_S)
        trail.append(*batches())
        trail.close_segment()
        housekeeper.wake()
    assert hanging.done == 0
    hanging.may_go_on.set()
    housekeeper._thread.join(PATIENCE_S)
    assert hanging.done == 1


def test_a_plan_with_a_second_place_copies_what_is_closed(tmp_path, folder, clock, batches) -> None:
    second = tmp_path / "second"
    second.mkdir()
    plan = TrailPlan(signing_key=str(tmp_path / "trail-key.pem"), copy_folder=str(second))
    with (
        Trail.open(folder, now=clock) as trail,
        Housekeeper.of(plan, trail, lambda: pytest.fail("no queue is named"), PlausibleClock()),
    ):
        trail.append(*batches())
        trail.close_segment()
    assert sorted(path.name for path in second.rglob("*")) == [
        "000000000001-20261120T12.jsonl",
        "000000000001.digest",
        "digests",
    ]
