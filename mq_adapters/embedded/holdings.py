"""The committed messages of a queue manager by their number: what was used lately in memory, the rest on the disk."""

from collections import OrderedDict
from typing import Final

from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.store import Store
from mq_adapters.message import MQPER_PERSISTENT, Message

#: Recently used persistent messages kept in memory, in bytes: their bodies, and what each costs beside it (measured).
BODY_CACHE_BYTES: Final = 64 * 1024 * 1024
MESSAGE_OVERHEAD_BYTES: Final = 500


class Holdings:
    """Finds a message by its number. Messages that are not persistent are nowhere else."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queues: dict[int, Queue] = {}
        self._not_persistent: dict[int, tuple[Queue, Message]] = {}
        self._cache: OrderedDict[int, tuple[Queue, Message]] = OrderedDict()
        self._cache_bytes = 0
        #: Back-out counts, for messages that leave the cache.
        self._backed_out: dict[int, int] = {}

    def add_queue(self, queue: Queue) -> None:
        self._queues[queue.identifier] = queue

    def queue(self, identifier: int) -> Queue:
        return self._queues[identifier]

    def add(self, queue: Queue, message: Message) -> None:
        """A message was committed."""
        if message.descriptor.persistence != MQPER_PERSISTENT:
            self._not_persistent[message.sequence] = (queue, message)
            return
        self._cache[message.sequence] = (queue, message)
        self._cache_bytes += len(message.body) + MESSAGE_OVERHEAD_BYTES
        while self._cache_bytes > BODY_CACHE_BYTES:
            _, (_, oldest) = self._cache.popitem(last=False)
            self._cache_bytes -= len(oldest.body) + MESSAGE_OVERHEAD_BYTES

    def remove(self, message: Message) -> None:
        """A message was destroyed."""
        sequence = message.sequence
        self._backed_out.pop(sequence, None)
        if self._not_persistent.pop(sequence, None) is None and self._cache.pop(sequence, None) is not None:
            self._cache_bytes -= len(message.body) + MESSAGE_OVERHEAD_BYTES

    def back_out(self, message: Message) -> None:
        """A get of the message was backed out."""
        message.backout_count += 1
        self._backed_out[message.sequence] = message.backout_count

    def in_memory(self, sequence: int) -> tuple[Queue, Message] | None:
        return self._not_persistent.get(sequence) or self._cache.get(sequence)

    def on_disk(self, sequence: int) -> tuple[Queue, Message] | None:
        stored = self._store.message(sequence)
        if stored is None:
            return None
        queue, message = self._queues[stored[0]], stored[1]
        message.backout_count = self._backed_out.get(sequence, 0)
        return queue, message
