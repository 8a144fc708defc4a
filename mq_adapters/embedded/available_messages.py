"""The messages that can be got: committed messages, their places on their queues, and those that somebody has taken.

A message becomes available when its commit is done (`arrive`). For units that join that commit, it is available before
(`announce`). The taker of a message has it alone, until a unit of work that removes it is committed (`forget`), or
until the taker gives it back. An expired message is nobody's: a get takes it off its lane without reading it, and
leaves it to `take_expired`.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from typing import Any, Final

from mq_adapters.embedded.counters import CLOSED
from mq_adapters.embedded.lanes import SEQUENCE_MASK
from mq_adapters.embedded.message_cache import READ_AHEAD_MESSAGES, MessageCache
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.store.checksums import sound
from mq_adapters.message import MQCI_NONE, MQMI_NONE, Message
from mq_adapters.reasons import StoreError

#: Sequence numbers are positive and fit SQLite's integers of 8 bytes.
_HIGHEST_NUMBER: Final = (1 << 63) - 1

#: Number, queue, CorrelId, chosen MsgId, expiry, priority and length of a message. Damage may have changed their types.
IndexEntry = tuple[Any, ...]
#: A clock, microseconds since 1970. It is asked only where messages have an expiry.
NowUs = Callable[[], int]


#: The heap is made anew when it has twice as many entries as there are messages with an expiry, and this many more.
_STALE_EXPIRIES: Final = 64


class AvailableMessages:
    """Finds and takes messages of the embedded queue manager."""

    def __init__(
        self,
        message_cache: MessageCache,
        *,
        identifier_prefix: bytes,
        is_committing: Callable[[int], bool],
        fail: Callable[[StoreError], None],
    ) -> None:
        """`is_committing`: whether a message may be on the disk, but has not arrived. `fail` is called once."""
        self._message_cache = message_cache
        self._prefix = identifier_prefix
        self._is_committing = is_committing
        self._fail = fail
        self._taken: dict[int, Queue] = {}
        self._announced: set[int] = set()
        self._expiries = Expiries()
        #: Expired messages that gets have taken off their lanes. Until they are destroyed they count as taken.
        self._found: deque[int] = deque()
        #: Whether a get has met expired messages. Whoever destroys them sets it to False.
        self.has_met_expired = False

    def load(self, index: Iterable[IndexEntry]) -> None:
        """Loads the messages of the store. Raises StoreError if a message is on an unknown queue.

        A message with a column of another type has a place all the same: whoever gets it is told of the damage.
        """
        for sequence, identifier, correl_id, msg_id, expires_us, priority, body_bytes in index:
            queue = self._message_cache.queue(identifier)
            place = queue.place(sequence, sound(int, priority) or 0)
            queue.add(sound(bytes, correl_id) or MQCI_NONE, place, body_bytes or 0)
            if isinstance(msg_id, bytes):
                queue.add_name(msg_id, place)
            if isinstance(expires_us, int) and expires_us:
                self._expiries.add(expires_us, sequence, queue)

    def announce(self, queue: Queue, message: Message) -> None:
        """A message is about to be committed, and may already be taken; `arrive` follows."""
        self._place(queue, message)
        self._message_cache.announce(queue, message)
        self._announced.add(message.sequence)

    def arrive(self, queue: Queue, message: Message) -> None:
        """A message was committed."""
        if message.sequence in self._announced:
            self._announced.remove(message.sequence)
        else:
            self._place(queue, message)
        self._message_cache.add(queue, message)

    def _place(self, queue: Queue, message: Message) -> None:
        sequence, descriptor = message.sequence, message.descriptor
        place = sequence if queue.is_fifo else queue.place(sequence, descriptor.priority)
        queue.add(descriptor.correl_id, place, len(message.body))
        if queue.census is not None:
            queue.census.arrived(message)
        if descriptor.msg_id != MQMI_NONE:
            queue.add_name(descriptor.msg_id, place)
        if message.expires_us:
            self._expiries.add(message.expires_us, sequence, queue)

    def forget(self, queue: Queue, message: Message) -> None:
        """A message that somebody had taken was destroyed."""
        sequence, descriptor = message.sequence, message.descriptor
        queue.remove(descriptor.correl_id, len(message.body))
        if queue.census is not None:
            queue.census.left(message)
        self._taken.pop(sequence, None)
        if descriptor.msg_id != MQMI_NONE:
            queue.drop_name(descriptor.msg_id, queue.place(sequence, descriptor.priority))
        self._message_cache.remove(message)
        if message.expires_us:
            self._expiries.discard(sequence)

    def waiting(self, queues: Iterable[Queue]) -> Counter[str]:
        """How many messages each account of the balance has: the taken ones, and those of all lanes."""
        found = Counter([queue.account.name for queue in self._taken.values() if queue.account is not CLOSED])
        for queue in queues:
            found[queue.account.name] += sum(map(len, queue.lanes.values()))
        return found

    def taken(self) -> dict[Queue, list[int]]:
        """The numbers of the messages that somebody has taken, by queue."""
        found: dict[Queue, list[int]] = {}
        for sequence, queue in self._taken.items():
            found.setdefault(queue, []).append(sequence)
        return found

    # -- taking --------------------------------------------------------------------------------------------------------

    def take(self, queue: Queue, correl_id: bytes | None, msg_id: bytes | None, now_us: NowUs) -> Message | None:
        """Takes the oldest message that matches and has not expired, or None. Reads the lane's next ones with it."""
        lane: bytes | None = None
        if msg_id is not None:
            sequence = self._take_named(queue, correl_id, msg_id, now_us)
        else:
            lane, sequence = self._take_oldest(queue, correl_id, now_us)
        if not sequence:
            return None
        found = self._message_cache.in_memory(sequence)
        message = self._read(queue, sequence, lane) if found is None else found[1]
        self._taken[sequence] = queue
        return message

    def take_number(self, queue: Queue, sequence: int) -> Message | None:
        """Takes the message with that number off `queue`, or None."""
        message = self._of(queue, sequence)
        if message is not None:
            self._take_from_lane(queue, message)
            self._taken[sequence] = queue
        return message

    def take_expired(self, now_us: int) -> Iterator[tuple[Queue, Message] | None]:
        """Takes expired messages, one after another. None stands for one that has gone, or that somebody has taken."""
        while self._found:
            yield self._found_one(self._found.popleft())
        for sequence, queue in self._expiries.due(now_us):
            message = self.take_number(queue, sequence)
            yield None if message is None else (queue, message)

    def take_found(self, queue: Queue) -> Iterator[tuple[Queue, Message]]:
        """Takes the expired messages of one queue that gets have met, all of them."""
        met = [sequence for sequence in self._found if self._taken[sequence] is queue]
        self._found = deque([sequence for sequence in self._found if self._taken[sequence] is not queue])
        for sequence in met:
            found = self._found_one(sequence)
            if found is not None:
                yield found

    def _found_one(self, sequence: int) -> tuple[Queue, Message] | None:
        """An expired message off its lane; None if its queue was deleted, and the message with it."""
        found = self._find(sequence)
        if found is None:
            del self._taken[sequence]
            self._expiries.discard(sequence)
        return found

    def give_back(self, messages: Iterable[tuple[Queue, Message]]) -> list[tuple[Queue, bytes]]:
        """Returns messages to their places. The result is the lanes of these places."""
        returned: dict[tuple[Queue, bytes], list[int]] = {}
        for queue, message in messages:
            del self._taken[message.sequence]
            place = queue.place(message.sequence, message.descriptor.priority)
            returned.setdefault((queue, message.descriptor.correl_id), []).append(place)
            if message.expires_us:
                self._expiries.add(message.expires_us, message.sequence, queue)
        for (queue, correl_id), numbers in returned.items():
            queue.give_back(correl_id, numbers)
        return list(returned)

    def browse(
        self,
        queue: Queue,
        correl_id: bytes | None,
        msg_id: bytes | None,
        now_us: int,
        only: list[int] | None = None,
    ) -> Iterator[Message]:
        """The messages that match when the iteration reaches them, without those that have expired by `now_us`.

        With `only` these numbers are looked at and no others, in their order.
        Those are not read: who destroys them finds whether they are damaged. Where nobody will, `now_us` is 0.
        """
        moments = self._expiries.moments
        if only is None:
            only = queue.numbers(correl_id) if msg_id is None else self._numbers_of(queue, msg_id)
        for sequence in only:
            if sequence in moments and moments[sequence] <= now_us:
                self.has_met_expired = True
                continue
            message = self._of(queue, sequence)
            if message is not None and message.matches(correl_id, msg_id):
                yield message

    # -- finding -------------------------------------------------------------------------------------------------------

    def _take_oldest(self, queue: Queue, correl_id: bytes | None, now_us: NowUs) -> tuple[bytes | None, int]:
        """Takes the first number that has not expired off its lane, 0 if there is none; those before it are found.

        A get may meet very many expired messages. They cost a fraction of a microsecond each, because none is read.
        """
        moments = self._expiries.moments
        lane = queue.oldest() if correl_id is None else correl_id
        if moments:
            now = now_us()
            while lane is not None and (passed := queue.pass_by(lane, moments, now)):
                self._taken.update(dict.fromkeys(passed, queue))
                self._found.extend(passed)
                self.has_met_expired = True
                lane = queue.oldest() if correl_id is None else correl_id
        return lane, 0 if lane is None else queue.take(lane)

    def _take_named(self, queue: Queue, correl_id: bytes | None, msg_id: bytes, now_us: NowUs) -> int:
        for message in self.browse(queue, correl_id, msg_id, now_us()):
            self._take_from_lane(queue, message)
            return message.sequence
        return 0

    @staticmethod
    def _take_from_lane(queue: Queue, message: Message) -> None:
        descriptor = message.descriptor
        queue.discard(descriptor.correl_id, queue.place(message.sequence, descriptor.priority))

    def _numbers_of(self, queue: Queue, msg_id: bytes) -> list[int]:
        """The numbers under which messages with that MsgId may be, in the order of delivery.

        A putter may have chosen a MsgId that this queue manager made.
        """
        places = set(queue.named.get(msg_id, ()))
        made = int.from_bytes(msg_id[len(self._prefix) :], "big") if msg_id.startswith(self._prefix) else 0
        if 0 < made <= _HIGHEST_NUMBER and (message := self._of(queue, made)) is not None:
            places.add(queue.place(made, message.descriptor.priority))
        return [place & SEQUENCE_MASK for place in sorted(places)]

    def _of(self, queue: Queue, sequence: int) -> Message | None:
        """A committed message of that queue that nobody has taken."""
        found = None if sequence in self._taken else self._find(sequence)
        return found[1] if found is not None and found[0] is queue else None

    def _find(self, sequence: int) -> tuple[Queue, Message] | None:
        """A committed message by its number, from memory or from the disk."""
        found = self._message_cache.in_memory(sequence)
        if found is None and not self._is_committing(sequence):
            with self._stopping_on_failure():
                found = self._message_cache.on_disk(sequence)
        return found

    def _read(self, queue: Queue, sequence: int, lane: bytes | None) -> Message:
        """Reads a message that was just taken off its lane from the disk, and the lane's next ones with it."""
        upcoming = [] if lane is None else queue.upcoming(lane, READ_AHEAD_MESSAGES)
        with self._stopping_on_failure():
            found = self._message_cache.read_ahead(sequence, upcoming)
            if found is None:
                raise StoreError(
                    f"read message {sequence}",
                    "it is in the index but not in the store",
                    "the file was changed by another program",
                )
        return found[1]

    @contextmanager
    def _stopping_on_failure(self) -> Iterator[None]:
        """Stops the queue manager if the store cannot be read, as it stops if the store cannot be written."""
        try:
            yield
        except StoreError as error:
            self._fail(error)
            raise


class Expiries:
    """The committed messages with an expiry, as a heap of moments. Entries of messages that are gone stay in it."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Queue]] = []
        #: The moment of each, in microseconds since 1970, by its sequence number.
        self.moments: dict[int, int] = {}

    def add(self, expires_us: int, sequence: int, queue: Queue) -> None:
        """A message became available, perhaps again. It expires at that moment, in microseconds since 1970."""
        self.moments[sequence] = expires_us
        heappush(self._heap, (expires_us, sequence, queue))
        if len(self._heap) > 2 * len(self.moments) + _STALE_EXPIRIES:
            self._heap = [entry for entry in self._heap if entry[1] in self.moments]
            heapify(self._heap)

    def discard(self, sequence: int) -> None:
        """The message has gone."""
        self.moments.pop(sequence, None)

    def due(self, now_us: int) -> Iterator[tuple[int, Queue]]:
        """Takes off due entries: sequence number and queue. Some of their messages may have gone, or be taken now."""
        while self._heap and self._heap[0][0] <= now_us:
            _, sequence, queue = heappop(self._heap)
            yield sequence, queue
