"""Faults: each strikes when it is planted to, and what it says of the call's work is true. Through both bindings."""

from types import ModuleType

import pytest

from tests.ibm_mq_stand_in.control import ControlError
from tests.ibm_mq_stand_in.faults import Fault
from tests.ibm_mq_stand_in.process import StandInQueueManager, wait_until
from tests.ibm_mq_stand_in.program import (
    INPUT_EXCLUSIVE,
    INPUT_SHARED,
    NO_SYNCPOINT,
    OUTPUT,
    Program,
)

FAIL_IF_QUIESCING = 0x2000
#: Longer than a test takes: what is planted so takes effect when the test says so.
PATIENCE_S = 600


def _depth(queue_manager: StandInQueueManager) -> int:
    with queue_manager.client() as client:
        return client.depth("ORDERS")


@pytest.mark.parametrize(("moment", "depth"), [("before", 0), ("after", 1)])
def test_a_commit_whose_answer_is_lost_may_have_been_done(
    mq: ModuleType, queue_manager: StandInQueueManager, moment: str, depth: int
) -> None:
    queue_manager.control.plant("MQCMIT", 2009, moment)
    program = Program(mq)
    program.put(program.open("ORDERS", OUTPUT), b"one")
    assert program.reason_of(program.manager.commit) == 2009
    assert _depth(queue_manager) == depth
    assert queue_manager.control.clear_faults() == [1]


@pytest.mark.parametrize(("moment", "depth"), [("late", 1), ("lost", 0)])
def test_a_late_commit_holds_its_queues_until_it_has_taken_effect(
    mq: ModuleType, queue_manager: StandInQueueManager, moment: str, depth: int
) -> None:
    queue_manager.control.plant("MQCMIT", 2009, moment, late_s=PATIENCE_S)
    program = Program(mq)
    orders = program.open("ORDERS", OUTPUT | INPUT_EXCLUSIVE)
    program.put(orders, b"one")
    assert program.reason_of(program.manager.commit) == 2009
    again = Program(mq)
    assert again.reason_of(again.open, "ORDERS", INPUT_EXCLUSIVE) == 2042
    assert _depth(queue_manager) == 0
    queue_manager.control.hasten()
    wait_until(lambda: again.reason_of(again.open, "ORDERS", INPUT_EXCLUSIVE) == 0)
    assert _depth(queue_manager) == depth


def test_after_2009_every_call_on_the_handle_is_2009(mq: ModuleType, queue_manager: StandInQueueManager) -> None:
    queue_manager.control.plant("MQPUT", 2009)
    program = Program(mq)
    orders = program.open("ORDERS", OUTPUT | INPUT_SHARED)
    assert program.reason_of(program.put, orders, b"one") == 2009
    calls = [(program.get, orders), (program.manager.commit,), (program.manager.backout,), (program.open, "ORDERS", 16)]
    assert [program.reason_of(*call) for call in calls] == [2009] * 4


def test_another_reason_leaves_the_connection_and_the_unit_of_work(
    mq: ModuleType, queue_manager: StandInQueueManager
) -> None:
    queue_manager.control.plant("MQPUT", 2053, nth=2)
    program = Program(mq)
    orders = program.open("ORDERS", OUTPUT)
    assert [program.reason_of(program.put, orders, b"") for _ in range(3)] == [0, 2053, 0]
    program.manager.commit()
    assert _depth(queue_manager) == 2


def test_a_commit_that_is_backed_out_is_a_warning_and_keeps_nothing(
    mq: ModuleType, queue_manager: StandInQueueManager
) -> None:
    queue_manager.control.plant("MQCMIT", 2003, contains=b"poison", times=0)
    program = Program(mq)
    orders = program.open("ORDERS", OUTPUT)
    program.put(orders, b"good")
    program.put(orders, b"the poison one")
    with pytest.raises(mq.MQMIError) as refused:
        program.manager.commit()
    assert (refused.value.comp, refused.value.reason) == (1, 2003)
    program.put(orders, b"good")
    program.manager.commit()
    assert _depth(queue_manager) == 1


def test_a_message_can_be_refused_by_what_is_in_it(mq: ModuleType, queue_manager: StandInQueueManager) -> None:
    queue_manager.control.plant("MQPUT", 2030, contains=b"poison", times=0)
    program = Program(mq)
    orders = program.open("ORDERS", OUTPUT)
    bodies = [b"good", b"poison", b"better", b"more poison"]
    assert [program.reason_of(program.put, orders, body) for body in bodies] == [0, 2030, 0, 2030]


def test_an_outage_breaks_connections_and_refuses_new_ones(mq: ModuleType, queue_manager: StandInQueueManager) -> None:
    program = Program(mq)
    program.put(program.open("ORDERS", OUTPUT), b"one")
    queue_manager.control.begin_outage(2538)
    assert program.reason_of(program.manager.commit) == 2009
    assert program.reason_of(Program, mq) == 2538
    queue_manager.control.end_outage()
    assert program.reason_of(Program, mq) == 0
    assert _depth(queue_manager) == 0


def test_a_quiescing_queue_manager_refuses_who_asks_for_it(mq: ModuleType, queue_manager: StandInQueueManager) -> None:
    program = Program(mq)
    orders = program.open("ORDERS", OUTPUT | INPUT_SHARED)
    queue_manager.control.quiesce()
    assert program.reason_of(program.put, orders, b"", NO_SYNCPOINT | FAIL_IF_QUIESCING) == 2161
    assert program.reason_of(program.get, orders, NO_SYNCPOINT | FAIL_IF_QUIESCING, wait_ms=10_000) == 2161
    assert program.reason_of(program.put, orders, b"", NO_SYNCPOINT) == 0
    assert program.reason_of(Program, mq) == 2161
    queue_manager.control.end_quiesce()
    assert program.reason_of(Program, mq) == 0


def test_the_trace_and_the_counters_tell_every_call(mq: ModuleType, queue_manager: StandInQueueManager) -> None:
    program = Program(mq)
    queue_manager.control.forget_calls()
    orders = program.open("ORDERS", OUTPUT | INPUT_SHARED)
    program.put(orders, b"", NO_SYNCPOINT)
    program.get(orders)
    program.reason_of(program.get, orders)
    calls = [(each["verb"], each["object_name"], each["reason"]) for each in queue_manager.control.trace()]
    expected = [("MQOPEN", "ORDERS", 0), ("MQPUT", "ORDERS", 0), ("MQGET", "ORDERS", 0), ("MQGET", "ORDERS", 2033)]
    assert calls == expected
    assert queue_manager.control.calls() == {"MQOPEN": 1, "MQPUT": 1, "MQGET": 2}
    assert queue_manager.control.reasons() == {2033: 1}


def test_random_losses_are_the_same_for_the_same_seed() -> None:
    def struck(seed: int) -> list[bool]:
        fault = Fault(verb="*", reason=2009, moment="random", probability=0.1, seed=seed, times=0)
        return [fault.strikes("MQPUT", ()) for _ in range(1_000)]

    assert struck(1) == struck(1) != struck(2)
    assert 60 < sum(struck(1)) < 140


@pytest.mark.parametrize(("nth", "times", "struck"), [(1, 1, [1]), (3, 1, [3]), (2, 2, [2, 3]), (4, 0, [4, 5])])
def test_a_fault_strikes_from_its_nth_call_on(nth: int, times: int, struck: list[int]) -> None:
    fault = Fault(verb="MQGET", reason=2009, nth=nth, times=times)
    assert not fault.strikes("MQPUT", ())
    assert [call for call in range(1, 6) if fault.strikes("MQGET", ())] == struck


def test_a_fault_that_cannot_be_is_refused(queue_manager: StandInQueueManager) -> None:
    with pytest.raises(ControlError, match="moment 'never'"):
        queue_manager.control.plant("MQPUT", 2009, "never")
    with pytest.raises(ControlError, match="reason 2009"):
        queue_manager.control.plant("MQPUT", 2053, "late")
