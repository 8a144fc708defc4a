"""The private origin of a message: which exchange of which session it came from.

The broker copies it to each copy and each answer. It never leaves the store, so its content is the gateway's own word.
The audit trail names a message by it.
"""

import struct
from typing import Final

from mq_adapters.message import Message

#: Private origin of a message: session epoch, exchange, packet identifier, QoS and RETAIN; the client follows.
ORIGIN: Final = struct.Struct(">QQHB")
_QOS: Final = 0x03
RETAIN: Final = 0x04


def exchange_of(origin: bytes) -> tuple[str, int, int]:
    """Client identifier, session epoch and exchange of a private origin; ("", 0, 0) for a message without one."""
    if len(origin) < ORIGIN.size:
        return "", 0, 0
    epoch, exchange, _, _ = ORIGIN.unpack_from(origin)
    return origin[ORIGIN.size :].decode(errors="replace"), epoch, exchange


def client_of(origin: bytes) -> str:
    """The client of a private origin; "" for none."""
    return exchange_of(origin)[0]


def published_qos(message: Message) -> int:
    """The QoS with which a message was published; without a private origin a persistent message means QoS 1."""
    if len(message.origin) < ORIGIN.size:
        return 1 if message.is_persistent else 0
    return message.origin[ORIGIN.size - 1] & _QOS


def published_retain(message: Message) -> bool:
    """Whether the PUBLISH that a message was had RETAIN; False for a message without a private origin."""
    return had_retain(message.origin)


def had_retain(origin: bytes) -> bool:
    """The same, of the private origin itself."""
    return len(origin) >= ORIGIN.size and origin[ORIGIN.size - 1] & RETAIN != 0
