"""What the contract suite runs on: every implementation of the port, each on a queue manager that it can be given.

| kind | what it is |
|---|---|
| direct | the embedded queue manager, by the owner of its store |
| client | the embedded queue manager, through a gateway's socket |
| pymqi, ibmmq | the adapter for IBM MQ over each package, over the stand-in for IBM's client library |
| native | the adapter for IBM MQ over the native client, on a gateway's listener of MQ clients |
| ibm_mq | the same on a real queue manager, which the environment names (tests/README.md says how) |
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import pytest

from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.ibm_mq import ConnectionSettings, IbmMq
from mq_adapters.queue_manager import QueueManager
from mq_adapters.reasons import QueueManagerError
from tests.ibm_mq_stand_in.process import StandInQueueManager, load, needs_stand_in
from tests.mq_adapters.gateway_thread import GatewayThread
from tests.mq_adapters.native.gateway import APPLICATION, CHANNEL, NativeGateway

#: Two local queues that the contract suite empties and fills.
ORDERS: Final = "RFHBRIDGE.TEST.ORDERS"
NEXT: Final = "RFHBRIDGE.TEST.NEXT"

EMBEDDED: Final = ("direct", "client")
_REAL: Final = "RFHBRIDGE_TEST_MQ_"
EVERY_KIND: Final = (
    *EMBEDDED,
    pytest.param("pymqi", marks=needs_stand_in),
    pytest.param("ibmmq", marks=needs_stand_in),
    "native",
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


class NativeAdapter:
    """The adapter for IBM MQ over the native client, which connects to a gateway."""

    kind = "native"
    application_name = "a test"

    def __init__(self, data_dir: Path) -> None:
        self.gateway = NativeGateway(data_dir)
        self._commands = self.gateway.call(lambda: CommandServer(self.gateway.engine))
        self.mqsc(f"DEFINE CHANNEL({CHANNEL}) CHLTYPE(SVRCONN) MCAUSER('{APPLICATION}') MAXMSGL(104857600)")
        self._settings = ConnectionSettings(
            package="native",
            connections=(f"127.0.0.1({self.gateway.mq_port})",),
            channel=CHANNEL,
            application_name="a test",
        )
        self.connection = self.another()

    def prepare(self) -> None:
        for name in (ORDERS, NEXT):
            self.mqsc(f"DEFINE QLOCAL({name})")

    def mqsc(self, *commands: str) -> None:
        for command in commands:
            answer = self.gateway.call(lambda command=command: self._commands.execute(command))
            assert answer.succeeded, answer.lines

    def another(self) -> IbmMq:
        return IbmMq(self._settings)

    def reconnect(self) -> IbmMq:
        self.connection.close()
        self.connection = self.another()
        return self.connection

    def stop(self) -> None:
        self.connection.close()
        self.gateway.stop()


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
