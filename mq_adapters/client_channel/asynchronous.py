"""Messages for listeners: REQUEST_MSGS asks for them, ASYNC_MESSAGE brings one, without a call for each.

    REQUEST_MSGS    0  4  version              ASYNC_MESSAGE    0  4  version
                    4  4  object handle                         4  4  object handle
                    8  4  received bytes                        8  4  message index
                   12  4  requested bytes                      12  4  global message index: 1, 2, ...
                   16  4  longest message                      16  4  bytes of data in this segment
                   20  4  get options                          20  2  segment index: 0, 1, ...
                   24  4  wait interval                        22  2  selection index
                   28  4  queue status                         --- in the first segment
                   32  4  flags                                24  4  reason code
                   36  4  global message index                 28  4  total length, 32 actual length
                   --- with flag 10 hex: a selection           36 16  message token
                   40  2  selection index                      52  2  status
                   42  2  version of MQMD                      54  1  length of the queue's name
                   44  4  CCSID, 48 encoding                   55  n  the name, and zeros up to a multiple of 4
                   52  4  sequence number, 56 offset              364  MQMD
                   60  4  match options                        --- in each segment
                   64     MsgId, CorrelId, GroupId, token             data, and zeros up to a multiple of 4

An identifier stands in a selection if its match option is set. Unlike a call, a long ASYNC_MESSAGE has its first 24
bytes in each of its segments.
Source: IBM MQ's client as it was observed (com.ibm.mq.allclient 9.4.5.0); names: Wireshark's MQ dissector.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode, UsageError
from mq_adapters.client_channel.fields import BodyReader, Record, byte, integer, octets, short
from mq_adapters.client_channel.message_descriptors import Mqmd
from mq_adapters.client_channel.segments import (
    LARGEST_SEGMENT_BYTES,
    ByteOrder,
    ControlFlags1,
    Segment,
    SegmentType,
    padded,
    padded_length,
    room_of,
)
from mq_adapters.client_channel.structures import MQMO_MATCH_CORREL_ID, MQMO_MATCH_MSG_ID, MQMO_MATCH_MSG_TOKEN
from mq_adapters.mqmd import MQMD_BYTES, MQMD_VERSION_2

MQMO_MATCH_GROUP_ID: Final = 4
#: Flag of REQUEST_MSGS: a selection follows. What the other flags mean is not known.
SELECTION_FOLLOWS: Final = 0x10


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Record):
    """Which messages a listener gets, and the form of their descriptors. Only identifiers in `match_options` count."""

    selection_index: int = short()
    md_version: int = short(MQMD_VERSION_2)
    ccsid: int = integer()
    encoding: int = integer()
    msg_seq_number: int = integer()
    offset: int = integer()
    match_options: int = integer()
    msg_id: bytes = bytes(24)
    correl_id: bytes = bytes(24)
    group_id: bytes = bytes(24)
    msg_token: bytes = bytes(16)

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads a selection, and the identifiers that its match options name."""
        known = super(Selection, cls).read(body)
        options = known.match_options
        named: dict[str, Any] = {
            each.name: body.take(each.length, each.name) for each in _IDENTIFIERS if options & each.match_option
        }
        return replace(known, **named)

    def write(self, byte_order: ByteOrder) -> bytes:
        named = (getattr(self, each.name) for each in _IDENTIFIERS if self.match_options & each.match_option)
        return super(Selection, self).write(byte_order) + b"".join(named)


class _Identifier(NamedTuple):
    match_option: int
    name: str
    length: int


_IDENTIFIERS: Final = (
    _Identifier(MQMO_MATCH_MSG_ID, "msg_id", 24),
    _Identifier(MQMO_MATCH_CORREL_ID, "correl_id", 24),
    _Identifier(MQMO_MATCH_GROUP_ID, "group_id", 24),
    _Identifier(MQMO_MATCH_MSG_TOKEN, "msg_token", 16),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMsgs(Record):
    """REQUEST_MSGS: the client has received so many bytes, and has room for so many more.

    With `requested_bytes` 1 one message may be under way. A request without a selection goes on with the last one of
    its handle.
    """

    version: int = integer(1)
    object_handle: int = integer()
    received_bytes: int = integer()
    requested_bytes: int = integer(1)
    max_msg_length: int = integer(-1)
    get_options: int = integer()
    wait_interval: int = integer()
    queue_status: int = integer()
    flags: int = integer(1)
    global_message_index: int = integer()
    selection: Selection | None = None

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads the request, and its selection if its flags say so."""
        known = super(RequestMsgs, cls).read(body)
        if not known.flags & SELECTION_FOLLOWS:
            return known
        return replace(known, selection=Selection.read(body))

    def write(self, byte_order: ByteOrder) -> bytes:
        selection = b"" if self.selection is None else self.selection.write(byte_order)
        return super(RequestMsgs, self).write(byte_order) + selection


class Consumer:
    """The listener of one object handle: what it selects, and how many bytes it has room for."""

    __slots__ = ("credit_bytes", "get_options", "object_handle", "request", "selection")

    def __init__(self, object_handle: int) -> None:
        self.object_handle = object_handle
        self.selection = Selection()
        self.get_options = 0
        #: Request number of the last REQUEST_MSGS; each ASYNC_MESSAGE has it.
        self.request = 0
        self.credit_bytes = 0

    def take(self, request: int, asked: RequestMsgs) -> None:
        """A REQUEST_MSGS has come, in a segment with this request number."""
        self.request = request
        self.get_options = asked.get_options
        self.selection = asked.selection or self.selection
        self.credit_bytes += max(0, asked.requested_bytes)

    @property
    def may_get(self) -> bool:
        """Whether it has room for one more message, of any length."""
        return self.credit_bytes > 0

    def sent(self, data_bytes: int) -> None:
        """A message has been sent. One that is larger than the room uses it up, and no more."""
        self.credit_bytes = max(0, self.credit_bytes - MQMD_BYTES - data_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prefix(Record):
    """The first 24 bytes of each segment of ASYNC_MESSAGE."""

    version: int = integer(1)
    object_handle: int = integer()
    message_index: int = integer()
    global_message_index: int = integer()
    segment_bytes: int = integer()
    segment_index: int = short()
    selection_index: int = short()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beginning(Record):
    """What the first segment has behind its prefix, up to the queue's name."""

    reason_code: int = integer()
    total_length: int = integer()
    actual_length: int = integer()
    msg_token: bytes = octets(16)
    status: int = short()
    name_bytes: int = byte()


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncMessage:
    """ASYNC_MESSAGE. `global_message_index` counts 1, 2, ... in a conversation; `selection_index` is the client's."""

    object_handle: int
    global_message_index: int
    selection_index: int
    msg_token: bytes
    resolved_q_name: str
    message_descriptor: Mqmd
    data: bytes = field(default=b"", repr=False)
    message_index: int = 0
    reason_code: int = 0
    status: int = 0

    def segments(self, segment: Segment, largest_segment_bytes: int = LARGEST_SEGMENT_BYTES) -> Iterator[Segment]:
        """Its segments, each like `segment` but for type, flags and body. UsageError if its beginning does not fit."""
        order, data = segment.byte_order, self.data
        room = room_of(segment.form, largest_segment_bytes) - _PREFIX_BYTES
        beginning = self._beginning(order)
        if len(beginning) > room:
            raise UsageError(f"a segment of {largest_segment_bytes} bytes has no room for a message's descriptor")
        start, index, flags = 0, 0, ControlFlags1.FIRST
        while True:
            part = data[start : start + room - len(beginning)]
            start += len(part)
            flags |= ControlFlags1.LAST if start == len(data) else ControlFlags1.NONE
            body = self._prefix(len(part), index).write(order) + beginning + padded(part)
            yield replace(segment, type=SegmentType.ASYNC_MESSAGE, flags_1=flags, body=body)
            if start == len(data):
                return
            beginning, flags, index = b"", ControlFlags1.NONE, index + 1

    def _prefix(self, segment_bytes: int, segment_index: int) -> _Prefix:
        return _Prefix(
            object_handle=self.object_handle,
            message_index=self.message_index,
            global_message_index=self.global_message_index,
            segment_bytes=segment_bytes,
            segment_index=segment_index,
            selection_index=self.selection_index,
        )

    def _beginning(self, byte_order: ByteOrder) -> bytes:
        name = self.resolved_q_name.encode("iso-8859-1", errors="replace")
        known = _Beginning(
            reason_code=self.reason_code,
            total_length=len(self.data),
            actual_length=len(self.data),
            msg_token=self.msg_token,
            status=self.status,
            name_bytes=len(name),
        )
        return known.write(byte_order) + _filled_up(name) + self.message_descriptor.write(byte_order)


_PREFIX_BYTES: Final = 24
#: Bytes in front of the name that count for its filling: status and length.
_BEFORE_NAME_BYTES: Final = 3


def _filled_up(name: bytes) -> bytes:
    return name.ljust(_name_place(len(name)), b"\0")


def _name_place(name_bytes: int) -> int:
    return padded_length(_BEFORE_NAME_BYTES + name_bytes) - _BEFORE_NAME_BYTES


class AsyncMessageReader:
    """Joins the segments of ASYNC_MESSAGE of one conversation, as a client does. It holds one message at most."""

    __slots__ = ("_data", "_message", "_total_bytes", "longest_message_bytes")

    def __init__(self, longest_message_bytes: int) -> None:
        self.longest_message_bytes = longest_message_bytes
        self._message: AsyncMessage | None = None
        self._data = bytearray()
        self._total_bytes = 0

    def take(self, segment: Segment) -> AsyncMessage | None:
        """The message that this segment completes, or None. ChannelProtocolError if it fits nowhere."""
        body = BodyReader(segment.body, segment.byte_order)
        prefix = _Prefix.read(body)
        if segment.flags_1 & ControlFlags1.FIRST:
            self._begin(prefix, body)
        elif self._message is None or prefix.global_message_index != self._message.global_message_index:
            raise _wrong(f"a segment goes on with message {prefix.global_message_index}, which has no beginning")
        self._data += body.take(prefix.segment_bytes, "data of ASYNC_MESSAGE")
        if len(self._data) > self._total_bytes:
            raise _wrong(f"a message of {self._total_bytes} bytes has more than these")
        return self._finished() if segment.flags_1 & ControlFlags1.LAST else None

    def _begin(self, prefix: _Prefix, body: BodyReader) -> None:
        known = _Beginning.read(body)
        name = body.take(_name_place(known.name_bytes), "a queue's name")[: known.name_bytes]
        if not 0 <= known.total_length <= self.longest_message_bytes:
            raise _wrong(f"a message of {known.total_length} bytes")
        self._total_bytes = known.total_length
        self._data = bytearray()
        self._message = AsyncMessage(
            object_handle=prefix.object_handle,
            message_index=prefix.message_index,
            global_message_index=prefix.global_message_index,
            selection_index=prefix.selection_index,
            reason_code=known.reason_code,
            status=known.status,
            msg_token=known.msg_token,
            resolved_q_name=name.decode("iso-8859-1"),
            message_descriptor=Mqmd.read(body),
        )

    def _finished(self) -> AsyncMessage:
        message, self._message = self._message, None
        assert message is not None
        if len(self._data) != self._total_bytes:
            raise _wrong(f"a message of {self._total_bytes} bytes ends after {len(self._data)}")
        return replace(message, data=bytes(self._data))


def _wrong(what: str) -> ChannelProtocolError:
    return ChannelProtocolError(StatusCode.PROTOCOL_SEGMENT_ERROR, what)
