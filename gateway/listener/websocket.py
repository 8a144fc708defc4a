"""MQTT in the binary messages of a WebSocket, whose frames mean nothing to MQTT (MQTT 5.0 section 6).

aiohttp reads and writes the frames. What it has read is handed on in the order of its coming, and waits here while the
bridge does not read; what is sent waits here for the one task that writes it, several packets in one message.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, cast

from aiohttp import WSCloseCode, WSMsgType, web

from gateway.config.values import Address
from gateway.listener.link import NetworkLink
from gateway.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from gateway.listener.listener import Listener

_log = logging.getLogger(__name__)

#: Packets that wait are joined to messages of so many bytes; a longer packet is one message.
_MESSAGE_BYTES: Final = 65_536
#: The writer goes on when so much less waits than made it pause, as with TCP.
_LOW_WATER_PART: Final = 4
#: RFC 6455 section 7.4.1; every other reason breaks a rule of ours.
_CLOSE_CODES: Final = {
    ReasonCode.SERVER_SHUTTING_DOWN: WSCloseCode.GOING_AWAY,
    ReasonCode.MALFORMED_PACKET: WSCloseCode.PROTOCOL_ERROR,
    ReasonCode.PROTOCOL_ERROR: WSCloseCode.PROTOCOL_ERROR,
    ReasonCode.PACKET_TOO_LARGE: WSCloseCode.MESSAGE_TOO_BIG,
}


class Wire(Protocol):
    """What counts the bytes that a peer sends, frames and all."""

    wire_bytes: int


class WebSocket(web.WebSocketResponse):
    """aiohttp's WebSocket, which closes itself at a frame that may not be: `refused` has its link do that instead."""

    #: Is given the close code; False: the link has ended already.
    refused: Callable[[int], bool] | None = None

    async def close(self, *, code: int = WSCloseCode.OK, message: bytes = b"", drain: bool = True) -> bool:
        if code != WSCloseCode.OK and self.refused is not None and self.refused(code):
            return False
        return await super().close(code=code, message=message, drain=drain)


class WebSocketLink(NetworkLink):
    """One MQTT connection on an open WebSocket."""

    __slots__ = (
        "_close_code",
        "_counted",
        "_counted_bytes",
        "_inbox",
        "_is_reading",
        "_unsent",
        "_unsent_bytes",
        "_wake_reader",
        "_wake_writer",
        "_websocket",
        "_wire",
    )

    def __init__(
        self,
        listener: "Listener",
        websocket: WebSocket,
        wire: asyncio.Transport,
        proxied: Address | None,
        counted: Wire,
    ) -> None:
        super().__init__(listener, proxied)
        self._counted = counted
        #: How many bytes had come when the last message was complete.
        self._counted_bytes = counted.wire_bytes
        self._websocket = websocket
        websocket.refused = self._refused
        self._wire = wire
        self._inbox: deque[bytes] = deque()
        self._is_reading = True
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._wake_reader = asyncio.Event()
        self._wake_writer = asyncio.Event()
        self._close_code: int = WSCloseCode.OK

    async def serve(self) -> None:
        """Until the connection has ended, and all that was received is handed on."""
        self._identify(self._wire)
        writer = asyncio.create_task(self._write())
        try:
            self._opened()
            await self._read()
        finally:
            self._lost()
            self._wake_writer.set()
            with contextlib.suppress(ConnectionError):
                await writer
            self._websocket.refused = None  # so that both are freed at once

    # -- reading -------------------------------------------------------------------------------------------------------

    @property
    def unfinished_bytes(self) -> int:
        """Of a packet, and of the message whose end has not come."""
        return super().unfinished_bytes + self._counted.wire_bytes - self._counted_bytes

    async def _read(self) -> None:
        while True:
            try:
                message = await self._websocket.receive()
            except ConnectionError:  # a ping came, and the peer went before its pong
                break
            self._counted_bytes = self._counted.wire_bytes
            if message.type is WSMsgType.BINARY:
                self._inbox.append(cast(bytes, message.data))
                self._hand_on()
                if not self._is_reading:
                    self._stop_reading()  # aiohttp reads on when it has handed out what it held
            elif message.type is WSMsgType.TEXT:
                self._close_code = WSCloseCode.UNSUPPORTED_DATA
                self.close("a text message came, and MQTT comes in binary ones (MQTT-6.0.0-1)")
            else:
                break
        self._hand_on()
        while self._inbox and self.is_open:
            self._wake_reader.clear()
            await self._wake_reader.wait()
            self._hand_on()

    def _refused(self, code: int) -> bool:
        """A frame came that may not be: the client hears it as MQTT says it, then the close code."""
        if not self.is_open:
            return False
        self._close_code = code
        if code == WSCloseCode.MESSAGE_TOO_BIG:
            self.close("a message came that is longer than maximum_message_bytes", ReasonCode.PACKET_TOO_LARGE)
        else:
            self.close("a frame came that no WebSocket has (RFC 6455 section 5)")
        return True

    def _hand_on(self) -> None:
        while self._inbox and self._is_reading and self.is_open:
            self.last_received_s = time.monotonic()
            data = self._inbox.popleft()
            self.received_bytes += len(data)
            self._listener.bridge.receive(self, data)

    def _stop_reading(self) -> None:
        self._is_reading = False
        self._wire.pause_reading()

    def _start_reading(self) -> None:
        self._is_reading = True
        self._wire.resume_reading()
        self._wake_reader.set()
        if self._inbox:
            asyncio.get_running_loop().call_soon(self._hand_on)  # whoever lets it read has more to say first

    # -- writing -------------------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        if not self.is_open:
            return
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        self.sent_bytes += len(data)
        self._wake_writer.set()
        if self._unsent_bytes > self.rules.maximum_unsent_bytes and not self._paused_writing:
            self._writing_paused()

    @property
    def unsent_bytes(self) -> int:
        return self._unsent_bytes

    async def _write(self) -> None:
        """All that is sent, in order; the close frame behind it. Raises ConnectionError when the peer has gone."""
        while True:
            while self._unsent:
                message = self._next_message()
                await self._websocket.send_bytes(message)
                self._unsent_bytes -= len(message)
                if self._paused_writing and self._unsent_bytes <= self.rules.maximum_unsent_bytes // _LOW_WATER_PART:
                    self._writing_resumed()
            if not self.is_open:
                await self._websocket.close(code=self._close_code)
                return
            self._wake_writer.clear()
            await self._wake_writer.wait()

    def _next_message(self) -> bytes:
        message = self._unsent.popleft()
        if not self._unsent or len(message) >= _MESSAGE_BYTES:
            return message
        packets, length = [message], len(message)
        while self._unsent and length + len(self._unsent[0]) <= _MESSAGE_BYTES:
            packets.append(self._unsent.popleft())
            length += len(packets[-1])
        return b"".join(packets)

    # -- its end -------------------------------------------------------------------------------------------------------

    def abort(self) -> None:
        self._wire.abort()

    def _end(self, reason: str, reason_code: ReasonCode) -> None:
        if reason and self._close_code == WSCloseCode.OK:
            self._close_code = _CLOSE_CODES.get(reason_code, WSCloseCode.POLICY_VIOLATION)
        self._wake_writer.set()
        self._wake_reader.set()
