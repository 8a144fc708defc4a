"""HTTP: conversion, message bytes in and out or JSON with the report; health; metrics. Off unless it is configured.

    POST /convert?to=mqrfh2     the message, headers first, as the body; mode, format, ccsid, encoding where known
    GET  /health                200 while the gateway serves; 503 while it stops, its store has failed or space is short
    GET  /metrics               the metrics of the gateway, as Prometheus reads them (gateway/metrics.py)
    GET  /openapi.json          the description of all this (openapi.json beside this module)

Nothing is stored and nothing audited. Every error is JSON: reason_code, reason_name, offset, parameter, hint; 4xx is
the fault of the request. There are no passwords: the server listens on loopback unless it is configured otherwise.
"""

import asyncio
import base64
import json
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.resources import files
from typing import Final, cast

from aiohttp import web
from aiohttp.web import RequestHandler

from gateway.conversion.message import ConvertedMessage, converted_message
from gateway.limits.bad_requests import CarefulHandler, request_log
from gateway.limits.connection_log import ConnectionLog
from gateway.operations.convert_request import BadRequest, request_of_query
from gateway.operations.visitors import Visitors
from mappings.errors import MappingError
from mappings.table import TABLE_VERSION

_log = logging.getLogger(__name__)

#: A conversion takes about 10 microseconds and grows with the header: longer messages leave the event loop free.
INLINE_BYTES: Final = 65_536
#: How long requests under way may take when the gateway stops, seconds.
SHUTDOWN_S: Final = 0.5

_BYTES: Final = "application/octet-stream"
_JSON: Final = "application/json"
#: Content-Encoding of a body that is as it is (RFC 9110 section 12.5.3).
_PLAIN: Final = "identity"
#: The page of metrics and its media type, by what a header Accept asks for.
Metrics = Callable[[str], tuple[bytes, str]]
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HttpServer:
    """The HTTP server of a gateway. `is_ready` says whether the gateway serves."""

    def __init__(
        self,
        *,
        maximum_request_bytes: int,
        maximum_connections: int,
        request_timeout_s: float,
        is_ready: Callable[[], bool],
        metrics: Metrics,
    ) -> None:
        self._maximum_request_bytes = maximum_request_bytes
        self._maximum_connections = maximum_connections
        self._request_timeout_s = request_timeout_s
        self._is_ready = is_ready
        self._metrics = metrics
        self._description = files("gateway.operations").joinpath("openapi.json").read_bytes()
        self._large = ThreadPoolExecutor(max_workers=1, thread_name_prefix="convert")
        self._runner: web.AppRunner | None = None
        self._port: asyncio.Server | None = None
        self._visitors: Visitors | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int) -> int:
        """Opens the port and returns it, which matters for port 0. Raises OSError."""
        application = web.Application(client_max_size=self._maximum_request_bytes, middlewares=[_errors_as_json])
        application.on_response_prepare.append(self._answered)
        application.router.add_post("/convert", self._convert)
        application.router.add_get("/health", self._health)
        application.router.add_get("/metrics", self._show_metrics)
        application.router.add_get("/openapi.json", self._openapi)
        runner = web.AppRunner(application, shutdown_timeout=SHUTDOWN_S)
        await runner.setup()
        self._visitors = visitors = Visitors(
            partial(_handler, runner.server, request_log(_log, ConnectionLog(), "http")),
            maximum_connections=self._maximum_connections,
            request_timeout_s=self._request_timeout_s,
        )
        try:
            self._port = await asyncio.get_running_loop().create_server(visitors.protocol, host, port)
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner
        self._watching = asyncio.create_task(visitors.watch())
        bound: int = self._port.sockets[0].getsockname()[1]
        _log.info("http started host=%s port=%s", host, bound)
        return bound

    async def stop(self) -> None:
        """Closes the port and the connections, and waits for a conversion that is under way."""
        runner, self._runner = self._runner, None
        if self._watching is not None:
            self._watching.cancel()
        if self._port is not None:
            self._port.close()
        if runner is not None:
            await runner.cleanup()
        self._large.shutdown(wait=False, cancel_futures=True)

    async def _answered(self, request: web.Request, _response: web.StreamResponse) -> None:
        if self._visitors is not None:
            self._visitors.answered(request)

    # -- requests ------------------------------------------------------------------------------------------------------

    async def _convert(self, request: web.Request) -> web.StreamResponse:
        wanted = request_of_query(request.query)
        if request.headers.get("Content-Encoding", _PLAIN).lower() != _PLAIN:
            hint = "messages are taken as they are; send it without Content-Encoding"
            return _problem(415, "unsupported_content_encoding", hint)
        wants_json = _wants_json(request.headers.get("Accept", ""))
        data = await request.read()
        if len(data) <= INLINE_BYTES:
            converted = converted_message(data, wanted)
        else:
            loop = asyncio.get_running_loop()
            converted = await loop.run_in_executor(self._large, converted_message, data, wanted)
        return _json_response(converted) if wants_json else _bytes_response(converted)

    async def _health(self, _request: web.Request) -> web.StreamResponse:
        ready = self._is_ready()
        return web.json_response({"live": True, "ready": ready}, status=200 if ready else 503)

    async def _show_metrics(self, request: web.Request) -> web.StreamResponse:
        page, content_type = self._metrics(request.headers.get("Accept", ""))
        return web.Response(body=page, headers={"Content-Type": content_type})

    async def _openapi(self, _request: web.Request) -> web.StreamResponse:
        return web.Response(body=self._description, content_type=_JSON)


def _handler(server: web.Server | None, log: logging.Logger) -> RequestHandler:
    """The protocol of one connection. A body is not unpacked: a megabyte may become a gigabyte, on the event loop."""
    return CarefulHandler(
        server,
        loop=asyncio.get_running_loop(),
        logger=log,
        access_log=cast(logging.Logger, None),  # so one has none, whatever its type says
        auto_decompress=False,
    )


def _wants_json(accept: str) -> bool:
    """Whether the header Accept names JSON, and the bytes not before it."""
    types = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    return _JSON in types and (_BYTES not in types or types.index(_JSON) < types.index(_BYTES))


def _bytes_response(converted: ConvertedMessage) -> web.Response:
    headers = {"X-RFH-Format": converted.format, "X-RFH-Table-Version": TABLE_VERSION}
    return web.Response(body=converted.data, content_type=_BYTES, headers=headers)


def _json_response(converted: ConvertedMessage) -> web.Response:
    return web.json_response(
        {
            "format": converted.format,
            "body": base64.b64encode(converted.data).decode("ascii"),
            "report": converted.report.as_dict(),
        },
        headers={"X-RFH-Format": converted.format, "X-RFH-Table-Version": TABLE_VERSION},
        dumps=_dumps,
    )


def _dumps(value: object) -> str:
    """JSON in ASCII: what a header holds may be no valid Unicode, and is shown as an escape."""
    return json.dumps(value)


# -- errors ------------------------------------------------------------------------------------------------------------


@web.middleware
async def _errors_as_json(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except MappingError as error:
        return _mapping_problem(error)
    except BadRequest as error:
        return _problem(400, "bad_request", error.hint, parameter=error.parameter)
    except web.HTTPRequestEntityTooLarge as error:
        hint = f"{error.text}; a larger limit is http.maximum_request_bytes in the gateway's configuration"
        return _problem(413, "request_too_large", hint)
    except web.HTTPException as error:
        hint = f"{request.method} {request.path}: {error.reason}; GET /openapi.json describes what there is"
        return _problem(error.status, error.reason.lower().replace(" ", "_"), hint, allow=error.headers.get("Allow"))
    except ConnectionError:
        raise  # the client has gone
    except Exception:
        _log.exception("http request crashed path=%s", request.path)
        return _problem(500, "internal_error", "a fault of this program; report it with what the gateway's log says")


def _mapping_problem(error: MappingError) -> web.Response:
    return web.json_response(
        {
            "reason_code": error.reason_code,
            "reason_name": error.reason_name,
            "offset": error.offset,
            "parameter": error.parameter,
            "hint": error.hint,
        },
        status=422,
        dumps=_dumps,
    )


def _problem(
    status: int, name: str, hint: str, *, parameter: str | None = None, allow: str | None = None
) -> web.Response:
    """A fault of the request that has no reason code of MQ."""
    told = {"reason_code": None, "reason_name": name, "offset": None, "parameter": parameter, "hint": hint}
    return web.json_response(told, status=status, dumps=_dumps, headers={"Allow": allow} if allow else None)
