"""What stands in front of MQTT: the PROXY header of a load balancer, and the TLS handshake.

A port with neither is opened by asyncio's own server. Here connections are accepted one by one: the header is read from
the socket to its last byte and no further, so that what follows it, TLS or MQTT, begins where it must; and a handshake
that fails is one line in the log. A connection that is not through in time is closed, and where too many are on their
way the oldest is. One past the connection rate is closed before its handshake, which would cost a core a millisecond.
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
from typing import Final

from gateway.config.limits import Limit
from gateway.config.values import Address
from gateway.limits.strangers import Strangers
from gateway.listener.proxy_protocol import (
    FIXED_BYTES,
    ProxyProtocolError,
    check_beginning,
    read_fixed_part,
    read_source,
)
from gateway.listener.rules import ListenerRules
from gateway.listener.tls_transport import TlsTransport

_log = logging.getLogger(__name__)

BACKLOG: Final = 1_024
#: Accepted in one go before the others get their turn.
_ACCEPTED_AT_ONCE: Final = 64
#: How long nothing is accepted when the system has no more files or memory, seconds.
_REST_S: Final = 1.0
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

#: What OpenSSL says of connections that speak something else, or ask for what cannot be read, and what that is.
_MEANINGS: Final = {
    "wrong version number": ": no TLS came, as from a client of a plain port",
    "http request": ": no TLS",
    "callback failed": ": the host that it asked for is not ASCII",
}

#: Makes the protocol of a connection that is through; the address is what the PROXY header says, None: nothing.
Factory = Callable[[Address | None], asyncio.Protocol]


class Doorway:
    """An open port whose connections show a header or TLS first."""

    def __init__(
        self,
        factory: Factory,
        *,
        rules: ListenerRules,
        context: Callable[[], ssl.SSLContext] | None,
        knock: Callable[[str], bool],
        refused: Callable[[Limit], None],
        strangers: Strangers,
    ) -> None:
        """`context` None: no TLS; it is asked at every handshake, for certificates change. `refused` counts.

        `knock` says whether a client of this address may begin a handshake now; `strangers` tells who came no further.
        """
        self._factory = factory
        self._rules = rules
        self._context = context
        self._knock = knock
        self._refused = refused
        self._strangers = strangers
        self._sockets: list[socket.socket] = []
        #: Oldest first.
        self._on_their_way: dict[asyncio.Task[None], None] = {}

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
        """Closes the port, and every connection that is not through."""
        loop = asyncio.get_running_loop()
        for listening in self._sockets:
            loop.remove_reader(listening)
            listening.close()
        self._sockets.clear()
        for task in self._on_their_way:
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
            if len(self._on_their_way) >= self._rules.maximum_waiting_connections:
                self._drop_oldest()
            task = asyncio.get_running_loop().create_task(self._enter(connected, _address(address)))
            self._on_their_way[task] = None
            task.add_done_callback(partial(self._through, connected))

    def _drop_oldest(self) -> None:
        oldest = next(iter(self._on_their_way))
        del self._on_their_way[oldest]
        oldest.cancel()
        self._refused(Limit.WAITING_CONNECTIONS)

    def _through(self, connected: socket.socket, task: asyncio.Task[None]) -> None:
        """One that is told to end may not have begun yet."""
        self._on_their_way.pop(task, None)
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
        """A connection on its way to its link; it ends there, or is closed (where it is cancelled by `_through`)."""
        step = "PROXY header" if self._rules.proxy_protocol else "TLS handshake"
        proxied = None
        try:
            async with asyncio.timeout(self._rules.connect_timeout_s):
                if self._rules.proxy_protocol:
                    proxied = await self._read_proxy_header(connected, peer)
                    step = "TLS handshake"
                if self._context is not None and not self._knock((proxied or peer).host):
                    self._refuse(connected)
                    return
                await self._hand_over(connected, proxied)
        except (OSError, ProxyProtocolError) as error:
            self._refuse(connected)
            if isinstance(error, TimeoutError):
                self._refused(Limit.CONNECT_TIMEOUT)
            client = proxied or peer
            self._strangers.tell_more(
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
            raise ProxyProtocolError("it is none of proxy_addresses")
        fixed = read_fixed_part(await _receive(connected, FIXED_BYTES, check_beginning))
        return read_source(fixed, await _receive(connected, fixed.rest_bytes))

    async def _hand_over(self, connected: socket.socket, proxied: Address | None) -> None:
        """What has begun ends by `_refuse` alone: uvloop would forget a link that it has made in the same turn."""
        handing_over = asyncio.ensure_future(self._open_link(connected, proxied))
        handing_over.add_done_callback(_hear_of_the_end)
        await asyncio.shield(handing_over)

    async def _open_link(self, connected: socket.socket, proxied: Address | None) -> None:
        loop, link = asyncio.get_running_loop(), self._factory(proxied)
        if self._context is None:
            await loop.connect_accepted_socket(lambda: link, connected)
            return
        opening = loop.connect_accepted_socket(partial(TlsTransport, self._context(), link), connected)
        await (await opening)[1].handshake  # in no variable: its error would keep it until Python looks for cycles

    @staticmethod
    def _refuse(connected: socket.socket) -> None:
        """Ends a connection, whoever reads from it now."""
        with contextlib.suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)
        connected.close()


def _hear_of_the_end(handing_over: "asyncio.Task[None]") -> None:
    """An error that came when nobody waited any more: asyncio would write a traceback of it."""
    if not handing_over.cancelled():
        handing_over.exception()


async def _receive(connected: socket.socket, count: int, check: Callable[[bytes], None] = lambda _data: None) -> bytes:
    """So many bytes and not one more; `check` sees what has come so far. ConnectionError where fewer come."""
    loop = asyncio.get_running_loop()
    data = b""
    while len(data) < count:
        more = await loop.sock_recv(connected, count - len(data))
        if not more:
            raise ConnectionResetError("it was closed before its header was complete")
        data += more
        check(data)
    return data


def _address(address: tuple[str, int]) -> Address:
    return Address(host=address[0], port=address[1])


def _reason(error: Exception) -> str:
    """What went wrong, in a few words."""
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or str(error)).lower().replace("_", " ")
        return reason + _MEANINGS.get(reason, "")
    return str(error) or "it was closed"
