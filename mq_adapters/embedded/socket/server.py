"""The gateway's socket: MQ applications and the `queue` commands use the embedded queue manager through it.

Runs in the daemon's event loop, on its engine; each application has a Connection (connection.py).
"""

import asyncio
import socket
from pathlib import Path
from typing import Final

from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.rights import Rights
from mq_adapters.embedded.socket.connection import SocketConnection
from mq_adapters.embedded.socket.socket_file import listening_socket, remove_socket_file
from mq_adapters.embedded.store.files import FilesGone
from mq_adapters.reasons import StoreError

#: How long `stop` waits for commits under way, in seconds.
STOP_WAIT_S: Final = 5.0


class Server:
    """Listens on `<data>/queue_manager.socket` for applications of the engine that owns that folder."""

    def __init__(self, engine: Engine, data_dir: Path) -> None:
        self.engine = engine
        self.connections: set[SocketConnection] = set()
        self._data_dir = data_dir
        self._listener: asyncio.Server | None = None

    async def start(self) -> None:
        """Begins to listen. A socket file that a killed gateway left is replaced: the store's lock says whose it is."""
        listening = listening_socket(self._data_dir)
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_unix_server(
            lambda: SocketConnection(self.engine, self.connections), sock=listening
        )

    async def adopt(self, connected: socket.socket, rights: Rights) -> None:
        """Takes one end of a socket pair, whose other end a process inherits that has these rights by that alone."""
        loop = asyncio.get_running_loop()
        connected.setblocking(False)
        await loop.connect_accepted_socket(
            lambda: SocketConnection(self.engine, self.connections, rights=rights), connected
        )

    async def stop(self) -> None:
        """Stops listening, answers what is being committed, backs out what is open, and closes every connection."""
        if self._listener is None:
            return
        if not isinstance(self.engine.failed, FilesGone):  # else what has that name is somebody else's
            remove_socket_file(self._data_dir)
        self._listener.close()
        self._listener = None
        for connection in tuple(self.connections):
            connection.stop_waiting()
        await self._wait_for_commits()
        for connection in tuple(self.connections):
            connection.close()

    async def _wait_for_commits(self) -> None:
        committed = asyncio.Event()
        try:
            self.engine.submit(self.engine.begin(), lambda _unit: committed.set())
            await asyncio.wait_for(committed.wait(), STOP_WAIT_S)
        except (StoreError, TimeoutError):
            return
