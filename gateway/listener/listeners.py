"""A listening address and its links: opened, looked at once a second, stopped."""

import asyncio
import time
from collections.abc import Container
from typing import Final

from gateway.bridge.bridge import Bridge
from gateway.listener.link import NetworkLink
from gateway.listener.tcp import TcpLink
from gateway.mqtt.levels import BEFORE_MQTT_5
from gateway.mqtt.reason_codes import ReasonCode

#: How long a closed connection may go on sending what was written before it is cut off, seconds.
_LINGER_S: Final = 2.0


class Listener:
    """A listening address and its links."""

    def __init__(
        self,
        bridge: Bridge,
        *,
        levels: Container[int] = BEFORE_MQTT_5,
        maximum_packet_bytes: int,
        maximum_connections: int,
        maximum_unsent_bytes: int,
        connect_timeout_s: float,
    ) -> None:
        self.bridge = bridge
        self.levels = levels
        self.maximum_packet_bytes = maximum_packet_bytes
        self.maximum_unsent_bytes = maximum_unsent_bytes
        self._maximum_connections = maximum_connections
        self._connect_timeout_s = connect_timeout_s
        self._links: set[NetworkLink] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Opens the port; returns its number, which port 0 leaves to the system. OSError where it cannot be had."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: TcpLink(self), host, port, backlog=1024)
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    def admit(self, link: NetworkLink) -> bool:
        if len(self._links) >= self._maximum_connections:
            return False
        self._links.add(link)
        return True

    def forget(self, link: NetworkLink) -> None:
        self._links.discard(link)

    def tick(self) -> None:
        """Once a second: closes connections that are silent past their keep-alive, or that never sent CONNECT.

        A closed one whose peer does not take what was written for it would never end: it is cut off.
        """
        now_s = time.monotonic()
        for link in tuple(self._links):
            if now_s > link.closed_s + _LINGER_S:
                link.abort()
                continue
            deadline_s = link.connection.keep_alive_deadline(link.last_received_s)
            if deadline_s is not None and now_s > deadline_s and not link.is_held_back:
                link.close(
                    "nothing was received for one and a half times the keep-alive time", ReasonCode.KEEP_ALIVE_TIMEOUT
                )
            elif link.session is None and now_s > link.accepted_s + self._connect_timeout_s:
                link.close("login took too long" if link.connection.level else "no CONNECT was received in time")

    async def stop(self) -> None:
        """Closes the port and every connection; what was written still goes out."""
        if self._server is not None:
            self._server.close()
        for link in tuple(self._links):
            link.close("the gateway stops", ReasonCode.SERVER_SHUTTING_DOWN)
        for _ in range(10):
            if not self._links:
                break
            await asyncio.sleep(0.02)
        for link in tuple(self._links):
            link.abort()
