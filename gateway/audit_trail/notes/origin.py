"""The private origin of a message: the session and exchange from which it came.

The broker copies it to each copy and each answer. It never leaves the store, so its content is the gateway's own word.
The audit trail names a message by it.

The origin of a dead letter may end with a 0 byte and the payer of the letter (gateway/bridge/sessions/
letter_payers.py); the client identifier in front has no U+0000 (MQTT-1.5.4-2). A letter of an earlier version has no
payer.
"""

import struct
from typing import Final

from mq_adapters.message import Message

#: Private origin of a message: session epoch, exchange, packet identifier, QoS and RETAIN; the client follows, and the
#: payer of a dead letter.
ORIGIN: Final = struct.Struct(">QQHB")
_QOS: Final = 0x03
_END_OF_CLIENT: Final = b"\0"
RETAIN: Final = 0x04


def without_payer(origin: bytes) -> bytes:
    """The private origin of a message whose letter has a payer; b"" again for an application's publication."""
    client, mark, _ = origin[ORIGIN.size :].partition(_END_OF_CLIENT)
    if not mark:
        return origin
    return origin[: ORIGIN.size] + client if client else b""


def exchange_of(origin: bytes) -> tuple[str, int, int]:
    """Client identifier, session epoch and exchange of a private origin; ("", 0, 0) for a message without one."""
    if len(origin) < ORIGIN.size:
        return "", 0, 0
    epoch, exchange, _, _ = ORIGIN.unpack_from(origin)
    client, _, _ = origin[ORIGIN.size :].partition(_END_OF_CLIENT)
    return client.decode(errors="replace"), epoch, exchange


def client_of(origin: bytes) -> str:
    """The client of a private origin; "" for none."""
    return exchange_of(origin)[0]


def payer_of(origin: bytes) -> bytes:
    """The payer of a dead letter, as its private origin names it; b"" for none."""
    return origin[ORIGIN.size :].partition(_END_OF_CLIENT)[2]


def with_payer(letter: Message, payer: bytes) -> bytes:
    """The private origin of a dead letter with its payer, in the place of an earlier one's."""
    origin, client = letter.origin[: ORIGIN.size], letter.origin[ORIGIN.size :].partition(_END_OF_CLIENT)[0]
    if len(origin) < ORIGIN.size:  # an application's publication, on the lane of a session
        origin, client = ORIGIN.pack(0, 0, 0, published_qos(letter)), b""
    return origin + client + _END_OF_CLIENT + payer


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
