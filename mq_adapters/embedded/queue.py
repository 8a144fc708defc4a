"""A queue in memory: the sequence numbers of its messages, in first-in-first-out lanes, one for each CorrelId.

Only numbers are kept (about 40 bytes a message): bodies are in the engine's bounded cache or on the disk.
A get by CorrelId looks at one lane; a get without one takes the lane whose head is oldest.
"""

from bisect import insort
from collections import deque
from collections.abc import Callable, Collection, Iterator
from heapq import heapify, heappop, heappush, merge
from typing import Final

from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import Message

#: 48 characters: IBM MQ, "Rules for naming IBM MQ objects".
MAXIMUM_NAME_CHARACTERS: Final = 48
_NAME_CHARACTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789./_%")

DEFAULT_MAXIMUM_DEPTH: Final = 999_999_999
#: The longest MQTT packet (268,435,455 bytes) with its header; IBM MQ's own ceiling is 100 MiB.
DEFAULT_MAXIMUM_MESSAGE_BYTES: Final = 257 * 1024 * 1024
#: The heap of lane heads is made anew when it has twice as many entries as there are lanes, and this many more.
_STALE_HEADS: Final = 64

ServedHandler = Callable[[UnitOfWork, "Queue", Message], None]


def is_queue_name(name: str) -> bool:
    """Whether a name keeps to MQ's rules for object names."""
    return 0 < len(name) <= MAXIMUM_NAME_CHARACTERS and _NAME_CHARACTERS.issuperset(name)


class Lane:
    """The available messages of a queue with one CorrelId, by sequence number, oldest first."""

    __slots__ = ("_gone", "_numbers")

    def __init__(self) -> None:
        self._numbers: deque[int] = deque()
        self._gone: set[int] = set()

    def __len__(self) -> int:
        return len(self._numbers) - len(self._gone)

    def __iter__(self) -> Iterator[int]:
        return (number for number in self._numbers if number not in self._gone) if self._gone else iter(self._numbers)

    def append(self, number: int) -> None:
        """Adds a number at its place: the end, except where its unit of work was open for longer than others."""
        if self._numbers and number < self._numbers[-1]:
            insort(self._numbers, number)
        else:
            self._numbers.append(number)

    def head(self) -> int:
        """The oldest number, or 0 for an empty lane."""
        numbers, gone = self._numbers, self._gone
        while numbers:
            if numbers[0] not in gone:
                return numbers[0]
            gone.discard(numbers.popleft())
        return 0

    def pop(self) -> int:
        """Takes the oldest number off, or returns 0."""
        number = self.head()
        if number:
            self._numbers.popleft()
        return number

    def discard(self, number: int) -> None:
        """Takes a number out of the middle."""
        if self.head() == number:
            self._numbers.popleft()
        else:
            self._gone.add(number)

    def give_back(self, numbers: Collection[int]) -> None:
        """Puts numbers that were taken back at their places."""
        back = sorted(number for number in numbers if number not in self._gone)
        self._gone.difference_update(numbers)
        older: list[int] = []
        while back and self._numbers and self._numbers[0] < back[-1]:
            older.append(self._numbers.popleft())
        self._numbers.extendleft(reversed(list(merge(older, back))))


class Queue:
    """A local queue. `depth` counts committed messages, also those that an open unit of work has taken."""

    __slots__ = (
        "_heads",
        "depth",
        "description",
        "handler",
        "identifier",
        "lanes",
        "listeners",
        "maximum_depth",
        "maximum_message_bytes",
        "name",
        "named",
    )

    def __init__(self, identifier: int, name: str, description: str = "") -> None:
        self.identifier = identifier
        self.name = name
        self.description = description
        self.depth = 0
        self.maximum_depth = DEFAULT_MAXIMUM_DEPTH
        self.maximum_message_bytes = DEFAULT_MAXIMUM_MESSAGE_BYTES
        self.lanes: dict[bytes, Lane] = {}
        #: A heap of lane heads; an entry may be stale, `oldest` mends it.
        self._heads: list[tuple[int, bytes]] = []
        #: Sequences by MsgId, oldest first, for messages whose putter chose the MsgId; several may have the same.
        self.named: dict[bytes, list[int]] = {}
        #: Called after messages arrived: by CorrelId, or None for any.
        self.listeners: dict[bytes | None, list[Callable[[], None]]] = {}
        #: Takes each put in the putter's own unit of work (the broker); None for an ordinary queue.
        self.handler: ServedHandler | None = None

    def arrive(self, correl_id: bytes, number: int) -> None:
        """A committed message becomes available in its lane."""
        lane = self.lanes.get(correl_id)
        if lane is None:
            lane = self.lanes[correl_id] = Lane()
            lane.append(number)
            self._add_head(number, correl_id)
            return
        lane.append(number)
        if lane.head() == number:
            self._add_head(number, correl_id)

    def give_back(self, correl_id: bytes, numbers: Collection[int]) -> None:
        """Messages that were taken become available again, at their old places."""
        lane = self.lanes.setdefault(correl_id, Lane())
        lane.give_back(numbers)
        self._add_head(lane.head(), correl_id)

    def add_name(self, msg_id: bytes, number: int) -> None:
        """A committed message has a MsgId that its putter chose."""
        insort(self.named.setdefault(msg_id, []), number)

    def drop_name(self, msg_id: bytes, number: int) -> None:
        numbers = self.named.get(msg_id, [])
        if number in numbers:
            numbers.remove(number)
        if not numbers:
            self.named.pop(msg_id, None)

    def take(self, correl_id: bytes) -> int:
        """Takes the oldest message of a lane; 0 where there is none."""
        lane = self.lanes.get(correl_id)
        if lane is None:
            return 0
        number = lane.pop()
        if not lane.head():
            del self.lanes[correl_id]
        return number

    def discard(self, correl_id: bytes, number: int) -> None:
        """Takes one named message out of its lane."""
        lane = self.lanes[correl_id]
        lane.discard(number)
        if not lane.head():
            del self.lanes[correl_id]

    def oldest(self) -> bytes | None:
        """The CorrelId of the lane whose head is the oldest available message; None for an empty queue."""
        heads = self._heads
        while heads:
            number, correl_id = heads[0]
            lane = self.lanes.get(correl_id)
            head = lane.head() if lane is not None else 0
            if head == number:
                return correl_id
            heappop(heads)
            if head:
                heappush(heads, (head, correl_id))
        return None

    def _add_head(self, number: int, correl_id: bytes) -> None:
        """Notes a lane's head. Gets by CorrelId leave stale entries, which must not pile up."""
        heappush(self._heads, (number, correl_id))
        if len(self._heads) > 2 * len(self.lanes) + _STALE_HEADS:
            self._heads = [(lane.head(), correl_id) for correl_id, lane in self.lanes.items()]
            heapify(self._heads)

    def numbers(self, correl_id: bytes | None = None) -> list[int]:
        """The available messages, oldest first: a snapshot for browsing."""
        if correl_id is not None:
            return list(self.lanes.get(correl_id, ()))
        return sorted(number for lane in self.lanes.values() for number in lane)

    def listen(self, correl_id: bytes | None, callback: Callable[[], None]) -> None:
        self.listeners.setdefault(correl_id, []).append(callback)

    def unlisten(self, correl_id: bytes | None, callback: Callable[[], None]) -> None:
        callbacks = self.listeners.get(correl_id, [])
        if callback in callbacks:
            callbacks.remove(callback)
        if not callbacks:
            self.listeners.pop(correl_id, None)
