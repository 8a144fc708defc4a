"""Structures of the MQI as they travel: MQOD, MQPMO, MQGMO, MQSD, MQSTS, and the channel's own FOPA, LPOO and LSD.

Each begins with its identifier and its version, and the version alone says how long it is. A pointer has four bytes.
A structure that is changed keeps its version, so a reply is as long as its request.
Source: IBM MQ, "MQOD - Object descriptor" and the like; FOPA, LPOO and LSD: IBM MQ's client as it was observed
(com.ibm.mq.allclient 9.4.5.0); names: Wireshark's MQ dissector.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Final, Self

from mq_adapters.client_channel.charv import Charv, charv, place_strings, read_strings
from mq_adapters.client_channel.fields import (
    BodyReader,
    Record,
    integer,
    invalid,
    long,
    octets,
    reserved,
    table_of,
    text,
    write_integers,
)
from mq_adapters.client_channel.segments import ByteOrder

MQOT_Q: Final = 1
MQOT_Q_MGR: Final = 5
MQOT_TOPIC: Final = 8
MQMO_MATCH_MSG_ID: Final = 1
MQMO_MATCH_CORREL_ID: Final = 2
MQMO_MATCH_MSG_TOKEN: Final = 0x20
MQPRI_PRIORITY_AS_PUBLISHED: Final = -3
MQPRT_SYNC_RESPONSE: Final = 1
MQSR_ACTION_PUBLICATION: Final = 1
MQSRO_FAIL_IF_QUIESCING: Final = 0x2000
#: Options of LSD with which JMS asks for a shared subscription.
LSDO_SHARED: Final = 0x50

#: Identifier, version and length.
_SIZED_BEGINNING_BYTES: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure(Record):
    """A structure of the MQI. A field that its version does not have is as by default, and is not written.

    `area` holds the strings as they came. Use `replace` of `dataclasses` to change a field.
    """

    HIGHEST_VERSION: ClassVar[int] = 1

    version: int = 1
    area: bytes = field(default=b"", repr=False, compare=False)

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads the structure and its strings. ChannelProtocolError for a version or a length that cannot be."""
        start = body.position
        version = cls._read_version(body)
        table = table_of(cls, version)
        values = table.read(body)
        if not table.strings:
            return cls(version=version, **values)
        strings = read_strings({name: values[name] for name in table.strings}, body, start)
        return cls(version=version, area=strings.area, **{**values, **strings.charvs})

    def write(self, byte_order: ByteOrder) -> bytes:
        """The bytes of the structure, and of its strings behind it."""
        table = table_of(type(self), self.version)
        beginning = self.STRUC_ID + write_integers(byte_order, self.version)
        charvs = [getattr(self, name) for name in table.strings]
        written, area = place_strings(charvs, self.area, len(beginning) + table.length, byte_order)
        return beginning + table.write(self, byte_order, dict(zip(table.strings, written, strict=True))) + area

    @classmethod
    def _read_version(cls, body: BodyReader) -> int:
        body.eye_catcher(cls.STRUC_ID)
        version = body.integer(cls.__name__)
        if not 1 <= version <= cls.HIGHEST_VERSION:
            invalid(f"{cls.__name__} has the version {version}; {cls.HIGHEST_VERSION} is the highest")
        return version


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedStructure(Structure):
    """A structure that says its own length behind its version. `tail` is what it has behind the fields known here."""

    tail: bytes = field(default=b"", repr=False)

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads the structure and its tail. ChannelProtocolError for a version or a length that cannot be."""
        start = body.position
        version = cls._read_version(body)
        length = body.integer(cls.__name__)
        values = table_of(cls, version).read(body)
        tail = body.take(start + length - body.position, f"{cls.__name__} of {length} bytes")
        return cls(version=version, tail=tail, **values)

    def write(self, byte_order: ByteOrder) -> bytes:
        """The bytes of the structure, with its length, and its tail."""
        known = table_of(type(self), self.version).write(self, byte_order) + self.tail
        numbers = write_integers(byte_order, self.version, _SIZED_BEGINNING_BYTES + len(known))
        return self.STRUC_ID + numbers + known


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqod(Structure):
    """MQOD: the object of an open. Lists of objects (distribution lists) are refused."""

    STRUC_ID: ClassVar[bytes] = b"OD  "
    HIGHEST_VERSION: ClassVar[int] = 4

    object_type: int = integer(MQOT_Q)
    object_name: str = text(48)
    object_q_mgr_name: str = text(48)
    dynamic_q_name: str = text(48)
    alternate_user_id: str = text(12)

    recs_present: int = integer(since=2, must_be_zero=True)
    known_dest_count: int = integer(since=2)
    unknown_dest_count: int = integer(since=2)
    invalid_dest_count: int = integer(since=2)
    object_rec_offset: int = integer(since=2)
    response_rec_offset: int = integer(since=2)
    object_rec_ptr: int = integer(since=2)
    response_rec_ptr: int = integer(since=2)

    alternate_security_id: bytes = octets(40, since=3)
    resolved_q_name: str = text(48, since=3)
    resolved_q_mgr_name: str = text(48, since=3)

    object_string: Charv = charv(since=4)
    selection_string: Charv = charv(since=4)
    res_object_string: Charv = charv(since=4)
    resolved_type: int = integer(since=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqpmo(Structure):
    """MQPMO: the options of a put, and the queue where the message went. Lists of records are refused."""

    STRUC_ID: ClassVar[bytes] = b"PMO "
    HIGHEST_VERSION: ClassVar[int] = 3

    options: int = integer()
    timeout: int = integer(-1)
    context: int = integer()
    known_dest_count: int = integer()
    unknown_dest_count: int = integer()
    invalid_dest_count: int = integer()
    resolved_q_name: str = text(48)
    resolved_q_mgr_name: str = text(48)

    recs_present: int = integer(since=2, must_be_zero=True)
    put_msg_rec_fields: int = integer(since=2)
    put_msg_rec_offset: int = integer(since=2)
    response_rec_offset: int = integer(since=2)
    put_msg_rec_ptr: int = integer(since=2)
    response_rec_ptr: int = integer(since=2)

    original_msg_handle: int = long(since=3)
    new_msg_handle: int = long(since=3)
    action: int = integer(since=3)
    pub_level: int = integer(9, since=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqgmo(Structure):
    """MQGMO: the options of a get, and the queue that the message came from. `wait_interval` is in ms, -1 for ever."""

    STRUC_ID: ClassVar[bytes] = b"GMO "
    HIGHEST_VERSION: ClassVar[int] = 4

    options: int = integer()
    wait_interval: int = integer()
    signal_1: int = integer()
    signal_2: int = integer()
    resolved_q_name: str = text(48)

    match_options: int = integer(MQMO_MATCH_MSG_ID | MQMO_MATCH_CORREL_ID, since=2)
    group_status: bytes = octets(1, b" ", since=2)
    segment_status: bytes = octets(1, b" ", since=2)
    segmentation: bytes = octets(1, b" ", since=2)
    reserved_1: bytes = reserved(1, since=2)

    msg_token: bytes = octets(16, since=3)
    returned_length: int = integer(-1, since=3)

    reserved_2: bytes = reserved(4, since=4)
    msg_handle: int = long(since=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqsd(Structure):
    """MQSD: a subscription, its topic in `object_string`, and its name."""

    STRUC_ID: ClassVar[bytes] = b"SD  "

    options: int = integer()
    object_name: str = text(48)
    alternate_user_id: str = text(12)
    alternate_security_id: bytes = octets(40)
    sub_expiry: int = integer(-1)
    object_string: Charv = charv()
    sub_name: Charv = charv()
    sub_user_data: Charv = charv()
    sub_correl_id: bytes = octets(24)
    pub_priority: int = integer(MQPRI_PRIORITY_AS_PUBLISHED)
    pub_accounting_token: bytes = octets(32)
    pub_appl_identity_data: str = text(32)
    selection_string: Charv = charv()
    sub_level: int = integer(1)
    res_object_string: Charv = charv()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqsro(Structure):
    """MQSRO: the options of MQSUBRQ, and in the reply how many publications were sent."""

    STRUC_ID: ClassVar[bytes] = b"SRO "

    options: int = integer()
    num_pubs: int = integer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqsts(Structure):
    """MQSTS of version 1: what became of puts that were not answered at once."""

    STRUC_ID: ClassVar[bytes] = b"STAT"

    comp_code: int = integer()
    reason: int = integer()
    put_success_count: int = integer()
    put_warning_count: int = integer()
    put_failure_count: int = integer()
    object_type: int = integer(MQOT_Q)
    object_name: str = text(48)
    object_q_mgr_name: str = text(48)
    resolved_object_name: str = text(48)
    resolved_q_mgr_name: str = text(48)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fopa(SizedStructure):
    """FOPA: what a queue says of puts and gets whose program does not; filled in the reply to an open.

    A client takes DefPutResponse 1 as synchronous. Answer 2 only where puts without a reply are carried out.
    """

    STRUC_ID: ClassVar[bytes] = b"FOPA"
    HIGHEST_VERSION: ClassVar[int] = 2

    def_persistence: int = integer()
    def_put_response: int = integer(MQPRT_SYNC_RESPONSE)
    def_read_ahead: int = integer()
    property_control: int = integer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lpoo(Structure):
    """LPOO: the options of an open over SPI, and what FOPA has. `lpi_options` say which context is saved."""

    STRUC_ID: ClassVar[bytes] = b"LPOO"

    options: int = integer()
    lpi_options: int = integer()
    def_persistence: int = integer()
    def_put_response: int = integer(MQPRT_SYNC_RESPONSE)
    def_read_ahead: int = integer()
    property_control: int = integer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lsd(Structure):
    """LSD: how a subscription over SPI opens its queue. What most of it means is not known; see LSDO_SHARED."""

    STRUC_ID: ClassVar[bytes] = b"LSD "

    options: int = integer()
    unknown_string: Charv = charv()
    unknown_1: bytes = reserved(28)
    open_options: int = integer()
    name_1: str = text(48)
    name_2: str = text(48)
    identifier: bytes = octets(24)
    unknown_2: int = integer()
    unknown_3: int = integer()
    unknown_4: int = integer()
