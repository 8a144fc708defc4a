"""A gateway's queue manager with a listener of MQ clients, in a thread of the test's process."""

from collections import Counter
from typing import Any, Final

from gateway.access.login import Login
from gateway.access.refused_programs import RefusedPrograms
from gateway.config.listeners import TlsSettings
from gateway.config.mq_listeners import MqListenerSettings
from gateway.limits.connection_log import ConnectionLog
from gateway.listener.listeners import OpenListener
from gateway.listener.mq.identity import ProgramLogin
from gateway.listener.mq.link import MqLink
from gateway.listener.mq.listener import MqHouse, MqListeners
from gateway.listener.mq.server_connections import ServerConnections
from gateway.listener.mq.turns import Turns
from mq_adapters.embedded.rights import ContextRight, Rights
from mq_adapters.embedded.socket.applications import ApplicationRole, Applications
from mq_adapters.embedded.socket.pace import free_of_charge
from mq_adapters.system_queues import DEFAULT_STREAM
from tests.mq_adapters.gateway_thread import GatewayThread

CHANNEL: Final = "TEST.SVRCONN"
APPLICATION: Final = "tester"
_ALL: Final = ("*", "SYSTEM.*", "RFHBRIDGE.*")
_RIGHTS: Final = Rights(put=_ALL, get=_ALL, browse=_ALL, context=ContextRight.ALL)


class NativeGateway(GatewayThread):
    """`mq_port` is the listener's; its channel CHANNEL lets everybody in as one application with every right."""

    def __init__(self, *arguments: Any, tls: TlsSettings | None = None, **options: Any) -> None:
        self.mq_port = 0
        self._tls = tls or TlsSettings()
        self._listeners: MqListeners
        super().__init__(*arguments, **options)

    async def _opened(self) -> None:
        house = MqHouse(
            engine=self.engine,
            login=ProgramLogin(Applications((ApplicationRole(name=APPLICATION, rights=_RIGHTS),)), Login()),
            channels=ServerConnections(self.engine),
            connection_log=ConnectionLog(),
            passed_rate=lambda _: "",
            charge=free_of_charge,
            wait_s=lambda _: 0.0,
            turns=Turns(),
            refusals=Counter(),
            refused=RefusedPrograms(),
            stream=DEFAULT_STREAM,
        )
        self._listeners = MqListeners([MqListenerSettings(listen="127.0.0.1:0", tls=self._tls)], house)
        (opened,) = await self._listeners.start()
        assert isinstance(opened, OpenListener)
        self.mq_port = opened.address.port

    async def _closing(self) -> None:
        await self._listeners.stop()

    @property
    def connections(self) -> list[MqLink]:
        """The connections that are open on the port."""
        return [link for listener in self._listeners._listeners for link in listener.links]
