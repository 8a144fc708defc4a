"""Copies and the care of old segments never hold up the trail; what fails is told once and tried again."""

import logging
import threading
from contextlib import nullcontext

import pytest

from gateway.audit_trail.housekeeper import Housekeeper
from gateway.audit_trail.plan import TrailPlan
from gateway.audit_trail.segment import Trail
from mq_adapters.embedded.direct import Direct
from mq_adapters.plausible_clock import PlausibleClock
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError
from tests.gateway.audit_trail.conftest import NOTE_TAKER

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
    plain, copies, old = Work(), Work(), Work()
    with Housekeeper({"copying": copies}, before={"compressing": plain}, after={"removing": old}):
        assert old.found_nothing.wait(PATIENCE_S)
        plain.count = copies.count = old.count = 5
    assert (plain.done, copies.done, old.done) == (0, 5, 0)


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


def test_a_plan_with_a_second_place_copies_what_is_closed_compressed_and_removes_it_here(
    tmp_path, folder, clock, batches
) -> None:
    second = tmp_path / "second"
    second.mkdir()
    key = str(tmp_path / "trail-key.pem")
    plan = TrailPlan(signing_key=key, copy_folder=str(second), keep_days=1e-9)
    with Trail.open(folder, now=clock) as trail:
        for _ in range(2):
            trail.append(*batches())
            trail.close_segment()
        with Direct(tmp_path / "data", rights=NOTE_TAKER) as queue_manager:
            Housekeeper.of(plan, trail, lambda: nullcontext(queue_manager), PlausibleClock()).turn()
    both = ["000000000001-20261120T12.jsonl.zst", "000000000002-20261120T12.jsonl.zst"]
    assert sorted(path.name for path in second.glob("0*")) == both
    assert sorted(path.name for path in folder.glob("0*")) == both[1:]
