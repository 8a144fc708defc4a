"""Segments: the pieces of the byte stream, each a header and a body, and long calls cut into several of them.

    TSH, TSHC   TSHM
     0  4        0  4   eye-catcher `TSH `, `TSHC`, `TSHM`, in ASCII
     4  4        4  4   length of the segment with its header    always big-endian
                 8  4   conversation                             always big-endian
                12  4   request                                  always big-endian
     8  1       16  1   byte order of all other integers of the segment: 1 big-endian, 2 little-endian
     9  1       17  1   segment type
    10  1       18  1   control flags 1
    11  1       19  1   control flags 2
    12  8       20  8   identifier of a logical unit of work: zeros
    20  4       28  4   encoding
    24  2       32  2   CCSID of the character fields
    26  2       34  2   reserved: zeros
    28          36      body

The two segments of INITIAL_DATA are TSH. Where the two sides then agree on no conversation for each socket, all others
are TSH too. Otherwise segments of a conversation are TSHM, and segments about the whole socket TSHC.
A call that is longer than a segment is cut: flags FIRST, none, LAST, and each segment has its own header. Bodies are
joined as they are. Segments of other conversations may come between them.
Source: IBM MQ's client as it was observed (com.ibm.mq.allclient 9.4.5.0); names: Wireshark's MQ dissector.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum, IntFlag
from typing import Final

from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode, UsageError

#: The most bytes of a segment, header and all, before anything is negotiated and after it (7FEC).
LARGEST_SEGMENT_BYTES: Final = 32_748
#: Strings behind a structure, the data of a message, and whatever a server sends, are filled up to a multiple of this.
#: IBM's client reads numbers from places that it counts from the beginning of its buffer. Behind a segment of another
#: length it reads the next one two bytes too early where both have come at once. A TSH has one answer at a time, which
#: is not filled up.
ALIGNMENT: Final = 4
#: MQENC_NATIVE of a Java client: integers and floats big-endian.
MQENC_BIG_ENDIAN: Final = 273
ISO_8859_1: Final = 819


class ByteOrder(IntEnum):
    """Byte order of a segment's integers, as its header says it."""

    BIG_ENDIAN = 1
    LITTLE_ENDIAN = 2

    @property
    def code(self) -> str:
        """The same in the language of `struct`."""
        return ">" if self is ByteOrder.BIG_ENDIAN else "<"


class Form(Enum):
    """The eye-catcher of a segment, which says which header it has."""

    TSH = b"TSH "
    TSHM = b"TSHM"
    TSHC = b"TSHC"

    @property
    def header_bytes(self) -> int:
        return 36 if self is Form.TSHM else 28


class SegmentType(IntEnum):
    """What a segment is. A reply has the type of its call + 10 hex."""

    INITIAL_DATA = 0x01
    RESYNC_DATA = 0x02
    RESET_DATA = 0x03
    MESSAGE_DATA = 0x04
    STATUS_DATA = 0x05
    SECURITY_DATA = 0x06
    PING_DATA = 0x07
    USERID_DATA = 0x08
    HEARTBEAT = 0x09
    CONAUTH_INFO = 0x0A
    RENEGOTIATE_DATA = 0x0B
    SOCKET_ACTION = 0x0C
    ASYNC_MESSAGE = 0x0D
    REQUEST_MSGS = 0x0E
    NOTIFICATION = 0x0F

    MQCONN = 0x81
    MQDISC = 0x82
    MQOPEN = 0x83
    MQCLOSE = 0x84
    MQGET = 0x85
    MQPUT = 0x86
    MQPUT1 = 0x87
    MQSET = 0x88
    MQINQ = 0x89
    MQCMIT = 0x8A
    MQBACK = 0x8B
    SPI = 0x8C
    MQSTAT = 0x8D
    MQSUB = 0x8E
    MQSUBRQ = 0x8F

    XA_START = 0xA1
    XA_END = 0xA2
    XA_OPEN = 0xA3
    XA_CLOSE = 0xA4
    XA_PREPARE = 0xA5
    XA_COMMIT = 0xA6
    XA_ROLLBACK = 0xA7
    XA_FORGET = 0xA8
    XA_RECOVER = 0xA9
    XA_COMPLETE = 0xAA


#: The calls of the MQI and of XA; the types from 91 and B1 hex are their replies.
CALLS: Final = frozenset(each for each in SegmentType if each >= SegmentType.MQCONN)
_TO_REPLY: Final = 0x10


def reply_type(call_type: int) -> int:
    """The segment type of the reply to a call."""
    return call_type + _TO_REPLY


class ControlFlags1(IntFlag):
    """Control flags 1."""

    NONE = 0
    CONFIRM_REQUEST = 0x01
    ERROR = 0x02
    REQUEST_CLOSE = 0x04
    CLOSE_CHANNEL = 0x08
    FIRST = 0x10
    LAST = 0x20
    REQUEST_ACCEPTED = 0x40
    DLQ_USED = 0x80

    WHOLE = FIRST | LAST
    #: STATUS_DATA with which a connection is refused.
    REFUSAL = WHOLE | CLOSE_CHANNEL | ERROR
    #: The last segment of a connection that ends in order.
    GOODBYE = WHOLE | CLOSE_CHANNEL


class ControlFlags2(IntFlag):
    """Control flags 2."""

    NONE = 0
    HEADER_COMPRESSED = 0x01
    MESSAGE_COMPRESSED = 0x02
    CSH = 0x04
    COMMIT_INTERVAL = 0x08


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A segment, or a whole call whose segments were joined. `type` is a `SegmentType` where it is known.

    `conversation` and `request` are 0 in the forms TSH and TSHC, which have no place for them.
    """

    type: int
    body: bytes = field(default=b"", repr=False)  # it may hold a password
    form: Form = Form.TSHM
    conversation: int = 0
    request: int = 0
    byte_order: ByteOrder = ByteOrder.BIG_ENDIAN
    flags_1: ControlFlags1 = ControlFlags1.WHOLE
    flags_2: ControlFlags2 = ControlFlags2.NONE
    encoding: int = MQENC_BIG_ENDIAN
    ccsid: int = ISO_8859_1


#: Eye-catcher and length.
_BEGINNING: Final = struct.Struct(">4sI")
_CONVERSATION_AND_REQUEST: Final = struct.Struct(">II")
#: From the byte order on, whose own place has one byte.
_REST: Final = {order: struct.Struct(order.code + "BBBB8xiH2x") for order in ByteOrder}
_FORMS: Final = {form.value: form for form in Form}
_EYE_CATCHER_BYTES: Final = 4
#: "TSH" in EBCDIC.
_EBCDIC: Final = b"\xe3\xe2\xc8"


def write_segment(segment: Segment) -> bytes:
    """The bytes of one segment. UsageError for a body that does not fit; `cut` makes several segments of it."""
    form = segment.form
    length = form.header_bytes + len(segment.body)
    if length > LARGEST_SEGMENT_BYTES:
        raise UsageError(f"a segment of {length} bytes, at most {LARGEST_SEGMENT_BYTES} are allowed")
    numbers = b"" if form is not Form.TSHM else _CONVERSATION_AND_REQUEST.pack(segment.conversation, segment.request)
    rest = _REST[segment.byte_order].pack(
        segment.byte_order, segment.type, segment.flags_1, segment.flags_2, segment.encoding, segment.ccsid
    )
    return b"".join((_BEGINNING.pack(form.value, length), numbers, rest, segment.body))


class SegmentReader:
    """Cuts segments out of the bytes of a socket. It holds at most one segment that is not complete."""

    __slots__ = ("_data", "largest_segment_bytes")

    def __init__(self, largest_segment_bytes: int = LARGEST_SEGMENT_BYTES) -> None:
        self._data = bytearray()
        self.largest_segment_bytes = largest_segment_bytes

    @property
    def unfinished_bytes(self) -> int:
        """The bytes that have arrived of a segment that is not complete."""
        return len(self._data)

    def feed(self, data: bytes) -> list[Segment]:
        """The segments that these bytes complete. Raises ChannelProtocolError, and then no segment is returned."""
        self.take(data)
        segments = []
        while (segment := self.next_segment()) is not None:
            segments.append(segment)
        return segments

    def take(self, data: bytes) -> None:
        """Take bytes of the socket. Call `next_segment` until it gives None before more bytes are taken."""
        self._data += data

    def next_segment(self) -> Segment | None:
        """The next complete segment, or None. Raises ChannelProtocolError as soon as the header is wrong."""
        data = self._data
        if len(data) < _BEGINNING.size:
            _check_beginning(bytes(data[:_EYE_CATCHER_BYTES]))
            return None
        eye_catcher, length = _BEGINNING.unpack_from(data)
        _check_beginning(eye_catcher)
        form = _FORMS[eye_catcher]
        if not form.header_bytes <= length <= self.largest_segment_bytes:
            raise ChannelProtocolError(
                StatusCode.PROTOCOL_LENGTH_ERROR,
                f"a segment says that it has {length} bytes, not {form.header_bytes} to {self.largest_segment_bytes}",
            )
        if len(data) < length:
            return None
        segment = bytes(memoryview(data)[:length])
        del data[:length]
        return _read(form, segment)


def _check_beginning(beginning: bytes) -> None:
    """Raises an error for the first bytes that no eye-catcher begins with."""
    if any(eye_catcher.startswith(beginning) for eye_catcher in _FORMS):
        return
    if beginning[: len(_EBCDIC)] == _EBCDIC[: len(beginning)]:
        raise ChannelProtocolError(StatusCode.CCSID_NOT_SUPPORTED, "a segment is in EBCDIC, which is not read here")
    raise ChannelProtocolError(StatusCode.PROTOCOL_ID_ERROR, f"a segment begins with {beginning.hex()}, not with TSH")


def _read(form: Form, data: bytes) -> Segment:
    position = _BEGINNING.size
    conversation = request = 0
    if form is Form.TSHM:
        conversation, request = _CONVERSATION_AND_REQUEST.unpack_from(data, position)
        position += _CONVERSATION_AND_REQUEST.size
    layout = _REST.get(data[position])  # type: ignore[call-overload]  # an IntEnum is found by its number
    if layout is None:
        raise ChannelProtocolError(StatusCode.ENCODING_INVALID, f"a segment has the byte order {data[position]}")
    byte_order, segment_type, flags_1, flags_2, encoding, ccsid = layout.unpack_from(data, position)
    return Segment(
        type=_known_type(segment_type),
        body=data[form.header_bytes :],
        form=form,
        conversation=conversation,
        request=request,
        byte_order=ByteOrder(byte_order),
        flags_1=ControlFlags1(flags_1),
        flags_2=ControlFlags2(flags_2),
        encoding=encoding,
        ccsid=ccsid,
    )


_TYPES: Final = {int(each): each for each in SegmentType}


def _known_type(segment_type: int) -> int:
    return _TYPES.get(segment_type, segment_type)


def padded_length(length: int) -> int:
    """The next multiple of four."""
    return length + -length % ALIGNMENT


def padded(data: bytes) -> bytes:
    """The bytes, with zeros up to a multiple of four."""
    return data.ljust(padded_length(len(data)), b"\0")


def room_of(form: Form, largest_segment_bytes: int) -> int:
    """The bytes of a body for which a segment has room: a multiple of four, see `ALIGNMENT`. It may be negative."""
    return (largest_segment_bytes - form.header_bytes) // ALIGNMENT * ALIGNMENT


def cut(call: Segment, largest_segment_bytes: int = LARGEST_SEGMENT_BYTES) -> Iterator[Segment]:
    """The segments of a call or reply of any length. `largest_segment_bytes` is the negotiated transmission size."""
    room = room_of(call.form, largest_segment_bytes)
    if room <= 0:
        raise UsageError(f"a segment of {largest_segment_bytes} bytes has no room for a body")
    body = call.body
    if len(body) <= room:
        yield call
        return
    others = call.flags_1 & ~ControlFlags1.WHOLE
    for start in range(0, len(body), room):
        place = ControlFlags1.NONE if start else ControlFlags1.FIRST
        if start + room >= len(body):
            place = ControlFlags1.LAST
        yield replace(call, body=body[start : start + room], flags_1=others | place)


def write_call(call: Segment, largest_segment_bytes: int = LARGEST_SEGMENT_BYTES) -> bytes:
    """The bytes of a call or reply of any length, in as many segments as it needs."""
    return b"".join(map(write_segment, cut(call, largest_segment_bytes)))
