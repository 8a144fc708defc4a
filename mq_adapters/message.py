"""A message of a queue manager: the MQMD fields in use, the body, and what the store adds.

On the way of a PUBLISH step 3 makes the message, and steps 5 to 8 carry it. A body is the complete message data: header
chain and payload. Nothing here reads it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Final

import ormsgpack

MQMI_NONE: Final = bytes(24)
MQCI_NONE: Final = bytes(24)
MQFMT_NONE: Final = b"        "

MQMT_REQUEST: Final = 1
MQMT_REPLY: Final = 2
MQMT_REPORT: Final = 4
MQMT_DATAGRAM: Final = 8

MQPER_NOT_PERSISTENT: Final = 0
MQPER_PERSISTENT: Final = 1
MQPER_PERSISTENCE_AS_Q_DEF: Final = 2

MQPRI_PRIORITY_AS_Q_DEF: Final = -1

MQRO_PAN: Final = 1
MQRO_NAN: Final = 2
MQRO_PASS_CORREL_ID: Final = 64
MQRO_PASS_MSG_ID: Final = 128

MQAT_UNIX: Final = 6
MQAT_QMGR: Final = 7
MQAT_BROKER: Final = 26

MQEI_UNLIMITED: Final = -1
MQENC_LITTLE_ENDIAN: Final = 546
UTF_8: Final = 1208

IDENTIFIER_BYTES: Final = 24
IDENTIFIER_TAG: Final = b"RFHB"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDescriptor:
    """MQMD, the fields in use. Many messages may share one descriptor: it never changes.

    `msg_id` is MQMI_NONE where the queue manager makes the identifier (Message.msg_id then gives it);
    `correl_id` is 24 bytes; `expiry` is in tenths of a second, -1 for ever; `format` is 8 bytes, blank padded.
    The stored form has positions in this list of fields: append only, never reorder.
    Source: IBM MQ, "MQMD - Message descriptor".
    """

    report: int = 0
    msg_type: int = MQMT_DATAGRAM
    expiry: int = MQEI_UNLIMITED
    feedback: int = 0
    encoding: int = MQENC_LITTLE_ENDIAN
    coded_char_set_id: int = UTF_8
    format: bytes = MQFMT_NONE
    priority: int = 0
    persistence: int = MQPER_PERSISTENCE_AS_Q_DEF
    msg_id: bytes = MQMI_NONE
    correl_id: bytes = MQCI_NONE
    reply_to_q: str = ""
    reply_to_q_mgr: str = ""
    user_identifier: str = ""
    accounting_token: bytes = b""
    appl_identity_data: str = ""
    put_appl_type: int = MQAT_UNIX
    put_appl_name: str = ""
    appl_origin_data: str = ""
    _packed: list[bytes] = field(default_factory=list, init=False, repr=False, compare=False)

    def replace(self, **changes: object) -> "MessageDescriptor":
        """A copy with some fields changed."""
        kept = {name: getattr(self, name) for name in _STORED_FIELDS}
        return MessageDescriptor(**{**kept, **changes})

    def pack(self) -> bytes:
        """The stored form: a version byte, then the fields that differ from their defaults as a msgpack map."""
        if not self._packed:
            changed = {
                index: value
                for index, (value, default) in enumerate(zip(_values_of(self), _STORED_DEFAULTS, strict=True))
                if value != default
            }
            self._packed.append(_DESCRIPTOR_VERSION + ormsgpack.packb(changed, option=ormsgpack.OPT_NON_STR_KEYS))
        return self._packed[0]


_DESCRIPTOR_VERSION: Final = b"\x01"
_STORED_FIELDS: Final = tuple(each.name for each in fields(MessageDescriptor) if each.init)
#: All of them at once, because a publication to ten thousand subscribers packs ten thousand descriptors.
_values_of: Final[Callable[[MessageDescriptor], tuple[object, ...]]] = attrgetter(*_STORED_FIELDS)
_STORED_DEFAULTS: Final = _values_of(MessageDescriptor())


def unpack_descriptor(packed: bytes) -> MessageDescriptor:
    """The descriptor of its stored form. Raises ValueError for another version or for damage."""
    if packed[:1] != _DESCRIPTOR_VERSION:
        raise ValueError(f"message descriptor has stored version {packed[:1].hex()!r}, this program reads 01")
    changed = ormsgpack.unpackb(packed[1:], option=ormsgpack.OPT_NON_STR_KEYS)
    for index, value in changed.items():
        if index not in range(len(_STORED_FIELDS)) or type(value) is not type(_STORED_DEFAULTS[index]):
            raise ValueError(f"message descriptor has no field {index!r} with a value such as {value!r:.40}")
    return MessageDescriptor(**{_STORED_FIELDS[index]: value for index, value in changed.items()})


#: Memory of the values of a known header, beside its bytes (measured).
KNOWN_HEADER_BYTES: Final = 300


class KnownHeader:
    """All that stands in front of a body: its bytes, and the MQMD fields that say how they are to be read.

    A subclass has the values that the bytes stand for.
    """

    __slots__ = ("coded_char_set_id", "data", "encoding", "format")

    def __init__(self, data: bytes, *, format: bytes, coded_char_set_id: int, encoding: int) -> None:
        self.data = data
        self.format = format
        self.coded_char_set_id = coded_char_set_id
        self.encoding = encoding

    @staticmethod
    def of(message: "Message") -> "KnownHeader | None":
        """The header of a message as its writer knows it; None where it must be read.

        A message from outside has none. Where the message data or their description were changed since, the bytes are
        no longer those that the writer knows, and they must be read.
        """
        written, descriptor = message.written, message.descriptor
        if (
            written is None
            or not message.body.startswith(written.data)
            or descriptor.format != written.format
            or descriptor.coded_char_set_id != written.coded_char_set_id
            or descriptor.encoding != written.encoding
        ):
            return None
        return written


class Message:
    """One message. After it was put, nobody but the queue manager changes it.

    `origin` is private to the gateway: the MQTT exchange the message came from; the broker copies it to every
    copy and answer. `sequence`, `put_us` (microseconds since 1970, UTC) and `expires_us` (same, or 0 for never)
    are set by the queue manager when the message is put. `written` is the header as its writer in this process knows
    it: it is never stored and never sent, and `KnownHeader.of` decides whether it may be believed. `payload_sha256` is
    the SHA-256 of a publication's payload, or b"" while nobody has computed it: it is never stored and never sent.
    `stays_in_memory` is set for a persistent message whose reader ends with the process (`Queue.memory_lanes`).
    """

    __slots__ = (
        "backout_count",
        "body",
        "descriptor",
        "expires_us",
        "identifier_prefix",
        "origin",
        "payload_sha256",
        "put_us",
        "sequence",
        "stays_in_memory",
        "written",
    )

    def __init__(self, descriptor: MessageDescriptor, body: bytes, origin: bytes = b"") -> None:
        self.descriptor = descriptor
        self.body = body
        self.origin = origin
        self.sequence = 0
        self.put_us = 0
        self.expires_us = 0
        self.backout_count = 0
        self.identifier_prefix = b""
        self.written: KnownHeader | None = None
        self.payload_sha256 = b""
        self.stays_in_memory = False

    @property
    def msg_id(self) -> bytes:
        """The 24-byte MsgId: the one that was given, else tag, store incarnation (12) and sequence (8, big-endian)."""
        given = self.descriptor.msg_id
        return given if given != MQMI_NONE else self.identifier_prefix + self.sequence.to_bytes(8, "big")

    def matches(self, correl_id: bytes | None, msg_id: bytes | None) -> bool:
        """Whether the message has these identifiers; None matches any."""
        return (msg_id is None or self.msg_id == msg_id) and (
            correl_id is None or self.descriptor.correl_id == correl_id
        )

    @property
    def is_persistent(self) -> bool:
        return self.descriptor.persistence == MQPER_PERSISTENT

    @property
    def is_stored(self) -> bool:
        """Whether a commit writes it to the disk, so that it survives a restart."""
        return self.descriptor.persistence == MQPER_PERSISTENT and not self.stays_in_memory

    def __repr__(self) -> str:
        return f"Message(sequence={self.sequence}, format={self.descriptor.format!r}, bytes={len(self.body)})"
