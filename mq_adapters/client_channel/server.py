"""One socket as the server sees it: bytes in, events out, and the bytes to send for each decision.

AWAIT_INITIAL_DATA -- INITIAL_DATA --> AWAIT_ANSWER -- accept --> OPEN -- Goodbye, end --> CLOSED
                              AWAIT_ANSWER -- refuse --> CLOSED; in every phase: Violated --> CLOSED

The phases of its conversations are those of conversations.py. A server that has to wait (a get with a wait, a check of
a password) goes on calling `receive` meanwhile, because heartbeats must be answered.
"""

from collections.abc import Iterable
from dataclasses import replace
from enum import IntEnum
from typing import Final

from mq_adapters.client_channel.asynchronous import AsyncMessage, RequestMsgs
from mq_adapters.client_channel.conversations import Conversations, Phase
from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode, UsageError
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
from mq_adapters.client_channel.fields import BodyReader
from mq_adapters.client_channel.identification import ConAuthInfo, UserIdData
from mq_adapters.client_channel.initial_data import InitialData
from mq_adapters.client_channel.joining import STRUCTURES_BYTES, OverlongCall, UnfinishedCalls
from mq_adapters.client_channel.parameters import NOTHING, Content
from mq_adapters.client_channel.segments import (
    CALLS,
    MQENC_BIG_ENDIAN,
    ByteOrder,
    ControlFlags1,
    Form,
    Segment,
    SegmentReader,
    SegmentType,
    padded,
    reply_type,
    write_call,
    write_segment,
)
from mq_adapters.client_channel.status import ALL_IS_WELL, Notification, SocketAction, SocketActionType, StatusData
from mq_adapters.client_channel.verbs import (
    API_HEADER_BYTES,
    MQCC_FAILED,
    MQCC_OK,
    ApiHeader,
    read_request,
    refusal,
    refusal_of_beginning,
)
from mq_adapters.message import MQENC_LITTLE_ENDIAN

FIRST_CONVERSATION: Final = 1
#: Until the first MQCONN is answered well: the longest segment, and how many there may be. Both are our choice. IBM's
#: client sends INITIAL_DATA, USERID_DATA, CONAUTH_INFO and MQCONN then, of 600 bytes at most.
LONGEST_EARLY_SEGMENT_BYTES: Final = 4_096
MOST_EARLY_SEGMENTS: Final = 100
#: Our choice: what the unfinished calls of one socket need together.
MOST_UNFINISHED_BYTES: Final = 16 * 1024 * 1024
_ENCODINGS: Final = {ByteOrder.BIG_ENDIAN: MQENC_BIG_ENDIAN, ByteOrder.LITTLE_ENDIAN: MQENC_LITTLE_ENDIAN}
_CLOSING: Final = ControlFlags1.CLOSE_CHANNEL | ControlFlags1.REQUEST_CLOSE | ControlFlags1.ERROR


class SocketPhase(IntEnum):
    """The phase of a socket."""

    AWAIT_INITIAL_DATA = 0
    AWAIT_ANSWER = 1
    OPEN = 2
    CLOSED = 3


class ServerConnection:
    """The server's side of one socket. It is for one thread; what its methods return must be sent in their order.

    A method that answers gives b"" where its conversation has ended meanwhile. Otherwise a call in the wrong phase is a
    UsageError. `most_unfinished_bytes` limits the memory of calls whose last segment has not come.
    """

    def __init__(self, *, most_unfinished_bytes: int = MOST_UNFINISHED_BYTES) -> None:
        self.phase = SocketPhase.AWAIT_INITIAL_DATA
        self._most_unfinished_bytes = most_unfinished_bytes
        self._reader = SegmentReader(LONGEST_EARLY_SEGMENT_BYTES)
        self._is_early = True
        self._early_segments = 0
        self._byte_order = ByteOrder.BIG_ENDIAN
        self._answer = InitialData()
        self._conversations = Conversations(0)
        self._calls = UnfinishedCalls(longest_call_bytes=0, most_bytes=0)

    @property
    def is_closed(self) -> bool:
        """Whether nothing more is read."""
        return self.phase is SocketPhase.CLOSED

    @property
    def has_numbers(self) -> bool:
        """Whether segments have the number of a conversation, so that a socket can have several, and heartbeats.

        Without them the client gives up after some 5 s of silence: send `heartbeat` each second while a call waits.
        """
        return self._answer.conversations_per_socket > 0

    @property
    def unfinished_bytes(self) -> int:
        """The bytes that are held for what is not complete."""
        return self._reader.unfinished_bytes + self._calls.kept_bytes

    def phase_of(self, conversation: int) -> Phase | None:
        """The phase of a conversation; None if it has ended."""
        return self._conversations.phase_of(conversation) if conversation in self._conversations else None

    # -- what the client sends

    def receive(self, data: bytes) -> list[Event]:
        """The events of these bytes. A fault of the client is the last one, `Violated`; then nothing more is read."""
        self.take(data)
        events: list[Event] = []
        while (found := self.next_events()) is not None:
            events += found
        return events

    def take(self, data: bytes) -> None:
        """Takes bytes of the socket, for `next_events`."""
        if not self.is_closed:
            self._reader.take(data)

    def next_events(self) -> list[Event] | None:
        """The events of the next segment, perhaps none; None while it is not complete.

        Who answers them before the next call sees each segment in the phase in which it came.
        """
        try:
            segment = self._next_segment()
            return None if segment is None else list(self._events_of(segment))
        except ChannelProtocolError as error:
            return [Violated(error, self._closing(error.status_code))]

    def _next_segment(self) -> Segment | None:
        segment = None if self.is_closed else self._reader.next_segment()
        if self._is_early and segment is not None:
            self._early_segments += 1
            if self._early_segments > MOST_EARLY_SEGMENTS:
                what = f"more than {MOST_EARLY_SEGMENTS} segments came before a program was connected"
                raise ChannelProtocolError(StatusCode.PROTOCOL_SEGMENT_ERROR, what)
        return segment

    def _events_of(self, segment: Segment) -> Iterable[Event]:
        if self.phase is not SocketPhase.OPEN:
            return [self._initial_data(segment)]
        self._check_form(segment)
        if segment.type == SegmentType.HEARTBEAT:
            return self._heartbeat(segment)
        if segment.type == SegmentType.STATUS_DATA:
            return self._status(segment)
        if segment.type == SegmentType.SOCKET_ACTION:
            return self._socket_action(segment)
        return self._of_a_conversation(segment)

    def _initial_data(self, segment: Segment) -> Event:
        is_first = self.phase is SocketPhase.AWAIT_INITIAL_DATA
        is_whole = segment.flags_1 & ControlFlags1.WHOLE == ControlFlags1.WHOLE
        if not (is_first and is_whole and segment.form is Form.TSH and segment.type == SegmentType.INITIAL_DATA):
            raise _wrong_type(segment, f"phase {self.phase.name}")
        self._byte_order = segment.byte_order
        offer = InitialData.read(_body(segment))
        self.phase = SocketPhase.AWAIT_ANSWER
        return InitialDataOffered(offer)

    def _check_form(self, segment: Segment) -> None:
        is_about_the_socket = segment.type in _OF_THE_SOCKET
        if self.has_numbers:
            is_right = segment.form is Form.TSHM or (segment.form is Form.TSHC and is_about_the_socket)
        else:
            is_right = segment.form is Form.TSH
        if not is_right:
            raise _wrong_type(segment, f"the form {segment.form.name}")

    def _heartbeat(self, segment: Segment) -> Iterable[Event]:
        if segment.flags_1 & ControlFlags1.CONFIRM_REQUEST:
            yield HeartbeatAsked(write_segment(replace(segment, body=b"", flags_1=ControlFlags1.WHOLE)))

    def _status(self, segment: Segment) -> Iterable[Event]:
        status = StatusData.read(_body(segment))
        if segment.flags_1 & _CLOSING:
            self._close()
            yield Goodbye(status)

    def _socket_action(self, segment: Segment) -> Iterable[Event]:
        action = SocketAction.read(_body(segment))
        if action.type == SocketActionType.START_CONVERSATION and self.has_numbers:
            self._conversations.begin(action.conversation)
            yield ConversationAsked(action.conversation)
        elif action.type == SocketActionType.END_CONVERSATION:
            yield from self._ended(action.conversation)
        elif action.type != SocketActionType.END_SOCKET:
            raise ChannelProtocolError(StatusCode.SOCKET_ACTION_TYPE, f"a SOCKET_ACTION has the type {action.type}")
        if segment.flags_1 & ControlFlags1.CLOSE_CHANNEL:
            self._close()
            yield Goodbye()

    def _ended(self, conversation: int) -> Iterable[Event]:
        self._calls.drop(conversation)
        if self._conversations.end(conversation):
            yield ConversationEnded(conversation)

    def _of_a_conversation(self, segment: Segment) -> Iterable[Event]:
        if not self.has_numbers:
            segment = replace(segment, conversation=FIRST_CONVERSATION)
        conversation = segment.conversation
        after = self._conversations.next_phase(conversation, segment.type)
        is_cut = segment.flags_1 & ControlFlags1.WHOLE != ControlFlags1.WHOLE
        if is_cut and (segment.type not in CALLS or segment.type == SegmentType.MQCONN):
            raise _wrong_type(segment, "several parts")
        whole = self._calls.take(segment)
        if whole is None:
            return
        self._conversations.move(conversation, after)
        if isinstance(whole, OverlongCall):
            yield _call_too_long(whole)
        else:
            yield _event_of_a_conversation(whole)

    # -- what the server answers

    def accept(self, answer: InitialData) -> bytes:
        """The answer to InitialDataOffered; from now on what it says holds."""
        self._must_owe_an_answer()
        self._answer = answer
        self._conversations = Conversations(max(1, answer.conversations_per_socket))
        self._conversations.move(FIRST_CONVERSATION, Phase.AWAIT_USER)
        self._reader.largest_segment_bytes = min(LONGEST_EARLY_SEGMENT_BYTES, answer.transmission_size)
        self._calls = UnfinishedCalls(
            longest_call_bytes=answer.maximum_message_length + STRUCTURES_BYTES,
            most_bytes=self._most_unfinished_bytes,
        )
        self.phase = SocketPhase.OPEN
        flags = ControlFlags1.WHOLE | ControlFlags1.CONFIRM_REQUEST
        return write_segment(self._about_the_socket(SegmentType.INITIAL_DATA, Form.TSH, flags, answer))

    def refuse(self, status_code: StatusCode) -> bytes:
        """The other answer to InitialDataOffered; then close."""
        self._must_owe_an_answer()
        return self._closing(status_code)

    def answer_authentication(self, conversation: int) -> bytes:
        """The answer to AuthenticationAsked, whatever the verdict: a client that gets none hangs."""
        if conversation not in self._conversations:
            return b""
        self._must_be_in(conversation, Phase.AWAIT_VERDICT)
        self._conversations.move(conversation, Phase.AUTHENTICATED)
        return self._sent(conversation, SegmentType.STATUS_DATA, ALL_IS_WELL)

    def open_conversation(self, conversation: int) -> bytes:
        """The answer to ConversationAsked."""
        if conversation not in self._conversations:
            return b""
        self._must_be_in(conversation, Phase.ASKED)
        self._conversations.move(conversation, Phase.AWAIT_CONNECT)
        return self._sent(conversation, SegmentType.STATUS_DATA, ALL_IS_WELL)

    def refuse_conversation(self, conversation: int, status_code: StatusCode = StatusCode.CONV_ID_ERROR) -> bytes:
        """The other answer to ConversationAsked: JMSWMQ0018 for the application."""
        if conversation not in self._conversations:
            return b""
        self._must_be_in(conversation, Phase.ASKED)
        self._conversations.end(conversation)
        flags = ControlFlags1.WHOLE | ControlFlags1.ERROR
        return self._sent(conversation, SegmentType.STATUS_DATA, StatusData(status_code), flags=flags)

    def reply(
        self,
        call: CallReceived,
        parameters: Content = NOTHING,
        *,
        completion_code: int = MQCC_OK,
        reason_code: int = 0,
        object_handle: int | None = None,
    ) -> bytes:
        """The reply to a call, in as many segments as it needs. Without an `object_handle` it has that of the call."""
        if call.conversation not in self._conversations:
            return b""
        written = parameters.write(call.byte_order)
        if self._form is Form.TSHM:  # on a TSH socket IBM's client takes what fills a message up for data
            written = padded(written)
        self._move_behind(call.verb, call.conversation, completion_code)
        header = ApiHeader(
            length=self._form.header_bytes + API_HEADER_BYTES + len(written),
            completion_code=completion_code,
            reason_code=reason_code,
            object_handle=call.header.object_handle if object_handle is None else object_handle,
        )
        body = header.write(call.byte_order) + written
        segment = self._segment(reply_type(call.verb), call.conversation, call.request, call.byte_order, body)
        return write_call(segment, self._answer.transmission_size)

    def fail(self, call: CallReceived, reason_code: int, *, completion_code: int = MQCC_FAILED) -> bytes:
        """The reply that refuses a call: its own structures as they came, where the reply has them."""
        return self.reply(call, refusal(call.parameters), completion_code=completion_code, reason_code=reason_code)

    def deliver(self, conversation: int, request: int, message: AsyncMessage) -> bytes:
        """A message for a listener, with the request number of the last MessagesAsked of its handle."""
        if conversation not in self._conversations:
            return b""
        segment = self._segment(SegmentType.ASYNC_MESSAGE, conversation, request, self._byte_order)
        return b"".join(map(write_segment, message.segments(segment, self._answer.transmission_size)))

    def answer_notification(self, notified: Notified) -> bytes:
        """The answer to a notification that wants one."""
        return self._notification(
            notified.conversation, notified.request, notified.notification.answer, notified.byte_order
        )

    def notify(self, conversation: int, request: int, notification: Notification) -> bytes:
        """A notification of the server's own, such as that the queue manager stops."""
        return self._notification(conversation, request, notification, self._byte_order)

    def heartbeat(self) -> bytes:
        """Asks whether the client is still there; it answers, and no event tells."""
        flags = ControlFlags1.WHOLE | ControlFlags1.CONFIRM_REQUEST
        return write_segment(self._about_the_socket(SegmentType.HEARTBEAT, self._form_of_the_socket, flags, NOTHING))

    def end(self, status_code: StatusCode = StatusCode.QM_TERMINATING) -> bytes:
        """Ends the connection with a status code: the application gets 2009. Send it, then close."""
        return b"" if self.is_closed else self._closing(status_code)

    # -- how it is written

    @property
    def _form(self) -> Form:
        return Form.TSHM if self.has_numbers else Form.TSH

    @property
    def _form_of_the_socket(self) -> Form:
        return Form.TSHC if self.has_numbers else Form.TSH

    def _segment(
        self, segment_type: int, conversation: int, request: int, byte_order: ByteOrder, body: bytes = b""
    ) -> Segment:
        return Segment(
            type=segment_type,
            body=body,
            form=self._form,
            conversation=conversation,
            request=request,
            byte_order=byte_order,
            encoding=_ENCODINGS[byte_order],
        )

    def _sent(
        self,
        conversation: int,
        segment_type: SegmentType,
        content: Content,
        *,
        flags: ControlFlags1 = ControlFlags1.WHOLE,
    ) -> bytes:
        segment = self._segment(segment_type, conversation, 0, self._byte_order, content.write(self._byte_order))
        return write_segment(replace(segment, flags_1=flags))

    def _notification(
        self, conversation: int, request: int, notification: Notification, byte_order: ByteOrder
    ) -> bytes:
        if conversation not in self._conversations:
            return b""
        body = notification.write(byte_order)
        return write_segment(self._segment(SegmentType.NOTIFICATION, conversation, request, byte_order, body))

    def _about_the_socket(
        self, segment_type: SegmentType, form: Form, flags: ControlFlags1, content: Content
    ) -> Segment:
        return Segment(
            type=segment_type,
            form=form,
            byte_order=self._byte_order,
            encoding=_ENCODINGS[self._byte_order],
            flags_1=flags,
            body=content.write(self._byte_order),
        )

    def _closing(self, status_code: StatusCode) -> bytes:
        status = StatusData(status_code)
        written = write_segment(
            self._about_the_socket(SegmentType.STATUS_DATA, self._form_of_the_socket, ControlFlags1.REFUSAL, status)
        )
        self._close()
        return written

    def _close(self) -> None:
        self.phase = SocketPhase.CLOSED
        self._conversations = Conversations(0)
        self._calls = UnfinishedCalls(longest_call_bytes=0, most_bytes=0)
        self._reader = SegmentReader()

    # -- phases

    def _move_behind(self, verb: SegmentType, conversation: int, completion_code: int) -> None:
        if verb is SegmentType.MQCONN:
            self._must_be_in(conversation, Phase.CONNECTING)
            is_refused = completion_code == MQCC_FAILED
            self._conversations.move(conversation, Phase.DISCONNECTED if is_refused else Phase.CONNECTED)
            if not is_refused:
                self._is_early = False
                self._reader.largest_segment_bytes = self._answer.transmission_size
        elif verb is SegmentType.MQDISC:
            self._conversations.move(conversation, Phase.DISCONNECTED)

    def _must_owe_an_answer(self) -> None:
        if self.phase is not SocketPhase.AWAIT_ANSWER:
            raise UsageError(f"INITIAL_DATA is answered once, and the socket is in phase {self.phase.name}")

    def _must_be_in(self, conversation: int, phase: Phase) -> None:
        found = self._conversations.phase_of(conversation)
        if found is not phase:
            raise UsageError(f"conversation {conversation} is in phase {found.name}, not {phase.name}")


_OF_THE_SOCKET: Final = (SegmentType.HEARTBEAT, SegmentType.STATUS_DATA, SegmentType.SOCKET_ACTION)


def _body(segment: Segment) -> BodyReader:
    return BodyReader(segment.body, segment.byte_order)


def _wrong_type(segment: Segment, where: str) -> ChannelProtocolError:
    what = f"a segment of type {segment.type:02X} came in {where}"
    return ChannelProtocolError(StatusCode.PROTOCOL_SEGMENT_TYPE, what)


def _event_of_a_conversation(segment: Segment) -> Event:
    """The event of a segment that its conversation's phase takes."""
    body, conversation = _body(segment), segment.conversation
    if segment.type == SegmentType.USERID_DATA:
        return UserAsserted(conversation, UserIdData.read(body))
    if segment.type == SegmentType.CONAUTH_INFO:
        return AuthenticationAsked(conversation, ConAuthInfo.read(body), segment.ccsid)
    if segment.type == SegmentType.REQUEST_MSGS:
        return MessagesAsked(conversation=conversation, request=segment.request, asked=RequestMsgs.read(body))
    if segment.type == SegmentType.NOTIFICATION:
        return _notified(segment, body)
    header = ApiHeader.read(body)
    return _call(segment, header, read_request(segment.type, body))


def _notified(segment: Segment, body: BodyReader) -> Notified:
    return Notified(
        conversation=segment.conversation,
        request=segment.request,
        notification=Notification.read(body),
        is_answer_wanted=bool(segment.flags_1 & ControlFlags1.CONFIRM_REQUEST),
        byte_order=segment.byte_order,
    )


def _call(segment: Segment, header: ApiHeader, parameters: Content) -> CallReceived:
    return CallReceived(
        conversation=segment.conversation,
        request=segment.request,
        verb=SegmentType(segment.type),
        header=header,
        byte_order=segment.byte_order,
        parameters=parameters,
    )


def _call_too_long(overlong: OverlongCall) -> Event:
    beginning = overlong.beginning
    body = _body(beginning)
    header = ApiHeader.read(body)
    call = _call(beginning, header, refusal_of_beginning(beginning.type, body))
    return CallTooLong(call=call, call_bytes=overlong.call_bytes, reason_code=overlong.reason_code)
