"""One connection of an MQ client: a socket with its conversations.

The protocol is that of mq_adapters/client_channel, without any I/O; here are the socket, the clock and the channel's
rules. Heartbeats are answered while calls wait. A client that does not take its answers is not read.
"""

import asyncio
import logging
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from gateway.config.values import Address
from gateway.listener.client_certificates import ShownCertificate, certificate_of, read_shown
from gateway.listener.mq.calls import Answer
from gateway.listener.mq.conversation import Conversation
from gateway.listener.mq.identity import Credentials, Done, Identified, is_loopback
from gateway.listener.mq.server_connections import ChannelRefused, offered
from mq_adapters.attributes import Definition
from mq_adapters.client_channel import initial_data
from mq_adapters.client_channel.asynchronous import AsyncMessage
from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode
from mq_adapters.client_channel.events import (
    AuthenticationAsked,
    CallReceived,
    CallTooLong,
    ConversationAsked,
    ConversationEnded,
    Event,
    Goodbye,
    HeartbeatAsked,
    InitialDataOffered,
    MessagesAsked,
    Notified,
    UserAsserted,
    Violated,
)
from mq_adapters.client_channel.server import FIRST_CONVERSATION, ServerConnection
from mq_adapters.embedded.mqsc.display import Shown, time_text
from mq_adapters.embedded.mqsc.server_connections import StopMode
from mq_adapters.embedded.socket.pace import ApplicationAccount, Pace
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.mqsc import quoted
from mq_adapters.reasons import QueueManagerError, ReasonCode

if TYPE_CHECKING:
    from gateway.listener.mq.listener import MqListener

_log = logging.getLogger(__name__)

#: The most output bytes that wait for a client. With so many, the gateway reads no more of its calls.
MAXIMUM_OUTPUT_BYTES: Final = 4 * 1024 * 1024
#: The same before a program is connected: answers to heartbeats, and little else.
_EARLY_OUTPUT_BYTES: Final = 16 * 1024
#: Seconds that a closed connection has to send its written bytes. Then it is cut off.
_LINGER_S: Final = 2.0
#: A client may be silent for its heartbeat interval and as long again, at most for a minute more (IBM MQ, "HBINT").
_MOST_GRACE_S: Final = 60
#: Seconds between two heartbeats to a client whose segments have no numbers, which gives up after five.
_HEARTBEAT_S: Final = 1.0


class MqLink(asyncio.Protocol):
    """One connection. It satisfies RunningConnection, Line and CertifiedLink."""

    def __init__(self, listener: "MqListener") -> None:
        self._listener = listener
        self._house = listener.house
        self._protocol = ServerConnection()
        self._transport: asyncio.Transport | None = None
        self._conversations: dict[int, Conversation] = {}
        self._channel: Definition | None = None
        #: Conversations that go on when it is this connection's turn.
        self._ready: deque[Conversation] = deque()
        self._is_to_read = False
        self._pace = Pace(self._house.charge, self._go_on)
        self._output_is_full = False
        self._is_protected = False
        self.address, self.peer = "", "unknown"
        self.tls_version = ""
        #: The client's certificate; None without one.
        self.certificate: ShownCertificate | None = None
        #: The same in DER.
        self.shown_certificate: bytes | None = None
        #: False from the moment when its end is decided.
        self.is_open = True
        self.received_bytes = self.sent_bytes = self.calls = 0
        self._accepted_us = self._house.engine.now_us()
        self._heard_s = self._called_s = time.monotonic()
        #: When the connection was made, or when a program of it was last connected or gone.
        self._changed_s = self._heard_s
        self._closed_s: float | None = None
        self._heartbeat: asyncio.TimerHandle | None = None
        self._stopping: StopMode | None = None

    # -- asyncio.Protocol ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's transports are no subclasses of it
        found = transport.get_extra_info("peername")
        if found:
            self.address, self.peer = found[0], str(Address(host=found[0], port=found[1]))
        self._look_at_tls(transport)
        transport.set_write_buffer_limits(high=_EARLY_OUTPUT_BYTES)
        connected = transport.get_extra_info("socket")
        if connected is not None:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if not self._listener.admit(self):
            self._close("there are too many connections")

    def _look_at_tls(self, transport: asyncio.Transport) -> None:
        tls = transport.get_extra_info("ssl_object")
        self._is_protected = tls is not None or is_loopback(self.address)
        if tls is not None:
            self.tls_version = tls.version() or ""
            self.shown_certificate = shown = certificate_of(transport)
            self.certificate = None if shown is None else read_shown(shown, "")

    def data_received(self, data: bytes) -> None:
        if not self.is_open:
            return
        self.received_bytes += len(data)
        self._heard_s = time.monotonic()
        self._protocol.take(data)
        self._house.turns.join(self)
        self._house.turns.serve()
        self._pause_if_held()

    def work(self) -> bool:
        """See Worker. Takes one segment, or lets one conversation go on, in turns: a long scan delays no heartbeat."""
        try:
            return self.is_open and self._work()
        except Exception:  # a fault of ours: the others go on
            _log.exception("connection failed listener=%s peer=%s", self._listener.settings.name, self.peer)
            self.abort()
            return False

    def _work(self) -> bool:
        self._is_to_read = not self._is_to_read
        if self._ready and not self._is_to_read:
            self._ready.popleft().go_on()
        elif not self.is_resting and (events := self._protocol.next_events()) is not None:
            for event in events:
                self._take(event)
        else:
            if not self.is_resting and (transport := self._open_transport) is not None:
                transport.resume_reading()
            return bool(self._ready)
        return True

    def _take(self, event: Event) -> None:
        """Takes one event. Those behind the one that ended the connection have no effect."""
        if self.is_open:
            _EVENTS[type(event)](self, event)

    def pause_writing(self) -> None:
        self._output_is_full = True
        self._pause_if_held()

    def resume_writing(self) -> None:
        self._output_is_full = False
        self._go_on()

    def connection_lost(self, _error: Exception | None) -> None:
        self._transport = None
        self._end_conversations("lost")
        self._pace.end()
        if self.is_open:
            self._closed_s, self.is_open = time.monotonic(), False
        self._listener.forget(self)

    # -- the set-up ----------------------------------------------------------------------------------------------------

    def _initial_data(self, event: InitialDataOffered) -> None:
        try:
            self._channel = channel = self._house.channels.admit(event.offer.channel_name, self)
            if not self._listener.doorkeeper.admits(channel.name, self.address):
                self._house.channels.forget(self)  # it is refused at MQCONN, and takes no instance of the channel
            answer = initial_data.negotiate(
                event.offer, offered(self._house.engine, channel, is_secure=bool(self.tls_version))
            )
        except ChannelRefused as error:
            known = self._listener.doorkeeper.refuse_channel(self, event.offer.channel_name, error)
            self._refuse(error.status_code, str(error), known)
        except ChannelProtocolError as error:
            self._refuse(error.status_code, error.what)
        else:
            self._begin_conversation(FIRST_CONVERSATION)
            self._send(self._protocol.accept(answer))

    def _refuse(self, status_code: StatusCode, why: str, channel: str = "") -> None:
        self._send(self._protocol.refuse(status_code))
        self._close(why, channel)

    def _authenticate(self, event: AuthenticationAsked) -> None:
        """Takes the credentials. MQCONN is answered by what they are worth."""
        shown = Credentials.of(event, is_protected=self._is_protected)
        self._conversations[event.conversation].authenticate(shown)
        self._send(self._protocol.answer_authentication(event.conversation))

    def _conversation_asked(self, event: ConversationAsked) -> None:
        self._begin_conversation(event.conversation)
        self._send(self._protocol.open_conversation(event.conversation))

    def _begin_conversation(self, number: int) -> None:
        self._conversations[number] = Conversation(self._house.engine, self, number)

    def _conversation_ended(self, event: ConversationEnded) -> None:
        self._conversations.pop(event.conversation).end()

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _call(self, event: CallReceived) -> None:
        self.calls += 1
        self._called_s = time.monotonic()
        self._conversations[event.conversation].call(event)
        if not self._protocol.has_numbers:
            self._beat()

    def _call_too_long(self, event: CallTooLong) -> None:
        self._send(self._protocol.fail(event.call, event.reason_code))

    def _messages_asked(self, event: MessagesAsked) -> None:
        self._conversations[event.conversation].messages_asked(event)

    def _notified(self, event: Notified) -> None:
        self._conversations[event.conversation].notified(event.notification)
        if event.is_answer_wanted:
            self._send(self._protocol.answer_notification(event))

    def _heartbeat_asked(self, event: HeartbeatAsked) -> None:
        self._send(event.answer)

    def _violated(self, event: Violated) -> None:
        self._send(event.answer)
        self._close(str(event.error))

    def _beat(self) -> None:
        """Sends heartbeats while a call waits, to a client that gives up without them."""
        if self._heartbeat is not None:
            self._heartbeat.cancel()
            self._heartbeat = None
        if self.is_open and any(each.is_busy for each in self._conversations.values()):
            self._heartbeat = asyncio.get_running_loop().call_later(_HEARTBEAT_S, self._beat_once)

    def _beat_once(self) -> None:
        self._heartbeat = None
        if self.is_open and any(each.is_busy for each in self._conversations.values()):
            self._send(self._protocol.heartbeat())
        self._beat()

    # -- Line ----------------------------------------------------------------------------------------------------------

    @property
    def is_resting(self) -> bool:
        """See Line."""
        return self._pace.is_resting or self._output_is_full

    @property
    def stream(self) -> str:
        """See Line."""
        return self._house.stream

    def identify(self, credentials: Credentials | None, is_wanted: Callable[[], bool], done: Done) -> None:
        """See Line."""
        assert self._channel is not None, "the channel has admitted it"
        self._listener.doorkeeper.identify(self, self._channel, credentials, is_wanted, done)

    @property
    def has_time(self) -> bool:
        """See Line."""
        return self._house.turns.has_time

    def go_on_later(self, conversation: Conversation) -> None:
        """See Line."""
        if self.is_open and conversation not in self._ready:
            self._ready.append(conversation)
            self._house.turns.join(self)

    def program_changed(self, conversation: Conversation, event: str, reason: str = "") -> None:
        """See Line."""
        self._changed_s = time.monotonic()
        if (transport := self._open_transport) is not None:
            transport.set_write_buffer_limits(high=MAXIMUM_OUTPUT_BYTES)
        unit = self._listener.doorkeeper.tell(self, self.channel_name, conversation, event, reason)
        if unit is not None and conversation.who is not None:
            self._pace.charge(conversation.who.application.account, unit)

    def charge(self, account: ApplicationAccount, unit: UnitOfWork) -> None:
        """See Line."""
        self._pace.charge(account, unit)

    def answer(self, call: CallReceived, answer: Answer) -> None:
        """See Line."""
        self._send(
            self._protocol.reply(
                call,
                answer.parameters,
                completion_code=answer.completion_code,
                reason_code=answer.reason_code,
                object_handle=answer.handle,
            )
        )
        if self._stopping is not None:
            asyncio.get_running_loop().call_soon(self._stop_if_idle)

    def refused(self, conversation: Conversation, error: QueueManagerError) -> None:
        """See Line."""
        self._listener.doorkeeper.refuse_call(self, self.channel_name, conversation, error)

    def deliver(self, conversation: int, request: int, message: AsyncMessage) -> None:
        """See Line."""
        self._send(self._protocol.deliver(conversation, request, message))

    def fail(self, why: str) -> None:
        """See Line."""
        self._send(self._protocol.end(StatusCode.QM_TERMINATING))
        self._close(why)

    # -- RunningConnection ---------------------------------------------------------------------------------------------

    @property
    def channel_name(self) -> str:
        """See RunningConnection."""
        return "" if self._channel is None else self._channel.name

    def shown(self) -> Shown:
        """See RunningConnection."""
        programs = [each for each in self._conversations.values() if each.is_connected]
        first = programs[0] if programs else None
        return {
            "STATUS": "STOPPING" if self._stopping is not None else "RUNNING" if programs else "STARTING",
            "CONNAME": quoted(self.peer),
            "MCAUSER": quoted(first.user if first is not None else ""),
            "RAPPLTAG": quoted(first.application_name if first is not None else ""),
            "CURSHCNV": str(len(self._conversations)),
            "SINCE": quoted(time_text(self._accepted_us)),
            "BYTSRCVD": str(self.received_bytes),
            "BYTSSENT": str(self.sent_bytes),
            "MSGS": str(self.calls),
            "SSLPEER": quoted(self.certificate.subject if self.certificate is not None else ""),
        }

    @property
    def conversations(self) -> int:
        """The number of its conversations."""
        return len(self._conversations)

    def programs(self) -> list[Shown]:
        """See RunningConnection."""
        connected = (each.shown() for each in self._conversations.values() if each.is_connected)
        return [{**each, "CHANNEL": self.channel_name, "CONNAME": self.peer} for each in connected]

    def stop(self, mode: StopMode) -> None:
        """See RunningConnection. With QUIESCE calls under way end first."""
        self._stopping = mode
        if mode is StopMode.TERMINATE:
            self._close("its channel was stopped")
            self.abort()
            return
        is_quiet = mode is StopMode.QUIESCE
        self._close_down(ReasonCode.MQRC_CONNECTION_QUIESCING if is_quiet else ReasonCode.MQRC_CONNECTION_STOPPING)
        if is_quiet:
            self._stop_if_idle()
        else:
            self._say_end("its channel was stopped")

    def _stop_if_idle(self) -> None:
        if self._closed_s is None and not any(each.is_busy for each in self._conversations.values()):
            self._say_end("its channel was stopped")

    # -- its listener --------------------------------------------------------------------------------------------------

    def tick(self, now_s: float) -> None:
        """Once a second: ends the connection if it was too slow to connect, or silent or unused for too long."""
        if self._closed_s is not None:
            if now_s > self._closed_s + _LINGER_S:
                self.abort()
            return
        if why := self._why_over(now_s):
            self._say_end(why)

    def _why_over(self, now_s: float) -> str:
        programs = [each for each in self._conversations.values() if each.is_connected]
        if not programs:
            limit_s = self._listener.settings.connect_timeout_s
            return "it did not connect in time" if now_s > self._changed_s + limit_s else ""
        if self.certificate is not None and time.time() > self.certificate.ends_s:
            return "its certificate has expired"
        now_us = self._house.engine.now_us()
        if any(each.who is not None and 0 < each.who.until_us <= now_us for each in programs):
            return "the token of its user has expired"
        assert self._channel is not None, "a program is connected"
        heartbeat_s, unused_s = self._channel.number("HBINT"), self._channel.number("DISCINT")
        grace_s = min(heartbeat_s, _MOST_GRACE_S)
        if heartbeat_s and self._protocol.has_numbers and now_s > self._heard_s + heartbeat_s + grace_s:
            return "no heartbeat came"
        is_busy = any(each.is_busy for each in programs)
        if unused_s and not is_busy and now_s > self._called_s + unused_s:
            return "it made no call for DISCINT seconds"
        return ""

    def end_programs(self, is_over: Callable[[Identified], bool], why: str) -> None:
        """Ends the connection if what proved one of its programs no longer counts."""
        programs = (each.who for each in self._conversations.values() if each.is_connected)
        if any(who is not None and is_over(who) for who in programs):
            self._say_end(why)

    def close(self, reason: str, _reason_code: object = None) -> None:
        """See CertifiedLink."""
        self._say_end(reason)

    def end_with_gateway(self) -> None:
        """The gateway stops: waiting gets are answered, then the connection ends."""
        self._close_down(ReasonCode.MQRC_Q_MGR_STOPPING)
        self._say_end("the gateway stops")

    def abort(self) -> None:
        """Cuts the connection off."""
        if self._transport is not None:
            self._transport.abort()

    # -- inside --------------------------------------------------------------------------------------------------------

    def _close_down(self, reason_code: ReasonCode) -> None:
        for each in tuple(self._conversations.values()):
            each.close_down(reason_code)

    def _say_end(self, why: str) -> None:
        self._send(self._protocol.end(StatusCode.QM_TERMINATING))
        self._close(why)

    def _close(self, why: str, channel: str = "") -> None:
        """Ends the connection after the bytes that were sent. `why` is for the log; "": the client asked for it."""
        if not self.is_open:
            return
        self._closed_s, self.is_open = time.monotonic(), False
        self._end_conversations("ended" if why else "disconnected", why)
        if why:
            self._listener.doorkeeper.closed(self, channel or self.channel_name, why)
        if self._transport is not None:
            self._transport.close()

    def _end_conversations(self, event: str, reason: str = "") -> None:
        self._ready.clear()
        self._house.turns.leave(self)
        conversations, self._conversations = self._conversations, {}
        for each in conversations.values():
            each.end(event, reason)
        self._house.channels.forget(self)
        if self._heartbeat is not None:
            self._heartbeat.cancel()

    @property
    def _open_transport(self) -> asyncio.Transport | None:
        transport = self._transport
        return None if transport is None or transport.is_closing() else transport

    def _send(self, data: bytes) -> None:
        if data and (transport := self._open_transport) is not None:
            self.sent_bytes += len(data)
            transport.write(data)

    def _pause_if_held(self) -> None:
        """Reads no more while it rests, or while segments that have come wait for their turn."""
        transport = self._open_transport
        if transport is not None and (self.is_resting or self._house.turns.has(self)):
            transport.pause_reading()

    def _go_on(self) -> None:
        """Carries out the calls that waited meanwhile, and reads again."""
        if self.is_open and not self.is_resting:
            self._ready.extend(each for each in self._conversations.values() if each not in self._ready)
            self._house.turns.join(self)


_EVENTS: Final[dict[type, Callable[[MqLink, Any], None]]] = {
    InitialDataOffered: MqLink._initial_data,
    UserAsserted: lambda _link, _event: None,  # the user of its operating system proves nothing
    AuthenticationAsked: MqLink._authenticate,
    ConversationAsked: MqLink._conversation_asked,
    ConversationEnded: MqLink._conversation_ended,
    CallReceived: MqLink._call,
    CallTooLong: MqLink._call_too_long,
    MessagesAsked: MqLink._messages_asked,
    Notified: MqLink._notified,
    HeartbeatAsked: MqLink._heartbeat_asked,
    Goodbye: lambda link, _event: link._close(""),
    Violated: MqLink._violated,
}
