"""The gateway's socket: MQ applications and the `queue` commands use the embedded queue manager through it.

Runs in the daemon's event loop, on its engine; each application has a Connection (connection.py). The socket in the
data folder is for the gateway's own user. A second one, in a folder that others reach, is for applications that run as
other users. What each may do stands in applications.py.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.rights import Rights
from mq_adapters.embedded.socket.applications import AdmittedApplication, Applications
from mq_adapters.embedded.socket.connection import SocketConnection
from mq_adapters.embedded.socket.pace import ApplicationAccount, Charge, free_of_charge
from mq_adapters.embedded.socket.peer import own_name, own_user, peer_uid
from mq_adapters.embedded.socket.socket_file import (
    EVERYBODY,
    OWNER_ALONE,
    connected_socket,
    listening_socket,
    remove_socket_file,
)
from mq_adapters.embedded.store.files import FilesGone
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError

#: How long `stop` waits for commits under way, in seconds.
STOP_WAIT_S: Final = 5.0
#: Connections that another user may have.
MAXIMUM_CONNECTIONS_PER_USER: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationSocket:
    """A second socket, in a folder that other users reach, and how many connections each of them may have there."""

    folder: Path
    maximum_connections_per_user: int = MAXIMUM_CONNECTIONS_PER_USER


class Server:
    """Listens on `<data>/queue_manager.socket` for applications of the engine that owns that folder."""

    def __init__(
        self,
        engine: Engine,
        data_dir: Path,
        *,
        applications: Applications | None = None,
        second: ApplicationSocket | None = None,
        charge: Charge = free_of_charge,
    ) -> None:
        self.engine = engine
        self.connections: set[SocketConnection] = set()
        #: Applications that were refused at HELLO, by the reason code.
        self.refusals: Counter[ReasonCode] = Counter()
        self._data_dir = data_dir
        self.applications = applications or Applications()
        self._second = second
        self.charge = charge
        #: Told of the same as `token_changed`: who serves applications elsewhere.
        self.on_token_changed: Callable[[frozenset[str]], None] = lambda _roles: None
        self._listeners: list[asyncio.Server] = []

    async def start(self) -> None:
        """Begins to listen. It replaces the socket file of a killed gateway, because this process has the store's lock.

        Raises StoreError if a socket cannot be made, or if another gateway listens in the second socket's folder.
        """
        if self._second is not None:
            _check_free(self._second.folder)
            await self._listen(self._second.folder, EVERYBODY)
        await self._listen(self._data_dir, OWNER_ALONE)

    async def _listen(self, folder: Path, mode: int) -> None:
        loop = asyncio.get_running_loop()
        listening = listening_socket(folder, mode)
        self._listeners.append(await loop.create_unix_server(self._connection, sock=listening))

    def _connection(self) -> SocketConnection:
        return SocketConnection(self.engine, self.connections, admit=self._admitted, charge=self.charge)

    def _admitted(self, connected: socket.socket, token: str) -> AdmittedApplication:
        """The rights of an application.

        QueueManagerError 2035 for a stranger, 2025 if its user has too many connections.
        """
        user_id = peer_uid(connected)
        try:
            if self._second is not None and not self.applications.is_owner(user_id):
                self._check_number(user_id, self._second.maximum_connections_per_user)
            return self.applications.admitted(user_id, token)
        except QueueManagerError as error:
            self.refusals[ReasonCode(error.reason_code)] += 1
            raise

    def _check_number(self, user_id: int, most: int) -> None:
        """Connections without HELLO count too; they are closed soon."""
        if sum(connection.user_id == user_id for connection in self.connections) > most:
            operation = f"connect to the gateway more than {most} times"
            raise QueueManagerError(ReasonCode.MQRC_MAX_CONNS_LIMIT_REACHED, operation)

    def token_changed(self, roles: frozenset[str]) -> None:
        """Closes the connections of these roles, because their tokens have changed or gone."""
        for connection in tuple(self.connections):
            if connection.token_role in roles:
                connection.close()
        self.on_token_changed(roles)

    async def adopt(self, connected: socket.socket, rights: Rights) -> None:
        """Takes one end of a socket pair. A process inherits the other end, and that alone gives it these rights."""
        loop = asyncio.get_running_loop()
        connected.setblocking(False)
        account = ApplicationAccount(own_name())
        admitted = AdmittedApplication(user=own_user(), operator=own_name(), rights=rights, account=account)
        await loop.connect_accepted_socket(
            lambda: SocketConnection(self.engine, self.connections, admit=lambda _socket, _token: admitted), connected
        )

    async def stop(self) -> None:
        """Stops listening, answers what is being committed, backs out what is open, and closes every connection."""
        if not self._listeners:
            return
        if not isinstance(self.engine.failed, FilesGone):  # else the file of that name is somebody else's
            remove_socket_file(self._data_dir)
        if self._second is not None:
            remove_socket_file(self._second.folder)
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
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


def _check_free(folder: Path) -> None:
    """Raises StoreError if another gateway listens in this folder, which no store's lock guards."""
    try:
        connected_socket(folder).close()
    except QueueManagerError:
        return
    hint = "give each gateway a queue_manager.socket_folder of its own"
    raise StoreError(f"make a socket in {folder}", "another gateway listens there", hint)
