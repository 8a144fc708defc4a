"""MQTT in the binary messages of a WebSocket, whose frames mean nothing to MQTT (MQTT 5.0 section 6).

A link of TCP or TLS, whose bytes are frames: the payload of those that come is handed on as it comes, and what is sent
is a message each time. It begins where the HTTP request has been answered (upgrade.py), and nothing of HTTP is left.
"""

import time
from typing import TYPE_CHECKING, Final

from gateway.config.values import Address
from gateway.listener.frames import CloseCode, FrameError, FrameReader, Opcode, header
from gateway.listener.tcp import TcpLink
from gateway.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from gateway.listener.listener import Listener

#: RFC 6455 section 7.4.1; every other reason breaks a rule of ours.
_CLOSE_CODES: Final = {
    ReasonCode.SERVER_SHUTTING_DOWN: CloseCode.GOING_AWAY,
    ReasonCode.MALFORMED_PACKET: CloseCode.PROTOCOL_ERROR,
    ReasonCode.PROTOCOL_ERROR: CloseCode.PROTOCOL_ERROR,
    ReasonCode.PACKET_TOO_LARGE: CloseCode.MESSAGE_TOO_BIG,
}
#: What a client of MQTT 5 is told first where a frame may not be.
_REASON_CODES: Final = {CloseCode.MESSAGE_TOO_BIG: ReasonCode.PACKET_TOO_LARGE}
#: Up to so much in one read is looked at for the peer's close frame when ours has been sent, bytes.
_LAST_READ_BYTES: Final = 16_384


class WebSocketLink(TcpLink):
    """One MQTT connection on an open WebSocket."""

    __slots__ = ("_close_code", "_frames")

    def __init__(self, listener: "Listener", maximum_message_bytes: int, proxied: Address | None = None) -> None:
        super().__init__(listener, proxied)
        #: None: nothing that comes is of interest any more.
        self._frames: FrameReader | None = FrameReader(maximum_message_bytes)
        #: What our close frame says, where a frame of the peer's decides it.
        self._close_code: CloseCode | None = None

    # -- reading -------------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self.is_open:
            super().data_received(data)
        else:
            self._look_for_close(data)

    def _take(self, data: bytes) -> None:
        """What stands in front of a close frame, or of one that may not be, is handed on before that is acted on."""
        pieces: list[bytes] = []
        closing: bytes | None = None
        refused: FrameError | None = None
        try:
            closing = self._read_frames(data, pieces)
        except FrameError as error:
            refused, self._frames = error, None
        if pieces:
            super()._take(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if closing is not None:
            self._closed_by_peer(closing)
        elif refused is not None and self.is_open:
            self._close_code = refused.code
            self.close(str(refused), _REASON_CODES.get(refused.code, ReasonCode.UNSPECIFIED_ERROR))

    def _read_frames(self, data: bytes, pieces: list[bytes]) -> bytes | None:
        """Adds the payloads of data frames, and answers pings; returns the payload of a close frame."""
        if self._frames is None:
            return None
        for opcode, payload in self._frames.receive_data(data):
            if opcode is Opcode.BINARY:
                pieces.append(payload)
            elif opcode is Opcode.PING and self.is_open:
                self._write(Opcode.PONG, payload)
            elif opcode is Opcode.CLOSE:
                return payload
        return None

    # -- writing -------------------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        if self.is_open:
            self._write(Opcode.BINARY, data)

    def _write(self, opcode: Opcode, payload: bytes) -> None:
        if self._transport is not None:
            frame = header(opcode, len(payload)) + payload
            self.sent_bytes += len(frame)
            self._transport.write(frame)

    # -- its end -------------------------------------------------------------------------------------------------------

    def _end(self, reason: str, reason_code: ReasonCode) -> None:
        """Says why, and waits for the peer's close frame; `Listener.tick` does not wait for long."""
        if self._transport is None:
            return
        code = CloseCode.NORMAL
        if reason:
            code = self._close_code or _CLOSE_CODES.get(reason_code, CloseCode.POLICY_VIOLATION)
        self._write(Opcode.CLOSE, code.to_bytes(2, "big"))
        if self._frames is None:  # where the peer's close frame would begin is not known any more
            self._close_after_last_words(self._transport)
        else:
            self._transport.resume_reading()

    def _look_for_close(self, data: bytes) -> None:
        """Our close frame was sent. Who goes on sending much meanwhile is not read to the end."""
        if len(data) > _LAST_READ_BYTES:
            self._frames = None
        try:
            is_closed = self._read_frames(data, []) is not None
        except FrameError:
            self._frames, is_closed = None, False
        if is_closed and self._transport is not None:
            self._transport.close()

    def _closed_by_peer(self, payload: bytes) -> None:
        """Its close frame is answered with its code, unless ours came before; the gateway closes the connection."""
        if self.is_open:
            self._write(Opcode.CLOSE, payload)
            self.is_open = False
        self.closed_s = min(self.closed_s, time.monotonic())
        if self._transport is not None:
            self._transport.close()
