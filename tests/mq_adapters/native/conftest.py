"""A gateway with a listener of MQ clients, its queue ORDERS, and connections to it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.ibm_mq import ConnectionSettings, IbmMq
from tests.mq_adapters.native.gateway import APPLICATION, CHANNEL, NativeGateway

Connect = Callable[..., IbmMq]


@pytest.fixture
def gateway(data_folder: Path) -> Iterator[NativeGateway]:
    made = NativeGateway(data_folder)
    made.call(lambda: made.engine.define("ORDERS"))
    command = f"DEFINE CHANNEL({CHANNEL}) CHLTYPE(SVRCONN) MCAUSER('{APPLICATION}')"
    assert made.call(lambda: CommandServer(made.engine).execute(command)).succeeded
    yield made
    made.stop()


@pytest.fixture
def connect(gateway: NativeGateway) -> Iterator[Connect]:
    """Connects; changes of the settings may be named."""
    open_ones: list[IbmMq] = []

    def connected(**changes: object) -> IbmMq:
        said: dict[str, object] = {
            "package": "native",
            "connections": (f"127.0.0.1({gateway.mq_port})",),
            "channel": CHANNEL,
            **changes,
        }
        open_ones.append(IbmMq(ConnectionSettings(**said)))  # type: ignore[arg-type]  # a test gives what it means
        return open_ones[-1]

    yield connected
    for each in open_ones:
        each.close()
