"""A queue in memory: the sequence numbers of its messages, in first-in-first-out lanes, one for each CorrelId.

Only numbers are kept (about 40 bytes a message): bodies are in the engine's bounded cache or on the disk.
A get by CorrelId looks at one lane; a get without one takes the lane whose head is oldest.
"""

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush, merge
from typing import Final

from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import Message

#: 48 characters: IBM MQ, "Rules for naming IBM MQ objects".
MAXIMUM_NAME_CHARACTERS: Final = 48
_NAME_CHARACTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789./_%")

DEFAULT_MAXIMUM_DEPTH: Final = 999_999_999
#: IBM MQ's ceiling for a message.
DEFAULT_MAXIMUM_MESSAGE_BYTES: Final = 100 * 1024 * 1024

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

    def give_back(self, number: int) -> None:
        """Puts a number that was taken back at its place."""
        if number in self._gone:
            self._gone.discard(number)
            return
        younger: list[int] = []
        numbers = self._numbers
        while numbers and numbers[0] < number:
            younger.append(numbers.popleft())
        numbers.appendleft(number)
        numbers.extendleft(reversed(younger))


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
        #: Sequence by MsgId, for messages whose putter chose the MsgId.
        self.named: dict[bytes, int] = {}
        #: Called after messages arrived: by CorrelId, or None for any.
        self.listeners: dict[bytes | None, list[Callable[[], None]]] = {}
        #: Takes each put in the putter's own unit of work (the broker); None for an ordinary queue.
        self.handler: ServedHandler | None = None

    def arrive(self, correl_id: bytes, number: int) -> None:
        """A committed message becomes available at the end of its lane."""
        lane = self.lanes.get(correl_id)
        if lane is None:
            lane = self.lanes[correl_id] = Lane()
            heappush(self._heads, (number, correl_id))
        lane.append(number)

    def give_back(self, correl_id: bytes, number: int) -> None:
        """A message that was taken becomes available again, at its old place."""
        lane = self.lanes.setdefault(correl_id, Lane())
        lane.give_back(number)
        heappush(self._heads, (lane.head(), correl_id))

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

    def numbers(self, correl_id: bytes | None = None) -> list[int]:
        """The available messages, oldest first: a snapshot for browsing."""
        if correl_id is not None:
            return list(self.lanes.get(correl_id, ()))
        return list(merge(*self.lanes.values()))

    def listen(self, correl_id: bytes | None, callback: Callable[[], None]) -> None:
        self.listeners.setdefault(correl_id, []).append(callback)

    def unlisten(self, correl_id: bytes | None, callback: Callable[[], None]) -> None:
        callbacks = self.listeners.get(correl_id, [])
        if callback in callbacks:
            callbacks.remove(callback)
        if not callbacks:
            self.listeners.pop(correl_id, None)
