"""TCP, and TLS on it: an asyncio.Protocol and no streams.

The bytes of one read go to the bridge in one call, and what it answers goes out in one write. A long read goes there in
pieces, and each turn of the event loop takes as many of them as its time allows: who sends what is dear to read gets
shorter pieces, and holds up himself.
"""

import asyncio
import socket
import time
from typing import TYPE_CHECKING, Final, cast

from gateway.config.values import Address
from gateway.listener.link import NetworkLink
from gateway.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from gateway.listener.listener import Listener

#: How long a client that is told why its connection ends may go on sending before it is cut off, seconds.
_FAREWELL_S: Final = 0.5
#: A piece is as long as the time of one turn allows: uvloop reads up to 250 KB, 16 KiB hold a window of a hundred usual
#: messages, and 1 KiB holds 256 of the shortest packets that are answered.
_LONGEST_PIECE_BYTES: Final = 16_384
_FIRST_PIECE_BYTES: Final = 4_096
_SHORTEST_PIECE_BYTES: Final = 1_024
#: After so long it is the others' turn, seconds: what a quick disk takes for a commit.
_PATIENCE_S: Final = 0.0004


class TcpLink(NetworkLink, asyncio.Protocol):
    """One MQTT connection on TCP or TLS."""

    __slots__ = ("_piece_bytes", "_rest", "_transport")

    def __init__(self, listener: "Listener", proxied: Address | None = None) -> None:
        super().__init__(listener, proxied)
        self._transport: asyncio.Transport | None = None
        #: Was read, and has not gone to the bridge; while there is some, a call of `_hand_on` is due.
        self._rest = b""
        self._piece_bytes = _FIRST_PIECE_BYTES

    # -- asyncio.Protocol ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's transports are no subclasses of it
        self._identify(transport)
        self._opened()
        transport.set_write_buffer_limits(high=self.rules.maximum_unsent_bytes)
        connected = transport.get_extra_info("socket")
        if connected is not None:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        if not self.is_open:
            return
        self.last_received_s = time.monotonic()
        self.received_bytes += len(data)
        if self._rest:
            self._rest += data
        elif len(data) <= _SHORTEST_PIECE_BYTES:
            self._listener.bridge.receive(self, data)
        else:
            self._rest = data
            self._hand_on()

    def _hand_on(self) -> None:
        """Piece by piece, until it has taken long; what is left then is handed on in the next turn of the loop."""
        data, place, began_s = self._rest, 0, time.perf_counter()
        ends_s = began_s + _PATIENCE_S
        while place < len(data) and self.is_open:
            piece = data[place : place + self._piece_bytes]
            self._listener.bridge.receive(self, piece)
            place += len(piece)
            ended_s = time.perf_counter()
            self._fit_pieces(len(piece), ended_s - began_s)
            if ended_s > ends_s:
                break
            began_s = ended_s
        self._rest = self._rest[place:] if self.is_open else b""
        if self._rest:
            self._stop_reading()
            asyncio.get_running_loop().call_soon(self._hand_on)
        elif self.is_open:
            self._read_if_possible()

    def _fit_pieces(self, length: int, took_s: float) -> None:
        """The next pieces are half as long where one took too long, and twice as long where one was quick."""
        if took_s > _PATIENCE_S:
            self._piece_bytes = max(length // 2, _SHORTEST_PIECE_BYTES)
        elif length == self._piece_bytes and took_s < _PATIENCE_S / 4:
            self._piece_bytes = min(2 * length, _LONGEST_PIECE_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        rest, self._rest = self._rest, b""
        if rest and self.is_open:
            self._listener.bridge.receive(self, rest)
        self._transport = None
        self._lost()

    def pause_writing(self) -> None:
        self._writing_paused()

    def resume_writing(self) -> None:
        self._writing_resumed()

    # -- NetworkLink ---------------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        if self._transport is not None and self.is_open:
            self.sent_bytes += len(data)
            self._transport.write(data)

    @property
    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _end(self, reason: str, reason_code: ReasonCode) -> None:
        transport = self._transport
        if transport is None:
            return
        if reason and self.connection.has_said_why and transport.can_write_eof():
            # Bytes that nobody has read would reset the connection, and what it has been told with it.
            transport.write_eof()
            transport.resume_reading()
            asyncio.get_running_loop().call_later(_FAREWELL_S, transport.close)
        else:
            transport.close()

    def _stop_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def _start_reading(self) -> None:
        if self._transport is not None and not self._rest:
            self._transport.resume_reading()
