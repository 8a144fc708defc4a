"""A unit of work: what is to become true together. A list in memory until it commits, never an open transaction.

It also carries what must survive beside messages: changes of state (sessions, subscriptions, retained
publications, in a space of keys and values each) and audit notes.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING

from mq_adapters.message import Message

if TYPE_CHECKING:
    from mq_adapters.embedded.queue import Queue


class StateSpace(IntEnum):
    """Who owns a durable key. Numbers are stored: never reuse one."""

    BROKER_SUBSCRIPTION = 1
    BROKER_RETAINED = 2
    SESSION = 3
    SESSION_INCOMING = 4
    SESSION_OUTGOING = 5
    GATEWAY = 6
    BACK_OUT_COUNT = 7
    SHARED_SUBSCRIPTION = 8
    BROKER_UPDATE = 9


#: An audit note: a kind and its values, packed as it stands (see gateway/audit_trail/notes.py).
Note = tuple[object, ...]


class UnitOfWork:
    """Collects; `Engine.submit` makes it true, and then calls `on_committed`."""

    __slots__ = ("answered", "notes", "notes_are_due", "on_committed", "puts", "removals", "states")

    def __init__(self) -> None:
        self.puts: list[tuple[Queue, Message]] = []
        self.removals: list[tuple[Queue, Message]] = []
        self.states: list[tuple[int, bytes, bytes | None]] = []
        self.notes: list[Note] = []
        #: The notes are committed with this unit even where nothing else in it is durable: a persistent publication
        #: that nobody subscribes to is acknowledged as every other, so its record must stay as well.
        self.notes_are_due = False
        #: Commands of this unit that the broker answered with a failure: the message as it was put, by its MsgId.
        self.answered: dict[bytes, Message] = {}
        self.on_committed: Callable[[UnitOfWork], None] | None = None

    def put(self, queue: "Queue", message: Message) -> None:
        """Add a message that the engine has numbered (`Engine.put` does both)."""
        self.puts.append((queue, message))

    def puts_on(self, queue: "Queue") -> int:
        """How many messages of the unit are for a queue."""
        return sum(1 for found, _ in self.puts if found is queue)

    def remove(self, queue: "Queue", message: Message) -> None:
        """Destroy a message that was taken off its lane."""
        self.removals.append((queue, message))
        if message.backout_count and message.is_persistent:
            self.delete_state(StateSpace.BACK_OUT_COUNT, back_out_key(message.sequence))

    def set_state(self, space: StateSpace, key: bytes, value: bytes) -> None:
        self.states.append((space, key, value))

    def delete_state(self, space: StateSpace, key: bytes) -> None:
        self.states.append((space, key, None))


def back_out_key(sequence: int) -> bytes:
    """The key of a message's back-out count."""
    return sequence.to_bytes(8, "big")
