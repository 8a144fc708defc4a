"""The handshake in front of MQTT: the PROXY header of a load balancer, then TLS.

asyncio's own server opens a port that has neither. This module accepts connections one by one. It reads the PROXY
header from the socket to its last byte and no further, so that TLS or MQTT begins behind it. A failed handshake is one
line in the log. A handshake that takes too long is closed. When too many handshakes are under way, the oldest is
closed. A connection past the connection rate is closed before its TLS handshake, which would take a millisecond of a
core.
"""

import asyncio
import contextlib
import errno
import ipaddress
import logging
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from gateway.config.limits import Limit
from gateway.config.values import Address
from gateway.limits.connection_log import ConnectionLog
from gateway.listener.proxy_protocol import (
    FIXED_BYTES,
    ProxyProtocolError,
    check_beginning,
    read_fixed_part,
    read_source,
)
from gateway.listener.rules import Network
from gateway.listener.tls_transport import TlsTransport

_log = logging.getLogger(__name__)

BACKLOG: Final = 1_024
#: Connections that are accepted in one go.
_ACCEPTED_AT_ONCE: Final = 64
#: Seconds without accepting connections after the system has run out of files or memory.
_REST_S: Final = 1.0
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

#: What some of OpenSSL's errors mean here: the client speaks another protocol, or names a host that is not ASCII.
_MEANINGS: Final = {
    "wrong version number": ": the client sent no TLS, as to a port without it",
    "http request": ": the client sent no TLS",
    "callback failed": ": the host that the client asked for is not ASCII",
}


class HandshakeRules(Protocol):
    """The rules of a listener as far as they concern handshakes."""

    @property
    def name(self) -> str: ...
    @property
    def proxy_protocol(self) -> bool: ...
    @property
    def proxy_addresses(self) -> tuple[Network, ...]: ...
    @property
    def maximum_waiting_connections(self) -> int: ...
    @property
    def connect_timeout_s(self) -> float: ...


#: Makes the protocol of a connection after its handshake, with the address in its PROXY header, if any.
Factory = Callable[[Address | None], asyncio.Protocol]


class HandshakePort:
    """An open port whose connections begin with a PROXY header, TLS, or both."""

    def __init__(
        self,
        factory: Factory,
        *,
        rules: HandshakeRules,
        context: Callable[[], ssl.SSLContext] | None,
        alpn: str = "",
        may_begin: Callable[[str], bool],
        refused: Callable[[Limit], None],
        connection_log: ConnectionLog,
    ) -> None:
        """`context` makes the context of each handshake, because certificates change. None: no TLS.

        `alpn`: the protocol that a client of TLS must offer, if it offers any.
        `may_begin`: whether a client of this address may begin a handshake now. `refused` counts refusals.
        """
        self._factory = factory
        self._rules = rules
        self._context = context
        self._alpn = alpn
        self._may_begin = may_begin
        self._refused = refused
        self._connection_log = connection_log
        self._sockets: list[socket.socket] = []
        #: Handshakes, the oldest first.
        self._under_way: dict[asyncio.Task[None], None] = {}

    async def open(self, host: str, port: int) -> int:
        """Opens the port on every address of the host; returns its number. Raises OSError."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                listening = socket.create_server(address[:2], family=family, backlog=BACKLOG)
                listening.setblocking(False)
                self._sockets.append(listening)
        except OSError:
            self.close()
            raise
        for listening in self._sockets:
            loop.add_reader(listening, self._accept, listening)
        chosen: int = self._sockets[0].getsockname()[1]
        return chosen

    def close(self) -> None:
        """Closes the port, and every connection whose handshake is under way."""
        loop = asyncio.get_running_loop()
        for listening in self._sockets:
            loop.remove_reader(listening)
            listening.close()
        self._sockets.clear()
        for task in self._under_way:
            task.cancel()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                connected, address = listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._rest(listening, error)
                    return
                continue  # this connection has gone already
            connected.setblocking(False)
            if len(self._under_way) >= self._rules.maximum_waiting_connections:
                self._drop_oldest()
            task = asyncio.get_running_loop().create_task(self._enter(connected, _address(address)))
            self._under_way[task] = None
            task.add_done_callback(partial(self._ended, connected))

    def _drop_oldest(self) -> None:
        oldest = next(iter(self._under_way))
        del self._under_way[oldest]
        oldest.cancel()
        self._refused(Limit.WAITING_CONNECTIONS)

    def _ended(self, connected: socket.socket, task: asyncio.Task[None]) -> None:
        """A handshake has ended. If it was cancelled before it began, its socket is still open."""
        self._under_way.pop(task, None)
        if task.cancelled():
            self._refuse(connected)

    def _rest(self, listening: socket.socket, error: OSError) -> None:
        _log.error("connections not accepted listener=%s reason=%s", self._rules.name, error.strerror)
        loop = asyncio.get_running_loop()
        loop.remove_reader(listening)
        loop.call_later(_REST_S, self._go_on, listening)

    def _go_on(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    async def _enter(self, connected: socket.socket, peer: Address) -> None:
        """Carries out a handshake. It gives the connection its link or closes it; `_ended` closes a cancelled one."""
        step = "PROXY header" if self._rules.proxy_protocol else "TLS handshake"
        proxied = None
        try:
            async with asyncio.timeout(self._rules.connect_timeout_s):
                if self._rules.proxy_protocol:
                    proxied = await self._read_proxy_header(connected, peer)
                    step = "TLS handshake"
                if self._context is not None and not self._may_begin((proxied or peer).host):
                    self._refuse(connected)
                    return
                await self._hand_over(connected, proxied)
        except (OSError, ProxyProtocolError) as error:
            self._refuse(connected)
            if isinstance(error, TimeoutError):
                self._refused(Limit.CONNECT_TIMEOUT)
            client = proxied or peer
            self._connection_log.refused(
                client.host,
                "connection refused listener=%s peer=%s in=%s reason=%s",
                self._rules.name,
                client,
                step,
                _reason(error),
                level=logging.INFO if isinstance(error, ConnectionError) else logging.WARNING,
            )

    async def _read_proxy_header(self, connected: socket.socket, peer: Address) -> Address | None:
        found = ipaddress.ip_address(peer.host.partition("%")[0])
        if self._rules.proxy_addresses and not any(found in network for network in self._rules.proxy_addresses):
            raise ProxyProtocolError("its address is not among proxy_addresses")
        fixed = read_fixed_part(await _receive(connected, FIXED_BYTES, check_beginning))
        return read_source(fixed, await _receive(connected, fixed.rest_bytes))

    async def _hand_over(self, connected: socket.socket, proxied: Address | None) -> None:
        """Gives the connection its link. Only `_refuse` stops it: uvloop would forget a link made in the same turn."""
        handing_over = asyncio.ensure_future(self._open_link(connected, proxied))
        handing_over.add_done_callback(_hear_of_the_end)
        await asyncio.shield(handing_over)

    async def _open_link(self, connected: socket.socket, proxied: Address | None) -> None:
        loop, link = asyncio.get_running_loop(), self._factory(proxied)
        if self._context is None:
            await loop.connect_accepted_socket(lambda: link, connected)
            return
        opening = loop.connect_accepted_socket(partial(TlsTransport, self._context(), link, self._alpn), connected)
        await (await opening)[1].handshake  # in no variable: its error would keep it until Python looks for cycles

    @staticmethod
    def _refuse(connected: socket.socket) -> None:
        """Ends a connection, even while a task reads from it."""
        with contextlib.suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)
        connected.close()


def _hear_of_the_end(handing_over: "asyncio.Task[None]") -> None:
    """Fetches an error for which nobody waits any more. Otherwise asyncio would log its traceback."""
    if not handing_over.cancelled():
        handing_over.exception()


async def _receive(connected: socket.socket, count: int, check: Callable[[bytes], None] = lambda _data: None) -> bytes:
    """Reads exactly `count` bytes; `check` sees each beginning. Raises ConnectionError if fewer come."""
    loop = asyncio.get_running_loop()
    data = b""
    while len(data) < count:
        more = await loop.sock_recv(connected, count - len(data))
        if not more:
            raise ConnectionResetError("the client closed it in the middle of its header")
        data += more
        check(data)
    return data


def _address(address: tuple[str, int]) -> Address:
    return Address(host=address[0], port=address[1])


def _reason(error: Exception) -> str:
    """The reason of a failure, in a few words."""
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or str(error)).lower().replace("_", " ")
        return reason + _MEANINGS.get(reason, "")
    return str(error) or "the client closed it"
