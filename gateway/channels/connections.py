"""The connections of a channel process: to the store, and to the queue manager that the target's settings name."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gateway.channels.protocol import ProcessSettings
from gateway.channels.reports import FoundQueueManager, Reports
from gateway.config import TargetSettings
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.queue_manager import QueueManager
from mq_adapters.reasons import QueueManagerError, ReasonCode

#: PutApplName of what a channel puts here.
_APPLICATION_NAME: Final = "rfhbridge channel"
#: The most bytes that are read from a password file.
_LONGEST_PASSWORD_BYTES: Final = 1024

ConnectRemote = Callable[[TargetSettings], QueueManager]

_log = logging.getLogger(__name__)


def connect_ibm_mq(target: TargetSettings) -> QueueManager:
    """A connection to the target's queue manager. Raises QueueManagerError with the reason if it fails."""
    from mq_adapters.ibm_mq import ConnectionSettings, IbmMq  # raises an error if IBM's libraries are missing

    return IbmMq(
        ConnectionSettings(
            queue_manager=target.queue_manager,
            mode=target.mode,
            package=target.binding,
            connections=target.connections,
            channel=target.channel,
            ccdt_url=target.ccdt_url,
            user=target.user,
            password=password_of(target),
            cipher=target.cipher,
            key_repository=target.key_repository,
            peer_name=target.peer_name,
            application_name=_APPLICATION_NAME,
            context="identity" if target.set_identity else "default",
        )
    )


def password_of(target: TargetSettings) -> str:
    """The password. It is read for each connection, because it may change while the gateway runs.

    2035 if there is none.
    """
    if target.password_environment:
        password = os.environ.get(target.password_environment)
        if password is None:
            raise _no_password(target, f"environment variable {target.password_environment} is not set")
        return password
    if not target.password_file:
        return ""
    try:
        with Path(target.password_file).open("rb") as file:
            return file.readline(_LONGEST_PASSWORD_BYTES).decode().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise _no_password(target, f"{target.password_file}: {reason}") from error


class Connections:
    """Makes the connections of every channel of one target."""

    def __init__(self, settings: ProcessSettings, reports: Reports, connect: ConnectRemote) -> None:
        self._settings = settings
        self._reports = reports
        self._connect = connect

    def local(self) -> SocketClient:
        """A connection to the store of the gateway that this process belongs to."""
        return SocketClient(Path(self._settings.data), application_name=_APPLICATION_NAME)

    def remote(self, channel: str) -> QueueManager:
        """A connection to the queue manager; never to another one than the target's other channels have.

        A list of connection names may lead to several queue managers. Then 2059, as if that one were not available.
        """
        queue_manager = self._connect(self._settings.target)
        try:
            found = FoundQueueManager(
                name=queue_manager.name,
                identifier=queue_manager.identifier,
                maximum_message_bytes=self._limits(queue_manager),
            )
            if self._reports.found(channel, found):
                return queue_manager
        except BaseException:
            queue_manager.close()
            raise
        queue_manager.close()
        raise QueueManagerError(
            ReasonCode.MQRC_Q_MGR_NOT_AVAILABLE,
            f"connect channel {channel}: {found.identifier} is another queue manager than the other channels have",
            "wait until all connection names lead to one, or stop and start the channels that are still at the other",
        )

    def _limits(self, queue_manager: QueueManager) -> dict[str, int]:
        """The longest message of each queue for publications, except queues that may not be inquired."""
        limits: dict[str, int] = {}
        for name in self._settings.publication_queues:
            try:
                limits[name] = queue_manager.maximum_message_bytes(name)
            except QueueManagerError as error:
                if error.reason_code == ReasonCode.MQRC_CONNECTION_BROKEN:
                    raise
                _log.debug("length limit not known queue=%s reason=%s", name, str(error))
        return limits


def _no_password(target: TargetSettings, reason: str) -> QueueManagerError:
    return QueueManagerError(
        ReasonCode.MQRC_NOT_AUTHORIZED, f"read the password of target {target.name}: {reason}", "correct [[target]]"
    )
