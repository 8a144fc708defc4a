"""A subscriber as a broker knows it: a client's session, or a group of clients that shares a subscription."""

from collections.abc import Iterator
from typing import Protocol

from gateway.audit_trail.notes.origin import ORIGIN
from gateway.bridge.sessions.session_store import StoredRegistrations
from mq_adapters.embedded.unit_of_work import UnitOfWork


class Subscriber(Protocol):
    """The owner of registrations, which it counts. Its publications carry its CorrelId.

    `client` and `epoch` name it in notes, commands and logs. `takes_retained`: its registrations ask for retained
    messages. `emitted`, `generations` and `stored_registrations` are as in `gateway.bridge.sessions.sessions`.
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
        """Whether the subscriber still exists."""
        ...

    def save(self, unit: UnitOfWork, subscriber: Subscriber) -> None:
        """Writes its row, with its registrations."""
        ...


def own_origin(subscriber: Subscriber) -> bytes:
    """The private origin of a subscriber's command (not of a publication)."""
    return ORIGIN.pack(subscriber.epoch, 0, 0, 1) + subscriber.origin_suffix
