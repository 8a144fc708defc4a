"""The transport of TLS on sockets of its own: what asyncio promises of a transport, against asyncio's own client."""

import asyncio
import contextlib
import logging
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from gateway.listener.client_certificates import certificate_of
from gateway.listener.tls_transport import TlsTransport, shake_hands
from tests.certificate_authority import Authority

PATIENCE_S = 20.0
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class Recorder(asyncio.Protocol):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.transport: TlsTransport | None = None
        self.received = bytearray()
        self.told: list[str] = []
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self.happened = asyncio.Event()
        self.fails = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, TlsTransport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.fails:
            raise RuntimeError("a fault of the protocol")
        self.received += data
        self.happened.set()

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")
        self.happened.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(exc)

    async def until(self, is_true: Callable[[], bool]) -> None:
        async def wait() -> None:
            while not is_true():
                self.happened.clear()
                await self.happened.wait()

        await asyncio.wait_for(wait(), PATIENCE_S)


class House:
    """A server's context, and a client's for each version."""

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
        """The server's transport and protocol, and the client's streams."""
        near, far = _pair()
        opening = asyncio.create_task(
            asyncio.open_connection(sock=far, ssl=self.client(version), server_hostname="localhost")
        )
        tls = self.server.wrap_socket(near, server_side=True, do_handshake_on_connect=False)
        await asyncio.wait_for(shake_hands(tls), PATIENCE_S)
        recorder = Recorder()
        transport = TlsTransport(tls, recorder)
        transport.start()
        reader, writer = await opening
        try:
            yield transport, recorder, reader, writer
        finally:
            writer.transport.abort()
            transport.abort()
            await asyncio.wait_for(recorder.lost, PATIENCE_S)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def _pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        far = socket.create_connection(listening.getsockname())
        near, _ = listening.accept()
    near.setblocking(False)
    far.setblocking(False)
    return near, far


def _play(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


@pytest.mark.parametrize("version", VERSIONS)
def test_much_comes_and_goes_whole(house: House, version: str) -> None:
    there, back = bytes(range(251)) * 20_000, bytes(range(241)) * 20_000

    async def scenario() -> None:
        async with house.connected(version) as (transport, recorder, reader, writer):
            writer.write(there)
            for place in range(0, len(back), 100_000):
                transport.write(back[place : place + 100_000])
            assert await asyncio.wait_for(reader.readexactly(len(back)), PATIENCE_S) == back
            await recorder.until(lambda: len(recorder.received) == len(there))
            assert recorder.received == there
            assert transport.get_write_buffer_size() == 0

    _play(scenario)


def test_who_does_not_read_is_told_of_and_again_when_he_has_caught_up(house: House) -> None:
    async def scenario() -> None:
        async with house.connected() as (transport, recorder, reader, _writer):
            transport.set_write_buffer_limits(high=100_000)
            assert transport.get_write_buffer_limits() == (25_000, 100_000)
            written = 0
            while not recorder.told:
                transport.write(bytes(50_000))
                written += 50_000
                await asyncio.sleep(0)
            assert recorder.told == ["pause"]
            assert transport.get_write_buffer_size() > 100_000
            await asyncio.wait_for(reader.readexactly(written), PATIENCE_S)
            await recorder.until(lambda: recorder.told == ["pause", "resume"])

    _play(scenario)


def test_while_reading_is_paused_nothing_comes(house: House) -> None:
    async def scenario() -> None:
        async with house.connected() as (transport, recorder, reader, writer):
            transport.pause_reading()
            transport.pause_reading()
            writer.write(b"later")
            transport.write(b"now")
            assert await asyncio.wait_for(reader.readexactly(3), PATIENCE_S) == b"now"
            assert recorder.received == b""
            transport.resume_reading()
            transport.resume_reading()
            await recorder.until(lambda: recorder.received == b"later")

    _play(scenario)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_written_arrives_before_a_close_and_then_the_end(house: House, version: str) -> None:
    last = bytes(range(251)) * 20_000

    def read_to_the_end(far: socket.socket) -> bytes:
        far.settimeout(PATIENCE_S)
        received = bytearray()
        with house.client(version).wrap_socket(far, server_hostname="localhost", suppress_ragged_eofs=False) as tls:
            while more := tls.recv(65_536):
                received += more
        return bytes(received)

    async def scenario() -> None:
        near, far = _pair()
        reading = asyncio.create_task(asyncio.to_thread(read_to_the_end, far))
        tls = house.server.wrap_socket(near, server_side=True, do_handshake_on_connect=False)
        await asyncio.wait_for(shake_hands(tls), PATIENCE_S)
        recorder = Recorder()
        transport = TlsTransport(tls, recorder)
        transport.start()
        transport.write(last)
        transport.close()
        transport.close()
        transport.write(b"too late")
        assert transport.is_closing()
        assert await reading == last
        assert await asyncio.wait_for(recorder.lost, PATIENCE_S) is None

    _play(scenario)


def test_after_the_end_of_our_half_what_comes_is_dropped_until_the_peer_ends_too(house: House) -> None:
    async def scenario() -> None:
        async with house.connected() as (transport, recorder, reader, writer):
            transport.write(b"last words")
            transport.write_eof()
            transport.write(b"too late")
            assert await asyncio.wait_for(reader.read(-1), PATIENCE_S) == b"last words"
            with contextlib.suppress(ConnectionError):
                writer.write(bytes(1_000_000))
            writer.transport.abort()
            await asyncio.wait_for(asyncio.shield(recorder.lost), PATIENCE_S)
            assert recorder.received == b""

    _play(scenario)


def test_the_peers_end_ends_the_connection(house: House) -> None:
    async def scenario() -> None:
        async with house.connected() as (_transport, recorder, _reader, writer):
            writer.write(b"bye")
            writer.close()
            assert await asyncio.wait_for(asyncio.shield(recorder.lost), PATIENCE_S) is None
            assert recorder.received == b"bye"

    _play(scenario)


def test_what_is_written_to_a_peer_that_has_gone_is_lost_without_an_error(house: House) -> None:
    async def scenario() -> None:
        async with house.connected() as (transport, recorder, _reader, writer):
            transport.pause_reading()
            connected = writer.get_extra_info("socket")
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
            writer.transport.abort()
            while not transport.is_closing():
                transport.write(b"anybody there")
                await asyncio.sleep(0)
            assert isinstance(await asyncio.wait_for(asyncio.shield(recorder.lost), PATIENCE_S), OSError)
            transport.write(b"no error")
            assert transport.get_write_buffer_size() == 0

    _play(scenario)


def test_what_is_no_record_of_tls_ends_the_connection(house: House) -> None:
    async def scenario() -> None:
        near, far = _pair()
        context = house.client("TLSv1.3")
        client = context.wrap_socket(far, server_hostname="localhost", do_handshake_on_connect=False)
        tls = house.server.wrap_socket(near, server_side=True, do_handshake_on_connect=False)
        await asyncio.wait_for(asyncio.gather(shake_hands(tls), shake_hands(client)), PATIENCE_S)
        recorder = Recorder()
        TlsTransport(tls, recorder).start()
        with socket.socket(fileno=client.detach()) as raw:
            raw.send(b"no record of TLS at all")
            assert isinstance(await asyncio.wait_for(recorder.lost, PATIENCE_S), ssl.SSLError)

    _play(scenario)


def test_a_fault_of_the_protocol_ends_its_connection_alone(house: House, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with house.connected() as (_transport, recorder, _reader, writer):
            recorder.fails = True
            writer.write(b"x")
            assert isinstance(await asyncio.wait_for(asyncio.shield(recorder.lost), PATIENCE_S), RuntimeError)

    caplog.set_level(logging.CRITICAL, logger="asyncio")
    _play(scenario)


def test_a_peer_that_goes_in_the_handshake_is_a_lost_connection(house: House) -> None:
    async def scenario() -> None:
        near, far = _pair()
        tls = house.server.wrap_socket(near, server_side=True, do_handshake_on_connect=False)
        far.close()
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(shake_hands(tls), PATIENCE_S)
        tls.close()

    _play(scenario)


class _Unwilling:
    """A socket of TLS in the middle of a message of its own: OpenSSL does the one only when it has done the other."""

    def __init__(self, tls: ssl.SSLSocket, method: str, error: ssl.SSLError) -> None:
        self._tls = tls
        self._method = method
        self._error = error

    def __getattr__(self, name: str) -> object:
        return self._refuse if name == self._method else getattr(self._tls, name)

    def _refuse(self, *_: object) -> None:
        raise self._error


def test_what_openssl_sends_only_when_it_has_read_goes_out_with_the_next_read(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a KeyUpdate does that (RFC 8446 section 4.6.3); to wait for room would be a busy loop."""

    async def scenario() -> None:
        async with house.connected() as (transport, recorder, reader, writer):
            with monkeypatch.context() as patch:
                patch.setattr(transport, "_tls", _Unwilling(transport._tls, "send", ssl.SSLWantReadError()))
                transport.write(b"answer")
                assert transport.get_write_buffer_size() == 6
                assert not transport._is_watched_for_room
            writer.write(b"more")
            assert await asyncio.wait_for(reader.readexactly(6), PATIENCE_S) == b"answer"
            assert recorder.received == b"more"

    _play(scenario)


def test_what_openssl_reads_only_when_it_has_sent_comes_when_there_is_room(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with house.connected() as (transport, recorder, _reader, writer):
            transport.pause_reading()
            writer.write(b"more")
            with monkeypatch.context() as patch:
                patch.setattr(transport, "_tls", _Unwilling(transport._tls, "recv", ssl.SSLWantWriteError()))
                transport.resume_reading()
                transport._read()
                assert transport._is_watched_for_room
                assert recorder.received == b""
            await recorder.until(lambda: recorder.received == b"more")
            assert not transport._is_watched_for_room

    _play(scenario)


def test_another_protocol_may_take_over(house: House) -> None:
    async def scenario() -> None:
        async with house.connected() as (transport, recorder, _reader, writer):
            second = Recorder()
            transport.set_protocol(second)
            assert transport.get_protocol() is second
            writer.write(b"to the second")
            await second.until(lambda: second.received == b"to the second")
            assert recorder.received == b""
            transport.set_protocol(recorder)

    _play(scenario)


def test_a_transport_says_who_is_there(house: House) -> None:
    async def scenario() -> None:
        async with house.connected() as (transport, _recorder, _reader, writer):
            assert transport.get_extra_info("peername") == writer.get_extra_info("sockname")
            assert transport.get_extra_info("sockname") == writer.get_extra_info("peername")
            assert transport.get_extra_info("ssl_object").version() == "TLSv1.3"
            assert transport.get_extra_info("sslcontext") is house.server
            assert transport.get_extra_info("other", "none") == "none"
            assert transport.is_reading()
            assert transport.can_write_eof()
            transport.close()
            assert transport.get_extra_info("ssl_object") is None

    _play(scenario)


def test_who_has_gone_has_no_address_and_no_certificate(house: House) -> None:
    async def scenario() -> None:
        async with house.connected() as (transport, _recorder, _reader, writer):
            transport.pause_reading()
            connected = writer.get_extra_info("socket")
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
            writer.transport.abort()
            async with asyncio.timeout(PATIENCE_S):
                while transport.get_extra_info("peername") is not None:
                    await asyncio.sleep(0)
            assert certificate_of(transport) is None

    _play(scenario)


def test_a_handshake_with_a_peer_that_has_reset_the_connection_is_a_lost_connection(house: House) -> None:
    async def scenario() -> None:
        near, far = _pair()
        tls = house.server.wrap_socket(near, server_side=True, do_handshake_on_connect=False)
        far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        far.close()
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(shake_hands(tls), PATIENCE_S)
        tls.close()

    _play(scenario)
