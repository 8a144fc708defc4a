"""A queue manager of the stand-in, and connections to it over either package."""

from collections.abc import Iterator

import pytest

from mq_adapters.ibm_mq import ConnectionSettings, IbmMq
from tests.ibm_mq_stand_in.control import Control
from tests.ibm_mq_stand_in.process import BINDINGS, Binding, StandInQueueManager, load, needs_stand_in


@pytest.fixture(params=[pytest.param(binding, marks=needs_stand_in) for binding in BINDINGS])
def package(request: pytest.FixtureRequest) -> Binding:
    """The name of each package in turn, loaded over the stand-in."""
    load(request.param)
    name: Binding = request.param
    return name


@pytest.fixture
def control(stand_in: StandInQueueManager) -> Iterator[Control]:
    """What a test does to the queue manager, which has the empty queue ORDERS; undone afterwards."""
    control = stand_in.control
    control.mqsc("DEFINE QLOCAL(ORDERS)")
    control.forget_calls()
    yield control
    control.clear_faults()
    control.deny()
    control.require_passwords({})
    control.end_quiesce()
    control.end_outage()
    control.mqsc("DELETE QLOCAL(ORDERS) PURGE")


@pytest.fixture
def settings(package: Binding) -> ConnectionSettings:
    """How to reach the queue manager."""
    return ConnectionSettings(package=package)


@pytest.fixture
def queue_manager(control: Control, settings: ConnectionSettings) -> Iterator[IbmMq]:
    """A connection."""
    with IbmMq(settings) as connected:
        yield connected
