"""Messages for another queue manager: whole behind an MQXQH, on a transmission queue.

MQXQH version 1, 428 bytes; integers are 32 bits, little-endian; text is UTF-8, blank padded:

      0    4  StrucId         'XQH '
      4    4  Version         1
      8   48  RemoteQName
     56   48  RemoteQMgrName
    104  324  MsgDesc         the message's MQMD, version 1: the first 324 bytes of version 2

The message data follow. The MQMD outside has a new MsgId, the embedded MsgId as CorrelId, and Format MQXMIT.
Source: IBM MQ, "MQXQH - Transmission-queue header".
"""

import struct
from typing import Final

from mq_adapters.message import (
    MQAT_QMGR,
    MQEI_UNLIMITED,
    MQENC_LITTLE_ENDIAN,
    MQMI_NONE,
    MQMT_DATAGRAM,
    UTF_8,
    Message,
)
from mq_adapters.mqmd import write_mqmd

FORMAT_TRANSMISSION: Final = b"MQXMIT  "
_HEADER: Final = struct.Struct("<4si48s48s")
_MQMD_1_BYTES: Final = 324
_VERSION_AT: Final = slice(4, 8)
_VERSION_1: Final = (1).to_bytes(4, "little")
_PUT_APPL_NAME_CHARACTERS: Final = 28


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
