"""Messages for another queue manager: whole behind an MQXQH, on a transmission queue.

MQXQH version 1, 428 bytes; integers are 32 bits, little-endian; text is UTF-8, blank padded:

      0    4  StrucId         'XQH '
      4    4  Version         1
      8   48  RemoteQName
     56   48  RemoteQMgrName
    104  324  MsgDesc         the message's MQMD, version 1: the first 324 bytes of version 2

The message data follow. The MQMD outside has a new MsgId, the embedded MsgId as CorrelId, and Format MQXMIT. Its
ApplOriginData is MORE where the next message on the queue must go in the same unit of work as this one (a DeletePub and
its empty Publish); else it is blank.
Source: IBM MQ, "MQXQH - Transmission-queue header".
"""

import struct
from dataclasses import dataclass
from typing import Final

from mq_adapters.attributes import is_object_name
from mq_adapters.message import (
    MQAT_QMGR,
    MQEI_UNLIMITED,
    MQENC_LITTLE_ENDIAN,
    MQMI_NONE,
    MQMT_DATAGRAM,
    UTF_8,
    Message,
    MessageDescriptor,
)
from mq_adapters.mqmd import read_mqmd, write_mqmd
from mq_adapters.reasons import QueueManagerError, ReasonCode

FORMAT_TRANSMISSION: Final = b"MQXMIT  "
_HEADER: Final = struct.Struct("<4si48s48s")
_MQMD_1_BYTES: Final = 324
_VERSION_AT: Final = slice(4, 8)
_VERSION_1: Final = (1).to_bytes(4, "little")
_VERSION_2: Final = (2).to_bytes(4, "little")
_PUT_APPL_NAME_CHARACTERS: Final = 28
_MQMD_AT: Final = _HEADER.size
_DATA_AT: Final = _MQMD_AT + _MQMD_1_BYTES
#: Where the MsgId of the message stands in the body of one on a transmission queue: MQMD.MsgId is at 48.
TRANSMITTED_MSG_ID: Final = slice(_MQMD_AT + 48, _MQMD_AT + 72)
#: The last 40 bytes of an MQMD version 2, of a message that is neither in a group nor a segment.
_VERSION_2_REST: Final = write_mqmd(Message(MessageDescriptor(), b""))[_MQMD_1_BYTES:]
_MORE: Final = "MORE"
_TENTH_US: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Transmission:
    """The content of a message on a transmission queue: its destination, and the message with its own MQMD."""

    queue_name: str
    queue_manager_name: str
    message: Message


def transmission_message(
    message: Message, *, queue_name: str, queue_manager_name: str, own_name: str, now_us: int
) -> Message:
    """The message for the transmission queue. `message` has its MsgId and resolved priority and persistence.

    Raises QueueManagerError 2026 for a descriptor that no MQMD can hold.
    """
    now = Message(message.descriptor, b"")
    now.put_us = now_us
    embedded = bytearray(write_mqmd(now)[:_MQMD_1_BYTES])
    embedded[_VERSION_AT] = _VERSION_1
    header = _HEADER.pack(b"XQH ", 1, queue_name.encode().ljust(48), queue_manager_name.encode().ljust(48))
    descriptor = message.descriptor.replace(
        report=0,
        msg_type=MQMT_DATAGRAM,
        expiry=MQEI_UNLIMITED,
        feedback=0,
        encoding=MQENC_LITTLE_ENDIAN,
        coded_char_set_id=UTF_8,
        format=FORMAT_TRANSMISSION,
        msg_id=MQMI_NONE,
        correl_id=message.descriptor.msg_id,
        put_appl_type=MQAT_QMGR,
        put_appl_name=own_name[:_PUT_APPL_NAME_CHARACTERS],
        appl_origin_data="",
    )
    return Message(descriptor, header + bytes(embedded) + message.body, message.origin)


def read_transmission(transmitted: Message, *, now_us: int) -> Transmission:
    """The message for the other queue manager, at `now_us` (microseconds since 1970), with what is left of its Expiry.

    One tenth of a second is always left: it expires there, and is reported there if it asks for that. Raises
    QueueManagerError 2260 for what is no MQXQH, and what `read_mqmd` raises for the descriptor in it.
    """
    body = transmitted.body
    outside = transmitted.descriptor
    if outside.format != FORMAT_TRANSMISSION or outside.encoding != MQENC_LITTLE_ENDIAN or len(body) < _DATA_AT:
        raise _header_error(
            f"Format {outside.format!r}, Encoding {outside.encoding} and {len(body)} bytes announce none"
        )
    struc_id, version, queue_name, queue_manager_name = _HEADER.unpack_from(body)
    if struc_id != b"XQH " or version != 1:
        raise _header_error(f"it begins with {struc_id!r} version {version}")
    mqmd = bytearray(body[_MQMD_AT:_DATA_AT])
    if mqmd[_VERSION_AT] != _VERSION_1:
        raise _header_error(f"its MsgDesc has version {mqmd[_VERSION_AT].hex()}")
    mqmd[_VERSION_AT] = _VERSION_2
    message = read_mqmd(bytes(mqmd) + _VERSION_2_REST, body[_DATA_AT:])
    _let_time_pass(message, now_us)
    return Transmission(
        queue_name=_name(queue_name, "RemoteQName"),
        queue_manager_name=_name(queue_manager_name, "RemoteQMgrName", may_be_blank=True),
        message=message,
    )


def kept_with_next(transmitted: Message) -> Message:
    """The same message, to go in one unit of work with the next one on its transmission queue."""
    return Message(transmitted.descriptor.replace(appl_origin_data=_MORE), transmitted.body, transmitted.origin)


def is_kept_with_next(transmitted: Message) -> bool:
    """Whether the next message must go in the same unit of work."""
    descriptor = transmitted.descriptor
    return descriptor.appl_origin_data == _MORE and descriptor.format == FORMAT_TRANSMISSION


def _let_time_pass(message: Message, now_us: int) -> None:
    expiry = message.descriptor.expiry
    if expiry != MQEI_UNLIMITED and message.put_us:
        passed = max(0, now_us - message.put_us) // _TENTH_US
        message.descriptor = message.descriptor.replace(expiry=max(1, expiry - passed))


def _name(field: bytes, field_name: str, *, may_be_blank: bool = False) -> str:
    name = field.partition(b"\0")[0].rstrip(b" ").decode(errors="replace")
    if not is_object_name(name) and not (may_be_blank and not name):
        raise _header_error(f"its {field_name} is {name!r}")
    return name


def _header_error(complaint: str) -> QueueManagerError:
    return QueueManagerError(ReasonCode.MQRC_XQH_ERROR, f"read a transmission queue header: {complaint}")


def inner_msg_id(message: Message) -> bytes:
    """The MsgId of a message; of one on its way to another queue manager that which it will have there."""
    is_transmitted = message.descriptor.format == FORMAT_TRANSMISSION
    return message.body[TRANSMITTED_MSG_ID] if is_transmitted else message.msg_id
