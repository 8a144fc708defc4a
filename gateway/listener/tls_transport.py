"""TLS between a TCP transport and the protocol above it, with little more memory than OpenSSL itself takes.

uvloop's own TLS reads 256 KiB at once and gives OpenSSL whole messages, through two buffers that never shrink. With it,
a connection kept a megabyte of memory after one message of a megabyte, until the connection ended. Here OpenSSL gets
small pieces, and its output goes on at once. Bytes wait in the TCP transport alone, and the protocol above can stop its
reading.
"""

import asyncio
import contextlib
import ssl
from typing import Any, Final, cast

from gateway.listener.client_hello import NO_APPLICATION_PROTOCOL, ClientHello, ForeignProtocol
from gateway.listener.tls_reading import BarrenBytes

#: Bytes that OpenSSL gets at once. Each of its buffers (ssl.MemoryBIO) grows to 4/3 of this number at most.
_PIECE_BYTES: Final = 8_192
#: The most bytes in a TLS record (RFC 8446 section 5.1).
_RECORD_BYTES: Final = 16_384


class TlsTransport(asyncio.Transport, asyncio.Protocol):
    """The server's side of one connection: a protocol for the TCP transport, and a transport for the protocol above.

    `handshake` is done when the protocol above has its connection. It fails with OSError, of which ssl.SSLError is one.
    """

    __slots__ = (
        "_above",
        "_alpn",
        "_barren",
        "_error",
        "_hello",
        "_incoming",
        "_is_ended",
        "_is_open",
        "_outgoing",
        "_tcp",
        "_tls",
        "handshake",
    )

    def __init__(self, context: ssl.SSLContext, above: asyncio.Protocol, alpn: str = "") -> None:
        """`alpn`: the protocol that a client must offer if it offers any; "": the client may offer any protocol."""
        super().__init__()
        self._alpn = alpn.encode()
        #: The client's first message, until it is complete.
        self._hello: ClientHello | None = ClientHello() if alpn else None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._barren = BarrenBytes()
        self._tcp: asyncio.Transport
        self._above = above
        self.handshake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        #: The handshake is complete.
        self._is_open = False
        #: The connection is closed: incoming bytes are dropped, and no more leave.
        self._is_ended = False
        #: Why OpenSSL has ended the connection.
        self._error: ssl.SSLError | None = None

    # -- the protocol of the TCP transport -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol; the other methods too."""
        self._tcp = cast(asyncio.Transport, transport)  # uvloop's transports are no subclasses of it

    def data_received(self, data: bytes) -> None:
        found: list[bytes] = []
        try:
            if self._hello is not None:
                self._check_hello(self._hello, data)
            is_complete = self._take(data, found)
        except ssl.SSLError as error:
            self._hand_on(found)
            self._fail(error)
            return
        self._hand_on(found)
        if is_complete and not self._is_ended:
            self._above.eof_received()
            self.close()

    def _check_hello(self, hello: ClientHello, data: bytes) -> None:
        """Raises ForeignProtocol, before OpenSSL has answered anything."""
        offered = hello.offered(data)
        if offered is None:
            return
        self._hello = None
        if offered and self._alpn not in offered:
            self._tcp.write(NO_APPLICATION_PROTOCOL)
            names = ", ".join(name.decode("ascii", "replace") for name in offered)
            raise ForeignProtocol(f"it offers to speak {names:.100}, and not {self._alpn.decode()}")

    def _take(self, data: bytes, found: list[bytes]) -> bool:
        """Adds the contents of TLS records to `found`. Returns whether the peer has said that no more will follow."""
        is_complete = False
        for start in range(0, len(data), _PIECE_BYTES):
            if self._is_ended:  # perhaps by the protocol above, as soon as it had the connection
                return False
            self._incoming.write(data[start : start + _PIECE_BYTES])
            is_complete = (self._is_open or self._shake_hands()) and self._read(found)
            self._flush()
        return is_complete

    def _shake_hands(self) -> bool:
        """Goes on with the handshake. Returns whether it is complete."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self._is_open = True
        self._above.connection_made(self)
        if not self.handshake.done():
            self.handshake.set_result(None)
        return True

    def _read(self, found: list[bytes]) -> bool:
        """See `_take`. An incomplete record has no content yet."""
        coming_bytes, given_bytes = self._incoming.pending, 0
        is_complete = False
        with contextlib.suppress(ssl.SSLWantReadError):
            while not is_complete and (self._incoming.pending or self._tls.pending()):
                if data := self._tls.read(_RECORD_BYTES):
                    found.append(data)
                    given_bytes += len(data)
                else:
                    is_complete = True
        self._barren.count(coming_bytes - self._incoming.pending, given_bytes)
        return is_complete

    def _hand_on(self, found: list[bytes]) -> None:
        if found and not self._is_ended:
            self._above.data_received(found[0] if len(found) == 1 else b"".join(found))

    def _fail(self, error: ssl.SSLError) -> None:
        """Ends the connection. During its handshake the client gets the alert that says why (RFC 8446 section 6.2)."""
        self._error = error.with_traceback(None)  # it would keep the read bytes until Python collects cycles
        if self._is_open:
            self.abort()
            return
        self._flush()
        self._is_ended = True
        self._tcp.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_ended = True
        error, self._error = self._error, None
        if not self.handshake.done():
            self.handshake.set_exception(error or ConnectionResetError())
        if self._is_open:
            self._above.connection_lost(error or exc)

    def pause_writing(self) -> None:
        if self._is_open:
            self._above.pause_writing()

    def resume_writing(self) -> None:
        if self._is_open:
            self._above.resume_writing()

    # -- the transport of the protocol above ---------------------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See asyncio.Transport; the other methods too."""
        if name == "ssl_object":
            return self._tls
        return self._tls.context if name == "sslcontext" else self._tcp.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._above = cast(asyncio.Protocol, protocol)

    def pause_reading(self) -> None:
        self._tcp.pause_reading()

    def resume_reading(self) -> None:
        self._tcp.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._tcp.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._tcp.get_write_buffer_size()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """See asyncio.Transport.

        If a peer has sent half of a TLS message, OpenSSL writes only after the other half. So that connection ends.
        """
        if self._is_ended:
            return
        records: list[bytes] = []
        try:
            for start in range(0, len(data), _PIECE_BYTES):
                self._tls.write(data[start : start + _PIECE_BYTES])
                records.append(self._outgoing.read())
        except ssl.SSLError as error:
            self._fail(error)
            return
        self._tcp.writelines(records)

    def _flush(self) -> None:
        """Sends the records that OpenSSL has made."""
        if self._outgoing.pending and not self._is_ended:
            self._tcp.write(self._outgoing.read())

    def is_closing(self) -> bool:
        return self._tcp.is_closing()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if self._say_end():
            self._tcp.write_eof()

    def close(self) -> None:
        self._say_end()
        self._tcp.close()

    def _say_end(self) -> bool:
        """Tells the peer that no more will follow. Returns False if the peer was told before."""
        if self._is_ended:
            return False
        with contextlib.suppress(ssl.SSLError):  # we do not wait until the peer says the same
            self._tls.unwrap()
        self._flush()
        self._is_ended = True
        return True

    def abort(self) -> None:
        self._is_ended = True
        self._tcp.abort()
