"""MQTT in the binary messages of a WebSocket; the boundaries of its frames mean nothing to MQTT (MQTT 5.0 section 6).

A link over TCP or TLS whose bytes are frames. wsproto reads and writes them. The link hands on the payload of frames as
it comes, and each write is one message. The link begins when the HTTP request is answered (upgrade.py).
"""

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage
from wsproto.frame_protocol import CloseReason

from gateway.config.values import Address
from gateway.listener.tcp import TcpLink
from gateway.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from gateway.listener.listener import Listener

#: Close codes (RFC 6455 section 7.4.1) by reason code; all others are a policy violation.
_CLOSE_CODES: Final = {
    ReasonCode.SERVER_SHUTTING_DOWN: CloseReason.GOING_AWAY,
    ReasonCode.MALFORMED_PACKET: CloseReason.PROTOCOL_ERROR,
    ReasonCode.PROTOCOL_ERROR: CloseReason.PROTOCOL_ERROR,
    ReasonCode.PACKET_TOO_LARGE: CloseReason.MESSAGE_TOO_BIG,
}
#: After our close frame, the link searches reads of up to so many bytes for the client's close frame.
_LAST_READ_BYTES: Final = 16_384
#: A part of wsproto's error for a close frame with an invalid code. The client closes the connection anyway.
_BAD_CLOSE: Final = "CLOSE"


class _Fault(NamedTuple):
    """An invalid frame: the code of our close frame, the words for the log, and the reason code at MQTT 5."""

    code: int
    reason: str
    reason_code: ReasonCode = ReasonCode.UNSPECIFIED_ERROR


_TEXT: Final = _Fault(CloseReason.UNSUPPORTED_DATA, "the client sent a text message, not a binary one (MQTT-6.0.0-1)")
_TOO_LONG: Final = _Fault(
    CloseReason.MESSAGE_TOO_BIG,
    "the client sent a message longer than maximum_message_bytes",
    ReasonCode.PACKET_TOO_LARGE,
)


class WebSocketLink(TcpLink):
    """One MQTT connection on an open WebSocket."""

    __slots__ = ("_close_code", "_is_deaf", "_last_frame", "_maximum_message_bytes", "_message_bytes", "_websocket")

    def __init__(self, listener: "Listener", maximum_message_bytes: int, proxied: Address | None = None) -> None:
        super().__init__(listener, proxied)
        self._websocket = Connection(ConnectionType.SERVER)
        self._maximum_message_bytes = maximum_message_bytes
        #: Bytes of an incomplete message.
        self._message_bytes = 0
        #: The frame that ends the connection, while packets in front of it wait.
        self._last_frame: CloseConnection | _Fault | None = None
        #: The link ignores all further bytes.
        self._is_deaf = False
        #: The code of our close frame, if a frame of the client decides it.
        self._close_code: int | None = None

    # -- reading -------------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self.is_open:
            super().data_received(data)
        else:
            self._look_for_close(data)

    def _take(self, data: bytes) -> None:
        """Hands on the payloads in front of a close frame or an invalid one, and then ends the connection."""
        payloads: list[bytes] = []
        self._last_frame = self._read_frames(data, payloads)
        if payloads:
            super()._take(b"".join(payloads))
        self._end_by_frame()

    def _go_on(self) -> None:
        super()._go_on()
        self._end_by_frame()

    def _end_by_frame(self) -> None:
        """Ends the connection for the client's last frame, when all packets in front of it are carried out."""
        if self._awaits_turn:
            return
        end, self._last_frame = self._last_frame, None
        if isinstance(end, CloseConnection):
            self._closed_by_peer(end)
        elif end is not None and self.is_open:
            self._close_code = end.code
            self.close(end.reason, end.reason_code)

    def _read_frames(self, data: bytes, payloads: list[bytes]) -> CloseConnection | _Fault | None:
        """Adds the payloads of messages, and answers pings. Returns the frame that ends the connection, or None."""
        if self._is_deaf:
            return None
        self._websocket.receive_data(data)
        for event in self._websocket.events():
            if isinstance(event, BytesMessage):
                payloads.append(bytes(event.data))
                self._message_bytes += len(event.data)
                if self._message_bytes > self._maximum_message_bytes:
                    payloads.pop()
                    return self._refused(_TOO_LONG)
                if event.message_finished:
                    self._message_bytes = 0
            elif isinstance(event, Ping):
                self._write(event.response())
            elif isinstance(event, TextMessage):
                return self._refused(_TEXT)
            elif isinstance(event, CloseConnection):
                self._is_deaf = True
                came = self._websocket.state in (ConnectionState.REMOTE_CLOSING, ConnectionState.CLOSED)
                return (
                    event
                    if came or _BAD_CLOSE in str(event.reason)
                    else _Fault(event.code, f"a frame is invalid: {event.reason}")
                )
        return None

    def _refused(self, fault: _Fault) -> _Fault:
        self._is_deaf = True
        return fault

    # -- writing -------------------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        if self.is_open:
            self._write(BytesMessage(data=data))

    def _write(self, event: Event) -> None:
        """Sends a message, a pong or our close frame.

        After the client's close frame only our own leaves, and after our own no frame leaves.
        """
        may_be = self._websocket.state is ConnectionState.OPEN or (
            self._websocket.state is ConnectionState.REMOTE_CLOSING and isinstance(event, CloseConnection)
        )
        if may_be and self._transport is not None:
            frame = self._websocket.send(event)
            self.sent_bytes += len(frame)
            self._transport.write(frame)

    # -- its end -------------------------------------------------------------------------------------------------------

    def _end(self, reason: str, reason_code: ReasonCode) -> None:
        """Sends our close frame, and waits for the client's; `Listener.tick` cuts the wait short."""
        rest, self._rest, self._awaits_turn = self._rest[self._place :], b"", False
        if self._transport is None:
            self._join_line()  # `hand_on_piece` reports the loss
            return
        code: int = CloseReason.NORMAL_CLOSURE
        if reason:
            code = self._close_code or _CLOSE_CODES.get(reason_code, CloseReason.POLICY_VIOLATION)
        self._write(CloseConnection(code=code))
        if self._is_deaf:  # an invalid frame or the client's close frame has come
            self._close_after_last_words(self._transport)
        else:
            self._transport.resume_reading()
            self._look_for_close(rest)

    def _look_for_close(self, data: bytes) -> None:
        """Looks for the client's close frame after ours. A client that goes on sending large amounts is not read."""
        if len(data) > _LAST_READ_BYTES:
            self._is_deaf = True
        end = self._read_frames(data, [])
        if isinstance(end, CloseConnection) and self._transport is not None:
            self._transport.close()

    def _closed_by_peer(self, event: CloseConnection) -> None:
        """Answers the client's close frame with its code, unless ours came before, and closes the connection."""
        self._write(CloseConnection(code=event.code))
        self.is_open = False
        self.closed_s = min(self.closed_s, time.monotonic())
        if self._transport is not None:
            self._transport.close()
