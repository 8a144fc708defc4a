"""The stock of a queue manager: what is on each queue, and for each subscriber, at one moment between two commits.

A subscriber's messages have its CorrelId. A message that somebody has taken, and not yet removed, is still on its
queue. The count visits each CorrelId once, some half a microsecond each. The number of rows has a bound, so that many
subscribers cannot fill whatever keeps the stock: of the others it has the number, and a hash of the full list.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import nlargest
from typing import Final

from mq_adapters.embedded.queue import Queue

#: Queues of one stock, the deepest ones, and subscribers of one queue, those with the most messages.
MOST_QUEUES: Final = 500
MOST_SUBSCRIBERS: Final = 2_000

#: CorrelId and time of the put (microseconds since 1970) of messages, by their numbers.
Lanes = Callable[[Iterable[int]], Mapping[int, tuple[bytes, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberStock:
    """The messages of a queue with one CorrelId; `oldest_us`: when the oldest of them was put."""

    correl_id: bytes
    messages: int
    oldest_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStock:
    """The messages of a queue. `subscribers` counts all CorrelIds, `listed` has those with the most messages.

    `sha256` is of the full list: for each CorrelId, in ascending order, its 24 bytes and its messages as 8 bytes,
    big-endian.
    """

    name: str
    messages: int
    oldest_us: int
    subscribers: int
    listed: tuple[SubscriberStock, ...]
    sha256: bytes


def take_stock(queues: Iterable[Queue], taken: Mapping[Queue, list[int]], lanes: Lanes) -> list[QueueStock]:
    """The stock of the queues that have messages, the deepest first, MOST_QUEUES at most."""
    deepest = nlargest(MOST_QUEUES, (queue for queue in queues if queue.depth), key=lambda queue: queue.depth)
    return [_stock_of(queue, taken.get(queue, []), lanes) for queue in deepest]


def _stock_of(queue: Queue, taken: list[int], lanes: Lanes) -> QueueStock:
    counts = {correl_id: len(lane) for correl_id, lane in queue.lanes.items()}
    oldest = {correl_id: lane.oldest() for correl_id, lane in queue.lanes.items()}
    for number, (correl_id, _) in lanes(taken).items():
        counts[correl_id] = counts.get(correl_id, 0) + 1
        oldest[correl_id] = min(number, oldest.get(correl_id, number))
    digest = hashlib.sha256()
    for correl_id in sorted(counts):
        digest.update(correl_id + counts[correl_id].to_bytes(8, "big"))
    listed = nlargest(MOST_SUBSCRIBERS, counts, key=lambda correl_id: (counts[correl_id], correl_id))
    first = min(oldest.values(), default=0)
    times = lanes({first, *(oldest[correl_id] for correl_id in listed)})
    return QueueStock(
        name=queue.name,
        messages=sum(counts.values()),
        oldest_us=times[first][1] if first in times else 0,
        subscribers=len(counts),
        listed=tuple(
            SubscriberStock(
                correl_id=correl_id,
                messages=counts[correl_id],
                oldest_us=times[oldest[correl_id]][1] if oldest[correl_id] in times else 0,
            )
            for correl_id in listed
        ),
        sha256=digest.digest(),
    )
