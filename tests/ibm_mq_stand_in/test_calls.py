"""The MQI over the stand-in, through both bindings: what a program sees of connects, objects, messages and units of work."""

from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.ibm_mq_stand_in.process import StandInQueueManager
from tests.ibm_mq_stand_in.program import (
    BROWSE,
    INPUT_EXCLUSIVE,
    INPUT_SHARED,
    INQUIRE,
    NO_SYNCPOINT,
    OUTPUT,
    SYNCPOINT,
    Program,
)


@pytest.fixture
def program(mq: ModuleType, queue_manager: StandInQueueManager) -> Program:
    return Program(mq)


def test_what_was_put_is_got(program: Program) -> None:
    orders = program.open("ORDERS", OUTPUT | INPUT_SHARED)
    put = program.put(orders, b"one\x00\xff", NO_SYNCPOINT, CorrelId=b"C" * 24)
    body, got = program.get(orders, NO_SYNCPOINT)
    assert (body, got.MsgId, got.CorrelId) == (b"one\x00\xff", put.MsgId, b"C" * 24)
    assert put.MsgId != bytes(24)
    assert program.reason_of(program.get, orders, NO_SYNCPOINT) == 2033
