"""Connections to the HTTP port: their number, and how long each may go without a complete request.

Each is an open file of the process that serves the sensors, so none may stay for ever. A connection without a complete
request in time is closed. When there are too many, the one closest to its deadline goes first.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from aiohttp import web
from aiohttp.web import RequestHandler

#: How long a connection may stay after an answer, seconds: Prometheus asks every 15 to 60 on the same one.
IDLE_S: Final = 75.0
_LOOK_EVERY_S: Final = 1.0


class Visitors:
    """Looks after the connections of one server. Made on the event loop."""

    def __init__(
        self,
        server: Callable[[], RequestHandler],
        *,
        maximum_connections: int,
        request_timeout_s: float,
    ) -> None:
        self._server = server
        self._maximum = maximum_connections
        self._request_timeout_s = request_timeout_s
        #: Until when each must have had an answer.
        self._deadlines: dict[RequestHandler, float] = {}
        #: Visitors without a transport: their connection is made in the next turn.
        self._new: set[RequestHandler] = set()

    def protocol(self) -> RequestHandler:
        """The protocol of a new connection."""
        if len(self._deadlines) >= self._maximum:
            self._forget_gone()
        if len(self._deadlines) >= self._maximum:
            made = (each for each in self._deadlines if each.transport is not None)
            if (next_to_go := min(made, key=self._deadlines.__getitem__, default=None)) is not None:
                self._drop(next_to_go)
        handler = self._server()
        self._deadlines[handler] = time.monotonic() + self._request_timeout_s
        self._new.add(handler)
        return handler

    def answered(self, request: web.Request) -> None:
        """A request has been answered; another may follow."""
        if request.protocol in self._deadlines:
            self._deadlines[request.protocol] = time.monotonic() + IDLE_S

    def look(self) -> None:
        """Closes those whose time is over."""
        self._forget_gone()
        self._new.clear()
        now_s = time.monotonic()
        for handler in [each for each, deadline_s in self._deadlines.items() if deadline_s < now_s]:
            self._drop(handler)

    async def watch(self) -> None:
        """Looks once a second, until it is cancelled."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            self.look()

    def _forget_gone(self) -> None:
        for handler in [each for each in self._deadlines if each.transport is None and each not in self._new]:
            del self._deadlines[handler]

    def _drop(self, handler: RequestHandler) -> None:
        del self._deadlines[handler]
        if handler.transport is not None:
            handler.transport.abort()
