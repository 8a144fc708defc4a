"""What the contract suite runs on: every implementation of the port, each on a queue manager that it can be given.

| kind | what it is |
|---|---|
| direct | the embedded queue manager, by the owner of its store |
| client | the embedded queue manager, through a gateway's socket |
| pymqi, ibmmq | the adapter for IBM MQ over each package, over the stand-in for IBM's client library |
| ibm_mq | the same on a real queue manager, which the environment names (tests/README.md says how) |
"""

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import pytest
import uvloop

from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.embedded.socket.server import Server
from mq_adapters.ibm_mq import ConnectionSettings, IbmMq
from mq_adapters.queue_manager import QueueManager
from mq_adapters.reasons import QueueManagerError
from tests.ibm_mq_stand_in.process import StandInQueueManager, load, needs_stand_in

T = TypeVar("T")

STEP_S: Final = 60.0  # no step of a test takes longer; a lock that never comes ends the test with an error

#: Two local queues that the contract suite empties and fills.
ORDERS: Final = "RFHBRIDGE.TEST.ORDERS"
NEXT: Final = "RFHBRIDGE.TEST.NEXT"

EMBEDDED: Final = ("direct", "client")
_REAL: Final = "RFHBRIDGE_TEST_MQ_"
EVERY_KIND: Final = (
    *EMBEDDED,
    pytest.param("pymqi", marks=needs_stand_in),
    pytest.param("ibmmq", marks=needs_stand_in),
    *(["ibm_mq"] if f"{_REAL}CONNECTIONS" in os.environ else []),
)


class Adapter(Protocol):
    """One implementation of the port, and its queue manager."""

    kind: str
    connection: QueueManager
    #: PutApplName of what `connection` puts; None where the package cannot say it.
    application_name: str | None

    def prepare(self) -> None:
        """Sees to it that ORDERS and NEXT are there, and empty."""
        ...

    def mqsc(self, *commands: str) -> None:
        """Carries out MQSC commands; skips the test where that is not ours to do."""
        ...

    def another(self) -> QueueManager:
        """A further connection, for the thread that calls; skips the test where there can be none."""
        ...

    def reconnect(self) -> QueueManager:
        """Closes the connection and makes a new one."""
        ...

    def stop(self) -> None: ...


class GatewayThread:
    """An engine and its socket server in an event loop of their own, the daemon's kind."""

    def __init__(self, data_dir: Path, **options: Any) -> None:
        """`options` are those of the server."""
        self.data_dir = data_dir
        self._options = options
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
        self.server = Server(self.engine, self.data_dir, **self._options)
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


class EmbeddedAdapter:
    """The queue manager of one data folder, opened as the kind says."""

    application_name = "a test"

    def __init__(self, kind: str, data_dir: Path) -> None:
        self.kind = kind
        self.data_dir = data_dir
        self.gateway: GatewayThread | None = None
        self.connection: Direct | SocketClient
        self.start()

    def start(self) -> None:
        if self.kind == "client":
            self.gateway = GatewayThread(self.data_dir)
            self.connection = SocketClient(self.data_dir, application_name="a test")
        else:
            self.connection = Direct(self.data_dir, application_name="a test")

    def stop(self) -> None:
        self.connection.close()
        if self.gateway is not None:
            self.gateway.stop()
            self.gateway = None

    def prepare(self) -> None:
        for name in (ORDERS, NEXT):
            self.connection.define(name)

    def mqsc(self, *commands: str) -> None:
        for command in commands:
            answer = self.connection.mqsc(command)
            assert answer.succeeded, answer.lines

    def another(self) -> SocketClient:
        if self.kind == "direct":
            pytest.skip("the store's owner has nobody beside it")
        return SocketClient(self.data_dir, application_name="another test")

    @property
    def engine(self) -> Engine:
        engine = self.gateway.engine if self.gateway is not None else self.connection._engine
        assert engine is not None
        return engine

    def pass_time(self, seconds: float) -> None:
        """Sets the queue manager's clock on."""
        later = self.engine.now_us() + int(seconds * 1_000_000)
        self.engine.now_us = lambda: later

    def restart(self) -> Direct | SocketClient:
        """Stops the queue manager and starts it again."""
        self.stop()
        self.start()
        return self.connection

    reconnect = restart


class StandInAdapter:
    """The adapter for IBM MQ over one package, over the stand-in."""

    def __init__(self, kind: str, queue_manager: StandInQueueManager) -> None:
        load(kind)
        self.kind = kind
        self.queue_manager = queue_manager
        self.application_name = "a test" if kind == "ibmmq" else None
        self._settings = ConnectionSettings(package=kind, application_name="a test")
        self.connection = self.another()

    def prepare(self) -> None:
        for name in (ORDERS, NEXT):
            self.mqsc(f"DEFINE QLOCAL({name})")

    def mqsc(self, *commands: str) -> None:
        self.queue_manager.control.mqsc(*commands)

    def another(self) -> IbmMq:
        return IbmMq(self._settings)

    def reconnect(self) -> IbmMq:
        self.connection.close()
        self.connection = self.another()
        return self.connection

    def stop(self) -> None:
        """Leaves the queue manager as it was, for the next test."""
        self.connection.close()
        self.mqsc("ALTER QMGR MAXUMSGS(10000)")
        for name in (ORDERS, NEXT):
            self.mqsc(f"DELETE QLOCAL({name}) PURGE")


class RealAdapter:
    """The adapter for IBM MQ on a queue manager that somebody has made for tests."""

    kind = "ibm_mq"
    application_name = None

    def __init__(self) -> None:
        said = {name: os.environ.get(_REAL + name.upper(), "") for name in ConnectionSettings.__slots__}
        texts = {name: value for name, value in said.items() if value and name != "connections"}
        self._settings = ConnectionSettings(connections=tuple(said["connections"].split(",")), **texts)
        self.connection = self.another()

    def prepare(self) -> None:
        for name in (ORDERS, NEXT):
            with suppress(QueueManagerError):
                while True:
                    self.connection.get(name)

    def mqsc(self, *commands: str) -> None:
        pytest.skip(f"a real queue manager is not altered: {commands[0]}")

    def another(self) -> IbmMq:
        return IbmMq(self._settings)

    def reconnect(self) -> IbmMq:
        self.connection.close()
        self.connection = self.another()
        return self.connection

    def stop(self) -> None:
        self.connection.close()
