"""Bytes that are no HTTP, on an HTTP port: one refusal, one line in the log, and no memory.

aiohttp answers 400 and closes the connection. But it also parses the reads that came before the close, each with an
error of its own. The traceback of an error keeps its read in memory until Python collects cycles: eight megabytes for
each connection. And aiohttp writes twenty lines to the log for each error.
"""

import logging
from typing import Any, Final

from aiohttp.http import HttpProcessingError
from aiohttp.web import RequestHandler

from gateway.limits.connection_log import ConnectionLog

#: A chunk of a body is malformed, or the client has gone. aiohttp raises both in the handler that reads the body.
_ENDED: Final = "its body ended in the middle"


class CarefulHandler(RequestHandler):
    """aiohttp's protocol of one connection. After bytes that are no request it reads no more."""

    __slots__ = ("_is_refused",)

    def __init__(self, manager: Any, **how: Any) -> None:
        """See aiohttp.web.RequestHandler."""
        super().__init__(manager, **how)
        self._is_refused = False

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if self._is_refused:
            return
        super().data_received(data)
        for message, _ in self._messages:  # private to aiohttp: pyproject.toml therefore bounds its version
            error = getattr(message, "exc", None)
            if isinstance(error, HttpProcessingError):
                error.__traceback__ = None
                self._is_refused = True


def request_log(log: logging.Logger, connection_log: ConnectionLog, listener: str) -> logging.Logger:
    """The log for aiohttp: it writes one line for each bad request, and passes all else to `log` unchanged."""
    own = logging.Logger(f"{log.name}.http")  # a logger of its own, because its filter must not touch `log`
    own.parent = log
    own.setLevel(logging.DEBUG)
    own.addFilter(_OneLine(log, connection_log, listener))
    return own


class _OneLine(logging.Filter):
    """Writes a bad request as one line without a traceback, because the client is at fault and not aiohttp."""

    def __init__(self, log: logging.Logger, connection_log: ConnectionLog, listener: str) -> None:
        super().__init__()
        self._log = log
        self._connection_log = connection_log
        self._listener = listener

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, HttpProcessingError | ConnectionError):
            return self._log.isEnabledFor(record.levelno)
        peer = str(record.args[0]) if isinstance(record.args, tuple) and record.args else "unknown"
        reason = error.message.partition("\n")[0] if isinstance(error, HttpProcessingError) else _ENDED
        self._connection_log.refused(
            peer, "request refused listener=%s peer=%s reason=%s", self._listener, peer, reason
        )
        return False
