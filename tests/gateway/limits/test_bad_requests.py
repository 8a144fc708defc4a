"""What is no HTTP is refused once: what comes behind it is not parsed, nothing is kept, and the log has a line."""

import asyncio
import logging
import sys
from collections.abc import Callable

import pytest
from aiohttp import web

from gateway.limits.bad_requests import CarefulHandler, request_log
from gateway.limits.connection_log import ConnectionLog

GOOD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
BAD = {
    "MQTT": b"\x10\x10\x00\x04MQTT\x04\x02\x00\x00\x00\x04self",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "headers without end": GOOD[:-2] + b"a: b\r\n" * 20_000,
    "a bad chunk": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
}
_log = logging.getLogger("gateway.test_bad_requests")


class Peer(asyncio.Transport):
    """The other end of a connection: what it is sent."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.7", 5), "sslcontext": None})
        self.sent = b""
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        return

    def resume_reading(self) -> None:
        return


def served(use: Callable[[CarefulHandler], None]) -> Peer:
    """A connection on which `use` brings data; ends when it is closed, or when all of it is answered."""

    async def answer(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="good")

    async def run() -> Peer:
        handler = CarefulHandler(
            web.Server(answer), loop=asyncio.get_running_loop(), logger=request_log(_log, ConnectionLog(), "http")
        )
        peer = Peer()
        handler.connection_made(peer)
        use(handler)
        for _ in range(20):
            await asyncio.sleep(0)
        handler.connection_lost(None)
        return peer

    return asyncio.run(run())


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_http_is_refused_once_and_not_kept(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    data = bytes(bytearray(BAD[kind]))  # an object that nobody else holds
    before = sys.getrefcount(data)

    def bring(handler: CarefulHandler) -> None:
        for _ in range(10):
            handler.data_received(data)
        assert sys.getrefcount(data) == before

    peer = served(bring)
    assert peer.sent.count(b"HTTP/1.") <= 1 + (kind == "a bad chunk"), "one answer for each request"
    lines = [line for line in caplog.messages if line.startswith("request refused listener=http peer=192.0.2.7 ")]
    assert len(lines) == 1
    assert not any(record.exc_info for record in caplog.records)


def test_requests_behind_one_another_are_answered(caplog: pytest.LogCaptureFixture) -> None:
    peer = served(lambda handler: handler.data_received(GOOD * 3))
    assert peer.sent.count(b"HTTP/1.1 200 OK") == 3
    assert caplog.messages == []
