"""A subscriber as a broker knows it: a client's session, or a group of clients that shares a subscription.

The private origin of a message: which exchange of which session it came from.

The broker copies it to every copy and answer. It never leaves the store, so what it says is the gateway's own word.
"""

import struct
from collections.abc import Iterator
from typing import Final, Protocol

from gateway.bridge.session_store import StoredRegistrations
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import Message


class Subscriber(Protocol):
    """Whom registrations are for. What is registered is counted here; its publications come with its CorrelId.

    `client` and `epoch` name it in notes, commands and logs. `takes_retained`: what is retained is asked for when it
    is registered. `emitted`, `generations` and `stored_registrations` are as in `gateway.bridge.sessions`.
    """

    epoch: int
    correl_id: bytes
    origin_suffix: bytes
    emitted: dict[str, dict[str, int]]
    generations: dict[str, int]
    stored_registrations: StoredRegistrations | None
    may_be_registered: bool

    @property
    def client(self) -> str: ...

    @property
    def takes_retained(self) -> bool: ...


class Subscribers(Protocol):
    """Every subscriber of the gateway."""

    def __iter__(self) -> Iterator[Subscriber]: ...

    def knows(self, subscriber: Subscriber) -> bool:
        """Whether it has not ended."""
        ...

    def save(self, unit: UnitOfWork, subscriber: Subscriber) -> None:
        """Writes its row, with what is registered for it."""
        ...


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


def own_origin(subscriber: Subscriber) -> bytes:
    """The private origin of a command that is no publication."""
    return ORIGIN.pack(subscriber.epoch, 0, 0, 1) + subscriber.origin_suffix
