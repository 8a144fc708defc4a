"""What comes to an HTTP port and is no HTTP: refused once, told in the few lines of its address, and let go of.

aiohttp answers 400 and closes the connection. What has come behind it meanwhile it would parse as well, each read of
the socket with an error of its own, which holds on to that read by its traceback until Python collects cycles: eight
megabytes for each connection. And its log has twenty lines for each.
"""

import logging
from typing import Any

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler, _ErrInfo

from gateway.limits.connection_log import ConnectionLog


class CarefulHandler(RequestHandler):
    """aiohttp's protocol of one connection, which reads nothing behind what is no request."""

    __slots__ = ("_is_refused",)

    def __init__(self, manager: Any, **how: Any) -> None:
        """See aiohttp.web_protocol.RequestHandler."""
        super().__init__(manager, **how)
        self._is_refused = False

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if self._is_refused:
            return
        super().data_received(data)
        for message, _ in self._messages:
            if isinstance(message, _ErrInfo):
                message.exc.__traceback__ = None
                self._is_refused = True


def request_log(log: logging.Logger, connection_log: ConnectionLog, listener: str) -> logging.Logger:
    """Where aiohttp tells of requests; what it says otherwise goes to `log`. `listener` is the port's name."""
    own = logging.Logger(f"{log.name}.http")  # one of its own, for its own filter
    own.parent = log
    own.setLevel(logging.DEBUG)
    own.addFilter(_OneLine(log, connection_log, listener))
    return own


class _OneLine(logging.Filter):
    """A request that is no HTTP is its sender's fault: a line for it, without where in aiohttp that was found out."""

    def __init__(self, log: logging.Logger, connection_log: ConnectionLog, listener: str) -> None:
        super().__init__()
        self._log = log
        self._connection_log = connection_log
        self._listener = listener

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, HttpProcessingError):
            return self._log.isEnabledFor(record.levelno)
        peer = str(record.args[0]) if isinstance(record.args, tuple) and record.args else "unknown"
        reason = error.message.partition("\n")[0]
        self._connection_log.refused(
            peer, "request refused listener=%s peer=%s reason=%s", self._listener, peer, reason
        )
        return False
