"""Queue managers to test: one that owns its store, one behind a gateway's socket, and IBM MQ's (adapters.py)."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.queue_manager import QueueManager
from tests.ibm_mq_stand_in.process import StandInQueueManager
from tests.mq_adapters.adapters import EMBEDDED, Adapter, EmbeddedAdapter, NativeAdapter, RealAdapter, StandInAdapter
from tests.mq_adapters.gateway_thread import GatewayThread


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandInQueueManager]:
    """A queue manager process that the bindings of this process connect to."""
    with (
        StandInQueueManager(tmp_path_factory.mktemp("stand_in") / "data") as started,
        pytest.MonkeyPatch.context() as patch,
    ):
        started.use(patch)
        yield started


@pytest.fixture(params=EMBEDDED)
def adapter(request: pytest.FixtureRequest, data_folder: Path) -> Iterator[Adapter]:
    """Each implementation of the port in turn: the embedded ones, or those that a module names."""
    if request.param in EMBEDDED:
        adapter: Adapter = EmbeddedAdapter(request.param, data_folder)
    elif request.param == "native":
        adapter = NativeAdapter(data_folder)
    elif request.param == "ibm_mq":
        adapter = RealAdapter()
    else:
        adapter = StandInAdapter(request.param, request.getfixturevalue("stand_in"))
    yield adapter
    adapter.stop()


@pytest.fixture
def prepared(adapter: Adapter) -> QueueManager:
    """A connection to the queue manager under test, with the queues of the contract suite, empty."""
    adapter.prepare()
    return adapter.connection


@pytest.fixture
def other(adapter: Adapter, prepared: QueueManager) -> Iterator[QueueManager]:
    """Another connection to the queue manager under test."""
    with adapter.another() as other:
        yield other


@pytest.fixture
def queue_manager(adapter: EmbeddedAdapter) -> Direct | SocketClient:
    """A connection to the embedded queue manager under test, with the queue ORDERS."""
    adapter.connection.define("ORDERS", description="for tests")
    return adapter.connection


@pytest.fixture(scope="session")
def gateway_class() -> type[GatewayThread]:
    """To start gateways where a test needs another than `gateway`."""
    return GatewayThread


@pytest.fixture
def gateway(data_folder: Path) -> Iterator[GatewayThread]:
    """A running gateway with the queue ORDERS."""
    gateway = GatewayThread(data_folder)
    gateway.call(lambda: gateway.engine.define("ORDERS"))
    yield gateway
    gateway.stop()


@pytest.fixture
def engine(data_folder: Path) -> Iterator[Engine]:
    """An engine that commits at once, with the queue ORDERS."""
    engine = Engine.open(data_folder)
    engine.define("ORDERS")
    yield engine
    with suppress(Exception):
        engine.close()
