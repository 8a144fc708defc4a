"""One socket as a client sees it: bytes in, events out, and the bytes to send for each call.

NEW -- begin --> AWAIT_ANSWER -- INITIAL_DATA --> OPEN -- goodbye, STATUS_DATA that closes --> CLOSED
                 AWAIT_ANSWER -- STATUS_DATA --> CLOSED; in every phase: Violated --> CLOSED

A socket has one conversation here, and one call under way. What the queue manager sends is not trusted: no reply is
longer than the room that its call gives it, and a length that lies ends the connection.
Source: IBM MQ's client as it was observed (com.ibm.mq.allclient 9.4.5.0). What a queue manager of IBM answers was never
seen.
"""

from collections.abc import Iterable
from dataclasses import replace
from enum import IntEnum
from typing import Any, Final

from mq_adapters.client_channel.attributes import MqinqRequest
from mq_adapters.client_channel.client_events import (
    AuthenticationAnswered,
    ClientEvent,
    Ended,
    HeartbeatAnswered,
    InitialDataAnswered,
    Replied,
)
from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode, UsageError
from mq_adapters.client_channel.events import HeartbeatAsked, Violated
from mq_adapters.client_channel.fields import BodyReader
from mq_adapters.client_channel.identification import ConAuthInfo, UserIdData
from mq_adapters.client_channel.initial_data import LOWEST_LEVEL, SMALLEST_TRANSMISSION_SIZE, InitialData
from mq_adapters.client_channel.joining import OverlongCall, UnfinishedCalls
from mq_adapters.client_channel.parameters import NOTHING, Content
from mq_adapters.client_channel.segments import (
    ISO_8859_1,
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
from mq_adapters.client_channel.server import FIRST_CONVERSATION, LONGEST_EARLY_SEGMENT_BYTES
from mq_adapters.client_channel.status import SocketAction, SocketActionType, StatusData
from mq_adapters.client_channel.verbs import (
    API_HEADER_BYTES,
    MQCC_FAILED,
    MQHO_NONE,
    ApiHeader,
    MqgetReply,
    MqgetRequest,
    read_reply,
)

_ORDER: Final = ByteOrder.BIG_ENDIAN
_ASKING: Final = ControlFlags1.WHOLE | ControlFlags1.CONFIRM_REQUEST
_CLOSING: Final = ControlFlags1.CLOSE_CHANNEL | ControlFlags1.REQUEST_CLOSE | ControlFlags1.ERROR
_OF_THE_SOCKET: Final = (SegmentType.HEARTBEAT, SegmentType.STATUS_DATA, SegmentType.SOCKET_ACTION)
#: What a reply may have beside the structures of its call, which it repeats: our choice.
_ROOM_BESIDE_BYTES: Final = 1_024
_NUMBER_BYTES: Final = 4


class ClientPhase(IntEnum):
    """The phase of a socket."""

    NEW = 0
    AWAIT_ANSWER = 1
    OPEN = 2
    CLOSED = 3


class ClientConnection:
    """The client's side of one socket. It is for one thread; what its methods return must be sent in their order."""

    def __init__(self, offer: InitialData) -> None:
        """`offer` is what the client can do, with the names of the channel and of the queue manager."""
        self.phase = ClientPhase.NEW
        self._offer = offer
        self._answer = offer
        self._reader = SegmentReader(LONGEST_EARLY_SEGMENT_BYTES)
        self._replies = UnfinishedCalls(longest_call_bytes=0, most_bytes=0)
        self._call: SegmentType | None = None
        self._request: Content = NOTHING
        self._is_authenticating = False

    @property
    def is_closed(self) -> bool:
        """Whether nothing more is read or sent."""
        return self.phase is ClientPhase.CLOSED

    @property
    def answer(self) -> InitialData:
        """What holds for the connection: level, sizes and heartbeat interval. The offer, before it is answered."""
        return self._answer

    # -- what the queue manager sends

    def receive(self, data: bytes) -> list[ClientEvent]:
        """The events of these bytes. A fault of the queue manager is the last one; then nothing more is read."""
        if self.is_closed:
            return []
        self._reader.take(data)
        events: list[ClientEvent] = []
        try:
            while (segment := self._reader.next_segment()) is not None:
                events += self._events_of(segment)
        except ChannelProtocolError as error:
            events.append(Violated(error, self._refusal(error.status_code)))
        return events

    def _events_of(self, segment: Segment) -> Iterable[ClientEvent]:
        if self.phase is not ClientPhase.OPEN:
            return [self._first_answer(segment)]
        self._check_form(segment)
        if segment.type == SegmentType.HEARTBEAT:
            return [self._heartbeat_event(segment)]
        if segment.type == SegmentType.STATUS_DATA:
            return self._status(segment)
        if segment.type in (SegmentType.SOCKET_ACTION, SegmentType.NOTIFICATION):
            return []  # a request to end softly, or that nothing is to be got: the next call tells
        return self._reply(segment)

    def _first_answer(self, segment: Segment) -> ClientEvent:
        if segment.form is not Form.TSH or segment.type not in (SegmentType.INITIAL_DATA, SegmentType.STATUS_DATA):
            raise _wrong_type(segment, f"phase {self.phase.name}")
        if segment.type == SegmentType.STATUS_DATA:
            status = StatusData.read(_body(segment))
            self.close()
            return Ended(status)
        self._accept(InitialData.read(_body(segment)))
        return InitialDataAnswered(self._answer)

    def _accept(self, answer: InitialData) -> None:
        offer = self._offer
        within = (
            LOWEST_LEVEL <= answer.level <= offer.level
            and SMALLEST_TRANSMISSION_SIZE <= answer.transmission_size <= offer.transmission_size
            and answer.maximum_message_length <= offer.maximum_message_length
            and answer.conversations_per_socket <= offer.conversations_per_socket
        )
        if not within:
            what = f"INITIAL_DATA of level {answer.level} is answered with more than was offered, or with too little"
            raise ChannelProtocolError(StatusCode.NEGOTIATION_FAILED, what)
        self._answer = answer
        self.phase = ClientPhase.OPEN

    def _check_form(self, segment: Segment) -> None:
        if segment.form is Form.TSHM:
            is_right = self._form is Form.TSHM and segment.conversation == FIRST_CONVERSATION
        else:
            is_right = segment.form is self._form_of_the_socket
        if segment.form is Form.TSHC and segment.type not in _OF_THE_SOCKET:
            is_right = False
        if not is_right:
            raise _wrong_type(segment, f"the form {segment.form.name}, conversation {segment.conversation}")

    def _heartbeat_event(self, segment: Segment) -> ClientEvent:
        if not segment.flags_1 & ControlFlags1.CONFIRM_REQUEST:
            return HeartbeatAnswered()
        return HeartbeatAsked(self._written(SegmentType.HEARTBEAT, self._form_of_the_socket))

    def _status(self, segment: Segment) -> Iterable[ClientEvent]:
        status = StatusData.read(_body(segment))
        if segment.flags_1 & _CLOSING:
            self.close()
            yield Ended(status)
        elif self._is_authenticating:
            self._is_authenticating = False
            yield AuthenticationAnswered()
        else:
            raise _wrong_type(segment, "no place")

    def _reply(self, segment: Segment) -> Iterable[ClientEvent]:
        call = self._call
        if call is None or segment.type != reply_type(call):
            raise _wrong_type(segment, "no call's reply" if call is None else f"the reply to {call.name}")
        whole = self._replies.take(segment)
        if whole is None:
            return
        if isinstance(whole, OverlongCall):
            what = f"the reply to {call.name} has {whole.call_bytes} bytes, more than it was given room for"
            raise ChannelProtocolError(StatusCode.PROTOCOL_LENGTH_ERROR, what)
        self._call = None
        yield self._replied(call, whole)

    def _replied(self, call: SegmentType, whole: Segment) -> Replied:
        body = _body(whole)
        header = ApiHeader.read(body)
        parameters: Any = NOTHING if header.completion_code == MQCC_FAILED else read_reply(call, body)
        if isinstance(self._request, MqgetRequest) and isinstance(parameters, MqgetReply):
            _check_data(parameters, self._request.buffer_length)
        if call is SegmentType.MQCONN and header.completion_code != MQCC_FAILED:
            self._reader.largest_segment_bytes = self._answer.transmission_size
        return Replied(verb=call, header=header, parameters=parameters)

    # -- what the client sends

    def begin(self) -> bytes:
        """The first segment: INITIAL_DATA."""
        if self.phase is not ClientPhase.NEW:
            raise UsageError(f"INITIAL_DATA is sent once, and the socket is in phase {self.phase.name}")
        self.phase = ClientPhase.AWAIT_ANSWER
        return self._written(SegmentType.INITIAL_DATA, Form.TSH, self._offer, flags=_ASKING)

    def assert_user(self, user: UserIdData) -> bytes:
        """The user of the client's operating system, right behind InitialDataAnswered. There is no answer."""
        self._must_be_idle()
        return self._written(SegmentType.USERID_DATA, self._form, user)

    def authenticate(self, credentials: ConAuthInfo, ccsid: int = ISO_8859_1) -> bytes:
        """User and password, in clear. The answer is AuthenticationAnswered."""
        self._must_be_idle()
        self._is_authenticating = True
        return self._written(SegmentType.CONAUTH_INFO, self._form, credentials, ccsid=ccsid)

    def call(self, verb: SegmentType, parameters: Content = NOTHING, *, handle: int = MQHO_NONE) -> bytes:
        """A call, in as many segments as it needs. The answer is Replied."""
        self._must_be_idle()
        written = parameters.write(_ORDER)
        header_bytes = self._form.header_bytes + API_HEADER_BYTES
        room = max(len(written), _reply_bytes(parameters))
        header = ApiHeader(length=header_bytes + room, object_handle=handle)
        segment = self._segment(verb, self._form, header.write(_ORDER) + written)
        self._call, self._request = verb, parameters
        longest = room + API_HEADER_BYTES + _ROOM_BESIDE_BYTES
        self._replies = UnfinishedCalls(longest_call_bytes=longest, most_bytes=longest)
        return write_call(segment, self._answer.transmission_size)

    def heartbeat(self) -> bytes:
        """Asks whether the queue manager is still there; it answers HeartbeatAnswered, also while a call waits."""
        return self._written(SegmentType.HEARTBEAT, self._form_of_the_socket, flags=_ASKING)

    def goodbye(self) -> bytes:
        """The last segment, behind the reply to MQDISC. Then close: there is no answer."""
        if self.phase is not ClientPhase.OPEN:
            return b""
        is_alone = self._form is Form.TSH
        segment_type = SegmentType.STATUS_DATA if is_alone else SegmentType.SOCKET_ACTION
        end = SocketAction(conversation=FIRST_CONVERSATION, type=SocketActionType.END_CONVERSATION)
        content = NOTHING if is_alone else end
        data = self._written(segment_type, self._form_of_the_socket, content, flags=ControlFlags1.GOODBYE)
        self.close()
        return data

    # -- how it is written

    @property
    def _form(self) -> Form:
        return Form.TSHM if self._answer.conversations_per_socket else Form.TSH

    @property
    def _form_of_the_socket(self) -> Form:
        return Form.TSHC if self._answer.conversations_per_socket else Form.TSH

    def _segment(self, segment_type: int, form: Form, body: bytes) -> Segment:
        conversation = FIRST_CONVERSATION if form is Form.TSHM else 0
        return Segment(type=segment_type, body=body, form=form, conversation=conversation, byte_order=_ORDER)

    def _written(
        self,
        segment_type: int,
        form: Form,
        content: Content = NOTHING,
        *,
        flags: ControlFlags1 = ControlFlags1.WHOLE,
        ccsid: int = ISO_8859_1,
    ) -> bytes:
        body = content.write(_ORDER)
        if form is Form.TSHM:
            body = padded(body)
        segment = self._segment(segment_type, form, body)
        return write_segment(replace(segment, flags_1=flags, ccsid=ccsid))

    def _refusal(self, status_code: StatusCode) -> bytes:
        """Tells the queue manager what is wrong, once both have agreed on how segments look."""
        data = b""
        if self.phase is ClientPhase.OPEN:
            status, form = StatusData(status_code), self._form_of_the_socket
            data = self._written(SegmentType.STATUS_DATA, form, status, flags=ControlFlags1.REFUSAL)
        self.close()
        return data

    def close(self) -> None:
        """The socket is gone: nothing more is read or sent."""
        self.phase = ClientPhase.CLOSED
        self._call = None
        self._reader = SegmentReader()
        self._replies = UnfinishedCalls(longest_call_bytes=0, most_bytes=0)

    def _must_be_idle(self) -> None:
        if self.phase is not ClientPhase.OPEN or self._call is not None or self._is_authenticating:
            raise UsageError(f"one call after another, and the socket is in phase {self.phase.name}")


def _reply_bytes(parameters: Content) -> int:
    """The room that the reply to a call needs behind its header, where it is more than the call itself has."""
    if isinstance(parameters, MqgetRequest):
        structures = (parameters.message_descriptor, parameters.get_message_options)
        return sum(len(each.write(_ORDER)) for each in structures) + _NUMBER_BYTES + parameters.buffer_length
    if isinstance(parameters, MqinqRequest):
        return len(parameters.reply().write(_ORDER))
    return 0


def _check_data(reply: MqgetReply, buffer_bytes: int) -> None:
    """A message is as long as the reply says, or as long as the buffer where it is longer than that."""
    expected = min(reply.data_length, buffer_bytes)
    if reply.data_length < 0 or not expected <= len(reply.data) < expected + _NUMBER_BYTES:
        what = f"a message of {reply.data_length} bytes comes with {len(reply.data)} of them for {buffer_bytes}"
        raise ChannelProtocolError(StatusCode.PROTOCOL_LENGTH_ERROR, what)


def _body(segment: Segment) -> BodyReader:
    return BodyReader(segment.body, segment.byte_order)


def _wrong_type(segment: Segment, where: str) -> ChannelProtocolError:
    what = f"a segment of type {segment.type:02X} came in {where}"
    return ChannelProtocolError(StatusCode.PROTOCOL_SEGMENT_TYPE, what)
