"""A batch: the messages of one unit of work, its limits, and how it becomes smaller after a refusal."""

import threading
from dataclasses import dataclass
from typing import Final

from mq_adapters.channel.clock import Clock
from mq_adapters.message import Message
from mq_adapters.queue_manager import QueueManager
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.transmission import is_kept_with_next

#: The longest single wait in a get, in seconds. A channel that is told to stop waits no longer than this.
LONGEST_WAIT_S: Final = 1.0
#: Messages of a unit of work beside the batch: the state message, got and put, and one that keeps it below MAXUMSGS.
_STATE_OPERATIONS: Final = 3
#: In the store a unit of work gets a message, may put a copy or a dead letter of it, and writes a note.
_LOCAL_OPERATIONS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """A batch ends at `messages`, at `bytes` of bodies (its last message may lie across), or `idle_s` after its first.

    The units of work on both sides can hold `most_messages`. A batch grows up to that number for messages that must go
    together, and never beyond.
    """

    messages: int
    most_messages: int
    bytes: int
    idle_s: float


def most_messages(local_limit: int, remote_limit: int) -> int:
    """How many messages fit into one unit of work on both sides, by MAXUMSGS; at least 1.

    More are refused with 2024.
    """
    here = (local_limit - _STATE_OPERATIONS) // _LOCAL_OPERATIONS
    return max(1, min(here, remote_limit - _STATE_OPERATIONS))


class BatchSize:
    """The number of messages that the next batch may have.

    A refused batch halves it, a batch that went through doubles it.

    So a channel makes progress even over a network that breaks within every whole batch. After a limit (2024) the size
    stays while the connection lasts. After any other failure it grows again.
    """

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._most_messages = self._largest = self.messages = wanted

    def connected(self, most_messages: int) -> None:
        """There is a new connection; a unit of work over it holds so many messages."""
        self._most_messages = most_messages
        self._largest = min(self._wanted, most_messages)
        self.messages = min(self.messages, self._largest)

    def limits(self, *, bytes: int, idle_s: float) -> BatchLimits:
        """The limits of the next batch."""
        return BatchLimits(messages=self.messages, most_messages=self._most_messages, bytes=bytes, idle_s=idle_s)

    def refused(self, messages: int, reason_code: int) -> None:
        """A batch of so many messages was backed out, or its connection broke."""
        self.messages = max(1, messages // 2)
        if reason_code == ReasonCode.MQRC_SYNCPOINT_LIMIT_REACHED:
            self._largest = self.messages

    def went_through(self) -> None:
        self.messages = min(self._largest, self.messages * 2)


def take(
    queue_manager: QueueManager, queue_name: str, limits: BatchLimits, *, stop: threading.Event, clock: Clock
) -> list[Message]:
    """Takes the next messages of a queue in a new unit of work. If no message comes in time, there is no unit of work.

    A message that must go with the next one is never the last of a batch. There are two exceptions: the queue ends with
    it, or the batch has more than `bytes`. Only two messages need to go together, and a longer chain of somebody's
    making must not fill the memory.
    """
    queue_manager.begin()
    first = get_or_none(queue_manager, queue_name, wait_s=LONGEST_WAIT_S)
    if first is None:
        queue_manager.back_out()
        return []
    batch = [first]
    deadline_s = clock.monotonic_s() + limits.idle_s
    while (bytes_left := _bytes_left(batch, limits)) > 0 and len(batch) < limits.messages:
        room = limits.messages - len(batch)
        more = queue_manager.take_batch(queue_name, most_messages=room, most_bytes=bytes_left)
        batch += more
        wait_s = min(LONGEST_WAIT_S, deadline_s - clock.monotonic_s())
        if more:
            continue
        if wait_s <= 0 or stop.is_set():
            break
        late = get_or_none(queue_manager, queue_name, wait_s=wait_s)
        batch += [] if late is None else [late]
    while is_kept_with_next(batch[-1]) and len(batch) < limits.most_messages:
        if _bytes_left(batch, limits) <= 0 and any(map(is_kept_with_next, batch[-2:-1])):
            break
        partner = get_or_none(queue_manager, queue_name)
        if partner is None:
            break
        batch.append(partner)
    return batch


def _bytes_left(batch: list[Message], limits: BatchLimits) -> int:
    return limits.bytes - sum(len(message.body) for message in batch)


def get_or_none(
    queue_manager: QueueManager, queue_name: str, *, wait_s: float = 0.0, msg_id: bytes | None = None
) -> Message | None:
    """The next message, or the first with that MsgId; None if none comes in time."""
    try:
        return queue_manager.get(queue_name, wait_s=wait_s, msg_id=msg_id)
    except QueueManagerError as error:
        if error.reason_code != ReasonCode.MQRC_NO_MSG_AVAILABLE:
            raise
        return None
