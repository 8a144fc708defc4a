"""A command that asks for retained publications: its progress, and its rows in the store.

Copies are made in the order of the numbers of what is retained. So one number says how far a command is. If a new
publication comes on a topic, what is retained there is sent ahead of its turn, and its number is noted apart.

Stored form (space BROKER_UPDATE). The key of a command is its number, 8 bytes, big-endian; the keys of its other rows
begin with it. Every value is a msgpack list that begins with its version:

    key                                 value
    number                              numbers of the subscriptions, whether it is ReqUpdate, psc fields and warnings
                                        [reason code, fields] of the answer, and nil or sequence, put time, expiry time,
                                        packed descriptor, private origin and body of the command; nil: it is answered
    number, 8 bytes 0                   the number up to which all is sent, the copies so far, and whether each content
                                        filter could be checked
    number, number of a publication     nothing: it was sent ahead of its turn

A command whose subscriber ends with this process has only the first row.
"""

import heapq
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, cast

import ormsgpack

from mappings.commands.response import ResponseReason
from mq_adapters.broker.distributor import RetainedPlan
from mq_adapters.broker.received import received_command
from mq_adapters.broker.retained import Retained
from mq_adapters.broker.subscribers import Done
from mq_adapters.broker.subscription import Identity, Subscription
from mq_adapters.command_header import CommandHeader
from mq_adapters.embedded.unit_of_work import StateKind, UnitOfWork
from mq_adapters.message import Message, unpack_descriptor
from mq_adapters.reasons import StoreError

_VERSION: Final = 1
_NUMBER_BYTES: Final = 8
_PROGRESS: Final = bytes(_NUMBER_BYTES)
#: So many publications are sorted at once, which takes a quarter of a millisecond.
_SORTED_AT_ONCE: Final = 1_000
#: The most copies that one unit of work puts, at some 20 microseconds each; and its most bytes of bodies.
_COPIES_IN_A_UNIT: Final = 40
_BYTES_IN_A_UNIT: Final = 64 * 1024


class Found(NamedTuple):
    """A publication that is retained on a routing topic, and a subscription that gets it."""

    subscription: Subscription
    topic: str
    kept: Retained


class Update:
    """A command that asks for retained publications, and its progress.

    First call `gather` with what its subscriptions match, then `arrange` once, then take `upcoming` one by one.
    """

    __slots__ = (
        "_following",
        "_runs",
        "ahead",
        "bound",
        "copies",
        "done",
        "has_ended",
        "is_arranged",
        "is_lasting",
        "is_over",
        "is_parsed",
        "is_refused",
        "kept_bytes",
        "kept_copies",
        "message",
        "name",
        "number",
        "progress",
        "promised_bytes",
        "ready",
        "ready_bytes",
        "received",
        "seen_changes",
        "steps",
        "upcoming",
    )

    def __init__(self, done: Done, message: Message | None, received: CommandHeader | None, bound: int) -> None:
        self.done = done
        #: The command that has no answer yet, if there is one.
        self.message = message
        self.received = received
        #: Later publications (by Retained.order) were sent when they were published.
        self.bound = bound
        #: The number of the command, which later publications have above it; 0 while it has no row.
        self.number = 0
        #: Its name for the caller of the broker: MsgId of the command, or its key after a restart.
        self.name = b"" if message is None else message.msg_id
        #: Whether its subscriber outlives this process, so that its progress is stored.
        self.is_lasting = True
        #: The steps through the unchecked topics.
        self.steps: Iterator[Found | None] = iter(())
        self._runs: list[list[Found]] = [[]]
        self._following: Iterator[Found] = iter(())
        self.is_arranged = False
        #: The next publication in its turn; None: there is no other.
        self.upcoming: Found | None = None
        #: All up to this number of a publication is sent, and these in front of their turn.
        self.progress = 0
        self.ahead: set[int] = set()
        self.has_ended = False
        #: Copies that are ready to be put, and the bytes of their bodies.
        self.ready: list[tuple[Found, RetainedPlan]] = []
        self.ready_bytes = 0
        #: The state of what is retained when they were made ready (RetainedPublications.changes); -1: some were sent.
        self.seen_changes = -1
        self.copies = 0
        self.is_parsed = True
        #: Bytes of copies that a limit has promised and that are not put.
        self.promised_bytes = 0
        #: Promised copies of the present unit that are not charged yet, and their bytes.
        self.kept_copies = 0
        self.kept_bytes = 0
        #: Whether a limit on copies stopped the command.
        self.is_refused = False
        #: All is sent, or a later command for the same subscriptions sends the rest.
        self.is_over = False

    @property
    def key(self) -> bytes:
        """The durable key of the command."""
        return self.number.to_bytes(_NUMBER_BYTES, "big")

    @property
    def identity(self) -> Identity:
        return self.done.to_update[0].identity

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(subscription.number for subscription in self.done.to_update)

    @property
    def is_due(self) -> bool:
        """Whether the ready copies should be put now. Those with one number are put together."""
        if self.has_ended:
            return True
        is_full = len(self.ready) >= _COPIES_IN_A_UNIT or self.ready_bytes >= _BYTES_IN_A_UNIT
        return is_full and self.upcoming is not None and age(self.upcoming) != age(self.ready[-1][0])

    # -- what its subscriptions match ----------------------------------------------------------------------------------

    def gather(self, found: Iterable[Found]) -> None:
        """Adds some of what the subscriptions match."""
        run = self._runs[-1]
        run += found
        if len(run) >= _SORTED_AT_ONCE:
            run.sort(key=age)
            self._runs.append([])

    def arrange(self) -> None:
        """Everything is gathered: `upcoming` is the oldest publication from now on."""
        self._runs[-1].sort(key=age)
        self._following = iter(self._runs[0]) if len(self._runs) == 1 else heapq.merge(*self._runs, key=age)
        self._runs = []
        self.is_arranged = True
        self.go_on()

    def go_on(self) -> None:
        """The next publication becomes `upcoming`."""
        self.upcoming = next(self._following, None)

    def was_sent(self, kept: Retained) -> bool:
        """Whether a publication is younger than the command, or was sent for it."""
        sequence = kept.sequence
        is_younger = kept.order > self.bound or sequence > self.number > 0
        return is_younger or sequence <= self.progress or sequence in self.ahead

    # -- its rows ------------------------------------------------------------------------------------------------------

    def store(self, unit: UnitOfWork) -> None:
        """Writes the command."""
        done, message = self.done, self.message
        command = None
        if message is not None:
            times = (message.sequence, message.put_us, message.expires_us)
            command = [*times, message.descriptor.pack(), message.origin, message.body]
        warnings = [[int(warning.reason_code), warning.fields] for warning in done.warnings]
        row = [_VERSION, self.numbers, done.is_requested, done.fields, warnings, command]
        unit.set_state(StateKind.BROKER_UPDATE, self.key, ormsgpack.packb(row))

    def send_ahead(self, unit: UnitOfWork, sequence: int) -> None:
        """Notes that a publication is sent before its turn."""
        self.seen_changes = -1
        self.ahead.add(sequence)
        if self.is_lasting:
            key = self.key + sequence.to_bytes(_NUMBER_BYTES, "big")
            unit.set_state(StateKind.BROKER_UPDATE, key, ormsgpack.packb([_VERSION]))

    def advance(self, unit: UnitOfWork, sequence: int) -> None:
        """Notes that all up to a number of a publication is sent."""
        self.progress = sequence
        if self.is_lasting and self.number and not self.has_ended:
            row = [_VERSION, sequence, self.copies, self.is_parsed]
            unit.set_state(StateKind.BROKER_UPDATE, self.key + _PROGRESS, ormsgpack.packb(row))

    def delete(self, unit: UnitOfWork) -> None:
        """Deletes all its rows."""
        if not self.number:
            return
        unit.delete_state(StateKind.BROKER_UPDATE, self.key)
        if self.is_lasting:
            unit.delete_state(StateKind.BROKER_UPDATE, self.key + _PROGRESS)
            for sequence in self.ahead:
                unit.delete_state(StateKind.BROKER_UPDATE, self.key + sequence.to_bytes(_NUMBER_BYTES, "big"))


def subscriptions_under_way(rows: Iterable[tuple[bytes, bytes]]) -> set[int]:
    """The numbers of the subscriptions to which stored commands still send something."""
    return {number for key, packed in rows if len(key) == _NUMBER_BYTES for number in _numbers(packed)}


def stored_updates(
    rows: Iterable[tuple[bytes, bytes]], by_number: dict[int, Subscription], identifier_prefix: bytes, bound: int
) -> list[Update]:
    """The commands of the store, oldest first; StoreError for another version or for damage."""
    updates: dict[bytes, Update] = {}
    for key, packed in sorted(rows):
        number, about = key[:_NUMBER_BYTES], key[_NUMBER_BYTES:]
        update = updates.get(number)
        if not about:
            update = updates[key] = _unpack(packed, by_number, identifier_prefix, bound)
            update.number, update.name = int.from_bytes(key, "big"), key
        elif update is not None and about == _PROGRESS:
            update.progress, update.copies, update.is_parsed = _values(packed)
        elif update is not None:
            update.ahead.add(int.from_bytes(about, "big"))
    return list(updates.values())


def _unpack(packed: bytes, by_number: dict[int, Subscription], identifier_prefix: bytes, bound: int) -> Update:
    numbers, is_requested, fields, warnings, command = _values(packed)
    done = Done(
        fields=_pairs(fields),
        warnings=tuple(ResponseReason(reason_code=code, fields=_pairs(said)) for code, said in warnings),
        to_update=tuple(by_number[number] for number in numbers if number in by_number),
        is_requested=is_requested,
    )
    if command is None:
        return Update(done, None, None, bound)
    try:
        sequence, put_us, expires_us, descriptor, origin, body = command
        message = Message(unpack_descriptor(descriptor), body, origin)
    except (ValueError, TypeError) as error:
        raise _unreadable(error) from error
    message.sequence, message.put_us, message.expires_us = sequence, put_us, expires_us
    message.identifier_prefix = identifier_prefix
    received = received_command(message)
    assert isinstance(received, CommandHeader)  # the broker had read the command before it stored it
    return Update(done, message, received, bound)


def _numbers(packed: bytes) -> list[int]:
    return cast(list[int], _values(packed)[0])


def _values(packed: bytes) -> list[Any]:
    """The values of a row behind its version."""
    try:
        version, *values = cast(list[Any], ormsgpack.unpackb(packed))
        if version != _VERSION:
            raise ValueError(f"stored version {version}, this program reads {_VERSION}")
    except (ValueError, TypeError) as error:
        raise _unreadable(error) from error
    return values


def _unreadable(error: Exception) -> StoreError:
    return StoreError("read a command", str(error), "use the program that wrote it, or a backup")


def age(found: Found) -> int:
    """The number of the publication: older ones have lower numbers."""
    return found.kept.sequence


def _pairs(rows: Iterable[Iterable[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in rows)
