"""A listening address and its links: opens them, checks them once a second, and closes them."""

import asyncio
import time
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final, Protocol

from gateway.bridge.bridge import Bridge
from gateway.config.limits import Limit
from gateway.config.values import Address
from gateway.listener.client_certificates import Authorities, close_untrusted
from gateway.listener.handshake import BACKLOG, HandshakePort
from gateway.listener.link import NetworkLink
from gateway.listener.long_reads import LongReads
from gateway.listener.rules import ListenerRules
from gateway.listener.tcp import TcpLink
from gateway.listener.tls import ALPN, Certificates
from gateway.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from gateway.listener.upgrade import Upgrades

#: Seconds that a closed connection has to send its written bytes. Then it is cut off.
_LINGER_S: Final = 2.0
#: The most connections without a CONNECT that the log names each time such connections are closed.
_NAMED_AT_ONCE: Final = 10
_MICROSECONDS: Final = 1_000_000
#: A link whose silence will be too long within this time, in seconds, is checked more often than once a second.
_SOON_S: Final = 2.0
#: The reason, by whether CONNECT has come. If CONNECT has come, the gateway is busy, and may have time later.
_WHAT_WAS_LATE: Final = {
    False: ("no CONNECT was received in time", ReasonCode.UNSPECIFIED_ERROR),
    True: ("login took too long", ReasonCode.SERVER_BUSY),
}


class _Port(Protocol):
    """An open port: asyncio's server, or one with handshakes."""

    def close(self) -> None: ...


class Listener:
    """One listener. The bridge's admission decides which connections the listener may have."""

    def __init__(
        self,
        bridge: Bridge,
        rules: ListenerRules,
        *,
        long_reads: LongReads,
        certificates: Certificates | None = None,
    ) -> None:
        self.bridge = bridge
        self.rules = rules
        self.long_reads = long_reads
        self.certificates = certificates
        if certificates is not None:
            certificates.on_lost_authority = self._examine
        #: The check of its links' certificates after an authority has gone.
        self._examination: asyncio.Task[None] | None = None
        self._admission = bridge.admission
        self._links: set[NetworkLink] = set()
        #: Links whose silence will be too long soon, by that time as last seen.
        self._soon_due: list[tuple[float, int, NetworkLink]] = []
        self._tie_breaker = count()
        self._admitted = 0
        #: Bytes received and sent on connections that are gone, and the number of these connections.
        self.past_received_bytes = self.past_sent_bytes = self.past_connections = 0
        self._port: _Port | None = None
        self._upgrades: Upgrades | None = None

    async def start(self, host: str, port: int) -> int:
        """Opens the port, and returns its number: for port 0 the system chooses one. Raises OSError."""
        if self.rules.websocket is not None:
            from gateway.listener.upgrade import Upgrades  # a gateway without websockets does not load aiohttp

            self._upgrades = Upgrades(self, self.rules.websocket)
        if self.certificates is None and not self.rules.proxy_protocol:
            return await self._open_plainly(host, port)
        self._port = handshake_port = HandshakePort(
            self._protocol,
            rules=self.rules,
            context=self.certificates.context if self.certificates is not None else None,
            alpn=ALPN["tcp" if self.rules.websocket is None else "websocket"],
            may_begin=self._may_begin_handshake,
            refused=self.count_refusal,
            connection_log=self._admission.connection_log,
        )
        return await handshake_port.open(host, port)

    async def _open_plainly(self, host: str, port: int) -> int:
        loop = asyncio.get_running_loop()
        self._port = server = await loop.create_server(lambda: self._protocol(None), host, port, backlog=BACKLOG)
        chosen: int = server.sockets[0].getsockname()[1]
        return chosen

    def _protocol(self, proxied: Address | None) -> asyncio.Protocol:
        """The protocol of a new connection; `proxied`: the client's address in its PROXY header."""
        if self._upgrades is None:
            return TcpLink(self, proxied)
        return self._upgrades.protocol(proxied)

    # -- its links -----------------------------------------------------------------------------------------------------

    @property
    def has_silence_to_end(self) -> bool:
        """Whether `end_silence` has any connection to check."""
        return bool(self._soon_due) and self._soon_due[0][0] < time.monotonic()

    def __len__(self) -> int:
        return len(self._links)

    def __iter__(self) -> Iterator[NetworkLink]:
        return iter(self._links)

    def _may_begin_handshake(self, address: str) -> bool:
        """Whether a connection from an address may begin its TLS handshake."""
        return self._admission.before_handshake(address) is None

    def admit(self, link: NetworkLink) -> bool:
        """Keeps a connection until `forget`. False: the bridge refuses it at its CONNECT."""
        self._links.add(link)
        is_full = 0 < self.rules.maximum_connections <= self._admitted
        is_counted = self.certificates is not None
        if self._admission.admit(link, listener_is_full=is_full, is_counted=is_counted) is not None:
            return False
        self._admitted += 1
        return True

    def forget(self, link: NetworkLink) -> None:
        self._admission.release(link)
        if link not in self._links:
            return
        self._links.remove(link)
        self._admitted -= link.is_admitted
        self.past_received_bytes += link.received_bytes
        self.past_sent_bytes += link.sent_bytes
        self.past_connections += 1

    def count_refusal(self, limit: Limit) -> None:
        """Counts a connection that the gateway ended before its CONNECT."""
        self._admission.refusals.add(limit)

    def tick(self) -> Iterator[bool]:
        """Once a second: closes connections that are silent past their keep-alive, or that never sent CONNECT.

        A closed connection is cut off after a time, because its peer may never take the last bytes. Each step checks
        one connection, and is True if it closed the connection. Connections may come and go between steps.
        """
        now_s, date_s = time.monotonic(), time.time()
        if self._upgrades is not None:
            self._upgrades.tick(now_s)
        late = 0
        for link in tuple(self._links):
            if not link.is_open:
                if now_s > link.closed_s + _LINGER_S:
                    link.abort()
                yield False
                continue
            is_without_session = link.session is None and not link.connection.is_closed
            if is_without_session and now_s > link.accepted_s + self.rules.connect_timeout_s:
                late += 1
                self._close_late(link, is_named=late <= _NAMED_AT_ONCE)
            else:
                self._look_at(link, now_s, date_s)
            yield not link.is_open

    def _look_at(self, link: NetworkLink, now_s: float, date_s: float) -> None:
        self._look_at_silence(link, now_s)
        if not link.is_open:
            return
        if date_s > link.certificate_ends_s:
            link.close("its certificate has expired", ReasonCode.MAXIMUM_CONNECT_TIME)
        elif self.rules.repeat_after_s:
            self.bridge.repeat(link, round(self.rules.repeat_after_s * _MICROSECONDS))

    def end_silence(self) -> Iterator[bool]:
        """Some times a second: closes connections whose silence is too long by now, one in each step."""
        now_s = time.monotonic()
        while self._soon_due and self._soon_due[0][0] < now_s:
            _, _, link = heappop(self._soon_due)
            link.is_soon_due = False
            if link.is_open:
                self._look_at_silence(link, now_s)
            yield not link.is_open

    def _look_at_silence(self, link: NetworkLink, now_s: float) -> None:
        ends_s = link.silence_ends_s
        if now_s > ends_s:
            reason = "no packet was received for one and a half times the keep-alive time"
            link.close(reason, ReasonCode.KEEP_ALIVE_TIMEOUT)
        elif ends_s < now_s + _SOON_S and not link.is_soon_due:
            link.is_soon_due = True
            heappush(self._soon_due, (ends_s, next(self._tie_breaker), link))

    def _close_late(self, link: NetworkLink, *, is_named: bool) -> None:
        """Closes a connection that got no session in time. The log names some, and the number (limits/refusals.py)."""
        self._admission.refusals.add(Limit.CONNECT_TIMEOUT)
        reason, reason_code = _WHAT_WAS_LATE[bool(link.connection.level)]
        link.close(reason if is_named else "", reason_code)

    def _examine(self, authorities: Authorities) -> None:
        """Checks the links after an operator has removed an authority of clients' certificates."""
        if self._examination is not None:
            self._examination.cancel()
        on_their_way_s = 2 * self.rules.connect_timeout_s  # a handshake, and a request for a WebSocket
        examination = close_untrusted(lambda: tuple(self._links), authorities, on_their_way_s)
        self._examination = asyncio.get_running_loop().create_task(examination)

    # -- its end -------------------------------------------------------------------------------------------------------

    def close_port(self) -> None:
        """Closes the port: no new connections."""
        if self._examination is not None:
            self._examination.cancel()
        if self._port is not None:
            self._port.close()

    def close_links(self) -> None:
        for link in tuple(self._links):
            link.close("the gateway stops", ReasonCode.SERVER_SHUTTING_DOWN)

    async def abort_links(self) -> None:
        """Cuts off connections that have not ended by themselves."""
        for link in tuple(self._links):
            link.abort()
        if self._upgrades is not None:
            await self._upgrades.stop()
