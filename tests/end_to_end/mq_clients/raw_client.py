"""A client on a raw socket, which sends whatever segments a test says, and calls of the MQI as IBM's client does."""

import socket
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from mq_adapters.client_channel.fields import BodyReader
from mq_adapters.client_channel.identification import ConAuthInfo, UserIdData
from mq_adapters.client_channel.initial_data import InitialData
from mq_adapters.client_channel.message_descriptors import Mqmd
from mq_adapters.client_channel.parameters import NOTHING, Content
from mq_adapters.client_channel.segments import (
    ByteOrder,
    ControlFlags1,
    Form,
    Segment,
    SegmentReader,
    SegmentType,
    write_call,
    write_segment,
)
from mq_adapters.client_channel.status import StatusData
from mq_adapters.client_channel.structures import Fopa, Mqgmo, Mqod, Mqpmo
from mq_adapters.client_channel.verbs import (
    ApiHeader,
    Mqclose,
    Mqconn,
    MqgetRequest,
    Mqopen,
    MqputRequest,
    read_reply,
)
from mq_adapters.message import Message, MessageDescriptor
from tests.end_to_end.mq_clients.house import PATIENCE_S, TOKEN

ORDER = ByteOrder.BIG_ENDIAN
#: A reply has the type of its call and this.
_TO_REPLY = 0x10


def offer(channel: str = "APP.SVRCONN", **changes: Any) -> Segment:
    """INITIAL_DATA with ten conversations, as IBM's client sends it."""
    initial = InitialData(
        channel_name=channel, maximum_message_length=104_857_600, conversations_per_socket=10, heartbeat_interval_s=1
    )
    body = replace(initial, **changes).write(ORDER)
    flags = ControlFlags1.WHOLE | ControlFlags1.CONFIRM_REQUEST
    return Segment(type=SegmentType.INITIAL_DATA, form=Form.TSH, flags_1=flags, body=body)


def of_socket(segment_type: int, body: bytes = b"", flags: int = ControlFlags1.WHOLE) -> bytes:
    """A segment about the whole socket."""
    return write_segment(Segment(type=segment_type, form=Form.TSHC, flags_1=ControlFlags1(flags), body=body))


def of_conversation(segment_type: int, content: Content | bytes = NOTHING, conversation: int = 1) -> bytes:
    """A segment of a conversation, without an API header."""
    body = content if isinstance(content, bytes) else content.write(ORDER)
    return write_segment(Segment(type=segment_type, conversation=conversation, body=body))


def call(verb: int, parameters: Content = NOTHING, handle: int = -1, conversation: int = 1) -> bytes:
    """A call of the MQI, in as many segments as it needs."""
    body = ApiHeader(length=32_748, object_handle=handle).write(ORDER) + parameters.write(ORDER)
    return write_call(Segment(type=verb, conversation=conversation, body=body))


def descriptor(**fields: Any) -> Mqmd:
    """The MQMD of a message with these fields of MessageDescriptor."""
    return Mqmd.of(Message(MessageDescriptor().replace(**fields), b""), 2)


def opening(name: str, options: int, **of_object: Any) -> Mqopen:
    """The parameters of MQOPEN."""
    return Mqopen(object_descriptor=Mqod(object_name=name, **of_object), options=options, fopa=Fopa())


def putting(data: bytes = b"goods", options: int = 4, **fields: Any) -> MqputRequest:
    """The parameters of MQPUT, outside of a unit of work."""
    return MqputRequest(message_descriptor=descriptor(**fields), put_message_options=Mqpmo(options=options), data=data)


def getting(options: int = 4, wait_ms: int = 0, room: int = 65_536, **fields: Any) -> MqgetRequest:
    """The parameters of MQGET, outside of a unit of work, for any message, or for one with these identifiers."""
    got = Mqgmo(version=4, options=options, wait_interval=wait_ms, match_options=3 if fields else 0)
    return MqgetRequest(message_descriptor=descriptor(**fields), get_message_options=got, buffer_length=room)


class RawClient:
    """A socket. `sent` says what comes; nothing is sent by itself but in `connect`."""

    def __init__(self, port: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", int(port)), timeout=PATIENCE_S)
        self._reader = SegmentReader()
        self._arrived: list[Segment] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def next(self) -> Segment | None:
        """The next segment; None at the end of the connection."""
        while not self._arrived:
            try:
                data = self.socket.recv(65_536)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self._arrived += self._reader.feed(data)
        return self._arrived.pop(0)

    def expect(self, segment_type: int) -> Segment:
        """The next segment, which must be of this type."""
        found = self.next()
        assert found is not None, "the gateway has ended the connection"
        assert found.type == segment_type, found
        return found

    def end(self) -> int | None:
        """Reads to the end of the connection; the status code that the gateway gave, if any."""
        code = None
        while (segment := self.next()) is not None:
            if segment.type == SegmentType.STATUS_DATA:
                code = StatusData.read(BodyReader(segment.body, segment.byte_order)).code
        return code

    def send_offer(self, channel: str, **changes: Any) -> None:
        """Begins the set-up. Its answer must still be read."""
        self.send(write_segment(offer(channel, **changes)))

    def negotiate(self, channel: str = "APP.SVRCONN", **changes: Any) -> InitialData:
        self.send_offer(channel, **changes)
        answer = self.expect(SegmentType.INITIAL_DATA)
        return InitialData.read(BodyReader(answer.body, answer.byte_order))

    def connect(
        self, *, channel: str = "APP.SVRCONN", appl_name: str = "raw", user: str = "billing", password: str = TOKEN
    ) -> Self:
        """The set-up of IBM's client, to the end of MQCONN."""
        self.negotiate(channel)
        assert self.log_in(user, password, appl_name=appl_name) == 0
        return self

    def log_in(self, user: str = "", password: str = "", *, appl_name: str = "raw") -> int:
        """The reason code of MQCONN, with a user and a password or without them."""
        self.send(of_conversation(SegmentType.USERID_DATA, UserIdData(user="ROOT", long_user="root")))
        if user:
            self.show(user, password)
            self.expect(SegmentType.STATUS_DATA)
        return int(self.ask(SegmentType.MQCONN, Mqconn(appl_name=appl_name))[0].reason_code)

    def show(self, user: str, password: str) -> None:
        """Sends a user and a password, whose answer must still be read."""
        shown = ConAuthInfo(user=user.encode(), password=password.encode())
        self.send(of_conversation(SegmentType.CONAUTH_INFO, shown))

    def answer(self, verb: int) -> tuple[ApiHeader, Any]:
        """The reply to a call: its header and its parameters; of a refused one only the header."""
        first = self.expect(verb + _TO_REPLY)
        body, flags = first.body, first.flags_1
        while not flags & ControlFlags1.LAST:
            more = self.expect(verb + _TO_REPLY)
            body, flags = body + more.body, more.flags_1
        reader = BodyReader(body, first.byte_order)
        header = ApiHeader.read(reader)
        return header, None if header.completion_code == 2 else read_reply(verb, reader)

    def ask(self, verb: int, parameters: Content = NOTHING, handle: int = -1, conversation: int = 1) -> Any:
        """A call and its answer: header and parameters."""
        self.send(call(verb, parameters, handle, conversation))
        return self.answer(verb)

    def open(self, name: str, options: int, **of_object: Any) -> int:
        """The handle of an open queue."""
        header, _ = self.ask(SegmentType.MQOPEN, opening(name, options, **of_object))
        assert header.completion_code == 0, header
        return int(header.object_handle)

    def put(self, handle: int, data: bytes = b"goods", **fields: Any) -> None:
        header, _ = self.ask(SegmentType.MQPUT, putting(data, **fields), handle)
        assert header.completion_code == 0, header

    def close(self, handle: int) -> None:
        header, _ = self.ask(SegmentType.MQCLOSE, Mqclose(), handle)
        assert header.completion_code == 0, header
