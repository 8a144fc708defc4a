"""A queue manager of the stand-in, and each binding over it in this process."""

from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.ibm_mq_stand_in.process import BINDINGS, StandInQueueManager, load, needs_stand_in


@pytest.fixture(scope="module")
def shared_queue_manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandInQueueManager]:
    """One process for the tests of a module, which would otherwise mostly start processes."""
    with StandInQueueManager(tmp_path_factory.mktemp("stand_in") / "data") as started:
        yield started


@pytest.fixture
def queue_manager(
    shared_queue_manager: StandInQueueManager, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StandInQueueManager]:
    """A running queue manager as new, with queue ORDERS; programs of this process connect to it."""
    shared_queue_manager.control.reset()
    shared_queue_manager.control.mqsc("DEFINE QLOCAL(ORDERS)")
    shared_queue_manager.use(monkeypatch)
    yield shared_queue_manager
    if not shared_queue_manager.is_running:
        shared_queue_manager.start()


@pytest.fixture(params=[pytest.param(binding, marks=needs_stand_in) for binding in BINDINGS])
def mq(request: pytest.FixtureRequest) -> ModuleType:
    """pymqi, then ibmmq."""
    return load(request.param)
