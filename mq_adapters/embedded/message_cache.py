"""The committed messages of a queue manager by number: recently used ones in memory, the rest on the disk."""

from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.store.store import Store
from mq_adapters.embedded.unit_of_work import StateKind, UnitOfWork, back_out_key
from mq_adapters.message import KNOWN_HEADER_BYTES, MQCI_NONE, Message
from mq_adapters.reasons import StoreError

#: Bytes of recently used persistent messages in memory: their bodies, and the measured cost beside each body.
BODY_CACHE_BYTES: Final = 64 * 1024 * 1024
MESSAGE_OVERHEAD_BYTES: Final = 500
#: Messages read from the disk at a time while a lane is taken message by message, and bytes of their bodies.
READ_AHEAD_MESSAGES: Final = 100
READ_AHEAD_BYTES: Final = 1024 * 1024
#: The largest back-out count that is kept over a restart: one byte, as on z/OS.
_HIGHEST_KEPT_COUNT: Final = 255
#: The most bytes of all messages that are only in memory.
MAXIMUM_IN_MEMORY_BYTES: Final = 256 * 1024 * 1024
#: Persistent messages stay in memory while those that are only in memory have fewer bytes: the rest of the room is for
#: messages that are not persistent, which cannot go to the disk instead.
PERSISTENT_IN_MEMORY_BYTES: Final = MAXIMUM_IN_MEMORY_BYTES // 4


class MessageCache:
    """Finds a message by its number. It alone holds messages that are only in memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queues: dict[int, Queue] = {}
        self._only_in_memory: dict[int, tuple[Queue, Message]] = {}
        self._in_memory_bytes = 0
        self._cache: OrderedDict[int, tuple[Queue, Message]] = OrderedDict()
        self._cache_bytes = 0
        #: Persistent messages that can be taken although they are not on the disk yet.
        self._uncommitted: dict[int, tuple[Queue, Message]] = {}
        #: Back-out counts, for messages that leave the cache.
        self._backed_out: dict[int, int] = {}

    def load_back_outs(self, counts: dict[int, int]) -> None:
        """Loads the back-out counts of the store."""
        self._backed_out = counts

    def add_queue(self, queue: Queue) -> None:
        self._queues[queue.identifier] = queue

    def queue(self, identifier: Any) -> Queue:
        """The queue of that number. Raises StoreError if it does not exist: a message names an unknown queue."""
        queue = self._queues.get(identifier)
        if queue is None:
            raise StoreError(
                "read the index",
                f"a message is on queue number {identifier}, which is not defined",
                "the file is damaged: restore a backup, or go on without: 'rfhbridge queue verify --set-aside'",
            )
        return queue

    def remove_queue(self, queue: Queue) -> None:
        """A queue was deleted, with its messages."""
        del self._queues[queue.identifier]
        for sequence in self.numbers_in_memory(queue):
            self.remove(self._only_in_memory[sequence][1])
        for message in [message for found, message in self._cache.values() if found is queue]:
            self.remove(message)

    def numbers_in_memory(self, queue: Queue) -> list[int]:
        """The numbers of a queue's messages that are only in memory."""
        return [number for number, (found, _) in self._only_in_memory.items() if found is queue]

    def priorities(self, queue: Queue) -> dict[int, int]:
        """The priority of every message of a queue, by its number."""
        found = self._store.priorities(queue.identifier)
        for holder, message in self._only_in_memory.values():
            if holder is queue:
                found[message.sequence] = message.descriptor.priority
        return found

    def add(self, queue: Queue, message: Message) -> None:
        """A message was committed."""
        if self._uncommitted:
            self._uncommitted.pop(message.sequence, None)
        if not message.is_stored:
            self._only_in_memory[message.sequence] = (queue, message)
            queue.account.not_persistent.add(message.sequence)
            self._in_memory_bytes += _memory_bytes(message)
            return
        self._cache[message.sequence] = (queue, message)
        self._cache_bytes += _memory_bytes(message)
        while self._cache_bytes > BODY_CACHE_BYTES:
            _, (_, oldest) = self._cache.popitem(last=False)
            self._cache_bytes -= _memory_bytes(oldest)

    def announce(self, queue: Queue, message: Message) -> None:
        """A message is about to be committed. Call `add` when it is."""
        self._uncommitted[message.sequence] = (queue, message)

    def remove(self, message: Message) -> None:
        """A message was destroyed."""
        sequence = message.sequence
        self._backed_out.pop(sequence, None)
        found = self._only_in_memory.pop(sequence, None)
        if found is not None:
            found[0].account.not_persistent.discard(sequence)
            self._in_memory_bytes -= _memory_bytes(message)
        elif self._cache.pop(sequence, None) is not None:
            self._cache_bytes -= _memory_bytes(message)

    def has_room_for(self, message: Message) -> bool:
        """Whether memory has room for one more message that is not persistent."""
        return self._in_memory_bytes + len(message.body) <= MAXIMUM_IN_MEMORY_BYTES

    def may_keep(self, message: Message) -> bool:
        """Whether a persistent message may stay in memory."""
        return self._in_memory_bytes + len(message.body) <= PERSISTENT_IN_MEMORY_BYTES

    def back_out(self, unit: UnitOfWork, removals: Iterable[tuple[Queue, Message]]) -> None:
        """Counts backed-out gets. `unit` gets the counts that must survive a restart."""
        for queue, message in removals:
            sequence = message.sequence
            message.backout_count += 1
            self._backed_out[sequence] = message.backout_count
            cached = self._cache.get(sequence)
            if cached is not None:  # the cache has another copy, read from the disk
                cached[1].backout_count = message.backout_count
            if message.is_stored and queue.definition["HARDENBO"] == "HARDENBO":
                count = bytes((min(message.backout_count, _HIGHEST_KEPT_COUNT),))
                unit.set_state(StateKind.BACK_OUT_COUNT, back_out_key(sequence), count)

    def in_memory(self, sequence: int) -> tuple[Queue, Message] | None:
        found = self._only_in_memory.get(sequence) or self._cache.get(sequence)
        return found or self._uncommitted.get(sequence)

    def origins(self, sequences: Iterable[int]) -> list[tuple[bytes, int]]:
        """Private origin and bytes of the body of committed messages. No body is read."""
        found = {sequence: self.in_memory(sequence) for sequence in sequences}
        elsewhere = [sequence for sequence, held in found.items() if held is None]
        here = [(held[1].origin, len(held[1].body)) for held in found.values() if held is not None]
        return here + self._store.origins(elsewhere)

    def lanes(self, sequences: Iterable[int]) -> dict[int, tuple[bytes, int]]:
        """CorrelId and time of the put of committed messages, by their numbers. No body is read."""
        held = {sequence: self.in_memory(sequence) for sequence in sequences}
        here = {
            sequence: (found[1].descriptor.correl_id, found[1].put_us)
            for sequence, found in held.items()
            if found is not None
        }
        elsewhere = self._store.lanes([sequence for sequence in held if sequence not in here])
        return here | {sequence: (correl_id or MQCI_NONE, put_us) for sequence, correl_id, put_us in elsewhere}

    def oldest_put_us(self, queue: Queue) -> int:
        """When the oldest available message was put, in microseconds since 1970; 0 for an empty queue."""
        number = queue.oldest_number()
        return self.lanes((number,))[number][1] if number else 0

    def on_disk(self, sequence: int) -> tuple[Queue, Message] | None:
        """Reads one message, without keeping it in memory."""
        for identifier, message in self._store.messages((sequence,), 0):
            message.backout_count = self._backed_out.get(sequence, 0)
            return self.queue(identifier), message
        return None

    def read_ahead(self, sequence: int, upcoming: list[int]) -> tuple[Queue, Message] | None:
        """Reads one message from the disk. `upcoming` ones are read with it, and kept for later gets.

        A fault of one of those is raised by the get that asks for it.
        """
        wanted = [number for number in upcoming if number not in self._cache and number not in self._only_in_memory]
        found: tuple[Queue, Message] | None = None
        with suppress(StoreError):
            for identifier, message in self._store.messages((sequence, *wanted), READ_AHEAD_BYTES):
                queue = self.queue(identifier)
                message.backout_count = self._backed_out.get(message.sequence, 0)
                if message.sequence == sequence:
                    found = queue, message
                else:
                    self.add(queue, message)
        return found or self.on_disk(sequence)


def _memory_bytes(message: Message) -> int:
    """Bytes of memory that a message takes, with the command that its writer left with it."""
    known = 0 if message.written is None else KNOWN_HEADER_BYTES + len(message.written.data)
    return len(message.body) + MESSAGE_OVERHEAD_BYTES + known
