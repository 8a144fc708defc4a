"""The HTTP request that becomes a WebSocket: its path, subprotocol and origin, and the time that it may take."""

import asyncio
import base64
import hashlib
import logging
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from aiohttp import hdrs, web
from aiohttp.http import WS_KEY, WebSocketReader
from aiohttp.web import RequestHandler

from gateway.config.limits import Limit
from gateway.config.values import Address
from gateway.limits.bad_requests import CarefulHandler, request_log
from gateway.listener.rules import WebSocketRules
from gateway.listener.websocket import WebSocketLink

if TYPE_CHECKING:
    from gateway.listener.listener import Listener

#: MQTT 5.0 section 6 (MQTT-6.0.0-3) names mqtt. Libraries of MQTT 3.1 ask for mqttv3.1.
SUBPROTOCOLS: Final = ("mqtt", "mqttv3.1")
#: The headers of a handshake, beside the subprotocol.
_HANDSHAKE: Final = (hdrs.UPGRADE, hdrs.CONNECTION, hdrs.SEC_WEBSOCKET_VERSION, hdrs.SEC_WEBSOCKET_KEY)
#: The only version of RFC 6455. Versions 7 and 8 were its drafts, and sent the origin under another name.
_VERSION: Final = "13"
#: Headers that a refusal has, by its status: they say what the gateway would accept.
_TELLING: Final[dict[int, dict[str, str]]] = {
    HTTPStatus.METHOD_NOT_ALLOWED: {hdrs.ALLOW: hdrs.METH_GET},
    HTTPStatus.UPGRADE_REQUIRED: {hdrs.SEC_WEBSOCKET_VERSION: _VERSION},
}
#: A request line with its headers, in bytes: browsers send cookies.
_LONGEST_LINE_BYTES: Final = 8_190
_SHUTDOWN_S: Final = 0.1


_log = logging.getLogger(__name__)


class _BadUpgrade(NamedTuple):
    """A refused request: the status and the reason for its sender. `found` is for the log."""

    status: int
    reason: str
    found: str

    def answer(self) -> web.Response:
        return web.Response(status=self.status, text=f"{self.reason}\n", headers=_TELLING.get(self.status))


class _Tail:
    """Bytes that a client has sent behind its request, before the answer."""

    __slots__ = ("data",)

    def __init__(self) -> None:
        self.data = b""

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """aiohttp calls this like its own reader of frames. The result says: not at the end, no bytes left over."""
        self.data += data
        return False, b""

    def feed_eof(self) -> None:
        """Does nothing, because the connection's new protocol learns of the end."""


class RequestReader(CarefulHandler):
    """aiohttp's protocol of one connection, which gives the connection away when its request is in order.

    aiohttp's protocol calls `arrived` when the connection is there, after its TLS handshake.
    """

    __slots__ = ("_arrived",)

    def __init__(self, manager: Any, *, arrived: Callable[[RequestHandler], None], **how: Any) -> None:
        super().__init__(manager, **how)
        self._arrived = arrived

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        super().connection_made(transport)
        self._arrived(self)

    def give_away(self) -> tuple[asyncio.Transport, bytes] | None:
        """The connection, and the bytes behind its request; None if the connection is lost.

        For aiohttp the connection is lost from then on. aiohttp frees its memory, and its later writes are dropped.
        """
        tail = _Tail()
        self.set_parser(cast(WebSocketReader, tail))  # aiohttp calls these two methods alone
        transport, self.transport = self.transport, None
        if transport is None:
            return None
        self.connection_lost(None)
        return transport, tail.data


class Upgrades:
    """The requests of one listener on their way to a WebSocket. It is made on the event loop."""

    def __init__(self, listener: "Listener", rules: WebSocketRules) -> None:
        self._listener = listener
        self._rules = rules
        self._connection_log = listener.bridge.admission.connection_log
        self._http_log = request_log(_log, self._connection_log, listener.rules.name)
        self._server = web.Server(self._answer)
        #: When each began (seconds), and its address in the PROXY header; the oldest first.
        self._under_way: dict[RequestHandler, tuple[float, Address | None]] = {}

    def protocol(self, proxied: Address | None) -> RequestHandler:
        """The protocol of a new connection, which reads its request."""
        if len(self._under_way) >= self._listener.rules.maximum_waiting_connections:
            self._drop(next(iter(self._under_way)), Limit.WAITING_CONNECTIONS)
        handler = self._handler()
        self._under_way[handler] = time.monotonic(), proxied
        return handler

    def _handler(self) -> RequestReader:
        return RequestReader(
            self._server,
            arrived=self._arrived,
            loop=asyncio.get_running_loop(),
            logger=self._http_log,
            access_log=cast(logging.Logger, None),  # None means no log, although its type forbids None
            lingering_time=0.0,
            max_line_size=_LONGEST_LINE_BYTES,
            max_field_size=_LONGEST_LINE_BYTES,
        )

    def tick(self, now_s: float) -> None:
        """Ends requests that take too long, and forgets lost ones."""
        limit_s = self._listener.rules.connect_timeout_s
        for handler, (began_s, _) in tuple(self._under_way.items()):
            if now_s <= began_s + limit_s:
                return
            self._drop(handler, Limit.CONNECT_TIMEOUT)

    def _arrived(self, handler: RequestHandler) -> None:
        """A connection is there. One that was dropped during its TLS handshake ends now."""
        if handler not in self._under_way and handler.transport is not None:
            handler.transport.abort()
            self._listener.count_refusal(Limit.WAITING_CONNECTIONS)

    def _drop(self, handler: RequestHandler, limit: Limit) -> None:
        del self._under_way[handler]
        if handler.transport is not None:  # it is there: not lost, and not still in its handshake
            handler.transport.abort()
            self._listener.count_refusal(limit)

    async def stop(self) -> None:
        """Ends the requests under way."""
        await self._server.shutdown(_SHUTDOWN_S)

    # -- one request ---------------------------------------------------------------------------------------------------

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        _, proxied = self._under_way.pop(request.protocol, (0.0, None))
        refusal = self._refusal(request)
        if refusal is not None:
            self._tell_refused(request, proxied, refusal)
            answer = refusal.answer()
            answer.force_close()
            return answer
        self._open(request, proxied)
        return web.Response()  # goes nowhere

    def _open(self, request: web.BaseRequest, proxied: Address | None) -> None:
        """Answers the request, and gives its connection to a link."""
        given = cast(RequestReader, request.protocol).give_away()
        if given is None:
            return
        transport, behind = given
        transport.write(_acceptance(request))
        link = WebSocketLink(self._listener, self._rules.maximum_message_bytes, proxied)
        transport.set_protocol(link)
        link.connection_made(transport)
        if behind:
            link.data_received(behind)

    def _tell_refused(self, request: web.BaseRequest, proxied: Address | None, refusal: _BadUpgrade) -> None:
        address = proxied.host if proxied is not None else request.remote or "unknown"
        self._connection_log.refused(
            address,
            "request refused listener=%s peer=%s status=%s reason=%s found=%s",
            self._listener.rules.name,
            proxied or request.remote,
            refusal.status,
            refusal.reason,
            refusal.found,
            level=logging.INFO,
        )

    def _refusal(self, request: web.BaseRequest) -> _BadUpgrade | None:
        """The refusal of a request; None if the request is in order."""
        if request.path != self._rules.path:
            return _BadUpgrade(404, f"MQTT is at {self._rules.path}", request.path)
        if request.method != hdrs.METH_GET:
            return _BadUpgrade(405, "a WebSocket begins with GET", request.method)
        origin = request.headers.get(hdrs.ORIGIN)
        if self._rules.origins and origin is not None and origin.lower() not in self._rules.origins:
            return _BadUpgrade(403, "pages of this origin may not connect", origin)
        offered = _offered(request)
        if _subprotocol(request) is None:
            return _BadUpgrade(400, "offer the subprotocol mqtt or mqttv3.1", ",".join(offered) or "none")
        version = request.headers.get(hdrs.SEC_WEBSOCKET_VERSION, _VERSION)
        if version != _VERSION:
            return _BadUpgrade(HTTPStatus.UPGRADE_REQUIRED, f"WebSocket is spoken in version {_VERSION}", version)
        if not web.WebSocketResponse(protocols=offered, compress=False).can_prepare(request):  # it logs where none fits
            found = " ".join(f"{name}={request.headers.get(name, 'none')}" for name in _HANDSHAKE)
            return _BadUpgrade(400, "this begins no WebSocket (RFC 6455 section 4.2.1)", found)
        return None


def _offered(request: web.BaseRequest) -> list[str]:
    """The subprotocols that the client offers, in one header or in several (RFC 6455 section 11.3.4)."""
    headers = request.headers.getall(hdrs.SEC_WEBSOCKET_PROTOCOL, ())
    return [name.strip() for header in headers for name in header.split(",")]


def _subprotocol(request: web.BaseRequest) -> str | None:
    """The first of ours that the client offers."""
    return next((name for name in _offered(request) if name in SUBPROTOCOLS), None)


def _acceptance(request: web.BaseRequest) -> bytes:
    """The answer to a request that is in order (RFC 6455 section 4.2.2). It accepts no extension."""
    key = request.headers[hdrs.SEC_WEBSOCKET_KEY].encode()
    lines = (
        "HTTP/1.1 101 Switching Protocols",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Accept: {base64.b64encode(hashlib.sha1(key + WS_KEY).digest()).decode()}",
        f"Sec-WebSocket-Protocol: {_subprotocol(request)}",
    )
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode()
