"""MQTT on TCP, or on TLS over it, as an asyncio.Protocol.

The bytes of a short read go to the bridge in one call, and the answers leave in one write. A long read goes to the
bridge in slices (long_reads.py). The longer the bridge takes for a slice, the shorter the next slices become. A read is
long if it is longer than the next slice would be: where packets are slow to carry out, no read brings many of them.
"""

import asyncio
import math
import socket
import time
from typing import TYPE_CHECKING, Final, cast

from gateway.config.values import Address
from gateway.limits.addresses import network_of, prefix_of
from gateway.listener.client_certificates import certificate_of
from gateway.listener.link import NetworkLink
from gateway.listener.tls_reading import BARREN, BarrenTls
from gateway.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from gateway.listener.listener import Listener

#: Seconds for which a client may still send after the packet that says why its connection ends. Then it is cut off.
_FAREWELL_S: Final = 0.5
#: Lengths of slices, bytes: 16 KiB hold a window of a hundred usual messages. 128 bytes hold 64 PINGREQs, or eight
#: PUBLISHes of new topics, which take half a millisecond. The first slice of a connection is short, because its cost is
#: not known yet.
_LONGEST_PIECE_BYTES: Final = 16_384
_FIRST_PIECE_BYTES: Final = 2_048
_SHORTEST_PIECE_BYTES: Final = 128
#: A longer read waits in line, however quick its packets are.
_SHORT_READ_BYTES: Final = 1_024
#: So many times as long may a slice take that is no longer than that. Each slice is a unit of work: usual messages of
#: QoS 1, of which a kilobyte takes a third of a millisecond, would cost a tenth more in shorter ones.
_TIMES_OF_SHORT: Final = 3
#: Seconds after a long read for which a client's short reads do not count as those of another client.
_WHILE_S: Final = 1.0


class TcpLink(NetworkLink, asyncio.Protocol):
    """One MQTT connection on TCP or TLS."""

    __slots__ = (
        "_awaits_turn",
        "_is_ending",
        "_is_in_line",
        "_long_read_s",
        "_piece_bytes",
        "_place",
        "_rest",
        "_transport",
    )

    def __init__(self, listener: "Listener", proxied: Address | None = None) -> None:
        super().__init__(listener, proxied)
        self._transport: asyncio.Transport | None = None
        #: The connection has gone, but the link still has bytes of it to hand on.
        self._is_ending = False
        #: Whether the link stands in line; its long read; and how many bytes of it have gone to the bridge.
        self._is_in_line = False
        self._rest = b""
        self._place = 0
        #: Packets of this link wait in the bridge for its next turn.
        self._awaits_turn = False
        #: When the last long read came, by the monotonic clock.
        self._long_read_s = 0.0
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
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # for clients that never send a PINGREQ

    def data_received(self, data: bytes) -> None:
        if not self.is_open:
            return
        self.received_bytes += len(data)
        if self._rest:
            self._rest += data
        elif len(data) > _SHORT_READ_BYTES:
            self._long_read_s = time.monotonic()
            self._wait_in_line(data)
        else:
            now_s = time.monotonic()
            if now_s > self._long_read_s + _WHILE_S:
                self._listener.long_reads.short_read_s = now_s
            is_late = self.session is None and self._listener.long_reads.newcomer_waits(now_s)
            if is_late or len(data) > self._piece_bytes:
                self._wait_in_line(data)
            else:
                self._take_timed(data, now_s)

    def _wait_in_line(self, data: bytes) -> None:
        self._rest = data
        self._stop_reading()
        self._join_line()

    def _take(self, data: bytes) -> None:
        """Hands bytes on to the bridge."""
        self._listener.bridge.receive(self, data)
        if self.connection.has_finished_packet:
            self.silence.end(time.monotonic())
        else:
            self.silence.part_came(len(data), self.connection.bytes_to_come, time.monotonic())

    def _join_line(self) -> None:
        if not self._is_in_line:
            self._is_in_line = True
            self._listener.long_reads.join(self, prefix_of(network_of(self.address)))

    def hand_on_piece(self) -> bool:
        """See LongRead. A link that is not read leaves the line, and joins it again in `_start_reading`."""
        self._is_in_line = self._may_hand_on() and self._hand_on()
        return self._is_in_line

    def _may_hand_on(self) -> bool:
        """Whether bytes may go to the bridge now. Bytes behind a CONNECT wait until the bridge has accepted it.

        Otherwise all of them would go at once. Other commits need no such wait. The bytes of a client that has gone are
        handed on even while its link is paused, because it takes no answers.
        """
        if not self._has_more:
            return True
        awaits_session = self._waits_for_commit and self.connection.flows is None
        return not awaits_session and (self._is_ending or not (self._is_paused or self._paused_writing))

    @property
    def _has_more(self) -> bool:
        return self._awaits_turn or bool(self._rest)

    def _hand_on(self) -> bool:
        """Hands on a slice. Returns whether there is more. A connection that was closed meanwhile has no more."""
        if self._awaits_turn:
            self._go_on()
        elif self._rest:
            piece = self._rest[self._place : self._place + self._piece_bytes]
            self._place += len(piece)
            self._take_timed(piece, time.monotonic())
        if self._place >= len(self._rest):
            self._rest, self._place = b"", 0
        if self._has_more:
            return True
        self._read_if_possible()
        self._end_if_due()
        return False

    def _go_on(self) -> None:
        """Goes on with the packets that had no time left in an earlier turn."""
        self._awaits_turn = False
        self._listener.bridge.go_on(self)

    def wait_for_turn(self) -> None:
        self._awaits_turn = True
        self._read_no_more()
        self._join_line()

    def _take_timed(self, data: bytes, now_s: float) -> None:
        """Makes the next slices half as long after a slow one, and twice as long after a quick one."""
        self._take(data)
        length, took_s, slow_s = len(data), time.monotonic() - now_s, self._listener.long_reads.piece_s
        if length <= _SHORT_READ_BYTES:
            slow_s *= _TIMES_OF_SHORT
        if took_s > slow_s and length > _SHORTEST_PIECE_BYTES:
            self._piece_bytes = max(length // 2, _SHORTEST_PIECE_BYTES)
        elif length == self._piece_bytes and took_s < slow_s / 4:
            self._piece_bytes = min(2 * length, _LONGEST_PIECE_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has gone. Its earlier bytes go to the bridge first, in slices like every long read."""
        if isinstance(exc, BarrenTls):
            self.close(BARREN, ReasonCode.PROTOCOL_ERROR)
        self._transport = None
        self._is_ending = True
        if self._has_more:
            self._join_line()
        else:
            self._end_if_due()

    def _end_if_due(self) -> None:
        if self._is_ending:
            self._is_ending = False
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
    def silence_ends_s(self) -> float:
        """Never while read bytes wait in line."""
        return math.inf if self._is_in_line else super().silence_ends_s

    @property
    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    @property
    def shown_certificate(self) -> bytes | None:
        """See CertifiedLink."""
        return certificate_of(self._transport) if self._transport is not None else None

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _end(self, reason: str, reason_code: ReasonCode) -> None:
        self._rest, self._awaits_turn = b"", False
        transport = self._transport
        if transport is None:
            self._join_line()  # `hand_on_piece` reports the loss
            return
        if reason and self.connection.has_said_why:
            self._close_after_last_words(transport)
        else:
            transport.close()

    @staticmethod
    def _close_after_last_words(transport: asyncio.Transport) -> None:
        """Keeps reading for a moment. Unread bytes would reset the connection, and our last packet would be lost."""
        if not transport.can_write_eof():
            transport.close()
            return
        transport.write_eof()
        transport.resume_reading()
        asyncio.get_running_loop().call_later(_FAREWELL_S, transport.close)

    def _stop_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def _start_reading(self) -> None:
        if self._has_more:
            self._join_line()
        elif self._transport is not None:
            self._transport.resume_reading()
