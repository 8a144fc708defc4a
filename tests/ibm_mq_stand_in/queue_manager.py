"""The stand-in's queue manager: a process that owns an embedded engine with its broker, for the stand-in library.

    python -m tests.ibm_mq_stand_in.queue_manager --data FOLDER --sockets FOLDER --name STANDIN

Programs connect at `mqi` in the sockets' folder, tests control it at `control` there, and look into it as into every
embedded queue manager: `mq_adapters.embedded.socket.client.SocketClient(FOLDER)`.
It writes `ready` to its standard output. It may
be killed, and goes on with the same data folder.
"""

import argparse
import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Final

import uvloop

from mq_adapters.broker.broker import Broker, BrokerRules
from mq_adapters.broker.topic_spaces import BrokerDialect
from mq_adapters.delivery_listener import Unheard
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.socket.server import Server
from mq_adapters.reasons import StoreError
from tests.ibm_mq_stand_in.control_server import ControlServer
from tests.ibm_mq_stand_in.link import Link
from tests.ibm_mq_stand_in.state import State

MQI_SOCKET: Final = "mqi"
CONTROL_SOCKET: Final = "control"
#: How long a start waits for a killed predecessor to let go of the store, in seconds.
_OWNER_WAIT_S: Final = 10.0
_TICK_S: Final = 0.1
_TEND_S: Final = 1.0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The queue manager behind the stand-in for IBM's MQ client library.")
    parser.add_argument("--data", type=Path, required=True, help="the folder of the store")
    parser.add_argument("--sockets", type=Path, required=True, help="the folder of the two sockets; a short path")
    parser.add_argument("--name", default="STANDIN", help="the queue manager's name")
    parser.add_argument("--dialect", choices=[each.value for each in BrokerDialect], default=BrokerDialect.MQ6.value)
    parser.add_argument("--streams", nargs="*", default=[], help="queues that take publications, beside the default")
    return parser.parse_args()


def _stop_at_once(error: StoreError) -> None:
    """A store that failed must not be used on, and a queue manager that fails is killed."""
    print(error, flush=True)
    os._exit(1)


async def _tend(engine: Engine, broker: Broker) -> None:
    loop = asyncio.get_running_loop()
    tended_s = loop.time()
    while True:
        await asyncio.sleep(_TICK_S)
        engine.tick()
        if loop.time() - tended_s >= _TEND_S:
            broker.tend()
            tended_s = loop.time()


async def _run(arguments: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    engine = Engine.open(arguments.data, wait_s=_OWNER_WAIT_S, name=arguments.name, call_soon=loop.call_soon)
    engine.on_failure = _stop_at_once
    rules = BrokerRules(dialect=BrokerDialect(arguments.dialect), input_queues=tuple(arguments.streams))
    broker = Broker(engine, listener=Unheard(), rules=rules)
    broker.attach()
    server = Server(engine, arguments.data)
    await server.start()
    state = State(engine, arguments.data)
    control = ControlServer(state)
    for name in (MQI_SOCKET, CONTROL_SOCKET):
        (arguments.sockets / name).unlink(missing_ok=True)
    controlled = await asyncio.start_unix_server(control.serve, arguments.sockets / CONTROL_SOCKET)
    programs = await loop.create_unix_server(lambda: Link(state), arguments.sockets / MQI_SOCKET)
    tending = loop.create_task(_tend(engine, broker))
    print("ready", flush=True)
    await stop.wait()
    tending.cancel()
    programs.close()
    controlled.close()
    for link in tuple(state.links):
        link.drop(0)
    await server.stop()
    with contextlib.suppress(StoreError):
        engine.close()


if __name__ == "__main__":
    uvloop.run(_run(_arguments()))
