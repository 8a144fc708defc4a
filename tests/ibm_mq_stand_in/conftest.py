"""A queue manager of the stand-in, and each binding over it in this process."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.ibm_mq_stand_in.process import BINDINGS, StandInQueueManager, load, needs_stand_in


@pytest.fixture
def queue_manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInQueueManager]:
    """A running queue manager with queue ORDERS; programs of this process connect to it."""
    with StandInQueueManager(tmp_path / "data") as started:
        started.control.mqsc("DEFINE QLOCAL(ORDERS)")
        started.use(monkeypatch)
        yield started


@pytest.fixture(params=[pytest.param(binding, marks=needs_stand_in) for binding in BINDINGS])
def mq(request: pytest.FixtureRequest) -> ModuleType:
    """pymqi, then ibmmq."""
    return load(request.param)
