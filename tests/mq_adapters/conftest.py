"""Queue managers to test: one that owns its store, and one behind a gateway's socket, each of which can restart."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest
import uvloop

from mq_adapters.embedded.client import Client
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.server import Server

T = TypeVar("T")

STEP_S = 10.0  # no step of a test takes longer; a lock that never comes ends the test with an error


class GatewayThread:
    """An engine and its socket server in an event loop of their own, the daemon's kind."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.engine: Engine
        self.server: Server
        self.loop: asyncio.AbstractEventLoop
        self.stopping: asyncio.Event
        self.complaints: list[dict[str, object]] = []
        self._is_up = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="gateway")
        self._thread.start()
        assert self._is_up.wait(STEP_S), "the gateway did not start"
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._error = error
        finally:
            self._is_up.set()

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.loop.set_exception_handler(lambda _loop, context: self.complaints.append(context))
        self.stopping = asyncio.Event()
        self.engine = Engine.open(self.data_dir, call_soon=self.loop.call_soon)
        self.server = Server(self.engine, self.data_dir)
        try:
            await self.server.start()
            self._is_up.set()
            await self.stopping.wait()
            await self.server.stop()
        finally:
            self.engine.close()

    def call(self, function: Callable[[], T]) -> T:
        """Runs a function in the gateway's loop and waits for its value."""

        async def run() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(STEP_S)

    def stop(self) -> None:
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.stopping.set)
        self._thread.join(STEP_S)
        assert not self._thread.is_alive(), "the gateway did not stop"
        assert self.complaints == []
        if self._error is not None:
            raise self._error


class Adapter:
    """A queue manager of one data folder, opened as the test's parameter says."""

    def __init__(self, kind: str, data_dir: Path) -> None:
        self.kind = kind
        self.data_dir = data_dir
        self.gateway: GatewayThread | None = None
        self.connection: Direct | Client
        self.start()

    def start(self) -> None:
        if self.kind == "client":
            self.gateway = GatewayThread(self.data_dir)
            self.connection = Client(self.data_dir, application_name="a test")
        else:
            self.connection = Direct(self.data_dir, application_name="a test")

    def stop(self) -> None:
        self.connection.close()
        if self.gateway is not None:
            self.gateway.stop()
            self.gateway = None

    @property
    def engine(self) -> Engine:
        engine = self.gateway.engine if self.gateway is not None else self.connection._engine
        assert engine is not None
        return engine

    def pass_time(self, seconds: float) -> None:
        """Sets the queue manager's clock on."""
        later = self.engine.now_us() + int(seconds * 1_000_000)
        self.engine.now_us = lambda: later

    def restart(self) -> Direct | Client:
        self.stop()
        self.start()
        return self.connection


@pytest.fixture(params=["direct", "client"])
def adapter(request: pytest.FixtureRequest, data_folder: Path) -> Iterator[Adapter]:
    """Each implementation of the port in turn, on a store of its own."""
    adapter = Adapter(request.param, data_folder)
    yield adapter
    adapter.stop()


@pytest.fixture
def queue_manager(adapter: Adapter) -> Direct | Client:
    """A connection to the queue manager under test, with the queue ORDERS."""
    adapter.connection.define("ORDERS", description="for tests")
    return adapter.connection


@pytest.fixture
def other(adapter: Adapter, queue_manager: Direct | Client) -> Iterator[Client]:
    """Another connection to the queue manager under test; the owner of a store has nobody beside it."""
    if adapter.kind == "direct":
        pytest.skip("the store's owner has nobody beside it")
    with Client(adapter.data_dir, application_name="another test") as other:
        yield other


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
