"""A client of WebSockets: aiohttp's, raw HTTP requests, and frames written by hand (RFC 6455)."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from tests.gateway.listener.running import Running, Table

PATIENCE_S = 60.0
WEBSOCKET: Table = {"transport": "websocket"}
UPGRADE = (
    "GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{more}\r\n"
)
OFFER = "Sec-WebSocket-Protocol: mqtt\r\n"
BINARY, TEXT, CLOSE, PING, PONG = 0x2, 0x1, 0x8, 0x9, 0xA


@asynccontextmanager
async def opened(
    running: Running, *protocols: str, path: str = "/mqtt", tls: ssl.SSLContext | None = None
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    scheme = "wss" if tls is not None else "ws"
    url = f"{scheme}://localhost:{running.port}{path}"
    async with aiohttp.ClientSession() as session:
        offered = protocols or ("mqtt",)
        async with session.ws_connect(url, protocols=offered, ssl=tls or True, max_msg_size=0) as websocket:
            yield websocket


async def answer_to(running: Running, request: str) -> str:
    """What a raw HTTP request is answered, to the end of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(request.encode())
    answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
    writer.close()
    return answer.decode()


async def raw_websocket(running: Running, *, offer: str = OFFER) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that has become a websocket, for frames written by hand."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(UPGRADE.format(path="/mqtt", more=offer).encode())
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
    assert head.startswith(b"HTTP/1.1 101 ")
    assert b"\r\nSec-WebSocket-Protocol: mqtt\r\n" in head
    assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head  # the example of RFC 6455 section 1.3
    return reader, writer


def client_frame(opcode: int, payload: bytes, *, final: bool = True) -> bytes:
    """A frame of a client, masked with zeros (RFC 6455 section 5.2)."""
    first = (0x80 if final else 0) | opcode
    if len(payload) < 126:
        return bytes([first, 0x80 | len(payload)]) + bytes(4) + payload
    return bytes([first, 0x80 | 126]) + struct.pack(">H", len(payload)) + bytes(4) + payload


async def read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Opcode and payload of a frame of the server."""
    first, length = await asyncio.wait_for(reader.readexactly(2), PATIENCE_S)
    if length == 126:
        (length,) = struct.unpack(">H", await reader.readexactly(2))
    return first & 0x0F, await reader.readexactly(length)
