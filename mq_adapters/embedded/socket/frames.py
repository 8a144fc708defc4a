"""The frames between an MQ application and the gateway, over the Unix socket in the data folder.

Length-prefixed, without pickle or padding between fields: a C program can speak it. Every integer is unsigned and
little-endian, like those of the MQMD beside them. u8, u32, u64: 1, 4, 8 bytes. name: 48 bytes, blank padded. id: 24.
text: u32 length and UTF-8. message: u32 length, then MQMD (364 bytes, mq_adapters/mqmd.py) and body.

    request   0  u32  length of what follows        answer   0  u32  length of what follows
              4  u8   verb                                   4  u8   verb of the request
              5  u32  request number                         5  u32  number of the request
              9       fields                                 9  u32  completion code: 0 done, 2 failed
                                                            13  u32  reason code, 0 where done
                                                            17       fields, or a text where failed

    verb              request fields                                              answer fields
     1  HELLO         u32 protocol version (1 or 2), text application name, at 2  name of the queue manager,
                      text token                                                  12 bytes store incarnation
     2  PUT           name, message                                               id (MsgId)
     3  GET           name, u8 match, id MsgId, id CorrelId, u32 wait (ms)        message
     4  BROWSE_OPEN   name, u8 match, id MsgId, id CorrelId                       u32 browse
     5  BROWSE_NEXT   u32 browse                                                  u32 count, messages; 0 at the end
     6  BROWSE_CLOSE  u32 browse
     7  BEGIN
     8  COMMIT
     9  BACK_OUT
    10  DEFINE        name, text description
    11  CLEAR         name                                                        u64 messages removed
    12  DEPTH         name                                                        u64 messages
    13  QUEUES                                                                    u32 count, then for each: name,
                                                                                  u64 depth, u64 oldest put (us), text
    14  TAKE_BATCH    name, u32 most messages, u32 most bytes                     u32 count, messages
    15  TAKE_BROWSED  u32 browse, u32 place in its last page (0 is the first)     message
    16  CREATE        name of a model queue, name (or up to 32 characters and *)  name of the temporary dynamic queue
    17  INQUIRE       name of a queue, blank for the queue manager                u8 type, name, u32 count, then for
                                                                                  each attribute: text keyword, text
    18  MQSC          text command                                                u8 1 where it was carried out,
                                                                                  u32 count, texts
    19  HOLD          name                                                        name of the local queue
    20  RELEASE       name of the local queue
    21  OPERATE       text command, text reason
    22  COMPACT       u8 1 to make a step, 0 to look                                u8 1 where it is done, u64 bytes of
                                                                                  the store's file, u64 free in it
    23  KEEP_TRAIL_HEAD  text head of the trail
    24  TRAIL_HEAD                                                                text head of the trail, or none
    25  SUBSCRIBE     u32 options (MQSO_*), text topic, text name, text user      u32 subscription, name of its queue,
                      data, id CorrelId, u32 expiry (tenths of a second, 0 for    id CorrelId
                      ever), name of the program's own queue
    26  UNSUBSCRIBE   u32 subscription, u32 options (0, 4 MQCO_KEEP_SUB or
                      8 MQCO_REMOVE_SUB)
    27  REQUEST_PUBLICATIONS  u32 subscription                                    u32 publications that were sent

`match` is 1 (MsgId) + 2 (CorrelId), 0 for any; identifiers that are not matched are ignored. A wait of 4,294,967,295 ms
is for ever. HELLO comes first. The gateway carries requests out in order, and answers each one when its result is safe.
So a program may send several before it reads; the numbers tell the answers apart. While a GET waits, any other request
is refused with 2219. TAKE_BATCH needs an open unit of work, and gives at least one message if there is one. A temporary
dynamic queue lives as long as the connection that created it. An MQSC command that is refused is an answer with u8 0,
and not a failed request. HOLD opens a queue for exclusive input, until RELEASE or the end of the connection. If
somebody has the queue open, HOLD is refused at once with 2042. Otherwise it is answered when all earlier requests of
others have taken effect. COMPACT makes at most one step; a program repeats it until it is done. OPERATE says that the
open unit of work is an operator's act. The commit takes the act to the audit.
SUBSCRIBE does what MQSUB does. It is answered when what is retained has been sent, and a second one that comes before
that is refused with 2219. Publications are got from its queue by name, and have folder mqps in the place of psc.
Only the process that writes the audit trail may send KEEP_TRAIL_HEAD and TRAIL_HEAD; others get 2035. The head is kept
with the commit of the open unit of work, and read behind all commits under way.

A frame that breaks these rules is answered with reason code 2195 and a text, with number 0 if the frame has none. Then
the gateway closes that connection and backs out its unit of work. No other connection notices.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from mq_adapters.attributes import (
    ATTRIBUTES,
    DEFAULT_MAXIMUM_MESSAGE_BYTES,
    MAXIMUM_NAME_CHARACTERS,
    AttributeValueError,
    Definition,
    ObjectType,
)
from mq_adapters.message import IDENTIFIER_BYTES, Message
from mq_adapters.mqmd import MQMD_BYTES, checked_identifier, read_mqmd
from mq_adapters.reasons import QueueManagerError, ReasonCode

PROTOCOL_VERSION: Final = 1
#: The version with a token in HELLO. A client without a token says 1, which earlier gateways understand too.
TOKEN_VERSION: Final = 2
#: A frame is at most one message of the largest size, or a page of them, and its fixed fields.
MAXIMUM_FRAME_BYTES: Final = DEFAULT_MAXIMUM_MESSAGE_BYTES + 4096
#: Requests that may come before HELLO.
MAXIMUM_FIRST_FRAME_BYTES: Final = 4096
#: A page of a browse or batch is full when it has this many messages or bytes (or one larger message).
PAGE_MESSAGES: Final = 100
PAGE_BYTES: Final = 1024 * 1024
WAIT_FOR_EVER_MS: Final = 0xFFFF_FFFF

COMPLETION_OK: Final = 0
COMPLETION_FAILED: Final = 2

MATCH_MSG_ID: Final = 1
MATCH_CORREL_ID: Final = 2

_LENGTH: Final = struct.Struct("<I")
_REQUEST: Final = struct.Struct("<IBI")
_ANSWER: Final = struct.Struct("<IBIII")
_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")
_LENGTH_BYTES: Final = 4


class Verb(IntEnum):
    """The requests. Their numbers are on the wire."""

    HELLO = 1
    PUT = 2
    GET = 3
    BROWSE_OPEN = 4
    BROWSE_NEXT = 5
    BROWSE_CLOSE = 6
    BEGIN = 7
    COMMIT = 8
    BACK_OUT = 9
    DEFINE = 10
    CLEAR = 11
    DEPTH = 12
    QUEUES = 13
    TAKE_BATCH = 14
    TAKE_BROWSED = 15
    CREATE = 16
    INQUIRE = 17
    MQSC = 18
    HOLD = 19
    RELEASE = 20
    OPERATE = 21
    COMPACT = 22
    KEEP_TRAIL_HEAD = 23
    TRAIL_HEAD = 24
    SUBSCRIBE = 25
    UNSUBSCRIBE = 26
    REQUEST_PUBLICATIONS = 27


class FrameError(Exception):
    """The peer sent a frame that breaks the layout. The connection must end, because later bytes cannot be trusted."""


class FrameBuffer:
    """Bytes from the socket, until they make whole frames."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.maximum_bytes = MAXIMUM_FIRST_FRAME_BYTES

    def __len__(self) -> int:
        return len(self._data)

    def feed(self, data: bytes) -> None:
        self._data += data

    def next_frame(self) -> bytes | None:
        """The next whole frame without its length, or None. Raises FrameError for a length beyond the maximum."""
        if len(self._data) < _LENGTH_BYTES:
            return None
        (length,) = _LENGTH.unpack_from(self._data)
        if length > self.maximum_bytes:
            raise FrameError(f"a frame of {length} bytes, at most {self.maximum_bytes} are allowed here")
        end = _LENGTH_BYTES + length
        if len(self._data) < end:
            return None
        frame = bytes(memoryview(self._data)[_LENGTH_BYTES:end])
        del self._data[:end]
        return frame


class FrameFields:
    """The fields of a frame, read one after another. FrameError if they end too early or too late."""

    __slots__ = ("_data", "_offset")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0

    def take(self, length: int) -> bytes:
        start, end = self._offset, self._offset + length
        if end > len(self._data):
            raise FrameError(f"a frame ends at {len(self._data)}, in the field from {start} to {end}")
        self._offset = end
        return self._data[start:end]

    def u8(self) -> int:
        return self.take(1)[0]

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def identifier(self) -> bytes:
        return self.take(IDENTIFIER_BYTES)

    def name(self) -> str:
        """A queue name. Characters that no name has stay in it; looking the name up then refuses it."""
        return self.take(MAXIMUM_NAME_CHARACTERS).partition(b"\0")[0].rstrip(b" ").decode("latin-1")

    def text(self) -> str:
        value = self.take(self.u32())
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise FrameError(f"a text that is not UTF-8: {value[:64].hex()}") from error

    def match(self) -> tuple[bytes | None, bytes | None]:
        """The MsgId and the CorrelId to match, None for any."""
        flags = self.u8()
        if flags & ~(MATCH_MSG_ID | MATCH_CORREL_ID):
            raise FrameError(f"match is {flags}, not 0 to 3")
        msg_id, correl_id = self.identifier(), self.identifier()
        return msg_id if flags & MATCH_MSG_ID else None, correl_id if flags & MATCH_CORREL_ID else None

    def message(self) -> Message:
        """A message. QueueManagerError refuses its descriptor; the frame itself is then in order."""
        length = self.u32()
        if length < MQMD_BYTES:
            raise FrameError(f"a message of {length} bytes; its MQMD alone has {MQMD_BYTES}")
        mqmd = self.take(MQMD_BYTES)
        body = self.take(length - MQMD_BYTES)
        return read_mqmd(mqmd, body)

    def messages(self) -> tuple[Message, ...]:
        return tuple(self.message() for _ in range(self.u32()))

    def definition(self) -> Definition:
        """An object. FrameError if it has an attribute or value that is unknown here."""
        kind, name = self.u8(), self.name()
        pairs = [(self.text(), self.text()) for _ in range(self.u32())]
        try:
            object_type = ObjectType(kind)
            said = {keyword: ATTRIBUTES[object_type][keyword].read(text) for keyword, text in pairs}
        except (ValueError, KeyError, AttributeValueError) as error:
            raise FrameError(f"an object of type {kind} with {error}") from error
        return Definition(object_type=object_type, name=name, said=said)

    def end(self) -> None:
        """Checks that the frame ends here."""
        if self._offset != len(self._data):
            raise FrameError(f"a frame of {len(self._data)} bytes, whose fields end at {self._offset}")


def u32(value: int) -> bytes:
    return _U32.pack(value)


def u64(value: int) -> bytes:
    return _U64.pack(value)


def name_field(name: str, *, otherwise: ReasonCode = ReasonCode.MQRC_UNKNOWN_OBJECT_NAME) -> bytes:
    """A queue name as 48 bytes. QueueManagerError `otherwise` if it cannot be a name."""
    if len(name) > MAXIMUM_NAME_CHARACTERS or not name.isascii() or name != name.partition("\0")[0].rstrip(" "):
        raise QueueManagerError(otherwise, f"queue {name!r}")
    return name.encode().ljust(MAXIMUM_NAME_CHARACTERS)


def text_field(text: str) -> bytes:
    encoded = text.encode(errors="replace")
    return u32(len(encoded)) + encoded


def definition_field(definition: Definition) -> bytes:
    """An object: type, name, and the attributes that were set."""
    said = (
        text_field(keyword) + text_field(",".join(value) if isinstance(value, tuple) else str(value))
        for keyword, value in definition.said.items()
    )
    name = definition.name.encode().ljust(MAXIMUM_NAME_CHARACTERS)
    return b"".join((bytes((definition.object_type,)), name, u32(len(definition.said)), *said))


def match_field(msg_id: bytes | None, correl_id: bytes | None) -> bytes:
    flags = (MATCH_MSG_ID if msg_id is not None else 0) | (MATCH_CORREL_ID if correl_id is not None else 0)
    none = bytes(IDENTIFIER_BYTES)
    return bytes((flags,)) + (checked_identifier(msg_id) or none) + (checked_identifier(correl_id) or none)


def request_frame(verb: Verb, number: int, *fields: bytes) -> bytes:
    return b"".join((_REQUEST.pack(5 + sum(map(len, fields)), verb, number), *fields))


def answer_frame(verb: int, number: int, *fields: bytes, reason_code: int = 0) -> bytes:
    completion = COMPLETION_FAILED if reason_code else COMPLETION_OK
    length = 13 + sum(map(len, fields))
    return b"".join((_ANSWER.pack(length, verb, number, completion, reason_code), *fields))


def pages(messages: Iterator[Message]) -> Iterator[list[Message]]:
    """Messages in lists of at most PAGE_MESSAGES and about PAGE_BYTES."""
    page: list[Message] = []
    page_bytes = 0
    for message in messages:
        if page and (len(page) >= PAGE_MESSAGES or page_bytes + len(message.body) > PAGE_BYTES):
            yield page
            page, page_bytes = [], 0
        page.append(message)
        page_bytes += MQMD_BYTES + len(message.body)
    if page:
        yield page
