"""TCP: bytes to and from a session; step 1 on the way of a PUBLISH.

An asyncio.Protocol and no streams: the bytes of one read go to the bridge in one call, and what it answers goes out in
one write. A peer that reads too slowly is sent nothing more until it has caught up; one that sends faster than the disk
commits is not read.
"""

import asyncio
import logging
import math
import socket
import time
from collections.abc import Container
from typing import Final, cast

from gateway.bridge.bridge import Bridge
from gateway.bridge.sessions import ClientSession
from gateway.mqtt.connection import Connection
from gateway.mqtt.levels import BEFORE_MQTT_5
from gateway.mqtt.reason_codes import ReasonCode

_log = logging.getLogger(__name__)

#: One read of the socket, in bytes: larger reads cost page faults (measured: 256 KiB is 1.4 times slower).
READ_BYTES: Final = 65_536
#: How long a closed connection may go on sending what was written before it is cut off, seconds.
_LINGER_S: Final = 2.0


class TcpLink(asyncio.Protocol):
    """One MQTT connection: the network side of a session (bridge.turn.MqttLink)."""

    __slots__ = (
        "_is_held",
        "_is_held_back",
        "_listener",
        "_paused_writing",
        "_transport",
        "accepted_s",
        "closed_s",
        "connection",
        "is_open",
        "last_received_s",
        "outstanding",
        "session",
    )

    def __init__(self, listener: "Listener") -> None:
        self._listener = listener
        self._transport: asyncio.Transport | None = None
        self._paused_writing = False
        #: The bridge has paused reading, until commits under way are done; or until there is room at a target.
        self._is_held = False
        self._is_held_back = False
        # No aliases: the audit's notes need each PUBLISH with its topic.
        self.connection = Connection(
            levels=listener.levels, maximum_packet_bytes=listener.maximum_packet_bytes, outgoing_alias_maximum=0
        )
        self.session: ClientSession | None = None
        self.outstanding = 0
        self.is_open = False
        self.accepted_s = self.last_received_s = time.monotonic()
        self.closed_s = math.inf

    # -- asyncio.Protocol ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's transports are no subclasses of it
        self.is_open = True
        if not self._listener.admit(self):
            self.close("there are too many connections")
            return
        transport.set_write_buffer_limits(high=self._listener.maximum_unsent_bytes)
        connected = transport.get_extra_info("socket")
        if connected is not None:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self.last_received_s = time.monotonic()
        self._listener.bridge.receive(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self._transport = None
        self._listener.forget(self)
        self._listener.bridge.lost(self)

    def pause_writing(self) -> None:
        self._paused_writing = True
        if self._transport is not None:
            self._transport.pause_reading()  # who does not take answers may ask nothing more

    def resume_writing(self) -> None:
        self._paused_writing = False
        self._read_if_possible()
        self._listener.bridge.resumed(self)

    # -- Link ----------------------------------------------------------------------------------------------------------

    @property
    def can_send(self) -> bool:
        return self.is_open and not self._paused_writing

    def send(self, data: bytes) -> None:
        if self._transport is not None and self.is_open:
            self._transport.write(data)

    def close(self, reason: str, reason_code: ReasonCode = ReasonCode.UNSPECIFIED_ERROR) -> None:
        """Closes the connection after what was sent; a reason is logged, none means that the client asked for it.

        The client is told the reason code where its level has a packet for it.
        """
        if self._transport is None or not self.is_open:
            return
        if farewell := self.connection.closing_packet(reason_code):
            self._transport.write(farewell)
        self.is_open = False
        self.closed_s = time.monotonic()
        client = self.session.client if self.session is not None else ""
        if reason:
            _log.warning("connection closed client=%s peer=%s reason=%s", client, self.peer, reason)
        self._transport.close()

    def pause_reading(self) -> None:
        self._is_held = True
        self._read_no_more()

    def resume_reading(self) -> None:
        self._is_held = False
        self._read_if_possible()

    def hold_back(self) -> None:
        self._is_held_back = True
        self._read_no_more()

    def let_go(self) -> None:
        self._is_held_back = False
        self.last_received_s = time.monotonic()
        self._read_if_possible()

    @property
    def is_held_back(self) -> bool:
        """Whether nothing is received because the gateway does not read."""
        return self._is_held_back

    def _read_no_more(self) -> None:
        if self._transport is not None and self.is_open:
            self._transport.pause_reading()

    def _read_if_possible(self) -> None:
        may_read = not (self._is_held or self._is_held_back or self._paused_writing)
        if may_read and self._transport is not None and self.is_open:
            self._transport.resume_reading()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    @property
    def peer(self) -> str:
        address = self._transport.get_extra_info("peername") if self._transport is not None else None
        return f"{address[0]}:{address[1]}" if address else "unknown"


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
        self._links: set[TcpLink] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Opens the port; returns its number, which port 0 leaves to the system. OSError where it cannot be had."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: TcpLink(self), host, port, backlog=1024)
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    def admit(self, link: TcpLink) -> bool:
        if len(self._links) >= self._maximum_connections:
            return False
        self._links.add(link)
        return True

    def forget(self, link: TcpLink) -> None:
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
