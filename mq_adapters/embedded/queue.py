"""A queue in memory: the places of its messages, in lanes, one for each CorrelId.

A place is a number that orders the messages of a queue: with MSGDLVSQ(FIFO) the message's sequence number, with
MSGDLVSQ(PRIORITY) that number below the band of its priority, 9 - priority. Only places are kept (about 40 bytes a
message): bodies are in the engine's bounded cache or on the disk. A get by CorrelId looks at one lane. A get without a
CorrelId takes from the lane whose head comes first.
"""

from bisect import insort
from collections.abc import Callable, Collection
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final, Protocol

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.counters import QueueAccount
from mq_adapters.embedded.lanes import BAND_BITS, SEQUENCE_MASK, Lane, PriorityLane
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import MQPER_NOT_PERSISTENT, MQPER_PERSISTENT, Message
from mq_adapters.reasons import QueueManagerError, ReasonCode

_HIGHEST_PRIORITY: Final = 9
#: The heap of lane heads is made anew when it has twice as many entries as there are lanes, and this many more.
_STALE_HEADS: Final = 64

#: More lanes than these are listed together as one, which may have so many more places than there are messages.
_MANY_LANES: Final = 16
_STALE_PLACES: Final = 1_024

#: No message in memory is as long, bytes.
_ANY_LENGTH: Final = 1 << 62
#: Nor are there as many on a queue.
_ANY_NUMBER: Final = 1 << 62

ServedHandler = Callable[[UnitOfWork, "Queue", Message], None]


class Census(Protocol):
    """A counter of the messages on a queue. It is told of each message at its commit, and when it is destroyed."""

    def arrived(self, message: Message) -> None: ...

    def left(self, message: Message) -> None: ...


class Queue:
    """A local queue. `depth` counts committed messages, including those that an open unit of work has taken.

    `waiting_bytes` are their bodies together, and `lane_bytes` those of each CorrelId, where lanes are measured.

    Its attributes are resolved once, when they are set, into the fields that puts and gets read. From `maximum_depth`
    on a put needs a closer look (Engine.put). It is MAXDEPTH, or 0 if every put needs one.
    """

    __slots__ = (
        "_heads",
        "account",
        "census",
        "default_persistence",
        "definition",
        "depth",
        "exclusive_holder",
        "handler",
        "identifier",
        "is_deleted",
        "is_fifo",
        "is_gateways",
        "is_get_inhibited",
        "is_paused",
        "is_temporary",
        "joiners",
        "lacks_space",
        "lane_bytes",
        "lanes",
        "listeners",
        "maximum_depth",
        "maximum_message_bytes",
        "memory_lanes",
        "name",
        "named",
        "resting_handler",
        "takes_all",
        "takes_letters",
        "trace",
        "waiting_bytes",
        "watchers",
        "whole",
    )

    def __init__(self, identifier: int, name: str, *, is_temporary: bool = False) -> None:
        self.identifier = identifier
        self.name = name
        #: The account of its messages in the balance. The queue manager's objects set the durable one.
        self.account = QueueAccount(name)
        self.is_temporary = is_temporary
        self.is_deleted = False
        #: The disk is short of space: applications' puts are refused with 2056, and they still have their messages.
        self.lacks_space = False
        #: It is the gateway's own: PUT(DISABLED) stops applications and MQTT publishers, but not the gateway's puts.
        self.is_gateways = False
        #: Its messages go on to a queue with PUT(DISABLED), so applications' puts are refused with 2051.
        self.is_paused = False
        self.depth = 0
        self.waiting_bytes = 0
        self.lanes: dict[bytes, Lane | PriorityLane] = {}
        #: None: lanes are not measured.
        self.lane_bytes: dict[bytes, int] | None = None
        #: Counts the messages that come and go, by their owners; None: nobody asks.
        self.census: Census | None = None
        #: It is for dead letters, which are longer than other messages, so MAXMSGL does not bound them.
        self.takes_letters = False
        #: It takes every put, whatever MAXDEPTH and PUT are.
        self.takes_all = False
        #: A heap of lane heads; an entry may be stale, `oldest` mends it.
        self._heads: list[tuple[int, bytes]] = []
        #: Places by MsgId, first one first, for messages whose putter chose the MsgId. Several may have the same MsgId.
        self.named: dict[bytes, list[int]] = {}
        #: Called after messages arrived: by CorrelId, or None for any.
        self.listeners: dict[bytes | None, list[Callable[[], None]]] = {}
        #: Called with the place of each message that becomes available.
        self.watchers: list[Callable[[int], None]] = []
        #: All lanes as one, kept from the first time that many are listed together; None: nobody has asked for that.
        self.whole: Lane | PriorityLane | None = None
        #: Called before messages with that CorrelId are committed. Units that it submits are committed with them.
        self.joiners: dict[bytes, Callable[[], None]] = {}
        #: CorrelIds of readers that end with this process. While there is room, their messages stay in memory.
        self.memory_lanes: set[bytes] = set()
        #: Takes each put in the putter's own unit of work (the broker); None for an ordinary queue.
        self.handler: ServedHandler | None = None
        #: The handler while gets are inhibited: messages wait meanwhile.
        self.resting_handler: ServedHandler | None = None
        #: The only application that may get (MQOO_INPUT_EXCLUSIVE); None while everybody may.
        self.exclusive_holder: object | None = None
        #: Lives as long as the queue, once that is deleted (objects.py).
        self.trace: object | None = None
        self.set_attributes(Definition(object_type=ObjectType.QLOCAL, name=name))

    def set_attributes(self, definition: Definition) -> None:
        """Sets the queue's attributes. A queue that changes its delivery sequence must be empty."""
        self.definition = definition
        self.is_fifo = definition["MSGDLVSQ"] == "FIFO"
        self.is_get_inhibited = definition["GET"] == "DISABLED"
        persistent = definition["DEFPSIST"] == "YES" and not self.is_temporary
        self.default_persistence = MQPER_PERSISTENT if persistent else MQPER_NOT_PERSISTENT
        self.maximum_message_bytes = _ANY_LENGTH if self.takes_letters else definition.number("MAXMSGL")
        needs_a_closer_look = self.is_put_inhibited or self.is_temporary
        self.maximum_depth = 0 if needs_a_closer_look else definition.number("MAXDEPTH")
        if self.takes_all:
            self.maximum_depth = _ANY_NUMBER

    @property
    def description(self) -> str:
        return self.definition.text("DESCR")

    @property
    def is_put_inhibited(self) -> bool:
        return self.definition["PUT"] == "DISABLED"

    def place(self, sequence: int, priority: int) -> int:
        """The place of a message among the others."""
        if self.is_fifo:
            return sequence
        return _HIGHEST_PRIORITY - min(max(priority, 0), _HIGHEST_PRIORITY) << BAND_BITS | sequence

    def close(self) -> None:
        """The queue is about to be deleted. From now on all puts on it fail, even uncommitted ones."""
        self.is_deleted = True
        self.maximum_message_bytes = -1
        self.handler = _refuse

    def end(self) -> None:
        """The queue is deleted."""
        self.close()
        self.depth = 0
        self.waiting_bytes = 0
        self.named.clear()
        self.census = None
        if self.lane_bytes is not None:
            self.lane_bytes.clear()
        self.empty()

    def revive(self, identifier: int) -> None:
        """The queue is defined again. Its holders can go on."""
        self.identifier = identifier
        self.is_deleted = False
        self.handler = None
        self.trace = None

    def measure_lanes(self) -> None:
        """From now on `lane_bytes` is kept. Call it before the queue has messages."""
        if self.lane_bytes is None:
            self.lane_bytes = {}

    def add(self, correl_id: bytes, number: int, body_bytes: int) -> None:
        """A message was committed. It counts, and becomes available."""
        self.arrive(correl_id, number)
        self.depth += 1
        self.waiting_bytes += body_bytes
        measured = self.lane_bytes
        if measured is not None:
            measured[correl_id] = measured.get(correl_id, 0) + body_bytes

    def remove(self, correl_id: bytes, body_bytes: int) -> None:
        """A taken message was destroyed. It counts no more."""
        self.depth -= 1
        self.waiting_bytes -= body_bytes
        measured = self.lane_bytes
        if measured is not None:
            left = measured.get(correl_id, 0) - body_bytes
            if left > 0:
                measured[correl_id] = left
            else:
                measured.pop(correl_id, None)

    def arrive(self, correl_id: bytes, number: int) -> None:
        """A committed message becomes available at its place in its lane."""
        if self.whole is not None:
            self._join_whole(number)
        for watcher in self.watchers:
            watcher(number)
        lane = self.lanes.get(correl_id)
        if lane is None:
            lane = self.lanes[correl_id] = self._new_lane()
            lane.append(number)
            self._add_head(number, correl_id)
            return
        lane.append(number)
        if lane.head() == number:
            self._add_head(number, correl_id)

    def give_back(self, correl_id: bytes, numbers: Collection[int]) -> None:
        """Taken messages become available again, at their old places."""
        if self.whole is not None:
            self.whole.give_back(numbers)
        for watcher in self.watchers:
            for number in numbers:
                watcher(number)
        lane = self.lanes.get(correl_id)
        if lane is None:
            lane = self.lanes[correl_id] = self._new_lane()
        lane.give_back(numbers)
        self._add_head(lane.head(), correl_id)

    def empty(self) -> None:
        """Forgets the places of all messages."""
        self.lanes.clear()
        self._heads.clear()
        self.whole = None

    def add_name(self, msg_id: bytes, place: int) -> None:
        """Notes that the putter of the message at that place chose its MsgId."""
        insort(self.named.setdefault(msg_id, []), place)

    def drop_name(self, msg_id: bytes, place: int) -> None:
        places = self.named.get(msg_id, [])
        if place in places:
            places.remove(place)
        if not places:
            self.named.pop(msg_id, None)

    def take(self, correl_id: bytes) -> int:
        """Takes the first message of a lane; returns its sequence number, or 0 for an empty lane."""
        lane = self.lanes.get(correl_id)
        if lane is None:
            return 0
        number = lane.pop()
        if self.whole is not None:
            self._leave_whole(number)
        if not lane.head():
            del self.lanes[correl_id]
        return number & SEQUENCE_MASK

    def pass_by(self, correl_id: bytes, moments: dict[int, int], now_us: int) -> list[int]:
        """Takes the messages at the head of a lane that have expired; returns their sequence numbers.

        `moments` has the expiry of each message that has one, microseconds since 1970, by its sequence number.
        """
        lane = self.lanes.get(correl_id)
        passed = lane.pass_by(moments, now_us) if lane is not None else []
        if passed and lane is not None and not lane.head():
            del self.lanes[correl_id]
        return passed

    def discard(self, correl_id: bytes, number: int) -> None:
        """Takes one named message out of its lane."""
        lane = self.lanes[correl_id]
        lane.discard(number)
        if self.whole is not None:
            self._leave_whole(number)
        if not lane.head():
            del self.lanes[correl_id]

    def oldest(self) -> bytes | None:
        """The CorrelId of the lane whose head comes first of all available messages; None for an empty queue."""
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

    def oldest_number(self) -> int:
        """The lowest sequence number of all available messages, whatever their priority; 0 for an empty queue."""
        if not self.is_fifo:
            return min((lane.oldest() for lane in self.lanes.values()), default=0)
        correl_id = self.oldest()
        return 0 if correl_id is None else self.lanes[correl_id].head()

    def _add_head(self, number: int, correl_id: bytes) -> None:
        """Notes a lane's head. Gets by CorrelId leave stale entries, which must not pile up."""
        heappush(self._heads, (number, correl_id))
        if len(self._heads) > 2 * len(self.lanes) + _STALE_HEADS:
            self._heads = [(lane.head(), correl_id) for correl_id, lane in self.lanes.items()]
            heapify(self._heads)

    def numbers(self, correl_id: bytes | None = None) -> list[int]:
        """The available messages by their sequence numbers, in the order of delivery: a snapshot for browsing."""
        if correl_id is not None:
            places = list(self.lanes.get(correl_id, ()))
        else:
            places = sorted(number for lane in self.lanes.values() for number in lane)
        return places if self.is_fifo else [place & SEQUENCE_MASK for place in places]

    def behind(self, place: int, count: int, correl_id: bytes | None = None) -> list[int]:
        """The places of the first `count` available messages behind a place, in the order of delivery."""
        if correl_id is not None or len(self.lanes) == 1:
            lane = next(iter(self.lanes.values())) if correl_id is None else self.lanes.get(correl_id)
            return [] if lane is None else lane.behind(place, count)
        if self.whole is not None or len(self.lanes) > _MANY_LANES:
            return self._all_lanes().behind(place, count)
        return sorted([found for lane in self.lanes.values() for found in lane.behind(place, count)])[:count]

    def _all_lanes(self) -> Lane | PriorityLane:
        """All lanes as one. To look through each of many for a few messages would take very long.

        It may have places of expired messages, which nobody can get.
        """
        if self.whole is None:
            self.whole = self._new_lane()
            for number in sorted([number for lane in self.lanes.values() for number in lane]):
                self.whole.append(number)
        return self.whole

    def _join_whole(self, number: int) -> None:
        """A message is available. The whole is given up when most of it has expired."""
        if self.whole is not None:
            self.whole.append(number)
            self.whole = None if len(self.whole) > 2 * self.depth + _STALE_PLACES else self.whole

    def _leave_whole(self, number: int) -> None:
        """A message is not available any more. The whole ends with its last one."""
        if self.whole is not None and number:
            self.whole.discard(number)
            self.whole = self.whole if self.whole.head() else None

    def newest(self, correl_id: bytes) -> int:
        """Sequence number of the available message that a lane delivers last; 0 for an empty lane."""
        return next(reversed(self.lanes[correl_id]), 0) & SEQUENCE_MASK if correl_id in self.lanes else 0

    def upcoming(self, correl_id: bytes, count: int) -> list[int]:
        """The sequence numbers that gets will likely ask for next. Some may already have been taken."""
        places = list(islice(self.lanes.get(correl_id, ()), count))
        if len(places) < count:
            places += [place for place, _ in self._heads[: count - len(places)]]
        return [place & SEQUENCE_MASK for place in places]

    def _new_lane(self) -> Lane | PriorityLane:
        return Lane() if self.is_fifo else PriorityLane()

    def listen(self, correl_id: bytes | None, callback: Callable[[], None]) -> None:
        self.listeners.setdefault(correl_id, []).append(callback)

    def watch(self, callback: Callable[[int], None]) -> None:
        """From now on `callback` is told the place of each message that becomes available, before listeners are."""
        self.watchers.append(callback)

    def unwatch(self, callback: Callable[[int], None]) -> None:
        """The callback is told no more."""
        self.watchers.remove(callback)

    def join(self, correl_id: bytes, callback: Callable[[], None]) -> None:
        """From now on `callback` may take a lane's messages while they are being committed.

        The results must wait for the commit of its own unit of work, which is the same commit.
        """
        self.joiners[correl_id] = callback

    def leave(self, correl_id: bytes) -> None:
        self.joiners.pop(correl_id, None)

    def wake_everyone(self) -> None:
        """Calls all listeners, because the queue itself has changed."""
        for callback in [each for waiting in self.listeners.values() for each in waiting]:
            callback()

    def unlisten(self, correl_id: bytes | None, callback: Callable[[], None]) -> None:
        callbacks = self.listeners.get(correl_id, [])
        if callback in callbacks:
            callbacks.remove(callback)
        if not callbacks:
            self.listeners.pop(correl_id, None)


def _refuse(_unit: UnitOfWork, queue: Queue, _message: Message) -> None:
    raise QueueManagerError(ReasonCode.MQRC_Q_DELETED, f"put on {queue.name}")
