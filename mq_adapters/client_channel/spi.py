"""SPI: the calls that clients prefer to those of the MQI where a queue manager has them.

Behind the API header stand verb, version and longest reply (4 bytes each), then a structure `SPxU` that goes both ways,
then `SPxI`, in whose place the reply has `SPxO`. The letter x is the verb's. Each of them begins with its identifier,
its version and its length (4 bytes each); what is behind that is the structure's content.

    verb         letter   content of SPxU   content of SPxI                     content of SPxO
     1 QUERY      Q                                                             count, then for each verb five integers
     2 PUT        P       MQMD, MQPMO       options, data length, data
     4 ACTIVATE   A                         mode, queue, queue manager, MsgId
     7 SUBSCRIBE  B                         subscription handle, LSD, MQSD      the same
    12 OPEN       O                         LPOO, MQOD                          the same

Source: IBM MQ's client as it was observed (com.ibm.mq.allclient 9.4.5.0); names: Wireshark's MQ dissector.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import ClassVar, Final, NamedTuple, Self

from mq_adapters.client_channel.fields import BodyReader, Record, integer, invalid, octets, text, write_integers
from mq_adapters.client_channel.message_descriptors import Mqmd
from mq_adapters.client_channel.parameters import (
    NOTHING,
    Content,
    Nothing,
    Parameters,
    Unknown,
    message_data,
    number,
    structure,
)
from mq_adapters.client_channel.segments import ByteOrder
from mq_adapters.client_channel.structures import Lpoo, Lsd, Mqod, Mqpmo, Mqsd

#: Identifier, version and length of a structure.
_BEGINNING_BYTES: Final = 12
_INTEGERS_OF_A_VERB: Final = 5
#: Of each structure: no client has sent another.
_VERSION: Final = 1
#: The last letter of a structure's identifier.
_IN_OUT: Final = b"U"
_IN: Final = b"I"
_OUT: Final = b"O"


class SpiVerb(IntEnum):
    """The verbs that a client is known to use."""

    QUERY = 1
    PUT = 2
    ACTIVATE = 4
    SUBSCRIBE = 7
    OPEN = 12


class SpiPutOptions(IntFlag):
    """Options of SPI PUT. A deferred message is stored, and nobody sees it before ACTIVATE."""

    BLANK_PADDED = 1
    SYNCPOINT = 2
    DEFERRED = 4


class SpiActivateMode(IntEnum):
    """What becomes of a deferred message."""

    MAKE_VISIBLE = 1
    THROW_AWAY = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiQueryReply:
    """The reply to QUERY. For each verb: its number, the highest version of SPxU, SPxI and SPxO, and flags.

    IBM's client uses the other verbs although none is named.
    """

    verbs: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        count = body.integer("SPQO")
        if not 0 <= count <= body.left // (4 * _INTEGERS_OF_A_VERB):
            invalid(f"SPQO has {count} verbs in {body.left} bytes")
        return cls(verbs=tuple(body.integers(_INTEGERS_OF_A_VERB, "SPQO") for _ in range(count)))

    def write(self, byte_order: ByteOrder) -> bytes:
        return write_integers(byte_order, len(self.verbs), *(each for verb in self.verbs for each in verb))


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiPutDescriptor(Parameters):
    """SPPU: descriptor and options of the message. The reply has its MsgId in the descriptor."""

    message_descriptor: Mqmd = structure(Mqmd)
    put_message_options: Mqpmo = structure(Mqpmo)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiPut(Parameters):
    """SPPI: options (`SpiPutOptions`) and data of the message."""

    options: int = number()
    data: bytes = message_data()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiActivate(Record):
    """SPAI: the deferred message that this MsgId has, and what becomes of it (`SpiActivateMode`)."""

    mode: int = integer(SpiActivateMode.MAKE_VISIBLE)
    q_name: str = text(48)
    q_mgr_name: str = text(48)
    msg_id: bytes = octets(24)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiSubscribe(Parameters):
    """SPBI and SPBO: a subscription. The reply has its handle, and the API header that of the managed queue."""

    subscription_handle: int = number()
    lsd: Lsd = structure(Lsd)
    subscription_descriptor: Mqsd = structure(Mqsd)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiOpen(Parameters):
    """SPOI and SPOO: an open; its options stand in LPOO. The reply has the handle in the API header.

    A new dynamic queue has its name in `object_name` of the reply's MQOD.
    """

    lpoo: Lpoo = structure(Lpoo)
    object_descriptor: Mqod = structure(Mqod)


class _Form(NamedTuple):
    """The letter of a verb, and what its three structures hold."""

    letter: bytes
    in_out: type[Content] = Nothing
    request: type[Content] = Nothing
    reply: type[Content] = Nothing

    def content_of(self, direction: bytes) -> type[Content]:
        return {_IN_OUT: self.in_out, _IN: self.request, _OUT: self.reply}[direction]

    def read(self, body: BodyReader, direction: bytes) -> Content:
        """Reads the structure of a direction."""
        struc_id = b"SP" + self.letter + direction
        body.eye_catcher(struc_id)
        version, length = body.integers(2, struc_id.decode())
        if version != _VERSION:
            invalid(f"{struc_id.decode()} has the version {version}, not {_VERSION}")
        data = body.take(length - _BEGINNING_BYTES, f"{struc_id.decode()} of {length} bytes")
        return self.content_of(direction).read(BodyReader(data, body.byte_order))

    def write(self, direction: bytes, content: Content, byte_order: ByteOrder) -> bytes:
        """The structure of a direction."""
        written = content.write(byte_order)
        numbers = write_integers(byte_order, _VERSION, _BEGINNING_BYTES + len(written))
        return b"SP" + self.letter + direction + numbers + written


_FORMS: Final[Mapping[int, _Form]] = {
    SpiVerb.QUERY: _Form(b"Q", reply=SpiQueryReply),
    SpiVerb.PUT: _Form(b"P", in_out=SpiPutDescriptor, request=SpiPut),
    SpiVerb.ACTIVATE: _Form(b"A", request=SpiActivate),
    SpiVerb.SUBSCRIBE: _Form(b"B", request=SpiSubscribe, reply=SpiSubscribe),
    SpiVerb.OPEN: _Form(b"O", request=SpiOpen, reply=SpiOpen),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spi:
    """A call of SPI in one direction. `in_out` is the content of SPxU, `content` that of SPxI or SPxO.

    The content of an unknown verb is `Unknown`, and includes its structures.
    """

    DIRECTION: ClassVar[bytes]

    verb: int
    version: int = 1
    longest_reply: int = 0
    in_out: Content = NOTHING
    content: Content = NOTHING

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads the call by its verb. ChannelProtocolError for a version or a length that cannot be."""
        verb, version, longest_reply = body.integers(3, "SPI")
        form = _FORMS.get(verb)
        if form is None:
            return cls(verb=verb, version=version, longest_reply=longest_reply, content=Unknown.read(body))
        in_out, content = form.read(body, _IN_OUT), form.read(body, cls.DIRECTION)
        return cls(verb=verb, version=version, longest_reply=longest_reply, in_out=in_out, content=content)

    def write(self, byte_order: ByteOrder) -> bytes:
        beginning = write_integers(byte_order, self.verb, self.version, self.longest_reply)
        form = _FORMS.get(self.verb)
        if form is None:
            return beginning + self.content.write(byte_order)
        in_out = form.write(_IN_OUT, self.in_out, byte_order)
        return beginning + in_out + form.write(self.DIRECTION, self.content, byte_order)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiReply(_Spi):
    """The reply to a call of SPI."""

    DIRECTION: ClassVar[bytes] = _OUT


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiRequest(_Spi):
    """A call of SPI."""

    DIRECTION: ClassVar[bytes] = _IN

    def reply(self, content: Content = NOTHING, *, in_out: Content | None = None) -> SpiReply:
        """The reply with this content; SPxU is as it came unless `in_out` says otherwise."""
        return SpiReply(
            verb=self.verb,
            version=self.version,
            longest_reply=self.longest_reply,
            in_out=self.in_out if in_out is None else in_out,
            content=content,
        )

    def refusal(self) -> Content:
        """What a reply that refuses the call has: the structures as they came, or nothing for an unknown verb."""
        form = _FORMS.get(self.verb)
        if form is None:
            return NOTHING
        return self.reply(self.content if form.reply is form.request else form.reply())
