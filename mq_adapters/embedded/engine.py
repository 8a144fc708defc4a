"""The embedded queue manager: the one owner of a store, for one thread, with call-backs instead of waiting.

Units of work complete in the order in which they were submitted. All that were submitted during one turn of the event
loop are one group: one SQLite transaction, one fsync. While a slow commit runs in a thread the next group gathers.
A group without anything durable completes at once; its audit notes join the next group or `tick`. Further units may be
committed with a group (`before_commit`), and its messages may be taken in it, unless a thread commits it
(`Queue.join`). A failed write stops the queue manager; it never goes on in memory.

    unit = engine.begin()
    engine.put(unit, queue, message)          # numbered now, visible when the unit is committed
    engine.submit(unit, on_committed)         # on_committed(unit) is called after the fsync

The gateway's event loop drives it in the daemon; a command without a daemon drives it through embedded/direct.py.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from mq_adapters.attributes import Definition, ObjectType, Value
from mq_adapters.embedded.available_messages import AvailableMessages
from mq_adapters.embedded.counters import Counters
from mq_adapters.embedded.dead_letters import DeadLetters
from mq_adapters.embedded.expiry import Expiry
from mq_adapters.embedded.gateway_queues import GatewayQueues
from mq_adapters.embedded.group_commit import GroupCommit, Offload
from mq_adapters.embedded.kept_time import newest_us
from mq_adapters.embedded.message_cache import MessageCache
from mq_adapters.embedded.objects import Objects
from mq_adapters.embedded.operators_act import OperatorsAct
from mq_adapters.embedded.put_rules import FORMAT_BYTES, check_put, expiry_time, resolved_persistence
from mq_adapters.embedded.queue import Queue, ServedHandler
from mq_adapters.embedded.reporting import Reporter
from mq_adapters.embedded.stock import QueueStock, take_stock
from mq_adapters.embedded.store.maintenance import StoreMaintenance
from mq_adapters.embedded.store.store import Store
from mq_adapters.embedded.unit_of_work import Departure, Note, StateKind, UnitOfWork
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.plausible_clock import PlausibleClock
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError
from mq_adapters.system_queues import AUDIT_QUEUE, MADE_AT_START, SYSTEM_QUEUES, QueueOwner

#: Messages on these queues belong to the gateway, whatever its configuration says.
_ALWAYS_OWNED: Final = frozenset(row.name for row in MADE_AT_START if row.owner is QueueOwner.GATEWAY)

#: A longer batch of audit notes, in bytes, is divided, because the exporter takes batches whole.
AUDIT_MESSAGE_BYTES: Final = 16 * 1024 * 1024
#: So many lanes may be taken from in the commit that fills them. More would delay those who wait for the commit.
MOST_JOINED_LANES: Final = 16

Committed = Callable[[UnitOfWork], None]
SealNotes = Callable[[int, list[Note]], bytes]


class Engine:
    """The queue manager of one data folder. Not thread-safe: one thread calls it, and is called back by it."""

    def __init__(
        self,
        store: Store,
        *,
        name: str | None = None,
        call_soon: Callable[[Callable[[], None]], object] | None = None,
        offload: Offload | None = None,
        now_us: Callable[[], int] | None = None,
        measured_queues: Iterable[str] = (),
    ) -> None:
        #: The given value, which the store keeps. If none is given, the kept value.
        self.name = store.settled_name(name)
        self.failed: StoreError | None = None
        self.on_failure: Callable[[StoreError], None] = lambda _error: None
        #: Packs the audit notes of a group. Without it notes are dropped (in a command that opens the store itself).
        self.seal_notes: SealNotes | None = None
        #: Called when a message expired: queue, message.
        self.on_expired: Callable[[UnitOfWork, Queue, Message], None] | None = None
        #: Called for an operator's act, in its unit of work, with the number of messages that the unit removes.
        self.on_operated: Callable[[UnitOfWork, OperatorsAct, int], None] = lambda _unit, _act, _messages: None
        #: Called for each unit of work of an application before it is submitted. They may add to the unit.
        self.on_application_unit: list[Callable[[UnitOfWork], None]] = []
        #: Called when a temporary queue with messages ends: it takes them with it.
        self.on_temporary_end: Callable[[Queue], None] = lambda _queue: None
        #: Whether a message put on one of the gateway's own queues has a receiver now; None while there is no gateway.
        self.takes_back: Callable[[Queue, Message], bool] | None = None
        self.clock = PlausibleClock(newest_us(store))
        self.now_us = now_us or self.clock.now_us
        self._store = store
        self._next_sequence = store.next_sequence
        self._prefix = store.identifier_prefix
        #: 12 random bytes, made anew if the store went back, so that no two share numbers; the very first ones; and how
        #: far the store reached when it was opened.
        self.incarnation, self.identity, self.reach = store.incarnation, store.identity, store.reach
        self._message_cache = MessageCache(store)
        self.oldest_put_us = self._message_cache.oldest_put_us
        self.counters = Counters()
        self.objects = Objects(store, self._message_cache, self.counters, name=self.name, number=self.number)
        self._queues = self.objects.queues
        self.dead_letters = DeadLetters(self)
        self.reporter = Reporter(self.objects, put=self.put, bury=self.dead_letters.put, now_us=self.now_us)
        self._commits = GroupCommit(
            store,
            call_soon=call_soon,
            offload=offload,
            counters=self.counters,
            next_sequence=lambda: self._next_sequence,
            pack_notes=self._pack_notes,
            put_batch=self._put_batch,
            announce=self._announce,
            complete=self._complete,
            fail=self._fail,
        )
        self.counters.under_way = self._commits.units
        self.commit_times = self._commits.times
        self.maintenance = StoreMaintenance(store, self._commits, has_loop=call_soon is not None)
        self.has_loop = call_soon is not None
        self._available = AvailableMessages(
            self._message_cache,
            identifier_prefix=store.identifier_prefix,
            is_committing=self._commits.is_committing,
            fail=self._fail,
        )
        self._expiry = Expiry(self, self._available)
        self.destroy_found = self._expiry.destroy_found
        self._load(measured_queues)

    @classmethod
    def open(
        cls, data_dir: Path, *, wait_s: float = 0.0, rescue_folder: Path | None = None, **options: object
    ) -> "Engine":
        """Opens or makes the store of a data folder and loads its index; see Store.open for the errors."""
        store = Store.open(data_dir, wait_s=wait_s, rescue_folder=rescue_folder)
        try:
            return cls(store, **options)  # type: ignore[arg-type]  # passed on as they came
        except BaseException:
            store.close()
            raise

    def _load(self, measured_queues: Iterable[str]) -> None:
        self.counters.load(self._store.states(StateKind.BALANCE))
        self.objects.load()
        for name in self._queues.keys() & {*measured_queues}:
            self._queues[name].measure_lanes()
        counts = self._store.states(StateKind.BACK_OUT_COUNT)
        self._message_cache.load_back_outs({int.from_bytes(key, "big"): value[0] for key, value in counts})
        self._available.load(self._store.index())
        self._take_up(GatewayQueues.load(self._store.state(*GatewayQueues.key())))
        if not self.counters.has_begun:
            self.counters.begin(self._queues.values(), held=self._store.count_states(StateKind.SESSION_INCOMING))
        for row in MADE_AT_START:
            queue = self.ensure(row.name, row.description)
            if row.is_closed_to_applications:
                self._restore(queue, row.description)

    @property
    def next_sequence(self) -> int:
        """The number of the next message: no message of this incarnation has it, or one above it."""
        return self._next_sequence

    # -- queues ------------------------------------------------------------------------------------------------------

    def queue(self, name: str) -> Queue:
        """The local queue of that name, or behind an alias; 2085 if there is none."""
        return self._queues.get(name) or self.objects.base_queue(name)

    def queues(self) -> tuple[Queue, ...]:
        return tuple(self._queues[name] for name in sorted(self._queues))

    def define(self, name: str, *, description: str = "") -> Queue:
        """Defines a local queue, durably. 2152 for a bad name, 2100 if it exists."""
        return self._define(name, {"DESCR": description} if description else {})

    def ensure(self, name: str, description: str) -> Queue:
        """The queue of that name. If it is missing, it is defined now, first in, first out."""
        return self._queues.get(name) or self._define(name, _made_as(description))

    def _restore(self, queue: Queue, description: str) -> None:
        """Resets attributes of the gateway's own queue that an earlier version let an operator set."""
        said = _made_as(description)
        if queue.definition.said != said:
            self.objects.alter(Definition(object_type=ObjectType.QLOCAL, name=queue.name, said=said))

    def _define(self, name: str, said: dict[str, Value]) -> Queue:
        self._check_alive()
        self.objects.define(Definition(object_type=ObjectType.QLOCAL, name=name, said=said))
        return self._queues[name]

    def settle(self, queues: GatewayQueues) -> None:
        """A gateway says which queues are its own, durably."""
        if queues != self.gateway_queues:
            unit = self.begin()
            queues.save(unit)
            self.submit(unit)
        self._take_up(queues)

    def _take_up(self, queues: GatewayQueues) -> None:
        self.gateway_queues = queues
        self.objects.set_gateways(queues.owned | _ALWAYS_OWNED)

    def owner(self, queue: Queue) -> QueueOwner:
        """The owner of the messages on a queue."""
        if queue.name in _ALWAYS_OWNED or queue.name in self.gateway_queues.owned:
            return QueueOwner.GATEWAY
        row = SYSTEM_QUEUES.get(queue.name)
        is_operators = queue.takes_letters or (row is not None and row.is_made_at_start)
        return QueueOwner.OPERATOR if is_operators else QueueOwner.NOBODY

    def is_needed(self, name: str) -> bool:
        """Whether a gateway needs the queue of that name, or the alias."""
        queue = self._queues.get(name)
        if queue is not None and self.owner(queue) is not QueueOwner.NOBODY:
            return True
        return name in self.gateway_queues.needed or name == self.objects.queue_manager.text("DEADQ")

    def serve(self, queue: Queue, handler: ServedHandler) -> None:
        """From now on each put on `queue` is handed to `handler` inside the putter's unit of work.

        Messages that wait on the queue (put while nobody served it) are handed over first, each in a unit of its own.
        With GET(DISABLED) messages wait until that is altered.
        """
        if queue.is_get_inhibited:
            queue.resting_handler = handler
            return
        queue.handler = handler
        while (message := self.take(queue)) is not None:
            unit = self.begin()
            unit.remove(queue, message, Departure.TAKEN)
            handler(unit, queue, message)
            self.submit(unit)

    # -- units of work -----------------------------------------------------------------------------------------------

    def begin(self) -> UnitOfWork:
        return UnitOfWork()

    def put(self, unit: UnitOfWork, queue: Queue, message: Message) -> int:
        """Numbers a message and adds it to the unit.

        Raises QueueManagerError 2013, 2026, 2030, 2047, 2048, 2051, 2052, 2053 or 2056.
        """
        descriptor = message.descriptor
        is_full = queue.depth + len(unit.puts) >= queue.maximum_depth  # as if all puts of the unit were for this queue
        if is_full or len(message.body) > queue.maximum_message_bytes or len(descriptor.format) != FORMAT_BYTES:
            check_put(queue, message, uncommitted=unit.puts_on(queue))
        if descriptor.persistence != MQPER_PERSISTENT:
            message.descriptor = resolved_persistence(descriptor, queue)
            if not (message.is_persistent or queue.handler is not None or self._message_cache.has_room_for(message)):
                raise QueueManagerError(ReasonCode.MQRC_Q_SPACE_NOT_AVAILABLE, f"put on {queue.name}")
        elif queue.memory_lanes and descriptor.correl_id in queue.memory_lanes:
            message.stays_in_memory = self._message_cache.may_keep(message)
        return self._number(unit, queue, message)

    def _number(self, unit: UnitOfWork, queue: Queue, message: Message) -> int:
        """Gives a message its number, and adds it to the unit."""
        sequence = self._next_sequence
        self._next_sequence = sequence + 1
        message.sequence = sequence
        message.identifier_prefix = self._prefix
        message.put_us = self.now_us()
        if message.descriptor.expiry != -1:
            message.expires_us = expiry_time(message, queue)
        unit.puts.append((queue, message))
        return sequence

    def take(self, queue: Queue, correl_id: bytes | None = None, msg_id: bytes | None = None) -> Message | None:
        """Takes the oldest available message that matches, or None.

        The caller has it alone, until a unit of work removes it (`UnitOfWork.remove`) or `give_back` returns it.
        Expired messages before it are passed by, and destroyed now and in later turns of the event loop.
        """
        message = self._available.take(queue, correl_id, msg_id, self.now_us)
        if self._available.has_met_expired:
            self._expiry.found(queue)
        return message

    def take_number(self, queue: Queue, sequence: int) -> Message | None:
        """Takes the available message with that number off `queue`, or None; as `take`."""
        message = self._available.take_number(queue, sequence)
        if message is None or not message.expires_us or message.expires_us > self.now_us():
            return message
        self._expiry.destroy(queue, message)
        return None

    def origins(self, sequences: Iterable[int]) -> list[tuple[bytes, int]]:
        """Private origin and bytes of the body of committed messages by their numbers, in no order."""
        return self._message_cache.origins(sequences)

    def give_back(self, messages: Iterable[tuple[Queue, Message]], *, wake: bool = True) -> None:
        """Returns taken messages to their places, and wakes those who wait for them, except the caller."""
        returned = self._available.give_back(messages)
        if wake:
            self._notify(returned, [])

    def browse(
        self, queue: Queue, correl_id: bytes | None = None, msg_id: bytes | None = None, only: list[int] | None = None
    ) -> Iterable[Message]:
        """The available messages that match when the iteration reaches them, oldest first; or `only` these numbers."""
        now_us = self.now_us()
        for message in self._available.browse(queue, correl_id, msg_id, now_us if self.has_loop else 0, only):
            if not message.expires_us or message.expires_us > now_us:
                yield message

    def back_out(self, unit: UnitOfWork) -> None:
        """Forgets a unit that was not submitted. The messages that it took go back with a higher back-out count."""
        counts = self.begin()
        taken = [(queue, message) for queue, message, _ in unit.removals]
        self._message_cache.back_out(counts, taken)
        if counts.states and self.failed is None:
            self.submit(counts)
        self.give_back(taken)
        unit.puts, unit.removals = [], []

    def submit(self, unit: UnitOfWork, on_committed: Committed | None = None) -> None:
        """Makes a unit of work true. `on_committed` is called after its commit, in the order of submission.

        Puts on served queues (the broker's) are carried out here, into the same unit. Raises StoreError once the
        store has failed.
        """
        self._check_alive()
        unit.on_committed = on_committed
        if any(queue.handler is not None for queue, _ in unit.puts):
            self.carry_out(unit)
        self._commits.add(unit)

    def carry_out(self, unit: UnitOfWork) -> None:
        """Hands each put on a served queue to its handler, which may put on served queues again.

        `submit` does this too. A caller that does it before sees in the unit what the handlers have added.
        """
        kept: list[tuple[Queue, Message]] = []
        while unit.puts:
            puts, unit.puts = unit.puts, []
            for put in puts:
                queue, message = put
                if queue.handler is None:
                    kept.append(put)
                else:
                    unit.notes_are_due = unit.notes_are_due or message.is_persistent
                    queue.handler(unit, queue, message)
        unit.puts = kept

    def before_commit(self, callback: Callable[[], None]) -> None:
        """Calls back once, before the units submitted so far are written. They are committed with all that it adds."""
        self._commits.before_commit(callback)

    def note_first(self, make: Callable[[], list[Note]]) -> None:
        """Adds what `make` returns to the notes, soon: when the notes before it tell all that queues have seen."""
        self._commits.note_first(make)
        self._commits.want_notes()
        self.submit(self.begin())

    def stock(self) -> list[QueueStock]:
        """What is on the queues. Call it in `note_first`, or where no unit is under way."""
        return take_stock(self._queues.values(), self._available.taken(), self._message_cache.lanes)

    def states(self, kind: StateKind) -> list[tuple[bytes, bytes]]:
        """Every key and value of a kind, as last committed; for loading at the start."""
        return self._store.states(kind)

    def state(self, kind: StateKind, key: bytes) -> bytes | None:
        """One value of a kind, as last committed; None if there is none."""
        try:
            return self._store.state(kind, key)
        except StoreError as error:
            self._fail(error)  # an unreadable store is as bad as an unwritable one
            raise

    def each_state(self, kind: StateKind, prefix: bytes = b"", *, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Those whose key begins with a prefix, one after another: for values that are large together."""
        return self._store.each_state(kind, prefix, start=start)

    def commit_now(self) -> None:
        """Commits the units submitted in this turn of the event loop. Call it before work that takes long."""
        self._commits.flush()

    def is_committing_on(self, queue: Queue) -> bool:
        """Whether a submitted unit, not yet committed, puts on the queue or gets from it."""
        return self._commits.mentions(queue)

    def waiting(self) -> Counter[str]:
        """How many committed messages each account of the balance has, by the index."""
        return self._available.waiting(self._queues.values())

    @property
    def is_idle(self) -> bool:
        """Whether no unit waits for a commit."""
        return self._commits.is_idle

    def number(self) -> int:
        """A number from the sequence of the messages, for other things whose number must never be used twice."""
        self._next_sequence += 1
        return self._next_sequence - 1

    def tick(self) -> None:
        """Carries out due work: expiry, notes and counters that wait for a group, room on the disk. Call it often."""
        self._expiry.tick()
        if self.failed is None:
            self.dead_letters.tick(self.now_us())
        if (self._commits.has_later_notes or self.counters.is_unwritten) and self.failed is None:
            self._commits.want_notes()
            self.submit(self.begin())
        else:
            self.maintenance.give_back_when_idle()

    def close(self) -> None:
        """Commits waiting units, then closes the store. With commits in a thread, wait for `is_idle` first.

        A group that a thread is committing at this moment may be committed or not. No call-back tells of it, or of the
        units behind it.
        """
        try:
            if self.failed is None and not self._commits.is_in_flight:
                self._commits.want_notes()
                self._commits.add(self.begin())
                self._commits.flush(here=True)
        finally:
            self._store.close()

    # -- inside: submitting -------------------------------------------------------------------------------------------

    def _pack_notes(self, batch: int, notes: list[Note]) -> list[Message]:
        """The notes of groups as one message. If it would be too long, each half of the notes is a batch of its own."""
        if self.seal_notes is None:
            return []
        sealed = self.seal_notes(batch, notes)
        if len(sealed) > AUDIT_MESSAGE_BYTES and len(notes) > 1:
            half = len(notes) // 2
            first = self._pack_notes(batch, notes[:half])
            return first + self._pack_notes(batch + len(first), notes[half:])
        return [Message(_AUDIT_DESCRIPTOR, sealed)]

    def _put_batch(self, batch: Message, unit: UnitOfWork) -> tuple[int, Message]:
        """Puts a batch on the audit queue, whatever the queue's attributes are, because each act needs its record."""
        self._number(unit, self._queues[AUDIT_QUEUE], batch)
        return self._queues[AUDIT_QUEUE].identifier, batch

    def _announce(self, group: list[UnitOfWork]) -> None:
        """Lets those who join a group take its messages. The messages are committed together with their effects."""
        place, lanes = 0, dict[tuple[Queue, bytes], None]()
        while place < len(group) and len(lanes) < MOST_JOINED_LANES:
            joining: dict[tuple[Queue, bytes], None] = {}
            for unit in group[place:]:
                for queue, message in unit.puts:
                    lane = (queue, message.descriptor.correl_id)
                    if lane[1] in queue.joiners and (lane in lanes or len(lanes) < MOST_JOINED_LANES):
                        self._available.announce(queue, message)
                        lanes[lane] = joining[lane] = None
            place = len(group)
            for queue, correl_id in joining:
                queue.joiners[correl_id]()

    def _complete(self, group: list[UnitOfWork]) -> None:
        touched: dict[tuple[Queue, bytes], None] = {}
        for unit in group:
            for queue, message in unit.puts:
                self._available.arrive(queue, message)
                touched[queue, message.descriptor.correl_id] = None
            for queue, message, _ in unit.removals:
                self._available.forget(queue, message)
        self.counters.settle(group)
        errors: list[Exception] = []
        for unit in group:
            # The call-back often holds the unit: a unit that held it too would wait for the garbage collector.
            on_committed, unit.on_committed = unit.on_committed, None
            if on_committed is not None:
                try:
                    on_committed(unit)
                except Exception as error:  # a defect, raised below; the other units of the group are committed too
                    errors.append(error)
        self._notify(touched, errors)

    def _notify(self, touched: Iterable[tuple[Queue, bytes]], errors: list[Exception]) -> None:
        """Wakes listeners in order. When all have been called, raises the first error, theirs or an earlier one."""
        for queue, correl_id in touched:
            if not queue.listeners:
                continue
            for callback in (*queue.listeners.get(correl_id, ()), *queue.listeners.get(None, ())):
                try:
                    callback()
                except Exception as error:
                    errors.append(error)
        if errors:
            raise errors[0]

    def _fail(self, error: StoreError) -> None:
        if self.failed is None:
            self.failed = error  # no unit begins any more while files are copied
            self.failed = self._store.rescued(error)
            self.on_failure(self.failed)

    def _check_alive(self) -> None:
        if self.failed is not None:
            raise self.failed


def _made_as(description: str) -> dict[str, Value]:
    """The attributes of a queue that the engine makes: first in, first out."""
    return {"DESCR": description, "MSGDLVSQ": "FIFO"}


_AUDIT_DESCRIPTOR: Final = MessageDescriptor(persistence=MQPER_PERSISTENT, format=b"RFHBAUD ")
