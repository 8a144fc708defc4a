"""A unit of work: changes that are committed together. It is a list in memory until then, never an open transaction.

Beside messages it carries changes of state (keys and values of sessions, subscriptions, retained publications and other
kinds) and audit notes.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from mq_adapters.message import Message

if TYPE_CHECKING:
    from mq_adapters.embedded.queue import Queue


class StateKind(IntEnum):
    """The kinds of durable state, each with keys of its own. Numbers are stored: never reuse one."""

    BROKER_SUBSCRIPTION = 1
    BROKER_RETAINED = 2
    SESSION = 3
    SESSION_INCOMING = 4
    SESSION_OUTGOING = 5
    GATEWAY = 6
    BACK_OUT_COUNT = 7
    SHARED_SUBSCRIPTION = 8
    BROKER_UPDATE = 9
    BALANCE = 10
    CLOCK = 12
    SESSION_SUBSCRIPTION = 13
    TRAIL = 14
    DEFERRED_PUT = 15


#: Where the store keeps how far the audit trail reaches. Only the writer of the trail knows what the value says.
TRAIL_HEAD: Final = (StateKind.TRAIL, b"head")


class Departure(IntEnum):
    """Why a message leaves a queue. Each message leaves once, for one of these reasons.

    Numbers are stored with the counters: never reuse one.
    """

    #: Its receiver has it: an application, a client, or the gateway itself.
    TAKEN = 1
    #: It goes on in the same unit of work: a channel or the conversion service has put it on another queue.
    FORWARDED = 2
    #: A dead letter that the same unit of work puts back on the queue to which it was going.
    REDRIVEN = 3
    #: Its own expiry is over.
    EXPIRED = 4
    #: An operator destroyed it: CLEAR, DELETE with PURGE, set aside as damaged.
    CLEARED = 5
    #: The same unit of work put it whole on a dead-letter queue, or held it.
    DEAD_LETTERED = 6
    #: A rule destroyed it, and a note names the rule: nobody wants it any more, too large for the client, past a limit.
    DROPPED = 7
    #: The session that it waited for has ended. It is dropped by rule, and the balance has a counter of its own for it.
    SESSION_ENDED = 8


class PublicationCounter(IntEnum):
    """The counters of publications in the balance (embedded/counters.py). Numbers are stored: never reuse one."""

    RECEIVED = 0
    REPEATS = 1
    WILLS = 2
    PUBLISHED = 3
    REFUSED = 4
    DROPPED = 5
    GIVEN_UP = 6
    COPIES = 7


#: An audit note: a kind and its values, packed as it stands (see gateway/audit_trail/notes/notes.py).
Note = tuple[object, ...]


class ApplicationIdentity(NamedTuple):
    """An MQ application: the name that it gave itself, and its user as the socket server proved it.

    `is_owner`: it has every right, as the gateway's own user. `program` is the number of an MQ client's connection.
    """

    name: str
    operator: str
    is_owner: bool = False
    program: int = 0


#: A message that leaves its queue, and why.
Removal = tuple["Queue", Message, Departure]


class _CountedPuts:
    """How many messages of a list of puts are for each queue. The list only grows, and each put is looked at once."""

    __slots__ = ("numbers", "puts", "up_to")

    def __init__(self, puts: list[tuple["Queue", Message]]) -> None:
        self.puts = puts
        self.up_to = 0
        self.numbers: dict[Queue, int] = {}

    def on(self, queue: "Queue") -> int:
        puts, numbers = self.puts, self.numbers
        for place in range(self.up_to, len(puts)):
            found = puts[place][0]
            numbers[found] = numbers.get(found, 0) + 1
        self.up_to = len(puts)
        return numbers.get(queue, 0)


class UnitOfWork:
    """Collects changes. `Engine.submit` commits them, and then calls `on_committed`."""

    __slots__ = (
        "_counted",
        "answered",
        "application",
        "counts",
        "holds_letters",
        "is_explicit",
        "notes",
        "notes_are_due",
        "on_committed",
        "puts",
        "redriven",
        "removals",
        "states",
    )

    def __init__(self) -> None:
        self.puts: list[tuple[Queue, Message]] = []
        self.removals: list[Removal] = []
        self.states: list[tuple[int, bytes, bytes | None]] = []
        self.notes: list[Note] = []
        #: The outcome of each publication in this unit, as a `PublicationCounter`.
        self.counts: list[int] = []
        #: The notes are committed with this unit even if nothing else in it is durable. A persistent publication
        #: without subscribers is acknowledged like every other, so its record must stay as well.
        self.notes_are_due = False
        #: Commands of this unit that the broker answered with a failure: the message as it was put, by its MsgId.
        self.answered: dict[bytes, Message] = {}
        #: A dead letter of this unit found no room on the dead-letter queue, so its cause has to wait.
        self.holds_letters = False
        #: A former dead letter that goes to the broker again. If it is refused once more, the whole unit fails.
        self.redriven: Message | None = None
        #: The application whose unit this is; None for one of the gateway's own.
        self.application: ApplicationIdentity | None = None
        #: An application began it with MQBEGIN; else each call of it is a unit of its own.
        self.is_explicit = False
        self.on_committed: Callable[[UnitOfWork], None] | None = None
        self._counted: _CountedPuts | None = None

    def put(self, queue: "Queue", message: Message) -> None:
        """Add a message that the engine has numbered (`Engine.put` does both)."""
        self.puts.append((queue, message))

    def puts_on(self, queue: "Queue") -> int:
        """How many messages of the unit are for a queue. Each put of a large unit may ask for it."""
        counted = self._counted
        if counted is None or counted.puts is not self.puts:  # the unit has another list when it is carried out
            counted = self._counted = _CountedPuts(self.puts)
        return counted.on(queue)

    def remove(self, queue: "Queue", message: Message, departure: Departure) -> None:
        """Destroy a message that was taken off its lane; `departure` says why, for the balance."""
        self.removals.append((queue, message, departure))
        if message.backout_count and message.is_stored:
            self.delete_state(StateKind.BACK_OUT_COUNT, back_out_key(message.sequence))

    def count(self, what: PublicationCounter, number: int = 1) -> None:
        """Count the outcome of publications, with the commit of this unit."""
        self.counts += [int(what)] * number

    def set_state(self, kind: StateKind, key: bytes, value: bytes) -> None:
        self.states.append((kind, key, value))

    def delete_state(self, kind: StateKind, key: bytes) -> None:
        self.states.append((kind, key, None))


def back_out_key(sequence: int) -> bytes:
    """The key of a message's back-out count."""
    return sequence.to_bytes(8, "big")
