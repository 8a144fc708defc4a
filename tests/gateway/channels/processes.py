"""Processes of these tests: a gateway whose target is another embedded queue manager, and that target.

    central DATA                 a queue manager on its own, with the queues that a target needs
    gateway CONFIG [CENTRAL]     a gateway; with CENTRAL its channel processes are the next line's
    channels CENTRAL             the channel process, connected to the central data folder

Each prints a line when it is up.
"""

import asyncio
import signal
import sys
from pathlib import Path

from gateway import daemon, log
from gateway.channels.process import run as run_channels
from gateway.channels.supervisor import COMMAND
from gateway.config import Settings
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.embedded.socket.server import Server

#: Where the target's broker would take publications, and the gateway's own queues there.
STREAM, STATE = "STOCK", "RFHBRIDGE.STATE"
SUBSCRIBER, REPLY = "RFHBRIDGE.SUBSCRIBER", "RFHBRIDGE.REPLY"
MAXIMUM_SHARDS = 4


async def _central(data: Path) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    engine = Engine.open(data, name="CENTRAL", call_soon=loop.call_soon)
    for name in (STREAM, SUBSCRIBER, REPLY, *(f"{STATE}.{shard}" for shard in range(MAXIMUM_SHARDS))):
        engine.ensure(name, "")
    server = Server(engine, data)
    await server.start()
    print("up", flush=True)
    await stop.wait()
    await server.stop()
    engine.close()


def main(role: str, *arguments: str) -> int:
    if role == "central":
        asyncio.run(_central(Path(arguments[0])))
        return 0
    if role == "gateway":
        config, *central = arguments
        settings = Settings.load(Path(config))
        log.configure(settings.log.level, settings.log.format)
        return daemon.run(
            settings,
            ready=lambda listeners: print(listeners[0].address.port, flush=True),
            channel_command=(sys.executable, __file__, "channels", *central) if central else COMMAND,
        )
    return run_channels(lambda _target: SocketClient(Path(arguments[0])))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
