"""Both ends of a TLS connection: the gateway's transport, under what writes down all that it is told, and a client."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop

from gateway.listener.tls_transport import TlsTransport
from tests.certificate_authority import Authority

PATIENCE_S = 60.0
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class Recorder(asyncio.Protocol):
    """What the protocol above is told."""

    def __init__(self) -> None:
        self.transport: asyncio.BaseTransport | None = None
        self.received = bytearray()
        self.told: list[str] = []
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self._happened = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.told.append("made")

    def data_received(self, data: bytes) -> None:
        self.received += data
        self._happened.set()

    def eof_received(self) -> None:
        self.told.append("eof")

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")
        self._happened.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append("lost")
        self.lost.set_result(exc)

    async def until(self, is_true: Callable[[], bool]) -> None:
        """When it is, after something that was told."""

        async def wait() -> None:
            while not is_true():
                self._happened.clear()
                await self._happened.wait()

        await asyncio.wait_for(wait(), PATIENCE_S)


class NoTcp(asyncio.Transport):
    """In place of the TCP transport: keeps what is sent."""

    def __init__(self) -> None:
        super().__init__()
        #: One entry for each piece that was handed on.
        self.pieces: list[bytes] = []
        self.was_aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.pieces.append(bytes(data))

    def writelines(self, list_of_data: object) -> None:
        assert isinstance(list_of_data, list)
        self.pieces += list_of_data

    def abort(self) -> None:
        self.was_aborted = True

    def taken(self) -> bytes:
        """What was sent since the last call."""
        taken, self.pieces = b"".join(self.pieces), []
        return taken


class TlsPair:
    """A transport and a client of OpenSSL without a network, after their handshake. Made on an event loop."""

    def __init__(self, house: "House", version: str, ciphers: str = "ECDHE+AESGCM") -> None:
        context, trusting = house.server, house.client(version)
        for each in (context, trusting):
            each.set_ciphers(ciphers)
        self.above, self.tcp = Recorder(), NoTcp()
        self.transport = TlsTransport(context, self.above)
        self.transport.connection_made(self.tcp)
        self._to_client, self.sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = trusting.wrap_bio(self._to_client, self.sent, server_hostname="localhost")
        while "made" not in self.above.told:
            with contextlib.suppress(ssl.SSLWantReadError):
                self.client.do_handshake()
            self.transport.data_received(self.sent.read())
            self._to_client.write(self.tcp.taken())

    def read(self) -> bytes:
        """What the client reads of all that was sent."""
        self._to_client.write(self.tcp.taken())
        found = b""
        with contextlib.suppress(ssl.SSLWantReadError):
            while more := self.client.read(65_536):
                found += more
        return found


class House:
    """A server's context, and clients'."""

    def __init__(self, folder: Path) -> None:
        authority = Authority(folder)
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(*authority.issue("gateway"))
        self._trusted = str(authority.certificate)

    def client(self, version: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._trusted)
        context.minimum_version = context.maximum_version = VERSIONS[version]
        return context

    @asynccontextmanager
    async def connected(
        self, version: str = "TLSv1.3"
    ) -> AsyncIterator[tuple[TlsTransport, Recorder, asyncio.StreamReader, asyncio.StreamWriter]]:
        """The server's transport and protocol, and the client's streams, on a connection of the loopback."""
        near, far = connected_sockets()
        context = self.client(version)
        opening = asyncio.create_task(asyncio.open_connection(sock=far, ssl=context, server_hostname="localhost"))
        above = Recorder()
        transport = await handed_over(self.server, near, above)
        await asyncio.wait_for(transport.handshake, PATIENCE_S)
        reader, writer = await opening
        try:
            yield transport, above, reader, writer
        finally:
            writer.transport.abort()
            transport.abort()
            await asyncio.wait_for(above.lost, PATIENCE_S)


async def handed_over(context: ssl.SSLContext, near: socket.socket, above: Recorder) -> TlsTransport:
    """A transport whose handshake has not begun."""
    transport = TlsTransport(context, above)
    await asyncio.get_running_loop().connect_accepted_socket(lambda: transport, near)
    return transport


def connected_sockets() -> tuple[socket.socket, socket.socket]:
    """The server's end, and the client's."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        far = socket.create_connection(listening.getsockname())
        near, _ = listening.accept()
    near.setblocking(False)
    far.setblocking(False)
    return near, far


def play(scenario: Callable[[], Awaitable[None]]) -> None:
    """On the event loop that the gateway uses."""

    async def main() -> None:
        await scenario()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
