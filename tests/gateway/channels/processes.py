"""Processes of these tests: a gateway whose target is another embedded queue manager, and that target.

    central DATA                 a queue manager on its own, with the queues that a target needs
    gateway CONFIG [CENTRAL]     a gateway; with CENTRAL its channel processes are the next line's
    channels CENTRAL             the channel process, connected to the central data folder

Each prints a line when it is up. A role loads what it needs itself, so that a channel process is up soon.
"""

import sys
from pathlib import Path

#: Where the target's broker would take publications, and the gateway's own queues there.
STREAM, STATE = "STOCK", "RFHBRIDGE.STATE"
SUBSCRIBER, REPLY = "RFHBRIDGE.SUBSCRIBER", "RFHBRIDGE.REPLY"
MAXIMUM_SHARDS = 4
#: This module's own name, which is another one where it runs.
NAME = "tests.gateway.channels.processes"


def _central(data: Path) -> int:
    import asyncio
    import signal

    from mq_adapters.embedded.engine import Engine
    from mq_adapters.embedded.socket.server import Server

    async def serve() -> None:
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

    asyncio.run(serve())
    return 0


def _gateway(config: Path, *central: str) -> int:
    from gateway import daemon, log
    from gateway.channels.supervisor import COMMAND
    from gateway.config import Settings

    settings = Settings.load(config)
    log.configure(settings.log.level, settings.log.format)
    return daemon.run(
        settings,
        ready=lambda listeners: print(listeners[0].address.port, flush=True),
        channel_command=(*COMMAND[:-1], NAME, "channels", *central) if central else COMMAND,
    )


def _channels(central: Path) -> int:
    from gateway.channels.process import run
    from mq_adapters.embedded.socket.client import SocketClient

    return run(lambda _target: SocketClient(central))


_ROLES = {"central": _central, "gateway": _gateway, "channels": _channels}


def main(role: str, path: str, *central: str) -> int:
    return _ROLES[role](Path(path), *central)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
