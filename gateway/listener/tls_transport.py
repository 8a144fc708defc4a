"""TLS on a socket: an asyncio.Transport that keeps no buffers of its own while nothing is under way.

uvloop's costs 9 KB more for each idle connection: a buffer for what it reads and two for what OpenSSL reads and writes,
which keep the size of the handshake. Here OpenSSL reads from the socket and writes to it.
"""

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final, cast

#: A record of TLS has no more (RFC 8446 section 5.1), bytes.
_RECORD_BYTES: Final = 16_384
#: Read in one go before the others get their turn.
_RECORDS_AT_ONCE: Final = 16
#: As asyncio's own transports: so much waits before the protocol is told to pause, and a quarter when it may go on.
_HIGH_WATER_BYTES: Final = 65_536
_LOW_WATER_PART: Final = 4


async def shake_hands(connected: ssl.SSLSocket) -> None:
    """The server's side of a handshake, on a socket that does not block. Raises OSError; ssl.SSLError is one."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            connected.do_handshake()
        except ssl.SSLWantReadError:
            await _until(connected, loop.add_reader, loop.remove_reader)
        except ssl.SSLWantWriteError:
            await _until(connected, loop.add_writer, loop.remove_writer)
        except OSError as error:
            if isinstance(error, ssl.SSLEOFError) or error.errno == errno.ENOTCONN:
                raise ConnectionResetError("it was closed") from None
            raise
        else:
            return


async def _until(connected: socket.socket, add: Callable[..., object], remove: Callable[[int], object]) -> None:
    """Until the socket is ready for what `add` asks for."""
    ready = asyncio.get_running_loop().create_future()
    number = connected.fileno()
    add(number, _set, ready)
    try:
        await ready
    finally:
        remove(number)


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


class TlsTransport(asyncio.Transport):
    """A connection after its handshake. Made on the event loop; `start` begins to read."""

    __slots__ = (
        "_high_bytes",
        "_is_closing",
        "_is_lost",
        "_is_paused",
        "_is_reading",
        "_is_shut",
        "_is_watched_for_room",
        "_loop",
        "_low_bytes",
        "_number",
        "_protocol",
        "_tls",
        "_unsent",
    )

    def __init__(self, tls: ssl.SSLSocket, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._tls = tls
        self._number = tls.fileno()
        self._protocol = protocol
        #: What OpenSSL has not taken; None: nothing, and nobody waits.
        self._unsent: bytearray | None = None
        self._is_reading = self._is_watched_for_room = False
        #: The protocol is told not to write.
        self._is_paused = False
        #: Nothing more is written; the connection ends, or our half of it does, when all is sent.
        self._is_closing = self._is_shut = False
        self._is_lost = False
        self.set_write_buffer_limits()

    def start(self) -> None:
        """Gives the connection to its protocol."""
        self._protocol.connection_made(self)
        self.resume_reading()

    # -- whose it is ---------------------------------------------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """peername, sockname, socket, sslcontext, and ssl_object as long as our half is open."""
        with contextlib.suppress(OSError):  # where the connection has gone
            if name == "peername":
                return self._tls.getpeername()
            if name == "sockname":
                return self._tls.getsockname()
        if name == "socket" or (name == "ssl_object" and not (self.is_closing() or self._is_shut)):
            return self._tls
        return self._tls.context if name == "sslcontext" else default

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = cast(asyncio.Protocol, protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    # -- reading -------------------------------------------------------------------------------------------------------

    def is_reading(self) -> bool:
        return self._is_reading

    def pause_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._number)

    def resume_reading(self) -> None:
        if self._is_reading or self._is_closing or self._is_lost:
            return
        self._is_reading = True
        self._loop.add_reader(self._number, self._read)

    def _read(self) -> None:
        """Something has come. OpenSSL reads record by record: what it leaves makes the socket readable again."""
        if not self._is_reading:
            return
        if self._is_shut:
            self._discard()
            return
        pieces: list[bytes] = []
        try:
            is_complete = self._receive(pieces)
        except OSError as error:
            self._deliver(pieces)
            self._lose(error)
            return
        self._deliver(pieces)
        if is_complete:
            self._peer_has_ended()
        elif self._unsent is not None and not self._is_watched_for_room:
            self._go_on()

    def _receive(self, pieces: list[bytes]) -> bool:
        """Adds what has come; whether nothing more will."""
        try:
            for _ in range(_RECORDS_AT_ONCE):
                piece = self._tls.recv(_RECORD_BYTES)
                if not piece:
                    return True
                pieces.append(piece)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLWantWriteError:
            self._watch_for_room()  # OpenSSL has something to say itself, and says it when it reads again
        return False

    def _deliver(self, pieces: list[bytes]) -> None:
        if not pieces or self._is_lost:
            return
        try:
            self._protocol.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        except Exception as error:
            self._loop.call_exception_handler(
                {"message": "data_received failed", "exception": error, "transport": self, "protocol": self._protocol}
            )
            self._lose(error)

    def _discard(self) -> None:
        """Nothing is of interest any more but the end: what comes is not even decrypted."""
        try:
            data = socket.socket.recv(self._tls, _RECORD_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        if not data:
            self._lose(None)

    def _peer_has_ended(self) -> None:
        if self._is_lost:
            return
        self.pause_reading()
        if not self._protocol.eof_received():
            self.close()

    # -- writing -------------------------------------------------------------------------------------------------------

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_bytes = _HIGH_WATER_BYTES if high is None else high
        self._low_bytes = self._high_bytes // _LOW_WATER_PART if low is None else low

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low_bytes, self._high_bytes

    def get_write_buffer_size(self) -> int:
        return len(self._unsent) if self._unsent is not None else 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closing or self._is_shut or self._is_lost or not data:
            return
        if self._unsent is None:
            sent = self._send(data)
            if sent == len(data) or self._is_lost:
                return
            self._unsent = bytearray(memoryview(data)[sent:])
        else:
            self._unsent += data
        if len(self._unsent) > self._high_bytes and not self._is_paused:
            self._is_paused = True
            self._protocol.pause_writing()

    def _send(self, data: bytes | bytearray | memoryview) -> int:
        """Hands data to OpenSSL; returns how much it took. What is left must be the first that it is given again."""
        sent = 0
        try:
            with memoryview(data) as view:
                while sent < len(view):
                    sent += self._tls.send(view[sent : sent + _RECORD_BYTES])
        except ssl.SSLWantWriteError:
            self._watch_for_room()
        except ssl.SSLWantReadError:
            pass  # in the middle of a message of its own to us; `_read` goes on with this
        except OSError as error:
            self._lose(error)
        return sent

    def _watch_for_room(self) -> None:
        if not self._is_watched_for_room:
            self._is_watched_for_room = True
            self._loop.add_writer(self._number, self._has_room)

    def _has_room(self) -> None:
        self._watch_no_more()
        if self._unsent is None:
            self._read()
        else:
            self._go_on()

    def _watch_no_more(self) -> None:
        if self._is_watched_for_room:
            self._is_watched_for_room = False
            self._loop.remove_writer(self._number)

    def _go_on(self) -> None:
        """Sends what waits."""
        if self._unsent is None:
            return
        del self._unsent[: self._send(self._unsent)]
        if self._is_lost:
            return
        if self._is_paused and len(self._unsent) <= self._low_bytes:
            self._is_paused = False
            self._protocol.resume_writing()
        if not self._unsent:
            self._unsent = None
            self._end_if_due()

    # -- its end -------------------------------------------------------------------------------------------------------

    def is_closing(self) -> bool:
        return self._is_closing or self._is_lost

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """Ends our half when all is sent; what comes is dropped from now on."""
        if not (self._is_closing or self._is_shut or self._is_lost):
            self._is_shut = True
            self._end_if_due()

    def close(self) -> None:
        """When all is sent."""
        if self._is_closing or self._is_lost:
            return
        self._is_closing = True
        self.pause_reading()
        self._end_if_due()

    def _end_if_due(self) -> None:
        if self._unsent is not None or not (self._is_closing or self._is_shut):
            return
        with contextlib.suppress(OSError, ValueError):  # said already, or nobody is there
            self._tls.unwrap()  # says close_notify, and does not wait for the peer's
        if self._is_closing:
            self._lose(None)
            return
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._tls, socket.SHUT_WR)

    def abort(self) -> None:
        self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        self.pause_reading()
        self._watch_no_more()
        self._unsent = None
        self._loop.call_soon(self._lost, error)

    def _lost(self, error: Exception | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self._tls.close()
