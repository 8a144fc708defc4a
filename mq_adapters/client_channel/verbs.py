"""Calls of the MQI and their replies: the API header, and behind it what each verb has.

     0  4  length, always big-endian: in a call the room for the reply's longest segment, in a reply its own length
     4  4  completion code (0 in a call)
     8  4  reason code (0 in a call)
    12  4  object handle, -1 or 0 where there is none

    verb              call                                        reply
    MQCONN            queue manager, application, options         the same
    MQDISC, MQCMIT, MQBACK: nothing
    MQOPEN            MQOD, options, FOPA                         the same, filled; handle in the header
    MQCLOSE           options                                     the same
    MQPUT             MQMD, MQPMO, length, data                   MQMD, MQPMO, 0
    MQPUT1            MQOD, MQMD, MQPMO, length, data             MQOD, MQMD, MQPMO, 0
    MQGET             MQMD, MQGMO, buffer length                  MQMD, MQGMO, data length, data
    MQINQ, MQSET      attributes.py
    MQSTAT            type, MQSTS                                 the same
    MQSUB             -1, 0, MQSD; handle 0 or of an own queue    subscription handle, 0, MQSD; handle of the queue
    MQSUBRQ           action, MQSRO; subscription handle          the same, with the number of publications
    SPI               spi.py

All lengths count the 28 or 36 bytes of the segment's header. A refused call is answered with completion code 2, and the
same parameters as they came.
Source: IBM MQ's client as it was observed (com.ibm.mq.allclient 9.4.5.0); names: Wireshark's MQ dissector.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

from mq_adapters.client_channel.attributes import Attributes, MqinqRequest, MqsetReply
from mq_adapters.client_channel.errors import ChannelProtocolError, UsageError
from mq_adapters.client_channel.fields import BodyReader, Record, integer, octets, text
from mq_adapters.client_channel.message_descriptors import Mqmd
from mq_adapters.client_channel.parameters import (
    NOTHING,
    Content,
    Nothing,
    Parameters,
    Unknown,
    message_data,
    number,
    rest,
    structure,
)
from mq_adapters.client_channel.segments import ByteOrder, SegmentType
from mq_adapters.client_channel.spi import SpiReply, SpiRequest
from mq_adapters.client_channel.structures import Fopa, Mqgmo, Mqod, Mqpmo, Mqsd, Mqsro, Mqsts

MQCC_OK: Final = 0
MQCC_WARNING: Final = 1
MQCC_FAILED: Final = 2
MQHO_NONE: Final = 0
MQHO_UNUSABLE_HOBJ: Final = -1
MQAT_JAVA: Final = 28
API_HEADER_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiHeader:
    """The header of a call or reply."""

    length: int
    completion_code: int = MQCC_OK
    reason_code: int = 0
    object_handle: int = MQHO_UNUSABLE_HOBJ

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads 16 bytes. Raises ChannelProtocolError."""
        (length,) = _LENGTH.unpack(body.take(_LENGTH.size, "an API header"))
        completion_code, reason_code, object_handle = body.integers(3, "an API header")
        return cls(length=length, completion_code=completion_code, reason_code=reason_code, object_handle=object_handle)

    def write(self, byte_order: ByteOrder) -> bytes:
        numbers = self.completion_code, self.reason_code, self.object_handle
        try:
            return _LENGTH.pack(self.length) + struct.pack(f"{byte_order.code}3i", *numbers)
        except struct.error as error:
            raise UsageError(f"API header: {error}") from error


_LENGTH: Final = struct.Struct(">I")


#: MQ_CONN_TAG_LENGTH.
CONNECTION_TAG_BYTES: Final = 128
_TAG: Final = slice(12, 140)
_TAGS_END: Final = 268


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqconn(Record):
    """MQCONN both ways. A name that is blank or begins with * stands for any queue manager.

    `tail` is FCNO, with the connection tag, as it came. A reply returns it, and it may be left out of a refusal.

        offset  length  field of FCNO
        0       12      identifier, version, capability
        12      128     connection tag: that of the first connection of a JMS Connection, for its others
        140     128     the connection tag of the reply, from version 3 on
    """

    q_mgr_name: str = text(48)
    appl_name: str = text(28)
    appl_type: int = integer(MQAT_JAVA)
    accounting_token: bytes = octets(32)
    options: int = integer()
    x_options: int = integer()
    tail: bytes = field(default=b"", repr=False)

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads the parameters up to FCNO, and takes the others as they are."""
        known = super(Mqconn, cls).read(body)
        return replace(known, tail=body.rest())

    def write(self, byte_order: ByteOrder) -> bytes:
        return super(Mqconn, self).write(byte_order) + self.tail

    def tagged(self, tag: bytes) -> "Mqconn":
        """The same with a connection tag (24 bytes), unless it has one.

        JMS takes its first 24 bytes for the identifier of the connection, writes them into each publication, and leaves
        out those with its own where a subscriber says noLocal.
        """
        if len(self.tail) < _TAGS_END or any(self.tail[_TAG]):
            return self
        tags = tag.ljust(CONNECTION_TAG_BYTES, b"\0") * 2
        return replace(self, tail=self.tail[: _TAG.start] + tags + self.tail[_TAGS_END:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqopen(Parameters):
    """MQOPEN both ways. The reply has the resolved names in MQOD, and the queue's defaults in FOPA."""

    object_descriptor: Mqod = structure(Mqod)
    options: int = number()
    fopa: Fopa = structure(Fopa)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqclose(Parameters):
    """MQCLOSE both ways, with handle 0 in the reply. Option 8 removes a durable subscription."""

    options: int = number()


@dataclass(frozen=True, slots=True, kw_only=True)
class MqputRequest(Parameters):
    """MQPUT on the handle of the header."""

    message_descriptor: Mqmd = structure(Mqmd)
    put_message_options: Mqpmo = structure(Mqpmo)
    data: bytes = message_data()


@dataclass(frozen=True, slots=True, kw_only=True)
class MqputReply(Parameters):
    """The reply to MQPUT: the descriptor has the message's MsgId, its context, and what was left to the queue."""

    message_descriptor: Mqmd = structure(Mqmd)
    put_message_options: Mqpmo = structure(Mqpmo)
    data_length: int = number()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqput1Request(Parameters):
    """MQPUT1: one message to the queue of MQOD."""

    object_descriptor: Mqod = structure(Mqod)
    message_descriptor: Mqmd = structure(Mqmd)
    put_message_options: Mqpmo = structure(Mqpmo)
    data: bytes = message_data()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqput1Reply(Parameters):
    """The reply to MQPUT1."""

    object_descriptor: Mqod = structure(Mqod)
    message_descriptor: Mqmd = structure(Mqmd)
    put_message_options: Mqpmo = structure(Mqpmo)
    data_length: int = number()


@dataclass(frozen=True, slots=True, kw_only=True)
class MqgetRequest(Parameters):
    """MQGET: the identifiers to match, the options, and how many bytes the client has room for."""

    message_descriptor: Mqmd = structure(Mqmd)
    get_message_options: Mqgmo = structure(Mqgmo)
    buffer_length: int = number()


@dataclass(frozen=True, slots=True, kw_only=True)
class MqgetReply(Parameters):
    """The reply to MQGET. `data_length` is that of the whole message, and `data` as much as the client has room for.

    With 2033 both structures are as they came and the length is 0.
    """

    message_descriptor: Mqmd = structure(Mqmd)
    get_message_options: Mqgmo = structure(Mqgmo)
    data_length: int = number()
    data: bytes = rest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqstat(Parameters):
    """MQSTAT both ways."""

    type: int = number()
    status: Mqsts = structure(Mqsts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqsub(Parameters):
    """MQSUB both ways. In the reply the header has the handle of the managed queue; 0 there hangs the client."""

    subscription_handle: int = number(MQHO_UNUSABLE_HOBJ)
    unknown: int = number()
    subscription_descriptor: Mqsd = structure(Mqsd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqsubrq(Parameters):
    """MQSUBRQ both ways, on the subscription handle of the header."""

    action: int = number()
    options: Mqsro = structure(Mqsro)


class Verb(NamedTuple):
    """What a call and its reply have behind the API header."""

    request: type[Content]
    reply: type[Content]


VERBS: Final[Mapping[int, Verb]] = {
    SegmentType.MQCONN: Verb(Mqconn, Mqconn),
    SegmentType.MQDISC: Verb(Nothing, Nothing),
    SegmentType.MQOPEN: Verb(Mqopen, Mqopen),
    SegmentType.MQCLOSE: Verb(Mqclose, Mqclose),
    SegmentType.MQGET: Verb(MqgetRequest, MqgetReply),
    SegmentType.MQPUT: Verb(MqputRequest, MqputReply),
    SegmentType.MQPUT1: Verb(Mqput1Request, Mqput1Reply),
    SegmentType.MQSET: Verb(Attributes, MqsetReply),
    SegmentType.MQINQ: Verb(MqinqRequest, Attributes),
    SegmentType.MQCMIT: Verb(Nothing, Nothing),
    SegmentType.MQBACK: Verb(Nothing, Nothing),
    SegmentType.SPI: Verb(SpiRequest, SpiReply),
    SegmentType.MQSTAT: Verb(Mqstat, Mqstat),
    SegmentType.MQSUB: Verb(Mqsub, Mqsub),
    SegmentType.MQSUBRQ: Verb(Mqsubrq, Mqsubrq),
}
_UNKNOWN: Final = Verb(Unknown, Unknown)


def read_request(call_type: int, body: BodyReader) -> Any:
    """The parameters of a call, behind its header: the request class of VERBS, or `Unknown`."""
    return VERBS.get(call_type, _UNKNOWN).request.read(body)


def read_reply(call_type: int, body: BodyReader) -> Any:
    """The parameters of the reply to a call of this type, behind its header."""
    return VERBS.get(call_type, _UNKNOWN).reply.read(body)


def refusal(parameters: Content) -> Content:
    """What a reply that refuses a call has behind its header: the call's own structures, where the reply has them."""
    made = _REFUSALS.get(type(parameters))
    return parameters if made is None else made(parameters)


def refusal_of_beginning(call_type: int, body: BodyReader) -> Content:
    """The same for a call of which only the first segment was kept: the structures of a put stand in it."""
    try:
        reply = read_reply(call_type, body)
    except ChannelProtocolError:
        return NOTHING
    return replace(reply, data_length=0) if isinstance(reply, MqputReply | Mqput1Reply) else NOTHING


_REFUSALS: Final[Mapping[type, Callable[[Any], Content]]] = {
    MqputRequest: lambda put: MqputReply(
        message_descriptor=put.message_descriptor, put_message_options=put.put_message_options
    ),
    Mqput1Request: lambda put: Mqput1Reply(
        object_descriptor=put.object_descriptor,
        message_descriptor=put.message_descriptor,
        put_message_options=put.put_message_options,
    ),
    MqgetRequest: lambda get: MqgetReply(
        message_descriptor=get.message_descriptor, get_message_options=get.get_message_options
    ),
    MqinqRequest: MqinqRequest.reply,
    Attributes: lambda change: MqsetReply(
        selector_count=len(change.selectors),
        int_attr_count=len(change.int_attrs),
        char_attr_length=len(change.char_attrs),
    ),
    SpiRequest: SpiRequest.refusal,
    Unknown: lambda _: NOTHING,
}
