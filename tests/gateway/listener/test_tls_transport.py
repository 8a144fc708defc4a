"""The transport of TLS: what asyncio promises of a transport, against asyncio's own client, and how little it keeps."""

import asyncio
import contextlib
import socket
import ssl
import struct
from pathlib import Path

import pytest

from tests.gateway.listener.tls_house import (
    PATIENCE_S,
    VERSIONS,
    House,
    Recorder,
    TlsPair,
    connected_sockets,
    handed_over,
    play,
)

#: RFC 8446 section 5.2: what a record may take beyond its content, and its header of 5 bytes.
RECORD_OVERHEAD_BYTES = 256 + 5


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def _reset(writer: asyncio.StreamWriter) -> None:
    connected = writer.get_extra_info("socket")
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.mark.parametrize("version", VERSIONS)
def test_much_comes_and_goes_whole(house: House, version: str) -> None:
    there, back = bytes(range(251)) * 20_000, bytes(range(241)) * 20_000

    async def scenario() -> None:
        async with house.connected(version) as (transport, above, reader, writer):
            writer.write(there)
            for place in range(0, len(back), 100_000):
                transport.write(back[place : place + 100_000])
            assert await asyncio.wait_for(reader.readexactly(len(back)), PATIENCE_S) == back
            await above.until(lambda: len(above.received) == len(there))
            assert above.received == there
            assert transport.get_write_buffer_size() == 0

    play(scenario)


def test_openssl_gets_a_long_message_in_pieces_and_keeps_none(house: House) -> None:
    """Its buffers never shrink: they would keep the longest message of the connection until it ends."""

    async def scenario() -> None:
        pair = TlsPair(house, "TLSv1.3")
        message = bytes(range(251)) * 20_000
        pair.transport.write(message)
        assert max(map(len, pair.tcp.pieces)) <= 8_192 + RECORD_OVERHEAD_BYTES
        assert pair.read() == message
        pair.client.write(message)
        pair.transport.data_received(pair.sent.read())
        assert pair.above.received == message

    play(scenario)


@pytest.mark.parametrize("version", VERSIONS)
def test_records_may_be_cut_anywhere_and_come_together(house: House, version: str) -> None:
    async def scenario() -> None:
        pair = TlsPair(house, version)
        for word in (b"one", b"two"):
            pair.client.write(word)
        records = pair.sent.read()
        for place in range(len(records)):
            pair.transport.data_received(records[place : place + 1])
        assert pair.above.received == b"onetwo"
        pair.transport.data_received(records[:0])
        pair.client.write(b"three")
        pair.client.write(b"four")
        pair.transport.data_received(pair.sent.read())
        assert pair.above.received == b"onetwothreefour"

    play(scenario)


def test_who_does_not_read_is_told_of_and_again_when_he_has_caught_up(house: House) -> None:
    async def scenario() -> None:
        async with house.connected() as (transport, above, reader, _writer):
            transport.set_write_buffer_limits(high=100_000)
            written = 0
            while "pause" not in above.told:
                transport.write(bytes(50_000))
                written += 50_000
                await asyncio.sleep(0)
            assert transport.get_write_buffer_size() > 100_000
            await asyncio.wait_for(reader.readexactly(written), PATIENCE_S)
            await above.until(lambda: above.told == ["made", "pause", "resume"])

    play(scenario)


def test_while_reading_is_paused_nothing_is_taken_off_the_network(house: House) -> None:
    async def scenario() -> None:
        async with house.connected() as (transport, above, reader, writer):
            transport.pause_reading()
            transport.pause_reading()
            writer.write(b"later")
            transport.write(b"now")
            assert await asyncio.wait_for(reader.readexactly(3), PATIENCE_S) == b"now"
            assert above.received == b""
            assert not transport._tcp.is_reading()
            transport.resume_reading()
            transport.resume_reading()
            await above.until(lambda: above.received == b"later")

    play(scenario)


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
        near, far = connected_sockets()
        reading = asyncio.create_task(asyncio.to_thread(read_to_the_end, far))
        above = Recorder()
        transport = await handed_over(house.server, near, above)
        await asyncio.wait_for(transport.handshake, PATIENCE_S)
        transport.write(last)
        transport.close()
        transport.close()
        transport.write(b"too late")
        assert transport.is_closing()
        assert await reading == last
        assert await asyncio.wait_for(above.lost, PATIENCE_S) is None

    play(scenario)


def test_after_the_end_of_our_half_what_comes_is_dropped_until_the_peer_ends_too(house: House) -> None:
    async def scenario() -> None:
        async with house.connected() as (transport, above, reader, writer):
            transport.write(b"last words")
            assert transport.can_write_eof()
            transport.write_eof()
            transport.write_eof()
            transport.write(b"too late")
            assert await asyncio.wait_for(reader.read(-1), PATIENCE_S) == b"last words"
            with contextlib.suppress(ConnectionError):
                writer.write(bytes(1_000_000))
            writer.transport.abort()
            await asyncio.wait_for(asyncio.shield(above.lost), PATIENCE_S)
            assert above.received == b""

    play(scenario)


def test_the_peers_end_ends_the_connection_behind_what_it_sent(house: House) -> None:
    async def scenario() -> None:
        async with house.connected() as (_transport, above, _reader, writer):
            writer.write(b"bye")
            writer.close()
            assert await asyncio.wait_for(asyncio.shield(above.lost), PATIENCE_S) is None
            assert above.received == b"bye"
            assert above.told == ["made", "eof", "lost"]

    play(scenario)


def test_what_is_written_to_a_peer_that_has_gone_is_lost_without_an_error(house: House) -> None:
    async def scenario() -> None:
        async with house.connected() as (transport, above, _reader, writer):
            _reset(writer)
            while not transport.is_closing():
                transport.write(b"anybody there")
                await asyncio.sleep(0)
            await asyncio.wait_for(asyncio.shield(above.lost), PATIENCE_S)
            transport.write(b"no error")
            assert transport.get_write_buffer_size() == 0

    play(scenario)


def test_what_is_no_record_of_tls_ends_the_connection(house: House) -> None:
    async def scenario() -> None:
        pair = TlsPair(house, "TLSv1.3")
        pair.transport.data_received(b"no record of TLS at all")
        assert pair.tcp.was_aborted
        pair.transport.write(b"too late")
        pair.transport.connection_lost(None)
        assert isinstance(pair.above.lost.result(), ssl.SSLError)
        assert pair.tcp.taken() == b""

    play(scenario)


def test_what_came_before_an_error_counts_though_it_came_in_the_same_read(house: House) -> None:
    async def scenario() -> None:
        pair = TlsPair(house, "TLSv1.3")
        pair.client.write(b"a whole record")
        pair.transport.data_received(pair.sent.read() + b"no record of TLS at all")
        assert pair.above.received == b"a whole record"
        assert pair.tcp.was_aborted

    play(scenario)


def test_peer_that_cuts_a_message_of_tls_in_two_is_not_waited_for(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        pair = TlsPair(house, "TLSv1.3")

        def wants_the_rest(*_: object) -> int:
            raise ssl.SSLWantReadError

        monkeypatch.setattr(ssl.SSLObject, "write", wants_the_rest)
        pair.transport.write(b"answer")
        assert pair.tcp.was_aborted

    play(scenario)


def test_protocol_that_ends_its_connection_as_it_gets_it_is_told_nothing_more(house: House) -> None:
    class Unwelcoming(Recorder):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            assert isinstance(transport, asyncio.Transport)
            transport.abort()

    async def scenario() -> None:
        near, far = connected_sockets()
        context = house.client("TLSv1.3")
        opening = asyncio.create_task(asyncio.open_connection(sock=far, ssl=context, server_hostname="localhost"))
        above = Unwelcoming()
        await handed_over(house.server, near, above)
        assert await asyncio.wait_for(above.lost, PATIENCE_S) is None
        assert above.told == ["made", "lost"]
        with contextlib.suppress(OSError):
            _, writer = await opening
            writer.transport.abort()

    play(scenario)


@pytest.mark.parametrize("sent", [b"", b"no handshake of TLS"], ids=["gone", "no TLS"])
def test_a_handshake_that_fails_says_why_and_the_protocol_above_nothing(house: House, sent: bytes) -> None:
    expected = ssl.SSLError if sent else ConnectionResetError

    async def scenario() -> None:
        near, far = connected_sockets()
        above = Recorder()
        with far:
            far.send(sent)
            far.shutdown(socket.SHUT_WR)
            transport = await handed_over(house.server, near, above)
            with pytest.raises(expected):
                await asyncio.wait_for(transport.handshake, PATIENCE_S)
        assert above.told == []

    play(scenario)


def test_who_fails_to_shake_hands_gets_the_alert_that_says_why(house: House) -> None:
    """A client must know whether its certificate is missing, or its version of TLS too old."""

    async def scenario() -> None:
        house.server.verify_mode = ssl.CERT_REQUIRED
        near, far = connected_sockets()
        context = house.client("TLSv1.3")
        reading = asyncio.create_task(asyncio.open_connection(sock=far, ssl=context, server_hostname="localhost"))
        above = Recorder()
        transport = await handed_over(house.server, near, above)
        with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
            await asyncio.wait_for(transport.handshake, PATIENCE_S)
        reader, writer = await reading  # a client of TLS 1.3 is through before its certificate is missed
        with pytest.raises(ssl.SSLError, match="TLSV13_ALERT_CERTIFICATE_REQUIRED"):
            await asyncio.wait_for(reader.read(), PATIENCE_S)
        writer.transport.abort()
        assert above.told == []

    play(scenario)


def test_a_handshake_whose_protocol_above_fails_has_failed(house: House) -> None:
    class Failing(Recorder):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            raise OSError("no file is left")

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        near, far = connected_sockets()
        context = house.client("TLSv1.3")
        opening = asyncio.create_task(asyncio.open_connection(sock=far, ssl=context, server_hostname="localhost"))
        transport = await handed_over(house.server, near, Failing())
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(transport.handshake, PATIENCE_S)
        with contextlib.suppress(OSError):
            _, writer = await opening
            writer.transport.abort()

    play(scenario)


def test_another_protocol_may_take_over(house: House) -> None:
    async def scenario() -> None:
        pair = TlsPair(house, "TLSv1.3")
        second = Recorder()
        pair.transport.set_protocol(second)
        pair.client.write(b"to the second")
        pair.transport.data_received(pair.sent.read())
        assert (pair.above.received, second.received) == (b"", b"to the second")

    play(scenario)


def test_a_transport_says_who_is_there(house: House) -> None:
    async def scenario() -> None:
        async with house.connected() as (transport, _above, _reader, writer):
            assert transport.get_extra_info("peername") == writer.get_extra_info("sockname")
            assert transport.get_extra_info("ssl_object").version() == "TLSv1.3"
            assert transport.get_extra_info("sslcontext") is house.server
            assert transport.get_extra_info("other", "none") == "none"

    play(scenario)
