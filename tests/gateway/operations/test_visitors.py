"""Connections to the HTTP port: silent ones end in time, too many make room, and who asks is not disturbed."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.operations.http import HttpServer

GET: Final = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
PATIENCE_S: Final = 30

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def _run(use: Callable[[Callable[[], Awaitable[Streams]]], Awaitable[None]], **limits: float) -> None:
    """`use` is given how to open a connection."""

    async def run() -> None:
        server = HttpServer(
            maximum_request_bytes=1_000,
            maximum_connections=int(limits.get("maximum_connections", 10)),
            request_timeout_s=limits.get("request_timeout_s", PATIENCE_S),
            is_ready=lambda: True,
            metrics=lambda _accept: (b"", "text/plain"),
        )
        port = await server.start("127.0.0.1", 0)
        opened: list[asyncio.StreamWriter] = []

        async def connect() -> Streams:
            streams = await asyncio.open_connection("127.0.0.1", port)
            opened.append(streams[1])
            return streams

        try:
            await asyncio.wait_for(use(connect), 2 * PATIENCE_S)
        finally:
            for writer in opened:
                writer.close()
            await server.stop()

    asyncio.run(run())


async def _ask(streams: Streams) -> bytes:
    reader, writer = streams
    writer.write(GET)
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
    await reader.readuntil(b"}")
    return head.partition(b"\r\n")[0]


async def _is_closed(streams: Streams) -> bool:
    try:
        return await asyncio.wait_for(streams[0].read(), PATIENCE_S) == b""
    except ConnectionError:
        return True


def test_who_sends_no_complete_request_in_time_is_closed() -> None:
    async def use(connect: Callable[[], Awaitable[Streams]]) -> None:
        silent, half, body, asking = [await connect() for _ in range(4)]
        assert await _ask(asking) == b"HTTP/1.1 200 OK"
        half[1].write(b"GET /health HTTP/1.1\r\nHost: x\r\n")
        body[1].write(b"POST /convert?to=mqrfh HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
        assert [await _is_closed(each) for each in (silent, half, body)] == [True, True, True]
        assert await _ask(asking) == b"HTTP/1.1 200 OK", "who was answered may ask again"

    _run(use, request_timeout_s=3)


def test_a_connection_too_many_takes_the_place_of_who_is_silent() -> None:
    async def use(connect: Callable[[], Awaitable[Streams]]) -> None:
        asking = await connect()
        assert await _ask(asking) == b"HTTP/1.1 200 OK"
        silent = [await connect() for _ in range(6)]
        assert [await _is_closed(each) for each in silent[:4]] == [True] * 4
        assert await _ask(silent[-1]) == b"HTTP/1.1 200 OK"
        assert await _ask(asking) == b"HTTP/1.1 200 OK"

    _run(use, maximum_connections=3)
